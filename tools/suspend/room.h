/*
 * room.h - the room that a suspended process needs on a GPU: whether it is there, and whose it is.
 *
 * A process that the driver restores without room is lost. So one process of a user comes back to a
 * GPU at a time, from the count of the free bytes until it runs: it holds the lock of
 * directory/room_lock.h itself, for the driver may restore it when this tool is killed. A process
 * that takes no orders has it held by the tool, of all GPUs.
 */
#pragma once

#include "target.h"

/* Takes the lock, and finds as much free as the process needs. False: it was said why. */
bool room_take(struct target *target, const struct targets_how *how);
/* It was not restored after all. When it runs, its lock ends by itself. */
void room_give(struct target *target, const struct targets_how *how);
/* Main memory is counted, and then used, by one process at a time. False: it was said why. */
bool room_book_memory(struct target *target, uint64_t timeout);
/* Ends the locks that this tool holds for it. */
void room_free(struct target *target);

/* The free bytes of the GPU of a process. False: the driver does not say, or somebody comes back to
 * it just now, to whom our asking would be in the way: it takes a context. */
bool room_now(const struct target *target, uint64_t *bytes);
