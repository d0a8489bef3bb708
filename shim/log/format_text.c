/*
 * format_text.c - formats a report for people, in the manner of compute-sanitizer. See format.h.
 */
#include "format_common.h"

#define MARGIN "========= "
#define INDENT MARGIN "    "

/* "app (pid 12)", with the pid namespace if it is another one: two containers can both have pid 1.
 */
static void add_process(struct gps_text *text, const char *command, uint32_t pid, uint64_t pid_ns,
                        const struct gps_stamp *stamp) {
    gps_text_plain(text, command);
    gps_text_str(text, " (pid ");
    gps_text_dec(text, pid);
    if (pid_ns != stamp->pid_ns && pid_ns != 0) {
        gps_text_str(text, " in pid namespace ");
        gps_text_dec(text, pid_ns);
    }
    gps_text_str(text, ")");
}

static void add_owner(struct gps_text *text, const struct gps_owner *owner,
                      const struct gps_stamp *stamp) {
    add_process(text, owner->command, owner->pid, owner->pid_ns, stamp);
}

static const char *capital_level(enum gps_finding finding) {
    static const char *const names[] = {
        [GPS_LEVEL_INFO] = "INFO", [GPS_LEVEL_WARNING] = "WARNING", [GPS_LEVEL_ERROR] = "ERROR"};
    return names[gps_finding_level(finding)];
}

/* "free-while-open in cudaFree" */
static void add_title(struct gps_text *text, const struct gps_report *report) {
    gps_text_str(text, gps_finding_id(report->finding));
    if (report->api) {
        gps_text_str(text, " in ");
        gps_format_api(text, report->api);
    }
}

static void add_heading(struct gps_text *text, const struct gps_report *report,
                        const struct gps_stamp *stamp) {
    gps_text_strs(text, MARGIN "GPUSHARE ", capital_level(report->finding), ": ");
    add_title(text, report);
    gps_text_str(text, ", by ");
    add_process(text, stamp->command, stamp->pid, stamp->pid_ns, stamp);
    gps_text_strs(text, "\n" INDENT, gps_finding_sentence(report->finding), "\n");
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

/* "at 0x7f0000000000, 64 MiB (67108864 bytes), GPU 0, context 0x55...", as far as known. */
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
        gps_text_strs(text, before, "GPU ");
        gps_text_sdec(text, report->device);
        before = ", ";
    }
    if (report->context != 0) {
        gps_text_strs(text, before, "context ");
        gps_text_hex(text, report->context);
        before = ", ";
    }
    if (before[0] == ',')
        gps_text_str(text, "\n");
}

/* "region frames (id 0011...)" */
static void add_region(struct gps_text *text, const struct gps_report *report) {
    bool named = report->name && report->name[0] != '\0';
    if (!named && !report->region)
        return;
    gps_text_str(text, INDENT "region ");
    if (named)
        gps_text_plain(text, report->name);
    if (report->region) {
        gps_text_str(text, named ? " (id " : "with id ");
        gps_format_id(text, report->region);
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

static void add_frames(struct gps_text *text, const struct gps_frame *stack, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        add_frame(text, i, &stack[i]);
}

static void add_stack_text(struct gps_text *text, const struct gps_format_view *view) {
    const struct gps_report *report = &view->report;
    if (report->stack_count > 0)
        gps_text_str(text, INDENT "Host frames:\n");
    add_frames(text, report->stack, report->stack_count);
    if (view->omitted == 0)
        return;
    gps_text_str(text, INDENT "    (");
    gps_text_dec(text, view->omitted);
    gps_text_str(text, " more frames)\n");
}

/* "Freed by producer (pid 7), 2026-11-21T12:00:00.000000Z, at:" and its frames. */
static void add_prior(struct gps_text *text, const struct gps_prior *prior,
                      const struct gps_stamp *stamp) {
    const char capital = (char)(prior->what[0] - 'a' + 'A');
    gps_text_str(text, INDENT);
    gps_text_bytes(text, &capital, 1);
    gps_text_str(text, prior->what + 1);
    if (prior->owner) {
        gps_text_str(text, " by ");
        add_owner(text, prior->owner, stamp);
    }
    if (prior->time != 0) {
        gps_text_str(text, prior->owner ? ", " : " ");
        gps_text_time(text, prior->time);
    }
    gps_text_str(text, prior->stack_count == 0 ? "\n" : prior->time != 0 ? ", at:\n" : " at:\n");
    add_frames(text, prior->stack, prior->stack_count);
}

static void add_other(struct gps_text *text, const struct gps_party *other,
                      const struct gps_stamp *stamp) {
    gps_text_str(text, INDENT "other process: ");
    add_owner(text, &other->owner, stamp);
    if (other->since != 0) {
        gps_text_str(text, ", since ");
        gps_text_time(text, other->since);
    }
    gps_text_str(text, "\n");
}

static void write_text(struct gps_text *text, const struct gps_format_view *view,
                       const struct gps_stamp *stamp) {
    const struct gps_report *report = &view->report;
    add_heading(text, report, stamp);
    add_memory(text, report);
    add_region(text, report);
    if (report->detail) {
        gps_text_str(text, INDENT);
        gps_text_plain(text, report->detail);
        gps_text_str(text, "\n");
    }
    for (unsigned i = 0; i < report->other_count; i++)
        add_other(text, &report->others[i], stamp);
    add_stack_text(text, view);
    for (unsigned i = 0; i < report->prior_count; i++)
        add_prior(text, &report->prior[i], stamp);
    gps_text_strs(text, INDENT "Hint: ", gps_finding_hint(report->finding), "\n=========\n");
}

struct gps_text gps_logline_text(char *buffer, size_t size, const struct gps_report *report,
                                 const struct gps_stamp *stamp) {
    struct gps_format_view view = {.report = *report, .omitted = 0};
    struct gps_text text;
    do {
        text = gps_text_on(buffer, size);
        write_text(&text, &view, stamp);
    } while (text.cut && gps_format_shrink(&view));
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

struct gps_text gps_logline_notice_text(char *buffer, size_t size, const char *message) {
    struct gps_text text = gps_text_on(buffer, size);
    gps_text_strs(&text, MARGIN "GPUSHARE: ", message, "\n");
    return text;
}

struct gps_text gps_logline_summary_text(char *buffer, size_t size, const struct gps_tally *tally) {
    struct gps_text text = gps_text_on(buffer, size);
    gps_text_str(&text, MARGIN "GPUSHARE SUMMARY: ");
    gps_format_tally(&text, tally);
    gps_text_str(&text, "\n");
    return text;
}
