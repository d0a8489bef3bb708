#!/bin/sh
# webhook.sh URL [LOG...] - posts each finding, and each region that is exported or freed, to a web hook as it happens.
#
# The programs run with event_log = /var/log/gpushare/%c.%p.jsonl, say; this script reads the same configuration, or the
# LOGs. It ends with `gpushare events`. A post that fails is told on stderr, and the next one is tried.
[ $# -ge 1 ] || { echo "usage: webhook.sh URL [LOG...]" >&2; exit 2; }
url=$1
shift
gpushare events --follow --since=0 "$@" |
    grep --line-buffered -E '"event":"(finding|exported|freed)"' |
    while IFS= read -r event; do
        printf '%s\n' "$event" |
            curl --silent --show-error --fail --max-time 10 -H 'Content-Type: application/json' --data-binary @- "$url" >/dev/null
    done
