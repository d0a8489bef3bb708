/*
 * keeper_spawn.h - starts the keeper, from inside a program that is not to notice.
 *
 * No SIGCHLD, nothing for the program's wait() to find, none of its descriptors, environment or
 * memory: the child runs on a stack of its own in the program's memory, as after vfork, until it
 * has become `gpushare keeper`; and it is init's child, in a session of its own.
 */
#ifndef GPS_KEEPER_SPAWN_H
#define GPS_KEEPER_SPAWN_H

#include <stdbool.h>
#include <stddef.h>

#include "directory/store.h"

/* Where it is: GPUSHARE_KEEPER, else `gpushare` beside the library or, as it is installed, in
 * ../bin or ../../bin from there, else beside the program itself. 0; -ENOENT, -EACCES. No malloc.
 */
int gps_spawn_program(char *path, size_t size);

/* Returns when the keeper has been executed, not when it listens. It may end at once because
 * another one keeps. 0 or -errno. */
int gps_spawn_keeper(const struct gps_store *store);

#endif
