/* drop.c - `gpushare drop`: has the keeper forget a region. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/printable.h"
#include "cli/tool.h"
#include "directory/lease.h"
#include "keeper/keeper_client.h"
#include "util/clock.h"
#include "view.h"

#define DROP_PATIENCE (10 * GPS_SECOND)

enum { OPTION_MERGED };

/* Of several with that name, the one that is kept. */
static const struct view_region *find_name(const struct view *view, const char *name) {
    const struct view_region *found = NULL;
    for (size_t i = 0; i < view->region_count; i++)
        if (strcmp(view->regions[i].record.name, name) == 0 &&
            (!found || view_is_vmm(&view->regions[i])))
            found = &view->regions[i];
    return found;
}

static const struct view_region *first_found(const struct view *view) {
    size_t at = 0;
    while (!view->regions[at].found)
        at++;
    return &view->regions[at];
}

static bool is_named(const struct view_region *region) {
    return view_is_vmm(region) && !view_merged(region);
}

static int not_found(const struct view *view, const char *what) {
    char *names = NULL;
    if (view_names(view, is_named, &names) > 0)
        tool_error("nothing that is kept is called '%s'; there is: %s (see: gpushare ls)", what,
                   names);
    else
        tool_error("nothing that is kept is called '%s'; nothing is kept in %s", what,
                   view->store.path);
    free(names);
    return TOOL_FAILED;
}

static int drop(const struct view *view, const struct view_region *region, const char *what) {
    struct gps_owner self;
    gps_owner_self(&self);
    int status = gps_keeper_drop(&view->store, NULL, &region->record.id, &self, DROP_PATIENCE);
    if (status == -ENOENT)
        tool_error("'%s' is not kept any more", what);
    else if (status == -ETIMEDOUT)
        tool_error("the keeper does not answer; see: gpushare doctor");
    else if (status != 0)
        tool_error("no keeper can be reached or started: %s; see: gpushare doctor",
                   strerror(-status));
    return status == 0 ? TOOL_OK : TOOL_FAILED;
}

static int find_and_drop(struct view *view, const char *what) {
    const struct view_region *region = find_name(view, what);
    const size_t count = region ? 1 : view_find_id(view, what);
    if (count == 0)
        return not_found(view, what);
    if (count > 1) {
        tool_error("%zu regions have an id that begins with '%s'; give more of it", count, what);
        return TOOL_FAILED;
    }
    region = region ? region : first_found(view);
    if (!view_is_vmm(region)) {
        tool_error("'%s' is memory of %s (pid %u), not of the keeper: it goes when that frees it",
                   what, region->record.owner.command, region->record.owner.pid);
        return TOOL_FAILED;
    }
    return drop(view, region, what);
}

/* --- blocks --- */

static bool is_unused_block(const struct view_region *region) {
    return view_merged(region) && !view_hidden(region) && region->hold_count == 0 &&
           region->creator_holds == 0;
}

static int drop_blocks(const struct view *view) {
    size_t count = 0;
    uint64_t bytes = 0;
    int status = TOOL_OK;
    for (size_t i = 0; i < view->region_count && status == TOOL_OK; i++) {
        const struct view_region *region = &view->regions[i];
        if (!is_unused_block(region))
            continue;
        status = drop(view, region, printable_id(&region->record.id).text);
        count += status == TOOL_OK;
        bytes += status == TOOL_OK ? region->record.extent : 0;
    }
    if (count == 0)
        puts("No merged block is without a user.");
    else
        printf("Dropped %zu block%s, %s.\n", count, count == 1 ? "" : "s",
               printable_size(bytes).text);
    return status;
}

static int run_drop(const struct tool_args *args) {
    struct view view;
    const bool merged = args->values[OPTION_MERGED];
    if (merged != (args->operand_count == 0)) {
        tool_error(merged ? "a NAME or ID does not go with --merged"
                          : "a NAME or ID is missing, or --merged; see: gpushare drop --help");
        return TOOL_USAGE;
    }
    if (!view_read(&view))
        return TOOL_FAILED;
    int status = merged ? drop_blocks(&view) : find_and_drop(&view, args->operands[0]);
    view_free(&view);
    return status;
}

const struct tool_verb tool_verb_drop = {
    .name = "drop",
    .operands = "[NAME|ID]",
    .summary = "have the keeper forget a region (backing = vmm), or merged blocks",
    .details = "Nobody can open it any more. Who has it open keeps it: its memory goes with the "
               "last of them.\n"
               "With --merged, all blocks of role = merge that nobody uses go, keep or not.\n"
               "A region is given by its NAME or by the first 6 or more digits of its ID.\n",
    .options = {{"merged", 0, NULL, "drop all blocks of role = merge that nobody uses"}},
    .operands_max = 1,
    .run = run_drop,
};
