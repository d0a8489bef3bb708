#include "watched.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/inotify.h>

#include "cli/tool.h"
#include "descendants.h"
#include "loaded.h"
#include "preload.h"
#include "process/call_counter.h"

struct unwatched {
    uint32_t pid;
    char *name;
    bool asked;   /* its environment has the library in LD_PRELOAD */
    char *hidden; /* it has the library, and this is why its calls may go past that; else NULL */
    bool mute;    /* it has the library, and had not mapped the channel when it was first seen, */
    bool sure;    /* nor when it was last seen, so that it was no moment of its start */
};

/* Watches the libcuda that the loader finds for this process. -1: it finds none. */
static int watch_driver(void) {
    Dl_info place;
    int events = -1;
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    void *known = driver ? dlsym(driver, "cuInit") : NULL;
    if (known && dladdr(known, &place) != 0)
        events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (events >= 0 && inotify_add_watch(events, place.dli_fname, IN_OPEN) < 0) {
        close(events);
        events = -1;
    }
    if (driver)
        dlclose(driver);
    return events;
}

void watched_begin(struct watched *watched, enum runtime runtime, const char *logs, bool to_files) {
    char library[PATH_MAX], real[PATH_MAX];
    *watched = (struct watched){.runtime = runtime,
                                .opened = runtime == RUNTIME_CUDA ? watch_driver() : -1};
    preload_library(runtime, library);
    watched->library = tool_copy(basename(realpath(library, real) ? real : library));
    audit_channel_begin(&watched->channel, logs, to_files);
    if (watched->channel.memory)
        watched->counters = (struct gps_call_counters *)watched->channel.memory->counters;
}

void watched_end(struct watched *watched) {
    audit_channel_end(&watched->channel);
    if (watched->opened >= 0)
        close(watched->opened);
    free(watched->library);
    for (size_t i = 0; i < watched->other_count; i++) {
        free(watched->others[i].name);
        free(watched->others[i].hidden);
    }
    free(watched->others);
}

static uint64_t count_processes(const struct watched *watched, uint64_t reported) {
    const uint64_t count = watched->counters ? atomic_load(&watched->counters->processes) : 0;
    return count > reported ? count : reported;
}

static uint64_t count_calls(const struct watched *watched) {
    uint64_t calls = 0;
    for (size_t i = 0; watched->counters && i < GPS_CALL_ROWS; i++)
        calls += atomic_load(&watched->counters->rows[i].calls);
    return calls;
}

bool watched_has_calls(const struct watched *watched) {
    return count_calls(watched) > 0;
}

/* "cuNewCall (2 times), ..."; NULL: none were. */
static char *unwatched_calls(const struct watched *watched) {
    char *list = NULL;
    for (size_t i = 0; watched->counters && i < GPS_CALL_UNWATCHED; i++) {
        const uint64_t calls = atomic_load(&watched->counters->unwatched[i].calls);
        if (calls > 0)
            tool_list(&list, "%s (%" PRIu64 " time%s)", watched->counters->unwatched[i].name, calls,
                      calls == 1 ? "" : "s");
    }
    return list;
}

char *watched_text(const struct watched *watched, uint64_t reported) {
    const uint64_t processes = count_processes(watched, reported), calls = count_calls(watched);
    TOOL_TEMP char *unwatched = unwatched_calls(watched);
    if (!watched->counters)
        return tool_copy("calls could not be counted");
    if (processes == 0)
        return tool_copy("nothing was watched");
    return tool_format(
        "%" PRIu64 " process%s used %s, %" PRIu64 " call%s seen%s%s", processes,
        processes == 1 ? "" : "es", vendors[watched->runtime].name, calls, calls == 1 ? "" : "s",
        unwatched ? "; called, and newer than this gpushare: " : "", tool_or(unwatched, ""));
}

/* --- processes that were not watched --- */

static bool watched_is_known(const struct watched *watched, uint32_t pid, bool hidden) {
    for (size_t i = 0; i < watched->other_count; i++)
        if (watched->others[i].pid == pid && !watched->others[i].mute &&
            !watched->others[i].hidden == !hidden)
            return true;
    return false;
}

/* Whether it was seen before without the channel: then that is sure, until it has it. */
static bool is_mute_again(const struct watched *watched, uint32_t pid, bool has_channel) {
    for (size_t i = 0; i < watched->other_count; i++)
        if (watched->others[i].pid == pid && watched->others[i].mute) {
            watched->others[i].sure = !has_channel;
            return true;
        }
    return false;
}

/* Whether it is to be named. The maps are read in parts. When the process ends or executes another
 * program between two parts, the rest is missing, and nothing can be read from the file any more.
 * The library is mapped behind libcuda. So what was read is true only if something can still be
 * read after it. */
static bool find_out(int maps, const struct watched *watched, struct unwatched *process) {
    const char *const library = watched->library, *const driver = vendors[watched->runtime].driver;
    size_t size;
    char again;
    bool uses = false, has_library = false, has_channel = !watched->counters;
    TOOL_TEMP char *text = tool_read(maps, &size), *whole = tool_copy(text);
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        uses |= loaded_is_code_of(line, driver);
        has_library |= loaded_is_code_of(line, library);
        has_channel |= strstr(line, "/memfd:" GPS_CHANNEL_NAME) != NULL;
    }
    if (!uses || (has_library && watched_is_known(watched, process->pid, true)))
        return false;
    process->mute = has_library && !has_channel;
    if (has_library && is_mute_again(watched, process->pid, has_channel))
        return false;
    TOOL_TEMP char *preload = descendants_variable(process->pid, "LD_PRELOAD");
    process->asked = preload && strstr(preload, library);
    process->hidden = has_library ? rival_of(preload, library, whole) : NULL;
    process->name = descendants_name(process->pid);
    if (process->hidden)
        process->mute = false;
    return has_library && !process->mute ? process->hidden != NULL : pread(maps, &again, 1, 0) == 1;
}

static void watched_check_process(struct watched *watched, uint32_t pid) {
    struct unwatched other = {.pid = pid};
    const int maps = watched_is_known(watched, pid, false) ? -1 : descendants_open(pid, "maps");
    if (maps < 0)
        return;
    if (find_out(maps, watched, &other))
        TOOL_APPEND(watched->others, watched->other_count, other);
    else
        free(other.name);
    close(maps);
}

void watched_look(struct watched *watched) {
    size_t count;
    audit_channel_empty(&watched->channel);
    TOOL_TEMP uint32_t *living = descendants_living(&count);
    for (size_t i = 0; i < count; i++)
        watched_check_process(watched, living[i]);
}

/* --- messages at the end --- */

void watched_tell_silent(const struct watched *watched) {
    uint64_t more = 0;
    for (size_t i = 0; watched->counters && i < GPS_CALL_ROWS; i++) {
        __typeof__(&watched->counters->rows[0]) row = &watched->counters->rows[i];
        const bool lives = kill((pid_t)row->pid, 0) == 0;
        more += row->begun > 0 ? row->begun - 1 : 0;
        if (row->begun > 0 && !lives)
            tool_warn("%.*s (pid %" PRIu64 ") ended without its last report, as by a signal: what "
                      "it would have reported at its end, as leaks, is missing",
                      (int)sizeof(row->name), row->name, row->pid);
    }
    if (more > 0)
        tool_warn("so did %" PRIu64 " more, unless they still run", more);
}

/* Whether processes counted themselves and none of their calls. */
static bool is_gone_past(const struct watched *watched) {
    return watched->counters && atomic_load(&watched->counters->processes) > 0 &&
           count_calls(watched) == 0;
}

static bool has_calls(const struct watched *watched, uint32_t pid) {
    for (size_t i = 0; watched->counters && i < GPS_CALL_ROWS; i++)
        if (watched->counters->rows[i].pid == pid && watched->counters->rows[i].calls > 0)
            return true;
    return false;
}

/* Names a process that was not watched. */
static void watched_tell_unwatched(const struct watched *watched, const struct unwatched *other) {
    const char *const uses = vendors[watched->runtime].name;
    if (other->hidden)
        tool_error("%s (pid %" PRIu32 ") used %s, and no call was seen: %s, so calls go past "
                   "gpushare; put %s in front",
                   other->name, other->pid, uses, other->hidden, watched->library);
    else if (other->mute)
        tool_error("%s (pid %" PRIu32 ") used %s and could not reach the audit, as with another "
                   "user, root directory or /proc: what it did wrong may be missing; put "
                   "`gpushare audit --` behind what changes these",
                   other->name, other->pid, uses);
    else
        tool_error("%s (pid %" PRIu32 ") used %s and was not watched: %s", other->name, other->pid,
                   uses,
                   other->asked ? "its loader did not load the library (see: gpushare doctor CMD)"
                                : "LD_PRELOAD was not in its environment; let whatever starts it "
                                  "keep LD_PRELOAD and GPUSHARE_*");
}

static void tell_gone_past(enum runtime runtime, const char *verb) {
    const char *const name = vendors[runtime].name;
    tool_error("%s was used, and no call was seen: either nothing but look-ups was done, or the "
               "calls reach the driver past gpushare, as where another library in LD_PRELOAD or "
               "/etc/ld.so.preload answers first; try `gpushare %s` without it",
               name, verb);
}

static void tell_nothing(const struct watched *watched, const char *verb, const char *command,
                         int status) {
    const enum runtime runtime = watched->runtime;
    const char *const name = vendors[runtime].name;
    char path[PATH_MAX], why[PATH_MAX + 128];
    TOOL_TEMP char *no_driver = preload_no_driver(runtime);
    if (no_driver)
        tool_error("nothing was watched: %s", no_driver);
    else if (!watched->counters)
        tool_error("it is not known who was watched: a process is counted in memory of "
                   "memfd_create, which is refused here, or not allowed by ulimit -f");
    else if (preload_program(command, path) == 0 && preload_obstacle(path, why, sizeof(why)))
        tool_error(
            "nothing was watched: '%s' %s; use a build that is linked dynamically and has no "
            "privileges",
            command, why);
    else if (status != 0)
        tool_error("nothing was watched: '%s' ended with status %d, and no process had used %s "
                   "with gpushare preloaded until then",
                   command, status, name);
    else
        tool_error("nothing was watched: no process used %s with gpushare preloaded; if '%s' uses "
                   "%s, something drops LD_PRELOAD before it starts (env, sudo, ssh, docker, a "
                   "script): put `gpushare %s --` behind that; or what it starts is setuid, has "
                   "file capabilities or is static, which `gpushare doctor CMD` says of a program",
                   name, command, name, verb);
}

bool watched_all(const struct watched *watched, uint64_t reported, const char *verb,
                 const char *command, int status) {
    bool all = true, past = false;
    TOOL_EACH(const struct unwatched, other, watched->others, watched->other_count) {
        if ((other->hidden && has_calls(watched, other->pid)) || (other->mute && !other->sure))
            continue;
        watched_tell_unwatched(watched, other);
        past |= other->hidden != NULL;
        all = false;
    }
    if (past)
        return false;
    if (is_gone_past(watched)) {
        tell_gone_past(watched->runtime, verb);
        return false;
    }
    if (count_processes(watched, reported) > 0)
        return all;
    if (all)
        tell_nothing(watched, verb, command, status);
    return false;
}
