/*
 * drop.c - `gpushare drop`: has the keeper forget a region.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/tool.h"
#include "directory/lease.h"
#include "keeper/keeper_client.h"
#include "view.h"

#define DROP_PATIENCE (UINT64_C(10) * 1000000000)
#define DROP_ID       6 /* digits, at least */
#define DROP_KNOWN    8 /* listed in a message */

static bool is_kept(const struct view_region *region) {
    return region->record.backing == GPS_BACKING_VMM;
}

static bool fits_id(const struct view_region *region, const char *what) {
    char id[GPS_ID_HEX];
    size_t length = strlen(what);
    gps_id_format(&region->record.id, id);
    return length >= DROP_ID && strncmp(id, what, length) == 0;
}

/* Of several with that name, the one that is kept. */
static const struct view_region *find_name(const struct view *view, const char *name) {
    const struct view_region *found = NULL;
    for (size_t i = 0; i < view->region_count; i++)
        if (strcmp(view->regions[i].record.name, name) == 0 &&
            (!found || is_kept(&view->regions[i])))
            found = &view->regions[i];
    return found;
}

/* *count: how many have an id that begins so. */
static const struct view_region *find_id(const struct view *view, const char *what, size_t *count) {
    const struct view_region *found = NULL;
    for (size_t i = 0; i < view->region_count; i++) {
        if (!fits_id(&view->regions[i], what))
            continue;
        found = &view->regions[i];
        ++*count;
    }
    return found;
}

static int not_found(const struct view *view, const char *what) {
    char known[DROP_KNOWN * (GPS_NAME_BYTES + 4)] = "";
    size_t length = 0, count = 0;
    for (size_t i = 0; i < view->region_count && count < DROP_KNOWN; i++) {
        char id[GPS_ID_HEX];
        const char *name = view->regions[i].record.name;
        if (!is_kept(&view->regions[i]))
            continue;
        gps_id_format(&view->regions[i].record.id, id);
        id[8] = 0;
        length += (size_t)snprintf(known + length, sizeof(known) - length, "%s%s",
                                   count++ ? ", " : "", name[0] != 0 ? name : id);
    }
    if (count > 0)
        tool_error("nothing that is kept is called '%s'; there is: %s (see: gpushare ls)", what,
                   known);
    else
        tool_error("nothing that is kept is called '%s'; nothing is kept in %s", what,
                   view->store.path);
    return TOOL_FAILED;
}

static int drop(const struct view *view, const struct view_region *region, const char *what) {
    struct gps_owner self;
    gps_owner_self(&self);
    int error = gps_keeper_drop(&view->store, NULL, &region->record.id, &self, DROP_PATIENCE);
    switch (error) {
    case 0:
        return TOOL_OK;
    case -ENOENT:
        tool_error("'%s' is not kept any more", what);
        return TOOL_FAILED;
    case -ETIMEDOUT:
        tool_error("the keeper does not answer; see: gpushare doctor");
        return TOOL_FAILED;
    default:
        tool_error("no keeper can be reached or started: %s; see: gpushare doctor",
                   strerror(-error));
        return TOOL_FAILED;
    }
}

static int judge(const struct view *view, const char *what) {
    size_t count = 0;
    const struct view_region *region = find_name(view, what);
    if (!region)
        region = find_id(view, what, &count);
    if (!region)
        return not_found(view, what);
    if (count > 1) {
        tool_error("%zu regions have an id that begins with '%s'; give more of it", count, what);
        return TOOL_FAILED;
    }
    if (!is_kept(region)) {
        tool_error("'%s' is memory of %s (pid %u), not of the keeper: it goes when that frees it",
                   what, region->record.owner.command, region->record.owner.pid);
        return TOOL_FAILED;
    }
    return drop(view, region, what);
}

static int run_drop(const struct tool_args *args) {
    struct view view;
    if (!view_read(&view))
        return TOOL_FAILED;
    int status = judge(&view, args->operands[0]);
    view_free(&view);
    return status;
}

const struct tool_verb tool_verb_drop = {
    .name = "drop",
    .operands = "NAME|ID",
    .summary = "have the keeper forget a region (backing = vmm)",
    .details = "Nobody can open it any more. Who has it open keeps it: its memory goes with the "
               "last of them.\n"
               "A region is given by its NAME or by the first 6 or more digits of its ID.\n",
    .operands_min = 1,
    .operands_max = 1,
    .usage_status = TOOL_USAGE,
    .run = run_drop,
};
