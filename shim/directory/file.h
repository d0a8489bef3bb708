/*
 * file.h - the few things that one does to files of the published directory.
 *
 * What others wrote is opened so that nothing they planted can lead elsewhere or block: no symlink
 * is followed, a FIFO does not wait for its other end, a terminal does not become ours. Descriptors
 * are close-on-exec. `at` is a directory's descriptor, or AT_FDCWD beside an absolute path. No
 * state, no allocation; 0 (or what is said) or -errno.
 */
#ifndef GPS_FILE_H
#define GPS_FILE_H

#include <sys/stat.h>
#include <sys/types.h>

#include "store.h"

#define GPS_FILE_PATH (GPS_STORE_PATH + 256)       /* longest path below a store */
#define GPS_TEMP_NAME (5 + GPS_PROC_NAME + 1 + 16) /* ".tmp." owner "." 16 hex digits, NUL */

/* <store>/<directory>, and /<name> unless that is NULL. */
void gps_file_path(const struct gps_store *store, const char *directory, const char *name,
                   char path[GPS_FILE_PATH]);

/* A descriptor of <store>/<directory> for the calls that take an `at`. Not readable. */
int gps_file_directory(const struct gps_store *store, const char *directory);

/* Opens whatever stands there: a descriptor or -errno. */
int gps_file_open_any(int at, const char *name, int flags);

/* Opens a regular file that is ours, closed to group and others, and fills in st. -EBADMSG where it
 * is not; *why (which may be NULL) then says what it is. */
int gps_file_open(int at, const char *name, int flags, struct stat *st, const char **why);

/* A new file, 0600 whatever the umask, open for reading and writing. */
int gps_file_create(int at, const char *name);

/* Within a directory. The second does not replace: -EEXIST. */
int gps_file_rename(int at, const char *from, const char *to);
int gps_file_rename_new(int at, const char *from, const char *to);

/* Reads until `size` bytes or the end of the file: their number, or -errno. */
ssize_t gps_file_read(int fd, void *bytes, size_t size, off_t offset);
/* Writes all or fails. Over the limit on file sizes it takes SIGXFSZ back, which must be blocked.
 */
int gps_file_write(int fd, const void *bytes, size_t size, off_t offset);

/* Locks bytes of the file for this open file description: -EAGAIN when another one has them. */
int gps_file_lock(int fd, off_t start, off_t length);
/* Opens the lock file at an absolute path and locks bytes of it (length 0: all): a descriptor that
 * holds the lock, or -errno. O_CREAT in flags makes a missing file. -EAGAIN: another process has
 * the bytes, or removed the file before it was locked. */
int gps_file_open_locked(const char *path, int flags, off_t start, off_t length);
void gps_file_close_locked(int fd);
/* Whether the open file is the one that the path names now. */
bool gps_file_is_at(const char *path, int fd);
/* Whether any other description holds a lock on the file: 1, 0 or -errno. */
int gps_file_locked(int fd);

/* -ENOSPC when one more page would leave less than GPS_STORE_RESERVE. */
int gps_file_room(int fd);

/* The name of a temporary file that tells who writes it, so that gc can ask whether that one lives.
 */
void gps_temp_format(const struct gps_owner *writer, char name[GPS_TEMP_NAME]);
bool gps_temp_parse(const char *name, struct gps_owner *writer);

/* 64 random bits; not secret. Never waits, never fails. */
uint64_t gps_random(void);

/* A descriptor that stays open in a program: moved out of the way of those that it expects to get.
 */
int gps_file_move_high(int fd);

#endif
