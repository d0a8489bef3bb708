#include "reporter.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "audit_record.h"
#include "directory/region.h"
#include "driver/driver_ops.h"
#include "log/wording.h"
#include "process/membership.h"
#include "process/process.h"
#include "python/python.h"
#include "stack/call.h"
#include "stack/trace.h"
#include "util/forgotten.h"

static struct {
    _Atomic bool store_reported;
    _Atomic uint64_t record_reported; /* the beginning of the last region's id */
} state;
GPS_FORGOTTEN(state);

static const struct {
    int first, last;
    const char *meaning;
} codes[] = {
    {1, 1, "an argument is not what the call takes"},
    {2, 2, "there is too little memory, or too few addresses"},
    {3, 3, "the driver is not initialized: "},
    {4, 4, "it has shut down, as it does at the end of the process"},
    {46, 46, "another process uses the GPU, whose compute mode lets in one"},
    {100, 101, "no GPU of this number is seen by this process"},
    {201, 201, "the thread has no context, or the context is not for this call"},
    {205, 205, "the memory could not be mapped: its file is not in this /dev/shm, or not readable"},
    {208, 208, "something is mapped there already"},
    {214, 214, "memory of the GPU is damaged (an uncorrectable ECC error)"},
    {217, 217, "the two GPUs cannot reach each other's memory"},
    {304, 304, "the operating system refused it something: descriptors, /dev/shm, /proc"},
    {400, 400, "the handle, the stream or the event is not valid here"},
    {700, 700, "an earlier kernel used an address that is not its own; its context is lost"},
    {702, 702, "an earlier kernel ran for too long; its context is lost"},
    {709, 709, "the context was destroyed, or its device was reset"},
    {710, 710, "an earlier kernel ended with an assertion; its context is lost"},
    {714, 719, "an earlier kernel or copy failed; its context is lost"},
    {800, 800, "the driver does not permit this here"},
    {801, 801, "this platform has no IPC by handles, as Jetson and WSL"},
    {802, 803, "the driver's parts do not work together (see: gpushare doctor)"},
    {805, 811, "the server of MPS refused it"},
    {900, 908, "the call is not allowed while a stream captures a graph"},
    {999, 999, "the driver does not say why"},
};

struct gps_report gps_report_new(enum gps_finding finding) {
    return (struct gps_report){.finding = finding, .api = gps_call_name(), .device = -1};
}

struct gps_answer gps_answer_on(enum gps_ask ask, enum gps_known known) {
    return gps_policy(&(struct gps_question){
        .ask = ask, .known = known, .mode = gps_process_config()->options.mode});
}

struct gps_report gps_report_on(enum gps_ask ask, enum gps_known known) {
    return gps_report_new(gps_answer_on(ask, known).finding);
}

void gps_report_users(struct gps_report *report, const struct gps_party *users, int count) {
    report->others = users;
    report->other_count = count < 0                    ? 0
                          : count > GPS_USERS_REPORTED ? GPS_USERS_REPORTED
                                                       : (unsigned)count;
    if (count < 0)
        report->detail = "the directory cannot be read, so it is not known whether another process "
                         "has it open; it counts as open";
}

void gps_report_prior(struct gps_report *report, const char *what, uint32_t trace) {
    if (trace && report->prior_count < GPS_PRIORS)
        report->prior[report->prior_count++] = (struct gps_prior){.what = what, .trace = trace};
}

#define INSTEAD "share memory by a rule with backing = vmm, which needs none"

/* The hint for a code that no earlier work causes. NULL: the finding's own hint. */
static const char *hint_of(int code) {
    return code == GPS_NOT_SUPPORTED    ? INSTEAD " (gpushare doctor says what works here)"
           : code == GPS_INVALID_HANDLE ? "use it in the process and the context that it is for; "
                                          "where no such call succeeds "
                                          "at all the platform has no IPC by handles: " INSTEAD
                                        : NULL;
}

void gps_report_code(struct gps_report *report, struct gps_text *detail, int code) {
    gps_text_add(detail, "the driver's code is %u", (unsigned)code);
    for (unsigned i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (code >= codes[i].first && code <= codes[i].last)
            gps_text_strs(detail, ": ", codes[i].meaning);
    if (gps_operations->block_create) /* else no rule has other memory */
        report->hint = hint_of(code);
    if (code == GPS_NOT_INITIALIZED)
        gps_text_add(detail, "%s, or any call of the runtime, comes first",
                     gps_operations->names->start);
    report->detail = detail->bytes;
    report->variant = (uint64_t)(unsigned)code;
}

uint64_t gps_report_variant(const char *kind) {
    uint64_t variant = 1;
    for (; kind && *kind; kind++)
        variant = gps_trace_mix(variant, (unsigned char)*kind);
    return variant;
}

void gps_report_about_export(struct gps_report *report, const struct gps_export *region) {
    report->pointer = region->pointer;
    report->size = region->record.requested;
    report->region = &region->record.id;
    report->name = *region->record.name ? region->record.name : NULL;
    report->device = region->device;
    report->context = region->context;
    gps_report_prior(report, "allocated", region->allocated);
    gps_report_prior(report, "exported", region->exported);
}

void gps_report_about_import(struct gps_report *report, const struct gps_import *import) {
    report->pointer = import->pointer;
    report->size = import->size;
    report->region = &import->region;
    report->name = *import->name ? import->name : NULL;
    report->device = import->device;
    report->context = import->context;
    gps_report_prior(report, "opened", import->trace);
    if (import->exporter.owner.pid)
        gps_report_users(report, &import->exporter, 1);
}

void gps_report_about_freed(struct gps_report *report, const struct gps_freed *freed,
                            const char *born, const char *ended) {
    report->size = freed->size;
    report->device = freed->device;
    report->context = freed->context;
    gps_report_prior(report, born, freed->born);
    gps_report_prior(report, ended, freed->ended);
}

void gps_report_about_memory(struct gps_report *report, const struct gps_vmm_memory *memory) {
    report->device = memory->device;
    gps_report_prior(report, memory->origin == GPS_VMM_IMPORTED ? "opened" : "created",
                     memory->made);
}

/* --- sending --- */

/* It is too large for a stack of the program's, so it is mapped for the one report. */
struct workspace {
    struct gps_frame stack[GPS_STACK_MAX], priors[GPS_PRIORS][GPS_STACK_MAX];
    struct gps_region_traces traces;
    char detail[GPS_WORDING_BYTES];
};

static void fill_priors(struct gps_report *report, struct workspace *work) {
    for (unsigned i = 0; i < report->prior_count; i++) {
        struct gps_prior *prior = &report->prior[i];
        prior->stack = work->priors[i];
        prior->stack_count = gps_trace_frames(prior->trace, work->priors[i], GPS_STACK_MAX);
    }
}

/* Adds a prior event with the frames of work->traces. */
static void add_traced(struct gps_report *report, struct gps_prior prior,
                       enum gps_history_event event, struct workspace *work) {
    struct gps_frame *frames = work->priors[report->prior_count];
    prior.stack = frames;
    prior.stack_count = gps_audit_region_frames(&work->traces, event, frames, GPS_STACK_MAX);
    if (prior.stack_count || prior.time)
        report->prior[report->prior_count++] = prior;
}

/* A region's past precedes this process's events. A free with a place but no time is under way. */
static void add_origin(struct gps_report *report, const struct gps_region_record *origin,
                       struct workspace *work) {
    static const char *const names[][GPS_HISTORY_EVENTS] = {{"allocated", "exported", "freed"},
                                                            {"created", "exported", "destroyed"}};
    const bool is_event = origin->backing == GPS_BACKING_EVENT;
    const bool ours = gps_process_is_self(&origin->owner);
    const uint64_t times[] = {0, origin->created,
                              gps_record_over(origin) ? origin->status.changed : 0};
    const struct gps_store *store = is_event ? gps_membership_audit() : gps_membership_store();
    const unsigned own = report->prior_count;
    struct gps_prior later[GPS_PRIORS];
    if (!store || own + GPS_HISTORY_EVENTS > GPS_PRIORS)
        return;
    if (gps_region_read_traces(store, origin, &work->traces) < 0)
        work->traces = (struct gps_region_traces){.module_count = 0};
    for (enum gps_history_event event = 0; event < GPS_HISTORY_EVENTS; event++)
        add_traced(report,
                   (struct gps_prior){.what = names[is_event][event],
                                      .owner = ours ? NULL : &origin->owner,
                                      .time = times[event]},
                   event, work);
    const unsigned added = report->prior_count - own;
    memcpy(later, report->prior, own * sizeof(*later));
    memmove(report->prior, report->prior + own, added * sizeof(*later));
    memcpy(report->prior + added, later, own * sizeof(*later));
}

/* Adds why Python's frames are missing, behind the report's own detail. */
static void add_lack(struct gps_report *report, struct workspace *work) {
    const char *lack = gps_python_lack();
    struct gps_text text = GPS_TEXT(work->detail);
    if (!lack)
        return;
    gps_text_strs(&text, report->detail, report->detail ? ". " : "", lack);
    report->detail = work->detail;
}

/* Adds the places at which other processes have opened it. */
static void add_places(struct gps_report *report, struct workspace *work) {
    struct gps_region_record record;
    for (unsigned i = 0; i < report->other_count && report->prior_count < GPS_PRIORS; i++) {
        const struct gps_party *other = &report->others[i];
        if (other->place && gps_audit_find_place(&other->owner, other->place, &record) &&
            gps_region_read_traces(gps_membership_audit(), &record, &work->traces) == 0)
            add_traced(
                report,
                (struct gps_prior){.what = "opened", .owner = &other->owner, .time = other->since},
                GPS_HISTORY_EXPORTED, work);
    }
}

static void send(struct gps_report *report, uint32_t trace, struct gps_python_stack *python,
                 const struct gps_region_record *origin) {
    struct workspace *work =
        mmap(NULL, sizeof(*work), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (work == MAP_FAILED) {
        gps_log_report(report);
        return;
    }
    report->stack = work->stack;
    report->stack_count = python ? gps_python_fill(python, work->stack, GPS_STACK_MAX) : 0;
    if (!python)
        add_lack(report, work);
    if (!report->stack_count)
        report->stack_count = gps_trace_frames(trace, work->stack, GPS_STACK_MAX);
    fill_priors(report, work);
    if (origin)
        add_origin(report, origin, work);
    add_places(report, work);
    gps_log_report(report);
    munmap(work, sizeof(*work));
}

/* Two lines of a Python program can have one native stack, so its Python frames tell them apart. */
void gps_report_send_with(struct gps_report *report, const struct gps_region_record *origin) {
    gps_call.told = true;
    if (gps_process_left())
        return; /* the report may be about records that are withdrawn */
    const uint32_t trace = gps_trace_here();
    const unsigned depth = gps_process_config()->options.stack_depth;
    struct gps_python_stack *python =
        gps_log_wants(report) ? gps_python_take(gps_call_site(), trace, depth) : NULL;
    if (!report->stack_hash)
        report->stack_hash = python  ? gps_python_hash(python)
                             : trace ? gps_trace_hash(trace)
                                     : (uint64_t)(uintptr_t)gps_call_site().address;
    if (report->variant)
        report->stack_hash = gps_trace_mix(report->stack_hash, report->variant);
    if (gps_log_takes(report))
        send(report, trace, python, origin);
    gps_python_drop(python);
}

/* A rule's programs do not know each other, so ending first is no fault; the memory stays. */
static bool is_ordinary(const struct gps_export *region, const struct gps_answer *answer) {
    const bool ends =
        answer->finding == GPS_EXIT_WHILE_OPEN && gps_process_config()->options.linger == 0;
    return region->rule && (answer->verdict == GPS_DEFER || ends);
}

void gps_report_held(const struct gps_export *region, const struct gps_answer *answer,
                     const struct gps_party *users, int count) {
    struct gps_report report = gps_report_new(answer->finding);
    report.raised = answer->verdict == GPS_FORWARD;
    report.ordinary = count >= 0 && is_ordinary(region, answer);
    report.detail = gps_policy_consequence(answer);
    gps_report_about_export(&report, region);
    gps_report_users(&report, users, count);
    gps_report_send(&report);
}

void gps_report_store(int status, const char *what) {
    if (atomic_exchange(&state.store_reported, true))
        return;
    char detail[512], root[GPS_STORE_PATH];
    struct gps_text text = GPS_TEXT(detail);
    gps_store_root(root, sizeof(root));
    if (gps_membership_store())
        gps_text_add(&text, "%s: ", what);
    else
        gps_text_add(&text, "the directory %s cannot be used: ", root);
    if (status == -ENOSPC)
        gps_text_str(&text, "too little room is left in the file system");
    else
        gps_store_trouble(&text, root, gps_store_namespace(), status);
    struct gps_report report = gps_report_new(GPS_STORE_UNAVAILABLE);
    report.detail = detail;
    gps_report_send(&report);
}

void gps_report_reference(int status) {
    if (status < 0)
        gps_report_store(status, "an open handle could not be published");
}

/* A process that waits for a region reads its record again and again, and one report is enough. */
void gps_report_record(const struct gps_id *region, const char *why) {
    uint64_t this;
    memcpy(&this, region, sizeof(this));
    if (atomic_exchange(&state.record_reported, this) == this)
        return;
    struct gps_report report = gps_report_new(GPS_RECORD_INVALID);
    report.region = region;
    report.detail = why;
    gps_report_send(&report);
}
