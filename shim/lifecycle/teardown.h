/*
 * teardown.h - what becomes of exported memory when the process, or a context, ends with it in it.
 *
 * Results that were never freed are final now and are handed over. Importers are waited for as
 * `linger` says. Memory that other processes still hold is reported. Call inside a gps_scope.
 */
#pragma once

#include "findings/leaks.h"
#include "registry/registry.h"

/* The process ends, and the driver still works. */
void gps_teardown_exit(void);

/* The very end: removes our records, but for those that others may still ask about, unless this is
 * the last process. */
void gps_teardown_unpublish(bool last);

/* A context ends, with all that was allocated and opened in it. `destroy` is the driver's call, and
 * tells whether the context is destroyed. `wait`: results are handed over and importers waited for
 * before it, as at exit; not where the call may well leave the context to others. Returns the code
 * for the program. Needs no scope. */
typedef int gps_destroy_fn(void *arg, bool *destroyed);
int gps_teardown_context(uint64_t context, bool wait, gps_destroy_fn *destroy, void *arg);
