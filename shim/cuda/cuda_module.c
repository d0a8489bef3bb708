/* cuda_module.c - the end of modules and libraries. Hooked only in a process that looks at
 * launches. */
#include "hooks.h"
#include "launch_layout.h"

CUresult gps_on_cuModuleUnload(CUmodule module) {
    gps_launch_layouts_forget();
    return gps_real.cuModuleUnload(module);
}

CUresult gps_on_cuLibraryUnload(CUlibrary library) {
    gps_launch_layouts_forget();
    return gps_real.cuLibraryUnload(library);
}
