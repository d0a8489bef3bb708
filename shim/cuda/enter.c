/* enter.c - see enter.h. */
#include "enter.h"

#include "driver.h"
#include "lifecycle/lifecycle.h"
#include "operations.h"
#include "stack/call.h"

/* Takes the loader's lock. */
static bool attach(void) {
    const bool attached = gps_driver_attach();
    if (attached)
        gps_operations_use();
    return attached;
}

bool gps_enter_slowly(void) {
    gps_lifecycle_stay();
    return gps_lifecycle_begin(attach);
}

void gps_enter_refused(int code) {
    gps_lifecycle_stay();
    if (code == CUDA_ERROR_NOT_INITIALIZED && !gps_call.runtime)
        gps_lifecycle_not_initialized();
}
