# shellcheck shell=bash
# What holds for every row of check.sh: the kernel log has no new Xid after it (xids.txt), and only what skips.txt lists is
# skipped. Sourced by check.sh; on the simulator nothing of it is looked at.
#
# KERNEL_LOG=FILE      instead of dmesg. With it the log is looked at on the simulator, too
# STRICT_SKIPS=1       skips are looked at on the simulator, too
# shellcheck disable=SC2154,SC2034 # check.sh's variables
card_places='' xids_seen=0
watches_log() { [ "$driver" = gpu ] || [ -n "${KERNEL_LOG:-}" ]; }
kernel_log() { if [ -n "${KERNEL_LOG:-}" ]; then cat "$KERNEL_LOG"; else dmesg; fi; }

# The Xids of the cards of this machine, a line each. A container may see the log of a host with more cards.
xid_lines() { kernel_log 2>/dev/null | grep 'NVRM: Xid' | grep -iE "${card_places:-.}"; }

begin_log() { # before the first row
    watches_log || return 0
    if ! kernel_log >/dev/null 2>&1; then
        skip "kernel log" "it cannot be read, so nobody looks for Xids: $(kernel_log 2>&1 >/dev/null | tail -1)"
        xids_seen=none
        return
    fi
    [ -n "${KERNEL_LOG:-}" ] || card_places=$(nvidia-smi --query-gpu=pci.bus_id --format=csv,noheader | sed -E 's/^0*([0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}).*/PCI:\1/' | paste -sd'|')
    xids_seen=$(xid_lines | wc -l)
}
# Leaves in $odd the numbers of the Xids since the last look that the part does not cause by itself. Where the log has lost
# its first lines since, all that it has are looked at.
look_at_log() {
    local count lines
    odd=''
    watches_log && [ "$xids_seen" != none ] || return 0
    lines=$(xid_lines)
    count=$(grep -c . <<<"$lines")
    [ "$count" -ge "$xids_seen" ] || xids_seen=0
    odd=$(tail -n +$((xids_seen + 1)) <<<"$lines" | sed -nE 's/.*Xid \([^)]*\): *([0-9]+).*/\1/p' |
        grep -vxFf <(sed -n "s/^$part //p" tests/gpu/xids.txt | tr ' ' '\n') | sort -n | uniq | paste -sd' ')
    xids_seen=$count
}

# Whether skips.txt has it.
may_skip() { # may_skip NAME REASON
    local name reason
    [ "$driver" = gpu ] || [ -n "${STRICT_SKIPS:-}" ] || return 0
    while IFS= read -r line; do
        name=${line%% | *} reason=${line#* | }
        # shellcheck disable=SC2053 # they are patterns
        [[ $1 == $name && $2 == $reason ]] && return 0
    done < <(grep -v '^#' tests/gpu/skips.txt | grep ' | ')
    return 1
}
# The tests in a file of tests/run that skips.txt does not have, by name and reason.
odd_skips() { # odd_skips FILE
    local test reason
    while IFS=$'\t' read -r test reason; do
        may_skip "$test" "$reason" || echo "$test: $reason"
    done <"$1"
}
