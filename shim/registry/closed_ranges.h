/*
 * closed_ranges.h - where the imports lay that were closed last, for who looks at the arguments of
 * each kernel.
 *
 * It says only what may be: freed_history.h knows. In audits; no lock, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* So many kernels are looked at after a close. */
#define GPS_CLOSED_LOOKS 256

/* How many are left. */
extern _Atomic uint32_t gps_closed_looks;

void gps_closed_note(uint64_t base, uint64_t size);
/* Something is open there again. */
void gps_closed_forget(uint64_t base);
bool gps_closed_may_have(uint64_t address);
/* All of them lie there. */
void gps_closed_span(uint64_t *from, uint64_t *to);
/* A kernel is looked at. */
void gps_closed_looked(void);
