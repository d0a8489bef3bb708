/*
 * Events. An event is a pair of counters, its own or, between processes, in the daemon's page; so
 * that a process sees at once what another one recorded. A destroyed event stays as a shell: using
 * it kills the process, as it does with the real driver, and not some other object.
 */
#pragma once

#include "abi.h"

/* What a handle says. A driver looks at the pid and the 1, and takes any slot (H200, driver 580,
 * 2026-11-27); what stands behind the slot is the simulator's, zeros on a card: who the pid is. */
struct event_handle {
    uint32_t pid, ignored;
    uint64_t one, slot;
    uint64_t client, shm_device, shm_inode, creator; /* its pid again */
    uint64_t zero;
};
_Static_assert(sizeof(struct event_handle) == CU_IPC_HANDLE_SIZE, "a handle is 64 bytes");

CUresult event_export(CUevent event, CUipcEventHandle *handle);
/* INVALID_HANDLE: its creator has ended, or has no such slot. */
CUresult event_import(CUcontext context, const CUipcEventHandle *handle, CUevent *out);
/* An event that nobody else has. */
CUresult event_of_nobody(CUcontext context, CUevent *out);
