// digest_test.cpp - the hashes of a region's chunks, by one thread or many.
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <vector>

extern "C" {
#include "digest.h"
#include "hashes.h"
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
    EXPECT_TRUE(gps_digest_make(bytes.data(), bytes.size(), hashes.data()));
    return hashes;
}

TEST(Digest, TheLastChunkMayBeShorter) {
    for (const uint64_t size : {UINT64_C(1), CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 17}) {
        const auto bytes = noise(size);
        const auto hashes = hashes_of(bytes);
        EXPECT_EQ(hashes.size(), (size + CHUNK - 1) / CHUNK);
        EXPECT_EQ(gps_digest_compare(bytes.data(), size, hashes.data()), GPS_DIGEST_EQUAL);
    }
}

TEST(Digest, ManyThreadsHashAsOne) {
    const auto bytes = noise(70 * CHUNK + 5);
    const auto hashes = hashes_of(bytes);
    for (size_t i = 0; i < hashes.size(); i += 23) {
        uint64_t one;
        const uint64_t left = bytes.size() - i * CHUNK;
        ASSERT_TRUE(gps_digest_make(&bytes[i * CHUNK], left < CHUNK ? left : CHUNK, &one));
        EXPECT_EQ(one, hashes[i]);
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
    EXPECT_FALSE(gps_digest_make(at, size, hashes));
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
    uint64_t hashes[2] = {};
    EXPECT_TRUE(gps_digest_make(at, CHUNK, hashes));
    EXPECT_EQ(gps_digest_compare(at, 2 * CHUNK, hashes), GPS_DIGEST_UNREADABLE);
    munmap(at, 2 * CHUNK);
    close(fd);
}

} // namespace
