#include "caller.h"

#include <string.h>

#include "driver/driver_ops.h"
#include "process.h"
#include "stack/call.h"
#include "stack/module_place.h"
#include "stack/stack.h"
#include "util/text.h"

static bool is_vendors(const struct gps_module *module) {
    const char *soname = gps_module_soname(module);
    bool vendors = false;
    for (const char *one = gps_operations->sonames; soname && *one; one += strlen(one) + 1)
        vendors |= strncmp(soname, one, strlen(one)) == 0;
    return vendors;
}

static bool name_if_users(const void *address, char *name, size_t size) {
    struct gps_module module;
    if (!gps_module_of(address, &module) || is_vendors(&module))
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

bool gps_caller_fits(const struct gps_rule *rule, char name[GPS_GLOB_BYTES]) {
    if (!gps_rule_needs_caller(rule))
        return true;
    if (!*name)
        gps_caller_name(name, GPS_GLOB_BYTES);
    return gps_glob_match(rule->caller, name);
}
