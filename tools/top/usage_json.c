#include "usage.h"

#include "cli/tool.h"
#include "directory/view_format.h"
#include "directory/workload.h"
#include "log/log.h"
#include "util/clock.h"

static json_t *gpu_json(const struct account_gpu *gpu) {
    json_t *object = json_tree_pack("{}");
    if (gpu->device)
        json_tree_add(object, "{s:s}", "device", printable_uuid(gpu->device).text);
    json_tree_add(object, "{s:I, s:I, s:I, s:I, s:I}", "in_use", gpu->in_use, "without_sharing",
                  gpu->unshared, "saved", gpu->saved, "kept", gpu->kept, "blocks", gpu->blocks);
    return object;
}

static json_t *usage_known_json(uint64_t value) {
    return value == USAGE_UNKNOWN ? json_tree_pack("n") : json_tree_pack("I", value);
}

static json_t *usage_process_json(const struct usage *usage, const struct usage_process *process) {
    const struct accounting *accounting = &usage->accounting;
    const struct account *account = &process->account;
    const struct gps_owner *owner = &account->process->owner;
    json_t *object = view_format_owner_json(owner), *gpus = json_tree_pack("[]");
    json_object_update_new(object, view_format_bytes_json(&account->bytes));
    json_object_update_new(object, workload_json(owner));
    TOOL_EACH(const struct account, part, accounting->accounts, accounting->count) {
        if (part->process != account->process)
            continue;
        json_t *gpu = json_tree_pack("{s:s}", "device", printable_uuid(part->device).text);
        json_object_update_new(gpu, view_format_bytes_json(&part->bytes));
        json_tree_add(gpu, "{s:I}", "made", part->made);
        json_tree_append(gpus, gpu);
    }
    const uint64_t suspended =
        view_suspended(account->process)
            ? view_nanos_since(&usage->view, account->process->answer.since) / GPS_SECOND
            : USAGE_UNKNOWN;
    json_tree_add(object, "{s:I, s:I, s:o, s:o, s:i, s:I, s:o, s:o, s:o, s:o}", "regions",
                  account->regions, "blocks", account->merged.blocks, "unmerged",
                  view_format_not_merging_json(&usage->view, owner), "private",
                  private_bytes_json(&usage->view, owner), "promised", 0, "made", account->made,
                  "driver", usage_known_json(process->driver), "fair",
                  usage_known_json(process->fair), "gpus", gpus, "suspended",
                  usage_known_json(suspended));
    return object;
}

static void usage_json_add_holder(void *array, const struct gps_owner *owner) {
    json_tree_append(array, view_format_owner_json(owner));
}

static void add_rate(json_t *object, struct usage_rate rate) {
    if (rate.frames < 0)
        json_tree_add(object, "{s:n, s:n}", "frames_per_second", "left_out_per_second");
    else
        json_tree_add(object, "{s:f, s:f}", "frames_per_second", rate.frames, "left_out_per_second",
                      rate.left_out);
}

/* The members of view_format_frames_json, and the rates. */
static json_t *usage_frames_json(const struct usage_frames *frames) {
    json_t *object = view_format_frames_json(frames->region, &frames->now);
    json_t *readers = json_object_get(object, "readers");
    add_rate(object, frames->rate);
    for (size_t i = 0; i < json_array_size(readers); i++)
        add_rate(json_array_get(readers, i), frames->readers[i]);
    return object;
}

static json_t *regions_json(const struct usage *usage) {
    json_t *array = json_tree_pack("[]");
    TOOL_EACH(const struct view_region, region, usage->view.regions, usage->view.region_count) {
        const struct usage_frames *frames = usage_frames_of(usage, region);
        const uint64_t bytes = accounting_in_use(region);
        if (view_merged(region) || bytes == 0)
            continue;
        json_t *object = json_tree_pack("{}"), *holders = json_tree_pack("[]");
        view_format_region_json(&usage->view, region, object);
        accounting_each_holder(region, usage_json_add_holder, holders);
        json_tree_add(object, "{s:I, s:I, s:o}", "in_use", bytes, "without_sharing",
                      accounting_unshared(region), "holders", holders);
        if (frames)
            json_object_set_new(object, "frames", usage_frames_json(frames));
        json_tree_append(array, object);
    }
    return array;
}

static json_t *counts_json(const struct log_tail *tail) {
    json_t *array = json_tree_pack("[]");
    for (size_t i = 0; i < tail->count_count; i++)
        json_tree_append(array, json_tree_pack("{s:o, s:s, s:I}", "finding",
                                               json_tree_string(tail->counts[i].id), "level",
                                               gps_level_name(tail->counts[i].level), "count",
                                               tail->counts[i].count));
    return array;
}

static json_t *latest_json(const struct log_tail *tail) {
    json_t *array = json_tree_pack("[]");
    for (size_t i = tail->finding_count; i > 0; i--) {
        const struct log_line *line = tail->findings[i - 1];
        json_tree_append(
            array,
            json_tree_pack("{s:s, s:o, s:s, s:o, s:I, s:I, s:I, s:o, s:o, s:o}", "ts", line->ts,
                           "finding", json_tree_string(line->finding), "level",
                           gps_level_name(line->level), "api", json_tree_string(line->api), "count",
                           log_tail_times(line), "pid", line->process.pid, "pid_ns",
                           line->process.pid_ns, "command",
                           json_tree_string(tool_or(line->process.command, "?")), "name",
                           json_tree_string(line->name), "detail", json_tree_string(line->detail)));
    }
    return array;
}

json_t *usage_json(const struct usage *usage) {
    json_t *gpus = json_tree_pack("[]"), *processes = json_tree_pack("[]");
    for (size_t i = 0; i < usage->accounting.gpu_count; i++)
        json_tree_append(gpus, gpu_json(&usage->accounting.gpus[i]));
    for (size_t i = 0; i < usage->process_count; i++)
        json_tree_append(processes, usage_process_json(usage, &usage->processes[i]));
    return json_tree_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:{s:I, s:o, s:o}}", "time",
        json_tree_seconds(usage->view.now), "directory", json_tree_string(usage->view.store.path),
        "total", gpu_json(&usage->accounting.total), "gpus", gpus, "processes", processes,
        "regions", regions_json(usage), "findings", "logs", usage->tail.logs.file_count, "counts",
        counts_json(&usage->tail), "latest", latest_json(&usage->tail));
}
