/* rules.c - see rules.h. */
#include "rules.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "audit/reporter.h"
#include "directory/name.h"
#include "directory/region.h"
#include "ipc/defer.h"
#include "ipc/export.h"
#include "ipc/import.h"
#include "lifecycle/lifecycle.h"
#include "process/ops.h"
#include "process/watch.h"
#include "stack/trace.h"
#include "upload/upload.h"
#include "util/clock.h"
#include "util/text.h"
#include "vmm/mapping.h"
#include "vmm/vmm_region.h"

bool gps_rules_active;

static struct {
    struct active {
        const struct gps_rule *rule;
        _Atomic uint64_t matches; /* so far: the next one's number */
    } * rules;
    size_t count;
} state;

/* One allocation on its way through its rule. */
struct attempt {
    const struct gps_rule *rule;
    uint64_t size;
    bool pool;
    uint64_t context;
    int device;
    uint8_t uuid[GPS_UUID_BYTES];
    char name[GPS_NAME_BYTES];
    const sigset_t *signals;
};

enum outcome { PRIVATE, DONE };

void gps_rules_start(const struct gps_config *config, const struct gps_owner *self) {
    if (config->options.mode != GPS_MODE_SHARE || !config->rule_count)
        return;
    state.rules = calloc(config->rule_count, sizeof(*state.rules));
    for (size_t i = 0; state.rules && i < config->rule_count; i++)
        if (gps_glob_match(config->rules[i].program, self->command))
            state.rules[state.count++].rule = &config->rules[i];
    gps_rules_active = state.count != 0;
}

/* A pitch is the width, rounded up to at most another 64 KiB. */
bool gps_rules_may_fit(uint64_t width, uint64_t height) {
    const uint64_t least = width * height, most = (width + (64u << 10)) * height;
    for (size_t i = 0; i < state.count; i++)
        if (state.rules[i].rule->size_max >= least && state.rules[i].rule->size_min <= most)
            return true;
    return false;
}

void gps_rules_reset(void) {
    state.rules = NULL; /* the parent's array is lost, not freed: malloc's locks */
    state.count = 0;
    gps_rules_active = false;
}

/* --- reports --- */

static void report(const struct attempt *attempt, enum gps_finding finding, const char *detail,
                   const struct gps_owner *other) {
    struct gps_report report = gps_report_new(finding);
    report.size = attempt->size;
    report.name = attempt->name;
    report.device = attempt->device;
    report.detail = detail;
    const struct gps_party party = {.owner = other ? *other : (struct gps_owner){0}};
    report.others = &party;
    report.other_count = other != NULL;
    gps_report_send(&report);
}

static enum outcome stay_private(const struct attempt *attempt, const char *why,
                                 const struct gps_owner *other) {
    report(attempt, GPS_SHARE_FALLBACK, why, other);
    return PRIVATE;
}

/* --- export --- */

static uint64_t round_up(uint64_t size) {
    const uint64_t block =
        2u << 20; /* what the driver maps: a smaller region would show neighbours */
    return (size + block - 1) / block * block;
}

static enum outcome export_vmm(const struct attempt *attempt, uint64_t *pointer) {
    struct gps_alloc alloc = {.size = attempt->size,
                              .context = attempt->context,
                              .epoch = gps_registry_now(),
                              .device = (int16_t)attempt->device,
                              .trace = gps_trace_kept()};
    uint64_t extent;
    int code = gps_mapping_create(attempt->size, &alloc.pointer, &extent);
    if (code == GPS_OUT_OF_MEMORY && gps_defer_relieve())
        code = gps_mapping_create(attempt->size, &alloc.pointer, &extent);
    if (code == GPS_OUT_OF_MEMORY)
        return PRIVATE; /* the program's own call says what is wrong */
    if (code != GPS_OK)
        return stay_private(attempt, "this device or driver has no VMM memory to share", NULL);
    const char *why = gps_export_to_keeper(&alloc, extent, attempt->rule, attempt->name);
    if (why) {
        gps_mapping_close(alloc.pointer);
        return stay_private(attempt, why, NULL);
    }
    if (gps_rule_written(attempt->rule))
        gps_upload_lead(alloc.pointer, attempt->size, attempt->name, attempt->rule);
    *pointer = alloc.pointer;
    return DONE;
}

static enum outcome export_claimed(const struct attempt *attempt, uint64_t *pointer) {
    uint8_t handle[GPS_HANDLE_BYTES];
    struct gps_alloc alloc = {.size = attempt->size,
                              .context = attempt->context,
                              .epoch = gps_registry_now(),
                              .device = (int16_t)attempt->device};
    const uint64_t allocated = round_up(attempt->size);
    int code = gps_ops->allocate(allocated, &alloc.pointer);
    if (code == GPS_OUT_OF_MEMORY && gps_defer_relieve())
        code = gps_ops->allocate(allocated, &alloc.pointer);
    if (code != GPS_OK)
        return PRIVATE; /* the program's own call says what is wrong */
    if (gps_ops->get_handle(alloc.pointer, handle) != GPS_OK ||
        !gps_export_by_rule(&alloc, allocated, handle, attempt->rule, attempt->name)) {
        gps_ops->release(alloc.pointer);
        return stay_private(attempt, "it could not be exported", NULL);
    }
    *pointer = alloc.pointer;
    return DONE;
}

static enum outcome export_region(const struct attempt *attempt, uint64_t *pointer) {
    const enum outcome outcome = attempt->rule->backing == GPS_RULE_VMM
                                     ? export_vmm(attempt, pointer)
                                     : export_claimed(attempt, pointer);
    if (outcome == PRIVATE)
        gps_name_release(gps_life_store(), attempt->name, gps_life_self(), NULL);
    return outcome;
}

static int claim(const struct attempt *attempt, struct gps_owner *holder) {
    return gps_name_claim(gps_life_store(), attempt->name, gps_life_self(), holder);
}

static bool is_self(const struct gps_owner *owner) {
    return gps_owner_equal(owner, gps_life_self());
}

static enum outcome role_export(const struct attempt *attempt, uint64_t *pointer) {
    struct gps_owner holder = {0};
    const int status = claim(attempt, &holder);
    if (status == 0)
        return export_region(attempt, pointer);
    if (status != -EEXIST)
        return stay_private(attempt, "its name could not be claimed", NULL);
    return stay_private(attempt,
                        is_self(&holder) ? "this process has a live region of this name"
                                         : "another live process has a region of this name",
                        is_self(&holder) ? NULL : &holder);
}

/* --- import --- */

enum found { ABSENT, NOT_YET, FITS, MISFITS };

/* With role = auto a program does the same whoever is first, and whoever was may have written. */
static bool expects_writable(const struct attempt *attempt,
                             const struct gps_region_record *record) {
    return record->flags & GPS_REGION_READ_ONLY && attempt->rule->role == GPS_ROLE_AUTO &&
           !gps_rule_read_only(attempt->rule);
}

static enum found fit(const struct attempt *attempt, const struct gps_region_record *record) {
    return attempt->size <= record->requested && !expects_writable(attempt, record) &&
                   memcmp(attempt->uuid, record->device, GPS_UUID_BYTES) == 0
               ? FITS
               : MISFITS;
}

/* Legacy memory dies with its owner. A keeper is replaced: asking for the region starts another. */
static bool is_orphan(const struct gps_region_record *record) {
    return record->backing != GPS_BACKING_VMM &&
           gps_lease_probe(gps_life_store(), &record->owner) == GPS_DEAD;
}

/* What is under the name now. A region of a dead owner is as good as none: its handle is, too. */
static enum found look_up(const struct attempt *attempt, struct gps_region_record *record,
                          struct gps_owner *holder) {
    struct gps_name_target target;
    const char *why = NULL;
    if (gps_name_resolve(gps_life_store(), attempt->name, &target) < 0)
        return ABSENT;
    if (target.kind == GPS_NAME_CLAIM) {
        *holder = target.claimer;
        return gps_lease_probe(gps_life_store(), &target.claimer) == GPS_ALIVE ? NOT_YET : ABSENT;
    }
    const int status = gps_region_read(gps_life_store(), &target.region, record, &why);
    if (status == -EBADMSG)
        gps_report_record(&target.region, why);
    if (status < 0 || is_orphan(record))
        return ABSENT;
    *holder = *gps_record_creator(record);
    if (record->status.state == GPS_STATE_WRITING && attempt->rule->upload == GPS_UPLOAD_ONCE &&
        record->flags & GPS_REGION_UPLOAD)
        return fit(attempt, record); /* what is still to be written it waits for when it copies */
    if (record->status.state != GPS_STATE_READY && record->status.state != GPS_STATE_FINAL)
        return record->status.state == GPS_STATE_WRITING ? NOT_YET : ABSENT;
    return fit(attempt, record);
}

static enum outcome misfit(const struct attempt *attempt, const struct gps_region_record *record) {
    char detail[256];
    struct gps_text text = GPS_TEXT(detail);
    if (attempt->size > record->requested) {
        gps_text_str(&text, "asked for ");
        gps_text_size(&text, attempt->size);
        gps_text_str(&text, ", more than the ");
        gps_text_size(&text, record->requested);
        gps_text_str(&text, " that were exported");
    } else if (expects_writable(attempt, record)) {
        gps_text_str(&text, "the region is shared read-only, and this rule says neither access = "
                            "ro nor upload = once");
    } else {
        char theirs[41];
        gps_format_uuid(record->device, theirs);
        gps_text_str(&text, "the region is on another device, ");
        gps_text_str(&text, theirs);
    }
    gps_text_str(&text, "; the allocation is private");
    report(attempt, GPS_SHARE_MISMATCH, detail, &record->owner);
    return PRIVATE;
}

static enum outcome timed_out(const struct attempt *attempt, int last_code,
                              const struct gps_owner *holder, int *code) {
    char detail[256];
    struct gps_text text = GPS_TEXT(detail);
    const bool fail = attempt->rule->missing == GPS_MISSING_FAIL;
    gps_text_str(&text,
                 holder->pid ? "its region was not ready after " : "nobody exported it within ");
    gps_text_duration(&text, attempt->rule->wait);
    if (last_code) {
        gps_text_str(&text, "; the last attempt to open it failed with code ");
        gps_text_dec(&text, (uint64_t)last_code);
    }
    gps_text_str(&text,
                 fail ? "; the allocation fails (missing = fail)" : "; the allocation is private");
    report(attempt, GPS_SHARE_TIMEOUT, detail, holder->pid ? holder : NULL);
    *code = GPS_OUT_OF_MEMORY;
    return fail ? DONE : PRIVATE;
}

static void record_import(const struct attempt *attempt, uint64_t pointer) {
    gps_registry_add(&(struct gps_alloc){.pointer = pointer,
                                         .size = attempt->size,
                                         .context = attempt->context,
                                         .epoch = gps_registry_now(),
                                         .device = (int16_t)attempt->device,
                                         .kind = GPS_ALLOC_IMPORTED});
}

/* One look at the name. True: *outcome is decided. */
static bool try_import(const struct attempt *attempt, uint64_t *pointer, int *last_code,
                       struct gps_owner *holder, enum outcome *outcome) {
    struct gps_region_record record;
    *holder = (struct gps_owner){0};
    const enum found found = look_up(attempt, &record, holder);
    if (found == MISFITS) {
        *outcome = misfit(attempt, &record);
        return true;
    }
    if (holder->pid && is_self(holder) &&
        (found != FITS || record.backing != GPS_BACKING_VMM || gps_mapping_has(&record.id))) {
        *outcome =
            stay_private(attempt, "this process itself has a live region of this name", NULL);
        return true;
    }
    if (found != FITS)
        return false;
    const int code = gps_import_by_rule(&record, attempt->size, pointer);
    if (code == GPS_OK) {
        record_import(attempt, *pointer);
        if (attempt->rule->upload == GPS_UPLOAD_ONCE && record.backing == GPS_BACKING_VMM)
            gps_upload_follow(*pointer, attempt->size, &record, attempt->rule);
        *outcome = DONE;
        return true;
    }
    *last_code = code > 0 ? code : *last_code;
    return false;
}

/* `take_over`: role = auto. The exporter that we waited for may die before it publishes; then
 * whoever claims its name first is the exporter. */
static enum outcome import_region(const struct attempt *attempt, bool take_over, uint64_t *pointer,
                                  int *code) {
    const uint64_t until = gps_clock_monotonic() + attempt->rule->wait;
    struct gps_owner holder = {0};
    enum outcome outcome = PRIVATE;
    struct gps_watch watch;
    uint64_t now;
    int last_code = 0;
    if (gps_registry_imports_name(attempt->name))
        return stay_private(attempt, "this process has imported this region already", NULL);
    /* Closing a watch can take the kernel milliseconds: most find the region at once, or nobody's.
     */
    if (try_import(attempt, pointer, &last_code, &holder, &outcome))
        return outcome;
    if (take_over && claim(attempt, NULL) == 0)
        return export_region(attempt, pointer);
    gps_watch_open(&watch, gps_life_store(), GPS_WATCH_PROCS | GPS_WATCH_REGIONS | GPS_WATCH_NAMES);
    while (!try_import(attempt, pointer, &last_code, &holder, &outcome)) {
        if (take_over && claim(attempt, NULL) == 0) {
            outcome = export_region(attempt, pointer);
            break;
        }
        now = gps_clock_monotonic();
        if (now >= until) {
            outcome = timed_out(attempt, last_code, &holder, code);
            break;
        }
        gps_watch_wait(&watch, until - now, attempt->signals);
    }
    gps_watch_close(&watch);
    return outcome;
}

/* --- matching --- */

static bool matches_caller(const struct gps_rule *rule, char *caller, size_t size) {
    if (!gps_rule_needs_caller(rule))
        return true;
    if (!*caller)
        gps_report_caller(caller, size);
    return gps_glob_match(rule->caller, caller);
}

/* The first rule that fits and takes this index. Every fitting rule passed on the way has
 * counted the allocation as one of its own. */
static const struct gps_rule *match(const struct gps_alloc_facts *facts, uint64_t *number) {
    char caller[GPS_GLOB_BYTES] = "";
    for (size_t i = 0; i < state.count; i++) {
        const struct gps_rule *rule = state.rules[i].rule;
        if (!gps_rule_fits(rule, facts) || !matches_caller(rule, caller, sizeof(caller)))
            continue;
        *number = atomic_fetch_add(&state.rules[i].matches, 1);
        if (gps_rule_takes(rule, *number))
            return rule;
    }
    return NULL;
}

static const struct gps_rule *match_here(uint64_t size, struct attempt *attempt, uint64_t *number) {
    if (gps_ops->context(&attempt->context) != GPS_OK || !attempt->context ||
        gps_ops->device(&attempt->device) != GPS_OK ||
        gps_ops->uuid(attempt->device, attempt->uuid) != GPS_OK)
        return NULL;
    const struct gps_alloc_facts facts = {.program = gps_life_self()->command,
                                          .size = size,
                                          .device_ordinal = (unsigned)attempt->device,
                                          .device_uuid = attempt->uuid,
                                          .pool = attempt->pool};
    return match(&facts, number);
}

static enum outcome follow(struct attempt *attempt, uint64_t number, uint64_t *pointer, int *code) {
    *code = GPS_OK;
    if (!gps_rule_name(attempt->rule, number, (unsigned)attempt->device, attempt->name))
        return stay_private(attempt, "its name would be longer than 127 characters", NULL);
    if (!gps_life_lease())
        return stay_private(attempt, "the published directory cannot be used", NULL);
    if (attempt->rule->role == GPS_ROLE_EXPORT)
        return role_export(attempt, pointer);
    return import_region(attempt, attempt->rule->role == GPS_ROLE_AUTO, pointer, code);
}

bool gps_rules_allocate(uint64_t size, bool pool, uint64_t *pointer, int *code) {
    struct gps_scope scope;
    struct attempt attempt = {.size = size, .pool = pool};
    uint64_t number;
    if (!size)
        return false;
    gps_scope_enter(&scope, 0);
    attempt.signals = &scope.signals;
    attempt.rule = match_here(size, &attempt, &number);
    const bool done = attempt.rule && follow(&attempt, number, pointer, code) == DONE;
    gps_scope_end(&scope);
    return done;
}
