/*
 * view.h - the published directory at one time: regions, processes and users, joined and sorted.
 *
 * Owns the choice of the directory (GPUSHARE_DIR, GPUSHARE_NAMESPACE). Regions are read before
 * processes: so a region's owner and users that are still alive are seen alive. Nothing is locked:
 * a file that changes meanwhile may be missing, but is never seen half written.
 */
#pragma once

#include "directory/frame_file.h"
#include "directory/store.h"
#include "gpushare/suspend.h"

struct view_process {
    struct gps_owner owner;
    uint64_t created; /* its first CUDA call; 0: it has no file any more */
    char arguments[GPS_ARGUMENT_BYTES];
    bool alive;
    bool found;        /* by `show`: it is asked for; of a region, too */
    bool takes_orders; /* `suspend = on`: what it has answered last is known */
    struct gps_answer_file answer;
};

/* Whether the process has evicted the memory that it shares, and its calls wait. */
static inline bool view_suspended(const struct view_process *process) {
    return process->alive && process->takes_orders && process->answer.state == GPS_ANSWER_GONE;
}

/* A region that a live process holds or is about to; a process can hold one more than once, and
 * what it only caches comes last. */
struct view_hold {
    struct gps_owner owner;
    struct gps_slot slot;
    const struct view_region *region; /* NULL: there is no record of it */
};

/* open_cache holds it; the program may have it open at this moment. */
static inline bool view_cached(const struct view_hold *hold) {
    return hold->slot.state == GPS_SLOT_CACHED;
}

/* What a live process waits for. */
struct view_wait {
    struct gps_owner owner;
    struct gps_wait_slot wait;
};

/* How long it waits at most, in ns. */
static inline uint64_t view_longest(const struct gps_wait_slot *wait) {
    return wait->until > wait->since ? wait->until - wait->since : 0;
}

struct view_region {
    struct gps_region_record record;
    const struct view_hold *holds; /* those of one process are neighbours */
    size_t hold_count;
    size_t user_count;    /* processes */
    bool owner_alive;     /* the owner in the record: of a VMM region the keeper */
    bool creator_alive;   /* the process that allocated it: the owner, but for VMM regions */
    size_t creator_holds; /* of a VMM region: how many; they stand behind `holds`, whose users do
                             not count the creator */
    bool found;
};

struct view {
    struct gps_store store;
    uint64_t now;                /* CLOCK_REALTIME, ns */
    uint64_t pid_ns;             /* ours */
    struct view_region *regions; /* by name, the nameless last; then by age, oldest first */
    size_t region_count;
    struct view_process *processes; /* also owners of records that have no file any more */
    size_t process_count;
    struct view_hold *holds; /* by region */
    size_t hold_count;
    struct view_wait *waits; /* the longest first */
    size_t wait_count;
};

/* Root and namespace as the library sees them; fills `root` where GPUSHARE_DIR is not set. */
struct view_place {
    char root[GPS_STORE_PATH];
    const char *name_space;
    bool chosen; /* by GPUSHARE_DIR */
};
void view_place_get(struct view_place *place);

/* "Programs ...; elsewhere: uid 1000 in /dev/shm/gpushare-1000", those who have had a directory
 * beside this user's; malloc'ed. NULL: there is none, or GPUSHARE_DIR names the place. */
char *view_other_users(void);

/* `make`: the directory is made if need be. 0, -ENOENT when there is none yet, or -errno; the path
 * in `store` is set for messages in any case. */
int view_store(const struct view_place *place, bool make, struct gps_store *store);

/* A phrase for an error of view_store: "/x is open to others ..."; malloc'ed. */
char *view_store_trouble(const struct view_place *place, int status);

/* Opens the store that the environment names. Errors go to stderr, but -ENOENT does not when the
 * directory is not to be made. */
int view_store_open(bool make, struct gps_store *store);

/* The last process to leave the store removes the files of dead ones, as the library does. */
void view_store_leave(const struct gps_store *store);

/* Reads everything. Damaged files are warned about and left out. False after an error message.
 * A directory that does not exist is an empty one. */
bool view_read(struct view *view);
/* The same with freed regions that no process has open; the other leaves them unread. */
bool view_read_all(struct view *view);
void view_free(struct view *view);

const struct view_process *view_process_find(const struct view *view,
                                             const struct gps_owner *owner);

/* What keeps a process from merging though a rule says so (enum gps_not_merging in `address`).
 * NULL: nothing is in the way. */
const struct gps_slot *view_not_merging(const struct view *view, const struct gps_owner *owner);

/* The owner is dead, and no process holds it. */
bool view_dead(const struct view_region *region);
/* No process holds it, and its memory is freed. It is shown only on demand. */
bool view_hidden(const struct view_region *region);
/* Whether the keeper keeps the region. */
bool view_is_vmm(const struct view_region *region);
/* Whether it is a token of the owner's own cuMemCreate memory (vmm_ipc). */
bool view_is_run(const struct view_region *region);
/* It is a block of memory that is equal in several processes, which a merge rule made. */
bool view_merged(const struct view_region *region);

/* Marks the regions that match the text as found, and no others. Returns how many it marked. */
typedef bool view_match_fn(const struct view_region *region, const char *text);
size_t view_find(struct view *view, view_match_fn *matches, const char *text);
/* Its id begins with the text, of 6 digits or more, for fewer often fit several regions. */
bool view_has_id(const struct view_region *region, const char *text);

/* Adds the names, or short ids, of the regions that `listed` accepts to a list (tool_list). Returns
 * how many; at most VIEW_NAMES_MAX. */
#define VIEW_NAMES_MAX 8
size_t view_names(const struct view *view, bool (*listed)(const struct view_region *), char **list);

uint64_t view_nanos_since(const struct view *view, uint64_t since);

/* --- whole frames --- */

/* A reader that is dead counts as none, though its entry stays until another one takes it. */

struct view_frames {
    int status;   /* 0, or -errno: of what follows nothing is known */
    uint64_t now; /* CLOCK_MONOTONIC, ns */
    struct gps_frames_said said;
    struct gps_frames_reader readers[GPS_FRAMES_READERS_MAX];
    size_t reader_count;
};

/* False: the region has none. */
bool view_frames_read(const struct view *view, const struct view_region *region,
                      struct view_frames *frames);

/* "latest", as a rule says it. */
const char *view_frames_mode(const struct view_region *region);
/* Why nothing is known of them: a phrase. */
const char *view_frames_trouble(const struct view_frames *frames);
/* How long ago that was, in ns. */
uint64_t view_frames_age(const struct view_frames *frames, uint64_t at);
