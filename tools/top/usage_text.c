#include "usage_text.h"

#include "cli/tool.h"
#include "directory/view_format.h"

#define NARROW_NAME  24
#define HOLDERS_MOST 8 /* of a region that are named; more are counted */

static void usage_text_print(const struct usage_layout *layout, struct table *table) {
    if (table->cell_count > 0)
        layout->print(layout->arg, table);
}

/* --- totals --- */

char *usage_text_totals(const struct usage *usage) {
    const struct account_gpu *total = &usage->accounting.total;
    char part[40] = "";
    if (total->saved > 0)
        snprintf(part, sizeof(part), " (%.0f %%)",
                 100.0 * (double)total->saved / (double)total->unshared);
    return tool_format("In use %s, without sharing %s: saved %s%s%s%s%s",
                       printable_size(total->in_use).text, printable_size(total->unshared).text,
                       printable_size(total->saved).text, part, total->kept > 0 ? ", " : "",
                       total->kept > 0 ? printable_size(total->kept).text : "",
                       total->kept > 0 ? " kept for later" : "");
}

void usage_text_gpus(const struct usage *usage, const struct usage_layout *layout) {
    static const struct table_column columns[] = {
        {"GPU", 0}, {"IN USE", 1}, {"WITHOUT SHARING", 1}, {"SAVED", 1}, {"KEPT", 1}};
    struct table table = TABLE(columns);
    TOOL_EACH(const struct account_gpu, gpu, usage->accounting.gpus, usage->accounting.gpu_count) {
        TABLE_CELLS(&table, printable_short_uuid(gpu->device).text,
                    printable_size(gpu->in_use).text, printable_size(gpu->unshared).text,
                    printable_size(gpu->saved).text, printable_size(gpu->kept).text);
    }
    usage_text_print(layout, &table);
}

/* --- processes --- */

static struct printable known_size(uint64_t bytes) {
    static const struct printable unknown = {"-"};
    return bytes == USAGE_UNKNOWN ? unknown : printable_size(bytes);
}

enum { CUMEMCREATE = 6, MERGING = 11, SUSPENDED = 12 }; /* columns that are mostly empty */

/* A column that is hidden becomes seen with the first row that has something in it. */
static void usage_process_row(const struct usage *usage, const struct usage_process *process,
                              struct table_column *columns, struct table *table) {
    const struct account *account = &process->account;
    const struct account_bytes *bytes = &account->bytes;
    const struct gps_owner *owner = &account->process->owner;
    const struct gps_slot *unmerged = view_not_merging(&usage->view, owner);
    const bool suspended = view_suspended(account->process);
    TABLE_CELLS(table, view_format_pid(&usage->view, owner).text);
    table_cell(table, TERM_PLAIN, "%u@%" PRIu64, owner->pid, owner->pid_ns);
    TABLE_CELLS(table, printable_size(bytes->own).text, printable_size(bytes->shared).text,
                printable_size(bytes->proportional).text, printable_size(account_saved(bytes)).text,
                printable_size(account->made).text, known_size(process->driver).text,
                known_size(process->fair).text);
    table_cell(table, TERM_PLAIN, "%zu", account->regions);
    table_cell(table, TERM_PLAIN, "%zu", account->merged.blocks);
    /* "off" by `gpushare merge off`, "no" for another reason, which `show` tells */
    table_cell(table, TERM_YELLOW, "%s",
               !unmerged                                     ? "-"
               : unmerged->address == GPS_NOT_MERGING_PAUSED ? "off"
                                                             : "no");
    table_cell(table, TERM_YELLOW, "%s",
               suspended ? view_format_age(&usage->view, account->process->answer.since).text
                         : "-");
    if (account->device)
        TABLE_CELLS(table, printable_short_uuid(account->device).text);
    else
        table_cell(table, TERM_PLAIN, "%zu GPUs", account->gpus);
    TABLE_CELLS(table, view_format_command(&usage->view, owner).text);
    if (account->made > 0)
        columns[CUMEMCREATE].right = 1;
    if (unmerged)
        columns[MERGING].right = 0;
    if (suspended)
        columns[SUSPENDED].right = 1;
}

void usage_text_processes(const struct usage *usage, const struct usage_layout *layout) {
    const bool narrow = layout->narrow;
    const int driver = usage->driver ? 1 : TABLE_HIDDEN;
    struct table_column columns[] = {{"PID", 1},
                                     {USAGE_TARGET, TABLE_HIDDEN},
                                     {"OWN", 1},
                                     {"SHARED", 1},
                                     {narrow ? "PROP" : "PROPORTIONAL", 1},
                                     {"SAVED", 1},
                                     [CUMEMCREATE] = {"CUMEMCREATE", TABLE_HIDDEN},
                                     {"DRIVER", driver},
                                     {"FAIR", driver},
                                     {"REGIONS", narrow ? TABLE_HIDDEN : 1},
                                     {"BLOCKS", narrow ? TABLE_HIDDEN : 1},
                                     [MERGING] = {"MERGING", TABLE_HIDDEN},
                                     [SUSPENDED] = {"SUSPENDED", TABLE_HIDDEN},
                                     {"GPU", narrow ? TABLE_HIDDEN : 0},
                                     {"COMMAND", 0}};
    struct table table = TABLE(columns);
    for (size_t i = 0; i < usage->process_count; i++)
        usage_process_row(usage, &usage->processes[i], columns, &table);
    usage_text_print(layout, &table);
}

/* --- regions --- */

static void usage_text_add_holder(void *list, const struct gps_owner *owner) {
    view_list_add(list, owner, "");
}

static void name_cell(const struct view_region *region, const struct usage_layout *layout,
                      struct table *table) {
    const char *name = view_format_name(region);
    const bool cut = layout->narrow && strlen(name) > NARROW_NAME;
    table_cell(table, TERM_PLAIN, "%.*s%s", cut ? NARROW_NAME - 1 : INT_MAX, name,
               cut ? layout->mark : "");
}

static void usage_region_row(const struct usage *usage, const struct view_region *region,
                             const struct usage_layout *layout, struct table *table) {
    const uint64_t bytes = accounting_in_use(region);
    const struct printable id = printable_id(&region->record.id);
    struct view_list holders = {.view = &usage->view, .most = HOLDERS_MOST};
    accounting_each_holder(region, usage_text_add_holder, &holders);
    name_cell(region, layout, table);
    TABLE_CELLS(table, id.text);
    table_cell(table, TERM_PLAIN, "%.8s", id.text);
    TABLE_CELLS(table, printable_size(bytes).text,
                printable_size(accounting_unshared(region) - bytes).text,
                printable_short_uuid(region->record.device).text);
    table_cell(table, view_format_colour(region), "%s", view_format_state(region));
    view_list_cell(&holders, TERM_PLAIN, table);
}

static void blocks_row(const struct usage *usage, const struct account_gpu *gpu,
                       struct table *table) {
    struct view_list holders = {.view = &usage->view, .most = HOLDERS_MOST};
    TOOL_EACH(const struct account, account, usage->accounting.accounts, usage->accounting.count) {
        if (account->merged.blocks > 0 && memcmp(account->device, gpu->device, GPS_UUID_BYTES) == 0)
            usage_text_add_holder(&holders, &account->process->owner);
    }
    table_cell(table, TERM_PLAIN, "%zu merged block%s", gpu->blocks, gpu->blocks == 1 ? "" : "s");
    TABLE_CELLS(table, "", "-", printable_size(gpu->held).text,
                printable_size(gpu->merged.saved).text, printable_short_uuid(gpu->device).text);
    table_cell(table, TERM_GREEN, "merged");
    view_list_cell(&holders, TERM_PLAIN, table);
}

void usage_text_regions(const struct usage *usage, const struct usage_layout *layout) {
    const struct table_column columns[] = {
        {"REGION", 0}, {USAGE_TARGET, TABLE_HIDDEN},
        {"ID", 0},     {"SIZE", 1},
        {"SAVED", 1},  {"GPU", layout->narrow ? TABLE_HIDDEN : 0},
        {"STATE", 0},  {"HOLDERS", 0}};
    struct table table = TABLE(columns);
    TOOL_EACH(const struct view_region, region, usage->view.regions, usage->view.region_count) {
        if (!view_merged(region) && accounting_in_use(region) > 0)
            usage_region_row(usage, region, layout, &table);
    }
    for (size_t i = 0; i < usage->accounting.gpu_count; i++)
        if (usage->accounting.gpus[i].blocks > 0)
            blocks_row(usage, &usage->accounting.gpus[i], &table);
    usage_text_print(layout, &table);
}

/* --- whole frames --- */

static void rate_cell(double rate, struct table *table) {
    if (rate < 0)
        table_cell(table, TERM_PLAIN, "-");
    else
        table_cell(table, TERM_PLAIN, "%.1f", rate);
}

/* The frame that a process has published, or read, and its age. */
static void frame_cells(const struct usage_frames *frames, uint64_t frame, uint64_t at,
                        struct usage_rate rate, struct table *table) {
    table_cell(table, TERM_PLAIN, frame ? "%" PRIu64 : "-", frame);
    rate_cell(rate.frames, table);
    rate_cell(rate.left_out, table);
    TABLE_CELLS(table, view_format_frame_age(&frames->now, frame, at).text);
}

static void process_cells(const struct usage *usage, const struct gps_owner *owner, uint64_t late,
                          const char *does, struct table *table) {
    table_cell(table, late ? TERM_YELLOW : TERM_PLAIN, "%" PRIu64, late);
    table_cell(table, TERM_PLAIN, "%s %s", view_format_program(&usage->view, owner).text, does);
}

static void frames_rows(const struct usage *usage, const struct usage_frames *frames,
                        const struct usage_layout *layout, struct table *table) {
    const struct gps_frames_writer *writer = &frames->now.said.writer;
    name_cell(frames->region, layout, table);
    if (frames->now.status != 0) {
        TABLE_CELLS(table, "?", "?", "?", "?", "?", view_frames_trouble(&frames->now));
        return;
    }
    frame_cells(frames, writer->newest, writer->at, frames->rate, table);
    process_cells(usage, gps_record_creator(&frames->region->record), writer->late, "writes",
                  table);
    for (size_t i = 0; i < frames->now.reader_count; i++) {
        const struct gps_frames_reader *reader = &frames->now.readers[i];
        TABLE_CELLS(table, "");
        frame_cells(frames, reader->have, reader->at, frames->readers[i], table);
        process_cells(usage, &reader->owner, reader->late, "reads", table);
    }
}

void usage_text_frames(const struct usage *usage, const struct usage_layout *layout) {
    static const struct table_column columns[] = {{"FRAMES OF", 0},  {"FRAME", 1}, {"A SECOND", 1},
                                                  {"LEFT OUT/S", 1}, {"AGE", 1},   {"LATE", 1},
                                                  {"PROCESS", 0}};
    struct table table = TABLE(columns);
    for (size_t i = 0; i < usage->frames_count; i++)
        if (accounting_in_use(usage->frames[i].region) > 0)
            frames_rows(usage, &usage->frames[i], layout, &table);
    usage_text_print(layout, &table);
}

/* --- findings --- */

char *usage_text_levels(const struct usage *usage) {
    static const char *const names[] = {
        [GPS_LEVEL_INFO] = "note", [GPS_LEVEL_WARNING] = "warning", [GPS_LEVEL_ERROR] = "error"};
    uint64_t levels[GPS_LEVEL_ERROR + 1] = {0};
    TOOL_TEMP char *list = NULL;
    if (usage->tail.logs.path_count == 0 && !usage->tail.logs.configured)
        return tool_copy("Findings: not looked for; name logs, or set log and log_format = jsonl");
    for (size_t i = 0; i < usage->tail.count_count; i++)
        levels[usage->tail.counts[i].level] += usage->tail.counts[i].count;
    for (size_t level = GPS_LEVEL_ERROR + 1; level-- > 0;)
        if (levels[level] > 0)
            tool_list(&list, "%" PRIu64 " %s%s", levels[level], names[level],
                      levels[level] == 1 ? "" : "s");
    return tool_format("Findings: %s", tool_or(list, "none"));
}

static void finding_row(const struct usage *usage, const struct log_line *line,
                        struct table *table) {
    const struct gps_owner owner = {.pid = (uint32_t)line->process.pid,
                                    .pid_ns = (uint64_t)line->process.pid_ns};
    static const enum term_colour colours[] = {TERM_PLAIN, TERM_YELLOW, TERM_RED};
    const bool both = line->name && line->detail;
    table_cell(table, TERM_PLAIN, "%.8s", line->ts + strlen("2026-11-21T"));
    table_cell(table, colours[line->level], "%s", line->finding);
    table_cell(table, TERM_PLAIN, "%s", tool_or(line->api, "-"));
    table_cell(table, TERM_PLAIN, "%" PRIu64, log_tail_times(line));
    table_cell(table, TERM_PLAIN, "%s %s", tool_or(line->process.command, "?"),
               view_format_pid(&usage->view, &owner).text);
    table_cell(table, TERM_PLAIN, "%s%s%s", tool_or(line->name, ""), both ? ": " : "",
               tool_or(line->detail, ""));
}

void usage_text_findings(const struct usage *usage, const struct usage_layout *layout,
                         size_t most) {
    static const struct table_column columns[] = {{"UTC", 0},   {"FINDING", 0}, {"CALL", 0},
                                                  {"TIMES", 1}, {"PROCESS", 0}, {"ABOUT", 0}};
    struct table table = TABLE(columns);
    for (size_t i = usage->tail.finding_count; i > 0 && most > 0; i--, most--)
        finding_row(usage, usage->tail.findings[i - 1], &table);
    usage_text_print(layout, &table);
}
