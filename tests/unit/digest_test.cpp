// digest_test.cpp - the hash of a block: as XXH3 says; memory compared with it, by one thread or
// many, and an answer where it cannot be read.

#define XXH_INLINE_ALL
#include <xxhash.h>

extern "C" {
#include "digest/digest.h"
}
#include "skip.hpp"

namespace {

constexpr uint64_t CHUNK = GPS_DIGEST_CHUNK, PIECE = GPS_DIGEST_PIECE;

std::vector<uint8_t> noise(size_t size) {
    std::vector<uint8_t> bytes(size);
    uint64_t x = 88172645463325252u;
    for (auto &byte : bytes) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        byte = static_cast<uint8_t>(x);
    }
    return bytes;
}

std::vector<gps_hash> chunks_of(const std::vector<uint8_t> &bytes) {
    std::vector<gps_hash> chunks(bytes.size() / CHUNK);
    for (size_t i = 0; i < chunks.size(); i++)
        chunks[i] = gps_digest_chunk(&bytes[i * CHUNK]);
    return chunks;
}

gps_digest of(const std::vector<uint8_t> &bytes) {
    return gps_digest_combine(chunks_of(bytes).data(), bytes.size());
}

bool same(const gps_hash &a, const gps_hash &b) {
    return a.low == b.low && a.high == b.high;
}

TEST(Digest, AChunkIsXxh3) {
    const auto bytes = noise(CHUNK);
    const XXH128_hash_t expected = XXH3_128bits(bytes.data(), CHUNK);
    const gps_hash hash = gps_digest_chunk(bytes.data());
    EXPECT_EQ(hash.low, expected.low64);
    EXPECT_EQ(hash.high, expected.high64);
}

TEST(Digest, MemoryIsHashedMeanwhile) {
    for (const uint64_t size : {CHUNK, 5 * PIECE, 32 * PIECE}) {
        auto bytes = noise(size);
        const auto chunks = chunks_of(bytes);
        EXPECT_TRUE(
            gps_digest_end(gps_digest_begin(bytes.data(), chunks.size(), false), chunks.data()));
        EXPECT_FALSE(gps_digest_end(gps_digest_begin(bytes.data(), chunks.size(), false), nullptr));
        gps_digest whole{};
        ASSERT_TRUE(
            gps_digest_finish(gps_digest_begin(bytes.data(), chunks.size(), false), &whole));
        const gps_digest combined = gps_digest_combine(chunks.data(), bytes.size());
        EXPECT_EQ(memcmp(&whole, &combined, sizeof(whole)), 0);
        bytes.back() ^= 1;
        EXPECT_FALSE(
            gps_digest_end(gps_digest_begin(bytes.data(), chunks.size(), false), chunks.data()));
    }
}

TEST(Digest, EqualMemoryIsFoundEqual) {
    for (const uint64_t size : {CHUNK, 3 * CHUNK, PIECE, 5 * PIECE, 32 * PIECE}) {
        const auto bytes = noise(size);
        const auto chunks = chunks_of(bytes);
        EXPECT_TRUE(gps_digest_compare(bytes.data(), chunks.size(), false, chunks.data())) << size;
    }
}

TEST(Digest, ADifferenceIsFoundInEveryChunk) {
    auto bytes = noise(3 * PIECE);
    const auto chunks = chunks_of(bytes);
    for (size_t chunk = 0; chunk < chunks.size(); chunk++) {
        bytes[(chunk + 1) * CHUNK - 1] ^= 1;
        EXPECT_FALSE(gps_digest_compare(bytes.data(), chunks.size(), false, chunks.data()))
            << chunk;
        bytes[(chunk + 1) * CHUNK - 1] ^= 1;
    }
}

TEST(Digest, EachByteCounts) {
    auto bytes = noise(8 * PIECE);
    const gps_digest before = of(bytes);
    for (const size_t at : {size_t{0}, size_t{CHUNK}, size_t{3 * PIECE + 77}, bytes.size() - 1}) {
        bytes[at] ^= 1;
        EXPECT_NE(of(bytes).hash.low, before.hash.low) << at;
        EXPECT_NE(of(bytes).hash.high, before.hash.high) << at;
        bytes[at] ^= 1;
    }
    EXPECT_TRUE(same(of(bytes).hash, before.hash));
}

TEST(Digest, SizesAndOrdersDiffer) {
    const std::vector<uint8_t> two(2 * PIECE, 0), four(4 * PIECE, 0);
    EXPECT_NE(of(two).hash.low, of(four).hash.low);
    auto bytes = noise(4 * PIECE), turned = bytes;
    std::swap_ranges(turned.begin(), turned.begin() + PIECE, turned.begin() + PIECE);
    EXPECT_NE(of(bytes).hash.low, of(turned).hash.low);
}

TEST(Digest, TellsTheFirstChunk) {
    auto bytes = noise(2 * PIECE);
    const gps_hash before = of(bytes).first;
    EXPECT_TRUE(same(before, gps_digest_chunk(bytes.data())));
    bytes[CHUNK] ^= 1;
    EXPECT_TRUE(same(of(bytes).first, before));
    bytes[CHUNK - 1] ^= 1;
    EXPECT_FALSE(same(of(bytes).first, before));
}

TEST(Digest, MemoryThatIsNotThereIsAnAnswer) {
    const size_t size = 32 * PIECE;
    const auto chunks = chunks_of(std::vector<uint8_t>(size, 0));
    auto *at = static_cast<uint8_t *>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(at, MAP_FAILED);
    SKIP_IF(madvise(at, size, 22 /* MADV_POPULATE_READ */) != 0, "the kernel does not tell");
    ASSERT_TRUE(gps_digest_compare(at, chunks.size(), false, chunks.data()));
    munmap(at + 17 * PIECE, CHUNK);
    EXPECT_TRUE(gps_digest_readable(at + 1, 17 * PIECE - 1));
    EXPECT_FALSE(gps_digest_readable(at, size));
    EXPECT_FALSE(gps_digest_compare(at, chunks.size(), false, chunks.data()));
    EXPECT_FALSE(gps_digest_readable(reinterpret_cast<void *>(UINTPTR_MAX - 10), 100));
    munmap(at, size);
}

// What the kernel says of such pages (EINVAL) it also says where it does not know the question.
TEST(Digest, MemoryWithoutAccessIsAnAnswer) {
    const size_t size = 4 * PIECE;
    const auto chunks = chunks_of(std::vector<uint8_t>(size, 0));
    auto *at = static_cast<uint8_t *>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(at, MAP_FAILED);
    ASSERT_EQ(mprotect(at + 2 * PIECE, CHUNK, PROT_NONE), 0);
    EXPECT_FALSE(gps_digest_readable(at, size));
    EXPECT_FALSE(gps_digest_compare(at, chunks.size(), false, chunks.data()));
    EXPECT_FALSE(gps_digest_end(gps_digest_begin(at, chunks.size(), false), chunks.data()));
    munmap(at, size);
}

TEST(Digest, AFileThatEndsBeforeItsMappingIsAnAnswer) {
    const int fd = memfd_create("short", MFD_CLOEXEC);
    const auto chunks = chunks_of(std::vector<uint8_t>(2 * PIECE, 0));
    ASSERT_EQ(ftruncate(fd, PIECE), 0);
    auto *at = mmap(nullptr, 2 * PIECE, PROT_READ, MAP_SHARED, fd, 0);
    ASSERT_NE(at, MAP_FAILED);
    SKIP_IF(madvise(at, PIECE, 22) != 0, "the kernel does not tell");
    EXPECT_TRUE(gps_digest_compare(at, PIECE / CHUNK, false, chunks.data()));
    EXPECT_FALSE(gps_digest_compare(at, chunks.size(), false, chunks.data()));
    munmap(at, 2 * PIECE);
    close(fd);
}

} // namespace
