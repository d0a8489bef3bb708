#include "frame_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "processes.h"
#include "record.h"
#include "region.h"
#include "util/descriptors.h"

#define AT(member) ((off_t)offsetof(struct gps_frames_file, member))
#define TRIES      16

bool gps_frames_said_valid(const struct gps_frames_said *said) {
    bool valid = gps_frames_head_valid(&said->head) && gps_frames_writer_valid(&said->writer);
    for (unsigned i = 0; valid && i < said->head.slots; i++)
        valid = gps_frames_slot_valid(&said->slot[i]);
    return valid;
}

/* --- the file --- */

static bool is_its_own(const struct gps_frame_file *file, int fd) {
    return gps_descriptor_is_of(fd, file->device, file->inode);
}

static int have(struct gps_frame_file *file) {
    if (is_its_own(file, file->fd))
        return 0;
    file->fd = -1;
    const int fd = gps_file_open(AT_FDCWD, file->path, O_RDWR, NULL, NULL);
    if (fd < 0)
        return fd;
    if (!is_its_own(file, fd)) {
        close(fd);
        return -ENOENT;
    }
    file->fd = gps_descriptor_move_high(fd);
    return 0;
}

static void frame_file_keep(struct gps_frame_file *file, int fd, const struct stat *st) {
    file->device = st->st_dev;
    file->inode = st->st_ino;
    file->fd = gps_descriptor_move_high(fd);
}

int gps_frame_file_make(const struct gps_store *store, struct gps_frames_head *head,
                        struct gps_frame_file *file) {
    static const struct gps_frames_file empty;
    struct stat st;
    gps_frames_head_seal(head);
    gps_region_path(store, &head->region, GPS_FRAMES_SUFFIX, file->path);
    const int fd = gps_file_open_locked(file->path, O_CREAT | O_EXCL, 0, 0);
    if (fd < 0)
        return fd;
    int status = fstat(fd, &st) == 0 ? gps_file_room(fd) : -errno;
    if (status == 0)
        status = gps_file_write(fd, &empty, sizeof(empty), 0);
    if (status == 0)
        status = gps_file_write(fd, head, sizeof(*head), 0);
    if (status == 0) {
        frame_file_keep(file, fd, &st);
        return 0;
    }
    unlink(file->path);
    gps_file_close_locked(fd);
    return status;
}

void gps_frame_file_made(struct gps_frame_file *file) {
    if (is_its_own(file, file->fd))
        gps_file_close_locked(file->fd);
    file->fd = -1;
}

void gps_frame_file_remove(const struct gps_store *store, const struct gps_id *region) {
    char path[GPS_FILE_PATH];
    gps_region_path(store, region, GPS_FRAMES_SUFFIX, path);
    unlink(path);
}

static int open_for(const struct gps_store *store, const struct gps_id *region, int flags,
                    struct gps_frame_file *file, struct gps_frames_said *said) {
    struct stat st;
    gps_region_path(store, region, GPS_FRAMES_SUFFIX, file->path);
    const int fd = gps_file_open(AT_FDCWD, file->path, flags, &st, NULL);
    if (fd < 0)
        return fd;
    frame_file_keep(file, fd, &st);
    int status = gps_frame_file_read(file, said);
    if (status == 0 && !gps_id_equal(&said->head.region, region))
        status = -EBADMSG;
    if (status < 0)
        gps_frame_file_close(file);
    return status;
}

int gps_frame_file_open(const struct gps_store *store, const struct gps_id *region,
                        struct gps_frame_file *file, struct gps_frames_said *said) {
    return open_for(store, region, O_RDWR, file, said);
}

int gps_frame_file_look(const struct gps_store *store, const struct gps_id *region,
                        struct gps_frames_said *said,
                        struct gps_frames_reader readers[GPS_FRAMES_READERS_MAX]) {
    struct gps_frame_file file;
    int status = open_for(store, region, O_RDONLY, &file, said);
    if (status < 0)
        return status;
    status = gps_frame_file_readers(&file, readers);
    gps_frame_file_close(&file);
    return status;
}

void gps_frame_file_close(struct gps_frame_file *file) {
    if (is_its_own(file, file->fd))
        close(file->fd);
    file->fd = -1;
}

/* --- reading and writing --- */

static int frame_file_read_at(struct gps_frame_file *file, void *bytes, size_t size, off_t at) {
    const int status = have(file);
    if (status < 0)
        return status;
    const ssize_t n = gps_file_read(file->fd, bytes, size, at);
    return n < 0 ? (int)n : n == (ssize_t)size ? 0 : -EBADMSG;
}

static int write_at(struct gps_frame_file *file, const void *bytes, size_t size, off_t at) {
    const int status = have(file);
    return status < 0 ? status : gps_file_write(file->fd, bytes, size, at);
}

int gps_frame_file_read(struct gps_frame_file *file, struct gps_frames_said *said) {
    for (unsigned i = 0; i < TRIES; i++) {
        const int status = frame_file_read_at(file, said, sizeof(*said), 0);
        if (status < 0 || gps_frames_said_valid(said))
            return status;
        sched_yield();
    }
    return -EBADMSG;
}

static bool are_readers(const struct gps_frames_reader *readers) {
    bool valid = true;
    for (unsigned i = 0; valid && i < GPS_FRAMES_READERS_MAX; i++)
        valid = gps_frames_reader_valid(&readers[i]);
    return valid;
}

int gps_frame_file_readers(struct gps_frame_file *file,
                           struct gps_frames_reader readers[GPS_FRAMES_READERS_MAX]) {
    const size_t size = sizeof(readers[0]) * GPS_FRAMES_READERS_MAX;
    for (unsigned i = 0; i < TRIES; i++) {
        const int status = frame_file_read_at(file, readers, size, AT(reader));
        if (status < 0 || are_readers(readers))
            return status;
        sched_yield();
    }
    return -EBADMSG;
}

int gps_frame_file_put_slot(struct gps_frame_file *file, unsigned slot,
                            struct gps_frames_slot *what) {
    gps_frames_slot_seal(what);
    return write_at(file, what, sizeof(*what), AT(slot) + (off_t)(slot * sizeof(*what)));
}

int gps_frame_file_put_writer(struct gps_frame_file *file, struct gps_frames_writer *what) {
    gps_frames_writer_seal(what);
    return write_at(file, what, sizeof(*what), AT(writer));
}

int gps_frame_file_put_reader(struct gps_frame_file *file, unsigned place,
                              struct gps_frames_reader *reader) {
    gps_frames_reader_seal(reader);
    return write_at(file, reader, sizeof(*reader), AT(reader) + (off_t)(place * sizeof(*reader)));
}

static bool reader_place_is_free(const struct gps_store *store,
                                 const struct gps_frames_reader *reader) {
    return !reader->owner.pid || gps_lease_probe(store, &reader->owner) == GPS_DEAD;
}

/* Under the file's lock, which a second description holds, and which ends when that is closed. */
int gps_frame_file_join(const struct gps_store *store, struct gps_frame_file *file,
                        struct gps_frames_reader *reader, unsigned *place) {
    struct gps_frames_reader readers[GPS_FRAMES_READERS_MAX];
    const int lock = gps_file_open_locked(file->path, 0, 0, 0);
    if (lock < 0)
        return lock;
    int status = gps_frame_file_readers(file, readers);
    unsigned i = 0;
    while (status == 0 && i < GPS_FRAMES_READERS_MAX && !reader_place_is_free(store, &readers[i]))
        i++;
    if (status == 0)
        status = i < GPS_FRAMES_READERS_MAX ? gps_frame_file_put_reader(file, i, reader) : -EUSERS;
    gps_file_close_locked(lock);
    *place = i;
    return status;
}
