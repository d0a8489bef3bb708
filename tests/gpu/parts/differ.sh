#!/usr/bin/env bash
# Random programs in one to three replicas, bare and merged: codes and bytes are compared. DIFFER_SECONDS=n (60).
# shellcheck disable=SC2154 # check.sh's variables
tests/differ/differ.py "$build" --driver "$driver" --seconds "${DIFFER_SECONDS:-60}" >"$results/differ.log" 2>&1
row "differ: random programs, bare and merged" $? "$(tail -1 "$results/differ.log")"
