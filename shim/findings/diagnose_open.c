/* diagnose_open.c - see diagnose.h: opens of memory. */
#include <errno.h>
#include <string.h>

#include "diagnose.h"
#include "directory/file.h"
#include "directory/region.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "other_processes.h"
#include "process/membership.h"
#include "process/past.h"
#include "process/process.h"
#include "reporter.h"
#include "util/text.h"

/* A handle that could not be opened, and its record in the directory now. */
struct open {
    const struct gps_import *import;
    unsigned flags;
    int code;
    bool recorded;
    bool late; /* the record was published after the driver's open */
    enum gps_past past;
    struct gps_owner exporter; /* unless its past is unknown */
    struct gps_region_record record;
    struct gps_import elsewhere; /* open in another context */
    struct gps_text detail;
};

/* --- reasons --- */

struct own {
    struct gps_id id;
    bool found;
};

static void own_export_compare(void *arg, struct gps_export *region) {
    struct own *own = arg;
    own->found |= gps_id_equal(&region->record.id, &own->id);
}

/* By the books of this process, also where it does not reach the directory any more. */
static bool import_is_own(const struct gps_import *import) {
    struct own own = {.id = import->region};
    gps_registry_each_export(0, own_export_compare, &own);
    return own.found;
}

/* The driver compares pids alone: it took the handle for this process's own. */
static enum gps_known open_taken_for_own(struct open *open) {
    if (!open->recorded && !gps_other_processes_look().has_our_pid) {
        gps_text_str(&open->detail,
                     "the driver takes it for this process's own: it is, or its exporter has "
                     "the same pid in another pid namespace");
        return GPS_KNOWN_NOTHING;
    }
    gps_text_add(&open->detail,
                 "the driver tells processes apart by their pid alone, and the exporter is process "
                 "%u of its pid namespace as this one is of its own: start the programs of both "
                 "containers by gpushare run with --cap-add CHECKPOINT_RESTORE, or in one pid "
                 "namespace (--pid)",
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

/* Whether an audited exporter has begun its free: it publishes the place of the free first. */
static bool is_being_freed(const struct gps_region_record *record) {
    struct gps_region_traces traces;
    return gps_region_read_traces(gps_membership_store(), record, &traces) == 0 &&
           traces.count[GPS_HISTORY_FREED] > 0;
}

/* The exporter lives and its memory is ready. The report says how the two processes differ. A token
 * knows no pid. */
static enum gps_known differing(struct open *open) {
    if (is_refused_handle(open->code) && is_being_freed(&open->record)) {
        gps_text_str(&open->detail, "its exporter is about to free it, or just has");
        return GPS_KNOWN_STALE;
    }
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

enum { RECORDS = 1024, FEW = 128, TELLING = 32, CUT = 16 };

/* Whether its beginning is one handle's, and its end another one's. */
static bool is_mixed(const struct gps_likeness *like) {
    return like->first >= TELLING && like->first < GPS_HANDLE_BYTES &&
           like->first + like->last >= GPS_HANDLE_BYTES &&
           !gps_handle_is_zero_from(like->handle, like->first);
}

/* A handle that was cut, or put together from two. The report gives only the equal bytes. */
static void say_likeness(struct gps_text *text, const struct gps_likeness *like) {
    gps_text_add(text, "the first %u bytes are those of a handle of %s (pid %u)", like->first,
                 like->begins.command, like->begins.pid);
    if (is_mixed(like))
        gps_text_add(text, ", the last %u those of another one of %s (pid %u)",
                     GPS_HANDLE_BYTES - like->first, like->ends.command, like->ends.pid);
    else if (gps_handle_is_zero_from(like->handle, like->first))
        gps_text_str(text, ", and all others are 0");
}

static void add_likeness(struct open *open) {
    const struct gps_likeness like =
        gps_likeness_of(gps_membership_store(), open->import->handle, RECORDS);
    const bool cut = gps_handle_is_zero_from(like.handle, like.first);
    if (like.first < (cut ? CUT : TELLING) || like.first == GPS_HANDLE_BYTES)
        return;
    gps_text_str(&open->detail, "; ");
    say_likeness(&open->detail, &like);
}

static enum gps_known open_unknown(struct open *open) {
    const struct gps_store *store = gps_membership_store();
    if (!is_refused_handle(open->code) && open->code != GPS_NOT_PERMITTED)
        return GPS_KNOWN_LIVE;
    if (!store)
        return GPS_KNOWN_NOTHING;
    if (find_in_siblings(open))
        return GPS_KNOWN_NAMESPACE;
    gps_text_add(&open->detail, "the driver's code is %lu", (uint64_t)open->code);
    add_likeness(open);
    if (!gps_other_processes_look().may_export)
        gps_text_add(&open->detail,
                     "; no other process is seen in %s: an exporter that runs under gpushare has "
                     "another /dev/shm, user, GPUSHARE_DIR or GPUSHARE_NAMESPACE, or has ended",
                     store->path);
    return GPS_KNOWN_NOTHING;
}

/* --- judging --- */

enum { HELD = 8 /* imports of one exporter that are looked at */ };

/* Finds an open import that the exporter freed: its new memory there cannot be opened then. */
static bool find_freed(const struct gps_owner *exporter, struct gps_import *held) {
    struct gps_import imports[HELD];
    struct gps_region_record record;
    const unsigned count = gps_registry_imports_of(exporter, imports, HELD);
    for (unsigned i = 0; i < count; i++)
        if (gps_region_read(gps_membership_store(), &imports[i].region, &record, NULL) == 0 &&
            gps_record_over(&record)) {
            *held = imports[i];
            return true;
        }
    return false;
}

/* The code may also mean that another thread opens or closes the same memory. */
static enum gps_known place_held(struct open *open) {
    if (open->recorded && find_freed(&open->record.owner, &open->elsewhere))
        gps_text_add(&open->detail,
                     "memory that the exporter has freed since is open here, at 0x%lx, and may be "
                     "what holds the place",
                     open->elsewhere.pointer);
    else
        gps_text_str(&open->detail,
                     "nothing that the exporter has freed is open here: another thread may have "
                     "opened or closed the same memory at that moment, and then the next try "
                     "succeeds");
    return GPS_KNOWN_PLACE_HELD;
}

static enum gps_known open_known(struct open *open) {
    const struct gps_import *import = open->import;
    const enum gps_known by_code = gps_known_of_code(open->code);
    if (by_code != GPS_KNOWN_LIVE || !import->context)
        return by_code;
    if (open->code == GPS_ALREADY_MAPPED)
        return place_held(open);
    if (open->code == GPS_INVALID_VALUE && open->flags != gps_ops->open_flags())
        return GPS_KNOWN_FLAGS;
    if (open->code == GPS_INVALID_CONTEXT && (open->past == GPS_PAST_OWN || import_is_own(import)))
        return GPS_KNOWN_OWN;
    if (open->past == GPS_PAST_FREED || (open->recorded && gps_record_over(&open->record)))
        return GPS_KNOWN_STALE;
    if (open->code == GPS_INVALID_HANDLE &&
        gps_registry_opened_anywhere(&import->region, &open->elsewhere) &&
        open->elsewhere.context != import->context) {
        gps_text_add(&open->detail, "it is open at 0x%lx in context 0x%lx", open->elsewhere.pointer,
                     open->elsewhere.context);
        return GPS_KNOWN_OPEN_THERE;
    }
    if (open->past == GPS_PAST_ENDED)
        return GPS_KNOWN_DEAD_OWNER;
    if (open->code == GPS_INVALID_CONTEXT)
        return open_taken_for_own(open);
    if (is_unreachable(open))
        return GPS_KNOWN_UNREACHABLE;
    return open->recorded && !open->late ? differing(open) : open_unknown(open);
}

static void open_report(struct open *open) {
    struct gps_import import = *open->import;
    import.device = open->recorded ? gps_peers_ordinal(open->record.device) : -1;
    if (!open->recorded && open->past != GPS_PAST_UNKNOWN)
        import.exporter.owner = open->exporter;
    const enum gps_known known = open_known(open);
    struct gps_report report = gps_report_on(GPS_ASK_OPENED, known);
    if (report.finding == GPS_NO_FINDING)
        return;
    if (known == GPS_KNOWN_FLAGS)
        gps_text_add(&open->detail, "the flags are %u", open->flags);
    if (known == GPS_KNOWN_OWN)
        import.exporter.owner.pid = 0; /* no other process is involved */
    gps_report_about_import(&report, &import);
    gps_report_prior(&report, "opened", open->elsewhere.trace);
    report.detail = open->detail.length ? open->detail.bytes : NULL;
    if (report.finding == GPS_IPC_CALL_FAILED && import.vmm)
        report.detail = "neither its exporter nor the keeper gave the memory";
    else if (report.finding == GPS_IPC_CALL_FAILED)
        gps_report_code(&report, &open->detail, open->code);
    gps_report_send_with(&report, open->recorded ? &open->record : NULL);
}

/* Reads the record again unless its region was over: the exporter may have freed it during the
 * driver's open. 0, or -errno; -ENOENT: there is none. */
static int take_record(struct open *open, const struct gps_region_record *before) {
    const struct gps_store *store = gps_membership_store();
    if (before)
        open->record = *before;
    if (before && gps_record_over(before))
        return 0;
    const int status =
        store ? gps_region_read(store, &open->import->region, &open->record, NULL) : -ENODEV;
    open->late = status == 0 && !before;
    return status;
}

void gps_diagnose_open(const struct gps_import *import, const struct gps_region_record *record,
                       unsigned flags, int code) {
    char detail[384];
    struct open open = {.import = import, .flags = flags, .code = code, .detail = GPS_TEXT(detail)};
    GPS_DRIVER_SCOPE();
    const int status = take_record(&open, record);
    open.recorded = status == 0;
    if (status == 0 || status == -ENOENT)
        open.past =
            gps_past_of(import->handle, open.recorded ? &open.record : NULL, &open.exporter);
    open_report(&open);
}

/* A driver does not look at all bytes (H200, driver 580). */
void gps_diagnose_opened(const struct gps_import *import) {
    GPS_NEW_TEXT(text, 384);
    GPS_SCOPE();
    if (!gps_process_audits() || !gps_membership_store())
        return;
    const struct gps_likeness like = gps_likeness_of(gps_membership_store(), import->handle, FEW);
    if (!is_mixed(&like))
        return;
    struct gps_report report = gps_report_on(GPS_ASK_OPENED, GPS_KNOWN_NOTHING);
    gps_text_str(&text, "the driver opened it all the same; ");
    say_likeness(&text, &like);
    gps_report_about_import(&report, import);
    report.detail = text.bytes;
    gps_report_send(&report);
}

void gps_diagnose_opened_at_base(uint64_t base, uint64_t offset) {
    GPS_NEW_TEXT(text, 160);
    struct gps_import import;
    GPS_SCOPE();
    if (!gps_registry_import_at(base, &import))
        return;
    struct gps_report report = gps_report_on(GPS_ASK_NOTED_OPEN, GPS_KNOWN_INTERIOR);
    gps_text_add(&text,
                 "the handle was taken %lu bytes inside the allocation, the open gives its base: "
                 "add %lu",
                 offset, offset);
    gps_report_about_import(&report, &import);
    report.detail = text.bytes;
    gps_report_send(&report);
}
