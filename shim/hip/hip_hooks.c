/* hip_hooks.c - see hip_hooks.h. The functions that the table generates, and the common end of all
 * wrappers. The wrappers of look-ups are in hip_lookup.c. */
#include "hip_hooks.h"

#include "process/call_counter.h"

/* The runtime starts with the first call that needs it, and a result of 0 shows that it has. */
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
