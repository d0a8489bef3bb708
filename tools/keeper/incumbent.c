/*
 * incumbent.c - which process serves: published in the first slot of the keeper's file in procs/.
 *
 * The keeper, its stand-by and theirs are one family. Another keeper that takes their place goes on
 * under the same name, with the same file: then the slot has its family.
 */
#include "keeper_state.h"

#include <string.h>

#include "util/clock.h"

void incumbent_begin(struct keeper *keeper) {
    const uint64_t random[] = {gps_random(), gps_random()};
    gps_owner_self(&keeper->self);
    memcpy(keeper->family.bytes, random, sizeof(keeper->family.bytes));
}

int incumbent_yield(struct keeper *keeper, const struct gps_id *family,
                    const struct gps_owner *server) {
    struct gps_slot slot = {.region = *family,
                            .address = server->pid,
                            .since = server->pid_ns,
                            .state = GPS_SLOT_OPEN,
                            .via = GPS_VIA_KEEPER,
                            .generation = server->start,
                            .reserved = (uint64_t)keeper->standby};
    gps_slot_seal(&slot);
    return gps_lease_write(&keeper->lease, 0, &slot);
}

void incumbent_publish(struct keeper *keeper) {
    gps_owner_self(&keeper->self);
    incumbent_yield(keeper, &keeper->family, &keeper->self);
}

bool incumbent_is_ours(const struct keeper *keeper) {
    struct gps_slot slot;
    const ssize_t n = gps_file_read(keeper->lease.lock_fd, &slot, sizeof(slot),
                                    (off_t)sizeof(struct gps_proc_header));
    return n == (ssize_t)sizeof(slot) && gps_id_equal(&slot.region, &keeper->family);
}
