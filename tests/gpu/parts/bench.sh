#!/usr/bin/env bash
# What gpushare costs, against the budgets. A missed budget is a result, not a failure. Eight minutes.
# shellcheck disable=SC2154 # check.sh's variables
# shellcheck disable=SC2086 # BENCH_OPTIONS are words
timeout 560 tests/bench/bench.py "$build" --driver "$driver" --rounds "$rounds" ${BENCH_OPTIONS:-} >"$results/bench.txt" 2>"$results/bench.err"
row "benchmarks, pair by pair with bare CUDA" $? "$(tail -1 "$results/bench.txt")"
grep -E 'MISSED' "$results/bench.txt"
cp "$build/bench/result.json" "$results/bench.json"

# How soon servers that are never idle are merged, and what their requests notice. Three minutes.
[[ $driver == sim ]] && few="--seconds 4 --layers 8"
# shellcheck disable=SC2086 # options are words
timeout 400 tests/bench/busy.py "$build" --driver "$driver" ${few:-} >"$results/busy.txt" 2>"$results/busy.err"
row "servers that are never idle" $? "$(grep -c 'all is merged' "$results/busy.txt") of $(grep -c '^kernels' "$results/busy.txt") sets of kernels have all merged; bench/busy.py says which"
cat "$results/busy.txt"
