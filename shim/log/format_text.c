/* format_text.c - formats a report for people, in the manner of compute-sanitizer. See format.h. */

#include "directory/record.h"
#include "format.h"
#include "wording.h"

#define INDENT "     "

/* Each line begins with the pid, because several processes may write to one terminal. */
static void text_begin_line(struct gps_text *text, const struct gps_stamp *stamp,
                            const char *words) {
    gps_text_add(text, "========= [%u]%s", stamp->pid, words);
}

/* "app (pid 12)", with the pid namespace if it is another one, for two containers can both have pid
 * 1, and with the rank if it is known. */
static void text_add_process(struct gps_text *text, const char *command, uint32_t pid,
                             uint64_t pid_ns, const char *rank, const struct gps_stamp *stamp) {
    gps_text_plain(text, command);
    gps_text_add(text, " (pid %u", pid);
    if (pid_ns != stamp->pid_ns && pid_ns != 0)
        gps_text_add(text, " in pid namespace %lu", pid_ns);
    if (rank && *rank)
        gps_text_strs(text, ", rank ", rank);
    gps_text_str(text, ")");
}

static void add_owner(struct gps_text *text, const struct gps_owner *owner,
                      const struct gps_stamp *stamp) {
    text_add_process(text, owner->command, owner->pid, owner->pid_ns, NULL, stamp);
}

/* "GPUSHARE ERROR: free-while-open in CALL, by app (pid 12)" and the sentence. */
static void add_heading(struct gps_text *text, const struct gps_report *report,
                        const struct gps_stamp *stamp) {
    static const char *const levels[][2] = {[GPS_LEVEL_INFO] = {"INFO", "\033[1m"},
                                            [GPS_LEVEL_WARNING] = {"WARNING", "\033[33m"},
                                            [GPS_LEVEL_ERROR] = {"ERROR", "\033[31m"}};
    const char *const *level = levels[gps_report_level(report)];
    text_begin_line(text, stamp, " ");
    gps_text_strs(text, stamp->colour ? level[1] : "", "GPUSHARE ", level[0],
                  stamp->colour ? "\033[0m: " : ": ");
    gps_format_title(text, report);
    gps_text_str(text, ", by ");
    text_add_process(text, stamp->command, stamp->pid, stamp->pid_ns, stamp->rank, stamp);
    gps_text_str(text, "\n");
    text_begin_line(text, stamp, INDENT);
    char room[GPS_WORDING_BYTES];
    gps_text_strs(text, gps_wording(gps_finding_sentence(report->finding), room), "\n");
    if (stamp->arguments && *stamp->arguments) {
        text_begin_line(text, stamp, INDENT "arguments of this process: ");
        gps_text_plain(text, stamp->arguments);
        gps_text_str(text, "\n");
    }
}

/* "at 0x7f0000000000, 64 MiB (67108864 bytes), GPU 0, context 0x55..."; without unknown parts. */
static void add_memory(struct gps_text *text, const struct gps_report *report,
                       const struct gps_stamp *stamp) {
    const char *before = "";
    if (!report->pointer && !report->size && report->device < 0 && !report->context)
        return;
    text_begin_line(text, stamp, INDENT);
    if (report->pointer != 0) {
        gps_text_add(text, "at 0x%lx", report->pointer);
        before = ", ";
    }
    if (report->size != 0) {
        gps_text_str(text, before);
        gps_text_size(text, report->size);
        if (report->size >= 1024)
            gps_text_add(text, " (%lu bytes)", report->size);
        before = ", ";
    }
    if (report->device >= 0) {
        gps_text_add(text, "%sGPU %u", before, (unsigned)report->device);
        before = ", ";
    }
    if (report->context != 0)
        gps_text_add(text, "%scontext 0x%lx", before, report->context);
    gps_text_str(text, "\n");
}

/* "region frames (id 0011...)" */
static void text_add_region(struct gps_text *text, const struct gps_report *report,
                            const struct gps_stamp *stamp) {
    bool named = report->name && report->name[0] != '\0';
    if (!named && !report->region)
        return;
    text_begin_line(text, stamp, INDENT "region ");
    if (named)
        gps_text_plain(text, report->name);
    if (report->region) {
        char id[GPS_ID_HEX];
        gps_id_format(report->region, id);
        gps_text_add(text, named ? " (id %s)" : "with id %s", id);
    }
    gps_text_str(text, "\n");
}

/* "0x1b2c in /path/mod", as compute-sanitizer and gdb write it; without a module, the address. */
static void text_add_native(struct gps_text *text, const struct gps_frame *frame) {
    const bool placed = frame->module[0] != '\0';
    gps_text_add(text, "0x%lx in ", placed ? frame->offset : frame->address);
    gps_text_plain(text, placed ? frame->module : "?");
}

/* "release at /path/cam.py:12" */
static void add_python(struct gps_text *text, const struct gps_frame *frame) {
    gps_text_plain(text, frame->function);
    gps_text_str(text, " at ");
    gps_text_plain(text, frame->module);
    if (frame->line != 0)
        gps_text_add(text, ":%u", frame->line);
}

static void add_frames(struct gps_text *text, const struct gps_frame *stack, unsigned count,
                       const struct gps_stamp *stamp) {
    for (unsigned i = 0; i < count; i++) {
        text_begin_line(text, stamp, INDENT);
        gps_text_add(text, "    #%u ", i);
        if (stack[i].function[0] != '\0')
            add_python(text, &stack[i]);
        else
            text_add_native(text, &stack[i]);
        gps_text_str(text, "\n");
    }
}

/* "Freed by producer (pid 7), 2026-11-21T12:00:00.000000Z, at:" and its frames. */
static void add_prior(struct gps_text *text, const struct gps_prior *prior,
                      const struct gps_stamp *stamp) {
    const char capital = (char)(prior->what[0] - 'a' + 'A');
    text_begin_line(text, stamp, INDENT);
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
    add_frames(text, prior->stack, prior->stack_count, stamp);
}

static void add_other(struct gps_text *text, const struct gps_party *other,
                      const struct gps_stamp *stamp) {
    text_begin_line(text, stamp, INDENT "other process: ");
    add_owner(text, &other->owner, stamp);
    if (other->since != 0) {
        gps_text_str(text, ", since ");
        gps_text_time(text, other->since);
    }
    gps_text_str(text, "\n");
}

void gps_format_text(struct gps_text *text, const struct gps_line *line,
                     const struct gps_stamp *stamp) {
    const struct gps_report *report = &line->report;
    char room[GPS_WORDING_BYTES];
    if (line->notice) {
        text_begin_line(text, stamp, " ");
        gps_text_strs(text, line->title, ": ", line->notice, "\n");
        return;
    }
    add_heading(text, report, stamp);
    add_memory(text, report, stamp);
    text_add_region(text, report, stamp);
    if (report->detail) {
        text_begin_line(text, stamp, INDENT);
        gps_text_plain(text, gps_wording(report->detail, room));
        gps_text_str(text, "\n");
    }
    for (unsigned i = 0; i < report->other_count; i++)
        add_other(text, &report->others[i], stamp);
    if (report->stack_count > 0)
        text_begin_line(text, stamp, INDENT "Host frames:\n");
    add_frames(text, report->stack, report->stack_count, stamp);
    if (line->omitted > 0) {
        text_begin_line(text, stamp, INDENT);
        gps_text_add(text, "    (%u more frames)\n", line->omitted);
    }
    for (unsigned i = 0; i < report->prior_count; i++)
        add_prior(text, &report->prior[i], stamp);
    text_begin_line(text, stamp, INDENT "Hint: ");
    gps_text_strs(text, gps_wording(gps_report_hint(report), room), "\n");
    text_begin_line(text, stamp, "\n");
}
