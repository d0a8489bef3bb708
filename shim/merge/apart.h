/*
 * apart.h - blocks that this process gave, and that no other has though its program merges there.
 *
 * They are merged and save nothing: the bytes of the others differ, or lie at other distances from
 * a multiple of 2 MiB. It reads the files of all processes, and is for `gpushare explain`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* False: no other process of this program merges memory of a GPU of ours, or there is no memory to
 * find out. Inside a gps_scope, without a lock. */
bool gps_apart_bytes(uint64_t *bytes);
