/*
 * The depot is memory reserved once, in which stacks are stored one after the other; a hash table
 * finds them. A stored stack has the places where its return addresses lay, counted from the first
 * of them. The recalls are the stacks that were walked at a call site. Such a stack is the one of a
 * later call if every place still holds its return address, and if no other module has been loaded
 * at the call site.
 */
#include "trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "config/config.h"
#include "module_place.h"
#include "stack.h"
#include "util/lock.h"

/* --- the depot --- */

enum { SLOTS = 1 << 16, WORDS = 2 << 20 /* 16 MiB, touched as it fills */, MODULES = 1024 };

/* So many stacks of the same addresses are stored: their frames can differ in size. */
enum { VARIANTS = 16 };
#define NEVER UINT32_MAX /* stored.vain: no more frames will ever be shown */

struct place {
    uint32_t module; /* of the address; 0: it is in none */
    uint32_t gap;    /* from the first return address to this one, in bytes */
};

struct stored {
    uint64_t hash;
    struct gps_module_mark mark; /* of the call site's module: another one may be loaded there */
    uint32_t count, reach;       /* of frames; the greatest gap */
    uint32_t native;             /* the stack in whose place this one is shown */
    _Atomic uint32_t vain;       /* how often no more frames were to be shown for it */
    _Atomic uint32_t told;       /* of gps_trace_mark */
    uintptr_t addresses[];       /* then as many places */
};

/* An entry without addresses is a frame, or a stack of such frames that is shown in place of
 * another one: `reach` bytes, found by their contents. */
struct shown {
    uint32_t frames[GPS_STACK_MAX]; /* the frames' places; as many as there are */
};

static struct {
    GPS_LOCK(GPS_RANK_TRACES) lock;
    unsigned depth;
    bool keep;
    uint32_t used; /* words; under the lock, as are the next three */
    uint32_t stacks;
    unsigned module_count;
    uint32_t modules[MODULES]; /* each a struct gps_frame at its base, as it was at the walk */
    _Atomic bool full;
    gps_trace_more_fn *more;
    uint64_t *_Atomic words;
    _Atomic uint32_t slots[SLOTS]; /* the hash table: where a stack begins; 0: free */
} depot;

static void *depot_word(uint32_t place) {
    return &atomic_load_explicit(&depot.words, memory_order_acquire)[place];
}

static struct stored *stored_at(uint32_t trace) {
    return depot_word(trace);
}

static const struct place *places_of(const struct stored *stored) {
    return (const void *)(stored->addresses + stored->count);
}

/* The modules' marks are part of the hash: one library may have replaced another at an address. */
static uint64_t steps_hash(const struct gps_step *steps, unsigned count) {
    uint64_t hash = GPS_TRACE_HASH;
    for (unsigned i = 0; i < count; i++) {
        const struct gps_module_mark mark = gps_module_mark_of((const void *)steps[i].address);
        hash = gps_trace_mix(gps_trace_mix(gps_trace_mix(hash, steps[i].address), mark.where),
                             mark.value);
    }
    return hash ? hash : 1;
}

/* UINT32_MAX: not known, or too far. */
static uint32_t gap_of(const struct gps_step *steps, unsigned i) {
    const uintptr_t gap = steps[i].slot - steps[0].slot;
    return steps[i].slot && gap < UINT32_MAX ? (uint32_t)gap : UINT32_MAX;
}

/* An entry to store: the steps of a native stack, or, without steps, bytes. */
struct wanted {
    uint64_t hash;
    const struct gps_step *steps;
    unsigned count;
    uint32_t native; /* the stack that the bytes are shown for; 0: they are a frame */
    const void *bytes;
    size_t size; /* whole words of four */
};

static bool has_addresses(const struct stored *stored, const struct wanted *wanted) {
    bool same = stored->count == wanted->count;
    for (unsigned i = 0; same && i < wanted->count; i++)
        same = stored->addresses[i] == wanted->steps[i].address;
    return same;
}

static bool has_gaps(const struct stored *stored, const struct gps_step *steps) {
    bool same = true;
    for (unsigned i = 0; same && i < stored->count; i++)
        same = places_of(stored)[i].gap == gap_of(steps, i);
    return same;
}

/* When there are too many variants of a stack, the last one will do. */
static bool stored_is_wanted(const struct stored *stored, const struct wanted *wanted,
                             unsigned *variants) {
    if (stored->hash != wanted->hash)
        return false;
    if (wanted->steps)
        return has_addresses(stored, wanted) &&
               (has_gaps(stored, wanted->steps) || ++*variants == VARIANTS);
    return !stored->count && stored->native == wanted->native && stored->reach == wanted->size &&
           memcmp(stored->addresses, wanted->bytes, wanted->size) == 0;
}

/* The entry's slot in the table, or the free slot where it belongs. */
static _Atomic uint32_t *depot_find(const struct wanted *wanted) {
    unsigned variants = 0;
    for (uint32_t i = 0;; i++) { /* never full: see depot_add */
        _Atomic uint32_t *slot = &depot.slots[(wanted->hash + i) % SLOTS];
        const uint32_t trace = atomic_load_explicit(slot, memory_order_acquire);
        if (!trace || stored_is_wanted(stored_at(trace), wanted, &variants))
            return slot;
    }
}

static bool have_words(void) {
    if (atomic_load(&depot.words))
        return true;
    void *words = mmap(NULL, (size_t)WORDS * sizeof(uint64_t), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (words == MAP_FAILED)
        return false;
    depot.used = 1; /* place 0 means "none" */
    atomic_store_explicit(&depot.words, words, memory_order_release);
    return true;
}

/* Under the lock: a place for `size` bytes, or 0. */
static uint32_t depot_take(size_t size) {
    const size_t words = (size + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    if (!have_words() || WORDS - depot.used < words)
        return 0;
    const uint32_t place = depot.used;
    depot.used += (uint32_t)words;
    return place;
}

/* Under the lock: the stored module of an address of the stack that is being added. */
static uint32_t depot_module_of(uintptr_t address) {
    struct gps_frame frame;
    gps_stack_frame(address, &frame);
    if (!*frame.module)
        return 0;
    frame.address -= frame.offset;
    for (unsigned i = 0; i < depot.module_count; i++) {
        const struct gps_frame *known = depot_word(depot.modules[i]);
        if (known->address == frame.address && strcmp(known->module, frame.module) == 0 &&
            strcmp(known->build_id, frame.build_id) == 0)
            return depot.modules[i];
    }
    const uint32_t place = depot.module_count < MODULES ? depot_take(sizeof(frame)) : 0;
    if (!place)
        return 0;
    memcpy(depot_word(place), &frame, sizeof(frame));
    return depot.modules[depot.module_count++] = place;
}

/* Under the lock. */
static void fill_steps(struct stored *stored, const struct gps_step *steps, unsigned count) {
    struct place *places = (struct place *)(stored->addresses + count);
    stored->mark = gps_module_mark_of((const void *)steps[0].address);
    stored->count = count;
    for (unsigned i = 0; i < count; i++) {
        stored->addresses[i] = steps[i].address;
        places[i] = (struct place){depot_module_of(steps[i].address), gap_of(steps, i)};
        stored->reach = places[i].gap > stored->reach ? places[i].gap : stored->reach;
    }
}

/* Under the lock. GPS_NO_TRACE: the depot is full: three quarters of the table, or all words. */
static uint32_t depot_add(const struct wanted *wanted) {
    const size_t frame = sizeof(uintptr_t) + sizeof(struct place);
    const size_t size = wanted->steps ? wanted->count * frame : wanted->size;
    const uint32_t trace =
        depot.stacks < SLOTS / 4 * 3 ? depot_take(sizeof(struct stored) + size) : GPS_NO_TRACE;
    if (!trace) {
        depot.full = true;
        return GPS_NO_TRACE;
    }
    struct stored *stored = depot_word(trace);
    *stored = (struct stored){
        .hash = wanted->hash, .reach = (uint32_t)wanted->size, .native = wanted->native};
    if (wanted->steps)
        fill_steps(stored, wanted->steps, wanted->count);
    else
        memcpy(stored->addresses, wanted->bytes, size);
    depot.stacks++;
    return trace;
}

static uint32_t store(const struct wanted *wanted) {
    uint32_t trace = atomic_load_explicit(depot_find(wanted), memory_order_acquire);
    if (trace || atomic_load_explicit(&depot.full, memory_order_relaxed))
        return trace;
    GPS_LOCKED(&depot.lock);
    _Atomic uint32_t *slot = depot_find(wanted);
    trace = atomic_load(slot);
    if (!trace) {
        trace = depot_add(wanted);
        atomic_store_explicit(slot, trace, memory_order_release);
    }
    return trace;
}

/* --- stacks shown in place of a native one --- */

static uint64_t hash_bytes(const void *bytes, size_t size) {
    uint64_t hash = GPS_TRACE_HASH;
    for (size_t i = 0; i < size; i += sizeof(uint32_t)) {
        uint32_t word;
        memcpy(&word, (const char *)bytes + i, sizeof(word));
        hash = gps_trace_mix(hash, word);
    }
    return hash;
}

static uint32_t store_bytes(uint32_t native, const void *bytes, size_t size) {
    return store(&(struct wanted){
        .hash = hash_bytes(bytes, size), .native = native, .bytes = bytes, .size = size});
}

uint32_t gps_trace_shown(uint32_t trace, const struct gps_frame *frames, unsigned count) {
    struct shown shown;
    for (unsigned i = 0; i < count; i++) {
        shown.frames[i] = store_bytes(0, &frames[i], sizeof(frames[i]));
        if (!shown.frames[i])
            return trace;
    }
    const uint32_t place = store_bytes(trace, &shown, count * sizeof(shown.frames[0]));
    return place ? place : trace;
}

uint32_t gps_trace_native(uint32_t trace) {
    return trace && stored_at(trace)->native ? stored_at(trace)->native : trace;
}

/* --- the recalls --- */

enum { SETS = 256, WAYS = 4 };

static _Atomic uint32_t recalls[SETS][WAYS]; /* traces; overwritten freely */

static _Atomic unsigned next_way;

static _Atomic uint32_t *set_of(struct gps_site site) {
    const uint64_t key = (uintptr_t)site.address ^ (uintptr_t)site.frame << 17;
    return recalls[(key * 0x9e3779b97f4a7c15u) >> 56];
}

/* The thread's own stack stays mapped as long as the thread lives. A coroutine's stack may not. */
static __thread struct { uintptr_t low, high; } own_stack;

static void find_own_stack(void) {
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    if (own_stack.high)
        return;
    __typeof__(&pthread_getattr_np) get = GPS_LATE(pthread_getattr_np);
    __typeof__(&pthread_attr_getstack) get_stack = GPS_LATE(pthread_attr_getstack);
    if (!get || !get_stack || get(pthread_self(), &attributes) != 0)
        return;
    get_stack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    own_stack.low = (uintptr_t)low;
    own_stack.high = (uintptr_t)low + size;
}

/* Whether all return addresses are still in their places, innermost first. Not instrumented,
 * because sanitizers take such reads for errors. */
__attribute__((no_sanitize("address", "thread"))) static bool
still_stands(const struct stored *stored, struct gps_site site) {
    const uintptr_t first = (uintptr_t)site.frame - sizeof(uintptr_t);
    if (first < own_stack.low || first + stored->reach >= own_stack.high)
        return false;
    const struct place *places = places_of(stored);
    for (unsigned i = 0; i < stored->count; i++)
        if (*(const volatile uintptr_t *)(first + places[i].gap) != stored->addresses[i])
            return false;
    return true;
}

static uint32_t recalled(struct gps_site site) {
    const _Atomic uint32_t *set = set_of(site);
    for (unsigned way = 0; way < WAYS; way++) {
        const uint32_t trace = atomic_load_explicit(&set[way], memory_order_acquire);
        const struct stored *stored = trace ? stored_at(trace) : NULL;
        if (stored && stored->addresses[0] == (uintptr_t)site.address &&
            still_stands(stored, site) && gps_module_has_mark(site.address, stored->mark))
            return trace;
    }
    return GPS_NO_TRACE;
}

static void site_remember(struct gps_site site, uint32_t trace) {
    const unsigned way = atomic_fetch_add_explicit(&next_way, 1, memory_order_relaxed) % WAYS;
    find_own_stack();
    if (trace && stored_at(trace)->reach != UINT32_MAX)
        atomic_store_explicit(&set_of(site)[way], trace, memory_order_release);
}

/* --- the interface --- */

void gps_trace_start(unsigned depth, bool keep, gps_trace_more_fn *more) {
    depot.depth = depth;
    depot.keep = keep && depth != 0;
    depot.more = more;
}

/* Not inlined, so that the steps take room on the stack only if there is a walk. */
__attribute__((noinline)) static uint32_t walked(struct gps_site site) {
    struct gps_step steps[GPS_STACK_MAX];
    const unsigned count = gps_stack_walk(site, steps, depot.depth);
    const uint32_t trace =
        store(&(struct wanted){.hash = steps_hash(steps, count), .steps = steps, .count = count});
    site_remember(site, trace);
    return trace;
}

uint32_t gps_trace_here(void) {
    const struct gps_site site = gps_call_site();
    if (!depot.depth || !site.address)
        return GPS_NO_TRACE;
    const uint32_t trace = recalled(site);
    return trace ? trace : walked(site);
}

uint32_t gps_trace_at(struct gps_site site) {
    return depot.keep ? walked(site) : GPS_NO_TRACE;
}

/* After "nothing" in a row, only the first, second, fourth, eighth call looks, and so on. */
static bool is_worth_asking(uint32_t trace) {
    const uint32_t vain = atomic_load_explicit(&stored_at(trace)->vain, memory_order_relaxed);
    const bool asks = !(vain & (vain - 1));
    if (vain != NEVER)
        atomic_store_explicit(&stored_at(trace)->vain, vain + 1, memory_order_relaxed);
    return asks;
}

static uint32_t more_than(uint32_t trace) {
    enum gps_trace_more is = GPS_TRACE_NO_MORE;
    const uint32_t shown = depot.more(trace, depot.depth, &is);
    if (is != GPS_TRACE_NO_MORE)
        atomic_store_explicit(&stored_at(trace)->vain, is == GPS_TRACE_NEVER_MORE ? NEVER : 0,
                              memory_order_relaxed);
    return shown;
}

uint32_t gps_trace_kept(void) {
    const uint32_t trace = depot.keep ? gps_trace_here() : GPS_NO_TRACE;
    return trace && depot.more && is_worth_asking(trace) ? more_than(trace) : trace;
}

unsigned gps_trace_addresses(uint32_t trace, const uintptr_t **addresses) {
    if (!trace)
        return 0;
    const struct stored *stored = stored_at(gps_trace_native(trace));
    *addresses = stored->addresses;
    return stored->count;
}

static unsigned shown_frames(const struct stored *stored, struct gps_frame *frames, unsigned max) {
    const struct shown *shown = (const void *)stored->addresses;
    const unsigned all = stored->reach / sizeof(shown->frames[0]), count = all < max ? all : max;
    for (unsigned i = 0; i < count; i++)
        frames[i] = *(const struct gps_frame *)(const void *)stored_at(shown->frames[i])->addresses;
    return count;
}

unsigned gps_trace_frames(uint32_t trace, struct gps_frame *frames, unsigned max) {
    if (!trace)
        return 0;
    const struct stored *stored = stored_at(trace);
    if (stored->native)
        return shown_frames(stored, frames, max);
    const unsigned count = stored->count < max ? stored->count : max;
    for (unsigned i = 0; i < count; i++) {
        const uint32_t module = places_of(stored)[i].module;
        const uintptr_t address = stored->addresses[i];
        frames[i] = module ? *(const struct gps_frame *)depot_word(module) : (struct gps_frame){0};
        frames[i].offset = address - frames[i].address;
        frames[i].address = address;
    }
    return count;
}

bool gps_trace_mark(uint32_t trace, uint32_t mark) {
    return trace && stored_at(trace)->told != mark &&
           atomic_exchange(&stored_at(trace)->told, mark) != mark;
}

uint64_t gps_trace_hash(uint32_t trace) {
    return trace ? stored_at(trace)->hash : 0;
}

void gps_trace_reset(void) {
    memset((void *)&depot.lock, 0, sizeof(depot.lock));
}
