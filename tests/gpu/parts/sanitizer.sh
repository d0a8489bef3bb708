#!/usr/bin/env bash
# What compute-sanitizer says of each misuse, beside what an audit says, and what both cost: sanitizer.md has the tables of
# docs/audit.md. Eight minutes at most; SANITIZER_SECONDS=n (450).
# shellcheck disable=SC2154 # check.sh's variables
tests/gpu/sanitizer.py "$build" "$driver" >"$results/sanitizer.rows" 2>"$results/sanitizer.err"
status=$?
rows_in sanitizer "$results/sanitizer.rows"
[ $status = 0 ] || row "sanitizer: it ends" 1 "status $status: $(tail -1 "$results/sanitizer.err")"
