#!/usr/bin/env bash
# The demonstration. Under a minute. Sourced by check.sh, as all parts.
# shellcheck disable=SC2154 # check.sh's variables
if [ -x "$build/demo/$driver/producer" ]; then
    tests/demo/demo.sh "$build" "$driver" >"$results/demo.log" 2>&1
    row "demo: shared and static runtime" $?
else
    skip "demo" "$build/demo/$driver is not built"
fi
