#!/usr/bin/env bash
# Beside a preloaded library that limits device memory, as HAMi-core does: tests/gpu/limiter.py. A minute and a half.
# shellcheck disable=SC2154 # check.sh's variables
tests/gpu/limiter.py "$build" "$driver" >"$results/limiter.rows" 2>"$results/limiter.err"
status=$?
rows_in limiter "$results/limiter.rows"
[ $status = 0 ] || row "limiter: it ends" 1 "status $status: $(tail -1 "$results/limiter.err")"
