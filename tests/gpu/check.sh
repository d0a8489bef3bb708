#!/usr/bin/env bash
# Everything that needs a real GPU, with a short table at the end. Usage: check.sh [BUILD_DIR] [PART...]
# `make check-gpu` builds what it needs first. Parts: demo kernels python findings scenario conformance.
# Details of every part go to BUILD_DIR/gpu-results.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${1:-build}")
shift || true
parts=${*:-demo kernels python findings scenario conformance}
results=$build/gpu-results
rm -rf "$results"
mkdir -p "$results"
cuda=${CUDA_HOME:-/usr/local/cuda}
export LD_LIBRARY_PATH=$cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch" "$GPUSHARE_DIR"' EXIT
GPUSHARE_DIR=$(mktemp -d /dev/shm/gpushare-check-XXXXXX)
export GPUSHARE_DIR
passed=0 failed=0
table=$results/table.txt
: >"$table"

row() { # row NAME STATUS [REMARK]
    if [ "$2" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    printf '%-58s %-4s %s\n' "$1" "$([ "$2" = 0 ] && echo ok || echo FAIL)" "${3:-}" | tee -a "$table"
}
has() { case " $parts " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

pair() { # pair HOW WRITER READER MIB: kernels of two programs on one buffer
    local how=$1 writer=$2 reader=$3 mib=$4 log=$scratch/$1-$2-$3-$4 ready=alloc status=1
    [ "$how" = result ] && ready=free
    cat >"$scratch/pair.conf" <<EOF
[region frames]
program = writer_*
size = ${mib}MiB
role = export
ready = $ready
[region frames]
program = reader_*
size = ${mib}MiB
role = import
missing = fail
wait = 30s
EOF
    export GPUSHARE_CONFIG=$scratch/pair.conf
    if [ "$how" = result ]; then
        "$build/gpushare" run -- "$build/gpu/writer_$writer" "$mib" >"$log.w" 2>&1 &
        local pid=$!
        sleep 2 # the writer has freed, and is at its exit by now
        timeout 60 "$build/gpushare" run -- "$build/gpu/reader_$reader" "$mib" >"$log.r" 2>&1 &&
            wait $pid && grep -q "found all" "$log.r" && status=0
    else
        mkfifo "$log.in"
        "$build/gpushare" run -- "$build/gpu/writer_$writer" "$mib" wait <"$log.in" >"$log.w" 2>&1 &
        local pid=$!
        exec 5>"$log.in"
        timeout 60 "$build/gpushare" run -- "$build/gpu/reader_$reader" "$mib" >"$log.r" 2>&1
        echo >&5
        exec 5>&-
        wait $pid && grep -q "found all" "$log.r" && grep -q "kernel in all" "$log.w" && status=0
    fi
    cat "$log.w" "$log.r" >"$results/kernels-$how-$writer-$reader-$mib.log"
    row "kernels: $how, $writer writer, $reader reader, $mib MiB" $status
    unset GPUSHARE_CONFIG
}

unmodified() { # unmodified NAME COMMAND...: equal output bare and preloaded, and what was reported
    local name=$1 mode
    shift
    timeout 100 "$@" >"$scratch/bare.out" 2>"$scratch/bare.err"
    local bare=$?
    for mode in share audit; do
        rm -f "$scratch"/findings.*
        timeout 100 env GPUSHARE_LOG="$scratch/findings.%p" GPUSHARE_LOG_FORMAT=jsonl \
            "$build/gpushare" run --mode $mode -- "$@" >"$scratch/shim.out" 2>"$scratch/shim.err"
        local shim=$? status=1
        cat "$scratch"/findings.* >"$results/$name-$mode.jsonl" 2>/dev/null
        cp "$scratch/shim.err" "$results/$name-$mode.err"
        [ $bare = 0 ] && [ $shim = 0 ] && cmp -s "$scratch/bare.out" "$scratch/shim.out" && status=0
        row "unmodified: $name, mode $mode" $status \
            "status $bare/$shim, findings: $(grep -ho '"finding":"[^"]*"' "$results/$name-$mode.jsonl" | sort | uniq -c | tr -s ' \n' ' ')"
    done
}

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | tee -a "$table"

if has demo; then
    tests/demo/demo.sh "$build" gpu >"$results/demo.log" 2>&1
    row "demo: shared and static runtime, on the GPU" $?
fi
if has kernels; then
    for writer in shared static; do
        for reader in shared static; do
            pair alloc $writer $reader 64
            pair result $writer $reader 64
        done
    done
    pair alloc static shared 8192
fi
if has python; then
    unmodified torch python3 tests/gpu/torch_share.py
    unmodified numba python3 tests/gpu/numba_share.py
    unmodified cupy python3 tests/gpu/cupy_share.py
fi
# The findings' tests start hundreds of short programs: eight at a time.
findings='*Misuse*:Findings.*:Namespaces.*:Configured.*:*Rules.ThatF*:*Rules.ThatC*'
if has findings; then
    for program in "$build/tests/apps/misuse" "$build/tests/gpu/misuse_static"; do
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
    for shard in 0 1 2 3 4 5 6 7; do
        GTEST_TOTAL_SHARDS=8 GTEST_SHARD_INDEX=$shard GPUSHARE_TEST_DRIVER=gpu timeout 200 \
            "$build/tests/scenario" --gtest_filter="$findings" >"$results/findings-$shard.log" 2>&1 &
        shards[shard]=$!
    done
    status=0
    for shard in 0 1 2 3 4 5 6 7; do wait "${shards[shard]}" || status=1; done
    row "tests of the findings on the GPU" $status "$(cat "$results"/findings-?.log | grep -cE '^\[       OK') passed, $(cat "$results"/findings-?.log | grep -cE '^\[  SKIPPED .*ms\)') skipped"
    grep -hE '^\[  FAILED' "$results"/findings-?.log | sort -u | head -20
fi
if has scenario && [ -x "$build/tests/scenario" ]; then
    GPUSHARE_TEST_DRIVER=gpu timeout 400 "$build/tests/scenario" --gtest_filter="-$findings" >"$results/scenario.log" 2>&1
    row "scenarios of tests/scenario on the GPU" $? "$(grep -E '^\[  (PASSED|FAILED|SKIPPED)' "$results/scenario.log" | head -3 | tr -s ' \n' ' ')"
    grep -E '^\[  FAILED' "$results/scenario.log" | sort -u | head -20
fi
if has conformance && [ -x "$build/tests/conformance" ]; then
    timeout 300 "$build/tests/conformance" >"$results/conformance.log" 2>&1
    row "conformance of the record with this driver, bare" $? "$(tail -1 "$results/conformance.log")"
    GPUSHARE_MODE=audit timeout 300 "$build/gpushare" run --mode audit -- "$build/tests/conformance" \
        >"$results/conformance-audit.log" 2>"$results/conformance-audit.err"
    row "conformance of the record with this driver, mode audit" $? "$(tail -1 "$results/conformance-audit.log")"
fi
echo "$passed passed, $failed failed" | tee -a "$table"
[ "$failed" = 0 ]
