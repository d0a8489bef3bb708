#include "program_signals.h"

#include <stdatomic.h>
#include <string.h>

#include "clock.h"
#include "lock.h"

/* A mask in the kernel's layout, with which a sigset_t begins. Made once: scopes are frequent. */
union mask {
    uint64_t bits;
    sigset_t set;
};

/* SIGKILL and SIGSTOP cannot be blocked; 32 and 33 are libc's own. */
#define BIT(signal) (UINT64_C(1) << (signal - 1))
#define FAULTS      (BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGSEGV) | BIT(SIGSYS))
static const union mask blocked = {.bits =
                                       ~(FAULTS | BIT(SIGKILL) | BIT(SIGSTOP) | BIT(32) | BIT(33))};

/* Not `known` in a wait, so that a scope in a signal handler is the outermost again, and one that
 * the handler left by longjmp leaves nothing behind. */
static __thread struct gps_program_signals program;

/* A signal handler may run in this call, though libc declares it as one that calls nothing back.
 * The fences keep this thread's accesses to `program` on their side of the call. */
static void change_mask(int how, const sigset_t *mask, sigset_t *before) {
    atomic_signal_fence(memory_order_seq_cst);
    sigprocmask(how, mask, before);
    atomic_signal_fence(memory_order_seq_cst);
}

void gps_program_signals_block(sigset_t *before) {
    change_mask(SIG_BLOCK, &blocked.set, before);
}

/* A signal that should be blocked is not: the handler of a fault runs inside a scope and has
 * unblocked it, or has left the scope by longjmp. Or faults are blocked that the program's mask let
 * in, more than the one that is handled: the program blocks all signals since. Then the mask is the
 * program's. An emulator may leave real-time signals unblocked, so they do not count. */
static bool is_programs(uint64_t mask) {
    const uint64_t faults = FAULTS & mask & ~program.mask;
    return !program.known || (uint32_t)blocked.bits & ~mask || faults & (faults - 1);
}

void gps_program_signals_enter(struct gps_program_signals *outer, sigset_t *before) {
    uint64_t mask;
    gps_program_signals_block(before);
    memcpy(&mask, before, sizeof(mask));
    *outer = program;
    if (is_programs(mask))
        program = (struct gps_program_signals){.mask = mask, .known = true};
}

void gps_program_signals_leave(const struct gps_program_signals *outer, const sigset_t *before) {
    program = *outer;
    change_mask(SIG_SETMASK, before, NULL);
}

/* --- waits --- */

/* Threads of ours block all signals, and have no handlers to run. */
static struct gps_program_signals begin_wait(void) {
    const struct gps_program_signals before = program;
    if (before.known && !(before.mask & BIT(SIGINT)))
        gps_lock_check(GPS_ACROSS_WAIT, "signals let in");
    program.known = false;
    return before;
}

/* NULL: outside of a scope the thread has the program's mask. */
static const sigset_t *mask_of(const struct gps_program_signals *thread, union mask *room) {
    room->bits = thread->mask;
    return thread->known ? &room->set : NULL;
}

void gps_program_signals_let_in(struct gps_let_in *let_in) {
    union mask mask;
    let_in->program = begin_wait();
    change_mask(SIG_SETMASK, mask_of(&let_in->program, &mask), &let_in->ours);
}

void gps_program_signals_keep_out(const struct gps_let_in *let_in) {
    change_mask(SIG_SETMASK, &let_in->ours, NULL);
    program = let_in->program; /* a handler's scope may have changed it */
}

int gps_program_signals_poll(struct pollfd *poller, uint64_t nanos) {
    const struct timespec time = {.tv_sec = (time_t)(nanos / GPS_SECOND),
                                  .tv_nsec = (long)(nanos % GPS_SECOND)};
    union mask mask;
    const struct gps_program_signals before = begin_wait();
    const int ready = ppoll(poller, poller != NULL, &time, mask_of(&before, &mask));
    program = before;
    return ready;
}

int gps_program_signals_await(int fd, uint64_t until) {
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    for (uint64_t now; (now = gps_clock_monotonic()) < until;) {
        const int count = gps_program_signals_poll(&wait, until - now);
        if (count > 0 || (count < 0 && errno != EINTR))
            return count > 0 ? 0 : -errno;
    }
    return -ETIMEDOUT;
}
