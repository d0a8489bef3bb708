/*
 * file_mark.h - a mark on an open file, by which it is recognised behind a descriptor, and the
 * process that exported it.
 *
 * All descriptors of the driver's memory look alike to fstat, and the number of a closed one is
 * given again. The mark is the signal of F_SETSIG, which has no effect without O_ASYNC: it belongs
 * to the open file, and so to each descriptor of it in every process. There are 31 of them, so two
 * files can have the same. The exporter is the owner of F_SETOWN, which gets no signals without
 * O_ASYNC either. No state; keeps errno.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The mark of the file; one without gets it by this number. 0: it can have none. */
int gps_file_mark(int descriptor, uint64_t number);
/* This process exported the file: others see its pid, in their namespace. An earlier one stays. */
void gps_file_claim(int descriptor);
uint32_t gps_file_claimant(int descriptor); /* 0: none that is known here */
/* Whether the file of the descriptor has this mark, which is not 0. */
bool gps_file_has_mark(int descriptor, int mark);
