#include "operations.h"

#include "chain.h"
#include "digest/digest.h"
#include "driver/driver_ops.h"

/* kernels.cu as a fat binary; empty where there was no nvcc (Makefile). */
__asm__(".pushsection .rodata\n"
        ".balign 8\n"
        "gps_kernels_image: .incbin \"" GPS_KERNELS "\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char gps_kernels_image[];

enum { CONTEXTS = 64, THREADS = 128, LANES = 8, SECRET = GPS_SECRET_BYTES };

/* Our objects in a context; the memory holds the hashes, then the secret, then whether blocks
 * differ. Without kernels there, `hash` is NULL. */
struct own {
    uint64_t context;
    CUstream stream;
    bool tried, has_secret;
    CUfunction hash, compare;
    CUdeviceptr memory;
};
#define HASHES (GPS_DIGEST_CHUNKS * sizeof(struct gps_hash))

static struct {
    struct own list[CONTEXTS];
    unsigned count;
} state;

#define TRY(code, call)                                                                            \
    if ((code) == GPS_OK)                                                                          \
    (code) = (int)(call)

/* --- objects of a context --- */

/* Otherwise work that the program has queued goes first, and a copy of a block waits for seconds
 * (H200, driver 580, 2026-11-23: 0.06 ms instead of 500 behind two waves of a kernel that fills the
 * card). The driver takes the highest priority that it has. */
#define HIGHEST (-100)

static int own_here(struct own **found) {
    struct own one = {.context = 0};
    int code = gps_ops->context(&one.context);
    for (unsigned i = 0; code == GPS_OK && i < state.count; i++)
        if (state.list[i].context == one.context) {
            *found = &state.list[i];
            return GPS_OK;
        }
    if (state.count == CONTEXTS || !gps_calls.cuStreamCreateWithPriority)
        return GPS_NOT_SUPPORTED;
    TRY(code, gps_calls.cuStreamCreateWithPriority(&one.stream, CU_STREAM_NON_BLOCKING, HIGHEST));
    if (code == GPS_OK) {
        state.list[state.count] = one;
        *found = &state.list[state.count++];
    }
    return code;
}

static bool kernels_are_complete(void) {
    return *gps_kernels_image && gps_calls.cuModuleLoadData && gps_calls.cuModuleGetFunction &&
           gps_calls.cuLaunchKernel && gps_chain_own()->cuMemAlloc_v2 &&
           gps_chain_own()->cuStreamSynchronize && gps_chain_own()->cuMemcpyDtoHAsync_v2 &&
           gps_chain_own()->cuMemcpyHtoDAsync_v2;
}

static int kernels_load(struct own *own) {
    CUmodule module;
    CUfunction hash;
    int code = kernels_are_complete() ? GPS_OK : GPS_NOT_SUPPORTED;
    TRY(code, gps_calls.cuModuleLoadData(&module, gps_kernels_image));
    TRY(code, gps_calls.cuModuleGetFunction(&hash, module, "gps_merge_hash"));
    TRY(code, gps_calls.cuModuleGetFunction(&own->compare, module, "gps_merge_compare"));
    TRY(code, gps_chain_own()->cuMemAlloc_v2(&own->memory, HASHES + SECRET + sizeof(uint64_t)));
    if (code == GPS_OK)
        own->hash = hash;
    return code;
}

/* Copies the secret to the device, once it is known: perhaps after the kernels are loaded. */
static int bring_secret(struct own *own) {
    int code = GPS_OK;
    if (!own->has_secret)
        code = (int)gps_chain_own()->cuMemcpyHtoDAsync_v2(own->memory + HASHES, gps_digest_secret(),
                                                          SECRET, own->stream);
    own->has_secret = code == GPS_OK;
    return code;
}

/* A context in which the kernels did not load is remembered, too. */
void gps_kernels_load(void) {
    struct own *own;
    if (own_here(&own) == GPS_OK && !own->tried) {
        (void)kernels_load(own);
        own->tried = true;
    }
}

static int loaded_here(struct own **found) {
    return own_here(found) == GPS_OK && (*found)->hash ? GPS_OK : GPS_NOT_SUPPORTED;
}

void gps_kernels_forget(uint64_t context) {
    for (unsigned i = state.count; i-- > 0;)
        if (state.list[i].context == context)
            state.list[i] = state.list[--state.count];
}

/* --- kernels --- */

static int launch(const struct own *own, CUfunction function, uint64_t blocks, void **values) {
    return (int)gps_calls.cuLaunchKernel(function, (unsigned)blocks, 1, 1, THREADS, 1, 1, 0,
                                         own->stream, values, NULL);
}

static int bring(const struct own *own, void *to, CUdeviceptr from, size_t size) {
    int code = (int)gps_chain_own()->cuMemcpyDtoHAsync_v2(to, from, size, own->stream);
    TRY(code, gps_chain_own()->cuStreamSynchronize(own->stream));
    return code;
}

int gps_kernels_digest(uint64_t from, uint64_t size, uint64_t *hashes) {
    struct own *own;
    int code = loaded_here(&own);
    if (code != GPS_OK)
        return code;
    const uint64_t chunks = size / GPS_DIGEST_CHUNK;
    CUdeviceptr secret = own->memory + HASHES, out = own->memory;
    void *values[] = {&from, &size, &secret, &out};
    code = bring_secret(own);
    TRY(code, launch(own, own->hash, chunks * LANES / THREADS, values));
    TRY(code, bring(own, hashes, out, chunks * sizeof(struct gps_hash)));
    return code;
}

int gps_kernels_equal(uint64_t a, uint64_t b, uint64_t size, bool *equal) {
    struct own *own;
    uint32_t differs = 0;
    int code = loaded_here(&own);
    if (code != GPS_OK)
        return code;
    CUdeviceptr out = own->memory + HASHES + SECRET;
    void *values[] = {&a, &b, &size, &out};
    code = (int)gps_chain_own()->cuMemcpyHtoDAsync_v2(out, &differs, sizeof(differs), own->stream);
    TRY(code, launch(own, own->compare, size / (1u << 16), values));
    TRY(code, bring(own, &differs, out, sizeof(differs)));
    *equal = !differs;
    return code;
}

/* --- copies --- */

int gps_kernels_copy(uint64_t to, uint64_t from, uint64_t size) {
    struct own *own;
    int code = own_here(&own);
    TRY(code, gps_chain_own()->cuMemcpyDtoDAsync_v2(to, from, size, own->stream));
    TRY(code, gps_chain_own()->cuStreamSynchronize(own->stream));
    return code;
}

int gps_kernels_copy_out(void *to, uint64_t from, uint64_t size) {
    struct own *own;
    int code = own_here(&own);
    return code == GPS_OK ? bring(own, to, from, size) : code;
}
