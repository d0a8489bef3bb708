/*
 * hip_lookup.c - the addresses that are handed out for HIP's hooked functions. The real resolver is
 * called first; its answer is then substituted by address.
 */
#include <stddef.h>

#include "doors/resolver.h"
#include "hip_hooks.h"

/* In the order of struct gps_hip_real. The exported function is an alias of the wrapper. */
static void *const wrappers[] = {
#define HIP(kind, name, parameters, arguments) (void *)gps_hook_##name,
#include "hip_hooks.def"
};
enum { ROWS = sizeof(wrappers) / sizeof(wrappers[0]) };
_Static_assert(sizeof(wrappers) == sizeof(gps_hip_real), "a row for each function");

static const char names[][GPS_HOOK_NAME] = {
#define HIP(kind, name, parameters, arguments) #name,
#include "hip_hooks.def"
};

static void *hip_address_substitute(void *address) {
    if (!gps_hip_attach_by(address))
        return address;
    void *const *const real = (void *const *)&gps_hip_real;
    for (size_t i = 0; i < ROWS; i++)
        if (real[i] == address)
            return wrappers[i];
    return address;
}

static bool hip_address_is_ours(const void *address) {
    for (size_t i = 0; i < ROWS; i++)
        if (wrappers[i] == address)
            return true;
    return false;
}

/* Another library's function is not given out: every wrapper goes on in the runtime's. */
static void *substitute_own(const char *name, void *address, const void *own) {
    (void)name;
    void *const wrapper = hip_address_substitute((void *)(uintptr_t)own);
    return wrapper == own ? address : wrapper;
}

/* Every wrapper calls the one runtime that is attached. */
static bool is_by_caller(const void *address) {
    (void)address;
    return false;
}

GPS_BARE int gps_dl_wanted(void *handle, const char *name, const void *caller) {
    return gps_resolver_wanted(names, ROWS, handle, name, caller);
}

static const struct gps_resolver resolver = {hip_address_is_ours, is_by_caller, substitute_own,
                                             NULL};

void *gps_dlsym_hooked(void *handle, const char *name, void *caller) {
    return gps_resolver_answer(&resolver, handle, name, NULL, caller);
}

void *gps_dlvsym_hooked(void *handle, const char *name, const char *version, void *caller) {
    return gps_resolver_answer(&resolver, handle, name, version, caller);
}

/* --- the hooks --- */

static hipError_t hip_lookup_substituted(hipError_t result, void **function) {
    gps_last_error_passed(result);
    if (result == GPS_OK && function && *function)
        *function = hip_address_substitute(*function);
    return result;
}

hipError_t gps_on_hipGetProcAddress(const char *symbol, void **function, int version,
                                    uint64_t flags, void *status) {
    return hip_lookup_substituted(
        gps_hip_real.hipGetProcAddress(symbol, function, version, flags, status), function);
}

hipError_t gps_on_hipGetDriverEntryPoint(const char *symbol, void **function,
                                         unsigned long long flags, void *status) {
    return hip_lookup_substituted(
        gps_hip_real.hipGetDriverEntryPoint(symbol, function, flags, status), function);
}

/* A program that looks functions up has not begun to use them. */
#define WRAP_lookup(name, parameters, arguments) GPS_HIP_TELLS(name, parameters, arguments)
#define WRAP_memory(name, parameters, arguments)
#define WRAP_ipc(name, parameters, arguments)
#define WRAP_error(name, parameters, arguments)
#define HIP(kind, name, parameters, arguments) WRAP_##kind(name, parameters, arguments)
#include "hip_hooks.def"
