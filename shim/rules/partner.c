/*
 * partner.c - see partner.h.
 *
 * A process whose allocations no rule takes publishes nothing, so only /proc knows of it.
 */
#include "partner.h"

#include <string.h>
#include <unistd.h>

#include "asked.h"
#include "config/value.h"
#include "directory/file.h"
#include "process/program.h"
#include "util/digits.h"

static bool exports(const struct gps_rule *rule, const struct gps_rule *import) {
    return rule != import && (rule->role == GPS_ROLE_EXPORT || rule->role == GPS_ROLE_AUTO) &&
           strcmp(rule->name, import->name) == 0;
}

static bool is_for(const struct gps_rule *rule, const struct gps_program *program, bool any_case) {
    return any_case ? gps_glob_match_any_case(rule->program, program->name)
                    : gps_rule_is_for(rule, program->name, program->executable);
}

static const struct gps_rule *exporting(const struct gps_config *config,
                                        const struct gps_rule *import,
                                        const struct gps_program *program, bool any_case) {
    for (size_t i = 0; i < config->rule_count; i++)
        if (exports(&config->rules[i], import) && is_for(&config->rules[i], program, any_case))
            return &config->rules[i];
    return NULL;
}

static void tell_asked(uint64_t size, uint64_t count, struct gps_text *text) {
    gps_text_str(text, ": it has asked for size = ");
    gps_value_size_text(size, text);
    if (count > 2)
        gps_text_add(text, " %lu times%s", count, count == GPS_ASKED_MOST ? " or more" : "");
    else
        gps_text_str(text, count == 1 ? " once" : " twice");
    gps_text_str(text, ", and never for that");
}

static void tell(const struct gps_program *program, uint64_t pid, const struct gps_rule *rule,
                 struct gps_text *text) {
    uint64_t size, count;
    gps_text_add(text, "; %s (pid %lu) runs here, for which line %u exports size = ", program->name,
                 pid, rule->line);
    gps_value_range_text(rule->size_min, rule->size_max, &gps_sizes, text);
    if (gps_asked_by((uint32_t)pid, rule->name, &size, &count))
        tell_asked(size, count, text);
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

/* Whether a process was found, and told of. */
static bool find(const struct gps_config *config, const struct gps_rule *import, bool any_case,
                 struct gps_text *text) {
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
            (any_case ? tell_case : tell)(&program, pid, rule, text);
    }
    gps_dir_close(&dir);
    return rule;
}

void gps_partner_tell(const struct gps_config *config, const struct gps_rule *import,
                      struct gps_text *text) {
    if (!find(config, import, false, text))
        find(config, import, true, text);
}
