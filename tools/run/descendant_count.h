/*
 * descendant_count.h - which processes descend from one.
 */
#ifndef DESCENDANT_COUNT_H
#define DESCENDANT_COUNT_H

#include <stddef.h>
#include <sys/types.h>

/* How many live processes that can be seen in /proc descend from `ancestor`. */
size_t count_descendants(pid_t ancestor);

#endif
