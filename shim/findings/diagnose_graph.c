/* diagnose_graph.c - see diagnose.h: graphs with memory that has ended. */
#include "diagnose.h"
#include "driver/driver_ops.h"
#include "registry/vmm_books.h"
#include "reporter.h"
#include "util/peek.h"
#include "util/text.h"

/* Whether no memory is there by now: by the driver's answer, in the books, or main memory. */
static bool graph_memory_is_gone(uint64_t address) {
    uint64_t place, size;
    char byte = 0;
    return gps_ops->kind(address) == GPS_MEMORY_UNKNOWN &&
           (gps_vmm_reservation(address, &place, &size) ? gps_vmm_is_empty(address, 1)
                                                        : !gps_peek(address, &byte, sizeof(byte)));
}

static void say_node(struct gps_text *text, const struct gps_graph_use *use) {
    static const char *const ways[] = {[GPS_NODE_KERNEL] = ", a kernel, has it as argument ",
                                       [GPS_NODE_READS] = ", a copy, reads it",
                                       [GPS_NODE_WRITES] = ", a copy, writes it",
                                       [GPS_NODE_FILLS] = ", a fill, writes it"};
    gps_text_add(text, "node %u of the ", use->node);
    if (use->parent)
        gps_text_add(text, "child graph in node %u", use->parent - 1);
    else
        gps_text_str(text, "graph");
    gps_text_str(text, ways[use->way]);
    if (use->way == GPS_NODE_KERNEL)
        gps_text_add(text, "%u", use->argument);
    if (use->name[0])
        gps_text_add(text, " of %s", use->name);
    if (use->address != use->memory.base)
        gps_text_add(text, "; it lies %lu bytes behind the beginning, which was 0x%lx",
                     use->address - use->memory.base, use->memory.base);
}

bool gps_diagnose_graph(const struct gps_graph_use *use, const struct gps_freed *freed) {
    static const struct {
        enum gps_known known;
        const char *born, *ended;
    } ends[GPS_FREED_KINDS] = {
        [GPS_FREED_MEMORY] = {GPS_KNOWN_FREED, "allocated", "freed"},
        [GPS_FREED_IMPORT] = {GPS_KNOWN_CLOSED, "opened", "closed"},
        [GPS_FREED_MAPPING] = {GPS_KNOWN_UNMAPPED, "mapped", NULL},
    };
    GPS_NEW_TEXT(text, 320);
    if (!graph_memory_is_gone(use->address))
        return false;
    const enum gps_freed_kind kind = use->memory.kind;
    struct gps_report report = gps_report_on(GPS_ASK_COPIED, ends[kind].known);
    say_node(&text, use);
    if (freed->with_context)
        gps_text_str(&text, "; the end of its context had closed it");
    report.pointer = use->address;
    report.detail = text.bytes;
    report.variant = (uint64_t)use->node << 32 | (uint64_t)use->parent << 8 | use->argument;
    gps_report_about_freed(&report, freed, ends[kind].born, ends[kind].ended);
    gps_report_send(&report);
    return true;
}
