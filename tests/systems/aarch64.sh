#!/bin/bash
# tests/systems/aarch64.sh: builds everything for aarch64 and runs it under qemu-aarch64: the trampolines, the
# doors, sharing by rule, the hand-over, reports, exit codes. Prints "N passed, N failed".
#
# BUILD=dir   where the native build is and where aarch64/ is made (build)
#
# Needs gcc-aarch64-linux-gnu and qemu-user. What the tool is linked with is fetched with apt-get into
# $BUILD/aarch64/sysroot, with an apt state of its own: nothing is installed. Without the tool's
# libraries the tool is left out, and what is tested with it.
set -u
cd "$(dirname "$0")/../.." || exit 1
native=$(realpath -m "${BUILD:-build}")
out=$native/aarch64
sysroot=$out/sysroot
libdir=$sysroot/usr/lib/aarch64-linux-gnu
libraries=$libdir:$sysroot/lib/aarch64-linux-gnu # of the tool
tool=$out/gpushare                               # empty: cannot be built
apps=$out/tests/doors.d
work=
daemon=
passed=0 failed=0

skip() {
    echo "skipped: $*"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}

die() {
    echo "aarch64: $*" >&2
    echo "$passed passed, $((failed + 1)) failed"
    exit 1
}

clean_up() {
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null
    [ -z "$work" ] || rm -rf "$work"
}
trap clean_up EXIT

expect() { # what, expected, got
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf -- '--- %s\nexpected: %s\ngot:      %s\n' "$1" "$2" "$3"
        [ ! -s "$work/err" ] || sed 's/^/    /' "$work/err"
    fi
}

# --- building --------------------------------------------------------------------------------------

tool_packages=(libjansson-dev libncurses-dev libiberty-dev libdw-dev libdw1 libelf1 zlib1g liblzma5 libbz2-1.0)

fetch() { # packages
    local state=$out/apt package
    local options=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64
        -o "Dir::State::Lists=$state/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
    mkdir -p "$state/lists/partial" "$sysroot"
    (
        cd "$state" && rm -f ./*.deb &&
            timeout 60 apt-get "${options[@]}" update &&
            timeout 60 apt-get "${options[@]}" download "$@" &&
            for package in ./*.deb; do dpkg -x "$package" "$sysroot" || exit 1; done
    ) >"$state/log" 2>&1
    rm -rf "$state/lists"
}

fetch_libraries() {
    [ -f "$libdir/libtinfo.a" ] || fetch "${tool_packages[@]}"
    [ -f "$libdir/libtinfo.a" ] && return
    tool=
    echo "aarch64: without the tool: $(tail -1 "$out/apt/log")"
}

build() {
    make -j"$(nproc)" BUILD="$out" CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ \
        AR=aarch64-linux-gnu-ar \
        TOOL_LIBS="$libdir/libjansson.a $libdir/libiberty.a $libdir/libncursesw.a $libdir/libtinfo.a -L$libdir -ldw -l:libelf.so.1 -Wl,-rpath-link,$libraries" \
        "$out/libgpushare.so" "$out/libgpushare-hip.so" ${tool:+"$tool"} sim "$@" >"$out/log" 2>&1 || {
        tail -20 "$out/log" >&2
        die "the build failed"
    }
    make BUILD="$native" "$native/sim/gpusimd" >>"$out/log" 2>&1 || die "no native gpusimd"
}

for program in aarch64-linux-gnu-gcc aarch64-linux-gnu-g++ qemu-aarch64; do
    command -v $program >/dev/null || skip "no $program"
done
mkdir -p "$out"
fetch_libraries
names="peer door door-driver door-runtime door-static plugin-driver.so plugin-runtime.so \
plugin-static.so plugin-default.so threads lookups codes quiet harm share procaddr"
# shellcheck disable=SC2046,SC2086
build $(printf "$apps/%s " $names)

# --- running ---------------------------------------------------------------------------------------

work=$(mktemp -d /dev/shm/gpushare-aarch64-XXXXXX)
export GPUSHARE_DIR=$work/dir GPUSHARE_CONFIG=$work/config GPUSHARE_LOG=$work/log
export GPUSHARE_LOG_FORMAT=jsonl GPUSHARE_LOG_LEVEL=info GPUSHARE_SIM_ROOT=aarch64-$$
export DOOR_PEER=$work/peer
mkdir -m 700 "$GPUSHARE_DIR"
: >"$GPUSHARE_CONFIG"

# The daemon is the machine's: the protocol is the same for both, and qemu cannot start it.
GPUSHARE_SIM_LINGER_MS=60000 "$native/sim/gpusimd" --foreground &
daemon=$!

emulate() { # preloaded library or "", program, arguments
    local preload=()
    [ -z "$1" ] || preload=(-E "LD_PRELOAD=$1")
    shift
    timeout 30 qemu-aarch64 -L /usr/aarch64-linux-gnu -E "LD_LIBRARY_PATH=$out/sim:$libraries" \
        "${preload[@]}" "$@"
}

bare() {
    emulate "" "$@" 2>"$work/err"
}

with() {
    emulate "$out/libgpushare.so" "$@" 2>"$work/err"
}

# A child of an emulated program is native until it is told otherwise.
cat >"$DOOR_PEER" <<PEER
#!/bin/sh
preload=\${LD_PRELOAD:+-E LD_PRELOAD=\$LD_PRELOAD}
unset LD_PRELOAD
exec env -u LD_LIBRARY_PATH qemu-aarch64 -L /usr/aarch64-linux-gnu \
    -E LD_LIBRARY_PATH=$out/sim \$preload $apps/peer
PEER
chmod +x "$DOOR_PEER"

findings() {
    sed -nE 's/.*"finding":"([^"]*)","api":"([^"]*)".*/\1 \2/p' "$work/log" 2>/dev/null | tr '\n' ','
    rm -f "$work/log"
}

# --- the library -----------------------------------------------------------------------------------

expect "the library is for aarch64" "AArch64" \
    "$(readelf -h "$out/libgpushare.so" | sed -nE 's/ *Machine: *//p')"
exported=$(awk -f shim/doors/hooked.awk shim/cuda/hooks.def)
# shellcheck disable=SC2086
expect "it exports the table, the two doors and what ASan asks for" "$(printf '%s\n' $exported dlsym dlvsym __asan_default_options | sort)" \
    "$(aarch64-linux-gnu-nm -D --defined-only "$out/libgpushare.so" | awk '{ print $3 }' | sort)"
expect "it needs nothing newer than glibc 2.28" "" "$(tests/built/symbols "$out/libgpushare.so" "$out/libgpushare-hip.so")"
[ -z "$tool" ] || expect "nor does the tool" "" "$(tests/built/symbols "$tool")"
[ -z "$tool" ] || expect "the tool runs" "gpushare $(sed -n 's/^VERSION := //p' Makefile)" \
    "$(emulate "" "$tool" --version 2>/dev/null | head -1)"

# --- doors -----------------------------------------------------------------------------------------

codes='alloc=0 export=0 own=201 open=0,0 same=1 close=0,0,1 free=0,1'

door() { # names in reports: the runtime's or the driver's; program, arguments
    local free=cuMemFree open=cuIpcOpenMemHandle close=cuIpcCloseMemHandle layer=$1
    shift
    [ "$layer" = driver ] || free=cudaFree open=cudaIpcOpenMemHandle close=cudaIpcCloseMemHandle
    expect "door $*" "$codes
published=1 held=1 left=0" "$(with "$apps/$1" "${@:2}")"
    expect "reports of $*" "open-own-handle $open,double-open $open,double-close $close,double-free $free," "$(findings)"
}

expect "door-runtime, bare" "$codes
published=0 held=0 left=0" "$(bare "$apps/door-runtime" linked)"
door runtime door-runtime linked
door driver door-driver linked
door driver door-driver default
door driver door-static linked
door driver door handle
door driver door get1 11030
door driver door get2 13000 2
door driver door-runtime entry 12040
door runtime door plugin "$apps/plugin-runtime.so"
door driver door plugin "$apps/plugin-static.so"
door driver door plugin "$apps/plugin-default.so"

same() { # program, arguments: it cannot tell
    local without got
    without=$(bare "$@"; echo "status $?")
    got=$(with "$@"; echo "status $?")
    expect "$(basename "$1") ${*:2} as without us" "$without" "$got"
    rm -f "$work/log"
}

expect "16 threads resolve at once" "same ours" "$(with "$apps/threads")"
same "$apps/lookups"
same "$apps/quiet"
same "$apps/codes"
without=$(bare "$apps/procaddr")
got=$(with "$apps/procaddr")
expect "every resolver's answer as without us" "$(cut -d' ' -f1-7 <<<"$without" | md5sum)" \
    "$(cut -d' ' -f1-7 <<<"$got" | md5sum)"
expect "with our wrappers" "libgpushare.so" \
    "$(grep -E ' (cuMem(Alloc|Free)|cuIpc|cuInit)[A-Za-z0-9]*(_v2)? [^ ]*$' <<<"$got" |
        awk '$8 != "-" && $7 !~ /Managed|Async/ { print $8 }' | sort -u)"

# --- what programs do ------------------------------------------------------------------------------

for action in "exit 9" "_exit 9" "_Exit 3" "quick_exit 4" "return 77" "syscall 6" "state x" \
    "cancel x" "thread-exit x" "dl-error x" "socket-stderr x" "broken-stderr x"; do
    # shellcheck disable=SC2086
    same "$apps/harm" $action
done
expect "two double frees are reported" "double-free cudaFree,double-free cudaFree," \
    "$(with "$apps/harm" return 0 >/dev/null; findings)"
if [ -n "$tool" ]; then
    with "$apps/harm" return 0 >/dev/null
    expect "the tool explains them" "1" "$(emulate "" "$tool" report "$work/log" 2>/dev/null |
        grep -c 'main at tests/doors/apps/harm.c:[0-9]* in ')"
    rm -f "$work/log"
fi

# --- sharing ---------------------------------------------------------------------------------------

cat >"$GPUSHARE_CONFIG" <<CONFIG
[region buffer]
role = auto
size = 1MiB
CONFIG
coproc writer { with "$apps/share" write; }
read -r line <&"${writer[0]}"
expect "the writer fills its buffer" "filled" "$line"
[ -z "$tool" ] || expect "the tool sees the region" "buffer" \
    "$(emulate "" "$tool" ls --json 2>/dev/null | grep -o '"name": *"[^"]*"' | cut -d'"' -f4)"
expect "a reader finds the writer's bytes by rule" "equal" "$(with "$apps/share" read)"
expect "and not without us" "different" "$(bare "$apps/share" read)"
# shellcheck disable=SC2154 # coproc sets it
pid=$writer_PID
eval "exec ${writer[1]}>&-"
wait "$pid"
expect "the writer ends well" 0 $?

cat >"$GPUSHARE_CONFIG" <<CONFIG
[region result]
role = auto
size = 1MiB
ready = free
handover = 20s
CONFIG
with "$apps/share" free >"$work/out" &
pid=$!
for _ in $(seq 100); do
    [ -s "$work/out" ] && break
    sleep 0.05
done
expect "a reader gets a finished result" "equal" "$(with "$apps/share" read)"
wait "$pid"
expect "its maker ends well" 0 $?
expect "nothing is left" "" "$(find "$GPUSHARE_DIR" -type f -o -type l)"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
