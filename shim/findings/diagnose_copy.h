/*
 * diagnose_copy.h - why the driver refused a copy or a fill, and kernels that are given what is
 * gone.
 *
 * As in diagnose.h, only what is certain is reported, and the program gets the driver's code in any
 * case. An audit alone sees copies that are refused. Any thread; needs no scope.
 */
#pragma once

#include <stdint.h>

/* It was to touch these bytes of device memory; 0: none, or they are not known. */
void gps_diagnose_copy(uint64_t address, uint64_t size, int code);
/* A kernel is about to get the address as its argument of this number. */
void gps_diagnose_argument(uint64_t address, unsigned number);
