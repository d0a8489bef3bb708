/* diagnose_books.c - see diagnose.h: calls for VMM memory and pools, by the books. */
#include <errno.h>
#include <sys/stat.h>

#include "diagnose.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "process/membership.h"
#include "registry/freed_history.h"
#include "registry/vmm_books.h"
#include "reporter.h"
#include "util/text.h"

/* Whether the handle was released before. */
static bool is_released(enum gps_ask ask, uint64_t handle) {
    struct gps_vmm_memory memory;
    struct gps_freed freed;
    if (!handle || gps_vmm_find(handle, &memory) ||
        !gps_freed_find(GPS_FREED_HANDLE, 2 * handle, &freed))
        return false;
    GPS_NEW_TEXT(text, 64);
    GPS_SCOPE();
    struct gps_report report = gps_report_on(ask, GPS_KNOWN_FREED);
    gps_text_add(&text, "the handle is 0x%lx", handle);
    report.detail = text.bytes;
    gps_report_about_freed(&report, &freed, "created", "released");
    gps_report_send(&report);
    return true;
}

void gps_diagnose_release(uint64_t handle, int code) {
    if (code == GPS_INVALID_VALUE)
        is_released(GPS_ASK_VMM_RELEASED, handle);
}

/* Whether the value is no multiple of the driver's granularity. */
static bool is_uneven(const char *what, uint64_t value) {
    uint64_t granularity;
    GPS_NEW_TEXT(text, 128);
    GPS_DRIVER_SCOPE();
    if (gps_ops->least_granularity(0, &granularity) != GPS_OK || value % granularity == 0)
        return false;
    struct gps_report report = gps_report_on(GPS_ASK_VMM_MAPPED, GPS_KNOWN_UNEVEN);
    gps_text_strs(&text, "the ", what, " is ");
    gps_text_add(&text, "0x%lx, and no multiple of 0x%lx", value, granularity);
    report.detail = text.bytes;
    gps_report_send(&report);
    return true;
}

void gps_diagnose_vmm_create(uint64_t size, int code) {
    if (code == GPS_INVALID_VALUE)
        is_uneven("size", size);
}

/* Finds a mapping of which the range has only a part. */
static bool is_cut(uint64_t pointer, uint64_t size, struct gps_vmm_mapping *mapping,
                   struct gps_vmm_memory *memory) {
    for (uint64_t at = pointer; at - pointer < size && gps_vmm_mapping_from(at, mapping, memory) &&
                                (mapping->pointer < pointer || mapping->pointer - pointer < size);
         at = mapping->pointer + mapping->size)
        if (mapping->pointer < pointer || mapping->pointer + mapping->size - pointer > size)
            return true;
    return false;
}

/* A report on a call for a range of addresses. */
static struct gps_report report_range(enum gps_ask ask, enum gps_known known, uint64_t pointer,
                                      uint64_t size, const struct gps_text *detail) {
    struct gps_report report = gps_report_on(ask, known);
    report.pointer = pointer;
    report.size = size;
    report.detail = detail->bytes;
    report.variant = known;
    return report;
}

/* Whether memory is mapped somewhere in the range. */
static bool range_is_taken(enum gps_ask ask, uint64_t pointer, uint64_t size) {
    struct gps_vmm_mapping mapping;
    struct gps_vmm_memory memory;
    if (!gps_vmm_mapping_from(pointer, &mapping, &memory) ||
        (mapping.pointer > pointer && mapping.pointer - pointer >= size))
        return false;
    GPS_NEW_TEXT(text, 96);
    GPS_SCOPE();
    gps_text_add(&text, "0x%lx bytes are mapped at 0x%lx", mapping.size, mapping.pointer);
    struct gps_report report = report_range(ask, GPS_KNOWN_MAPPED, pointer, size, &text);
    report.device = memory.device;
    gps_report_prior(&report, "mapped", mapping.mapped);
    gps_report_send(&report);
    return true;
}

/* Memory of the host can have a smaller granularity. */
void gps_diagnose_map(uint64_t handle, uint64_t pointer, uint64_t size, int code) {
    struct gps_vmm_memory memory;
    if (code == GPS_INVALID_VALUE && !is_released(GPS_ASK_VMM_MAPPED, handle) &&
        !range_is_taken(GPS_ASK_VMM_MAPPED, pointer, size) && gps_vmm_find(handle, &memory) &&
        memory.device >= 0 && !is_uneven("size", size))
        is_uneven("address", pointer);
}

void gps_diagnose_unmap(uint64_t pointer, uint64_t size, int code) {
    struct gps_vmm_mapping mapping = {.pointer = 0};
    struct gps_vmm_memory memory;
    if (code != GPS_INVALID_VALUE || !is_cut(pointer, size, &mapping, &memory))
        return;
    GPS_NEW_TEXT(text, 160);
    GPS_SCOPE();
    gps_text_add(&text, "0x%lx bytes from 0x%lx on; the mapping is 0x%lx bytes from 0x%lx on", size,
                 pointer, mapping.size, mapping.pointer);
    struct gps_report report =
        report_range(GPS_ASK_VMM_UNMAPPED, GPS_KNOWN_INTERIOR, pointer, size, &text);
    gps_report_about_memory(&report, &memory);
    gps_report_prior(&report, "mapped", mapping.mapped);
    gps_report_send(&report);
}

void gps_diagnose_unmap_nothing(uint64_t pointer, uint64_t size) {
    GPS_NEW_TEXT(text, 128);
    GPS_SCOPE();
    gps_text_add(&text, "nothing is mapped in the 0x%lx bytes from 0x%lx on; the driver answers 0",
                 size, pointer);
    struct gps_report report =
        report_range(GPS_ASK_VMM_UNMAPPED, GPS_KNOWN_UNMAPPED, pointer, size, &text);
    gps_report_send(&report);
}

static enum gps_known vmm_export_known(bool imported, uint32_t types, uint32_t type) {
    return imported ? GPS_KNOWN_IMPORTED : types & type ? GPS_KNOWN_LIVE : GPS_KNOWN_TYPES;
}

static const char *lack_of(enum gps_known known, uint32_t types) {
    return known == GPS_KNOWN_IMPORTED ? NULL
           : types                     ? "it was made with another type"
                                       : "it was made without any";
}

static void send_named(struct gps_report *report) {
    if (report->finding != GPS_NO_FINDING)
        gps_report_send(report);
}

void gps_diagnose_vmm_export(uint64_t handle, uint32_t type, int code) {
    struct gps_vmm_memory memory;
    if (code != GPS_INVALID_VALUE || is_released(GPS_ASK_VMM_EXPORTED, handle) ||
        !gps_vmm_find(handle, &memory))
        return;
    GPS_SCOPE();
    const enum gps_known known =
        vmm_export_known(memory.origin == GPS_VMM_IMPORTED, memory.types, type);
    struct gps_report report = gps_report_on(GPS_ASK_VMM_EXPORTED, known);
    gps_report_about_memory(&report, &memory);
    report.size = memory.size;
    report.detail = lack_of(known, memory.types);
    send_named(&report);
}

enum wrong { NOTHING_WRONG, AN_ADDRESS, NOT_OPEN, A_FILE, A_SOCKET };

/* Whether the descriptor is of a file that is not the driver's: those are devices. */
static enum wrong wrong_file(int descriptor) {
    struct stat file;
    if (fstat(descriptor, &file) < 0)
        return errno == EBADF ? NOT_OPEN : NOTHING_WRONG;
    return S_ISREG(file.st_mode) || S_ISDIR(file.st_mode)     ? A_FILE
           : S_ISSOCK(file.st_mode) || S_ISFIFO(file.st_mode) ? A_SOCKET
                                                              : NOTHING_WRONG;
}

/* An address is no number, nor a negative one that was made wider. */
static enum wrong shared_handle_wrong(uint64_t shared) {
    return shared >> 32 && (int64_t)shared != (int)shared ? AN_ADDRESS : wrong_file((int)shared);
}

/* Adds the import, or export, by a descriptor whose number is closed by now. */
static void add_past(struct gps_report *report, int number) {
    struct gps_vmm_descriptor past;
    if (gps_vmm_descriptor_of(number, &past))
        gps_report_prior(report, past.way == GPS_VMM_EXPORTED_AS ? "exported" : "opened",
                         past.trace);
}

static void say_wrong(struct gps_text *text, uint64_t shared, enum wrong wrong) {
    static const char *const said[] = {[NOT_OPEN] = "is not open in this process",
                                       [A_FILE] = "is of an ordinary file",
                                       [A_SOCKET] = "is of a socket or a pipe"};
    if (wrong == AN_ADDRESS)
        gps_text_add(text, "0x%lx looks like an address, and not like a descriptor", shared);
    else
        gps_text_add(text, (int)shared < 0 ? "number -%u %s" : "number %u %s",
                     (int)shared < 0 ? 0u - (unsigned)shared : (unsigned)shared, said[wrong]);
}

static void report_import(uint64_t shared, enum wrong wrong, int code, const char *more) {
    GPS_NEW_TEXT(text, 256);
    const bool unseen = code == GPS_INVALID_DEVICE, unreached = code == GPS_PEER_UNSUPPORTED;
    if (!wrong && !unseen && !unreached)
        return;
    gps_text_add(&text, "the driver's code is %u: ", (unsigned)code);
    struct gps_report report =
        gps_report_on(GPS_ASK_VMM_IMPORTED, wrong ? GPS_KNOWN_NOTHING : GPS_KNOWN_UNREACHABLE);
    if (wrong)
        say_wrong(&text, shared, wrong);
    else
        gps_text_str(&text, unseen ? "this process does not see the GPU of the memory "
                                     "(CUDA_VISIBLE_DEVICES)"
                                   : "no GPU that this process sees reaches the memory");
    gps_text_str(&text, wrong == NOT_OPEN ? more : "");
    report.detail = text.bytes;
    report.variant = wrong;
    if (wrong && wrong != AN_ADDRESS)
        add_past(&report, (int)shared);
    gps_report_send(&report);
}

void gps_diagnose_vmm_import(uint64_t shared, int code) {
    GPS_SCOPE();
    const bool out_of_reach = code == GPS_INVALID_DEVICE || code == GPS_PEER_UNSUPPORTED;
    report_import(shared, out_of_reach ? NOTHING_WRONG : shared_handle_wrong(shared), code, "");
}

int gps_diagnose_descriptor(int descriptor) {
    GPS_SCOPE();
    return (int)wrong_file(descriptor);
}

void gps_diagnose_external(int descriptor, int wrong, int code) {
    GPS_SCOPE();
    if (code == GPS_UNKNOWN)
        report_import((uint64_t)(int64_t)descriptor, (enum wrong)wrong, code,
                      "; an import of external memory closes its descriptor");
}

void gps_diagnose_unreserve(uint64_t pointer, uint64_t size, int code) {
    uint64_t reserved, length;
    if (code == GPS_INVALID_VALUE && gps_vmm_reservation(pointer, &reserved, &length) &&
        reserved == pointer && length == size)
        range_is_taken(GPS_ASK_VMM_UNRESERVED, pointer, size);
}

void gps_diagnose_refused(bool nowhere, int code) {
    GPS_NEW_TEXT(text, 256);
    if (nowhere && code == GPS_INVALID_VALUE) {
        gps_diagnose_no_output();
        return;
    }
    GPS_SCOPE();
    struct gps_report report = gps_report_on(GPS_ASK_NOTED_REFUSAL, GPS_KNOWN_NOTHING);
    gps_report_code(&report, &text, code);
    gps_report_send(&report);
}

/* --- memory pools --- */

static struct gps_report report_on(enum gps_ask ask, enum gps_known known,
                                   const struct gps_pool *pool) {
    struct gps_report report = gps_report_on(ask, known);
    report.device = pool->device;
    gps_report_prior(&report, pool->imported ? "opened" : "created", pool->made);
    return report;
}

void gps_diagnose_pool_allocation(uint64_t pool, int code) {
    struct gps_pool found;
    if (code != GPS_INVALID_VALUE || !gps_pool_find(pool, &found) || !found.imported)
        return;
    GPS_SCOPE();
    struct gps_report report = report_on(GPS_ASK_POOL_ALLOCATED, GPS_KNOWN_IMPORTED, &found);
    gps_report_send(&report);
}

void gps_diagnose_pool_export(uint64_t pool, uint32_t type, int code) {
    struct gps_pool found;
    if (code != GPS_INVALID_VALUE || !gps_pool_find(pool, &found))
        return;
    GPS_SCOPE();
    const enum gps_known known = vmm_export_known(found.imported, found.types, type);
    struct gps_report report = report_on(GPS_ASK_VMM_EXPORTED, known, &found);
    report.detail = lack_of(known, found.types);
    send_named(&report);
}

static void report_freed(enum gps_ask ask, uint64_t pointer, const struct gps_freed *freed,
                         const char *born) {
    GPS_SCOPE();
    struct gps_report report = gps_report_on(ask, GPS_KNOWN_FREED);
    report.pointer = pointer;
    gps_report_about_freed(&report, freed, born, "freed");
    gps_report_send(&report);
}

static void report_pointer(enum gps_known known, const struct gps_pool_pointer *pointer,
                           uint32_t types) {
    GPS_SCOPE();
    struct gps_report report = gps_report_on(GPS_ASK_VMM_EXPORTED, known);
    report.pointer = pointer->pointer;
    report.size = pointer->size;
    report.context = pointer->context;
    report.detail = lack_of(known, types);
    gps_report_prior(&report, pointer->imports ? "opened" : "allocated", pointer->made);
    send_named(&report);
}

/* Memory of the device's own pool is in no book. */
void gps_diagnose_pool_pointer_export(uint64_t pointer, int code) {
    struct gps_pool_pointer found;
    struct gps_pool pool;
    struct gps_freed freed;
    if (code != GPS_INVALID_VALUE)
        return;
    if (!gps_pool_pointer_find(pointer, &found)) {
        if (gps_freed_find(GPS_FREED_MEMORY, pointer, &freed))
            report_freed(GPS_ASK_COPIED, pointer, &freed, "allocated");
        return;
    }
    const bool known = gps_pool_find(found.pool, &pool) && pool.serial == found.serial;
    if (found.imports || (known && !pool.types))
        report_pointer(found.imports ? GPS_KNOWN_IMPORTED : GPS_KNOWN_TYPES, &found, 0);
}

/* A pointer freed in the order of its stream stays the pool's until its turn comes. */
void gps_diagnose_pool_free(uint64_t pointer, int code) {
    struct gps_freed freed;
    if (code != GPS_INVALID_VALUE)
        return;
    if (gps_freed_find(GPS_FREED_POINTER, pointer, &freed))
        report_freed(GPS_ASK_POOL_FREED, pointer, &freed, "opened");
    else if (gps_freed_find(GPS_FREED_MEMORY, pointer, &freed) &&
             gps_ops->kind(pointer) == GPS_MEMORY_POOL)
        report_freed(GPS_ASK_FREED, pointer, &freed, "allocated");
}

/* The imported pointer may be another pool's, with equal data. */
void gps_diagnose_pool_order(const struct gps_pool_pointer *pointer) {
    struct gps_party users[GPS_USERS_REPORTED];
    GPS_SCOPE();
    const int count = gps_membership_join() == 0
                          ? gps_references_users(&pointer->id, users, GPS_USERS_REPORTED, NULL)
                          : 0;
    if (count <= 0 || gps_pool_pointer_has(&pointer->id))
        return;
    struct gps_report report = gps_report_on(GPS_ASK_POOL_FREED, GPS_KNOWN_HELD);
    report.pointer = pointer->pointer;
    report.size = pointer->size;
    report.context = pointer->context;
    gps_report_users(&report, users, count);
    gps_report_prior(&report, "allocated", pointer->made);
    gps_report_prior(&report, "exported", pointer->exported_at);
    gps_report_send(&report);
}

void gps_diagnose_pool_destroyed(const struct gps_pool *pool) {
    struct gps_pool_pointer first;
    GPS_NEW_TEXT(text, 64);
    if (!gps_pool_pointer_of(pool, &first))
        return;
    GPS_SCOPE();
    struct gps_report report = report_on(GPS_ASK_NOTED_POOL, GPS_KNOWN_OPEN, pool);
    gps_text_add(&text, "%u of its pointers %s alive", pool->pointers,
                 pool->pointers == 1 ? "is" : "are");
    report.pointer = first.pointer;
    report.size = first.size;
    report.context = first.context;
    report.detail = text.bytes;
    gps_report_prior(&report, first.imports ? "opened" : "allocated", first.made);
    gps_report_send(&report);
}
