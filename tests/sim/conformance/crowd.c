/* What peers do in many threads, or against each other; rows 40 and 41. Runs in the peer. */
#include "gpu.h"
#include "peer.h"

enum { SIZE = 2 << 20, MAX = 64 };

struct peer_latest *peer_latest;

struct job {
    pthread_t thread;
    CUcontext context;
    CUipcMemHandle handle; /* another process's */
    uint64_t rounds, failed;
    unsigned char byte;
};

/* Own memory, worked on in a stream of its own, exported; the other's, opened and closed. */
static int once(const struct job *job, CUstream stream) {
    CUdeviceptr own = 0, other = 0;
    CUipcMemHandle handle;
    unsigned char seen = 0;
    int failed = gpu.cuMemAlloc_v2(&own, SIZE) != 0;
    failed += gpu.cuMemsetD8Async(own, job->byte, SIZE, stream) != 0;
    failed += gpu.cuIpcGetMemHandle(&handle, own) != 0;
    if (gpu.cuIpcOpenMemHandle_v2(&other, job->handle, 1) == 0)
        failed += gpu.cuMemcpyDtoH_v2(&seen, other, 1) || gpu.cuIpcCloseMemHandle(other);
    else
        failed++;
    failed += gpu.cuStreamSynchronize(stream) != 0;
    failed += gpu.cuMemcpyDtoH_v2(&seen, own + SIZE - 1, 1) || seen != job->byte;
    return failed + (gpu.cuMemFree_v2(own) != 0);
}

static void *work(void *argument) {
    struct job *job = argument;
    CUstream stream = NULL;
    gpu.cuCtxSetCurrent(job->context);
    job->failed += gpu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != 0;
    for (uint64_t i = 0; i < job->rounds; i++)
        job->failed += (uint64_t)once(job, stream);
    job->failed += gpu.cuStreamDestroy_v2(stream) != 0;
    return NULL;
}

int crowd_threads(struct message *m) {
    static struct job jobs[MAX];
    const uint64_t count = m->n[0] < MAX ? m->n[0] : MAX;
    uint64_t failed = 0;
    for (uint64_t i = 0; i < count; i++) {
        jobs[i] = (struct job){.rounds = m->n[1], .byte = (unsigned char)(i + 1)};
        gpu.cuCtxGetCurrent(&jobs[i].context);
        memcpy(&jobs[i].handle, m->bytes, sizeof jobs[i].handle);
        if (pthread_create(&jobs[i].thread, NULL, work, &jobs[i]))
            return CUDA_ERROR_OPERATING_SYSTEM;
    }
    for (uint64_t i = 0; i < count; i++) {
        pthread_join(jobs[i].thread, NULL);
        failed += jobs[i].failed;
    }
    m->n[0] = failed;
    return 0;
}

/* Frees at once what it has just told the other peer: that one opens before, during and after. */
int crowd_churn(struct message *m) {
    uint64_t failed = 0;
    for (uint64_t i = 0; i < m->n[0]; i++) {
        CUdeviceptr own = 0;
        CUipcMemHandle handle;
        failed += gpu.cuMemAlloc_v2(&own, SIZE) || gpu.cuIpcGetMemHandle(&handle, own);
        memcpy(peer_latest->ring[i % PEER_RING], &handle, sizeof handle);
        atomic_store(&peer_latest->count, i + 1);
        for (uint64_t turn = 0; turn < i % 64; turn++)
            sched_yield();
        failed += gpu.cuMemFree_v2(own) != 0;
    }
    atomic_store(&peer_latest->over, 1);
    m->n[0] = failed;
    return 0;
}

/* -> n[0] opened, n[1] refused with 1, n[2] with 800, n[3] anything else, a failed close included
 */
int crowd_catch(struct message *m) {
    memset(m->n, 0, sizeof m->n);
    while (!atomic_load(&peer_latest->over)) {
        const uint64_t count = atomic_load(&peer_latest->count);
        CUipcMemHandle handle;
        CUdeviceptr at = 0;
        if (!count)
            continue;
        memcpy(&handle, peer_latest->ring[(count - 1) % PEER_RING], sizeof handle);
        const CUresult result = gpu.cuIpcOpenMemHandle_v2(&at, handle, 1);
        const int kind = result == 0 ? 0 : result == 1 ? 1 : result == 800 ? 2 : 3;
        m->n[kind]++;
        if (kind == 3)
            m->code = (int32_t)result;
        if (!result)
            m->n[3] += gpu.cuIpcCloseMemHandle(at) != 0;
    }
    return m->n[3] ? m->code : 0;
}
