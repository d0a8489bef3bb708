/*
 * dir.h - walks a directory with getdents64 and a buffer on the stack: opendir would call malloc.
 *
 *     status = gps_dir_open(&dir, store, "procs");
 *     while (status == 0 && (name = gps_dir_next(&dir, &status))) ...   dir.fd serves as `at`
 *     gps_dir_close(&dir);
 *
 * Entries that come or go during the walk may or may not be seen.
 */
#ifndef GPS_DIR_H
#define GPS_DIR_H

#include "store.h"

struct gps_dir {
    int fd;
    size_t at;
    size_t end;
    _Alignas(8) char buffer[1024];
};

int gps_dir_open(struct gps_dir *dir, const struct gps_store *store, const char *directory);

/* The next entry's name, valid until the next call; NULL at the end, or with *status < 0 on an
 * error.
 */
const char *gps_dir_next(struct gps_dir *dir, int *status);

/* Also fine after an open that failed. */
void gps_dir_close(struct gps_dir *dir);

#endif
