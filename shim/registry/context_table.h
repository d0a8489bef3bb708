/*
 * context_table.h - contexts that the program has made beside the device's own, and on which GPU.
 *
 * Any thread; inside a gps_scope.
 */
#pragma once

#include <stdint.h>

void gps_context_table_add(uint64_t context, int device);
/* The context has ended; it need not be in the table. */
void gps_context_table_remove(uint64_t context);

/* How many live contexts there are on a GPU, the device's own one too, and one of them (0: none).
 * -1: there were more contexts than the table has. */
int gps_context_table_count(int device, uint64_t *one);
