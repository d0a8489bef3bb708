#include "write.h"

#include "driver/driver_ops.h"
#include "util/forgotten.h"

enum { MOST = 4 };

unsigned gps_write_listeners;
GPS_FORGOTTEN(gps_write_listeners);
bool gps_write_all;
GPS_FORGOTTEN(gps_write_all);
static struct {
    gps_write_begin_fn *begins[MOST];
    gps_write_end_fn *ends[MOST];
    unsigned count;
    gps_write_refused_fn *refused;
} state;
GPS_FORGOTTEN(state);

bool gps_write_is_upload(const struct gps_write *one) {
    if (one->kind != GPS_WRITE_ANY)
        return one->kind == GPS_WRITE_UPLOAD;
    const enum gps_memory_kind kind = gps_ops->kind((uintptr_t)one->from);
    return kind == GPS_MEMORY_HOST || kind == GPS_MEMORY_UNKNOWN;
}

/* --- the listeners --- */

void gps_write_listen(gps_write_begin_fn *begin, gps_write_end_fn *end,
                      enum gps_write_heard heard) {
    if (state.count == MOST)
        return;
    state.begins[state.count] = begin;
    state.ends[state.count++] = end;
    gps_write_all |= heard == GPS_WRITE_ALL;
    gps_write_listeners++;
}

void gps_write_listen_refused(gps_write_refused_fn *refused) {
    state.refused = refused;
    gps_write_listeners++;
}

void gps_write_hear_all(void) {
    __atomic_store_n(&gps_write_all, true, __ATOMIC_RELAXED);
}

/* Who adds a node to a graph needs no context. */
static int refusal(const struct gps_write *write, int code) {
    const bool needs_context = write->ordered || !write->lasting;
    return code == GPS_INVALID_VALUE && needs_context ? gps_refusal_code() : code;
}

bool gps_write_begin(const struct gps_write *write, struct gps_gate_pass *pass, int *code) {
    unsigned i = 0;
    while (i < state.count && state.begins[i](write, pass, code))
        i++;
    if (i < state.count)
        *code = refusal(write, *code);
    return i == state.count;
}

void gps_write_end(const struct gps_write *write, const struct gps_gate_pass *pass, int code) {
    for (unsigned i = state.count; i-- > 0;)
        if (state.ends[i])
            state.ends[i](write, pass, code);
    if (code != GPS_OK)
        gps_write_refused(write, code);
}

void gps_write_refused(const struct gps_write *write, int code) {
    if (state.refused)
        state.refused(write, code);
}
