/* rule_import.c - an allocation becomes another process's region; see rule_request.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "config/value.h"
#include "directory/file.h"
#include "directory/name.h"
#include "directory/processes.h"
#include "directory/region.h"
#include "driver/driver_ops.h"
#include "findings/reporter.h"
#include "frames/exchange.h"
#include "ipc/import.h"
#include "log/event_log.h"
#include "process/membership.h"
#include "process/process.h"
#include "process/program.h"
#include "registry/padding.h"
#include "rule_request.h"
#include "stack/trace.h"
#include "threads/watch.h"
#include "util/clock.h"
#include "util/digits.h"
#include "util/text.h"
#include "vmm/mapping.h"
#include "wanted_size.h"

/* --- who may export the region --- */
/* A process whose allocations no rule takes publishes nothing, so only /proc knows of it. */

static bool rule_exports_to(const struct gps_rule *rule, const struct gps_rule *import) {
    return rule != import && gps_rule_exports(rule) && strcmp(rule->name, import->name) == 0;
}

static bool rule_is_for_program(const struct gps_rule *rule, const struct gps_program *program,
                                bool any_case) {
    return any_case ? gps_glob_match_any_case(rule->program, program->name)
                    : gps_rule_is_for(rule, program->name, program->executable);
}

static const struct gps_rule *exporting(const struct gps_config *config,
                                        const struct gps_rule *import,
                                        const struct gps_program *program, bool any_case) {
    for (size_t i = 0; i < config->rule_count; i++)
        if (rule_exports_to(&config->rules[i], import) &&
            rule_is_for_program(&config->rules[i], program, any_case))
            return &config->rules[i];
    return NULL;
}

static void tell_wanted_size(uint64_t size, uint64_t count, struct gps_text *text) {
    gps_text_str(text, ": it has asked for size = ");
    gps_value_size_text(size, text);
    if (count > 2)
        gps_text_add(text, " %lu times%s", count, count == GPS_WANTED_SIZE_MOST ? " or more" : "");
    else
        gps_text_str(text, count == 1 ? " once" : " twice");
    gps_text_str(text, ", and never for that");
}

static void exporter_tell(const struct gps_program *program, uint64_t pid,
                          const struct gps_rule *rule, struct gps_text *text) {
    uint64_t size, count;
    gps_text_add(text, "; %s (pid %lu) runs here, for which line %u exports size = ", program->name,
                 pid, rule->line);
    gps_value_range_text(rule->size_min, rule->size_max, &gps_sizes, text);
    if (gps_wanted_size_of((uint32_t)pid, rule->name, &size, &count))
        tell_wanted_size(size, count, text);
    else
        gps_text_str(text,
                     ": it has not asked for that, has freed it, or runs without gpushare, or with "
                     "another configuration, directory or namespace");
}

static void tell_case(const struct gps_program *program, uint64_t pid, const struct gps_rule *rule,
                      struct gps_text *text) {
    gps_text_add(text,
                 "; %s (pid %lu) runs here, and line %u is for %s, which differs in case only",
                 program->name, pid, rule->line, rule->program);
}

/* Adds "; camera (pid 77) runs here, ..." for the first process for which a rule of this
 * configuration exports the name of the import's rule. False, if none is seen in /proc. */
static bool tell_partner(const struct gps_config *config, const struct gps_rule *import,
                         bool any_case, struct gps_text *text) {
    const struct gps_rule *rule = NULL;
    struct gps_program program;
    struct gps_dir dir;
    const char *name;
    gps_dir_open_path(&dir, "/proc");
    while (!rule && (name = gps_dir_next(&dir))) {
        uint64_t pid;
        if (!gps_dec_parse(&name, &pid) || *name || pid == (uint64_t)getpid() ||
            !gps_program_of((uint32_t)pid, &program))
            continue;
        rule = exporting(config, import, &program, any_case);
        if (rule)
            (any_case ? tell_case : exporter_tell)(&program, pid, rule, text);
    }
    gps_dir_close(&dir);
    return rule;
}

/* --- the import --- */

static const char has_it[] = "this process has imported this region already";

enum found { ABSENT, NOT_YET, FITS, MISFITS };

/* With role = auto all processes do the same, and the first one writes. */
static bool expects_writable(const struct gps_rule_request *request,
                             const struct gps_region_record *record) {
    return record->flags & GPS_REGION_READ_ONLY && request->rule->role == GPS_ROLE_AUTO &&
           request->rule->access != GPS_ACCESS_RO;
}

static enum found import_fit(const struct gps_rule_request *request,
                             const struct gps_region_record *record) {
    return request->size <= record->requested && !expects_writable(request, record) &&
                   memcmp(request->uuid, record->device, GPS_UUID_BYTES) == 0
               ? FITS
               : MISFITS;
}

/* Whether the region is lost: legacy memory dies with its owner. A dead keeper is replaced: a
 * request for the region starts another. */
static bool region_is_orphan(const struct gps_region_record *record) {
    return record->backing != GPS_BACKING_VMM &&
           gps_lease_probe(gps_membership_store(), &record->owner) == GPS_DEAD;
}

/* Looks under the name. A dead owner's region counts as absent: its handle cannot be opened. */
static enum found import_look_up(const struct gps_rule_request *request,
                                 struct gps_region_record *record, struct gps_owner *holder) {
    struct gps_name_target target;
    const char *why = NULL;
    if (gps_name_resolve(gps_membership_store(), request->name, &target) < 0)
        return ABSENT;
    if (target.kind == GPS_NAME_CLAIM) {
        *holder = target.claimer;
        return gps_lease_probe(gps_membership_store(), &target.claimer) == GPS_ALIVE ? NOT_YET
                                                                                     : ABSENT;
    }
    const int status = gps_region_read(gps_membership_store(), &target.region, record, &why);
    if (status == -EBADMSG)
        gps_report_record(&target.region, why);
    if (status < 0 || region_is_orphan(record))
        return ABSENT;
    *holder = *gps_record_creator(record);
    if (record->status.state != GPS_STATE_READY && record->status.state != GPS_STATE_FINAL)
        return record->status.state == GPS_STATE_WRITING ? NOT_YET : ABSENT;
    return import_fit(request, record);
}

static enum gps_outcome misfit(const struct gps_rule_request *request,
                               const struct gps_region_record *record) {
    char detail[384];
    struct gps_text text = GPS_TEXT(detail);
    if (request->size > record->requested) {
        gps_text_str(&text, "asked for size = ");
        gps_value_size_text(request->size, &text);
        gps_text_str(&text, ", and size = ");
        gps_value_size_text(record->requested, &text);
        gps_text_str(&text, " was exported, which is less");
        request->why->names_key = true;
    } else if (expects_writable(request, record)) {
        gps_text_str(&text,
                     "the region is shared read-only, and this rule does not say access = ro");
        request->why->names_key = true;
    } else {
        char theirs[GPS_UUID_TEXT], ours[GPS_UUID_TEXT];
        const char *const visible = getenv("CUDA_VISIBLE_DEVICES");
        gps_format_uuid(record->device, theirs);
        gps_format_uuid(request->uuid, ours);
        gps_text_add(&text, "the region is on another device, %s; this allocation is on %s", theirs,
                     ours);
        if (visible)
            gps_text_strs(&text, ", and CUDA_VISIBLE_DEVICES is '", visible, "'");
    }
    gps_text_str(&text, "; the allocation is private");
    gps_rule_request_report(request, GPS_SHARE_MISMATCH, detail, &record->owner);
    return GPS_PRIVATE;
}

static enum gps_outcome timed_out(const struct gps_rule_request *request, int last_code,
                                  const struct gps_owner *holder, int *code) {
    char detail[512 + GPS_STORE_PATH];
    struct gps_text text = GPS_TEXT(detail);
    const bool fail = request->rule->missing == GPS_MISSING_FAIL;
    gps_text_str(&text,
                 holder->pid ? "its region was not ready after " : "nobody exported it within ");
    gps_text_duration(&text, request->rule->wait);
    if (!holder->pid)
        gps_text_strs(&text, " in ", gps_membership_store()->path);
    if (last_code) {
        gps_text_add(&text, "; the last attempt to open it failed with code %lu",
                     (uint64_t)last_code);
    }
    gps_text_str(&text,
                 fail ? "; the allocation fails (missing = fail)" : "; the allocation is private");
    if (!holder->pid && !tell_partner(gps_process_config(), request->rule, false, &text))
        tell_partner(gps_process_config(), request->rule, true, &text);
    gps_rule_request_report(request, GPS_SHARE_TIMEOUT, detail, holder->pid ? holder : NULL);
    *code = GPS_OUT_OF_MEMORY;
    return fail ? GPS_DONE : GPS_PRIVATE;
}

/* The program gets memory of its own, into which the region's frames are copied. */
static void import_begin_frames(const struct gps_rule_request *request,
                                const struct gps_region_record *record, uint64_t *pointer) {
    struct gps_alloc own = {.size = request->size,
                            .context = request->context,
                            .era = gps_registry_era(),
                            .device = (int16_t)request->device,
                            .trace = gps_trace_kept()};
    char detail[192];
    struct gps_text text = GPS_TEXT(detail);
    const char *why = request->pool        ? "memory of a pool has none"
                      : !gps_frames_active ? "no rule here says frames, for this name"
                                           : gps_frames_import(record, *pointer, request->size,
                                                               request->context, &own.pointer);
    if (!why) {
        gps_registry_add(&own);
        *pointer = own.pointer;
        return;
    }
    gps_text_strs(&text, why, "; the exporter's buffer is shared, without frames");
    gps_rule_request_report(request, GPS_SHARE_FALLBACK, detail, NULL);
}

/* Opens the region, and records it as the allocation; without memory for that closes it again. */
static int import(const struct gps_rule_request *request, const struct gps_region_record *record,
                  uint64_t *pointer) {
    struct gps_alloc found;
    const int code = gps_import_by_rule(record, request->size, pointer);
    if (code != GPS_OK)
        return code;
    const struct gps_alloc alloc = {.pointer = *pointer,
                                    .size = request->size,
                                    .context = request->context,
                                    .era = gps_registry_era(),
                                    .device = (int16_t)request->device,
                                    .kind = GPS_ALLOC_IMPORTED};
    gps_registry_add(&alloc);
    if (!gps_registry_find(*pointer, &found)) {
        gps_import_free(&alloc);
        return -ENOMEM;
    }
    gps_padding_add(*pointer, request->size, record->extent);
    if (record->frames)
        import_begin_frames(request, record, pointer);
    return GPS_OK;
}

/* Looks under the name once, and imports the region there. True: *outcome is decided. */
static bool try_import(const struct gps_rule_request *request, uint64_t *pointer, int *last_code,
                       struct gps_owner *holder, enum gps_outcome *outcome) {
    struct gps_region_record record;
    *holder = (struct gps_owner){0};
    const enum found found = import_look_up(request, &record, holder);
    if (found == MISFITS) {
        *outcome = misfit(request, &record);
        return true;
    }
    if (holder->pid && gps_process_is_self(holder) &&
        (found != FITS || record.backing != GPS_BACKING_VMM || gps_mapping_has(&record.id))) {
        *outcome = gps_rule_request_private(
            request, "this process itself has a live region of this name", NULL);
        return true;
    }
    if (found != FITS)
        return false;
    const int code = import(request, &record, pointer);
    if (code == GPS_OK) {
        *outcome = GPS_DONE;
        return true;
    }
    if (code > 0 && gps_context_state() != GPS_OK) {
        *outcome = GPS_PRIVATE; /* the program's own call gets the error */
        return true;
    }
    *last_code = code > 0 ? code : *last_code;
    if (code != -ETIMEDOUT && code != -ETOOMANYREFS && code != -ENOMEM && code != -EEXIST)
        return false;
    *outcome = gps_rule_request_private(request,
                                        code == -EEXIST   ? has_it
                                        : code == -ENOMEM ? "there is no memory for its record"
                                        : code == -ETOOMANYREFS
                                            ? gps_not_merging_why(GPS_NOT_MERGING_CROWDED)
                                            : "the keeper does not answer",
                                        NULL);
    return true;
}

enum gps_outcome gps_rule_import(const struct gps_rule_request *request, bool take_over,
                                 uint64_t *pointer, int *code) {
    struct gps_owner holder = {0};
    enum gps_outcome outcome = GPS_PRIVATE;
    struct gps_wait wait;
    int last_code = 0;
    if (gps_registry_imports_name(request->name))
        return gps_rule_request_private(request, has_it, NULL);
    /* The first try has no watch, because closing one can take the kernel milliseconds, and most
     * processes find the region at once, or that there is none. */
    if (try_import(request, pointer, &last_code, &holder, &outcome))
        return outcome;
    if (take_over && gps_rule_take_over(request, pointer, &outcome))
        return outcome;
    const uint64_t begun = gps_clock_monotonic();
    uint64_t until = begun + request->rule->wait;
    gps_wait_begin(&wait, GPS_VIA_WAIT_EXPORTER, request->name, NULL, request->rule->wait,
                   GPS_WATCH_PROCS | GPS_WATCH_REGIONS | GPS_WATCH_NAMES);
    while (!try_import(request, pointer, &last_code, &holder, &outcome)) {
        const uint64_t asked = gps_clock_monotonic();
        if (take_over && gps_rule_take_over(request, pointer, &outcome))
            break;
        const uint64_t now = gps_clock_monotonic();
        until += now - asked; /* a wait for memory does not count as one for the exporter */
        if (now >= until) {
            outcome = timed_out(request, last_code, &holder, code);
            break;
        }
        gps_wait_turn(&wait, until - now);
    }
    gps_wait_end(&wait);
    gps_event_log_write(&(struct gps_event_line){.what = "waited",
                                                 .name = request->name,
                                                 .ns = gps_clock_monotonic() - begun,
                                                 .how = "import"});
    return outcome;
}
