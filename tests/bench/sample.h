/*
 * sample.h - what all benchmarks take samples by: clocks, the median, the memory of the process.
 */
#pragma once

#include <stddef.h>

double now(void);                               /* nanoseconds, of the wall */
double cpu_time(void);                          /* of this thread */
double median_of(double *values, size_t count); /* sorts them */
double resident(void);                          /* bytes */
