/* others.c - see others.h. */
#include "others.h"

#include <string.h>

#include "directory/processes.h"
#include "process/membership.h"
#include "process/process.h"

static bool note_other(void *arg, const struct gps_proc *proc) {
    const struct gps_owner *other = &proc->header.owner, *self = gps_process_self();
    struct gps_others *others = arg;
    if (!proc->alive || gps_process_is_self(other))
        return true;
    others->has_our_pid |= other->pid == self->pid && other->pid_ns != self->pid_ns;
    others->has_other_shm |= gps_proc_has_other_shm(proc);
    others->may_export |= strcmp(other->command, "gpushare") != 0;
    return true;
}

struct gps_others gps_others_look(void) {
    struct gps_others others = {0};
    gps_membership_join();
    const struct gps_store *store = gps_membership_store();
    if (!store || gps_proc_each(store, note_other, &others) < 0)
        return (struct gps_others){.may_export = true};
    return others;
}
