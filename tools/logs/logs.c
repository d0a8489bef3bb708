/* logs.c - finds the logs, cuts them into lines, and complains of those that it skips. */
#include "logs.h"

#include <dirent.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/tool.h"
#include "config/config.h"

#define COMPLAINTS_MAX 8 /* of one file: a binary file has a bad "line" every few bytes */
#define BUFFER_BYTES   (2 * LOGS_LINE_MAX)

struct reader {
    const struct log_sink *sink;
    FILE *file;
    const char *name;
    unsigned long number, taken, skipped;
    struct {
        unsigned long number;
        const char *why;
    } complaints[COMPLAINTS_MAX]; /* the first of those that were skipped */
    bool text;                    /* the first line that was skipped is of a log for people */
    bool array;                   /* it begins with a [: a report of ours, as JSON */
    char *bytes;                  /* what was read and is not cut into lines yet: */
    size_t begin, end;            /* so much of it */
    char *line;                   /* a string in `bytes` */
    size_t length;
    bool whole, too_long; /* the line ends with a newline; the beginning of it is lost */
};

static void skip(struct reader *reader, const char *why) {
    const unsigned long place = reader->skipped++;
    if (place < COMPLAINTS_MAX) {
        reader->complaints[place].number = reader->number;
        reader->complaints[place].why = why;
    }
}

/* Where no line is one of a log, their number says enough. */
static void complain_of_lines(const struct reader *reader) {
    const bool none = reader->taken == 0 && reader->skipped > 1;
    const unsigned long shown = none                               ? 0
                                : reader->skipped < COMPLAINTS_MAX ? reader->skipped
                                                                   : COMPLAINTS_MAX;
    for (unsigned long i = 0; i < shown; i++)
        reader->sink->complain(reader->name, reader->complaints[i].number,
                               reader->complaints[i].why);
    TOOL_TEMP char *message =
        tool_format("%lu %slines that were skipped", reader->skipped - shown, none ? "" : "more ");
    if (reader->skipped > shown)
        reader->sink->complain(reader->name, 0, message);
}

/* Reads more behind the buffer's text, which is dropped if too long for a line. False: no more. */
static bool reader_fill(struct reader *reader) {
    size_t rest = reader->end - reader->begin;
    if (rest > LOGS_LINE_MAX) {
        reader->too_long = true;
        rest = 0;
    }
    memmove(reader->bytes, reader->bytes + reader->begin, rest);
    size_t count = fread(reader->bytes + rest, 1, BUFFER_BYTES - rest, reader->file);
    reader->begin = 0;
    reader->end = rest + count;
    return count > 0;
}

/* False at the end. */
static bool next_line(struct reader *reader) {
    char *newline;
    reader->too_long = false;
    do
        newline = memchr(reader->bytes + reader->begin, '\n', reader->end - reader->begin);
    while (!newline && reader_fill(reader));
    reader->line = reader->bytes + reader->begin;
    reader->whole = newline;
    reader->length = newline ? (size_t)(newline - reader->line) : reader->end - reader->begin;
    reader->line[reader->length] = 0;
    reader->begin += reader->length + reader->whole;
    reader->too_long |= reader->length > LOGS_LINE_MAX;
    reader->number++;
    return reader->whole || reader->too_long || reader->length > 0;
}

static void reader_read_line(struct reader *reader) {
    const struct log_sink *sink = reader->sink;
    if (reader->too_long) {
        skip(reader, "longer than 1 MiB, which no line of gpushare's is; skipped");
        return;
    }
    if (strspn(reader->line, " \t\r") == reader->length)
        return;
    reader->array |= reader->number == 1 && reader->line[0] == '[';
    if (reader->array)
        return;
    const char *wrong = sink->line(sink->arg, reader->line, reader->length);
    reader->taken += !wrong;
    reader->text |= wrong && reader->skipped == 0 && strncmp(reader->line, "=========", 9) == 0;
    if (wrong)
        skip(reader,
             reader->whole ? wrong : "cut off: its writer was killed, or still writes; skipped");
}

static void complain_of_all(const struct reader *reader) {
    const char *why =
        reader->text    ? "a log for people; only those of log_format = jsonl can be read"
        : reader->array ? "an array, and no log, which has an object in each line; what a report "
                          "was made from can be read: gpushare audit --log=DIR keeps it"
        : reader->skipped == 0 ? "empty; gpushare writes into a log with log_format = jsonl, when "
                                 "there is a finding, and into that of event_log; a process that "
                                 "was killed may have written nothing yet"
                               : "no log of gpushare's; it writes them with log_format = jsonl, "
                                 "and events with event_log";
    reader->sink->complain(reader->name, 0, why);
}

int logs_read(FILE *file, const char *name, const struct log_sink *sink) {
    struct reader reader = {.sink = sink, .file = file, .name = name};
    reader.bytes = tool_resize(NULL, BUFFER_BYTES + 1, 1);
    while (next_line(&reader))
        reader_read_line(&reader);
    free(reader.bytes);
    complain_of_lines(&reader);
    if (reader.taken == 0 && !ferror(file))
        complain_of_all(&reader);
    return ferror(file) ? -EIO : reader.taken == 0 ? -ENODATA : 0;
}

/* --- files --- */

static int add_file(const char *path, const struct log_sink *sink) {
    FILE *file = fopen(path, "re");
    if (!file)
        return -errno;
    const int status = logs_read(file, path, sink);
    fclose(file);
    return status;
}

static int is_log(const struct dirent *entry) {
    return gps_glob_match("*.jsonl", entry->d_name);
}

char **logs_list(const char *directory, size_t *count) {
    struct dirent **entries;
    int found = scandir(directory, &entries, is_log, alphasort);
    if (found < 0)
        return NULL;
    char **paths = tool_resize(NULL, (size_t)found + 1, sizeof(*paths));
    *count = (size_t)found;
    for (int i = 0; i < found; i++) {
        paths[i] = tool_format("%s/%s", directory, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return paths;
}

/* A file that cannot be read does not keep the others from being read. */
static int add_directory(const char *path, const struct log_sink *sink) {
    size_t count;
    char **paths = logs_list(path, &count);
    if (!paths)
        return -errno;
    int result = count == 0 ? -ENODATA : 0;
    if (count == 0)
        sink->complain(path, 0, "no *.jsonl in this directory");
    for (size_t i = 0; i < count; i++) {
        const int status = add_file(paths[i], sink);
        if (status != 0 && status != -ENODATA)
            sink->complain(paths[i], 0, strerror(-status));
        result = status != 0 ? -ENODATA : result;
        free(paths[i]);
    }
    free(paths);
    return result;
}

int logs_add(const char *path, const struct log_sink *sink) {
    if (strcmp(path, "-") == 0)
        return logs_read(stdin, "(stdin)", sink);
    struct stat info;
    if (stat(path, &info) != 0)
        return -errno;
    return (S_ISDIR(info.st_mode) ? add_directory : add_file)(path, sink);
}

/* --- lines of the event log --- */

/* In JSON this text can only be a key: in a string its quotation marks would be escaped. */
bool event_line_is(const char *text) {
    return strstr(text, "\"event\":");
}

static bool is_of_region(const char *event) {
    static const char *const events[] = {"created", "exported", "opened",
                                         "closed",  "freed",    "frames"};
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        if (strcmp(events[i], event) == 0)
            return true;
    return false;
}

bool event_line_time(const char *ts, int64_t *time) {
    struct tm date = {.tm_isdst = 0};
    const char *micros = log_line_is_time(ts) ? strptime(ts, "%Y-%m-%dT%H:%M:%S.", &date) : NULL;
    if (micros)
        *time = (int64_t)timegm(&date) * 1000000 + atoi(micros);
    return micros;
}

/* Gets the time, and says what the event lacks without which it has no meaning; NULL: nothing. */
static const char *event_line_missing(struct event_line *line) {
    if (!event_line_time(line->ts, &line->time))
        return "no line of a gpushare event log, for it has no ts with a time; skipped";
    if (line->process.pid <= 0 || !line->image)
        return "no line of a gpushare event log, for it has no pid and process; skipped";
    if (is_of_region(line->event) && !line->region)
        return "an event of a region without a region; skipped";
    if (strcmp(line->event, "finding") == 0 && !line->finding)
        return "a finding without its id; skipped";
    return line->size < 0 || line->saved < 0 || line->ns < 0 || line->count < 0 ||
                   line->left_out < 0
               ? "a negative number; skipped"
               : NULL;
}

static const char *event_line_unpack(struct event_line *line) {
    struct log_process *process = &line->process;
    if (json_unpack(line->json,
                    "{s:s, s:s, s?I, s?I, s?s, s?s, s?s, s?s, s?s, s?I, s?I, s?I, s?s, s?s, "
                    "s?s, s?s, s?s, s?s, s?I, s?I}",
                    "ts", &line->ts, "event", &line->event, "pid", &process->pid, "pid_ns",
                    &process->pid_ns, "process", &line->image, "command", &process->command,
                    "region", &line->region, "name", &line->name, "how", &line->how, "size",
                    &line->size, "saved", &line->saved, "ns", &line->ns, "finding", &line->finding,
                    "level", &line->level, "api", &line->api, "detail", &line->detail, "arguments",
                    &process->arguments, "device", &line->device, "count", &line->count, "left_out",
                    &line->left_out) != 0)
        return "no line of a gpushare event log: a member is missing or of another kind; skipped";
    return event_line_missing(line);
}

struct event_line *event_line_parse(const char *text, size_t length, const char **wrong) {
    struct event_line *line = tool_zeroed(1, sizeof(*line));
    line->json = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    *wrong = line->json ? event_line_unpack(line) : "not JSON; skipped";
    if (!*wrong)
        return line;
    event_line_free(line);
    return NULL;
}

void event_line_free(struct event_line *line) {
    json_decref(line->json);
    free(line);
}
