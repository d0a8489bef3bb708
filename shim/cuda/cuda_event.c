/*
 * cuda_event.c - CUDA's events, as far as other processes may know them.
 *
 * The driver dies of an event that is destroyed twice; in share mode the second destroy of one that
 * was made for other processes, or came from one, answers what it should have been.
 */
#include "hooks.h"
#include "life.h"
#include "policy.h"
#include "registry.h"

CUresult gps_on_cuEventCreate(CUevent *out, unsigned int flags) {
    const CUresult result = gps_real.cuEventCreate(out, flags);
    if (result == CUDA_SUCCESS)
        gps_registry_event_created((uintptr_t)*out, (flags & CU_EVENT_INTERPROCESS) != 0);
    return result;
}

CUresult gps_on_cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle) {
    const CUresult result = gps_real.cuIpcOpenEventHandle(out, handle);
    if (result == CUDA_SUCCESS)
        gps_registry_event_created((uintptr_t)*out, true);
    return result;
}

/* From here on others may know it, whoever created it. */
CUresult gps_on_cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event) {
    const CUresult result = gps_real.cuIpcGetEventHandle(handle, event);
    if (result == CUDA_SUCCESS)
        gps_registry_event_created((uintptr_t)event, true);
    return result;
}

static CUresult destroyed(CUresult (*real)(CUevent event), CUevent event) {
    if (!event)
        return real(event);
    const enum gps_event_state was = gps_registry_event_destroy((uintptr_t)event);
    const struct gps_answer answer = gps_policy(&(struct gps_question){
        .ask = GPS_ASK_DESTROY,
        .known = was == GPS_EVENT_DESTROYED ? GPS_KNOWN_DESTROYED : GPS_KNOWN_EVENT,
        .mode = gps_life_config()->options.mode});
    if (answer.verdict == GPS_DENY)
        return (CUresult)answer.code;
    const CUresult result = real(event);
    if (result != CUDA_SUCCESS && was == GPS_EVENT_LIVE)
        gps_registry_event_restore((uintptr_t)event);
    return result;
}

CUresult gps_on_cuEventDestroy(CUevent event) {
    return destroyed(gps_real.cuEventDestroy, event);
}

CUresult gps_on_cuEventDestroy_v2(CUevent event) {
    return destroyed(gps_real.cuEventDestroy_v2, event);
}
