#include "lease.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "orders.h"
#include "util/clock.h"
#include "util/descriptors.h"
#include "util/procfs.h"
#include "util/text.h"

/* A gc can lock or remove a temporary file before its writer locks it, but only once. */
#define TAKE_TRIES 8

void gps_owner_name(struct gps_owner *owner, const char *name) {
    memset(owner->command, 0, sizeof(owner->command));
    struct gps_text command = GPS_TEXT(owner->command);
    gps_text_plain(&command, name);
}

void gps_owner_self(struct gps_owner *self) {
    struct gps_owner who = {
        .pid_ns = gps_procfs_pid_ns(), .pid = (uint32_t)getpid(), .uid = geteuid()};
    struct gps_procfs_stat stat;
    who.start = gps_procfs_stat(who.pid, &stat) == 0 ? stat.start : 0;
    do
        who.nonce = gps_random();
    while (who.nonce == 0);
    char executable[256];
    gps_procfs_executable(executable, sizeof(executable));
    gps_owner_name(&who, executable);
    *self = who;
}

void *gps_lease_map(int fd) {
    void *hold = mmap(NULL, 1, PROT_NONE, MAP_SHARED, fd, 0);
    if (hold != MAP_FAILED && madvise(hold, 1, MADV_DONTFORK) != 0) {
        munmap(hold, 1);
        return MAP_FAILED;
    }
    return hold;
}

/* Makes the lock on fd outlast fd, which it closes. A second descriptor probes whether that worked,
 * and takes the lock itself if it did not. */
static int hold_lock(struct gps_lease *lease, int at, const char *temp, int fd) {
    int second = gps_file_open_any(at, temp, O_RDWR);
    if (second < 0) {
        close(fd);
        return second;
    }
    void *hold = lease->by_descriptor ? MAP_FAILED : gps_lease_map(fd);
    if (hold == MAP_FAILED) {
        lease->lock_fd = gps_descriptor_move_high(fd);
        lease->write_fd = gps_descriptor_move_high(second);
        return 0;
    }
    close(fd);
    int status = gps_file_lock(second, 0, 0);
    if (status == -EAGAIN) {
        lease->hold = hold;
        lease->write_fd = gps_descriptor_move_high(second);
        return 0;
    }
    munmap(hold, 1);
    if (status == 0)
        lease->lock_fd = gps_descriptor_move_high(second);
    else
        close(second);
    return status;
}

/* Locks and writes a new file. -EAGAIN: a gc had locked or removed it before. */
static int lease_prepare(int fd, const char *arguments, struct gps_lease *lease) {
    int status = gps_file_lock(fd, 0, 0);
    if (status != 0)
        return status;
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    if (st.st_nlink == 0)
        return -EAGAIN;
    lease->device = st.st_dev;
    lease->inode = st.st_ino;
    struct gps_proc_header header = {.owner = lease->self, .created = gps_clock_now()};
    struct gps_text text = GPS_TEXT(header.arguments);
    gps_text_str(&text, arguments);
    if (stat("/dev/shm", &st) == 0) {
        header.shm_device = st.st_dev;
        header.shm_inode = st.st_ino;
    }
    gps_proc_seal(&header);
    return gps_file_write(fd, &header, sizeof(header), 0);
}

static bool is_own_file(const struct gps_lease *lease, int fd) {
    return gps_descriptor_is_of(fd, lease->device, lease->inode);
}

/* Closes a descriptor of the lease, unless the program has closed it and reused its number. */
static void close_own(const struct gps_lease *lease, int *fd) {
    if (is_own_file(lease, *fd))
        close(*fd);
    *fd = -1;
}

static void release(struct gps_lease *lease) {
    if (lease->hold != MAP_FAILED)
        munmap(lease->hold, 1);
    gps_lease_forget(lease);
}

static int take_once(int at, const char *arguments, struct gps_lease *lease) {
    char temp[GPS_TEMP_NAME];
    gps_temp_format(&lease->self, temp);
    int fd = gps_file_create(at, temp);
    if (fd < 0)
        return fd;
    int status = lease_prepare(fd, arguments, lease);
    if (status == 0)
        status = hold_lock(lease, at, temp, fd);
    else
        close(fd);
    if (status != 0)
        goto unlink_temp;
    char name[GPS_PROC_NAME];
    gps_owner_format(&lease->self, name);
    status = gps_file_rename(at, temp, name);
    if (status == 0)
        return 0;
    release(lease);
unlink_temp:
    unlinkat(at, temp, 0);
    return status;
}

static int lease_take(struct gps_lease made, const char *arguments, struct gps_lease *lease) {
    const struct gps_store *store = made.store;
    int at = gps_file_directory(store, "procs");
    if (at < 0)
        return at;
    int status = gps_file_room(at);
    if (status == 0)
        status = -EAGAIN;
    for (int i = 0; i < TAKE_TRIES && status == -EAGAIN; i++)
        status = take_once(at, arguments, &made);
    close(at);
    if (status == 0)
        *lease = made;
    return status;
}

static struct gps_lease none_yet(const struct gps_store *store, const struct gps_owner *self) {
    return (struct gps_lease){
        .store = store, .self = *self, .hold = MAP_FAILED, .lock_fd = -1, .write_fd = -1};
}

int gps_lease_take(const struct gps_store *store, const struct gps_owner *self,
                   const char *arguments, struct gps_lease *lease) {
    return lease_take(none_yet(store, self), arguments, lease);
}

int gps_lease_take_shared(const struct gps_store *store, const struct gps_owner *self,
                          struct gps_lease *lease) {
    struct gps_lease made = none_yet(store, self);
    made.by_descriptor = true;
    return lease_take(made, NULL, lease);
}

int gps_lease_take_over(const struct gps_store *store, const struct gps_owner *self, int lock_fd,
                        struct gps_lease *lease) {
    struct stat st;
    if (fstat(lock_fd, &st) != 0)
        return -errno;
    *lease = none_yet(store, self);
    lease->by_descriptor = true;
    lease->lock_fd = lock_fd;
    lease->device = st.st_dev;
    lease->inode = st.st_ino;
    return 0;
}

bool gps_lease_is_there(const struct gps_lease *lease) {
    char path[GPS_FILE_PATH];
    struct stat st;
    gps_file_path_of_owner(lease->store, &lease->self, "", path);
    return stat(path, &st) == 0 ? st.st_dev == lease->device && st.st_ino == lease->inode
                                : errno != ENOENT && errno != ENOTDIR;
}

void gps_lease_withdraw(const struct gps_lease *lease) {
    char path[GPS_FILE_PATH];
    gps_file_path_of_owner(lease->store, &lease->self, "", path);
    unlink(path);
    gps_orders_remove(lease->store, &lease->self);
}

void gps_lease_drop(struct gps_lease *lease) {
    gps_lease_withdraw(lease);
    release(lease);
}

/* A child never had the mapping, and other memory may lie there, so nothing is unmapped. */
void gps_lease_forget(struct gps_lease *lease) {
    lease->hold = MAP_FAILED;
    close_own(lease, &lease->lock_fd);
    close_own(lease, &lease->write_fd);
}

static int lease_reopen(struct gps_lease *lease) {
    lease->write_fd = -1;
    char path[GPS_FILE_PATH];
    gps_file_path_of_owner(lease->store, &lease->self, "", path);
    int fd = gps_file_open_any(AT_FDCWD, path, O_RDWR);
    if (fd < 0)
        return fd;
    if (!is_own_file(lease, fd)) {
        close(fd);
        return -ENOENT;
    }
    lease->write_fd = gps_descriptor_move_high(fd);
    return 0;
}

static int be_writable(struct gps_lease *lease) {
    return is_own_file(lease, lease->write_fd) ? 0 : lease_reopen(lease);
}

int gps_lease_write(struct gps_lease *lease, unsigned index, const struct gps_slot *slot) {
    const off_t offset =
        (off_t)sizeof(struct gps_proc_header) + (off_t)index * (off_t)sizeof(*slot);
    if (index >= GPS_SLOTS_MAX)
        return -EINVAL;
    const int status = be_writable(lease);
    return status != 0 ? status : gps_file_write(lease->write_fd, slot, sizeof(*slot), offset);
}

int gps_lease_set_untold(struct gps_lease *lease) {
    const size_t offset = offsetof(struct gps_proc_header, untold);
    struct gps_proc_header header;
    const int status = be_writable(lease);
    if (status != 0)
        return status;
    const ssize_t n = gps_file_read(lease->write_fd, &header, sizeof(header), 0);
    if (n < 0 || gps_proc_check(&header, (size_t)n))
        return n < 0 ? (int)n : -EBADMSG;
    header.untold = 1;
    gps_proc_seal(&header);
    return gps_file_write(lease->write_fd, &header.untold, sizeof(header) - offset, (off_t)offset);
}
