/*
 * configfile.c - reads a configuration file into memory, if it can be trusted.
 *
 * The file is read into an anonymous mapping rather than mapped, because a mapped file that shrinks
 * would kill the program with SIGBUS. Cancellation is off throughout: open and read are
 * cancellation points, and the program's thread must not end inside the library.
 */
#include "configfile.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "util/text.h"

#define ROOM (GPS_CONFIGFILE_MAX + 1) /* one more, to see that there is more */

static void explain(char message[GPS_CONFIGFILE_MESSAGE], int error) {
    struct gps_text text = gps_text_on(message, GPS_CONFIGFILE_MESSAGE);
    gps_text_str(&text, "cannot be read: ");
    gps_text_str(&text, strerrordesc_np(error)); /* strerror would take locale locks */
}

/* Whether a file that could not be opened counts as missing. That includes a file in a directory
 * that is closed to this user: a service that dropped root's rights still has HOME=/root. */
static bool is_absent(const char *path, int error) {
    if (error == ENOENT || error == ENOTDIR)
        return true;
    struct stat info;
    return error == EACCES && stat(path, &info) != 0;
}

static int refuse(char message[GPS_CONFIGFILE_MESSAGE], const char *why) {
    struct gps_text text = gps_text_on(message, GPS_CONFIGFILE_MESSAGE);
    gps_text_str(&text, why);
    return -EPERM;
}

static int check(int fd, char message[GPS_CONFIGFILE_MESSAGE]) {
    struct gps_text text = gps_text_on(message, GPS_CONFIGFILE_MESSAGE);
    struct stat info;
    if (fstat(fd, &info) != 0) {
        int error = errno;
        explain(message, error);
        return -error;
    }
    if (S_ISDIR(info.st_mode))
        return refuse(message, "is a directory; a regular file is needed");
    if (S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3))
        return 0; /* /dev/null: no configuration, whatever the default files say */
    if (!S_ISREG(info.st_mode))
        return refuse(message, "is not a regular file");
    if (info.st_size > (off_t)GPS_CONFIGFILE_MAX)
        return refuse(message, "is larger than 1 MiB");
    if (info.st_uid == 0 || info.st_uid == geteuid())
        return 0;
    gps_text_str(&text, "belongs to user ");
    gps_text_dec(&text, info.st_uid);
    gps_text_str(&text, "; it must belong to root or to you, user ");
    gps_text_dec(&text, geteuid());
    return -EPERM;
}

static int fill(int fd, struct gps_configfile *file, char message[GPS_CONFIGFILE_MESSAGE]) {
    while (file->count < ROOM) {
        ssize_t got = read(fd, file->bytes + file->count, ROOM - file->count);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int error = errno;
            explain(message, error);
            return -error;
        }
        if (got == 0)
            return 0;
        file->count += (size_t)got;
    }
    return refuse(message, "is larger than 1 MiB");
}

static int read_checked(int fd, struct gps_configfile *file, char message[GPS_CONFIGFILE_MESSAGE]) {
    int status = check(fd, message);
    if (status != 0)
        return status;
    file->count = 0;
    file->bytes = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (file->bytes == MAP_FAILED)
        return refuse(message, "cannot be read: out of memory");
    status = fill(fd, file, message);
    if (status != 0)
        gps_configfile_drop(file);
    return status;
}

int gps_configfile_read(const char *path, struct gps_configfile *file,
                        char message[GPS_CONFIGFILE_MESSAGE]) {
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int status = fd < 0 ? -errno : read_checked(fd, file, message);
    if (fd >= 0) {
        close(fd);
    } else {
        explain(message, -status);
        status = is_absent(path, -status) ? -ENOENT : status;
    }
    pthread_setcancelstate(cancel, NULL);
    return status;
}

void gps_configfile_drop(struct gps_configfile *file) {
    munmap(file->bytes, ROOM);
    *file = (struct gps_configfile){NULL, 0};
}
