/*
 * ls.c - `gpushare ls`: which regions are shared, by whom, and who uses them.
 *
 * A table for people, an array for scripts. What nobody can use any more (tombstones, regions of
 * dead processes) is left out unless asked for.
 */
#include <stdio.h>

#include "cli/table.h"
#include "cli/tool.h"
#include "config/config.h"
#include "view.h"

#define LS_USERS 4 /* named in the table; show names all */

enum { OPTION_JSON, OPTION_ALL };

static void users_text(const struct view *view, const struct view_region *region, char *text,
                       size_t size) {
    size_t length = (size_t)snprintf(text, size, "%zu", region->user_count), shown = 0;
    for (size_t i = 0; i < region->hold_count && shown < LS_USERS; i++) {
        const struct gps_owner *owner = &region->holds[i].owner;
        char pid[VIEW_TEXT];
        if (i > 0 && gps_owner_equal(owner, &region->holds[i - 1].owner))
            continue;
        view_pid(view, owner, pid);
        length += (size_t)snprintf(text + length, size - length, "%s%s %s",
                                   shown++ == 0 ? ": " : ", ", owner->command, pid);
    }
    if (region->user_count > shown)
        snprintf(text + length, size - length, " and %zu more", region->user_count - shown);
}

static void add_row(const struct view *view, const struct view_region *region,
                    struct table *table) {
    const struct gps_region_record *record = &region->record;
    char id[GPS_ID_HEX], device[41], size[VIEW_TEXT], pid[VIEW_TEXT], age[VIEW_TEXT], users[512];
    enum term_colour plain = view_hidden(region) ? TERM_DIM : TERM_PLAIN;
    gps_id_format(&record->id, id);
    gps_format_uuid(record->device, device);
    view_size(record->requested, size);
    const struct gps_owner *owner = gps_record_creator(record);
    view_pid(view, owner, pid);
    view_age(view, record->created, age);
    users_text(view, region, users, sizeof(users));
    table_cell(table, plain, "%s", view_name(region));
    table_cell(table, plain, "%.8s", id);
    table_cell(table, plain, "%s", size);
    table_cell(table, plain, "%.12s", device);
    table_cell(table, view_state_colour(region), "%s", view_state(region));
    table_cell(table, plain, "%s %s%s", owner->command, pid,
               view_kept(region) && !region->creator_alive ? " (ended)" : "");
    table_cell(table, plain, "%s", age);
    table_cell(table, plain, "%s", users);
}

static void print_table(const struct view *view, bool all) {
    static const struct table_column columns[] = {{"NAME", 0}, {"ID", 0},    {"SIZE", 1},
                                                  {"GPU", 0},  {"STATE", 0}, {"OWNER", 0},
                                                  {"AGE", 1},  {"USERS", 0}};
    struct table table = TABLE(columns);
    size_t dead = 0;
    for (size_t i = 0; i < view->region_count; i++) {
        dead += view_dead(&view->regions[i]);
        if (all || !view_hidden(&view->regions[i]))
            add_row(view, &view->regions[i], &table);
    }
    if (table.cell_count > 0)
        table_print(&table, 0);
    else
        printf("No shared regions in %s.\n", view->store.path);
    if (dead > 0)
        printf("\n%zu region%s of dead processes%s. Remove %s with: gpushare gc\n", dead,
               dead == 1 ? "" : "s", all ? "" : " not shown", dead == 1 ? "it" : "them");
}

static void print_json(const struct view *view, bool all) {
    struct json json = {0};
    json_open(&json, NULL, '[');
    for (size_t i = 0; i < view->region_count; i++) {
        if (!all && view_hidden(&view->regions[i]))
            continue;
        json_open(&json, NULL, '{');
        view_json_region(view, &view->regions[i], &json);
        json_close(&json, '}');
    }
    json_close(&json, ']');
}

static int run_ls(const struct tool_args *args) {
    struct view view;
    if (!view_read(&view))
        return TOOL_FAILED;
    if (args->values[OPTION_JSON])
        print_json(&view, args->values[OPTION_ALL] != NULL);
    else
        print_table(&view, args->values[OPTION_ALL] != NULL);
    view_free(&view);
    return TOOL_OK;
}

const struct tool_verb tool_verb_ls = {
    .name = "ls",
    .operands = "",
    .summary = "list the shared regions, their owners and users",
    .details = "STATE is what an importer may do with the region:\n"
               "  exporting  its owner still writes it; importers by name wait\n"
               "  ready      open to importers\n"
               "  final      finished and freed by its owner, kept for its first importer\n"
               "  closing    freed by its owner, still held by users; no new ones\n"
               "  orphaned   its owner is dead, users still hold it\n"
               "With --all also:\n"
               "  freed      the memory is gone; what is left guards against stale handles\n"
               "  dead       its owner is dead and nobody holds it\n"
               "A pid of another pid namespace is written PID@NAMESPACE.\n",
    .options = {{"json", 0, NULL, "an array of objects, for scripts"},
                {"all", 'a', NULL, "also what nobody can use any more"}},
    .usage_status = TOOL_USAGE,
    .run = run_ls,
};
