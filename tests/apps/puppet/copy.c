/*
 * copy.c - what a program uploads, of bytes that follow from their place and a seed; other copies.
 */
#include "puppet.h"

static unsigned char pattern(size_t at, unsigned seed) {
    return (unsigned char)((at * 2654435761u >> 32) ^ at ^ seed); /* no two blocks are equal */
}

typedef CUresult sync_copy(CUdeviceptr to, const void *from, size_t count);
typedef CUresult async_copy(CUdeviceptr to, const void *from, size_t count, CUstream stream);

/* On a stream of its own, while another one that the legacy stream waits for is captured. */
static int upload_other_captured(u64 to, const void *from, size_t count) {
    CUstream captured, stream;
    CUgraph graph;
    int code = (int)CU(cuStreamCreate)(&captured, CU_STREAM_DEFAULT);
    code = code ? code : (int)CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
    code = code ? code : (int)CU(cuStreamBeginCapture)(captured, CU_STREAM_CAPTURE_MODE_RELAXED);
    code = code ? code : (int)CU(cuMemcpyHtoDAsync)(to, from, count, stream);
    const int ended = (int)CU(cuStreamEndCapture)(captured, &graph);
    return code ? code : ended;
}

/* While this thread captures. Such a copy does not end the capture, but a wait for a stream does.
 */
static int upload_capturing(u64 to, const void *from, size_t count) {
    CUstream captured;
    CUgraph graph;
    int code = (int)CU(cuStreamCreate)(&captured, CU_STREAM_NON_BLOCKING);
    if (!code)
        code = (int)CU(cuStreamBeginCapture)(captured, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    code = code ? code : do_write(to, from, count);
    const int ended = (int)CU(cuStreamEndCapture)(captured, &graph);
    return code ? code : ended;
}

/* A page of the source is without access until the handler of the thread that reads it opens it, as
 * those of loaders and collectors do. */
static pthread_t reader;
static volatile sig_atomic_t page_faults, elsewhere;
enum { GUARDED = 4096 };

static void open_page(int number, siginfo_t *info, void *unused) {
    page_faults++;
    elsewhere += !pthread_equal(pthread_self(), reader);
    mprotect((void *)((uintptr_t)info->si_addr / GUARDED * GUARDED), GUARDED, PROT_READ);
}

/* Or the handler leaves the copy. */
static sigjmp_buf copy_left;

static void leave_copy(int number, siginfo_t *info, void *unused) {
    page_faults++;
    siglongjmp(copy_left, 1);
}

static int write_until_left(u64 to, const void *from, size_t count) {
    return sigsetjmp(copy_left, 1) ? 0 : do_write(to, from, count);
}

static int upload_guarded(u64 to, void *from, size_t count, bool leaves) {
    const struct sigaction opens = {.sa_sigaction = leaves ? leave_copy : open_page,
                                    .sa_flags = SA_SIGINFO};
    struct sigaction before;
    void *page = (void *)(((uintptr_t)from + count / 2) / GUARDED * GUARDED);
    page_faults = elsewhere = 0;
    reader = pthread_self();
    sigaction(SIGSEGV, &opens, &before);
    mprotect(page, GUARDED, PROT_NONE);
    const int code = write_until_left(to, from, count);
    mprotect(page, GUARDED, PROT_READ | PROT_WRITE);
    sigaction(SIGSEGV, &before, NULL);
    say(" %d %d", (int)page_faults, (int)elsewhere);
    return code;
}

static int upload_by(const char *how, u64 to, void *from, size_t count) {
    if (strcmp(how, "sync") == 0 || strcmp(how, "forged") == 0 || strcmp(how, "beside") == 0 ||
        strcmp(how, "pinned-sync") == 0)
        return do_write(to, from, count);
    if (strcmp(how, "default") == 0)
        return (int)CU(cuMemcpy)(to, (uintptr_t)from, count);
    if (strcmp(how, "device") == 0)
        return (int)CU(cuMemcpyDtoD)(to, *(const u64 *)from, count);
    if (strcmp(how, "ptds") == 0)
        return (int)((sync_copy *)abi("cuMemcpyHtoD_v2_ptds"))(to, from, count);
    if (strcmp(how, "ptsz") == 0)
        return (int)((async_copy *)abi("cuMemcpyHtoDAsync_v2_ptsz"))(to, from, count, NULL);
    if (strcmp(how, "guarded") == 0 || strcmp(how, "left") == 0)
        return upload_guarded(to, from, count, strcmp(how, "left") == 0);
    if (strcmp(how, "other-captured") == 0)
        return upload_other_captured(to, from, count);
    if (strcmp(how, "capturing") == 0)
        return upload_capturing(to, from, count);
    return (int)CU(cuMemcpyHtoDAsync)(to, from, count, NULL); /* async, pinned */
}

/* Bytes that have one hash whatever the seed is, by XXH3's public secret: words that multiply to 0
 * in it only add up. */
static void forge(unsigned char *bytes, u64 seed) {
    const u64 words[] = {(seed << 32) | 0x396cfeb8, ((100 - seed) << 32) | 0x2c81017c};
    memcpy(bytes, &words[0], sizeof(words[0]));
    memcpy(bytes + 64, &words[1], sizeof(words[1]));
}

/* upload NAME OFFSET COUNT SEED HOW [POKE]: one byte of it, at POKE in the region, is another. */
static int c_upload(char **w) {
    const size_t offset = number(w[2]), count = number(w[3]);
    const unsigned seed = (unsigned)number(w[4]);
    const bool pinned = strncmp(w[5], "pinned", 6) == 0, forged = strcmp(w[5], "forged") == 0;
    const bool beside =
        strcmp(w[5], "beside") == 0; /* what the device does: it is not waited for */
    void *host = NULL;
    int code = beside ? 0 : do_sync(); /* makes a context, where there is none */
    if (!code && pinned)
        code = (int)CU(cuMemAllocHost)(&host, count);
    else if (!(host = malloc(count)))
        return BAD;
    for (size_t i = 0; !code && i < count; i++)
        ((unsigned char *)host)[i] = forged ? 0 : pattern(offset + i, seed);
    if (!code && forged)
        forge(host, number(w[4]));
    if (!code && w[6] && number(w[6]) - offset < count)
        ((unsigned char *)host)[number(w[6]) - offset] ^= 1;
    code = code ? code : upload_by(w[5], value(w[1]) + offset, host, count);
    const int synced = beside ? 0 : do_sync();
    if (pinned)
        CU(cuMemFreeHost)(host);
    else
        free(host);
    return code ? code : synced;
}

struct half {
    u64 to;
    const unsigned char *from;
    size_t count, piece;
    int code;
};

static void *upload_half(void *arg) {
    struct half *half = arg;
    const size_t piece = half->piece;
    for (size_t at = 0; !half->code && at < half->count; at += piece)
        half->code = do_write(half->to + at, half->from + at,
                              half->count - at < piece ? half->count - at : piece);
    return NULL;
}

/* halves NAME COUNT SEED PIECE: two threads upload half of it each, in pieces. */
static int c_halves(char **w) {
    const size_t count = number(w[2]), middle = count / 2, piece = number(w[4]);
    const unsigned seed = (unsigned)number(w[3]);
    unsigned char *host = malloc(count);
    pthread_t other;
    if (!host || !piece || do_sync() != 0)
        return BAD;
    for (size_t i = 0; i < count; i++)
        host[i] = pattern(i, seed);
    struct half low = {value(w[1]), host, middle, piece, 0};
    struct half high = {value(w[1]) + middle, host + middle, count - middle, piece, 0};
    if (pthread_create(&other, NULL, upload_half, &high) != 0)
        return BAD;
    upload_half(&low);
    pthread_join(other, NULL);
    free(host);
    return low.code ? low.code : high.code;
}

/* --- tensors, as engines load them --- */

struct tensor {
    size_t size, offset;
    unsigned seed;
};

/* Threads take one after the other in a shuffled order. Its place is behind the ones before. */
static struct {
    struct tensor all[WORDS], *order[WORDS];
    unsigned count, next;
    size_t end;
    u64 to;
    int code;
    pthread_mutex_t lock;
} engine = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct tensor *next_tensor(void) {
    struct tensor *one = NULL;
    pthread_mutex_lock(&engine.lock);
    if (engine.next < engine.count && !engine.code) {
        one = engine.order[engine.next++];
        one->offset = engine.end;
        engine.end += one->size;
    }
    pthread_mutex_unlock(&engine.lock);
    return one;
}

static void *load_tensors(void *unused) {
    for (struct tensor *one; (one = next_tensor());) {
        unsigned char *host = malloc(one->size);
        for (size_t i = 0; i < one->size; i++)
            host[i] = pattern(i, one->seed);
        const int code = do_write(engine.to + one->offset, host, one->size);
        free(host);
        if (code)
            engine.code = code;
    }
    return unused;
}

static void shuffle(unsigned seed) {
    for (unsigned i = 0; i < engine.count; i++)
        engine.order[i] = &engine.all[i];
    for (unsigned i = engine.count; i > 1; i--) {
        struct tensor **one = &engine.order[(unsigned)rand_r(&seed) % i], *other = *one;
        *one = engine.order[i - 1];
        engine.order[i - 1] = other;
    }
}

/* tensors NAME THREADS ORDER KIB...: loads so many into one allocation, side by side, each with the
 * seed of its number; says where each of them lies. */
static int c_tensors(char **w) {
    enum { MOST = 16 };
    pthread_t threads[MOST];
    const unsigned count = (unsigned)number(w[2]);
    if (count > MOST || do_sync() != 0)
        return BAD;
    engine.count = engine.next = 0;
    engine.end = 0;
    engine.code = 0;
    engine.to = value(w[1]);
    for (char **size = &w[4]; *size; size++, engine.count++)
        engine.all[engine.count] = (struct tensor){number(*size) << 10, 0, engine.count};
    shuffle((unsigned)number(w[3]));
    for (unsigned i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, load_tensors, NULL) != 0)
            return BAD;
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < engine.count; i++)
        say(" %zu", engine.all[i].offset);
    return engine.code;
}

/* expect NAME OFFSET COUNT SEED: "same", or the offset of the first byte that differs. */
static int c_expect(char **w) {
    const size_t offset = number(w[2]), count = number(w[3]);
    const unsigned seed = (unsigned)number(w[4]);
    unsigned char *host = malloc(count);
    size_t i = 0;
    if (!host)
        return BAD;
    const int code = do_read(host, value(w[1]) + offset, count);
    while (i < count && host[i] == pattern(offset + i, seed))
        i++;
    free(host);
    if (i == count)
        say(" same");
    else
        say(" %zu", offset + i);
    return code;
}

/* copy TO OFFSET FROM OFFSET COUNT [default]: on the device, of which the driver is told or not */
static int c_copy(char **w) {
    const u64 to = value(w[1]) + number(w[2]), from = value(w[3]) + number(w[4]);
    return (int)(w[6] ? CU(cuMemcpy)(to, from, number(w[5]))
                      : CU(cuMemcpyDtoD)(to, from, number(w[5])));
}

/* rows STREAM NAME OFFSET PITCH WIDTH HEIGHT BYTE: copies rows of one byte from the host */
static int c_rows(char **w) {
    const size_t width = number(w[5]), height = number(w[6]);
    unsigned char *host = malloc(width * height);
    if (!host)
        return BAD;
    memset(host, (int)number(w[7]), width * height);
    const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = host,
                                .srcPitch = width,
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = value(w[2]) + number(w[3]),
                                .dstPitch = number(w[4]),
                                .WidthInBytes = width,
                                .Height = height};
    int code = (int)CU(cuMemcpy2DAsync)(&copy, stream_of(w[1]));
    code = code ? code : (int)CU(cuStreamSynchronize)(stream_of(w[1]));
    free(host);
    return code;
}

/* box STREAM TO OFFSET FROM OFFSET PITCH WIDTH HEIGHT: copies rows, as one of many copies */
static int c_box(char **w) {
    const size_t width = number(w[7]), pitch = number(w[6]);
    CUDA_MEMCPY3D_BATCH_OP box = {.extent = {width, number(w[8]), 1},
                                  .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    box.dst.type = box.src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    box.dst.op.ptr.ptr = value(w[2]) + number(w[3]);
    box.src.op.ptr.ptr = value(w[4]) + number(w[5]);
    box.dst.op.ptr.rowLength = box.src.op.ptr.rowLength = pitch;
    return (int)CU(cuMemcpy3DBatchAsync)(1, &box, 0, stream_of(w[1]));
}

const struct command copy_commands[] = {
    {"upload", "NAME OFFSET COUNT SEED HOW [POKE]", c_upload},
    {"tensors", "NAME THREADS ORDER KIB...", c_tensors},
    {"halves", "NAME COUNT SEED PIECE", c_halves},
    {"expect", "NAME OFFSET COUNT SEED", c_expect},
    {"copy", "TO OFFSET FROM OFFSET COUNT [default]", c_copy},
    {"rows", "STREAM NAME OFFSET PITCH WIDTH HEIGHT BYTE", c_rows},
    {"box", "STREAM TO OFFSET FROM OFFSET PITCH WIDTH HEIGHT", c_box},
    {0},
};
