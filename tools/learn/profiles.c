/* profiles.c - reads and judges the reports of processes that learn, and makes rules of them. */
#include "profiles.h"

#include "cli/printable.h"
#include "cli/string_map.h"
#include "cli/table.h"
#include "cli/tool.h"
#include "config/config.h"
#include "util/text.h"

#define STEADY 2000 /* ms; weights stay unchanged for at least so long */

/* --- reading --- */

/* A newer line of an allocation replaces the older one. */
static struct profile *profile_of(struct profiles *profiles, struct profile found) {
    TOOL_TEMP char *key = tool_format("%s %" PRIu64, found.process, found.number);
    struct profile *profile = string_map_make(&profiles->known, key, sizeof(*profile));
    if (profile->json)
        json_decref(profile->json);
    else
        TOOL_APPEND(profiles->list, profiles->count, profile);
    *profile = found;
    return profile;
}

static void note_created(struct profiles *profiles, const char *process, json_int_t made,
                         json_int_t watched) {
    struct profile_created *one = string_map_make(&profiles->makers, process, sizeof(*one));
    if (!one->made)
        TOOL_APPEND(profiles->created, profiles->created_count, one);
    *one = (struct profile_created){(uint64_t)made, (uint64_t)watched};
}

uint64_t profiles_unwatched(const struct profiles *profiles) {
    uint64_t most = 0;
    for (size_t i = 0; i < profiles->created_count; i++) {
        const struct profile_created *one = profiles->created[i];
        if (one->made > one->watched && one->made - one->watched > most)
            most = one->made - one->watched;
    }
    return most;
}

/* False: it is no line of the library's. */
static bool profiles_read_line(struct profiles *profiles, json_t *json, unsigned replica) {
    struct profile found = {.json = json, .replica = replica};
    json_int_t looked = -1, made = 0, watched = 0;
    int lacking = 0, vmm = 0;
    if (json_unpack(json, "{s:s,s:s,s?I,s?[II],s?b,s?b,s?I,s?I,s?I,s?s}", "process", &found.process,
                    "program", &found.program, "looked", &looked, "created", &made, &watched,
                    "lacking", &lacking, "vmm", &vmm, "number", &found.number, "size", &found.size,
                    "thread", &found.thread, "caller", &found.caller) != 0)
        return false;
    found.created = vmm;
    if (lacking)
        profiles->lacking |= 1u << replica;
    else if (made > 0)
        note_created(profiles, found.process, made, watched);
    else if (looked < 0)
        json_incref(profile_of(profiles, found)->json);
    else
        *(json_int_t *)string_map_make(&profiles->looked, found.process, sizeof(looked)) = looked;
    return true;
}

/* The last line may be half written. */
void profiles_read(struct profiles *profiles, FILE *file, unsigned replica) {
    bool known = true;
    while (known) {
        json_auto_t *json = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL);
        known = json && profiles_read_line(profiles, json, replica);
    }
}

static void free_profile(void *value) {
    json_decref(((struct profile *)value)->json);
}

void profiles_free(struct profiles *profiles) {
    string_map_free(&profiles->known, free_profile);
    string_map_free(&profiles->looked, NULL);
    string_map_free(&profiles->makers, NULL);
    free(profiles->created);
    free(profiles->list);
    free(profiles->rules);
    *profiles = (struct profiles){.count = 0};
}

/* The number of profiles, from number `first` on, that have its program, size and kind. */
static size_t count_alike(const struct profiles *profiles, size_t first) {
    const struct profile *one = profiles->list[first];
    size_t end = first + 1;
    while (end < profiles->count && profiles->list[end]->size == one->size &&
           profiles->list[end]->created == one->created &&
           strcmp(profiles->list[end]->program, one->program) == 0)
        end++;
    return end - first;
}

uint64_t profiles_saved(const struct profiles *profiles) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < profiles->rule_count; i++)
        bytes += profiles->rules[i].saves;
    return bytes;
}

uint64_t profiles_apart(const struct profiles *profiles, unsigned replicas) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < profiles->count; i++)
        bytes += profiles->list[i]->verdict == PROFILE_FINE ? profiles->list[i]->apart : 0;
    return bytes / replicas;
}

/* --- one allocation --- */

/* Judges an allocation by the blocks that copies filled (key full), or by all (key all). Blocks
 * that copies did not fill are not merged, so they do no harm. */
static enum profile_verdict judge_by(struct profile *profile, const char *key, json_int_t looked) {
    json_int_t born = 0, freed = 0, bytes = 0, since = 0, changed = 0, rewritten = 0;
    json_unpack(profile->json, "{s:I,s:I,s:[IIII]}", "born", &born, "freed", &freed, key, &bytes,
                &since, &changed, &rewritten);
    const json_int_t end = freed ? freed : looked, life = end - born, steady = end - since;
    profile->any = strcmp(key, "all") == 0;
    profile->from = (uint64_t)since;
    profile->saves = (uint64_t)bytes;
    if (bytes == 0)
        return PROFILE_NOT_COPIED;
    if (changed)
        return PROFILE_CHANGED;
    if ((rewritten || profile->any) && steady < life / 2)
        return rewritten ? PROFILE_REWRITTEN : PROFILE_CHANGED;
    if (steady < STEADY && freed && life < 2 * STEADY)
        /* what the program's end frees may have been there for good, if it ran long */
        return looked - born < STEADY ? PROFILE_SHORT : PROFILE_BRIEF;
    if (steady < STEADY)
        return PROFILE_YOUNG;
    return PROFILE_FINE;
}

static void profile_judge(const struct profiles *profiles, struct profile *profile, bool any) {
    const json_int_t *looked = string_map_get(profiles->looked, profile->process);
    const json_int_t until = looked ? *looked : 0;
    profile->verdict = judge_by(profile, "full", until);
    if (profile->verdict == PROFILE_NOT_COPIED && any)
        profile->verdict = judge_by(profile, "all", until);
    if (json_is_true(json_object_get(profile->json, "pool")))
        profile->verdict = PROFILE_POOL;
    else if (!looked)
        profile->verdict = PROFILE_YOUNG;
}

/* --- equal blocks of replicas; the map has a bit for each replica that has such a block --- */

/* Sums up the blocks that all replicas have, and the others. Notes which of them this one has. */
static void profile_measure(struct profile *profile, struct string_map **map, unsigned all) {
    json_int_t size, full;
    const char *hash;
    size_t i;
    json_t *block;
    profile->saves = profile->apart = 0;
    json_array_foreach(json_object_get(profile->json, "blocks"), i, block) {
        if (json_unpack(block, "[IIs]", &size, &full, &hash) != 0 || !(full || profile->any))
            continue;
        unsigned *replicas = string_map_make(map, hash, sizeof(*replicas));
        *replicas |= 1u << profile->replica;
        *(*replicas == all ? &profile->saves : &profile->apart) += (uint64_t)size;
    }
}

static void measure_all(struct profiles *profiles, unsigned replicas) {
    struct string_map *map = NULL;
    for (unsigned pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < profiles->count; i++)
            if (profiles->list[i]->verdict == PROFILE_FINE)
                profile_measure(profiles->list[i], &map, (1u << replicas) - 1);
    for (size_t i = 0; i < profiles->count; i++)
        if (profiles->list[i]->verdict == PROFILE_FINE && !profiles->list[i]->saves)
            profiles->list[i]->verdict = PROFILE_DIFFERENT;
    string_map_free(&map, NULL);
}

/* --- rules, for allocations of one program and size --- */

struct alike {
    struct profile **list;
    size_t count;
};

/* Numbers the allocations of each process. False: several threads make them, in no fixed order. */
static bool number(const struct alike *alike) {
    bool ordered = true;
    for (size_t i = 0; i < alike->count; i++) {
        const struct profile *last = i ? alike->list[i - 1] : NULL;
        const bool next = last && strcmp(last->process, alike->list[i]->process) == 0;
        alike->list[i]->index = next ? last->index + 1 : 0;
        ordered = ordered && (!next || last->thread == alike->list[i]->thread);
    }
    return ordered;
}

/* Finds the longest run of indices that are fine in every process. If all are fine, the rule takes
 * every index. */
static void find_run(const struct alike *alike, struct profile_rule *rule) {
    TOOL_TEMP bool *bad = tool_zeroed(alike->count, sizeof(*bad));
    uint64_t count = 0, length = 0, best = 0;
    for (size_t i = 0; i < alike->count; i++) {
        const uint64_t index = alike->list[i]->index;
        bad[index] |= alike->list[i]->verdict != PROFILE_FINE;
        count = index >= count ? index + 1 : count;
    }
    for (uint64_t i = 0; i < count; i++) {
        length = bad[i] ? 0 : length + 1;
        if (length > best) {
            best = length;
            rule->first = i + 1 - length;
            rule->last = length == count ? UINT64_MAX : i;
        }
    }
}

/* Adds up what the rule takes. An allocation that is fine but not taken has no selectors. */
static void alike_sum_up(const struct alike *alike, struct profile_rule *rule) {
    uint64_t processes = 0;
    for (size_t i = 0; i < alike->count; i++) {
        struct profile *this = alike->list[i];
        processes += this->index == 0;
        if (this->index >= rule->first && this->index <= rule->last) {
            rule->count++;
            rule->saves += this->saves;
            rule->any |= this->any;
            rule->from = this->from > rule->from ? this->from : rule->from;
        } else if (this->verdict == PROFILE_FINE) {
            this->verdict = PROFILE_UNORDERED;
        }
    }
    if (processes) {
        rule->count = (rule->count + processes - 1) / processes;
        rule->saves /= processes;
    }
}

static void profiles_add_rule(struct profiles *profiles, const struct alike *alike,
                              const char *caller) {
    struct profile_rule rule = {alike->list[0]->program, caller, alike->list[0]->size,
                                .first = 1 /* none */, .created = alike->list[0]->created};
    const bool ordered = number(alike);
    find_run(alike, &rule);
    if (!ordered && rule.last != UINT64_MAX)
        rule.first = rule.last + 1;
    alike_sum_up(alike, &rule);
    if (rule.count)
        TOOL_APPEND(profiles->rules, profiles->rule_count, rule);
}

static int by_caller(const void *left, const void *right) {
    const struct profile *a = *(struct profile *const *)left, *b = *(struct profile *const *)right;
    return strcmp(a->caller, b->caller) ?: strcmp(a->process, b->process)
           ?: tool_compare(a->number, b->number);
}

/* Makes one rule, or one for each caller where a single one would take what is not fine. */
static void add_rules(struct profiles *profiles, struct profile **list, size_t count) {
    bool fine = true;
    for (size_t i = 0; i < count; i++)
        fine = fine && list[i]->verdict == PROFILE_FINE;
    if (!fine)
        TOOL_SORT(list, count, by_caller);
    if (fine || !list[0]->caller[0] || strcmp(list[0]->caller, list[count - 1]->caller) == 0) {
        profiles_add_rule(profiles, &(struct alike){list, count}, NULL);
        return;
    }
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && strcmp(list[i]->caller, list[end]->caller) == 0;)
            end++;
        profiles_add_rule(profiles, &(struct alike){list + i, end - i}, list[i]->caller);
    }
}

/* --- all --- */

static int by_kind(const void *left, const void *right) {
    const struct profile *a = *(struct profile *const *)left, *b = *(struct profile *const *)right;
    return strcmp(a->program, b->program) ?: tool_compare(b->size, a->size)
           ?: tool_compare(a->created, b->created) ?: strcmp(a->process, b->process) ?: tool_compare(a->number, b->number);
}

void profiles_judge(struct profiles *profiles, unsigned replicas, bool any) {
    TOOL_SORT(profiles->list, profiles->count, by_kind);
    for (size_t i = 0; i < profiles->count; i++)
        profile_judge(profiles, profiles->list[i], any);
    if (replicas > 1)
        measure_all(profiles, replicas);
    for (size_t i = 0, count; i < profiles->count; i += count) {
        count = count_alike(profiles, i);
        add_rules(profiles, &profiles->list[i], count);
    }
}

/* --- the table: a row for all of one program, size and verdict --- */

static const char *const why[PROFILE_VERDICTS] = {
    [PROFILE_FINE] = "stays as it was uploaded",
    [PROFILE_POOL] = "left out: memory of a pool (cudaMallocAsync) is not looked at",
    [PROFILE_BRIEF] = "left out: soon freed, as a buffer for copies is",
    [PROFILE_SHORT] = "left out: the run was too short to tell; let it run longer",
    [PROFILE_NOT_COPIED] = "left out: not filled by copies from the host (see --content any)",
    [PROFILE_CHANGED] = "left out: kernels change it",
    [PROFILE_REWRITTEN] = "left out: written again and again",
    [PROFILE_YOUNG] = "left out: not seen unchanged for 2 s; let it run longer",
    [PROFILE_DIFFERENT] = "left out: differs between the replicas",
    [PROFILE_UNORDERED] = "left out: no rule tells it from memory of its size that changes",
};

struct row {
    uint64_t count, saves, from, processes;
};

static struct row sum_row(struct profile *const *list, size_t count, enum profile_verdict verdict) {
    struct row row = {0};
    for (size_t i = 0; i < count; i++) {
        row.processes += i == 0 || strcmp(list[i]->process, list[i - 1]->process) != 0;
        if (list[i]->verdict != verdict)
            continue;
        row.count++;
        row.saves += verdict == PROFILE_FINE ? list[i]->saves : 0;
        row.from = list[i]->from > row.from ? list[i]->from : row.from;
    }
    return row;
}

static void profiles_add_row(struct table *table, const struct profile *one, const struct row *row,
                             enum profile_verdict verdict) {
    const bool fine = verdict == PROFILE_FINE;
    table_cell(table, TERM_PLAIN, "%s", one->program);
    table_cell(table, TERM_PLAIN, "%s", printable_size(one->size).text);
    table_cell(table, TERM_PLAIN, "%" PRIu64, (row->count + row->processes - 1) / row->processes);
    table_cell(table, TERM_PLAIN, fine ? "%.1f s" : "-", (double)row->from / 1000);
    table_cell(table, TERM_PLAIN, "%s",
               fine ? printable_size(row->saves / row->processes).text : "-");
    table_cell(table, fine ? TERM_GREEN : TERM_PLAIN, "%s%s", why[verdict],
               one->created ? " (cuMemCreate)" : "");
}

void profiles_table(FILE *out, const struct profiles *profiles) {
    static const struct table_column columns[] = {{"PROGRAM", 0},      {"SIZE", 1},
                                                  {"COUNT", 1},        {"UNCHANGED FROM", 1},
                                                  {"SECOND SAVES", 1}, {"", 0}};
    struct table table = TABLE(columns);
    for (size_t i = 0, count; i < profiles->count; i += count) {
        count = count_alike(profiles, i);
        for (unsigned verdict = 0; verdict < PROFILE_VERDICTS; verdict++) {
            const struct row row = sum_row(&profiles->list[i], count, verdict);
            if (row.count)
                profiles_add_row(&table, profiles->list[i], &row, verdict);
        }
    }
    table_print(out, &table, "");
}

/* --- the rules --- */

/* Writes a name. Characters that a name or a glob cannot hold become `other`. */
static void put_plain(FILE *out, const char *name, char other, size_t most) {
    for (size_t i = 0; i < most && name[i]; i++)
        putc(gps_is_name_char(name[i]) && (i > 0 || name[i] != '.') ? name[i] : other, out);
}

static void put_rule(FILE *out, const struct profile_rule *rule, size_t number) {
    fprintf(out,
            "\n# %" PRIu64 " in a process, unchanged from %.1f s on; a second process saves %s\n",
            rule->count, (double)rule->from / 1000, printable_size(rule->saves).text);
    fputs("[region ", out);
    put_plain(out, rule->program, '_', 30);
    fprintf(out, "-%zu]\nprogram = ", number);
    put_plain(out, rule->program, '?', SIZE_MAX);
    fprintf(out, "\nsize = %s\n", printable_size_value(rule->size).text);
    if (rule->last != UINT64_MAX)
        fprintf(out, "index = %s\n", printable_indices_value(rule->first, rule->last).text);
    if (rule->caller) {
        fputs("caller = ", out);
        put_plain(out, rule->caller, '?', SIZE_MAX);
        putc('\n', out);
    }
    fprintf(out, "role = merge\n%s%s\n", rule->created ? "created = on\n" : "",
            rule->any ? "content = any" : "quiet = 0");
}

void profiles_rules(FILE *out, const struct profiles *profiles) {
    fputs("# by gpushare learn\n", out);
    for (size_t i = 0; i < profiles->rule_count; i++)
        put_rule(out, &profiles->rules[i], i + 1);
}
