/*
 * Rows 61 to 66: checkpoints of another process, and of what it loses. Each is asked by a process
 * of its own, which uses the driver only when its peers have started.
 */
#include "check.h"
#include "lane.h"
#include "place.h"
#include "step.h"

enum { SIZE = 64 * MIB, BYTE = 7, NO_PROCESS = 1 << 22 };

static int lock(int pid) {
    CUcheckpointLockArgs limit = {.timeoutMs = 5000};
    return (int)gpu.cuCheckpointProcessLock(pid, &limit);
}

static int take(int pid) {
    CUcheckpointCheckpointArgs none = {{0}};
    return (int)gpu.cuCheckpointProcessCheckpoint(pid, &none);
}

static int restore(int pid) {
    CUcheckpointRestoreArgs none = {0};
    return (int)gpu.cuCheckpointProcessRestore(pid, &none);
}

static int unlock(int pid) {
    CUcheckpointUnlockArgs none = {{0}};
    return (int)gpu.cuCheckpointProcessUnlock(pid, &none);
}

static int state(int pid) {
    CUprocessState now = CU_PROCESS_STATE_FAILED;
    const int code = (int)gpu.cuCheckpointProcessGetState(pid, &now);
    return code ? -code : (int)now;
}

static void go(int pid) {
    check("lock", 0, lock(pid));
    check("checkpoint", 0, take(pid));
    check("  its state", CU_PROCESS_STATE_CHECKPOINTED, state(pid));
}

static void come_back(int pid) {
    check("restore", 0, restore(pid));
    check("unlock", 0, unlock(pid));
    check("  its state", CU_PROCESS_STATE_RUNNING, state(pid));
}

static void is_lost(int pid, int code) {
    check("restore", code, restore(pid));
    check("unlock", 401, unlock(pid));
    check("  its state", CU_PROCESS_STATE_CHECKPOINTED, state(pid));
}

static void own_memory(void) {
    PEER(a);
    const uint64_t p = alloc(&a, SIZE);
    fill(&a, p, SIZE, BYTE);
    place_start();
    check("restore of what runs", 401, restore(a.pid));
    check("unlock of what runs", 401, unlock(a.pid));
    check("lock", 0, lock(a.pid));
    check("again", 401, lock(a.pid));
    check("restore of what is locked", 401, restore(a.pid));
    check("checkpoint", 0, take(a.pid));
    check("again", 401, take(a.pid));
    check("unlock of what is checkpointed", 401, unlock(a.pid));
    come_back(a.pid);
    check("its bytes", BYTE, byte_at(&a, p));
    check("lock of a process without CUDA", 3, lock((int)getppid()));
    check("lock of no process", 304, lock(NO_PROCESS));
}

static void legacy_memory(void) {
    struct peer a, b;
    uint64_t p;
    PEERS_START(&a, &b);
    const struct bytes h = export_filled(&a, SIZE, BYTE, &p);
    const uint64_t q = open_at(&b, h);
    place_start();
    go(a.pid);
    come_back(a.pid);
    check("the exporter fills it", 0, fill(&a, p, SIZE, BYTE + 1));
    check("  and is cut off", BYTE, byte_at(&b, q));
    check("the importer's close", 0, close_code(&b, q));
    check("the handle opens no more", 400, open_code(&b, h));
    check("another one's does", 0, open_code(&b, export_filled(&a, SIZE, BYTE, &p)));
    go(b.pid);
    is_lost(b.pid, 1);
    peer_end(&b, 9);
    peer_end(&a, 0);
}

/* B has memory of A: mapped, as only a handle, or as its addresses alone. */
static void imported_memory(void) {
    struct peer a, b;
    if (!lane_open())
        return;
    PEERS_START(&a, &b);
    check("A: create", 0, vmm(&a, VMM_CREATE, 0, SIZE));
    const uint64_t p = map(&a, 0);
    fill(&a, p, SIZE, BYTE);
    check("  sends a descriptor", 0, vmm(&a, VMM_SEND, 0, 0));
    const int descriptor = lane_receive(LANE_PARENT);
    lane_send(LANE_PARENT, descriptor);
    check("B: takes it", 0, vmm(&b, VMM_TAKE, 0, 0));
    const uint64_t q = map(&b, 0);
    check("  unmap", 0, vmm(&b, VMM_UNMAP, 0, 0));
    check("  release", 0, vmm(&b, VMM_RELEASE, 0, 0));
    place_start();
    go(b.pid);
    come_back(b.pid);
    lane_send(LANE_PARENT, descriptor);
    check("B: takes it again", 0, vmm(&b, VMM_TAKE, 0, 0));
    check("  maps it where it was", 0, vmm(&b, VMM_MAP, 0, 0));
    check("  allow", 0, vmm(&b, VMM_ALLOW, 0, WRITE));
    check("  its bytes", BYTE, byte_at(&b, q));
    check("  unmap", 0, vmm(&b, VMM_UNMAP, 0, 0));
    go(b.pid);
    is_lost(b.pid, 801);
    peer_end(&b, 9);
    go(a.pid);
    come_back(a.pid);
    check("A: its bytes", BYTE, byte_at(&a, p));
    close(descriptor);
    peer_end(&a, 0);
    lane_close();
}

/* A takes memory of its own from a descriptor: a handle of its own, which is imported. */
static void own_import(void) {
    struct peer a;
    if (!lane_open())
        return;
    peer_start(&a, 1);
    check("create", 0, vmm(&a, VMM_CREATE, 0, SIZE));
    const uint64_t p = map(&a, 0);
    fill(&a, p, SIZE, BYTE);
    check("  sends a descriptor", 0, vmm(&a, VMM_SEND, 0, 0));
    const int descriptor = lane_receive(LANE_PARENT);
    lane_send(LANE_PARENT, descriptor);
    check("  takes it", 0, vmm(&a, VMM_TAKE, 1, 0));
    check("  release", 0, vmm(&a, VMM_RELEASE, 1, 0));
    place_start();
    go(a.pid);
    come_back(a.pid);
    check("its bytes", BYTE, byte_at(&a, p));
    lane_send(LANE_PARENT, descriptor);
    check("takes it again, and keeps it", 0, vmm(&a, VMM_TAKE, 1, 0));
    go(a.pid);
    is_lost(a.pid, 801);
    peer_end(&a, 9);
    close(descriptor);
    lane_close();
}

static void no_room(void) {
    static CUdeviceptr taken[8192];
    struct peer a;
    int count = 0;
    peer_start(&a, 1);
    fill(&a, alloc(&a, SIZE), SIZE, BYTE);
    place_start();
    go(a.pid);
    while (count < 8192 && gpu.cuMemAlloc_v2(&taken[count], SIZE) == CUDA_SUCCESS)
        count++;
    check("restore where there is no room", 2, restore(a.pid));
    while (count > 0)
        gpu.cuMemFree_v2(taken[--count]);
    check("  and with room", 304, restore(a.pid));
    check("unlock", 401, unlock(a.pid));
    peer_end(&a, 9);
}

/* All memory of the card is free. */
static void killed(void) {
    struct peer a;
    size_t before = 0, after = 0, all;
    peer_start(&a, 1);
    place_start();
    go(a.pid);
    gpu.cuMemGetInfo_v2(&before, &all);
    peer_end(&a, 9);
    gpu.cuMemGetInfo_v2(&after, &all);
    check("a checkpointed process is killed: nothing is taken", 1, after >= before);
    check("  lock of it", 304, lock(a.pid));
}

void checkpoint_rows(void) {
    check_in_child("61", own_memory);
    check_in_child("62", legacy_memory);
    check_in_child("63", imported_memory);
    check_in_child("64", no_room);
    check_in_child("65", killed);
    check_in_child("66", own_import);
}
