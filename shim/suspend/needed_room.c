#include "needed_room.h"

#include <string.h>
#include <sys/param.h>

#include "driver/driver_ops.h"
#include "merge/eviction.h"
#include "registry/context_table.h"
#include "registry/registry.h"
#include "registry/vmm_books.h"
#include "vmm/mapping.h"

/* The margin for a context's unknown memory: its own, modules, arrays. An empty one has 0.5 GiB at
 * most on an H200 (docs/suspend.md). */
#define CONTEXT (UINT64_C(1) << 30)
/* At most one part in so many of the card: on a small card the margin would be all of it. */
#define SHARE_OF_CARD 16

/* --- what the process has --- */

static int gpus(void) {
    int count = 0;
    return gps_ops->device_count(&count) == GPS_OK ? count : 0;
}

/* The contexts on a GPU; -1: not known. */
static int contexts_on(int device, uint64_t *one) {
    const int count = gps_context_table_count(device, one);
    return count == 0 && device < GPS_VMM_GPUS && gps_vmm_bytes(device) ? 1 : count;
}

int gps_needed_room_gpus(void) {
    uint64_t one;
    int used = 0;
    for (int device = 0, all = gpus(); device < all; device++) {
        const int contexts = contexts_on(device, &one);
        if (contexts < 0)
            return -1;
        used += contexts > 0;
    }
    return used;
}

static uint64_t mapped_bytes(void) {
    struct gps_mapping vmm = {.pointer = 0};
    uint64_t sum = 0;
    while (gps_mapping_next(&vmm))
        sum += gps_mapping_is_shared(&vmm) ? 0 : vmm.extent;
    for (int device = 0; device < GPS_VMM_GPUS; device++)
        sum += gps_vmm_bytes(device);
    return sum;
}

/* A device's memory, in bytes: in the pools of this process, free, and in all. */
struct figures {
    uint64_t pools, available, total;
};
static struct figures figures_ask(uint64_t context) {
    struct figures here = {0};
    if (!context || gps_ops->enter(context) != GPS_OK)
        return here;
    if (gps_ops->pool_has(&here.pools) != GPS_OK)
        here.pools = 0;
    if (gps_ops->memory(&here.available, &here.total) != GPS_OK)
        here.available = here.total = 0;
    gps_ops->leave();
    return here;
}

/* The margin is never above the free memory: the process fits into its own and what was free. */
static uint64_t margin(int contexts, const struct figures *here) {
    return MIN(MIN((uint64_t)contexts * CONTEXT, here->total / SHARE_OF_CARD), here->available);
}

void gps_needed_room_measure(struct gps_answer_file *answer) {
    uint64_t one, spare = 0;
    answer->own = gps_registry_bytes() + gps_eviction_own_bytes() + mapped_bytes();
    memset(answer->device, 0, sizeof(answer->device));
    for (int device = 0, all = gpus(); device < all; device++) {
        const int contexts = contexts_on(device, &one);
        if (contexts <= 0)
            continue;
        const struct figures here = figures_ask(one);
        answer->own += here.pools;
        spare += margin(contexts, &here);
        (void)gps_ops->uuid(device, answer->device);
    }
    answer->own = gps_area_extent(answer->own);
    answer->needs = answer->own + spare;
}
