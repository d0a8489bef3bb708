#!/usr/bin/env bash
# The main job, told step by step: two programs that know nothing of gpushare work on one buffer.
# Usage: demo.sh BUILD_DIR sim|gpu. `make demo` builds what it needs and calls it.
set -euo pipefail
build=$(realpath "$1")
driver=$2
programs=$build/demo/$driver
cd "$(dirname "$0")/../.."
export GPUSHARE_CONFIG=$PWD/config/examples/demo.conf
GPUSHARE_DIR=$(mktemp -d /dev/shm/gpushare-demo-XXXXXX)
export GPUSHARE_DIR
pipes=$(mktemp -d)
producer_pid='' consumer_pid=''
cleanup() {
    for pid in $producer_pid $consumer_pid; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$GPUSHARE_DIR" "$pipes"
}
trap cleanup EXIT
if [ "$driver" = sim ]; then
    export LD_LIBRARY_PATH=$build/sim GPUSHARE_SIM_ROOT=demo
    echo "GPU: none with an NVIDIA driver here; using the simulated driver of tests/sim"
else
    echo "GPU: $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)"
fi

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }
shown() { printf '    $ gpushare %s\n' "$*"; "$build/gpushare" "$@" | sed 's/^/    /'; }
# start NAME: runs the program under gpushare with its input on a pipe
start() {
    mkfifo "$pipes/$1.in"
    "$build/gpushare" run -- "$programs/$1" <"$pipes/$1.in" \
        > >(sed -u "s/^/    [$1] /") 2> >(sed -u "s/^/    /" >"$pipes/$1.err") &
}
enter() { echo >&"$1"; sleep 0.4; }

say "The configuration, the only thing that knows about both programs:"
sed 's/^/    /' "$GPUSHARE_CONFIG"
say "1. The producer starts. Its cudaMalloc of 64 MiB becomes the region \"frames\"."
start producer
producer_pid=$!
exec 3>"$pipes/producer.in"
for _ in $(seq 100); do
    [ -L "$GPUSHARE_DIR/default/names/frames" ] && break
    sleep 0.1
done
sleep 0.4
shown ls
say "2. The consumer starts. Its cudaMalloc gives it the producer's memory, not new memory."
start consumer
consumer_pid=$!
exec 4>"$pipes/consumer.in"
for _ in $(seq 100); do
    "$build/gpushare" ls | grep -q "consumer" && break
    sleep 0.1
done
sleep 0.6
shown ls
say "3. What the consumer wrote is in the producer's buffer:"
enter 3
say "4. The producer frees its buffer while the consumer uses it. The free succeeds at once; the memory waits:"
enter 3
shown ls
say "5. The consumer can still read it:"
enter 4
say "6. The consumer frees its buffer; nobody holds the memory any more, and it is freed:"
enter 4
wait "$consumer_pid" && consumer_status=0 || consumer_status=$?
for _ in $(seq 40); do
    [ "$("$build/gpushare" ls --json)" = "[]" ] && break
    sleep 0.1
done
shown ls
enter 3
wait "$producer_pid" && producer_status=0 || producer_status=$?
say "What gpushare reported in the producer:"
cat "$pipes/producer.err"
echo
echo "producer ended with $producer_status, consumer with $consumer_status"
[ "$producer_status$consumer_status" = 00 ]
