#!/usr/bin/env bash
# Two programs in pid namespaces of their own, with equal pids and with different ones: bare, where the driver
# answers 201 to equal ones, preloaded, and by gpushare run. Two minutes.
# shellcheck disable=SC2154 # check.sh's variables
if unshare --pid --fork --mount-proc true 2>/dev/null; then
    tests/gpu/containers.py "$build" --driver "$driver" >"$results/containers.log" 2>&1
    row "containers: memory, events, rules, tokens between equal pids" $? "$(tail -1 "$results/containers.log")"
    sed 's/^/    /' "$results/containers.log" | tee -a "$table"
else
    skip "containers" "this user may not make pid namespaces"
fi
