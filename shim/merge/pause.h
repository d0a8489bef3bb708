/*
 * pause.h - `gpushare merge off`: this process merges nothing new, until `on`. Or for good, because
 * it has called a function of the driver that nobody here knows (plain.h).
 *
 * What is merged stays so, and what is written becomes private as ever. What is frozen gets its
 * access back. The merger's thread looks whether the directory says so (directory/paused.h); others
 * ask what it has seen.
 */
#pragma once

#include <stdbool.h>

void gps_pause_look(void); /* in the merger's thread, inside a gps_scope */
bool gps_pause_is_on(void);

/* Any thread may call these, and needs no scope. */
void gps_pause_for_good(const char *function);
const char *gps_pause_function(void); /* the first one; NULL: not for good */
