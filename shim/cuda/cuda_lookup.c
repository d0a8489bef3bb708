/*
 * cuda_lookup.c - the addresses that are handed out for hooked functions. The driver's own resolver
 * is called first; its answer is then substituted by address.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chain.h"
#include "doors/resolver.h"
#include "hooks.h"
#include "resolved.h"
#include "unwatched.h"

/* --- functions that do nothing to memory that a rule has taken --- */

#define NAME 56 /* has room for the longest, with its NUL */

/* A family's name ends with an asterisk. No pointers: they would be relocated. */
static const char harmless_names[][NAME] = {
#define HARMLESS(name) #name,
#define FAMILY(name)   #name "*",
#include "harmless.def"
};
static const char old_names[][NAME] = {
#define OLD(name) #name,
#include "harmless.def"
};

/* The length of a name without the _ptds or _ptsz at its end. */
GPS_BARE static size_t length_of(const char *name) {
    size_t length = 0;
    while (name[length])
        length++;
    const char *const end = name + length;
    return length > 5 && end[-5] == '_' && end[-4] == 'p' && end[-3] == 't' ? length - 5 : length;
}

GPS_BARE static int compare(const char *row, const char *name, size_t length) {
    size_t at = 0;
    while (at < length && row[at] == name[at])
        at++;
    if (row[at] == '*')
        return 0;
    return at < length ? row[at] - name[at] : row[at];
}

GPS_BARE static bool has(const char (*list)[NAME], size_t count, const char *name, size_t length) {
    size_t from = 0, to = count;
    while (from < to) {
        const size_t middle = (from + to) / 2;
        const int order = compare(list[middle], name, length);
        if (!order)
            return true;
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return false;
}

/* Whether harmless.def has the name, `old`: also as that of an old ABI. Called inside dlsym, before
 * constructors and in sanitizer runtimes that are not up yet (doors/resolver.h). */
GPS_BARE static bool is_harmless(const char *name, bool old) {
    const size_t length = length_of(name);
    return has(harmless_names, sizeof(harmless_names) / NAME, name, length) ||
           (old && has(old_names, sizeof(old_names) / NAME, name, length));
}

/* --- the addresses --- */

/* In the order of struct gps_real. */
static const uint8_t hooked[] = {
#define WHEN_lookup                                                   GPS_HOOKED_ALWAYS
#define WHEN_context                                                  GPS_HOOKED_ALWAYS
#define WHEN_memory                                                   GPS_HOOKED_ALWAYS
#define WHEN_ipc                                                      GPS_HOOKED_ALWAYS
#define WHEN_mapping                                                  GPS_HOOKED_ALWAYS
#define WHEN_pool                                                     GPS_HOOKED_ALWAYS
#define WHEN_merge                                                    GPS_HOOKED_WORK
#define WHEN_event                                                    GPS_HOOKED_EVENTS
#define WHEN_graph                                                    GPS_HOOKED_GRAPHS
#define WHEN_module                                                   GPS_HOOKED_GRAPHS
#define WHEN_wait                                                     GPS_HOOKED_WAITS
#define WHEN_told                                                     GPS_HOOKED_TOLD
#define DRIVER(kind, name, parameters, arguments)                     WHEN_##kind,
#define WRITE(name, parameters, arguments, what)                      GPS_HOOKED_COPIES,
#define GATED(name, parameters, arguments, stream)                    GPS_HOOKED_WORK,
#define LAUNCH(name, parameters, arguments, stream, f, values, extra) GPS_HOOKED_WAITS,
#define GRAPH(name, parameters, arguments, stream)                    GPS_HOOKED_WAITS,
#define READ(name, parameters, arguments, stream)                     GPS_HOOKED_COPIES,
#include "hooks.def"
};
enum { ROWS = sizeof(hooked) / sizeof(hooked[0]) };
_Static_assert(ROWS * sizeof(void *) == sizeof(gps_real), "a row for each function");

/* The wrappers' offsets from this place: addresses would be relocated in every process. */
__asm__(".pushsection .rodata\n.p2align 2\ngps_hook_offsets:\n"
#define FUNCTION(name, parameters, arguments) ".long gps_hook_" #name " - gps_hook_offsets\n"
#include "hooks.def"
        ".popsection");
extern const int32_t gps_hook_offsets[] __attribute__((visibility("hidden")));

/* The wrapper of a slot, of which the exported function is an alias. */
static void *wrapper_of(size_t slot) {
    return (char *)(uintptr_t)gps_hook_offsets + gps_hook_offsets[slot];
}

static const void *const runtime[] = {
#define RUNTIME(name, parameters, arguments) (const void *)name,
#include "hooks.def"
};

/* Whether the address is that of one of the runtime's names. */
static bool address_is_runtime(const void *address) {
    for (size_t i = 0; i < sizeof(runtime) / sizeof(runtime[0]); i++)
        if (runtime[i] == address)
            return true;
    return false;
}

/* Whether the address is one of our exported functions, of the driver's names or the runtime's. */
static bool cuda_address_is_ours(const void *address) {
    for (size_t i = 0; i < ROWS; i++)
        if (wrapper_of(i) == address)
            return true;
    return address_is_runtime(address);
}

static int address_slot(const void *address) {
    void *const *const real = (void *const *)gps_chain_own();
    for (int i = 0; i < (int)ROWS; i++)
        if (real[i] == address)
            return i;
    return gps_chain_slot_of(address);
}

static void *cuda_address_substitute(int slot, void *address) {
    if (slot < 0 || !gps_entry_hooks(hooked[slot], gps_operations_enter))
        return address;
    void *const wrapper = wrapper_of((size_t)slot);
    return gps_chain_driver ? gps_chain_door(slot, address, wrapper) : wrapper;
}

/* Substitutes an address by the name of its export, which tells the version. */
static void *substitute_export(const char *name, void *address, const void *driver) {
    if (!driver || !gps_driver_attach_by(driver) || cuda_address_is_ours(address))
        return address;
    const int slot = address_slot(driver);
    if (slot >= 0 && address != driver && address_slot(address) < 0)
        gps_chain_found(slot, address);
    return slot >= 0 || is_harmless(name, true) || !gps_driver_has(driver)
               ? cuda_address_substitute(slot, address)
               : gps_unwatched_stand_in(name, address);
}

/* --- dlsym and dlvsym --- */

static const char names[][GPS_HOOK_NAME] = {
#define FUNCTION(name, parameters, arguments) #name,
#define RUNTIME(name, parameters, arguments)  #name,
#include "hooks.def"
};

/* No sanitizer looks up such a name. Only names that the driver exports count: a look-up from here
 * that failed would show in the program's dlerror. */
GPS_BARE static int may_be_unknown(const char *name) {
    return name && name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z' &&
           !is_harmless(name, true);
}

GPS_BARE int gps_dl_wanted(void *handle, const char *name, const void *caller) {
    return gps_resolver_wanted(names, sizeof(names) / sizeof(names[0]), handle, name, caller) ||
           (handle != RTLD_NEXT && may_be_unknown(name) && gps_driver_exports(name));
}

static const struct gps_resolver resolver = {cuda_address_is_ours, address_is_runtime,
                                             substitute_export, gps_driver_has_behind};

void *gps_dlsym_hooked(void *handle, const char *name, void *caller) {
    return gps_resolver_answer(&resolver, handle, name, NULL, caller);
}

void *gps_dlvsym_hooked(void *handle, const char *name, const char *version, void *caller) {
    return gps_resolver_answer(&resolver, handle, name, version, caller);
}

/* --- the hooks --- */

/* From here on the driver answers with addresses of 64 bits. */
enum { NEW_ABI = 3020 };

/* A look-up of the program's. */
struct asked {
    enum gps_resolver_version resolver;
    const char *symbol;
    int version;
    cuuint64_t flags;
};

static int slot_by(const struct asked *asked, void *address) {
    const int known = address_slot(address);
    return known >= 0 ? known : gps_resolved_slot(asked->resolver, asked->symbol, address);
}

/* Finds the slot by the driver's own answer, where a library behind us gave the address. */
static int slot_of_found(const struct asked *asked, void *address) {
    void *const own =
        gps_resolved_by_driver(asked->resolver, asked->symbol, asked->version, asked->flags);
    const int slot = own ? slot_by(asked, own) : -1;
    if (slot >= 0 && own != address)
        gps_chain_found(slot, address);
    return slot;
}

/* Called with the driver attached. */
static CUresult cuda_lookup_substituted(CUresult result, const struct asked *asked, void **pfn) {
    if (result != CUDA_SUCCESS || !pfn || !*pfn)
        return result;
    int slot = slot_by(asked, *pfn);
    if (slot < 0 && gps_chain_driver) {
        if (cuda_address_is_ours(*pfn)) /* the other library's own name */
            return result;
        slot = slot_of_found(asked, *pfn);
    }
    *pfn = slot >= 0 || is_harmless(asked->symbol, asked->version < NEW_ABI)
               ? cuda_address_substitute(slot, *pfn)
               : gps_unwatched_stand_in(asked->symbol, *pfn);
    return result;
}

CUresult gps_on_cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags) {
    return cuda_lookup_substituted(gps_real.cuGetProcAddress(symbol, pfn, version, flags),
                                   &(struct asked){GPS_RESOLVER_V1, symbol, version, flags}, pfn);
}

CUresult gps_on_cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status) {
    return cuda_lookup_substituted(
        gps_real.cuGetProcAddress_v2(symbol, pfn, version, flags, status),
        &(struct asked){GPS_RESOLVER_V2, symbol, version, flags}, pfn);
}

/* A runtime looks up hundreds of functions: these are no calls of the program's. */
#define LOOKUP(name, parameters, arguments)                                                        \
    GPS_WRAPPER(name, parameters, arguments, (void)0, (void)0)
#include "hooks.def"
