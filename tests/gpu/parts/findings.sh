#!/usr/bin/env bash
# Programs that misuse CUDA: each is found, nothing is invented. Five minutes; a hundred and more short
# programs, eight at a time.
# shellcheck disable=SC2154 # check.sh's variables
static=$build/tests/gpu/misuse_static
[ "$driver" = gpu ] || static=$build/tests/apps/misuse_static
for program in "$build/tests/apps/misuse" "$static"; do
    log=$results/$(basename "$program").log
    tests/gpu/misuse.sh "$build" "$program" >"$log" 2>&1
    status=$?
    row "each misuse, bare and audited: $(basename "$program")" $status "$(tail -1 "$log")"
    grep '^wrong' "$log" | head -20
done
GPUSHARE_LOG="$scratch/five.%p" GPUSHARE_LOG_FORMAT=jsonl timeout 60 \
    "$build/gpushare" run --mode audit -- "$build/tests/apps/five" >"$results/five.log" 2>&1
row "a program with five bugs: it runs as before" $?
found=$(cat "$scratch"/five.* | tee -a "$results/five.log" | grep -o '"finding":"[^"]*"' | cut -d'"' -f4 | sort | tr '\n' ' ')
[ "$found" = "close-interior double-free event-not-interprocess leak-open open-stale " ]
row "a program with five bugs: each is found, none invented" $? "$found"
scenarios "tests of the findings" "$(cat tests/gpu/findings.filter)"
