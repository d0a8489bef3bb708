/*
 * refused_writes.h - copies and fills that memory of a rule does not take.
 *
 * What reaches past the end of memory that a rule exports or imports is refused in place of the
 * driver, which knows of the end of the block alone (registry/padding.h).
 *
 * A write that the driver has refused because the region is mapped read-only is reported, and in an
 * audit one to memory that is gone, or that the program has mapped without access.
 */
#pragma once

#include "config/config.h"
#include "process/program.h"

/* Listens to the writes of this program where its rules or an audit call for that. After
 * gps_merge_start. */
void gps_refused_writes_start(const struct gps_config *config, const struct gps_program *program);

/* The driver has refused a copy or fill of these bytes of device memory, in an audit: a report says
 * what is certainly wrong. */
void gps_refused_copy(uint64_t address, uint64_t size, int code);
