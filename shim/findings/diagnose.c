/* diagnose.c - see diagnose.h: frees, closes and exports. */
#include "diagnose.h"

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "process/process.h"
#include "registry/vmm_books.h"
#include "reporter.h"
#include "stack/trace.h"

/* The memory that a pointer turned out to be of. */
struct subject {
    uint64_t base; /* of the memory that it lies in; 0: none that is known */
    struct gps_alloc alloc;
    struct gps_import import;
    struct gps_freed freed;
    bool is_alloc, is_import, was_freed;
};

/* --- what lies at an address --- */

static bool find_at(uint64_t base, struct subject *subject) {
    subject->is_import = gps_registry_import_at(base, &subject->import);
    subject->is_alloc = !subject->is_import && gps_registry_find(base, &subject->alloc);
    subject->base = subject->is_import || subject->is_alloc ? base : 0;
    return subject->base != 0;
}

/* A token's memory is many blocks, which the driver knows singly; another token can begin in it. */
static bool subject_find_import(uint64_t pointer, enum gps_freed_kind kind,
                                struct subject *subject) {
    struct gps_import import;
    if (!gps_registry_import_around(pointer, &import))
        return false;
    subject->was_freed = import.mirrored && gps_freed_find(kind, pointer, &subject->freed);
    return subject->was_freed || find_at(import.pointer, subject);
}

/* Finds the memory that begins exactly there, or else that in which the address lies by the driver,
 * or else memory that was freed there. A cached import does not exist for the program. */
static void subject_find(uint64_t pointer, enum gps_freed_kind kind, struct subject *subject) {
    uint64_t base, size;
    if (!pointer || find_at(pointer, subject) || subject_find_import(pointer, kind, subject))
        return;
    if (gps_ops->range(pointer, &base, &size) == GPS_OK && !gps_registry_caches(base)) {
        find_at(base, subject);
        subject->base = base;
    }
    subject->was_freed = !subject->base && gps_freed_find(kind, pointer, &subject->freed);
}

/* Finds it in the process's own books, for a driver that gives no answer. */
static void subject_recall(uint64_t pointer, enum gps_freed_kind kind, struct subject *subject) {
    if (pointer && !find_at(pointer, subject) && gps_freed_find(kind, pointer, &subject->freed))
        subject->freed.ended = GPS_NO_TRACE; /* this very call */
}

static bool is_interior(uint64_t pointer, const struct subject *subject) {
    return subject->base && subject->base != pointer;
}

/* --- the state of the memory --- */

/* Whether the program has opened it: what a rule has open is an allocation to the program. */
static bool is_opened(const struct subject *subject) {
    return subject->is_import && !subject->import.opens.by_rule;
}

static enum gps_known known_of_free(uint64_t pointer, const struct subject *subject) {
    const bool known = subject->is_import || subject->is_alloc;
    return !known && pointer && gps_ops->kind(pointer) == GPS_MEMORY_HOST ? GPS_KNOWN_HOST
           : is_opened(subject)                                           ? GPS_KNOWN_OPEN_HERE
           : is_interior(pointer, subject)                                ? GPS_KNOWN_INTERIOR
           : subject->was_freed                                           ? GPS_KNOWN_FREED
                                                                          : GPS_KNOWN_NOTHING;
}

static enum gps_known known_of_close(uint64_t pointer, const struct subject *subject) {
    if (subject->is_import && subject->import.via != GPS_VIA_RULE)
        return is_interior(pointer, subject) ? GPS_KNOWN_INTERIOR : GPS_KNOWN_LIVE;
    return subject->base ? GPS_KNOWN_OWN : subject->was_freed ? GPS_KNOWN_FREED : GPS_KNOWN_NOTHING;
}

/* LIVE where the code is not about the argument. */
enum gps_known gps_known_of_code(int code) {
    uint64_t context = 0;
    if (code == GPS_DEINITIALIZED)
        return GPS_KNOWN_SHUT_DOWN;
    if (code == GPS_INVALID_CONTEXT && gps_ops->context(&context) == GPS_OK && !context)
        return GPS_KNOWN_NO_CONTEXT;
    return GPS_KNOWN_LIVE;
}

static enum gps_known subject_known(enum gps_ask ask, uint64_t pointer, int code,
                                    struct subject *subject) {
    const enum gps_freed_kind kind = ask == GPS_ASK_CLOSED ? GPS_FREED_IMPORT : GPS_FREED_MEMORY;
    if (code != GPS_INVALID_VALUE) {
        subject_recall(pointer, kind, subject);
        return gps_known_of_code(code);
    }
    subject_find(pointer, kind, subject);
    return ask == GPS_ASK_FREED    ? known_of_free(pointer, subject)
           : ask == GPS_ASK_CLOSED ? known_of_close(pointer, subject)
                                   : GPS_KNOWN_NOTHING;
}

/* --- the words of a report --- */

/* Why VMM memory has no token (ipc/token.h). */
static const char *kind_of_vmm(uint64_t pointer, struct gps_text *text) {
    struct gps_vmm_mapping mapping;
    struct gps_vmm_memory memory = {.origin = GPS_VMM_CREATED};
    if (gps_process_config()->options.vmm_ipc != GPS_VMM_IPC_ON) {
        gps_text_add(text,
                     "it is VMM memory (%s): share it with %s, or set vmm_ipc = on, which gives it "
                     "handles",
                     gps_ops->names->make_block, gps_ops->names->export_block);
        return text->bytes;
    }
    if (!gps_vmm_mapping_from(pointer, &mapping, &memory) || mapping.pointer > pointer)
        return "it is VMM memory, and its mapping was not seen: no handle can be made of it";
    return memory.origin == GPS_VMM_IMPORTED
               ? "it is VMM memory of another process, which this one has imported: have that "
                 "process get the handle"
           : memory.origin == GPS_VMM_MULTICAST
               ? "an object of multicast is mapped there, which has no memory of its own: get "
                 "the handles of the memory that is bound to it"
           : memory.device < 0
               ? "it is VMM memory of the host: vmm_ipc gives handles to that of devices"
               : "it is VMM memory that the driver gives no descriptor of, or the published "
                 "directory cannot be used";
}

static const char *kind_of_other(enum gps_memory_kind kind, struct gps_text *text) {
    const struct gps_names *names = gps_ops->names;
    switch (kind) {
    case GPS_MEMORY_DEVICE:
        return "the driver calls it ordinary device memory, and refuses";
    case GPS_MEMORY_HOST:
        return "it is host memory: share that with mmap, and register it in each process";
    case GPS_MEMORY_MERGED:
        return "it is taken by a rule with role = merge, and merged memory has no handle";
    case GPS_MEMORY_POOL:
        gps_text_add(text, "it is memory of a pool (%s): share the pool, with %s",
                     names->make_pooled, names->export_pool);
        break;
    case GPS_MEMORY_MANAGED:
        gps_text_add(text, "it is managed memory (%s), which belongs to one process",
                     names->make_managed);
        break;
    default:
        gps_text_add(text, "the pointer is not memory that %s knows", names->vendor);
    }
    return text->bytes;
}

static const char *subject_kind_text(uint64_t pointer, const struct subject *subject,
                                     struct gps_text *text) {
    const enum gps_memory_kind kind = gps_ops->kind(pointer);
    return subject->is_import
               ? "it is memory of another process: pass on the handle that was opened"
           : subject->was_freed     ? "the memory was freed before"
           : kind == GPS_MEMORY_VMM ? kind_of_vmm(pointer, text)
                                    : kind_of_other(kind, text);
}

static const char *where(uint64_t pointer, struct gps_text *text) {
    if (gps_ops->kind(pointer) != GPS_MEMORY_VMM)
        gps_whereabouts_say(text, pointer);
    else
        gps_text_add(text, "it is VMM memory (%s), which is unmapped and released",
                     gps_ops->names->make_block);
    return text->bytes;
}

/* "the pointer lies 4096 bytes behind the beginning, which is 0x7f..." */
static const char *detail_of(enum gps_ask ask, enum gps_known known, uint64_t pointer,
                             const struct subject *subject, struct gps_text *text) {
    if (known == GPS_KNOWN_NO_CONTEXT || known == GPS_KNOWN_SHUT_DOWN)
        return ask == GPS_ASK_CLOSED && known == GPS_KNOWN_NO_CONTEXT ? "nothing was closed" : NULL;
    if (ask == GPS_ASK_EXPORTED)
        return subject_kind_text(pointer, subject, text);
    if (ask == GPS_ASK_FREED && known == GPS_KNOWN_NOTHING)
        return where(pointer, text);
    if (ask == GPS_ASK_CLOSED && !pointer)
        return "the pointer is null";
    if (ask == GPS_ASK_CLOSED && subject->freed.with_context)
        return "the end of its context had closed it";
    if (!is_interior(pointer, subject))
        return NULL;
    gps_text_add(text, "the pointer lies %lu bytes behind the beginning, which is 0x%lx",
                 pointer - subject->base, subject->base);
    return text->bytes;
}

/* Describes memory that the program has made, and mapped at the address. */
static void describe_mapping(struct gps_report *report, uint64_t pointer) {
    struct gps_vmm_mapping mapping;
    struct gps_vmm_memory memory;
    if (!gps_vmm_mapping_from(pointer, &mapping, &memory) || mapping.pointer > pointer)
        return;
    report->size = mapping.size;
    gps_report_about_memory(report, &memory);
    gps_report_prior(report, "mapped", mapping.mapped);
}

static void subject_describe(struct gps_report *report, enum gps_ask ask, uint64_t pointer,
                             const struct subject *subject) {
    const bool closed = ask == GPS_ASK_CLOSED;
    if (subject->is_import) {
        gps_report_about_import(report, &subject->import);
    } else if (subject->is_alloc) {
        report->size = subject->alloc.size;
        report->context = subject->alloc.context;
        report->device = subject->alloc.device;
        gps_report_prior(report, "allocated", subject->alloc.trace);
    } else {
        gps_report_about_freed(report, &subject->freed, closed ? "opened" : "allocated",
                               closed ? "closed" : "freed");
        if (ask == GPS_ASK_EXPORTED)
            describe_mapping(report, pointer);
    }
    report->pointer = pointer;
}

static void diagnose(enum gps_ask ask, uint64_t pointer, int code) {
    GPS_NEW_TEXT(text, 256);
    struct subject subject = {.freed.device = -1};
    const enum gps_known known = subject_known(ask, pointer, code, &subject);
    struct gps_report report = gps_report_on(ask, known);
    if (report.finding == GPS_NO_FINDING)
        return;
    subject_describe(&report, ask, pointer, &subject);
    if (report.finding == GPS_IPC_CALL_FAILED)
        gps_report_code(&report, &text, code);
    else
        report.detail = detail_of(ask, known, pointer, &subject, &text);
    if (report.finding == GPS_EXPORT_NOT_CAPABLE)
        report.variant = gps_report_variant(report.detail);
    if (report.finding == GPS_EXPORT_NOT_CAPABLE && gps_ops->kind(pointer) == GPS_MEMORY_MERGED)
        report.hint = "give what is exported a rule of its own, before the one with role = merge";
    gps_report_send(&report);
}

/* A free is no IPC call: if its code is not about the pointer, it is not reported. */
void gps_diagnose_pointer(enum gps_ask ask, uint64_t pointer, int code) {
    if (ask == GPS_ASK_FREED && code != GPS_INVALID_VALUE)
        return;
    GPS_DRIVER_SCOPE();
    diagnose(ask, pointer, code);
}

/* --- calls that were refused before --- */

void gps_diagnose_no_output(void) {
    GPS_SCOPE();
    struct gps_report report = gps_report_on(GPS_ASK_OPENED, GPS_KNOWN_NO_OUTPUT);
    gps_report_send(&report);
}

void gps_diagnose_refused_early(int code) {
    GPS_NEW_TEXT(text, 256);
    GPS_SCOPE();
    struct gps_report report = gps_report_on(
        GPS_ASK_OPENED, code == GPS_DEINITIALIZED ? GPS_KNOWN_SHUT_DOWN : GPS_KNOWN_LIVE);
    if (report.finding == GPS_IPC_CALL_FAILED)
        gps_report_code(&report, &text, code);
    gps_report_send(&report);
}

void gps_diagnose_freed(uint64_t pointer, uint64_t base, enum gps_finding finding,
                        const char *detail) {
    struct subject subject = {.freed.device = -1};
    GPS_SCOPE();
    struct gps_report report = gps_report_new(finding);
    report.detail = detail;
    gps_freed_find(GPS_FREED_MEMORY, base, &subject.freed);
    subject_describe(&report, GPS_ASK_FREED, pointer, &subject);
    gps_report_send(&report);
}
