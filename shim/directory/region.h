/*
 * region.h - the records of the published directory: those of regions in regions/, and those in
 * audit/ with a store whose `records` names it.
 *
 * A record is written only by its owner. Errors, threads and memory are as in store.h.
 */
#pragma once

#include "file.h"

/* The suffix of the file that says that the result of a record was opened (gps_region_take). */
#define GPS_TAKEN_SUFFIX ".taken"

/* The path <store>/regions/<id><suffix>; the suffix "" gives the path of the record. */
void gps_region_path(const struct gps_store *store, const struct gps_id *id, const char *suffix,
                     char path[GPS_FILE_PATH]);

/* Writes a sealed record to regions/<id>. The record is written to a temporary file
 * (".tmp.<owner>.<random>") and renamed, so a reader sees all of it or nothing; a crash leaves at
 * most the temporary file, which gps_store_gc removes. The owner must hold its lease. Replaces the
 * owner's own record, the record of a dead owner and an invalid record. The next keeper may replace
 * a VMM record of a dead keeper. -EEXIST: a live process has published this handle (two containers
 * with equal pids can have equal handles). -ENOSPC: also if less than GPS_STORE_RESERVE would
 * remain, because a full /dev/shm would harm the program more than a missing record. */
int gps_region_publish(const struct gps_store *store, const struct gps_region_record *record);

/* Rewrites the status of a published record in place, with one pwrite of 64 bytes. `record` is the
 * owner's copy, updated on success. -ENOENT: the file is missing or holds another one. */
int gps_region_set_status(const struct gps_store *store, struct gps_region_record *record,
                          enum gps_state state, uint64_t until);

/* Seals the traces and writes them behind a published record, with one pwrite. Errors as in
 * gps_region_set_status. */
int gps_region_set_traces(const struct gps_store *store, const struct gps_region_record *record,
                          struct gps_region_traces *traces);
/* Reads the traces of this record. -ENOENT: it has none. -EBADMSG: they are not valid. */
int gps_region_read_traces(const struct gps_store *store, const struct gps_region_record *record,
                           struct gps_region_traces *traces);

/* Moves the record of a freed region to freed/<id>, over an older one, or removes it from there.
 * A record in freed/ is freed, whatever its status says. A record that cannot be moved stays; its
 * state is to be FREED already. -ENOENT: regions/<id> is another record by now. The caller has
 * reserved the id, so that no thread publishes one meanwhile. */
int gps_region_bury(const struct gps_store *store, const struct gps_region_record *record);
int gps_region_remove_freed(const struct gps_store *store, const struct gps_id *id);

/* Reads and checks regions/<id>, else freed/<id>. -ENOENT. -EBADMSG: the record is not valid, and
 * *why (if why is not NULL) says what is wrong. An invalid record is read again a few times first:
 * the owner may be rewriting the status at that moment. */
int gps_region_read(const struct gps_store *store, const struct gps_id *id,
                    struct gps_region_record *record, const char **why);
/* The same for a file that gps_file_open has opened. */
int gps_region_read_open(const struct gps_store *store, int fd, const struct gps_id *id,
                         struct gps_region_record *record, const char **why);

/* Removes the record and the files beside it, or those alone: <id>.taken, which only a result has,
 * and <id>.frames. */
int gps_region_remove(const struct gps_store *store, const struct gps_id *id);
void gps_region_remove_beside(const struct gps_store *store, const struct gps_id *id);

/* Judges a record, by its owner and for a VMM region also by its users: they wait for the next
 * keeper if theirs is dead. HELD, ORPHAN or -errno; *holder is the owner. */
int gps_region_holder(const struct gps_store *store, const struct gps_region_record *record,
                      struct gps_owner *holder);

/* Records that an importer has opened a result (state FINAL), by making the empty file
 * regions/<id>.taken. The owner looks for the file because an importer can open and close a region
 * between two scans of the slots. The owner removes it with the record. */
int gps_region_take(const struct gps_store *store, const struct gps_id *id);
bool gps_region_taken(const struct gps_store *store, const struct gps_id *id);

/* Calls fn for every entry of regions/ that is named like a record, until fn returns false. Either
 * status is 0 and the record is valid; or status is -EBADMSG, `why` says what is wrong, and only
 * record->id is meaningful. */
typedef bool gps_region_fn(void *arg, const struct gps_region_record *record, int status,
                           const char *why);
int gps_region_each(const struct gps_store *store, gps_region_fn *fn, void *arg);
/* The same for freed/. A region can be in both while its handle is given again. */
int gps_region_each_freed(const struct gps_store *store, gps_region_fn *fn, void *arg);
