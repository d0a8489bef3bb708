/* workload.h - the pod, the container and the Slurm job that a live process belongs to. */
#pragma once

#include "cgroups.h"
#include "cli/json_tree.h"
#include "gpushare/region.h"

/* What /proc does not show is "". */
void workload_of(const struct gps_owner *owner, struct cgroups *found);
/* An object with a member for each; null: in none. */
json_t *workload_json(const struct gps_owner *owner);
