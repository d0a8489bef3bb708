#include "room_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "file.h"
#include "lease.h"
#include "util/descriptors.h"

/* The namespace is the last part of the store's path. */
static void make_path(const struct gps_store *store, const uint8_t device[GPS_UUID_BYTES],
                      char path[GPS_FILE_PATH]) {
    struct gps_text text = gps_text_on(path, GPS_FILE_PATH);
    struct gps_id id;
    char hex[GPS_ID_HEX];
    static_assert(sizeof(id) == GPS_UUID_BYTES, "as long as an id");
    memcpy(&id, device, sizeof(id));
    gps_id_format(&id, hex);
    gps_text_bytes(&text, store->path, (size_t)(strrchr(store->path, '/') - store->path));
    gps_text_strs(&text, "/.room-", hex);
}

static void read_holder(const char *path, struct gps_owner *holder) {
    const int fd = gps_file_open(AT_FDCWD, path, O_RDONLY, NULL, NULL);
    memset(holder, 0, sizeof(*holder));
    if (fd < 0)
        return;
    if (gps_file_read(fd, holder, sizeof(*holder), 0) != (ssize_t)sizeof(*holder) ||
        !memchr(holder->command, 0, sizeof(holder->command)))
        memset(holder, 0, sizeof(*holder));
    close(fd);
}

int gps_room_lock_take(const struct gps_store *store, const uint8_t device[GPS_UUID_BYTES],
                       const struct gps_owner *self, bool by_descriptor, struct gps_room_lock *lock,
                       struct gps_owner *holder) {
    char path[GPS_FILE_PATH];
    make_path(store, device, path);
    const int fd = gps_file_open_locked(path, O_CREAT, 0, 0);
    if (fd == -EAGAIN)
        read_holder(path, holder);
    if (fd < 0)
        return fd;
    const int status = gps_file_write(fd, self, sizeof(*self), 0);
    if (status < 0) {
        gps_file_close_locked(fd);
        return status;
    }
    void *mapping = by_descriptor ? MAP_FAILED : gps_lease_map(fd);
    *lock = (struct gps_room_lock){.held = true};
    if (mapping == MAP_FAILED) {
        lock->fd = gps_descriptor_move_high(fd);
    } else {
        lock->mapping = mapping;
        close(fd);
    }
    return 0;
}

void gps_room_lock_give(struct gps_room_lock *lock) {
    if (lock->mapping)
        munmap(lock->mapping, 1);
    else if (lock->held)
        gps_file_close_locked(lock->fd);
    *lock = (struct gps_room_lock){.held = false};
}

void gps_room_lock_forget(struct gps_room_lock *lock) {
    if (lock->held && !lock->mapping)
        close(lock->fd);
    *lock = (struct gps_room_lock){.held = false};
}
