/* apart_help.h - which settings of engines help against tensors that lie apart (GPS_PRIVATE_APART).
 */
#pragma once

#include <stdio.h>

/* "Then this may help:" and a line an engine, behind a margin. */
void apart_print_help(FILE *out, const char *margin);
