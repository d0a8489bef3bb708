/* plain.c - see plain.h. */
#include "plain.h"

#include <stdatomic.h>

#include "allocation.h"
#include "created.h"
#include "driver/scope.h"
#include "log/log.h"
#include "unmerge.h"
#include "unmerged.h"
#include "util/forgotten.h"
#include "util/text.h"

static struct { _Atomic bool made, complained; } state;
GPS_FORGOTTEN(state);

static void end_merging(const char *function) {
    GPS_SCOPE();
    gps_pause_for_good(function);
    gps_unmerged_set(GPS_UNMERGED_UNKNOWN);
}

/* The next allocation from an address on. */
static bool find(uint64_t from, uint64_t *pointer, uint64_t *size) {
    GPS_SCOPE();
    GPS_AREAS_LOCKED();
    const struct gps_area *area = gps_area_from(from);
    if (area) {
        *pointer = area->pointer;
        *size = area->size;
    }
    return area;
}

/* For good. */
static int make(uint64_t pointer, uint64_t size) {
    int code = gps_created_keep_range(pointer, size);
    if (code == GPS_OK)
        code = gps_unmerge_begin(pointer, size, false, true);
    if (code == GPS_OK)
        gps_unmerge_end(pointer, size);
    return code;
}

static bool make_all(void) {
    uint64_t pointer, size, from = 0;
    bool all = true;
    for (; find(from, &pointer, &size); from = pointer + size)
        all &= make(pointer, size) == GPS_OK;
    return all;
}

/* The function is not ours to refuse, for nobody knows how it says so. */
static void complain(const char *function) {
    char message[256];
    struct gps_text text = GPS_TEXT(message);
    if (atomic_exchange(&state.complained, true))
        return;
    gps_text_strs(&text, function, " runs though memory is still merged: the GPU has no room to ",
                  "give this process its own");
    GPS_SCOPE();
    gps_log_notice(GPS_LEVEL_WARNING, message);
}

void gps_plain_make(const char *function, bool surely) {
    if (state.made) { /* what another thread allocated meanwhile may have no memory yet */
        if (gps_gate_state & GPS_GATE_BACK)
            gps_merge_back_all();
        return;
    }
    if (!surely && !gps_area_any())
        return;
    end_merging(function);
    state.made = make_all();
    if (!state.made)
        complain(function);
}
