#!/usr/bin/env bash
# Sharing where it is large, wide and long: a region of 64 GiB, 64 importers of one region at once, a chain of
# ten programs of which each takes what the last one made. Four minutes.
# shellcheck disable=SC2154 # check.sh's variables
pair alloc static shared "$large"

many() { # one writer, and all its readers at once
    local log=$results/importers.log pid status=1 i users=0 readers=() good=0
    rules alloc 64 >"$scratch/pair.conf"
    export GPUSHARE_CONFIG=$scratch/pair.conf
    rm -f "$scratch/many.in" && mkfifo "$scratch/many.in"
    # Its input ends with a line, the readers' only when nobody has the pipe open for writing.
    "$build/gpushare" run -- "$programs/writer_shared" 64 wait <"$scratch/many.in" >"$scratch/many.w" 2>&1 &
    pid=$!
    exec 5>"$scratch/many.in"
    filled "$scratch/many.w"
    rm -f "$scratch/hold.in" && mkfifo "$scratch/hold.in"
    sleep 300 >"$scratch/hold.in" &
    local holder=$!
    for ((i = 0; i < importers; i++)); do
        timeout 250 "$build/gpushare" run -- "$programs/reader_static" 64 look <"$scratch/hold.in" >"$scratch/many.$i" 2>&1 5>&- &
        readers+=($!)
    done
    for ((i = 0; i < 200; i++)); do # until all say what they found
        [ "$(cat "$scratch"/many.[0-9]* | grep -c "reader found")" = "$importers" ] && break
        sleep 1
    done
    users=$("$build/gpushare" ls --json | python3 -c 'import json, sys; print(sum(len(r["users"]) for r in json.load(sys.stdin)))')
    kill $holder
    for i in "${readers[@]}"; do wait "$i" && good=$((good + 1)); done
    echo >&5
    exec 5>&-
    wait $pid && [ $good = "$importers" ] && [ "$users" = "$importers" ] && status=0
    unset GPUSHARE_CONFIG
    cat "$scratch"/many.w "$scratch"/many.[0-9]* >"$log"
    row "sharing: one region of 64 MiB, $importers importers at once" $status "$good read it, $users had it open together"
}
many

chain() { # ten short programs; the first allocation of each is link N - 1, which it imports, the second link N
    local log=$results/chain.log pids=() i good=0
    for ((i = 1; i <= 10; i++)); do
        cp "$programs/stage_$([ $((i % 2)) = 0 ] && echo shared || echo static)" "$scratch/stage_$i"
        [ $i -gt 1 ] && printf '[region link%d]\nprogram = stage_%d\nsize = 64MiB\nrole = import\nwait = 100s\nmissing = fail\n' $((i - 1)) $i
        [ $i -lt 10 ] && printf '[region link%d]\nprogram = stage_%d\nsize = 64MiB\nrole = export\nready = free\nhandover = 100s\n' $i $i
    done >"$scratch/chain.conf"
    export GPUSHARE_CONFIG=$scratch/chain.conf
    "$build/gpushare" check "$scratch/chain.conf" >"$log" 2>&1
    for ((i = 1; i <= 10; i++)); do
        timeout 200 "$build/gpushare" run -- "$scratch/stage_$i" 64 $i "$([ $i = 10 ] && echo last)" >"$scratch/chain.$i" 2>&1 &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i" && good=$((good + 1)); done
    unset GPUSHARE_CONFIG
    cat "$scratch"/chain.[0-9]* >>"$log"
    row "sharing: a chain of ten programs, each with the last one's result" \
        "$([ $good = 10 ] && [ "$(grep -c "found all" "$log")" = 9 ] && echo 0 || echo 1)" "$good ended well"
}
chain
"$build/gpushare" gc >/dev/null
left=$(find "$GPUSHARE_DIR" -type f ! -name lock | wc -l)
row "sharing: nothing is left in the published directory" "$((left > 0))" "$left files"
