#!/usr/bin/env bash
# Programs that draw and programs that look, by whole frames. Four minutes.
# shellcheck disable=SC2154 # check.sh's variables
tests/gpu/frames.py --driver "$driver" --frames "$([ "$driver" = gpu ] && echo 2000 || echo 60)" "$build" >"$results/frames.rows" 2>"$results/frames.log"
rows_in frames "$results/frames.rows"
