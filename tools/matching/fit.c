/*
 * An importer may ask for what was exported, or for less. So an allocation fits one of its size on
 * the same GPU, or of less than twice that; of several of one size the n-th fits the n-th.
 */
#include "fit.h"

#include "cli/json_tree.h"
#include "cli/printable.h"
#include "cli/table.h"
#include "cli/tool.h"
#include "config/config.h"

#define KIND "gpushare explain"

/* --- writing --- */

/* Of what it exported with frames; NULL: nothing. */
static json_t *fit_frames_json(const struct gps_explained *process) {
    json_t *all = process->frames[0].name[0] ? json_tree_pack("[]") : NULL;
    for (size_t i = 0; i < GPS_EXPLAINED_FRAMES && process->frames[i].name[0]; i++) {
        const struct gps_explained_frames *frames = &process->frames[i];
        json_tree_append(all, json_tree_pack("{s:o, s:I, s:I, s:I, s:i, s:b}", "region",
                                             json_tree_string(frames->name), "count", frames->count,
                                             "alike", frames->alike, "odd", frames->odd, "waits",
                                             (int)frames->waits, "threads", frames->threads != 0));
    }
    return all;
}

static json_t *fit_process_json(const struct gps_explained *process) {
    json_t *rows = json_tree_pack("[]");
    for (size_t i = 0; i < GPS_EXPLAINED_ROWS && process->rows[i].count; i++) {
        const struct gps_explained_row *row = &process->rows[i];
        json_tree_append(rows, json_tree_pack("{s:I, s:I, s:s, s:b, s:o, s:o}", "size", row->size,
                                              "count", row->count, "device",
                                              printable_uuid(row->uuid).text, "pool",
                                              row->pool != 0, "call", json_tree_string(row->call),
                                              "caller", json_tree_string(row->caller)));
    }
    return json_tree_pack("{s:o, s:o, s:I, s:o, s:o*}", "program",
                          json_tree_string(process->program), "arguments",
                          json_tree_string(process->arguments), "pid", (json_int_t)process->pid,
                          "allocations", rows, "frames", fit_frames_json(process));
}

void fit_write(FILE *out, struct gps_explained *const *processes, size_t count) {
    json_t *array = json_tree_pack("[]");
    for (size_t i = 0; i < count; i++)
        json_tree_append(array, fit_process_json(processes[i]));
    json_tree_print(
        out, json_tree_pack("{s:s, s:i, s:o}", "kind", KIND, "version", 1, "processes", array));
}

/* --- reading --- */

/* Allocations of one kind that a process of a program made; the strings are the tree's. */
struct kind {
    const char *program, *device;
    uint64_t size, count;
    bool pool;
};

struct kept {
    json_t *tree;
    struct kind *kinds;
    size_t count;
};

static bool fit_kind_is_same(const struct kind *a, const struct kind *b) {
    return a->size == b->size && a->pool == b->pool && strcmp(a->program, b->program) == 0 &&
           strcmp(a->device, b->device) == 0;
}

/* Of several processes of a program the one counts that made the most. */
static void kept_take(struct kept *kept, const struct kind *kind, size_t from) {
    for (size_t i = 0; i < kept->count; i++) {
        struct kind *known = &kept->kinds[i];
        if (!fit_kind_is_same(known, kind))
            continue;
        if (i >= from)
            known->count += kind->count;
        else if (known->count < kind->count)
            known->count = kind->count;
        return;
    }
    TOOL_APPEND(kept->kinds, kept->count, *kind);
}

static bool kept_read_process(struct kept *kept, json_t *process) {
    json_t *rows = json_object_get(process, "allocations");
    const size_t from = kept->count;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        struct kind kind;
        json_int_t size, count;
        int pool;
        if (json_unpack(json_array_get(rows, i), "{s:I, s:I, s:s, s:b}", "size", &size, "count",
                        &count, "device", &kind.device, "pool", &pool) != 0 ||
            json_unpack(process, "{s:s}", "program", &kind.program) != 0 || size < 1 || count < 1)
            return false;
        kind.size = (uint64_t)size;
        kind.count = (uint64_t)count;
        kind.pool = pool;
        kept_take(kept, &kind, from);
    }
    return json_is_array(rows);
}

static bool kept_read(struct kept *kept, const struct fit_side *side) {
    json_error_t error;
    *kept = (struct kept){.tree = json_load_file(side->path, 0, &error)};
    if (!kept->tree && json_error_code(&error) == json_error_cannot_open_file)
        return tool_error("cannot read '%s': %s", side->path, error.text);
    json_t *processes = json_object_get(kept->tree, "processes");
    const char *kind = json_string_value(json_object_get(kept->tree, "kind"));
    bool good = kind && strcmp(kind, KIND) == 0 && json_is_array(processes);
    for (size_t i = 0; good && i < json_array_size(processes); i++)
        good = kept_read_process(kept, json_array_get(processes, i));
    if (!good)
        tool_error("'%s' is no file of `gpushare explain -o FILE -- CMD`", side->path);
    else if (kept->count == 0)
        tool_error("no process of '%s' allocated GPU memory", side->name);
    return good && kept->count > 0;
}

static void free_kept(struct kept *kept) {
    json_decref(kept->tree);
    free(kept->kinds);
}

/* --- fitting --- */

struct fit {
    const struct kind *exporter, *importer;
};

static bool fit_kind_fits(const struct kind *exporter, const struct kind *importer) {
    return strcmp(exporter->device, importer->device) == 0 && importer->size <= exporter->size &&
           exporter->size / 2 < importer->size;
}

static bool fit_is_equal(const struct fit *fit) {
    return fit->exporter->size == fit->importer->size;
}

/* Equal sizes first, and of those the largest: it is the least by chance that they are equal. */
static int by_likelihood(const void *left, const void *right) {
    const struct fit *a = left, *b = right;
    if (fit_is_equal(a) != fit_is_equal(b))
        return fit_is_equal(b) - fit_is_equal(a);
    return tool_compare(b->importer->size, a->importer->size);
}

static uint64_t pairs(const struct fit *fit) {
    return fit->exporter->count < fit->importer->count ? fit->exporter->count
                                                       : fit->importer->count;
}

/* --- the text --- */

static void print_fits(const struct fit *fits, size_t count) {
    static const struct table_column columns[] = {{"EXPORTER", 0}, {"SIZE", 1}, {"TIMES", 1},
                                                  {"IMPORTER", 0}, {"SIZE", 1}, {"TIMES", 1},
                                                  {"FIT", 0}};
    struct table table = TABLE(columns);
    for (size_t i = 0; i < count; i++) {
        const struct kind *const sides[] = {fits[i].exporter, fits[i].importer};
        for (int side = 0; side < 2; side++) {
            TABLE_CELLS(&table, sides[side]->program, printable_size_value(sides[side]->size).text);
            table_cell(&table, TERM_PLAIN, "%" PRIu64, sides[side]->count);
        }
        table_cell(&table, TERM_PLAIN, "%s",
                   !fit_is_equal(&fits[i]) ? "it asks for less"
                   : pairs(&fits[i]) == 1  ? "one with one"
                                           : "the n-th with the n-th");
    }
    table_print(stderr, &table, "");
}

/* malloc'ed */
static char *rule_text(const struct fit *fit, const struct kind *kind, const char *role) {
    const uint64_t count = pairs(fit);
    TOOL_TEMP char *name = tool_copy(fit->exporter->program + strspn(fit->exporter->program, "."));
    for (char *at = name; *at; at++)
        if (!gps_is_name_char(*at))
            *at = '-';
    TOOL_TEMP char *index =
        count > 1 ? tool_format("index = 0..%" PRIu64 "\n", count - 1) : tool_copy("");
    return tool_format("[region %.100s%s]\nprogram = %s\nsize = %s\n%srole = %s\n%s", name,
                       count > 1 ? "-{n}" : "", kind->program,
                       printable_size_value(kind->size).text, index, role,
                       fit->exporter->pool || fit->importer->pool ? "backing = vmm\n" : "");
}

static void list_sizes(const struct kept *kept, const char *path) {
    TOOL_TEMP char *sizes = NULL;
    for (size_t i = 0; i < kept->count; i++)
        tool_list(&sizes, "%s", printable_size_value(kept->kinds[i].size).text);
    tool_error("%s has: %s", path, tool_or(sizes, "nothing"));
}

/* --- two files --- */

static struct fit *find_fits(const struct kept *exporter, const struct kept *importer,
                             size_t *count) {
    struct fit *found = NULL;
    *count = 0;
    for (size_t i = 0; i < exporter->count; i++)
        for (size_t j = 0; j < importer->count; j++) {
            const struct fit fit = {&exporter->kinds[i], &importer->kinds[j]};
            if (fit_kind_fits(fit.exporter, fit.importer) &&
                strcmp(fit.exporter->program, fit.importer->program) != 0)
                TOOL_APPEND(found, *count, fit);
        }
    TOOL_SORT(found, *count, by_likelihood);
    return found;
}

static bool are_namesakes(const struct kept *a, const struct kept *b) {
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->kinds[i].program, b->kinds[0].program) != 0)
            return false;
    return true;
}

static bool fit_find_rules(struct fit_rules *rules, const struct kept *a, const char *exporter,
                           const struct kept *b, const char *importer) {
    size_t count;
    TOOL_TEMP struct fit *found = find_fits(a, b, &count);
    if (count > 0) {
        print_fits(found, count);
        fputs("\nThe rules are for the first of them; the first program exports.\n", stderr);
        rules->exporter = rule_text(&found[0], found[0].exporter, "export");
        rules->importer = rule_text(&found[0], found[0].importer, "import");
    } else if (are_namesakes(a, b)) {
        tool_error("both programs are called %s, and rules tell programs apart by their names: run "
                   "one with GPUSHARE_PROGRAM=OTHER",
                   a->kinds[0].program);
    } else {
        tool_error(
            "nothing fits: the second program must ask on the same GPU for a size of the first "
            "one's, or for less; half of it or less would get the beginning of the region, which "
            "is hardly meant");
        list_sizes(a, exporter);
        list_sizes(b, importer);
    }
    return count > 0;
}

bool fit_find(struct fit_rules *rules, const struct fit_side *exporter,
              const struct fit_side *importer) {
    struct kept a = {0}, b = {0};
    const bool good = kept_read(&a, exporter) && kept_read(&b, importer) &&
                      fit_find_rules(rules, &a, exporter->name, &b, importer->name);
    free_kept(&a);
    free_kept(&b);
    return good;
}

void fit_print(FILE *out, const struct fit_rules *rules, const char *more) {
    fprintf(out, "%s%s\n%s", rules->exporter, more, rules->importer);
    fflush(stdout); /* what follows is on stderr; a file's error is told where it is closed */
}

void fit_free(struct fit_rules *rules) {
    free(rules->exporter);
    free(rules->importer);
}
