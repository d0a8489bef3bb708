/*
 * steps.c - what a step may do: one table of them, each with how often it is drawn.
 *
 * A step's results follow from the seed alone, and not from when its work runs: what one stream
 * works on is waited for before another one uses it. A fill, and a copy from pageable memory, may
 * still run on a card when their call has returned. Kernels write only what no rule takes.
 */
#include "program.h"

struct step {
    struct replica *replica;
    struct numbers numbers;
};

static uint64_t below(struct step *step, uint64_t end) {
    return number_below(&step->numbers, end);
}

static void note(struct step *step, CUresult code) {
    device_note(step->replica, (int)code);
}

/* One that exists, or NULL. */
static struct buffer *some_buffer(struct step *step) {
    struct replica *const replica = step->replica;
    const size_t first = below(step, BUFFERS);
    for (size_t i = 0; i < BUFFERS; i++) {
        struct buffer *const buffer = &replica->buffers[(first + i) % BUFFERS];
        if (buffer->at)
            return buffer;
    }
    return NULL;
}

static int index_of(const struct step *step, const struct buffer *buffer) {
    return (int)(buffer - step->replica->buffers);
}

static int some_stream(struct step *step) {
    return (int)below(step, STREAMS);
}

/* A part of a buffer: all of it, a part that begins and ends anywhere, or one that ends at the end.
 */
struct part {
    size_t from, size;
};
static struct part some_part(struct step *step, const struct buffer *buffer) {
    struct part part = {0, buffer->size};
    if (one_of(&step->numbers, 2)) {
        part.from = below(step, buffer->size);
        part.size = 1 + below(step, buffer->size - part.from);
    } else if (one_of(&step->numbers, 2)) {
        part.size = 1 + below(step, buffer->size < 4 * MIB ? buffer->size : 4 * MIB);
        part.from = buffer->size - part.size;
    }
    return part;
}

/* --- what fills memory --- */

/* Most replicas upload the same; now and then each has bytes of its own. */
static uint64_t content(struct step *step) {
    uint64_t seed = 1 + below(step, 4) + step->replica->seed % 97;
    if (one_of(&step->numbers, 5))
        seed = seed * 8 + 1000 + step->replica->number;
    return seed;
}

enum source { PAGEABLE, FROM_PINNED, FROM_REGISTERED, SOURCES };
static const char *const source_names[] = {"pageable", "pinned", "registered"};

/* The bytes at `from` of what this seed makes; equal parts of equal uploads are equal. */
static void copy_in(struct step *step, struct buffer *buffer, struct part part, int stream,
                    const unsigned char *bytes, bool sync) {
    const CUdeviceptr to = buffer->at + part.from;
    device_claim(step->replica, buffer, sync ? 0 : stream);
    note(step, sync ? cuMemcpyHtoD(to, bytes, part.size)
                    : cuMemcpyHtoDAsync(to, bytes, part.size, step->replica->streams[stream]));
}

static void upload(struct step *step, struct buffer *buffer, struct part part) {
    struct replica *const replica = step->replica;
    const uint64_t seed = content(step);
    const int stream = some_stream(step);
    const enum source source = part.size <= PINNED ? (enum source)below(step, SOURCES) : PAGEABLE;
    const bool sync = one_of(&step->numbers, 2);
    const size_t pieces = one_of(&step->numbers, 2) ? 1 : 1 + below(step, 5);
    unsigned char *const own = source == PAGEABLE ? malloc(buffer->size) : NULL;
    unsigned char *const bytes = source == FROM_PINNED       ? replica->pinned
                                 : source == FROM_REGISTERED ? replica->registered
                                                             : own;
    replica_say(step->replica, "upload %d +%zu %zu seed %lu %s %s stream %d in %zu",
                index_of(step, buffer), part.from, part.size, (unsigned long)seed,
                source_names[source], sync ? "sync" : "async", stream, pieces);
    if (!bytes)
        abort();
    note(step, cuCtxSynchronize()); /* the source may be in use */
    numbers_fill(bytes, part.size, seed);
    for (size_t i = 0, done = 0; i < pieces; i++) {
        const size_t end = i + 1 == pieces ? part.size : part.size / pieces * (i + 1);
        copy_in(step, buffer, (struct part){part.from + done, end - done}, stream, bytes + done,
                sync);
        done = end;
    }
    if (own && !sync)
        device_finish(replica, buffer);
    free(own);
}

static void fill(struct step *step, struct buffer *buffer, struct part part) {
    struct replica *const replica = step->replica;
    const int stream = some_stream(step);
    const unsigned char byte = (unsigned char)below(step, 3);
    const CUdeviceptr at = buffer->at + part.from;
    const unsigned kind = (unsigned)below(step, 5);
    replica_say(step->replica, "fill %d +%zu %zu with %d kind %u stream %d", index_of(step, buffer),
                part.from, part.size, byte, kind, stream);
    device_claim(replica, buffer, kind == 0 ? 0 : stream);
    if (kind == 0)
        note(step, cuMemsetD8(at, byte, part.size));
    else if (kind == 1)
        note(step, cuMemsetD8Async(at, byte, part.size, replica->streams[stream]));
    else if (kind == 2)
        note(step,
             cuMemsetD32Async(at & ~UINT64_C(3), byte, part.size / 4, replica->streams[stream]));
    else if (kind == 3 && part.size >= 4)
        note(step, cuStreamWriteValue32(replica->streams[stream], at & ~UINT64_C(3), byte, 0));
    else
        note(step, cuMemsetD2D8Async(at, part.size / 4 + 1, byte, part.size / 8 + 1,
                                     part.size >= 64 ? 3 : 1, replica->streams[stream]));
}

static void do_upload(struct step *step) {
    struct buffer *const buffer = some_buffer(step);
    if (buffer)
        upload(step, buffer, some_part(step, buffer));
}

static void do_fill(struct step *step) {
    struct buffer *const buffer = some_buffer(step);
    if (buffer)
        fill(step, buffer, some_part(step, buffer));
}

/* --- allocations --- */

static size_t some_size(struct step *step) {
    static const size_t sizes[] = {MIB / 2,      2 * MIB,      2 * MIB + 256, 3 * MIB,
                                   4 * MIB,      5 * MIB + 77, 6 * MIB + 1,   8 * MIB,
                                   12 * MIB + 5, 20 * MIB,     33 * MIB,      40 * MIB};
    return sizes[below(step, one_of(&step->numbers, 3) ? 12 : 8)];
}

static void allocate(struct step *step, struct buffer *buffer) {
    buffer->size = some_size(step);
    buffer->pooled = one_of(&step->numbers, 6);
    replica_say(step->replica, "allocate %d %zu%s; ", index_of(step, buffer), buffer->size,
                buffer->pooled ? " from the pool" : "");
    const CUresult code = buffer->pooled ? cuMemAllocAsync(&buffer->at, buffer->size, NULL)
                                         : cuMemAlloc(&buffer->at, buffer->size);
    note(step, code);
    if (code) {
        buffer->at = 0;
        return;
    }
    if (buffer->pooled)
        note(step, cuStreamSynchronize(NULL));
    const struct part all = {0, buffer->size};
    if (one_of(&step->numbers, 4)) {
        device_claim(step->replica, buffer, 0);
        note(step, cuMemsetD8(buffer->at, 7, buffer->size));
        replica_say(step->replica, "filled");
    } else {
        upload(step, buffer, all);
    }
}

static void release(struct step *step, struct buffer *buffer) {
    replica_say(step->replica, "free %d; ", index_of(step, buffer));
    if (buffer->pooled) {
        device_finish(step->replica, buffer);
        note(step, cuMemFreeAsync(buffer->at, NULL));
    } else if (one_of(&step->numbers, 4)) {
        const int stream = some_stream(step);
        replica_say(step->replica, "on stream %d; ", stream);
        device_claim(step->replica, buffer, stream);
        note(step, cuMemFreeAsync(buffer->at, step->replica->streams[stream]));
    } else {
        note(step, cuMemFree(buffer->at));
    }
    buffer->at = 0;
    buffer->stream = -1;
}

static void do_allocate(struct step *step) {
    struct buffer *const buffer = &step->replica->buffers[below(step, BUFFERS)];
    if (buffer->at)
        release(step, buffer);
    allocate(step, buffer);
}

static void do_free(struct step *step) {
    struct buffer *const buffer = some_buffer(step);
    if (buffer)
        release(step, buffer);
}

/* --- copies between buffers --- */

static void do_copy(struct step *step) {
    struct replica *const replica = step->replica;
    struct buffer *const from = some_buffer(step), *const to = some_buffer(step);
    if (!from || from == to)
        return;
    const int stream = some_stream(step);
    const size_t least = from->size < to->size ? from->size : to->size;
    const size_t size = one_of(&step->numbers, 2) ? least : 1 + below(step, least);
    const size_t source = below(step, from->size - size + 1),
                 target = below(step, to->size - size + 1);
    const unsigned kind = (unsigned)below(step, 4);
    replica_say(step->replica, "copy %d +%zu to %d +%zu, %zu, kind %u stream %d",
                index_of(step, from), source, index_of(step, to), target, size, kind, stream);
    const int used = kind == 0 || kind == 2 ? 0 : stream;
    device_claim(replica, from, used);
    device_claim(replica, to, used);
    if (kind == 0)
        note(step, cuMemcpyDtoD(to->at + target, from->at + source, size));
    else if (kind == 1)
        note(step,
             cuMemcpyDtoDAsync(to->at + target, from->at + source, size, replica->streams[stream]));
    else if (kind == 2)
        note(step, cuMemcpy(to->at + target, from->at + source, size));
    else
        note(step,
             cuMemcpyAsync(to->at + target, from->at + source, size, replica->streams[stream]));
}

/* Rows from pageable memory, or of another buffer. */
static void do_rows(struct step *step) {
    struct replica *const replica = step->replica;
    struct buffer *const to = some_buffer(step), *const from = some_buffer(step);
    if (!to || to->size < MIB)
        return;
    const bool host = one_of(&step->numbers, 2) || from == to;
    const size_t pitch = 1024 + below(step, 4096), width = 1 + below(step, 1024);
    const size_t height = 1 + below(step, 256);
    const size_t at = below(step, to->size - pitch * height > to->size ? 1 : to->size - MIB / 2);
    if (at + pitch * height > to->size || (!host && pitch * height > from->size))
        return;
    const int stream = some_stream(step);
    replica_say(step->replica, "rows %zu of %zu, pitch %zu, to %d +%zu from %d stream %d", height,
                width, pitch, index_of(step, to), at, host ? -1 : index_of(step, from), stream);
    device_claim(replica, to, stream);
    CUDA_MEMCPY2D copy = {.dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = to->at + at,
                          .dstPitch = pitch,
                          .WidthInBytes = width,
                          .Height = height,
                          .srcPitch = pitch};
    unsigned char *const bytes = malloc(pitch * height);
    if (!bytes)
        abort();
    numbers_fill(bytes, pitch * height, content(step));
    if (host) {
        copy.srcMemoryType = CU_MEMORYTYPE_HOST;
        copy.srcHost = bytes;
    } else {
        device_claim(replica, from, stream);
        copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.srcDevice = from->at;
    }
    note(step, one_of(&step->numbers, 2) && stream == 0
                   ? cuMemcpy2D(&copy)
                   : cuMemcpy2DAsync(&copy, replica->streams[stream]));
    device_finish(replica, to);
    free(bytes);
}

/* Reaches past the end of an allocation: the driver answers 1 and touches nothing. */
static void do_past_the_end(struct step *step) {
    struct buffer *const buffer = some_buffer(step);
    if (!buffer || buffer->pooled || buffer->size < 2 * MIB)
        return;
    static unsigned char bytes[8192];
    const size_t before = 1 + below(step, 4096), size = before + 1 + below(step, 4096);
    const CUdeviceptr at = buffer->at + buffer->size - before;
    const CUstream stream = step->replica->streams[some_stream(step)];
    const CUdeviceptr scratch = step->replica->scratch.at;
    const unsigned kind = (unsigned)below(step, 7);
    note(step, cuCtxSynchronize());
    replica_say(step->replica, "past the end of %d by %zu, kind %u", index_of(step, buffer),
                size - before, kind);
    note(step, kind == 0   ? cuMemcpyHtoD(at, bytes, size)
               : kind == 1 ? cuMemsetD8(at, 1, size)
               : kind == 2 ? cuMemcpyDtoH(bytes, at, size)
               : kind == 3 ? cuMemcpyHtoDAsync(at, bytes, size, stream)
               : kind == 4 ? cuMemcpyDtoD(at, scratch, size)
               : kind == 5 ? cuMemcpyDtoD(scratch, at, size)
                           : cuMemsetD2D8(at, 2 * size, 1, size, 2));
}

/* --- kernels --- */

static void do_kernel_read(struct step *step) {
    struct replica *const replica = step->replica;
    struct buffer *const buffer = some_buffer(step);
    if (!buffer)
        return;
    const int stream = some_stream(step);
    CUdeviceptr from = buffer->at, sum = replica->sum.at;
    uint64_t words = buffer->size / 4;
    void *arguments[] = {&from, &words, &sum};
    replica_say(step->replica, "kernel reads %d stream %d", index_of(step, buffer), stream);
    device_claim(replica, buffer, stream);
    device_claim(replica, &replica->sum, stream);
    note(step, device_launch(replica, replica->read, stream, arguments));
    device_read(replica, &replica->sum, 0, 4);
}

static void do_kernel_write(struct step *step) {
    struct replica *const replica = step->replica;
    const int stream = some_stream(step);
    CUdeviceptr to = replica->scratch.at;
    uint64_t words = SCRATCH / 4;
    uint32_t value = (uint32_t)below(step, 1000);
    void *arguments[] = {&to, &words, &value};
    const bool adds = one_of(&step->numbers, 2);
    replica_say(step->replica, "kernel %s scratch %u stream %d", adds ? "adds to" : "writes", value,
                stream);
    device_claim(replica, &replica->scratch, stream);
    note(step, device_launch(replica, adds ? replica->add : replica->write, stream, arguments));
}

/* Memory of a rule to which nothing is uploaded. */
static void do_compute(struct step *step) {
    enum { COMPUTED = 14 * MIB };
    struct replica *const replica = step->replica;
    struct buffer *const buffer = &replica->computed;
    const int stream = some_stream(step);
    const bool adds = one_of(&step->numbers, 2);
    uint32_t value = (uint32_t)below(step, 1000);
    uint64_t words = 1 + below(step, COMPUTED / 4);
    replica_say(step->replica, "kernel computes %lu words stream %d", (unsigned long)words, stream);
    if (!buffer->at) {
        *buffer = (struct buffer){.size = COMPUTED, .stream = -1};
        const CUresult code = cuMemAlloc(&buffer->at, COMPUTED);
        note(step, code);
        if (code)
            buffer->at = 0;
        else
            note(step, cuMemsetD8(buffer->at, 5, COMPUTED));
        buffer->stream = 0;
    }
    void *arguments[] = {&buffer->at, &words, &value};
    if (!buffer->at)
        return;
    device_claim(replica, buffer, stream);
    note(step, device_launch(replica, adds ? replica->add : replica->write, stream, arguments));
    if (one_of(&step->numbers, 3)) {
        device_finish(replica, buffer);
        note(step, cuMemFree(buffer->at));
        buffer->at = 0;
    }
}

/* It works on while the next steps go on. */
static void do_spin(struct step *step) {
    struct replica *const replica = step->replica;
    struct buffer *const buffer = some_buffer(step);
    if (!buffer)
        return;
    const int stream = some_stream(step);
    CUdeviceptr from = buffer->at, sum = replica->sum.at + 64; /* what it adds says nothing */
    uint64_t words = buffer->size / 4 < 4096 ? buffer->size / 4 : 4096;
    uint64_t nanoseconds = 200000 + below(step, 4000000);
    void *arguments[] = {&from, &words, &nanoseconds, &sum};
    replica_say(step->replica, "kernel spins on %d for %lu us stream %d", index_of(step, buffer),
                (unsigned long)(nanoseconds / 1000), stream);
    device_claim(replica, buffer, stream);
    note(step, device_launch(replica, replica->spin, stream, arguments));
}

/* --- captures and graphs --- */

static void capture_work(struct step *step, struct buffer *buffer, CUstream stream) {
    struct replica *const replica = step->replica;
    struct buffer *const from = some_buffer(step);
    const struct part part = some_part(step, buffer);
    numbers_fill(replica->pinned, PINNED, content(step));
    if (one_of(&step->numbers, 2))
        note(step, cuMemsetD8Async(buffer->at + part.from, 9, part.size, stream));
    if (one_of(&step->numbers, 2) && part.size <= PINNED)
        note(step, cuMemcpyHtoDAsync(buffer->at + part.from, replica->pinned, part.size, stream));
    if (from && from != buffer && one_of(&step->numbers, 2)) {
        const size_t size = from->size < buffer->size ? from->size : buffer->size;
        note(step, cuMemcpyDtoDAsync(buffer->at, from->at, size, stream));
    }
}

/* What another thread does meanwhile is no part of it, unless the stream waits for the legacy one.
 */
static int some_capturable(struct step *step) {
    const int first = step->replica->soaks ? 3 : 2;
    return first + (int)below(step, (uint64_t)(STREAMS - first));
}

static CUgraph capture(struct step *step, struct buffer *buffer) {
    struct replica *const replica = step->replica;
    const CUstream stream = replica->streams[some_capturable(step)];
    CUgraph graph = NULL;
    note(step, cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    capture_work(step, buffer, stream);
    if (one_of(&step->numbers, 5)) { /* what is written during a capture */
        struct buffer *const other = some_buffer(step);
        if (other && other != buffer && !other->pooled && other->size <= PINNED)
            note(step, cuMemcpyHtoDAsync(other->at, replica->pinned, other->size,
                                         replica->streams[stream == replica->streams[3] ? 4 : 3]));
    }
    note(step, cuStreamEndCapture(stream, &graph));
    return graph;
}

/* A fill, and behind it a copy. */
static CUgraph add_nodes(struct step *step, struct buffer *buffer, CUgraphNode *filled,
                         CUDA_MEMSET_NODE_PARAMS *fill) {
    struct replica *const replica = step->replica;
    const struct part part = some_part(step, buffer);
    const size_t size = buffer->size < PINNED ? buffer->size : PINNED;
    const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = replica->pinned,
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = buffer->at + below(step, buffer->size - size + 1),
                                .WidthInBytes = size,
                                .Height = 1,
                                .Depth = 1};
    CUgraph graph = NULL;
    CUgraphNode copied;
    *fill = (CUDA_MEMSET_NODE_PARAMS){.dst = buffer->at + part.from,
                                      .value = 3,
                                      .elementSize = 1,
                                      .width = part.size,
                                      .height = 1};
    numbers_fill(replica->pinned, size, content(step));
    note(step, cuGraphCreate(&graph, 0));
    note(step, cuGraphAddMemsetNode(filled, graph, NULL, 0, fill, replica->context));
    note(step, cuGraphAddMemcpyNode(&copied, graph, filled, 1, &copy, replica->context));
    return graph;
}

static void do_graph(struct step *step) {
    struct replica *const replica = step->replica;
    struct buffer *const buffer = some_buffer(step);
    if (!buffer)
        return;
    CUgraphExec instance = NULL;
    CUgraphNode filled = NULL;
    CUDA_MEMSET_NODE_PARAMS fill = {0};
    const bool by_nodes = one_of(&step->numbers, 3);
    const unsigned launches = (unsigned)below(step, 3);
    const CUstream stream = replica->streams[2 + below(step, STREAMS - 2)];
    replica_say(step->replica, "graph %son %d, launched %u times", by_nodes ? "of nodes " : "",
                index_of(step, buffer), launches);
    note(step, cuCtxSynchronize());
    const CUgraph graph =
        by_nodes ? add_nodes(step, buffer, &filled, &fill) : capture(step, buffer);
    if (!graph)
        return;
    note(step, cuGraphInstantiateWithFlags(&instance, graph, 0));
    for (unsigned i = 0; i < launches; i++) {
        note(step, cuGraphLaunch(instance, stream));
        fill.value++;
        fill.width = fill.width / 2 + 1;
        if (by_nodes && one_of(&step->numbers, 2))
            note(step, cuGraphExecMemsetNodeSetParams(instance, filled, &fill, replica->context));
    }
    note(step, cuCtxSynchronize());
    note(step, cuGraphExecDestroy(instance));
    note(step, cuGraphDestroy(graph));
    device_read(replica, buffer, 0, buffer->size);
}

/* --- contexts, threads, processes --- */

static void do_context(struct step *step) {
    struct replica *const replica = step->replica;
    struct buffer *const buffer = some_buffer(step);
    CUcontext other, popped;
    CUdevice device;
    if (!buffer)
        return;
    replica_say(step->replica, "another context copies from and to %d", index_of(step, buffer));
    device_finish(replica, buffer);
    note(step, cuDeviceGet(&device, 0));
    note(step, cuCtxCreate(&other, NULL, 0, device));
    device_read(replica, buffer, 0, buffer->size);
    const struct part part = some_part(step, buffer);
    unsigned char *const bytes = malloc(part.size);
    if (!bytes)
        abort();
    numbers_fill(bytes, part.size, content(step));
    note(step, cuMemcpyHtoD(buffer->at + part.from, bytes, part.size));
    free(bytes);
    note(step, cuCtxSynchronize());
    note(step, cuCtxPopCurrent(&popped));
    note(step, cuCtxDestroy(other));
}

/* A stream ends while it has work, or is captured. */
static void do_stream(struct step *step) {
    struct replica *const replica = step->replica;
    const int at = some_capturable(step);
    const bool captured = one_of(&step->numbers, 2);
    replica_say(step->replica, "stream %d is destroyed%s and made again", at,
                captured ? " in a capture" : "");
    for (int i = 0; i < BUFFERS; i++)
        if (replica->buffers[i].stream == at)
            device_finish(replica, &replica->buffers[i]);
    if (replica->scratch.stream == at)
        device_finish(replica, &replica->scratch);
    if (replica->sum.stream == at)
        device_finish(replica, &replica->sum);
    if (captured)
        note(step, cuStreamBeginCapture(replica->streams[at], CU_STREAM_CAPTURE_MODE_RELAXED));
    note(step, cuStreamDestroy(replica->streams[at]));
    note(step, cuStreamCreate(&replica->streams[at], CU_STREAM_NON_BLOCKING));
}

/* All is made anew, but for a context that is lost. */
static void do_reset(struct step *step) {
    struct replica *const replica = step->replica;
    CUdevice device;
    const CUresult code = cuCtxSynchronize();
    note(step, code);
    replica_say(step->replica, "reset");
    if (code)
        return;
    beside_end();
    mapped_end(replica);
    note(step, cuMemHostUnregister(replica->registered));
    note(step, cuCtxGetDevice(&device));
    note(step, cuDevicePrimaryCtxReset(device));
    if (!device_begin(replica))
        program_fail("the device cannot be used after a reset");
    beside_begin(replica);
}

/* A loader's thread: a piece of the buffer. What threads use outlives a jump out of the step
 * (run_soaking). */
struct loader {
    pthread_t thread;
    struct replica *replica;
    CUdeviceptr to;
    const unsigned char *from;
    size_t size;
    CUresult code;
};
static void *load(void *argument) {
    struct loader *const loader = argument;
    loader->code = cuCtxSetCurrent(loader->replica->context);
    if (!loader->code)
        loader->code = cuMemcpyHtoD(loader->to, loader->from, loader->size);
    return NULL;
}

static void do_loaders(struct step *step) {
    enum { LOADERS = 4 };
    struct buffer *const buffer = some_buffer(step);
    static struct loader loaders[LOADERS];
    if (!buffer)
        return;
    unsigned char *const bytes = malloc(buffer->size);
    if (!bytes)
        abort();
    numbers_fill(bytes, buffer->size, content(step));
    replica_say(step->replica, "%d threads upload %d", LOADERS, index_of(step, buffer));
    device_claim(step->replica, buffer, 0);
    const size_t piece = buffer->size / LOADERS;
    for (size_t i = 0; i < LOADERS; i++) {
        loaders[i] = (struct loader){.replica = step->replica,
                                     .to = buffer->at + i * piece,
                                     .from = bytes + i * piece,
                                     .size = i + 1 == LOADERS ? buffer->size - i * piece : piece};
        if (pthread_create(&loaders[i].thread, NULL, load, &loaders[i]) != 0)
            abort();
    }
    for (size_t i = 0; i < LOADERS; i++) {
        pthread_join(loaders[i].thread, NULL);
        note(step, loaders[i].code);
    }
    free(bytes);
}

/* --- one allocation for all weights, as engines have it: threads copy tensors into it, in an order
 * that is each replica's own --- */

enum { ENGINE = 72 * MIB, TENSORS = 16, ENGINE_THREADS = 3 };

struct tensor {
    size_t size, place;
    uint64_t seed;
};
struct engine_thread {
    pthread_t thread;
    const struct replica *replica;
    const struct tensor *order[TENSORS];
    size_t count;
    CUdeviceptr to;
    CUresult code;
};

static void *load_tensors(void *argument) {
    struct engine_thread *const self = argument;
    self->code = cuCtxSetCurrent(self->replica->context);
    for (size_t i = 0; i < self->count && !self->code; i++) {
        const struct tensor *const one = self->order[i];
        unsigned char *const bytes = malloc(one->size);
        if (!bytes)
            abort();
        numbers_fill(bytes, one->size, one->seed);
        self->code = cuMemcpyHtoD(self->to + one->place, bytes, one->size);
        free(bytes);
    }
    return NULL;
}

/* The tensors are the same in all replicas. How many there is place for. */
static size_t some_tensors(struct step *step, struct tensor *tensors) {
    static const size_t sizes[] = {2 * MIB, 4 * MIB, 6 * MIB, 10 * MIB, 3 * MIB, 4 * MIB + 512};
    const bool odd = one_of(&step->numbers, 3);
    const uint64_t seed = content(step);
    size_t count = 0, size, all = 0;
    for (; count < TENSORS; count++, all += size) {
        size = sizes[below(step, odd ? 6 : 4)];
        if (all + size > ENGINE)
            break;
        tensors[count] = (struct tensor){size, 0, seed * TENSORS + count};
    }
    return count;
}

static void do_engine(struct step *step) {
    struct replica *const replica = step->replica;
    struct buffer *const buffer = &replica->buffers[below(step, BUFFERS)];
    static struct engine_thread threads[ENGINE_THREADS];
    static struct tensor tensors[TENSORS];
    const size_t count = some_tensors(step, tensors);
    struct numbers own = numbers_from(replica->seed, count, replica->number + 1);
    size_t order[TENSORS], place = 0;
    if (buffer->at)
        release(step, buffer);
    buffer->size = ENGINE;
    buffer->pooled = false;
    replica_say(step->replica, "%d threads load %zu tensors into %d", ENGINE_THREADS, count,
                index_of(step, buffer));
    const CUresult code = cuMemAlloc(&buffer->at, buffer->size);
    note(step, code);
    if (code) {
        buffer->at = 0;
        return;
    }
    note(step, cuMemsetD8(buffer->at + ENGINE - 64, 7, 64));
    for (size_t i = 0; i < count; i++) {
        const size_t other = number_below(&own, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    memset(threads, 0, sizeof(threads));
    for (size_t i = 0; i < count; i++) {
        struct engine_thread *const one = &threads[i % ENGINE_THREADS];
        tensors[order[i]].place = place;
        place += tensors[order[i]].size;
        one->order[one->count++] = &tensors[order[i]];
    }
    for (size_t i = 0; i < ENGINE_THREADS; i++) {
        threads[i].replica = replica;
        threads[i].to = buffer->at;
        if (pthread_create(&threads[i].thread, NULL, load_tensors, &threads[i]) != 0)
            abort();
    }
    for (size_t i = 0; i < ENGINE_THREADS; i++) {
        pthread_join(threads[i].thread, NULL);
        note(step, threads[i].code);
    }
    note(step, cuMemsetD8(buffer->at + place, 5, ENGINE - place));
    buffer->stream = 0;
}

static void do_child(struct step *step) {
    int status = 0;
    replica_say(step->replica, "fork");
    const pid_t child = fork();
    if (child == 0)
        _exit(3);
    if (child > 0)
        waitpid(child, &status, 0);
    step->replica->hash = (uint64_t)WEXITSTATUS(status);
}

/* --- a source whose pages come only when they are touched, as collectors and loaders have it ---
 */

enum { GUARDED = 64 * 1024 };
static char *guarded;
static volatile sig_atomic_t faults;

static void let_in(int signal) {
    faults++;
    mprotect(guarded, GUARDED, PROT_READ | PROT_WRITE);
}

static void do_guarded(struct step *step) {
    struct buffer *const buffer = some_buffer(step);
    const struct sigaction handler = {.sa_handler = let_in};
    struct sigaction old;
    if (!buffer || buffer->size < 2 * GUARDED)
        return;
    char *const source =
        mmap(NULL, 2 * GUARDED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (source == MAP_FAILED)
        abort();
    numbers_fill(source, 2 * GUARDED, content(step));
    guarded = source + GUARDED;
    faults = 0;
    mprotect(guarded, GUARDED, PROT_NONE);
    device_claim(step->replica, buffer, 0);
    replica_say(step->replica, "upload %d from pages without access", index_of(step, buffer));
    sigaction(SIGSEGV, &handler, &old);
    note(step, cuMemcpyHtoD(buffer->at, source, 2 * GUARDED));
    sigaction(SIGSEGV, &old, NULL);
    munmap(source, 2 * GUARDED);
    step->replica->hash = faults > 0;
}

/* --- questions --- */

static void do_question(struct step *step) {
    struct buffer *const buffer = some_buffer(step);
    CUdeviceptr base = 0;
    size_t size = 0;
    unsigned type = 0;
    if (!buffer)
        return;
    const size_t at = below(step, buffer->size);
    replica_say(step->replica, "range and type of %d +%zu", index_of(step, buffer), at);
    note(step, cuMemGetAddressRange(&base, &size, buffer->at + at));
    note(step, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, buffer->at + at));
    step->replica->hash = (buffer->pooled ? 0 : (buffer->at - base) * 31 + size) * 31 + type;
}

static void do_read(struct step *step) {
    struct buffer *const buffer = some_buffer(step);
    if (!buffer)
        return;
    const struct part part = some_part(step, buffer);
    replica_say(step->replica, "read %d +%zu %zu", index_of(step, buffer), part.from, part.size);
    device_read(step->replica, buffer, part.from, part.size);
}

static void do_wait(struct step *step) {
    const unsigned us = (unsigned)below(step, 4000);
    replica_say(step->replica, "wait %u us", us);
    usleep(us);
}

static void do_mapped(struct step *step) {
    mapped_step(step->replica, &step->numbers);
}

static void do_synchronise(struct step *step) {
    replica_say(step->replica, "synchronise");
    note(step, cuCtxSynchronize());
}

static const struct {
    void (*act)(struct step *step);
    unsigned weight;
} table[] = {
    {do_allocate, 8},    {do_free, 3},         {do_upload, 10},     {do_fill, 4},
    {do_copy, 6},        {do_rows, 3},         {do_read, 6},        {do_past_the_end, 2},
    {do_kernel_read, 4}, {do_kernel_write, 2}, {do_compute, 3},     {do_spin, 5},
    {do_graph, 4},       {do_reset, 1},        {do_context, 1},     {do_stream, 1},
    {do_loaders, 3},     {do_engine, 3},       {do_child, 1},       {do_guarded, 1},
    {do_question, 3},    {do_wait, 4},         {do_synchronise, 2}, {do_mapped, 30},
};

/* For a step that needs none of its own. A card's driver needs some for what is not drawn then. */
static void with_few_descriptors(struct step *step, void (*act)(struct step *step)) {
    struct rlimit before, few;
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(next);
    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = (rlim_t)next + below(step, 4);
    setrlimit(RLIMIT_NOFILE, &few);
    act(step);
    setrlimit(RLIMIT_NOFILE, &before);
}

void step_do(struct replica *replica, unsigned number) {
    struct step step = {replica, numbers_from(replica->seed, number, 0)};
    unsigned sum = 0;
    replica->text[0] = '\0';
    replica->code = 0;
    replica->hash = 0;
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        sum += table[i].weight;
    enum { BEGINNING = 3 /* steps that allocate */ };
    uint64_t drawn = number < BEGINNING ? 0 : below(&step, sum);
    size_t at = 0;
    if (replica->seed % 2) { /* of every other program most steps are of this kind */
        if (number < BEGINNING || below(&step, 4)) {
            do_mapped(&step);
            return;
        }
    }
    while (drawn >= table[at].weight)
        drawn -= table[at++].weight;
    void (*const act)(struct step *) = table[at].act;
    if (replica->soaks && act != do_context && act != do_reset && act != do_mapped &&
        one_of(&step.numbers, 8))
        with_few_descriptors(&step, act);
    else
        act(&step);
}
