#!/usr/bin/env bash
# One copy of the weights for N replicas, side by side with and without: memory and times, a leader that is
# killed, a file that differs, read-only followers, PyTorch, tokens, the keeper under abuse; and first what the
# driver answers to questions about VMM memory. Four minutes.
#
# WEIGHTS_BYTES=n      8 GiB; a rehearsal: 64 MiB
# KEEPER_SECONDS=n     how long the keeper is abused (60; a rehearsal: 10)
# REPLICAS_ONLY="..."  some of: probe copies tokens other read-only torch keeper
# shellcheck disable=SC2154 # check.sh's variables
wanted() { case " ${REPLICAS_ONLY:-$1} " in *" $1 "*) ;; *) false ;; esac }
rows_of() { # rows_of STEP SECONDS COMMAND...: its lines are rows: ok, FAIL or skip, a tab, name, a tab, remark
    local step=$1 limit=$2 lines=$results/replicas-$1.rows errors=$results/replicas-$1.err status word name remark
    wanted "$step" || return
    shift 2
    timeout -k 5 "$limit" "$@" >"$lines" 2>"$errors"
    status=$?
    while IFS=$'\t' read -r word name remark; do
        if [ "$word" = skip ]; then skip "replicas: $name" "$remark"; else row "replicas: $name" "$([ "$word" = ok ]; echo $?)" "$remark"; fi
    done <"$lines"
    [ $status = 0 ] || row "replicas: step $step ends" 1 "status $status (124: not in $limit s): $(tail -1 "$errors")"
}
probe() { # what it prints is the result
    local log=$results/vmm-probe.log
    wanted probe || return
    timeout -k 5 60 "$programs/vmm_probe" >"$log" 2>&1
    row "replicas: questions to the driver about VMM memory" $? "$(wc -l <"$log") answers"
    [ "$driver" = sim ] || grep -E '^[a-f]:' "$log" | sed 's/^/    /' | tee -a "$table"
}
keeper_abuse() { # keeper_abuse start|end; beside the steps that measure no times. It needs no card
    local log=$results/keeper-abuse.log seconds
    wanted keeper || return
    seconds=${KEEPER_SECONDS:-$([ "$driver" = sim ] && echo 10 || echo 60)}
    if ! grep -qs '^keeper-abuse:' Makefile tests/*.mk tests/*/*.mk; then
        [ "$1" = end ] || skip "replicas: the keeper under abuse" "there is no such test"
    elif [ ! -d "$build/shim" ]; then
        [ "$1" = end ] || skip "replicas: the keeper under abuse" "a pack cannot build it; it needs no card"
    elif [ "$1" = start ]; then
        KEEPER_ABUSE_SECONDS=$seconds timeout -k 5 $((seconds + 60)) make -s BUILD="$build" keeper-abuse >"$log" 2>&1 &
        abuse=$!
    else
        wait "$abuse"
        row "replicas: the keeper under abuse, $seconds s" $? "$(tail -1 "$log")"
    fi
}
probe
rows_of copies 90 tests/gpu/replicas.py "$build" "$driver" copies
rows_of tokens 80 tests/bench/tokens.py "$build" "$driver" 3 "$cards"
keeper_abuse start
rows_of other 40 tests/gpu/replicas.py "$build" "$driver" other
rows_of read-only 40 tests/gpu/replicas.py "$build" "$driver" read-only
rows_of torch 120 tests/gpu/replicas.py "$build" "$driver" torch
keeper_abuse end
