/*
 * kernels.cu - hashes and compares blocks of memory on the GPU; embedded as PTX (kernels.c).
 *
 * gps_merge_hash makes XXH3 (128 bits, with a secret) of every 16 KiB, as libxxhash does. Eight
 * threads share a chunk: each has one of the eight accumulators, so a stripe of 64 bytes is one
 * load of eight adjacent words.
 */
#include <stdint.h>

namespace {

constexpr unsigned CHUNK = 16 << 10, LANES = 8, SECRET = 192;
constexpr unsigned STRIPE = 64, IN_BLOCK = (SECRET - STRIPE) / 8;
constexpr uint32_t PRIME32_1 = 0x9E3779B1u, PRIME32_2 = 0x85EBCA77u, PRIME32_3 = 0xC2B2AE3Du;
constexpr uint64_t PRIME64_1 = 0x9E3779B185EBCA87u, PRIME64_2 = 0xC2B2AE3D27D4EB4Fu,
                   PRIME64_3 = 0x165667B19E3779F9u, PRIME64_4 = 0x85EBCA77C2B2AE63u,
                   PRIME64_5 = 0x27D4EB2F165667C5u;

constexpr unsigned ALL = 0xFFFFFFFFu; /* sizes are multiples of what a block of threads does */

/* At the end of a hash the secret is read from odd places. */
__device__ uint64_t word(const uint64_t *secret, unsigned at) {
    const unsigned shift = at % 8 * 8;
    const uint64_t low = secret[at / 8] >> shift;
    return shift ? low | secret[at / 8 + 1] << (64 - shift) : low;
}

__device__ uint64_t mix(uint64_t a, uint64_t b) {
    return a * b ^ __umul64hi(a, b);
}

__device__ uint64_t avalanche(uint64_t value) {
    value ^= value >> 37;
    value *= 0x165667919E3779F9u;
    return value ^ value >> 32;
}

/* One lane's part of a stripe: its own product, and its neighbour's word. */
__device__ void accumulate(uint64_t &sum, uint64_t data, uint64_t secret) {
    const uint64_t keyed = data ^ secret;
    sum += __shfl_xor_sync(ALL, data, 1);
    sum += (keyed & 0xFFFFFFFFu) * (keyed >> 32);
}

__device__ uint64_t initial(unsigned lane) {
    const uint64_t sums[LANES] = {PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3,
                                  PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1};
    return sums[lane];
}

/* All eight sums in every lane's hands. */
__device__ uint64_t merge(uint64_t sum, const uint64_t *secret, unsigned at, uint64_t start,
                          unsigned lane) {
    const uint64_t keyed = sum ^ word(secret, at + 8 * lane);
    uint64_t product = mix(keyed, __shfl_xor_sync(ALL, keyed, 1));
    product = lane & 1 ? 0 : product;
    for (unsigned step = 1; step < LANES; step *= 2)
        product += __shfl_xor_sync(ALL, product, step);
    return avalanche(start + product);
}

} // namespace

extern "C" __global__ void gps_merge_hash(const uint8_t *from, uint64_t size,
                                          const uint64_t *secret_words, uint64_t *out) {
    __shared__ uint64_t secret[SECRET / 8];
    if (threadIdx.x < SECRET / 8)
        secret[threadIdx.x] = secret_words[threadIdx.x];
    __syncthreads();
    const unsigned lane = threadIdx.x % LANES;
    const uint64_t chunk = (uint64_t(blockIdx.x) * blockDim.x + threadIdx.x) / LANES;
    if (chunk >= size / CHUNK)
        return;
    const uint64_t *data = reinterpret_cast<const uint64_t *>(from + chunk * CHUNK) + lane;
    constexpr unsigned STRIPES = CHUNK / STRIPE, WHOLE = (STRIPES - 1) / IN_BLOCK * IN_BLOCK;
    uint64_t sum = initial(lane);
    unsigned stripe = 0;
    while (stripe < WHOLE) {
        for (unsigned i = 0; i < IN_BLOCK; i++, stripe++)
            accumulate(sum, data[stripe * LANES], secret[i + lane]);
        sum = (sum ^ sum >> 47 ^ secret[(SECRET - STRIPE) / 8 + lane]) * PRIME32_1;
    }
    for (unsigned i = 0; stripe < STRIPES - 1; i++, stripe++)
        accumulate(sum, data[stripe * LANES], secret[i + lane]);
    accumulate(sum, data[stripe * LANES], word(secret, SECRET - STRIPE - 7 + 8 * lane));
    const uint64_t low = merge(sum, secret, 11, uint64_t(CHUNK) * PRIME64_1, lane);
    const uint64_t high =
        merge(sum, secret, SECRET - STRIPE - 11, ~(uint64_t(CHUNK) * PRIME64_2), lane);
    if (lane == 0) {
        out[2 * chunk] = low;
        out[2 * chunk + 1] = high;
    }
}

extern "C" __global__ void gps_merge_compare(const uint8_t *a, const uint8_t *b, uint64_t size,
                                             uint32_t *differs) {
    const ulonglong2 *left = reinterpret_cast<const ulonglong2 *>(a);
    const ulonglong2 *right = reinterpret_cast<const ulonglong2 *>(b);
    const uint64_t stride = uint64_t(gridDim.x) * blockDim.x;
    bool same = true;
    for (uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < size / sizeof(*left);
         i += stride)
        same = same && left[i].x == right[i].x && left[i].y == right[i].y;
    if (!same)
        *differs = 1;
}
