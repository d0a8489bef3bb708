#include "resolved.h"

#include <stdint.h>
#include <string.h>

#include "chain.h"
#include "doors/resolver.h"

/* Sorted by the names that resolvers take. No pointers: they would be relocated. */
static const struct row {
    char name[GPS_HOOK_NAME];
    uint16_t slot, flags;
    int version;
} rows[] = {
#define RESOLVED(function, name, version, flags)                                                   \
    {name, offsetof(struct gps_real, function) / sizeof(void *), flags, version},
#include <resolved.inc> /* of the build */
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static const char nothing; /* its address stands for "no answer" */
static const void *_Atomic answers[2][ROWS];

static size_t resolved_row_first(const char *name) {
    size_t from = 0, to = ROWS;
    while (from < to) {
        const size_t middle = (from + to) / 2;
        if (strcmp(rows[middle].name, name) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

void *gps_resolved_by_driver(enum gps_resolver_version resolver, const char *name, int version,
                             cuuint64_t flags) {
    const struct gps_real *const driver = gps_chain_own();
    CUdriverProcAddressQueryResult status;
    void *found = NULL;
    const CUresult result =
        resolver == GPS_RESOLVER_V1
            ? driver->cuGetProcAddress(name, &found, version, flags)
            : driver->cuGetProcAddress_v2(name, &found, version, flags, &status);
    return result == CUDA_SUCCESS ? found : NULL;
}

static const void *resolved_answer(enum gps_resolver_version resolver, size_t row) {
    const void *_Atomic *const place = &answers[resolver][row];
    if (!*place) {
        const void *const found =
            gps_resolved_by_driver(resolver, rows[row].name, rows[row].version, rows[row].flags);
        *place = found ? found : &nothing;
    }
    return *place;
}

static void resolved_slot_fill(void **slot, void *address) {
    void *empty = NULL;
    __atomic_compare_exchange_n(slot, &empty, address, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

int gps_resolved_slot(enum gps_resolver_version resolver, const char *name, void *address) {
    for (size_t i = resolved_row_first(name); i < ROWS && strcmp(rows[i].name, name) == 0; i++)
        if (resolved_answer(resolver, i) == address) {
            resolved_slot_fill((void **)&gps_real + rows[i].slot, address);
            if (gps_chain_driver)
                resolved_slot_fill((void **)gps_chain_driver + rows[i].slot, address);
            return rows[i].slot;
        }
    return -1;
}
