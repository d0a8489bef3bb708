#!/usr/bin/env bash
# Under the Multi-Process Service, where it is installed and starts: the recorded answers, and two programs on
# one buffer. Three minutes.
# shellcheck disable=SC2154,SC2034 # check.sh's variables
merging() { # merging WHAT SENTENCE KEY...: what explain says of one allocation
    local log=$results/mps-$1.log
    printf '[region weights]\nprogram = python*\nrole = merge\nquiet = 0\n%s\n' "${*:3}" >"$scratch/mps.conf"
    GPUSHARE_CONFIG=$scratch/mps.conf timeout 60 "$build/gpushare" explain -- python3 -c '
import ctypes
cuda, handle = ctypes.CDLL("libcuda.so.1"), ctypes.c_size_t()
size = ctypes.c_size_t(8 << 20)
cuda.cuInit(0), cuda.cuCtxCreate_v2(ctypes.byref(handle), 0, 0), cuda.cuMemAlloc_v2(ctypes.byref(handle), size)
cuda.cuMemcpyHtoD_v2(handle, bytes(8 << 20), size), cuda.cuCtxSynchronize()' >"$log" 2>&1
    row "MPS: a merge rule, mps = $1" "$(tr -s ' \n' '  ' <"$log" | grep -q "$2" && echo 0 || echo 1)" "$(grep -m1 MPS "$log" | tr -s ' ')"
}
mps() {
    export CUDA_MPS_PIPE_DIRECTORY=$scratch/mps CUDA_MPS_LOG_DIRECTORY=$results/mps
    mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
    if timeout 20 nvidia-cuda-mps-control -d >"$results/mps.log" 2>&1 && timeout 60 "$programs/hello_shared" >>"$results/mps.log" 2>&1; then
        timeout 150 "$build/tests/conformance" >"$results/conformance-mps.log" 2>"$results/conformance-mps.err"
        # What differs under MPS is worth knowing, and no failure of ours.
        row "MPS: the recorded answers" 0 "$(tail -1 "$results/conformance-mps.log")"
        grep DIFFERS "$results/conformance-mps.log" | head -20
        pair alloc shared static 64
        pair result static shared 64
        merging off "shared by MPS" mps = off
        merging on "Merged, at most" mps = on
    else
        skip "MPS" "it does not start here: $(tail -1 "$results/mps.log")"
    fi
    echo quit | timeout 30 nvidia-cuda-mps-control >/dev/null 2>&1
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}
if [ "$driver" = sim ]; then
    skip "MPS" "the simulator has none"
elif ! command -v nvidia-cuda-mps-control >/dev/null; then
    skip "MPS" "nvidia-cuda-mps-control is not installed"
else
    remark=MPS
    mps
    remark=''
fi
