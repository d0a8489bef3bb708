// hashes_test.cpp - the file that says what an uploaded region holds.
#include "store_support.h"

extern "C" {
#include "upload/hashes.h"
}

namespace {

constexpr uint64_t WRITTEN = 5 * GPS_HASH_CHUNK + 100; // six hashes

class HashesTest : public LeasedTest {
  protected:
    void SetUp() override {
        LeasedTest::SetUp();
        record = make_record(self, 1);
    }
    int write(uint64_t written = WRITTEN) {
        return gps_region_set_hashes(&store, &record.id, &self, written, hashes);
    }
    int read(uint64_t written = WRITTEN) {
        return gps_region_read_hashes(&store, &record.id, written, back);
    }
    std::string path() const {
        char id[GPS_ID_HEX];
        gps_id_format(&record.id, id);
        return directory + "/regions/" + id + ".hashes";
    }

    gps_region_record record = {};
    uint64_t hashes[6] = {11, 22, 33, 44, 55, 66}, back[6] = {};
};

TEST_F(HashesTest, WhatIsWrittenIsRead) {
    EXPECT_EQ(read(), -ENOENT);
    ASSERT_EQ(write(), 0);
    ASSERT_EQ(read(), 0);
    EXPECT_EQ(memcmp(hashes, back, sizeof hashes), 0);
    EXPECT_EQ(entries(directory + "/regions").size(), 1u) << "no temporary file is left";
}

TEST_F(HashesTest, AreReplacedWhole) {
    ASSERT_EQ(write(), 0);
    hashes[5] = 67;
    ASSERT_EQ(write(), 0);
    ASSERT_EQ(read(), 0);
    EXPECT_EQ(back[5], 67u);
}

TEST_F(HashesTest, OfAnotherNumberOfBytesDoNotPass) {
    ASSERT_EQ(write(), 0);
    EXPECT_EQ(read(WRITTEN - 1), -EBADMSG);
    EXPECT_EQ(read(WRITTEN - GPS_HASH_CHUNK), -EBADMSG);
}

TEST_F(HashesTest, OfAnotherRegionDoNotPass) {
    ASSERT_EQ(write(), 0);
    const std::string of_first = path();
    record = make_record(self, 2);
    ASSERT_EQ(rename(of_first.c_str(), path().c_str()), 0);
    EXPECT_EQ(read(), -EBADMSG);
}

TEST_F(HashesTest, NoByteOfThemCanChangeUnseen) {
    ASSERT_EQ(write(), 0);
    const size_t size = sizeof(gps_region_hashes) + sizeof hashes;
    for (size_t at = 0; at < size; at++) {
        const int fd = open(path().c_str(), O_RDWR);
        uint8_t byte;
        ASSERT_EQ(pread(fd, &byte, 1, (off_t)at), 1);
        byte ^= 4;
        ASSERT_EQ(pwrite(fd, &byte, 1, (off_t)at), 1);
        EXPECT_EQ(read(), -EBADMSG) << at;
        byte ^= 4;
        ASSERT_EQ(pwrite(fd, &byte, 1, (off_t)at), 1);
        close(fd);
    }
    EXPECT_EQ(read(), 0);
}

TEST_F(HashesTest, CutOrGrownDoNotPass) {
    const off_t size = sizeof(gps_region_hashes) + sizeof hashes;
    for (const off_t length : {off_t(0), off_t(10), off_t(sizeof(gps_region_hashes)), size - 8,
                               size - 1, size + 1, size + 8}) {
        ASSERT_EQ(write(), 0);
        ASSERT_EQ(truncate(path().c_str(), length), 0);
        EXPECT_EQ(read(), -EBADMSG) << length;
    }
}

TEST_F(HashesTest, OthersFilesAndLinksDoNotPass) {
    ASSERT_EQ(write(), 0);
    ASSERT_EQ(chmod(path().c_str(), 0644), 0);
    EXPECT_EQ(read(), -EBADMSG);
    ASSERT_EQ(chmod(path().c_str(), 0600), 0);
    const std::string elsewhere = directory + "/elsewhere";
    ASSERT_EQ(rename(path().c_str(), elsewhere.c_str()), 0);
    ASSERT_EQ(symlink(elsewhere.c_str(), path().c_str()), 0);
    EXPECT_EQ(read(), -EBADMSG);
}

TEST_F(HashesTest, GoWithTheirRecord) {
    gps_record_seal(&record);
    ASSERT_EQ(gps_region_publish(&store, &record), 0);
    ASSERT_EQ(write(), 0);
    EXPECT_EQ(gps_region_remove(&store, &record.id), 0);
    EXPECT_EQ(entries(directory + "/regions").size(), 0u);
}

TEST_F(HashesTest, AreSweptWhenTheirRecordIsGone) {
    gps_gc_counts counts;
    gps_record_seal(&record);
    ASSERT_EQ(gps_region_publish(&store, &record), 0);
    ASSERT_EQ(write(), 0);
    ASSERT_EQ(gps_store_gc(&store, false, &counts), 0);
    EXPECT_EQ(read(), 0) << "their record lives";
    char id[GPS_ID_HEX];
    gps_id_format(&record.id, id);
    ASSERT_EQ(unlink((directory + "/regions/" + id).c_str()), 0);
    ASSERT_EQ(gps_store_gc(&store, false, &counts), 0);
    EXPECT_EQ(counts.temps, 1u);
    EXPECT_EQ(read(), -ENOENT);
}

} // namespace
