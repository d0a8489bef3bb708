/* unwatched.c - see unwatched.h. */
#include "unwatched.h"

#include <stdatomic.h>
#include <stdint.h>

#include "driver.h"
#include "process/call_counter.h"

enum { STUBS = 16 };
#if defined(__x86_64__)
enum { STUB_BYTES = 32 };
#else
enum { STUB_BYTES = 64 };
#endif

extern const char gps_unwatched_stubs[STUBS][STUB_BYTES];
/* Of stubs.S. A stub that is not in use leads nowhere. */
extern void *gps_unwatched_real[STUBS];
extern _Atomic uint64_t *gps_unwatched_counters[STUBS];
static _Atomic unsigned used;

static void *stub_of(const void *function) {
    const unsigned count = used < STUBS ? used : STUBS;
    for (unsigned i = 0; i < count; i++)
        if (gps_unwatched_real[i] == function)
            return (void *)gps_unwatched_stubs[i];
    return NULL;
}

/* Two threads may take two stubs for one function, which count together. */
static void *new_stub(const char *name, void *function) {
    _Atomic uint64_t *const counter = gps_call_counter_of(name);
    const unsigned at = counter ? atomic_fetch_add(&used, 1) : STUBS;
    if (at >= STUBS)
        return function;
    gps_unwatched_counters[at] = counter;
    gps_unwatched_real[at] = function;
    return (void *)gps_unwatched_stubs[at];
}

void *gps_unwatched_stand_in(const char *name, int version, void *function) {
    if (version <= CUDA_VERSION || !gps_call_counter)
        return function;
    void *const stub = stub_of(function);
    return stub ? stub : new_stub(name, function);
}
