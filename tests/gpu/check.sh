#!/usr/bin/env bash
# Everything that needs a real GPU, with a short table at the end. Usage: check.sh [BUILD_DIR] [PART...]
# `make check-gpu` builds what it needs first; where nothing can be built, carry what `make gpu-pack` makes.
#
# A part is a file of tests/gpu/parts; without one named all run, in the order of PARTS below. What each
# takes on an H200 at most stands there, too. Details go to BUILD_DIR/gpu-results, the table to table.txt
# there; a row is ok, FAIL, miss (all is right, but a time is beyond its goal), or skip with the reason. On a card a row
# fails, too, after which the kernel log has an Xid that the part does not cause by itself, and one that is skipped without
# need (habits.sh).
#
# DRIVER=sim           rehearse on the simulated driver (make gpu-rehearsal): what needs a card is skipped
# SOAK_SECONDS=n       how long each of the two soaks runs (600; a rehearsal: 10)
# DIFFER_SECONDS=n     how long random programs are compared (60)
# RESULTS=DIR          instead of BUILD_DIR/gpu-results (cards.sh: one for each card)
# SANITIZER_SECONDS=n  after so long nothing more is started under compute-sanitizer (450)
# BENCH_ROUNDS=n       pairs that the benchmarks take at most (7; a rehearsal: 1)
# BENCH_OPTIONS=...    of bench.py: '--seconds 200 --no-torch' (480 s, and with `import torch` where PyTorch is)
# shellcheck disable=SC2034 # the parts use what is set here
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${1:-build}")
shift || true
PARTS='selftest demo conformance kernels sharing calls containers reports replicas limiter suspend frames kinds two-gpus programs hip startup python findings sanitizer scenario mps soak differ cache bench'
parts=${*:-$PARTS}
driver=${DRIVER:-gpu}
results=${RESULTS:-$build/gpu-results}
mkdir -p "$results"
results=$(realpath "$results")
export RESULTS=$results
scratch=$(mktemp -d)
GPUSHARE_DIR=$(mktemp -d /dev/shm/gpushare-check-XXXXXX)
trap 'rm -rf "$scratch" "$GPUSHARE_DIR"' EXIT
export GPUSHARE_DIR
if [ "$driver" = sim ]; then
    programs=$build/gpu-sim
    export LD_LIBRARY_PATH=$build/sim GPUSHARE_SIM_ROOT=@check-$$ GPUSHARE_SIM_MEMORY=${GPUSHARE_SIM_MEMORY:-32GiB}
    export GPUSHARE_SIM_DEVICES=${GPUSHARE_SIM_DEVICES:-2}
    cards=$GPUSHARE_SIM_DEVICES
    large=256 importers=8 soak=${SOAK_SECONDS:-10} rounds=${BENCH_ROUNDS:-1}
else
    programs=$build/gpu
    cuda=${CUDA_HOME:-/usr/local/cuda}
    export LD_LIBRARY_PATH=$cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    cards=$(nvidia-smi -L | grep -c ^GPU)
    [ -z "${CUDA_VISIBLE_DEVICES:-}" ] || cards=$(tr , '\n' <<<"$CUDA_VISIBLE_DEVICES" | wc -l)
    large=65536 importers=64 soak=${SOAK_SECONDS:-600} rounds=${BENCH_ROUNDS:-7}
fi
passed=0 failed=0 missed=0 skipped=0
table=$results/table.txt
: >"$table"

row() { # row NAME STATUS [REMARK]
    local word=FAIL status=$2 remark=${3:-} odd
    look_at_log
    [ -z "$odd" ] || status=1 remark="the kernel log has Xid $odd; $remark"
    if [ "$status" = 0 ]; then word=ok passed=$((passed + 1)); else failed=$((failed + 1)); fi
    printf '%-62s %-4s %s\n' "$1" "$word" "$remark" | tee -a "$table"
}
miss() { # miss NAME REMARK
    local odd
    look_at_log
    [ -z "$odd" ] || { row "$1" 1 "the kernel log has Xid $odd; $2"; return; }
    missed=$((missed + 1))
    printf '%-62s %-4s %s\n' "$1" miss "$2" | tee -a "$table"
}
skip() { # skip NAME REASON
    may_skip "$1" "$2" || { row "$1" 1 "skipped, and not in tests/gpu/skips.txt: $2"; return; }
    skipped=$((skipped + 1))
    printf '%-62s %-4s %s\n' "$1" skip "$2" | tee -a "$table"
}
rows_in() { # rows_in PREFIX FILE: its lines are rows: ok, FAIL, miss or skip, a tab, name, a tab, remark
    local word name remark
    while IFS=$'\t' read -r word name remark; do
        case $word in
            skip | miss) "$word" "$1: $name" "$remark" ;;
            *) row "$1: $name" "$([ "$word" = ok ]; echo $?)" "$remark" ;;
        esac
    done <"$2"
}
found_in() { # found_in FILE...: the findings in these logs, counted
    cat "$@" 2>/dev/null | grep -oE '"level":"[a-z]*","finding":"[^"]*"' | cut -d'"' -f4,8 | sort | uniq -c | tr -s ' \n"' ' '
}
unmodified() { # unmodified NAME COMMAND...: equal output and status bare and preloaded, and what was reported
    local name=$1 mode bare shim status
    shift
    timeout 100 "$@" >"$scratch/bare.out" 2>"$scratch/bare.err"
    bare=$?
    cat "$scratch/bare.out" "$scratch/bare.err" >"$results/$name-bare.out"
    if [ $bare != 0 ]; then
        skip "unmodified: $name" "it fails bare, with $bare: $(tail -1 "$scratch/bare.err")"
        return
    fi
    for mode in share audit; do
        rm -f "$scratch"/findings.*
        timeout 100 env GPUSHARE_LOG="$scratch/findings.%p" GPUSHARE_LOG_FORMAT=jsonl \
            "$build/gpushare" run --mode $mode -- "$@" >"$scratch/shim.out" 2>"$scratch/shim.err"
        shim=$? status=1
        cat "$scratch"/findings.* >"$results/$name-$mode.jsonl" 2>/dev/null
        cat "$scratch/shim.out" "$scratch/shim.err" >"$results/$name-$mode.out"
        [ $shim = 0 ] && cmp -s "$scratch/bare.out" "$scratch/shim.out" && status=0
        row "unmodified: $name, mode $mode" $status \
            "status $bare/$shim, findings: $(found_in "$results/$name-$mode.jsonl")"
    done
}
scenarios() { # scenarios ROW FILTER: some of tests/scenario, six processes at once; what fails so runs again alone
    local log=$results/${1//[ :\/]/-}.log
    if [ ! -x "$build/tests/scenario" ]; then
        skip "$1" "$build/tests/scenario is not built"
        return
    fi
    rm -f "$log.skips"
    GPUSHARE_TEST_DRIVER=$driver TEST_FILTER=$2 TEST_SHARDS=6 TEST_FLAKY=99 TEST_SKIPS=$log.skips tests/run "$build/tests" scenario >"$log" 2>&1
    row "$1" $? "$(tail -1 "$log"), $(grep -E ' skipped$' "$log"), $(grep -c '^flaky:' "$log") passed only alone"
    grep -E '^(flaky:|---)' "$log"
    odd_skips "$log.skips" >"$log.odd"
    [ ! -s "$log.odd" ] || row "$1: only what skips.txt has is skipped" 1 "$(wc -l <"$log.odd") others: $(head -3 "$log.odd" | paste -sd';')"
}

# shellcheck source=/dev/null
. tests/gpu/habits.sh
# shellcheck source=/dev/null
. tests/gpu/pair.sh

if [ "$driver" = sim ]; then
    echo "the simulated driver, $cards cards" | tee -a "$table"
else
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee -a "$table"
fi
begin_log
for part in $parts; do
    [ -f "tests/gpu/parts/$part.sh" ] || { row "$part" 1 "there is no such part; there are: $PARTS" && continue; }
    started=$SECONDS
    # shellcheck source=/dev/null
    . "tests/gpu/parts/$part.sh"
    look_at_log
    [ -z "$odd" ] || row "$part: nothing went wrong behind its last row" 1 "the kernel log has Xid $odd"
    echo "    part $part: $((SECONDS - started)) s" | tee -a "$table"
done
echo "$passed passed, $failed failed, $missed missed, $skipped skipped" | tee -a "$table"
[ "$failed" = 0 ]
