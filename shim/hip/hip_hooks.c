/* hip_hooks.c - see hip_hooks.h. Nothing here but what the table generates, and what all wrappers
 * do at their end. Those of the rows that look functions up stand in hip_lookup.c. */
#include "hip_hooks.h"

#include <unistd.h>

#include "calls/contexts.h"
#include "process/call_counter.h"
#include "stack/module.h"

/* The runtime starts with the first call that needs it, and an answer of 0 says that it has. */
void gps_hip_answered(int code) {
    if (code == GPS_OK)
        gps_context_driver_ready();
    else
        gps_entry_refused(code);
}

#define WRAP_lookup(name, parameters, arguments)
#define WRAP_error(name, parameters, arguments)  GPS_HIP_TELLS(name, parameters, arguments)
#define WRAP_memory(name, parameters, arguments) GPS_HIP_WRAPPER(name, parameters, arguments)
#define WRAP_ipc(name, parameters, arguments)    GPS_HIP_WRAPPER(name, parameters, arguments)
#define HIP(kind, name, parameters, arguments)   WRAP_##kind(name, parameters, arguments)
#include "hip_hooks.def"

/* Python's children and many others end with _exit: no handler runs, so this is where the memory
 * that others use is handed over and what we published is removed. */
#define EXIT(name)                                                                                 \
    GPS_HIP_EXPORTED void name(int status) {                                                       \
        gps_entry_exit();                                                                          \
        __typeof__(name) *real = (__typeof__(name) *)gps_libc_symbol(#name);                       \
        real(status);                                                                              \
        __builtin_unreachable();                                                                   \
    }
#include "hip_hooks.def"
