#!/usr/bin/env bash
# Whether check.sh fails what it has to: habits.sh with a kernel log of its own.
# shellcheck disable=SC2034,SC2317 # habits.sh uses them
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export KERNEL_LOG=$scratch/log STRICT_SKIPS=1
driver=sim odd='' part=replicas wrong=0
# shellcheck source=/dev/null
. tests/gpu/habits.sh
skip() { echo "skip: $1: $2"; }
xid() { echo "[$SECONDS.$RANDOM] NVRM: Xid (PCI:0000:4a:00): $1, pid=4242, name=server" >>"$KERNEL_LOG"; }
expect() { # what, is, to be
    [ "$2" = "$3" ] || { echo "$1: '$2', and not '$3'" && wrong=1; }
}
found() { # what, the numbers that are to be found
    look_at_log
    expect "$1" "$odd" "$2"
}

[[ $(begin_log) == "skip: kernel log: "* ]] || { echo "a log that cannot be read is not told" && wrong=1; }
xid 79 # before the first row
begin_log
found "what was there before" ""
xid 31
xid 45
found "what replicas cause" ""
xid 31
xid 48
xid 119
found "what nobody causes" "48 119"
found "the next row" ""
part=bench
xid 31
xid 43
found "a fault where no kernel writes wrongly" 31
: >"$KERNEL_LOG"
found "a log that has lost all" ""
xid 95
found "and what comes then" 95

may() { may_skip "$@" && echo yes || echo no; }
expect "one card" "$(may "two cards" "this machine has one")" yes
expect "a test for the simulator" "$(may "Room.IsTaken" "simulator only: it fills the card")" yes
expect "a package that is not there" "$(may "unmodified: cache-jax" "jax is not installed")" yes
expect "a program of ours that was not built" "$(may "demo" "build/demo/gpu is not built")" no
expect "a program of ours that fails" "$(may "unmodified: simple_ipc-shared" "it fails bare, with 1: x")" no
printf 'Rule.A\tthis machine has one card\nRule.B\tno reason\n' >"$scratch/skips"
expect "the tests of a file" "$(odd_skips "$scratch/skips")" "Rule.B: no reason"
while read -r of _; do
    [ -f "tests/gpu/parts/$of.sh" ] || { echo "xids.txt: there is no part $of" && wrong=1; }
done < <(grep -v '^#' tests/gpu/xids.txt)
exit $wrong
