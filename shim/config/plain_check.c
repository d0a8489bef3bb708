/* plain_check.c - what of a configuration works without memory in blocks; see config.h. */
#include <errno.h>
#include <stddef.h>

#include "config.h"

static const char *reason_against(const struct gps_rule *rule) {
    if (rule->role == GPS_ROLE_MERGE)
        return "role = merge does not work with HIP: merging is built on CUDA's cuMemCreate";
    if (rule->backing == GPS_RULE_VMM)
        return "backing = vmm does not work with HIP: the keeper holds memory of CUDA's "
               "cuMemCreate";
    return NULL;
}

int gps_config_check_plain(const struct gps_config *config, const char *program,
                           const char *executable, gps_config_error_fn *fn, void *arg) {
    const char *const file = *config->source ? config->source : "the configuration";
    int status = 0;
    if (config->options.open_cache) {
        fn(arg, file, 0, "open_cache does not work with HIP: set it to 0");
        status = -EINVAL;
    }
    if (config->options.vmm_ipc) {
        fn(arg, file, 0, "vmm_ipc does not work with HIP: it is for memory of CUDA's cuMemCreate");
        status = -EINVAL;
    }
    if (config->options.suspend) {
        fn(arg, file, 0, "suspend does not work with HIP: set it to off");
        status = -EINVAL;
    }
    for (size_t i = 0; i < config->rule_count; i++) {
        const struct gps_rule *rule = &config->rules[i];
        const char *const reason = reason_against(rule);
        if (!reason || (program && !gps_rule_is_for(rule, program, executable)))
            continue;
        fn(arg, file, rule->line, reason);
        status = -EINVAL;
    }
    return status;
}
