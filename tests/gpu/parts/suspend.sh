#!/usr/bin/env bash
# Programs that leave the card and come back: the scenarios, a program of some GiB beside one that takes and gives
# memory, and kills at random moments. Five minutes.
# shellcheck disable=SC2154 # check.sh's variables
tests/gpu/suspend.py --driver "$driver" --gib "$([ "$driver" = gpu ] && echo 16 || echo 1)" "$build" >"$results/suspend.rows" 2>"$results/suspend.log"
rows_in suspend "$results/suspend.rows"
scenarios "scenarios of suspend" 'Suspend*'
tests/suspend_kills.py --driver "$driver" --turns "${SUSPEND_TURNS:-20}" "$build" >"$results/suspend-kills.log" 2>&1
row "suspend: kills at random moments" $? "$(tail -1 "$results/suspend-kills.log")"
