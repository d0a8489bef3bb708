/*
 * churn.c - kernels of many threads.
 */
#include "puppet.h"

struct churn {
    u64 from, words;
    uint32_t expected;
    int64_t until;
    unsigned wrong, rounds;
    int code;
    CUcontext context;
};

static int sum_once(const struct churn *churn, CUfunction kernel, CUstream stream, u64 out,
                    uint32_t *sum) {
    u64 from = churn->from, words = churn->words;
    void *values[] = {&from, &words, &out};
    int code = (int)CU(cuMemsetD32Async)(out, 0, 1, stream);
    if (!code)
        code = (int)CU(cuLaunchKernel)(kernel, 8, 1, 1, 128, 1, 1, 0, stream, values, NULL);
    code = code ? code : (int)CU(cuMemcpyDtoHAsync)(sum, out, sizeof(*sum), stream);
    return code ? code : (int)CU(cuStreamSynchronize)(stream);
}

static void *churn_thread(void *arg) {
    struct churn *churn = arg;
    CUfunction kernel;
    CUstream stream = NULL;
    u64 out = 0;
    int code = (int)CU(cuCtxSetCurrent)(churn->context);
    code = code ? code : (int)CU(cuModuleGetFunction)(&kernel, kernels, "test_read");
    code = code ? code : (int)CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
    code = code ? code : (int)CU(cuMemAlloc)(&out, sizeof(uint32_t));
    do {
        uint32_t sum = 0;
        code = code ? code : sum_once(churn, kernel, stream, out, &sum);
        churn->rounds++;
        churn->wrong += !code && sum != churn->expected;
        if (!churn->until)
            churn->expected = sum;
    } while (!code && now_ns() < churn->until);
    code = code ? code : (int)CU(cuStreamDestroy)(stream);
    churn->code = code ? code : do_free(out);
    return NULL;
}

/* Writes a byte here and there, and what was there back again. */
static int write_around(u64 to, size_t size, int64_t until) {
    int code = 0;
    for (unsigned i = 0; !code && now_ns() < until; i++) {
        const u64 at = to + i * 2654435761u % size;
        unsigned char byte = 0, other;
        code = do_read(&byte, at, 1);
        other = (unsigned char)~byte;
        code = code ? code : do_write(at, &other, 1);
        nap(i % 4 * 40);
        code = code ? code : do_write(at, &byte, 1);
        nap(i % 3 * 100);
    }
    return code;
}

/* churn NAME WORDS THREADS MS [OTHER]: so many threads add the words up by kernels, on streams of
 * their own, and get the same sum again and again -> how often not, how often at all. Meanwhile
 * bytes of OTHER, as large, are written. */
static int c_churn(char **w) {
    enum { MOST = 16 };
    struct churn one = {.from = argument(w[1]), .words = number(w[2])}, all[MOST];
    pthread_t threads[MOST];
    const size_t count = number(w[3]) < MOST ? number(w[3]) : MOST;
    int code = do_sync();
    code = code ? code : (int)CU(cuCtxGetCurrent)(&one.context);
    if (code)
        return code;
    churn_thread(&one);
    one.until = now_ns() + (int64_t)number(w[4]) * 1000000;
    for (size_t i = 0; i < count; i++) {
        all[i] = one;
        all[i].wrong = all[i].rounds = 0;
        if (pthread_create(&threads[i], NULL, churn_thread, &all[i]) != 0)
            return BAD;
    }
    unsigned wrong = 0, rounds = 0;
    code = one.code;
    if (!code && w[5])
        code = write_around(value(w[5]), 4 * one.words, one.until);
    for (size_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        wrong += all[i].wrong;
        rounds += all[i].rounds;
        code = code ? code : all[i].code;
    }
    say(" %u %u", wrong, rounds);
    return code;
}

/* There are always kernels for a tenth of a second to come. */
static void *flood_thread(void *arg) {
    enum { AHEAD = 10 };
    struct churn *churn = arg;
    CUfunction kernel;
    CUstream stream;
    CUevent ends[AHEAD];
    u64 from = churn->from, words = 1024, ns = 10000000;
    void *values[] = {&from, &words, &ns, &from};
    int code = (int)CU(cuCtxSetCurrent)(churn->context);
    code = code ? code : (int)CU(cuModuleGetFunction)(&kernel, kernels, "test_spin");
    code = code ? code : (int)CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
    for (unsigned i = 0; !code && i < AHEAD; i++)
        code = (int)CU(cuEventCreate)(&ends[i], CU_EVENT_DISABLE_TIMING);
    for (unsigned i = 0; !code && now_ns() < churn->until; i++) {
        code = (int)CU(cuEventSynchronize)(ends[i % AHEAD]);
        if (!code)
            code = (int)CU(cuLaunchKernel)(kernel, 1, 1, 1, 32, 1, 1, 0, stream, values, NULL);
        code = code ? code : (int)CU(cuEventRecord)(ends[i % AHEAD], stream);
    }
    churn->code = code ? code : (int)CU(cuStreamSynchronize)(stream);
    return NULL;
}

static struct churn flooding;
static pthread_t flooder;

/* flood NAME MS: kernels that read and write its first words, a tenth of a second ahead; flooded:
 * when they are through */
static int c_flood(char **w) {
    flooding =
        (struct churn){.from = argument(w[1]), .until = now_ns() + (int64_t)number(w[2]) * 1000000};
    const int code = do_sync();
    if (code || CU(cuCtxGetCurrent)(&flooding.context) ||
        pthread_create(&flooder, NULL, flood_thread, &flooding) != 0)
        return code ? code : BAD;
    return 0;
}
static int c_flooded(char **w) {
    pthread_join(flooder, NULL);
    return flooding.code;
}

/* One after the other, without a pause. */
static void *serve_thread(void *arg) {
    struct churn *churn = arg;
    CUfunction kernel;
    CUstream stream;
    u64 from = churn->from, words = 1024, ns = churn->words;
    void *values[] = {&from, &words, &ns, &from};
    int code = (int)CU(cuCtxSetCurrent)(churn->context);
    code = code ? code : (int)CU(cuModuleGetFunction)(&kernel, kernels, "test_spin");
    code = code ? code : (int)CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
    for (; !code && now_ns() < churn->until; churn->rounds++) {
        code = (int)CU(cuLaunchKernel)(kernel, 1, 1, 1, 32, 1, 1, 0, stream, values, NULL);
        code = code ? code : (int)CU(cuStreamSynchronize)(stream);
    }
    churn->code = code;
    return NULL;
}

/* serve NAME MS NS...: for each length a thread with a stream has kernels that use the first words;
 * how many there were of each */
static int c_serve(char **w) {
    enum { MOST = 8 };
    struct churn all[MOST];
    pthread_t threads[MOST];
    size_t count = 0;
    int code = do_sync();
    const int64_t until = now_ns() + (int64_t)number(w[2]) * 1000000;
    for (; !code && w[3 + count] && count < MOST; count++) {
        all[count] =
            (struct churn){.from = argument(w[1]), .words = number(w[3 + count]), .until = until};
        code = (int)CU(cuCtxGetCurrent)(&all[count].context);
        if (pthread_create(&threads[count], NULL, serve_thread, &all[count]) != 0)
            return BAD;
    }
    for (size_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        code = code ? code : all[i].code;
        say(" %u", all[i].rounds);
    }
    return code;
}

const struct command churn_commands[] = {
    {"churn", "NAME WORDS THREADS MS [OTHER]", c_churn},
    {"flood", "NAME MS", c_flood},
    {"flooded", "", c_flooded},
    {"serve", "NAME MS NS...", c_serve},
    {0},
};
