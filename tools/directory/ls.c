/*
 * ls.c - `gpushare ls`: lists the shared regions, their owners and users.
 *
 * People get a table, and scripts an array. Regions that no process can use any more (tombstones,
 * regions of dead processes) are left out unless they are asked for.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cli/table.h"
#include "cli/tool.h"
#include "merged.h"
#include "view_format.h"
#include "waiting.h"

#define LS_USERS 4 /* so many are named in the table; show names all */

enum { OPTION_JSON, OPTION_ALL };

/* "2: app 4242, app 4243"; malloc'ed. */
static char *users_text(const struct view *view, const struct view_region *region) {
    char *users = NULL;
    size_t shown = 0;
    for (size_t i = 0; i < region->hold_count && shown < LS_USERS; i++) {
        const struct gps_owner *owner = &region->holds[i].owner;
        if (i > 0 && gps_owner_equal(owner, &region->holds[i - 1].owner))
            continue;
        char *user = view_format_program(view, owner);
        tool_list(&users, "%s%s", user, view_cached(&region->holds[i]) ? " (cached)" : "");
        free(user);
        shown++;
    }
    char more[40] = "";
    if (region->user_count > shown)
        snprintf(more, sizeof(more), " and %zu more", region->user_count - shown);
    char *text =
        tool_format("%zu%s%s%s", region->user_count, users ? ": " : "", tool_or(users, ""), more);
    free(users);
    return text;
}

static void add_row(const struct view *view, const struct view_region *region,
                    struct table *table) {
    const struct gps_region_record *record = &region->record;
    const struct gps_owner *owner = gps_record_creator(record);
    char *users = users_text(view, region), *program = view_format_program(view, owner);
    enum term_colour plain = view_hidden(region) ? TERM_DIM : TERM_PLAIN;
    table_cell(table, plain, "%s", view_format_name(region));
    table_cell(table, plain, "%.8s", printable_id(&record->id).text);
    table_cell(table, plain, "%s", printable_size(record->requested).text);
    table_cell(table, plain, "%.12s", printable_uuid(record->device).text);
    table_cell(table, view_format_colour(region), "%s", view_format_state(region));
    table_cell(table, plain, "%s%s", program,
               view_is_vmm(region) && !region->creator_alive ? " (ended)" : "");
    table_cell(table, plain, "%s", view_format_age(view, record->created).text);
    table_cell(table, plain, "%s", users);
    free(users);
    free(program);
}

/* There are thousands of blocks, which have one line for each GPU. */
static bool is_listed(const struct view_region *region, bool all) {
    return (all || !view_hidden(region)) && !view_merged(region);
}

static void print_none(const struct view *view) {
    char *others = view_other_users();
    printf("No shared regions in %s.\n", view->store.path);
    if (others)
        term_line(stdout, "%s.", others);
    free(others);
}

static void print_table(const struct view *view, const struct accounting *accounting, bool all) {
    static const struct table_column columns[] = {{"NAME", 0}, {"ID", 0},    {"SIZE", 1},
                                                  {"GPU", 0},  {"STATE", 0}, {"OWNER", 0},
                                                  {"AGE", 1},  {"USERS", 0}};
    struct table table = TABLE(columns);
    size_t dead = 0;
    for (size_t i = 0; i < view->region_count; i++) {
        dead += view_dead(&view->regions[i]);
        if (is_listed(&view->regions[i], all))
            add_row(view, &view->regions[i], &table);
    }
    const bool any = table.cell_count > 0;
    if (any)
        table_print(stdout, &table, "");
    const bool merged = merged_print(accounting, any ? "\n" : "") != 0;
    if (!any && !merged)
        print_none(view);
    waiting_print(view);
    if (dead > 0)
        printf("\n%zu region%s of dead processes%s. Remove %s with: gpushare gc\n", dead,
               dead == 1 ? "" : "s", all ? "" : " not shown", dead == 1 ? "it" : "them");
}

static void print_json(const struct view *view, const struct accounting *accounting, bool all) {
    json_t *array = json_tree_pack("[]");
    for (size_t i = 0; i < view->region_count; i++) {
        if (!is_listed(&view->regions[i], all))
            continue;
        json_t *object = json_tree_pack("{}");
        view_format_region_json(view, &view->regions[i], object);
        json_tree_append(array, object);
    }
    merged_append(accounting, array);
    waiting_append(view, array);
    json_tree_print(stdout, array);
}

static int run_ls(const struct tool_args *args) {
    struct view view;
    struct accounting accounting;
    if (!view_read(&view))
        return TOOL_FAILED;
    accounting_make(&view, &accounting);
    (args->values[OPTION_JSON] ? print_json : print_table)(&view, &accounting,
                                                           args->values[OPTION_ALL]);
    accounting_free(&accounting);
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
               "Blocks of role = merge have a line for each GPU: what they take (HELD; "
               "UNUSED of it is only kept), what processes have MAPPED of them, what is SAVED "
               "by that, and what merge rules took that is each process's OWN.\n"
               "A user is (cached) if its program has closed the region and open_cache keeps "
               "it mapped.\n"
               "Behind that stands who has waited for more than a second, for what and for how "
               "long at most.\n"
               "Of several processes of one name the arguments are shown, too.\n"
               "A pid of another pid namespace is written PID@NAMESPACE.\n",
    .options = {{"json", 0, NULL, "an array of objects, for scripts"},
                {"all", 'a', NULL, "also what nobody can use any more"}},
    .run = run_ls,
};
