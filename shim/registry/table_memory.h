/*
 * table_memory.h - memory for uthash's own tables, without malloc.
 *
 * Entries come and go on the way from _exit, too, where another thread, or a handler's victim, may
 * hold malloc's lock for ever. Freed pieces are kept by size for the next table. Any thread may
 * call the functions.
 */
#pragma once

#include <stddef.h>

/* Returns NULL where there is no memory. */
void *gps_table_allocate(size_t size);
void gps_table_free(void *memory, size_t size);
