/*
 * configfile.h - reads a configuration file into memory, if it can be trusted.
 *
 * Trusted is a regular file of at most 1 MiB that belongs to root or to the user. Reading never
 * blocks on a FIFO or a device. The memory is mapped, without malloc, and gps_configfile_drop
 * unmaps it. 0 or -errno. -ENOENT: there is no such file; every other error fills in the message.
 */
#pragma once

#include <stddef.h>

#define GPS_CONFIGFILE_MAX     ((size_t)1 << 20)
#define GPS_CONFIGFILE_MESSAGE 192u

struct gps_configfile {
    char *bytes;
    size_t count;
};

int gps_configfile_read(const char *path, struct gps_configfile *file,
                        char message[GPS_CONFIGFILE_MESSAGE]);
void gps_configfile_drop(struct gps_configfile *file);
