#!/usr/bin/env bash
# What a user's own test of the machine says. Its row is in selftest.json, for tests/documents/compatibility.py --add. Half a minute.
# shellcheck disable=SC2154 # check.sh's variables
timeout 60 "$build/gpushare" doctor --selftest --json >"$results/selftest.json" 2>"$results/selftest.err"
row "doctor --selftest" $? "$(cat "$results/selftest.err"; grep -o '"[a-z_]*": "\(ok\|failed\|not available\)"' "$results/selftest.json" | grep -v result | tr -d '"\n' | sed 's/ok/ok /g')"
