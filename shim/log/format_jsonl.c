/* format_jsonl.c - formats a report as one line of JSON, by docs/log.schema.json. See format.h. */
#include "directory/record.h"
#include "format.h"
#include "wording.h"

/* An empty string stands for a value that is not known. */
static void jsonl_add_string(struct gps_text *text, const char *key, const char *value) {
    gps_text_add(text, ",\"%s\":", key);
    gps_text_json(text, value && value[0] != '\0' ? value : NULL);
}

/* 0 stands for a number that is not known. */
static void jsonl_add_number(struct gps_text *text, const char *key, uint64_t value) {
    gps_text_add(text, value != 0 ? ",\"%s\":%lu" : ",\"%s\":null", key, value);
}

/* An address is a string, because many JSON readers lose the precision of numbers above 2^53. */
static void add_address(struct gps_text *text, const char *key, uint64_t value) {
    gps_text_add(text, value != 0 ? ",\"%s\":\"0x%lx\"" : ",\"%s\":null", key, value);
}

static void add_when(struct gps_text *text, const char *key, uint64_t time) {
    GPS_NEW_TEXT(shown, 40);
    if (time != 0)
        gps_text_time(&shown, time);
    jsonl_add_string(text, key, shown.bytes);
}

/* ptr size region name device context */
static void jsonl_add_subject(struct gps_text *text, const struct gps_report *report) {
    char region[GPS_ID_HEX] = "";
    if (report->region)
        gps_id_format(report->region, region);
    add_address(text, "ptr", report->pointer);
    jsonl_add_number(text, "size", report->size);
    jsonl_add_string(text, "region", region);
    jsonl_add_string(text, "name", report->name);
    if (report->device < 0)
        gps_text_str(text, ",\"device\":null");
    else
        gps_text_add(text, ",\"device\":%u", (unsigned)report->device);
    add_address(text, "context", report->context);
}

/* module offset build_id, and of a Python frame: file line function */
static void add_frame(struct gps_text *text, const struct gps_frame *frame) {
    const bool python = frame->function[0] != '\0';
    const bool placed = frame->module[0] != '\0' && !python;
    gps_text_str(text, "{\"module\":");
    gps_text_json(text, placed ? frame->module : NULL);
    gps_text_add(text, ",\"offset\":\"0x%lx\"", placed ? frame->offset : frame->address);
    jsonl_add_string(text, "build_id", frame->build_id);
    if (python) {
        jsonl_add_string(text, "file", frame->module);
        jsonl_add_number(text, "line", frame->line);
        jsonl_add_string(text, "function", frame->function);
    }
    gps_text_str(text, "}");
}

static void jsonl_add_stack(struct gps_text *text, const struct gps_frame *stack, unsigned count) {
    gps_text_str(text, ",\"stack\":[");
    for (unsigned i = 0; i < count; i++) {
        gps_text_str(text, i == 0 ? "" : ",");
        add_frame(text, &stack[i]);
    }
    gps_text_str(text, "]");
}

/* Begins the object number `i` of an array: pid pid_ns command */
static void begin_process(struct gps_text *text, unsigned i, uint32_t pid, uint64_t pid_ns,
                          const char *command) {
    gps_text_add(text, i == 0 ? "{\"pid\":%u" : ",{\"pid\":%u", pid);
    jsonl_add_number(text, "pid_ns", pid_ns);
    jsonl_add_string(text, "command", command);
}

static void add_priors(struct gps_text *text, const struct gps_report *report,
                       const struct gps_stamp *stamp) {
    gps_text_str(text, ",\"prior\":[");
    for (unsigned i = 0; i < report->prior_count; i++) {
        const struct gps_prior *prior = &report->prior[i];
        const struct gps_owner *owner = prior->owner;
        if (owner)
            begin_process(text, i, owner->pid, owner->pid_ns, owner->command);
        else
            begin_process(text, i, stamp->pid, stamp->pid_ns, stamp->command);
        jsonl_add_string(text, "what", prior->what);
        add_when(text, "ts", prior->time);
        jsonl_add_stack(text, prior->stack, prior->stack_count);
        gps_text_str(text, "}");
    }
    gps_text_str(text, "]");
}

static void add_others(struct gps_text *text, const struct gps_report *report) {
    gps_text_str(text, ",\"others\":[");
    for (unsigned i = 0; i < report->other_count; i++) {
        const struct gps_owner *owner = &report->others[i].owner;
        begin_process(text, i, owner->pid, owner->pid_ns, owner->command);
        add_when(text, "since", report->others[i].since);
        gps_text_str(text, "}");
    }
    gps_text_str(text, "]");
}

static void add_api(struct gps_text *text, const char *api) {
    GPS_NEW_TEXT(bare, 64);
    gps_format_api(&bare, api);
    jsonl_add_string(text, "api", bare.bytes);
}

/* All lines have the same keys, so that one reader does for all of them. */
void gps_format_jsonl(struct gps_text *text, const struct gps_line *line,
                      const struct gps_stamp *stamp) {
    const struct gps_report *report = &line->report;
    const enum gps_finding finding = report->finding;
    char room[GPS_WORDING_BYTES];
    gps_text_str(text, "{\"ts\":\"");
    gps_text_time(text, stamp->time);
    gps_text_str(text, "\"");
    jsonl_add_number(text, "pid", stamp->pid);
    jsonl_add_number(text, "pid_ns", stamp->pid_ns);
    jsonl_add_number(text, "tid", stamp->tid);
    jsonl_add_string(text, "command", stamp->command);
    jsonl_add_string(text, "arguments", stamp->arguments);
    gps_text_strs(text, ",\"rank\":", stamp->rank && *stamp->rank ? stamp->rank : "null");
    jsonl_add_string(text, "level",
                     gps_level_name(line->notice ? GPS_LEVEL_INFO : gps_report_level(report)));
    jsonl_add_string(text, "finding", line->notice ? NULL : gps_finding_id(finding));
    add_api(text, report->api);
    jsonl_add_subject(text, report);
    jsonl_add_string(text, "message",
                     line->notice ? line->notice
                                  : gps_wording(gps_finding_sentence(finding), room));
    jsonl_add_string(text, "hint",
                     line->notice ? NULL : gps_wording(gps_report_hint(report), room));
    jsonl_add_number(text, "count", report->count == 0 && !line->notice ? 1 : report->count);
    gps_text_add(text, stamp->site != 0 ? ",\"site\":\"%016lx\"" : ",\"site\":null", stamp->site);
    jsonl_add_stack(text, report->stack, report->stack_count);
    add_priors(text, report, stamp);
    jsonl_add_string(text, "detail", gps_wording(report->detail, room));
    add_others(text, report);
    gps_text_str(text, "}\n");
}
