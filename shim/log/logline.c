/*
 * logline.c - one report as text.
 *
 * Each format is a plain function of a view: the report, less what had to go. When the result was
 * cut, the next smaller view is tried; a report that is too long is rare, and formatting takes
 * microseconds.
 */
#include "logline.h"

#include <string.h>

struct view {
    struct gps_report report;
    unsigned omitted; /* frames left out */
};

/* Leaves out the next least important part. False when nothing is left to leave out. */
static bool shrink(struct view *view) {
    struct gps_report *report = &view->report;

    if (report->stack_count > 0) {
        report->stack_count--;
        view->omitted++;
    } else if (report->detail != NULL) {
        report->detail = NULL;
    } else if (report->other_count > 0) {
        report->other_count /= 2;
    } else if (report->name != NULL) {
        report->name = NULL;
    } else if (report->api != NULL) {
        report->api = NULL;
    } else {
        return false;
    }
    return true;
}

/* --- text --- */

#define MARGIN "========= "
#define INDENT MARGIN "    "

static void add_process(struct gps_text *text, const char *command, uint32_t pid) {
    gps_text_plain(text, command);
    gps_text_str(text, " (pid ");
    gps_text_dec(text, pid);
    gps_text_str(text, ")");
}

static const char *capital_level(enum gps_finding finding) {
    static const char *const names[] = {
        [GPS_LEVEL_INFO] = "INFO", [GPS_LEVEL_WARNING] = "WARNING", [GPS_LEVEL_ERROR] = "ERROR"};

    return names[gps_finding_level(finding)];
}

/* "free-while-open in cudaFree" */
static void add_title(struct gps_text *text, const struct gps_report *report) {
    gps_text_str(text, gps_finding_id(report->finding));
    if (report->api != NULL) {
        gps_text_str(text, " in ");
        gps_text_plain(text, report->api);
    }
}

static void add_heading(struct gps_text *text, const struct gps_report *report,
                        const struct gps_stamp *stamp) {
    gps_text_str(text, MARGIN "GPUSHARE ");
    gps_text_str(text, capital_level(report->finding));
    gps_text_str(text, ": ");
    add_title(text, report);
    gps_text_str(text, ", by ");
    add_process(text, stamp->command, stamp->pid);
    gps_text_str(text, "\n" INDENT);
    gps_text_str(text, gps_finding_sentence(report->finding));
    gps_text_str(text, "\n");
}

/* "64 MiB (67108864 bytes)" */
static void add_bytes(struct gps_text *text, uint64_t bytes) {
    gps_text_size(text, bytes);
    if (bytes < 1024)
        return;
    gps_text_str(text, " (");
    gps_text_dec(text, bytes);
    gps_text_str(text, " bytes)");
}

/* "at 0x7f0000000000, 64 MiB (67108864 bytes), GPU 0": what of it is known. */
static void add_memory(struct gps_text *text, const struct gps_report *report) {
    const char *before = INDENT;

    if (report->pointer != 0) {
        gps_text_str(text, INDENT "at ");
        gps_text_hex(text, report->pointer);
        before = ", ";
    }
    if (report->size != 0) {
        gps_text_str(text, before);
        add_bytes(text, report->size);
        before = ", ";
    }
    if (report->device >= 0) {
        gps_text_str(text, before);
        gps_text_str(text, "GPU ");
        gps_text_sdec(text, report->device);
        before = ", ";
    }
    if (before[0] == ',')
        gps_text_str(text, "\n");
}

static void add_id(struct gps_text *text, const struct gps_id *id) {
    for (size_t i = 0; i < GPS_ID_BYTES; i++) {
        gps_text_bytes(text, &"0123456789abcdef"[id->bytes[i] >> 4], 1);
        gps_text_bytes(text, &"0123456789abcdef"[id->bytes[i] & 15], 1);
    }
}

/* "region frames (id 0011...)" */
static void add_region(struct gps_text *text, const struct gps_report *report) {
    bool named = report->name != NULL && report->name[0] != '\0';

    if (!named && report->region == NULL)
        return;
    gps_text_str(text, INDENT "region ");
    if (named)
        gps_text_plain(text, report->name);
    if (report->region != NULL) {
        gps_text_str(text, named ? " (id " : "with id ");
        add_id(text, report->region);
        gps_text_str(text, named ? ")" : "");
    }
    gps_text_str(text, "\n");
}

/* "#0 0x1b2c in /path/mod", as compute-sanitizer and gdb write it; without a module, the address.
 */
static void add_frame(struct gps_text *text, unsigned number, const struct gps_frame *frame) {
    gps_text_str(text, INDENT "    #");
    gps_text_dec(text, number);
    gps_text_str(text, " ");
    gps_text_hex(text, frame->module[0] != '\0' ? frame->offset : frame->address);
    gps_text_str(text, " in ");
    gps_text_plain(text, frame->module[0] != '\0' ? frame->module : "?");
    gps_text_str(text, "\n");
}

static void add_frames(struct gps_text *text, const struct view *view) {
    const struct gps_report *report = &view->report;

    if (report->stack_count > 0)
        gps_text_str(text, INDENT "Host frames:\n");
    for (unsigned i = 0; i < report->stack_count; i++)
        add_frame(text, i, &report->stack[i]);
    if (view->omitted == 0)
        return;
    gps_text_str(text, INDENT "    (");
    gps_text_dec(text, view->omitted);
    gps_text_str(text, " more frames)\n");
}

static void write_text(struct gps_text *text, const struct view *view,
                       const struct gps_stamp *stamp) {
    const struct gps_report *report = &view->report;

    add_heading(text, report, stamp);
    add_memory(text, report);
    add_region(text, report);
    if (report->detail != NULL) {
        gps_text_str(text, INDENT);
        gps_text_plain(text, report->detail);
        gps_text_str(text, "\n");
    }
    for (unsigned i = 0; i < report->other_count; i++) {
        gps_text_str(text, INDENT "other process: ");
        add_process(text, report->others[i].command, report->others[i].pid);
        gps_text_str(text, "\n");
    }
    add_frames(text, view);
    gps_text_str(text, INDENT "Hint: ");
    gps_text_str(text, gps_finding_hint(report->finding));
    gps_text_str(text, "\n=========\n");
}

struct gps_text gps_logline_text(char *buffer, size_t size, const struct gps_report *report,
                                 const struct gps_stamp *stamp) {
    struct view view = {.report = *report, .omitted = 0};
    struct gps_text text;

    do {
        text = gps_text_on(buffer, size);
        write_text(&text, &view, stamp);
    } while (text.cut && shrink(&view));
    return text;
}

struct gps_text gps_logline_repeat_text(char *buffer, size_t size, const struct gps_report *first,
                                        uint64_t count) {
    struct gps_text text = gps_text_on(buffer, size);

    gps_text_str(&text, MARGIN "GPUSHARE: ");
    add_title(&text, first);
    if (first->pointer != 0) {
        gps_text_str(&text, ", first at ");
        gps_text_hex(&text, first->pointer);
    }
    gps_text_str(&text, ": ");
    gps_text_dec(&text, count);
    gps_text_str(&text, " more from the same call site\n");
    return text;
}

/* "2 findings (1 error), 1 repeated" and what else has to be said. */
static void add_tally(struct gps_text *text, const struct gps_tally *tally) {
    gps_text_dec(text, tally->findings);
    gps_text_str(text, tally->findings == 1 ? " finding (" : " findings (");
    gps_text_dec(text, tally->errors);
    gps_text_str(text, tally->errors == 1 ? " error), " : " errors), ");
    gps_text_dec(text, tally->repeated);
    gps_text_str(text, " repeated");
    if (tally->lost != 0) {
        gps_text_str(text, ", ");
        gps_text_dec(text, tally->lost);
        gps_text_str(text, " could not be written");
    }
    if (tally->full)
        gps_text_str(text, "; too many call sites to count the repeats of all");
}

struct gps_text gps_logline_summary_text(char *buffer, size_t size, const struct gps_tally *tally) {
    struct gps_text text = gps_text_on(buffer, size);

    gps_text_str(&text, MARGIN "GPUSHARE SUMMARY: ");
    add_tally(&text, tally);
    gps_text_str(&text, "\n");
    return text;
}

/* --- JSON lines --- */

static void add_key(struct gps_text *text, const char *key) {
    gps_text_str(text, ",\"");
    gps_text_str(text, key);
    gps_text_str(text, "\":");
}

static void add_string(struct gps_text *text, const char *key, const char *value) {
    add_key(text, key);
    gps_text_json(text, value != NULL && value[0] != '\0' ? value : NULL);
}

/* 0 says that the number is not known. */
static void add_number(struct gps_text *text, const char *key, uint64_t value) {
    add_key(text, key);
    if (value == 0)
        gps_text_str(text, "null");
    else
        gps_text_dec(text, value);
}

/* A string: JSON's numbers end at 2^53 in many readers. */
static void add_address(struct gps_text *text, const char *key, uint64_t value) {
    add_key(text, key);
    gps_text_str(text, value == 0 ? "null" : "\"");
    if (value == 0)
        return;
    gps_text_hex(text, value);
    gps_text_str(text, "\"");
}

static void add_stamp(struct gps_text *text, const struct gps_stamp *stamp) {
    gps_text_str(text, "{\"ts\":\"");
    gps_text_time(text, stamp->time);
    gps_text_str(text, "\"");
    add_number(text, "pid", stamp->pid);
    add_number(text, "tid", stamp->tid);
    add_string(text, "command", stamp->command);
}

/* ptr size region name device */
static void add_subject(struct gps_text *text, const struct gps_report *report) {
    add_address(text, "ptr", report->pointer);
    add_number(text, "size", report->size);
    add_key(text, "region");
    gps_text_str(text, report->region == NULL ? "null" : "\"");
    if (report->region != NULL) {
        add_id(text, report->region);
        gps_text_str(text, "\"");
    }
    add_string(text, "name", report->name);
    add_key(text, "device");
    if (report->device < 0)
        gps_text_str(text, "null");
    else
        gps_text_sdec(text, report->device);
}

static void add_stack(struct gps_text *text, const struct gps_report *report) {
    add_key(text, "stack");
    gps_text_str(text, "[");
    for (unsigned i = 0; i < report->stack_count; i++) {
        const struct gps_frame *frame = &report->stack[i];
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

static void add_others(struct gps_text *text, const struct gps_report *report) {
    add_key(text, "others");
    gps_text_str(text, "[");
    for (unsigned i = 0; i < report->other_count; i++) {
        gps_text_str(text, i == 0 ? "{\"pid\":" : ",{\"pid\":");
        gps_text_dec(text, report->others[i].pid);
        add_string(text, "command", report->others[i].command);
        gps_text_str(text, "}");
    }
    gps_text_str(text, "]");
}

static void write_jsonl(struct gps_text *text, const struct gps_report *report,
                        const struct gps_stamp *stamp, uint64_t count) {
    add_stamp(text, stamp);
    add_string(text, "level", gps_level_name(gps_finding_level(report->finding)));
    add_string(text, "finding", gps_finding_id(report->finding));
    add_string(text, "api", report->api);
    add_subject(text, report);
    add_string(text, "message", gps_finding_sentence(report->finding));
    add_string(text, "hint", gps_finding_hint(report->finding));
    add_number(text, "count", count);
    add_stack(text, report);
    add_key(text, "prior");
    gps_text_str(text, "null");
    add_string(text, "detail", report->detail);
    add_others(text, report);
    gps_text_str(text, "}\n");
}

struct gps_text gps_logline_jsonl(char *buffer, size_t size, const struct gps_report *report,
                                  const struct gps_stamp *stamp, uint64_t count) {
    struct view view = {.report = *report, .omitted = 0};
    struct gps_text text;

    do {
        text = gps_text_on(buffer, size);
        write_jsonl(&text, &view.report, stamp, count);
    } while (text.cut && shrink(&view));
    return text;
}

/* The keys of a report, so that one reader does for all lines; no finding. */
struct gps_text gps_logline_summary_jsonl(char *buffer, size_t size, const struct gps_tally *tally,
                                          const struct gps_stamp *stamp) {
    struct gps_text text = gps_text_on(buffer, size);
    char sum[256];
    struct gps_text message = GPS_TEXT(sum);

    add_tally(&message, tally);
    add_stamp(&text, stamp);
    gps_text_str(&text, ",\"level\":\"info\",\"finding\":null,\"api\":null,\"ptr\":null,"
                        "\"size\":null,\"region\":null,\"name\":null,\"device\":null");
    add_string(&text, "message", sum);
    gps_text_str(&text, ",\"hint\":null,\"count\":null,\"stack\":[],\"prior\":null,"
                        "\"detail\":null,\"others\":[]}\n");
    return text;
}
