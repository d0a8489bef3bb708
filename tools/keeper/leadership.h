/*
 * leadership.h - the right to be the one keeper of a store.
 */
#pragma once

#include "keeper_state.h"

/* Becomes the keeper of the store. 0 or -errno; -EEXIST: there is another one, *other (pid 0: it
 * does not answer). */
int leadership_take(struct keeper *keeper, struct gps_owner *other);
/* Drops all kept regions, and leaves nothing behind. */
void leadership_end(struct keeper *keeper);
