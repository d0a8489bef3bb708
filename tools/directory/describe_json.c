/*
 * describe_json.c - everything about one region or one process, as JSON (describe.h).
 *
 * Times are seconds: *_at since 1970, age and held since then.
 */
#include <inttypes.h>
#include <stdio.h>

#include "describe.h"

static void json_owner_facts(const struct view *view, const struct gps_owner *owner, bool alive,
                             struct json *json) {
    view_json_owner(owner, json);
    json_number(json, "uid", owner->uid);
    json_seconds(json, "started_at", view_start_time(view, owner->start));
    json_bool(json, "alive", alive);
}

static void json_hold(const struct view *view, const struct gps_slot *slot, struct json *json) {
    char address[24];
    bool open = slot->state == GPS_SLOT_OPEN;
    snprintf(address, sizeof(address), "0x%" PRIx64, slot->address);
    json_text(json, "address", open ? address : NULL);
    json_bool(json, "open", open);
    json_text(json, "via", slot->via == GPS_VIA_RULE ? "rule" : "program");
    json_seconds(json, "held", view_nanos_since(view, slot->since));
}

void describe_region_json(const struct view *view, const struct view_region *region,
                          struct json *json) {
    const struct gps_region_record *record = &region->record;
    json_open(json, NULL, '{');
    json_text(json, "kind", "region");
    view_json_region(view, region, json);
    json_number(json, "extent", record->extent);
    json_number(json, "offset", record->offset);
    json_number(json, "generation", record->generation);
    json_text(json, "recorded_state", gps_state_name(record->status.state));
    json_seconds(json, "created_at", record->created);
    json_seconds(json, "state_since", record->status.changed);
    if (view_kept(region)) {
        json_text(json, "access", (record->flags & GPS_REGION_READ_ONLY) != 0 ? "read" : "write");
        json_bool(json, "keeper_alive", region->owner_alive);
    }
    json_open(json, "owner_process", '{');
    json_owner_facts(view, gps_record_creator(record), region->creator_alive, json);
    json_close(json, '}');
    json_open(json, "holds", '[');
    for (size_t i = 0; i < region->hold_count; i++) {
        json_open(json, NULL, '{');
        view_json_owner(&region->holds[i].owner, json);
        json_hold(view, &region->holds[i].slot, json);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_close(json, '}');
}

static void json_exports(const struct view *view, const struct gps_owner *owner,
                         struct json *json) {
    uint64_t bytes = 0;
    json_open(json, "exports", '[');
    for (size_t i = 0; i < view->region_count; i++) {
        const struct view_region *region = &view->regions[i];
        if (!gps_owner_equal(gps_record_creator(&region->record), owner) || view_hidden(region))
            continue;
        bytes += region->record.extent;
        json_open(json, NULL, '{');
        view_json_region(view, region, json);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_number(json, "export_bytes", bytes);
}

static void json_holds(const struct view *view, const struct gps_owner *owner, struct json *json) {
    uint64_t bytes = 0;
    json_open(json, "holds", '[');
    for (size_t i = 0; i < view->hold_count; i++) {
        const struct gps_slot *slot = &view->holds[i].slot;
        char id[GPS_ID_HEX];
        if (!gps_owner_equal(&view->holds[i].owner, owner) || slot->via == GPS_VIA_EVENT)
            continue;
        const struct view_region *region = view_region_find(view, &slot->region);
        bytes += region != NULL ? region->record.extent : 0;
        gps_id_format(&slot->region, id);
        json_open(json, NULL, '{');
        json_text(json, "id", id);
        json_text(json, "name",
                  region != NULL && region->record.name[0] != 0 ? region->record.name : NULL);
        json_hold(view, slot, json);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_number(json, "hold_bytes", bytes);
}

static void json_pins(const struct view *view, const struct gps_owner *owner, struct json *json) {
    json_number(json, "events", view_events(view, owner));
    json_number(json, "pins_bytes", view_pins(view, owner, NULL).bytes);
    json_open(json, "pinned_by", '[');
    for (size_t i = 0; i < view->process_count; i++) {
        const struct view_pins pins = view_pins(view, &view->processes[i].owner, owner);
        if (pins.count == 0)
            continue;
        json_open(json, NULL, '{');
        view_json_owner(&view->processes[i].owner, json);
        json_number(json, "bytes", pins.bytes);
        json_close(json, '}');
    }
    json_close(json, ']');
}

void describe_process_json(const struct view *view, const struct view_process *process,
                           struct json *json) {
    json_open(json, NULL, '{');
    json_text(json, "kind", "process");
    json_owner_facts(view, &process->owner, process->alive, json);
    json_exports(view, &process->owner, json);
    json_holds(view, &process->owner, json);
    json_pins(view, &process->owner, json);
    json_close(json, '}');
}
