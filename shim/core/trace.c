/*
 * trace.c - see trace.h.
 *
 * Two things: the depot, a region of memory reserved once, where stacks lie one behind the other
 * and a table finds them by hash; and the recalls, a small cache from call site and thread to a
 * stack in the depot with the places on the thread's stack where its return addresses stood. The
 * cache is written over freely; a reader copies an entry and believes it only if its version has
 * not changed, and the stack only if every place still holds its address.
 */
#include "trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "config.h"
#include "stack.h"

/* --- the depot --- */

enum { SLOTS = 1 << 16, WORDS = 2 << 20 /* 16 MiB, touched as it fills */ };

struct stored {
    uint64_t hash;
    uint64_t count;
    uintptr_t addresses[];
};

static struct {
    pthread_mutex_t lock;
    unsigned depth;
    bool keep;
    uint32_t used; /* words; the lock's */
    uint32_t stacks;
    uint64_t *_Atomic words;
    _Atomic uint32_t slots[SLOTS]; /* by hash: where a stack begins; 0: free */
} depot = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct stored *stored_at(uint32_t trace) {
    uint64_t *words = atomic_load_explicit(&depot.words, memory_order_acquire);
    return (const struct stored *)(const void *)&words[trace];
}

static uint64_t hash_of(const struct gps_step *steps, unsigned count) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (unsigned i = 0; i < count; i++)
        hash = (hash ^ steps[i].address) * 0x9e3779b97f4a7c15u, hash ^= hash >> 29;
    return hash ? hash : 1;
}

static bool equal(const struct stored *stored, const struct gps_step *steps, unsigned count) {
    bool same = stored->count == count;
    for (unsigned i = 0; same && i < count; i++)
        same = stored->addresses[i] == steps[i].address;
    return same;
}

/* The stack's place in the table: where it is, or the free slot where it belongs. */
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
    depot.used = 1; /* 0 is no trace */
    atomic_store_explicit(&depot.words, words, memory_order_release);
    return true;
}

/* Under the lock. GPS_NO_TRACE: it is full, at three quarters of the table or the end of the words.
 */
static uint32_t add(uint64_t hash, const struct gps_step *steps, unsigned count) {
    const uint32_t size = (uint32_t)(sizeof(struct stored) / sizeof(uint64_t)) + count;
    if (!have_words() || WORDS - depot.used < size || depot.stacks >= SLOTS / 4 * 3)
        return GPS_NO_TRACE;
    const uint32_t trace = depot.used;
    struct stored *stored = (void *)&atomic_load(&depot.words)[trace];
    stored->hash = hash;
    stored->count = count;
    for (unsigned i = 0; i < count; i++)
        stored->addresses[i] = steps[i].address;
    depot.used += size;
    depot.stacks++;
    return trace;
}

static uint32_t store(const struct gps_step *steps, unsigned count) {
    const uint64_t hash = hash_of(steps, count);
    uint32_t trace = atomic_load_explicit(find(hash, steps, count), memory_order_acquire);
    if (trace)
        return trace;
    pthread_mutex_lock(&depot.lock);
    _Atomic uint32_t *slot = find(hash, steps, count);
    trace = atomic_load(slot);
    if (!trace) {
        trace = add(hash, steps, count);
        atomic_store_explicit(slot, trace, memory_order_release);
    }
    pthread_mutex_unlock(&depot.lock);
    return trace;
}

/* --- the recalls --- */

enum { SETS = 256, WAYS = 4, RECALL_MAX = 32 };

struct recall {
    uintptr_t thread, address, frame;
    uint32_t trace;
    uint32_t count;
    uint32_t gaps[RECALL_MAX]; /* from the frame up to each return address, in bytes */
};
enum { RECALL_WORDS = sizeof(struct recall) / sizeof(uint64_t) };
_Static_assert(sizeof(struct recall) % sizeof(uint64_t) == 0, "copied as words");

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

/* The three words that tell whether it is worth copying the rest. */
static bool is_of(const struct entry *entry, struct gps_site site) {
    return word(entry, offsetof(struct recall, frame)) == (uintptr_t)site.frame &&
           word(entry, offsetof(struct recall, address)) == (uintptr_t)site.address &&
           word(entry, offsetof(struct recall, thread)) == this_thread();
}

static bool copy(const struct entry *entry, struct recall *recall) {
    uint64_t words[RECALL_WORDS];
    const uint64_t version = atomic_load_explicit(&entry->version, memory_order_acquire);
    for (size_t i = 0; i < RECALL_WORDS; i++)
        words[i] = atomic_load_explicit(&entry->words[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    memcpy(recall, words, sizeof(words));
    return version % 2 == 0 &&
           atomic_load_explicit(&entry->version, memory_order_relaxed) == version;
}

/* Innermost first: the first that differs ends it, so nothing above a stack's end is ever read. The
 * sanitizers know nothing of return addresses. */
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
            recall.thread == this_thread() && still_stands(&recall))
            return recall.trace;
    return GPS_NO_TRACE;
}

static bool describe(struct gps_site site, uint32_t trace, const struct gps_step *steps,
                     unsigned count, struct recall *recall) {
    *recall = (struct recall){.thread = this_thread(),
                              .address = (uintptr_t)site.address,
                              .frame = (uintptr_t)site.frame,
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
    if (!trace || count > RECALL_MAX || !describe(site, trace, steps, count, &recall))
        return;
    struct entry *entry =
        &set_of(site)[atomic_fetch_add_explicit(&next_way, 1, memory_order_relaxed) % WAYS];
    uint64_t version = atomic_load_explicit(&entry->version, memory_order_relaxed);
    if (version % 2 || !atomic_compare_exchange_strong(&entry->version, &version, version + 1))
        return; /* another thread writes it */
    memcpy(words, &recall, sizeof(words));
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i < RECALL_WORDS; i++)
        atomic_store_explicit(&entry->words[i], words[i], memory_order_relaxed);
    atomic_store_explicit(&entry->version, version + 2, memory_order_release);
}

/* --- what others ask --- */

void gps_trace_start(unsigned depth, bool keep) {
    depot.depth = depth;
    depot.keep = keep && depth != 0;
}

/* Apart from its caller: the steps are on the stack only where there is a walk. */
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
    *addresses = stored->addresses;
    return (unsigned)stored->count;
}

uint64_t gps_trace_hash(uint32_t trace) {
    return trace ? stored_at(trace)->hash : 0;
}

void gps_trace_reset(void) {
    memset((void *)&depot.lock, 0, sizeof(depot.lock));
}
