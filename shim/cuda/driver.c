/* driver.c - see driver.h. */
#include "driver.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "stack/module_place.h"

struct gps_real gps_real;

struct gps_calls gps_calls;

/* It has no lock, for a child that is forked during the look-up would wait for it, and so would a
 * signal handler. Threads that look up together, and the child, choose one libcuda and fill in the
 * same addresses.
 */
static struct {
    _Atomic uintptr_t chosen; /* an address in it; 0: none yet */
    _Atomic bool attached;
} state;

/* In the order of the two structs. Arrays, not pointers, which would be relocated in every program
 * that the library is preloaded into. */
static const char real_names[][GPS_HOOK_NAME] = {
#define DRIVER(kind, name, parameters, arguments)  #name,
#define WRITE(name, parameters, arguments, what)   #name,
#define GATED(name, parameters, arguments, stream) #name,
#define READ(name, parameters, arguments, stream)  #name,
#include "hooks.def"
};
static const char call_names[][GPS_HOOK_NAME] = {
#define CALL_ROW(name) #name,
    GPS_CALLS(CALL_ROW)};

/* --- attaching --- */

static bool is_libcuda(const struct gps_module *module) {
    const char *soname = gps_module_soname(module);
    return soname && strcmp(soname, "libcuda.so.1") == 0;
}

static bool find_libcuda(void *found, const struct gps_module *module) {
    if (!is_libcuda(module))
        return false;
    *(struct gps_module *)found = *module;
    return true;
}

/* A program may dlclose what loaded libcuda; our slots must not dangle. */
static void pin(const struct gps_module *module) {
    __typeof__(&dlopen) open = GPS_LATE(dlopen);
    if (open)
        (void)open(module->path, RTLD_LAZY | RTLD_NOLOAD);
}

/* Each slot is written once: a thread that comes later leaves alone what others use already. */
static void look_up(const struct gps_module *libcuda, const char (*names)[GPS_HOOK_NAME],
                    void **slots, size_t size) {
    for (size_t i = 0; i < size / sizeof(*slots); i++) {
        void *const found = gps_module_symbol(libcuda, names[i]);
        void *before = __atomic_load_n(&slots[i], __ATOMIC_ACQUIRE);
        if (found && !before)
            __atomic_compare_exchange_n(&slots[i], &before, found, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE);
    }
}

/* There may be a second libcuda, and another thread may have chosen that one. */
static struct gps_module choose(const struct gps_module *libcuda) {
    struct gps_module chosen = *libcuda;
    uintptr_t before = 0;
    if (!atomic_compare_exchange_strong(&state.chosen, &before, (uintptr_t)libcuda->dynamic))
        gps_module_of((const void *)before, &chosen);
    return chosen;
}

static bool attach_to(const struct gps_module *found) {
    pin(found);
    const struct gps_module libcuda = choose(found);
    look_up(&libcuda, real_names, (void **)&gps_real, sizeof(gps_real));
    look_up(&libcuda, call_names, (void **)&gps_calls, sizeof(gps_calls));
    state.attached = true;
    return true;
}

bool gps_driver_attach(void) {
    struct gps_module libcuda;
    return state.attached || (gps_module_each(find_libcuda, &libcuda) && attach_to(&libcuda));
}

bool gps_driver_attach_by(const void *address) {
    struct gps_module module;
    return state.attached ||
           (gps_module_of(address, &module) && is_libcuda(&module) && attach_to(&module));
}

/* --- contexts --- */

/* Asking must not activate one, and the pair of retain and release leaves the count as it was.
 */
CUcontext gps_driver_primary(CUdevice of) {
    unsigned int flags;
    int active = 0;
    CUcontext primary = NULL;
    if (!gps_calls.cuDevicePrimaryCtxGetState || !gps_calls.cuDevicePrimaryCtxRetain ||
        gps_calls.cuDevicePrimaryCtxGetState(of, &flags, &active) != CUDA_SUCCESS || !active ||
        gps_calls.cuDevicePrimaryCtxRetain(&primary, of) != CUDA_SUCCESS)
        return NULL;
    (void)(gps_real.cuDevicePrimaryCtxRelease_v2 ? gps_real.cuDevicePrimaryCtxRelease_v2(of)
                                                 : gps_real.cuDevicePrimaryCtxRelease(of));
    return primary;
}

bool gps_driver_has_context(CUcontext of) {
    unsigned int version;
    return gps_calls.cuCtxGetApiVersion &&
           gps_calls.cuCtxGetApiVersion(of, &version) == CUDA_SUCCESS;
}
