#include "name.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "lease.h"
#include "ownership.h"
#include "region.h"

#define PROCS   "../procs/"
#define REGIONS "../regions/"

#define LINK_SIZE (sizeof(REGIONS) + GPS_PROC_NAME) /* longest text of a link, with its NUL */

static bool parse_link(const char *text, struct gps_name_target *target) {
    struct gps_name_target parsed = {0};
    if (strncmp(text, PROCS, strlen(PROCS)) == 0) {
        parsed.kind = GPS_NAME_CLAIM;
        if (!gps_owner_parse(text + strlen(PROCS), &parsed.claimer))
            return false;
    } else if (strncmp(text, REGIONS, strlen(REGIONS)) == 0) {
        parsed.kind = GPS_NAME_REGION;
        if (!gps_id_parse(text + strlen(REGIONS), &parsed.region))
            return false;
    } else {
        return false;
    }
    *target = parsed;
    return true;
}

static int resolve_at(int at, const char *name, struct gps_name_target *target) {
    char text[LINK_SIZE];
    ssize_t n = readlinkat(at, name, text, sizeof(text));
    if (n < 0)
        return errno == EINVAL ? -EBADMSG : -errno; /* EINVAL: the entry is not a link */
    if ((size_t)n == sizeof(text))
        return -EBADMSG;
    text[n] = '\0';
    return parse_link(text, target) ? 0 : -EBADMSG;
}

int gps_name_resolve(const struct gps_store *store, const char *name,
                     struct gps_name_target *target) {
    if (!gps_name_valid(name))
        return -EINVAL;
    char path[GPS_FILE_PATH];
    gps_file_path(store, "names", name, path);
    return resolve_at(AT_FDCWD, path, target);
}

/* Judges a name that points to a region. The region's owner holds it while the region has that name
 * and is not freed. The users of a VMM region stand in for a keeper that died. */
static int judge_region_name(const struct gps_store *store, const char *name,
                             const struct gps_id *id, struct gps_owner *holder) {
    struct gps_region_record record;
    int status = gps_region_read(store, id, &record, NULL);
    if (status == -EBADMSG) {
        char path[GPS_FILE_PATH];
        gps_region_path(store, id, "", path);
        status = gps_region_ownership(store, AT_FDCWD, path, holder);
        return status == GPS_OWNERSHIP_NONE ? GPS_OWNERSHIP_ORPHAN : status;
    }
    if (status != 0)
        return status == -ENOENT ? GPS_OWNERSHIP_ORPHAN : status;
    if (record.status.state == GPS_STATE_FREED || strcmp(record.name, name) != 0)
        return GPS_OWNERSHIP_ORPHAN;
    return gps_region_holder(store, &record, holder);
}

int gps_name_ownership(const struct gps_store *store, int at, const char *name,
                       struct gps_owner *holder) {
    struct gps_name_target target;
    int status = resolve_at(at, name, &target);
    memset(holder, 0, sizeof(*holder));
    if (status == -ENOENT)
        return GPS_OWNERSHIP_NONE;
    if (status != 0)
        return status == -EBADMSG ? GPS_OWNERSHIP_ORPHAN : status;
    if (target.kind == GPS_NAME_REGION)
        return judge_region_name(store, name, &target.region, holder);
    *holder = target.claimer;
    return gps_lease_probe(store, holder) == GPS_ALIVE ? GPS_OWNERSHIP_HELD : GPS_OWNERSHIP_ORPHAN;
}

static int claim_at(const struct gps_store *store, int at, const char *name, const char *text,
                    struct gps_owner *holder) {
    memset(holder, 0, sizeof(*holder));
    for (int i = 0; i < GPS_OWNERSHIP_TRIES; i++) {
        if (symlinkat(text, at, name) == 0)
            return 0;
        if (errno != EEXIST)
            return -errno;
        int status = gps_ownership_contest(store, at, NULL, name, gps_name_ownership, holder);
        if (status < 0)
            return status;
    }
    memset(holder, 0, sizeof(*holder)); /* another process is taking the name now */
    return -EEXIST;
}

/* A descriptor of names/. -EINVAL: the name is not valid. */
static int open_names(const struct gps_store *store, const char *name) {
    return gps_name_valid(name) ? gps_file_directory(store, "names") : -EINVAL;
}

int gps_name_claim(const struct gps_store *store, const char *name, const struct gps_owner *self,
                   struct gps_owner *holder) {
    int at = open_names(store, name);
    if (at < 0)
        return at;
    char text[LINK_SIZE] = PROCS;
    gps_owner_format(self, text + strlen(PROCS));
    struct gps_owner found;
    int status = claim_at(store, at, name, text, &found);
    close(at);
    if (status == -EEXIST && holder)
        *holder = found;
    return status;
}

/* 0: this owner holds the name, so no other process changes it. */
static int check_held_by(const struct gps_store *store, int at, const char *name,
                         const struct gps_owner *owner) {
    struct gps_owner holder;
    int status = gps_name_ownership(store, at, name, &holder);
    if (status == GPS_OWNERSHIP_NONE)
        return -ENOENT;
    if (status < 0)
        return status;
    return status == GPS_OWNERSHIP_HELD && gps_owner_equal(&holder, owner) ? 0 : -EEXIST;
}

int gps_name_point(const struct gps_store *store, const char *name, const struct gps_owner *self,
                   const struct gps_id *region) {
    struct gps_region_record record;
    int status = gps_region_read(store, region, &record, NULL);
    if (status != 0)
        return status;
    if (strcmp(record.name, name) != 0)
        return -EINVAL;
    int at = open_names(store, name);
    if (at < 0)
        return at;
    status = check_held_by(store, at, name, &record.owner);
    if (status == -EEXIST)
        status = check_held_by(store, at, name, gps_record_creator(&record));
    if (status != 0)
        goto close_directory;
    char temp[GPS_TEMP_NAME];
    gps_temp_format(self, temp);
    char text[LINK_SIZE] = REGIONS;
    gps_id_format(region, text + strlen(REGIONS));
    status = symlinkat(text, at, temp) == 0 ? gps_file_rename(at, temp, name) : -errno;
    if (status != 0)
        unlinkat(at, temp, 0);
close_directory:
    close(at);
    return status;
}

static bool name_target_is_ours(const struct gps_name_target *target, const struct gps_owner *self,
                                const struct gps_id *region) {
    if (target->kind == GPS_NAME_CLAIM)
        return gps_owner_equal(&target->claimer, self);
    return region && gps_id_equal(&target->region, region);
}

/* The holder removes its own name. The name of a freed region is an orphan. */
static int release_at(const struct gps_store *store, int at, const char *name,
                      const struct gps_owner *self) {
    int status = check_held_by(store, at, name, self);
    if (status == 0)
        status = unlinkat(at, name, 0) == 0 ? 0 : -errno;
    else if (status == -EEXIST)
        status = gps_ownership_replace(store, at, NULL, name, gps_name_ownership);
    return status > 0 || status == -ENOENT || status == -EAGAIN ? 0 : status;
}

int gps_name_release(const struct gps_store *store, const char *name, const struct gps_owner *self,
                     const struct gps_id *region) {
    int at = open_names(store, name);
    if (at < 0)
        return at;
    struct gps_name_target target;
    int status = resolve_at(at, name, &target);
    if (status == 0 && name_target_is_ours(&target, self, region))
        status = release_at(store, at, name, self);
    close(at);
    return status == -ENOENT || status == -EBADMSG ? 0 : status;
}
