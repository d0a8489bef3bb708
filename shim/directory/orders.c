#include "orders.h"

#define XXH_INLINE_ALL
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "file.h"

#define SUM(object) XXH3_64bits((object), sizeof(*(object)) - sizeof(uint64_t))
#define IS_WHOLE(object, magic_)                                                                   \
    (memcmp((object)->magic, magic_, sizeof((object)->magic)) == 0 &&                              \
     (object)->version == GPS_FORMAT_VERSION && (object)->checksum == SUM(object))
enum { TRIES = 3, PAUSE = 1000 /* us */ };

static const char order_suffix[] = ".order", answer_suffix[] = ".answer",
                  paused_suffix[] = ".paused";
static const char *const suffixes[] = {order_suffix, answer_suffix, paused_suffix};
enum { SUFFIXES = sizeof(suffixes) / sizeof(suffixes[0]) };

/* --- orders --- */

int gps_order_open(const struct gps_store *store, const struct gps_owner *owner) {
    char path[GPS_FILE_PATH];
    gps_file_path_of_owner(store, owner, order_suffix, path);
    return gps_file_open_locked(path, O_CREAT, 0, 0);
}

int gps_order_write(int fd, struct gps_order *order) {
    memcpy(order->magic, GPS_ORDER_MAGIC, sizeof(order->magic));
    order->version = GPS_FORMAT_VERSION;
    order->checksum = SUM(order);
    return gps_file_write(fd, order, sizeof(*order), 0);
}

static int open_to_read(const struct gps_store *store, const struct gps_owner *owner,
                        const char *suffix) {
    char path[GPS_FILE_PATH];
    gps_file_path_of_owner(store, owner, suffix, path);
    return gps_file_open(AT_FDCWD, path, O_RDONLY, NULL, NULL);
}

int gps_order_read(const struct gps_store *store, const struct gps_owner *owner,
                   struct gps_order *order, bool *held) {
    const int fd = open_to_read(store, owner, order_suffix);
    if (fd < 0)
        return fd;
    const bool good = gps_file_read(fd, order, sizeof(*order), 0) == (ssize_t)sizeof(*order) &&
                      IS_WHOLE(order, GPS_ORDER_MAGIC);
    *held = gps_file_locked(fd) != 0;
    close(fd);
    return good ? 0 : -EBADMSG;
}

/* --- answers --- */

int gps_answer_write(const struct gps_store *store, const struct gps_owner *self,
                     struct gps_answer_file *answer) {
    char path[GPS_FILE_PATH];
    gps_file_path_of_owner(store, self, answer_suffix, path);
    memcpy(answer->magic, GPS_ANSWER_MAGIC, sizeof(answer->magic));
    answer->version = GPS_FORMAT_VERSION;
    answer->checksum = SUM(answer);
    const int fd = gps_file_open(AT_FDCWD, path, O_RDWR | O_CREAT, NULL, NULL);
    if (fd < 0)
        return fd;
    const int status = gps_file_write(fd, answer, sizeof(*answer), 0);
    close(fd);
    return status;
}

int gps_answer_read(const struct gps_store *store, const struct gps_owner *owner,
                    struct gps_answer_file *answer) {
    const int fd = open_to_read(store, owner, answer_suffix);
    bool good = false;
    if (fd < 0)
        return fd;
    for (int tries = 0; tries < TRIES && !good; tries++) {
        if (tries)
            usleep(PAUSE);
        good = gps_file_read(fd, answer, sizeof(*answer), 0) == (ssize_t)sizeof(*answer) &&
               IS_WHOLE(answer, GPS_ANSWER_MAGIC) &&
               memchr(answer->reason, 0, sizeof(answer->reason)) != NULL;
    }
    close(fd);
    return good ? 0 : -EBADMSG;
}

/* --- all files --- */

bool gps_answer_sleeps(const struct gps_store *store, const struct gps_owner *owner) {
    struct gps_answer_file answer;
    return gps_answer_read(store, owner, &answer) == 0 && answer.state != GPS_ANSWER_RUNS;
}

bool gps_orders_parse(const char *name, struct gps_owner *owner) {
    for (unsigned i = 0; i < SUFFIXES; i++)
        if (gps_file_owner(name, suffixes[i], owner))
            return true;
    return false;
}

void gps_orders_remove(const struct gps_store *store, const struct gps_owner *owner) {
    char path[GPS_FILE_PATH];
    for (unsigned i = 0; i < SUFFIXES; i++) {
        gps_file_path_of_owner(store, owner, suffixes[i], path);
        unlink(path);
    }
}

/* --- processes that are to merge nothing --- */

bool gps_paused_get(const struct gps_store *store, const struct gps_owner *owner) {
    char path[GPS_FILE_PATH];
    gps_file_path_of_owner(store, owner, paused_suffix, path);
    return access(path, F_OK) == 0;
}

int gps_paused_set(const struct gps_store *store, const struct gps_owner *owner, bool paused) {
    char path[GPS_FILE_PATH];
    gps_file_path_of_owner(store, owner, paused_suffix, path);
    if (!paused)
        return unlink(path) == 0 || errno == ENOENT ? 0 : -errno;
    const int fd = gps_file_create(AT_FDCWD, path);
    if (fd >= 0)
        close(fd);
    return fd >= 0 || fd == -EEXIST ? 0 : fd;
}
