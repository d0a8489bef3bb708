/* diagnose_open.c - see diagnose.h: opens of memory, and events. */
#include <string.h>

#include "diagnose.h"
#include "directory/file.h"
#include "directory/region.h"
#include "driver/driver_ops.h"
#include "driver/peers.h"
#include "driver/scope.h"
#include "process/membership.h"
#include "process/process.h"
#include "registry/freed_history.h"
#include "reporter.h"
#include "util/text.h"

/* A handle that could not be opened, and what the directory says of it now. */
struct open {
    const struct gps_import *import;
    unsigned flags;
    int code;
    bool recorded;
    bool late; /* the record was not there when the driver was asked */
    struct gps_region_record record;
    struct gps_import elsewhere; /* open in another context */
    struct gps_text detail;
};

static bool is_own(const struct gps_region_record *record) {
    return gps_process_is_self(gps_record_creator(record));
}

/* --- reasons --- */

/* What the directory shows of other live processes. */
struct others {
    bool has_our_pid; /* in its own pid namespace */
    bool has_other_shm;
    bool may_export; /* `gpushare audit` only sits in the directory */
};

static bool note_other(void *arg, const struct gps_proc *proc) {
    const struct gps_owner *other = &proc->header.owner, *self = gps_process_self();
    struct others *others = arg;
    if (!proc->alive || gps_process_is_self(other))
        return true;
    others->has_our_pid |= other->pid == self->pid && other->pid_ns != self->pid_ns;
    others->has_other_shm |= gps_proc_has_other_shm(proc);
    others->may_export |= strcmp(other->command, "gpushare") != 0;
    return true;
}

/* Where the directory cannot be read, there may be an exporter. */
static struct others look_at_others(void) {
    struct others others = {0};
    gps_membership_join();
    const struct gps_store *store = gps_membership_store();
    if (!store || gps_proc_each(store, note_other, &others) < 0)
        return (struct others){.may_export = true};
    return others;
}

/* The driver compares pids alone: it took the handle for this process's own. */
static enum gps_known taken_for_own(struct open *open) {
    if (!open->recorded && !look_at_others().has_our_pid) {
        gps_text_str(&open->detail,
                     "the driver takes it for this process's own: it is, or its exporter has "
                     "the same pid in another pid namespace");
        return GPS_KNOWN_NOTHING;
    }
    gps_text_add(&open->detail,
                 "the driver tells processes apart by their pid alone, and the exporter is process "
                 "%u of its pid namespace as this one is of its own: start the programs of both "
                 "containers by gpushare run, or in one pid namespace (--pid)",
                 gps_process_self()->pid);
    return GPS_KNOWN_NAMESPACE;
}

static bool is_unreachable(struct open *open) {
    char uuid[GPS_UUID_TEXT];
    if (open->code != GPS_PEER_UNSUPPORTED &&
        !(open->recorded && gps_peers_reached(open->record.device) == 0))
        return false;
    gps_text_str(&open->detail, "the current device is no peer of the exporter's");
    if (open->recorded) {
        gps_format_uuid(open->record.device, uuid);
        gps_text_add(&open->detail, ", %s", uuid);
    }
    return true;
}

static bool is_refused_handle(int code) {
    return code == GPS_INVALID_VALUE || code == GPS_INVALID_HANDLE;
}

/* The exporter lives and its memory is ready. The report says how the two differ. A token knows no
 * pid. */
static enum gps_known differing(struct open *open) {
    if (open->record.backing == GPS_BACKING_RUN ||
        open->record.owner.pid_ns == gps_process_self()->pid_ns || !open->record.owner.pid_ns ||
        !is_refused_handle(open->code))
        return GPS_KNOWN_LIVE;
    gps_text_add(
        &open->detail,
        "the exporter lives and its memory is ready, but it runs in another pid namespace, %lu",
        open->record.owner.pid_ns);
    return GPS_KNOWN_NAMESPACE;
}

/* --- handles without a record --- */

/* Whether another namespace of the same directory (GPUSHARE_NAMESPACE) has this handle's record. */
static bool find_in_sibling(struct open *open, const char *root, const char *name) {
    struct gps_store store;
    if (gps_store_init(&store, root, name, false) < 0 ||
        gps_region_read(&store, &open->import->region, &open->record, NULL) < 0)
        return false;
    gps_text_add(&open->detail,
                 "it was exported under gpushare in namespace %s, not in this process's: set one "
                 "GPUSHARE_NAMESPACE for both",
                 name);
    return true;
}

static bool find_in_siblings(struct open *open) {
    struct gps_store root = *gps_membership_store();
    struct gps_dir dir;
    char *slash = strrchr(root.path, '/');
    bool found = false;
    *slash = '\0';
    gps_dir_open(&dir, &root, ".");
    for (const char *name; !found && (name = gps_dir_next(&dir));)
        found = gps_name_valid(name) && strcmp(name, slash + 1) != 0 &&
                find_in_sibling(open, root.path, name);
    gps_dir_close(&dir);
    return found;
}

/* Known handles that begin, and that end, as one that nobody knows. */
struct likeness {
    const uint8_t *handle;
    unsigned first, last; /* so many bytes are equal */
    struct gps_owner begins, ends;
    unsigned left; /* records to read: each is a file */
};
enum { RECORDS = 1024, TELLING = 32, CUT = 16 };

static bool compare(void *arg, const struct gps_region_record *record, int status,
                    const char *why) {
    struct likeness *like = arg;
    unsigned first = 0, last = 0;
    (void)why;
    while (status == 0 && first < GPS_HANDLE_BYTES && record->handle[first] == like->handle[first])
        first++;
    while (status == 0 && last < GPS_HANDLE_BYTES &&
           record->handle[GPS_HANDLE_BYTES - 1 - last] == like->handle[GPS_HANDLE_BYTES - 1 - last])
        last++;
    if (first > like->first) {
        like->first = first;
        like->begins = *gps_record_creator(record);
    }
    if (last > like->last) {
        like->last = last;
        like->ends = *gps_record_creator(record);
    }
    return --like->left;
}

static bool is_zero_from(const uint8_t *handle, unsigned from) {
    while (from < GPS_HANDLE_BYTES && !handle[from])
        from++;
    return from == GPS_HANDLE_BYTES;
}

static void say_owner(struct gps_text *text, const struct gps_owner *owner) {
    gps_text_add(text, "%s (pid %u)", owner->command, owner->pid);
}

/* A handle that was cut, or put together from two. What is said of it is so, whatever was done. */
static void say_likeness(struct open *open) {
    struct likeness like = {.handle = open->import->handle, .left = RECORDS};
    gps_region_each(gps_membership_store(), compare, &like);
    const bool cut = is_zero_from(like.handle, like.first);
    const bool mixed = !cut && like.first + like.last >= GPS_HANDLE_BYTES;
    if (like.first < (cut ? CUT : TELLING) || like.first == GPS_HANDLE_BYTES)
        return;
    gps_text_add(&open->detail, "; the first %u bytes are those of a handle of ", like.first);
    say_owner(&open->detail, &like.begins);
    if (cut)
        gps_text_str(&open->detail, ", and all others are 0");
    if (!mixed)
        return;
    gps_text_add(&open->detail, ", the last %u those of another one of ",
                 GPS_HANDLE_BYTES - like.first);
    say_owner(&open->detail, &like.ends);
}

static enum gps_known unknown(struct open *open) {
    const struct gps_store *store = gps_membership_store();
    if (!is_refused_handle(open->code) && open->code != GPS_NOT_PERMITTED)
        return GPS_KNOWN_LIVE;
    if (!store)
        return GPS_KNOWN_NOTHING;
    if (find_in_siblings(open))
        return GPS_KNOWN_NAMESPACE;
    gps_text_add(&open->detail, "the driver's code is %lu", (uint64_t)open->code);
    say_likeness(open);
    if (!look_at_others().may_export)
        gps_text_add(&open->detail,
                     "; no other process is seen in %s: an exporter that runs under gpushare has "
                     "another /dev/shm, user, GPUSHARE_DIR or GPUSHARE_NAMESPACE, or has ended",
                     store->path);
    return GPS_KNOWN_NOTHING;
}

/* --- judging --- */

static enum gps_known known_of(struct open *open) {
    const struct gps_import *import = open->import;
    if (!import->context)
        return open->code == GPS_INVALID_CONTEXT ? GPS_KNOWN_NO_CONTEXT : GPS_KNOWN_LIVE;
    if (open->code == GPS_INVALID_VALUE && open->flags != gps_ops->open_flags())
        return GPS_KNOWN_FLAGS;
    if (open->code == GPS_INVALID_CONTEXT && open->recorded && is_own(&open->record))
        return GPS_KNOWN_OWN;
    if (open->recorded && gps_record_over(&open->record))
        return GPS_KNOWN_STALE;
    if (open->code == GPS_INVALID_HANDLE &&
        gps_registry_opened_anywhere(&import->region, &open->elsewhere) &&
        open->elsewhere.context != import->context) {
        gps_text_add(&open->detail, "it is open at 0x%lx in context 0x%lx", open->elsewhere.pointer,
                     open->elsewhere.context);
        return GPS_KNOWN_OPEN_THERE;
    }
    if (open->recorded && !is_own(&open->record) &&
        gps_lease_probe(gps_membership_store(), &open->record.owner) == GPS_DEAD)
        return GPS_KNOWN_DEAD_OWNER;
    if (open->code == GPS_INVALID_CONTEXT)
        return taken_for_own(open);
    if (is_unreachable(open))
        return GPS_KNOWN_UNREACHABLE;
    return open->recorded && !open->late ? differing(open) : unknown(open);
}

static void report_open(struct open *open) {
    struct gps_import import = *open->import;
    gps_ops->device(&import.device);
    const enum gps_known known = known_of(open);
    struct gps_report report = gps_report_on(GPS_ASK_OPENED, known);
    if (report.finding == GPS_NO_FINDING)
        return;
    if (known == GPS_KNOWN_FLAGS)
        gps_text_add(&open->detail, "the flags are %u", open->flags);
    if (known == GPS_KNOWN_OWN)
        import.exporter.owner.pid = 0; /* no other process has a part in it */
    gps_report_about_import(&report, &import);
    if (known == GPS_KNOWN_OPEN_THERE)
        gps_report_prior(&report, "opened", open->elsewhere.trace);
    report.detail = open->detail.length ? open->detail.bytes : NULL;
    gps_report_send_with(&report, open->recorded ? &open->record : NULL);
}

/* A region that was over stays over. The exporter may have freed any other one while the driver was
 * asked. */
static bool take_record(struct open *open, const struct gps_region_record *before) {
    if (before)
        open->record = *before;
    if (before && gps_record_over(before))
        return true;
    const bool found =
        gps_membership_store() &&
        gps_region_read(gps_membership_store(), &open->import->region, &open->record, NULL) == 0;
    open->late = found && !before;
    return found;
}

void gps_diagnose_open(const struct gps_import *import, const struct gps_region_record *record,
                       unsigned flags, int code) {
    char detail[384];
    struct open open = {.import = import, .flags = flags, .code = code, .detail = GPS_TEXT(detail)};
    GPS_DRIVER_SCOPE();
    open.recorded = take_record(&open, record);
    report_open(&open);
}

/* --- events --- */

static void report_event(enum gps_ask ask, enum gps_known known, const struct gps_event *event,
                         const char *detail) {
    struct gps_report report = gps_report_on(ask, known);
    if (report.finding == GPS_NO_FINDING)
        return;
    report.pointer = event->event;
    report.detail = detail;
    gps_report_prior(&report, "created", event->trace);
    gps_report_prior(&report, "exported", event->exported_at);
    gps_report_send(&report);
}

/* It was made for other processes, or is destroyed: then the flags are not what is wrong. */
static bool is_other_trouble(uint64_t event) {
    struct gps_event known;
    struct gps_freed freed;
    return event && (gps_registry_find_event(event, &known) ||
                     gps_freed_find(GPS_FREED_EVENT, event, &freed));
}

void gps_diagnose_share_event(uint64_t event, int code) {
    uint64_t context = 0;
    enum gps_known known = GPS_KNOWN_NOTHING;
    GPS_DRIVER_SCOPE();
    gps_ops->context(&context);
    if (code == GPS_INVALID_CONTEXT && !context)
        known = GPS_KNOWN_NO_CONTEXT;
    else if (code == (event ? GPS_INVALID_HANDLE : GPS_INVALID_VALUE) && !is_other_trouble(event))
        known = GPS_KNOWN_FLAGS;
    report_event(GPS_ASK_EVENT_SHARED, known, &(struct gps_event){.event = event},
                 event ? NULL : "cudaEventInterprocess was given without cudaEventDisableTiming");
}

static enum gps_known known_of_event(const uint8_t handle[GPS_HANDLE_BYTES], int code,
                                     struct gps_event *own, const char **detail) {
    const struct gps_id id = gps_id_of_handle(handle);
    uint64_t context = 0;
    gps_ops->context(&context);
    /* The creator's file is not here, mostly because it has ended, and that is no error. */
    if (code == GPS_MAP_FAILED && look_at_others().has_other_shm) {
        *detail = "an event lives in a file of /dev/shm, and a process of the published directory "
                  "has another /dev/shm than this one (give both containers one: --ipc, or a "
                  "common mount)";
        return GPS_KNOWN_NAMESPACE;
    }
    if (code != GPS_INVALID_CONTEXT)
        return GPS_KNOWN_NOTHING;
    if (!context)
        return GPS_KNOWN_NO_CONTEXT;
    if (gps_registry_exported_event(&id, own))
        return GPS_KNOWN_OWN;
    if (!look_at_others().has_our_pid)
        return GPS_KNOWN_NOTHING; /* it may be an event of ours that is destroyed by now */
    *detail = "the driver tells processes apart by their pid alone, and the process that created "
              "the event has the same one in another container (start both by gpushare run, or "
              "give both containers one pid namespace: --pid)";
    return GPS_KNOWN_NAMESPACE;
}

void gps_diagnose_open_event(const uint8_t handle[GPS_HANDLE_BYTES], int code) {
    const char *detail = NULL;
    struct gps_event own = {.event = 0};
    GPS_DRIVER_SCOPE();
    const enum gps_known known = known_of_event(handle, code, &own, &detail);
    report_event(GPS_ASK_EVENT_OPENED, known, &own, detail);
}
