/*
 * file_mark.h - a mark on an open file, by which it is known again under the number of a
 * descriptor, and by whom it was exported.
 *
 * All descriptors of the driver's memory look alike to fstat, and a number that was closed is given
 * again. The mark is the signal of F_SETSIG, which has no effect without O_ASYNC: it belongs to the
 * open file, and so to each descriptor of it in every process. There are 31 of them, so that two
 * files can have the same. Who exported it is the owner of F_SETOWN, whom signals without O_ASYNC
 * do not reach either. No state; keeps errno.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The mark that the file has, or else gets by this number; 0: it can have none. */
int gps_file_mark(int descriptor, uint64_t number);
/* This process has exported it: others see its pid, in their own pid namespace. Whose it is already
 * it stays. */
void gps_file_claim(int descriptor);
uint32_t gps_file_claimant(int descriptor); /* 0: nobody, as far as is known here */
/* Whether the file of the descriptor has this mark, which is not 0. */
bool gps_file_has_mark(int descriptor, int mark);
