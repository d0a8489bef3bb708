#!/usr/bin/env bash
# Programs that leave the card and come back: the scenarios, a program of some GiB beside one that takes and gives
# memory, kills at random moments, and on a card how long PyTorch takes. Eight minutes.
# shellcheck disable=SC2154 # check.sh's variables
tests/gpu/suspend.py --driver "$driver" --gib "$([ "$driver" = gpu ] && echo 16 || echo 1)" "$build" >"$results/suspend.rows" 2>"$results/suspend.log"
rows_in suspend "$results/suspend.rows"
scenarios "scenarios of suspend" 'Suspend*:OwnMemory*:Offload*'
tests/soak/suspend_kills.py --driver "$driver" --turns "${SUSPEND_TURNS:-20}" "$build" >"$results/suspend-kills.log" 2>&1
row "suspend: kills at random moments" $? "$(tail -1 "$results/suspend-kills.log")"
if [ "$driver" = gpu ]; then
    tests/gpu/suspend_bus.py --merged-gib 24 "$build" >"$results/suspend-bus.log" 2>&1
    row "suspend: PyTorch of 24 GiB, by our copies and by the driver's" $? "$(grep -c equal "$results/suspend-bus.log") turns with equal bytes"
    sed 's/^/    /' "$results/suspend-bus.log"
    tests/gpu/suspend_programs.py "$build" >"$results/suspend-programs.log" 2>&1
    row "suspend: CuPy, JAX, convolutions, textures, little memory" $? "$(grep -c equal "$results/suspend-programs.log") with equal answers"
    sed 's/^/    /' "$results/suspend-programs.log"
fi
