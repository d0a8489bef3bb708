/*
 * orphans.c - removes the files of dead processes from the published directory.
 *
 * Each directory is swept on its own. A file of procs/ without its lock is never locked again, and
 * its name is never used again, so it is simply removed. A temporary file there is locked first: if
 * its writer has created it and not locked it yet, the writer notices and creates another. Records
 * and names are removed by gps_ownership_replace, which judges them again under a lock.
 */
#include "orphans.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "gpushare/frames.h"
#include "gpushare/keeper.h"
#include "leader_lock.h"
#include "lease.h"
#include "orders.h"
#include "ownership.h"
#include "region.h"
#include "secret.h"

struct sweep {
    const struct gps_store *store;
    struct gps_gc_counts *counts;
    bool dry_run;
    unsigned alive;        /* processes */
    int at;                /* of the directory being swept */
    const char *directory; /* its name */
    gps_gc_fn *fn;
    void *arg;
    int error; /* of the first entry that could not be judged or removed */
};

static void sweep_note(struct sweep *sweep, int status) {
    if (status < 0 && status != -ENOENT && status != -EAGAIN && sweep->error == 0)
        sweep->error = status;
}

static void tell_removed(struct sweep *sweep, const char *name) {
    if (sweep->fn)
        sweep->fn(sweep->arg, sweep->directory, name);
}

/* 1: the entry is removed, or would be without dry_run. */
static unsigned remove_entry(struct sweep *sweep, const char *name) {
    tell_removed(sweep, name);
    if (sweep->dry_run || unlinkat(sweep->at, name, 0) == 0)
        return 1;
    sweep_note(sweep, -errno);
    return 0;
}

static unsigned remove_if_unlocked(struct sweep *sweep, const char *temp) {
    unsigned removed = 0;
    int fd = gps_file_open_any(sweep->at, temp, O_RDWR);
    if (fd < 0) {
        sweep_note(sweep, fd);
        return 0;
    }
    int status = sweep->dry_run ? gps_file_locked(fd) : gps_file_lock(fd, 0, 0);
    sweep_note(sweep, status);
    if (status == 0)
        removed = remove_entry(sweep, temp);
    close(fd);
    return removed;
}

/* Whether an entry has one of our names but is of a type that gc can neither judge nor unlink. */
static bool is_odd(const char *directory, int at, const char *name) {
    struct gps_owner writer;
    struct stat st;
    const bool root = strcmp(directory, ".") == 0;
    const bool temp = gps_temp_parse(name, &writer);
    const bool lock = root && (strcmp(name, "lock") == 0 || strcmp(name, GPS_KEEPER_LOCK) == 0);
    const bool ours = temp || lock ||
                      (root ? strcmp(name, GPS_KEEPER_SOCKET) == 0 || strcmp(name, GPS_SECRET) == 0
                            : gps_name_valid(name));
    if (!ours || fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    return lock || (temp && strcmp(directory, "procs") == 0) ? !S_ISREG(st.st_mode)
                                                             : S_ISDIR(st.st_mode);
}

static void remove_if_dead(struct sweep *sweep, const char *name, const struct gps_owner *owner) {
    if (gps_lease_probe(sweep->store, owner) == GPS_DEAD)
        sweep->counts->temps += remove_entry(sweep, name);
}

static void sweep_proc(struct sweep *sweep, const char *name) {
    struct gps_owner owner;
    if (gps_temp_parse(name, &owner))
        sweep->counts->temps += remove_if_unlocked(sweep, name);
    else if (gps_orders_parse(name, &owner))
        remove_if_dead(sweep, name, &owner);
    else if (!gps_owner_parse(name, &owner))
        return;
    else if (gps_lease_probe(sweep->store, &owner) == GPS_DEAD)
        sweep->counts->procs += remove_entry(sweep, name);
    else
        sweep->alive++;
}

static unsigned remove_if_orphan(struct sweep *sweep, const char *name, gps_ownership_fn *judge) {
    tell_removed(sweep, name);
    if (sweep->dry_run)
        return 1;
    int status = gps_ownership_replace(sweep->store, sweep->at, NULL, name, judge);
    sweep_note(sweep, status);
    return status == 1;
}

/* Whether the entry is an orphan, judged without the lock. */
static bool entry_is_orphan(struct sweep *sweep, const char *name, gps_ownership_fn *judge) {
    struct gps_owner holder;
    int status = judge(sweep->store, sweep->at, name, &holder);
    sweep_note(sweep, status);
    return status == GPS_OWNERSHIP_ORPHAN;
}

static void sweep_dead_temp(struct sweep *sweep, const char *name) {
    struct gps_owner writer;
    if (gps_temp_parse(name, &writer))
        remove_if_dead(sweep, name, &writer);
}

static bool is_beside(const char *suffix) {
    return strcmp(suffix, GPS_TAKEN_SUFFIX) == 0 || strcmp(suffix, GPS_FRAMES_SUFFIX) == 0;
}

/* Removes <id>.taken and <id>.frames if the record <id> does not exist, and will not: a process
 * that makes <id>.frames for it locks that first. */
static void sweep_beside(struct sweep *sweep, const char *name) {
    char record[GPS_ID_HEX], path[GPS_FILE_PATH];
    struct stat st;
    struct gps_id id;
    if (strlen(name) < GPS_ID_HEX || !is_beside(name + GPS_ID_HEX - 1))
        return;
    memcpy(record, name, GPS_ID_HEX - 1);
    record[GPS_ID_HEX - 1] = '\0';
    gps_file_path(sweep->store, sweep->directory, name, path);
    const int lock = gps_id_parse(record, &id) ? gps_file_open_locked(path, 0, 0, 0) : -ENOENT;
    if (lock < 0)
        return;
    if (fstatat(sweep->at, record, &st, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
        sweep->counts->temps += remove_entry(sweep, name);
    gps_file_close_locked(lock);
}

/* audit/ has records of events and places, which no process has open, and freed/ those of memory
 * that was freed: a dead owner's are removed. */
static void sweep_record(struct sweep *sweep, const char *name) {
    struct gps_id id;
    if (!gps_id_parse(name, &id)) {
        sweep_beside(sweep, name);
        sweep_dead_temp(sweep, name);
        return;
    }
    if (!entry_is_orphan(sweep, name, gps_region_keeper_ownership))
        return;
    if (strcmp(sweep->directory, GPS_REGIONS) != 0) {
        const bool freed = strcmp(sweep->directory, GPS_FREED) == 0;
        *(freed ? &sweep->counts->regions : &sweep->counts->temps) +=
            remove_if_orphan(sweep, name, gps_region_keeper_ownership);
        return;
    }
    int users = gps_users_of(sweep->store, &id, NULL, NULL, 0);
    sweep_note(sweep, users);
    if (users > 0)
        sweep->counts->in_use++;
    else if (users == 0 && remove_if_orphan(sweep, name, gps_region_ownership)) {
        sweep->counts->regions++;
        if (!sweep->dry_run)
            gps_region_remove_beside(sweep->store, &id);
    }
}

static void sweep_name(struct sweep *sweep, const char *name) {
    if (!gps_name_valid(name))
        sweep_dead_temp(sweep, name);
    else if (entry_is_orphan(sweep, name, gps_name_ownership))
        sweep->counts->names += remove_if_orphan(sweep, name, gps_name_ownership);
}

/* Removes sockets and keys whose makers died before they put them in place, and a damaged key. */
static void sweep_root(struct sweep *sweep, const char *name) {
    if (strcmp(name, GPS_SECRET) == 0 && gps_secret_damaged(sweep->store))
        sweep->counts->temps += remove_entry(sweep, name);
    else
        sweep_dead_temp(sweep, name);
}

/* Visits the odd entries of a directory, or all others. */
static int sweep_directory(struct sweep *sweep, const char *directory, bool odd,
                           void visit(struct sweep *, const char *)) {
    struct gps_dir dir;
    const char *name;
    gps_dir_open(&dir, sweep->store, directory);
    sweep->at = dir.fd;
    sweep->directory = directory;
    while ((name = gps_dir_next(&dir)))
        if (is_odd(directory, dir.fd, name) == odd)
            visit(sweep, name);
    return gps_dir_close(&dir);
}

int gps_odd_each(const struct gps_store *store, gps_odd_fn *fn, void *arg) {
    static const char *const directories[] = {"procs", "names", GPS_REGIONS, "."};
    struct sweep sweep = {.store = store, .fn = fn, .arg = arg};
    int status = 0;
    for (size_t i = 0; i < 4 && status == 0; i++)
        status = sweep_directory(&sweep, directories[i], true, tell_removed);
    return status;
}

void gps_temps_remove(const struct gps_store *store, const struct gps_owner *self) {
    static const char *const directories[] = {"names", GPS_REGIONS, GPS_AUDIT};
    for (unsigned i = 0; i < 3; i++) {
        struct gps_dir dir;
        struct gps_owner writer;
        gps_dir_open(&dir, store, directories[i]);
        for (const char *name; (name = gps_dir_next(&dir));)
            if (gps_temp_parse(name, &writer) && gps_owner_equal(&writer, self))
                unlinkat(dir.fd, name, 0);
        gps_dir_close(&dir);
    }
}

int gps_store_gc(const struct gps_store *store, bool dry_run, struct gps_gc_counts *counts) {
    return gps_store_gc_each(store, dry_run, counts, NULL, NULL);
}

int gps_store_gc_each(const struct gps_store *store, bool dry_run, struct gps_gc_counts *counts,
                      gps_gc_fn *fn, void *arg) {
    static const struct {
        const char *directory;
        void (*visit)(struct sweep *, const char *);
    } parts[] = {{"procs", sweep_proc}, /* first, for quicker scans below */
                 {"names", sweep_name},     {GPS_REGIONS, sweep_record}, {".", sweep_root},
                 {GPS_FREED, sweep_record}, /* older versions make neither this nor audit/ */
                 {GPS_AUDIT, sweep_record}};
    struct sweep sweep = {
        .store = store, .counts = counts, .dry_run = dry_run, .fn = fn, .arg = arg};
    memset(counts, 0, sizeof(*counts));
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        int status = sweep_directory(&sweep, parts[i].directory, false, parts[i].visit);
        if (status < 0 && (status != -ENOENT || parts[i].visit != sweep_record))
            return status;
    }
    int removed = gps_leader_lock_clear(store, dry_run);
    if (removed != -EBADMSG) /* odd */
        sweep_note(&sweep, removed);
    if (removed > 0)
        tell_removed(&sweep, GPS_KEEPER_LOCK);
    counts->temps += removed > 0 ? (unsigned)removed : 0;
    if (!dry_run && sweep.alive == 0)
        gps_ownership_end(store);
    return sweep.error;
}
