/*
 * refused_writes.h - copies and fills that memory of a rule does not take.
 *
 * A write past the end of memory that a rule exports or imports is refused in place of the driver,
 * which knows only the end of the block (registry/padding.h).
 *
 * A write that the driver has refused because the region is mapped read-only is reported, and in an
 * audit one to memory that is gone, or that the program has mapped without access.
 */
#pragma once

#include "gate/write.h"

/* True: the write reaches past such an end, and *code is the answer. */
bool gps_refused_past_end(const struct gps_write *write, int *code);

/* The driver has refused the write: why, of memory of a rule, or in an audit. */
void gps_refused_read_only(const struct gps_write *write, int code);
void gps_refused_in_audit(const struct gps_write *write, int code);

/* In an audit, the driver refused a copy or fill of these bytes: reports what is surely wrong. */
void gps_refused_copy(uint64_t address, uint64_t size, int code);
