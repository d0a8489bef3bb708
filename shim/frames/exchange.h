/*
 * exchange.h - whole frames: programs that share a buffer exchange copies of it.
 *
 * The exporter of a region with frames has its buffer at the region's beginning, and behind that
 * slots. An importer has memory of its own in place of its allocation. Each call of the program's
 * that uses such memory (a touch) and each wait comes here. A writer's frame that is whole is
 * copied into the oldest slot that no process reads; before a reader looks at another frame, the
 * newest slot is copied into its memory. The copies are made on a stream of ours, behind the work
 * that the program has given its streams so far, and before the work that it gives them next.
 *
 * The order is gps_frames_begin, gps_frames_add for each address, the driver's call,
 * gps_frames_end. Between them no lock is held. A call between them may wait, where the rule says
 * frames = each, with the program's signals let in. Any thread; no scope unless said.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "directory/record.h"
#include "gate/write.h"
#include "gpushare/explained.h"
#include "process/program.h"

/* Whether this process may have such a buffer. Constant once it has begun. */
extern bool gps_frames_active;
/* All buffers that it has had lie between these addresses; 0 and 0: none. */
extern _Atomic uint64_t gps_frames_from, gps_frames_to;
static inline bool gps_frames_exist(void) {
    return __builtin_expect(atomic_load_explicit(&gps_frames_to, memory_order_relaxed) != 0, 0);
}
static inline bool gps_frames_near(uint64_t address, uint64_t size) {
    return address < atomic_load_explicit(&gps_frames_to, memory_order_relaxed) &&
           address + size > atomic_load_explicit(&gps_frames_from, memory_order_relaxed);
}

/* Called after the rules are read: they say whether. */
void gps_frames_start(const struct gps_config *config, const struct gps_program *program);

/* Called before there are buffers: where their figures go, for `gpushare explain`. */
void gps_frames_explain(struct gps_explained_frames all[GPS_EXPLAINED_FRAMES]);

/* --- buffers; inside a gps_scope that has entered their context --- */

/* Makes the exporter's buffer, of a published region. False: without frames, also for importers. */
bool gps_frames_export(const struct gps_region_record *record, const struct gps_rule *rule,
                       uint64_t pointer, uint64_t context);
/* The importer has mapped the region, for an allocation of `size`. NULL, and *pointer is memory of
 * its own; or why not. */
const char *gps_frames_import(const struct gps_region_record *record, uint64_t mapping,
                              uint64_t size, uint64_t context, uint64_t *pointer);

/* The program frees the memory that begins there, after this. The last frame is published if whole.
 * Returns a reader's mapping of the region, for the caller to free after the buffer; or 0. */
uint64_t gps_frames_freed(uint64_t pointer);
/* The context (0: each) is about to end: publishes its last whole frames. Needs no context. */
void gps_frames_leave(uint64_t context);
/* The context is gone, with the buffers in it. */
void gps_frames_purge(uint64_t context);

/* --- calls of the program --- */

/* A call begins, and uses an address: the bytes from there on (0: not known), and `how`, which
 * tells this use from others, as a kernel and the number of its argument. */
void gps_frames_begin(uint64_t stream);
void gps_frames_add(uint64_t address, uint64_t size, uint64_t how);
/* The same for work whose addresses are not known: a graph, or a kernel where a rule says that any
 * kernel may use the buffer (`how` stands for it). */
extern _Atomic bool gps_frames_any, gps_frames_in_graphs; /* whether there was such a buffer */
void gps_frames_add_any_slowly(uint64_t how, bool graph);
static inline void gps_frames_add_any(uint64_t how, bool graph) {
    if (gps_frames_any || (graph && gps_frames_in_graphs))
        gps_frames_add_any_slowly(how, graph);
}
/* A graph is given the address: its launch uses it from now on. */
void gps_frames_note(uint64_t address, uint64_t size);
/* The driver has answered. `waited`: the call has waited for its own work. */
void gps_frames_end(bool waited);
/* All of these for a copy or fill. */
void gps_frames_begin_write(const struct gps_write *write);
void gps_frames_end_write(const struct gps_write *write, int code);

/* The program has waited for work, or has heard that it is done. */
void gps_frames_waited(void);
/* The program is about to destroy the stream. */
void gps_frames_stream_ends(uint64_t stream);
