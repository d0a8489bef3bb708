/*
 * perfetto.c - a history in the trace event format, which Perfetto and chrome://tracing open.
 *
 * A use of a region is an asynchronous event, for the uses of one process may overlap in any way. A
 * flow needs a slice at either end, which is one of a microsecond.
 */

#include "cli/json_tree.h"
#include "cli/tool.h"
#include "timeline.h"

/* A number above Linux's highest pid, for what has no pid and for pids that occur twice. */
enum { FIRST_PID = 1 << 22 };

struct trace {
    FILE *out;
    const struct history *history;
    const char *before; /* the next event */
    json_int_t *pids;   /* by process */
    json_int_t flows;
};

/* --- events --- */

static void perfetto_put(struct trace *trace, json_t *event) {
    fputs(trace->before, trace->out);
    trace->before = ",\n";
    json_dumpf(event, trace->out, JSON_COMPACT);
    json_decref(event);
}

static json_int_t perfetto_since(const struct trace *trace, int64_t time) {
    return time - trace->history->begin;
}

static const char *label(const struct trace *trace, size_t region) {
    if (region == HISTORY_NONE)
        return "?";
    const struct history_region *of = &trace->history->regions[region];
    return tool_or(of->name, tool_or(of->id, "?"));
}

static json_t *event_of(const struct trace *trace, const char *phase, const char *name,
                        const char *category, size_t process, int64_t time) {
    const json_int_t pid = process == HISTORY_NONE ? FIRST_PID : trace->pids[process];
    return json_tree_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "ph", phase, "name", name, "cat",
                          category, "pid", pid, "tid", pid, "ts", perfetto_since(trace, time));
}

/* Prints an event that lasts; one without an end lasts until the end of the logs. */
static void put_span(struct trace *trace, const char *kind, size_t number, const char *category,
                     size_t region, size_t process, int64_t from, int64_t to, json_t *args) {
    const int64_t until = to == HISTORY_OPEN ? trace->history->end : to;
    const char *name = label(trace, region);
    json_t *begin = event_of(trace, "b", name, category, process, from);
    json_t *end = event_of(trace, "e", name, category, process, until > from ? until : from);
    char id[32];
    snprintf(id, sizeof(id), "%s%zu", kind, number);
    json_tree_add(begin, "{s:s, s:o}", "id", id, "args", args);
    json_tree_add(end, "{s:s}", "id", id);
    perfetto_put(trace, begin);
    perfetto_put(trace, end);
}

/* Prints one end of an arrow. */
static void put_end(struct trace *trace, const char *what, const char *flow, size_t process,
                    int64_t time) {
    json_t *slice = event_of(trace, "X", what, "event", process, time);
    json_tree_add(slice, "{s:i}", "dur", 1);
    perfetto_put(trace, slice);
    json_t *side = event_of(trace, flow, "region", "flow", process, time);
    json_tree_add(side, "{s:I}", "id", trace->flows);
    if (*flow == 'f')
        json_tree_add(side, "{s:s}", "bp", "e");
    perfetto_put(trace, side);
}

static void put_flow(struct trace *trace, const char *from, size_t from_process, int64_t from_time,
                     const char *to, size_t to_process, int64_t to_time) {
    trace->flows++;
    put_end(trace, from, "s", from_process, from_time);
    put_end(trace, to, "f", to_process, to_time);
}

/* --- processes --- */

static json_int_t synthetic(const struct history *history, size_t index) {
    const int64_t pid = history->processes[index].facts.pid;
    for (size_t i = 0; i < history->process_count; i++)
        if (i != index && history->processes[i].facts.pid == pid)
            return FIRST_PID + 1 + (json_int_t)index;
    return pid;
}

static void put_name(struct trace *trace, const char *what, json_int_t pid, const char *name) {
    perfetto_put(trace, json_tree_pack("{s:s, s:s, s:I, s:I, s:{s:s}}", "ph", "M", "name", what,
                                       "pid", pid, "tid", pid, "args", "name", name));
}

static void put_processes(struct trace *trace) {
    const struct history *history = trace->history;
    put_name(trace, "process_name", FIRST_PID, "all regions");
    for (size_t i = 0; i < history->process_count; i++) {
        const struct log_process *facts = &history->processes[i].facts;
        trace->pids[i] = synthetic(history, i);
        TOOL_TEMP char *name = tool_format("%s (pid %" PRId64 " in namespace %" PRId64 ")",
                                           facts->command, facts->pid, facts->pid_ns);
        put_name(trace, "process_name", trace->pids[i], name);
        put_name(trace, "thread_name", trace->pids[i], "exports, opens, frees");
    }
}

/* --- regions --- */

static void put_lifetime(struct trace *trace, size_t number) {
    const struct history_lifetime *lifetime = &trace->history->lifetimes[number];
    json_t *args =
        json_tree_pack("{s:s?, s:I}", "region", trace->history->regions[lifetime->region].id,
                       "bytes", lifetime->size);
    put_span(trace, "lifetime", number, "exported", lifetime->region, lifetime->owner,
             lifetime->begin, lifetime->gone, args);
}

static void put_hold(struct trace *trace, size_t number) {
    const struct history_hold *hold = &trace->history->holds[number];
    const struct history_lifetime *lifetime = &trace->history->lifetimes[hold->lifetime];
    put_span(trace, "hold", number, "opened", lifetime->region, hold->process, hold->from, hold->to,
             json_tree_pack("{s:I}", "bytes", lifetime->size));
    if (lifetime->exported != HISTORY_OPEN && lifetime->exported <= hold->from)
        put_flow(trace, "export", lifetime->owner, lifetime->exported, "open", hold->process,
                 hold->from);
}

/* Finds the hold that ends last: the freed memory waits for its end. */
static void put_last_closes(struct trace *trace) {
    const struct history *history = trace->history;
    TOOL_TEMP size_t *last = tool_zeroed(history->lifetime_count + 1, sizeof(*last));
    for (size_t i = 0; i < history->hold_count; i++) {
        const struct history_hold *hold = &history->holds[i];
        size_t *best = &last[hold->lifetime];
        if (hold->to != HISTORY_OPEN && hold->from <= history->lifetimes[hold->lifetime].freed &&
            (*best == 0 || history->holds[*best - 1].to < hold->to))
            *best = i + 1;
    }
    for (size_t i = 0; i < history->lifetime_count; i++) {
        const struct history_lifetime *lifetime = &history->lifetimes[i];
        const struct history_hold *hold = last[i] != 0 ? &history->holds[last[i] - 1] : NULL;
        if (hold && lifetime->freed != HISTORY_OPEN && lifetime->freed < hold->to)
            put_flow(trace, "free", lifetime->owner, lifetime->freed, "last close", hold->process,
                     hold->to);
    }
}

/* --- frames --- */

static void put_rate(struct trace *trace, const struct history_frames *frames, int64_t time,
                     double whole, double left_out) {
    TOOL_TEMP char *name = tool_format("frames a second, %s, %s", label(trace, frames->region),
                                       frames->writes ? "published" : "read");
    perfetto_put(trace, json_tree_pack("{s:s, s:s, s:I, s:I, s:{s:f, s:f}}", "ph", "C", "name",
                                       name, "pid", trace->pids[frames->process], "ts",
                                       perfetto_since(trace, time), "args", "frames", whole,
                                       "left out", left_out));
}

/* A counter stays as it is until its next event. */
static void put_frames(struct trace *trace, const struct history_frames *frames) {
    const double seconds =
        frames->to > frames->from ? (double)(frames->to - frames->from) / 1e6 : 1;
    put_rate(trace, frames, frames->from, (double)frames->count / seconds,
             (double)frames->left_out / seconds);
    if (!frames->goes_on)
        put_rate(trace, frames, frames->to, 0, 0);
}

/* --- the rest --- */

static void put_rest(struct trace *trace) {
    const struct history *history = trace->history;
    for (size_t i = 0; i < history->wait_count; i++) {
        const struct history_wait *wait = &history->waits[i];
        put_span(trace, "wait", i, wait->kind == HISTORY_SUSPENDED ? "suspended" : "waited",
                 wait->region, wait->process, wait->from, wait->to, json_tree_pack("{}"));
    }
    for (size_t i = 0; i < history->mark_count; i++) {
        const struct history_mark *mark = &history->marks[i];
        json_t *event = event_of(trace, "i", mark->finding, "finding", mark->process, mark->time);
        json_tree_add(event, "{s:s, s:{s:s?, s:s?}}", "s", "p", "args", "call", mark->api, "detail",
                      mark->detail);
        perfetto_put(trace, event);
    }
    for (size_t i = 0; i < history->frames_count; i++)
        put_frames(trace, &history->frames[i]);
    TOOL_EACH(const struct history_made, made, history->made, history->made_count) {
        perfetto_put(trace,
                     json_tree_pack("{s:s, s:s, s:I, s:I, s:{s:I}}", "ph", "C", "name",
                                    "bytes of cuMemCreate", "pid", trace->pids[made->process], "ts",
                                    perfetto_since(trace, made->time), "args", "own", made->bytes));
    }
    TOOL_EACH(const struct history_step, step, history->steps, history->step_count) {
        perfetto_put(trace, json_tree_pack("{s:s, s:s, s:I, s:I, s:{s:I, s:I}}", "ph", "C", "name",
                                           "bytes of regions", "pid", (json_int_t)FIRST_PID, "ts",
                                           perfetto_since(trace, step->time), "args", "in use",
                                           step->used, "without sharing", step->without));
    }
}

void timeline_perfetto(FILE *out, const struct history *history) {
    struct trace trace = {.out = out, .history = history, .before = ""};
    trace.pids = tool_zeroed(history->process_count + 1, sizeof(*trace.pids));
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", out);
    put_processes(&trace);
    for (size_t i = 0; i < history->lifetime_count; i++)
        put_lifetime(&trace, i);
    for (size_t i = 0; i < history->hold_count; i++)
        put_hold(&trace, i);
    put_last_closes(&trace);
    put_rest(&trace);
    fputs("\n]}\n", out);
    free(trace.pids);
}
