/*
 * merged.c - what merge rules save: the blocks of each GPU, and those of each process.
 */
#include "merged.h"

#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "cli/tool.h"
#include "view_format.h"

/* The sums of one GPU. */
struct gpu {
    const uint8_t *device; /* UUID */
    size_t blocks, unused_blocks, processes;
    uint64_t held; /* bytes of the blocks */
    uint64_t unused;
    struct merged_part all; /* of all processes together */
};

static bool is_shown(const struct view_region *region) {
    return view_merged(region) && !view_hidden(region);
}

/* How often it is mapped: by `owner`, or by all when that is NULL. */
static size_t mappings(const struct view_region *region, const struct gps_owner *owner) {
    size_t count = 0;
    for (size_t i = 0; i < region->hold_count + region->creator_holds; i++)
        count += region->holds[i].slot.state == GPS_SLOT_OPEN &&
                 (!owner || gps_owner_equal(&region->holds[i].owner, owner));
    return count;
}

static bool is_on(const uint8_t *device, const void *uuid) {
    return !device || memcmp(device, uuid, GPS_UUID_BYTES) == 0;
}

static void add_block(const struct view_region *region, size_t mine, struct merged_part *part) {
    const size_t all = mine ? mappings(region, NULL) : 0;
    part->blocks += mine;
    part->mapped += mine * region->record.extent;
    part->saved += mine ? mine * (region->record.extent / all * (all - 1)) : 0;
}

struct merged_part merged_part(const struct view *view, const struct gps_owner *owner,
                               const uint8_t device[GPS_UUID_BYTES]) {
    struct merged_part part = {0};
    for (size_t i = 0; i < view->region_count; i++) {
        const struct view_region *region = &view->regions[i];
        if (is_shown(region) && is_on(device, region->record.device))
            add_block(region, mappings(region, owner), &part);
    }
    for (size_t i = 0; i < view->hold_count; i++) {
        const struct gps_slot *slot = &view->holds[i].slot;
        if (slot->via == GPS_VIA_OWN && is_on(device, &slot->region) &&
            gps_owner_equal(&view->holds[i].owner, owner))
            part.own += slot->address;
    }
    return part;
}

/* --- the GPUs --- */

struct gpus {
    struct gpu *list;
    size_t count;
};

static struct gpu *find(struct gpus *gpus, const void *device) {
    for (size_t i = 0; i < gpus->count; i++)
        if (is_on(device, gpus->list[i].device))
            return &gpus->list[i];
    gpus->list = tool_grow(gpus->list, gpus->count, sizeof(*gpus->list));
    gpus->list[gpus->count] = (struct gpu){.device = device};
    return &gpus->list[gpus->count++];
}

static void add_process(const struct view *view, const struct gps_owner *owner, struct gpu *gpu) {
    const struct merged_part part = merged_part(view, owner, gpu->device);
    gpu->processes += part.blocks > 0 || part.own > 0;
    gpu->all.mapped += part.mapped;
    gpu->all.own += part.own;
}

static struct gpus collect(const struct view *view) {
    struct gpus gpus = {0};
    for (size_t i = 0; i < view->region_count; i++) {
        const struct view_region *region = &view->regions[i];
        if (!is_shown(region))
            continue;
        struct gpu *gpu = find(&gpus, region->record.device);
        const bool used = mappings(region, NULL) > 0;
        gpu->blocks++;
        gpu->held += region->record.extent;
        gpu->unused_blocks += !used;
        gpu->unused += used ? 0 : region->record.extent;
    }
    for (size_t i = 0; i < view->hold_count; i++)
        if (view->holds[i].slot.via == GPS_VIA_OWN && view->holds[i].slot.address > 0)
            find(&gpus, &view->holds[i].slot.region);
    for (size_t g = 0; g < gpus.count; g++) {
        struct gpu *gpu = &gpus.list[g];
        for (size_t i = 0; i < view->process_count; i++)
            add_process(view, &view->processes[i].owner, gpu);
        gpu->all.saved = gpu->all.mapped - (gpu->held - gpu->unused);
    }
    return gpus;
}

/* --- output --- */

size_t merged_print(const struct view *view, const char *before) {
    static const struct table_column columns[] = {{"GPU", 0},    {"BLOCKS", 1},    {"HELD", 1},
                                                  {"UNUSED", 1}, {"PROCESSES", 1}, {"MAPPED", 1},
                                                  {"SAVED", 1},  {"OWN", 1}};
    struct table table = TABLE(columns);
    struct gpus gpus = collect(view);
    for (size_t i = 0; i < gpus.count; i++) {
        const struct gpu *gpu = &gpus.list[i];
        table_cell(&table, TERM_PLAIN, "%.12s", printable_uuid(gpu->device).text);
        table_cell(&table, TERM_PLAIN, "%zu", gpu->blocks);
        table_cell(&table, TERM_PLAIN, "%s", printable_size(gpu->held).text);
        table_cell(&table, TERM_PLAIN, "%s", printable_size(gpu->unused).text);
        table_cell(&table, TERM_PLAIN, "%zu", gpu->processes);
        table_cell(&table, TERM_PLAIN, "%s", printable_size(gpu->all.mapped).text);
        table_cell(&table, TERM_GREEN, "%s", printable_size(gpu->all.saved).text);
        table_cell(&table, TERM_PLAIN, "%s", printable_size(gpu->all.own).text);
    }
    if (gpus.count > 0) {
        printf("%sMerged blocks:\n", before);
        table_print(stdout, &table, "");
    }
    free(gpus.list);
    return gpus.count;
}

static json_t *users(const struct view *view, const struct gpu *gpu) {
    json_t *array = json_tree_pack("[]");
    for (size_t i = 0; i < view->process_count; i++) {
        const struct gps_owner *owner = &view->processes[i].owner;
        const struct merged_part part = merged_part(view, owner, gpu->device);
        if (part.blocks == 0 && part.own == 0)
            continue;
        json_t *user = view_format_owner_json(owner);
        json_tree_add(user, "{s:I, s:I, s:I}", "mapped", (json_int_t)part.mapped, "saved",
                      (json_int_t)part.saved, "own", (json_int_t)part.own);
        json_tree_append(array, user);
    }
    return array;
}

void merged_append(const struct view *view, json_t *array) {
    struct gpus gpus = collect(view);
    for (size_t i = 0; i < gpus.count; i++) {
        const struct gpu *gpu = &gpus.list[i];
        json_tree_append(
            array, json_tree_pack(
                       "{s:n, s:n, s:I, s:s, s:s, s:s, s:n, s:o, s:n, s:I, s:I, s:I, s:I, s:I}",
                       "id", "name", "size", (json_int_t)gpu->held, "device",
                       printable_uuid(gpu->device).text, "state", "merged", "backing", "vmm",
                       "owner", "users", users(view, gpu), "age", "blocks", (json_int_t)gpu->blocks,
                       "unused", (json_int_t)gpu->unused, "mapped", (json_int_t)gpu->all.mapped,
                       "saved", (json_int_t)gpu->all.saved, "own", (json_int_t)gpu->all.own));
    }
    free(gpus.list);
}
