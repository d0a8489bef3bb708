#include "view.h"

#include <dirent.h>
#include <sys/stat.h>

#include "cli/environment.h"
#include "cli/printable.h"
#include "cli/tool.h"
#include "directory/lease.h"
#include "directory/orders.h"
#include "directory/orphans.h"
#include "directory/region.h"
#include "util/clock.h"
#include "util/procfs.h"

#define ID_DIGITS_MIN 6

/* --- where --- */

void view_place_get(struct view_place *place) {
    place->chosen = gps_store_root(place->root, sizeof(place->root));
    place->name_space = gps_store_namespace();
}

char *view_other_users(void) {
    struct view_place place;
    const char *before = "Programs of one user share only with each other; elsewhere: ";
    char *users = NULL;
    view_place_get(&place);
    char *slash = place.chosen ? NULL : strrchr(place.root, '/');
    if (slash)
        *slash = 0;
    DIR *directory = slash ? opendir(place.root) : NULL;
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        struct stat info;
        unsigned uid;
        if (sscanf(entry->d_name, "gpushare-%u", &uid) == 1 && uid != geteuid() &&
            fstatat(dirfd(directory), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISDIR(info.st_mode) && info.st_uid == uid)
            tool_list(&users, "%suid %u in %s/%s", users ? "" : before, uid, place.root,
                      entry->d_name);
    }
    if (directory)
        closedir(directory);
    return users;
}

int view_store(const struct view_place *place, bool make, struct gps_store *store) {
    int status = gps_store_init(store, place->root, place->name_space, make);
    if (status == -ENOENT &&
        (size_t)snprintf(store->path, sizeof(store->path), "%s/%s", place->root,
                         place->name_space) >= sizeof(store->path))
        return -ENAMETOOLONG;
    return status;
}

char *view_store_trouble(const struct view_place *place, int status) {
    char trouble[3 * GPS_STORE_PATH];
    struct gps_text text = GPS_TEXT(trouble);
    gps_store_trouble(&text, place->root, place->name_space, status);
    return tool_copy(trouble);
}

/* Programs make one directory, but not those above it. */
static void warn_of_missing(const struct view_place *place) {
    static bool warned;
    TOOL_TEMP char *above =
        tool_format("%.*s", (int)(strrchr(place->root, '/') - place->root), place->root);
    if (!warned && above[0] && access(above, F_OK) != 0)
        tool_warn("there is no %s: programs make %s in it, but not what is above (mkdir -p)", above,
                  place->root);
    warned = true;
}

int view_store_open(bool make, struct gps_store *store) {
    struct view_place place;
    view_place_get(&place);
    TOOL_TEMP char *wrong = environment_place();
    int status = wrong ? -EINVAL : view_store(&place, make, store);
    TOOL_TEMP char *trouble = view_store_trouble(&place, status);
    if (wrong)
        tool_error("%s", wrong);
    else if (status != 0 && (make || status != -ENOENT))
        tool_error("cannot use %s/%s: %s", place.root, place.name_space, trouble);
    else if (status != 0)
        warn_of_missing(&place);
    return status;
}

static bool note_alive(void *found, const struct gps_proc *proc) {
    *(bool *)found = proc->alive;
    return !proc->alive;
}

void view_store_leave(const struct gps_store *store) {
    struct gps_gc_counts counts;
    bool alive = false;
    if (gps_proc_each(store, note_alive, &alive) == 0 && !alive)
        gps_store_gc(store, false, &counts);
}

/* --- collecting --- */

static bool collect_region(void *arg, const struct gps_region_record *record, int status,
                           const char *why) {
    struct view *view = arg;
    if (status != 0)
        tool_warn("%s/regions/%s: %s; skipped, remove it with: gpushare gc", view->store.path,
                  printable_id(&record->id).text, why ? why : strerror(-status));
    else
        TOOL_APPEND(view->regions, view->region_count, (struct view_region){.record = *record});
    return true;
}

/* A damaged file there does no harm, and is removed with its owner's files. */
static bool collect_freed(void *arg, const struct gps_region_record *record, int status,
                          const char *why) {
    struct view *view = arg;
    (void)why;
    if (status == 0)
        TOOL_APPEND(view->regions, view->region_count, (struct view_region){.record = *record});
    return true;
}

static void collect_slot(struct view *view, const struct gps_owner *owner,
                         const struct gps_slot *slot) {
    struct view_wait wait = {.owner = *owner};
    if (gps_slot_wait(slot, &wait.wait))
        TOOL_APPEND(view->waits, view->wait_count, wait);
    else if (slot->via < GPS_VIA_WAIT_EXPORTER || slot->via == GPS_VIA_NOT_MERGING ||
             slot->via == GPS_VIA_MADE || slot->via == GPS_VIA_HELD ||
             slot->via == GPS_VIA_PRIVATE || slot->via == GPS_VIA_STEADY)
        TOOL_APPEND(view->holds, view->hold_count,
                    (struct view_hold){.owner = *owner, .slot = *slot});
}

/* A keeper's name stays when its stand-by goes on: users want the process that serves now. */
static void name_who_serves(struct view *view, const struct gps_slot *slot,
                            struct gps_owner *owner) {
    const struct gps_owner before = *owner;
    owner->pid = (uint32_t)slot->address;
    owner->pid_ns = slot->since;
    owner->start = slot->generation;
    for (size_t i = 0; i < view->region_count; i++)
        if (gps_owner_equal(&view->regions[i].record.owner, &before))
            view->regions[i].record.owner = *owner;
}

static bool collect_process(void *arg, const struct gps_proc *proc) {
    struct view *view = arg;
    if (proc->why) {
        tool_warn("%s/procs/%s: %s; skipped", view->store.path, proc->file, proc->why);
        return true;
    }
    struct view_process process = {
        .owner = proc->header.owner, .created = proc->header.created, .alive = proc->alive};
    memcpy(process.arguments, proc->header.arguments, sizeof(process.arguments));
    for (unsigned i = 0; proc->alive && i < proc->slot_count; i++)
        if (proc->slots[i].via == GPS_VIA_KEEPER)
            name_who_serves(view, &proc->slots[i], &process.owner);
    process.takes_orders =
        proc->alive && gps_answer_read(&view->store, &proc->header.owner, &process.answer) == 0;
    TOOL_APPEND(view->processes, view->process_count, process);
    for (unsigned i = 0; proc->alive && i < proc->slot_count; i++)
        collect_slot(view, &process.owner, &proc->slots[i]);
    return true;
}

/* --- sorting --- */

static int view_by_owner(const struct gps_owner *a, const struct gps_owner *b) {
    return tool_compare(a->pid_ns, b->pid_ns) ?: tool_compare(a->pid, b->pid)
           ?: tool_compare(a->start, b->start) ?: tool_compare(a->nonce, b->nonce);
}

static int by_process(const void *left, const void *right) {
    const struct view_process *a = left, *b = right;
    /* those with a file come first */
    return view_by_owner(&a->owner, &b->owner) ?: tool_compare(b->created, a->created);
}

static int by_hold(const void *left, const void *right) {
    const struct view_hold *a = left, *b = right;
    /* the creator's own hold comes last */
    return memcmp(&a->slot.region, &b->slot.region, sizeof(a->slot.region))
           ?: tool_compare(a->slot.via == GPS_VIA_CREATOR, b->slot.via == GPS_VIA_CREATOR)
           ?: view_by_owner(&a->owner, &b->owner) ?: tool_compare(view_cached(a), view_cached(b))
           ?: tool_compare(a->slot.since, b->slot.since);
}

static int view_region_by_name(const void *left, const void *right) {
    const struct gps_region_record *a = &((const struct view_region *)left)->record;
    const struct gps_region_record *b = &((const struct view_region *)right)->record;
    return tool_compare(a->name[0] == 0, b->name[0] == 0) ?: strcmp(a->name, b->name)
           ?: tool_compare(a->created, b->created) ?: memcmp(&a->id, &b->id, sizeof(a->id));
}

static int by_since(const void *left, const void *right) {
    const struct view_wait *a = left, *b = right;
    return tool_compare(a->wait.since, b->wait.since);
}

/* --- joining --- */

/* An owner without a file is dead; `show` finds it all the same. */
static void sort_processes(struct view *view) {
    size_t unique = 0;
    for (size_t i = 0; i < view->region_count; i++) {
        const struct gps_region_record *record = &view->regions[i].record;
        TOOL_APPEND(view->processes, view->process_count,
                    (struct view_process){.owner = record->owner});
        if (view_is_vmm(&view->regions[i]))
            TOOL_APPEND(view->processes, view->process_count,
                        (struct view_process){.owner = record->creator});
    }
    TOOL_SORT(view->processes, view->process_count, by_process);
    for (size_t i = 0; i < view->process_count; i++)
        if (unique == 0 ||
            view_by_owner(&view->processes[unique - 1].owner, &view->processes[i].owner) != 0)
            view->processes[unique++] = view->processes[i];
    view->process_count = unique;
}

static int view_process_by_owner(const void *owner, const void *process) {
    return view_by_owner(owner, &((const struct view_process *)process)->owner);
}

const struct view_process *view_process_find(const struct view *view,
                                             const struct gps_owner *owner) {
    if (view->process_count == 0)
        return NULL;
    return bsearch(owner, view->processes, view->process_count, sizeof(*view->processes),
                   view_process_by_owner);
}

static size_t first_hold(const struct view *view, const struct gps_id *region) {
    size_t low = 0, high = view->hold_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memcmp(&view->holds[middle].slot.region, region, sizeof(*region)) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct gps_slot *view_not_merging(const struct view *view, const struct gps_owner *owner) {
    for (size_t i = 0; i < view->hold_count; i++)
        if (view->holds[i].slot.via == GPS_VIA_NOT_MERGING &&
            gps_owner_equal(&view->holds[i].owner, owner))
            return &view->holds[i].slot;
    return NULL;
}

static bool process_alive(const struct view *view, const struct gps_owner *owner) {
    const struct view_process *process = view_process_find(view, owner);
    return process && process->alive;
}

static void view_region_join_holds(struct view *view, struct view_region *region) {
    size_t first = first_hold(view, &region->record.id), end = first;
    for (;
         end < view->hold_count && gps_id_equal(&view->holds[end].slot.region, &region->record.id);
         end++) {
        view->holds[end].region = region;
        if (view->holds[end].slot.via == GPS_VIA_CREATOR)
            region->creator_holds++;
        else if (end == first ||
                 view_by_owner(&view->holds[end].owner, &view->holds[end - 1].owner) != 0)
            region->user_count++;
    }
    region->owner_alive = process_alive(view, &region->record.owner);
    region->creator_alive = process_alive(view, gps_record_creator(&region->record));
    region->holds = view->holds + first;
    region->hold_count = end - first - region->creator_holds;
}

static int by_id(const void *left, const void *right) {
    const struct gps_region_record *a = &((const struct view_region *)left)->record;
    const struct gps_region_record *b = &((const struct view_region *)right)->record;
    return memcmp(&a->id, &b->id, sizeof(a->id))
               ?: tool_compare(a->status.state == GPS_STATE_FREED,
                               b->status.state == GPS_STATE_FREED);
}

/* A region that was freed, or whose handle was given again, meanwhile can be there twice. */
static void drop_doubles(struct view *view) {
    size_t unique = 0;
    TOOL_SORT(view->regions, view->region_count, by_id);
    for (size_t i = 0; i < view->region_count; i++)
        if (unique == 0 ||
            !gps_id_equal(&view->regions[unique - 1].record.id, &view->regions[i].record.id))
            view->regions[unique++] = view->regions[i];
    view->region_count = unique;
}

/* The freed regions that a process has open. Regions and holds are in the order of the ids. */
static void collect_held(struct view *view) {
    const size_t count = view->region_count;
    struct gps_region_record record;
    for (size_t i = 0, at = 0; i < view->hold_count; i++) {
        const struct gps_slot *slot = &view->holds[i].slot;
        while (at < count &&
               memcmp(&view->regions[at].record.id, &slot->region, sizeof(slot->region)) < 0)
            at++;
        const bool there =
            (at < count && gps_id_equal(&view->regions[at].record.id, &slot->region)) ||
            (i > 0 && gps_id_equal(&view->holds[i - 1].slot.region, &slot->region));
        if (!there && gps_slot_has_region(slot) &&
            gps_region_read(&view->store, &slot->region, &record, NULL) == 0)
            TOOL_APPEND(view->regions, view->region_count, (struct view_region){.record = record});
    }
}

static bool read_view(struct view *view, bool all) {
    *view = (struct view){.now = gps_clock_now(), .pid_ns = gps_procfs_pid_ns()};
    int status = view_store_open(false, &view->store);
    if (status != 0)
        return status == -ENOENT;
    status = gps_region_each(&view->store, collect_region, view);
    if (status == 0 && all)
        status = gps_region_each_freed(&view->store, collect_freed, view);
    if (status == 0 || status == -ENOENT)
        status = gps_proc_each(&view->store, collect_process, view);
    if (status != 0 && status != -ENOENT) {
        tool_error("cannot read %s: %s", view->store.path, strerror(-status));
        view_free(view);
        return false;
    }
    TOOL_SORT(view->holds, view->hold_count, by_hold);
    drop_doubles(view);
    collect_held(view);
    sort_processes(view);
    TOOL_SORT(view->waits, view->wait_count, by_since);
    TOOL_SORT(view->regions, view->region_count, view_region_by_name);
    for (size_t i = 0; i < view->region_count; i++)
        view_region_join_holds(view, &view->regions[i]);
    return true;
}

bool view_read(struct view *view) {
    return read_view(view, false);
}

bool view_read_all(struct view *view) {
    return read_view(view, true);
}

void view_free(struct view *view) {
    free(view->regions);
    free(view->processes);
    free(view->holds);
    free(view->waits);
}

/* --- facts about a region --- */

bool view_dead(const struct view_region *region) {
    return !region->owner_alive && region->hold_count == 0 && !region->creator_holds;
}

bool view_hidden(const struct view_region *region) {
    bool freed = region->record.status.state == GPS_STATE_FREED;
    return view_dead(region) || (freed && region->hold_count == 0);
}

bool view_is_vmm(const struct view_region *region) {
    return region->record.backing == GPS_BACKING_VMM;
}

bool view_is_run(const struct view_region *region) {
    return region->record.backing == GPS_BACKING_RUN;
}

bool view_merged(const struct view_region *region) {
    return view_is_vmm(region) &&
           memcmp(region->record.handle, GPS_BLOCK_MARK, sizeof(GPS_BLOCK_MARK) - 1) == 0;
}

size_t view_find(struct view *view, view_match_fn *matches, const char *text) {
    size_t count = 0;
    for (size_t i = 0; i < view->region_count; i++) {
        view->regions[i].found = matches(&view->regions[i], text);
        count += view->regions[i].found;
    }
    return count;
}

bool view_has_id(const struct view_region *region, const char *text) {
    return strlen(text) >= ID_DIGITS_MIN &&
           strncmp(printable_id(&region->record.id).text, text, strlen(text)) == 0;
}

size_t view_names(const struct view *view, bool (*listed)(const struct view_region *),
                  char **list) {
    size_t count = 0;
    for (size_t i = 0; i < view->region_count && count < VIEW_NAMES_MAX; i++) {
        const struct gps_region_record *record = &view->regions[i].record;
        if (!listed(&view->regions[i]))
            continue;
        if (record->name[0] != 0)
            tool_list(list, "%s", record->name);
        else
            tool_list(list, "%.8s", printable_id(&record->id).text);
        count++;
    }
    return count;
}

/* --- times --- */

uint64_t view_nanos_since(const struct view *view, uint64_t since) {
    return since < view->now ? view->now - since : 0;
}

/* --- whole frames --- */

static bool frames_reader_is_alive(const struct view *view,
                                   const struct gps_frames_reader *reader) {
    const struct view_process *process =
        reader->owner.pid ? view_process_find(view, &reader->owner) : NULL;
    return process && process->alive;
}

static bool is_as_the_record_says(const struct view_region *region,
                                  const struct gps_frames_head *head) {
    return head->mode == region->record.frames && head->slots == region->record.frame_slots;
}

bool view_frames_read(const struct view *view, const struct view_region *region,
                      struct view_frames *frames) {
    const struct gps_region_record *record = &region->record;
    struct gps_frames_reader readers[GPS_FRAMES_READERS_MAX];
    if (record->frames == GPS_FRAMES_OFF)
        return false;
    frames->reader_count = 0;
    frames->status = gps_frame_file_look(&view->store, &record->id, &frames->said, readers);
    frames->now = gps_clock_monotonic();
    if (frames->status == 0 && !is_as_the_record_says(region, &frames->said.head))
        frames->status = -EBADMSG;
    for (size_t i = 0; frames->status == 0 && i < GPS_FRAMES_READERS_MAX; i++)
        if (frames_reader_is_alive(view, &readers[i]))
            frames->readers[frames->reader_count++] = readers[i];
    return true;
}

uint64_t view_frames_age(const struct view_frames *frames, uint64_t at) {
    return at < frames->now ? frames->now - at : 0;
}

const char *view_frames_mode(const struct view_region *region) {
    return region->record.frames == GPS_FRAMES_EACH ? "each" : "latest";
}

const char *view_frames_trouble(const struct view_frames *frames) {
    return frames->status == -EBADMSG  ? "their file is damaged"
           : frames->status == -ENOENT ? "their file is gone"
                                       : strerror(-frames->status);
}
