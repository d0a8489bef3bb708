#!/usr/bin/env bash
# Eight processes that allocate, export, open, close, free and misuse at random, are stopped, killed and started
# again, as are their keepers; in the last part they are replicas. Three times SOAK_SECONDS and half a minute. SEED=n:
# another course of it.
# shellcheck disable=SC2154 # check.sh's variables
for mode in ${SOAK_MODES:-share audit merge}; do
    case $mode in merge) options=(--mode share --merge) ;; *) options=(--mode "$mode") ;; esac
    tests/soak/soak.py "$build" --driver "$driver" "${options[@]}" --seconds "$soak" >"$results/soak-$mode.log" 2>&1
    row "soak: 8 processes, $soak s, ${options[*]}" $? "$(tail -1 "$results/soak-$mode.log")"
done
