/*
 * describe.c - everything about one region or one process, as text for people.
 */
#include "describe.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "cli/table.h"
#include "config/config.h"

static void line(const char *label, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void line(const char *label, const char *format, ...) {
    va_list args;
    printf("  %-9s  ", label);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

static void line_time(const struct view *view, const char *label, uint64_t time) {
    char when[VIEW_TEXT], age[VIEW_TEXT];
    view_time(time, when);
    view_age(view, time, age);
    line(label, "%s, %s ago", when, age);
}

static void line_size(const char *label, uint64_t bytes) {
    char size[VIEW_TEXT];
    view_exact_size(bytes, size);
    line(label, "%s", size);
}

static void title(const char *kind, const char *name) {
    printf("%s%s %s%s\n", term_colour(TERM_BOLD), kind, name, term_colour(TERM_PLAIN));
}

static void process_lines(const struct view *view, const struct gps_owner *owner) {
    if (owner->pid_ns == 0)
        line("pid ns", "unknown");
    else
        line("pid ns", "%" PRIu64 "%s", owner->pid_ns,
             owner->pid_ns == view->pid_ns ? "" : ", not the one you are in");
    line("uid", "%u", owner->uid);
    line_time(view, "started", view_start_time(view, owner->start));
}

static void address_cell(const struct gps_slot *slot, struct table *table) {
    if (slot->state == GPS_SLOT_INTENT)
        table_cell(table, TERM_YELLOW, "opening");
    else
        table_cell(table, TERM_PLAIN, "0x%" PRIx64, slot->address);
}

/* --- a region --- */

static void users_table(const struct view *view, const struct view_region *region) {
    static const struct table_column columns[] = {
        {"COMMAND", 0}, {"PID", 1}, {"ADDRESS", 0}, {"OPENED BY", 0}, {"HELD", 1}};
    struct table table = TABLE(columns);
    for (size_t i = 0; i < region->hold_count; i++) {
        const struct view_hold *hold = &region->holds[i];
        char pid[VIEW_TEXT], age[VIEW_TEXT];
        view_pid(view, &hold->owner, pid);
        view_age(view, hold->slot.since, age);
        table_cell(&table, TERM_PLAIN, "%s", hold->owner.command);
        table_cell(&table, TERM_PLAIN, "%s", pid);
        address_cell(&hold->slot, &table);
        table_cell(&table, TERM_PLAIN, "%s",
                   hold->slot.via == GPS_VIA_RULE ? "a rule" : "the program");
        table_cell(&table, TERM_PLAIN, "%s", age);
    }
    if (region->hold_count > 0)
        table_print(&table, 4);
}

static void state_lines(const struct view *view, const struct view_region *region) {
    const struct gps_region_status *status = &region->record.status;
    char when[VIEW_TEXT], age[VIEW_TEXT];
    view_time(status->changed, when);
    view_age(view, status->changed, age);
    line("state", "%s%s%s", term_colour(view_state_colour(region)), view_state(region),
         term_colour(TERM_PLAIN));
    line("since", "%s, %s ago%s%s", when, age,
         region->owner_alive ? "" : "; its owner's last word: ",
         region->owner_alive ? "" : gps_state_name(status->state));
    if (status->until == 0)
        return;
    view_time(status->until, when);
    line("until", "%s; then its owner frees it, importer or not", when);
}

/* Of a region that the keeper keeps. */
static void kept_lines(const struct view *view, const struct view_region *region) {
    const struct gps_region_record *record = &region->record;
    char keep[VIEW_TEXT], pid[VIEW_TEXT];
    view_keep(region, keep);
    view_pid(view, &record->owner, pid);
    if (record->keep == GPS_KEEP_FOR)
        line("keep", "%s after its last user", keep);
    else
        line("keep", "%s", keep);
    line("access", "%s", (record->flags & GPS_REGION_READ_ONLY) != 0 ? "read" : "write");
    line("keeper", "%s %s, %s", record->owner.command, pid,
         region->owner_alive ? "alive" : "dead; the next one adopts the region");
}

void describe_region(const struct view *view, const struct view_region *region) {
    const struct gps_region_record *record = &region->record;
    char id[GPS_ID_HEX], device[41], pid[VIEW_TEXT];
    gps_id_format(&record->id, id);
    gps_format_uuid(record->device, device);
    const struct gps_owner *owner = gps_record_creator(record);
    view_pid(view, owner, pid);
    title("Region", record->name[0] != 0 ? record->name : id);
    line("name", "%s",
         record->name[0] != 0 ? record->name : "none, the program itself exported it");
    line("id", "%s", id);
    state_lines(view, region);
    line_size("requested", record->requested);
    line_size("extent", record->extent);
    line("offset", "%" PRIu64 " in its block", record->offset);
    line("device", "%s", device);
    line("backing", "%s", view_backing(record->backing));
    line_time(view, "created", record->created);
    line("export", "number %" PRIu64 " of its owner", record->generation);
    line("owner", "%s %s, %s", owner->command, pid, region->creator_alive ? "alive" : "dead");
    process_lines(view, owner);
    if (view_kept(region))
        kept_lines(view, region);
    line("users", "%zu", region->user_count);
    users_table(view, region);
}

/* --- a process --- */

static void region_cells(const struct view_region *region, const struct gps_id *id,
                         struct table *table) {
    char text[GPS_ID_HEX], size[VIEW_TEXT] = "?";
    gps_id_format(id, text);
    if (region)
        view_size(region->record.requested, size);
    table_cell(table, TERM_PLAIN, "%s", region != NULL ? view_name(region) : "?");
    table_cell(table, TERM_PLAIN, "%.8s", text);
    table_cell(table, TERM_PLAIN, "%s", size);
    if (region)
        table_cell(table, view_state_colour(region), "%s", view_state(region));
    else
        table_cell(table, TERM_RED, "no record");
}

static void summary(const char *label, size_t count, uint64_t bytes) {
    char size[VIEW_TEXT];
    view_exact_size(bytes, size);
    line(label, "%zu region%s%s%s", count, count == 1 ? "" : "s", count == 0 ? "" : ", ",
         count == 0 ? "" : size);
}

static void describe_exports(const struct view *view, const struct gps_owner *owner) {
    static const struct table_column columns[] = {
        {"NAME", 0}, {"ID", 0}, {"SIZE", 1}, {"STATE", 0}, {"USERS", 1}};
    struct table table = TABLE(columns);
    uint64_t bytes = 0;
    for (size_t i = 0; i < view->region_count; i++) {
        const struct view_region *region = &view->regions[i];
        if (!gps_owner_equal(gps_record_creator(&region->record), owner) || view_hidden(region))
            continue;
        bytes += region->record.extent;
        region_cells(region, &region->record.id, &table);
        table_cell(&table, TERM_PLAIN, "%zu", region->user_count);
    }
    summary("exports", table.cell_count / table.column_count, bytes);
    if (table.cell_count > 0)
        table_print(&table, 4);
}

static void describe_holds(const struct view *view, const struct gps_owner *owner) {
    static const struct table_column columns[] = {{"NAME", 0},  {"ID", 0},    {"SIZE", 1},
                                                  {"STATE", 0}, {"OWNER", 0}, {"ADDRESS", 0},
                                                  {"HELD", 1}};
    struct table table = TABLE(columns);
    uint64_t bytes = 0;
    for (size_t i = 0; i < view->hold_count; i++) {
        const struct gps_slot *slot = &view->holds[i].slot;
        char pid[VIEW_TEXT] = "", age[VIEW_TEXT];
        if (!gps_owner_equal(&view->holds[i].owner, owner) || slot->via == GPS_VIA_EVENT)
            continue;
        const struct view_region *region = view_region_find(view, &slot->region);
        bytes += region != NULL ? region->record.extent : 0;
        region_cells(region, &slot->region, &table);
        view_age(view, slot->since, age);
        if (region)
            view_pid(view, gps_record_creator(&region->record), pid);
        table_cell(&table, TERM_PLAIN, "%s %s",
                   region ? gps_record_creator(&region->record)->command : "?", pid);
        address_cell(slot, &table);
        table_cell(&table, TERM_PLAIN, "%s", age);
    }
    summary("holds", table.cell_count / table.column_count, bytes);
    if (table.cell_count > 0)
        table_print(&table, 4);
}

/* Memory that is freed but for those who still have it open: who keeps how much of it. */
static void describe_pins(const struct view *view, const struct gps_owner *owner) {
    const struct view_pins pins = view_pins(view, owner, NULL);
    char size[VIEW_TEXT], pid[VIEW_TEXT];
    if (pins.count > 0)
        summary("pins", pins.count, pins.bytes);
    for (size_t i = 0; i < view->process_count; i++) {
        const struct gps_owner *holder = &view->processes[i].owner;
        const struct view_pins theirs = view_pins(view, holder, owner);
        if (theirs.count == 0)
            continue;
        view_exact_size(theirs.bytes, size);
        view_pid(view, holder, pid);
        line("pinned", "%s that it has freed, by %s %s", size, holder->command, pid);
    }
    if (view_events(view, owner) > 0)
        line("events", "%zu of other processes open", view_events(view, owner));
}

void describe_process(const struct view *view, const struct view_process *process) {
    char pid[VIEW_TEXT], name[VIEW_TEXT + GPS_COMM_BYTES];
    view_pid(view, &process->owner, pid);
    snprintf(name, sizeof(name), "%s %s", process->owner.command, pid);
    title("Process", name);
    line("state", "%s%s%s", term_colour(process->alive ? TERM_GREEN : TERM_DIM),
         process->alive ? "alive" : "dead", term_colour(TERM_PLAIN));
    process_lines(view, &process->owner);
    if (process->created != 0)
        line_time(view, "published", process->created);
    describe_exports(view, &process->owner);
    describe_holds(view, &process->owner);
    describe_pins(view, &process->owner);
}
