#include "work.h"
#include "util/forgotten.h"

#include "backing.h"
#include "created.h"
#include "driver/scope.h"
#include "load.h"
#include "writable.h"

/* --- work --- */

/* After success all that the work may touch has memory. Else the thread is outside the gate. */
static int pass_in(uint64_t stream, struct gps_gate_pass *pass) {
    gps_gate_enter(pass, stream);
    if (__builtin_expect(
            atomic_load_explicit(&gps_gate_state, memory_order_relaxed) & GPS_GATE_BACK, 0)) {
        gps_gate_leave(pass);
        const int code = gps_merge_back_all();
        if (code != GPS_OK)
            return code;
        gps_gate_enter(pass, stream);
    }
    gps_streams_note(pass->slot, stream);
    return GPS_OK;
}

/* Where memory is too scarce the copy goes on: it may not need it, and the driver refuses a copy
 * from addresses without memory, which does no harm. */
static void pass_copy(uint64_t stream, struct gps_gate_pass *pass) {
    if (pass_in(stream, pass) == GPS_OK)
        return;
    gps_gate_enter(pass, stream);
    gps_streams_note(pass->slot, stream);
}

bool gps_work_begin(uint64_t stream, bool copy, struct gps_gate_pass *pass, int *code) {
    *code = GPS_OK;
    if (copy)
        pass_copy(stream, pass);
    else
        *code = pass_in(stream, pass);
    return *code == GPS_OK;
}

/* The bytes of the range that lie in the allocation in which it begins. */
static uint64_t clip(uint64_t address, uint64_t size) {
    GPS_SCOPE();
    GPS_AREAS_LOCKED();
    const struct gps_area *area = gps_area_at(address);
    if (area && !area->created && gps_area_overrun(area, address, size))
        size = address < area->pointer + area->size ? area->pointer + area->size - address : 0;
    return size;
}

bool gps_work_reads_past_end(uint64_t from, uint64_t size) {
    return clip(from, size) < size;
}

/* --- writes --- */

static void end_first(const struct gps_write *write, uint64_t count) {
    struct gps_write nth;
    for (uint64_t i = 0; i < count; i++) {
        const struct gps_write *one = gps_write_nth(write, i, &nth);
        if (one->size && gps_area_near(one->to, one->size))
            gps_writable_end(one->to, one->size);
    }
}

/* Begins to write one range near an area. Memory of cuMemCreate that the device may write at any
 * time becomes one allocation: a dma-buf has no blocks. */
static int begin_one(const struct gps_write *one, bool captured) {
    const uint64_t inside = one->rough ? clip(one->to, one->size) : 0;
    const int code = captured ? gps_created_keep_range(one->to, one->size) : GPS_OK;
    return code != GPS_OK ? code
                          : gps_writable_begin(one->to, inside ? inside : one->size,
                                               gps_write_is_upload(one), captured);
}

static int begin_all(const struct gps_write *write) {
    int code = GPS_OK;
    struct gps_write nth;
    for (uint64_t i = 0; code == GPS_OK && i < gps_write_count(write); i++) {
        const struct gps_write *one = gps_write_nth(write, i, &nth);
        if (gps_work_read_is_refused(one->source, one->reads))
            code = GPS_INVALID_VALUE;
        else if (one->size && gps_area_near(one->to, one->size))
            code = begin_one(one, write->lasting ||
                                      (write->ordered && gps_stream_is_capturing(write->stream)));
        if (code != GPS_OK)
            end_first(write, i); /* no range is written */
    }
    return code;
}

static bool touches_areas(const struct gps_write *write) {
    struct gps_write nth;
    for (uint64_t i = 0; i < gps_write_count(write); i++) {
        const struct gps_write *one = gps_write_nth(write, i, &nth);
        if (gps_area_near(one->to, one->size ? one->size : 1) || gps_area_near(one->source, 1))
            return true;
    }
    return false;
}

/* Copies from the host touch nothing but what they write. A copy of no bytes writes nothing, but
 * the driver looks for memory there. A node added to a graph gives the device no work yet. */
static bool needs_memory(const struct gps_write *write) {
    if (!write->lasting && write->kind != GPS_WRITE_UPLOAD)
        return true;
    return (write->lasting || !write->size) && touches_areas(write);
}

static void pass_write(const struct gps_write *write, struct gps_gate_pass *pass) {
    if (needs_memory(write)) {
        pass_copy(write->stream, pass);
        return;
    }
    gps_gate_enter(pass, write->stream);
    gps_streams_note(pass->slot, write->stream);
}

bool gps_work_begin_write(const struct gps_write *write, struct gps_gate_pass *pass, int *code) {
    bool pinned;
    const bool loads = gps_load_takes(write, &pinned);
    *code = loads ? gps_load(write, pinned) : begin_all(write);
    gps_work_checked(*code); /* of the work that it waits for */
    if (loads || *code != GPS_OK)
        return false;
    pass_write(write, pass);
    return true;
}

/* --- SYNC_MEMOPS --- */

static _Atomic bool any_synced;
GPS_FORGOTTEN(any_synced);

void gps_work_set_synced(uint64_t pointer, bool synced) {
    GPS_AREAS_LOCKED();
    struct gps_area *area = gps_area_at(pointer);
    if (area)
        area->synced = synced;
    if (synced)
        any_synced = true;
}

static bool is_synced(uint64_t address) {
    struct gps_area area;
    return gps_merge_find(address, &area) && area.synced;
}

/* During a capture no thread may wait for the device. */
static void wait_if_synced(const struct gps_write *write) {
    if (!any_synced || write->ordered || write->lasting || gps_streams_any_capturing() ||
        (!is_synced(write->to) && !is_synced(write->source)))
        return;
    GPS_DRIVER_SCOPE();
    gps_scope_wait(write->stream);
}

void gps_work_end_write(const struct gps_write *write, const struct gps_gate_pass *pass, int code) {
    gps_gate_leave(pass);
    end_first(write, gps_write_count(write));
    gps_work_checked(code);
    if (code == GPS_OK)
        wait_if_synced(write);
}
