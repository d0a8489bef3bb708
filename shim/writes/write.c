/* write.c - see write.h. */
#include "write.h"

#include "driver/driver_ops.h"

enum { MOST = 4 };

unsigned gps_write_listeners;
static const struct gps_write_listener *listeners[MOST];

/* --- the ranges --- */

uint64_t gps_write_count(const struct gps_write *write) {
    return write->list ? write->count : 1;
}

struct gps_write gps_write_nth(const struct gps_write *write, uint64_t n) {
    struct gps_write one = *write;
    if (write->list)
        write->range(&one, n);
    else if (write->rows > 1)
        one.size += (write->rows - 1) * write->pitch;
    return one;
}

bool gps_write_is_upload(const struct gps_write *one) {
    if (one->kind != GPS_WRITE_ANY)
        return one->kind == GPS_WRITE_UPLOAD;
    const enum gps_memory_kind kind = gps_ops->kind((uintptr_t)one->from);
    return kind == GPS_MEMORY_HOST || kind == GPS_MEMORY_UNKNOWN;
}

/* --- the listeners --- */

void gps_write_listen(const struct gps_write_listener *listener) {
    if (gps_write_listeners < MOST)
        listeners[gps_write_listeners++] = listener;
}

static void end_first(unsigned count, const struct gps_write *write,
                      const struct gps_gate_pass *pass, int code) {
    while (count-- > 0)
        if (listeners[count]->end)
            listeners[count]->end(write, pass, code);
}

bool gps_write_begin(const struct gps_write *write, struct gps_gate_pass *pass, int *code) {
    for (unsigned i = 0; i < gps_write_listeners; i++) {
        if (!listeners[i]->begin || listeners[i]->begin(write, pass, code))
            continue;
        end_first(i, write, pass, *code);
        return false;
    }
    return true;
}

void gps_write_end(const struct gps_write *write, const struct gps_gate_pass *pass, int code) {
    end_first(gps_write_listeners, write, pass, code);
}

void gps_write_reset(void) {
    gps_write_listeners = 0;
}
