/*
 * ls.c - `gpushare ls`: lists the shared regions, their owners and users.
 *
 * People get a table, and scripts an array. Regions that no process can use any more (tombstones,
 * regions of dead processes) are left out unless they are asked for.
 */
#include <stdio.h>

#include "cli/table.h"
#include "cli/tool.h"
#include "view_format.h"

#define LS_USERS 4 /* so many are named in the table; show names all */

enum { OPTION_JSON, OPTION_ALL };

/* Prints `before` and the table. False, and nothing: it has no row. */
static bool print(const char *before, struct table *table) {
    if (table->cell_count == 0)
        return false;
    fputs(before, stdout);
    table_print(stdout, table, "");
    return true;
}

/* --- regions --- */

/* "2: app 4242, app 4243" */
static void users_cell(const struct view *view, const struct view_region *region,
                       enum term_colour colour, struct table *table) {
    struct view_list users = {.view = view, .most = LS_USERS};
    for (size_t i = 0; i < region->hold_count; i++) {
        const struct view_hold *hold = &region->holds[i];
        if (i == 0 || !gps_owner_equal(&hold->owner, &hold[-1].owner))
            view_list_add(&users, &hold->owner, view_cached(hold) ? " (cached)" : "");
    }
    view_list_cell(&users, colour, table);
}

static void add_row(const struct view *view, const struct view_region *region,
                    struct table *table) {
    const struct gps_region_record *record = &region->record;
    const struct gps_owner *owner = gps_record_creator(record);
    enum term_colour plain = view_hidden(region) ? TERM_DIM : TERM_PLAIN;
    table_cell(table, plain, "%s", view_format_name(region));
    table_cell(table, plain, "%.8s", printable_id(&record->id).text);
    table_cell(table, plain, "%s", printable_size(record->requested).text);
    table_cell(table, plain, "%s", printable_short_uuid(record->device).text);
    table_cell(table, view_format_colour(region), "%s", view_format_state(region));
    table_cell(table, plain, "%s%s", view_format_program(view, owner).text,
               view_is_vmm(region) && !region->creator_alive ? " (ended)" : "");
    table_cell(table, plain, "%s", view_format_age(view, record->created).text);
    users_cell(view, region, plain, table);
}

/* --- merged blocks --- */

/* A block is mapped once or more, also more than once by one process; without merging each mapping
 * would be memory of its own. */
static bool has_merged(const struct account_gpu *gpu) {
    return gpu->blocks > 0 || gpu->processes > 0;
}

/* Prints `before` and a table with a line for each GPU that has blocks, or processes with memory of
 * merge rules. Returns whether there is one. */
static bool print_merged(const struct accounting *accounting, const char *before) {
    static const struct table_column columns[] = {{"GPU", 0},    {"BLOCKS", 1},    {"HELD", 1},
                                                  {"UNUSED", 1}, {"PROCESSES", 1}, {"MAPPED", 1},
                                                  {"SAVED", 1},  {"OWN", 1}};
    struct table table = TABLE(columns);
    for (size_t i = 0; i < accounting->gpu_count; i++) {
        const struct account_gpu *gpu = &accounting->gpus[i];
        if (!has_merged(gpu))
            continue;
        table_cell(&table, TERM_PLAIN, "%s", printable_short_uuid(gpu->device).text);
        table_cell(&table, TERM_PLAIN, "%zu", gpu->blocks);
        TABLE_CELLS(&table, printable_size(gpu->held).text, printable_size(gpu->unused).text);
        table_cell(&table, TERM_PLAIN, "%zu", gpu->processes);
        table_cell(&table, TERM_PLAIN, "%s", printable_size(gpu->merged.mapped).text);
        table_cell(&table, TERM_GREEN, "%s", printable_size(gpu->merged.saved).text);
        table_cell(&table, TERM_PLAIN, "%s", printable_size(gpu->merged.own).text);
    }
    TOOL_TEMP char *title = tool_format("%sMerged blocks:\n", before);
    return print(title, &table);
}

/* The same of who has made memory itself, on which GPU. */
static bool print_made(const struct view *view, const struct accounting *accounting,
                       const char *before) {
    static const struct table_column columns[] = {{"CUMEMCREATE", 1}, {"GPU", 0}, {"BY", 0}};
    struct table table = TABLE(columns);
    for (size_t i = 0; i < accounting->count; i++) {
        const struct account *account = &accounting->accounts[i];
        if (account->made == 0)
            continue;
        TABLE_CELLS(&table, printable_size(account->made).text,
                    printable_short_uuid(account->device).text,
                    view_format_program(view, &account->process->owner).text);
    }
    return print(before, &table);
}

static json_t *unmerged_json(const struct view *view, const struct gps_owner *owner) {
    const struct gps_slot *slot = view_unmerged(view, owner);
    return json_tree_string(slot ? gps_unmerged_why(slot->address) : NULL);
}

static json_t *merged_users(const struct view *view, const struct accounting *accounting,
                            const struct account_gpu *gpu) {
    json_t *array = json_tree_pack("[]");
    for (size_t i = 0; i < accounting->count; i++) {
        const struct account *account = &accounting->accounts[i];
        const struct account_merged *merged = &account->merged;
        if (memcmp(account->device, gpu->device, GPS_UUID_BYTES) != 0 ||
            (merged->blocks == 0 && merged->own == 0))
            continue;
        json_t *user = view_format_owner_json(&account->process->owner);
        json_tree_add(user, "{s:I, s:I, s:I, s:i, s:o}", "mapped", merged->mapped, "saved",
                      merged->saved, "own", merged->own, "promised", 0, "unmerged",
                      unmerged_json(view, &account->process->owner));
        json_tree_append(array, user);
    }
    return array;
}

/* Appends the same as objects, in the shape of regions. Nothing is `promised` any more. */
static void append_merged(const struct view *view, const struct accounting *accounting,
                          json_t *array) {
    for (size_t i = 0; i < accounting->gpu_count; i++) {
        const struct account_gpu *gpu = &accounting->gpus[i];
        if (!has_merged(gpu))
            continue;
        json_tree_append(
            array,
            json_tree_pack(
                "{s:n, s:n, s:I, s:s, s:s, s:s, s:n, s:o, s:n, s:I, s:I, s:I, s:I, s:I, s:i}", "id",
                "name", "size", gpu->held, "device", printable_uuid(gpu->device).text, "state",
                "merged", "backing", "vmm", "owner", "users", merged_users(view, accounting, gpu),
                "age", "blocks", gpu->blocks, "unused", gpu->unused, "mapped", gpu->merged.mapped,
                "saved", gpu->merged.saved, "own", gpu->merged.own, "promised", 0));
    }
}

/* Appends what programs have made by cuMemCreate, in the shape of regions. */
static void append_made(const struct accounting *accounting, json_t *array) {
    for (size_t i = 0; i < accounting->count; i++) {
        const struct account *account = &accounting->accounts[i];
        if (account->made > 0)
            json_tree_append(array, json_tree_pack("{s:n, s:n, s:I, s:s, s:s, s:s, s:o, s:[], s:n}",
                                                   "id", "name", "size", account->made, "device",
                                                   printable_uuid(account->device).text, "state",
                                                   "made", "backing", "vmm", "owner",
                                                   view_format_owner_json(&account->process->owner),
                                                   "users", "age"));
    }
}

/* --- who merges nothing --- */

/* Prints an empty line and a table; nothing where nothing is in the way of any. */
static void print_unmerged(const struct view *view) {
    static const struct table_column columns[] = {{"NOT MERGING", 0}, {"SINCE", 1}, {"WHY", 0}};
    struct table table = TABLE(columns);
    for (size_t i = 0; i < view->process_count; i++) {
        const struct gps_owner *owner = &view->processes[i].owner;
        const struct gps_slot *slot = view_unmerged(view, owner);
        if (!slot)
            continue;
        table_cell(&table, TERM_YELLOW, "%s", view_format_program(view, owner).text);
        TABLE_CELLS(&table, view_format_age(view, slot->since).text,
                    gps_unmerged_why(slot->address));
    }
    print("\n", &table);
}

/* --- who is suspended --- */

static void print_suspended(const struct view *view) {
    static const struct table_column columns[] = {
        {"SUSPENDED", 0}, {"SINCE", 1}, {"LET GO", 1}, {"IN MAIN MEMORY", 1}};
    struct table table = TABLE(columns);
    for (size_t i = 0; i < view->process_count; i++) {
        const struct view_process *process = &view->processes[i];
        if (!view_suspended(process))
            continue;
        table_cell(&table, TERM_YELLOW, "%s", view_format_program(view, &process->owner).text);
        TABLE_CELLS(&table, view_format_age(view, process->answer.since).text,
                    printable_size(process->answer.let_go).text,
                    printable_size(process->answer.freed).text);
    }
    print("\n", &table);
}

/* Appends objects with the members of a region; `size` is what was let go of. */
static void append_suspended(const struct view *view, json_t *array) {
    for (size_t i = 0; i < view->process_count; i++) {
        const struct view_process *process = &view->processes[i];
        if (view_suspended(process))
            json_tree_append(
                array, json_tree_pack(
                           "{s:n, s:n, s:I, s:n, s:s, s:n, s:o, s:[], s:o, s:I}", "id", "name",
                           "size", process->answer.let_go, "device", "state", "suspended",
                           "backing", "owner", view_format_owner_json(&process->owner), "users",
                           "age", json_tree_seconds(view_nanos_since(view, process->answer.since)),
                           "freed", process->answer.freed));
    }
}

/* --- who waits for what --- */

/* Prints an empty line and a table of all waits; nothing where nobody waits. */
static void print_waits(const struct view *view) {
    static const struct table_column columns[] = {
        {"WAITING", 0}, {"FOR", 0}, {"SINCE", 1}, {"AT MOST", 1}};
    struct table table = TABLE(columns);
    for (size_t i = 0; i < view->wait_count; i++) {
        const struct gps_wait_slot *wait = &view->waits[i].wait;
        table_cell(&table, TERM_YELLOW, "%s",
                   view_format_program(view, &view->waits[i].owner).text);
        table_cell(&table, TERM_PLAIN, "%s%s", gps_wait_whom(wait->via), wait->name);
        TABLE_CELLS(&table, view_format_age(view, wait->since).text,
                    printable_duration(view_longest(wait)).text);
    }
    print("\n", &table);
}

static const char *whom(const struct gps_wait_slot *wait) {
    return wait->via == GPS_VIA_WAIT_EXPORTER    ? "exporter"
           : wait->via == GPS_VIA_WAIT_IMPORTERS ? "importers"
                                                 : "importer";
}

/* Appends objects with the members of a region, null where a wait has none, and with `for`,
 * `region` and `most`. */
static void append_waits(const struct view *view, json_t *array) {
    for (size_t i = 0; i < view->wait_count; i++) {
        const struct gps_wait_slot *wait = &view->waits[i].wait;
        json_tree_append(
            array, json_tree_pack("{s:n, s:n, s:n, s:n, s:s, s:n, s:o, s:[], s:o, s:s, s:o, s:o}",
                                  "id", "name", "size", "device", "state", "waiting", "backing",
                                  "owner", view_format_owner_json(&view->waits[i].owner), "users",
                                  "age", json_tree_seconds(view_nanos_since(view, wait->since)),
                                  "for", whom(wait), "region", json_tree_string(wait->name), "most",
                                  json_tree_seconds(view_longest(wait))));
    }
}

/* --- the list --- */

/* There are thousands of blocks, which have one line for each GPU. */
static bool is_listed(const struct view_region *region, bool all) {
    return (all || !view_hidden(region)) && !view_merged(region);
}

static void print_none(const struct view *view) {
    TOOL_TEMP char *others = view_other_users();
    printf("No shared regions in %s.\n", view->store.path);
    if (others)
        term_line(stdout, "%s.", others);
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
    const bool any = print("", &table);
    const bool merged = print_merged(accounting, any ? "\n" : "");
    if (!print_made(view, accounting, any || merged ? "\n" : "") && !any && !merged)
        print_none(view);
    print_unmerged(view);
    print_suspended(view);
    print_waits(view);
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
    append_merged(view, accounting, array);
    append_made(accounting, array);
    append_suspended(view, array);
    append_waits(view, array);
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
               "  dead       its owner is dead and nobody holds it; gpushare gc removes it\n"
               "A user is (cached) if its program has closed the region and open_cache keeps it "
               "mapped. A region that its program exported by itself, without a rule, has the "
               "name -. A pid of another pid namespace is written PID@NAMESPACE. Of several "
               "processes of one name the arguments are shown, too. Damaged files are warned "
               "about and left out.\n\n"
               "Blocks of role = merge have a line for each GPU: what they take (HELD; UNUSED of "
               "it is only kept), what processes have MAPPED of them, what is SAVED by that, and "
               "what merge rules took that is each process's OWN.\n"
               "Then what each program has made by its own cuMemCreate, which no rule shares.\n"
               "Then who merges nothing though a rule says so, since when, and why.\n"
               "Then who is suspended, since when, how much it shares and has let go of, and how "
               "much of its own has left the GPU.\n"
               "Behind that stands who has waited for more than a second, for what and for how "
               "long at most.\n",
    .options = {{"json", 0, NULL, "an array of objects, for scripts"},
                {"all", 'a', NULL, "also what nobody can use any more"}},
    .run = run_ls,
};
