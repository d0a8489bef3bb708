/* drop.c - `gpushare drop`: has the keeper forget a region. */

#include "cli/printable.h"
#include "cli/term.h"
#include "cli/tool.h"
#include "config/config.h"
#include "directory/lease.h"
#include "keeper/keeper_client.h"
#include "util/clock.h"
#include "view_format.h"

#define DROP_TIMEOUT (10 * GPS_SECOND)

enum { OPTION_MERGED };

static bool drop_region_is_named(const struct view_region *region) {
    return view_is_vmm(region) && !view_merged(region) && !gps_record_over(&region->record);
}

static bool is_unused_block(const struct view_region *region) {
    return view_merged(region) && !view_hidden(region) && region->hold_count == 0 &&
           region->creator_holds == 0;
}

static bool is_merge_rule(const char *what) {
    struct gps_config config;
    bool found = false;
    if (gps_config_load(&config, NULL, NULL) != 0)
        return false;
    for (size_t i = 0; i < config.rule_count; i++)
        found |= config.rules[i].role == GPS_ROLE_MERGE && strcmp(config.rules[i].name, what) == 0;
    gps_config_free(&config);
    return found;
}

/* Tells of merged blocks, which have no name. */
static void drop_tell_of_blocks(const struct view *view, const char *what) {
    uint64_t held = 0, unused = 0;
    TOOL_EACH(const struct view_region, region, view->regions, view->region_count) {
        held += view_merged(region) && !view_hidden(region) ? region->record.extent : 0;
        unused += is_unused_block(region) ? region->record.extent : 0;
    }
    tool_error("'%s' is a rule with role = merge, whose blocks have no name: of all such rules %s "
               "are kept, of that %s without a user. Those end with `gpushare drop --merged`, or "
               "when the rule's `keep` says; the others stay until their last user has ended",
               what, printable_size(held).text, printable_size(unused).text);
}

static void drop_tell_not_found(const struct view *view, const char *what) {
    TOOL_TEMP char *names = NULL;
    if (is_merge_rule(what))
        drop_tell_of_blocks(view, what);
    else if (view_names(view, drop_region_is_named, &names) > 0)
        tool_error("nothing that is kept is called '%s'; there is: %s (see: gpushare ls)", what,
                   names);
    else
        tool_error("nothing that is kept is called '%s'; nothing is kept in %s", what,
                   view->store.path);
}

static bool drop_region(const struct view *view, const struct view_region *region,
                        const char *what) {
    const struct gps_owner *owner = &region->record.owner;
    struct gps_owner self;
    if (!view_is_vmm(region))
        return tool_error(
            "'%s' is memory of %s (pid %u), not of the keeper: it goes when that frees it", what,
            owner->command, owner->pid);
    gps_owner_self(&self);
    int status = gps_keeper_drop(&view->store, NULL, &region->record.id, &self, DROP_TIMEOUT);
    if (status == -ENOENT)
        tool_error("'%s' is not kept any more", what);
    else if (status == -ETIMEDOUT)
        tool_error("the keeper does not answer; see: gpushare doctor");
    else if (status != 0)
        tool_error("no keeper can be reached or started: %s; see: gpushare doctor",
                   strerror(-status));
    return status == 0;
}

/* "Dropped frames (id 8e02da08, 64 MiB); 2 processes still have it open." */
static void drop_tell_dropped(const struct view_region *region) {
    const struct gps_region_record *record = &region->record;
    const size_t users = region->user_count + (region->creator_holds > 0);
    char open[64] = "";
    if (users > 0)
        snprintf(open, sizeof(open), "; %zu process%s still ha%s it open", users,
                 users == 1 ? "" : "es", users == 1 ? "s" : "ve");
    term_line(stdout, "Dropped %s (id %.8s, %s)%s.", view_format_name(region),
              printable_id(&record->id).text, printable_size(record->extent).text, open);
}

static bool drop_region_is_meant(const struct view_region *region, const char *what) {
    const char *name = region->record.name;
    return drop_region_is_named(region) && name[0] != 0 &&
           (strcmp(name, what) == 0 || gps_glob_match(what, name));
}

static bool is_owned(const struct view_region *region, const char *what) {
    return !view_is_vmm(region) && strcmp(region->record.name, what) == 0;
}

/* Marks the regions that the keeper has under this name or glob; if there are none, that whose id
 * begins so; if there is none, those of this name that the keeper does not have. */
static bool drop_find_regions(struct view *view, const char *what) {
    size_t count = view_find(view, drop_region_is_meant, what);
    if (count > 0)
        return true;
    count = view_find(view, view_has_id, what);
    if (count > 1)
        tool_error("%zu regions have an id that begins with '%s'; give more of it", count, what);
    else if (count == 0 && view_find(view, is_owned, what) == 0)
        drop_tell_not_found(view, what);
    else
        return true;
    return false;
}

static bool find_and_drop(struct view *view, const char *what) {
    bool good = drop_find_regions(view, what);
    for (size_t i = 0; good && i < view->region_count; i++) {
        const struct view_region *region = &view->regions[i];
        if (!region->found)
            continue;
        good = drop_region(view, region, what);
        if (good)
            drop_tell_dropped(region);
    }
    return good;
}

/* --- blocks --- */

static bool drop_unused_blocks(const struct view *view) {
    size_t count = 0;
    uint64_t bytes = 0;
    bool good = true;
    for (size_t i = 0; i < view->region_count && good; i++) {
        const struct view_region *region = &view->regions[i];
        if (!is_unused_block(region))
            continue;
        good = drop_region(view, region, printable_id(&region->record.id).text);
        count += good;
        bytes += good ? region->record.extent : 0;
    }
    if (count == 0)
        puts("No merged block is without a user.");
    else
        printf("Dropped %zu block%s, %s.\n", count, count == 1 ? "" : "s",
               printable_size(bytes).text);
    return good;
}

/* `what` NULL: drops the blocks. The directory is read again each time, for the regions that the
 * last call dropped are gone. */
static bool drop_one(const char *what) {
    struct view view;
    if (!view_read(&view))
        return false;
    const bool good = what ? find_and_drop(&view, what) : drop_unused_blocks(&view);
    view_free(&view);
    return good;
}

static int run_drop(const struct tool_args *args) {
    const bool merged = args->values[OPTION_MERGED];
    if (merged != (args->operand_count == 0)) {
        tool_error(merged ? "a NAME or ID does not go with --merged"
                          : "a NAME or ID is missing, or --merged; see: gpushare drop --help");
        return TOOL_USAGE;
    }
    bool good = !merged || drop_one(NULL);
    for (int i = 0; i < args->operand_count; i++)
        good &= drop_one(args->operands[i]);
    return good ? TOOL_OK : TOOL_FAILED;
}

const struct tool_verb tool_verb_drop = {
    .name = "drop",
    .operands = "[NAME|ID...]",
    .summary = "have the keeper forget regions (backing = vmm), or merged blocks",
    .details = "Nobody can open a region any more that is dropped, and its name is free. Who has "
               "it open keeps it, and it is listed as closing: its memory goes with the last of "
               "them. Which regions these are, and how many processes have them open, is said. "
               "Others than the keeper's cannot be dropped: they belong to their owners.\n"
               "With --merged, all blocks of role = merge that nobody uses go, keep or not.\n"
               "A region is given by its NAME, by a glob on names ('frames-*'), or by the first "
               "6 or more digits of its ID.\n"
               "The exit status is 1 if nothing was dropped.\n",
    .options = {{"merged", 0, NULL,
                 "drop all blocks of role = merge that nobody uses, and say how many"}},
    .operands_max = 1 << 20,
    .run = run_drop,
};
