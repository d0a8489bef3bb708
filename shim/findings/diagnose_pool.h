/*
 * diagnose_pool.h - what is wrong with a call for memory pools, by the books.
 *
 * As in diagnose.h, only what is certain is reported, and the program gets the driver's code in any
 * case. Any thread may call the functions, and none needs a scope.
 */
#pragma once

#include "registry/pool_books.h"

/* The driver has refused to allocate from a pool, or to free a pointer. */
void gps_diagnose_pool_allocation(uint64_t pool, int code);
void gps_diagnose_pool_free(uint64_t pointer, int code);
/* Memory of a pool of this process's is freed, and taken from the books: an audit tells who has it
 * imported. */
void gps_diagnose_pool_order(const struct gps_pool_pointer *pointer);
/* A pool is destroyed, and taken from the books, with pointers that are alive. */
void gps_diagnose_pool_destroyed(const struct gps_pool *pool);
