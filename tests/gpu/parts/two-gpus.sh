#!/usr/bin/env bash
# What needs a second card: ordinals that mean other cards, an importer on the other card, programs that work
# on both. Two minutes.
# shellcheck disable=SC2154,SC2034 # check.sh's variables, and pair.sh's
two_gpus() {
    local log
    writer_env=(DEVICE=1) reader_env=(CUDA_VISIBLE_DEVICES=1) remark="card 1 is the reader's 0"
    pair alloc shared static 64
    reader_env=("CUDA_VISIBLE_DEVICES=1,0") remark="cards renumbered in the reader"
    pair alloc static shared 64
    pair result static shared 64
    writer_env=(CUDA_VISIBLE_DEVICES=1) reader_env=(DEVICE=1) remark="card 1 is the writer's 0"
    pair alloc shared shared 64

    # By rule the other card does not fit: private memory, a report, and no user of the region.
    rules alloc 64 | sed 's/^missing = fail/missing = private/' >"$scratch/pair.conf"
    log=$results/other-card
    mkfifo "$scratch/two.in"
    DEVICE=0 GPUSHARE_CONFIG=$scratch/pair.conf "$build/gpushare" run -- "$programs/writer_shared" 64 wait <"$scratch/two.in" >"$log.w" 2>&1 &
    local pid=$!
    exec 5>"$scratch/two.in"
    filled "$log.w"
    DEVICE=1 GPUSHARE_CONFIG=$scratch/pair.conf GPUSHARE_LOG=$log.jsonl GPUSHARE_LOG_FORMAT=jsonl \
        timeout 100 "$build/gpushare" run -- "$programs/reader_static" 64 >"$log.r" 2>&1
    exec 5>&-
    wait $pid
    row "two cards: a rule does not share across cards, and says so" \
        "$(grep -q "found nothing" "$log.r" && grep -q '"finding":"share-mismatch"' "$log.jsonl" && grep -q "kernel in nothing" "$log.w" && echo 0 || echo 1)" \
        "$(found_in "$log.jsonl")"
    unmodified simple_ipc-two-cards "$programs/simple_ipc_static" 8
    # NCCL frees what its peer has open: known, so left out and counted.
    if [ "$driver" = gpu ] && python3 -c 'import torch' 2>/dev/null; then
        log=$results/nccl
        NCCL_CUMEM_ENABLE=0 timeout 100 "$build/gpushare" audit --fail-on=warning -- python3 tests/gpu/programs/torch_nccl.py >"$log.log" 2>&1
        row "two cards: NCCL's teardown is quiet in an audit" $? "$(grep SUMMARY "$log.log" | head -1 | cut -c11-)"
        NCCL_CUMEM_ENABLE=0 timeout 100 "$build/gpushare" audit --no-default-suppressions -- python3 tests/gpu/programs/torch_nccl.py >"$log-all.log" 2>&1
        row "two cards: and told with --no-default-suppressions" "$(grep -q 'free-while-open' "$log-all.log" && echo 0 || echo 1)" \
            "$(grep SUMMARY "$log-all.log" | head -1 | cut -c11-)"
    fi
    scenarios "two cards: scenarios of rules and of memory of the other card" \
        'Rule.*Device*:*/Cards.*:*AnotherCard*:MergeContext.Cards*'
}
if [ "$cards" -ge 2 ]; then two_gpus; else skip "two cards" "this machine has one"; fi
writer_env=() reader_env=() remark=''
