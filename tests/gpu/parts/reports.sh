#!/usr/bin/env bash
# What people are told: names of scripts, Python lines, callers beneath a static runtime, the driver's own figures,
# a timeline. A minute.
# shellcheck disable=SC2154 # check.sh's variables
tests/gpu/reports.py "$build" "$driver" >"$results/reports.rows" 2>"$results/reports.err"
status=$?
rows_in reports "$results/reports.rows"
[ $status = 0 ] || row "reports: they end" 1 "status $status: $(tail -1 "$results/reports.err")"
