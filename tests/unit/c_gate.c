/* c_gate.c - see c_gate.h. */
#include "c_gate.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "gate/gate.h"
#include "stack/call.h"

_Static_assert(sizeof(struct test_pass) == sizeof(struct gps_gate_pass), "one is the other");

void test_gate_enter(struct test_pass *pass, uint64_t stream) {
    gps_gate_enter((struct gps_gate_pass *)pass, stream);
}

void test_gate_leave(const struct test_pass *pass) {
    gps_gate_leave((const struct gps_gate_pass *)pass);
}

bool test_gate_start(void) {
    return gps_gate_start();
}

bool test_gate_close(uint64_t timeout, bool surely) {
    return gps_gate_close(timeout, surely);
}

bool test_gate_close_in_a_call(uint64_t timeout) {
    gps_call_enter("cuMemcpyHtoD_v2", GPS_SITE_HERE);
    const bool closed = gps_gate_close(timeout, false);
    gps_call_leave();
    return closed;
}

bool test_gate_hold(void) {
    return gps_gate_stall();
}

void test_gate_open(void) {
    gps_gate_open();
}

bool test_gate_is_closed(void) {
    return gps_gate_state & GPS_GATE_CLOSED;
}

void test_gate_keep_out(uint64_t stream) {
    const struct gps_gate_stream one = {.stream = stream};
    gps_gate_keep_out(&one, 1);
}

bool test_gate_keeps_out(void) {
    return gps_gate_state & GPS_GATE_SOME;
}

bool test_gate_is_held(uint64_t *stream) {
    struct gps_gate_stream held;
    unsigned n = 0;
    const bool any = gps_gate_next_stalled(&n, 0, &held);
    if (any)
        *stream = held.stream;
    return any;
}

void test_gate_reset(void) {
    gps_gate_reset();
}

static long (*real_syscall)(long number, ...);
static _Atomic bool refused;

void test_gate_refuse(bool refuse) {
    refused = refuse;
}

__attribute__((constructor)) static void find_syscall(void) {
    *(void **)&real_syscall = dlsym(RTLD_NEXT, "syscall");
}

/* Stands before libc's in this program. */
long syscall(long number, ...) {
    va_list list;
    long a[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (refused && number == SYS_membarrier) {
        errno = ENOSYS;
        return -1;
    }
    return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
