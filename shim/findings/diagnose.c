/* diagnose.c - see diagnose.h: frees, closes and exports. */
#include "diagnose.h"

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "registry/freed_history.h"
#include "reporter.h"
#include "util/text.h"

/* What a pointer turned out to be. */
struct subject {
    enum gps_known known;
    uint64_t base; /* of what it lies in; 0: nothing that is known */
    struct gps_alloc alloc;
    struct gps_import import;
    struct gps_freed freed;
    bool is_alloc, is_import;
};

static bool is_named(const struct gps_report *report) {
    return report->finding != GPS_NO_FINDING;
}

/* --- what lies at an address --- */

static bool find_at(uint64_t base, struct subject *subject) {
    subject->is_import = gps_registry_import_at(base, &subject->import);
    subject->is_alloc = !subject->is_import && gps_registry_find(base, &subject->alloc);
    subject->base = subject->is_import || subject->is_alloc ? base : 0;
    return subject->base != 0;
}

/* Finds what begins exactly there, or else what the driver says the address lies in. What is cached
 * does not exist for the program. */
static void find(uint64_t pointer, struct subject *subject) {
    uint64_t base, size;
    *subject = (struct subject){.freed.device = -1};
    if (!pointer || find_at(pointer, subject))
        return;
    if (gps_ops->range(pointer, &base, &size) == GPS_OK && !gps_registry_caches(base)) {
        find_at(base, subject);
        subject->base = base;
    }
}

/* Whether it was freed, and nothing else has come to its address by a way that we do not see. */
static bool was_freed(enum gps_freed_kind kind, uint64_t pointer, struct subject *subject) {
    return !subject->base && gps_freed_find(kind, pointer, &subject->freed);
}

static void describe(struct gps_report *report, uint64_t pointer, const struct subject *subject) {
    if (subject->is_import) {
        gps_report_about_import(report, &subject->import);
    } else if (subject->is_alloc) {
        report->size = subject->alloc.size;
        report->context = subject->alloc.context;
        gps_report_prior(report, "allocated", subject->alloc.trace);
    }
    report->pointer = pointer;
    if (!report->size)
        report->size = subject->freed.size;
    if (!report->context)
        report->context = subject->freed.context;
    if (report->device < 0)
        report->device = subject->is_alloc ? subject->alloc.device : subject->freed.device;
}

/* "it lies 4 KiB (4096 bytes) behind the beginning, 0x7f..." */
static void say_offset(struct gps_text *text, uint64_t pointer, uint64_t base) {
    gps_text_add(text, "the pointer lies %lu bytes behind the beginning, which is 0x%lx",
                 pointer - base, base);
}

/* --- a free --- */

static enum gps_known known_of_free(uint64_t pointer, struct subject *subject) {
    find(pointer, subject);
    if (subject->is_import)
        return GPS_KNOWN_OPEN_HERE;
    if (subject->base && subject->base != pointer)
        return GPS_KNOWN_INTERIOR;
    return was_freed(GPS_FREED_MEMORY, pointer, subject) ? GPS_KNOWN_FREED : GPS_KNOWN_NOTHING;
}

static void report_freed(struct gps_report *report, uint64_t pointer,
                         const struct subject *subject) {
    describe(report, pointer, subject);
    gps_report_prior(report, "allocated", subject->freed.born);
    gps_report_prior(report, "freed", subject->freed.ended);
    gps_report_send(report);
}

static void report_free(struct gps_report *report, uint64_t pointer,
                        const struct subject *subject) {
    char detail[128];
    struct gps_text text = GPS_TEXT(detail);
    if (subject->base && subject->base != pointer) {
        say_offset(&text, pointer, subject->base);
        report->detail = detail;
    }
    report_freed(report, pointer, subject);
}

void gps_diagnose_free(uint64_t pointer, int code) {
    struct gps_scope scope;
    struct subject subject;
    if (code != GPS_INVALID_VALUE)
        return;
    gps_scope_enter(&scope, 0);
    struct gps_report report = gps_report_on(GPS_ASK_FREED, known_of_free(pointer, &subject));
    if (is_named(&report))
        report_free(&report, pointer, &subject);
    gps_scope_end(&scope);
}

void gps_diagnose_freed(uint64_t pointer, uint64_t base, enum gps_finding finding,
                        const char *detail) {
    struct gps_scope scope;
    struct subject subject = {.freed.device = -1};
    gps_scope_begin(&scope);
    struct gps_report report = gps_report_new(finding);
    report.detail = detail;
    gps_freed_find(GPS_FREED_MEMORY, base, &subject.freed);
    report_freed(&report, pointer, &subject);
    gps_scope_end(&scope);
}

/* --- a close --- */

static enum gps_known known_of_close(uint64_t pointer, struct subject *subject) {
    find(pointer, subject);
    if (subject->is_alloc)
        return GPS_KNOWN_OWN;
    if (subject->is_import && subject->base != pointer)
        return GPS_KNOWN_INTERIOR;
    if (subject->is_import)
        return subject->import.via == GPS_VIA_RULE ? GPS_KNOWN_OWN : GPS_KNOWN_LIVE;
    if (was_freed(GPS_FREED_IMPORT, pointer, subject))
        return GPS_KNOWN_FREED;
    return subject->base ? GPS_KNOWN_OWN : GPS_KNOWN_NOTHING;
}

static const char *detail_of_close(uint64_t pointer, const struct subject *subject,
                                   struct gps_text *text) {
    if (!pointer)
        return "the pointer is null";
    if (subject->base && subject->base != pointer) {
        say_offset(text, pointer, subject->base);
        return text->bytes;
    }
    return subject->freed.with_context ? "the end of its context had closed it" : NULL;
}

static void report_close(uint64_t pointer, int code) {
    struct subject subject = {.freed.device = -1};
    uint64_t context = 0;
    char detail[128];
    struct gps_text text = GPS_TEXT(detail);
    gps_ops->context(&context);
    const enum gps_known known = code == GPS_INVALID_CONTEXT
                                     ? context ? GPS_KNOWN_LIVE : GPS_KNOWN_NO_CONTEXT
                                     : known_of_close(pointer, &subject);
    struct gps_report report = gps_report_on(GPS_ASK_CLOSED, known);
    if (!is_named(&report))
        return;
    describe(&report, pointer, &subject);
    gps_report_prior(&report, "opened", subject.freed.born);
    gps_report_prior(&report, "closed", subject.freed.ended);
    report.detail = known == GPS_KNOWN_NO_CONTEXT ? "nothing was closed"
                                                  : detail_of_close(pointer, &subject, &text);
    gps_report_send(&report);
}

void gps_diagnose_close(uint64_t pointer, int code) {
    struct gps_scope scope;
    if (code != GPS_INVALID_VALUE && code != GPS_INVALID_CONTEXT)
        return;
    gps_scope_enter(&scope, 0);
    report_close(pointer, code);
    gps_scope_end(&scope);
}

/* --- an export --- */

static const char *kind_of(uint64_t pointer, struct subject *subject) {
    static const char *const kinds[] = {
        [GPS_MEMORY_UNKNOWN] = "the pointer is not memory that CUDA knows",
        [GPS_MEMORY_DEVICE] = "the driver calls it ordinary device memory, and refuses",
        [GPS_MEMORY_POOL] = "it is memory of a pool (cudaMallocAsync): share the pool, with "
                            "cudaMemPoolExportToShareableHandle",
        [GPS_MEMORY_MANAGED] = "it is managed memory (cudaMallocManaged), which belongs to one "
                               "process",
        [GPS_MEMORY_HOST] = "it is host memory: share that with mmap, and register it in each "
                            "process",
        [GPS_MEMORY_VMM] = "it is VMM memory (cuMemCreate): share it with "
                           "cuMemExportToShareableHandle",
        [GPS_MEMORY_MERGED] = "it is taken by a rule with role = merge, and merged memory has no "
                              "handle: give this buffer a rule of its own before that one",
    };
    find(pointer, subject);
    if (subject->is_import)
        return "it is memory of another process: pass on the handle that was opened";
    if (was_freed(GPS_FREED_MEMORY, pointer, subject))
        return "the memory was freed before";
    return kinds[gps_ops->kind(pointer)];
}

static void report_export(uint64_t pointer, int code) {
    struct subject subject = {.freed.device = -1};
    uint64_t context = 0;
    gps_ops->context(&context);
    if (code == GPS_INVALID_CONTEXT && context)
        return;
    struct gps_report report = gps_report_on(
        GPS_ASK_EXPORTED, code == GPS_INVALID_CONTEXT ? GPS_KNOWN_NO_CONTEXT : GPS_KNOWN_NOTHING);
    if (code == GPS_INVALID_VALUE)
        report.detail = kind_of(pointer, &subject);
    report_freed(&report, pointer, &subject);
}

void gps_diagnose_export(uint64_t pointer, int code) {
    struct gps_scope scope;
    if (code != GPS_INVALID_VALUE && code != GPS_INVALID_CONTEXT)
        return;
    gps_scope_enter(&scope, 0);
    report_export(pointer, code);
    gps_scope_end(&scope);
}
