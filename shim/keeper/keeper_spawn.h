/*
 * keeper_spawn.h - starts the keeper from inside a program, invisibly to the program.
 *
 * The program gets no SIGCHLD, its wait() finds no child, and the keeper inherits none of its
 * descriptors or environment. The child runs on a stack of its own in the program's memory, as
 * after vfork, until it has executed `gpushare keeper`. It becomes a child of init in a session of
 * its own. Safe from any thread. No malloc.
 */
#pragma once

#include <stddef.h>

#include "directory/store.h"

/* The path of the keeper's executable for programs that have the library preloaded:
 * GPUSHARE_KEEPER, else `gpushare` beside the library or in ../bin or ../../bin of its directory. A
 * program also looks in the same places around its own executable. 0, -ENOENT, -EACCES, -ENOMEM or
 * -ENAMETOOLONG. */
int gps_spawn_program(const char *library, char *path, size_t size);

/* Executes the keeper, and does not wait until it listens. The new process may end at once because
 * another one holds the leader lock. 0 or -errno. */
int gps_spawn_keeper(const struct gps_store *store);
