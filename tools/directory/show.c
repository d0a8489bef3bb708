/*
 * show.c - `gpushare show`: everything about one region or one process.
 *
 * The operand is taken as a region's name, else as a pid ("@NAMESPACE" picks one of several), else
 * as the beginning of a region's id, else as the name of a program. All matches are shown, as of
 * one pid in two pid namespaces; dead and freed ones only where nothing else matches.
 */
#include <time.h>

#include "accounting.h"
#include "cli/table.h"
#include "cli/tool.h"
#include "config/config.h"
#include "directory/name.h"
#include "excluded.h"
#include "find_process.h"
#include "util/clock.h"
#include "view_format.h"
#include "workload.h"

enum { OPTION_JSON };

#define MARGIN "    " /* before a table that belongs to the line above it */

/* --- lines --- */

__attribute__((format(printf, 2, 3))) static void line(const char *label, const char *format, ...) {
    va_list args;
    printf("  %-9s  ", label);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

/* CLOCK_REALTIME of the process's start, which is in clock ticks since boot. */
static uint64_t start_time(const struct view *view, const struct gps_owner *owner) {
    const uint64_t hertz = (uint64_t)sysconf(_SC_CLK_TCK), ticks = owner->start;
    const uint64_t uptime = gps_clock_read(CLOCK_BOOTTIME);
    const uint64_t started = ticks / hertz * GPS_SECOND + ticks % hertz * (GPS_SECOND / hertz);
    return started < uptime ? view->now - (uptime - started) : view->now;
}

static void line_time(const struct view *view, const char *label, uint64_t time) {
    line(label, "%s, %s ago", view_format_time(time).text, view_format_age(view, time).text);
}

static void process_lines(const struct view *view, const struct gps_owner *owner) {
    if (owner->pid_ns == 0)
        line("pid ns", "unknown");
    else
        line("pid ns", "%" PRIu64 "%s", owner->pid_ns,
             owner->pid_ns == view->pid_ns ? "" : ", not the one you are in");
    line("uid", "%u", owner->uid);
    line_time(view, "started", start_time(view, owner));
}

static void address_cell(const struct view_hold *hold, struct table *table) {
    if (hold->slot.state == GPS_SLOT_INTENT)
        table_cell(table, TERM_YELLOW, "opening");
    else
        table_cell(table, TERM_PLAIN, "0x%" PRIx64 "%s", hold->slot.address,
                   view_cached(hold) ? " (cached)" : "");
}

static const char *opened_by(const struct gps_slot *slot) {
    return slot->via == GPS_VIA_RULE    ? "rule"
           : slot->via == GPS_VIA_MERGE ? "merge rule"
                                        : "program";
}

/* Tells "camera 4242 for an exporter of frames, 5 s of at most 30 s" for each wait of the process,
 * and for the region of this name; NULL: of any. */
static void show_tell_waits(const struct view *view, const struct gps_owner *owner,
                            const char *region, bool warn) {
    for (size_t i = 0; i < view->wait_count; i++) {
        const struct gps_wait_slot *wait = &view->waits[i].wait;
        if ((owner && !gps_owner_equal(&view->waits[i].owner, owner)) ||
            (region && strcmp(wait->name, region) != 0))
            continue;
        TOOL_TEMP char *text = tool_format(
            "%s for %s%s, %s of at most %s", view_format_program(view, &view->waits[i].owner).text,
            gps_wait_whom(wait->via), wait->name, view_format_age(view, wait->since).text,
            printable_duration(view_longest(wait)).text);
        if (warn)
            tool_warn("waiting: %s", text);
        else
            term_line(stdout, "  waiting    %s", text);
    }
}

/* --- a region --- */

static void users_table(const struct view *view, const struct view_region *region) {
    static const struct table_column columns[] = {
        {"COMMAND", 0}, {"PID", 1}, {"ADDRESS", 0}, {"OPENED BY", 0}, {"HELD", 1}};
    struct table table = TABLE(columns);
    TOOL_EACH(const struct view_hold, hold, region->holds, region->hold_count) {
        TABLE_CELLS(&table, view_format_command(view, &hold->owner).text,
                    view_format_pid(view, &hold->owner).text);
        address_cell(hold, &table);
        table_cell(&table, TERM_PLAIN, "%s %s", hold->slot.via == GPS_VIA_PROGRAM ? "the" : "a",
                   opened_by(&hold->slot));
        table_cell(&table, TERM_PLAIN, "%s", view_format_age(view, hold->slot.since).text);
    }
    if (region->hold_count > 0)
        table_print(stdout, &table, MARGIN);
}

static void state_lines(const struct view *view, const struct view_region *region) {
    const struct gps_region_status *status = &region->record.status;
    line("state", "%s%s%s", term_colour(view_format_colour(region)), view_format_state(region),
         term_colour(TERM_PLAIN));
    line("since", "%s, %s ago%s%s", view_format_time(status->changed).text,
         view_format_age(view, status->changed).text,
         region->owner_alive ? "" : "; its owner's last word: ",
         region->owner_alive ? "" : gps_state_name(status->state));
    if (status->until != 0)
        line("until", "%s; then its owner frees it, importer or not",
             view_format_time(status->until).text);
}

/* Prints what only a region that the keeper keeps has. */
static void vmm_lines(const struct view *view, const struct view_region *region) {
    const struct gps_region_record *record = &region->record;
    line("keep", "%s%s", view_format_keep(region).text,
         record->keep == GPS_KEEP_FOR ? " after its last user" : "");
    line("access", "%s", (record->flags & GPS_REGION_READ_ONLY) != 0 ? "read" : "write");
    line("keeper", "%s %s, %s", record->owner.command, view_format_pid(view, &record->owner).text,
         region->owner_alive ? "alive" : "dead; the next one adopts the region");
}

static void readers_table(const struct view *view, const struct view_frames *frames) {
    static const struct table_column columns[] = {{"COMMAND", 0}, {"PID", 1},  {"FRAME", 1},
                                                  {"AGE", 1},     {"READ", 1}, {"LEFT OUT", 1},
                                                  {"LATE", 1}};
    struct table table = TABLE(columns);
    TOOL_EACH(const struct gps_frames_reader, reader, frames->readers, frames->reader_count) {
        TABLE_CELLS(&table, view_format_command(view, &reader->owner).text,
                    view_format_pid(view, &reader->owner).text);
        table_cell(&table, TERM_PLAIN, reader->have ? "%" PRIu64 : "-", reader->have);
        TABLE_CELLS(&table, view_format_frame_age(frames, reader->have, reader->at).text);
        table_cell(&table, TERM_PLAIN, "%" PRIu64, reader->read);
        table_cell(&table, TERM_PLAIN, "%" PRIu64, reader->left_out);
        table_cell(&table, reader->late ? TERM_YELLOW : TERM_PLAIN, "%" PRIu64, reader->late);
    }
    if (frames->reader_count > 0)
        table_print(stdout, &table, MARGIN);
}

static void published_line(const struct view_frames *frames) {
    const struct gps_frames_writer *writer = &frames->said.writer;
    const char *ended = writer->ended ? "; no more come" : "";
    if (writer->newest)
        line("published", "%" PRIu64 ", the newest %s ago%s", writer->newest,
             view_format_frame_age(frames, writer->newest, writer->at).text, ended);
    else
        line("published", "none yet%s", ended);
}

/* The region's whole frames, and the progress of their exporter and readers. */
static void frames_lines(const struct view *view, const struct view_region *region) {
    struct view_frames frames;
    if (!view_frames_read(view, region, &frames))
        return;
    const struct gps_frames_writer *writer = &frames.said.writer;
    const unsigned slots = region->record.frame_slots;
    line("frames", "%s, %u slot%s%s%s", view_frames_mode(region), slots, slots == 1 ? "" : "s",
         frames.status ? "; nothing is known of them: " : "",
         frames.status ? view_frames_trouble(&frames) : "");
    if (frames.status != 0)
        return;
    published_line(&frames);
    if (writer->left_out)
        line("left out", "%" PRIu64 ", for each slot was being read", writer->left_out);
    if (writer->late)
        line("late", "its readers, %" PRIu64 " time%s", writer->late, writer->late == 1 ? "" : "s");
    if (writer->usual)
        line("waits", "%u in each of the last frames: frame_waits = %u", writer->usual,
             writer->usual);
    if (writer->odd)
        line("odd", "%" PRIu64 " with another number of waits than the usual one", writer->odd);
    line("readers", "%zu", frames.reader_count);
    readers_table(view, &frames);
}

static void describe_region(const struct view *view, const struct view_region *region) {
    const struct gps_region_record *record = &region->record;
    const struct gps_owner *owner = gps_record_creator(record);
    const struct printable id = printable_id(&record->id);
    const bool named = record->name[0] != 0;
    printf("%sRegion %s%s\n", term_colour(TERM_BOLD), named ? record->name : id.text,
           term_colour(TERM_PLAIN));
    line("name", "%s", named ? record->name : "none, the program itself exported it");
    line("id", "%s", id.text);
    state_lines(view, region);
    line("requested", "%s", printable_exact_size(record->requested).text);
    line("extent", "%s", printable_exact_size(record->extent).text);
    line("offset", "%" PRIu64 " in its block", record->offset);
    line("device", "%s", printable_uuid(record->device).text);
    line("backing", "%s", view_format_backing(region));
    line_time(view, "created", record->created);
    line("export", "number %" PRIu64 " of its owner", record->generation);
    line("owner", "%s, %s", view_format_program(view, owner).text,
         region->creator_alive ? "alive" : "dead");
    process_lines(view, owner);
    if (view_is_vmm(region))
        vmm_lines(view, region);
    line("users", "%zu", region->user_count);
    users_table(view, region);
    frames_lines(view, region);
    if (named)
        show_tell_waits(view, NULL, record->name, false);
}

/* --- a process --- */

static void region_cells(const struct view_region *region, const struct gps_id *id,
                         struct table *table) {
    table_cell(table, TERM_PLAIN, "%s", region ? view_format_name(region) : "?");
    table_cell(table, TERM_PLAIN, "%.8s", printable_id(id).text);
    table_cell(table, TERM_PLAIN, "%s",
               region ? printable_size(region->record.requested).text : "?");
    if (region)
        table_cell(table, view_format_colour(region), "%s", view_format_state(region));
    else
        table_cell(table, TERM_RED, "no record");
}

/* Prints "2 regions, 64 MiB (67108864 bytes)", and the table of them, unless it is NULL. */
static void regions_lines(const char *label, size_t count, uint64_t bytes, struct table *table) {
    line(label, "%zu region%s%s%s", count, count == 1 ? "" : "s", count == 0 ? "" : ", ",
         count == 0 ? "" : printable_exact_size(bytes).text);
    if (table && count > 0)
        table_print(stdout, table, MARGIN);
}

static bool is_shown(const struct view_region *region) {
    return !view_hidden(region) && !view_merged(region);
}

/* The functions tell_... add members to an object of JSON; where that is NULL they print lines. */

static void tell_exports(const struct view *view, const struct gps_owner *owner, json_t *object) {
    static const struct table_column columns[] = {
        {"NAME", 0}, {"ID", 0}, {"SIZE", 1}, {"STATE", 0}, {"USERS", 1}};
    struct table table = TABLE(columns);
    json_t *exports = object ? json_tree_pack("[]") : NULL;
    size_t count = 0;
    uint64_t bytes = 0;
    TOOL_EACH(const struct view_region, region, view->regions, view->region_count) {
        if (!gps_owner_equal(gps_record_creator(&region->record), owner) || !is_shown(region))
            continue;
        count++;
        bytes += region->record.extent;
        if (object) {
            json_t *export = json_tree_pack("{}");
            view_format_region_json(view, region, export);
            json_tree_append(exports, export);
        } else {
            region_cells(region, &region->record.id, &table);
            table_cell(&table, TERM_PLAIN, "%zu", region->user_count);
        }
    }
    if (object)
        json_tree_add(object, "{s:o, s:I}", "exports", exports, "export_bytes", bytes);
    else
        regions_lines("exports", count, bytes, &table);
}

static void add_hold(const struct view *view, const struct view_hold *hold, json_t *object) {
    const struct gps_slot *slot = &hold->slot;
    json_tree_add(object, "{s:o, s:b, s:b, s:s, s:o}", "address",
                  slot->state == GPS_SLOT_INTENT ? json_null() : json_tree_hex(slot->address),
                  "open", slot->state == GPS_SLOT_OPEN, "cached", view_cached(hold), "via",
                  opened_by(slot), "held", json_tree_seconds(view_nanos_since(view, slot->since)));
}

static void hold_cells(const struct view *view, const struct view_hold *hold, struct table *table) {
    const struct gps_owner *creator =
        hold->region ? gps_record_creator(&hold->region->record) : NULL;
    region_cells(hold->region, &hold->slot.region, table);
    table_cell(table, TERM_PLAIN, "%s %s", creator ? creator->command : "?",
               creator ? view_format_pid(view, creator).text : "");
    address_cell(hold, table);
    table_cell(table, TERM_PLAIN, "%s", view_format_age(view, hold->slot.since).text);
}

static json_t *hold_json(const struct view *view, const struct view_hold *hold) {
    const bool named = hold->region && hold->region->record.name[0] != 0;
    json_t *object =
        json_tree_pack("{s:s, s:o}", "id", printable_id(&hold->slot.region).text, "name",
                       json_tree_string(named ? hold->region->record.name : NULL));
    add_hold(view, hold, object);
    return object;
}

/* Blocks are only summed up. */
static void tell_holds(const struct view *view, const struct gps_owner *owner, json_t *object) {
    static const struct table_column columns[] = {{"NAME", 0},  {"ID", 0},    {"SIZE", 1},
                                                  {"STATE", 0}, {"OWNER", 0}, {"ADDRESS", 0},
                                                  {"HELD", 1}};
    struct table table = TABLE(columns);
    json_t *holds = object ? json_tree_pack("[]") : NULL;
    size_t count = 0;
    uint64_t bytes = 0;
    TOOL_EACH(const struct view_hold, hold, view->holds, view->hold_count) {
        if (!gps_owner_equal(&hold->owner, owner) || !gps_slot_has_region(&hold->slot) ||
            hold->slot.via == GPS_VIA_MERGE || (hold->region && view_merged(hold->region)))
            continue;
        count++;
        bytes += hold->region ? hold->region->record.extent : 0;
        if (object)
            json_tree_append(holds, hold_json(view, hold));
        else
            hold_cells(view, hold, &table);
    }
    if (object)
        json_tree_add(object, "{s:o, s:I}", "holds", holds, "hold_bytes", bytes);
    else
        regions_lines("holds", count, bytes, &table);
}

static bool holds(const struct view_region *region, const struct gps_owner *holder) {
    for (size_t i = 0; i < region->hold_count; i++)
        if (gps_owner_equal(&region->holds[i].owner, holder))
            return true;
    return false;
}

struct pins {
    size_t count;
    uint64_t bytes;
};

/* The regions that `owner` has freed, or left when it died, and that `holder` keeps allocated.
 * `owner` NULL: of all processes. */
static struct pins pins_of(const struct view *view, const struct gps_owner *holder,
                           const struct gps_owner *owner) {
    struct pins pins = {0};
    TOOL_EACH(const struct view_region, region, view->regions, view->region_count) {
        if ((region->owner_alive && !gps_record_over(&region->record)) || !holds(region, holder) ||
            (owner && !gps_owner_equal(gps_record_creator(&region->record), owner)))
            continue;
        pins.count++;
        pins.bytes += region->record.extent;
    }
    return pins;
}

/* Tells of the memory that is freed, but stays allocated as long as processes have it open, and of
 * the events of other processes that this one has open. */
static void tell_pins(const struct view *view, const struct gps_owner *owner, json_t *object) {
    const struct pins pins = pins_of(view, owner, NULL);
    size_t events = 0;
    for (size_t i = 0; i < view->hold_count; i++)
        events += view->holds[i].slot.via == GPS_VIA_EVENT &&
                  gps_owner_equal(&view->holds[i].owner, owner);
    json_t *holders = object ? json_tree_pack("[]") : NULL;
    if (pins.count > 0 && !object)
        regions_lines("pins", pins.count, pins.bytes, NULL);
    for (size_t i = 0; i < view->process_count; i++) {
        const struct gps_owner *holder = &view->processes[i].owner;
        const struct pins theirs = pins_of(view, holder, owner);
        if (theirs.count == 0)
            continue;
        if (object) {
            json_t *pinning = view_format_owner_json(holder);
            json_tree_add(pinning, "{s:I}", "bytes", theirs.bytes);
            json_tree_append(holders, pinning);
        } else {
            line("pinned", "%s that it has freed, by %s %s",
                 printable_exact_size(theirs.bytes).text, holder->command,
                 view_format_pid(view, holder).text);
        }
    }
    if (object)
        json_tree_add(object, "{s:I, s:I, s:o}", "events", events, "pins_bytes", pins.bytes,
                      "pinned_by", holders);
    else if (events > 0)
        line("events", "%zu of other processes open", events);
}

static void describe_states(const struct view *view, const struct view_process *process) {
    const struct gps_slot *slot = view_not_merging(view, &process->owner);
    const struct gps_answer_file *answer = &process->answer;
    if (slot)
        line("unmerged", "nothing is merged for %s: %s", view_format_age(view, slot->since).text,
             gps_not_merging_why(slot->address));
    if (view_suspended(process))
        line("suspended", "for %s; it has let go of %s of shared memory, and %s have left the GPU",
             view_format_age(view, answer->since).text, printable_size(answer->evicted).text,
             printable_size(answer->freed).text);
    if (process->alive && answer->kept)
        line("copies", "%s of its memory on the GPU are in main memory, too",
             printable_size(answer->kept).text);
}

static void tell_memory(const struct view *view, const struct gps_owner *owner, json_t *object) {
    const struct account account = accounting_of(view, owner);
    const struct account_merged *merged = &account.merged;
    if (object) {
        json_tree_add(object, "{s:o, s:I, s:I, s:{s:I, s:I, s:I, s:I, s:I, s:i}}", "memory",
                      view_format_bytes_json(&account.bytes), "made", account.made, "held",
                      account.held, "merged", "blocks", merged->blocks, "mapped", merged->mapped,
                      "saved", merged->saved, "own", merged->own, "untold", merged->untold,
                      "promised", 0);
        return;
    }
    if (account.bytes.unshared > 0)
        line("memory", "own %s, shared %s, proportional %s", printable_size(account.bytes.own).text,
             printable_size(account.bytes.shared).text,
             printable_size(account.bytes.proportional).text);
    if (merged->blocks > 0 || merged->own > 0) {
        line("merged", "%zu block%s, %s", merged->blocks, merged->blocks == 1 ? "" : "s",
             printable_exact_size(merged->mapped).text);
        line("saved", "%s, its part of what all save by them",
             printable_exact_size(merged->saved).text);
        line("own", "%s of what merge rules took", printable_exact_size(merged->own).text);
    }
    if (merged->untold > 0)
        line("untold",
             "%s that merging has saved, and cudaMemGetInfo does not count as free here "
             "(free = steady)",
             printable_exact_size(merged->untold).text);
    if (account.made > 0)
        line("made", "%s by its own cuMemCreate", printable_exact_size(account.made).text);
    if (account.held > 0)
        line("held", "%s of what others made by cuMemCreate, by tokens",
             printable_exact_size(account.held).text);
}

/* The line for each reason has its label once. */
static void describe_private(const struct view *view, const struct gps_owner *owner) {
    const struct private_bytes private = private_bytes_of(view, owner);
    const char *label = "private";
    for (enum gps_private why = 0; why < GPS_PRIVATE_APART; why++) {
        if (private.bytes[why] == 0)
            continue;
        line(label, "%s: %s", printable_exact_size(private.bytes[why]).text, gps_private_why(why));
        label = "";
    }
    if (private.bytes[GPS_PRIVATE_APART] == 0)
        return;
    line("apart", "%s that no other %s has by now: %s",
         printable_exact_size(private.bytes[GPS_PRIVATE_APART]).text, owner->command,
         gps_private_why(GPS_PRIVATE_APART));
    private_apart_help(stdout, "             ");
}

static void tell_exclusions(const struct view *view, const struct gps_owner *owner,
                            json_t *object) {
    const struct excluded noted = excluded_count(&view->store, owner->command);
    const size_t excluded = noted.count - noted.suspected;
    if (object) {
        json_tree_add(object, "{s:I, s:I}", "excluded", excluded, "suspected", noted.suspected);
        return;
    }
    if (excluded > 0)
        line("excluded", "%zu of its program's allocations are never merged (gpushare forget -n)",
             excluded);
    if (noted.suspected > 0)
        line("suspected", "%zu of its program's allocations, of an error 700 (gpushare forget -n)",
             noted.suspected);
}

static void tell_workload(const struct gps_owner *owner) {
    struct cgroups found;
    workload_of(owner, &found);
    if (found.pod[0])
        line("pod", "%s", found.pod);
    if (found.container[0])
        line("container", "%.12s", found.container);
    if (found.slurm_job[0])
        line("Slurm job", "%s%s%s", found.slurm_job, found.slurm_step[0] ? ", step " : "",
             found.slurm_step);
}

static void describe_process(const struct view *view, const struct view_process *process) {
    const struct gps_owner *owner = &process->owner;
    printf("%sProcess %s %s%s\n", term_colour(TERM_BOLD), owner->command,
           view_format_pid(view, owner).text, term_colour(TERM_PLAIN));
    line("state", "%s%s%s", term_colour(process->alive ? TERM_GREEN : TERM_DIM),
         process->alive ? "alive" : "dead", term_colour(TERM_PLAIN));
    const uint32_t here = process->alive ? host_pid(owner) : 0;
    if (here)
        line("pid here", "%u", here);
    tell_workload(owner);
    if (process->arguments[0] != 0)
        term_line(stdout, "  arguments  %s", process->arguments);
    process_lines(view, owner);
    if (process->created != 0)
        line_time(view, "published", process->created);
    tell_exports(view, owner, NULL);
    tell_holds(view, owner, NULL);
    tell_memory(view, owner, NULL);
    describe_private(view, owner);
    describe_states(view, process);
    tell_exclusions(view, owner, NULL);
    tell_pins(view, owner, NULL);
    show_tell_waits(view, owner, NULL, false);
}

/* --- JSON: members named *_at are seconds since 1970; age and held are durations --- */

static void add_owner_facts(const struct view *view, const struct gps_owner *owner, bool alive,
                            json_t *object) {
    json_tree_add(object, "{s:I, s:o, s:b}", "uid", (json_int_t)owner->uid, "started_at",
                  json_tree_seconds(start_time(view, owner)), "alive", alive);
}

static json_t *region_holds(const struct view *view, const struct view_region *region) {
    json_t *holds = json_tree_pack("[]");
    for (size_t i = 0; i < region->hold_count; i++) {
        json_t *hold = view_format_owner_json(&region->holds[i].owner);
        add_hold(view, &region->holds[i], hold);
        json_tree_append(holds, hold);
    }
    return holds;
}

static json_t *region_json(const struct view *view, const struct view_region *region) {
    const struct gps_region_record *record = &region->record;
    json_t *object = json_tree_pack("{s:s}", "kind", "region");
    view_format_region_json(view, region, object);
    json_tree_add(object, "{s:I, s:I, s:I, s:s, s:o, s:o}", "extent", record->extent, "offset",
                  record->offset, "generation", record->generation, "recorded_state",
                  gps_state_name(record->status.state), "created_at",
                  json_tree_seconds(record->created), "state_since",
                  json_tree_seconds(record->status.changed));
    if (view_is_vmm(region))
        json_tree_add(object, "{s:s, s:b}", "access",
                      (record->flags & GPS_REGION_READ_ONLY) != 0 ? "read" : "write",
                      "keeper_alive", region->owner_alive);
    json_t *owner = view_format_owner_json(gps_record_creator(record));
    add_owner_facts(view, gps_record_creator(record), region->creator_alive, owner);
    json_tree_add(object, "{s:o, s:o}", "owner_process", owner, "holds",
                  region_holds(view, region));
    return object;
}

static json_t *show_process_json(const struct view *view, const struct view_process *process) {
    const struct gps_owner *owner = &process->owner;
    json_t *object = json_tree_pack("{s:s}", "kind", "process");
    json_object_update_new(object, view_format_owner_json(owner));
    json_object_update_new(object, workload_json(owner));
    add_owner_facts(view, owner, process->alive, object);
    tell_exports(view, owner, object);
    tell_holds(view, owner, object);
    tell_memory(view, owner, object);
    tell_exclusions(view, owner, object);
    tell_pins(view, owner, object);
    json_tree_add(
        object, "{s:I, s:o, s:o, s:o, s:o}", "copies", process->answer.kept, "private",
        private_bytes_json(view, owner), "arguments", json_tree_string(process->arguments),
        "unmerged", view_format_not_merging_json(view, owner), "suspended",
        view_suspended(process) ? json_tree_seconds(view_nanos_since(view, process->answer.since))
                                : json_tree_pack("n"));
    return object;
}

/* --- finding: marks what matches, and returns how many --- */

static bool is_alive_of_name(const struct view_region *region, const char *name) {
    return strcmp(region->record.name, name) == 0 && !view_hidden(region);
}

static bool is_of_name(const struct view_region *region, const char *name) {
    return strcmp(region->record.name, name) == 0;
}

static size_t show_find_name(struct view *view, const char *name) {
    const size_t count = view_find(view, is_alive_of_name, name);
    return count > 0 ? count : view_find(view, is_of_name, name);
}

/* --- not found --- */

static bool name_claimed(const struct view *view, const char *name) {
    struct gps_name_target target;
    if (!gps_name_valid(name) || gps_name_resolve(&view->store, name, &target) != 0 ||
        target.kind != GPS_NAME_CLAIM)
        return false;
    const struct view_process *process = view_process_find(view, &target.claimer);
    if (!process || !process->alive)
        return false;
    tool_error("'%s' has no memory yet: %s %s has the name and is about to allocate", name,
               process->owner.command, view_format_pid(view, &target.claimer).text);
    return true;
}

static bool show_owner_is_keeper(const struct view *view, const struct gps_owner *owner) {
    for (size_t i = 0; i < view->region_count; i++)
        if (view_is_vmm(&view->regions[i]) &&
            gps_owner_equal(&view->regions[i].record.owner, owner))
            return true;
    return false;
}

static int show_tell_not_found(const struct view *view, const char *what) {
    if (name_claimed(view, what))
        return TOOL_FAILED;
    show_tell_waits(view, NULL, what, true);
    TOOL_TEMP char *known = NULL; /* names first, then processes */
    bool merges = false;
    for (size_t i = 0; i < view->region_count; i++)
        merges |= view_merged(&view->regions[i]);
    size_t count = view_names(view, is_shown, &known);
    for (size_t i = 0; i < view->process_count && count < VIEW_NAMES_MAX; i++)
        if (view->processes[i].alive) {
            const struct gps_owner *owner = &view->processes[i].owner;
            tool_list(&known, "%s%s", view_format_program(view, owner).text,
                      show_owner_is_keeper(view, owner) ? " (keeper)" : "");
            count++;
        }
    const char *called =
        strspn(what, "0123456789") == strlen(what) ? "has the number" : "is called";
    if (known)
        tool_error("nothing %s '%s'; there is: %s (see: gpushare ls)%s", called, what, known,
                   merges ? "; a merge rule makes no region of its name" : "");
    else
        tool_error("nothing %s '%s'; nothing is shared in %s", called, what, view->store.path);
    return TOOL_FAILED;
}

/* --- the verb --- */

static int ambiguous(const struct view *view, size_t count, const char *what) {
    TOOL_TEMP char *ids = NULL;
    for (size_t i = 0; i < view->region_count; i++)
        if (view->regions[i].found)
            tool_list(&ids, "%s", printable_id(&view->regions[i].record.id).text);
    tool_error("%zu regions have an id that begins with '%s': %s", count, what, ids);
    return TOOL_FAILED;
}

/* Prints what was found, or appends it to the array, unless that is NULL. */
static void show_print_found(const struct view *view, json_t *array) {
    size_t printed = 0;
    for (size_t i = 0; i < view->region_count; i++) {
        if (!view->regions[i].found)
            continue;
        fputs(printed++ && !array ? "\n" : "", stdout);
        if (array)
            json_tree_append(array, region_json(view, &view->regions[i]));
        else
            describe_region(view, &view->regions[i]);
    }
    for (size_t i = 0; i < view->process_count; i++) {
        if (!view->processes[i].found)
            continue;
        fputs(printed++ && !array ? "\n" : "", stdout);
        if (array)
            json_tree_append(array, show_process_json(view, &view->processes[i]));
        else
            describe_process(view, &view->processes[i]);
    }
}

static int show_operand(struct view *view, const char *what, bool json) {
    if (show_find_name(view, what) == 0 && find_process(view, what, process_has_pid) == 0) {
        const size_t count = view_find(view, view_has_id, what);
        if (count > 1)
            return ambiguous(view, count, what);
        if (count == 0 && find_process(view, what, process_has_program) == 0 &&
            find_process(view, what, process_has_pid_here) == 0)
            return show_tell_not_found(view, what);
    }
    json_t *array = json ? json_tree_pack("[]") : NULL;
    show_print_found(view, array);
    if (json)
        json_tree_print(stdout, array);
    return TOOL_OK;
}

/* --- without an operand --- */

static void show_find_all(struct view *view) {
    for (size_t i = 0; i < view->region_count; i++)
        view->regions[i].found = is_shown(&view->regions[i]);
    for (size_t i = 0; i < view->process_count; i++)
        view->processes[i].found = view->processes[i].alive;
}

/* Lists the things that can be shown, by name. */
static void show_list_found(const struct view *view) {
    static const struct table_column columns[] = {{"SHOW", 0}, {"WHAT IT IS", 0}};
    struct table table = TABLE(columns);
    size_t count = 0;
    TOOL_EACH(const struct view_region, region, view->regions, view->region_count) {
        const struct gps_region_record *record = &region->record;
        if (!region->found)
            continue;
        table_cell(&table, TERM_PLAIN, "%.*s", *record->name ? GPS_NAME_BYTES : 8,
                   *record->name ? record->name : printable_id(&record->id).text);
        table_cell(&table, TERM_PLAIN, "region, %s, %s", printable_size(record->requested).text,
                   view_format_state(region));
        count++;
    }
    for (size_t i = 0; i < view->process_count; i++) {
        const struct gps_owner *owner = &view->processes[i].owner;
        if (!view->processes[i].found)
            continue;
        table_cell(&table, TERM_PLAIN, "%s", view_format_pid(view, owner).text);
        table_cell(&table, TERM_PLAIN, "%s, %s",
                   show_owner_is_keeper(view, owner) ? "keeper" : "process",
                   view_format_command(view, owner).text);
        count++;
    }
    if (count > 0)
        table_print(stdout, &table, "");
    else
        term_line(stdout, "Nothing is shared in %s.", view->store.path);
}

static int show_all(struct view *view, bool json) {
    show_find_all(view);
    if (!json) {
        show_list_found(view);
        return TOOL_OK;
    }
    json_t *array = json_tree_pack("[]");
    show_print_found(view, array);
    json_tree_print(stdout, array);
    return TOOL_OK;
}

static int run_show(const struct tool_args *args) {
    struct view view;
    if (!view_read_all(&view))
        return TOOL_FAILED;
    const bool json = args->values[OPTION_JSON];
    const int status =
        args->operands[0] ? show_operand(&view, args->operands[0], json) : show_all(&view, json);
    view_free(&view);
    return status;
}

const struct tool_verb tool_verb_show = {
    .name = "show",
    .operands = "[NAME|ID|PID|PROGRAM]",
    .summary = "tell everything about a region or a process",
    .details =
        "Alone it lists what it can show. "
        "A region is given by its NAME or by the first 6 or more digits of its ID. Of a "
        "process, what it exports and what it holds open is shown, in bytes too. A PID "
        "that several pid namespaces have means all of them; PID@NAMESPACE means one; the "
        "pid that such a process has here means it, too. A PROGRAM, as cam.py, means all "
        "processes of this name. A name goes before a pid, a pid before an id, and that "
        "before a program.\n"
        "Of a region with whole frames (key frames) it says how many there were, how old the "
        "newest is, how many were left out or odd, how often somebody was late, and of "
        "each reader which FRAME it has, the AGE of that, and how many it has READ. How "
        "many come in a second `gpushare top` says.\n"
        "The exit status is 1 if nothing is found.\n",
    .options = {{"json", 0, NULL, "an array of objects, for scripts"}},
    .operands_max = 1,
    .run = run_show,
};
