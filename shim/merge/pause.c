/* pause.c - see pause.h. */
#include "pause.h"

#include <stdatomic.h>

#include "directory/paused.h"
#include "process/membership.h"
#include "process/process.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "util/text.h"

#define INTERVAL (GPS_SECOND / 10)

static struct {
    _Atomic bool on;
    uint64_t next; /* not before this */
    _Atomic bool ending, ended;
    char function[64];
} state;
GPS_FORGOTTEN(state);

void gps_pause_look(void) {
    const struct gps_store *store = gps_membership_store();
    const uint64_t now = gps_clock_monotonic();
    if (!store || now < state.next)
        return;
    state.next = now + INTERVAL;
    state.on = gps_paused_get(store, gps_process_self());
}

bool gps_pause_is_on(void) {
    return atomic_load_explicit(&state.on, memory_order_relaxed) || gps_pause_function();
}

void gps_pause_for_good(const char *function) {
    struct gps_text text = GPS_TEXT(state.function);
    if (atomic_exchange(&state.ending, true))
        return;
    gps_text_str(&text, function);
    state.ended = true;
}

const char *gps_pause_function(void) {
    return atomic_load_explicit(&state.ended, memory_order_acquire) ? state.function : NULL;
}
