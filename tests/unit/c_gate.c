/* c_gate.c - see c_gate.h. */
#include "c_gate.h"

#include "gate/gate.h"

_Static_assert(sizeof(struct test_pass) == sizeof(struct gps_gate_pass), "one is the other");

void test_gate_enter(struct test_pass *pass) {
    gps_gate_enter((struct gps_gate_pass *)pass);
}

void test_gate_leave(const struct test_pass *pass) {
    gps_gate_leave((const struct gps_gate_pass *)pass);
}

bool test_gate_start(void) {
    return gps_gate_start();
}

bool test_gate_close(uint64_t patience, bool surely) {
    return gps_gate_close(patience, surely);
}

bool test_gate_hold(void) {
    return gps_gate_hold();
}

void test_gate_open(void) {
    gps_gate_open();
}

bool test_gate_is_closed(void) {
    return gps_gate_state & GPS_GATE_CLOSED;
}

void test_gate_reset(void) {
    gps_gate_reset();
}
