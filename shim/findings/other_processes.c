#include "other_processes.h"

#include <string.h>

#include "directory/processes.h"
#include "directory/region.h"
#include "process/membership.h"
#include "process/process.h"

static bool note_other(void *arg, const struct gps_proc *proc) {
    const struct gps_owner *other = &proc->header.owner, *self = gps_process_self();
    struct gps_other_processes *others = arg;
    if (!proc->alive || gps_process_is_self(other))
        return true;
    others->has_our_pid |= other->pid == self->pid && other->pid_ns != self->pid_ns;
    others->has_other_shm |= gps_proc_has_other_shm(proc);
    others->may_export |= strcmp(other->command, "gpushare") != 0;
    return true;
}

struct gps_other_processes gps_other_processes_look(void) {
    struct gps_other_processes others = {0};
    gps_membership_join();
    const struct gps_store *store = gps_membership_store();
    if (!store || gps_proc_each(store, note_other, &others) < 0)
        return (struct gps_other_processes){.may_export = true};
    return others;
}

/* --- handles that look alike --- */

static bool likeness_compare(void *arg, const struct gps_region_record *record, int status,
                             const char *why) {
    struct gps_likeness *like = arg;
    unsigned first = 0, last = 0;
    (void)why;
    if (status != 0 || record->backing == GPS_BACKING_PLACE) /* a place is no handle */
        return --like->left;
    while (first < GPS_HANDLE_BYTES && record->handle[first] == like->handle[first])
        first++;
    while (last < GPS_HANDLE_BYTES &&
           record->handle[GPS_HANDLE_BYTES - 1 - last] == like->handle[GPS_HANDLE_BYTES - 1 - last])
        last++;
    if (first > like->first) {
        like->first = first;
        like->begins = *gps_record_creator(record);
    }
    if (last > like->last) {
        like->last = last;
        like->ends = *gps_record_creator(record);
    }
    return --like->left;
}

struct gps_likeness gps_likeness_of(const struct gps_store *store, const uint8_t *handle,
                                    unsigned records) {
    struct gps_likeness like = {.handle = handle, .left = records};
    gps_region_each(store, likeness_compare, &like);
    return like;
}

bool gps_handle_is_zero_from(const uint8_t *handle, unsigned from) {
    while (from < GPS_HANDLE_BYTES && !handle[from])
        from++;
    return from == GPS_HANDLE_BYTES;
}
