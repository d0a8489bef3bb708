/*
 * store.h - the published directory: its paths, region records and names.
 *
 * Owns every access to <root>/<namespace>. Nothing here keeps a descriptor open, maps a file or
 * waits: each function opens by absolute path (O_NOFOLLOW | O_CLOEXEC), checks what it finds
 * (regular file of ours, mode without group and other bits, size, checksum), works and closes. That
 * is safe because the directories are 0700 and ours: gps_store_init checks them. What other
 * processes write is input: copied, then checked.
 *
 * Functions answer 0 or -errno; outputs are written only on success. A struct gps_store is constant
 * after its init and may be used from any thread. No malloc but where said. errno is not preserved,
 * and a write over the program's file size limit raises SIGXFSZ: the callers save the one and block
 * the other.
 *
 * Who dies or stops at any point leaves every file whole and nobody waiting: ownership.h says how.
 */
#ifndef GPS_STORE_H
#define GPS_STORE_H

#include <limits.h>
#include <stdbool.h>

#include "record.h"

/* Publishing and taking a lease stop where less than this would be left on the file system. */
#define GPS_STORE_RESERVE (UINT64_C(1) << 20)

/* Longest root + namespace; short, since threads with small stacks hold it. */
#define GPS_STORE_PATH 1024

struct gps_store {
    char path[GPS_STORE_PATH]; /* <root>/<namespace>, absolute */
};

/* Points the store at root/name_space. With create, makes what is missing from root down (0700; not
 * root's parents). -EPERM: a directory
 * on the way is not ours or open to others (its mode & 077); -ENOTDIR, -ELOOP: not a directory, or
 * a symlink; -EINVAL: root is not absolute or the namespace not a valid name (gps_name_valid);
 * -ENAMETOOLONG; -ENOENT without create; else what mkdir said (-EROFS, -ENOSPC, ...). */
int gps_store_init(struct gps_store *store, const char *root, const char *name_space, bool create);

/* "/dev/shm/gpushare-<euid>", the root where GPUSHARE_DIR is not set. */
void gps_store_default_root(char *path, size_t size);

/* --- regions: written by their owner only --- */

/* Writes a sealed record to regions/<id>: temporary file, then rename, so a reader sees all or
 * nothing and a crash leaves at worst a temporary file (".tmp.<owner>.<random>") for gc. The
 * owner's lease must be held. Replaces the owner's own record, a dead owner's and an invalid one;
 * -EEXIST: a live process has published this handle (two containers with equal pids can have equal
 * handles). -ENOSPC also when less than GPS_STORE_RESERVE would be left on the file system: better
 * no record than a full /dev/shm for the program. A VMM record of a dead keeper is replaced, too,
 * by the next one. */
int gps_region_publish(const struct gps_store *store, const struct gps_region_record *record);

/* Rewrites the status of a published record in place (one pwrite of 64 bytes). `record` is the
 * owner's own copy and is updated too, on success. -ENOENT when the file is gone, or is not that
 * record any more. */
int gps_region_set_status(const struct gps_store *store, struct gps_region_record *record,
                          enum gps_state state, uint64_t until);

/* The same, with what is written of an upload (GPS_REGION_UPLOAD). -EINVAL: more than there is. */
int gps_region_set_written(const struct gps_store *store, struct gps_region_record *record,
                           enum gps_state state, uint64_t written);

/* Writes (or rewrites) the traces behind a published record: seals them, one pwrite. Errors as
 * gps_region_set_status. */
int gps_region_set_traces(const struct gps_store *store, const struct gps_region_record *record,
                          struct gps_region_traces *traces);
/* The traces of this record. -ENOENT: it has none; -EBADMSG: they do not pass. */
int gps_region_read_traces(const struct gps_store *store, const struct gps_region_record *record,
                           struct gps_region_traces *traces);

/* Reads and checks regions/<id>. -ENOENT; -EBADMSG when it does not pass, *why says what is wrong
 * (may be NULL). Looks again a few times before that: it may have met the owner's pwrite of a
 * status half done. */
int gps_region_read(const struct gps_store *store, const struct gps_id *id,
                    struct gps_region_record *record, const char **why);

/* And what lies beside it. */
int gps_region_remove(const struct gps_store *store, const struct gps_id *id);

/* Whether live processes hold this VMM region, and so wait for the next keeper when its own is
 * dead: 1, 0 or -errno. */
int gps_region_awaited(const struct gps_store *store, const struct gps_region_record *record);

/* A result (FINAL) has been opened by an importer: regions/<id>.taken, an empty file that the
 * importer makes and the owner looks for. An importer can be quicker than any scan for its slot.
 * The owner removes it with the record. */
int gps_region_take(const struct gps_store *store, const struct gps_id *id);
bool gps_region_taken(const struct gps_store *store, const struct gps_id *id);

/* Calls fn for every entry of regions/ that looks like a record's name; status is 0 and record
 * valid, or status is -EBADMSG, why is set, and only record->id means anything. fn returns false to
 * stop. */
typedef bool gps_region_fn(void *arg, const struct gps_region_record *record, int status,
                           const char *why);
int gps_region_each(const struct gps_store *store, gps_region_fn *fn, void *arg);

/* --- names --- */

enum gps_name_kind { GPS_NAME_CLAIM = 1, GPS_NAME_REGION = 2 };

struct gps_name_target {
    enum gps_name_kind kind;
    struct gps_owner claimer; /* CLAIM: pid_ns, pid, start, nonce */
    struct gps_id region;     /* REGION */
};

/* readlink and validation, never followed. -ENOENT; -EBADMSG: not a link of ours; -EINVAL: not a
 * valid name. */
int gps_name_resolve(const struct gps_store *store, const char *name,
                     struct gps_name_target *target);

/* Takes a name for this process before it has a region (names/<name> -> ../procs/<self>). Its lease
 * must be held. -EEXIST: a live process has it, ourselves included (*holder, may be NULL, says
 * which; pid 0: one that is taking it this moment). A claim is held while its process lives; a name
 * of a region while the region bears that name, is not freed and its owner lives; of a VMM region
 * also while its keeper is dead, but live processes hold it. Any other is an orphan and taken over.
 * Waits for nobody. */
int gps_name_claim(const struct gps_store *store, const char *name, const struct gps_owner *self,
                   struct gps_owner *holder);

/* Our claim becomes the name of our region (atomic rename). The region is published and bears the
 * name, else -ENOENT or -EINVAL. -ENOENT too when the claim is gone; -EEXIST: the name is not held
 * by the region's owner or, of a VMM region, its creator. */
int gps_name_point(const struct gps_store *store, const char *name, const struct gps_id *region);

/* Removes the name if it still is our claim or one of our regions (`region` may be NULL for a
 * claim). 0 also when it was not ours any more. The name of a VMM region is its keeper's. */
int gps_name_release(const struct gps_store *store, const char *name, const struct gps_owner *self,
                     const struct gps_id *region);

typedef bool gps_name_fn(void *arg, const char *name, const struct gps_name_target *target,
                         int status);
int gps_name_each(const struct gps_store *store, gps_name_fn *fn, void *arg);

/* --- the whole directory --- */

struct gps_gc_counts {
    unsigned procs;   /* files of dead processes removed */
    unsigned regions; /* records of dead owners that nobody holds, and invalid records, removed */
    unsigned names;   /* names of dead owners or of nothing removed */
    unsigned temps;   /* temporary files of dead writers, and what a dead keeper listened on */
    unsigned kept;    /* regions of dead owners that a live process still holds */
};

/* Removes what dead processes left. Never touches what a live process owns or holds, nor records of
 * another version, nor files whose names mean nothing to us. Safe beside running programs and other
 * gcs. dry_run only counts. An entry that cannot be judged or removed is left; the first such error
 * is returned after all the rest was swept. */
int gps_store_gc(const struct gps_store *store, bool dry_run, struct gps_gc_counts *counts);

#endif
