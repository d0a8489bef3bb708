#include "hip_library.h"

#include <string.h>

#include "doors/attachment.h"

struct gps_hip_real gps_hip_real;

struct gps_hip_calls gps_hip_calls;

static struct gps_attachment state;

/* In the order of the two structs. */
static const char real_names[][GPS_HOOK_NAME] = {
#define HIP(kind, name, parameters, arguments) #name,
#include "hip_hooks.def"
};
static const char call_names[][GPS_HOOK_NAME] = {
#define CALL_ROW(name) #name,
    GPS_HIP_CALLS(CALL_ROW)};

static bool soname_is_hip_runtime(const char *soname) {
    return strncmp(soname, "libamdhip64.so", strlen("libamdhip64.so")) == 0;
}

static void hip_library_fill(const struct gps_module *library) {
    gps_attachment_look_up(library, real_names, (void **)&gps_hip_real, sizeof(gps_hip_real));
    gps_attachment_look_up(library, call_names, (void **)&gps_hip_calls, sizeof(gps_hip_calls));
}

bool gps_hip_attach(void) {
    return gps_attachment_find(&state, soname_is_hip_runtime, hip_library_fill);
}

bool gps_hip_attach_by(const void *address) {
    return gps_attachment_find_by(&state, soname_is_hip_runtime, hip_library_fill, address);
}

/* Its version is ten million for each major one. */
int gps_hip_generation(void) {
    int version = 0;
    return gps_hip_calls.hipRuntimeGetVersion && gps_hip_calls.hipRuntimeGetVersion(&version) == 0
               ? version / 10000000
               : 0;
}
