/*
 * closed_ranges.h - where the imports closed last lay, to look at the arguments of each kernel.
 *
 * A match is only likely: freed_history.h tells for certain. In audits; no lock, any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* So many kernels are looked at after a close. */
#define GPS_CLOSED_LOOKS 256

/* How many kernels are still to be looked at. */
extern _Atomic uint32_t gps_closed_looks;

void gps_closed_note(uint64_t base, uint64_t size);
/* An import is open at the address again. */
void gps_closed_forget(uint64_t base);
bool gps_closed_may_have(uint64_t address);
/* The range in which all of them lie. */
void gps_closed_span(uint64_t *from, uint64_t *to);
/* A kernel is looked at. */
void gps_closed_looked(void);
