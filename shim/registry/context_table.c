#include "context_table.h"

#include <stdatomic.h>

#include "driver/driver_ops.h"
#include "util/forgotten.h"

enum { MOST = 256 };

static struct {
    struct entry {
        _Atomic uint64_t context; /* 0: free */
        _Atomic int device;
    } list[MOST];
    _Atomic bool full;
} state;
GPS_FORGOTTEN(state);

void gps_context_table_add(uint64_t context, int device) {
    for (unsigned i = 0; i < MOST; i++) {
        struct entry *entry = &state.list[i];
        uint64_t free = 0;
        if (!atomic_compare_exchange_strong(&entry->context, &free, context))
            continue;
        atomic_store(&entry->device, device);
        return;
    }
    atomic_store(&state.full, true);
}

void gps_context_table_remove(uint64_t context) {
    for (unsigned i = 0; i < MOST; i++) {
        uint64_t expected = context;
        atomic_compare_exchange_strong(&state.list[i].context, &expected, 0);
    }
}

int gps_context_table_count(int device, uint64_t *one) {
    const uint64_t primary = gps_ops->primary(device);
    int count = primary != 0;
    *one = primary;
    for (unsigned i = 0; i < MOST; i++) {
        const uint64_t context = atomic_load(&state.list[i].context);
        if (!context || atomic_load(&state.list[i].device) != device)
            continue;
        *one = *one ? *one : context;
        count++;
    }
    return atomic_load(&state.full) ? -1 : count;
}
