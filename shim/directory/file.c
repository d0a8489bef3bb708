#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h> /* for renameat, which it declares */
#include <string.h>
#include <sys/random.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/digits.h"
#include "util/lock.h"
#include "util/program_signals.h"
#include "util/text.h"

#define TEMP_PREFIX ".tmp."

void gps_file_path(const struct gps_store *store, const char *directory, const char *name,
                   char path[GPS_FILE_PATH]) {
    struct gps_text out = gps_text_on(path, GPS_FILE_PATH);
    gps_text_strs(&out, store->path, "/", directory, name ? "/" : NULL, name);
}

int gps_file_open_any(int at, const char *name, int flags) {
    gps_lock_check(GPS_ACROSS_FILE, "the use of a file");
    const int safe = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    int fd = (int)TEMP_FAILURE_RETRY(openat(at, name, flags | safe, 0600));
    return fd < 0 ? -errno : fd;
}

void gps_file_path_of_owner(const struct gps_store *store, const struct gps_owner *owner,
                            const char *suffix, char path[GPS_FILE_PATH]) {
    struct gps_text out = gps_text_on(path, GPS_FILE_PATH);
    char name[GPS_PROC_NAME];
    gps_owner_format(owner, name);
    gps_text_strs(&out, store->path, "/procs/", name, suffix);
}

bool gps_file_owner(const char *name, const char *suffix, struct gps_owner *owner) {
    const size_t length = strlen(name), behind = strlen(suffix);
    GPS_NEW_TEXT(text, GPS_PROC_NAME);
    if (length <= behind || strcmp(name + length - behind, suffix) != 0)
        return false;
    gps_text_bytes(&text, name, length - behind);
    return !text.cut && gps_owner_parse(text.bytes, owner);
}

int gps_file_directory(const struct gps_store *store, const char *directory) {
    char path[GPS_FILE_PATH];
    gps_file_path(store, directory, NULL, path);
    return gps_file_open_any(AT_FDCWD, path, O_PATH | O_DIRECTORY);
}

/* The phrase on a file for an error of open; NULL if the error is not about the file. */
static const char *open_refusal(int error) {
    switch (error) {
    case -ELOOP:
        return "it is a symbolic link";
    case -ENXIO: /* a socket */
    case -EISDIR:
        return "it is not a regular file";
    default:
        return NULL;
    }
}

static const char *check_stat(const struct stat *st) {
    if (!S_ISREG(st->st_mode))
        return "it is not a regular file";
    if (st->st_uid != geteuid())
        return "it belongs to another user";
    if ((st->st_mode & 077) != 0)
        return "its mode opens it to others";
    return NULL;
}

/* Gives a new file our own mode bits, which the program's umask may have cleared. */
static int give_own_bits(int fd, int flags, const struct stat *st) {
    const bool lacks = flags & O_CREAT && (st->st_mode & 0777) != 0600;
    return lacks && fchmod(fd, 0600) != 0 ? -errno : fd;
}

int gps_file_open(int at, const char *name, int flags, struct stat *st, const char **why) {
    struct stat found;
    int fd = gps_file_open_any(at, name, flags);
    int status = fd;
    const char *wrong = NULL;
    if (fd < 0)
        wrong = open_refusal(fd);
    else if (fstat(fd, &found) != 0)
        status = -errno;
    else
        wrong = check_stat(&found);
    if (wrong)
        status = -EBADMSG;
    if (wrong && why)
        *why = wrong;
    if (status >= 0)
        status = give_own_bits(fd, flags, &found);
    if (status >= 0 && st)
        *st = found;
    if (status < 0 && fd >= 0)
        close(fd);
    return status;
}

int gps_file_create(int at, const char *name) {
    return gps_file_open(at, name, O_RDWR | O_CREAT | O_EXCL, NULL, NULL);
}

int gps_file_rename(int at, const char *from, const char *to) {
    gps_lock_check(GPS_ACROSS_FILE, "the use of a file");
    return renameat(at, from, at, to) == 0 ? 0 : -errno;
}

int gps_file_rename_new(int at, const char *from, const char *to) {
    gps_lock_check(GPS_ACROSS_FILE, "the use of a file");
    if (renameat2(at, from, at, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    if (linkat(at, from, at, to, 0) != 0) /* a file system without that flag */
        return -errno;
    unlinkat(at, from, 0);
    return 0;
}

ssize_t gps_file_read(int fd, void *bytes, size_t size, off_t offset) {
    gps_lock_check(GPS_ACROSS_FILE, "the use of a file");
    size_t done = 0;
    while (done < size) {
        ssize_t n = pread(fd, (char *)bytes + done, size - done, offset + (off_t)done);
        if (n == 0)
            break;
        if (n > 0)
            done += (size_t)n;
        else if (errno != EINTR)
            return -errno;
    }
    return (ssize_t)done;
}

/* A write over the limit on file sizes raised SIGXFSZ in this thread, where it is blocked. */
static int over_limit(void) {
    gps_signal_discard(SIGXFSZ);
    return -EFBIG;
}

int gps_file_write(int fd, const void *bytes, size_t size, off_t offset) {
    gps_lock_check(GPS_ACROSS_FILE, "the use of a file");
    size_t done = 0;
    while (done < size) {
        ssize_t n = pwrite(fd, (const char *)bytes + done, size - done, offset + (off_t)done);
        if (n > 0)
            done += (size_t)n;
        else if (n == 0 || errno != EINTR)
            return n == 0 ? -EIO : errno == EFBIG ? over_limit() : -errno;
    }
    return 0;
}

int gps_file_lock(int fd, off_t start, off_t length) {
    gps_lock_check(GPS_ACROSS_FILE, "the use of a file");
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
    if (TEMP_FAILURE_RETRY(fcntl(fd, F_OFD_SETLK, &lock)) == 0)
        return 0;
    return errno == EACCES ? -EAGAIN : -errno; /* POSIX lets "held" be either */
}

int gps_file_open_locked(const char *path, int flags, off_t start, off_t length) {
    const int fd = gps_file_open(AT_FDCWD, path, O_RDWR | flags, NULL, NULL);
    if (fd < 0)
        return fd;
    int status = gps_file_lock(fd, start, length);
    if (status == 0 && !gps_file_is_at(path, fd))
        status = -EAGAIN;
    if (status == 0)
        return fd;
    close(fd);
    return status;
}

/* Unlocks first: a child forked meanwhile has the description too, and would keep the lock. */
void gps_file_close_locked(int fd) {
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    fcntl(fd, F_OFD_SETLK, &lock);
    close(fd);
}

bool gps_file_is_at(const char *path, int fd) {
    struct stat opened, now;
    return fstat(fd, &opened) == 0 && lstat(path, &now) == 0 && now.st_dev == opened.st_dev &&
           now.st_ino == opened.st_ino;
}

int gps_file_locked(int fd) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (TEMP_FAILURE_RETRY(fcntl(fd, F_OFD_GETLK, &lock)) != 0)
        return -errno;
    return lock.l_type != F_UNLCK;
}

int gps_file_room(int fd) {
    struct statfs fs;
    if (TEMP_FAILURE_RETRY(fstatfs(fd, &fs)) != 0)
        return -errno;
    if (fs.f_blocks == 0) /* a tmpfs without a limit on its size */
        return 0;
    uint64_t left = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    return left < GPS_STORE_RESERVE + (uint64_t)fs.f_bsize ? -ENOSPC : 0;
}

int gps_temp_write(const struct gps_store *store, const char *directory,
                   const struct gps_owner *writer, const void *bytes, size_t size,
                   char path[GPS_FILE_PATH]) {
    char name[GPS_TEMP_NAME];
    gps_temp_format(writer, name);
    gps_file_path(store, directory, name, path);
    const int fd = gps_file_create(AT_FDCWD, path);
    if (fd < 0)
        return fd;
    int status = gps_file_room(fd);
    if (status == 0)
        status = gps_file_write(fd, bytes, size, 0);
    close(fd);
    if (status < 0)
        unlink(path);
    return status;
}

/* Counts up from a random number: few processes write temporary files for one owner. */
static uint64_t unique(void) {
    static _Atomic uint64_t next;
    uint64_t none = 0;
    if (!atomic_load(&next))
        atomic_compare_exchange_strong(&next, &none, gps_random());
    return atomic_fetch_add(&next, 1);
}

void gps_temp_format(const struct gps_owner *writer, char name[GPS_TEMP_NAME]) {
    char *owner = stpcpy(name, TEMP_PREFIX);
    gps_owner_format(writer, owner);
    char *end = owner + strlen(owner);
    struct gps_text out = gps_text_on(end, (size_t)(name + GPS_TEMP_NAME - end));
    gps_text_add(&out, ".%016lx", unique());
}

bool gps_temp_parse(const char *name, struct gps_owner *writer) {
    const size_t prefix = sizeof(TEMP_PREFIX) - 1;
    const char *suffix = strrchr(name, '.');
    if (strncmp(name, TEMP_PREFIX, prefix) != 0 || suffix < name + prefix)
        return false;
    GPS_NEW_TEXT(text, GPS_PROC_NAME);
    gps_text_bytes(&text, name + prefix, (size_t)(suffix - name) - prefix);
    suffix++;
    uint64_t random;
    return !text.cut && gps_hex64_parse(&suffix, &random) && *suffix == '\0' &&
           gps_owner_parse(text.bytes, writer);
}

uint64_t gps_random(void) {
    uint64_t value;
    if (getrandom(&value, sizeof(value), GRND_NONBLOCK) == (ssize_t)sizeof(value))
        return value;
    /* Early in the boot, or under a seccomp filter: a value unlike that of other processes will do.
     */
    return gps_clock_monotonic() ^ (uint64_t)getpid() << 42 ^ (uint64_t)(uintptr_t)&value << 20;
}

/* --- the entries of a directory --- */

void gps_dir_open_path(struct gps_dir *dir, const char *path) {
    dir->at = 0;
    dir->end = 0;
    dir->fd = gps_file_open_any(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
    dir->status = dir->fd < 0 ? dir->fd : 0;
}

void gps_dir_open(struct gps_dir *dir, const struct gps_store *store, const char *directory) {
    char path[GPS_FILE_PATH];
    gps_file_path(store, directory, NULL, path);
    gps_dir_open_path(dir, path);
}

const char *gps_dir_next(struct gps_dir *dir) {
    gps_lock_check(GPS_ACROSS_FILE, "the use of a file");
    if (dir->status == 0 && dir->at == dir->end) {
        ssize_t n = syscall(SYS_getdents64, dir->fd, dir->buffer, sizeof(dir->buffer));
        dir->status = n < 0 ? -errno : 0;
        dir->at = 0;
        dir->end = n < 0 ? 0 : (size_t)n;
    }
    if (dir->status != 0 || dir->end == 0)
        return NULL;
    const struct dirent64 *entry = (const struct dirent64 *)(const void *)(dir->buffer + dir->at);
    dir->at += entry->d_reclen;
    return entry->d_name;
}

int gps_dir_close(struct gps_dir *dir) {
    if (dir->fd >= 0)
        close(dir->fd);
    return dir->status;
}
