/*
 * runtime.c - the runtime's names for hooked calls: remembers which call the user wrote, and
 * forwards.
 *
 * Forwards to which cudart? A process can hold several, loaded RTLD_LOCAL, so neither RTLD_NEXT nor
 * the first one found is right. Ours is the one that the caller's module would have reached without
 * us: it defines the name itself, or something it needs does, breadth first as the dynamic linker
 * searches; failing that any loaded object after us. A caller that stands before us is an
 * interposer that forwards: what it defines itself is where the call came from. Found without dlsym
 * (module.h), then kept by return address.
 * A tail call (`jmp cudaFree`) hides the module that made it: with several cudarts such a call can
 * reach another one's; see docs in README.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda_runtime_api.h>
#include <stdatomic.h>
#include <stdint.h>

#include "enter.h"
#include "lifecycle/lifecycle.h"
#include "stack/call.h"
#include "stack/dependencies.h"
#include "stack/module.h"

#define EXPORTED __attribute__((visibility("default")))

enum { CACHE = 1024 /* call sites; a power of two */, NEIGHBOURS = 4, WRITING = 1 };

/* One call site and the function it reaches; `site` is WRITING while the others change. */
static struct entry {
    _Atomic uintptr_t site;
    _Atomic uintptr_t function;
    _Atomic uintptr_t home; /* load address of the module the function is in */
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

struct order {
    uintptr_t caller, self;
    bool caller_first;
};

static bool find_first(void *arg, const struct gps_module *module) {
    struct order *order = arg;
    order->caller_first = module->base == order->caller;
    return module->base == order->caller || module->base == order->self;
}

static bool stands_before_us(const struct gps_module *caller, uintptr_t self) {
    struct order order = {.caller = caller->base, .self = self};
    gps_module_each(find_first, &order);
    return order.caller_first;
}

static void *find(const char *name, const void *site) {
    struct gps_module caller, self;
    if (!gps_module_of((const void *)(uintptr_t)&find, &self))
        return NULL;
    struct search search = {.name = name, .self = self.base};
    if (gps_module_of(site, &caller) && caller.base != self.base) {
        if (!stands_before_us(&caller, self.base))
            search.found = gps_module_symbol(&caller, name);
        if (!search.found)
            gps_dependencies_each(&caller, try_needed, &search);
    }
    if (!search.found)
        gps_module_each(try_any, &search);
    return search.found;
}

static uintptr_t home_of(uintptr_t function) {
    struct gps_module module;
    return gps_module_of((const void *)function, &module) ? module.base : 0;
}

static void remember(struct entry *entry, uintptr_t site, uintptr_t function) {
    uintptr_t was = atomic_load(&entry->site);
    if (was == WRITING || !atomic_compare_exchange_strong(&entry->site, &was, WRITING))
        return; /* another thread writes it; this site is looked up again next time */
    atomic_store(&entry->function, function);
    atomic_store(&entry->home, home_of(function));
    atomic_store(&entry->site, site);
}

/* The look-up of the function's module (13 ns) notices a cudart that was unloaded since. */
static void *recall(struct entry *entry, uintptr_t site) {
    const uintptr_t function = atomic_load_explicit(&entry->function, memory_order_acquire);
    const uintptr_t home = atomic_load_explicit(&entry->home, memory_order_acquire);
    const bool same = atomic_load_explicit(&entry->site, memory_order_acquire) == site;
    return same && home_of(function) == home ? (void *)function : NULL;
}

/* A call site belongs to one function, so the return address is the whole key. */
static void *resolve(const char *name, const void *caller) {
    const uintptr_t site = (uintptr_t)caller;
    const size_t first = (site * 0x9e3779b97f4a7c15u) >> 54;
    struct entry *room = &cache[first];
    for (size_t i = 0; i < NEIGHBOURS; i++) {
        struct entry *entry = &cache[(first + i) & (CACHE - 1)];
        const uintptr_t found = atomic_load_explicit(&entry->site, memory_order_acquire);
        void *function = found == site ? recall(entry, site) : NULL;
        if (function)
            return function;
        if (!found || found == site) {
            room = entry;
            break;
        }
    }
    void *found = find(name, caller);
    if (found)
        remember(room, site, (uintptr_t)found);
    return found;
}

/* The runtime can know by itself that it will not work in a forked child. */
__attribute__((noinline, cold)) static void not_initialized(void) {
    gps_call.inside++;
    if (gps_enter())
        gps_lifecycle_not_initialized();
    gps_call.inside--;
}

#define RUNTIME(name, parameters, arguments)                                                       \
    EXPORTED cudaError_t name parameters {                                                         \
        const struct gps_site site = GPS_SITE_HERE;                                                \
        __typeof__(name) *const real = (__typeof__(name) *)resolve(#name, site.address);           \
        if (!real)                                                                                 \
            return cudaErrorInitializationError;                                                   \
        const char *const outer = gps_call.runtime;                                                \
        const struct gps_site outer_site = gps_call.runtime_site;                                  \
        gps_call.runtime = #name;                                                                  \
        gps_call.runtime_site = site;                                                              \
        const cudaError_t result = real arguments;                                                 \
        if (__builtin_expect(result == cudaErrorInitializationError, 0))                           \
            not_initialized();                                                                     \
        gps_call.runtime = outer;                                                                  \
        gps_call.runtime_site = outer_site;                                                        \
        return result;                                                                             \
    }
#include "hooks.def"
