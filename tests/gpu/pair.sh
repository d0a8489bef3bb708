#!/usr/bin/env bash
# Two unmodified programs on one buffer, by configuration alone. Sourced by check.sh, for its parts.
# shellcheck disable=SC2154 # check.sh's variables
writer_env=() reader_env=() remark='' # variables of the two, and what the row says of them

rules() { # rules READY MIB: writers export, readers import
    cat <<EOF
[region frames]
program = writer_*
size = ${2}MiB
role = export
ready = $1
[region frames]
program = reader_*
size = ${2}MiB
role = import
missing = fail
wait = 60s
EOF
}
filled() { # filled LOG: waits until the writer has said so; `ready = alloc` promises nothing about bytes
    for ((turn = 0; turn < 600; turn++)); do
        grep -q "writer filled" "$1" && return
        sleep 0.1
    done
}
pair() { # pair HOW WRITER READER MIB; variables of the two in writer_env, reader_env
    local how=$1 log=$scratch/$1-$2-$3-$4 status=1 pid
    local writer=("$build/gpushare" run -- "$programs/writer_$2" "$4") reader=("$build/gpushare" run -- "$programs/reader_$3" "$4")
    rules "$([ "$how" = result ] && echo free || echo alloc)" "$4" >"$scratch/pair.conf"
    export GPUSHARE_CONFIG=$scratch/pair.conf
    if [ "$how" = result ]; then
        env "${writer_env[@]}" "${writer[@]}" >"$log.w" 2>&1 &
        pid=$!
        sleep 2 # the writer has freed, and is at its exit by now
        env "${reader_env[@]}" timeout 100 "${reader[@]}" >"$log.r" 2>&1 && wait $pid && grep -q "found all" "$log.r" && status=0
    else
        rm -f "$log.in" && mkfifo "$log.in"
        env "${writer_env[@]}" "${writer[@]}" wait <"$log.in" >"$log.w" 2>&1 &
        pid=$!
        exec 5>"$log.in"
        filled "$log.w"
        env "${reader_env[@]}" timeout 100 "${reader[@]}" >"$log.r" 2>&1
        echo >&5
        exec 5>&-
        wait $pid && grep -q "found all" "$log.r" && grep -q "sees the reader.* in all of" "$log.w" && status=0
    fi
    unset GPUSHARE_CONFIG
    cat "$log.w" "$log.r" >"$results/pair-$how-$2-$3-$4.log"
    row "kernels: $how, $2 writer, $3 reader, $4 MiB${remark:+, $remark}" $status
}
