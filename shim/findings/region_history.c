/* region_history.c - see region_history.h. */
#include "region_history.h"

#include <string.h>

#include "directory/region.h"
#include "process/membership.h"
#include "stack/trace.h"
#include "util/digits.h"

/* --- out --- */

/* Returns the place of a module in the list, to which it is added when it is new and there is room.
 */
static uint8_t place_of(struct gps_region_traces *traces, const struct gps_trace_module *module) {
    if (!*module->path)
        return GPS_TRACE_NO_MODULE;
    for (unsigned i = 0; i < traces->module_count; i++)
        if (memcmp(&traces->modules[i], module, sizeof(*module)) == 0)
            return (uint8_t)i;
    if (traces->module_count == GPS_TRACE_MODULES)
        return GPS_TRACE_NO_MODULE;
    traces->modules[traces->module_count] = *module;
    return (uint8_t)traces->module_count++;
}

static struct gps_trace_module module_of(const struct gps_frame *frame) {
    struct gps_trace_module module = {.build_id_bytes = 0};
    const size_t length = strlen(frame->module), room = sizeof(module.path) - 1;
    const char *hex = frame->build_id;
    memcpy(module.path, frame->module + (length > room ? length - room : 0),
           length > room ? room : length);
    while (module.build_id_bytes < GPS_BUILD_ID_BYTES &&
           gps_hex_parse(&hex, &module.build_id[module.build_id_bytes], 1))
        module.build_id_bytes++;
    return module;
}

static void add(struct gps_region_traces *traces, enum gps_history_event event, uint32_t trace) {
    struct gps_frame frames[GPS_TRACE_FRAMES];
    const unsigned count = gps_trace_frames(gps_trace_native(trace), frames, GPS_TRACE_FRAMES);
    for (unsigned i = 0; i < count; i++) {
        const struct gps_trace_module module = module_of(&frames[i]);
        traces->module[event][i] = place_of(traces, &module);
        traces->offset[event][i] =
            traces->module[event][i] == GPS_TRACE_NO_MODULE ? frames[i].address : frames[i].offset;
    }
    traces->count[event] = count;
}

void gps_history_publish(const struct gps_store *store, const struct gps_region_record *record,
                         const uint32_t traces[GPS_HISTORY_EVENTS]) {
    struct gps_region_traces all = {.module_count = 0};
    for (enum gps_history_event event = 0; event < GPS_HISTORY_EVENTS; event++)
        add(&all, event, traces[event]);
    (void)gps_region_set_traces(store, record, &all); /* without them a report says less */
}

void gps_region_history_publish(const struct gps_export *region, uint32_t freed) {
    const uint32_t traces[] = {region->allocated, region->exported, freed};
    if (region->published && (region->allocated || region->exported || freed))
        gps_history_publish(gps_membership_store(), &region->record, traces);
}

/* --- in --- */

static void frame_of(const struct gps_region_traces *traces, enum gps_history_event event,
                     unsigned i, struct gps_frame *frame) {
    const uint8_t place = traces->module[event][i];
    *frame =
        (struct gps_frame){.address = traces->offset[event][i], .offset = traces->offset[event][i]};
    if (place == GPS_TRACE_NO_MODULE)
        return;
    const struct gps_trace_module *module = &traces->modules[place];
    memcpy(frame->module, module->path, sizeof(module->path));
    gps_hex_format(module->build_id, module->build_id_bytes, frame->build_id);
}

unsigned gps_region_history_frames(const struct gps_region_traces *traces,
                                   enum gps_history_event event, struct gps_frame *frames,
                                   unsigned max) {
    const unsigned count = traces->count[event] < max ? traces->count[event] : max;
    for (unsigned i = 0; i < count; i++)
        frame_of(traces, event, i, &frames[i]);
    return count;
}
