/*
 * room.h - the room that a suspended process needs on a GPU: if it is free, and who has its lock.
 *
 * A process that the driver restores without room is lost. So one process of a user comes back to a
 * GPU at a time, from the count of the free bytes until it runs: it holds the lock of
 * directory/room_lock.h itself, because the driver may restore it when this tool is killed. For a
 * process that takes no orders the tool holds the locks of all GPUs.
 */
#pragma once

#include "target.h"

/* Takes the lock, and finds the free memory that it needs. False: the reason was printed. */
bool room_take(struct target *target, const struct targets_how *how);
/* The process was not restored: gives the lock back. When it runs, its lock ends by itself. */
void room_give(struct target *target, const struct targets_how *how);
/* Takes main memory's lock: one process at a time counts and uses it. False: it was told why. */
bool room_book_memory(struct target *target, uint64_t timeout);
/* Ends the locks that this tool holds for the process. */
void room_free(struct target *target);

/* The free bytes of the GPU of a process. False: the driver does not say, or a process is coming
 * back to it, which our query would disturb, since that takes a context. */
bool room_now(const struct target *target, uint64_t *bytes);
