/* private_bytes.c - see private_bytes.h. */
#include "private_bytes.h"

#include <string.h>

/* Another process of its program has blocks on the GPU. */
static bool has_company(const struct view *view, const struct gps_owner *owner,
                        const uint8_t *device) {
    for (size_t i = 0; i < view->hold_count; i++) {
        const struct view_hold *hold = &view->holds[i];
        if (hold->region && view_merged(hold->region) && !gps_owner_equal(&hold->owner, owner) &&
            strcmp(hold->owner.command, owner->command) == 0 &&
            memcmp(hold->region->record.device, device, GPS_UUID_BYTES) == 0)
            return true;
    }
    return false;
}

static bool is_alone(const struct view_region *region, const struct gps_owner *owner) {
    const size_t count = region->hold_count + region->creator_holds;
    for (size_t i = 0; i < count; i++)
        if (!gps_owner_equal(&region->holds[i].owner, owner))
            return false;
    return count > 0;
}

/* Few GPUs follow each other in the list, so the answer for the last one is kept. */
static uint64_t apart(const struct view *view, const struct gps_owner *owner) {
    const uint8_t *device = NULL;
    bool company = false;
    uint64_t bytes = 0;
    for (size_t i = 0; i < view->region_count; i++) {
        const struct view_region *region = &view->regions[i];
        if (!view_merged(region) || !is_alone(region, owner))
            continue;
        if (!device || memcmp(device, region->record.device, GPS_UUID_BYTES) != 0)
            company = has_company(view, owner, device = region->record.device);
        bytes += company ? region->record.extent : 0;
    }
    return bytes;
}

struct private_bytes private_bytes_of(const struct view *view, const struct gps_owner *owner) {
    struct private_bytes sum = {{0}};
    for (size_t i = 0; i < view->hold_count; i++) {
        const struct gps_slot *slot = &view->holds[i].slot;
        if (slot->via == GPS_VIA_PRIVATE && slot->generation < GPS_PRIVATE_APART &&
            gps_owner_equal(&view->holds[i].owner, owner))
            sum.bytes[slot->generation] += slot->address;
    }
    sum.bytes[GPS_PRIVATE_APART] = apart(view, owner);
    return sum;
}

json_t *private_bytes_json(const struct view *view, const struct gps_owner *owner) {
    const struct private_bytes sum = private_bytes_of(view, owner);
    json_t *array = json_tree_pack("[]");
    for (enum gps_private why = 0; why < GPS_PRIVATE_COUNT; why++)
        if (sum.bytes[why] > 0)
            json_tree_append(array, json_tree_pack("{s:s, s:I}", "reason", gps_private_name(why),
                                                   "bytes", (json_int_t)sum.bytes[why]));
    return array;
}
