/*
 * Memory of cuMemCreate; see physical.h. A handle is a place in a table and, above that, a number
 * which no other handle has: what is used after its end is found out.
 */
#include "physical.h"

#include "block.h"
#include "device.h"
#include "link.h"
#include "state.h"

enum { SLOT_BITS = 24 };

#define SLOT_MASK (((uint64_t)1 << SLOT_BITS) - 1)

static struct {
    struct physical **at;
    size_t count;
} table;

/* An empty place, in a table that grows; SLOT_MASK if there is none. */
static size_t find_slot(void) {
    size_t slot = 0;
    while (slot < table.count && table.at[slot])
        slot++;
    if (slot < table.count || slot == SLOT_MASK)
        return slot;
    size_t room = table.count ? 2 * table.count : 64;
    struct physical **grown = realloc(table.at, room * sizeof *grown);
    if (!grown)
        return SLOT_MASK;
    memset(grown + table.count, 0, (room - table.count) * sizeof *grown);
    table.at = grown;
    table.count = room;
    return slot;
}

static void close_at_daemon(uint64_t id, bool imported) {
    struct sim_request request = {.op = SIM_CLOSE, .a = id, .b = imported};
    if (id)
        link_call(&request, NULL);
}

/* What the daemon gave becomes a handle; or goes back to it. */
static CUresult adopt(const struct sim_reply *reply, const CUmemAllocationProp *properties,
                      bool imported, CUmemGenericAllocationHandle *out) {
    struct physical *memory = calloc(1, sizeof *memory);
    size_t slot = memory ? find_slot() : SLOT_MASK;
    if (slot == SLOT_MASK) {
        free(memory);
        close_at_daemon(reply->a, imported);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *memory = (struct physical){.handle = state_serial() << SLOT_BITS | slot,
                                .id = reply->a,
                                .offset = reply->b,
                                .size = reply->c,
                                .card = reply->device,
                                .properties = *properties,
                                .references = 1,
                                .imported = imported};
    table.at[slot] = memory;
    *out = memory->handle;
    return CUDA_SUCCESS;
}

CUresult physical_create(uint64_t size, const CUmemAllocationProp *properties,
                         CUmemGenericAllocationHandle *out) {
    struct sim_request request = {
        .op = SIM_CREATE, .device = device_card(properties->location.id), .a = size};
    struct sim_reply reply;
    CUresult result = link_call(&request, &reply);
    return result ? result : adopt(&reply, properties, false, out);
}

CUresult physical_export(const struct physical *memory, int *fd) {
    struct sim_request request = {.op = SIM_SHARE, .a = memory->id};
    struct sim_reply reply;
    int taken = -1;
    TRY(link_pass(&request, &reply, -1, &taken));
    /* None came along: this process may not have more of them. */
    REFUSE(taken < 0, CUDA_ERROR_OPERATING_SYSTEM);
    *fd = taken;
    return CUDA_SUCCESS;
}

CUresult physical_import(int fd, CUmemGenericAllocationHandle *out) {
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes =
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
    struct sim_request request = {.op = SIM_IMPORT};
    struct sim_reply reply;
    TRY(link_pass(&request, &reply, fd, NULL));
    if (!device_visible_reaches(reply.device)) {
        close_at_daemon(reply.a, true);
        return CUDA_ERROR_INVALID_DEVICE;
    }
    const CUdevice device = device_of_card(reply.device);
    properties.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE,
                                          .id = device < 0 ? CU_DEVICE_INVALID : device};
    return adopt(&reply, &properties, true, out);
}

CUresult physical_multicast(uint64_t size, CUmemGenericAllocationHandle *out) {
    const CUmemAllocationProp none = {.type = CU_MEM_ALLOCATION_TYPE_INVALID};
    const struct sim_reply nothing = {.c = size};
    TRY(adopt(&nothing, &none, false, out));
    physical_find(*out)->multicast = true;
    return CUDA_SUCCESS;
}

static void look_at(uint64_t *id, uint64_t *offset) {
    const struct sim_request request = {.op = SIM_MOVED, .a = *id};
    struct sim_reply reply;
    if (*id && !link_call(&request, &reply)) {
        *id = reply.a;
        *offset = reply.b;
    }
}

void physical_moved(struct block *block) {
    look_at(&block->id, &block->offset);
}

void physical_all_moved(void) {
    for (size_t slot = 0; slot < table.count; slot++)
        if (table.at[slot])
            look_at(&table.at[slot]->id, &table.at[slot]->offset);
}

/* A card's driver takes a handle for an address, and reads there. */
struct physical *physical_find(CUmemGenericAllocationHandle handle) {
    if (handle >> 47)
        raise(SIGSEGV);
    size_t slot = handle & SLOT_MASK;
    struct physical *memory = slot < table.count ? table.at[slot] : NULL;
    return memory && memory->handle == handle && memory->references ? memory : NULL;
}

void physical_release_unused(struct physical *memory) {
    if (memory->references || memory->mappings)
        return;
    table.at[memory->handle & SLOT_MASK] = NULL;
    close_at_daemon(memory->id, memory->imported);
    free(memory);
}
