/*
 * puppet.c - a CUDA program that does what it is told: one command a line on stdin, one reply a
 * line on stdout, "<code> <values...>".
 *
 * It stands for the programs that users have: it knows nothing of gpushare. Built with the shared
 * and with the static runtime, and, as PUPPET_DRIVER, with the driver API alone; commands that are
 * the runtime's then become what the runtime makes of them. Commands that begin with cu or ctx are
 * the driver's in all three. `help` lists them. With VENDOR_HIP the runtime is AMD's, and there are
 * no commands of the driver's.
 */
#include "vendor.h"

#include <cuda.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_pidfd_getfd /* headers of Linux before 5.6 */
#define SYS_pidfd_getfd 438
#endif

enum { LINE = 1 << 16, WORDS = 64, THINGS = 4096 };
enum { BAD = -1, QUIT = -2, SAID = -3 /* the reply is there already */ };
typedef unsigned long long u64; /* as CUdeviceptr */

/* --- the driver --- */

#define TEXT_OF(x) #x
#ifdef PUPPET_DRIVER
#define CU(fn) fn
#else
#define CU(fn) ((__typeof__(fn) *)driver_symbol(TEXT_OF(fn)))

static void *driver_symbol(const char *name) {
    static void *library;
    if (!library && !(library = dlopen("libcuda.so.1", RTLD_NOW)))
        abort();
    void *symbol = dlsym(library, name);
    if (!symbol)
        abort();
    return symbol;
}
#endif

/* --- the runtime, or what it makes of its calls --- */

#define DO(name, call, ...)                                                                        \
    static int do_##name(__VA_ARGS__) {                                                            \
        READY();                                                                                   \
        return (int)call;                                                                          \
    }

#ifdef PUPPET_DRIVER
static int current_device;
static _Thread_local bool ready;

static int driver_use(int device) {
    CUcontext context;
    int code = (int)cuInit(0);
    code = code ? code : (int)cuDevicePrimaryCtxRetain(&context, device);
    code = code ? code : (int)cuCtxSetCurrent(context);
    if (!code)
        current_device = device;
    ready = !code;
    return code;
}

#define READY()                                                                                    \
    do {                                                                                           \
        int code = ready ? 0 : driver_use(current_device);                                         \
        if (code)                                                                                  \
            return code;                                                                           \
    } while (0)

DO(malloc, cuMemAlloc(p, size), u64 *p, size_t size)
DO(pitch, cuMemAllocPitch(p, pitch, width, height, 4), u64 *p, size_t *pitch, size_t width,
   size_t height)
DO(free, cuMemFree(p), u64 p)
DO(get, cuIpcGetMemHandle(handle, p), void *handle, u64 p)
static int do_open(u64 *p, const void *bytes, unsigned flags) {
    CUipcMemHandle handle;
    READY();
    memcpy(&handle, bytes, sizeof(handle));
    return (int)cuIpcOpenMemHandle(p, handle, flags);
}
DO(close, cuIpcCloseMemHandle(p), u64 p)
DO(fill, cuMemsetD8(p, (unsigned char)byte, count), u64 p, int byte, size_t count)
DO(read, cuMemcpyDtoH(to, p, count), void *to, u64 p, size_t count)
DO(write, cuMemcpyHtoD(p, from, count), u64 p, const void *from, size_t count)
DO(sync, (cuCtxSynchronize)(), void)
static int do_reset(void) {
    ready = false;
    return (int)cuDevicePrimaryCtxReset(current_device);
}
DO(info, cuMemGetInfo(left, total), size_t *left, size_t *total)
static int do_device(int device) {
    return driver_use(device);
}
static int do_count(int *count) {
    int code = (int)cuInit(0);
    return code ? code : (int)cuDeviceGetCount(count);
}
static int do_peer(int device) {
    CUcontext there;
    READY();
    const int code = (int)cuDevicePrimaryCtxRetain(&there, device);
    return code ? code : (int)cuCtxEnablePeerAccess(there, 0);
}
DO(pool, cuMemAllocAsync(p, size, (CUstream)(uintptr_t)stream), u64 *p, size_t size, u64 stream)
DO(unpool, cuMemFreeAsync(p, NULL), u64 p)
DO(evcreate, cuEventCreate((CUevent *)event, flags), u64 *event, unsigned flags)
DO(evget, cuIpcGetEventHandle(handle, (CUevent)event), void *handle, u64 event)
static int do_evopen(u64 *event, const void *bytes) {
    CUipcEventHandle handle;
    READY();
    memcpy(&handle, bytes, sizeof(handle));
    return (int)cuIpcOpenEventHandle((CUevent *)event, handle);
}
DO(evdestroy, cuEventDestroy((CUevent)event), u64 event)
DO(evrecord, cuEventRecord((CUevent)event, NULL), u64 event)
DO(evquery, cuEventQuery((CUevent)event), u64 event)
DO(evsync, cuEventSynchronize((CUevent)event), u64 event)
DO(host, cuLaunchHostFunc(NULL, fn, arg), void (*fn)(void *), void *arg)
#else
#define READY()

static void *at(u64 p) {
    return (void *)(uintptr_t)p;
}

/* The runtime leaves pointers alone where it fails. */
static int do_malloc(u64 *p, size_t size) {
    void *out = NULL;
    const int code = (int)cudaMalloc(&out, size);
    *p = (uintptr_t)out;
    return code;
}
static int do_pitch(u64 *p, size_t *pitch, size_t width, size_t height) {
    void *out = NULL;
    const int code = (int)cudaMallocPitch(&out, pitch, width, height);
    *p = (uintptr_t)out;
    return code;
}
DO(free, cudaFree(at(p)), u64 p)
DO(get, cudaIpcGetMemHandle(handle, at(p)), void *handle, u64 p)
static int do_open(u64 *p, const void *bytes, unsigned flags) {
    cudaIpcMemHandle_t handle;
    void *out = NULL;
    memcpy(&handle, bytes, sizeof(handle));
    const int code = (int)cudaIpcOpenMemHandle(&out, handle, flags);
    *p = (uintptr_t)out;
    return code;
}
DO(close, cudaIpcCloseMemHandle(at(p)), u64 p)
DO(fill, cudaMemset(at(p), byte, count), u64 p, int byte, size_t count)
DO(read, cudaMemcpy(to, at(p), count, cudaMemcpyDeviceToHost), void *to, u64 p, size_t count)
DO(write, cudaMemcpy(at(p), from, count, cudaMemcpyHostToDevice), u64 p, const void *from,
   size_t count)
DO(sync, cudaDeviceSynchronize(), void)
DO(reset, cudaDeviceReset(), void)
DO(info, cudaMemGetInfo(left, total), size_t *left, size_t *total)
DO(device, cudaSetDevice(device), int device)
DO(peer, cudaDeviceEnablePeerAccess(device, 0), int device)
static int do_pool(u64 *p, size_t size, u64 stream) {
    void *out = NULL;
    const int code = (int)cudaMallocAsync(&out, size, (cudaStream_t)(uintptr_t)stream);
    *p = (uintptr_t)out;
    return code;
}
DO(unpool, cudaFreeAsync(at(p), NULL), u64 p)
DO(count, cudaGetDeviceCount(count), int *count)
DO(evcreate, cudaEventCreateWithFlags((cudaEvent_t *)event, flags), u64 *event, unsigned flags)
DO(evget, cudaIpcGetEventHandle(handle, (cudaEvent_t)event), void *handle, u64 event)
static int do_evopen(u64 *event, const void *bytes) {
    cudaIpcEventHandle_t handle;
    memcpy(&handle, bytes, sizeof(handle));
    return (int)cudaIpcOpenEventHandle((cudaEvent_t *)event, handle);
}
DO(evdestroy, cudaEventDestroy((cudaEvent_t)event), u64 event)
DO(evrecord, cudaEventRecord((cudaEvent_t)event, NULL), u64 event)
DO(evquery, cudaEventQuery((cudaEvent_t)event), u64 event)
DO(evsync, cudaEventSynchronize((cudaEvent_t)event), u64 event)
DO(host, cudaLaunchHostFunc(NULL, fn, arg), void (*fn)(void *), void *arg)
#endif

static int do_range(u64 *base, size_t *size, u64 p) {
#ifdef VENDOR_HIP
    return (int)hipMemGetAddressRange((void **)base, size, at(p));
#else
    return (int)CU(cuMemGetAddressRange)(base, size, p);
#endif
}

/* --- what it holds, by name --- */

static struct thing {
    char name[32];
    u64 value;
} things[THINGS];

static struct thing *thing(const char *name) {
    size_t i = 0;
    while (i < THINGS - 1 && *things[i].name && strcmp(things[i].name, name) != 0)
        i++;
    snprintf(things[i].name, sizeof(things[i].name), "%s", name);
    return &things[i];
}

static u64 value(const char *name) {
    return thing(name)->value;
}

/* A NULL word stands for one that was left out. */
static u64 number(const char *word) {
    return word ? strtoull(word, NULL, 0) : 0;
}

static u64 hex(const char *word) {
    return word ? strtoull(word, NULL, 16) : 0;
}

static size_t from_hex(const char *word, unsigned char *bytes, size_t max) {
    size_t count = 0;
    for (; word && word[0] && word[1] && count < max; word += 2, count++) {
        const char pair[3] = {word[0], word[1], '\0'};
        bytes[count] = (unsigned char)strtoul(pair, NULL, 16);
    }
    return count;
}

/* --- replies --- */

static _Thread_local char reply[LINE];
static _Thread_local size_t reply_length;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length =
        vsnprintf(reply + reply_length, sizeof(reply) - reply_length, format, arguments);
    va_end(arguments);
    if (length > 0)
        reply_length += (size_t)length;
    if (reply_length >= sizeof(reply))
        reply_length = sizeof(reply) - 1;
}

static void say_hex(const unsigned char *bytes, size_t count) {
    say(" ");
    for (size_t i = 0; i < count; i++)
        say("%02x", bytes[i]);
}

static void put(const char *text, size_t count) {
    while (count) {
        const ssize_t done = write(1, text, count);
        if (done < 0 && errno != EINTR)
            _exit(111);
        if (done > 0) {
            text += done;
            count -= (size_t)done;
        }
    }
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void nap(u64 ms) {
    const struct timespec time = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

/* --- commands: each answers a code and may say more --- */

static int obey(char *line);

static int pointer_reply(const char *name, int code, u64 pointer) {
    if (!code)
        thing(name)->value = pointer;
    say(" %llx", pointer);
    return code;
}

#define COMMAND(name, call)                                                                        \
    static int c_##name(char **w) {                                                                \
        (void)w;                                                                                   \
        return call;                                                                               \
    }
/* One that makes something, which its first word names. */
#define MAKER(name, type, call)                                                                    \
    static int c_##name(char **w) {                                                                \
        type made = 0;                                                                             \
        const int code = (int)call;                                                                \
        return pointer_reply(w[1], code, made);                                                    \
    }

COMMAND(device, do_device((int)number(w[1])))
COMMAND(peer, do_peer((int)number(w[1])))

static int c_count(char **w) {
    int count = 0;
    (void)w;
    const int code = do_count(&count);
    say(" %d", count);
    return code;
}

MAKER(malloc, u64, do_malloc(&made, number(w[2])))

static int c_pitch(char **w) {
    u64 pointer = 0;
    size_t pitch = 0;
    const int code = do_pitch(&pointer, &pitch, number(w[2]), number(w[3]));
    pointer_reply(w[1], code, pointer);
    say(" %zu", pitch);
    return code;
}

MAKER(pool, u64, do_pool(&made, number(w[2]), w[3] ? value(w[3]) : 0))
COMMAND(free, do_free(value(w[1])))
COMMAND(unpool, do_unpool(value(w[1])))
COMMAND(freeat, do_free(hex(w[1])))

static int get_at(u64 pointer) {
    unsigned char handle[64] = {0};
    const int code = do_get(handle, pointer);
    if (!code)
        say_hex(handle, sizeof(handle));
    return code;
}

COMMAND(get, get_at(value(w[1]) + number(w[2])))
COMMAND(getat, get_at(hex(w[1])))

static int c_open(char **w) {
    unsigned char handle[64] = {0};
    u64 pointer = 0;
    from_hex(w[2], handle, sizeof(handle));
    const int code = do_open(&pointer, handle, w[3] ? (unsigned)number(w[3]) : 1);
    return pointer_reply(w[1], code, pointer);
}

COMMAND(close, do_close(value(w[1])))
COMMAND(closeat, do_close(hex(w[1])))
COMMAND(fill, do_fill(value(w[1]) + number(w[4]), (int)number(w[2]), number(w[3])))

static int c_read(char **w) {
    unsigned char bytes[8192];
    const size_t count = number(w[3]);
    if (count > sizeof(bytes))
        return BAD;
    const int code = do_read(bytes, value(w[1]) + number(w[2]), count);
    if (!code)
        say_hex(bytes, count);
    return code;
}

static int c_write(char **w) {
    unsigned char bytes[8192];
    const size_t count = from_hex(w[3], bytes, sizeof(bytes));
    const int code = do_write(value(w[1]) + number(w[2]), bytes, count);
    return code ? code : do_sync();
}

/* --- what a program uploads: bytes that follow from their place and a seed --- */

static unsigned char pattern(size_t at, unsigned seed) {
    return (unsigned char)((at * 2654435761u >> 32) ^ at ^ seed); /* no two blocks are equal */
}

/* By its ABI's name, per-thread variants too. */
static void *abi(const char *name) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *symbol = library ? dlsym(library, name) : NULL;
    if (!symbol)
        abort();
    return symbol;
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
    (void)number, (void)unused;
    page_faults++;
    elsewhere += !pthread_equal(pthread_self(), reader);
    mprotect((void *)((uintptr_t)info->si_addr / GUARDED * GUARDED), GUARDED, PROT_READ);
}

/* Or the handler leaves the copy. */
static sigjmp_buf copy_left;

static void leave_copy(int number, siginfo_t *info, void *unused) {
    (void)number, (void)info, (void)unused;
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

COMMAND(sync, do_sync())
COMMAND(reset, do_reset())

static int c_info(char **w) {
    size_t left = 0, total = 0;
    (void)w;
    const int code = do_info(&left, &total);
    say(" %zu %zu", left, total);
    return code;
}

static int c_range(char **w) {
    u64 base = 0;
    size_t size = 0;
    const int code = do_range(&base, &size, value(w[1]) + number(w[2]));
    say(" %llx %zu", base, size);
    return code;
}

#ifdef VENDOR_HIP
COMMAND(lasterror, (int)hipGetLastError())

static int c_procaddress(char **w) {
    int (*look_up)(const char *, void **, int, u64, void *);
    void *found;
    *(void **)&look_up = dlsym(RTLD_DEFAULT, "hipGetProcAddress");
    return look_up ? look_up(w[1], &found, 0, 0, NULL) : -1;
}
#endif

static int c_ordinal(char **w) {
    int ordinal = -1;
    const int code =
        (int)CU(cuPointerGetAttribute)(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, value(w[1]));
    say(" %d", ordinal);
    return code;
}

/* within NAME OTHER OFFSET: what lies in an allocation of the program's. */
static int c_within(char **w) {
    thing(w[1])->value = value(w[2]) + number(w[3]);
    return 0;
}

static int c_value(char **w) {
    say(" %llx", value(w[1]));
    return 0;
}

/* --- events, and work --- */

MAKER(evcreate, u64, do_evcreate(&made, (unsigned)number(w[2])))

static int c_evget(char **w) {
    unsigned char handle[64] = {0};
    const int code = do_evget(handle, value(w[1]));
    if (!code)
        say_hex(handle, sizeof(handle));
    return code;
}

static int c_evopen(char **w) {
    unsigned char handle[64] = {0};
    u64 event = 0;
    from_hex(w[2], handle, sizeof(handle));
    const int code = do_evopen(&event, handle);
    return pointer_reply(w[1], code, event);
}

COMMAND(evdestroy, do_evdestroy(value(w[1])))
COMMAND(evrecord, do_evrecord(value(w[1])))
COMMAND(evquery, do_evquery(value(w[1])))
COMMAND(evsync, do_evsync(value(w[1])))

static void busy(void *ms) {
    nap((uintptr_t)ms);
}

COMMAND(busy, do_host(busy, (void *)(uintptr_t)number(w[1])))

/* --- the driver's own --- */

COMMAND(cuinit, (int)CU(cuInit)(0))
MAKER(cumalloc, CUdeviceptr, CU(cuMemAlloc)(&made, number(w[2])))
COMMAND(cufree, (int)CU(cuMemFree)(value(w[1])))
COMMAND(cuclose, (int)CU(cuIpcCloseMemHandle)(value(w[1])))

static int c_ctxcreate(char **w) {
    CUcontext context = NULL;
    int code = (int)CU(cuInit)(0);
    code = code ? code : (int)CU(cuCtxCreate)(&context, NULL, 0, (CUdevice)number(w[2]));
    return pointer_reply(w[1], code, (uintptr_t)context);
}
COMMAND(ctxpush, (int)CU(cuCtxPushCurrent)((CUcontext)(uintptr_t)value(w[1])))
COMMAND(ctxset, (int)CU(cuCtxSetCurrent)((CUcontext)(uintptr_t)(w[1] ? value(w[1]) : 0)))
static int c_ctxpop(char **w) {
    CUcontext context;
    (void)w;
    return (int)CU(cuCtxPopCurrent)(&context);
}
COMMAND(ctxdestroy, (int)CU(cuCtxDestroy)((CUcontext)(uintptr_t)value(w[1])))

/* green NAME: a green context, of the simulator's; its context becomes current */
static CUgreenCtx green;
static int c_green(char **w) {
    CUcontext context = NULL;
    int code = (int)CU(cuGreenCtxCreate)(&green, NULL, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    code = code ? code : (int)CU(cuCtxFromGreenCtx)(&context, green);
    code = code ? code : (int)CU(cuCtxPushCurrent)(context);
    return pointer_reply(w[1], code, (uintptr_t)context);
}
/* release: the primary context of device 0, of which the runtime has a reference */
COMMAND(release, (int)CU(cuDevicePrimaryCtxRelease)(0))
COMMAND(ungreen, (int)CU(cuGreenCtxDestroy)(green))

/* --- kernels, streams and graphs; a stream that is called - is the default one --- */

static CUmodule kernels;

/* kernels FILE: of tests/apps/kernels.cu, as PTX */
static int c_kernels(char **w) {
    static char text[LINE];
    size_t left, total;
    const int fd = open(w[1], O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (length < 0 || close(fd) != 0)
        return BAD;
    text[length] = '\0';
    const int code = do_info(&left, &total); /* from here on there is a context */
    return code ? code : (int)CU(cuModuleLoadData)(&kernels, text);
}

COMMAND(unload, (int)CU(cuModuleUnload)(kernels))

static CUstream stream_of(const char *name) {
    return strcmp(name, "-") == 0 ? NULL : (CUstream)(uintptr_t)value(name);
}

/* NAME[+OFFSET], or a number */
static u64 argument(char *word) {
    char *const offset = strchr(word, '+');
    if (*word >= '0' && *word <= '9')
        return number(word);
    if (offset)
        *offset = '\0';
    return value(word) + number(offset ? offset + 1 : NULL);
}

/* launch STREAM KERNEL ARGUMENT... */
static int c_launch(char **w) {
    enum { MOST = 8, GRID = 32, THREADS = 128 };
    u64 values[MOST];
    void *places[MOST];
    CUfunction function;
    for (size_t i = 0; i < MOST && w[3 + i]; i++) {
        values[i] = argument(w[3 + i]);
        places[i] = &values[i];
    }
    const int code = (int)CU(cuModuleGetFunction)(&function, kernels, w[2]);
    return code ? code
                : (int)CU(cuLaunchKernel)(function, GRID, 1, 1, THREADS, 1, 1, 0, stream_of(w[1]),
                                          places, NULL);
}

/* spinboth STREAM STREAM NAME WORDS NS NS SUM: on both by one call, which CUDA has deprecated */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static int c_spinboth(char **w) {
    enum { THREADS = 128 };
    u64 from = argument(w[3]), words = number(w[4]), sum = argument(w[7]);
    u64 lengths[2] = {number(w[5]), number(w[6])};
    void *values[2][4] = {{&from, &words, &lengths[0], &sum}, {&from, &words, &lengths[1], &sum}};
    CUDA_LAUNCH_PARAMS launches[2];
    CUfunction function;
    const int code = (int)CU(cuModuleGetFunction)(&function, kernels, "test_spin");
    if (code)
        return code;
    for (size_t i = 0; i < 2; i++)
        launches[i] = (CUDA_LAUNCH_PARAMS){.function = function,
                                           .gridDimX = 1,
                                           .gridDimY = 1,
                                           .gridDimZ = 1,
                                           .blockDimX = THREADS,
                                           .blockDimY = 1,
                                           .blockDimZ = 1,
                                           .hStream = stream_of(w[1 + i]),
                                           .kernelParams = values[i]};
    return (int)CU(cuLaunchCooperativeKernelMultiDevice)(launches, 2, 0);
}
#pragma GCC diagnostic pop

/* oldlaunch STREAM KERNEL ARGUMENT...: by functions that CUDA has deprecated; all arguments have 64
 * bits */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static int c_oldlaunch(char **w) {
    enum { MOST = 8, THREADS = 128 };
    CUfunction function;
    u64 values[MOST];
    unsigned count = 0;
    for (; count < MOST && w[3 + count]; count++)
        values[count] = argument(w[3 + count]);
    int code = (int)CU(cuModuleGetFunction)(&function, kernels, w[2]);
    code = code ? code : (int)CU(cuFuncSetBlockShape)(function, THREADS, 1, 1);
    code = code ? code : (int)CU(cuParamSetSize)(function, count * sizeof(u64));
    code = code ? code : (int)CU(cuParamSetv)(function, 0, values, count * sizeof(u64));
    if (code)
        return code;
    if (strcmp(w[1], "one") == 0)
        return (int)CU(cuLaunch)(function);
    return strcmp(w[1], "-") == 0 ? (int)CU(cuLaunchGrid)(function, 32, 1)
                                  : (int)CU(cuLaunchGridAsync)(function, 32, 1, stream_of(w[1]));
}
#pragma GCC diagnostic pop

/* stream NAME [FLAGS]: one that the default stream does not wait for, if not said otherwise */
static int c_stream(char **w) {
    CUstream stream = NULL;
    size_t left, total;
    int code = do_info(&left, &total);
    if (!code)
        code = (int)CU(cuStreamCreate)(&stream,
                                       w[2] ? (unsigned)number(w[2]) : CU_STREAM_NON_BLOCKING);
    return pointer_reply(w[1], code, (uintptr_t)stream);
}
COMMAND(unstream, (int)CU(cuStreamDestroy)(stream_of(w[1])))
COMMAND(squery, (int)CU(cuStreamQuery)(stream_of(w[1])))
COMMAND(ssync, (int)CU(cuStreamSynchronize)(stream_of(w[1])))
COMMAND(sfill, (int)CU(cuMemsetD8Async)(value(w[2]) + number(w[5]), (unsigned char)number(w[3]),
                                        number(w[4]), stream_of(w[1])))

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

/* attribute NAME WHICH: as a number */
static int c_attribute(char **w) {
    u64 answer = 0;
    const int code =
        (int)CU(cuPointerGetAttribute)(&answer, (CUpointer_attribute)number(w[2]), argument(w[1]));
    say(" %llx", answer);
    return code;
}

/* told NAME OFFSET: each attribute of the address, by the call for one and by that for many.
 * Addresses count from NAME; of a context is said whether it is the current one, and of ids whether
 * they are those of NAME. */
enum { ATTRIBUTES = 21 };

static bool is_address(int which) {
    return which == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
           which == CU_POINTER_ATTRIBUTE_HOST_POINTER ||
           which == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
           which == CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR;
}

static void say_told(int which, int code, u64 told, u64 base) {
    CUcontext context = NULL;
    u64 id = 0;
    (void)CU(cuCtxGetCurrent)(&context);
    if (which == CU_POINTER_ATTRIBUTE_BUFFER_ID || which == CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID) {
        (void)CU(cuPointerGetAttribute)(&id, (CUpointer_attribute)which, base);
        say(" %d=%d:%s", which, code, !told ? "none" : told == id ? "one" : "another");
    } else if (which == CU_POINTER_ATTRIBUTE_CONTEXT) {
        say(" %d=%d:%s", which, code, told == (uintptr_t)context ? "current" : "another");
    } else if (which == CU_POINTER_ATTRIBUTE_P2P_TOKENS) {
        say(" %d=%d", which, code);
    } else {
        say(" %d=%d:%lld", which, code,
            (long long)(told && is_address(which) ? told - base : told));
    }
}

static int c_told(char **w) {
    const u64 base = value(w[1]), at = base + number(w[2]);
    CUpointer_attribute which[ATTRIBUTES];
    u64 values[ATTRIBUTES][8] = {{0}};
    void *places[ATTRIBUTES];
    for (int i = 0; i < ATTRIBUTES; i++) {
        u64 told[8] = {0};
        which[i] = (CUpointer_attribute)(i + 1);
        places[i] = values[i];
        const int code = (int)CU(cuPointerGetAttribute)(told, which[i], at);
        say_told(i + 1, code, told[0], base);
    }
    say(" many");
    which[CU_POINTER_ATTRIBUTE_P2P_TOKENS - 1] =
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE; /* it would end */
    const int code = (int)CU(cuPointerGetAttributes)(ATTRIBUTES, which, places, at);
    for (int i = 0; i < ATTRIBUTES; i++)
        say_told(which[i], 0, values[i][0], base);
#ifndef PUPPET_DRIVER
    POINTER_ATTRIBUTES all;
    say(" cuda %d", (int)cudaPointerGetAttributes(&all, (void *)(uintptr_t)at));
    say(" %d %d %lld %lld", (int)all.POINTER_KIND, all.device,
        (long long)((uintptr_t)all.devicePointer - base),
        (long long)(all.hostPointer ? (uintptr_t)all.hostPointer - base : 0));
#endif
    return code;
}

/* --- memory of cuMemCreate that the program makes itself --- */

enum { POSIX = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR };

static int vmm_create(u64 *handle, size_t size, unsigned types, int device) {
    const CUmemAllocationProp wanted = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = (CUmemAllocationHandleType)types,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    CUmemGenericAllocationHandle made = 0;
    const int code = (int)CU(cuMemCreate)(&made, size, &wanted, 0);
    *handle = made;
    return code;
}

static int vmm_access(u64 at, size_t size, unsigned flags, int device) {
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                                    .flags = (CUmemAccess_flags)flags};
    return (int)CU(cuMemSetAccess)(at, size, &access, 1);
}

MAKER(vreserve, CUdeviceptr, CU(cuMemAddressReserve)(&made, number(w[2]), 0, 0, 0))
COMMAND(vunreserve, (int)CU(cuMemAddressFree)(value(w[1]), number(w[2])))
MAKER(vcreate, u64,
      vmm_create(&made, number(w[2]), w[3] ? (unsigned)number(w[3]) : POSIX,
                 w[3] && w[4] ? (int)number(w[4]) : 0))
COMMAND(vrelease, (int)CU(cuMemRelease)(value(w[1])))

static int c_vretain(char **w) {
    CUmemGenericAllocationHandle handle = 0;
    const u64 at = value(w[2]) + number(w[3]);
    const int code = (int)CU(cuMemRetainAllocationHandle)(&handle, (void *)(uintptr_t)at);
    return pointer_reply(w[1], code, handle);
}

COMMAND(vmap, (int)CU(cuMemMap)(value(w[1]) + number(w[2]), number(w[3]), 0, value(w[4]), 0))
COMMAND(vunmap, (int)CU(cuMemUnmap)(value(w[1]) + number(w[2]), number(w[3])))
COMMAND(vaccess, vmm_access(value(w[1]) + number(w[2]), number(w[3]), (unsigned)number(w[4]),
                            w[5] ? (int)number(w[5]) : 0))

static int c_vexport(char **w) {
    int descriptor = -1;
    const int code = (int)CU(cuMemExportToShareableHandle)(&descriptor, value(w[1]),
                                                           (CUmemAllocationHandleType)POSIX, 0);
    say(" %d", descriptor);
    return code;
}

/* vtypes NAME: of handles, as the driver says they were asked for */
static int c_vtypes(char **w) {
    CUmemAllocationProp prop = {.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE};
    const int code = (int)CU(cuMemGetAllocationPropertiesFromHandle)(&prop, value(w[1]));
    say(" %u", (unsigned)prop.requestedHandleTypes);
    return code;
}

/* vimport NAME PID DESCRIPTOR: as PyTorch gets it from another process */
static int c_vimport(char **w) {
    CUmemGenericAllocationHandle handle = 0;
    const int process = (int)syscall(SYS_pidfd_open, (pid_t)number(w[2]), 0);
    const int descriptor = (int)syscall(SYS_pidfd_getfd, process, (int)number(w[3]), 0);
    const int code = (int)CU(cuMemImportFromShareableHandle)(&handle, (void *)(intptr_t)descriptor,
                                                             (CUmemAllocationHandleType)POSIX);
    close(descriptor);
    close(process);
    return pointer_reply(w[1], code, handle);
}

/* vreuse DESCRIPTOR: closes it, and another file gets its number */
static int c_vreuse(char **w) {
    const int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const bool moved = dup2(other, (int)number(w[1])) >= 0;
    close(other);
    return moved ? 0 : errno;
}

/* vmany NAME COUNT SIZE HANDLE: maps it so often side by side; then gives access to all of it */
static int c_vmany(char **w) {
    const size_t count = number(w[2]), size = number(w[3]);
    int code = 0;
    for (size_t i = 0; !code && i < count; i++)
        code = (int)CU(cuMemMap)(value(w[1]) + i * size, size, 0, value(w[4]), 0);
    return code ? code : vmm_access(value(w[1]), count * size, 3, 0);
}

static void *vmm_thread(void *arg) {
    const u64 rounds = *(const u64 *)arg;
    const size_t size = 2 << 20;
    CUdeviceptr at = 0;
    u64 handle = 0;
    intptr_t failed = (int)CU(cuMemAddressReserve)(&at, size, 0, 0, 0);
    for (u64 i = 0; !failed && i < rounds; i++) {
        failed |= vmm_create(&handle, size, POSIX, 0) | (int)CU(cuMemMap)(at, size, 0, handle, 0) |
                  vmm_access(at, size, 3, 0) | (int)CU(cuMemRelease)(handle) |
                  (int)CU(cuMemUnmap)(at, size);
    }
    return (void *)(failed | (int)CU(cuMemAddressFree)(at, size));
}

/* vthreads COUNT ROUNDS: create, map, access, release, unmap */
static int c_vthreads(char **w) {
    enum { MOST = 16 };
    pthread_t threads[MOST];
    u64 rounds = number(w[2]), count = number(w[1]) < MOST ? number(w[1]) : MOST;
    intptr_t failed = 0;
    for (u64 i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, vmm_thread, &rounds);
    for (u64 i = 0; i < count; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        failed |= (intptr_t)result;
    }
    return (int)failed;
}

/* --- any of these calls, right and wrong, in any order --- */

enum { V_HANDLES = 8, V_PLACES = 12, V_BLOCK = 2 << 20 };

struct vmm_chaos {
    u64 state, handles[V_HANDLES], place;
    CUmemoryPool pool;
    CUdeviceptr pooled;
    u64 hash, calls;
};

static unsigned vmm_random(struct vmm_chaos *chaos, unsigned end) {
    chaos->state = chaos->state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(chaos->state >> 33) % end;
}

static void vmm_note(struct vmm_chaos *chaos, int code) {
    chaos->hash = (chaos->hash ^ (u64)code) * 1099511628211u;
    chaos->calls++;
}

static void vmm_share(struct vmm_chaos *chaos, u64 from, u64 *to) {
    CUmemGenericAllocationHandle handle = 0;
    int descriptor = -1;
    int code = (int)CU(cuMemExportToShareableHandle)(&descriptor, from,
                                                     (CUmemAllocationHandleType)POSIX, 0);
    vmm_note(chaos, code);
    if (code)
        return;
    code = (int)CU(cuMemImportFromShareableHandle)(&handle, (void *)(intptr_t)descriptor,
                                                   (CUmemAllocationHandleType)POSIX);
    vmm_note(chaos, code);
    close(descriptor);
    if (!code)
        *to = handle;
}

static void vmm_ask(struct vmm_chaos *chaos, u64 at, u64 handle) {
    CUmemAllocationProp prop;
    CUdeviceptr base = 0;
    size_t size = 0;
    const CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    unsigned long long flags = 0;
    unsigned char byte = 0;
    vmm_note(chaos, (int)CU(cuMemGetAllocationPropertiesFromHandle)(&prop, handle));
    vmm_note(chaos, (int)CU(cuMemGetAddressRange)(&base, &size, at));
    vmm_note(chaos, (int)CU(cuMemGetAccess)(&flags, &here, at));
    vmm_note(chaos, (int)flags + (int)(size / V_BLOCK));
    vmm_note(chaos, (int)CU(cuMemsetD8)(at, (unsigned char)chaos->calls, 16));
    vmm_note(chaos, (int)CU(cuMemcpyDtoH)(&byte, at, 1));
    vmm_note(chaos, byte);
}

static void vmm_pool(struct vmm_chaos *chaos) {
    const CUmemPoolProps wanted = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                   .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    switch (vmm_random(chaos, 4)) {
    case 0:
        return vmm_note(chaos, (int)CU(cuMemPoolCreate)(&chaos->pool, &wanted));
    case 1:
        return vmm_note(chaos, (int)CU(cuMemPoolDestroy)(chaos->pool));
    case 2:
        return vmm_note(
            chaos, (int)CU(cuMemAllocFromPoolAsync)(&chaos->pooled, V_BLOCK, chaos->pool, NULL));
    default:
        vmm_note(chaos, (int)CU(cuMemFreeAsync)(chaos->pooled, NULL));
        vmm_note(chaos, (int)CU(cuStreamSynchronize)(NULL));
    }
}

static void vmm_step(struct vmm_chaos *chaos) {
    u64 *const handle = &chaos->handles[vmm_random(chaos, V_HANDLES)];
    const size_t size = (1 + vmm_random(chaos, 3)) * (size_t)V_BLOCK;
    const u64 at = chaos->place + vmm_random(chaos, V_PLACES + 1) * (u64)V_BLOCK +
                   (vmm_random(chaos, 16) ? 0 : 4096);
    CUmemGenericAllocationHandle found = 0;
    int code;
    switch (vmm_random(chaos, 10)) {
    case 0:
    case 1:
        return vmm_note(
            chaos, vmm_create(handle, vmm_random(chaos, 8) ? size : 4096, vmm_random(chaos, 2), 0));
    case 2:
        return vmm_note(chaos, (int)CU(cuMemRelease)(*handle));
    case 3:
    case 4:
        return vmm_note(chaos, (int)CU(cuMemMap)(at, size, 0, *handle, 0));
    case 5:
        return vmm_note(chaos, (int)CU(cuMemUnmap)(at, size));
    case 6:
        return vmm_note(chaos, vmm_access(at, size, vmm_random(chaos, 4), 0));
    case 7:
        code = (int)CU(cuMemRetainAllocationHandle)(&found, (void *)(uintptr_t)at);
        if (!code)
            *handle = found;
        return vmm_note(chaos, code);
    case 8:
        vmm_note(chaos, (int)CU(cuMemAddressFree)(at, size));
        return vmm_random(chaos, 2) ? vmm_pool(chaos) : vmm_share(chaos, *handle, handle);
    default:
        return vmm_ask(chaos, at, *handle);
    }
}

/* A handle that is overwritten while it has references keeps them. */
static void vmm_clean(const struct vmm_chaos *chaos) {
    for (u64 at = 0; at < V_PLACES; at++)
        for (size_t size = 1; size <= 3; size++)
            CU(cuMemUnmap)(chaos->place + at * V_BLOCK, size * V_BLOCK);
    for (size_t i = 0; i < V_HANDLES; i++)
        while (CU(cuMemRelease)(chaos->handles[i]) == CUDA_SUCCESS)
            ;
}

/* vchaos SEED STEPS -> calls, a hash of their codes */
static int c_vchaos(char **w) {
    struct vmm_chaos chaos = {.state = number(w[1])};
    CUdeviceptr place = 0;
    int code = (int)CU(cuMemAddressReserve)(&place, (size_t)V_PLACES * V_BLOCK, 0, 0, 0);
    chaos.place = place;
    for (u64 i = number(w[2]); !code && i > 0; i--)
        vmm_step(&chaos);
    vmm_clean(&chaos);
    code = code ? code : (int)CU(cuMemAddressFree)(place, (size_t)V_PLACES * V_BLOCK);
    say(" %llu %llx", chaos.calls, chaos.hash);
    return code;
}

/* mapped NAME OFFSET SIZE: what the calls for memory of cuMemCreate, and those for managed memory,
 * answer about a range: retain, unmap, set access, free the address, map; get access, flags;
 * prefetch, advise */
static int c_mapped(char **w) {
    const u64 at = value(w[1]) + number(w[2]), size = number(w[3]);
    const CUmemAccessDesc read = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                  .flags = CU_MEM_ACCESS_FLAGS_PROT_READ};
    CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = read.location};
    CUmemGenericAllocationHandle handle, block;
    unsigned long long flags = 77;
    say(" %d", (int)CU(cuMemRetainAllocationHandle)(&handle, (void *)(uintptr_t)at));
    say(" %d", (int)CU(cuMemUnmap)(at, size));
    say(" %d", (int)CU(cuMemSetAccess)(at, size, &read, 1));
    say(" %d", (int)CU(cuMemAddressFree)(at, size));
    int code = (int)CU(cuMemCreate)(&block, size, &wanted, 0);
    if (!code) {
        say(" %d", (int)CU(cuMemMap)(at, size, 0, block, 0));
        code = (int)CU(cuMemRelease)(block);
    }
    say(" %d", (int)CU(cuMemGetAccess)(&flags, &read.location, at));
    say(" %lld", (long long)flags);
    say(" %d", (int)CU(cuMemPrefetchAsync)(at, size, read.location, 0, NULL));
    say(" %d", (int)CU(cuMemAdvise)(at, size, CU_MEM_ADVISE_SET_READ_MOSTLY, read.location));
    return code;
}

/* dmabuf NAME OFFSET SIZE: a descriptor of it, which stays open; memops NAME OFFSET: SYNC_MEMOPS */
static int c_dmabuf(char **w) {
    int fd;
    return (int)CU(cuMemGetHandleForAddressRange)(&fd, value(w[1]) + number(w[2]), number(w[3]),
                                                  CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
}
COMMAND(multicast, (int)CU(cuMulticastBindAddr)(0, 0, value(w[1]) + number(w[2]), number(w[3]), 0))
/* decompress NAME OFFSET SIZE: the count of bytes comes before them */
static int c_decompress(char **w) {
    const u64 to = value(w[1]) + number(w[2]);
    CUmemDecompressParams part = {.srcNumBytes = 16,
                                  .dstNumBytes = number(w[3]),
                                  .dstActBytes = (cuuint32_t *)(to - sizeof(cuuint32_t)),
                                  .src = (void *)value(w[1]),
                                  .dst = (void *)to};
    return (int)CU(cuMemBatchDecompressAsync)(&part, 1, 0, NULL, NULL);
}
static int c_memops(char **w) {
    const unsigned on = 1;
    return (int)CU(cuPointerSetAttribute)(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                          value(w[1]) + number(w[2]));
}

/* hold PATH: opens it for good */
COMMAND(hold, open(w[1], O_RDWR) < 0 ? errno : 0)

/* capture STREAM; captured STREAM NAME: ends it, and the graph is ready; graph STREAM NAME: runs it
 */
COMMAND(capture, (int)CU(cuStreamBeginCapture)(stream_of(w[1]), (CUstreamCaptureMode)number(w[2])))
static int c_captured(char **w) {
    CUgraph graph;
    CUgraphExec made = NULL;
    int code = (int)CU(cuStreamEndCapture)(stream_of(w[1]), &graph);
    code = code ? code : (int)CU(cuGraphInstantiate)(&made, graph, 0);
    return pointer_reply(w[2], code, (uintptr_t)made);
}
/* node copy|fill TO OFFSET COUNT FROM|BYTE NAME: a graph of one node, ready; renode the same: other
 * parameters for that node of NAME; word STREAM NAME OFFSET VALUE: cuStreamWriteValue32 */
static CUgraphNode last_node;

static CUDA_MEMCPY3D node_copy(char **w) {
    return (CUDA_MEMCPY3D){.dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = value(w[2]) + number(w[3]),
                           .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = w[1][0] == 'c' ? value(w[5]) : 0,
                           .WidthInBytes = number(w[4]),
                           .Height = 1,
                           .Depth = 1};
}
static CUDA_MEMSET_NODE_PARAMS node_fill(char **w) {
    return (CUDA_MEMSET_NODE_PARAMS){.dst = value(w[2]) + number(w[3]),
                                     .value = w[1][0] == 'f' ? (unsigned)number(w[5]) : 0,
                                     .elementSize = 1,
                                     .width = number(w[4]),
                                     .height = 1};
}
static int c_node(char **w) {
    CUgraph graph;
    CUgraphExec made = NULL;
    CUcontext context;
    const CUDA_MEMCPY3D copy = node_copy(w);
    const CUDA_MEMSET_NODE_PARAMS fill = node_fill(w);
    int code = (int)CU(cuGraphCreate)(&graph, 0);
    code = code ? code : (int)CU(cuCtxGetCurrent)(&context);
    if (!code)
        code = w[1][0] == 'c'
                   ? (int)CU(cuGraphAddMemcpyNode)(&last_node, graph, NULL, 0, &copy, context)
                   : (int)CU(cuGraphAddMemsetNode)(&last_node, graph, NULL, 0, &fill, context);
    code = code ? code : (int)CU(cuGraphInstantiate)(&made, graph, 0);
    return pointer_reply(w[6], code, (uintptr_t)made);
}
static int c_renode(char **w) {
    const CUgraphExec graph = (CUgraphExec)(uintptr_t)value(w[6]);
    CUcontext context;
    const CUDA_MEMCPY3D copy = node_copy(w);
    const CUDA_MEMSET_NODE_PARAMS fill = node_fill(w);
    int code = (int)CU(cuCtxGetCurrent)(&context);
    if (!code)
        code = w[1][0] == 'c'
                   ? (int)CU(cuGraphExecMemcpyNodeSetParams)(graph, last_node, &copy, context)
                   : (int)CU(cuGraphExecMemsetNodeSetParams)(graph, last_node, &fill, context);
    return code;
}
COMMAND(word, (int)CU(cuStreamWriteValue32)(stream_of(w[1]), value(w[2]) + number(w[3]),
                                            (cuuint32_t)number(w[4]), 0))
COMMAND(graph, (int)CU(cuGraphLaunch)((CUgraphExec)(uintptr_t)value(w[2]), stream_of(w[1])))

#ifndef VENDOR_HIP
/* graphown NAME: on the thread's own default stream */
typedef CUresult launch_graph(CUgraphExec graph, CUstream stream);
COMMAND(graphown,
        (int)((launch_graph *)abi("cuGraphLaunch_ptsz"))((CUgraphExec)(uintptr_t)value(w[1]), NULL))

/* made NAME: a graph without nodes. more GRAPH kernel|copy|fill|child ...: a node more, of KERNEL
 * ARGUMENT..., TO FROM COUNT, TO BYTE COUNT, or GRAPH; each of TO and FROM is NAME[+OFFSET]. ready
 * GRAPH NAME [FUNCTION]: it can be launched; update NAME GRAPH; rekernel NAME KERNEL ARGUMENT...:
 * other ones for the last node; disable NAME: the last node. */
static int c_made(char **w) {
    CUgraph graph = NULL;
    const int code = (int)CU(cuGraphCreate)(&graph, 0);
    return pointer_reply(w[1], code, (uintptr_t)graph);
}

static int plan_kernel(char **w, CUDA_KERNEL_NODE_PARAMS *kernel) {
    enum { MOST = 8, GRID = 32, THREADS = 128 };
    static u64 values[MOST];
    static void *places[MOST];
    for (size_t i = 0; i < MOST && w[1 + i]; i++) {
        values[i] = argument(w[1 + i]);
        places[i] = &values[i];
    }
    *kernel = (CUDA_KERNEL_NODE_PARAMS){.gridDimX = GRID,
                                        .gridDimY = 1,
                                        .gridDimZ = 1,
                                        .blockDimX = THREADS,
                                        .blockDimY = 1,
                                        .blockDimZ = 1,
                                        .kernelParams = places};
    return (int)CU(cuModuleGetFunction)(&kernel->func, kernels, w[0]);
}

static int c_more(char **w) {
    const CUgraph graph = (CUgraph)(uintptr_t)value(w[1]);
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUcontext context;
    int code = (int)CU(cuCtxGetCurrent)(&context);
    if (strcmp(w[2], "child") == 0)
        return (int)CU(cuGraphAddChildGraphNode)(&last_node, graph, NULL, 0,
                                                 (CUgraph)(uintptr_t)value(w[3]));
    if (strcmp(w[2], "kernel") == 0) {
        code = code ? code : plan_kernel(w + 3, &kernel);
        return code ? code : (int)CU(cuGraphAddKernelNode)(&last_node, graph, NULL, 0, &kernel);
    }
    const u64 to = argument(w[3]), from = argument(w[4]), count = number(w[5]);
    const CUDA_MEMCPY3D copy = {.dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = to,
                                .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = from,
                                .WidthInBytes = count,
                                .Height = 1,
                                .Depth = 1};
    const CUDA_MEMSET_NODE_PARAMS fill = {
        .dst = to, .value = (unsigned)from, .elementSize = 1, .width = count, .height = 1};
    if (code)
        return code;
    return w[2][0] == 'c'
               ? (int)CU(cuGraphAddMemcpyNode)(&last_node, graph, NULL, 0, &copy, context)
               : (int)CU(cuGraphAddMemsetNode)(&last_node, graph, NULL, 0, &fill, context);
}

static int c_ready(char **w) {
    const CUgraph graph = (CUgraph)(uintptr_t)value(w[1]);
    typedef CUresult with_params(CUgraphExec *, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS *);
    CUDA_GRAPH_INSTANTIATE_PARAMS how = {.flags = 0};
    CUgraphExec made = NULL;
    const int code = w[3] ? (int)((with_params *)abi(w[3]))(&made, graph, &how)
                          : (int)CU(cuGraphInstantiate)(&made, graph, 0);
    return pointer_reply(w[2], code, (uintptr_t)made);
}

static int c_update(char **w) {
    CUgraphExecUpdateResultInfo how;
    return (int)CU(cuGraphExecUpdate)((CUgraphExec)(uintptr_t)value(w[1]),
                                      (CUgraph)(uintptr_t)value(w[2]), &how);
}

static int c_rekernel(char **w) {
    CUDA_KERNEL_NODE_PARAMS kernel;
    const int code = plan_kernel(w + 2, &kernel);
    return code ? code
                : (int)CU(cuGraphExecKernelNodeSetParams)((CUgraphExec)(uintptr_t)value(w[1]),
                                                          last_node, &kernel);
}
COMMAND(disable, (int)CU(cuGraphNodeSetEnabled)((CUgraphExec)(uintptr_t)value(w[1]), last_node, 0))
COMMAND(unready, (int)CU(cuGraphExecDestroy)((CUgraphExec)(uintptr_t)value(w[1])))

/* newer FUNCTION TO OFFSET FROM OFFSET COUNT [export]: copies, or binds TO, by a function that
 * cuda.h lacks: as the resolver finds it, or, by the name of an export, as dlsym does */
static void *newer_found(char **w) {
    CUdriverProcAddressQueryResult status;
    void *found = NULL;
    if (w[7])
        return dlsym(dlopen("libcuda.so.1", RTLD_NOW), w[1]);
    return CU(cuGetProcAddress)(w[1], &found, 99000, 0, &status) ? NULL : found;
}

#define NEWER(type) ((type *)newer_found(w))

/* plug PATH: loads a library that looks into its own dependencies first */
static void *plugin;
static int c_plug(char **w) {
    plugin = dlopen(w[1], RTLD_LAZY | RTLD_DEEPBIND);
    return plugin ? 0 : 1;
}

/* plugged FUNCTION NAME: what that library's function answers */
static int c_plugged(char **w) {
    int (*function)(u64) = (int (*)(u64))dlsym(plugin, w[1]);
    return function ? function(value(w[2])) : BAD;
}

static int run_graph(CUgraph graph) {
    CUgraphExec made;
    int code = (int)CU(cuGraphInstantiate)(&made, graph, 0);
    code = code ? code : (int)CU(cuGraphLaunch)(made, NULL);
    return code ? code : (int)CU(cuStreamSynchronize)(NULL);
}

static int newer_node(char **w, u64 to, u64 from, size_t size, bool again) {
    typedef CUresult add(CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *,
                         size_t, CUgraphNodeParams *);
    typedef CUresult set(CUgraphNode, CUgraphNodeParams *);
    CUgraph graph;
    CUcontext context;
    CUgraphNodeParams what = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    what.memcpy.copyParams = (CUDA_MEMCPY3D){.dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                             .dstDevice = again ? from : to,
                                             .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                             .srcDevice = from,
                                             .WidthInBytes = size,
                                             .Height = 1,
                                             .Depth = 1};
    int code = (int)CU(cuGraphCreate)(&graph, 0);
    code = code ? code : (int)CU(cuCtxGetCurrent)(&context);
    if (code)
        return code;
    if (!again) {
        code = (int)NEWER(add)(&last_node, graph, NULL, NULL, 0, &what);
        return code ? code : run_graph(graph);
    }
    code =
        (int)CU(cuGraphAddMemcpyNode)(&last_node, graph, NULL, 0, &what.memcpy.copyParams, context);
    what.memcpy.copyParams.dstDevice = to;
    code = code ? code : (int)NEWER(set)(last_node, &what);
    return code ? code : run_graph(graph);
}

static int newer_capture(char **w, u64 to, u64 from, size_t size, bool again) {
    typedef CUresult begin(CUstream, void *);
    typedef CUresult begin_again(CUstream, CUstreamCaptureMode, CUgraph, void *, void *);
    typedef CUresult end(CUstream);
    char *ends[] = {w[0], "cuStreamEndCaptureToCig", NULL, NULL, NULL, NULL, NULL, w[7]};
    CUgraph graph;
    CUstream stream;
    int code = (int)CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
    code = code ? code : (int)CU(cuGraphCreate)(&graph, 0);
    if (!code)
        code = again ? (int)NEWER(begin_again)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, graph, NULL,
                                               NULL)
                     : (int)NEWER(begin)(stream, NULL);
    code = code ? code : (int)CU(cuMemcpyDtoDAsync)(to, from, size, stream);
    if (!code)
        code = again ? (int)CU(cuStreamEndCapture)(stream, &graph)
                     : (int)((end *)newer_found(ends))(stream);
    code = code || !again ? code : run_graph(graph);
    return code ? code : (int)CU(cuStreamDestroy)(stream);
}

static int newer_bind(char **w, u64 to, size_t size, bool by_handle) {
    typedef CUresult mem(u64, CUdevice, size_t, u64, size_t, size_t, unsigned long long);
    typedef CUresult address(u64, CUdevice, size_t, u64, size_t, unsigned long long);
    const CUmulticastObjectProp prop = {.numDevices = 1, .size = size};
    CUmemGenericAllocationHandle object;
    const int code = (int)CU(cuMulticastCreate)(&object, &prop);
    return code        ? code
           : by_handle ? (int)NEWER(mem)(object, 0, 0, to, 0, size, 0)
                       : (int)NEWER(address)(object, 0, 0, to, size, 0);
}

static bool begins(const char *name, const char *with) {
    return strncmp(name, with, strlen(with)) == 0;
}

static int c_newer(char **w) {
    typedef CUresult copy(u64, u64, size_t, CUmemcpyAttributes *, CUstream);
    typedef CUresult copy_box(CUDA_MEMCPY3D_BATCH_OP *, unsigned long long, CUstream);
    const u64 to = value(w[2]) + number(w[3]), from = value(w[4]) + number(w[5]);
    const size_t size = number(w[6]);
    CUDA_MEMCPY3D_BATCH_OP box = {.extent = {size, 1, 1},
                                  .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    box.dst.type = box.src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    box.dst.op.ptr.ptr = to;
    box.src.op.ptr.ptr = from;
    if (!newer_found(w))
        return BAD;
    if (begins(w[1], "cuGraph"))
        return newer_node(w, to, from, size, begins(w[1], "cuGraphNode"));
    if (begins(w[1], "cuStream"))
        return newer_capture(w, to, from, size, begins(w[1], "cuStreamBeginRe"));
    if (strstr(w[1], "Bind"))
        return newer_bind(w, to, size, strstr(w[1], "Mem"));
    const int code = begins(w[1], "cuMemcpy3D") ? (int)NEWER(copy_box)(&box, 0, NULL)
                                                : (int)NEWER(copy)(to, from, size, NULL, NULL);
    return code ? code : (int)CU(cuStreamSynchronize)(NULL);
}

/* lookups NAME FROM COUNT: asks for NAME0, NAME1 ... */
static int c_lookups(char **w) {
    for (u64 i = number(w[2]); i < number(w[2]) + number(w[3]); i++) {
        char name[64];
        char *asked[] = {w[0], name, NULL, NULL, NULL, NULL, NULL, NULL};
        snprintf(name, sizeof(name), "%s%llu", w[1], (unsigned long long)i);
        if (!newer_found(asked))
            return BAD;
    }
    return 0;
}
#endif

/* --- kernels of many threads --- */

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
    (void)w;
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

/* --- many at once --- */

struct job {
    const char *what;
    unsigned char handle[64];
    u64 rounds, size;
    unsigned failures;
};

/* The driver answers 208 while another thread opens or closes the same memory. */
static int open_again(u64 *pointer, const unsigned char *handle) {
    enum { ALREADY_MAPPED = 208 };
    int code;
    while ((code = do_open(pointer, handle, 1)) == ALREADY_MAPPED)
        sched_yield();
    return code;
}

/* Only the last failing code matters to those who look. */
static unsigned work_once(const struct job *job, unsigned *failures) {
    unsigned char handle[64];
    u64 pointer = 0;
    int code;
    if (strcmp(job->what, "open") == 0) {
        code = do_open(&pointer, job->handle, 1);
        code = code ? code : do_close(pointer);
    } else if (strcmp(job->what, "use") == 0) {
        code = open_again(&pointer, job->handle);
        code = code ? code : do_read(handle, pointer, sizeof(handle));
        code = code ? code : do_close(pointer);
    } else {
        code = do_malloc(&pointer, job->size);
        if (!code && (strcmp(job->what, "export") == 0 || strcmp(job->what, "keep") == 0))
            code = do_get(handle, pointer);
        if (!code && strcmp(job->what, "keep") != 0)
            code = do_free(pointer);
    }
    *failures += code != 0;
    return (unsigned)code;
}

static void *work(void *arg) {
    struct job *job = arg;
    for (u64 i = 0; i < job->rounds; i++)
        work_once(job, &job->failures);
    return NULL;
}

/* threads N ROUNDS malloc|export|keep|open|use SIZE|HANDLE...: with several, one a thread */
static int c_threads(char **w) {
    enum { MAX = 64 };
    pthread_t threads[MAX];
    struct job jobs[MAX];
    char **handle = &w[4];
    unsigned failures = 0;
    const size_t count = number(w[1]) < MAX ? number(w[1]) : MAX;
    for (size_t i = 0; i < count; i++) {
        jobs[i] = (struct job){.what = w[3], .rounds = number(w[2]), .size = number(w[4])};
        if (strcmp(w[3], "open") == 0 || strcmp(w[3], "use") == 0)
            from_hex(*handle, jobs[i].handle, sizeof(jobs[i].handle));
        handle += handle[1] != NULL;
        if (pthread_create(&threads[i], NULL, work, &jobs[i]) != 0)
            return BAD;
    }
    for (size_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        failures += jobs[i].failures;
    }
    say(" %u", failures);
    return 0;
}

static u64 *many;
static size_t many_count;

static int compare(const void *a, const void *b) {
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static int64_t median(int64_t *times, size_t count) {
    qsort(times, count, sizeof(*times), compare);
    return count ? times[count / 2] : 0;
}

/* many COUNT SIZE -> median nanoseconds in the first and in the last tenth, and the slowest of all
 */
static int c_many(char **w) {
    many_count = number(w[1]);
    many = calloc(many_count, sizeof(*many));
    int64_t *const took = calloc(many_count, sizeof(*took)), slowest = 0;
    const size_t tenth = many_count / 10;
    for (size_t i = 0; i < many_count; i++) {
        const int64_t start = now_ns();
        const int code = do_malloc(&many[i], number(w[2]));
        took[i] = now_ns() - start;
        if (code)
            return code;
        slowest = took[i] > slowest ? took[i] : slowest;
    }
    const int64_t first = median(took, tenth), last = median(took + many_count - tenth, tenth);
    free(took);
    say(" %lld %lld %lld", (long long)first, (long long)last, (long long)slowest);
    return 0;
}

/* manyfree [EVERY] [FROM]: each EVERY-th, FROM on */
static int c_manyfree(char **w) {
    const size_t every = w[1] ? number(w[1]) : 1;
    for (size_t i = number(w[1] ? w[2] : NULL); i < many_count; i += every) {
        const int code = do_free(many[i]);
        if (code)
            return code;
    }
    return 0;
}

/* manyget: exports each of them */
static int c_manyget(char **w) {
    unsigned char handle[64];
    (void)w;
    for (size_t i = 0; i < many_count; i++) {
        const int code = do_get(handle, many[i]);
        if (code)
            return code;
    }
    return 0;
}

/* chaos SEED DIR MS: allocates, exports, opens, closes and frees at random; handles lie in DIR.
 * Bytes that it wrote itself must still be there when it frees. */
struct chaos {
    unsigned seed;
    const char *dir;
    u64 own[8], opened[8];
    unsigned wrong;
};

static unsigned dice(struct chaos *chaos, unsigned sides) {
    return (unsigned)rand_r(&chaos->seed) / 7 % sides;
}

static void chaos_publish(struct chaos *chaos, u64 pointer) {
    char path[512], temporary[512];
    unsigned char handle[64];
    if (do_get(handle, pointer))
        return;
    snprintf(path, sizeof(path), "%s/%u", chaos->dir, dice(chaos, 16));
    snprintf(temporary, sizeof(temporary), "%s/.%d", chaos->dir, (int)getpid());
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (write(fd, handle, sizeof(handle)) == (ssize_t)sizeof(handle))
        rename(temporary, path);
    close(fd);
}

static void chaos_own(struct chaos *chaos, u64 *slot) {
    if (!*slot) {
        if (do_malloc(slot, 1u << (12 + dice(chaos, 11))))
            *slot = 0;
        else
            do_fill(*slot, 0x5a, 64);
        return;
    }
    if (dice(chaos, 2)) {
        chaos_publish(chaos, *slot);
        return;
    }
    unsigned char bytes[64] = {0};
    if (!do_read(bytes, *slot, sizeof(bytes)) && bytes[63] != 0x5a)
        chaos->wrong++;
    chaos->wrong += do_free(*slot) != 0;
    *slot = 0;
}

static void chaos_opened(struct chaos *chaos, u64 *slot) {
    char path[512];
    unsigned char handle[64];
    if (*slot) {
        chaos->wrong += do_close(*slot) != 0;
        *slot = 0;
        return;
    }
    snprintf(path, sizeof(path), "%s/%u", chaos->dir, dice(chaos, 16));
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (read(fd, handle, sizeof(handle)) != (ssize_t)sizeof(handle) || do_open(slot, handle, 1))
        *slot = 0;
    close(fd);
}

static int c_chaos(char **w) {
    struct chaos chaos = {.seed = (unsigned)number(w[1]), .dir = w[2]};
    const int64_t until = now_ns() + (int64_t)number(w[3]) * 1000000;
    unsigned rounds = 0;
    for (; now_ns() < until; rounds++) {
        if (dice(&chaos, 2))
            chaos_own(&chaos, &chaos.own[dice(&chaos, 8)]);
        else
            chaos_opened(&chaos, &chaos.opened[dice(&chaos, 8)]);
    }
    for (size_t i = 0; i < 8; i++) {
        chaos.wrong += chaos.opened[i] && do_close(chaos.opened[i]);
        chaos.wrong += chaos.own[i] && do_free(chaos.own[i]);
    }
    say(" %u %u", chaos.wrong, rounds);
    return 0;
}

/* --- processes --- */

/* fork COMMAND[;COMMAND]...: the child obeys them, and its replies come back joined by " | ". A
 * last command that ends the process is the child's end; else it is _exit(0). */
static int c_fork(char **w) {
    int ends[2];
    char script[LINE] = "";
    for (size_t i = 1; w[i]; i++) {
        strncat(script, i > 1 ? " " : "", sizeof(script) - strlen(script) - 1);
        strncat(script, w[i], sizeof(script) - strlen(script) - 1);
    }
    if (pipe(ends) != 0)
        return BAD;
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        for (char *next = script, *one; (one = strsep(&next, ";")) != NULL;) {
            obey(one);
            put(reply, reply_length);
            put(" | ", 3);
        }
        _exit(0);
    }
    close(ends[1]);
    static char text[LINE];
    size_t used = 0;
    ssize_t count;
    while ((count = read(ends[0], text + used, sizeof(text) - 1 - used)) > 0)
        used += (size_t)count;
    close(ends[0]);
    text[used] = '\0';
    int status = 0;
    waitpid(child, &status, 0);
    say(" %d %s", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text);
    return 0;
}

/* spawn IN OUT: a forked child that goes on as a puppet of its own, on two named pipes */
static int c_spawn(char **w) {
    const pid_t child = fork();
    if (child == 0) {
        const int in = open(w[1], O_RDONLY), out = open(w[2], O_WRONLY);
        if (in < 0 || out < 0)
            _exit(112);
        dup2(in, 0);
        dup2(out, 1);
        close(in);
        close(out);
        say(" child");
        return 0;
    }
    say(" %d", (int)child);
    return child < 0 ? BAD : 0;
}

static int c_exec(char **w) {
    char *const arguments[] = {w[1] ? w[1] : (char *)"/proc/self/exe", (char *)"exec", NULL};
    put("0 exec\n", 7);
    execv(arguments[0], arguments);
    return BAD;
}

static int c_exit(char **w) {
    exit((int)number(w[1]));
}
static int c__exit(char **w) {
    _exit((int)number(w[1]));
}
static int c_quick_exit(char **w) {
    quick_exit((int)number(w[1]));
}
static int c_abort(char **w) {
    const struct rlimit none = {0, 0};
    (void)w;
    setrlimit(RLIMIT_CORE, &none);
    abort();
}
COMMAND(return, QUIT)
static int c_pid(char **w) {
    (void)w;
    say(" %d", (int)getpid());
    return 0;
}
static int c_sleep(char **w) {
    nap(number(w[1]));
    return 0;
}
static void *outlive(void *milliseconds) {
    nap((u64)(uintptr_t)milliseconds);
    return NULL;
}
static void say_goodbye(int signal) {
    static const char text[] = "0 told to end\n";
    (void)signal;
    _exit(write(1, text, sizeof(text) - 1) > 0 ? 7 : 8);
}
/* leave MILLISECONDS [handle]: the main thread ends, and another one after that time; 0: there is
 * none. `handle`: with a handler of SIGTERM */
static int c_leave(char **w) {
    pthread_t thread;
    const u64 ms = number(w[1]);
    if (w[2])
        signal(SIGTERM, say_goodbye);
    if (ms && pthread_create(&thread, NULL, outlive, (void *)(uintptr_t)ms) != 0)
        return BAD;
    pthread_exit(NULL);
}
static void obey_all(void);
static void *go_on(void *unused) {
    while (access("/proc/self/exe", F_OK) == 0)
        nap(1);
    put("0\n", 2);
    obey_all();
    exit(0);
    return unused;
}
/* depart: the main thread ends, and another one answers and goes on with the commands */
static int c_depart(char **w) {
    pthread_t thread;
    (void)w;
    if (pthread_create(&thread, NULL, go_on, NULL) != 0)
        return BAD;
    pthread_exit(NULL);
}
static int c_env(char **w) {
    say(" %s", getenv(w[1]) ? getenv(w[1]) : "-");
    return 0;
}

static int c_fds(char **w) {
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    (void)w;
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    say(" %d", count - 3); /* . and .. and its own */
    return 0;
}

/* unlisten: as a program that closes what it does not know; another file gets each number */
static int c_unlisten(char **w) {
    const int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    unsigned count = 0;
    (void)w;
    for (int fd = 3; fd < 1024; fd++) {
        int listens = 0;
        socklen_t size = sizeof(listens);
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens)
            count += dup2(other, fd) == fd;
    }
    say(" %u", count);
    return 0;
}

/* Every descriptor of the file becomes one of another file. */
static int c_refile(char **w) {
    char link[32], target[4096];
    const int other = open(w[2], O_WRONLY | O_CREAT, 0600);
    int count = 0;
    for (int fd = 3; fd < 4096; fd++) {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        const ssize_t length = readlink(link, target, sizeof(target) - 1);
        if (length < 0)
            continue;
        target[length] = 0;
        count += strcmp(target, w[1]) == 0 && dup2(other, fd) == fd;
    }
    say(" %d", count);
    return 0;
}

static int c_tasks(char **w) {
    int count = 0;
    DIR *dir = opendir("/proc/self/task");
    (void)w;
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    say(" %d", count - 2);
    return 0;
}

/* refuse NUMBER: from now on the kernel answers a system call of all threads with ENOSYS */
static int c_refuse(char **w) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number(w[1]), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof(steps) / sizeof(steps[0]), steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) != 0)
        return BAD;
    return 0;
}

/* --- what a call leaves alone --- */

static char *join(char **w) {
    static char line[LINE];
    *line = '\0';
    for (; *w; w++) {
        strncat(line, *line ? " " : "", sizeof(line) - strlen(line) - 1);
        strncat(line, *w, sizeof(line) - strlen(line) - 1);
    }
    return line;
}

/* errno COMMAND...: says what errno, 4242 before, is after it */
static int c_errno(char **w) {
    char *const line = strdup(join(w + 1));
    errno = 4242;
    obey(line);
    const int after = errno;
    say(" errno %d", after);
    return SAID;
}

/* leap MILLISECONDS COMMAND...: a handler leaves the command by longjmp; says whether it did */
static sigjmp_buf leap_back;
static void leap(int number) {
    (void)number;
    siglongjmp(leap_back, 1);
}
struct leaper {
    pthread_t whom;
    useconds_t delay;
};
static void *leap_later(void *arg) {
    const struct leaper *const leaper = arg;
    usleep(leaper->delay);
    pthread_kill(leaper->whom, SIGUSR1);
    return NULL;
}
static int c_leap(char **w) {
    static struct leaper leaper;
    pthread_t thread;
    char *const line = strdup(join(w + 2));
    leaper = (struct leaper){pthread_self(), (useconds_t)number(w[1]) * 1000};
    signal(SIGUSR1, leap);
    if (sigsetjmp(leap_back, 1))
        return 0;
    pthread_create(&thread, NULL, leap_later, &leaper);
    obey(line);
    signal(SIGUSR1, SIG_IGN);
    return SAID;
}

/* A program that allocates and frees while a timer's handler ends it. */
static void end_here(int number) {
    (void)number;
    _exit(7);
}
static void *idle(void *unused) {
    pause();
    return unused;
}
static int c_alarm_exit(char **w) {
    const struct itimerval soon = {.it_value = {.tv_usec = (suseconds_t)number(w[1])}};
    void *kept[64] = {0};
    pthread_t thread;
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    pthread_create(&thread, NULL, idle, NULL); /* alone, a thread takes no lock of malloc's */
    pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
    signal(SIGALRM, end_here);
    setitimer(ITIMER_REAL, &soon, NULL);
    for (size_t i = 0; i < 1000000000; i++) {
        free(kept[i % 64]);
        kept[i % 64] = malloc(2000 + i % 64 * 1000);
    }
    return BAD;
}

/* hoard: takes every descriptor number; unhoard: gives them back */
static int hoarded[LINE], hoard_count;
static int c_hoard(char **w) {
    struct rlimit limit;
    const int first = dup(0);
    (void)w;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = (rlim_t)first + 64;
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = first; fd >= 0; fd = dup(0))
        hoarded[hoard_count++] = fd;
    return 0;
}
static int c_unhoard(char **w) {
    (void)w;
    while (hoard_count)
        close(hoarded[--hoard_count]);
    return 0;
}

static int c_lose_closed(char **w) {
    (void)w;
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    return 0;
}
static int c_lose_limit(char **w) {
    const struct rlimit limit = {number(w[2]), number(w[2])};
    return setrlimit(strcmp(w[1], "files") == 0 ? RLIMIT_NOFILE : RLIMIT_FSIZE, &limit);
}
static int c_lose_user(char **w) {
    const uid_t user = (uid_t)number(w[1]);
    return setresuid(user, user, user);
}
static int c_lose_root(char **w) {
    return chroot(w[1]) != 0 || chdir("/") != 0 ? BAD : 0;
}
static int c_lose_namespaces(char **w) {
    (void)w;
    return unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET);
}

struct relaxed_free {
    u64 pointer;
    int code;
};

static void *free_relaxed(void *arg) {
    struct relaxed_free *call = arg;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    call->code = (int)CU(cuThreadExchangeStreamCaptureMode)(&mode);
    call->code = call->code ? call->code : do_free(call->pointer);
    return NULL;
}

/* free-relaxed NAME: frees it in a thread of relaxed mode, while this one captures in global mode
 * -> the code of the capture's end */
static int c_free_relaxed(char **w) {
    struct relaxed_free call = {.pointer = value(w[1])};
    CUstream captured;
    CUgraph graph;
    pthread_t thread;
    int code = (int)CU(cuStreamCreate)(&captured, CU_STREAM_NON_BLOCKING);
    code = code ? code : (int)CU(cuStreamBeginCapture)(captured, CU_STREAM_CAPTURE_MODE_GLOBAL);
    if (code || pthread_create(&thread, NULL, free_relaxed, &call) != 0)
        return code ? code : BAD;
    pthread_join(thread, NULL);
    say(" %d", (int)CU(cuStreamEndCapture)(captured, &graph));
    return call.code;
}

/* dlerror COMMAND...: 1 when the message of an error before it is still there */
static int c_dlerror(char **w) {
    char *const line = strdup(join(w + 1));
    dlsym(RTLD_DEFAULT, "no_such_symbol_anywhere");
    obey(line);
    const char *message = dlerror();
    say(" dlerror %d", message && strstr(message, "no_such_symbol_anywhere"));
    return SAID;
}

struct later {
    unsigned ms;
    char *line;
};

static void *obey_later(void *arg) {
    const struct later *later = arg;
    usleep(1000 * later->ms);
    obey(later->line);
    reply[reply_length++] = '\n';
    put(reply, reply_length);
    reply_length = 0; /* main may be in the midst of a command */
    return NULL;
}

/* later MILLISECONDS COMMAND...: a second answer, from a thread that lives on while main ends */
static int c_later(char **w) {
    static struct later later;
    pthread_t thread;
    later = (struct later){(unsigned)number(w[1]), strdup(join(w + 2))};
    return pthread_create(&thread, NULL, obey_later, &later) != 0 ? BAD : pthread_detach(thread);
}

static char *last_line;

static void obey_last(void) {
    obey(last_line);
    reply[reply_length++] = '\n';
    put(reply, reply_length);
}

/* at_quick_exit COMMAND...: another answer, from a handler */
static int c_at_quick_exit(char **w) {
    last_line = strdup(join(w + 1));
    return at_quick_exit(obey_last);
}

/* at_exit COMMAND...: the same of exit */
static int c_at_exit(char **w) {
    last_line = strdup(join(w + 1));
    return atexit(obey_last);
}

static void *get_again(void *pointer) {
    unsigned char handle[64];
    char line[16];
    int code;
    while ((code = do_get(handle, *(const u64 *)pointer)) == 0) {
    }
    put(line, (size_t)sprintf(line, "%d\n", code));
    return NULL;
}

/* getting NAME THREADS: a second answer from each of them where it fails */
static int c_getting(char **w) {
    static u64 pointer;
    pthread_t thread;
    pointer = value(w[1]);
    for (u64 i = number(w[2]); i > 0; i--)
        if (pthread_create(&thread, NULL, get_again, &pointer) != 0)
            return BAD;
    return 0;
}

struct pending {
    char *line, answer[LINE];
};

static void *obey_pending(void *arg) {
    struct pending *const pending = arg;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cancel(pthread_self());
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    obey(pending->line);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    memcpy(pending->answer, reply, reply_length + 1); /* each thread has a reply of its own */
    return NULL;
}

/* pending COMMAND...: in a thread that is to be cancelled at the next point where that can be; 125:
 * it was */
static int c_pending(char **w) {
    void *result = NULL;
    pthread_t thread;
    static struct pending pending;
    pending.line = strdup(join(w + 1));
    if (pthread_create(&thread, NULL, obey_pending, &pending) != 0)
        return BAD;
    pthread_join(thread, &result);
    free(pending.line);
    if (result == PTHREAD_CANCELED)
        return 125;
    reply_length = strlen(strcpy(reply, pending.answer));
    return SAID;
}

static int c_help(char **w);

static const struct command {
    const char *name, *arguments;
    int (*fn)(char **words);
} commands[] = {
    {"help", "", c_help},
    {"device", "ORDINAL", c_device},
    {"peer", "DEVICE", c_peer},
    {"count", "", c_count},
    {"malloc", "NAME SIZE", c_malloc},
    {"pitch", "NAME WIDTH HEIGHT", c_pitch},
    {"pool", "NAME SIZE [STREAM]", c_pool},
    {"unpool", "NAME", c_unpool},
    {"free", "NAME", c_free},
    {"freeat", "HEX", c_freeat},
    {"get", "NAME [OFFSET]", c_get},
    {"getat", "HEX", c_getat},
    {"open", "NAME HANDLE [FLAGS]", c_open},
    {"close", "NAME", c_close},
    {"closeat", "HEX", c_closeat},
    {"fill", "NAME BYTE COUNT [OFFSET]", c_fill},
    {"read", "NAME OFFSET COUNT", c_read},
    {"write", "NAME OFFSET HEX", c_write},
    {"upload", "NAME OFFSET COUNT SEED HOW [POKE]", c_upload},
    {"tensors", "NAME THREADS ORDER KIB...", c_tensors},
    {"halves", "NAME COUNT SEED PIECE", c_halves},
    {"expect", "NAME OFFSET COUNT SEED", c_expect},
    {"sync", "", c_sync},
    {"reset", "", c_reset},
    {"info", "", c_info},
    {"range", "NAME [OFFSET]", c_range},
    {"ordinal", "NAME", c_ordinal},
#ifndef VENDOR_HIP
    {"graphown", "NAME", c_graphown},
    {"made", "NAME", c_made},
    {"more", "GRAPH KIND ARGUMENT...", c_more},
    {"ready", "GRAPH NAME [FUNCTION]", c_ready},
    {"update", "NAME GRAPH", c_update},
    {"rekernel", "NAME KERNEL ARGUMENT...", c_rekernel},
    {"disable", "NAME", c_disable},
    {"unready", "NAME", c_unready},
    {"newer", "FUNCTION TO OFFSET FROM OFFSET COUNT [export]", c_newer},
    {"lookups", "NAME FROM COUNT", c_lookups},
    {"plug", "PATH", c_plug},
    {"plugged", "FUNCTION NAME", c_plugged},
#else
    {"lasterror", "", c_lasterror},
    {"procaddress", "SYMBOL", c_procaddress},
#endif
    {"value", "NAME", c_value},
    {"within", "NAME OTHER OFFSET", c_within},
    {"evcreate", "NAME FLAGS", c_evcreate},
    {"evget", "NAME", c_evget},
    {"evopen", "NAME HANDLE", c_evopen},
    {"evdestroy", "NAME", c_evdestroy},
    {"evrecord", "NAME", c_evrecord},
    {"evquery", "NAME", c_evquery},
    {"evsync", "NAME", c_evsync},
    {"busy", "MILLISECONDS", c_busy},
    {"cuinit", "", c_cuinit},
    {"cumalloc", "NAME SIZE", c_cumalloc},
    {"cufree", "NAME", c_cufree},
    {"cuclose", "NAME", c_cuclose},
    {"ctxcreate", "NAME [DEVICE]", c_ctxcreate},
    {"ctxpush", "NAME", c_ctxpush},
    {"ctxset", "[NAME]", c_ctxset},
    {"ctxpop", "", c_ctxpop},
    {"ctxdestroy", "NAME", c_ctxdestroy},
    {"green", "NAME", c_green},
    {"ungreen", "", c_ungreen},
    {"release", "", c_release},
    {"kernels", "FILE", c_kernels},
    {"unload", "", c_unload},
    {"launch", "STREAM KERNEL ARGUMENT...", c_launch},
    {"spinboth", "STREAM STREAM NAME WORDS NS NS SUM", c_spinboth},
    {"oldlaunch", "STREAM KERNEL ARGUMENT...", c_oldlaunch},
    {"stream", "NAME [FLAGS]", c_stream},
    {"unstream", "NAME", c_unstream},
    {"squery", "STREAM", c_squery},
    {"ssync", "STREAM", c_ssync},
    {"sfill", "STREAM NAME BYTE COUNT [OFFSET]", c_sfill},
    {"capture", "STREAM [MODE]", c_capture},
    {"captured", "STREAM NAME", c_captured},
    {"copy", "TO OFFSET FROM OFFSET COUNT [default]", c_copy},
    {"rows", "STREAM NAME OFFSET PITCH WIDTH HEIGHT BYTE", c_rows},
    {"box", "STREAM TO OFFSET FROM OFFSET PITCH WIDTH HEIGHT", c_box},
    {"attribute", "NAME WHICH", c_attribute},
    {"told", "NAME OFFSET", c_told},
    {"mapped", "NAME OFFSET SIZE", c_mapped},
    {"vreserve", "NAME SIZE", c_vreserve},
    {"vunreserve", "NAME SIZE", c_vunreserve},
    {"vcreate", "NAME SIZE [TYPES [DEVICE]]", c_vcreate},
    {"vrelease", "NAME", c_vrelease},
    {"vretain", "NAME PLACE OFFSET", c_vretain},
    {"vmap", "PLACE OFFSET SIZE NAME", c_vmap},
    {"vunmap", "PLACE OFFSET SIZE", c_vunmap},
    {"vaccess", "PLACE OFFSET SIZE FLAGS [DEVICE]", c_vaccess},
    {"vexport", "NAME", c_vexport},
    {"vtypes", "NAME", c_vtypes},
    {"vimport", "NAME PID DESCRIPTOR", c_vimport},
    {"vreuse", "DESCRIPTOR", c_vreuse},
    {"vmany", "PLACE COUNT SIZE NAME", c_vmany},
    {"vthreads", "COUNT ROUNDS", c_vthreads},
    {"vchaos", "SEED STEPS", c_vchaos},
    {"dmabuf", "NAME OFFSET SIZE", c_dmabuf},
    {"multicast", "NAME OFFSET SIZE", c_multicast},
    {"decompress", "NAME OFFSET SIZE", c_decompress},
    {"memops", "NAME OFFSET", c_memops},
    {"hold", "PATH", c_hold},
    {"churn", "NAME WORDS THREADS MS [OTHER]", c_churn},
    {"flood", "NAME MS", c_flood},
    {"flooded", "", c_flooded},
    {"serve", "NAME MS NS...", c_serve},
    {"graph", "STREAM NAME", c_graph},
    {"node", "copy|fill TO OFFSET COUNT FROM|BYTE NAME", c_node},
    {"renode", "copy|fill TO OFFSET COUNT FROM|BYTE NAME", c_renode},
    {"word", "STREAM NAME OFFSET VALUE", c_word},
    {"threads", "COUNT ROUNDS malloc|export|keep|open|use SIZE|HANDLE...", c_threads},
    {"many", "COUNT SIZE", c_many},
    {"manyfree", "[EVERY] [FROM]", c_manyfree},
    {"manyget", "", c_manyget},
    {"chaos", "SEED DIRECTORY MILLISECONDS", c_chaos},
    {"fork", "COMMAND[;COMMAND]...", c_fork},
    {"spawn", "INPUT OUTPUT", c_spawn},
    {"exec", "[PROGRAM]", c_exec},
    {"exit", "STATUS", c_exit},
    {"_exit", "STATUS", c__exit},
    {"quick_exit", "STATUS", c_quick_exit},
    {"abort", "", c_abort},
    {"return", "", c_return},
    {"pid", "", c_pid},
    {"sleep", "MILLISECONDS", c_sleep},
    {"leave", "MILLISECONDS [handle]", c_leave},
    {"depart", "", c_depart},
    {"env", "NAME", c_env},
    {"fds", "", c_fds},
    {"unlisten", "", c_unlisten},
    {"refile", "PATH OTHER", c_refile},
    {"tasks", "", c_tasks},
    {"refuse", "NUMBER", c_refuse},
    {"alarm_exit", "MICROSECONDS", c_alarm_exit},
    {"hoard", "", c_hoard},
    {"unhoard", "", c_unhoard},
    {"lose_closed", "", c_lose_closed},
    {"lose_limit", "files|size NUMBER", c_lose_limit},
    {"lose_user", "UID", c_lose_user},
    {"lose_root", "DIRECTORY", c_lose_root},
    {"lose_namespaces", "", c_lose_namespaces},
    {"free-relaxed", "NAME", c_free_relaxed},
    {"errno", "COMMAND...", c_errno},
    {"leap", "MILLISECONDS COMMAND...", c_leap},
    {"dlerror", "COMMAND...", c_dlerror},
    {"later", "MILLISECONDS COMMAND...", c_later},
    {"at_quick_exit", "COMMAND...", c_at_quick_exit},
    {"at_exit", "COMMAND...", c_at_exit},
    {"getting", "NAME THREADS", c_getting},
    {"pending", "COMMAND...", c_pending},
};

static int c_help(char **w) {
    (void)w;
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
        say("%s %s %s", i ? "," : "", commands[i].name, commands[i].arguments);
    return 0;
}

static const struct command *find(const char *name) {
    for (size_t i = 0; name && i < sizeof(commands) / sizeof(*commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

/* Leaves the reply, without its newline, in `reply`; QUIT when main is to return. */
static int obey(char *line) {
    char *words[WORDS + 1] = {NULL};
    size_t count = 0;
    for (char *word; (word = strsep(&line, " \n")) != NULL;)
        if (*word && count < WORDS)
            words[count++] = word;
    const struct command *command = find(words[0]);
    enum { CODE = 12 }; /* room for the code, which comes first and is known last */
    char code_text[CODE];
    reply_length = 0;
    const int code = command ? command->fn(words) : BAD;
    if (code == SAID)
        return 0;
    const size_t length = (size_t)snprintf(code_text, sizeof(code_text), "%d", code);
    if (reply_length + length >= sizeof(reply))
        reply_length = sizeof(reply) - length - 1;
    memmove(reply + length, reply, reply_length);
    memcpy(reply, code_text, length);
    reply_length += length;
    reply[reply_length] = '\0';
    return code;
}

static bool get_line(char *line, size_t size) {
    size_t used = 0;
    while (used < size - 1) {
        const ssize_t count = read(0, line + used, 1);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        if (line[used] == '\n')
            break;
        used++;
    }
    line[used] = '\0';
    return true;
}

static void obey_all(void) {
    static char line[LINE];
    while (get_line(line, sizeof(line)) && obey(line) != QUIT) {
        reply[reply_length++] = '\n';
        put(reply, reply_length);
    }
}

int main(void) {
    obey_all();
    return 0;
}
