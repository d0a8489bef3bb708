#!/usr/bin/env bash
# Eight processes that allocate, export, open, close, free and misuse at random, are stopped, killed and started
# again, as are their keepers. Twice SOAK_SECONDS and half a minute. SEED=n: another course of it.
# shellcheck disable=SC2154 # check.sh's variables
for mode in ${SOAK_MODES:-share audit}; do
    tests/soak/soak.py "$build" --driver "$driver" --mode "$mode" --seconds "$soak" >"$results/soak-$mode.log" 2>&1
    row "soak: 8 processes, $soak s, mode $mode" $? "$(tail -1 "$results/soak-$mode.log")"
done
