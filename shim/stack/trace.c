/*
 * trace.c - see trace.h.
 *
 * The depot is memory reserved once, in which stacks are stored one after the other; a hash table
 * finds them. The recalls are a small cache: an entry maps a call site and a thread to a stack in
 * the depot and to the places on the thread's stack where its return addresses lay. The entry has
 * the mark of the call site's module, in case another module is loaded at its addresses. Entries
 * are overwritten freely. A reader copies an entry and uses it only if its version has not changed
 * and every place still holds its return address.
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

/* A stack. `words` are its addresses, then the place of each address's module (0: in none). */
struct stored {
    uint64_t hash;
    uint64_t count;
    uintptr_t words[];
};

/* A module at the time of the walk; it may be unloaded before the report. */
struct module {
    uintptr_t base;
    char path[sizeof(((struct gps_frame *)0)->module)];
    char build_id[sizeof(((struct gps_frame *)0)->build_id)];
};

static struct {
    GPS_LOCK(GPS_RANK_TRACES) lock;
    unsigned depth;
    bool keep;
    uint32_t used; /* words; under the lock, as are the next three */
    uint32_t stacks;
    unsigned module_count;
    uint32_t modules[MODULES];
    _Atomic bool full;
    uint64_t *_Atomic words;
    _Atomic uint32_t slots[SLOTS]; /* the hash table: where a stack begins; 0: free */
} depot;

static const void *word_at(uint32_t place) {
    return &atomic_load_explicit(&depot.words, memory_order_acquire)[place];
}

static const struct stored *stored_at(uint32_t trace) {
    return word_at(trace);
}

static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* Identifies the module at an address: one library may have replaced another there. */
static uint64_t hash_of_module(uintptr_t address) {
    struct gps_module module;
    const uint8_t *id;
    if (!gps_module_of((const void *)address, &module))
        return 0;
    uint64_t hash = module.base;
    const unsigned length = gps_module_build_id(&module, &id);
    for (unsigned i = 0; i < length; i++)
        hash = mix(hash, id[i]);
    for (const char *c = module.path; !length && *c; c++)
        hash = mix(hash, (unsigned char)*c);
    return hash;
}

static uint64_t hash_of(const struct gps_step *steps, unsigned count) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (unsigned i = 0; i < count; i++)
        hash = mix(mix(hash, steps[i].address), hash_of_module(steps[i].address));
    return hash ? hash : 1;
}

static bool equal(const struct stored *stored, const struct gps_step *steps, unsigned count) {
    bool same = stored->count == count;
    for (unsigned i = 0; same && i < count; i++)
        same = stored->words[i] == steps[i].address;
    return same;
}

/* The slot of a stack in the table, or the free slot where it belongs. */
static _Atomic uint32_t *find(uint64_t hash, const struct gps_step *steps, unsigned count) {
    for (uint32_t i = 0;; i++) { /* never full: see add */
        _Atomic uint32_t *slot = &depot.slots[(hash + i) % SLOTS];
        const uint32_t trace = atomic_load_explicit(slot, memory_order_acquire);
        if (!trace || (stored_at(trace)->hash == hash && equal(stored_at(trace), steps, count)))
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
static uint32_t take(size_t size) {
    const size_t words = (size + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    if (!have_words() || WORDS - depot.used < words)
        return 0;
    const uint32_t place = depot.used;
    depot.used += (uint32_t)words;
    return place;
}

/* Under the lock: the stored module of an address of the stack that is being added. */
static uint32_t module_of(uintptr_t address) {
    struct gps_frame frame;
    gps_stack_frame(address, &frame);
    if (!*frame.module)
        return 0;
    const uintptr_t base = address - frame.offset;
    for (unsigned i = 0; i < depot.module_count; i++) {
        const struct module *known = word_at(depot.modules[i]);
        if (known->base == base && strcmp(known->path, frame.module) == 0 &&
            strcmp(known->build_id, frame.build_id) == 0)
            return depot.modules[i];
    }
    const uint32_t place = depot.module_count < MODULES ? take(sizeof(struct module)) : 0;
    if (!place)
        return 0;
    struct module *module = (struct module *)(uintptr_t)word_at(place);
    module->base = base;
    memcpy(module->path, frame.module, sizeof(module->path));
    memcpy(module->build_id, frame.build_id, sizeof(module->build_id));
    return depot.modules[depot.module_count++] = place;
}

/* Under the lock. GPS_NO_TRACE: the depot is full, because three quarters of the table or all words
 * are used. */
static uint32_t add(uint64_t hash, const struct gps_step *steps, unsigned count) {
    const uint32_t trace = depot.stacks < SLOTS / 4 * 3
                               ? take(sizeof(struct stored) + 2 * count * sizeof(uintptr_t))
                               : GPS_NO_TRACE;
    if (!trace) {
        depot.full = true;
        return GPS_NO_TRACE;
    }
    struct stored *stored = (struct stored *)(uintptr_t)word_at(trace);
    stored->hash = hash;
    stored->count = count;
    for (unsigned i = 0; i < count; i++) {
        stored->words[i] = steps[i].address;
        stored->words[count + i] = module_of(steps[i].address);
    }
    depot.stacks++;
    return trace;
}

static uint32_t store(const struct gps_step *steps, unsigned count) {
    const uint64_t hash = hash_of(steps, count);
    uint32_t trace = atomic_load_explicit(find(hash, steps, count), memory_order_acquire);
    if (trace || atomic_load_explicit(&depot.full, memory_order_relaxed))
        return trace;
    gps_lock_take(&depot.lock);
    _Atomic uint32_t *slot = find(hash, steps, count);
    trace = atomic_load(slot);
    if (!trace) {
        trace = add(hash, steps, count);
        atomic_store_explicit(slot, trace, memory_order_release);
    }
    gps_lock_give(&depot.lock);
    return trace;
}

/* --- the recalls --- */

enum { SETS = 256, WAYS = 4, RECALL_MAX = GPS_STACK_MAX };

struct recall {
    uintptr_t thread, address, frame;
    struct gps_module_mark module; /* of the call site: another one may be loaded there later */
    uint32_t trace;
    uint32_t count;
    uint32_t gaps[RECALL_MAX]; /* from the frame up to each return address, in bytes */
};
enum { RECALL_WORDS = sizeof(struct recall) / sizeof(uint64_t) };
_Static_assert(GPS_STACK_MAX % 2 == 0 && sizeof(struct recall) % sizeof(uint64_t) == 0,
               "copied as words");

static struct entry {
    _Atomic uint64_t version; /* odd: being written */
    _Atomic uint64_t words[RECALL_WORDS];
} recalls[SETS][WAYS];

static _Atomic unsigned next_way;

static uintptr_t this_thread(void) {
    return (uintptr_t)__builtin_thread_pointer();
}

static struct entry *set_of(struct gps_site site) {
    const uint64_t key = ((uintptr_t)site.address ^ (uintptr_t)site.frame << 17) + this_thread();
    return recalls[(key * 0x9e3779b97f4a7c15u) >> 56];
}

static uint64_t word(const struct entry *entry, size_t byte) {
    return atomic_load_explicit(&entry->words[byte / sizeof(uint64_t)], memory_order_relaxed);
}

/* Compares the three words that identify an entry, before the rest is copied. */
static bool is_of(const struct entry *entry, struct gps_site site) {
    return word(entry, offsetof(struct recall, frame)) == (uintptr_t)site.frame &&
           word(entry, offsetof(struct recall, address)) == (uintptr_t)site.address &&
           word(entry, offsetof(struct recall, thread)) == this_thread();
}

/* Copies an entry, with only as many gaps as it uses. Each word is read with acquire order between
 * two reads of the version, so no read moves behind the second one. */
static bool copy(const struct entry *entry, struct recall *recall) {
    const size_t head = offsetof(struct recall, gaps) / sizeof(uint64_t);
    const uint64_t version = atomic_load_explicit(&entry->version, memory_order_acquire);
    uint64_t words[RECALL_WORDS];
    for (size_t i = 0; i < head; i++)
        words[i] = atomic_load_explicit(&entry->words[i], memory_order_acquire);
    memcpy(recall, words, head * sizeof(*words));
    if (version % 2 || recall->count > RECALL_MAX)
        return false;
    const size_t all = head + (recall->count + 1) / 2;
    for (size_t i = head; i < all; i++)
        words[i] = atomic_load_explicit(&entry->words[i], memory_order_acquire);
    memcpy(recall->gaps, words + head, (all - head) * sizeof(*words));
    return atomic_load_explicit(&entry->version, memory_order_relaxed) == version;
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

static bool is_on_own_stack(const struct recall *recall) {
    return recall->count && recall->frame > own_stack.low &&
           recall->frame + recall->gaps[recall->count - 1] <= own_stack.high;
}

/* Whether all return addresses are where they were, innermost first. Not instrumented, because
 * sanitizers take such reads for errors. */
__attribute__((no_sanitize("address", "thread"))) static bool
still_stands(const struct recall *recall) {
    const uintptr_t *addresses;
    const unsigned count = gps_trace_addresses(recall->trace, &addresses);
    for (unsigned i = 0; i < count; i++)
        if (*(const volatile uintptr_t *)(recall->frame - sizeof(uintptr_t) + recall->gaps[i]) !=
            addresses[i])
            return false;
    return count == recall->count;
}

static uint32_t recalled(struct gps_site site) {
    struct entry *set = set_of(site);
    struct recall recall;
    for (unsigned way = 0; way < WAYS; way++)
        if (is_of(&set[way], site) && copy(&set[way], &recall) &&
            recall.frame == (uintptr_t)site.frame && recall.address == (uintptr_t)site.address &&
            recall.thread == this_thread() && is_on_own_stack(&recall) && still_stands(&recall) &&
            gps_module_has_mark(site.address, recall.module))
            return recall.trace;
    return GPS_NO_TRACE;
}

static bool describe(struct gps_site site, uint32_t trace, const struct gps_step *steps,
                     unsigned count, struct recall *recall) {
    *recall = (struct recall){.thread = this_thread(),
                              .address = (uintptr_t)site.address,
                              .frame = (uintptr_t)site.frame,
                              .module = gps_module_mark_of(site.address),
                              .trace = trace,
                              .count = count};
    const uintptr_t first = recall->frame - sizeof(uintptr_t);
    for (unsigned i = 0; i < count; i++) {
        if (steps[i].slot < first || steps[i].slot - first > UINT32_MAX)
            return false;
        recall->gaps[i] = (uint32_t)(steps[i].slot - first);
    }
    return true;
}

static void remember(struct gps_site site, uint32_t trace, const struct gps_step *steps,
                     unsigned count) {
    struct recall recall;
    uint64_t words[RECALL_WORDS];
    find_own_stack();
    if (!trace || !describe(site, trace, steps, count, &recall) || !is_on_own_stack(&recall))
        return;
    struct entry *entry =
        &set_of(site)[atomic_fetch_add_explicit(&next_way, 1, memory_order_relaxed) % WAYS];
    uint64_t version = atomic_load_explicit(&entry->version, memory_order_relaxed);
    if (version % 2 || !atomic_compare_exchange_strong(&entry->version, &version, version + 1))
        return; /* another thread writes it */
    memcpy(words, &recall, sizeof(words));
    for (size_t i = 0; i < RECALL_WORDS; i++)
        atomic_store_explicit(&entry->words[i], words[i], memory_order_release);
    atomic_store_explicit(&entry->version, version + 2, memory_order_release);
}

/* --- the interface --- */

void gps_trace_start(unsigned depth, bool keep) {
    depot.depth = depth;
    depot.keep = keep && depth != 0;
}

/* Not inlined, so that the steps take room on the stack only if there is a walk. */
__attribute__((noinline)) static uint32_t walked(struct gps_site site) {
    struct gps_step steps[GPS_STACK_MAX];
    const unsigned count = gps_stack_walk(site, steps, depot.depth);
    const uint32_t trace = store(steps, count);
    remember(site, trace, steps, count);
    return trace;
}

uint32_t gps_trace_here(void) {
    const struct gps_site site = gps_call_site();
    if (!depot.depth || !site.address)
        return GPS_NO_TRACE;
    const uint32_t trace = recalled(site);
    return trace ? trace : walked(site);
}

uint32_t gps_trace_kept(void) {
    return depot.keep ? gps_trace_here() : GPS_NO_TRACE;
}

unsigned gps_trace_addresses(uint32_t trace, const uintptr_t **addresses) {
    if (!trace)
        return 0;
    const struct stored *stored = stored_at(trace);
    *addresses = stored->words;
    return (unsigned)stored->count;
}

unsigned gps_trace_frames(uint32_t trace, struct gps_frame *frames, unsigned max) {
    if (!trace)
        return 0;
    const struct stored *stored = stored_at(trace);
    const unsigned count = stored->count < max ? (unsigned)stored->count : max;
    for (unsigned i = 0; i < count; i++) {
        const uintptr_t address = stored->words[i];
        const uint32_t place = (uint32_t)stored->words[stored->count + i];
        frames[i] = (struct gps_frame){.address = address, .offset = address};
        if (!place)
            continue;
        const struct module *module = word_at(place);
        frames[i].offset = address - module->base;
        memcpy(frames[i].module, module->path, sizeof(module->path));
        memcpy(frames[i].build_id, module->build_id, sizeof(module->build_id));
    }
    return count;
}

uint64_t gps_trace_hash(uint32_t trace) {
    return trace ? stored_at(trace)->hash : 0;
}

void gps_trace_reset(void) {
    memset((void *)&depot.lock, 0, sizeof(depot.lock));
}
