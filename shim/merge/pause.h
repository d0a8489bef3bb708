/*
 * pause.h - `gpushare merge off`: this process merges nothing new, until `on`.
 *
 * What is merged stays so, and what is written becomes private as ever. What is frozen gets its
 * access back. The merger's thread looks whether the directory says so (directory/paused.h); others
 * ask what it has seen.
 */
#pragma once

#include <stdbool.h>

void gps_pause_look(void); /* in the merger's thread, inside a gps_scope */
bool gps_pause_is_on(void);
