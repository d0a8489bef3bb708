/* allocation.c - see allocation.h. */
#include "allocation.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "block.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "exclusion.h"
#include "gate/streams.h"
#include "gate/swap.h"
#include "log/merged_sum.h"
#include "process/caller.h"
#include "process/promise.h"
#include "rdma.h"
#include "room.h"
#include "shared_block.h"
#include "threads/thread.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "util/program_signals.h"
#include "vmm/mapping.h"

#define HUGE_SIZE (UINT64_C(1) << 40)
#define MOMENT    UINT64_C(2000000)
#define SOON      (GPS_SECOND / 20)

bool gps_merge_active;
GPS_FORGOTTEN(gps_merge_active);

static bool merges(const struct gps_rule *rule, const struct gps_program *program) {
    return rule->role == GPS_ROLE_MERGE &&
           gps_rule_is_for(rule, program->name, program->executable);
}

void gps_merge_start(const struct gps_config *config, const struct gps_program *program) {
    bool any = false;
    for (size_t i = 0; i < config->rule_count; i++)
        any |= merges(&config->rules[i], program);
    any |= config->options.suspend == GPS_SUSPEND_ON; /* its work passes the gate, too */
    gps_merge_active = any && config->options.mode == GPS_MODE_SHARE && gps_gate_start();
    if (gps_merge_active)
        gps_promise_start();
}

/* --- blocks that have no memory yet --- */

static uint64_t empty; /* bytes, of all areas; with the lock */
GPS_FORGOTTEN(empty);

static void count_unbacked(int64_t change) {
    empty = (uint64_t)((int64_t)empty + change);
    gps_gate_set_back(empty != 0);
}

/* Others are told, so that they do not count on the same memory. 0 or -errno. */
static int promise(const struct gps_area *area, int64_t change) {
    return area->rule->overcommit ? 0 : gps_promise_change(area->uuid, change);
}

void gps_merge_is_backed(const struct gps_area *area, const struct gps_block *block) {
    count_unbacked(-(int64_t)block->size);
    promise(area, -(int64_t)block->size);
}

int gps_merge_own(const struct gps_area *area, struct gps_block *block) {
    const int code = gps_block_own(area, block);
    if (code != GPS_OK)
        return code;
    gps_room_found(area->device);
    gps_merge_is_backed(area, block);
    gps_shared_leave(block);
    return GPS_OK;
}

void gps_merge_share(const struct gps_area *area, struct gps_block *block) {
    gps_block_set_state(block, GPS_BLOCK_SHARED);
    gps_merged_sum_merged(block->size, block->size);
    gps_merge_is_backed(area, block);
    free(block->chunks);
    block->chunks = NULL;
}

void gps_merge_share_touched(struct gps_area *area, uint64_t until) {
    for (unsigned i = 0; i < area->count; i++) {
        struct gps_block *block = &area->blocks[i];
        if (block->state == GPS_BLOCK_SPECULATIVE && !~block->filled && !block->excluded &&
            block->written <= until)
            gps_merge_share(area, block);
    }
}

int gps_merge_back(const struct gps_area *area, struct gps_block *block) {
    const int code = gps_block_back(area, block);
    if (code == GPS_OK) {
        gps_room_found(area->device);
        gps_merge_is_backed(area, block);
    }
    return code;
}

static int back(const struct gps_area *area, struct gps_block *block) {
    if (block->state == GPS_BLOCK_SPECULATIVE)
        return gps_merge_own(area, block);
    return block->state == GPS_BLOCK_UNBACKED ? gps_merge_back(area, block) : GPS_OK;
}

/* Nothing has used it yet. It keeps its memory where nobody can be told that it needs some. */
static void take_back(const struct gps_area *area, struct gps_block *block) {
    if (promise(area, (int64_t)block->size) < 0)
        return;
    gps_block_drop(area, block);
    count_unbacked((int64_t)block->size);
}

/* An area that does not fit gets nothing, and leaves it to others. */
static int back_blocks(struct gps_area *area) {
    int code = GPS_OK;
    for (unsigned i = 0; code == GPS_OK && i < area->count; i++) {
        area->blocks[i].fresh = area->blocks[i].state == GPS_BLOCK_UNBACKED;
        code = back(area, &area->blocks[i]);
    }
    for (unsigned i = 0; i < area->count; i++) {
        struct gps_block *block = &area->blocks[i];
        if (code != GPS_OK && block->fresh && block->state == GPS_BLOCK_PRIVATE)
            take_back(area, block);
        block->fresh = false;
    }
    return code;
}

/* What surely does not fit takes nothing from others, not even for a moment. */
static bool fits(uint64_t size) {
    uint64_t bytes;
    return gps_ops->room(&bytes) != GPS_OK || bytes >= size;
}

static int back_area(struct gps_area *area) {
    gps_merge_share_touched(area, UINT64_MAX);
    const uint64_t unbacked = gps_area_unbacked(area);
    if (!unbacked)
        return GPS_OK;
    int code = gps_ops->enter(area->context);
    if (code != GPS_OK)
        return code;
    code = fits(unbacked) ? back_blocks(area) : GPS_OUT_OF_MEMORY;
    gps_ops->leave();
    return code;
}

/* Nobody looks at its blocks without memory, and nobody may destroy its context. */
static bool is_sole(const struct gps_area *area, uint64_t context) {
    bool sole = area->context == context;
    for (unsigned i = 0; i < area->count; i++)
        sole &= area->blocks[i].state != GPS_BLOCK_SPECULATIVE;
    return sole;
}

/* Without gps_swap_lock. True: no block is left without memory. */
static bool back_sole(void) {
    uint64_t context;
    GPS_AREAS_LOCKED();
    if (gps_ops->context(&context) != GPS_OK)
        return false;
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area))
        if (is_sole(area, context) && back_area(area) != GPS_OK)
            return false;
    return !empty;
}

/* A kernel of ours may wait for one that fills the card, with gps_swap_lock. */
static int back_all(void) {
    int here, code = GPS_OK;
    if (!gps_swap_lock_within(SOON)) {
        if (back_sole())
            return GPS_OK;
        gps_swap_lock();
    }
    gps_area_lock();
    const bool known = gps_ops->device(&here) == GPS_OK;
    for (struct gps_area *area = gps_area_next(NULL); area && empty; area = gps_area_next(area)) {
        const int failed = back_area(area);
        if (code == GPS_OK && (!known || gps_mapping_reaches(here, area->device)))
            code = failed;
    }
    gps_area_unlock();
    gps_swap_unlock();
    return code;
}

int gps_merge_back_all(void) {
    uint64_t until = 0;
    int code;
    GPS_DRIVER_SCOPE();
    while ((code = back_all()) == GPS_OUT_OF_MEMORY && gps_room_await(&until))
        ;
    return code;
}

/* --- an allocation --- */

static struct gps_area *make(const struct gps_merge_request *request) {
    uint64_t granule;
    if (gps_ops->granularity(request->device, &granule) != GPS_OK || GPS_MERGE_SMALL % granule != 0)
        return NULL;
    struct gps_area *area = gps_area_new(gps_area_extent(request->size));
    if (!area)
        return NULL;
    area->size = request->size;
    area->context = request->context;
    area->rule = request->rule;
    area->index = request->index;
    area->device = request->device;
    area->made = gps_streams_epoch;
    area->lazy = request->rule->quiet == 0 && !gps_rdma_forbids(request->rule);
    memcpy(area->uuid, request->uuid, GPS_UUID_BYTES);
    gps_caller_name(area->caller, sizeof(area->caller));
    area->times = gps_exclusion_times(area);
    for (unsigned i = 0; i < area->count; i++)
        area->blocks[i].excluded = area->times >= GPS_EXCLUDED || gps_rdma_forbids(area->rule);
    return area;
}

/* --- room for an allocation of the driver's --- */

enum { RETRIES = 6 };

static bool find_device(int *device, uint8_t gpu[GPS_UUID_BYTES]) {
    return gps_ops->device(device) == GPS_OK && gps_ops->uuid(*device, gpu) == GPS_OK;
}

static void back_all_at_once(void) {
    GPS_DRIVER_SCOPE();
    back_all();
}

/* The thread's, for the driver's call. One that was left by longjmp stays until the next. */
static _Thread_local struct {
    struct gps_room_claim claim;
    uint64_t context; /* of the stream that a pool's memory is for; 0: the current one */
    int device;       /* whose memory it is; -1: not known */
    bool pooled;
    bool exact; /* it takes its size */
} call;

/* Claims by thread, with the lock: a thread may end in the driver's call. One more is not noted. */
enum { NOTED = 64 };
static struct {
    int thread;
    struct gps_room_claim claim;
} noted[NOTED];
GPS_FORGOTTEN(noted);

static void note(int thread, const struct gps_room_claim *claim) {
    for (unsigned i = 0; i < NOTED; i++) {
        if (noted[i].thread)
            continue;
        noted[i].thread = thread;
        noted[i].claim = *claim;
        return;
    }
}

/* `thread` has no claim: one of that number was of another thread, that had ended. */
static void end_claims_of_dead(int thread) {
    for (unsigned i = 0; i < NOTED; i++) {
        if (!noted[i].thread || (noted[i].thread != thread && !gps_thread_is_dead(noted[i].thread)))
            continue;
        gps_room_unclaim(&noted[i].claim);
        noted[i].thread = 0;
    }
}

static void end_claim(void) {
    const int thread = call.claim.bytes ? (int)syscall(SYS_gettid) : 0;
    for (unsigned i = 0; thread && i < NOTED; i++)
        if (noted[i].thread == thread)
            noted[i].thread = 0;
    gps_room_unclaim(&call.claim);
}

/* As GPS_DRIVER_SCOPE, on the device whose memory it is. `there`: it is current. */
#define CALL_SCOPE()                                                                               \
    struct gps_scope scope __attribute__((cleanup(gps_scope_end)));                                \
    const bool there = gps_scope_enter(&scope, call.context) == GPS_OK

static bool is_scarce(uint64_t size) {
    uint64_t room;
    int device;
    if (!(gps_gate_state & GPS_GATE_BACK))
        return false;
    CALL_SCOPE();
    if (!there || gps_ops->device(&device) != GPS_OK)
        return false;
    gps_area_lock();
    const uint64_t own = gps_area_promised(device);
    gps_area_unlock();
    return own && gps_ops->room(&room) == GPS_OK && room < size + own;
}

/* What the driver surely takes of the device: a small one may lie beside others, and a pool may
 * give what it has, also what is yet to be freed in a stream's turn. */
static uint64_t least_of(uint64_t size) {
    uint64_t has;
    if (!call.pooled)
        return size > GPS_MERGE_LEAST ? size : 0;
    return gps_ops->pool_has(&has) == GPS_OK && has < size ? size - has : 0;
}

static bool claim_on(const uint8_t gpu[GPS_UUID_BYTES], uint64_t size) {
    if (gps_room_claim_on(gpu, gps_area_extent(size), &call.claim))
        return true;
    const uint64_t least = least_of(size), left = call.claim.left;
    const bool may = !least || (least < size && gps_room_claim_on(gpu, least, &call.claim));
    call.claim.left = left;
    return may;
}

static bool try_to_claim(uint64_t size) {
    const int thread = (int)syscall(SYS_gettid);
    uint8_t gpu[GPS_UUID_BYTES];
    int device;
    call.device = -1;
    CALL_SCOPE();
    if (!there || !find_device(&device, gpu))
        return true;
    call.device = device;
    GPS_AREAS_LOCKED();
    end_claims_of_dead(thread);
    const bool may = claim_on(gpu, size);
    if (call.claim.bytes)
        note(thread, &call.claim);
    return may;
}

static void unclaim(void) {
    if (!call.claim.bytes)
        return;
    GPS_SCOPE();
    GPS_AREAS_LOCKED();
    end_claim();
}

static void pause_for(uint64_t nanos) {
    GPS_SCOPE();
    gps_program_signals_poll(NULL, nanos);
}

/* It differs from call to call: else those who want the same room would meet again and again. */
static void pause_a_moment(void) {
    pause_for(MOMENT + gps_clock_monotonic() % MOMENT);
}

/* A bit for each device (room.h): a wait for claims on it took its second in vain, and none has
 * ended well since. */
static _Atomic uint32_t in_vain;
GPS_FORGOTTEN(in_vain);

/* Claims go. True: it is worth another look, and a moment has passed. Without a lock. */
static bool await_claims(int device, uint64_t begun) {
    const uint32_t bit = gps_room_bit(device);
    if (gps_clock_monotonic() - begun >= GPS_SECOND)
        atomic_fetch_or(&in_vain, bit);
    if (atomic_load(&in_vain) & bit)
        return false;
    pause_a_moment();
    return true;
}

static void note_room(int device) {
    const uint32_t bit = gps_room_bit(device);
    if (atomic_load_explicit(&in_vain, memory_order_relaxed) & bit)
        atomic_fetch_and(&in_vain, ~bit);
}

/* A block that has just got memory counts twice for a moment. */
static bool claim(uint64_t size) {
    const uint64_t begun = gps_clock_monotonic();
    for (int tries = 1; !try_to_claim(size); tries++) {
        if (tries < RETRIES)
            pause_a_moment();
        else if (!call.claim.contended || !await_claims(call.device, begun))
            return false;
    }
    note_room(call.device);
    return true;
}

/* A pool's memory is of its stream's device. */
static uint64_t context_of(uint64_t stream) {
    uint64_t context;
    GPS_DRIVER_SCOPE();
    return stream > GPS_DEFAULT_STREAMS && gps_ops->stream_context(stream, &context) == GPS_OK
               ? context
               : 0;
}

static void begin_call(uint64_t size, const uint64_t *stream) {
    unclaim();
    call.claim.left = GPS_ROOM_PLENTY;
    call.pooled = stream;
    call.context = stream ? context_of(*stream) : 0;
    call.exact = !stream && size > GPS_MERGE_LEAST;
}

bool gps_merge_may_allocate_at_once(uint64_t size) {
    if (!gps_merge_active)
        return true;
    begin_call(size, NULL);
    return size > INT64_MAX / 2 || (!is_scarce(size) && try_to_claim(size));
}

bool gps_merge_may_allocate(uint64_t size, const uint64_t *stream) {
    if (!gps_merge_active)
        return true;
    begin_call(size, stream);
    if (size > INT64_MAX / 2)
        return true;
    if (is_scarce(size))
        back_all_at_once();
    return claim(size);
}

/* Unseen: the claim, by whoever promised meanwhile. */
bool gps_merge_has_overdrawn(void) {
    const uint64_t before = call.claim.left;
    const bool unseen = (call.exact && !call.claim.bytes) || gps_room_is_late(&call.claim);
    uint8_t gpu[GPS_UUID_BYTES];
    uint64_t left;
    int device;
    if (!gps_merge_active || (!unseen && !call.claim.bytes && before == GPS_ROOM_PLENTY))
        return false;
    CALL_SCOPE();
    GPS_AREAS_LOCKED();
    end_claim();
    const bool lacking = (unseen || (!call.exact && before != GPS_ROOM_PLENTY)) &&
                         gps_promise_any() && there && find_device(&device, gpu) &&
                         gps_room_is_overdrawn(gpu, &left);
    return lacking && (unseen || left < before);
}

static void drop_blocks(struct gps_area *area) {
    for (unsigned i = 0; i < area->count; i++)
        gps_block_drop(area, &area->blocks[i]);
}

static int back_all_of(struct gps_area *area) {
    int code = GPS_OK;
    for (unsigned i = 0; code == GPS_OK && i < area->count; i++)
        code = gps_block_back(area, &area->blocks[i]);
    return code;
}

/* Others go on while a large area gets its memory: nobody knows it yet. *contended: a context has
 * ended meanwhile, perhaps this one. */
static bool back_unlocked(struct gps_area *area, bool *contended) {
    const uint64_t before = gps_area_contexts_ended();
    gps_area_unlock();
    const int code = back_all_of(area);
    gps_area_lock();
    *contended = gps_area_contexts_ended() != before;
    return code == GPS_OK && !*contended;
}

/* Reserves addresses for the area and adds it to the table, with the lock, which is given back
 * while it gets memory at once. */
static bool place(struct gps_area *area, bool *contended, const char **why) {
    if (gps_ops->reserve(area->extent + GPS_MERGE_GAP, &area->pointer) != GPS_OK) {
        *why = "the driver reserves no addresses for its blocks";
        return false;
    }
    if ((area->lazy || back_unlocked(area, contended)) && gps_area_add(area)) {
        count_unbacked(area->lazy ? (int64_t)area->extent : 0);
        return true;
    }
    drop_blocks(area);
    gps_ops->unreserve(area->pointer, area->extent + GPS_MERGE_GAP);
    return false;
}

/* Programs ask for absurd sizes, too. The blocks of such an allocation are not even counted. */
static bool is_possible(uint64_t size) {
    uint64_t bytes;
    return size < HUGE_SIZE || (gps_ops->room(&bytes) == GPS_OK && size <= bytes);
}

/* Of two that want the same room at least one sees it, and both may. They withdraw, and take
 * memory at once. */
static bool may_be_lazy(struct gps_area *area) {
    const int64_t size = (int64_t)area->extent;
    bool contended;
    if (area->rule->overcommit)
        return true;
    if (gps_promise_claim(area->uuid, size) < 0)
        return false;
    const bool room = gps_area_has_room(area->device, area->uuid, area->extent, &contended) &&
                      promise(area, size) == 0;
    gps_promise_claim(area->uuid, -size);
    return room;
}

/* Memory that is promised to others is theirs. */
static bool place_at_once(struct gps_area *area, bool *contended, const char **why) {
    struct gps_room_claim claim;
    area->lazy = false;
    const bool may = gps_room_claim(area, area->extent, &claim);
    *contended = !may && claim.contended;
    const bool placed = may && place(area, contended, why);
    gps_room_unclaim(&claim);
    return placed;
}

/* With the lock. What surely does not fit is neither promised nor tried: others would lack it.
 * *contended: as of gps_area_has_room. */
static bool place_somehow(struct gps_area *area, bool *contended, const char **why) {
    const bool unlimited = area->lazy && area->rule->overcommit;
    *contended = false;
    if (unlimited ? gps_context_state() != GPS_OK
                  : !gps_area_has_room(area->device, area->uuid, area->extent, contended))
        return false;
    if (!area->lazy || !may_be_lazy(area))
        return place_at_once(area, contended, why);
    const bool placed = place(area, contended, why);
    if (!placed)
        promise(area, -(int64_t)area->extent);
    return placed;
}

static bool try_to_place(const struct gps_merge_request *request, uint64_t *pointer,
                         bool *contended, const char **why) {
    struct gps_area *area = make(request);
    *contended = false;
    if (!area) {
        *why = "its GPU has no memory in blocks of 2 MiB, or there was no memory to note it";
        return false;
    }
    gps_area_lock();
    end_claims_of_dead((int)syscall(SYS_gettid));
    const bool placed = place_somehow(area, contended, why);
    *pointer = area->pointer;
    gps_area_unlock();
    if (!placed)
        free(area);
    return placed;
}

bool gps_merge_allocate(const struct gps_merge_request *request, uint64_t *pointer,
                        const char **why) {
    const uint64_t begun = gps_clock_monotonic();
    bool contended;
    if (request->size < GPS_MERGE_LEAST || !is_possible(request->size))
        return false;
    gps_swap_return();
    gps_merge_end_freed(GPS_MERGE_IF_ENDED);
    gps_rdma_look();
    unclaim();
    while (!try_to_place(request, pointer, &contended, why))
        if (!contended || !await_claims(request->device, begun))
            return false;
    note_room(request->device);
    gps_streams_add(0);
    return true;
}

/* --- its end --- */

/* Releases the block's memory, with gps_swap_lock and the lock of areas. One that has none was
 * ended before, if its area is freed already. */
static void end_block(struct gps_area *area, struct gps_block *block) {
    const bool unbacked = gps_block_is_unbacked(block), merged = gps_block_is_merged(block);
    const bool referenced = merged || block->state == GPS_BLOCK_SPECULATIVE;
    if (unbacked && !area->freed)
        gps_merge_is_backed(area, block);
    gps_block_drop(area, block);
    if (merged)
        gps_merged_sum_unmerged(block->size);
    if (referenced)
        gps_shared_release(block->slot);
    free(block->chunks);
    block->chunks = NULL;
}

static _Atomic unsigned waiting; /* areas that are freed on a stream, and still there */
GPS_FORGOTTEN(waiting);
static _Atomic unsigned ended; /* of them, ever */

static void end(struct gps_area *area) {
    gps_area_remove(area);
    waiting -= area->freed;
    ended += area->freed;
    for (unsigned i = 0; i < area->count; i++)
        end_block(area, &area->blocks[i]);
    gps_ops->unreserve(area->pointer, area->extent + GPS_MERGE_GAP);
}

int gps_merge_free(uint64_t pointer) {
    const int code = gps_scope_synchronize();
    if (code != GPS_OK)
        return code;
    gps_swap_lock();
    gps_area_lock();
    struct gps_area *area = gps_area_at(pointer);
    const bool found = area && area->pointer == pointer;
    if (found)
        end(area);
    gps_area_unlock();
    gps_swap_unlock();
    if (found)
        free(area);
    gps_merge_end_freed(GPS_MERGE_IF_ENDED);
    return found ? GPS_OK : GPS_INVALID_VALUE;
}

static bool any_has_memory(const struct gps_area *area) {
    for (unsigned i = 0; i < area->count; i++)
        if (!gps_block_is_unbacked(&area->blocks[i]))
            return true;
    return false;
}

/* No work uses blocks without memory: all work that may touch them gives them some first. */
static void end_unbacked(struct gps_area *area) {
    for (unsigned i = 0; i < area->count; i++)
        if (gps_block_is_unbacked(&area->blocks[i]))
            end_block(area, &area->blocks[i]);
}

/* An event behind the work of a stream. */
static bool mark(uint64_t stream, struct gps_area_user *user) {
    user->epoch = gps_streams_epoch;
    return gps_ops->stream_context(stream, &user->context) == GPS_OK &&
           gps_ops->event_mark(stream, &user->event) == GPS_OK;
}

static void leave_on_stream(struct gps_area *area, bool stays, const struct gps_area_user *user) {
    if (!stays) {
        end(area);
        return;
    }
    end_unbacked(area);
    area->freed = true;
    area->user = *user;
    waiting++;
}

/* The event is made without a lock, because a stream may have no room for more work. */
bool gps_merge_free_ordered(uint64_t pointer, uint64_t stream) {
    struct gps_area_user user;
    if (!mark(stream, &user))
        return false;
    gps_swap_lock();
    gps_area_lock();
    struct gps_area *area = gps_area_at(pointer);
    const bool found =
        area && area->pointer == pointer && !area->freed && gps_ops->enter(area->context) == GPS_OK;
    const bool stays = found && any_has_memory(area);
    if (found) {
        leave_on_stream(area, stays, &user);
        gps_ops->leave();
    }
    gps_area_unlock();
    gps_swap_unlock();
    if (!stays)
        gps_ops->event_free(user.event);
    if (found && !stays)
        free(area);
    return found;
}

/* A stream that is lost does not use it. */
static bool is_unused(const struct gps_area *area) {
    return !area->user.event || gps_ops->event_state(area->user.event) != GPS_NOT_READY;
}

void gps_merge_end_freed_locked(void) {
    struct gps_area *next;
    gps_area_lock();
    for (struct gps_area *area = gps_area_next(NULL); area; area = next) {
        next = gps_area_next(area);
        if (!area->freed || !is_unused(area) || gps_ops->enter(area->context) != GPS_OK)
            continue;
        end(area);
        gps_ops->leave();
        if (area->user.event)
            gps_ops->event_free(area->user.event);
        free(area);
    }
    gps_area_unlock();
}

bool gps_merge_end_freed(enum gps_merge_end how) {
    const unsigned before = ended;
    if (!waiting)
        return false;
    GPS_DRIVER_SCOPE();
    if (how != GPS_MERGE_AT_ONCE)
        gps_swap_lock();
    else if (!gps_swap_try_lock())
        return false;
    gps_merge_end_freed_locked();
    gps_swap_unlock();
    if (how == GPS_MERGE_SURELY && ended == before && gps_scope_synchronize() == GPS_OK)
        gps_merge_end_freed(GPS_MERGE_IF_ENDED); /* or another thread has meanwhile */
    return ended != before;
}

void gps_merge_purge(uint64_t context, uint64_t before) {
    struct gps_area *area;
    if (!gps_merge_active)
        return;
    gps_streams_remove_context(context, before);
    GPS_AREAS_LOCKED();
    gps_area_forget_events(context, before);
    gps_area_forget_context(context, before);
    while ((area = gps_area_of_context(context, before))) {
        end(area);
        free(area);
    }
}

/* --- what it looks like --- */

/* Most addresses are far from all areas, so the lock is checked first. */
bool gps_merge_find(uint64_t address, struct gps_area *found) {
    gps_lock_check((1u << GPS_RANK_AREAS) - 1, "a question whose memory it is");
    if (!gps_area_near(address, 1))
        return false;
    GPS_SCOPE();
    GPS_AREAS_LOCKED();
    const struct gps_area *area = gps_area_at(address);
    const bool any = area && !area->created && !area->freed && address - area->pointer < area->size;
    if (any)
        *found = *area;
    return any;
}

static void allow(const struct gps_area *area, int accessor) {
    for (unsigned i = 0; i < area->count; i++) {
        const struct gps_block *block = &area->blocks[i];
        if (block->state != GPS_BLOCK_UNBACKED)
            gps_ops->allow(area->pointer + block->at, block->size, accessor,
                           block->state == GPS_BLOCK_PRIVATE);
    }
}

static bool allow_all(int device, int accessor, bool really) {
    bool any = false;
    GPS_AREAS_LOCKED();
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area))
        if (area->device == device && !area->created) {
            any = true;
            if (really)
                allow(area, accessor);
        }
    return any;
}

/* A change of access hurts work that is under way, so it waits for an idle device for five seconds.
 * After that the program must know what it does. */
void gps_merge_enable_peer(int device) {
    struct gps_swap_attempts attempts = {.failed = 0};
    const uint64_t until = gps_clock_monotonic() + 5 * GPS_SECOND;
    int accessor;
    if (gps_ops->device(&accessor) != GPS_OK)
        return;
    gps_streams_add(0);
    gps_swap_lock();
    bool begun = false, late = !allow_all(device, accessor, false);
    while (!late && !(begun = gps_swap_attempt(&attempts))) {
        gps_swap_unlock();
        gps_swap_wait(&attempts);
        late = gps_clock_monotonic() > until;
        gps_swap_lock();
    }
    allow_all(device, accessor, true);
    if (begun)
        gps_swap_end();
    gps_swap_unlock();
}
