/*
 * runtime.c - the runtime's names for hooked calls: remembers the call in the source, and forwards.
 *
 * It forwards to the right cudart. A process can hold several, loaded RTLD_LOCAL, so neither
 * RTLD_NEXT nor the first one found is right. The right one is that which the caller's module would
 * have reached without us: the module defines the name itself, or one of its dependencies does,
 * breadth first as the dynamic linker searches; failing that any loaded object after us. Before all
 * of these come libraries preloaded behind us that define it for any version. A caller before us is
 * an interposer that forwards: the name that it defines itself is where the call came from. Found
 * without dlsym (module.h), then cached by return address and name. Libraries are unloaded, and
 * others loaded in their place: an entry of the cache holds for one caller's module and one
 * runtime, told by their marks. A tail call (`jmp cudaFree`) hides the module that made it: with
 * several cudarts such a call can reach another one's; see docs in README.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "calls/entry.h"
#include "operations.h"
#include "stack/call.h"
#include "stack/module.h"
#include "stack/module_place.h"

/* --- the dependencies of a module --- */

enum { BUCKETS = 1024 };

struct name {
    const char *text;
    struct node *node;
    struct name *next; /* in its bucket */
};

struct node {
    struct gps_module module;
    struct name names[3];
    struct node *next; /* in the queue of nodes to visit */
    bool seen;
};

struct walk {
    const struct gps_module *root;
    gps_module_fn *fn;
    void *arg;
    bool done;
    struct node *first, **end; /* the queue */
    size_t count, most;
    struct scratch {
        struct name *buckets[BUCKETS];
        struct node nodes[]; /* as many as there are objects */
    } * scratch;
};

/* The place of a name in its bucket, or the end of the bucket. */
static struct name **walk_find_name(struct walk *walk, const char *text) {
    uint32_t hash = 5381;
    for (const char *c = text; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    struct name **name = &walk->scratch->buckets[hash % BUCKETS];
    while (*name && strcmp((*name)->text, text) != 0)
        name = &(*name)->next;
    return name;
}

/* The first object in load order has the name, as the linker chooses. */
static void walk_add_name(struct walk *walk, struct name *name, struct node *node,
                          const char *text) {
    struct name **place = walk_find_name(walk, text);
    if (*place)
        return;
    *name = (struct name){text, node, NULL};
    *place = name;
}

static bool walk_add_module(void *arg, const struct gps_module *module) {
    struct walk *walk = arg;
    struct node *node = &walk->scratch->nodes[walk->count++];
    const char *soname = gps_module_soname(module);
    node->module = *module;
    node->seen = module->base == walk->root->base;
    if (*module->path) { /* no object depends on the main program */
        walk_add_name(walk, &node->names[0], node, module->path);
        walk_add_name(walk, &node->names[1], node, basename(module->path));
        if (soname)
            walk_add_name(walk, &node->names[2], node, soname);
    }
    return walk->count == walk->most;
}

static void enqueue(void *arg, const char *needed) {
    struct walk *walk = arg;
    struct name *name = *walk_find_name(walk, needed);
    if (name && !name->node->seen) {
        name->node->seen = true;
        *walk->end = name->node;
        walk->end = &name->node->next;
    }
}

static bool count_one(void *arg, const struct gps_module *any) {
    (void)any;
    ++*(size_t *)arg;
    return false;
}

/* The whole walk runs in the first callback of an iteration of the linker, which holds the linker's
 * lock, so that no object is loaded or unloaded meanwhile. */
static bool walk_locked(void *arg, const struct gps_module *any) {
    struct walk *walk = arg;
    (void)any;
    gps_module_each(count_one, &walk->most);
    const size_t size = sizeof(*walk->scratch) + walk->most * sizeof(struct node);
    void *const scratch =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (scratch == MAP_FAILED)
        return true;
    walk->scratch = scratch;
    gps_module_each(walk_add_module, walk);
    walk->end = &walk->first;
    gps_module_each_needed(walk->root, enqueue, walk);
    for (struct node *node = walk->first; node && !walk->done; node = node->next) {
        walk->done = walk->fn(walk->arg, &node->module);
        if (!walk->done)
            gps_module_each_needed(&node->module, enqueue, walk);
    }
    munmap(scratch, size);
    return true;
}

/* All loaded objects are collected once and their names put into a hash table, so that a walk is
 * linear in the number of names. Calls fn for the dependencies of `module` (DT_NEEDED) and for
 * theirs, breadth first and each once, until fn returns true. False: fn never did. Takes the
 * linker's lock and maps scratch memory. Calls no malloc and preserves errno. */
static bool each_dependency(const struct gps_module *module, gps_module_fn *fn, void *arg) {
    const int error = errno;
    struct walk walk = {.root = module, .fn = fn, .arg = arg};
    gps_module_each(walk_locked, &walk);
    errno = error;
    return walk.done;
}

/* --- the calls of the program --- */

enum { CACHE = 1024 /* call sites; a power of two */, NEIGHBOURS = 4 };

struct mark {
    _Atomic uintptr_t where;
    _Atomic uint64_t value;
};

/* One call site and the function it reaches by one name. `version` is odd while entry_remember
 * changes the other fields, and a new one afterwards. It stores them with release, behind its first
 * change of `version`; entry_recall loads them with acquire, before its second look at `version`.
 * So a reader that sees a new field sees that `version` has changed. */
static struct entry {
    _Atomic unsigned version;
    _Atomic uintptr_t site; /* 0: empty */
    _Atomic uintptr_t name; /* the address of our text of it */
    _Atomic uintptr_t function;
    struct mark caller, home; /* of the modules of both */
} cache[CACHE];

struct search {
    const char *name;
    uintptr_t self;
    void *found;
    bool past_self;
};

static bool try_any(void *arg, const struct gps_module *module) {
    struct search *search = arg;
    if (search->past_self)
        search->found = gps_module_symbol(module, search->name);
    search->past_self = search->past_self || module->base == search->self;
    return search->found != NULL;
}

static bool try_needed(void *arg, const struct gps_module *module) {
    struct search *search = arg;
    if (module->base != search->self)
        search->found = gps_module_symbol(module, search->name);
    return search->found != NULL;
}

static void *runtime_function_find(const char *name, const void *site) {
    struct gps_module caller, self;
    if (!gps_module_of((const void *)(uintptr_t)&runtime_function_find, &self))
        return NULL;
    struct search search = {.name = name, .self = self.base};
    const bool is_called = gps_module_of(site, &caller) && caller.base != self.base;
    search.found = gps_preloaded_symbol(name, is_called ? &caller : NULL);
    if (is_called && !search.found) {
        if (!gps_module_is_before_us(site))
            search.found = gps_module_symbol(&caller, name);
        if (!search.found)
            each_dependency(&caller, try_needed, &search);
    }
    if (!search.found)
        gps_module_each(try_any, &search);
    return search.found;
}

/* --- the cache, by call site --- */

static bool module_is_same(void *arg, const struct gps_module *module) {
    return module->base == ((const struct gps_module *)arg)->base;
}

/* The start of the last library that was found to stay: mostly the runtime, for every call site. */
static const void *_Atomic stays;

static bool is_permanent(void *arg, const struct gps_module *program) {
    const struct gps_module *module = arg;
    if (*program->path)
        return false;
    if (module_is_same(arg, program) || module->start == atomic_load(&stays))
        return true;
    if (!each_dependency(program, module_is_same, arg))
        return false;
    atomic_store(&stays, module->start);
    return true;
}

/* A module's mark. The program and its dependencies stay: their entries hold without a look-up. */
static struct gps_module_mark module_mark(uintptr_t address) {
    struct gps_module module;
    if (gps_module_of((const void *)address, &module) && gps_module_each(is_permanent, &module))
        return (struct gps_module_mark){GPS_MODULE_PERMANENT, 0};
    return gps_module_mark_of((const void *)address);
}

static void store_mark(struct mark *mark, struct gps_module_mark value) {
    atomic_store_explicit(&mark->where, value.where, memory_order_release);
    atomic_store_explicit(&mark->value, value.value, memory_order_release);
}

static void entry_remember(struct entry *entry, const char *name, uintptr_t site,
                           uintptr_t function) {
    const struct gps_module_mark caller = module_mark(site), home = module_mark(function);
    unsigned version = atomic_load(&entry->version);
    if ((version & 1) || !atomic_compare_exchange_strong(&entry->version, &version, version + 1))
        return; /* another thread writes it; this site is looked up again next time */
    atomic_store_explicit(&entry->site, site, memory_order_release);
    atomic_store_explicit(&entry->name, (uintptr_t)name, memory_order_release);
    atomic_store_explicit(&entry->function, function, memory_order_release);
    store_mark(&entry->caller, caller);
    store_mark(&entry->home, home);
    atomic_store_explicit(&entry->version, version + 2, memory_order_release);
}

static struct gps_module_mark load_mark(const struct mark *mark) {
    return (struct gps_module_mark){atomic_load_explicit(&mark->where, memory_order_acquire),
                                    atomic_load_explicit(&mark->value, memory_order_acquire)};
}

static bool module_is_there(uintptr_t address, struct gps_module_mark mark) {
    return mark.where == GPS_MODULE_PERMANENT || gps_module_has_mark((const void *)address, mark);
}

/* NULL: the entry has changed, or one of the two modules has. A look-up of a module takes 13 ns. */
static void *entry_recall(const struct entry *entry, uintptr_t site, unsigned version) {
    const uintptr_t function = atomic_load_explicit(&entry->function, memory_order_acquire);
    const struct gps_module_mark caller = load_mark(&entry->caller), home = load_mark(&entry->home);
    if ((version & 1) || atomic_load_explicit(&entry->version, memory_order_relaxed) != version)
        return NULL;
    return module_is_there(site, caller) && module_is_there(function, home) ? (void *)function
                                                                            : NULL;
}

/* A call site can have several names: a foreign function interface has one site for all. */
static void *runtime_resolve(const char *name, const void *caller) {
    const uintptr_t site = (uintptr_t)caller;
    const size_t first = ((site + (uintptr_t)name) * 0x9e3779b97f4a7c15u) >> 54;
    struct entry *room = &cache[first];
    for (size_t i = 0; i < NEIGHBOURS; i++) {
        struct entry *entry = &cache[(first + i) & (CACHE - 1)];
        const unsigned version = atomic_load_explicit(&entry->version, memory_order_acquire);
        const uintptr_t found = atomic_load_explicit(&entry->site, memory_order_acquire);
        const bool same =
            found == site &&
            atomic_load_explicit(&entry->name, memory_order_acquire) == (uintptr_t)name;
        void *function = same ? entry_recall(entry, site, version) : NULL;
        if (function)
            return function;
        if (!found || same) {
            room = entry;
            break;
        }
    }
    void *found = runtime_function_find(name, caller);
    if (found)
        entry_remember(room, name, site, (uintptr_t)found);
    return found;
}

/* `before` and `after` run around calls that need more. */
#define FORWARD(name, parameters, arguments, before, after)                                        \
    GPS_EXPORTED cudaError_t name parameters {                                                     \
        const struct gps_site site = GPS_SITE_HERE;                                                \
        __typeof__(name) *const real = (__typeof__(name) *)runtime_resolve(#name, site.address);   \
        if (!real)                                                                                 \
            return cudaErrorInitializationError;                                                   \
        const char *const outer = gps_call.runtime;                                                \
        const struct gps_site outer_site = gps_call.runtime_site;                                  \
        gps_call.runtime = #name;                                                                  \
        gps_call.runtime_site = site;                                                              \
        before;                                                                                    \
        const cudaError_t result = real arguments;                                                 \
        if (__builtin_expect(result == cudaErrorInitializationError, 0))                           \
            gps_entry_not_initialized(gps_operations_enter);                                       \
        after;                                                                                     \
        gps_call.runtime = outer;                                                                  \
        gps_call.runtime_site = outer_site;                                                        \
        return result;                                                                             \
    }
#define RUNTIME(name, parameters, arguments) FORWARD(name, parameters, arguments, (void)0, (void)0)

/* After CUDA's end the runtime does not call the driver. */
static void end_free(cudaError_t result, const void *pointer) {
    if (__builtin_expect(result == cudaErrorCudartUnloading, 0))
        gps_entry_freed_late(gps_operations_enter, (uintptr_t)pointer);
}

#define RUNTIME_FREE(name, parameters, arguments)                                                  \
    FORWARD(name, parameters, arguments, (void)0, end_free(result, pointer))

/* Begins an IPC call. True: it was reported before, because the call may not return. */
static bool begin_ipc(const void *output) {
    gps_call.driver = NULL;
    return !output && gps_entry_no_output(gps_operations_enter);
}

/* Ends an IPC call. Before the first call there was no driver to begin with. If the runtime did not
 * call the driver, no hook has noted a name. */
static void end_ipc(cudaError_t result, bool is_told, const void *output, const void *closed) {
    if (!output && !is_told)
        gps_entry_no_output(gps_operations_enter);
    else if (result != cudaSuccess && output && !gps_call.driver)
        gps_entry_refused_early(gps_operations_enter, (int)result, (uintptr_t)closed);
}

#define RUNTIME_IPC(name, parameters, arguments, output, closed)                                   \
    FORWARD(name, parameters, arguments, const bool is_told = begin_ipc(output),                   \
            end_ipc(result, is_told, output, closed))
#include "hooks.def"
