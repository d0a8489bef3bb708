/*
 * dir.h - walks a directory with getdents64 and a buffer on the stack; opendir would call malloc.
 *
 *     status = gps_dir_open(&dir, store, "procs");
 *     while (status == 0 && (name = gps_dir_next(&dir, &status))) ...   dir.fd serves as `at`
 *     gps_dir_close(&dir);
 *
 * The walk may or may not see entries that appear or disappear meanwhile. Functions return 0 or
 * -errno. A struct gps_dir is used by one thread.
 */
#pragma once

#include "store.h"

struct gps_dir {
    int fd;
    size_t at;
    size_t end;
    _Alignas(8) char buffer[1024];
};

int gps_dir_open(struct gps_dir *dir, const struct gps_store *store, const char *directory);

/* The name of the next entry, valid until the next call. NULL at the end, where *status is 0, and
 * on an error, where *status is -errno. */
const char *gps_dir_next(struct gps_dir *dir, int *status);

/* Also allowed after a failed open. */
void gps_dir_close(struct gps_dir *dir);
