/*
 * Events. An event is a pair of counters, its own or, between processes, in the daemon's page; so
 * that a process sees at once what another one recorded. A destroyed event stays as a shell: using
 * it kills the process, as it does with the real driver, and not some other object.
 */
#ifndef SIM_EVENT_H
#define SIM_EVENT_H

#include "abi.h"

CUresult event_export(CUevent event, CUipcEventHandle *handle);
CUresult event_import(CUcontext context, const CUipcEventHandle *handle, CUevent *out);

#endif
