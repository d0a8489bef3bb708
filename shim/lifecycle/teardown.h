/*
 * teardown.h - ends the regions of a process or of a context that ends before they are freed.
 *
 * Results that were never freed are handed over. Importers are waited for as `linger` says. Memory
 * still held elsewhere is reported. Other threads use and free theirs meanwhile. In a gps_scope.
 */
#pragma once

#include "findings/leaks.h"
#include "registry/registry.h"

/* The process ends, and the driver still works: waits for importers, and reports. */
void gps_teardown_exit(void);

/* The very end: removes the records of this process. Records that other processes may still read
 * stay, unless this is the last process. */
void gps_teardown_unpublish(bool last);

/* A context ends, with all that was allocated and opened in it. `destroy` is the driver's call, and
 * tells whether it destroyed the context. Objects of the context noted before the epoch `before`
 * are gone then; later ones are of a context that another thread has made with this handle since;
 * at first it is the epoch of the call's begin. With `wait` results are handed over and importers
 * waited for before that call, as at exit. A call that often leaves the context to other users does
 * not wait. Returns the code for the program. Needs no scope. */
typedef int gps_destroy_fn(void *arg, bool *destroyed, uint64_t *before);
int gps_teardown_context(uint64_t context, bool wait, gps_destroy_fn *destroy, void *arg);
