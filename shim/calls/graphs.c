#include "graphs.h"

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "findings/diagnose.h"
#include "frames/exchange.h"
#include "process/process.h"
#include "registry/hash_table.h"
#include "registry/registry.h"
#include "registry/vmm_books.h"

/* --- memory that nodes use --- */

static bool graph_memory_is_mapped(uint64_t address, struct gps_graph_memory *memory) {
    struct gps_vmm_mapping mapping;
    struct gps_vmm_memory of;
    if (!gps_vmm_mapping_from(address, &mapping, &of) || mapping.pointer > address)
        return false;
    *memory =
        (struct gps_graph_memory){GPS_FREED_MAPPING, mapping.pointer, mapping.size, mapping.mapped};
    return true;
}

/* Memory of pools, of the host, and managed memory are in no table that is searched here. */
static bool is_allocated(uint64_t address, struct gps_graph_memory *memory) {
    struct gps_import import;
    struct gps_alloc alloc;
    uint64_t base, size;
    if (gps_ops->range(address, &base, &size) != GPS_OK)
        return false;
    if (gps_registry_import_at(base, &import))
        *memory = (struct gps_graph_memory){GPS_FREED_IMPORT, base, size, import.trace};
    else if (gps_registry_find(base, &alloc) && gps_alloc_is_drivers(&alloc))
        *memory = (struct gps_graph_memory){GPS_FREED_MEMORY, base, size, alloc.trace};
    else
        return false;
    return true;
}

static bool graph_memory_find(uint64_t address, struct gps_graph_memory *memory) {
    return address && (graph_memory_is_mapped(address, memory) || is_allocated(address, memory));
}

bool gps_graph_is_edge(uint64_t address, uint64_t *before) {
    struct gps_graph_memory memory;
    if (!graph_memory_find(address, &memory) || memory.base != address ||
        !graph_memory_find(address - 1, &memory))
        return false;
    *before = memory.base;
    return true;
}

static bool uses_have_address(const struct gps_graph_uses *uses, uint64_t address) {
    for (unsigned i = 0; i < uses->count; i++)
        if (address - uses->list[i].memory.base < uses->list[i].memory.size)
            return true;
    return false;
}

bool gps_graph_found(struct gps_graph_uses *uses, const struct gps_graph_use *use) {
    struct gps_graph_memory memory;
    if (!gps_process_audits() || uses->count == GPS_GRAPH_USES ||
        uses_have_address(uses, use->address) || !graph_memory_find(use->address, &memory))
        return false;
    uses->list[uses->count] = *use;
    uses->list[uses->count++].memory = memory;
    return true;
}

void gps_graph_made(uint64_t exec, uint64_t graph, gps_graph_walk_fn *walk) {
    if (!gps_process_audits() && !gps_frames_exist())
        return;
    GPS_DRIVER_SCOPE();
    struct gps_graph_walk *const room = gps_table_allocate(sizeof(*room));
    if (!room)
        return;
    room->uses.count = 0;
    walk(graph, room);
    if (gps_process_audits())
        gps_graph_note(exec, &room->uses);
    gps_table_free(room, sizeof(*room));
}

/* --- whether that memory is still there --- */

/* Not in a capture, which is launched later, nor in a lost context, which knows no address. */
void gps_graph_launched_slowly(uint64_t exec, uint64_t stream) {
    struct gps_graph_use use;
    struct gps_freed freed;
    if (!gps_graph_is_due(exec))
        return;
    GPS_DRIVER_SCOPE();
    if (gps_context_state() != GPS_OK || gps_stream_is_capturing(stream))
        return;
    for (unsigned at = 0; gps_graph_over(exec, &at, &use, &freed); at++)
        if (gps_diagnose_graph(&use, &freed))
            gps_graph_told(exec, at);
}
