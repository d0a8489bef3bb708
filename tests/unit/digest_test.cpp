// digest_test.cpp - the hashes of a region's chunks, by one thread or many.
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <vector>

extern "C" {
#include "upload/digest.h"
#include "upload/hashes.h"
}

namespace {

constexpr uint64_t CHUNK = GPS_HASH_CHUNK;

std::vector<uint8_t> noise(size_t size) {
    std::vector<uint8_t> bytes(size);
    uint64_t x = 88172645463325252u;
    for (auto &byte : bytes) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        byte = static_cast<uint8_t>(x);
    }
    return bytes;
}

std::vector<uint64_t> hashes_of(const std::vector<uint8_t> &bytes) {
    std::vector<uint64_t> hashes(gps_hashes_count(bytes.size()));
    for (size_t i = 0; i < hashes.size(); i++)
        hashes[i] = gps_digest_chunk(&bytes[i * CHUNK],
                                     std::min<uint64_t>(CHUNK, bytes.size() - i * CHUNK));
    return hashes;
}

// The vector is what is read; `fails` is the offset whose read fails.
struct Source {
    std::vector<uint8_t> bytes;
    uint64_t fails = UINT64_MAX;
    static bool read(void *arg, void *to, uint64_t at, uint64_t size) {
        auto *source = static_cast<Source *>(arg);
        memcpy(to, &source->bytes[at], size);
        return at != source->fails;
    }
};

bool read_back(Source &source, std::vector<uint64_t> &hashes) {
    std::vector<uint8_t> stage(GPS_DIGEST_STAGE);
    hashes.assign(gps_hashes_count(source.bytes.size()), 0);
    return gps_digest_read(Source::read, &source, stage.data(), source.bytes.size(), hashes.data());
}

TEST(Digest, IsXxh3HoweverItIsComputed) {
    std::vector<uint8_t> bytes(GPS_HASH_CHUNK + 77);
    for (size_t i = 0; i < bytes.size(); i++)
        bytes[i] = static_cast<uint8_t>(i * 31 + i / 251);
    for (const size_t length : {size_t{0}, size_t{1}, size_t{300}, bytes.size()}) {
        EXPECT_EQ(gps_digest_chunk(bytes.data(), length), XXH3_64bits(bytes.data(), length));
    }
}

TEST(Digest, TheLastChunkMayBeShorter) {
    for (const uint64_t size : {UINT64_C(1), CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 17}) {
        const auto bytes = noise(size);
        const auto hashes = hashes_of(bytes);
        EXPECT_EQ(hashes.size(), (size + CHUNK - 1) / CHUNK);
        EXPECT_EQ(gps_digest_compare(bytes.data(), size, hashes.data()), GPS_DIGEST_EQUAL);
    }
}

TEST(Digest, ManyThreadsCompareAsOne) {
    const auto bytes = noise(70 * CHUNK + 5);
    EXPECT_EQ(gps_digest_compare(bytes.data(), bytes.size(), hashes_of(bytes).data()),
              GPS_DIGEST_EQUAL);
}

TEST(Digest, WhatIsReadBackInPiecesHasTheSameHashes) {
    for (const uint64_t size : {UINT64_C(1), CHUNK + 1, GPS_DIGEST_PIECE, GPS_DIGEST_STAGE + 1,
                                3 * GPS_DIGEST_STAGE + GPS_DIGEST_PIECE + 7}) {
        Source source{noise(size)};
        std::vector<uint64_t> hashes;
        EXPECT_TRUE(read_back(source, hashes));
        EXPECT_EQ(hashes, hashes_of(source.bytes)) << size;
    }
}

TEST(Digest, AReadThatFailsIsAnAnswer) {
    for (const uint64_t fails : {UINT64_C(0), 5 * GPS_DIGEST_PIECE}) {
        Source source{noise(GPS_DIGEST_STAGE + 2 * GPS_DIGEST_PIECE), fails};
        std::vector<uint64_t> hashes;
        EXPECT_FALSE(read_back(source, hashes));
    }
}

TEST(Digest, FindsTheFirstOfManyDifferences) {
    auto bytes = noise(64 * CHUNK);
    const auto hashes = hashes_of(bytes);
    for (const size_t chunk : {63u, 40u, 17u, 0u}) {
        bytes[chunk * CHUNK + 12345] ^= 1;
        EXPECT_EQ(gps_digest_compare(bytes.data(), bytes.size(), hashes.data()), chunk);
    }
}

TEST(Digest, MemoryThatIsNotThereIsAnAnswer) {
    const size_t size = 4 * CHUNK;
    auto *at = static_cast<uint8_t *>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(at, MAP_FAILED);
    if (madvise(at, size, 22 /* MADV_POPULATE_READ */) != 0)
        GTEST_SKIP() << "the kernel does not tell";
    munmap(at + 2 * CHUNK, 2 * CHUNK);
    uint64_t hashes[4] = {};
    EXPECT_TRUE(gps_digest_readable(at + 1, 2 * CHUNK - 1));
    EXPECT_FALSE(gps_digest_readable(at, size));
    EXPECT_EQ(gps_digest_compare(at, size, hashes), GPS_DIGEST_UNREADABLE);
    EXPECT_FALSE(gps_digest_readable(reinterpret_cast<void *>(UINTPTR_MAX - 10), 100));
    munmap(at, 2 * CHUNK);
}

TEST(Digest, AFileThatEndsBeforeItsMappingIsAnAnswer) {
    const int fd = memfd_create("short", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(fd, CHUNK), 0);
    auto *at = mmap(nullptr, 2 * CHUNK, PROT_READ, MAP_SHARED, fd, 0);
    ASSERT_NE(at, MAP_FAILED);
    if (madvise(at, CHUNK, 22) != 0)
        GTEST_SKIP() << "the kernel does not tell";
    const uint64_t hashes[2] = {gps_digest_chunk(at, CHUNK)};
    EXPECT_EQ(gps_digest_compare(at, 2 * CHUNK, hashes), GPS_DIGEST_UNREADABLE);
    munmap(at, 2 * CHUNK);
    close(fd);
}

} // namespace
