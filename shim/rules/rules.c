#include "rules.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "findings/reporter.h"
#include "ipc/reclaim.h"
#include "merge/allocation.h"
#include "merge/created.h"
#include "merge/merger.h"
#include "merge/not_merging.h"
#include "process/caller.h"
#include "process/membership.h"
#include "process/process.h"
#include "registry/registry.h"
#include "rule_counts.h"
#include "rule_request.h"
#include "stack/trace.h"
#include "util/forgotten.h"
#include "util/text.h"
#include "wanted_size.h"

bool gps_rules_active;
GPS_FORGOTTEN(gps_rules_active);

static struct {
    struct active {
        const struct gps_rule *rule;
        _Atomic uint64_t matches; /* so far: the next one's number */
        _Atomic bool taken;       /* it has taken an allocation */
        struct gps_wanted_size asked;
    } * rules;
    size_t count;
} state;
GPS_FORGOTTEN(state);

void gps_rules_start(const struct gps_config *config, const struct gps_program *program) {
    if (config->options.mode != GPS_MODE_SHARE)
        return;
    gps_rule_counts_start();
    if (config->rule_count)
        state.rules = calloc(config->rule_count, sizeof(*state.rules));
    for (size_t i = 0; state.rules && i < config->rule_count; i++)
        if (gps_rule_is_for(&config->rules[i], program->name, program->executable))
            state.rules[state.count++].rule = &config->rules[i];
    gps_rules_active = state.count != 0 || gps_rule_counts_active || gps_blocks_active;
}

void gps_rules_end(void) {
    gps_rule_counts_end(gps_not_merging_get());
    char message[384];
    struct gps_text text = GPS_TEXT(message);
    const char *before = "no allocation matched ";
    for (size_t i = 0; i < state.count; i++) {
        const struct gps_rule *rule = state.rules[i].rule;
        if (state.rules[i].taken)
            continue;
        gps_text_strs(&text, before, "[region ", rule->name, "]");
        gps_text_add(&text, " (line %u)", rule->line);
        before = ", ";
    }
    if (text.length)
        gps_log_notice(GPS_LEVEL_INFO, message);
}

/* The driver's pitch is the width, rounded up by 64 KiB at most. */
bool gps_rules_may_fit(uint64_t width, uint64_t height) {
    const uint64_t least = width * height, most = (width + (64u << 10)) * height;
    for (size_t i = 0; i < state.count; i++)
        if (state.rules[i].rule->size_max >= least && state.rules[i].rule->size_min <= most)
            return true;
    return gps_rule_counts_active || (gps_blocks_active && most >= GPS_MERGE_SMALL);
}

/* --- matching --- */

static bool active_fits(struct active *active, const struct gps_alloc_facts *facts) {
    const enum gps_mismatch mismatch = gps_rule_mismatch(active->rule, facts);
    if (mismatch == GPS_OTHER_SIZE && !active->taken && gps_rule_exports(active->rule))
        gps_wanted_size_note(&active->asked, active->rule, facts->size);
    return mismatch == GPS_FITS;
}

static void note_passed(struct gps_rule_request *request, const struct gps_rule *rule,
                        uint64_t number) {
    if (request->passed_count < GPS_EXPLAINED_PASSED)
        request->passed[request->passed_count++] =
            (struct gps_explained_pass){.rule = rule->line, .first = number, .last = number};
}

/* Finds the first rule that fits and takes this index. Each rule before it that fits has counted
 * the allocation as one of its own. */
static const struct gps_rule *match(const struct gps_alloc_facts *facts,
                                    struct gps_rule_request *request, uint64_t *number) {
    char caller[GPS_GLOB_BYTES] = "";
    for (size_t i = 0; i < state.count; i++) {
        const struct gps_rule *rule = state.rules[i].rule;
        if (!active_fits(&state.rules[i], facts) || !gps_caller_fits(rule, caller))
            continue;
        *number = atomic_fetch_add(&state.rules[i].matches, 1);
        if (gps_rule_takes(rule, *number)) {
            state.rules[i].taken = true;
            gps_wanted_size_end(&state.rules[i].asked);
            return rule;
        }
        note_passed(request, rule, *number);
    }
    return NULL;
}

static const struct gps_rule *match_on_device(uint64_t size, struct gps_rule_request *request,
                                              bool created, uint64_t *number) {
    if (gps_ops->uuid(request->device, request->uuid) != GPS_OK)
        return NULL;
    const struct gps_alloc_facts facts = {.program = gps_process_program()->name,
                                          .executable = gps_process_program()->executable,
                                          .size = size,
                                          .device_ordinal = (unsigned)request->device,
                                          .device_uuid = request->uuid,
                                          .pool = request->pool,
                                          .created = created};
    return match(&facts, request, number);
}

static const struct gps_rule *match_here(uint64_t size, struct gps_rule_request *request,
                                         uint64_t *number) {
    return gps_ops->context(&request->context) == GPS_OK && request->context &&
                   gps_ops->device(&request->device) == GPS_OK
               ? match_on_device(size, request, false, number)
               : NULL;
}

/* Whether the process may not merge, which it reports once. Merged memory has no IPC handle, so
 * rules take none where nothing can be merged. */
static bool merge_is_forbidden(const struct gps_rule_request *request) {
    struct gps_text text = GPS_TEXT(request->why->text);
    const bool paused = gps_pause_name();
    const bool by_mps = gps_mps_forbids(request->rule, request->device);
    const int store = paused || by_mps ? 0 : gps_membership_join();
    const enum gps_not_merging why = paused   ? gps_pause_why()
                                     : by_mps ? GPS_NOT_MERGING_MPS
                                              : GPS_NOT_MERGING_KEY;
    if (!paused && !by_mps && store >= 0)
        return false;
    if (store < 0)
        gps_report_store(store, "the directory cannot be used");
    gps_text_str(&text, gps_not_merging_why(why));
    gps_not_merging_set(why);
    return true;
}

/* Makes an area, and enters it as an allocation. */
static bool rule_make_area(const struct gps_rule_request *request, uint64_t number,
                           uint64_t *pointer, const char **why) {
    struct gps_alloc alloc = {.size = request->size,
                              .context = request->context,
                              .era = gps_registry_era(),
                              .device = (int16_t)request->device,
                              .trace = gps_trace_kept(),
                              .kind = GPS_ALLOC_MERGED};
    const struct gps_merge_request wanted = {request->rule,    number,          request->size,
                                             request->context, request->device, request->uuid};
    struct gps_alloc found;
    if (GPS_WITH_RECLAIM(gps_merge_allocate(&wanted, &alloc.pointer, why)) != GPS_OK)
        return false;
    gps_registry_add(&alloc);
    if (!gps_registry_find(alloc.pointer, &found)) {
        gps_merge_free(alloc.pointer);
        return false;
    }
    *pointer = alloc.pointer;
    return true;
}

/* An allocation too small, or without memory for it, becomes ordinary memory without a report. */
static enum gps_outcome merge(const struct gps_rule_request *request, uint64_t number,
                              uint64_t *pointer) {
    const char *why = NULL;
    if (!gps_merge_active) {
        gps_not_merging_set(GPS_NOT_MERGING_MEMBARRIER);
        why = gps_not_merging_why(GPS_NOT_MERGING_MEMBARRIER);
    }
    if (merge_is_forbidden(request))
        return GPS_PRIVATE;
    if (why || !rule_make_area(request, number, pointer, &why))
        return why ? gps_rule_request_private(request, why, NULL) : GPS_PRIVATE;
    gps_merger_start();
    return GPS_DONE;
}

/* Memory that no rule took lies in blocks, for a suspension to evict. False: the driver's. */
static bool allocate_in_blocks(struct gps_rule_request *request, uint64_t *pointer) {
    const char *why;
    request->rule = &gps_plain_rule;
    return gps_blocks_active && !request->pool && request->size >= GPS_MERGE_SMALL &&
           request->context && rule_make_area(request, 0, pointer, &why);
}

static enum gps_outcome rule_follow(struct gps_rule_request *request, uint64_t number,
                                    uint64_t *pointer, int *code) {
    *code = GPS_OK;
    if (request->rule->role == GPS_ROLE_MERGE)
        return merge(request, number, pointer);
    if (!gps_rule_name(request->rule, number, (unsigned)request->device, request->name))
        return gps_rule_request_private(request, "its name would be longer than 127 characters",
                                        NULL);
    const int status = gps_membership_join();
    if (status < 0)
        gps_report_store(status, "the directory cannot be used");
    if (status < 0)
        return gps_rule_request_private(request, "the published directory cannot be used", NULL);
    if (request->rule->role == GPS_ROLE_EXPORT)
        return gps_rule_export(request, pointer);
    return gps_rule_import(request, request->rule->role == GPS_ROLE_AUTO, pointer, code);
}

bool gps_rules_allocate(uint64_t size, bool pool, uint64_t *pointer, int *code) {
    struct gps_rule_why why = {.names_key = false};
    struct gps_rule_request request = {.size = size, .pool = pool, .why = &why};
    uint64_t number;
    if (!size)
        return false;
    GPS_DRIVER_SCOPE();
    request.rule = match_here(size, &request, &number);
    const bool done = request.rule && rule_follow(&request, number, pointer, code) == GPS_DONE;
    if (gps_rule_counts_active)
        gps_rule_counts_add(&request, done && *code == GPS_OK ? *pointer : 0,
                            done && *code != GPS_OK);
    if (done || !allocate_in_blocks(&request, pointer))
        return done;
    *code = GPS_OK;
    return true;
}

/* Adds why a rule that fits does not take the allocation. */
static void say_why_not(struct gps_rule_why *why, bool merges) {
    struct gps_text text = GPS_TEXT(why->text);
    if (merges)
        gps_text_add(&text, "it is memory of %s of more than 1 GiB",
                     gps_operations->names->make_block);
    else
        gps_text_add(&text, "with vmm_ipc = on or suspend = on memory of %s is left alone",
                     gps_operations->names->make_block);
}

bool gps_rules_take_created(uint64_t size, int device, bool merges,
                            struct gps_merge_request *wanted, uint8_t uuid[GPS_UUID_BYTES]) {
    struct gps_rule_why why = {.names_key = false};
    struct gps_rule_request request = {.size = size, .device = device, .why = &why};
    uint64_t number = 0;
    request.rule = match_on_device(size, &request, true, &number);
    const bool forbidden = merges && request.rule && merge_is_forbidden(&request);
    const bool taken = merges && request.rule && size <= GPS_CREATED_MOST && !forbidden;
    if (request.rule && !taken && !forbidden)
        say_why_not(&why, merges);
    memcpy(uuid, request.uuid, GPS_UUID_BYTES);
    *wanted = (struct gps_merge_request){request.rule, number, size, 0, device, uuid};
    if (gps_rule_counts_active)
        gps_rule_counts_add_created(&request, taken);
    if (taken)
        gps_merger_start();
    return taken;
}
