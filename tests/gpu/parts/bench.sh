#!/usr/bin/env bash
# What gpushare costs, against the budgets. A missed budget is a result, not a failure. Eight minutes.
# shellcheck disable=SC2154 # check.sh's variables
# shellcheck disable=SC2086 # BENCH_OPTIONS are words
timeout 560 tests/bench/bench.py "$build" --driver "$driver" --rounds "$rounds" ${BENCH_OPTIONS:-} >"$results/bench.txt" 2>"$results/bench.err"
row "benchmarks, pair by pair with bare CUDA" $? "$(tail -1 "$results/bench.txt")"
grep -E 'MISSED' "$results/bench.txt"
cp "$build/bench/result.json" "$results/bench.json"
