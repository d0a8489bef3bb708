/*
 * driver_code.h - what a code means with which the driver refuses a call.
 *
 * A finding about a refused call says the number and, where it is known, what is behind it. Any
 * thread may call the function.
 */
#pragma once

#include "util/text.h"

/* Adds "the driver's code is 719: an earlier kernel or copy failed, ...". */
void gps_driver_code_add(struct gps_text *text, int code);
