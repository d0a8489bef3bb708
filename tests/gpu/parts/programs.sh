#!/usr/bin/env bash
# Programs that share memory by CUDA's own handles, bare and preloaded: parent and children with events between
# them, with the shared and the static runtime, and of the driver API alone. Two minutes.
# shellcheck disable=SC2154 # check.sh's variables
for runtime in shared static; do
    unmodified "simple_ipc-$runtime" "$programs/simple_ipc_$runtime" 4
done
unmodified driver_only "$programs/driver_only"
if [ "$driver" = sim ]; then
    skip "a forked child's end" "it launches a kernel that the simulator has not"
else
    "$programs/fork_probe" >"$results/fork-probe.log" 2>&1
    row "a forked child ends by exit(), but for its thread's own stream" \
        "$(grep '| ' "$results/fork-probe.log" | grep -v '| status 0' | grep -qv "thread's stream *| signal 11"; echo $((! $?)))" \
        "$(grep -c '| status 0' "$results/fork-probe.log") of $(grep -c '| ' "$results/fork-probe.log") do"
fi
