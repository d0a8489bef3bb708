#include "call_counter.h"

#include <string.h>
#include <unistd.h>

#include "util/text.h"

_Atomic uint64_t *gps_call_counter;
static struct gps_call_counters *counters; /* as the parent of a fork has mapped them */
static __typeof__(&counters->rows[0]) own;

void gps_call_counter_start(const char *name) {
    struct gps_channel *channel = gps_channel();
    if (!channel)
        return;
    counters = (struct gps_call_counters *)channel->counters;
    const uint64_t number = atomic_fetch_add(&counters->processes, 1);
    own = &counters->rows[number % GPS_CALL_ROWS];
    struct gps_text text = GPS_TEXT(own->name);
    gps_text_str(&text, name);
    own->pid = (uint64_t)getpid();
    atomic_fetch_add(&own->begun, 1);
    gps_call_counter = &own->calls;
}

void gps_call_counter_end(void) {
    if (gps_call_counter)
        atomic_fetch_sub(&own->begun, 1);
}

_Atomic uint64_t *gps_call_counter_of(const char *name) {
    for (unsigned i = 0; counters && gps_call_counter && i < GPS_CALL_UNWATCHED; i++) {
        __typeof__(&counters->unwatched[0]) row = &counters->unwatched[i];
        uint32_t state = 0;
        if (atomic_compare_exchange_strong(&row->state, &state, 1)) {
            struct gps_text text = GPS_TEXT(row->name);
            gps_text_str(&text, name);
            row->state = 2;
        }
        if (row->state == 2 && strcmp(row->name, name) == 0)
            return &row->calls;
    }
    return NULL;
}
