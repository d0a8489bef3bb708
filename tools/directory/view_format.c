#include "view_format.h"

#include "cli/tool.h"
#include "config/value.h"
#include "util/clock.h"
#include "util/text.h"

const char *view_format_state(const struct view_region *region) {
    if (region->owner_alive)
        return gps_state_name(region->record.status.state);
    return view_dead(region) ? "dead" : "orphaned";
}

enum term_colour view_format_colour(const struct view_region *region) {
    if (view_hidden(region))
        return TERM_DIM;
    if (!region->owner_alive)
        return TERM_RED;
    return region->record.status.state == GPS_STATE_READY ? TERM_GREEN : TERM_YELLOW;
}

struct printable view_format_pid(const struct view *view, const struct gps_owner *owner) {
    struct printable pid;
    if (owner->pid_ns == view->pid_ns)
        snprintf(pid.text, sizeof(pid.text), "%u", owner->pid);
    else if (owner->pid_ns == 0)
        snprintf(pid.text, sizeof(pid.text), "%u@?", owner->pid);
    else
        snprintf(pid.text, sizeof(pid.text), "%u@%" PRIu64, owner->pid, owner->pid_ns);
    return pid;
}

static bool view_has_equal_name(const struct view *view, const struct gps_owner *owner) {
    TOOL_EACH(const struct view_process, other, view->processes, view->process_count) {
        if (other->alive && strcmp(other->owner.command, owner->command) == 0 &&
            !gps_owner_equal(&other->owner, owner))
            return true;
    }
    return false;
}

/* The arguments follow where another live process has the same name. */
static struct printable name_process(const struct view *view, const struct gps_owner *owner,
                                     const char *blank, const char *pid) {
    const struct view_process *process = view_process_find(view, owner);
    struct printable name = {""};
    struct gps_text out = GPS_TEXT(name.text);
    gps_text_strs(&out, owner->command, blank, pid);
    if (process && process->arguments[0] != 0 && view_has_equal_name(view, owner))
        gps_text_strs(&out, " (", printable_arguments(process->arguments).text, ")");
    return name;
}

struct printable view_format_command(const struct view *view, const struct gps_owner *owner) {
    return name_process(view, owner, "", "");
}

struct printable view_format_program(const struct view *view, const struct gps_owner *owner) {
    return name_process(view, owner, " ", view_format_pid(view, owner).text);
}

void view_list_add(struct view_list *list, const struct gps_owner *owner, const char *suffix) {
    if (list->count++ >= list->most)
        return;
    tool_list(&list->named, "%s%s", view_format_program(list->view, owner).text, suffix);
}

void view_list_cell(struct view_list *list, enum term_colour colour, struct table *table) {
    char more[40] = "";
    if (list->count > list->most)
        snprintf(more, sizeof(more), " and %zu more", list->count - list->most);
    table_cell(table, colour, "%zu%s%s%s", list->count, list->named ? ": " : "",
               tool_or(list->named, ""), more);
    free(list->named);
}

struct printable view_format_time(uint64_t realtime_ns) {
    struct printable time = {""};
    struct gps_text out = GPS_TEXT(time.text);
    gps_text_time(&out, realtime_ns);
    return time;
}

static struct printable in_one_unit(uint64_t nanos) {
    static const struct {
        uint64_t below, unit; /* seconds */
        const char *name;
    } units[] = {{120, 1, "s"}, {120 * 60, 60, "min"}, {48 * 3600, 3600, "h"}};
    const uint64_t seconds = nanos / GPS_SECOND;
    struct printable age;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (seconds < units[i].below) {
            snprintf(age.text, sizeof(age.text), "%" PRIu64 " %s", seconds / units[i].unit,
                     units[i].name);
            return age;
        }
    snprintf(age.text, sizeof(age.text), "%" PRIu64 " days", seconds / 86400);
    return age;
}

struct printable view_format_age(const struct view *view, uint64_t since) {
    return in_one_unit(view_nanos_since(view, since));
}

#define YOUNG (10 * GPS_SECOND) /* a frame whose age is told in milliseconds */

struct printable view_format_frame_age(const struct view_frames *frames, uint64_t frame,
                                       uint64_t at) {
    const uint64_t age = view_frames_age(frames, at);
    struct printable text = {"-"};
    if (frame && age < YOUNG)
        snprintf(text.text, sizeof(text.text), "%" PRIu64 " ms", age / (GPS_SECOND / 1000));
    else if (frame)
        text = in_one_unit(age);
    return text;
}

const char *view_format_backing(const struct view_region *region) {
    return view_is_vmm(region) ? "vmm" : view_is_run(region) ? "token" : "ipc";
}

const char *view_format_name(const struct view_region *region) {
    return region->record.name[0] != 0 ? region->record.name : "-";
}

struct printable view_format_keep(const struct view_region *region) {
    static const struct printable names[] = {[GPS_KEEP_OWNER] = {"owner"},
                                             [GPS_KEEP_USERS] = {"users"},
                                             [GPS_KEEP_FOREVER] = {"forever"}};
    if (region->record.keep != GPS_KEEP_FOR)
        return names[region->record.keep];
    struct printable keep = {""};
    struct gps_text out = GPS_TEXT(keep.text);
    gps_value_duration_text(region->record.keep_for, &out);
    return keep;
}

/* --- JSON --- */

json_t *view_format_owner_json(const struct gps_owner *owner) {
    return json_tree_pack("{s:I, s:o, s:I}", "pid", (json_int_t)owner->pid, "command",
                          json_tree_string(owner->command), "pid_ns", owner->pid_ns);
}

json_t *view_format_not_merging_json(const struct view *view, const struct gps_owner *owner) {
    const struct gps_slot *slot = view_not_merging(view, owner);
    return json_tree_string(slot ? gps_not_merging_why(slot->address) : NULL);
}

json_t *view_format_bytes_json(const struct account_bytes *bytes) {
    return json_tree_pack("{s:I, s:I, s:I, s:I}", "own", bytes->own, "shared", bytes->shared,
                          "proportional", bytes->proportional, "saved", account_saved(bytes));
}

static json_t *users_json(const struct view_region *region) {
    json_t *users = json_tree_pack("[]");
    for (size_t i = 0; i < region->hold_count; i++) {
        const struct gps_owner *owner = &region->holds[i].owner;
        if (i > 0 && gps_owner_equal(owner, &region->holds[i - 1].owner))
            continue;
        json_t *user = view_format_owner_json(owner);
        json_tree_add(user, "{s:b}", "cached", view_cached(&region->holds[i]));
        json_tree_append(users, user);
    }
    return users;
}

static json_t *frame_age_json(const struct view_frames *frames, uint64_t frame, uint64_t at) {
    return frame ? json_tree_seconds(view_frames_age(frames, at)) : json_tree_pack("n");
}

static json_t *readers_json(const struct view_frames *frames) {
    json_t *array = json_tree_pack("[]");
    TOOL_EACH(const struct gps_frames_reader, reader, frames->readers, frames->reader_count) {
        json_t *object = view_format_owner_json(&reader->owner);
        json_tree_add(object, "{s:I, s:o, s:I, s:I, s:I}", "frame", reader->have, "age",
                      frame_age_json(frames, reader->have, reader->at), "read", reader->read,
                      "left_out", reader->left_out, "late", reader->late);
        json_tree_append(array, object);
    }
    return array;
}

json_t *view_format_frames_json(const struct view_region *region,
                                const struct view_frames *frames) {
    const struct gps_frames_writer *writer = &frames->said.writer;
    json_t *object = json_tree_pack("{s:s, s:I}", "mode", view_frames_mode(region), "slots",
                                    (json_int_t)region->record.frame_slots);
    if (frames->status == 0)
        json_tree_add(object, "{s:I, s:o, s:I, s:I, s:I, s:o, s:b}", "newest", writer->newest,
                      "age", frame_age_json(frames, writer->newest, writer->at), "left_out",
                      writer->left_out, "late", writer->late, "odd", writer->odd, "waits",
                      writer->usual ? json_tree_pack("I", (json_int_t)writer->usual)
                                    : json_tree_pack("n"),
                      "ended", writer->ended != 0);
    else
        json_tree_add(object, "{s:n, s:n, s:n, s:n, s:n, s:n, s:n}", "newest", "age", "left_out",
                      "late", "odd", "waits", "ended");
    json_tree_add(object, "{s:o}", "readers",
                  frames->status == 0 ? readers_json(frames) : json_tree_pack("[]"));
    return object;
}

void view_format_region_json(const struct view *view, const struct view_region *region,
                             json_t *object) {
    const struct gps_region_record *record = &region->record;
    json_tree_add(object, "{s:s, s:o, s:I, s:s, s:s, s:s, s:o}", "id",
                  printable_id(&record->id).text, "name",
                  json_tree_string(record->name[0] != 0 ? record->name : NULL), "size",
                  record->requested, "device", printable_uuid(record->device).text, "state",
                  view_format_state(region), "backing", view_format_backing(region), "owner",
                  view_format_owner_json(gps_record_creator(record)));
    if (view_is_vmm(region))
        json_tree_add(object, "{s:o, s:s}", "keeper", view_format_owner_json(&record->owner),
                      "keep", view_format_keep(region).text);
    json_tree_add(object, "{s:o, s:o}", "users", users_json(region), "age",
                  json_tree_seconds(view_nanos_since(view, record->created)));
    struct view_frames frames;
    if (view_frames_read(view, region, &frames))
        json_tree_add(object, "{s:o}", "frames", view_format_frames_json(region, &frames));
}
