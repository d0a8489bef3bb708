#!/usr/bin/env bash
# open_cache: what it saves, pair by pair with bare CUDA; allocations, exports and frees beside importers that
# cache, with kills and stops, for half of SOAK_SECONDS; unmodified programs with it. Twelve minutes.
# shellcheck disable=SC2154,SC1091 # check.sh's variables, and its parts
export GPUSHARE_OPEN_CACHE=64

saves() { # saves WHERE ROW MOST [NANOSECONDS]: at most so much of bare's time; on the simulator only whether it works
    local i status remark
    rm -f "$scratch"/saves.*
    for ((i = 0; i < rounds; i++)); do
        "$build/bench/calls" pick "$2" >>"$scratch/saves.bare" &&
            LD_PRELOAD=$build/libgpushare.so GPUSHARE_CONFIG=/dev/null "$build/bench/calls" pick "$2" >>"$scratch/saves.cache"
    done
    python3 - "$scratch/saves.bare" "$scratch/saves.cache" "$2" "$3" "${4:-inf}" "$driver" >"$scratch/saves.out" 2>&1 <<'END'
import statistics, sys
bare, cached = (statistics.median(float(figure) for name, figure in (line.split("\t") for line in open(path))
                                  if name == sys.argv[3]) for path in sys.argv[1:3])
print(f"{bare:.0f} ns bare, {cached:.0f} ns cached: {cached / bare:.3f} of it, at most {sys.argv[4]} and {sys.argv[5]} ns")
sys.exit(2 * (sys.argv[6] != "sim" and (cached > float(sys.argv[4]) * bare or cached > float(sys.argv[5]))))
END
    status=$?
    remark=$(tail -1 "$scratch/saves.out")
    if [ $status = 2 ]; then miss "open_cache: $2, $1" "$remark"; else row "open_cache: $2, $1" $status "$remark"; fi
}
if [ -x "$build/bench/calls" ]; then
    for size in "1 KiB" "2 MiB" "1 GiB"; do saves "one GPU" "open+copy+close $size" 1; done
    saves "one GPU" "open+copy+close 64 MiB" 0.2
    saves "one GPU" "open+close 64 MiB" 1 1000
    if [ "$cards" -ge 2 ]; then
        export EXPORTER_DEVICE=1
        for size in "1 KiB" "2 MiB" "64 MiB" "1 GiB"; do saves "two GPUs" "open+copy+close $size" 0.05; done
        unset EXPORTER_DEVICE
    fi
else
    skip "open_cache: what it saves" "make bench-programs builds what measures it"
fi

tests/soak/soak.py "$build" --driver "$driver" --seconds $((soak / 2)) --cache 8 >"$results/soak-cache.log" 2>&1
row "open_cache: soak, 8 processes, $((soak / 2)) s" $? "$(tail -1 "$results/soak-cache.log")"

eval "plain_$(declare -f unmodified)"
unmodified() { plain_unmodified "cache-$1" "${@:2}"; }
. tests/gpu/parts/programs.sh
. tests/gpu/parts/python.sh
eval "$(declare -f plain_unmodified | sed 's/^plain_//')"
unset GPUSHARE_OPEN_CACHE
scenarios "open_cache: scenarios" '*Cache*'
