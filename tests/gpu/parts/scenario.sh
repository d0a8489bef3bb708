#!/usr/bin/env bash
# The scenarios that the simulator is tested with, but for those of the part findings. Some twenty minutes;
# GTEST_TOTAL_SHARDS=n and GTEST_SHARD_INDEX=i run a part of them.
# shellcheck disable=SC2154 # check.sh's variables
if [ -x "$build/tests/scenario" ]; then
    GPUSHARE_TEST_DRIVER=$driver timeout 1800 "$build/tests/scenario" --gtest_filter="-$(cat tests/gpu/findings.filter)" >"$results/scenario.log" 2>&1
    row "scenarios of tests/scenario" $? "$(grep -E '^\[  (PASSED|FAILED|SKIPPED)' "$results/scenario.log" | head -3 | tr -s ' \n' ' ')"
    grep -E '^\[  FAILED' "$results/scenario.log" | sort -u | head -20
else
    skip "scenarios of tests/scenario" "$build/tests/scenario is not built"
fi
