/*
 * exposition.c - see exposition.h.
 *
 * A reader refuses a file in which two series have the same labels. So series are collected first,
 * and what has the same labels, as regions without a name, is added up.
 */
#include "exposition.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/printable.h"
#include "cli/string_map.h"
#include "cli/tool.h"
#include "log/log.h"
#include "util/text.h"

#define VALUES_MAX 5

struct metric {
    const char *name, *unit, *help; /* unit NULL: none; else the name ends with it */
};

struct series {
    uint64_t values[VALUES_MAX];
    const char *labels;
};

/* Metrics with the same labels. */
struct set {
    const struct metric *metrics;
    size_t metric_count;
    struct string_map *map;
    struct series **series; /* in the order in which they came */
    size_t count;
};
#define SET(metrics)                                                                               \
    ((struct set){(metrics), sizeof(metrics) / sizeof((metrics)[0]), NULL, NULL, 0})

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

static void begin_labels(struct labels *labels, const struct usage *usage) {
    labels->out = GPS_TEXT(labels->text);
    add_label(labels, "directory", usage->view.store.path);
}

static void add_number_label(struct labels *labels, const char *name, uint64_t value) {
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    add_label(labels, name, text);
}

/* --- sets --- */

static void add(struct set *set, const struct labels *labels, const uint64_t *values) {
    struct series *series = string_map_make(&set->map, labels->text, sizeof(*series));
    if (!series->labels) {
        series->labels = tool_copy(labels->text);
        set->series = tool_grow(set->series, set->count, sizeof(series));
        set->series[set->count++] = series;
    }
    for (size_t i = 0; i < set->metric_count; i++)
        series->values[i] += values[i];
}

static void free_series(void *series) {
    free((char *)((struct series *)series)->labels);
}

static void print(FILE *out, struct set *set) {
    for (size_t i = 0; i < set->metric_count; i++) {
        const struct metric *metric = &set->metrics[i];
        if (set->count == 0)
            break;
        fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n", metric->name, metric->help, metric->name);
        if (metric->unit)
            fprintf(out, "# UNIT %s %s\n", metric->name, metric->unit);
        for (size_t k = 0; k < set->count; k++)
            fprintf(out, "%s{%s} %" PRIu64 "\n", metric->name, set->series[k]->labels,
                    set->series[k]->values[i]);
    }
    string_map_free(&set->map, free_series);
    free(set->series);
}

/* --- what there is --- */

static void write_info(FILE *out, const struct usage *usage) {
    static const struct metric metrics[] = {
        {"gpushare_build_info", NULL, "1, with the version of the tool."}};
    struct set set = SET(metrics);
    struct labels labels;
    begin_labels(&labels, usage);
    add_label(&labels, "version", GPS_VERSION);
    add(&set, &labels, (uint64_t[]){1});
    print(out, &set);
}

static void write_gpus(FILE *out, const struct usage *usage) {
    static const struct metric metrics[] = {
        {"gpushare_memory_in_use_bytes", "bytes", "GPU memory that the directory knows of."},
        {"gpushare_memory_without_sharing_bytes", "bytes",
         "GPU memory that copies for each process would take."},
        {"gpushare_memory_saved_bytes", "bytes", "GPU memory that sharing saves."},
        {"gpushare_memory_kept_bytes", "bytes",
         "GPU memory in use that no process has, kept for one to come."},
        {"gpushare_merged_blocks", NULL, "Blocks of role = merge."}};
    struct set set = SET(metrics);
    for (size_t i = 0; i < usage->accounting.gpu_count; i++) {
        const struct account_gpu *gpu = &usage->accounting.gpus[i];
        struct labels labels;
        begin_labels(&labels, usage);
        add_label(&labels, "gpu", printable_uuid(gpu->device).text);
        add(&set, &labels,
            (uint64_t[]){gpu->in_use, gpu->unshared, gpu->saved, gpu->kept, gpu->blocks});
    }
    print(out, &set);
}

static void write_regions(FILE *out, const struct usage *usage) {
    static const struct metric metrics[] = {
        {"gpushare_region_bytes", "bytes",
         "Memory of a region; of all regions without a name, where region is empty."},
        {"gpushare_region_users", NULL, "Processes that have the region open, without its owner."}};
    struct set set = SET(metrics);
    for (size_t i = 0; i < usage->view.region_count; i++) {
        const struct view_region *region = &usage->view.regions[i];
        const uint64_t bytes = accounting_in_use(region);
        struct labels labels;
        if (view_merged(region) || bytes == 0)
            continue;
        begin_labels(&labels, usage);
        add_label(&labels, "gpu", printable_uuid(region->record.device).text);
        add_label(&labels, "region", region->record.name);
        add(&set, &labels, (uint64_t[]){bytes, region->user_count});
    }
    print(out, &set);
}

static void add_process_labels(struct labels *labels, const struct usage *usage,
                               const struct gps_owner *owner) {
    begin_labels(labels, usage);
    add_label(labels, "command", owner->command);
    add_number_label(labels, "pid", owner->pid);
    add_number_label(labels, "pid_namespace", owner->pid_ns);
}

static void write_processes(FILE *out, const struct usage *usage) {
    static const struct metric metrics[] = {
        {"gpushare_process_own_bytes", "bytes", "Memory that no other process has."},
        {"gpushare_process_shared_bytes", "bytes", "Memory that other processes have, too."},
        {"gpushare_process_proportional_bytes", "bytes",
         "Own memory, and the process's part of what it shares."},
        {"gpushare_process_saved_bytes", "bytes",
         "What the process would take more without sharing."}};
    struct set set = SET(metrics);
    for (size_t i = 0; i < usage->accounting.count; i++) {
        const struct account *account = &usage->accounting.accounts[i];
        const struct account_bytes *bytes = &account->bytes;
        struct labels labels;
        add_process_labels(&labels, usage, &account->process->owner);
        add_label(&labels, "gpu", printable_uuid(account->device).text);
        add(&set, &labels,
            (uint64_t[]){bytes->own, bytes->shared, bytes->proportional, account_saved(bytes)});
    }
    print(out, &set);
}

static void write_driver(FILE *out, const struct usage *usage) {
    static const struct metric metrics[] = {
        {"gpushare_process_driver_bytes", "bytes",
         "What the driver says that the process uses, on all GPUs; shared memory is its "
         "exporter's."}};
    struct set set = SET(metrics);
    for (size_t i = 0; i < usage->process_count; i++) {
        const struct usage_process *process = &usage->processes[i];
        struct labels labels;
        if (!process->driver_known)
            continue;
        add_process_labels(&labels, usage, &process->account.process->owner);
        add(&set, &labels, &process->driver);
    }
    print(out, &set);
}

static void write_findings(FILE *out, const struct usage *usage) {
    static const struct metric metrics[] = {
        {"gpushare_findings", NULL, "Findings in the logs that there are."}};
    struct set set = SET(metrics);
    for (size_t i = 0; i < usage->tail.count_count; i++) {
        const struct log_tail_count *count = &usage->tail.counts[i];
        struct labels labels;
        begin_labels(&labels, usage);
        add_label(&labels, "finding", count->id);
        add_label(&labels, "level", gps_level_name(count->level));
        add(&set, &labels, &count->count);
    }
    print(out, &set);
}

void exposition_write(FILE *out, const struct usage *usage) {
    write_info(out, usage);
    write_gpus(out, usage);
    write_regions(out, usage);
    write_processes(out, usage);
    write_driver(out, usage);
    write_findings(out, usage);
    fputs("# EOF\n", out);
}
