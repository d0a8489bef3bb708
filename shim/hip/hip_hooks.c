/* hip_hooks.c - see hip_hooks.h. Nothing here but what the table generates, and what all wrappers
 * do at their end. Those of the rows that look functions up stand in hip_lookup.c. */
#include "hip_hooks.h"

#include "process/call_counter.h"

/* The runtime starts with the first call that needs it, and an answer of 0 says that it has. */
void gps_hip_answered(int code) {
    if (code == GPS_OK)
        gps_lifecycle_driver_ready();
    else
        gps_entry_refused(code);
}

#define WRAP_lookup(name, parameters, arguments)
#define WRAP_error(name, parameters, arguments)  GPS_HIP_TELLS(name, parameters, arguments)
#define WRAP_memory(name, parameters, arguments) GPS_HIP_WRAPPER(name, parameters, arguments)
#define WRAP_ipc(name, parameters, arguments)    GPS_HIP_WRAPPER(name, parameters, arguments)
#define HIP(kind, name, parameters, arguments)   WRAP_##kind(name, parameters, arguments)
#include "hip_hooks.def"

#define EXIT(name) GPS_EXIT(name)
#include "hip_hooks.def"
