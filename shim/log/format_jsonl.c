/*
 * format_jsonl.c - formats a report as one line of JSON, by docs/log.schema.json. See format.h.
 */
#include "format_common.h"
#include "util/digits.h"

static void add_key(struct gps_text *text, const char *key) {
    gps_text_strs(text, ",\"", key, "\":");
}

static void add_string(struct gps_text *text, const char *key, const char *value) {
    add_key(text, key);
    gps_text_json(text, value && value[0] != '\0' ? value : NULL);
}

/* 0 says that the number is not known. */
static void add_number(struct gps_text *text, const char *key, uint64_t value) {
    add_key(text, key);
    if (value == 0)
        gps_text_str(text, "null");
    else
        gps_text_dec(text, value);
}

/* Begins a string, or adds null for a value that is not known. */
static bool begin_string(struct gps_text *text, const char *key, bool known) {
    add_key(text, key);
    gps_text_str(text, known ? "\"" : "null");
    return known;
}

/* A string: JSON's numbers end at 2^53 in many readers. */
static void add_address(struct gps_text *text, const char *key, uint64_t value) {
    if (!begin_string(text, key, value != 0))
        return;
    gps_text_hex(text, value);
    gps_text_str(text, "\"");
}

static void add_stamp(struct gps_text *text, const struct gps_stamp *stamp) {
    gps_text_str(text, "{\"ts\":\"");
    gps_text_time(text, stamp->time);
    gps_text_str(text, "\"");
    add_number(text, "pid", stamp->pid);
    add_number(text, "pid_ns", stamp->pid_ns);
    add_number(text, "tid", stamp->tid);
    add_string(text, "command", stamp->command);
}

static void add_when(struct gps_text *text, const char *key, uint64_t time) {
    if (!begin_string(text, key, time != 0))
        return;
    gps_text_time(text, time);
    gps_text_str(text, "\"");
}

/* ptr size region name device context */
static void add_subject(struct gps_text *text, const struct gps_report *report) {
    add_address(text, "ptr", report->pointer);
    add_number(text, "size", report->size);
    if (begin_string(text, "region", report->region != NULL)) {
        gps_format_id(text, report->region);
        gps_text_str(text, "\"");
    }
    add_string(text, "name", report->name);
    add_key(text, "device");
    if (report->device < 0)
        gps_text_str(text, "null");
    else
        gps_text_sdec(text, report->device);
    add_address(text, "context", report->context);
}

static void add_site(struct gps_text *text, uint64_t site) {
    if (!begin_string(text, "site", site != 0))
        return;
    char hex[GPS_HEX64];
    gps_hex64_format(site, hex);
    gps_text_strs(text, hex, "\"");
}

static void add_stack(struct gps_text *text, const struct gps_frame *stack, unsigned count) {
    add_key(text, "stack");
    gps_text_str(text, "[");
    for (unsigned i = 0; i < count; i++) {
        const struct gps_frame *frame = &stack[i];
        bool placed = frame->module[0] != '\0';
        gps_text_str(text, i == 0 ? "{\"module\":" : ",{\"module\":");
        gps_text_json(text, placed ? frame->module : NULL);
        gps_text_str(text, ",\"offset\":\"");
        gps_text_hex(text, placed ? frame->offset : frame->address);
        gps_text_str(text, "\"");
        add_string(text, "build_id", frame->build_id);
        gps_text_str(text, "}");
    }
    gps_text_str(text, "]");
}

/* pid pid_ns command, of an object that begins */
static void add_identity(struct gps_text *text, uint32_t pid, uint64_t pid_ns,
                         const char *command) {
    gps_text_str(text, "\"pid\":");
    gps_text_dec(text, pid);
    add_number(text, "pid_ns", pid_ns);
    add_string(text, "command", command);
}

static void add_priors(struct gps_text *text, const struct gps_report *report,
                       const struct gps_stamp *stamp) {
    add_key(text, "prior");
    gps_text_str(text, "[");
    for (unsigned i = 0; i < report->prior_count; i++) {
        const struct gps_prior *prior = &report->prior[i];
        const struct gps_owner *owner = prior->owner;
        gps_text_str(text, i == 0 ? "{" : ",{");
        if (owner)
            add_identity(text, owner->pid, owner->pid_ns, owner->command);
        else
            add_identity(text, stamp->pid, stamp->pid_ns, stamp->command);
        add_string(text, "what", prior->what);
        add_when(text, "ts", prior->time);
        add_stack(text, prior->stack, prior->stack_count);
        gps_text_str(text, "}");
    }
    gps_text_str(text, "]");
}

static void add_others(struct gps_text *text, const struct gps_report *report) {
    add_key(text, "others");
    gps_text_str(text, "[");
    for (unsigned i = 0; i < report->other_count; i++) {
        const struct gps_owner *owner = &report->others[i].owner;
        gps_text_str(text, i == 0 ? "{" : ",{");
        add_identity(text, owner->pid, owner->pid_ns, owner->command);
        add_when(text, "since", report->others[i].since);
        gps_text_str(text, "}");
    }
    gps_text_str(text, "]");
}

static void add_api(struct gps_text *text, const char *api) {
    char name[64];
    struct gps_text bare = GPS_TEXT(name);
    if (api)
        gps_format_api(&bare, api);
    add_string(text, "api", api ? name : NULL);
}

static void write_jsonl(struct gps_text *text, const struct gps_report *report,
                        const struct gps_stamp *stamp, uint64_t site) {
    add_stamp(text, stamp);
    add_string(text, "level", gps_level_name(gps_finding_level(report->finding)));
    add_string(text, "finding", gps_finding_id(report->finding));
    add_api(text, report->api);
    add_subject(text, report);
    add_string(text, "message", gps_finding_sentence(report->finding));
    add_string(text, "hint", gps_finding_hint(report->finding));
    add_number(text, "count", report->count != 0 ? report->count : 1);
    add_site(text, site);
    add_stack(text, report->stack, report->stack_count);
    add_priors(text, report, stamp);
    add_string(text, "detail", report->detail);
    add_others(text, report);
    gps_text_str(text, "}\n");
}

struct gps_text gps_logline_jsonl(char *buffer, size_t size, const struct gps_report *report,
                                  const struct gps_stamp *stamp, uint64_t site) {
    struct gps_format_view view = {.report = *report, .omitted = 0};
    struct gps_text text;
    do {
        text = gps_text_on(buffer, size);
        write_jsonl(&text, &view.report, stamp, site);
    } while (text.cut && gps_format_shrink(&view));
    return text;
}

/* The keys of a report, then the allocation's number and the facts that rules match. */
static void write_allocation(struct gps_text *text, const struct gps_listed_line *line,
                             const struct gps_stamp *stamp, unsigned stack_count) {
    const struct gps_report facts = {.pointer = line->pointer,
                                     .size = line->size,
                                     .device = line->device,
                                     .context = line->context};
    char hex[GPS_HEX64];
    gps_hex64_format(line->process, hex);
    add_stamp(text, stamp);
    gps_text_str(text, ",\"level\":\"info\",\"finding\":null");
    add_api(text, line->api);
    add_subject(text, &facts);
    gps_text_str(text, ",\"message\":\"allocated\",\"hint\":null,\"count\":1");
    add_site(text, line->site);
    add_stack(text, line->stack, stack_count);
    gps_text_str(text, ",\"prior\":[],\"detail\":null,\"others\":[],\"allocation\":{\"number\":");
    gps_text_dec(text, line->number);
    add_string(text, "process", hex);
    add_string(text, "kind", line->kind);
    add_string(text, "caller", line->caller);
    gps_text_str(text, "}}\n");
}

struct gps_text gps_logline_allocation(char *buffer, size_t size,
                                       const struct gps_listed_line *line,
                                       const struct gps_stamp *stamp) {
    unsigned stack_count = line->stack_count;
    struct gps_text text;
    do {
        text = gps_text_on(buffer, size);
        write_allocation(&text, line, stamp, stack_count);
    } while (text.cut && stack_count-- > 0);
    return text;
}

/* The keys of a report, so that one reader does for all lines; no finding. */
struct gps_text gps_logline_notice_jsonl(char *buffer, size_t size, const char *message,
                                         const struct gps_stamp *stamp) {
    struct gps_text text = gps_text_on(buffer, size);
    add_stamp(&text, stamp);
    gps_text_str(&text, ",\"level\":\"info\",\"finding\":null,\"api\":null,\"ptr\":null,"
                        "\"size\":null,\"region\":null,\"name\":null,\"device\":null,"
                        "\"context\":null");
    add_string(&text, "message", message);
    gps_text_str(&text, ",\"hint\":null,\"count\":null,\"site\":null,\"stack\":[],\"prior\":[],"
                        "\"detail\":null,\"others\":[]}\n");
    return text;
}

struct gps_text gps_logline_summary_jsonl(char *buffer, size_t size, const struct gps_tally *tally,
                                          const struct gps_stamp *stamp) {
    char sum[256];
    struct gps_text message = GPS_TEXT(sum);
    gps_format_tally(&message, tally);
    return gps_logline_notice_jsonl(buffer, size, sum, stamp);
}
