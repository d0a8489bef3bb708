#include "hip_hooks.h"

/* The runtime has `instead` as its last error in place of `hidden`; 0: it has the right one. */
static __thread int hidden, instead;

static int peek(void) {
    return gps_hip_real.hipPeekAtLastError ? gps_hip_real.hipPeekAtLastError() : 0;
}

static int last_error_told(int now) {
    return hidden && now == instead ? hidden : now;
}

int gps_last_error_begin(void) {
    return last_error_told(peek());
}

/* A null argument is 1, and no event 400, whatever the runtime. */
static void last_error_set(int code) {
    if (code == 0)
        (void)gps_hip_real.hipGetLastError();
    else if (code == GPS_INVALID_VALUE && gps_hip_real.hipIpcGetMemHandle)
        (void)gps_hip_real.hipIpcGetMemHandle(NULL, NULL);
    else if (gps_hip_real.hipEventDestroy)
        (void)gps_hip_real.hipEventDestroy(NULL);
}

void gps_last_error_end(int before, int code) {
    const int wanted = code == 0 && gps_hip_generation() >= 7 ? before : code;
    hidden = 0;
    if (!gps_hip_real.hipGetLastError || peek() == wanted)
        return;
    last_error_set(wanted);
    instead = peek();
    hidden = instead == wanted ? 0 : wanted;
}

void gps_last_error_passed(int code) {
    if (code != 0 || gps_hip_generation() < 7)
        hidden = 0;
}

#define GET(name, keep)                                                                            \
    hipError_t gps_on_##name(void) {                                                               \
        const hipError_t result = last_error_told(gps_hip_real.name());                            \
        hidden = keep ? hidden : 0;                                                                \
        return result;                                                                             \
    }
GET(hipPeekAtLastError, true)
GET(hipGetLastError, false)
GET(hipExtGetLastError, false)
