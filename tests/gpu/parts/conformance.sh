#!/usr/bin/env bash
# What this driver answers, bare and audited, against the record and step by step against the simulator's
# answers, which were taken down where the program was built; and with open_cache against what mode share
# answers without it. Three minutes.
# shellcheck disable=SC2154 # check.sh's variables
expected=$build/gpu/expected-$((cards < 2 ? 1 : 2)).txt
judge() { # judge NAME LOG
    row "conformance: $1, against the record" "$(grep -qE ', 0 differ$' "$2" && echo 0 || echo 1)" "$(tail -1 "$2")"
    grep DIFFERS "$2" | head -20
    if [ -f "$expected" ]; then
        tests/gpu/compare.py "$expected" "$2" >"$2.compared"
        row "conformance: $1, against the simulator" $? "$(tail -1 "$2.compared")"
        sed '$d' "$2.compared" | head -20
    else
        skip "conformance: $1, against the simulator" "no $expected"
    fi
}
preloaded() { # preloaded MODE TABLE
    GPUSHARE_LOG="$scratch/conformance.%p" GPUSHARE_LOG_FORMAT=jsonl timeout 200 "$build/gpushare" run --mode "$1" -- \
        "$build/tests/conformance" >"$results/$2.log" 2>"$results/$2.err"
}
timeout 200 "$build/tests/conformance" >"$results/conformance.log" 2>"$results/conformance.err"
judge bare "$results/conformance.log"
preloaded audit conformance-audit
judge "mode audit" "$results/conformance-audit.log"
preloaded share conformance-share
GPUSHARE_OPEN_CACHE=64 preloaded share conformance-cache
tests/gpu/compare.py --cached "$results"/conformance-{share,cache}.log >"$results/conformance-cache.compared"
row "conformance: open_cache, against mode share without it" $? "$(tail -1 "$results/conformance-cache.compared")"
sed '$d' "$results/conformance-cache.compared" | head -20
