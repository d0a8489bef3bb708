/* caller.h - the module of the program that makes the call under way. */
#pragma once

#include <stddef.h>

/* The file name of the first module on the stack that is neither the vendor's nor ours. ""
 * for code outside any module. Any thread. */
void gps_caller_name(char *name, size_t size);
