#!/usr/bin/env bash
# A HIP program for NVIDIA cards, which is a CUDA program: bare and preloaded, shared by configuration, and a bug of its
# found. Half a minute.
# shellcheck disable=SC2154 # check.sh's variables
if [ -x "$programs/writer_hip" ]; then
    unmodified hip-nvidia "$programs/writer_hip" 64
    pair alloc hip hip 64
    "$build/gpushare" audit -- "$programs/writer_hip" 64 twice >"$results/hip-audit.log" 2>&1
    row "audited: hip-nvidia, a double free in hipFree" \
        "$(grep -q "double-free in cudaFree, by writer_hip" "$results/hip-audit.log" && grep -q "hipFree at" "$results/hip-audit.log"; echo $?)"
else
    skip "hip-nvidia" "AMD's header for NVIDIA cards was not here to build it"
fi
