/*
 * Events. An event is a pair of counters, its own or, between processes, in the daemon's page; so
 * that a process sees at once what another one recorded. A destroyed event stays as a shell: using
 * it kills the process, as it does with the real driver, and not some other object.
 */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include "abi.h"

/* What a handle says; the rest of its 64 bytes is zero. */
struct event_handle {
    uint64_t client, one, slot, shm_device, shm_inode, pid;
};
_Static_assert(sizeof(struct event_handle) <= CU_IPC_HANDLE_SIZE, "fits");

CUresult event_export(CUevent event, CUipcEventHandle *handle);
CUresult event_import(CUcontext context, const CUipcEventHandle *handle, CUevent *out);

#endif
