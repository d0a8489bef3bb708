#include "usage_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/tool.h"
#include "directory/view_format.h"

#define NARROW_NAME  24
#define HOLDERS_MOST 8 /* of a region that are named; more are counted */

static void print(const struct usage_layout *layout, struct table *table) {
    if (table->cell_count > 0)
        layout->print(layout->arg, table);
}

static void size_cell(struct table *table, bool known, uint64_t bytes) {
    table_cell(table, TERM_PLAIN, "%s", known ? printable_size(bytes).text : "-");
}

/* --- totals --- */

char *usage_text_totals(const struct usage *usage) {
    const struct account_gpu *total = &usage->total;
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
    for (size_t i = 0; i < usage->accounting.gpu_count; i++) {
        const struct account_gpu *gpu = &usage->accounting.gpus[i];
        table_cell(&table, TERM_PLAIN, "%s", printable_short_uuid(gpu->device).text);
        size_cell(&table, true, gpu->in_use);
        size_cell(&table, true, gpu->unshared);
        size_cell(&table, true, gpu->saved);
        size_cell(&table, true, gpu->kept);
    }
    print(layout, &table);
}

/* --- processes --- */

/* "off" by `gpushare merge off`, "no" for another reason, which `show` tells. */
static const char *merging(const struct view *view, const struct gps_owner *owner) {
    const struct gps_slot *slot = view_unmerged(view, owner);
    return !slot ? "-" : slot->address == GPS_UNMERGED_PAUSED ? "off" : "no";
}

static void process_row(const struct usage *usage, const struct usage_process *process,
                        struct table *table) {
    const struct account *account = &process->account;
    const struct gps_owner *owner = &account->process->owner;
    table_cell(table, TERM_PLAIN, "%s", view_format_pid(&usage->view, owner).text);
    size_cell(table, true, account->bytes.own);
    size_cell(table, true, account->bytes.shared);
    size_cell(table, true, account->bytes.proportional);
    size_cell(table, true, account_saved(&account->bytes));
    size_cell(table, true, account->made);
    size_cell(table, process->driver_known, process->driver);
    size_cell(table, process->fair_known, process->fair);
    table_cell(table, TERM_PLAIN, "%zu", account->regions);
    table_cell(table, TERM_PLAIN, "%zu", account->merged.blocks);
    table_cell(table, TERM_YELLOW, "%s", merging(&usage->view, owner));
    table_cell(table, TERM_YELLOW, "%s",
               view_suspended(account->process)
                   ? view_format_age(&usage->view, account->process->answer.since).text
                   : "-");
    if (account->device)
        table_cell(table, TERM_PLAIN, "%s", printable_short_uuid(account->device).text);
    else
        table_cell(table, TERM_PLAIN, "%zu GPUs", account->gpus);
    table_cell(table, TERM_PLAIN, "%s", view_format_command(&usage->view, owner).text);
}

/* Whether the columns that are mostly empty have something. */
static void find_some(const struct usage *usage, bool *made, bool *unmerged, bool *suspended) {
    *made = *unmerged = *suspended = false;
    for (size_t i = 0; i < usage->process_count; i++) {
        *made |= usage->processes[i].account.made > 0;
        *suspended |= view_suspended(usage->processes[i].account.process);
        const struct gps_owner *owner = &usage->processes[i].account.process->owner;
        *unmerged |= view_unmerged(&usage->view, owner) != NULL;
    }
}

void usage_text_processes(const struct usage *usage, const struct usage_layout *layout) {
    const bool narrow = layout->narrow;
    const int driver = usage->driver.calls ? 1 : TABLE_HIDDEN;
    bool made, unmerged, suspended;
    find_some(usage, &made, &unmerged, &suspended);
    const struct table_column columns[] = {{"PID", 1},
                                           {"OWN", 1},
                                           {"SHARED", 1},
                                           {narrow ? "PROP" : "PROPORTIONAL", 1},
                                           {"SAVED", 1},
                                           {"CUMEMCREATE", made ? 1 : TABLE_HIDDEN},
                                           {"DRIVER", driver},
                                           {"FAIR", driver},
                                           {"REGIONS", narrow ? TABLE_HIDDEN : 1},
                                           {"BLOCKS", narrow ? TABLE_HIDDEN : 1},
                                           {"MERGING", unmerged ? 0 : TABLE_HIDDEN},
                                           {"SUSPENDED", suspended ? 1 : TABLE_HIDDEN},
                                           {"GPU", narrow ? TABLE_HIDDEN : 0},
                                           {"COMMAND", 0}};
    struct table table = TABLE(columns);
    for (size_t i = 0; i < usage->process_count; i++)
        process_row(usage, &usage->processes[i], &table);
    print(layout, &table);
}

/* --- regions --- */

static void add_holder(void *list, const struct gps_owner *owner) {
    view_list_add(list, owner, "");
}

static void name_cell(struct table *table, const char *name, const struct usage_layout *layout) {
    if (layout->narrow && strlen(name) > NARROW_NAME)
        table_cell(table, TERM_PLAIN, "%.*s%s", NARROW_NAME - 1, name, layout->mark);
    else
        table_cell(table, TERM_PLAIN, "%s", name);
}

static void region_row(const struct usage *usage, const struct view_region *region,
                       const struct usage_layout *layout, struct table *table) {
    const uint64_t bytes = accounting_in_use(region);
    struct view_list holders = {.view = &usage->view, .most = HOLDERS_MOST};
    accounting_each_holder(region, add_holder, &holders);
    name_cell(table, view_format_name(region), layout);
    table_cell(table, TERM_PLAIN, "%.8s", printable_id(&region->record.id).text);
    size_cell(table, true, bytes);
    size_cell(table, true, accounting_unshared(region) - bytes);
    table_cell(table, TERM_PLAIN, "%s", printable_short_uuid(region->record.device).text);
    table_cell(table, view_format_colour(region), "%s", view_format_state(region));
    view_list_cell(&holders, TERM_PLAIN, table);
}

static void blocks_row(const struct usage *usage, const struct account_gpu *gpu,
                       struct table *table) {
    struct view_list holders = {.view = &usage->view, .most = HOLDERS_MOST};
    for (size_t i = 0; i < usage->accounting.count; i++) {
        const struct account *account = &usage->accounting.accounts[i];
        if (account->merged.blocks > 0 && memcmp(account->device, gpu->device, GPS_UUID_BYTES) == 0)
            add_holder(&holders, &account->process->owner);
    }
    table_cell(table, TERM_PLAIN, "%zu merged block%s", gpu->blocks, gpu->blocks == 1 ? "" : "s");
    table_cell(table, TERM_PLAIN, "-");
    size_cell(table, true, gpu->held);
    size_cell(table, true, gpu->merged.saved);
    table_cell(table, TERM_PLAIN, "%s", printable_short_uuid(gpu->device).text);
    table_cell(table, TERM_GREEN, "merged");
    view_list_cell(&holders, TERM_PLAIN, table);
}

bool usage_text_has_row(const struct view_region *region) {
    return !view_merged(region) && accounting_in_use(region) > 0;
}

void usage_text_regions(const struct usage *usage, const struct usage_layout *layout) {
    const struct table_column columns[] = {{"REGION", 0},
                                           {"ID", 0},
                                           {"SIZE", 1},
                                           {"SAVED", 1},
                                           {"GPU", layout->narrow ? TABLE_HIDDEN : 0},
                                           {"STATE", 0},
                                           {"HOLDERS", 0}};
    struct table table = TABLE(columns);
    for (size_t i = 0; i < usage->view.region_count; i++) {
        const struct view_region *region = &usage->view.regions[i];
        if (usage_text_has_row(region))
            region_row(usage, region, layout, &table);
    }
    for (size_t i = 0; i < usage->accounting.gpu_count; i++)
        if (usage->accounting.gpus[i].blocks > 0)
            blocks_row(usage, &usage->accounting.gpus[i], &table);
    print(layout, &table);
}

/* --- findings --- */

static void list_level(char **list, uint64_t count, const char *name) {
    if (count > 0)
        tool_list(list, "%" PRIu64 " %s%s", count, name, count == 1 ? "" : "s");
}

char *usage_text_levels(const struct usage *usage) {
    uint64_t levels[GPS_LEVEL_ERROR + 1] = {0};
    TOOL_TEMP char *list = NULL;
    if (usage->tail.pattern_count == 0)
        return tool_copy("Findings: not looked for; name logs, or set log and log_format = jsonl");
    for (size_t i = 0; i < usage->tail.count_count; i++)
        levels[usage->tail.counts[i].level] += usage->tail.counts[i].count;
    list_level(&list, levels[GPS_LEVEL_ERROR], "error");
    list_level(&list, levels[GPS_LEVEL_WARNING], "warning");
    list_level(&list, levels[GPS_LEVEL_INFO], "note");
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
    print(layout, &table);
}

/* --- details --- */

/* A process of its own: it reads the directory anew, and its messages belong to what is shown. The
 * target has digits, letters and @ only. */
char *details_text(const char *target) {
    TOOL_TEMP char *line = tool_format("exec /proc/%d/exe show %s 2>&1", getpid(), target);
    FILE *said = popen(line, "re");
    size_t size;
    char *text = said ? tool_read(fileno(said), &size) : tool_copy("gpushare show cannot be run");
    if (said)
        pclose(said);
    return text;
}
