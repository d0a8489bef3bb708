/*
 * configfile.h - one file into memory, if it may be trusted.
 *
 * Only a regular file of root's or of the user's own, at most 1 MiB. Never blocks on a FIFO or a
 * device. The memory is mapped, not malloc'ed, and gps_configfile_drop gives it back. 0 or -errno;
 * -ENOENT says that there is no such file, and everything else comes with a message.
 */
#ifndef GPS_CONFIGFILE_H
#define GPS_CONFIGFILE_H

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

#endif
