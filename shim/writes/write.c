/* write.c - see write.h. */
#include "write.h"

#include "driver/driver_ops.h"
#include "util/forgotten.h"

enum { MOST = 4 };

unsigned gps_write_listeners;
GPS_FORGOTTEN(gps_write_listeners);
static struct {
    gps_write_begin_fn *begins[MOST + 1]; /* both end with NULL */
    gps_write_end_fn *ends[MOST + 1];
} state;
GPS_FORGOTTEN(state);

bool gps_write_is_upload(const struct gps_write *one) {
    if (one->kind != GPS_WRITE_ANY)
        return one->kind == GPS_WRITE_UPLOAD;
    const enum gps_memory_kind kind = gps_ops->kind((uintptr_t)one->from);
    return kind == GPS_MEMORY_HOST || kind == GPS_MEMORY_UNKNOWN;
}

/* --- the listeners --- */

void gps_write_listen(gps_write_begin_fn *begin, gps_write_end_fn *end) {
    unsigned count = 0;
    if (gps_write_listeners == MOST)
        return;
    gps_write_listeners++;
    while (state.begins[count])
        count++;
    state.begins[count] = begin;
    if (!end)
        return;
    for (unsigned i = MOST - 1; i > 0; i--)
        state.ends[i] = state.ends[i - 1];
    state.ends[0] = end;
}

bool gps_write_begin(const struct gps_write *write, struct gps_gate_pass *pass, int *code) {
    for (gps_write_begin_fn *const *begin = state.begins; *begin; begin++)
        if (!(*begin)(write, pass, code))
            return false;
    return true;
}

void gps_write_end(const struct gps_write *write, const struct gps_gate_pass *pass, int code) {
    for (gps_write_end_fn *const *end = state.ends; *end; end++)
        (*end)(write, pass, code);
}
