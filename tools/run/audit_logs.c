#include "audit_logs.h"

#include <sys/stat.h>

#include "cli/temporary.h"
#include "cli/tool.h"
#include "launch.h"
#include "report/report.h"

/* -errno: the directory cannot be read. */
static ssize_t count_logs(const struct audit_logs *logs) {
    size_t count;
    char **paths = logs_list(logs->path, &count);
    if (!paths)
        return -errno;
    for (size_t i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
    return (ssize_t)count;
}

/* The directory must have no logs yet: those of other runs would be taken for this one's. */
static bool use(struct audit_logs *logs, const char *directory) {
    if (mkdir(directory, 0700) != 0 && errno != EEXIST)
        return tool_error("cannot make '%s': %s", directory, strerror(errno));
    if (!realpath(directory, logs->path) || access(directory, R_OK | W_OK | X_OK) != 0)
        return tool_error("cannot use '%s': %s", directory, strerror(errno));
    if (count_logs(logs) > 0)
        return tool_error("'%s' has logs already; give a new or an empty directory", directory);
    return true;
}

bool audit_logs_open(struct audit_logs *logs, const char *directory) {
    logs->temporary = !directory && temporary_make(logs->path, ", or use --log=DIR");
    return directory ? use(logs, directory) : logs->temporary;
}

/* GPUSHARE_LOG has %c and %p, so a % of the path is written as %%. */
static char *pattern(const struct audit_logs *logs, const char *file) {
    char *value = tool_resize(NULL, 2 * strlen(logs->path) + strlen(file) + 1, 1);
    size_t length = 0;
    for (const char *c = logs->path; *c != 0; c++) {
        if (*c == '%')
            value[length++] = '%';
        value[length++] = *c;
    }
    strcpy(value + length, file);
    return value;
}

void audit_logs_set_environment(const struct audit_logs *logs, const char *level, bool events) {
    TOOL_TEMP char *log = pattern(logs, "/%c.%p.jsonl"),
                   *event_log = pattern(logs, "/%c.%p.events.jsonl");
    launch_set("GPUSHARE_MODE", "audit");
    launch_set("GPUSHARE_LOG", log);
    launch_set("GPUSHARE_LOG_FORMAT", "jsonl");
    launch_set("GPUSHARE_LOG_LEVEL", level);
    if (events)
        launch_set("GPUSHARE_EVENT_LOG", event_log);
}

static bool complained; /* of a line that is cut off, as where the disk was full: others are lost */

static void audit_logs_complain(const char *file, unsigned long line, const char *message) {
    complained = true;
    report_complain(file, line, message);
}

struct counted {
    log_line_fn *line;
    void *arg;
    uint64_t count; /* lines of logs, without those of event logs */
};

static const char *count_line(void *arg, const char *text, size_t length) {
    struct counted *counted = arg;
    const char *wrong = counted->line(counted->arg, text, length);
    counted->count += !wrong && !event_line_is(text);
    return wrong;
}

static bool audit_logs_read_directory(const struct audit_logs *logs, const struct log_sink *sink) {
    const ssize_t count = count_logs(logs);
    if (count < 0)
        tool_error("cannot read '%s': %s; what was written there is lost", logs->path,
                   strerror((int)-count));
    return count == 0 || (count > 0 && logs_add(logs->path, sink) == 0);
}

static bool audit_logs_read_kept(const struct audit_channel *channel, const struct log_sink *sink) {
    FILE *file = channel->kept_size ? fmemopen(channel->kept, channel->kept_size, "r") : NULL;
    const bool read = file ? logs_read(file, "(channel)", sink) == 0 : channel->kept_size == 0;
    if (file)
        fclose(file);
    return read;
}

bool audit_logs_read(const struct audit_logs *logs, const struct audit_channel *channel,
                     log_line_fn *line, void *arg) {
    struct counted counted = {line, arg, 0};
    const struct log_sink sink = {count_line, &counted, audit_logs_complain};
    const bool files = audit_logs_read_directory(logs, &sink);
    const bool kept = !channel || audit_logs_read_kept(channel, &sink);
    const uint64_t missing = channel ? audit_channel_missing(channel, counted.count) : 0;
    if (missing > 0)
        tool_error("%" PRIu64
                   " line%s of the processes' logs %s missing: what was found is not all "
                   "in the report",
                   missing, missing == 1 ? "" : "s", missing == 1 ? "is" : "are");
    return files && kept && missing == 0 && !complained;
}

void audit_logs_close(const struct audit_logs *logs) {
    if (logs->temporary)
        temporary_remove(logs->path);
}
