#!/usr/bin/env bash
# Whether memory of each kind of rule answers as cudaMalloc's, each card current (tests/gpu/kinds.py). A minute.
# shellcheck disable=SC2154 # check.sh's variables
timeout -k 5 200 tests/gpu/kinds.py "$build" "$driver" >"$results/kinds.rows" 2>"$results/kinds.err"
status=$?
rows_in kinds "$results/kinds.rows"
[ $status -le 1 ] || row "kinds: they end" 1 "status $status: $(tail -1 "$results/kinds.err")"
