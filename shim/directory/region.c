#include "region.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "gpushare/frames.h"
#include "lease.h"
#include "ownership.h"
#include "util/clock.h"
#include "util/text.h"

/* A status that is torn three times in a row is damaged, not being written. */
#define READ_TRIES 3

/* Copies at most a record from a file. *size is the file's. Without a name `at` is the file. */
static int region_load(int at, const char *name, struct gps_region_record *bytes, size_t *size,
                       const char **why) {
    struct stat st;
    int fd = name ? gps_file_open(at, name, O_RDONLY, &st, why) : at;
    if (fd < 0)
        return fd;
    if (!name && fstat(fd, &st) != 0)
        return -errno;
    ssize_t n = gps_file_read(fd, bytes, sizeof(*bytes), 0);
    if (name)
        close(fd);
    if (n < 0)
        return (int)n;
    *size = (size_t)n < sizeof(*bytes) ? (size_t)n : (size_t)st.st_size;
    return 0;
}

static int region_read_once(int at, const char *name, const struct gps_id *id,
                            struct gps_region_record *record, const char **why) {
    struct gps_region_record copy;
    size_t size;
    int status = region_load(at, name, &copy, &size, why);
    if (status == -EACCES || status == -EPERM)
        *why = "it may not be opened";
    if (status != 0)
        return status == -EACCES || status == -EPERM ? -EBADMSG : status;
    *why = gps_record_check(&copy, size);
    if (!*why && !gps_id_equal(&copy.id, id))
        *why = "id is not that of the file name";
    if (*why)
        return -EBADMSG;
    *record = copy;
    return 0;
}

static int region_read_at(const struct gps_store *store, int at, const char *name,
                          const struct gps_id *id, struct gps_region_record *record,
                          const char **why) {
    const bool audited = strcmp(store->records, GPS_AUDIT) == 0;
    const char *wrong = NULL;
    int status = -EBADMSG;
    for (int i = 0; i < READ_TRIES && status == -EBADMSG; i++)
        status = region_read_once(at, name, id, record, &wrong);
    if (status == 0 && (record->backing >= GPS_BACKING_EVENT) != audited) {
        wrong = "it is not of this directory";
        status = -EBADMSG;
    }
    if (status == -EBADMSG && why)
        *why = wrong;
    return status;
}

static void record_path_in(const struct gps_store *store, const char *directory,
                           const struct gps_id *id, const char *suffix, char path[GPS_FILE_PATH]) {
    char name[GPS_ID_HEX + sizeof(GPS_FRAMES_SUFFIX)]; /* the longest */
    gps_id_format(id, name);
    struct gps_text out = gps_text_on(name + GPS_ID_HEX - 1, sizeof(GPS_FRAMES_SUFFIX));
    gps_text_str(&out, suffix);
    gps_file_path(store, directory, name, path);
}

void gps_region_path(const struct gps_store *store, const struct gps_id *id, const char *suffix,
                     char path[GPS_FILE_PATH]) {
    record_path_in(store, store->records, id, suffix, path);
}

/* A record in freed/ is FREED, whatever its status says. */
static void record_set_freed(struct gps_region_record *record) {
    record->status.state = GPS_STATE_FREED;
    record->status.until = 0;
}

/* A region that is freed between the first two looks is found by the second, and one whose handle
 * is given again between the last two by the third. */
int gps_region_read(const struct gps_store *store, const struct gps_id *id,
                    struct gps_region_record *record, const char **why) {
    const char *const places[] = {store->records, GPS_FREED, store->records};
    const unsigned count = strcmp(store->records, GPS_REGIONS) == 0 ? 3 : 1;
    int status = -ENOENT;
    for (unsigned i = 0; i < count && status == -ENOENT; i++) {
        char path[GPS_FILE_PATH];
        record_path_in(store, places[i], id, "", path);
        status = region_read_at(store, AT_FDCWD, path, id, record, why);
        if (status == 0 && i == 1)
            record_set_freed(record);
    }
    return status;
}

int gps_region_read_open(const struct gps_store *store, int fd, const struct gps_id *id,
                         struct gps_region_record *record, const char **why) {
    return region_read_at(store, fd, NULL, id, record, why);
}

/* Judges a record by its owner, without the status, which may be torn. A file of another version
 * counts as held, because its owner is unknown. `copy` is valid unless the holder is all 0. */
static int judge_record(const struct gps_store *store, int at, const char *name,
                        struct gps_owner *holder, struct gps_region_record *copy) {
    size_t size;
    int status = region_load(at, name, copy, &size, NULL);
    memset(holder, 0, sizeof(*holder));
    if (status == -ENOENT)
        return GPS_OWNERSHIP_NONE;
    if (status != 0)
        return status == -EBADMSG ? GPS_OWNERSHIP_ORPHAN : status;
    if (gps_record_foreign(copy, size))
        return GPS_OWNERSHIP_HELD;
    if (gps_record_check_fixed(copy, size) != NULL)
        return GPS_OWNERSHIP_ORPHAN;
    *holder = copy->owner;
    return gps_lease_probe(store, holder) == GPS_ALIVE ? GPS_OWNERSHIP_HELD : GPS_OWNERSHIP_ORPHAN;
}

int gps_region_keeper_ownership(const struct gps_store *store, int at, const char *name,
                                struct gps_owner *holder) {
    struct gps_region_record copy;
    return judge_record(store, at, name, holder, &copy);
}

/* The users of a VMM region whose keeper is dead stand in for it. */
static int judge_abandoned(const struct gps_store *store, const struct gps_region_record *record) {
    if (record->backing != GPS_BACKING_VMM)
        return GPS_OWNERSHIP_ORPHAN;
    int users = gps_users_of(store, &record->id, NULL, NULL, 0);
    return users > 0 ? GPS_OWNERSHIP_HELD : users < 0 ? users : GPS_OWNERSHIP_ORPHAN;
}

int gps_region_ownership(const struct gps_store *store, int at, const char *name,
                         struct gps_owner *holder) {
    struct gps_region_record copy;
    int status = judge_record(store, at, name, holder, &copy);
    if (status != GPS_OWNERSHIP_ORPHAN || holder->pid == 0)
        return status;
    return judge_abandoned(store, &copy);
}

int gps_region_holder(const struct gps_store *store, const struct gps_region_record *record,
                      struct gps_owner *holder) {
    *holder = record->owner;
    return gps_lease_probe(store, holder) == GPS_ALIVE ? GPS_OWNERSHIP_HELD
                                                       : judge_abandoned(store, record);
}

/* Renames the finished file to its place, over the owner's own record or an orphan. A record that
 * the next keeper adopts is replaced at once, so it is never missing. */
static int region_replace(const struct gps_store *store, int at, const char *temp,
                          const struct gps_region_record *record) {
    gps_ownership_fn *judge =
        record->backing == GPS_BACKING_VMM ? gps_region_keeper_ownership : gps_region_ownership;
    char name[GPS_ID_HEX];
    gps_id_format(&record->id, name);
    struct gps_owner holder;
    for (int i = 0; i < GPS_OWNERSHIP_TRIES; i++) {
        int status = gps_ownership_contest(store, at, temp, name, judge, &holder);
        if (status == -EEXIST && gps_owner_equal(&holder, &record->owner))
            return gps_file_rename(at, temp, name);
        if (status != 0)
            return status == 1 ? 0 : status;
        status = gps_file_rename_new(at, temp, name);
        if (status != -EEXIST)
            return status;
    }
    return -EEXIST;
}

/* Puts the file in place, first as if there were no entry of this name: usually there is none. */
static int install(const struct gps_store *store, const char *temp,
                   const struct gps_region_record *record) {
    char path[GPS_FILE_PATH];
    gps_region_path(store, &record->id, "", path);
    int status = gps_file_rename_new(AT_FDCWD, temp, path);
    if (status != -EEXIST)
        return status;
    int at = gps_file_directory(store, store->records);
    if (at < 0)
        return at;
    status = region_replace(store, at, strrchr(temp, '/') + 1, record);
    close(at);
    return status;
}

int gps_region_publish(const struct gps_store *store, const struct gps_region_record *record) {
    char temp[GPS_FILE_PATH];
    int status =
        gps_temp_write(store, store->records, &record->owner, record, sizeof(*record), temp);
    if (status < 0)
        return status;
    status = install(store, temp, record);
    if (status < 0)
        unlink(temp);
    return status;
}

/* Opens the file of a published record: a descriptor or -errno. -ENOENT: it holds another record.
 * The type and the owner of a file that has the record's checksum need no check. */
static int record_open_in(const struct gps_store *store, const char *directory,
                          const struct gps_region_record *record, int flags) {
    char path[GPS_FILE_PATH];
    record_path_in(store, directory, &record->id, "", path);
    int fd = gps_file_open_any(AT_FDCWD, path, flags);
    if (fd < 0)
        return fd;
    uint64_t sum;
    ssize_t n = gps_file_read(fd, &sum, sizeof(sum), offsetof(struct gps_region_record, checksum));
    if (n == (ssize_t)sizeof(sum) && sum == record->checksum)
        return fd;
    close(fd);
    return n < 0 ? (int)n : -ENOENT;
}

static int open_record(const struct gps_store *store, const struct gps_region_record *record,
                       int flags) {
    const int fd = record_open_in(store, store->records, record, flags);
    return fd == -ENOENT ? record_open_in(store, GPS_FREED, record, flags) : fd;
}

/* Rewrites a part of a published record in place. */
static int rewrite(const struct gps_store *store, const struct gps_region_record *record,
                   const void *bytes, size_t size, size_t offset) {
    int fd = open_record(store, record, O_RDWR);
    if (fd < 0)
        return fd;
    int status = gps_file_write(fd, bytes, size, (off_t)offset);
    close(fd);
    return status;
}

int gps_region_set_status(const struct gps_store *store, struct gps_region_record *record,
                          enum gps_state state, uint64_t until) {
    struct gps_region_status fresh = {
        .state = (uint32_t)state, .until = until, .changed = gps_clock_now()};
    gps_record_seal_status(record, &fresh);
    const int status =
        rewrite(store, record, &fresh, sizeof(fresh), offsetof(struct gps_region_record, status));
    if (status == 0)
        record->status = fresh;
    return status;
}

int gps_region_set_traces(const struct gps_store *store, const struct gps_region_record *record,
                          struct gps_region_traces *traces) {
    gps_record_seal_traces(record, traces);
    return rewrite(store, record, traces, sizeof(*traces), sizeof(*record));
}

int gps_region_read_traces(const struct gps_store *store, const struct gps_region_record *record,
                           struct gps_region_traces *traces) {
    int fd = open_record(store, record, O_RDONLY);
    if (fd < 0)
        return fd;
    ssize_t n = gps_file_read(fd, traces, sizeof(*traces), sizeof(*record));
    close(fd);
    if (n < 0)
        return (int)n;
    if (n == 0)
        return -ENOENT;
    if (n != (ssize_t)sizeof(*traces) || gps_record_check_traces(record, traces) != NULL)
        return -EBADMSG;
    return 0;
}

int gps_region_take(const struct gps_store *store, const struct gps_id *id) {
    char path[GPS_FILE_PATH];
    gps_region_path(store, id, GPS_TAKEN_SUFFIX, path);
    int fd = gps_file_create(AT_FDCWD, path);
    if (fd >= 0)
        close(fd);
    return fd >= 0 || fd == -EEXIST ? 0 : fd;
}

bool gps_region_taken(const struct gps_store *store, const struct gps_id *id) {
    char path[GPS_FILE_PATH];
    gps_region_path(store, id, GPS_TAKEN_SUFFIX, path);
    return access(path, F_OK) == 0;
}

void gps_region_remove_beside(const struct gps_store *store, const struct gps_id *id) {
    char path[GPS_FILE_PATH];
    gps_region_path(store, id, GPS_TAKEN_SUFFIX, path);
    unlink(path);
    gps_region_path(store, id, GPS_FRAMES_SUFFIX, path);
    unlink(path);
}

static int record_remove_from(const struct gps_store *store, const char *directory,
                              const struct gps_id *id) {
    char path[GPS_FILE_PATH];
    record_path_in(store, directory, id, "", path);
    return unlink(path) == 0 ? 0 : -errno;
}

int gps_region_remove(const struct gps_store *store, const struct gps_id *id) {
    gps_region_remove_beside(store, id);
    return record_remove_from(store, store->records, id);
}

int gps_region_remove_freed(const struct gps_store *store, const struct gps_id *id) {
    return record_remove_from(store, GPS_FREED, id);
}

int gps_region_bury(const struct gps_store *store, const struct gps_region_record *record) {
    char from[GPS_FILE_PATH], to[GPS_FILE_PATH];
    const size_t folder = strlen(store->path) + 1;
    const int fd = record_open_in(store, GPS_REGIONS, record, O_RDONLY);
    if (fd < 0)
        return fd;
    close(fd);
    record_path_in(store, GPS_REGIONS, &record->id, "", from);
    /* The same name in the other folder: to write it anew takes 500 instructions of a free. */
    memcpy(to, from, folder);
    memcpy(to + folder, GPS_FREED, strlen(GPS_FREED));
    memcpy(to + folder + strlen(GPS_FREED), from + folder + strlen(GPS_REGIONS),
           sizeof("/") + GPS_ID_HEX - 1);
    return gps_file_rename(AT_FDCWD, from, to);
}

static int record_each_in(const struct gps_store *store, const char *directory, gps_region_fn *fn,
                          void *arg) {
    struct gps_dir dir;
    const char *name;
    gps_dir_open(&dir, store, directory);
    while ((name = gps_dir_next(&dir))) {
        struct gps_region_record record = {0};
        const char *why = NULL;
        if (!gps_id_parse(name, &record.id))
            continue;
        const int found = region_read_at(store, dir.fd, name, &record.id, &record, &why);
        if (found == 0 && strcmp(directory, GPS_FREED) == 0)
            record_set_freed(&record);
        if (found != 0 && found != -EBADMSG && found != -ENOENT)
            dir.status = found;
        else if (found != -ENOENT && !fn(arg, &record, found, why))
            break;
    }
    return gps_dir_close(&dir);
}

int gps_region_each(const struct gps_store *store, gps_region_fn *fn, void *arg) {
    return record_each_in(store, store->records, fn, arg);
}

int gps_region_each_freed(const struct gps_store *store, gps_region_fn *fn, void *arg) {
    const int status = record_each_in(store, GPS_FREED, fn, arg);
    return status == -ENOENT ? 0 : status;
}
