/* plain_check.c - whether a configuration works without memory in blocks; see config.h. */
#include <errno.h>
#include <stddef.h>

#include "config.h"

int gps_config_check_plain(const struct gps_config *config, const char *program,
                           const char *executable, gps_config_error_fn *fn, void *arg) {
    const struct gps_options *options = &config->options;
    const struct {
        bool given;
        const char *wrong;
    } checks[] = {
        {options->open_cache, "open_cache does not work with HIP: set it to 0"},
        {options->vmm_ipc == GPS_VMM_IPC_ON,
         "vmm_ipc does not work with HIP: it is for memory of CUDA's cuMemCreate"},
        {options->suspend == GPS_SUSPEND_ON, "suspend does not work with HIP: set it to off"},
    };
    const char *const file = *config->source ? config->source : "the configuration";
    int status = 0;
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
        if (checks[i].given) {
            fn(arg, file, 0, checks[i].wrong);
            status = -EINVAL;
        }
    for (size_t i = 0; i < config->rule_count; i++) {
        const struct gps_rule *rule = &config->rules[i];
        const bool merges = rule->role == GPS_ROLE_MERGE, framed = rule->frames != GPS_FRAMES_OFF;
        if ((!merges && !framed && rule->backing != GPS_RULE_VMM) ||
            (program && !gps_rule_is_for(rule, program, executable)))
            continue;
        fn(arg, file, rule->line,
           framed   ? "frames do not work with HIP yet: set frames to off"
           : merges ? "role = merge does not work with HIP: merging is built on CUDA's cuMemCreate"
                    : "backing = vmm does not work with HIP: the keeper holds memory of CUDA's "
                      "cuMemCreate");
        status = -EINVAL;
    }
    return status;
}
