#include "process.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "directory/lease.h"

/* In the page of the pointer to it: a program that never uses a GPU touches no other at its end. */
static struct gps_phase_page before_first_call __attribute__((section(".data")));
struct gps_phase_page *_Atomic gps_phase_page = &before_first_call;

static struct {
    struct gps_config config;
    struct gps_owner self;
    struct gps_program program;
    _Atomic bool exiting;
} state;

const struct gps_config *gps_process_config(void) {
    return &state.config;
}

bool gps_process_audits(void) {
    return state.config.options.mode == GPS_MODE_AUDIT;
}

const struct gps_owner *gps_process_self(void) {
    return &state.self;
}

const struct gps_program *gps_process_program(void) {
    return &state.program;
}

bool gps_process_is_self(const struct gps_owner *owner) {
    return gps_owner_equal(owner, &state.self);
}

static __thread bool leaves; /* this thread is in _exit */

bool gps_process_left(void) {
    return gps_process_phase() == GPS_PHASE_LEAVING && !leaves;
}

/* --- the page --- */

/* For kernels without MADV_WIPEONFORK. */
static void on_fork_child(void) {
    memset((void *)atomic_load(&gps_phase_page), 0, sizeof(struct gps_phase_page));
}

void gps_process_make_page(void) {
    struct gps_phase_page *page = atomic_load(&gps_phase_page);
    if (page != &before_first_call)
        return;
    void *fresh =
        mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh != MAP_FAILED) {
        (void)madvise(fresh, sizeof(*page), MADV_WIPEONFORK);
        if (!atomic_compare_exchange_strong(&gps_phase_page, &page, fresh)) {
            munmap(fresh, sizeof(*page));
            return; /* another thread has made it */
        }
    }
    pthread_atfork(NULL, NULL, on_fork_child);
}

/* --- for the lifecycle room --- */

static bool phase_exchange(enum gps_phase from, enum gps_phase to) {
    int before = (int)from;
    return atomic_compare_exchange_strong(&atomic_load(&gps_phase_page)->phase, &before, (int)to);
}

bool gps_process_begin_start(void) {
    return phase_exchange(GPS_PHASE_NEW, GPS_PHASE_STARTING);
}

bool gps_process_leave(void) {
    const bool left = leaves;
    leaves = true; /* set before the phase, so that a signal handler of this thread does not wait in
                      a call */
    if (phase_exchange(GPS_PHASE_ON, GPS_PHASE_LEAVING))
        return true;
    leaves = left;
    return false;
}

enum gps_phase gps_process_set_phase(enum gps_phase phase) {
    return (enum gps_phase)atomic_exchange(&atomic_load(&gps_phase_page)->phase, (int)phase);
}

/* An exit sets `exiting` (gps_process_begin_exit) before it reads the phase; this sets the phase
 * before it reads `exiting`: so one of the two sees the other. */
bool gps_process_suspend(void) {
    if (!phase_exchange(GPS_PHASE_ON, GPS_PHASE_SUSPENDED))
        return false;
    if (!atomic_load(&state.exiting))
        return true;
    gps_process_resume();
    return false;
}

void gps_process_resume(void) {
    struct gps_phase_page *const page = atomic_load(&gps_phase_page);
    phase_exchange(GPS_PHASE_SUSPENDED, GPS_PHASE_ON);
    syscall(SYS_futex, &page->phase, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void gps_process_await_resume(void) {
    const int error = errno;
    struct gps_phase_page *const page = atomic_load(&gps_phase_page);
    while (atomic_load(&page->phase) == GPS_PHASE_SUSPENDED)
        syscall(SYS_futex, &page->phase, FUTEX_WAIT_PRIVATE, GPS_PHASE_SUSPENDED, NULL, NULL, 0);
    errno = error;
}

int gps_process_load(gps_config_error_fn *fn, void *arg) {
    gps_owner_self(&state.self);
    gps_program_self(&state.program);
    gps_owner_name(&state.self, state.program.name);
    return gps_config_load(&state.config, fn, arg);
}

bool gps_process_begin_exit(void) {
    return !atomic_exchange(&state.exiting, true);
}

void gps_process_reset(void) {
    atomic_store(&state.exiting, false);
    gps_config_free(&state.config);
}
