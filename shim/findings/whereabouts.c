/* whereabouts.c - where an address outside of all allocations lies. */
#include "diagnose.h"

#include "driver/driver_ops.h"
#include "registry/registry.h"
#include "util/peek.h"

/* A variable with a pointer, whose address was passed in place of the pointer. */
static void say_main_memory(struct gps_text *text, uint64_t address) {
    struct gps_alloc alloc;
    uint64_t value = 0;
    gps_text_str(text, "it lies in main memory");
    if (gps_peek(address, &value, sizeof(value)) && value && gps_registry_find(value, &alloc))
        gps_text_add(text,
                     ", where 0x%lx is stored, the beginning of an allocation, which has %lu bytes",
                     value, alloc.size);
}

static void say_nearest(struct gps_text *text, uint64_t address) {
    struct gps_alloc alloc;
    uint64_t behind, before;
    if (!gps_registry_nearest(address, &alloc, &behind, &before)) {
        gps_text_str(text, "this process has no allocation");
        return;
    }
    gps_text_str(text, "it lies ");
    if (before)
        gps_text_add(text, "%lu bytes before", before);
    else if (behind)
        gps_text_add(text, "%lu bytes behind the end of", behind);
    else
        gps_text_str(text, "right at the end of");
    gps_text_add(text, " the allocation at 0x%lx, which has %lu bytes", alloc.pointer, alloc.size);
}

void gps_whereabouts_say(struct gps_text *text, uint64_t address) {
    char byte;
    if (gps_ops->kind(address) == GPS_MEMORY_UNKNOWN && gps_peek(address, &byte, sizeof(byte)))
        say_main_memory(text, address);
    else
        say_nearest(text, address);
}
