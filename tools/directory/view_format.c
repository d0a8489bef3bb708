/*
 * view_format.c - the words in which ls, show and their JSON speak of regions (view.h).
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "config/config.h"
#include "util/text.h"
#include "view.h"

#define SECOND 1000000000u

bool view_dead(const struct view_region *region) {
    return !region->owner_alive && region->hold_count == 0 && !region->creator_holds;
}

bool view_hidden(const struct view_region *region) {
    bool freed = region->record.status.state == GPS_STATE_FREED;
    return view_dead(region) || (freed && region->hold_count == 0);
}

bool view_pinned(const struct view_region *region) {
    return region->hold_count > 0 && (!region->owner_alive || gps_record_over(&region->record));
}

const char *view_state(const struct view_region *region) {
    if (region->owner_alive)
        return gps_state_name(region->record.status.state);
    return view_dead(region) ? "dead" : "orphaned";
}

enum term_colour view_state_colour(const struct view_region *region) {
    if (view_hidden(region))
        return TERM_DIM;
    if (!region->owner_alive)
        return TERM_RED;
    return region->record.status.state == GPS_STATE_READY ? TERM_GREEN : TERM_YELLOW;
}

void view_pid(const struct view *view, const struct gps_owner *owner, char text[VIEW_TEXT]) {
    if (owner->pid_ns == view->pid_ns)
        snprintf(text, VIEW_TEXT, "%u", owner->pid);
    else if (owner->pid_ns == 0)
        snprintf(text, VIEW_TEXT, "%u@?", owner->pid);
    else
        snprintf(text, VIEW_TEXT, "%u@%llu", owner->pid, (unsigned long long)owner->pid_ns);
}

void view_size(uint64_t bytes, char text[VIEW_TEXT]) {
    struct gps_text out = gps_text_on(text, VIEW_TEXT);
    gps_text_size(&out, bytes);
}

void view_exact_size(uint64_t bytes, char text[VIEW_TEXT]) {
    struct gps_text out = gps_text_on(text, VIEW_TEXT);
    gps_text_size(&out, bytes);
    if (bytes < 1024)
        return;
    gps_text_str(&out, " (");
    gps_text_dec(&out, bytes);
    gps_text_str(&out, " bytes)");
}

void view_time(uint64_t realtime_ns, char text[VIEW_TEXT]) {
    time_t seconds = (time_t)(realtime_ns / SECOND);
    struct tm local;
    if (localtime_r(&seconds, &local) == NULL || strftime(text, VIEW_TEXT, "%F %T", &local) == 0)
        snprintf(text, VIEW_TEXT, "?");
}

uint64_t view_nanos_since(const struct view *view, uint64_t since) {
    return since < view->now ? view->now - since : 0;
}

void view_age(const struct view *view, uint64_t since, char text[VIEW_TEXT]) {
    unsigned long long seconds = view_nanos_since(view, since) / SECOND;
    if (seconds < 120)
        snprintf(text, VIEW_TEXT, "%llu s", seconds);
    else if (seconds < 120 * 60)
        snprintf(text, VIEW_TEXT, "%llu min", seconds / 60);
    else if (seconds < 48 * 3600)
        snprintf(text, VIEW_TEXT, "%llu h", seconds / 3600);
    else
        snprintf(text, VIEW_TEXT, "%llu days", seconds / 86400);
}

uint64_t view_start_time(const struct view *view, uint64_t ticks) {
    struct timespec up;
    uint64_t hertz = (uint64_t)sysconf(_SC_CLK_TCK);
    clock_gettime(CLOCK_BOOTTIME, &up);
    uint64_t uptime = (uint64_t)up.tv_sec * SECOND + (uint64_t)up.tv_nsec;
    uint64_t started = ticks / hertz * SECOND + ticks % hertz * (SECOND / hertz);
    return started < uptime ? view->now - (uptime - started) : view->now;
}

const char *view_name(const struct view_region *region) {
    return region->record.name[0] != 0 ? region->record.name : "-";
}

const char *view_backing(uint32_t backing) {
    return backing == GPS_BACKING_IPC ? "ipc" : backing == GPS_BACKING_VMM ? "vmm" : "unknown";
}

bool view_kept(const struct view_region *region) {
    return region->record.backing == GPS_BACKING_VMM;
}

void view_keep(const struct view_region *region, char text[VIEW_TEXT]) {
    static const char *const words[] = {
        [GPS_KEEP_OWNER] = "owner", [GPS_KEEP_USERS] = "users", [GPS_KEEP_FOREVER] = "forever"};
    char time[VIEW_TEXT];
    struct gps_text out = GPS_TEXT(time);
    if (region->record.keep != GPS_KEEP_FOR) {
        snprintf(text, VIEW_TEXT, "%s", words[region->record.keep]);
        return;
    }
    gps_text_duration(&out, region->record.keep_for);
    size_t number = strcspn(time, " "); /* as one writes it in a configuration */
    snprintf(text, VIEW_TEXT, "%.*s%s", (int)number, time,
             time[number] == ' ' ? time + number + 1 : "");
}

/* --- JSON --- */

void view_json_owner(const struct gps_owner *owner, struct json *json) {
    json_number(json, "pid", owner->pid);
    json_text(json, "command", owner->command);
    json_number(json, "pid_ns", owner->pid_ns);
}

static void json_users(const struct view_region *region, struct json *json) {
    json_open(json, "users", '[');
    for (size_t i = 0; i < region->hold_count; i++) {
        const struct gps_owner *owner = &region->holds[i].owner;
        if (i > 0 && gps_owner_equal(owner, &region->holds[i - 1].owner))
            continue;
        json_open(json, NULL, '{');
        view_json_owner(owner, json);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void json_kept(const struct view_region *region, struct json *json) {
    char keep[VIEW_TEXT];
    view_keep(region, keep);
    json_open(json, "keeper", '{');
    view_json_owner(&region->record.owner, json);
    json_close(json, '}');
    json_text(json, "keep", keep);
}

void view_json_region(const struct view *view, const struct view_region *region,
                      struct json *json) {
    const struct gps_region_record *record = &region->record;
    char id[GPS_ID_HEX], device[41];
    gps_id_format(&record->id, id);
    gps_format_uuid(record->device, device);
    json_text(json, "id", id);
    json_text(json, "name", record->name[0] != 0 ? record->name : NULL);
    json_number(json, "size", record->requested);
    json_text(json, "device", device);
    json_text(json, "state", view_state(region));
    json_text(json, "backing", view_backing(record->backing));
    json_open(json, "owner", '{');
    view_json_owner(gps_record_creator(record), json);
    json_close(json, '}');
    if (view_kept(region))
        json_kept(region, json);
    json_users(region, json);
    json_seconds(json, "age", view_nanos_since(view, record->created));
}
