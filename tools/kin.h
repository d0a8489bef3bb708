/*
 * kin.h - which processes descend from one.
 */
#ifndef GPS_TOOL_KIN_H
#define GPS_TOOL_KIN_H

#include <stddef.h>
#include <sys/types.h>

/* How many live processes that can be seen in /proc descend from `ancestor`. */
size_t kin_count(pid_t ancestor);

#endif
