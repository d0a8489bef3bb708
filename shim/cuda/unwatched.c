#include "unwatched.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>

#include "calls/entry.h"
#include "calls/launches.h"
#include "operations.h"
#include "process/call_counter.h"
#include "stack/call.h"
#include "util/text.h"

enum { STUBS = 128, STUB_BYTES = 16 }; /* as stubs.S has them */
extern const char gps_unwatched_stubs[STUBS][STUB_BYTES];
extern void *(*gps_unwatched_call)(unsigned n);

/* A stub that is not in use leads nowhere. */
static struct {
    void *_Atomic real;
    _Atomic uint64_t *counter; /* NULL: no audit counts */
    char name[GPS_UNKNOWN_NAME];
} stubs[STUBS];
static _Atomic unsigned used;

/* Stub number n is called. Returns where to go on. */
static void *called(unsigned n) {
    const int error = errno;
    struct gps_counted_call counted __attribute__((cleanup(gps_call_end)));
    if (gps_entry_enter(gps_operations_enter, &counted)) {
        gps_call_enter(stubs[n].name, (struct gps_site){NULL, NULL});
        if (stubs[n].counter)
            atomic_fetch_add_explicit(stubs[n].counter, 1, memory_order_relaxed);
        gps_unknown_begins(stubs[n].name, false);
        gps_call_leave();
    }
    errno = error;
    return stubs[n].real;
}

static void *stub_of(const void *function) {
    for (unsigned i = 0; i < used; i++)
        if (stubs[i].real == function)
            return (void *)gps_unwatched_stubs[i];
    return NULL;
}

/* Makes a stub. Two threads may take two stubs for one function, which count together. */
static void *new_stub(const char *name, void *function) {
    unsigned at = used;
    do {
        if (at >= STUBS) {
            gps_unknown_begins(name, true);
            return function;
        }
    } while (!atomic_compare_exchange_weak(&used, &at, at + 1));
    struct gps_text text = GPS_TEXT(stubs[at].name);
    gps_text_str(&text, name);
    stubs[at].counter = gps_call_counter_of(name);
    gps_unwatched_call = called;
    stubs[at].real = function;
    return (void *)gps_unwatched_stubs[at];
}

void *gps_unwatched_stand_in(const char *name, void *function) {
    if (!gps_entry_hooks(GPS_HOOKED_WORK, gps_operations_enter) && !gps_call_counter)
        return function;
    void *const stub = stub_of(function);
    return stub ? stub : new_stub(name, function);
}
