/* view_format.h - how ls, show and their JSON print the facts of a view. */
#pragma once

#include "accounting.h"
#include "cli/json_tree.h"
#include "cli/printable.h"
#include "cli/table.h"
#include "view.h"

/* "4242", or "7@4026532201" when the pid counts in another pid namespace than ours. */
struct printable view_format_pid(const struct view *view, const struct gps_owner *owner);
/* "camera 4242", and its arguments where another live process has the same name. */
struct printable view_format_program(const struct view *view, const struct gps_owner *owner);
/* The same without the pid. */
struct printable view_format_command(const struct view *view, const struct gps_owner *owner);
/* A list of processes: "5: camera 4242, viewer 4243 and 3 more". The first `most` are named. */
struct view_list {
    const struct view *view;
    size_t most, count;
    char *named;
};
void view_list_add(struct view_list *list, const struct gps_owner *owner, const char *suffix);
/* Adds a cell with the list, and ends it. */
void view_list_cell(struct view_list *list, enum term_colour colour, struct table *table);
/* UTC as in reports: "2026-11-21T06:36:31.829937Z". */
struct printable view_format_time(uint64_t realtime_ns);
/* How long ago that was, in one unit: "5 min". */
struct printable view_format_age(const struct view *view, uint64_t since);
/* How old a frame is, in milliseconds where it is young: "12 ms"; "-" for frame 0, which is none.
 */
struct printable view_format_frame_age(const struct view_frames *frames, uint64_t frame,
                                       uint64_t at);
/* "owner", "users", "forever", or a time as in a configuration: "10min". */
struct printable view_format_keep(const struct view_region *region);

const char *view_format_name(const struct view_region *region); /* "-" where it has none */
const char *view_format_backing(const struct view_region *region);
/* The record's state, or "orphaned" (owner dead, users left), or "dead". */
const char *view_format_state(const struct view_region *region);
enum term_colour view_format_colour(const struct view_region *region);

/* Adds the members that every listing gives: id name size device state backing owner users age,
 * of a VMM region keeper and keep, and of one with whole frames those. */
void view_format_region_json(const struct view *view, const struct view_region *region,
                             json_t *object);
/* {mode, slots, newest, age, left_out, late, odd, waits, ended, readers}; null: not known. */
json_t *view_format_frames_json(const struct view_region *region, const struct view_frames *frames);
/* {pid, command, pid_ns} */
json_t *view_format_owner_json(const struct gps_owner *owner);
/* Why the process merges nothing though a rule says so; null: nothing is in the way. */
json_t *view_format_not_merging_json(const struct view *view, const struct gps_owner *owner);
/* {own, shared, proportional, saved} */
json_t *view_format_bytes_json(const struct account_bytes *bytes);
