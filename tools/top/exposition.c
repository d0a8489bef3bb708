/*
 * exposition.c - see exposition.h.
 *
 * A table says which members of the usage's JSON are metrics and which are their labels. A reader
 * refuses a file in which two series have the same labels; so what has the same labels, as regions
 * without a name, is added up.
 */
#include "exposition.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/string_map.h"
#include "cli/tool.h"
#include "usage_json.h"
#include "util/text.h"

#define LABELS_MAX  4
#define METRICS_MAX 5

/* Metrics that have the same labels. Each element of an array has them; with `inner`, each element
 * of an array in that element, to whose members those of the outer one are added. */
static const struct family {
    const char *array, *inner;
    const char *labels[LABELS_MAX][2]; /* name and member */
    struct {
        const char *name, *member, *help; /* a name ends with its unit, if there is one */
    } metrics[METRICS_MAX];
} families[] = {
    {"gpus",
     NULL,
     {{"gpu", "device"}},
     {{"memory_in_use_bytes", "in_use", "GPU memory that the directory knows of."},
      {"memory_without_sharing_bytes", "without_sharing",
       "GPU memory that copies for each process would take."},
      {"memory_saved_bytes", "saved", "GPU memory that sharing saves."},
      {"memory_kept_bytes", "kept", "GPU memory in use that no process has, kept for one to come."},
      {"merged_blocks", "blocks", "Blocks of role = merge."}}},
    {"regions",
     NULL,
     {{"gpu", "device"}, {"region", "name"}},
     {{"region_bytes", "in_use",
       "Memory of a region; of all regions without a name, where region is empty."},
      {"region_users", "users", "Processes that have the region open, without its owner."}}},
    {"processes",
     "gpus",
     {{"command", "command"}, {"pid", "pid"}, {"pid_namespace", "pid_ns"}, {"gpu", "device"}},
     {{"process_own_bytes", "own", "Memory that no other process has."},
      {"process_shared_bytes", "shared", "Memory that other processes have, too."},
      {"process_proportional_bytes", "proportional",
       "Own memory, and the process's part of what it shares."},
      {"process_saved_bytes", "saved", "What the process would take more without sharing."}}},
    {"processes",
     NULL,
     {{"command", "command"}, {"pid", "pid"}, {"pid_namespace", "pid_ns"}},
     {{"process_driver_bytes", "driver",
       "What the driver says that the process uses, on all GPUs; shared memory is its "
       "exporter's."}}},
    {"findings",
     "counts",
     {{"finding", "finding"}, {"level", "level"}},
     {{"findings", "count", "Findings in the logs that there are."}}},
};

/* --- labels --- */

struct labels {
    char text[2048];
    struct gps_text out;
};

static void add_label(struct labels *labels, const char *name, const char *value) {
    char clean[1024];
    struct gps_text plain = GPS_TEXT(clean);
    gps_text_plain(&plain, value);
    gps_text_strs(&labels->out, labels->out.length > 0 ? "," : "", name, "=\"");
    for (const char *c = clean; *c != 0; c++) {
        if (*c == '"' || *c == '\\')
            gps_text_str(&labels->out, "\\");
        gps_text_bytes(&labels->out, c, 1);
    }
    gps_text_str(&labels->out, "\"");
}

static void begin_labels(struct labels *labels, const json_t *usage) {
    labels->out = GPS_TEXT(labels->text);
    add_label(labels, "directory", json_string_value(json_object_get(usage, "directory")));
}

/* Adds a label; the value is a number, a string, or null. */
static void add_member(struct labels *labels, const char *name, const json_t *value) {
    char number[24];
    snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    add_label(labels, name,
              json_is_integer(value) ? number : tool_or(json_string_value(value), ""));
}

/* --- series --- */

struct series {
    json_int_t values[METRICS_MAX];
    const char *labels; /* NULL: it is new */
};

struct set {
    const struct family *family;
    const json_t *usage;
    struct string_map *map;
    struct series **series; /* in the order in which they came */
    size_t count;
};

static void add_element(struct set *set, const json_t *outer, const json_t *inner) {
    const struct family *family = set->family;
    struct labels labels;
    begin_labels(&labels, set->usage);
    for (size_t i = 0; i < LABELS_MAX && family->labels[i][0]; i++) {
        const json_t *value = json_object_get(inner, family->labels[i][1]);
        add_member(&labels, family->labels[i][0],
                   value ? value : json_object_get(outer, family->labels[i][1]));
    }
    if (json_is_null(json_object_get(inner, family->metrics[0].member)))
        return; /* it is not known */
    struct series *series = string_map_make(&set->map, labels.text, sizeof(*series));
    if (!series->labels) {
        series->labels = tool_copy(labels.text);
        set->series = tool_grow(set->series, set->count, sizeof(series));
        set->series[set->count++] = series;
    }
    for (size_t i = 0; i < METRICS_MAX && family->metrics[i].name; i++) {
        const json_t *value = json_object_get(inner, family->metrics[i].member);
        series->values[i] +=
            json_is_array(value) ? (json_int_t)json_array_size(value) : json_integer_value(value);
    }
}

static void add_array(struct set *set, const json_t *outer, const json_t *array) {
    size_t i;
    json_t *element;
    json_array_foreach(array, i, element) {
        if (set->family->inner && !outer)
            add_array(set, element, json_object_get(element, set->family->inner));
        else
            add_element(set, outer, element);
    }
}

static void print_metric(FILE *out, const struct set *set, size_t i) {
    static const char unit[] = "_bytes";
    const char *name = set->family->metrics[i].name;
    const size_t length = strlen(name), ending = sizeof(unit) - 1;
    fprintf(out, "# HELP gpushare_%s %s\n# TYPE gpushare_%s gauge\n", name,
            set->family->metrics[i].help, name);
    if (length > ending && strcmp(name + length - ending, unit) == 0)
        fprintf(out, "# UNIT gpushare_%s %s\n", name, unit + 1);
    for (size_t k = 0; k < set->count; k++)
        fprintf(out, "gpushare_%s{%s} %" JSON_INTEGER_FORMAT "\n", name, set->series[k]->labels,
                set->series[k]->values[i]);
}

static void free_series(void *series) {
    free((char *)((struct series *)series)->labels);
}

static void write_family(FILE *out, const struct family *family, const json_t *usage) {
    struct set set = {.family = family, .usage = usage};
    const json_t *array = json_object_get(usage, family->array);
    if (json_is_object(array))
        add_array(&set, array, json_object_get(array, family->inner));
    else
        add_array(&set, NULL, array);
    for (size_t i = 0; set.count > 0 && i < METRICS_MAX && family->metrics[i].name; i++)
        print_metric(out, &set, i);
    string_map_free(&set.map, free_series);
    free(set.series);
}

void exposition_write(FILE *out, const struct usage *usage) {
    json_t *tree = usage_json(usage);
    struct labels labels;
    begin_labels(&labels, tree);
    add_label(&labels, "version", GPS_VERSION);
    fprintf(out,
            "# HELP gpushare_build_info 1, with the version of the tool.\n"
            "# TYPE gpushare_build_info gauge\ngpushare_build_info{%s} 1\n",
            labels.text);
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
        write_family(out, &families[i], tree);
    fputs("# EOF\n", out);
    json_decref(tree);
}
