/*
 * learner.h - observes which memory of this process stays as it was uploaded, for `gpushare learn`.
 *
 * It works only with mode = audit, and where GPUSHARE_LEARN is the path of a file, to which lines
 * (profile.h) are appended. The program has the driver's own memory. Every allocation of
 * GPS_MERGE_LEAST bytes and more is an area, so the calls that write it are noted as for merging. A
 * block that copies have filled is hashed at once, in the call. If it changes later without a call
 * that writes it, a kernel has written it. A thread hashes all blocks twice a second, and appends
 * what is new.
 *
 * gps_swap_lock is held while memory is hashed, and a free takes it. Any thread may call these
 * functions; they need no scope.
 */
#pragma once

#include <stdint.h>

#include "config/config.h"
#include "gate/write.h"

/* Constant once the process has begun. */
extern bool gps_learn_active;
void gps_learn_start(const struct gps_options *options);

/* The driver has allocated; the call is under way. */
void gps_learn_allocated(uint64_t pointer, uint64_t size, bool pool);
/* The program has made memory by cuMemCreate that a rule could take. It is watched once it is
 * mapped and its device may write it. */
void gps_learn_created(uint64_t size);
/* Access to the range was given, or taken; what begins in the range is about to be unmapped. */
void gps_learn_mapped(uint64_t pointer, uint64_t size);
void gps_learn_unmapped(uint64_t pointer, uint64_t size);
/* An allocation failed for want of memory. */
void gps_learn_lacks(void);
/* The driver is about to free. */
void gps_learn_freed(uint64_t pointer);
/* The program is about to write memory, and the driver has answered. */
void gps_learn_begin_write(const struct gps_write *write);
void gps_learn_end_write(const struct gps_write *write);
/* As gps_merge_purge. */
void gps_learn_purge(uint64_t context, uint64_t before);

/* The process ends: writes all that is known, and does not call the driver any more. */
void gps_learn_end(void);
