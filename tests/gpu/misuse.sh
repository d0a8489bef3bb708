#!/usr/bin/env bash
# Programs that misuse CUDA on purpose, on whatever driver there is: each ID wrongly and rightly, bare and
# audited. Both times it prints the same; wrongly the log has the finding of its name, rightly none.
# Usage: misuse.sh BUILD_DIR PROGRAM [ID...]. The last line counts; the exit status is 0 if all is well.
set -uo pipefail
build=$(realpath "$1")
program=$(realpath "$2")
shift 2
if [ "${1:-}" = --one ]; then # right|wrong ID: one line, which begins with ok, skipped or wrong
    how=$2 id=$3 option=()
    [ "$how" = right ] && option=(--right)
    at=$(mktemp -d)
    trap 'rm -rf "$at"' EXIT
    timeout 60 "$program" "${option[@]}" "$id" >"$at/bare" 2>&1
    status=$?
    [ $status = 77 ] && echo "skipped $id" && exit
    [ $status = 0 ] || { echo "wrong $id, $how: the driver answered otherwise:" "$(grep UNEXPECTED "$at/bare")" && exit; }
    GPUSHARE_CONFIG=/dev/null GPUSHARE_DIR=$at/dir GPUSHARE_LOG=$at/log.%p GPUSHARE_LOG_FORMAT=jsonl GPUSHARE_LOG_LEVEL=info \
        timeout 60 "$build/gpushare" run --mode audit -- "$program" "${option[@]}" "$id" >"$at/audited" 2>&1
    found=$(cat "$at"/log.* 2>/dev/null | grep -o '"finding":"[^"]*"' | cut -d'"' -f4 | sort -u | tr '\n' ' ')
    cmp -s "$at/bare" "$at/audited" || { echo "wrong $id, $how: audited it prints something else" && exit; }
    [ "$how" = right ] && [ -n "$found" ] && echo "wrong $id, right: found $found" && exit
    if [ "$how" = wrong ]; then # an ID is a finding's, and perhaps a word more
        for one in $found; do
            case $id in "$one"*) echo "ok $id" && exit ;; esac
        done
        echo "wrong $id: found ${found:-nothing}" && exit
    fi
    echo "ok $id"
    exit
fi
# In a forked child NVIDIA's static runtime calls nothing that is hooked.
unseen='^share-\|^write-\|^merge-'
case $program in *_static) unseen="$unseen\|^fork-with-context\|^call-after-shutdown" ;; esac
[ $# != 0 ] || mapfile -t ids < <("$program" --list | grep -v "$unseen")
[ $# = 0 ] || ids=("$@")
results=$(for id in "${ids[@]}"; do echo "wrong $id" && echo "right $id"; done |
    xargs -P 8 -L 1 "$0" "$build" "$program" --one)
grep '^wrong' <<<"$results"
count() { grep -c "^$1 " <<<"$results"; }
echo "$(count ok) ok, $(count skipped) skipped, $(count wrong) wrong"
[ "$(count wrong)" = 0 ] && [ "$(count ok)" != 0 ]
