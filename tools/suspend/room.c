#include "room.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/printable.h"
#include "directory/lease.h"
#include "directory/processes.h"
#include "directory/record.h"
#include "directory/region.h"
#include "process/control_group.h"
#include "util/clock.h"

#define LOOK 100000 /* us, between two looks for room */

/* --- the lock --- */

/* Whether the process takes the lock itself. One of an older version has no lock, and neither has
 * one without a context. A process that takes its memory again because its `suspend` was killed
 * follows no orders. */
static bool has_lock(const struct target *target) {
    return target->takes_orders && target->answer.needs != 0 &&
           target->answer.state == GPS_ANSWER_GONE;
}

static int lock_gpu(const struct target *target, const uint8_t device[GPS_UUID_BYTES],
                    struct gps_room_lock *lock, struct gps_owner *holder) {
    struct gps_owner self;
    gps_owner_self(&self);
    return gps_room_lock_take(&target->store, device, &self, true, lock, holder);
}

static bool lock_gpu_within(struct target *target, const uint8_t device[GPS_UUID_BYTES],
                            uint64_t until) {
    struct gps_room_lock lock = {.held = false};
    struct gps_owner holder;
    int status;
    while ((status = lock_gpu(target, device, &lock, &holder)) == -EAGAIN &&
           !gps_owner_equal(&holder, &target->owner) && gps_clock_monotonic() < until)
        usleep(LOOK);
    if (status == -EAGAIN && gps_owner_equal(&holder, &target->owner))
        return true;
    if (status == 0)
        TOOL_APPEND(target->locks, target->lock_count, lock);
    else if (status == -EAGAIN)
        snprintf(target->answer.reason, sizeof(target->answer.reason),
                 "%s %u comes back to a GPU just now", holder.command, holder.pid);
    else
        snprintf(target->answer.reason, sizeof(target->answer.reason),
                 "the lock of a GPU's room cannot be had: %s", strerror(-status));
    return status == 0;
}

/* Main memory is locked as a GPU with a UUID of zeros. */
bool room_book_memory(struct target *target, uint64_t timeout) {
    static const uint8_t main_memory[GPS_UUID_BYTES];
    if (lock_gpu_within(target, main_memory, gps_clock_monotonic() + timeout))
        return true;
    return tool_error(
        "%s was not suspended: another process leaves the GPU just now, and how much main "
        "memory is left is not known; try again, or with a longer --timeout",
        target->name);
}

static bool lock_all(struct target *target, uint64_t timeout) {
    const uint64_t until = gps_clock_monotonic() + timeout;
    uint8_t device[GPS_UUID_BYTES];
    *target->answer.reason = '\0';
    for (int gpu = 0; checkpoint_gpu(gpu, device); gpu++)
        if (!lock_gpu_within(target, device, until)) {
            room_free(target);
            return false;
        }
    return true;
}

void room_free(struct target *target) {
    for (size_t i = 0; i < target->lock_count; i++)
        gps_room_lock_give(&target->locks[i]);
    free(target->locks);
    target->locks = NULL;
    target->lock_count = 0;
}

enum room { ROOM, ROOM_LACKS, ROOM_TAKEN, ROOM_UNKNOWN, ROOM_FAILED };

static enum room lock(struct target *target, const struct targets_how *how) {
    if (!target->takes_orders)
        return lock_all(target, how->timeout) ? ROOM : ROOM_TAKEN;
    if (target->answer.needs == 0)
        return ROOM;
    if (has_lock(target) && !target_order(target, GPS_ORDER_ROOM, how->timeout, 0))
        return ROOM_FAILED;
    if (has_lock(target))
        return *target->answer.reason ? ROOM_TAKEN : ROOM;
    return lock_gpu_within(target, target->answer.device, gps_clock_monotonic() + how->timeout)
               ? ROOM
               : ROOM_TAKEN;
}

static bool room_unlock(struct target *target, const struct targets_how *how) {
    room_free(target);
    return !has_lock(target) || target_order(target, GPS_ORDER_NO_ROOM, how->timeout, 0);
}

/* --- room --- */

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* The memory that the process had at most, and the bytes that are to be free in all: with unknown
 * memory of its contexts, and memory that other processes may take before it runs. */
struct need {
    uint64_t had, bytes;
};

/* The sum of offloaded blocks of a process: the first process that comes back makes them again. */
struct offloaded {
    const struct target *target;
    uint64_t bytes;
};

static bool add_offloaded(void *arg, const struct gps_proc *proc) {
    struct offloaded *sum = arg;
    struct gps_region_record record;
    if (!gps_owner_equal(&proc->header.owner, &sum->target->owner))
        return true;
    for (unsigned i = 0; i < proc->slot_count; i++)
        if (gps_slot_has_region(&proc->slots[i]) &&
            gps_region_read(&sum->target->store, &proc->slots[i].region, &record, NULL) == 0 &&
            record.status.state == GPS_STATE_OFFLOADED)
            sum->bytes += record.extent;
    return false;
}

static uint64_t offloaded_bytes(const struct target *target) {
    struct offloaded sum = {.target = target};
    if (target->answer.evicted)
        (void)gps_proc_each(&target->store, add_offloaded, &sum);
    return sum.bytes;
}

/* A process without gpushare needs at most as much as it has in main memory. */
static bool find_need(const struct target *target, struct need *need) {
    const struct gps_answer_file *answer = &target->answer;
    need->had = most(answer->freed, answer->own);
    if (!target->takes_orders && !gps_main_memory_of(target->pid, &need->had))
        return false;
    need->bytes = most(need->had, answer->needs);
    const uint64_t offloaded = offloaded_bytes(target);
    need->had += offloaded;
    need->bytes += offloaded;
    return true;
}

/* With ROOM the lock is held. */
static enum room room_look(struct target *target, const struct targets_how *how, uint64_t need,
                           uint64_t *room) {
    const enum room found = lock(target, how);
    if (found != ROOM)
        return found;
    const bool known = checkpoint_room(target->answer.device, room);
    if (known && *room >= need)
        return ROOM;
    return !room_unlock(target, how) ? ROOM_FAILED : known ? ROOM_LACKS : ROOM_UNKNOWN;
}

/* "128 MiB on the GPU and 16 MiB to spare"; malloc'ed. */
static char *need_describe(const struct need *need) {
    char *text = tool_format("%s on the GPU", printable_size(need->had).text);
    if (need->bytes > need->had) {
        char *spare =
            tool_format("%s and %s to spare", text, printable_size(need->bytes - need->had).text);
        free(text);
        text = spare;
    }
    return text;
}

static void tell_wait(const struct target *target, enum room found, const struct need *need,
                      uint64_t room) {
    TOOL_TEMP char *what = need_describe(need);
    if (found == ROOM_LACKS)
        fprintf(stderr, "gpushare: resume: %s waits for room: it needs %s, and %s are free\n",
                target->name, what, printable_size(room).text);
    else
        fprintf(stderr, "gpushare: resume: %s waits: %s\n", target->name, target->answer.reason);
}

static void room_fail(const struct target *target, enum room found, const struct need *need,
                      uint64_t room) {
    TOOL_TEMP char *begin = tool_format("%s was not resumed, and stays suspended", target->name);
    TOOL_TEMP char *what = need_describe(need);
    if (found == ROOM_TAKEN)
        tool_error("%s: %s", begin, target->answer.reason);
    else if (found == ROOM_LACKS)
        tool_error("%s: it needs %s, and %s are free; end or suspend something there, or wait for "
                   "room: --wait",
                   begin, what, printable_size(room).text);
    else if (found == ROOM_UNKNOWN)
        tool_error("%s: it needs %s, and the driver does not say what is free", begin, what);
}

bool room_take(struct target *target, const struct targets_how *how) {
    struct need need;
    uint64_t room = 0;
    enum room found;
    bool told = false;
    for (;;) { /* another process may bring back shared blocks meanwhile */
        if (!find_need(target, &need))
            return tool_error("%s was not resumed: how much it needs is not known", target->name);
        found = room_look(target, how, need.bytes, &room);
        if (!how->wait || (found != ROOM_LACKS && found != ROOM_TAKEN))
            break;
        if (!told)
            tell_wait(target, found, &need, room);
        told = true;
        usleep(LOOK);
    }
    if (found != ROOM)
        room_fail(target, found, &need, room);
    return found == ROOM &&
           (!has_lock(target) || target_order(target, GPS_ORDER_RESTORE, how->timeout, 0));
}

void room_give(struct target *target, const struct targets_how *how) {
    (void)room_unlock(target, how);
}

bool room_now(const struct target *target, uint64_t *bytes) {
    struct gps_room_lock lock = {.held = false};
    struct gps_owner holder;
    if (lock_gpu(target, target->answer.device, &lock, &holder) == -EAGAIN)
        return false;
    const bool known = checkpoint_room(target->answer.device, bytes);
    gps_room_lock_give(&lock);
    return known;
}
