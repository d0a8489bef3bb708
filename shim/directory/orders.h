/*
 * orders.h - files by which a process is told to evict memory, and answers (gpushare/suspend.h).
 *
 * They are removed with the process's own file, or by gc after the process was killed. Errors,
 * threads and memory are as in store.h.
 */
#pragma once

#include "gpushare/suspend.h"
#include "store.h"

/* --- for the tool that gives orders --- */

/* Opens the order of a process, and holds its lock. A descriptor for gps_file_close_locked, or
 * -errno. -EAGAIN: another process has the lock. */
int gps_order_open(const struct gps_store *store, const struct gps_owner *owner);
/* Seals and writes it. 0 or -errno. */
int gps_order_write(int fd, struct gps_order *order);

/* --- for the process --- */

/* The last order, and whether its lock is held. -ENOENT: there is none. */
int gps_order_read(const struct gps_store *store, const struct gps_owner *owner,
                   struct gps_order *order, bool *held);
/* Seals and writes it. 0 or -errno. */
int gps_answer_write(const struct gps_store *store, const struct gps_owner *self,
                     struct gps_answer_file *answer);

/* --- for both --- */

/* -ENOENT: the process takes no orders. */
int gps_answer_read(const struct gps_store *store, const struct gps_owner *owner,
                    struct gps_answer_file *answer);
/* Whether the process is suspended, or about to be. */
bool gps_answer_sleeps(const struct gps_store *store, const struct gps_owner *owner);
/* Whether an entry of procs/ is an order, an answer or a .paused file, and its owner. */
bool gps_orders_parse(const char *name, struct gps_owner *owner);
/* Removes all such files of a process. */
void gps_orders_remove(const struct gps_store *store, const struct gps_owner *owner);

/* --- processes that are to merge nothing: procs/<owner>.paused, an empty file --- */

/* `gpushare merge off` makes the file and `on` removes it. The process looks for the file. */
bool gps_paused_get(const struct gps_store *store, const struct gps_owner *owner);
/* 0, also where nothing changes, or -errno. */
int gps_paused_set(const struct gps_store *store, const struct gps_owner *owner, bool paused);
