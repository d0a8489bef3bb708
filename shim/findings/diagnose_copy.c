#include "diagnose.h"

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "registry/vmm_books.h"
#include "reporter.h"
#include "util/peek.h"
#include "util/text.h"

/* --- VMM memory --- */

static bool reads(const struct gps_vmm_mapping *mapping, int device) {
    return device < 0 || device >= GPS_VMM_HOST || mapping->readable >> device & 1;
}

static void report_mapping(enum gps_known known, const struct gps_vmm_mapping *mapping,
                           const struct gps_vmm_memory *memory, int device) {
    GPS_NEW_TEXT(text, 160);
    struct gps_report report = gps_report_on(GPS_ASK_COPIED, known);
    gps_text_add(&text, "0x%lx bytes are mapped at 0x%lx, without access for ", mapping->size,
                 mapping->pointer);
    if (known == GPS_KNOWN_NO_ACCESS)
        gps_text_str(&text, "any device");
    else
        gps_text_add(&text, "device %lu", (uint64_t)device);
    report.pointer = mapping->pointer;
    report.size = mapping->size;
    report.detail = text.bytes;
    gps_report_about_memory(&report, memory);
    gps_report_prior(&report, "mapped", mapping->mapped);
    gps_report_send(&report);
}

/* The first mapping of the range that the current device may not even read. */
static bool is_closed_to_us(uint64_t address, uint64_t size) {
    struct gps_vmm_mapping mapping = {.pointer = 0};
    struct gps_vmm_memory memory;
    int device = -1;
    gps_ops->device(&device);
    for (uint64_t at = address;
         at - address < size && gps_vmm_mapping_from(at, &mapping, &memory) &&
         (mapping.pointer <= at || mapping.pointer - address < size);
         at = mapping.pointer + mapping.size) {
        if (!mapping.readable)
            report_mapping(GPS_KNOWN_NO_ACCESS, &mapping, &memory, device);
        else if (!reads(&mapping, device) && gps_vmm_has_peer(device, memory.device))
            report_mapping(GPS_KNOWN_NO_PEER, &mapping, &memory, device);
        if (!reads(&mapping, device))
            return true;
    }
    return false;
}

/* --- memory that has ended --- */

/* `number` is that of a kernel's argument; 0: it is of a copy or fill. */
static void report_gone(enum gps_known known, uint64_t address, uint64_t base,
                        const struct gps_freed *freed, unsigned number) {
    GPS_NEW_TEXT(text, 160);
    struct gps_report report = gps_report_on(GPS_ASK_COPIED, known);
    const bool closed = known == GPS_KNOWN_CLOSED;
    if (number)
        gps_text_add(&text, "it is argument %u of the kernel", number);
    if (freed->with_context)
        gps_text_strs(&text, number ? "; " : "", "the end of its context had closed it");
    else if (address != base)
        gps_text_add(&text, "%sit lies %lu bytes behind the beginning, which was 0x%lx",
                     number ? "; " : "", address - base, base);
    report.pointer = address;
    report.detail = text.length ? text.bytes : NULL;
    gps_report_about_freed(&report, freed, closed ? "opened" : "allocated",
                           closed ? "closed" : "freed");
    gps_report_send(&report);
}

/* Whether the address is in use: by the driver's answer, a reservation, or as main memory. */
static bool is_used_again(uint64_t address) {
    uint64_t place, size;
    char byte = 0;
    return gps_ops->kind(address) != GPS_MEMORY_UNKNOWN ||
           gps_vmm_reservation(address, &place, &size) || gps_peek(address, &byte, sizeof(byte));
}

/* For a kernel's argument only closed imports are reported: any number may look like an address
 * that the program has freed. */
static bool look_at_the_past(uint64_t address, unsigned number) {
    struct gps_freed closed, freed;
    uint64_t base, other;
    const bool was_closed = gps_freed_around(GPS_FREED_IMPORT, address, &base, &closed);
    const bool was_freed =
        (was_closed || !number) && gps_freed_around(GPS_FREED_MEMORY, address, &other, &freed);
    if (was_closed == was_freed || is_used_again(address))
        return false;
    if (was_closed)
        report_gone(GPS_KNOWN_CLOSED, address, base, &closed, number);
    else
        report_gone(GPS_KNOWN_FREED, address, other, &freed, 0);
    return true;
}

/* --- addresses where nothing is mapped --- */

/* Finds the first address of the range that lies in no mapping of the books. */
static bool find_hole(uint64_t address, uint64_t size, uint64_t *hole) {
    struct gps_vmm_mapping mapping = {.pointer = 0};
    struct gps_vmm_memory memory;
    uint64_t at = address;
    while (at - address < size && gps_vmm_mapping_from(at, &mapping, &memory) &&
           mapping.pointer <= at)
        at = mapping.pointer + mapping.size;
    *hole = at;
    return at - address < size;
}

/* Only for a range that the program has reserved, which is no other memory. */
static bool copied_range_is_unmapped(uint64_t address, uint64_t size) {
    struct gps_freed unmapped;
    uint64_t hole, base;
    if (!find_hole(address, size, &hole) || !gps_vmm_is_empty(hole, 1))
        return false;
    GPS_NEW_TEXT(text, 128);
    struct gps_report report = gps_report_on(GPS_ASK_COPIED, GPS_KNOWN_UNMAPPED);
    gps_text_add(&text, "nothing is mapped at 0x%lx", hole);
    if (gps_freed_around(GPS_FREED_MAPPING, hole, &base, &unmapped)) {
        gps_text_add(&text, ": the 0x%lx bytes at 0x%lx were unmapped", unmapped.size, base);
        gps_report_about_freed(&report, &unmapped, "mapped", NULL);
    }
    report.detail = text.bytes;
    report.pointer = address;
    report.size = size;
    gps_report_send(&report);
    return true;
}

void gps_diagnose_unmapped(uint64_t address, uint64_t size, int code) {
    if (code != GPS_INVALID_VALUE)
        return;
    GPS_SCOPE();
    copied_range_is_unmapped(address, size);
}

/* --- the ends of a range --- */

/* Memory of a token is many blocks, which refused_writes.c knows. */
static bool copied_import_find(uint64_t address, struct gps_report *report, uint64_t *size) {
    struct gps_import import;
    if (!gps_registry_import_around(address, &import) || import.mirrored || !import.size)
        return false;
    gps_report_about_import(report, &import);
    report->pointer = import.pointer;
    *size = import.size;
    return true;
}

static bool find_allocation(uint64_t address, struct gps_report *report, uint64_t *size) {
    struct gps_alloc alloc;
    uint64_t base;
    if (gps_ops->range(address, &base, size) != GPS_OK || !gps_registry_find(base, &alloc) ||
        !gps_alloc_is_drivers(&alloc))
        return false;
    report->pointer = base;
    report->size = *size = alloc.size;
    report->context = alloc.context;
    report->device = alloc.device;
    gps_report_prior(report, "allocated", alloc.trace);
    return true;
}

static bool reaches_out(uint64_t address, uint64_t size) {
    GPS_NEW_TEXT(text, 192);
    uint64_t room;
    struct gps_report report = gps_report_on(GPS_ASK_COPIED, GPS_KNOWN_INTERIOR);
    if (!copied_import_find(address, &report, &room) && !find_allocation(address, &report, &room))
        return false;
    const uint64_t offset = address - report.pointer;
    if (offset > room || size <= room - offset)
        return false;
    gps_text_add(&text, "%lu bytes from offset %lu on end %lu bytes behind the end", size, offset,
                 size - (room - offset));
    report.detail = text.bytes;
    gps_report_send(&report);
    return true;
}

static void begins_outside(uint64_t address) {
    GPS_NEW_TEXT(text, 192);
    if (is_used_again(address))
        return;
    struct gps_report report = gps_report_on(GPS_ASK_COPIED, GPS_KNOWN_NOTHING);
    gps_whereabouts_say(&text, address);
    report.pointer = address;
    report.detail = text.bytes;
    gps_report_send(&report);
}

void gps_diagnose_copy(uint64_t address, uint64_t size, int code) {
    if (code != GPS_INVALID_VALUE || !address || !size)
        return;
    GPS_DRIVER_SCOPE();
    if (!is_closed_to_us(address, size) && !copied_range_is_unmapped(address, size) &&
        !look_at_the_past(address, 0) && !reaches_out(address, size))
        begins_outside(address);
}

void gps_diagnose_argument(uint64_t address, unsigned number) {
    GPS_DRIVER_SCOPE();
    look_at_the_past(address, number);
}
