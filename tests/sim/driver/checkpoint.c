/*
 * Checkpoints of other processes. The daemon takes the steps (daemon/process.c); a driver before
 * 12.8 has none of these functions, as with GPUSHARE_SIM_CHECKPOINT=off. A number there is how many
 * MiB a second a checkpoint and a restore carry.
 */
#include "link.h"
#include "state.h"

static void carry(uint64_t bytes) {
    const char *rate = getenv("GPUSHARE_SIM_CHECKPOINT");
    const uint64_t mib = rate ? strtoull(rate, NULL, 10) : 0;
    if (mib)
        usleep((useconds_t)((bytes >> 20) * 1000000 / mib));
}

static CUresult ask(int pid, enum sim_process what, uint64_t *state) {
    const char *wanted = getenv("GPUSHARE_SIM_CHECKPOINT");
    const struct sim_request request = {.op = SIM_PROCESS, .a = (uint64_t)pid, .b = what};
    struct sim_reply reply;
    TRY(state_check());
    REFUSE(wanted && !strcmp(wanted, "off"), CUDA_ERROR_NOT_SUPPORTED);
    CUresult result = link_call(&request, &reply);
    if (!result && (what == SIM_PROCESS_CHECKPOINT || what == SIM_PROCESS_RESTORE))
        carry(reply.b);
    if (state)
        *state = reply.a;
    return result;
}

CUresult CUDAAPI cuCheckpointProcessGetState(int pid, CUprocessState *state) {
    uint64_t now = 0;
    TRY(state ? ask(pid, SIM_PROCESS_STATE, &now) : CUDA_ERROR_INVALID_VALUE);
    *state = (CUprocessState)now;
    return CUDA_SUCCESS;
}

/* Assumed: which thread it is was not looked at. */
CUresult CUDAAPI cuCheckpointProcessGetRestoreThreadId(int pid, int *tid) {
    TRY(tid ? ask(pid, SIM_PROCESS_STATE, NULL) : CUDA_ERROR_INVALID_VALUE);
    *tid = pid;
    return CUDA_SUCCESS;
}

CALL(cuCheckpointProcessLock, (int pid, CUcheckpointLockArgs *args),
     ask(pid, SIM_PROCESS_LOCK, NULL))
CALL(cuCheckpointProcessCheckpoint, (int pid, CUcheckpointCheckpointArgs *args),
     ask(pid, SIM_PROCESS_CHECKPOINT, NULL))
CALL(cuCheckpointProcessRestore, (int pid, CUcheckpointRestoreArgs *args),
     ask(pid, SIM_PROCESS_RESTORE, NULL))
CALL(cuCheckpointProcessUnlock, (int pid, CUcheckpointUnlockArgs *args),
     ask(pid, SIM_PROCESS_UNLOCK, NULL))
