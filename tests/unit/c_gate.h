/* c_gate.h - the gate's inline functions, which are C and no C++. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct test_pass { /* a struct gps_gate_pass */
    void *slot;
    uintptr_t before;
};

void test_gate_enter(struct test_pass *pass, uint64_t stream);
void test_gate_leave(const struct test_pass *pass);
bool test_gate_start(void);
bool test_gate_close(uint64_t timeout, bool surely);
bool test_gate_close_in_a_call(uint64_t timeout);
bool test_gate_hold(void);
void test_gate_open(void);
bool test_gate_is_closed(void);
void test_gate_keep_out(uint64_t stream);
bool test_gate_keeps_out(void);
/* Whether a thread waits; with work of which stream. */
bool test_gate_is_held(uint64_t *stream);
void test_gate_reset(void);

/* Whether the kernel refuses membarrier. */
void test_gate_refuse(bool refuse);

#ifdef __cplusplus
}
#endif
