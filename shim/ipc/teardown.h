/*
 * teardown.h - what becomes of exported memory when the process, or a context, ends with it in it.
 *
 * Results that were never freed are final now and are handed over; importers are waited for as
 * `linger` says; who still holds what is reported. Call inside a gps_scope.
 */
#ifndef GPS_TEARDOWN_H
#define GPS_TEARDOWN_H

#include <signal.h>

#include "audit/leak.h"
#include "registry/registry.h"

/* The process ends, and the driver still works. `signals`: see watch.h. */
void gps_teardown_exit(const sigset_t *signals);

/* A context is about to go: waits, if `wait`, and keeps the reaper away from the context until
 * gps_teardown_context_done says whether the driver has destroyed it. */
struct gps_export *gps_teardown_context(uint64_t context, bool wait, const sigset_t *signals);
void gps_teardown_context_done(struct gps_export *regions, bool gone, struct gps_reset *reset);

/* The very end: removes our records, but for those that others may still ask about, unless we are
 * the last process. */
void gps_teardown_unpublish(bool last);

#endif
