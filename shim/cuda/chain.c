#include "chain.h"

#include <stdatomic.h>
#include <string.h>

#include "doors/attachment.h"
#include "stack/call.h"
#include "stack/module_place.h"

enum { ROWS = sizeof(struct gps_real) / sizeof(void *) };
#if defined(__x86_64__)
enum { DOOR_BYTES = 32 };
#else
enum { DOOR_BYTES = 64 };
#endif

struct gps_real *_Atomic gps_chain_driver;

/* The functions that a slot goes on to: libcuda's, those that a linked program reaches, and those
 * that a look-up answered; NULL: libcuda's. */
static struct gps_real own, linked, found;

/* Of doors.S. The last is the number of the door of this thread's call, plus one; 0: none. */
extern const char gps_chain_doors[ROWS][DOOR_BYTES] __attribute__((visibility("hidden")));
extern void *gps_chain_wrappers[ROWS] __attribute__((visibility("hidden")));
extern __thread unsigned gps_chain_via __attribute__((visibility("hidden")));

static void *chain_function_at(const struct gps_real *of, int slot) {
    return __atomic_load_n((void *const *)of + slot, __ATOMIC_ACQUIRE);
}

/* --- libraries behind us --- */

struct names {
    const char (*names)[GPS_HOOK_NAME]; /* of the slots */
    const struct gps_module *only;      /* NULL: any */
};

static bool module_is_libcuda(const struct gps_module *module) {
    const char *soname = gps_module_soname(module);
    return soname && strcmp(soname, "libcuda.so.1") == 0;
}

static bool steps_between(void *arg, const struct gps_module *module) {
    const struct names *of = arg;
    if (module_is_libcuda(module) || (of->only && of->only->dynamic != module->dynamic))
        return false;
    bool defines = gps_module_symbol(module, "dlsym") || gps_module_symbol(module, "dlvsym");
    for (size_t i = 0; i < ROWS && !defines; i++)
        defines = gps_module_symbol(module, of->names[i]) != NULL;
    return defines;
}

bool gps_chain_has(const void *caller, const char (*names)[GPS_HOOK_NAME]) {
    struct gps_module module;
    struct names of = {names, &module};
    return gps_module_of(caller, &module) &&
           gps_preloaded_each(GPS_PRELOADED_BEHIND, steps_between, &of);
}

/* --- calls --- */

/* The function to go on to; NULL: the driver's. A library that has a call of ours gets no other. */
static void *chain_next(int slot, uintptr_t frame) {
    const bool looked_up = gps_chain_via == (unsigned)slot + 1;
    if (looked_up)
        gps_chain_via = 0;
    return gps_call.handed_on > frame ? NULL
                                      : chain_function_at(looked_up ? &found : &linked, slot);
}

#define CHAIN(name, parameters, arguments)                                                         \
    static CUresult chain_##name parameters {                                                      \
        const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);                             \
        const uintptr_t before = gps_call.handed_on;                                               \
        __typeof__(name) *const function = (__typeof__(name) *)chain_next(                         \
            offsetof(struct gps_real, name) / sizeof(void *), frame);                              \
        if (!function)                                                                             \
            return own.name arguments;                                                             \
        gps_call.handed_on = frame;                                                                \
        const CUresult result = function arguments;                                                \
        gps_call.handed_on = before;                                                               \
        return result;                                                                             \
    }
#define FUNCTION(name, parameters, arguments) CHAIN(name, parameters, arguments)
#include "hooks.def"

/* --- filling --- */

/* Without a table of these functions, which would be relocated in every program. */
static void put_in(struct gps_real *real) {
#define PUT(name)                                                                                  \
    if (own.name)                                                                                  \
        __atomic_store_n(&real->name, chain_##name, __ATOMIC_RELEASE);
#define FUNCTION(name, parameters, arguments) PUT(name)
#include "hooks.def"
}

/* The first library in the order that defines a function gives it. */
static bool chain_look_up(void *arg, const struct gps_module *module) {
    const struct names *of = arg;
    if (!module_is_libcuda(module))
        gps_attachment_look_up(module, of->names, (void **)&linked, sizeof(linked));
    return module_is_libcuda(module);
}

bool gps_chain_fill(const struct gps_module *libcuda, const char (*names)[GPS_HOOK_NAME],
                    struct gps_real *real) {
    struct names of = {names, NULL};
    if (!gps_preloaded_each(GPS_PRELOADED_BEHIND, steps_between, &of))
        return false;
    gps_attachment_look_up(libcuda, names, (void **)&own, sizeof(own));
    gps_preloaded_each(GPS_PRELOADED_BEHIND, chain_look_up, &of);
    atomic_store(&gps_chain_driver, &own);
    put_in(real);
    return true;
}

/* --- addresses --- */

int gps_chain_slot_of(const void *address) {
    for (int slot = 0; gps_chain_driver && slot < (int)ROWS; slot++)
        if (chain_function_at(&linked, slot) == address ||
            chain_function_at(&found, slot) == address)
            return slot;
    return -1;
}

void gps_chain_found(int slot, void *address) {
    __atomic_store_n((void **)&found + slot, address, __ATOMIC_RELEASE);
}

void *gps_chain_door(int slot, const void *address, void *wrapper) {
    if (chain_function_at(&linked, slot) == address)
        return wrapper;
    __atomic_store_n(&gps_chain_wrappers[slot], wrapper, __ATOMIC_RELEASE);
    return (void *)gps_chain_doors[slot];
}
