#!/usr/bin/env bash
# Eight processes that allocate, export, open, close and free at random, are killed and started again. Twice
# SOAK_SECONDS and half a minute.
# shellcheck disable=SC2154 # check.sh's variables
for mode in ${SOAK_MODES:-share audit}; do
    tests/soak/soak.py "$build" --driver "$driver" --mode "$mode" --seconds "$soak" >"$results/soak-$mode.log" 2>&1
    row "soak: 8 processes, $soak s, mode $mode" $? "$(tail -1 "$results/soak-$mode.log")"
done
