#include "suspension.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "copies.h"
#include "directory/orders.h"
#include "directory/room_lock.h"
#include "driver/scope.h"
#include "gate/swap.h"
#include "ipc/token.h"
#include "log/event_log.h"
#include "log/log.h"
#include "merge/allocation.h"
#include "merge/backing.h"
#include "merge/merger.h"
#include "needed_room.h"
#include "offload.h"
#include "own_memory.h"
#include "process/membership.h"
#include "process/process.h"
#include "shared_memory.h"
#include "threads/watch.h"
#include "util/clock.h"
#include "util/text.h"
#include "vmm/vmm_region.h"

#define LOCK_50MS (GPS_SECOND / 20)

/* Only the thread uses this. */
static struct {
    struct gps_answer_file answer; /* the last one */
    bool kept;                     /* the process stays suspended, whether or not the tool lives */
    struct gps_room_lock room;     /* of its GPU, while the process comes back */
    uint64_t looked;               /* when the copies that are kept were last looked at */
    bool restored; /* by the driver, perhaps: the room is held whether or not the tool lives */
} state;

static uint64_t suspension_follow(void);
static struct gps_background thread = {
    .name = "gpushare-susp", .watched = GPS_WATCH_PROCS, .turn = suspension_follow};

/* --- answers --- */

static void suspension_answer(enum gps_answer_state now, const struct gps_order *order) {
    if (order)
        state.answer.serial = order->serial;
    if (state.answer.state != now)
        state.answer.since = gps_clock_now();
    state.answer.state = now;
    (void)gps_answer_write(gps_membership_store(), gps_process_self(), &state.answer);
}

static struct gps_text suspension_reason(void) {
    memset(state.answer.reason, 0, sizeof(state.answer.reason));
    return GPS_TEXT(state.answer.reason);
}

static void suspension_tell(const char *what, uint64_t bytes) {
    gps_event_log_write(&(struct gps_event_line){.what = what, .size = bytes});
}

/* --- eviction --- */

static uint64_t left(uint64_t until) {
    const uint64_t now = gps_clock_monotonic();
    return until > now ? until - now : 1;
}

/* Waits for an idle device behind the closed gate, which then opens: calls wait at their entry. */
static bool await_idle(uint64_t until, struct gps_text *why) {
    struct gps_swap_tries tries = {.failed = 0};
    bool idle = false;
    do {
        if (!gps_swap_lock_within(left(until)))
            break;
        idle = gps_swap_try(&tries);
        if (idle)
            gps_swap_end();
        gps_swap_unlock();
        if (!idle)
            usleep(1000);
    } while (!idle && gps_clock_monotonic() < until);
    if (!idle)
        gps_text_str(why,
                     tries.looked && tries.answer == GPS_STREAMS_UNKNOWN
                         ? "a stream cannot be asked whether it is idle, as while a graph is "
                           "captured; try again"
                         : "work that it gave to the GPU has not ended in time; try again with "
                           "a longer --timeout");
    return idle;
}

static bool stop_all(uint64_t until, struct gps_text *why) {
    if (!gps_calls_await(left(until)))
        gps_text_str(why, "a call that it made has not returned in time; try again with a longer "
                          "--timeout");
    else if (!gps_merger_hold(left(until)) || !gps_vmm_region_await(left(until)) ||
             !gps_token_server_await(left(until)))
        gps_text_str(why, "gpushare's own work in it has not ended in time; try again");
    else
        return !gps_obstacle_find(why) && await_idle(until, why) && gps_shared_memory_confirm(why);
    return false;
}

static void go_on(void) {
    gps_merger_go_on();
    gps_process_resume();
    state.kept = false;
}

/* Takes all memory again, and tries until that is done or memory is lost. */
static void take_again(void) {
    enum gps_taken taken;
    GPS_DRIVER_SCOPE();
    for (;;) {
        struct gps_text why = suspension_reason();
        taken = gps_shared_memory_restore(gps_process_config()->options.suspend_memory, &why);
        if (taken == GPS_TAKEN)
            taken = gps_own_memory_take_again(&why);
        if (taken != GPS_TAKEN_LATER)
            break;
        suspension_answer(GPS_ANSWER_TAKES, NULL);
        usleep(LOCK_50MS / 1000);
    }
    if (taken == GPS_TAKEN)
        return;
    char message[sizeof(state.answer.reason) + 80];
    struct gps_text text = GPS_TEXT(message);
    gps_text_strs(&text, "memory is lost while the process was suspended, which ends it: ",
                  state.answer.reason);
    gps_log_notice(GPS_LEVEL_ERROR, message);
    kill(getpid(), SIGKILL);
}

/* Copies its own memory once more right before that is evicted: calls that are not hooked may have
 * written it while merged blocks were copied. */
static bool suspension_copy_out(const struct gps_order *order, struct gps_text *why) {
    uint64_t again = 0;
    bool copied = gps_own_memory_copy(&state.answer.copied, why);
    state.answer.offloaded = copied && !(order->flags & GPS_ORDER_KEEP_ON_GPU) ? gps_offload() : 0;
    if (state.answer.offloaded)
        copied = gps_own_memory_copy(&again, why);
    state.answer.copied += again;
    return copied;
}

static bool suspension_evict(const struct gps_order *order, struct gps_text *why) {
    const uint64_t until = gps_clock_monotonic() + order->timeout;
    GPS_DRIVER_SCOPE();
    if (gps_obstacle_find(why))
        return false;
    if (!gps_process_suspend()) {
        gps_text_str(why, "it ends");
        return false;
    }
    suspension_answer(GPS_ANSWER_LEAVES, order);
    bool done = stop_all(until, why);
    if (done) {
        /* it is unknown whether a driver restores memory that is made and not mapped */
        done = gps_merge_back_made() == GPS_OK;
        if (!done)
            gps_text_str(why, "memory of its merge rules cannot be mapped");
    }
    if (done) {
        gps_needed_room_measure(&state.answer);
        done = suspension_copy_out(order, why) && gps_own_memory_evict(why) &&
               gps_shared_memory_evict(&state.answer.evicted, why);
        state.answer.kept = gps_copies_bytes();
    }
    return done;
}

static void follow_evicted(const struct gps_order *order) {
    char failure[sizeof(state.answer.reason)] = "";
    struct gps_text why = GPS_TEXT(failure);
    if (suspension_evict(order, &why)) {
        (void)suspension_reason();
        state.answer.freed = 0;
        suspension_answer(GPS_ANSWER_GONE, order);
        suspension_tell("suspended", state.answer.evicted);
        return;
    }
    if (gps_process_phase() == GPS_PHASE_SUSPENDED) {
        take_again();
        go_on();
    }
    struct gps_text text = suspension_reason();
    gps_text_str(&text, failure);
    suspension_answer(GPS_ANSWER_RUNS, order);
}

/* --- the other orders --- */

static void leave_room(void) {
    gps_room_lock_give(&state.room);
    state.restored = false;
}

static void suspension_check(const struct gps_order *order) {
    struct gps_text why = suspension_reason();
    GPS_DRIVER_SCOPE();
    if (!gps_obstacle_find(&why))
        gps_shared_memory_confirm(&why);
    gps_needed_room_measure(&state.answer);
    suspension_answer(GPS_ANSWER_RUNS, order);
}

static void follow_take(const struct gps_order *order) {
    if (state.answer.state == GPS_ANSWER_GONE) {
        suspension_answer(GPS_ANSWER_TAKES, order);
        take_again();
        go_on();
        leave_room();
        suspension_tell("resumed", state.answer.evicted);
        (void)suspension_reason();
        state.answer.evicted = state.answer.freed = state.answer.copied = state.answer.offloaded =
            0;
    }
    suspension_answer(GPS_ANSWER_RUNS, order);
}

static void follow_keep(const struct gps_order *order) {
    state.kept = state.answer.state == GPS_ANSWER_GONE;
    state.answer.freed = order->freed;
    suspension_answer((enum gps_answer_state)state.answer.state, order);
}

/* --- the room of its GPU --- */

static void name_holder(struct gps_text *why, const struct gps_owner *holder) {
    gps_text_plain(why, *holder->command ? holder->command : "another process");
    gps_text_str(why, " ");
    gps_text_dec(why, holder->pid);
    gps_text_str(why, " comes back to that GPU just now, or its resume was killed: then `gpushare "
                      "resume` it first");
}

/* 0 or -errno. Where the lease has no mapping the lock can't have one. */
static int lock_room(struct gps_owner *holder) {
    const bool by_descriptor = gps_membership_lease()->hold == MAP_FAILED;
    return state.room.held
               ? 0
               : gps_room_lock_take(gps_membership_store(), state.answer.device, gps_process_self(),
                                    by_descriptor, &state.room, holder);
}

/* Whether the tool that gave the order still waits. */
static bool is_waited_for(const struct gps_order *order) {
    struct gps_order now;
    bool held = false;
    return gps_order_read(gps_membership_store(), gps_process_self(), &now, &held) == 0 && held &&
           now.serial == order->serial;
}

/* Calls no driver function: the driver may be locked. */
static void follow_room(const struct gps_order *order) {
    const uint64_t until = gps_clock_monotonic() + order->timeout;
    struct gps_owner holder = {.pid = 0};
    struct gps_text why = suspension_reason();
    int status;
    while ((status = lock_room(&holder)) == -EAGAIN && gps_clock_monotonic() < until &&
           is_waited_for(order))
        usleep(LOCK_50MS / 1000);
    if (status == -EAGAIN)
        name_holder(&why, &holder);
    else if (status < 0)
        gps_text_strs(&why, "the lock of its GPU's room cannot be had: ", gps_error_text(-status));
    suspension_answer(GPS_ANSWER_GONE, order);
}

static void follow_restore(const struct gps_order *order) {
    state.restored = state.room.held;
    suspension_answer(GPS_ANSWER_GONE, order);
}

static void follow_no_room(const struct gps_order *order) {
    leave_room();
    (void)suspension_reason();
    suspension_answer(GPS_ANSWER_GONE, order);
}

static void follow_new(const struct gps_order *order) {
    const bool gone = state.answer.state == GPS_ANSWER_GONE;
    if (gone && (order->ask == GPS_ORDER_CHECK || order->ask == GPS_ORDER_LET_GO)) {
        suspension_answer(GPS_ANSWER_GONE, order);
        return;
    }
    if (!gone && order->ask >= GPS_ORDER_ROOM) {
        suspension_answer(GPS_ANSWER_RUNS, order);
        return;
    }
    switch ((enum gps_order_ask)order->ask) {
    case GPS_ORDER_CHECK:
        suspension_check(order);
        break;
    case GPS_ORDER_LET_GO:
        follow_evicted(order);
        break;
    case GPS_ORDER_KEEP:
        follow_keep(order);
        break;
    case GPS_ORDER_TAKE:
        follow_take(order);
        break;
    case GPS_ORDER_ROOM:
        follow_room(order);
        break;
    case GPS_ORDER_RESTORE:
        follow_restore(order);
        break;
    case GPS_ORDER_NO_ROOM:
        follow_no_room(order);
        break;
    }
}

/* Drops copies that are not to be kept; once a second, however often the directory changes. */
static void look_at_copies(void) {
    const uint64_t now = gps_clock_monotonic();
    if (now - state.looked < GPS_SECOND)
        return;
    state.looked = now;
    const uint64_t kept = gps_own_memory_keep(gps_process_config()->options.suspend_memory);
    if (kept == state.answer.kept)
        return;
    state.answer.kept = kept;
    suspension_answer((enum gps_answer_state)state.answer.state, NULL);
}

/* Where no process holds the order's lock, the tool has died, and its order counts no more if it
 * was not followed yet. If the driver has the process locked, the thread waits in the driver for a
 * `resume`, which finds the room locked for it. */
static uint64_t suspension_follow(void) {
    struct gps_order order;
    struct gps_owner holder;
    bool held = false;
    GPS_SCOPE();
    const int status = gps_order_read(gps_membership_store(), gps_process_self(), &order, &held);
    /* without a descriptor it is unknown: take the tool to be alive */
    held |= status < 0 && status != -ENOENT && status != -EBADMSG;
    const bool gone = state.answer.state == GPS_ANSWER_GONE;
    if (status == 0 && order.serial != state.answer.serial &&
        (held || order.ask == GPS_ORDER_KEEP || order.ask == GPS_ORDER_TAKE))
        follow_new(&order);
    else if (gone && !state.kept && !held) {
        (void)lock_room(&holder); /* if it can be had */
        follow_take(&(struct gps_order){.serial = state.answer.serial});
    }
    if (!held && !state.restored)
        gps_room_lock_give(&state.room);
    if (state.answer.state == GPS_ANSWER_RUNS)
        look_at_copies();
    return gone && (!state.kept || state.room.held) ? LOCK_50MS : GPS_SECOND;
}

/* --- the thread --- */

/* The first answer tells that the process takes orders. */
void gps_suspension_start(const struct gps_options *options) {
    if (options->suspend == GPS_SUSPEND_ON && gps_gate_active)
        gps_calls_count();
    if (options->suspend != GPS_SUSPEND_ON || gps_membership_join() != 0)
        return;
    memset(&state, 0, sizeof(state));
    suspension_answer(GPS_ANSWER_RUNS, NULL);
    if (gps_background_start(&thread) != 0)
        gps_log_notice(GPS_LEVEL_WARNING, "the thread that suspend = on needs cannot be started: "
                                          "this process cannot be suspended");
}

void gps_suspension_stop(void) {
    gps_background_stop(&thread);
}

void gps_suspension_reset(void) {
    gps_background_reset(&thread);
    gps_room_lock_forget(&state.room);
    memset(&state, 0, sizeof(state));
}
