#include "token.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "directory/region.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "export.h"
#include "findings/audit_record.h"
#include "findings/reporter.h"
#include "log/log.h"
#include "process/membership.h"
#include "process/process.h"
#include "region_events.h"
#include "registry/vmm_books.h"
#include "stack/trace.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "util/lock.h"
#include "util/text.h"
#include "vmm/vmm_region.h"

struct token {
    struct token *next;
    struct gps_export region; /* its pointer and its record's extent are the run */
    uint64_t place, place_size;
    bool served; /* a process has asked for its memory, and may have it open */
};

/* A token that is over, and the mapping whose unmap ended it. The newest FORMER are kept. */
struct former {
    struct gps_id id;
    uint64_t pointer, size; /* of the mapping; 0: none */
    uint64_t serial;        /* of what was mapped */
    uint32_t exported, unmapped;
    uint64_t run_size;
    int device;
};
enum { FORMER = 64 };

static struct {
    GPS_LOCK(GPS_RANK_TOKENS) lock;
    struct token *list, *over; /* over: their memory may be open still */
    unsigned over_count;
    struct former former[FORMER];
    unsigned next_former;
    uint64_t generation;
    _Atomic bool any; /* a token was asked for */
} state;
GPS_FORGOTTEN(state);

/* --- runs --- */

struct run {
    struct gps_token_run is;
    int device;
    bool is_block; /* a block of ours: the run is the allocation */
    uint64_t serial;
};

/* From the mapping around the pointer on; for blocks of ours, from the allocation's beginning. */
static bool begin_run(uint64_t pointer, struct run *run) {
    struct gps_passable first;
    if (!gps_passable_at(pointer, &first))
        return false;
    run->is = (struct gps_token_run){first.at, first.size, first.place, first.place_size};
    if (first.is_block) {
        run->is.at = first.place;
        run->is.size = first.place_size;
    }
    run->device = first.device;
    run->is_block = first.is_block;
    run->serial = first.serial;
    return true;
}

static void extend_run(struct run *run) {
    struct gps_passable next;
    const uint64_t end = run->is.place + run->is.place_size;
    for (uint64_t at; (at = run->is.at + run->is.size) < end && gps_passable_at(at, &next) &&
                      next.at == at && next.device == run->device;)
        run->is.size += next.size;
}

/* --- tokens, with the lock --- */

static uint64_t token_size(const struct token *token) {
    return token->region.record.extent;
}

/* The token that reaches furthest from an address. Its run is mapped, or it would be over. */
static struct token *longest(uint64_t at) {
    struct token *found = NULL;
    for (struct token *token = state.list; token; token = token->next)
        if (token->region.pointer == at && (!found || token_size(token) > token_size(found)))
            found = token;
    return found;
}

static void token_describe(struct token *token, const struct run *run,
                           const uint8_t uuid[GPS_UUID_BYTES]) {
    struct gps_export *region = &token->region;
    struct gps_region_record *record = &region->record;
    token->place = run->is.place;
    token->place_size = run->is.place_size;
    region->pointer = run->is.at;
    region->device = run->device;
    region->exported = gps_trace_kept();
    gps_vmm_region_make_token(record->handle);
    record->id = gps_id_of_handle(record->handle);
    record->generation = ++state.generation;
    record->backing = GPS_BACKING_RUN;
    record->requested = record->extent = run->is.size;
    record->created = record->status.changed = gps_clock_now();
    record->status.state = GPS_STATE_READY;
    record->owner = *gps_process_self();
    memcpy(record->device, uuid, GPS_UUID_BYTES);
}

/* For the thread that answers other processes (token_server.c). */
static bool token_find_run(const struct gps_id *id, struct gps_token_run *run) {
    GPS_LOCKED(&state.lock);
    struct token *token = state.list;
    while (token && !gps_id_equal(&token->region.record.id, id))
        token = token->next;
    if (!token)
        return false;
    token->served = true;
    *run = (struct gps_token_run){token->region.pointer, token_size(token), token->place,
                                  token->place_size};
    return true;
}

static int token_publish(struct token *token) {
    int status = gps_membership_join();
    if (status == 0)
        status = gps_token_server_start(token_find_run);
    if (status == 0) {
        gps_record_seal(&token->region.record);
        status = gps_region_publish(gps_membership_store(), &token->region.record);
    }
    token->region.published = status == 0;
    return status;
}

static struct token *token_make(const struct run *run, const uint8_t uuid[GPS_UUID_BYTES],
                                int *status) {
    struct token *token = calloc(1, sizeof(*token));
    if (!token)
        return NULL;
    token_describe(token, run, uuid);
    *status = token_publish(token);
    if (*status < 0) {
        free(token);
        return NULL;
    }
    gps_region_event_exported(&token->region);
    gps_audit_region_publish(&token->region, GPS_NO_TRACE);
    token->next = state.list;
    state.list = token;
    return token;
}

/* The books are read with the lock, so an unmap after that finds the token. Blocks of ours are not
 * in the books: the caller looks again. */
static bool find_or_make(struct run *run, const uint8_t uuid[GPS_UUID_BYTES], int *status,
                         uint8_t handle[GPS_HANDLE_BYTES]) {
    GPS_LOCKED(&state.lock);
    const uint64_t pointer = run->is.at;
    atomic_store(&state.any, true); /* before the books are read: gps_token_serial reads it before
                                       they forget a mapping */
    if (!run->is_block && (!begin_run(pointer, run) || run->is.at != pointer))
        return false;
    struct token *token = longest(pointer);
    if (token)
        run->is.size = token_size(token);
    extend_run(run);
    if (!token || token_size(token) != run->is.size)
        token = token_make(run, uuid, status);
    if (token)
        memcpy(handle, token->region.record.handle, GPS_HANDLE_BYTES);
    return token != NULL;
}

/* Warns once that a program without the library cannot open such a handle. */
static _Atomic bool told_of_blocks;
GPS_FORGOTTEN(told_of_blocks);
static void token_tell_of_blocks(void) {
    if (!atomic_exchange(&told_of_blocks, true))
        gps_log_notice(GPS_LEVEL_WARNING,
                       "a handle was made of memory that lies in blocks (suspend = on): only "
                       "programs that run with gpushare open it; blocks = off lets all others");
}

/* Whether blocks of ours are still the same. */
static bool is_still(const struct run *run) {
    struct run now;
    return !run->is_block || (begin_run(run->is.at, &now) && now.serial == run->serial);
}

bool gps_token_get(uint64_t pointer, uint8_t handle[GPS_HANDLE_BYTES]) {
    struct run run;
    uint8_t uuid[GPS_UUID_BYTES];
    int status = 0;
    if (!begin_run(pointer, &run) ||
        (!run.is_block && gps_process_config()->options.vmm_ipc != GPS_VMM_IPC_ON))
        return false;
    GPS_SCOPE();
    if (gps_ops->uuid(run.device, uuid) != GPS_OK)
        return false;
    bool got = find_or_make(&run, uuid, &status, handle);
    if (status < 0)
        gps_report_store(status, "a token could not be published");
    if (got && !is_still(&run)) {
        gps_token_end(run.is.at, run.is.size, 0);
        got = false;
    }
    if (got && run.is_block)
        token_tell_of_blocks();
    return got;
}

/* --- unmaps, and maps in the same place --- */

uint64_t gps_token_serial(uint64_t pointer) {
    struct gps_vmm_mapping mapping;
    struct gps_vmm_memory memory;
    return atomic_load_explicit(&state.any, memory_order_relaxed) &&
                   gps_vmm_mapping_from(pointer, &mapping, &memory) && mapping.pointer == pointer
               ? memory.serial
               : 0;
}

static bool overlaps(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size) {
    return a < b + b_size && b < a + a_size;
}

static void token_remember(const struct token *token, uint64_t pointer, uint64_t size,
                           uint64_t serial) {
    if (!overlaps(pointer, 1, token->region.pointer, token_size(token)))
        return;
    state.former[state.next_former++ % FORMER] = (struct former){.id = token->region.record.id,
                                                                 .pointer = pointer,
                                                                 .size = size,
                                                                 .serial = serial,
                                                                 .exported = token->region.exported,
                                                                 .unmapped = gps_trace_kept(),
                                                                 .run_size = token_size(token),
                                                                 .device = token->region.device};
}

/* Whether a process has the token's memory open. True where that cannot be found out. */
static bool token_is_open(const struct token *token) {
    return token->served && gps_references_users(&token->region.record.id, NULL, 0, NULL) != 0;
}

static void forget_closed(void) {
    for (struct token **link = &state.over; *link;) {
        struct token *token = *link;
        if (token_is_open(token)) {
            link = &token->next;
            continue;
        }
        *link = token->next;
        state.over_count--;
        free(token);
    }
}

/* Keeps a token that is over, because its openers may keep the memory open. */
static void keep_over(struct token *token) {
    token->next = state.over;
    state.over = token;
    if (++state.over_count % FORMER == 0)
        forget_closed();
}

static void token_end(struct token *token) {
    struct gps_export *region = &token->region;
    gps_region_event_freed(region);
    gps_audit_region_publish(region, gps_trace_kept());
    gps_region_set_status(gps_membership_store(), &region->record, GPS_STATE_FREED, 0);
    gps_export_leave_tombstone(&region->record);
    if (token->served)
        keep_over(token);
    else
        free(token);
}

bool gps_token_any_open(void) {
    GPS_LOCKED(&state.lock);
    forget_closed();
    bool open = state.over != NULL;
    for (const struct token *token = state.list; token && !open; token = token->next)
        open = token_is_open(token);
    return open;
}

static void end_those_of(uint64_t pointer, uint64_t size, uint64_t serial) {
    GPS_LOCKED(&state.lock);
    for (struct token **link = &state.list; *link;) {
        struct token *token = *link;
        if (!overlaps(pointer, size, token->region.pointer, token_size(token))) {
            link = &token->next;
            continue;
        }
        *link = token->next;
        if (serial)
            token_remember(token, pointer, size, serial);
        token_end(token);
    }
}

void gps_token_end(uint64_t pointer, uint64_t size, uint64_t serial) {
    if (!atomic_load_explicit(&state.any, memory_order_relaxed) || pointer > UINT64_MAX - size)
        return;
    GPS_SCOPE();
    end_those_of(pointer, size, serial);
}

/* Takes a former token whose mapping lies where other memory is mapped now. */
static bool take_former(const struct gps_vmm_mapping *mapping, uint64_t serial,
                        struct former *taken) {
    GPS_LOCKED(&state.lock);
    for (unsigned i = 0; i < FORMER; i++) {
        struct former *one = &state.former[i];
        if (!one->size || one->serial == serial ||
            !overlaps(one->pointer, 1, mapping->pointer, mapping->size))
            continue;
        *taken = *one;
        one->size = 0;
        return true;
    }
    return false;
}

static void report_remapped(const struct former *former, const struct gps_vmm_mapping *mapping,
                            const struct gps_vmm_memory *memory) {
    struct gps_party users[GPS_USERS_REPORTED];
    const int count = gps_references_users(&former->id, users, GPS_USERS_REPORTED, NULL);
    if (count <= 0)
        return;
    GPS_NEW_TEXT(text, 128);
    struct gps_report report = gps_report_on(GPS_ASK_NOTED_MAP, GPS_KNOWN_HELD);
    if (report.finding == GPS_NO_FINDING)
        return;
    gps_text_add(&text, "the token of 0x%lx bytes was over when 0x%lx was unmapped",
                 former->run_size, former->pointer);
    report.detail = text.bytes;
    report.pointer = mapping->pointer;
    report.size = mapping->size;
    report.device = former->device;
    report.region = &former->id;
    gps_report_prior(&report, "exported", former->exported);
    gps_report_prior(&report, "unmapped", former->unmapped);
    gps_report_prior(&report, "created", memory->made);
    gps_report_users(&report, users, count);
    gps_report_send(&report);
}

void gps_token_mapped(uint64_t pointer) {
    struct gps_vmm_mapping mapping;
    struct gps_vmm_memory memory;
    struct former former;
    if (!atomic_load_explicit(&state.any, memory_order_relaxed) ||
        !gps_vmm_mapping_from(pointer, &mapping, &memory) || mapping.pointer != pointer)
        return;
    GPS_SCOPE();
    while (take_former(&mapping, memory.serial, &former))
        report_remapped(&former, &mapping, &memory);
}

/* --- the end of the process --- */

void gps_token_leave(void) {
    GPS_LOCKED(&state.lock);
    for (struct token *token = state.list; token; token = token->next)
        if (gps_references_users(&token->region.record.id, NULL, 0, NULL) == 0)
            gps_region_remove(gps_membership_store(), &token->region.record.id);
    state.list = state.over = NULL; /* not freed: as the process ends */
}
