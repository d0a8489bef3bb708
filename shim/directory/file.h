/*
 * file.h - the operations on files of the published directory.
 *
 * Files that other processes wrote are opened so that nothing planted there leads elsewhere or
 * blocks: a symbolic link is not followed, a FIFO does not wait for its other end, and a terminal
 * does not become the controlling one. Descriptors are close-on-exec. `at` is the descriptor of a
 * directory, or AT_FDCWD with an absolute path. Functions return 0 or -errno unless their comment
 * says otherwise. There is no allocation; every thread may call them.
 */
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include "store.h"

#define GPS_FILE_PATH (GPS_STORE_PATH + 256)       /* longest path below a store */
#define GPS_TEMP_NAME (5 + GPS_PROC_NAME + 1 + 16) /* ".tmp." owner "." 16 hex digits, NUL */

/* <store>/<directory>/<name>, or <store>/<directory> if name is NULL. */
void gps_file_path(const struct gps_store *store, const char *directory, const char *name,
                   char path[GPS_FILE_PATH]);

/* A file of a process's in procs/: <owner><suffix>, as ".order"; its own has the suffix "". The
 * second takes the owner from a name; false: it is no such file. */
void gps_file_path_of_owner(const struct gps_store *store, const struct gps_owner *owner,
                            const char *suffix, char path[GPS_FILE_PATH]);
bool gps_file_owner(const char *name, const char *suffix, struct gps_owner *owner);

/* Opens <store>/<directory> with O_PATH, as the `at` of other calls. A descriptor or -errno. */
int gps_file_directory(const struct gps_store *store, const char *directory);

/* Opens an entry of any type. A descriptor or -errno. */
int gps_file_open_any(int at, const char *name, int flags);

/* Opens a regular file of the user's own that is closed to group and others, and fills in st; with
 * O_CREAT it is made with mode 0600, whatever the umask, where there is none. A descriptor or
 * -errno. -EBADMSG: the entry is no such file, and *why says what it is. `st` and `why` may be
 * NULL. */
int gps_file_open(int at, const char *name, int flags, struct stat *st, const char **why);

/* Makes a new file in the same way, open for reading and writing. */
int gps_file_create(int at, const char *name);

/* Renames within a directory. The second does not replace an existing entry: -EEXIST. */
int gps_file_rename(int at, const char *from, const char *to);
int gps_file_rename_new(int at, const char *from, const char *to);

/* Reads up to `size` bytes, fewer only at the end of the file. Returns their number or -errno. */
ssize_t gps_file_read(int fd, void *bytes, size_t size, off_t offset);
/* Writes all bytes or fails. -EFBIG: beyond the limit on file sizes; the SIGXFSZ that this raises
 * is discarded, and the caller must have it blocked. */
int gps_file_write(int fd, const void *bytes, size_t size, off_t offset);

/* Locks bytes of the file for this open file description. -EAGAIN: another description has them. */
int gps_file_lock(int fd, off_t start, off_t length);
/* Whether another description holds a lock on the file: 1, 0 or -errno. */
int gps_file_locked(int fd);
/* Opens the lock file at an absolute path and locks bytes of it (length 0: all). A descriptor that
 * holds the lock, or -errno. O_CREAT in flags makes a missing file. -EAGAIN: another process has
 * the bytes, or removed the file before it was locked. */
int gps_file_open_locked(const char *path, int flags, off_t start, off_t length);
void gps_file_close_locked(int fd);
/* Whether the open file is the one that the path names now. */
bool gps_file_is_at(const char *path, int fd);

/* -ENOSPC: one more page would leave less than GPS_STORE_RESERVE on the file system. */
int gps_file_room(int fd);

/* The name of a temporary file. It contains the writer, so a dead one's file can be removed. */
void gps_temp_format(const struct gps_owner *writer, char name[GPS_TEMP_NAME]);
bool gps_temp_parse(const char *name, struct gps_owner *writer);
/* Makes a temporary file in a directory of the store, with these bytes; `path` gets its path.
 * -ENOSPC as gps_file_room. */
int gps_temp_write(const struct gps_store *store, const char *directory,
                   const struct gps_owner *writer, const void *bytes, size_t size,
                   char path[GPS_FILE_PATH]);

/* 64 random bits, not secret. Never waits, never fails. */
uint64_t gps_random(void);

/* Walks a directory with getdents64 and a buffer on the stack; opendir would call malloc.
 *
 *     gps_dir_open(&dir, store, "procs");
 *     while ((name = gps_dir_next(&dir))) ...      dir.fd serves as `at`
 *     return gps_dir_close(&dir);
 *
 * The walk may or may not see entries that appear or disappear meanwhile. It belongs to one thread.
 */
struct gps_dir {
    int fd;
    int status; /* 0, or the -errno that ends the walk; also for the caller to set */
    size_t at;
    size_t end;
    char buffer[1024] __attribute__((aligned(8)));
};

void gps_dir_open(struct gps_dir *dir, const struct gps_store *store, const char *directory);
void gps_dir_open_path(struct gps_dir *dir, const char *path);
/* The name of the next entry, valid until the next call; NULL at the end and after an error. */
const char *gps_dir_next(struct gps_dir *dir);
/* 0, or the error that ended the walk. */
int gps_dir_close(struct gps_dir *dir);
