/* caller.c - see caller.h. */
#include "caller.h"

#include <string.h>

#include "process.h"
#include "stack/call.h"
#include "stack/module.h"
#include "stack/stack.h"
#include "util/text.h"

static bool is_cuda(const struct gps_module *module) {
    const char *soname = gps_module_soname(module);
    return soname &&
           (strncmp(soname, "libcudart.so", 12) == 0 || strncmp(soname, "libcuda.so", 10) == 0);
}

static bool name_if_users(const void *address, char *name, size_t size) {
    struct gps_module module;
    if (!gps_module_of(address, &module) || is_cuda(&module))
        return false;
    const char *path = *module.path ? module.path : gps_process_program()->executable;
    const char *slash = strrchr(path, '/');
    struct gps_text text = gps_text_on(name, size);
    gps_text_str(&text, slash ? slash + 1 : path);
    return true;
}

void gps_caller_name(char *name, size_t size) {
    struct gps_step steps[GPS_STACK_MAX];
    const struct gps_site site = gps_call_site();
    *name = '\0';
    if (name_if_users(site.address, name, size))
        return;
    const unsigned count = gps_stack_walk(site, steps, GPS_STACK_MAX);
    for (unsigned i = 0; i < count; i++)
        if (name_if_users((const void *)steps[i].address, name, size))
            return;
}
