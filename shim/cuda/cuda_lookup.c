/*
 * cuda_lookup.c - see cuda_lookup.h. The driver's own resolver is asked first; what it answers is
 * then substituted by address.
 */
#include "cuda_lookup.h"

#define __CUDA_API_VERSION_INTERNAL
#include <cuda_runtime_api.h>
#include <stddef.h>

#include "enter.h"
#include "hooks.h"
#include "lifecycle/lifecycle.h"
#include "stack/call.h"
#include "upload/write.h"

static const struct row {
    void **real;
    void *wrapper;
    const void *exported;
    bool writes;
} rows[] = {
#define DRIVER(kind, name, parameters, arguments)                                                  \
    {(void **)&gps_real.name, (void *)gps_hook_##name, (const void *)name, false},
#define WRITE(name, parameters, arguments, what)                                                   \
    {(void **)&gps_real.name, (void *)gps_hook_##name, (const void *)name, true},
#include "hooks.def"
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static const void *const runtime[] = {
#define RUNTIME(name, parameters, arguments) (const void *)name,
#include "hooks.def"
};

/* A program that looks a copy up has found the driver: the configuration is read now if it was not.
 */
static bool asks_for_writes(void) {
    return gps_enter() && gps_write_seen;
}

void *gps_lookup_substitute(void *address) {
    if (!gps_driver_attach_by(address))
        return address;
    for (size_t i = 0; i < ROWS; i++)
        if (*rows[i].real == address)
            return rows[i].writes && !asks_for_writes() ? address : rows[i].wrapper;
    return address;
}

bool gps_lookup_is_ours(const void *address) {
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].exported == address || rows[i].wrapper == address)
            return true;
    return gps_lookup_is_runtime(address);
}

bool gps_lookup_is_runtime(const void *address) {
    for (size_t i = 0; i < sizeof(runtime) / sizeof(runtime[0]); i++)
        if (runtime[i] == address)
            return true;
    return false;
}

/* --- the hooks --- */

static CUresult substituted(CUresult result, void **pfn) {
    if (result == CUDA_SUCCESS && pfn && *pfn)
        *pfn = gps_lookup_substitute(*pfn);
    return result;
}

CUresult gps_on_cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags) {
    return substituted(gps_real.cuGetProcAddress(symbol, pfn, version, flags), pfn);
}

CUresult gps_on_cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status) {
    return substituted(gps_real.cuGetProcAddress_v2(symbol, pfn, version, flags, status), pfn);
}

#define WRAP_lookup(name, parameters, arguments) GPS_WRAPPER(name, parameters, arguments)
#define WRAP_context(name, parameters, arguments)
#define WRAP_memory(name, parameters, arguments)
#define WRAP_ipc(name, parameters, arguments)
#define WRAP_event(name, parameters, arguments)
#define DRIVER(kind, name, parameters, arguments) WRAP_##kind(name, parameters, arguments)
#include "hooks.def"
