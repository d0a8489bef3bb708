/*
 * ls.c - `gpushare ls`: lists the shared regions, their owners and users.
 *
 * People get a table, and scripts an array. Regions that no process can use any more (tombstones,
 * regions of dead processes) are left out unless they are asked for.
 */

#include "cli/table.h"
#include "cli/tool.h"
#include "config/config.h"
#include "view_format.h"

#define LS_USERS 4 /* so many are named in the table; show names all */

enum { OPTION_JSON, OPTION_ALL, OPTION_FILTER };

struct listing {
    const struct view *view;
    const struct accounting *accounting;
    const struct tool_args *args;
    json_t *array; /* NULL: tables are printed */
    bool all, any; /* any: something is printed already, and an empty line goes before the next */
};

/* Prints the title and the table, unless it has no row. */
static void listing_print_table(struct listing *listing, const char *title, struct table *table) {
    if (table->cell_count == 0)
        return;
    printf("%s%s", listing->any ? "\n" : "", title);
    table_print(stdout, table, "");
    listing->any = true;
}

/* --- filters --- */

static bool is_program(const struct gps_owner *owner, const char *value) {
    char pid[16];
    snprintf(pid, sizeof(pid), "%u", owner->pid);
    return strcmp(pid, value) == 0 || gps_glob_match_any_case(value, owner->command);
}

static bool filter_by_name(const struct view_region *region, const char *value) {
    return gps_glob_match(value, region->record.name);
}

static bool filter_by_id(const struct view_region *region, const char *value) {
    return strncmp(printable_id(&region->record.id).text, value, strlen(value)) == 0;
}

static bool by_gpu(const struct view_region *region, const char *value) {
    return strncmp(printable_uuid(region->record.device).text, value, strlen(value)) == 0;
}

static bool by_state(const struct view_region *region, const char *value) {
    return strcmp(view_format_state(region), value) == 0;
}

static bool by_backing(const struct view_region *region, const char *value) {
    return strcmp(view_format_backing(region), value) == 0;
}

static bool filter_by_owner(const struct view_region *region, const char *value) {
    return is_program(gps_record_creator(&region->record), value);
}

static bool by_user(const struct view_region *region, const char *value) {
    for (size_t i = 0; i < region->hold_count; i++)
        if (is_program(&region->holds[i].owner, value))
            return true;
    return false;
}

static const struct filter {
    const char *key;
    view_match_fn *matches;
    const char *values; /* NULL: any */
} filters[] = {
    {"name", filter_by_name, NULL},
    {"id", filter_by_id, NULL},
    {"gpu", by_gpu, NULL},
    {"state", by_state, "exporting, ready, final, closing, orphaned, freed, dead, offloaded"},
    {"backing", by_backing, "ipc, vmm, token"},
    {"owner", filter_by_owner, NULL},
    {"user", by_user, NULL}};
#define FILTERS (sizeof(filters) / sizeof(filters[0]))

/* The filter of "key=value"; NULL: there is none of this key. */
static const struct filter *filter_of(const char *text, const char **value) {
    const size_t length = strcspn(text, "=");
    for (size_t i = 0; text[length] && i < FILTERS; i++)
        if (strlen(filters[i].key) == length && strncmp(filters[i].key, text, length) == 0) {
            *value = text + length + 1;
            return &filters[i];
        }
    return NULL;
}

/* Whether it is one of the words between ", ". */
static bool is_one_of(const char *words, const char *value) {
    const size_t length = strlen(value);
    for (const char *at = words; at; at = strchr(at, ' '))
        if ((at += *at == ' ') && strcspn(at, ",") == length && strncmp(at, value, length) == 0)
            return true;
    return false;
}

static bool check_filter(const char *text) {
    const char *value;
    const struct filter *filter = filter_of(text, &value);
    if (filter && (!filter->values || is_one_of(filter->values, value)))
        return true;
    TOOL_TEMP char *keys = NULL;
    for (size_t i = 0; i < FILTERS; i++)
        tool_list(&keys, "%s=", filters[i].key);
    if (filter)
        tool_error("--filter '%s' fits nothing; allowed for %s: %s", text, filter->key,
                   filter->values);
    else
        tool_error("--filter '%s' is no KEY=VALUE with a known key; allowed: %s", text, keys);
    return false;
}

static bool check_filters(const struct tool_args *args) {
    for (size_t i = 0; i < args->given_count; i++)
        if (args->given[i].option == OPTION_FILTER && !check_filter(args->given[i].value))
            return false;
    return true;
}

/* Whether it is to be listed. */
static bool listing_has_region(const struct listing *listing, const struct view_region *region) {
    const struct tool_args *args = listing->args;
    const char *value;
    for (size_t i = 0; i < args->given_count; i++)
        if (args->given[i].option == OPTION_FILTER &&
            !filter_of(args->given[i].value, &value)->matches(region, value))
            return false;
    return listing->all || !view_hidden(region);
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

static void listing_add_row(const struct view *view, const struct view_region *region,
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

static void tell_regions(struct listing *listing) {
    static const struct table_column columns[] = {{"NAME", 0}, {"ID", 0},    {"SIZE", 1},
                                                  {"GPU", 0},  {"STATE", 0}, {"OWNER", 0},
                                                  {"AGE", 1},  {"USERS", 0}};
    struct table table = TABLE(columns);
    TOOL_EACH(const struct view_region, region, listing->view->regions,
              listing->view->region_count) {
        /* there are thousands of blocks, which have one line for each GPU */
        if (!listing_has_region(listing, region) || view_merged(region))
            continue;
        if (!listing->array) {
            listing_add_row(listing->view, region, &table);
            continue;
        }
        json_t *object = json_tree_pack("{}");
        view_format_region_json(listing->view, region, object);
        json_tree_append(listing->array, object);
    }
    listing_print_table(listing, "", &table);
}

/* LEFT OUT and LATE are of all, the exporter and its readers. */
static void frames_cells(const struct view_frames *frames, struct table *table) {
    const struct gps_frames_writer *writer = &frames->said.writer;
    uint64_t left_out = writer->left_out, late = writer->late;
    for (size_t i = 0; i < frames->reader_count; i++) {
        left_out += frames->readers[i].left_out;
        late += frames->readers[i].late;
    }
    table_cell(table, TERM_PLAIN, "%" PRIu64, writer->newest);
    TABLE_CELLS(table, view_format_frame_age(frames, writer->newest, writer->at).text);
    table_cell(table, TERM_PLAIN, "%" PRIu64, left_out);
    table_cell(table, late ? TERM_YELLOW : TERM_PLAIN, "%" PRIu64, late);
    table_cell(table, TERM_PLAIN, "%zu", frames->reader_count);
}

/* In JSON each region has its own. */
static void print_frames(struct listing *listing) {
    static const struct table_column columns[] = {{"FRAMES OF", 0}, {"ID", 0},     {"MODE", 0},
                                                  {"SLOTS", 1},     {"NEWEST", 1}, {"AGE", 1},
                                                  {"LEFT OUT", 1},  {"LATE", 1},   {"READERS", 1}};
    struct table table = TABLE(columns);
    TOOL_EACH(const struct view_region, region, listing->view->regions,
              listing->view->region_count) {
        struct view_frames frames;
        if (!listing_has_region(listing, region) ||
            !view_frames_read(listing->view, region, &frames))
            continue;
        table_cell(&table, TERM_PLAIN, "%s", view_format_name(region));
        table_cell(&table, TERM_PLAIN, "%.8s", printable_id(&region->record.id).text);
        TABLE_CELLS(&table, view_frames_mode(region));
        table_cell(&table, TERM_PLAIN, "%u", region->record.frame_slots);
        if (frames.status == 0)
            frames_cells(&frames, &table);
        else
            TABLE_CELLS(&table, "?", "?", "?", "?", "?");
    }
    listing_print_table(listing, "", &table);
}

/* --- memory that is no region --- */

/* Appends an object with the members of a region, null where what has this state has none. */
static json_t *listing_append_json(struct listing *listing, const char *state) {
    json_t *object =
        json_tree_pack("{s:n, s:n, s:n, s:n, s:s, s:n, s:n, s:[], s:n}", "id", "name", "size",
                       "device", "state", state, "backing", "owner", "users", "age");
    json_tree_append(listing->array, object);
    return object;
}

static json_t *merged_users(const struct listing *listing, const struct account_gpu *gpu) {
    json_t *array = json_tree_pack("[]");
    for (size_t i = 0; i < listing->accounting->count; i++) {
        const struct account *account = &listing->accounting->accounts[i];
        const struct account_merged *merged = &account->merged;
        if (memcmp(account->device, gpu->device, GPS_UUID_BYTES) != 0 ||
            (merged->blocks == 0 && merged->own == 0))
            continue;
        json_t *user = view_format_owner_json(&account->process->owner);
        json_tree_add(user, "{s:I, s:I, s:I, s:i, s:o}", "mapped", merged->mapped, "saved",
                      merged->saved, "own", merged->own, "promised", 0, "unmerged",
                      view_format_not_merging_json(listing->view, &account->process->owner));
        json_tree_append(array, user);
    }
    return array;
}

/* Tells of each GPU that has blocks, or processes with memory of merge rules. A block is mapped
 * once or more, also more than once by one process; without merging each mapping would be memory of
 * its own. Nothing is `promised` any more. */
static void tell_merged(struct listing *listing) {
    static const struct table_column columns[] = {{"GPU", 0},    {"BLOCKS", 1},    {"HELD", 1},
                                                  {"UNUSED", 1}, {"PROCESSES", 1}, {"MAPPED", 1},
                                                  {"SAVED", 1},  {"OWN", 1}};
    struct table table = TABLE(columns);
    for (size_t i = 0; i < listing->accounting->gpu_count; i++) {
        const struct account_gpu *gpu = &listing->accounting->gpus[i];
        if (gpu->blocks == 0 && gpu->processes == 0)
            continue;
        if (listing->array) {
            json_tree_add(listing_append_json(listing, "merged"),
                          "{s:I, s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:i}", "size", gpu->held,
                          "device", printable_uuid(gpu->device).text, "backing", "vmm", "users",
                          merged_users(listing, gpu), "blocks", gpu->blocks, "unused", gpu->unused,
                          "mapped", gpu->merged.mapped, "saved", gpu->merged.saved, "own",
                          gpu->merged.own, "promised", 0);
            continue;
        }
        table_cell(&table, TERM_PLAIN, "%s", printable_short_uuid(gpu->device).text);
        table_cell(&table, TERM_PLAIN, "%zu", gpu->blocks);
        TABLE_CELLS(&table, printable_size(gpu->held).text, printable_size(gpu->unused).text);
        table_cell(&table, TERM_PLAIN, "%zu", gpu->processes);
        table_cell(&table, TERM_PLAIN, "%s", printable_size(gpu->merged.mapped).text);
        table_cell(&table, TERM_GREEN, "%s", printable_size(gpu->merged.saved).text);
        table_cell(&table, TERM_PLAIN, "%s", printable_size(gpu->merged.own).text);
    }
    listing_print_table(listing, "Merged blocks:\n", &table);
}

/* Tells which processes have made memory themselves, on which GPU. */
static void tell_made(struct listing *listing) {
    static const struct table_column columns[] = {{"CUMEMCREATE", 1}, {"GPU", 0}, {"BY", 0}};
    struct table table = TABLE(columns);
    TOOL_EACH(const struct account, account, listing->accounting->accounts,
              listing->accounting->count) {
        const struct gps_owner *owner = &account->process->owner;
        if (account->made == 0)
            continue;
        if (listing->array)
            json_tree_add(listing_append_json(listing, "made"), "{s:I, s:s, s:s, s:o}", "size",
                          account->made, "device", printable_uuid(account->device).text, "backing",
                          "vmm", "owner", view_format_owner_json(owner));
        else
            TABLE_CELLS(&table, printable_size(account->made).text,
                        printable_short_uuid(account->device).text,
                        view_format_program(listing->view, owner).text);
    }
    listing_print_table(listing, "", &table);
}

static void print_not_merging(struct listing *listing) {
    static const struct table_column columns[] = {{"NOT MERGING", 0}, {"SINCE", 1}, {"WHY", 0}};
    struct table table = TABLE(columns);
    for (size_t i = 0; i < listing->view->process_count; i++) {
        const struct gps_owner *owner = &listing->view->processes[i].owner;
        const struct gps_slot *slot = view_not_merging(listing->view, owner);
        if (!slot)
            continue;
        table_cell(&table, TERM_YELLOW, "%s", view_format_program(listing->view, owner).text);
        TABLE_CELLS(&table, view_format_age(listing->view, slot->since).text,
                    gps_not_merging_why(slot->address));
    }
    listing_print_table(listing, "", &table);
}

/* `size` is the evicted memory. */
static void tell_suspended(struct listing *listing) {
    static const struct table_column columns[] = {
        {"SUSPENDED", 0}, {"SINCE", 1}, {"LET GO", 1}, {"IN MAIN MEMORY", 1}};
    struct table table = TABLE(columns);
    TOOL_EACH(const struct view_process, process, listing->view->processes,
              listing->view->process_count) {
        const struct gps_answer_file *answer = &process->answer;
        if (!view_suspended(process))
            continue;
        if (listing->array) {
            json_tree_add(listing_append_json(listing, "suspended"), "{s:I, s:o, s:o, s:I}", "size",
                          answer->evicted, "owner", view_format_owner_json(&process->owner), "age",
                          json_tree_seconds(view_nanos_since(listing->view, answer->since)),
                          "freed", answer->freed);
            continue;
        }
        table_cell(&table, TERM_YELLOW, "%s",
                   view_format_program(listing->view, &process->owner).text);
        TABLE_CELLS(&table, view_format_age(listing->view, answer->since).text,
                    printable_size(answer->evicted).text, printable_size(answer->freed).text);
    }
    listing_print_table(listing, "", &table);
}

/* Tells of offloaded blocks, which no process has on a GPU: the keeper has each once. */
static void tell_offloaded(struct listing *listing) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < listing->view->region_count; i++) {
        const struct gps_region_record *record = &listing->view->regions[i].record;
        bytes += record->status.state == GPS_STATE_OFFLOADED ? record->extent : 0;
    }
    if (bytes && listing->array)
        json_tree_add(listing_append_json(listing, "offloaded"), "{s:I}", "size", bytes);
    else if (bytes)
        printf("\n%s of merged memory, which only suspended programs have, are in main memory.\n",
               printable_size(bytes).text);
}

static void listing_tell_waits(struct listing *listing) {
    static const struct table_column columns[] = {
        {"WAITING", 0}, {"FOR", 0}, {"SINCE", 1}, {"AT MOST", 1}};
    struct table table = TABLE(columns);
    for (size_t i = 0; i < listing->view->wait_count; i++) {
        const struct gps_owner *owner = &listing->view->waits[i].owner;
        const struct gps_wait_slot *wait = &listing->view->waits[i].wait;
        if (listing->array) {
            json_tree_add(listing_append_json(listing, "waiting"), "{s:o, s:o, s:s, s:o, s:o}",
                          "owner", view_format_owner_json(owner), "age",
                          json_tree_seconds(view_nanos_since(listing->view, wait->since)), "for",
                          wait->via == GPS_VIA_WAIT_EXPORTER    ? "exporter"
                          : wait->via == GPS_VIA_WAIT_IMPORTERS ? "importers"
                                                                : "importer",
                          "region", json_tree_string(wait->name), "most",
                          json_tree_seconds(view_longest(wait)));
            continue;
        }
        table_cell(&table, TERM_YELLOW, "%s", view_format_program(listing->view, owner).text);
        table_cell(&table, TERM_PLAIN, "%s%s", gps_wait_whom(wait->via), wait->name);
        TABLE_CELLS(&table, view_format_age(listing->view, wait->since).text,
                    printable_duration(view_longest(wait)).text);
    }
    listing_print_table(listing, "", &table);
}

/* --- the list --- */

static void print_none(const struct view *view) {
    TOOL_TEMP char *others = view_other_users();
    printf("No shared regions in %s.\n", view->store.path);
    if (others)
        term_line(stdout, "%s.", others);
}

static void print_dead(const struct listing *listing) {
    size_t dead = 0;
    for (size_t i = 0; i < listing->view->region_count; i++)
        dead += view_dead(&listing->view->regions[i]);
    if (dead > 0)
        printf("\n%zu region%s of dead processes%s. Remove %s with: gpushare gc\n", dead,
               dead == 1 ? "" : "s", listing->all ? "" : " not shown", dead == 1 ? "it" : "them");
}

static void tell_others(struct listing *listing) {
    tell_merged(listing);
    tell_made(listing);
    if (!listing->array && !listing->any)
        print_none(listing->view);
    listing->any = true;
    if (!listing->array)
        print_not_merging(listing);
    tell_suspended(listing);
    tell_offloaded(listing);
    listing_tell_waits(listing);
    if (!listing->array)
        print_dead(listing);
}

/* Only regions have filters. */
static void listing_tell_all(struct listing *listing) {
    tell_regions(listing);
    if (!listing->array)
        print_frames(listing);
    if (!listing->args->values[OPTION_FILTER])
        tell_others(listing);
    else if (!listing->array && !listing->any)
        puts("No shared region fits.");
    if (listing->array)
        json_tree_print(stdout, listing->array);
}

static int run_ls(const struct tool_args *args) {
    struct view view;
    struct accounting accounting;
    if (!check_filters(args))
        return TOOL_USAGE;
    if (!(args->values[OPTION_ALL] ? view_read_all(&view) : view_read(&view)))
        return TOOL_FAILED;
    accounting_make(&view, &accounting);
    listing_tell_all(
        &(struct listing){.view = &view,
                          .accounting = &accounting,
                          .args = args,
                          .array = args->values[OPTION_JSON] ? json_tree_pack("[]") : NULL,
                          .all = args->values[OPTION_ALL]});
    accounting_free(&accounting);
    view_free(&view);
    return TOOL_OK;
}

const struct tool_verb tool_verb_ls = {
    .name = "ls",
    .operands = "",
    .summary = "list the shared regions, their owners and users",
    .details =
        "STATE is what an importer may do with the region:\n"
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
        "Regions with whole frames stand once more, with the NEWEST, its AGE, and how many "
        "were LEFT OUT and how often somebody was LATE, exporter and READERS together.\n"
        "Blocks of role = merge have a line for each GPU: what they take (HELD; UNUSED of "
        "it is only kept), what processes have MAPPED of them, what is SAVED by that, and "
        "what merge rules took that is each process's OWN.\n"
        "Then what each program has made by its own cuMemCreate, which no rule shares.\n"
        "Then who merges nothing though a rule says so, since when, and why.\n"
        "Then who is suspended, since when, how much it shares and has let go of, and how "
        "much of its own has left the GPU; and how much merged memory has, once for all who "
        "have it.\n"
        "Behind that stands who has waited for more than a second, for what and for how "
        "long at most.\n\n"
        "--filter lists only regions that fit: name=GLOB, id=DIGITS (the first of them), "
        "gpu=UUID (its beginning), state=STATE, backing=ipc, vmm or token, and owner=PROGRAM "
        "and user=PROGRAM, a glob or a pid. Of several all have to fit.\n",
    .options = {{"json", 0, NULL, "an array of objects, for scripts"},
                {"all", 'a', NULL, "also what nobody can use any more"},
                {"filter", 'f', "KEY=VALUE", "only regions that fit; may be repeated"}},
    .run = run_ls,
};
