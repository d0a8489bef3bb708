#include "canary.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "process/caller.h"
#include "process/process.h"
#include "util/forgotten.h"

bool gps_canary_active;
GPS_FORGOTTEN(gps_canary_active);

static struct {
    struct gps_config config;
    _Atomic uint64_t *matches; /* of each rule, so far */
} state;
GPS_FORGOTTEN(state);

void gps_canary_start(void) {
    const char *path = secure_getenv("GPUSHARE_LEARN_RULES");
    if (!path || gps_config_read_file(&state.config, path, NULL, NULL) != 0)
        return;
    state.matches = calloc(state.config.rule_count + 1, sizeof(*state.matches));
    gps_canary_active = state.matches;
}

/* --- matching, as rules/rules.c does it --- */

const struct gps_rule *gps_canary_rule(uint64_t size, enum gps_profile_kind kind) {
    char caller[GPS_GLOB_BYTES] = "";
    uint8_t uuid[GPS_UUID_BYTES];
    int device;
    if (gps_ops->device(&device) != GPS_OK || gps_ops->uuid(device, uuid) != GPS_OK)
        return NULL;
    const struct gps_alloc_facts facts = {.program = gps_process_program()->name,
                                          .executable = gps_process_program()->executable,
                                          .size = size,
                                          .device_ordinal = (unsigned)device,
                                          .device_uuid = uuid,
                                          .pool = kind == GPS_PROFILE_POOL,
                                          .created = kind == GPS_PROFILE_CREATED};
    for (size_t i = 0; i < state.config.rule_count; i++) {
        const struct gps_rule *rule = &state.config.rules[i];
        if (gps_rule_mismatch(rule, &facts) == GPS_FITS && gps_caller_fits(rule, caller) &&
            gps_rule_takes(rule, atomic_fetch_add(&state.matches[i], 1)))
            return rule->role == GPS_ROLE_MERGE ? rule : NULL;
    }
    return NULL;
}

/* --- what is written --- */

/* As the merger asks (merge/merger.c: block_is_filled). */
static bool may_merge(const struct gps_area *area, const struct gps_block *block,
                      const struct gps_rule *rule) {
    if (block->excluded)
        return false;
    if (rule->quiet == 0)
        return gps_profile_progress(area, block)->full;
    return rule->content == GPS_CONTENT_ANY || (!~block->filled && !block->changed);
}

/* When a change came is known between two looks only. It counts as late as it may have been, but
 * not for a block that no look has found unchanged. */
void gps_canary_note(const struct gps_area *area, const struct gps_block *block, uint64_t before,
                     uint64_t now, bool changed) {
    struct gps_profile *profile = gps_profile_of(area);
    const struct gps_rule *rule = profile->rule;
    const uint64_t seen = changed ? before : now, quiet = seen - block->same_since;
    if (!rule || !block->same_since || !may_merge(area, block, rule))
        return;
    const bool merged = rule->quiet == 0 || quiet >= rule->quiet;
    profile->dirty |= merged && !profile->quiet;
    profile->quiet |= merged;
    if (!changed || !(merged || (quiet && now - block->same_since >= rule->quiet)))
        return;
    if (profile->writes++ == 0) {
        profile->written = now;
        profile->was_quiet = quiet;
        memcpy(profile->writer, profile->kernel, sizeof(profile->writer));
    }
    profile->quiet = profile->dirty = true;
}

void gps_canary_given(uint64_t word, const char *kernel) {
    if (!gps_area_near(word, 1))
        return;
    GPS_SCOPE();
    GPS_AREAS_LOCKED();
    struct gps_area *area = gps_area_at(word);
    if (area) {
        struct gps_text text = GPS_TEXT(gps_profile_of(area)->kernel);
        gps_text_str(&text, kernel);
    }
}
