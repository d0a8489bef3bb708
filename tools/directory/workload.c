#include "workload.h"

#include <stdio.h>

#include "find_process.h"
#include "util/procfs.h"

void workload_of(const struct gps_owner *owner, struct cgroups *found) {
    char text[8192] = "", path[64];
    const uint32_t pid = pid_here(owner);
    snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
    if (pid)
        gps_procfs_read(path, text, sizeof(text));
    cgroups_parse(text, found);
}

static json_t *workload_text_json(const char *text) {
    return json_tree_string(text[0] ? text : NULL);
}

json_t *workload_json(const struct gps_owner *owner) {
    struct cgroups found;
    workload_of(owner, &found);
    return json_tree_pack("{s:o, s:o, s:o, s:o}", "pod", workload_text_json(found.pod), "container",
                          workload_text_json(found.container), "slurm_job",
                          workload_text_json(found.slurm_job), "slurm_step",
                          workload_text_json(found.slurm_step));
}
