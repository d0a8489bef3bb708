/*
 * processes.c - the other processes: whether they live, and which regions they have open.
 *
 * The program's free waits for a scan of procs/, so a scan does no more than it must: a file that
 * cannot matter is not opened, and /proc is read only for processes that matter.
 */
#include "processes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "file.h"
#include "util/procfs.h"

#define SLOT_BYTES sizeof(struct gps_slot)
#define FEW_SLOTS  16 /* read onto the stack */
#define CHUNK      32 /* slots that users_of reads at a time */
#define TORN_TRIES 3

/* Moves the valid slots to the front and counts them. *torn: a slot is being written now. */
static unsigned select_valid(struct gps_slot *slots, unsigned count, bool *torn) {
    unsigned valid = 0;
    *torn = false;
    for (unsigned i = 0; i < count; i++) {
        if (gps_slot_valid(&slots[i]))
            slots[valid++] = slots[i];
        else
            *torn |= gps_slot_torn(&slots[i]);
    }
    return valid;
}

/* Reads up to `max` slots from slot `first` on. Returns how many the file has there, and in *valid
 * how many of them are valid. Reads again while one is torn, because an intent that turns into an
 * open must not be missed. */
static int read_slots(int fd, struct gps_slot *slots, unsigned first, unsigned max, unsigned *valid,
                      bool *torn) {
    const off_t at = (off_t)sizeof(struct gps_proc_header) + (off_t)(first * SLOT_BYTES);
    unsigned count = 0;
    *torn = true;
    for (int i = 0; i < TORN_TRIES && *torn; i++) {
        ssize_t n = gps_file_read(fd, slots, max * SLOT_BYTES, at);
        if (n < 0)
            return (int)n;
        count = (unsigned)((size_t)n / SLOT_BYTES);
        *valid = select_valid(slots, count, torn);
    }
    return (int)count;
}

/* Whether this is a keeper's file, which outlives the process that made it (GPS_VIA_KEEPER). */
static bool is_keepers(int fd) {
    struct gps_slot slot;
    unsigned valid;
    bool torn;
    return read_slots(fd, &slot, 0, 1, &valid, &torn) == 1 && valid && slot.via == GPS_VIA_KEEPER;
}

/* Whether the process image that owns the open file lives; true also if that is not known. */
static bool owner_lives(int fd, const struct gps_owner *who) {
    int locked = gps_file_locked(fd);
    if (locked <= 0)
        return locked < 0;
    if (who->pid_ns == 0 || who->pid_ns != gps_procfs_pid_ns())
        return true;
    return !gps_procfs_ended(who) || is_keepers(fd);
}

static int open_of(const struct gps_store *store, const struct gps_owner *who) {
    char path[GPS_FILE_PATH];
    gps_file_path_of_owner(store, who, "", path);
    return gps_file_open_any(AT_FDCWD, path, O_RDONLY);
}

enum gps_liveness gps_lease_probe(const struct gps_store *store, const struct gps_owner *who) {
    int fd = open_of(store, who);
    if (fd == -ENOENT || fd == -ELOOP || fd == -ENXIO) /* nothing, or a symlink or socket instead */
        return GPS_DEAD;
    if (fd < 0)
        return GPS_ALIVE;
    bool alive = owner_lives(fd, who);
    close(fd);
    return alive ? GPS_ALIVE : GPS_DEAD;
}

bool gps_lease_is_removed(const struct gps_store *store, const struct gps_owner *who) {
    const int fd = open_of(store, who);
    if (fd >= 0)
        close(fd);
    return fd == -ENOENT && (who->pid_ns != gps_procfs_pid_ns() || !gps_procfs_ended(who));
}

void gps_proc_name(const struct gps_store *store, struct gps_owner *who) {
    struct gps_proc_header header;
    const int fd = open_of(store, who);
    if (fd < 0)
        return;
    const ssize_t n = gps_file_read(fd, &header, sizeof(header), 0);
    close(fd);
    if (n > 0 && !gps_proc_check(&header, (size_t)n) && gps_owner_equal(&header.owner, who))
        *who = header.owner;
}

static unsigned slots_in(off_t size) {
    off_t slots = (size - (off_t)sizeof(struct gps_proc_header)) / (off_t)SLOT_BYTES;
    return slots < 0 ? 0 : slots > GPS_SLOTS_MAX ? GPS_SLOTS_MAX : (unsigned)slots;
}

/* Checks the header of a file, and that its owner is that of the file name. NULL, or a phrase. */
static const char *check_header(int fd, const struct gps_owner *who,
                                struct gps_proc_header *header) {
    struct gps_proc_header copy;
    ssize_t n = gps_file_read(fd, &copy, sizeof(copy), 0);
    if (n < 0)
        return "it cannot be read";
    const char *why = gps_proc_check(&copy, (size_t)n);
    if (why)
        return why;
    if (!gps_owner_equal(&copy.owner, who))
        return "owner is not that of the file name";
    *header = copy;
    return NULL;
}

/* Calls fn with a live process's slots. *status is negative on failure. False: fn said so. */
static bool call_with_slots(int fd, unsigned slots, struct gps_proc *proc, gps_proc_fn *fn,
                            void *arg, int *status) {
    struct gps_slot few[FEW_SLOTS];
    struct gps_slot *many = few;
    bool more = true;
    if (slots > FEW_SLOTS) /* not malloc: the program may be at its end, or in a signal handler */
        many = mmap(NULL, slots * SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                    -1, 0);
    if (many == MAP_FAILED) {
        *status = -ENOMEM;
        return false;
    }
    *status = read_slots(fd, many, 0, slots, &proc->slot_count, &proc->unknown);
    if (*status >= 0) {
        *status = 0;
        proc->slots = many;
        more = fn(arg, proc);
    }
    if (many != few)
        munmap(many, slots * SLOT_BYTES);
    return more;
}

static bool call_for(const struct gps_store *store, int at, const char *file,
                     const struct gps_owner *who, gps_proc_fn *fn, void *arg, int *status) {
    struct gps_proc proc = {.why = "it may not be opened"};
    struct stat st;
    int fd = gps_file_open(at, file, O_RDONLY, &st, &proc.why);
    if (fd < 0 && fd != -EBADMSG && fd != -EACCES && fd != -EPERM) {
        *status = fd == -ENOENT ? 0 : fd;
        return true;
    }
    proc.header.owner = *who;
    gps_owner_format(who, proc.file);
    if (fd < 0) {
        proc.alive = proc.unknown = gps_lease_probe(store, who) == GPS_ALIVE;
        return fn(arg, &proc);
    }
    proc.why = check_header(fd, who, &proc.header);
    proc.alive = owner_lives(fd, who);
    bool more;
    if (proc.alive) /* also with a bad header: the regions in its slots are in use */
        more = call_with_slots(fd, slots_in(st.st_size), &proc, fn, arg, status);
    else
        more = fn(arg, &proc);
    close(fd);
    return more;
}

int gps_proc_each(const struct gps_store *store, gps_proc_fn *fn, void *arg) {
    struct gps_dir dir;
    const char *file;
    gps_dir_open(&dir, store, "procs");
    while ((file = gps_dir_next(&dir))) {
        struct gps_owner who;
        if (gps_owner_parse(file, &who) &&
            !call_for(store, dir.fd, file, &who, fn, arg, &dir.status))
            break;
    }
    return gps_dir_close(&dir);
}

unsigned gps_proc_count(const struct gps_store *store) {
    struct gps_dir dir;
    unsigned count = 0;
    gps_dir_open(&dir, store, "procs");
    for (const char *file; (file = gps_dir_next(&dir));) {
        struct gps_owner who;
        count += gps_owner_parse(file, &who);
    }
    gps_dir_close(&dir);
    return count;
}

/* A region, and the part of the slots in which it is looked for. */
struct wanted {
    const struct gps_id *region;
    bool block; /* the region may be a block: look behind the divider, too */
};

/* Searches the slots of a file for a region. 1: *found is its slot. 0: there is none. -EAGAIN: a
 * torn slot may be of the region. Or another -errno. An open slot is preferred to one that is only
 * cached, which another context of the process can have. */
static int find_slot(int fd, unsigned slots, const struct wanted *wanted, struct gps_slot *found) {
    struct gps_slot chunk[CHUNK];
    int cached = 0;
    bool unknown = false, over = false;
    for (unsigned first = 0; first < slots && !over; first += CHUNK) {
        unsigned max = slots - first < CHUNK ? slots - first : CHUNK;
        unsigned valid;
        bool torn;
        int status = read_slots(fd, chunk, first, max, &valid, &torn);
        if (status < 0)
            return status;
        unknown |= torn;
        for (unsigned i = 0; i < valid; i++) {
            over |= chunk[i].via == GPS_VIA_DIVIDER && !wanted->block;
            if (!gps_id_equal(&chunk[i].region, wanted->region))
                continue;
            *found = chunk[i];
            if (found->state != GPS_SLOT_CACHED)
                return 1;
            cached = 1;
        }
        if (status == 0)
            break;
    }
    return unknown ? -EAGAIN : cached;
}

bool gps_proc_has_other_shm(const struct gps_proc *proc) {
    const struct gps_proc_header *header = &proc->header;
    struct stat here;
    return proc->alive && header->shm_device != 0 && stat("/dev/shm", &here) == 0 &&
           (header->shm_device != here.st_dev || header->shm_inode != here.st_ino);
}

bool gps_proc_has_told(const struct gps_store *store, const struct gps_owner *who) {
    struct gps_proc_header header;
    const int fd = open_of(store, who);
    if (fd < 0)
        return false;
    const bool told = !check_header(fd, who, &header) && !header.untold && owner_lives(fd, who);
    close(fd);
    return told;
}

/* Whether a process has the region open: 1 and *user; 0; or -errno if the process lives and that is
 * not known. A live process with a bad header and a valid slot counts, because the memory that it
 * has open must not be freed either. */
static int user_in(const struct gps_store *store, int at, const char *file,
                   const struct gps_owner *who, const struct wanted *wanted,
                   struct gps_user *user) {
    struct stat st;
    int fd = gps_file_open(at, file, O_RDONLY, &st, NULL);
    if (fd < 0)
        return gps_lease_probe(store, who) == GPS_ALIVE ? fd : 0;
    int status = find_slot(fd, slots_in(st.st_size), wanted, &user->slot);
    if (status != 0 && !owner_lives(fd, who))
        status = 0;
    struct gps_proc_header header;
    if (status == 1)
        user->owner = check_header(fd, who, &header) ? *who : header.owner;
    close(fd);
    return status;
}

static int find_users(const struct gps_store *store, const struct wanted *wanted,
                      const struct gps_owner *except, struct gps_user *users, unsigned max,
                      struct gps_user_counts *counts) {
    struct gps_dir dir;
    int count = 0;
    const char *file;
    *counts = (struct gps_user_counts){0};
    gps_dir_open(&dir, store, "procs");
    while ((file = gps_dir_next(&dir))) {
        struct gps_owner who;
        if (!gps_owner_parse(file, &who) || (except && gps_owner_equal(&who, except)))
            continue;
        counts->processes++;
        struct gps_user user;
        int status = user_in(store, dir.fd, file, &who, wanted, &user);
        if (status == 1 && user.slot.state == GPS_SLOT_CACHED) {
            counts->caches++;
        } else if (status == 1) {
            if ((unsigned)count < max)
                users[count] = user;
            count++;
        } else {
            dir.status = status;
        }
    }
    int status = gps_dir_close(&dir);
    return status < 0 ? status : count;
}

int gps_users_and_caches(const struct gps_store *store, const struct gps_id *region,
                         const struct gps_owner *except, struct gps_user *users, unsigned max,
                         struct gps_user_counts *counts) {
    return find_users(store, &(struct wanted){region, false}, except, users, max, counts);
}

int gps_users_of(const struct gps_store *store, const struct gps_id *region,
                 const struct gps_owner *except, struct gps_user *users, unsigned max) {
    struct gps_user_counts counts;
    return find_users(store, &(struct wanted){region, true}, except, users, max, &counts);
}
