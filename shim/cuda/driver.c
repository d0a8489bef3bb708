#include "driver.h"

#include <errno.h>
#include <string.h>

#include "calls/entry.h"
#include "chain.h"
#include "doors/attachment.h"

struct gps_real gps_real;

struct gps_calls gps_calls;

static struct gps_attachment state;

/* In the order of the two structs. Arrays, not pointers, which would be relocated in every program
 * that the library is preloaded into. */
static const char real_names[][GPS_HOOK_NAME] = {
#define FUNCTION(name, parameters, arguments) #name,
#include "hooks.def"
};
static const char call_names[][GPS_HOOK_NAME] = {
#define CALL_ROW(name) #name,
    GPS_CALLS(CALL_ROW)};

/* --- attaching --- */

static bool soname_is_libcuda(const char *soname) {
    return strcmp(soname, "libcuda.so.1") == 0;
}

static void driver_fill(const struct gps_module *libcuda) {
    if (!gps_chain_fill(libcuda, real_names, &gps_real))
        gps_attachment_look_up(libcuda, real_names, (void **)&gps_real, sizeof(gps_real));
    gps_attachment_look_up(libcuda, call_names, (void **)&gps_calls, sizeof(gps_calls));
}

/* Calls are counted before the process begins if our calls go on to another library: its calls in
 * turn (gps_call.handed_on) are not the program's, and the entry refuses them. */
bool gps_driver_attach(void) {
    const bool attached = gps_attachment_find(&state, soname_is_libcuda, driver_fill);
    if (gps_chain_driver)
        gps_calls_count();
    return attached;
}

bool gps_driver_attach_by(const void *address) {
    return gps_attachment_find_by(&state, soname_is_libcuda, driver_fill, address);
}

bool gps_driver_has(const void *address) {
    return gps_attachment_has(&state, address);
}

bool gps_driver_exports(const char *name) {
    const int error = errno;
    const bool exports = gps_driver_attach() && gps_attachment_symbol(&state, name);
    errno = error;
    return exports;
}

bool gps_driver_has_behind(const void *caller) {
    return gps_chain_has(caller, real_names);
}

/* --- contexts --- */

/* The look must not activate a context, and retain with release leaves the count as it was. */
CUcontext gps_driver_primary(CUdevice of) {
    unsigned int flags;
    int active = 0;
    CUcontext primary = NULL;
    const struct gps_real *const own = gps_chain_own(); /* past others, as the retain is */
    if (!gps_calls.cuDevicePrimaryCtxGetState || !gps_calls.cuDevicePrimaryCtxRetain ||
        (!own->cuDevicePrimaryCtxRelease_v2 && !own->cuDevicePrimaryCtxRelease) ||
        gps_calls.cuDevicePrimaryCtxGetState(of, &flags, &active) != CUDA_SUCCESS || !active ||
        gps_calls.cuDevicePrimaryCtxRetain(&primary, of) != CUDA_SUCCESS)
        return NULL;
    (void)(own->cuDevicePrimaryCtxRelease_v2 ? own->cuDevicePrimaryCtxRelease_v2(of)
                                             : own->cuDevicePrimaryCtxRelease(of));
    return primary;
}

bool gps_driver_has_context(CUcontext of) {
    unsigned int version;
    return gps_calls.cuCtxGetApiVersion &&
           gps_calls.cuCtxGetApiVersion(of, &version) == CUDA_SUCCESS;
}
