/*
 * metrics.c - `gpushare metrics`: writes the usage for Prometheus.
 *
 * A table says which members of the usage's JSON are metrics and which are their labels. A reader
 * refuses a file in which two series have the same labels; so what has the same labels, as regions
 * without a name, is added up. The text is both Prometheus' format (0.0.4, as node_exporter's
 * textfile collector reads it) and OpenMetrics 1.0. All metrics are gauges. Each has the label
 * `directory`, so that the files of several users and namespaces can stand side by side.
 *
 * The new file is written beside the old one, then replaces it. A reader sees one of them whole.
 */
#include <sys/stat.h>

#include "cli/output.h"
#include "cli/tool.h"
#include "usage.h"
#include "util/text.h"

enum { OPTION_OUTPUT };

#define LABELS_MAX  5
#define METRICS_MAX 5

/* Metrics of the same labels. Each element of an array has them; with `inner`, an object in it, or
 * each element of an array in it, to whose members the outer ones are added. */
static const struct family {
    const char *array, *inner;         /* "frames.readers": a member of a member */
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
    {"regions",
     "frames",
     {{"gpu", "device"}, {"region", "name"}},
     {{"frames", "newest", "Whole frames that the exporter has published."},
      {"frames_left_out", "left_out", "Frames of the exporter that found no slot free."},
      {"frames_late", "late", "Times that the exporter waited for a reader in vain."},
      {"frames_odd", "odd", "Frames with another number of waits than the usual one."},
      {"frames_age_seconds", "age", "Since when the newest whole frame is published."}}},
    {"regions",
     "frames.readers",
     {{"gpu", "device"},
      {"region", "name"},
      {"command", "command"},
      {"pid", "pid"},
      {"pid_namespace", "pid_ns"}},
     {{"frame_reader_frames", "read", "Whole frames that the reader has had."},
      {"frame_reader_left_out", "left_out", "Whole frames that the reader has not had."},
      {"frame_reader_late", "late", "Times that the reader waited for a frame in vain."},
      {"frame_reader_age_seconds", "age", "Since when the frame that it reads is published."}}},
    {"processes",
     "gpus",
     {{"command", "command"}, {"pid", "pid"}, {"pid_namespace", "pid_ns"}, {"gpu", "device"}},
     {{"process_own_bytes", "own", "Memory that no other process has."},
      {"process_shared_bytes", "shared", "Memory that other processes have, too."},
      {"process_proportional_bytes", "proportional",
       "Own memory, and the process's part of what it shares."},
      {"process_saved_bytes", "saved", "What the process would take more without sharing."},
      {"process_cumemcreate_bytes", "made",
       "Own memory that the program has made by cuMemCreate."}}},
    {"processes",
     NULL,
     {{"command", "command"}, {"pid", "pid"}, {"pid_namespace", "pid_ns"}},
     {{"process_driver_bytes", "driver",
       "What the driver says that the process uses, on all GPUs; shared memory is its "
       "exporter's."},
      {"process_suspended_seconds", "suspended",
       "Since when the process is suspended; absent for others."}}},
    {"processes",
     "private",
     {{"command", "command"}, {"pid", "pid"}, {"pid_namespace", "pid_ns"}, {"reason", "reason"}},
     {{"process_private_bytes", "bytes",
       "Memory that merge rules took and that saves nothing, by reason."}}},
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

/* What a process belongs to, where that is known. */
static void add_workload(struct labels *labels, const json_t *process) {
    static const char *const names[] = {"pod", "container", "slurm_job", "slurm_step"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = json_string_value(json_object_get(process, names[i]));
        if (value)
            add_label(labels, names[i], value);
    }
}

/* --- series --- */

struct set {
    const struct family *family;
    const json_t *usage;
    json_t *series; /* the values by metric, by labels */
};

/* The value of a series that has had one already, or NULL: numbers are added up; of times, which
 * are fractions, the longest counts. */
static json_t *joined(const json_t *before, const json_t *member) {
    const double time = json_real_value(member), other = json_real_value(before);
    if (json_is_real(member))
        return json_tree_pack("f", time > other ? time : other);
    const json_int_t more =
        json_is_array(member) ? (json_int_t)json_array_size(member) : json_integer_value(member);
    return json_tree_pack("I", json_integer_value(before) + more);
}

static void add_element(struct set *set, const json_t *outer, const json_t *inner) {
    const struct family *family = set->family;
    struct labels labels;
    begin_labels(&labels, set->usage);
    for (size_t i = 0; i < LABELS_MAX && family->labels[i][0]; i++) {
        const json_t *value = json_object_get(inner, family->labels[i][1]);
        add_member(&labels, family->labels[i][0],
                   value ? value : json_object_get(outer, family->labels[i][1]));
    }
    if (strcmp(family->array, "processes") == 0)
        add_workload(&labels, outer ? outer : inner);
    if (!json_object_get(set->series, labels.text))
        json_object_set_new_nocheck(set->series, labels.text, json_tree_pack("{}"));
    json_t *values = json_object_get(set->series, labels.text);
    for (size_t i = 0; i < METRICS_MAX && family->metrics[i].name; i++) {
        const char *metric = family->metrics[i].name;
        const json_t *member = json_object_get(inner, family->metrics[i].member);
        if (!json_is_null(member)) /* it is known */
            json_object_set_new(values, metric, joined(json_object_get(values, metric), member));
    }
}

static const json_t *member_at(const json_t *object, const char *path) {
    while (path[0] != 0) {
        const size_t length = strcspn(path, ".");
        TOOL_TEMP char *name = tool_format("%.*s", (int)length, path);
        object = json_object_get(object, name);
        path += length + (path[length] == '.');
    }
    return object;
}

static void add_array(struct set *set, const json_t *outer, const json_t *array) {
    size_t i;
    json_t *element;
    json_array_foreach(array, i, element) {
        const json_t *inner =
            set->family->inner && !outer ? member_at(element, set->family->inner) : NULL;
        if (json_is_object(inner))
            add_element(set, element, inner);
        else if (set->family->inner && !outer)
            add_array(set, element, inner);
        else
            add_element(set, outer, element);
    }
}

static bool metrics_set_has_any(const struct set *set, const char *name) {
    const char *labels;
    json_t *values;
    json_object_foreach(set->series, labels, values) {
        if (json_object_get(values, name))
            return true;
    }
    return false;
}

static void print_metric(FILE *out, const struct set *set, size_t i) {
    const char *name = set->family->metrics[i].name, *unit = strrchr(name, '_');
    if (!metrics_set_has_any(set, name))
        return;
    fprintf(out, "# HELP gpushare_%s %s\n# TYPE gpushare_%s gauge\n", name,
            set->family->metrics[i].help, name);
    if (unit && (strcmp(unit, "_bytes") == 0 || strcmp(unit, "_seconds") == 0))
        fprintf(out, "# UNIT gpushare_%s %s\n", name, unit + 1);
    const char *labels;
    json_t *values;
    json_object_foreach(set->series, labels, values) {
        const json_t *value = json_object_get(values, name);
        if (json_is_real(value))
            fprintf(out, "gpushare_%s{%s} %.3f\n", name, labels, json_real_value(value));
        else if (value)
            fprintf(out, "gpushare_%s{%s} %" JSON_INTEGER_FORMAT "\n", name, labels,
                    json_integer_value(value));
    }
}

static void write_family(FILE *out, const struct family *family, const json_t *usage) {
    struct set set = {family, usage, json_tree_pack("{}")};
    const json_t *array = json_object_get(usage, family->array);
    if (json_is_object(array))
        add_array(&set, array, json_object_get(array, family->inner));
    else
        add_array(&set, NULL, array);
    for (size_t i = 0; i < METRICS_MAX && family->metrics[i].name; i++)
        print_metric(out, &set, i);
    json_decref(set.series);
}

static void write_metrics(FILE *out, const struct usage *usage) {
    json_auto_t *tree = usage_json(usage);
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
}

/* --- the verb --- */

/* Everybody may read the file, as node_exporter does. False: stderr says why. */
static bool metrics_replace_file(const char *path, const struct usage *usage) {
    TOOL_TEMP char *temporary = tool_format("%s.XXXXXX", path);
    const int descriptor = mkostemp(temporary, O_CLOEXEC);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    if (!file)
        return tool_error("cannot write '%s': %s", path, strerror(errno));
    fchmod(descriptor, 0644);
    write_metrics(file, usage);
    bool good = output_close(file, path);
    if (good && rename(temporary, path) != 0) {
        tool_error("cannot write '%s': %s", path, strerror(errno));
        good = false;
    }
    if (!good)
        unlink(temporary);
    return good;
}

static int run_metrics(const struct tool_args *args) {
    static struct usage usage;
    const char *path = tool_or(args->values[OPTION_OUTPUT], "-");
    usage_begin(&usage, args->operands, (size_t)args->operand_count);
    bool good = usage_read(&usage);
    if (good && strcmp(path, "-") == 0)
        write_metrics(stdout, &usage);
    else if (good)
        good = metrics_replace_file(path, &usage);
    usage_end(&usage);
    return good ? TOOL_OK : TOOL_FAILED;
}

const struct tool_verb tool_verb_metrics = {
    .name = "metrics",
    .operands = "[LOG...]",
    .summary = "write what top shows for Prometheus",
    .details = "Bytes in use and saved of each GPU; bytes and users of each region; own, shared "
               "and proportional bytes of each process; findings. The text is OpenMetrics, too. "
               "For node_exporter's textfile collector give a FILE whose name ends with .prom in "
               "its directory; it is replaced as a whole. `gpushare keeper --metrics=FILE` "
               "writes it again and again. LOGs are as for `gpushare top`.\n",
    .options = {{"output", 'o', "FILE", "write it there; \"-\" is standard output (-)"}},
    .operands_max = 1000000,
    .run = run_metrics,
};
