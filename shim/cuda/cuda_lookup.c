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
#include "ipc/open_cache.h"
#include "lifecycle/lifecycle.h"
#include "merge/allocation.h"
#include "merge/write.h"
#include "stack/call.h"

/* In the order of struct gps_real. The exported function is an alias of the wrapper. */
static const struct row {
    void *wrapper;
    enum { ALWAYS, FOR_WRITES, FOR_READS, FOR_MERGING } when;
} rows[] = {
#define WHEN_lookup                                ALWAYS
#define WHEN_context                               ALWAYS
#define WHEN_memory                                ALWAYS
#define WHEN_ipc                                   ALWAYS
#define WHEN_merge                                 FOR_MERGING
#define ROW(name, when)                            {(void *)gps_hook_##name, when},
#define DRIVER(kind, name, parameters, arguments)  ROW(name, WHEN_##kind)
#define WRITE(name, parameters, arguments, what)   ROW(name, FOR_WRITES)
#define GATED(name, parameters, arguments, stream) ROW(name, FOR_MERGING)
#define READ(name, parameters, arguments, stream)  ROW(name, FOR_READS)
#include "hooks.def"
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
_Static_assert(ROWS * sizeof(void *) == sizeof(gps_real), "a row for each function");

static const void *const runtime[] = {
#define RUNTIME(name, parameters, arguments) (const void *)name,
#include "hooks.def"
};

/* A program that looks a function up has found the driver: the configuration is read now if it was
 * not.
 */
static bool is_asked_for(const struct row *row) {
    if (row->when == ALWAYS)
        return true;
    return gps_enter() && (row->when == FOR_WRITES  ? gps_write_seen || gps_open_cache_used
                           : row->when == FOR_READS ? gps_merge_active || gps_open_cache_used
                                                    : gps_merge_active);
}

void *gps_lookup_substitute(void *address) {
    if (!gps_driver_attach_by(address))
        return address;
    void *const *const real = (void *const *)&gps_real;
    for (size_t i = 0; i < ROWS; i++)
        if (real[i] == address)
            return is_asked_for(&rows[i]) ? rows[i].wrapper : address;
    return address;
}

bool gps_lookup_is_ours(const void *address) {
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].wrapper == address)
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

/* A runtime looks up hundreds of functions: these are no calls of the program's. */
#define WRAP_lookup(name, parameters, arguments) GPS_WRAPPER(name, parameters, arguments, (void)0)
#define WRAP_context(name, parameters, arguments)
#define WRAP_memory(name, parameters, arguments)
#define WRAP_ipc(name, parameters, arguments)
#define WRAP_merge(name, parameters, arguments)
#define DRIVER(kind, name, parameters, arguments) WRAP_##kind(name, parameters, arguments)
#include "hooks.def"
