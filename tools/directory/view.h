/*
 * view.h - one look at the published directory: regions, processes and users, joined and sorted.
 *
 * Owns where the directory is (GPUSHARE_DIR, GPUSHARE_NAMESPACE) and the words in which ls, show
 * and their JSON speak of it. Regions are read before processes: then every region's owner that
 * still lives is seen living, and every user of it is seen. Nothing is locked, so what changes
 * meanwhile may be missing, but never half there.
 */
#ifndef VIEW_H
#define VIEW_H

#include "cli/json.h"
#include "cli/term.h"
#include "directory/store.h"

struct view_process {
    struct gps_owner owner;
    uint64_t created; /* its first CUDA call; 0: it has no file any more */
    bool alive;
};

/* A live process holds a region, or is about to. One process can hold a region more than once. */
struct view_hold {
    struct gps_owner owner;
    struct gps_slot slot;
};

struct view_region {
    struct gps_region_record record;
    const struct view_hold *holds; /* those of one process are neighbours */
    size_t hold_count;
    size_t user_count;  /* processes */
    bool owner_alive;   /* the record's: of a kept region the keeper */
    bool creator_alive; /* whose allocation it is; the same process, but for kept regions */
    bool creator_holds; /* a kept region; its holds and users are the others */
};

struct view {
    struct gps_store store;
    uint64_t now;                /* CLOCK_REALTIME, ns */
    uint64_t pid_ns;             /* ours */
    struct view_region *regions; /* by name, the nameless last; then by age, oldest first */
    size_t region_count;
    struct view_process *processes; /* also owners of records whose own file is gone */
    size_t process_count;
    struct view_hold *holds; /* by region */
    size_t hold_count;
};

/* Root and namespace as the library sees them; fills `root` where GPUSHARE_DIR is not set. */
struct view_place {
    char root[GPS_STORE_PATH];
    const char *name_space;
    bool chosen; /* by GPUSHARE_DIR */
};
void view_place_get(struct view_place *place);

/* 0, -ENOENT when there is no directory yet (store is then set for messages), or -errno. */
int view_store(const struct view_place *place, struct gps_store *store);

/* A phrase for what view_store returned: "is not yours, or open to others". */
const char *view_store_trouble(int error);

/* view_store for a verb that only needs the store: complains itself. False: could not. */
bool view_store_open(struct gps_store *store, bool *exists);

/* Reads everything. Damaged files are warned about and left out. False after an error message.
 * A directory that does not exist is an empty one. */
bool view_read(struct view *view);
void view_free(struct view *view);

const struct view_process *view_process_find(const struct view *view,
                                             const struct gps_owner *owner);

/* What one process keeps allocated of another's (or of a dead one's): regions and their bytes. */
struct view_pins {
    size_t count;
    uint64_t bytes;
};
/* `owner` NULL: of anybody's. */
struct view_pins view_pins(const struct view *view, const struct gps_owner *holder,
                           const struct gps_owner *owner);
/* Events of other processes that this one has open. */
size_t view_events(const struct view *view, const struct gps_owner *holder);

/* NULL: it has no record. */
const struct view_region *view_region_find(const struct view *view, const struct gps_id *id);

/* The state as people see it: the record's, or "orphaned" (owner dead, held), "dead". */
const char *view_state(const struct view_region *region);
enum term_colour view_state_colour(const struct view_region *region);
/* Nobody holds it, and its memory is gone: shown only on demand. */
bool view_hidden(const struct view_region *region);
/* Its owner has freed it or is dead; it stays allocated only because somebody holds it. */
bool view_pinned(const struct view_region *region);
bool view_dead(const struct view_region *region); /* its owner is, and nobody holds it */

/* --- texts --- */

#define VIEW_TEXT 64 /* enough for each of these */
/* "4242", or "7@4026532201" when the pid counts in another pid namespace than ours. */
void view_pid(const struct view *view, const struct gps_owner *owner, char text[VIEW_TEXT]);
void view_size(uint64_t bytes, char text[VIEW_TEXT]);       /* "64 MiB" */
void view_exact_size(uint64_t bytes, char text[VIEW_TEXT]); /* "64 MiB (67108864 bytes)" */
void view_time(uint64_t realtime_ns, char text[VIEW_TEXT]);
/* How long ago, in one unit: "5 min". */
void view_age(const struct view *view, uint64_t since, char text[VIEW_TEXT]);
uint64_t view_nanos_since(const struct view *view, uint64_t since);
/* CLOCK_REALTIME of a start time in clock ticks since boot. */
uint64_t view_start_time(const struct view *view, uint64_t ticks);
const char *view_name(const struct view_region *region); /* "-" where it has none */
const char *view_backing(uint32_t backing);
bool view_kept(const struct view_region *region); /* by the keeper */
/* "owner", "users", "forever", or a time: "10min". */
void view_keep(const struct view_region *region, char text[VIEW_TEXT]);

/* --- JSON --- */

/* The members every groups gives: id name size device state backing owner users age, and of a kept
 * region keeper and keep. */
void view_json_region(const struct view *view, const struct view_region *region, struct json *json);
void view_json_owner(const struct gps_owner *owner, struct json *json); /* its members only */

#endif
