#!/usr/bin/env bash
# Which system calls of the library's own take over 100 us in programs with CUDA's threads: simple_ipc, a writer by
# rule, a replica that merges. A table: program, call, how often, the longest. What a thread of ours waits
# in is left out. Under a minute.
# shellcheck disable=SC2154 # check.sh's variables
SLOW=100
slow_calls() { # slow_calls NAME COMMAND...
    local name=$1 log=$results/calls-$1.log status=0
    shift
    : >"$log"
    INJECT_PRELOAD=$build/libgpushare.so timeout 100 "$build/tests/fault-inject" -s $SLOW -l "$log" -- "$@" >"$log.out" 2>&1 || status=1
    row "calls over $SLOW us: $name" $status "$(awk -v skip=' futex poll ppoll clock_nanosleep nanosleep ' '
        !index(skip, " " $1 " ") { count[$1]++; if ($2 > most[$1]) most[$1] = $2 }
        END { for (name in count) printf "%s %d, longest %d us; ", name, count[name], most[name]; if (!length(count)) printf "none" }' "$log")"
}
if [ -x "$build/tests/fault-inject" ] && [ "$(uname -m)" = x86_64 ]; then
    slow_calls simple-ipc "$programs/simple_ipc_static" 8
    rules alloc 64 >"$scratch/calls.conf"
    sed -i 's/^missing = fail/missing = private/; s/^wait = 60s/wait = 0/' "$scratch/calls.conf"
    printf '[region weights]\nprogram = weights_*\nrole = merge\nquiet = 0\n' >>"$scratch/calls.conf"
    export GPUSHARE_CONFIG=$scratch/calls.conf
    slow_calls writer "$programs/writer_shared" 64
    "$programs/weights_static" make "$scratch/weights" $((64 << 20)) 1 >/dev/null
    slow_calls replica "$programs/weights_shared" stress "$scratch/weights" 1 layers=3 < <(sleep 3)
    unset GPUSHARE_CONFIG
else
    skip "calls over $SLOW us" "needs tests/fault-inject, of x86-64"
fi
