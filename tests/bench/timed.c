/*
 * timed.c - how long each function of shim/merge/load.c takes, what it calls included: the object
 * is compiled with -finstrument-functions for a library that tests/gpu/replicas_loads.py preloads.
 *
 * At the end of a process with TIMED_LOADS=FOLDER the file FOLDER/PID has a line for each function:
 * its offset in the library, how often it was called, and nanoseconds.
 */
#include "../common/system_headers.h"

#include <inttypes.h>

enum { FUNCTIONS = 128, DEEP = 64 };
#define PLAIN __attribute__((no_instrument_function))

static struct {
    _Atomic uintptr_t function;
    _Atomic uint64_t calls, ns;
} totals[FUNCTIONS];
static _Thread_local struct {
    uint64_t begun[DEEP];
    unsigned depth;
} calls;

PLAIN static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

PLAIN static unsigned place_of(uintptr_t function) {
    for (unsigned i = 0; i < FUNCTIONS - 1; i++) {
        uintptr_t none = 0;
        if (atomic_load(&totals[i].function) == function ||
            atomic_compare_exchange_strong(&totals[i].function, &none, function) ||
            none == function)
            return i;
    }
    return FUNCTIONS - 1;
}

PLAIN void __cyg_profile_func_enter(void *function, void *caller);
PLAIN void __cyg_profile_func_exit(void *function, void *caller);

void __cyg_profile_func_enter(void *function, void *caller) {
    (void)function, (void)caller;
    if (calls.depth < DEEP)
        calls.begun[calls.depth] = now();
    calls.depth++;
}

void __cyg_profile_func_exit(void *function, void *caller) {
    (void)caller;
    if (--calls.depth >= DEEP)
        return;
    const unsigned place = place_of((uintptr_t)function);
    atomic_fetch_add(&totals[place].ns, now() - calls.begun[calls.depth]);
    atomic_fetch_add(&totals[place].calls, 1);
}

PLAIN static void __attribute__((destructor)) write_totals(void) {
    const char *folder = getenv("TIMED_LOADS");
    Dl_info library;
    char path[512];
    if (!folder || !totals[0].function || !dladdr(__cyg_profile_func_enter, &library))
        return;
    snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid());
    FILE *file = fopen(path, "w");
    for (unsigned i = 0; file && i < FUNCTIONS && totals[i].function; i++)
        fprintf(file, "%" PRIxPTR " %" PRIu64 " %" PRIu64 "\n",
                totals[i].function - (uintptr_t)library.dli_fbase, totals[i].calls, totals[i].ns);
    if (file)
        fclose(file);
}
