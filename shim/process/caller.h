/* caller.h - the module of the program that makes the call under way. */
#pragma once

#include "config/config.h"

/* The file name of the first module on the stack that is neither the vendor's nor ours. ""
 * for code outside any module. Any thread. */
void gps_caller_name(char *name, size_t size);
/* Whether a rule is for the module. `name` is "" at first, and found once a call, for all rules. */
bool gps_caller_fits(const struct gps_rule *rule, char name[GPS_GLOB_BYTES]);
