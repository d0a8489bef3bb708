/*
 * describe_json.c - everything about one region or one process, as JSON (describe.h).
 *
 * Times are seconds: members named *_at count since 1970; age and held are durations.
 */
#include "describe.h"
#include "view_format.h"

static void add_owner_facts(const struct view *view, const struct gps_owner *owner, bool alive,
                            json_t *object) {
    json_tree_add(object, "{s:I, s:o, s:b}", "uid", (json_int_t)owner->uid, "started_at",
                  json_tree_seconds(view_start_time(view, owner->start)), "alive", alive);
}

static void add_hold(const struct view *view, const struct gps_slot *slot, json_t *object) {
    const bool open = slot->state == GPS_SLOT_OPEN;
    json_tree_add(object, "{s:o, s:b, s:s, s:o}", "address",
                  open ? json_tree_hex(slot->address) : json_null(), "open", open, "via",
                  slot->via == GPS_VIA_RULE ? "rule" : "program", "held",
                  json_tree_seconds(view_nanos_since(view, slot->since)));
}

static json_t *region_holds(const struct view *view, const struct view_region *region) {
    json_t *holds = json_tree_pack("[]");
    for (size_t i = 0; i < region->hold_count; i++) {
        json_t *hold = view_format_owner_json(&region->holds[i].owner);
        add_hold(view, &region->holds[i].slot, hold);
        json_tree_append(holds, hold);
    }
    return holds;
}

json_t *describe_region_json(const struct view *view, const struct view_region *region) {
    const struct gps_region_record *record = &region->record;
    json_t *object = json_tree_pack("{s:s}", "kind", "region");
    view_format_region_json(view, region, object);
    json_tree_add(object, "{s:I, s:I, s:I, s:s, s:o, s:o}", "extent", record->extent, "offset",
                  record->offset, "generation", record->generation, "recorded_state",
                  gps_state_name(record->status.state), "created_at",
                  json_tree_seconds(record->created), "state_since",
                  json_tree_seconds(record->status.changed));
    if (view_kept(region))
        json_tree_add(object, "{s:s, s:b}", "access",
                      (record->flags & GPS_REGION_READ_ONLY) != 0 ? "read" : "write",
                      "keeper_alive", region->owner_alive);
    json_t *owner = view_format_owner_json(gps_record_creator(record));
    add_owner_facts(view, gps_record_creator(record), region->creator_alive, owner);
    json_tree_add(object, "{s:o, s:o}", "owner_process", owner, "holds",
                  region_holds(view, region));
    return object;
}

static void add_exports(const struct view *view, const struct gps_owner *owner, json_t *object) {
    uint64_t bytes = 0;
    json_t *exports = json_tree_pack("[]");
    for (size_t i = 0; i < view->region_count; i++) {
        const struct view_region *region = &view->regions[i];
        if (!view_exports(owner, region))
            continue;
        json_t *export = json_tree_pack("{}");
        bytes += region->record.extent;
        view_format_region_json(view, region, export);
        json_tree_append(exports, export);
    }
    json_tree_add(object, "{s:o, s:I}", "exports", exports, "export_bytes", bytes);
}

static void add_holds(const struct view *view, const struct gps_owner *owner, json_t *object) {
    uint64_t bytes = 0;
    json_t *holds = json_tree_pack("[]");
    for (size_t i = 0; i < view->hold_count; i++) {
        const struct gps_slot *slot = &view->holds[i].slot;
        if (!gps_owner_equal(&view->holds[i].owner, owner) || slot->via == GPS_VIA_EVENT)
            continue;
        const struct view_region *region = view_region_find(view, &slot->region);
        const bool named = region && region->record.name[0] != 0;
        bytes += region ? region->record.extent : 0;
        json_t *hold = json_tree_pack("{s:s, s:o}", "id", printable_id(&slot->region).text, "name",
                                      json_tree_string(named ? region->record.name : NULL));
        add_hold(view, slot, hold);
        json_tree_append(holds, hold);
    }
    json_tree_add(object, "{s:o, s:I}", "holds", holds, "hold_bytes", bytes);
}

static void add_pins(const struct view *view, const struct gps_owner *owner, json_t *object) {
    json_t *holders = json_tree_pack("[]");
    for (size_t i = 0; i < view->process_count; i++) {
        const struct view_pins pins = view_pins(view, &view->processes[i].owner, owner);
        if (pins.count == 0)
            continue;
        json_t *holder = view_format_owner_json(&view->processes[i].owner);
        json_tree_add(holder, "{s:I}", "bytes", pins.bytes);
        json_tree_append(holders, holder);
    }
    json_tree_add(object, "{s:I, s:I, s:o}", "events", view_events(view, owner), "pins_bytes",
                  view_pins(view, owner, NULL).bytes, "pinned_by", holders);
}

json_t *describe_process_json(const struct view *view, const struct view_process *process) {
    const struct gps_owner *owner = &process->owner;
    json_t *object =
        json_tree_pack("{s:s, s:I, s:o, s:I}", "kind", "process", "pid", (json_int_t)owner->pid,
                       "command", json_tree_string(owner->command), "pid_ns", owner->pid_ns);
    add_owner_facts(view, owner, process->alive, object);
    add_exports(view, owner, object);
    add_holds(view, owner, object);
    add_pins(view, owner, object);
    return object;
}
