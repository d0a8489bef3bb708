/* Kernels, by name; see kernel.h. */
#include "kernel.h"

#include "device.h"
#include "touch.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    CHUNK = 16384, /* what one hash is of, and the most that is touched at once */
    SECRET = 192,
    WORD = sizeof(uint32_t),
    SPIN_PAUSE_NS = 20000,
};

struct kernel {
    const char *name;
    unsigned short width[KERNEL_PARAMETERS]; /* of its parameters, in bytes */
    CUresult (*run)(const struct launch *launch, const uint64_t *argument);
    /* How many bytes it was given at the address that an argument is; 0: it is no address. */
    uint64_t (*given)(const uint64_t *argument, unsigned index);
};

/* --- touching memory --- */

static CUresult move(const struct launch *launch, uint64_t address, void *bytes, uint64_t size,
                     bool writes) {
    for (uint64_t done = 0; done < size;) {
        struct touch part = {.address = address + done,
                             .size = size - done,
                             .card = launch->context->card,
                             .writes = writes};
        if (launch->context->lost)
            return (CUresult)launch->context->lost;
        if (!touch_begin(&part, 1)) {
            device_fault(launch->context->card);
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        }
        unsigned char *here = (unsigned char *)bytes + done;
        memcpy(writes ? part.at : here, writes ? here : part.at, part.size);
        touch_end(&part, 1);
        done += part.size;
    }
    return CUDA_SUCCESS;
}

static CUresult load(const struct launch *launch, uint64_t from, void *to, uint64_t size) {
    return move(launch, from, to, size, false);
}

static CUresult store(const struct launch *launch, uint64_t to, void *from, uint64_t size) {
    return move(launch, to, from, size, true);
}

static uint64_t chunk_at(uint64_t done, uint64_t size) {
    return size - done < CHUNK ? size - done : CHUNK;
}

/* --- gpushare's: (from, size, secret, out), (a, b, size, differs) --- */

static CUresult hash(const struct launch *launch, const uint64_t *argument) {
    unsigned char bytes[CHUNK], secret[SECRET];
    CUresult result = argument[2] ? load(launch, argument[2], secret, SECRET) : CUDA_SUCCESS;
    for (uint64_t done = 0, i = 0; done < argument[1] && !result; done += CHUNK, i++) {
        uint64_t size = chunk_at(done, argument[1]);
        result = load(launch, argument[0] + done, bytes, size);
        if (result)
            break;
        XXH128_hash_t sum = argument[2] ? XXH3_128bits_withSecret(bytes, size, secret, SECRET)
                                        : XXH3_128bits(bytes, size);
        uint64_t out[] = {sum.low64, sum.high64};
        result = store(launch, argument[3] + i * sizeof out, out, sizeof out);
    }
    return result;
}

static uint64_t hash_given(const uint64_t *argument, unsigned index) {
    const uint64_t chunks = (argument[1] + CHUNK - 1) / CHUNK;
    const uint64_t given[] = {argument[1], 0, argument[2] ? SECRET : 0, chunks * 16};
    return given[index];
}

static CUresult compare(const struct launch *launch, const uint64_t *argument) {
    unsigned char a[CHUNK], b[CHUNK];
    uint32_t differs = 1;
    CUresult result = CUDA_SUCCESS;
    for (uint64_t done = 0; done < argument[2] && !result; done += CHUNK) {
        uint64_t size = chunk_at(done, argument[2]);
        result = load(launch, argument[0] + done, a, size);
        if (!result)
            result = load(launch, argument[1] + done, b, size);
        if (!result && memcmp(a, b, size))
            return store(launch, argument[3], &differs, WORD);
    }
    return result;
}

static uint64_t compare_given(const uint64_t *argument, unsigned index) {
    const uint64_t given[] = {argument[2], argument[2], 0, WORD};
    return given[index];
}

/* --- the tests': (from, words, sum), (to, words, value) and (touch, words, nanoseconds, sum) ---
 */

static CUresult add_to(const struct launch *launch, uint64_t sum, uint32_t more) {
    uint32_t value = 0;
    CUresult result = load(launch, sum, &value, WORD);
    value += more;
    return result ? result : store(launch, sum, &value, WORD);
}

static CUresult sum_chunk(const struct launch *launch, uint64_t from, uint64_t size,
                          uint32_t *sum) {
    uint32_t words[CHUNK / WORD];
    CUresult result = load(launch, from, words, size);
    for (uint64_t i = 0; i < size / WORD && !result; i++)
        *sum += words[i];
    return result;
}

static CUresult test_read(const struct launch *launch, const uint64_t *argument) {
    const uint64_t size = argument[1] * WORD;
    uint32_t sum = 0;
    CUresult result = CUDA_SUCCESS;
    for (uint64_t done = 0; done < size && !result; done += CHUNK)
        result = sum_chunk(launch, argument[0] + done, chunk_at(done, size), &sum);
    return result ? result : add_to(launch, argument[2], sum);
}

static uint64_t test_read_given(const uint64_t *argument, unsigned index) {
    const uint64_t given[] = {argument[1] * WORD, 0, WORD, 0};
    return given[index];
}

/* `keep`: adds to what is there. */
static CUresult change(const struct launch *launch, const uint64_t *argument, bool keep) {
    const uint64_t size = argument[1] * WORD;
    uint32_t words[CHUNK / WORD] = {0};
    CUresult result = CUDA_SUCCESS;
    for (uint64_t done = 0; done < size && !result; done += CHUNK) {
        const uint64_t part = chunk_at(done, size);
        if (keep)
            result = load(launch, argument[0] + done, words, part);
        for (uint64_t i = 0; i < part / WORD; i++)
            words[i] = (keep ? words[i] : 0) + (uint32_t)argument[2];
        if (!result)
            result = store(launch, argument[0] + done, words, part);
    }
    return result;
}

static CUresult test_write(const struct launch *launch, const uint64_t *argument) {
    return change(launch, argument, false);
}

static CUresult test_add(const struct launch *launch, const uint64_t *argument) {
    return change(launch, argument, true);
}

static uint64_t test_write_given(const uint64_t *argument, unsigned index) {
    return index == 0 ? argument[1] * WORD : 0;
}

/* What it writes to comes last, and the value first. */
static CUresult test_last(const struct launch *launch, const uint64_t *argument) {
    return test_write(launch, (const uint64_t[]){argument[2], argument[1], argument[0]});
}

static uint64_t test_last_given(const uint64_t *argument, unsigned index) {
    return index == 2 ? argument[1] * WORD : 0;
}

static CUresult nothing(const struct launch *launch, const uint64_t *argument) {
    return CUDA_SUCCESS;
}

static uint64_t nothing_given(const uint64_t *argument, unsigned index) {
    return 0;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Reads on and on, a chunk at a time: the rest of the machine has work to do, too. */
static CUresult test_spin(const struct launch *launch, const uint64_t *argument) {
    const struct timespec pause = {.tv_nsec = SPIN_PAUSE_NS};
    const uint64_t size = argument[1] * WORD, start = now_ns();
    uint32_t sum = 0;
    CUresult result = (CUresult)launch->context->lost;
    for (uint64_t done = 0; !result && now_ns() - start < argument[2];) {
        nanosleep(&pause, NULL);
        result = sum_chunk(launch, argument[0] + done, chunk_at(done, size), &sum);
        done = done + CHUNK < size ? done + CHUNK : 0;
    }
    return result ? result : add_to(launch, argument[3], sum);
}

static uint64_t test_spin_given(const uint64_t *argument, unsigned index) {
    const uint64_t given[] = {argument[1] * WORD, 0, 0, WORD};
    return given[index];
}

/* --- of AMD's own tests and samples, as their compiler names them, for programs of hip/:
 * computeKernel(int *to, int *from, int by): each thread divides a word;
 * vectorAdd(a, b, to, int count), of floats or ints, which may be const --- */

enum { THREADS = KERNEL_PARAMETERS };

static CUresult divide(const struct launch *launch, const uint64_t *argument) {
    const int32_t by = (int32_t)argument[2];
    CUresult result = CUDA_SUCCESS;
    for (uint64_t i = 0; i < argument[THREADS] && !result; i++) {
        int32_t value = 0;
        result = load(launch, argument[1] + i * WORD, &value, WORD);
        value = by ? value / by : 0;
        if (!result)
            result = store(launch, argument[0] + i * WORD, &value, WORD);
    }
    return result;
}

static uint64_t divide_given(const uint64_t *argument, unsigned index) {
    return index < 2 ? argument[THREADS] * WORD : 0;
}

/* The threads behind the last word do nothing. */
static uint64_t sums_of(const uint64_t *argument) {
    const int32_t words = (int32_t)argument[3];
    const uint64_t count = words > 0 ? (uint64_t)words : 0;
    return count < argument[THREADS] ? count : argument[THREADS];
}

union word {
    int32_t whole;
    float number;
};

static CUresult add_words(const struct launch *launch, const uint64_t *argument, bool whole) {
    CUresult result = CUDA_SUCCESS;
    for (uint64_t i = 0; i < sums_of(argument) && !result; i++) {
        union word a = {0}, b = {0};
        result = load(launch, argument[0] + i * WORD, &a, WORD);
        if (!result)
            result = load(launch, argument[1] + i * WORD, &b, WORD);
        if (whole)
            a.whole = (int32_t)((uint32_t)a.whole + (uint32_t)b.whole);
        else
            a.number += b.number;
        if (!result)
            result = store(launch, argument[2] + i * WORD, &a, WORD);
    }
    return result;
}

static CUresult add_floats(const struct launch *launch, const uint64_t *argument) {
    return add_words(launch, argument, false);
}

static CUresult add_ints(const struct launch *launch, const uint64_t *argument) {
    return add_words(launch, argument, true);
}

static uint64_t add_vectors_given(const uint64_t *argument, unsigned index) {
    return index < 3 ? sums_of(argument) * WORD : 0;
}

/* --- all of them --- */

static const struct kernel kernels[] = {
    {"gps_merge_hash", {8, 8, 8, 8}, hash, hash_given},
    {"gps_merge_compare", {8, 8, 8, 8}, compare, compare_given},
    {"test_read", {8, 8, 8}, test_read, test_read_given},
    {"test_write", {8, 8, 4}, test_write, test_write_given},
    {"test_add", {8, 8, 4}, test_add, test_write_given},
    {"test_spin", {8, 8, 8, 8}, test_spin, test_spin_given},
    {"test_last", {4, 8, 8}, test_last, test_last_given},
    {"test_words_8", {64}, nothing, nothing_given},
    {"test_words_64", {512}, nothing, nothing_given},
    {"test_words_512", {4096}, nothing, nothing_given},
    {"_Z13computeKernelPiS_i", {8, 8, 4}, divide, divide_given},
    {"_Z9vectorAddPKfS0_Pfi", {8, 8, 8, 4}, add_floats, add_vectors_given},
    {"_Z9vectorAddPfS_S_i", {8, 8, 8, 4}, add_floats, add_vectors_given},
    {"_Z9vectorAddPKiS0_Pii", {8, 8, 8, 4}, add_ints, add_vectors_given},
    {"_Z9vectorAddPiS_S_i", {8, 8, 8, 4}, add_ints, add_vectors_given},
};

const struct kernel *kernel_find(const char *name) {
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (!strcmp(kernels[i].name, name))
            return &kernels[i];
    return NULL;
}

const char *kernel_name(const struct kernel *kernel) {
    return kernel->name;
}

void kernel_arguments(struct launch *launch, uint64_t threads, void *const *parameters) {
    launch->argument[KERNEL_PARAMETERS] = threads;
    /* Little-endian (protocol.h insists): the low bytes come first. Of a struct no more is used. */
    for (size_t i = 0; i < KERNEL_PARAMETERS && launch->kernel->width[i]; i++)
        memcpy(&launch->argument[i], parameters[i],
               launch->kernel->width[i] < 8 ? launch->kernel->width[i] : 8);
}

unsigned kernel_width(const struct kernel *kernel, size_t index) {
    return index < KERNEL_PARAMETERS ? kernel->width[index] : 0;
}

void kernel_places(const struct kernel *kernel, void *bytes, void **parameters) {
    size_t at = 0;
    for (size_t i = 0; i < KERNEL_PARAMETERS && kernel->width[i]; i++) {
        const size_t width = kernel->width[i];
        at = (at + width - 1) / width * width;
        parameters[i] = (char *)bytes + at;
        at += width;
    }
}

/* Where each kernel fills the card they run one by one. */
CUresult kernel_run(const struct launch *launch) {
    static pthread_mutex_t card = PTHREAD_MUTEX_INITIALIZER;
    const bool fills = getenv("GPUSHARE_SIM_CROWDED");
    if (fills)
        pthread_mutex_lock(&card);
    const CUresult result = launch->kernel->run(launch, launch->argument);
    if (fills)
        pthread_mutex_unlock(&card);
    return result;
}

bool kernel_uses(const struct launch *launch, uint64_t address, uint64_t size) {
    for (unsigned i = 0; i < KERNEL_PARAMETERS; i++) {
        const uint64_t at = launch->argument[i], given = launch->kernel->given(launch->argument, i);
        if (given && at < address + size && address < at + given)
            return true;
    }
    return false;
}
