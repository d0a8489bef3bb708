/*
 * merging.c - memory of a merge rule; see worker.h.
 *
 * Each buffer has a copy in main memory, which says what each byte must be and from which all
 * uploads come. A thread has buffers and streams of its own, and before it turns to another stream
 * it waits for the one before, or has that stream wait for it: so every byte that is read, and
 * every sum, follows from its steps alone, whatever the other threads and processes do. Kernels
 * write only buffers to which nothing is uploaded, as rules with content = uploaded allow. 2 is
 * right for an allocation, and for a write of memory that may be merged, which needs a copy that
 * nobody has promised; for anything else only while somebody takes the whole card, or does not see
 * what others have promised.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../differ/random.h"
#include "worker.h"

enum { BUFFERS = 3, STREAMS = 4, MIB = 1 << 20, GUARD = 64 << 10, SOURCE = MIB };
enum { MOST = 33 * MIB, PART = MIB / 2, PARTS = MOST / PART }; /* a 64th of the largest block */

struct part {
    size_t from, size;
};

struct buffer {
    CUdeviceptr at; /* 0: there is none */
    size_t size;
    unsigned char *bytes;
    bool known;      /* what the bytes are */
    bool registered; /* `bytes` is */
    bool pooled;
    bool computed;        /* by kernels alone */
    bool uploaded[PARTS]; /* anything of it, ever */
};

/* Fills a part, copies to another, and may then add all words to `sum`. */
struct graph {
    CUgraphExec instance; /* NULL: there is none */
    struct buffer *buffer;
    struct part fill, copy;
    unsigned char byte;
    bool sums;
    CUgraph made;
    CUgraphNode filled; /* NULL: it is captured, and its instance cannot be changed */
};

/* What a thread has in the context of a generation. */
static struct mine {
    unsigned long generation;
    CUstream streams[STREAMS]; /* the legacy one, the thread's own, and two that wait for none */
    unsigned current;
    CUevent turned; /* ends the work of the stream before */
    bool elsewhere; /* in a second context, in which only the legacy stream is used */
    CUfunction read, write, add, spin;
    CUdeviceptr sum; /* a word, in memory that no rule takes */
    struct buffer buffers[BUFFERS];
    struct graph graph;
} all[THREADS];
static _Thread_local struct mine *mine;
static atomic_ulong generation = 1; /* of the device's context: each reset begins another */
static unsigned char source[SOURCE] __attribute__((aligned(GUARD))); /* of graphs' copies */
static char kernels[MIB];

static bool done(int code, const char *what) {
    if (code == CUDA_ERROR_OUT_OF_MEMORY && (is_hogged() || is_split())) {
        count(COUNT_lacked);
        return false;
    }
    expect(code, 0, what);
    return code == 0;
}
#define DONE(call) done(CALL(call), #call)

/* Whether a block that the part touches may be merged, by the rules of soak.py. Until copies have
 * reached each 64th of it, a block of quiet = 0 has the memory that it was promised. */
static bool may_be_merged(const struct buffer *buffer, struct part part) {
    const bool any = buffer->size >= 17 * MIB && buffer->size < 20 * MIB;  /* content = any */
    const bool half = buffer->size >= 13 * MIB && buffer->size < 15 * MIB; /* quiet > 0 */
    const size_t first = half ? 0 : part.from / BLOCK * BLOCK;
    const size_t end = half ? buffer->size : part.from + part.size;
    bool whole = false, touched = false;
    for (size_t at = first; at < end && !whole; at += BLOCK) {
        whole = true;
        for (size_t i = at / PART; i < (at + BLOCK) / PART && i * PART < buffer->size; i++) {
            whole &= buffer->uploaded[i];
            touched |= buffer->uploaded[i];
        }
    }
    return world.share && !buffer->pooled && (any || (half ? touched : whole));
}

/* A call that writes a part of the buffer, or records that a graph will. */
static bool wrote(const struct buffer *buffer, struct part part, int code, const char *what) {
    if (code == CUDA_ERROR_OUT_OF_MEMORY && may_be_merged(buffer, part)) {
        count(COUNT_lacked);
        return false;
    }
    return done(code, what);
}
#define WROTE(buffer, part, call) wrote(buffer, part, CALL(call), #call)

static bool uploaded(struct buffer *buffer, struct part part, int code, const char *what) {
    const bool written = wrote(buffer, part, code, what);
    for (size_t i = part.from / PART; i * PART < part.from + part.size; i++)
        buffer->uploaded[i] = true;
    return written;
}
#define UPLOADED(buffer, part, call) uploaded(buffer, part, CALL(call), #call)

static void wait_for_stream(void) {
    DONE(cuStreamSynchronize(mine->streams[mine->current]));
}

static CUstream turn_to(unsigned stream) {
    const CUstream before = mine->streams[mine->current], now = mine->streams[stream];
    if (mine->elsewhere)
        return NULL;
    if (stream != mine->current && dice(2)) {
        wait_for_stream();
    } else if (stream != mine->current) {
        DONE(cuEventRecord(mine->turned, before));
        DONE(cuStreamWaitEvent(now, mine->turned, 0));
    }
    mine->current = stream;
    return now;
}

static CUstream some_stream(void) {
    return turn_to(dice(STREAMS));
}

/* --- the pages of a source that has no access --- */

static struct guard {
    char *volatile page;
    volatile sig_atomic_t jumps;
} guards[THREADS];

/* As a collector's or a loader's: it lets the copy go on, or leaves it. */
static void on_fault(int number, siginfo_t *info, void *unused) {
    const char *const at = info->si_addr;
    (void)unused;
    for (unsigned i = 0; i < THREADS; i++) {
        char *const page = guards[i].page;
        if (!page || at < page || at >= page + GUARD)
            continue;
        if (guards[i].jumps && self && self->number == i && self->inside && self->jumpable) {
            count(COUNT_unsafe_jumps);
            siglongjmp(self->landing, 2);
        }
        count(COUNT_faults);
        mprotect(page, GUARD, PROT_READ | PROT_WRITE);
        return;
    }
    signal(number, SIG_DFL);
}

static void catch_faults(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
}

/* --- a context's beginning and end --- */

static void load_text(void) {
    const char *const path = getenv("SOAK_KERNELS");
    FILE *const file = path ? fopen(path, "re") : NULL;
    if (!file || fread(kernels, 1, sizeof(kernels) - 1, file) == 0)
        _exit(4);
    fclose(file);
    numbers_fill(source, SOURCE, 1);
    catch_faults();
}

static bool load_kernels(void) {
    CUmodule module;
    return DONE(cuModuleLoadData(&module, kernels)) &&
           DONE(cuModuleGetFunction(&mine->read, module, "test_read")) &&
           DONE(cuModuleGetFunction(&mine->write, module, "test_write")) &&
           DONE(cuModuleGetFunction(&mine->add, module, "test_add")) &&
           DONE(cuModuleGetFunction(&mine->spin, module, "test_spin"));
}

static bool enter_context(void) {
    CUcontext context;
    return DONE(cuInit(0)) && DONE(cuDevicePrimaryCtxRetain(&context, 0)) &&
           DONE(cuCtxSetCurrent(context));
}

/* Memory that a thread gets first may lack. */
static bool begin_context(void) {
    if (!enter_context())
        return false;
    const int code = CALL(cuMemAlloc(&mine->sum, 4096));
    expect_any(code, " 0 2 ", "cuMemAlloc");
    if (code || !load_kernels())
        return false;
    if (!DONE(cuEventCreate(&mine->turned, CU_EVENT_DISABLE_TIMING)))
        return false;
    mine->streams[1] = CU_STREAM_PER_THREAD;
    for (unsigned i = 2; i < STREAMS; i++)
        if (!DONE(cuStreamCreate(&mine->streams[i], CU_STREAM_NON_BLOCKING)))
            return false;
    world.started = 1;
    self->own_stream = true;
    return true;
}

/* Each thread meets it at its own next step. A card's driver needs descriptors for a context (304).
 */
static bool begin(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const unsigned long now = atomic_load(&generation);
    pthread_once(&once, load_text);
    mine = &all[self->number];
    if (mine->generation != now && !self->few && begin_context())
        mine->generation = now;
    return mine->generation == now;
}

/* --- buffers --- */

static struct buffer *some_buffer(void) {
    const unsigned first = dice(BUFFERS);
    for (unsigned i = 0; i < BUFFERS; i++)
        if (mine->buffers[(first + i) % BUFFERS].at)
            return &mine->buffers[(first + i) % BUFFERS];
    return NULL;
}

static struct buffer *known_buffer(void) {
    struct buffer *const buffer = some_buffer();
    return buffer && buffer->known ? buffer : NULL;
}

/* One that is written by copies. */
static struct buffer *uploaded_buffer(void) {
    struct buffer *const buffer = known_buffer();
    return buffer && !buffer->computed ? buffer : NULL;
}

/* All of it, a part at its end, or any. */
static struct part some_part(const struct buffer *buffer) {
    struct part part = {0, buffer->size};
    const unsigned kind = dice(4);
    if (kind == 0)
        return part;
    part.size = 1 + dice(kind == 1 ? 4096 : (unsigned)buffer->size);
    part.from = kind == 2 ? buffer->size - part.size : dice((unsigned)(buffer->size - part.size));
    return part;
}

/* By the rules of soak.py: the first three are for replicas only, the first six of rules with
 * content = uploaded, and the last one is rare. */
static size_t some_size(bool computed) {
    static const size_t sizes[] = {2 * MIB,  3 * MIB + 77, 5 * MIB,  7 * MIB, 9 * MIB + 77,
                                   13 * MIB, 17 * MIB,     19 * MIB, 33 * MIB};
    const unsigned first = world.replica ? 0 : 3;
    return sizes[first + dice((computed ? 6 : dice(8) ? 8 : 9) - first)];
}

static bool get_memory(struct buffer *buffer) {
    const int code = buffer->pooled
                         ? CALL(cuMemAllocAsync(&buffer->at, buffer->size, some_stream()))
                         : CALL(cuMemAlloc(&buffer->at, buffer->size));
    expect_any(code, " 0 2 ", "cuMemAlloc");
    if (code) {
        count(COUNT_out_of_memory);
        buffer->at = 0;
    }
    return code == 0;
}

static void make_buffer(struct buffer *buffer) {
    *buffer = (struct buffer){.pooled = !dice(6), .computed = !dice(6)};
    buffer->size = some_size(buffer->computed);
    if (!get_memory(buffer))
        return;
    buffer->bytes =
        mmap(NULL, buffer->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer->bytes == MAP_FAILED)
        _exit(4);
    if (!buffer->computed && !dice(3))
        buffer->registered = DONE(cuMemHostRegister(buffer->bytes, buffer->size, 0));
    count(COUNT_merge_buffers);
}

static void check_part(const struct buffer *buffer, struct part part, const char *when) {
    unsigned char *const got = malloc(part.size);
    const bool waits = dice(2);
    if (!got)
        _exit(4);
    const CUstream stream = turn_to(waits ? 0 : dice(STREAMS));
    const bool read = waits
                          ? DONE(cuMemcpyDtoH(got, buffer->at + part.from, part.size))
                          : DONE(cuMemcpyDtoHAsync(got, buffer->at + part.from, part.size, stream));
    wait_for_stream();
    const unsigned char *const bytes = buffer->bytes + part.from;
    if (read && memcmp(got, bytes, part.size) != 0) {
        size_t at = 0, differ = 0;
        while (got[at] == bytes[at])
            at++;
        for (size_t i = at; i < part.size; i++)
            differ += got[i] != bytes[i];
        wrong("merged bytes %s: %zu differ from %#llx+%zu on (size %zu): %02x instead of %02x",
              when, differ, (unsigned long long)buffer->at, part.from + at, buffer->size, got[at],
              bytes[at]);
    }
    free(got);
}

static void check_all(const struct buffer *buffer, const char *when) {
    if (buffer->known)
        check_part(buffer, (struct part){0, buffer->size}, when);
}

static void drop_graph(void) {
    wait_for_stream();
    if (mine->graph.instance)
        DONE(cuGraphExecDestroy(mine->graph.instance));
    if (mine->graph.made)
        DONE(cuGraphDestroy(mine->graph.made));
    mine->graph = (struct graph){.instance = NULL};
}

static void forget_buffer(struct buffer *buffer) {
    munmap(buffer->bytes, buffer->size);
    buffer->at = 0;
}

static void free_buffer(struct buffer *buffer) {
    if (mine->graph.buffer == buffer)
        drop_graph();
    check_all(buffer, "in the end");
    if (buffer->registered)
        DONE(cuMemHostUnregister(buffer->bytes));
    if (buffer->pooled || !dice(4))
        DONE(cuMemFreeAsync(buffer->at, some_stream()));
    else
        DONE(cuMemFree(buffer->at));
    forget_buffer(buffer);
}

/* --- uploads: `bytes` has them before the memory --- */

/* Most replicas upload the same. */
static uint64_t some_content(void) {
    return dice(6) ? 1 + dice(2) : 1000 + dice(1u << 20);
}

static void make_bytes(struct buffer *buffer, struct part part, uint64_t content) {
    if (buffer->registered) /* a copy may still read it */
        wait_for_stream();
    numbers_fill(buffer->bytes + part.from, part.size, content);
}

struct late {
    CUcontext context;
    CUdeviceptr to;
    const void *from;
    size_t size;
};

/* A thread that the library has not seen. */
static void *copy_late(void *argument) {
    const struct late *const late = argument;
    CUresult code = cuCtxSetCurrent(late->context);
    if (!code)
        code = cuMemcpyHtoD(late->to, late->from, late->size);
    return (void *)(uintptr_t)code;
}

static int upload_late(CUdeviceptr to, const void *from, size_t size) {
    struct late late = {.to = to, .from = from, .size = size};
    pthread_t thread;
    void *code = NULL;
    if (cuCtxGetCurrent(&late.context) || pthread_create(&thread, NULL, copy_late, &late) != 0)
        return (int)cuMemcpyHtoD(to, from, size);
    pthread_join(thread, &code);
    count(COUNT_late_threads);
    return (int)(uintptr_t)code;
}

static int upload_guarded(CUdeviceptr to, unsigned char *from, size_t size) {
    struct guard *const guard = &guards[self->number];
    const uintptr_t page = ((uintptr_t)from + GUARD - 1) / GUARD * GUARD;
    const bool has_page = page + GUARD <= (uintptr_t)from + size;
    guard->jumps = !dice(150) && !(world.without && strstr(world.without, "trouble"));
    guard->page = has_page ? (char *)page : NULL;
    if (has_page)
        mprotect((void *)page, GUARD, PROT_NONE);
    const int code = (int)cuMemcpyHtoD(to, from, size);
    guard->page = NULL;
    if (has_page)
        mprotect((void *)page, GUARD, PROT_READ | PROT_WRITE);
    return code;
}

static bool upload(struct buffer *buffer, struct part part) {
    const CUdeviceptr to = buffer->at + part.from;
    unsigned char *const from = buffer->bytes + part.from;
    const unsigned way = dice(6);
    const CUstream stream = turn_to(way == 1 || way == 2 ? dice(STREAMS) : 0);
    if (way == 0)
        return UPLOADED(buffer, part, cuMemcpy(to, (CUdeviceptr)(uintptr_t)from, part.size));
    if (way == 3)
        return UPLOADED(buffer, part, upload_late(to, from, part.size));
    if (way == 4 && !buffer->registered)
        return UPLOADED(buffer, part, upload_guarded(to, from, part.size));
    if (way > 2)
        return UPLOADED(buffer, part, cuMemcpyHtoD(to, from, part.size));
    const bool copied = UPLOADED(buffer, part, cuMemcpyHtoDAsync(to, from, part.size, stream));
    if (!buffer->registered)
        wait_for_stream();
    return copied;
}

static void load(struct buffer *buffer) {
    const size_t pieces = 1 + dice(4);
    make_bytes(buffer, (struct part){0, buffer->size}, dice(8) ? 1 : some_content());
    buffer->known = true;
    for (size_t i = 0; i < pieces; i++) {
        const size_t from = buffer->size / pieces * i;
        const size_t end = i + 1 == pieces ? buffer->size : buffer->size / pieces * (i + 1);
        buffer->known &= upload(buffer, (struct part){from, end - from});
    }
}

static void clear(struct buffer *buffer) {
    memset(buffer->bytes, 5, buffer->size);
    buffer->known = WROTE(buffer, ((struct part){0, buffer->size}),
                          cuMemsetD8Async(buffer->at, 5, buffer->size, some_stream()));
}

/* --- steps --- */

static void do_buffer(void) {
    struct buffer *const buffer = &mine->buffers[dice(BUFFERS)];
    if (!buffer->at)
        make_buffer(buffer);
    else if (!buffer->known || !dice(3))
        (buffer->computed ? clear : load)(buffer);
    else if (!dice(3))
        free_buffer(buffer);
}

static void do_check(void) {
    struct buffer *const buffer = known_buffer();
    if (buffer)
        check_part(buffer, some_part(buffer), "later");
}

static void do_upload(void) {
    struct buffer *const buffer = uploaded_buffer();
    if (!buffer)
        return;
    const struct part part = some_part(buffer);
    if (dice(2)) /* else what is there already */
        make_bytes(buffer, part, some_content());
    buffer->known = upload(buffer, part);
}

static void do_fill(void) {
    struct buffer *const buffer = known_buffer();
    if (!buffer)
        return;
    const struct part part = some_part(buffer);
    const unsigned char byte = (unsigned char)dice(3);
    if (buffer->registered)
        wait_for_stream();
    memset(buffer->bytes + part.from, byte, part.size);
    if (dice(2))
        turn_to(0);
    buffer->known =
        mine->current == 0
            ? WROTE(buffer, part, cuMemsetD8(buffer->at + part.from, byte, part.size))
            : WROTE(buffer, part,
                    cuMemsetD8Async(buffer->at + part.from, byte, part.size, some_stream()));
}

static void do_copy(void) {
    struct buffer *const to = uploaded_buffer(), *const from = known_buffer();
    if (!to || !from || from == to)
        return;
    const size_t least = from->size < to->size ? from->size : to->size;
    const size_t size = dice(2) ? least : 1 + dice((unsigned)least);
    const size_t target = dice((unsigned)(to->size - size) + 1);
    const size_t begin = dice((unsigned)(from->size - size) + 1);
    if (to->registered)
        wait_for_stream();
    memcpy(to->bytes + target, from->bytes + begin, size);
    const struct part part = {target, size};
    const CUstream stream = some_stream();
    to->known =
        mine->current == 0
            ? WROTE(to, part, cuMemcpyDtoD(to->at + target, from->at + begin, size))
            : WROTE(to, part, cuMemcpyDtoDAsync(to->at + target, from->at + begin, size, stream));
}

static void do_rows(void) {
    struct buffer *const buffer = uploaded_buffer();
    if (!buffer)
        return;
    const size_t pitch = 1024 + dice(4096), width = 1 + dice(1024), height = 1 + dice(256);
    const size_t from = dice((unsigned)(buffer->size - pitch * height));
    const CUDA_MEMCPY2D copy = {.dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = buffer->at + from,
                                .dstPitch = pitch,
                                .srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = buffer->bytes + from,
                                .srcPitch = pitch,
                                .WidthInBytes = width,
                                .Height = height};
    for (size_t row = 0; row < height; row++)
        make_bytes(buffer, (struct part){from + row * pitch, width}, some_content());
    const CUstream stream = some_stream();
    const struct part part = {from, pitch * height};
    buffer->known = mine->current == 0 ? UPLOADED(buffer, part, cuMemcpy2D(&copy))
                                       : UPLOADED(buffer, part, cuMemcpy2DAsync(&copy, stream));
    wait_for_stream();
}

/* Rows and words: what else is filled. */
static void do_fill_rows(void) {
    struct buffer *const buffer = uploaded_buffer();
    if (!buffer)
        return;
    const size_t pitch = 1024 + dice(4096), width = 1 + dice(1024), height = 1 + dice(256);
    const size_t from = dice((unsigned)(buffer->size - pitch * height));
    const unsigned char byte = (unsigned char)dice(256);
    const struct part part = {from / 4 * 4, pitch * height};
    const bool one_word = dice(2);
    const uint32_t word = 0x01010101u * byte;
    if (buffer->registered)
        wait_for_stream();
    const CUstream stream = some_stream();
    if (one_word && !buffer->pooled) { /* a card refuses it there */
        memset(buffer->bytes + from / 4 * 4, byte, sizeof(word));
        buffer->known =
            WROTE(buffer, part, cuStreamWriteValue32(stream, buffer->at + from / 4 * 4, word, 0));
        return;
    }
    for (size_t row = 0; row < height; row++)
        memset(buffer->bytes + from + row * pitch, byte, width);
    buffer->known = WROTE(buffer, part,
                          cuMemsetD2D8Async(buffer->at + from, pitch, byte, width, height, stream));
}

/* Answered with 1, and nothing is written. */
static void do_past_the_end(void) {
    static unsigned char bytes[8192];
    struct buffer *const buffer = known_buffer();
    if (!buffer || buffer->pooled)
        return;
    const size_t before = 1 + dice(4096), size = before + 1 + dice(4095);
    const CUdeviceptr at = buffer->at + buffer->size - before;
    const CUstream stream = some_stream();
    expect(dice(2) ? CALL(cuMemcpyHtoDAsync(at, bytes, size, stream))
                   : CALL(cuMemsetD8Async(at, 1, size, stream)),
           1, "a copy past the end");
    check_part(buffer, (struct part){buffer->size - before, before}, "after a copy past the end");
}

/* --- kernels --- */

static bool launch(CUfunction kernel, CUstream stream, void **arguments) {
    count(COUNT_launches);
    return DONE(cuLaunchKernel(kernel, 64, 1, 1, 256, 1, 1, 0, stream, arguments, NULL));
}

static uint32_t sum_of(const struct buffer *buffer) {
    uint32_t sum = 0, word;
    for (size_t at = 0; at + sizeof(word) <= buffer->size; at += sizeof(word)) {
        memcpy(&word, buffer->bytes + at, sizeof(word));
        sum += word;
    }
    return sum;
}

static void check_sum(const struct buffer *buffer, const char *when) {
    uint32_t sum = 0;
    turn_to(0);
    if (DONE(cuMemcpyDtoH(&sum, mine->sum, sizeof(sum))) && sum != sum_of(buffer))
        wrong("a kernel read other bytes, %s: %#llx, size %zu", when,
              (unsigned long long)buffer->at, buffer->size);
}

static bool add_up(CUfunction kernel, const struct buffer *buffer, CUstream stream) {
    CUdeviceptr from = buffer->at, sum = mine->sum;
    uint64_t words = buffer->size / 4;
    void *arguments[] = {&from, &words, &sum};
    return launch(kernel, stream, arguments);
}

static void do_read(void) {
    struct buffer *const buffer = known_buffer();
    if (!buffer)
        return;
    const CUstream stream = some_stream();
    if (DONE(cuMemsetD32Async(mine->sum, 0, 1, stream)) && add_up(mine->read, buffer, stream))
        check_sum(buffer, "in a launch");
}

/* It works on while the next steps go on. */
static void do_spin(void) {
    const struct buffer *const buffer = some_buffer();
    if (!buffer)
        return;
    CUdeviceptr from = buffer->at, sum = mine->sum + 64;
    uint64_t words = 4096, nanoseconds = 200000 + 1000 * (uint64_t)dice(5000);
    void *arguments[] = {&from, &words, &nanoseconds, &sum};
    launch(mine->spin, some_stream(), arguments);
}

static void do_compute(void) {
    struct buffer *const buffer = known_buffer();
    if (!buffer || !buffer->computed)
        return;
    const bool adds = dice(2);
    CUdeviceptr to = buffer->at;
    uint64_t words = 1 + dice((unsigned)buffer->size / 4);
    uint32_t value = dice(1000), word;
    void *arguments[] = {&to, &words, &value};
    for (size_t i = 0; i < words; i++) {
        memcpy(&word, buffer->bytes + 4 * i, sizeof(word));
        word = adds ? word + value : value;
        memcpy(buffer->bytes + 4 * i, &word, sizeof(word));
    }
    buffer->known = launch(adds ? mine->add : mine->write, some_stream(), arguments);
}

/* --- captures and graphs --- */

static struct part part_for_source(const struct buffer *buffer) {
    struct part part = some_part(buffer);
    if (part.size > SOURCE)
        part.size = SOURCE;
    return part;
}

/* Something else of this thread's, on another stream. */
static void work_beside(void) {
    struct buffer *const other = uploaded_buffer();
    const unsigned before = mine->current;
    nap(dice(4));
    if (!other || other == mine->graph.buffer || !dice(2))
        return;
    const struct part part = some_part(other);
    mine->current = 0; /* nobody waits for a stream that is captured */
    numbers_fill(other->bytes + part.from, part.size, some_content());
    other->known = UPLOADED(
        other, part, cuMemcpyHtoD(other->at + part.from, other->bytes + part.from, part.size));
    mine->current = before;
}

static bool capture(struct graph *graph) {
    const CUdeviceptr at = graph->buffer->at;
    const CUstream stream = turn_to(2 + dice(STREAMS - 2));
    wait_for_stream();
    if (!DONE(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED)))
        return false;
    count(COUNT_captures);
    bool whole =
        WROTE(graph->buffer, graph->fill,
              cuMemsetD8Async(at + graph->fill.from, graph->byte, graph->fill.size, stream)) &&
        UPLOADED(graph->buffer, graph->copy,
                 cuMemcpyHtoDAsync(at + graph->copy.from, source, graph->copy.size, stream));
    if (whole && graph->sums)
        whole = DONE(cuMemsetD32Async(mine->sum, 0, 1, stream)) &&
                add_up(mine->read, graph->buffer, stream);
    work_beside();
    return DONE(cuStreamEndCapture(stream, &graph->made)) && whole;
}

static CUDA_MEMSET_NODE_PARAMS fill_node(const struct graph *graph) {
    return (CUDA_MEMSET_NODE_PARAMS){.dst = graph->buffer->at + graph->fill.from,
                                     .value = graph->byte,
                                     .elementSize = 1,
                                     .width = graph->fill.size,
                                     .height = 1};
}

static bool add_nodes(struct graph *graph, CUcontext context) {
    const CUDA_MEMSET_NODE_PARAMS fill = fill_node(graph);
    const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = source,
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = graph->buffer->at + graph->copy.from,
                                .WidthInBytes = graph->copy.size,
                                .Height = 1,
                                .Depth = 1};
    CUgraphNode copied;
    return DONE(cuGraphCreate(&graph->made, 0)) &&
           WROTE(graph->buffer, graph->fill,
                 cuGraphAddMemsetNode(&graph->filled, graph->made, NULL, 0, &fill, context)) &&
           UPLOADED(graph->buffer, graph->copy,
                    cuGraphAddMemcpyNode(&copied, graph->made, &graph->filled, 1, &copy, context));
}

static void change_graph(struct graph *graph, CUcontext context) {
    const struct graph before = *graph;
    wait_for_stream();
    graph->fill = some_part(graph->buffer);
    graph->byte++;
    const CUDA_MEMSET_NODE_PARAMS fill = fill_node(graph);
    if (!WROTE(graph->buffer, graph->fill,
               cuGraphExecMemsetNodeSetParams(graph->instance, graph->filled, &fill, context)))
        *graph = before;
}

static void make_graph(struct buffer *buffer, CUcontext context) {
    struct graph *const graph = &mine->graph;
    const bool captured = world.replica && dice(2); /* others wait for the device, which is 900 */
    drop_graph();
    *graph = (struct graph){.buffer = buffer,
                            .fill = some_part(buffer),
                            .copy = part_for_source(buffer),
                            .byte = (unsigned char)dice(256),
                            .sums = captured && dice(2)};
    if (captured ? capture(graph) : add_nodes(graph, context))
        DONE(cuGraphInstantiateWithFlags(&graph->instance, graph->made, 0));
}

static void launch_graph(const struct graph *graph) {
    struct buffer *const buffer = graph->buffer;
    if (buffer->registered)
        wait_for_stream();
    memset(buffer->bytes + graph->fill.from, graph->byte, graph->fill.size);
    memcpy(buffer->bytes + graph->copy.from, source, graph->copy.size);
    count(COUNT_graph_launches);
    if (!DONE(cuGraphLaunch(graph->instance, some_stream())))
        buffer->known = false;
    else if (graph->sums && buffer->known)
        check_sum(buffer, "in a graph");
}

static void do_graph(void) {
    struct graph *const graph = &mine->graph;
    struct buffer *const buffer = uploaded_buffer();
    CUcontext context = NULL;
    DONE(cuCtxGetCurrent(&context));
    if (graph->instance && graph->filled && !dice(4))
        change_graph(graph, context);
    else if (graph->instance && dice(3))
        launch_graph(graph);
    else if (buffer)
        make_graph(buffer, context);
}

/* A stream that ends while it is captured. */
static void do_broken_capture(void) {
    CUstream stream;
    if (!world.replica || !DONE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)))
        return;
    DONE(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    nap(dice(3));
    DONE(cuStreamDestroy(stream));
}

/* --- contexts --- */

static void use_context(struct buffer *buffer) {
    CUmodule module;
    CUfunction read;
    struct buffer own = {.size = 7 * MIB};
    const struct part part = some_part(buffer);
    check_part(buffer, part, "in a second context");
    if (DONE(cuModuleLoadData(&module, kernels)) &&
        DONE(cuModuleGetFunction(&read, module, "test_read")) &&
        DONE(cuMemsetD8(mine->sum, 0, 4)) && add_up(read, buffer, NULL))
        check_sum(buffer, "in a second context");
    if (!buffer->computed) {
        make_bytes(buffer, part, some_content());
        buffer->known =
            UPLOADED(buffer, part,
                     cuMemcpyHtoD(buffer->at + part.from, buffer->bytes + part.from, part.size));
    }
    if (get_memory(&own)) /* it ends with its context */
        DONE(cuMemcpyHtoD(own.at, source, SOURCE));
}

static void do_context(void) {
    struct buffer *const buffer = known_buffer();
    CUcontext other = NULL, popped;
    if (!buffer)
        return;
    turn_to(0);
    wait_for_stream();
    const int code = CALL(cuCtxCreate(&other, NULL, 0, 0));
    expect_any(code, self->few ? " 0 2 304 " : " 0 2 ", "cuCtxCreate");
    if (code)
        return;
    count(COUNT_contexts);
    mine->elsewhere = true;
    use_context(buffer);
    mine->elsewhere = false;
    DONE(cuCtxSynchronize());
    DONE(cuCtxPopCurrent(&popped));
    DONE(cuCtxDestroy(other));
}

static void unregister_all(const struct mine *of) {
    for (unsigned i = 0; i < BUFFERS; i++)
        if (of->buffers[i].at && of->buffers[i].registered)
            DONE(cuMemHostUnregister(of->buffers[i].bytes));
}

/* Alone in the process. */
void step_reset(void) {
    CUstream stream;
    if (!begin())
        return;
    DONE(cuCtxSynchronize());
    for (unsigned i = 0; i < THREADS; i++)
        unregister_all(&all[i]);
    if (!dice(4) && DONE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)))
        DONE(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    count(COUNT_resets);
    expect(CALL(cudaDeviceReset()), 0, "cudaDeviceReset");
    atomic_fetch_add(&generation, 1);
    for (unsigned i = 0; i < THREADS; i++) {
        for (unsigned j = 0; j < BUFFERS; j++)
            if (all[i].buffers[j].at)
                forget_buffer(&all[i].buffers[j]);
        memset(&all[i], 0, sizeof(all[i]));
    }
}

static const struct {
    unsigned share;
    void (*act)(void);
} kinds[] = {{16, do_buffer},        {6, do_check},  {8, do_upload},    {3, do_fill},
             {5, do_copy},           {3, do_rows},   {3, do_fill_rows}, {2, do_past_the_end},
             {4, do_read},           {4, do_spin},   {4, do_compute},   {4, do_graph},
             {1, do_broken_capture}, {1, do_context}};

void step_merge(void) {
    unsigned sum = 0, at = 0;
    if (!begin())
        return;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        sum += kinds[i].share;
    for (sum = dice(sum); sum >= kinds[at].share; at++)
        sum -= kinds[at].share;
    kinds[at].act();
}

/* All that the thread `self` has, by the one that ends the process. */
void free_merging(void) {
    if (!all[self->number].generation || !enter_context() || !begin())
        return;
    DONE(cuCtxSynchronize());
    mine->current = 0;
    for (unsigned i = 0; i < BUFFERS; i++)
        if (mine->buffers[i].at)
            free_buffer(&mine->buffers[i]);
}
