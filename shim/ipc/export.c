/* export.c - see export.h. */
#include "export.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "audit/policy.h"
#include "audit/region_history.h"
#include "audit/reporter.h"
#include "defer.h"
#include "directory/name.h"
#include "directory/region.h"
#include "lifecycle/lifecycle.h"
#include "process/ops.h"
#include "process/references.h"
#include "registry/freed_history.h"
#include "stack/trace.h"
#include "util/clock.h"
#include "util/text.h"
#include "vmm/mapping.h"
#include "vmm/vmm_region.h"
#include "waiting.h"

enum { TOMBSTONES = 1024, SHOWN_USERS = 16, BLOCK = 2 << 20 /* the driver's */ };

static struct {
    pthread_mutex_t lock;
    struct gps_id tombstones[TOMBSTONES]; /* a ring: the oldest is replaced */
    unsigned tombstone_count, next_tombstone;
    _Atomic uint64_t generation;
    pthread_mutex_t first;
    _Atomic bool unusable; /* the directory: reported once, then nothing more is published */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .first = PTHREAD_MUTEX_INITIALIZER};

/* --- publishing --- */

static struct gps_export *make(const struct gps_alloc *alloc,
                               const uint8_t handle[GPS_HANDLE_BYTES]) {
    struct gps_export *region = calloc(1, sizeof(*region));
    if (!region)
        return NULL;
    region->pointer = alloc->pointer;
    region->context = alloc->context;
    region->allocated = alloc->trace;
    region->exported = gps_trace_kept();
    struct gps_region_record *record = &region->record;
    record->id = gps_id_of_handle(handle);
    record->generation = atomic_fetch_add(&state.generation, 1) + 1;
    record->backing = GPS_BACKING_IPC;
    record->requested = record->extent = alloc->size;
    record->created = record->status.changed = gps_clock_now();
    record->status.state = GPS_STATE_READY;
    memcpy(record->handle, handle, GPS_HANDLE_BYTES);
    record->owner = *gps_life_self();
    uint64_t context;
    if (gps_ops->home(alloc->pointer, &context, &region->device) == GPS_OK)
        gps_ops->uuid(region->device, record->device);
    return region;
}

static bool publish(struct gps_export *region) {
    if (!gps_life_lease())
        atomic_store(&state.unusable, true);
    if (atomic_load(&state.unusable))
        return false;
    gps_record_seal(&region->record);
    gps_record_seal_status(&region->record, &region->record.status);
    const int status = gps_region_publish(gps_life_store(), &region->record);
    if (status == -ENOSPC)
        atomic_store(&state.unusable, true);
    if (status < 0)
        gps_report_store(status, "a region could not be published");
    region->published = status == 0;
    gps_region_history_publish(region, GPS_NO_TRACE);
    return region->published;
}

/* An address inside an allocation, or memory that came by a way we do not hook: the driver knows.
 */
static bool find_base(uint64_t pointer, struct gps_alloc *alloc) {
    if (gps_registry_find(pointer, alloc))
        return true;
    uint64_t base, size;
    if (gps_ops->range(pointer, &base, &size) != GPS_OK)
        return false;
    if (gps_registry_find(base, alloc))
        return true;
    *alloc = (struct gps_alloc){
        .pointer = base, .size = size, .epoch = gps_registry_now(), .trace = GPS_NO_TRACE};
    int device;
    if (gps_ops->home(base, &alloc->context, &device) != GPS_OK)
        return false;
    alloc->device = (int16_t)device;
    gps_registry_add(alloc);
    return true;
}

/* First exports one at a time: of two threads that export one pointer, the second finds it done. */
static void publish_first(const struct gps_alloc *seen, struct gps_export *region) {
    struct gps_alloc now;
    pthread_mutex_lock(&state.first);
    const bool attached = region && gps_registry_find(seen->pointer, &now) &&
                          now.kind == GPS_ALLOC_PLAIN && publish(region) &&
                          gps_registry_attach(seen->pointer, region);
    if (!attached && region && region->published) /* freed meanwhile */
        gps_region_remove(gps_life_store(), &region->record.id);
    pthread_mutex_unlock(&state.first);
    if (!attached)
        free(region);
}

/* --- what is worth a word about an export --- */

static void note(const struct gps_alloc *alloc, uint64_t pointer, enum gps_known known,
                 const char *detail) {
    struct gps_report report = gps_report_on(GPS_ASK_NOTED_EXPORT, known);
    report.pointer = pointer;
    report.size = alloc->size;
    report.context = alloc->context;
    report.device = alloc->device;
    report.detail = detail;
    gps_report_prior(&report, "allocated", alloc->trace);
    gps_report_send(&report);
}

static void note_interior(const struct gps_alloc *alloc, uint64_t pointer) {
    char detail[128];
    struct gps_text text = GPS_TEXT(detail);
    gps_text_str(&text, "the pointer lies ");
    gps_text_dec(&text, pointer - alloc->pointer);
    gps_text_str(&text, " bytes behind the beginning of the allocation, ");
    gps_text_hex(&text, alloc->pointer);
    note(alloc, pointer, GPS_KNOWN_INTERIOR, detail);
}

static void note_neighbours(const struct gps_alloc *alloc) {
    char detail[160];
    struct gps_text text = GPS_TEXT(detail);
    struct gps_alloc other;
    const unsigned count =
        alloc->size % BLOCK && gps_life_config()->options.log_level == GPS_LEVEL_INFO
            ? gps_registry_neighbours(alloc->pointer, &other)
            : 0;
    if (!count)
        return;
    gps_text_dec(&text, count);
    gps_text_str(&text, count == 1 ? " other allocation lies in it: " : " others lie in it; one: ");
    gps_text_size(&text, other.size);
    gps_text_str(&text, " at ");
    gps_text_hex(&text, other.pointer);
    note(alloc, alloc->pointer, GPS_KNOWN_BLOCK, detail);
}

void gps_export_first(uint64_t pointer, const uint8_t handle[GPS_HANDLE_BYTES]) {
    struct gps_alloc alloc;
    struct gps_scope scope;
    if (gps_registry_find(pointer, &alloc) && alloc.kind != GPS_ALLOC_PLAIN)
        return; /* the common case: every export of it but the first */
    gps_scope_enter(&scope, 0);
    const bool found = find_base(pointer, &alloc);
    if (found && alloc.kind == GPS_ALLOC_PLAIN) {
        note_neighbours(&alloc);
        if (!atomic_load(&state.unusable))
            publish_first(&alloc, make(&alloc, handle));
    }
    if (found && alloc.pointer != pointer)
        note_interior(&alloc, pointer);
    gps_scope_end(&scope);
}

bool gps_export_by_rule(const struct gps_alloc *alloc, uint64_t allocated,
                        const uint8_t handle[GPS_HANDLE_BYTES], const struct gps_rule *rule,
                        const char *name) {
    struct gps_export *region = make(alloc, handle);
    if (!region)
        return false;
    region->rule = rule;
    region->record.extent = allocated;
    if (rule->ready == GPS_READY_FREE)
        region->record.status.state = GPS_STATE_WRITING;
    memcpy(region->record.name, name, strlen(name) + 1);
    if (!publish(region) || gps_name_point(gps_life_store(), name, &region->record.id) < 0) {
        if (region->published)
            gps_region_remove(gps_life_store(), &region->record.id);
        free(region);
        return false;
    }
    struct gps_alloc exported = *alloc;
    exported.kind = GPS_ALLOC_EXPORTED;
    exported.region = region;
    gps_registry_add(&exported);
    return true;
}

static void describe_kept(struct gps_export *region, uint64_t extent, const struct gps_rule *rule,
                          const char *name) {
    struct gps_region_record *record = &region->record;
    region->rule = rule;
    region->kept = true;
    region->device = -1;
    if (gps_ops->device(&region->device) == GPS_OK)
        gps_ops->uuid(region->device, record->device);
    record->backing = GPS_BACKING_VMM;
    record->extent = extent;
    record->creator = *gps_life_self();
    record->keep = (uint32_t)rule->keep;
    record->keep_for = rule->keep_for;
    record->flags = (gps_rule_read_only(rule) ? GPS_REGION_READ_ONLY : 0u) |
                    (gps_rule_written(rule) ? GPS_REGION_UPLOAD : 0u);
    if (gps_rule_written(rule))
        record->status.state = GPS_STATE_WRITING;
    memcpy(record->name, name, strlen(name) + 1);
}

const char *gps_export_to_keeper(const struct gps_alloc *alloc, uint64_t extent,
                                 const struct gps_rule *rule, const char *name) {
    uint8_t token[GPS_HANDLE_BYTES];
    gps_vmm_region_make_token(token);
    struct gps_export *region = make(alloc, token);
    if (!region)
        return "there is no memory for its record";
    describe_kept(region, extent, rule, name);
    const int status = gps_vmm_region_publish(region);
    if (status < 0) {
        free(region);
        return status == -ENOTSUP  ? "the driver gives no descriptor of it"
               : status == -ENOSPC ? "the published directory is full"
                                   : "the keeper could not be started, or does not answer";
    }
    struct gps_alloc exported = *alloc;
    exported.kind = GPS_ALLOC_EXPORTED;
    exported.region = region;
    gps_registry_add(&exported);
    return NULL;
}

/* --- state and end --- */

void gps_export_set_state(struct gps_export *region, enum gps_state to, uint64_t until) {
    if (region->published)
        gps_region_set_status(gps_life_store(), &region->record, to, until);
    else
        region->record.status.state = (uint32_t)to;
}

void gps_export_unname(struct gps_export *region) {
    if (*region->record.name && region->published)
        gps_name_release(gps_life_store(), region->record.name, gps_life_self(),
                         &region->record.id);
}

static void rename_back(struct gps_export *region) {
    if (*region->record.name && region->published &&
        gps_name_claim(gps_life_store(), region->record.name, gps_life_self(), NULL) == 0)
        gps_name_point(gps_life_store(), region->record.name, &region->record.id);
}

void gps_export_end(struct gps_export *region) {
    if (region->kept) {
        gps_vmm_region_end(region);
        free(region);
        return;
    }
    gps_export_unname(region);
    gps_export_set_state(region, GPS_STATE_FREED, 0);
    pthread_mutex_lock(&state.lock);
    const struct gps_id oldest = state.tombstones[state.next_tombstone];
    const bool replaces = state.tombstone_count == TOMBSTONES;
    state.tombstones[state.next_tombstone] = region->record.id;
    state.next_tombstone = (state.next_tombstone + 1) % TOMBSTONES;
    state.tombstone_count += !replaces;
    pthread_mutex_unlock(&state.lock);
    if (replaces)
        gps_region_remove(gps_life_store(), &oldest);
    free(region);
}

void gps_export_leave(struct gps_export *region, bool keep_record) {
    gps_export_unname(region);
    if (!keep_record && region->published)
        gps_region_remove(gps_life_store(), &region->record.id);
    /* not freed: the process ends, perhaps in a signal handler that interrupted malloc */
}

void gps_export_remove_tombstones(void) {
    for (unsigned i = 0; i < state.tombstone_count; i++)
        gps_region_remove(gps_life_store(), &state.tombstones[i]);
    state.tombstone_count = state.next_tombstone = 0;
}

unsigned gps_export_users(const struct gps_export *region, struct gps_party *users, unsigned max) {
    return region->published ? gps_references_users(&region->record.id, users, max) : 0;
}

/* --- freeing --- */

static struct gps_answer ask(enum gps_known known, bool waited) {
    const struct gps_options *options = &gps_life_config()->options;
    return gps_policy(&(struct gps_question){.ask = GPS_ASK_FREE,
                                             .known = known,
                                             .mode = options->mode,
                                             .on_free = options->on_free,
                                             .waited = waited,
                                             .exiting = gps_life_exiting()});
}

static void report_held(const struct gps_export *region, enum gps_finding finding,
                        const struct gps_party *users, unsigned count) {
    struct gps_report report = gps_report_new(finding);
    gps_report_about_export(&report, region);
    report.others = users;
    report.other_count = count < SHOWN_USERS ? count : SHOWN_USERS;
    gps_report_send(&report);
}

static void put_back(const struct gps_alloc *alloc, enum gps_state was) {
    gps_export_set_state(alloc->region, was, 0);
    gps_registry_add(alloc);
}

/* Marks the region closing first and looks for importers then: see import.h for the other half. */
static struct gps_answer ask_about(struct gps_export *region, bool waited) {
    struct gps_party users[SHOWN_USERS];
    if (region->rule && region->rule->ready == GPS_READY_FREE && !region->final)
        return ask(GPS_KNOWN_RESULT, waited);
    if (gps_life_config()->options.mode == GPS_MODE_SHARE)
        gps_export_set_state(region, GPS_STATE_CLOSING, 0);
    const unsigned count = gps_export_users(region, users, SHOWN_USERS);
    const struct gps_answer answer = ask(count ? GPS_KNOWN_HELD : GPS_KNOWN_EXPORTED, waited);
    if (answer.finding != GPS_NO_FINDING)
        report_held(region, answer.finding, users, count);
    return answer;
}

/* While this thread waits or synchronises, a second free by another must find the region somewhere.
 */
static struct gps_answer ask_and_wait(struct gps_export *region, const sigset_t *signals) {
    struct gps_answer answer = ask_about(region, false);
    const bool puts_off = answer.verdict != GPS_FORWARD && answer.verdict != GPS_DENY;
    if (puts_off)
        gps_waiting_add(region, true);
    if (answer.verdict == GPS_WAIT) {
        gps_defer_wait(region, gps_life_config()->options.free_timeout, signals);
        answer = ask_about(region, true);
    }
    if (puts_off && answer.verdict == GPS_FORWARD)
        gps_waiting_remove(region);
    return answer;
}

static struct gps_answer prepare(const struct gps_alloc *alloc, enum gps_state was) {
    struct gps_scope scope;
    const uint32_t freed = gps_trace_kept();
    gps_scope_begin(&scope);
    /* until it is allocated again, or put back */
    gps_freed_note_allocation(alloc, freed);
    gps_region_history_publish(alloc->region, freed);
    const struct gps_answer answer = ask_and_wait(alloc->region, &scope.signals);
    if (answer.verdict == GPS_DENY)
        put_back(alloc, was);
    else if (answer.verdict != GPS_HAND_OVER)
        gps_export_unname(alloc->region);
    gps_scope_end(&scope);
    return answer;
}

/* The driver's free is the program's own call: signals and capture mode are as it left them. */
static int free_now(const struct gps_alloc *alloc, enum gps_state was, struct gps_release release) {
    const int code = release.call(alloc->pointer, release.stream);
    struct gps_scope scope;
    gps_scope_begin(&scope);
    if (code == GPS_OK) {
        gps_export_end(alloc->region);
    } else {
        rename_back(alloc->region);
        put_back(alloc, was);
    }
    gps_scope_end(&scope);
    return code;
}

static int put_off(const struct gps_alloc *alloc, enum gps_state was, bool result, bool ordered) {
    struct gps_scope scope;
    int code = gps_scope_enter(&scope, alloc->context);
    if (code == GPS_OK && (result || !ordered)) /* a free on a stream waits for nobody */
        code = gps_export_synchronize();
    if (code != GPS_OK) {
        gps_waiting_remove(alloc->region);
        rename_back(alloc->region);
        put_back(alloc, was);
    } else if (result) {
        gps_defer_result(alloc->region);
    } else {
        gps_defer_add(alloc->region);
    }
    gps_scope_end(&scope);
    return code;
}

/* Nobody else loses anything by this: the memory lives while anyone has it mapped. */
static int free_kept(const struct gps_alloc *alloc) {
    struct gps_scope scope;
    int code = gps_scope_enter(&scope, alloc->context);
    if (code == GPS_OK) {
        gps_freed_note_allocation(alloc, gps_trace_kept());
        code = gps_mapping_close(alloc->pointer);
    }
    if (code == GPS_OK) {
        alloc->region->pointer = 0; /* it can be another's already */
        gps_export_end(alloc->region);
    } else {
        gps_registry_add(alloc);
    }
    gps_scope_end(&scope);
    return code;
}

int gps_export_free(const struct gps_alloc *alloc, struct gps_release release) {
    if (alloc->region->kept)
        return free_kept(alloc);
    const enum gps_state was = (enum gps_state)alloc->region->record.status.state;
    const struct gps_answer answer = prepare(alloc, was);
    switch (answer.verdict) {
    case GPS_DENY:
        return answer.code;
    case GPS_FORWARD:
        return free_now(alloc, was, release);
    default:
        return put_off(alloc, was, answer.verdict == GPS_HAND_OVER, release.ordered);
    }
}

/* By a free, not by synchronising the context: that would end a capture under way in another
 * thread, and a free does not (with the relaxed mode of a scope). Without room for one, the context
 * it is. */
int gps_export_synchronize(void) {
    uint64_t scrap;
    if (gps_ops->allocate(1, &scrap) == GPS_OK)
        return gps_ops->release(scrap);
    const int code = gps_ops->synchronize();
    return code >= GPS_CAPTURE_UNSUPPORTED && code <= GPS_CAPTURE_LAST ? GPS_OK : code;
}

void gps_export_reset(void) {
    memset((void *)&state, 0, sizeof(state));
}
