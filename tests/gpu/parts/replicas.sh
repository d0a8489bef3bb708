#!/usr/bin/env bash
# One copy of what is equal in N replicas, side by side with bare runs: memory, times and answers; a kernel that
# writes what is merged, kill -9, read-only regions, tokens, the keeper under abuse; and first what the
# driver answers to questions about VMM memory. What each step takes on an H200 at most, in seconds, as far as
# could be told without one: probe 10, hole 50, model 90, together 70, changed 50, serve 80, latency 75, kills 45,
# ends 5, learn 90, transformers 180, transformers-odd 290, busy 40, busy-torch 50, loads 260, steady 40, tokens 40, read-only 15, keeper 60 (beside read-only).
#
# WEIGHTS_BYTES=n      8 GiB; a rehearsal: 64 MiB
# SERVE_SECONDS=n      how long PyTorch servers are under load (40; the full run: 300, with the default quiet)
# KILL_SECONDS=n       how long replicas and keeper are killed (30; the full run: 600; a rehearsal: 10)
# KEEPER_SECONDS=n     how long the keeper is abused (60; a rehearsal: 10)
# REPLICAS_ONLY=A,B,..  some of: probe hole model together changed serve latency kills ends learn
#                      transformers transformers-odd busy busy-torch loads steady tokens read-only keeper
# shellcheck disable=SC2154 # check.sh's variables
wanted() { case ",${REPLICAS_ONLY:-$1}," in *",$1,"*) ;; *) false ;; esac }
rows_of() { # rows_of STEP SECONDS COMMAND...: its lines are rows, as rows_in reads them
    local step=$1 limit=$2 lines=$results/replicas-$1.rows errors=$results/replicas-$1.err status
    wanted "$step" || return
    shift 2
    timeout -k 5 "$limit" "$@" >"$lines" 2>"$errors"
    status=$?
    rows_in replicas "$lines"
    [ $status = 0 ] || row "replicas: step $step ends" 1 "status $status (124: not in $limit s): $(tail -1 "$errors")"
}
probe() { # what it prints is the result
    local log=$results/vmm-probe.log
    wanted probe || return
    timeout -k 5 60 "$programs/vmm_probe" >"$log" 2>&1
    row "replicas: questions to the driver about VMM memory" $? "$(wc -l <"$log") answers"
    [ "$driver" = sim ] || grep -E '^[a-g]:' "$log" | sed 's/^/    /' | tee -a "$table"
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
step() { rows_of "$1" "$2" tests/gpu/replicas.py "$build" "$driver" "$1"; } # step NAME SECONDS
probe
step hole 90
step model 150
step together 120
step changed 90
step serve $((120 + 2 * ${SERVE_SECONDS:-40}))
step latency 120
step kills $((60 + ${KILL_SECONDS:-30}))
step ends 40
step learn 150
step transformers 220
step transformers-odd 330
step busy 90
step busy-torch 90
step loads 300
step steady 90
rows_of tokens 80 tests/bench/tokens.py "$build" "$driver" 3 "$cards"
keeper_abuse start
step read-only 40
keeper_abuse end
