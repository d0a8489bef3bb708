#!/usr/bin/env bash
# Programs that share memory by CUDA's own handles, bare and preloaded: parent and children with events between
# them, with the shared and the static runtime, and of the driver API alone. Two minutes.
# shellcheck disable=SC2154 # check.sh's variables
for runtime in shared static; do
    unmodified "simple_ipc-$runtime" "$programs/simple_ipc_$runtime" 4
done
unmodified driver_only "$programs/driver_only"
