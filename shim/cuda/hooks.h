/*
 * hooks.h - what hooks.def generates: the wrappers, and the functions that give them their meaning.
 *
 * gps_hook_<name> is the wrapper (hidden; the exported <name> is an alias of it). It asks
 * lifecycle.h whether gpushare acts in this process at all; if not, it calls the real function and
 * nothing else. gps_on_<name>, in cuda_<kind>.c, is what the call means; of a WRITE row, that is in
 * core/write.h.
 */
#ifndef GPS_HOOKS_H
#define GPS_HOOKS_H

#include "driver.h"

#define DRIVER(kind, name, parameters, arguments)                                                  \
    CUresult gps_hook_##name parameters;                                                           \
    CUresult gps_on_##name parameters;
#define WRITE(name, parameters, arguments, what) CUresult gps_hook_##name parameters;
#include "hooks.def"

#endif
