/*
 * cgroups.h - reads from the paths of a process's cgroups which pod, container and Slurm job it
 * belongs to. Nothing is asked of Kubernetes, of a runtime or of Slurm.
 */
#pragma once

/* "": in none. */
struct cgroups {
    char pod[40];       /* its uid */
    char container[72]; /* its id, 64 hex digits */
    char slurm_job[24], slurm_step[24];
};

/* Reads, and cuts up, the text of /proc/PID/cgroup, v1 or v2. The innermost container counts. */
void cgroups_parse(char *text, struct cgroups *found);
