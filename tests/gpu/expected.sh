#!/usr/bin/env bash
# The simulator's answers to the conformance program, for a machine with a GPU to be compared with: with one
# card and with two. Usage: expected.sh BUILD_DIR. `make gpu-programs` runs it where everything is built.
set -euo pipefail
build=$(realpath "$1")
mkdir -p "$build/gpu"
for cards in 1 2; do
    LD_LIBRARY_PATH=$build/sim GPUSHARE_SIM_ROOT=@expected-$$-$cards GPUSHARE_SIM_MEMORY=32GiB GPUSHARE_SIM_DEVICES=$cards \
        timeout 300 "$build/tests/conformance" >"$build/gpu/expected-$cards.txt" ||
        { echo "expected.sh: the simulator differs from the record:" >&2 && grep DIFFERS "$build/gpu/expected-$cards.txt" >&2 && exit 1; }
done
