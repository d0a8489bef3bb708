#!/usr/bin/env bash
# Several cards at once, each with parts of check.sh's of its own: the long ones side by side.
# usage: cards.sh BUILD_DIR "PART..." "PART..." ...    the first words run on card 0, and so on
# Words NAME=VALUE before the parts are set for that card. Results: BUILD_DIR/gpu-results-CARD; the tables last.
# The driver's locks are the machine's: beside a soak on one card, conformance and the scenarios on the other one
# run into their limits (two H100s, 2026-11-24).
#   tests/gpu/cards.sh build-gpu "SOAK_SECONDS=280 soak" "REPLICAS_ONLY=kills KILL_SECONDS=550 replicas"
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
build=$1
shift
card=0 pids=() status=0
for words in "$@"; do
    # shellcheck disable=SC2086,SC2016 # they are words; the inner shell expands
    env CUDA_VISIBLE_DEVICES=$card RESULTS="$build/gpu-results-$card" bash -c '
        while [[ ${1:-} == *=* ]]; do export "$1"; shift; done
        exec tests/gpu/check.sh "$0" "$@"' "$build" $words >/dev/null 2>&1 &
    pids+=($!)
    card=$((card + 1))
done
for pid in "${pids[@]}"; do wait "$pid" || status=1; done
for ((i = 0; i < card; i++)); do
    echo "card $i"
    sed 's/^/  /' "$build/gpu-results-$i/table.txt"
done
exit $status
