// region_lock_test.cpp - the lock on a record by which its owner learns that nobody has the region
// open: held by whoever does, gone with it, and where that is not known, as good as held.
#include "store_support.h"

extern "C" {
#include "directory/region_lock.h"
}

namespace {

struct RegionLockTest : LeasedTest {
    void SetUp() override {
        LeasedTest::SetUp();
        record = make_record(self, 1);
        record.locked = 1;
        gps_record_seal(&record);
        ASSERT_EQ(0, gps_region_publish(&store, &record));
    }
    int take(const gps_lease &mine, gps_region_lock *lock) {
        return gps_region_lock_and_read(&mine, &record.id, &found, &why, lock);
    }
    bool may_be_locked() {
        return gps_region_may_be_locked(&store, &record.id);
    }
    bool is_unlocked_there() const {
        return std::filesystem::exists(directory + "/" GPS_UNLOCKED);
    }
    Child importer() {
        gps_owner other;
        return leased(&other, [&](Child &, gps_lease &mine) {
            gps_region_lock lock;
            return take(mine, &lock) == 0 && lock.mapping ? 0 : 91;
        });
    }

    gps_region_record record = {}, found = {};
    const char *why = nullptr;
};

TEST_F(RegionLockTest, IsHeldFromTheReadToTheEnd) {
    gps_region_lock lock;
    EXPECT_FALSE(may_be_locked());
    ASSERT_EQ(0, take(lease, &lock));
    EXPECT_EQ(0, memcmp(&record, &found, sizeof record));
    EXPECT_TRUE(may_be_locked());
    gps_region_unlock(lock.mapping);
    EXPECT_FALSE(may_be_locked());
    EXPECT_FALSE(is_unlocked_there());
}

TEST_F(RegionLockTest, IsSharedAndGoesWithEachProcess) {
    Child one = importer(), other = importer();
    EXPECT_TRUE(may_be_locked());
    one.kill_and_reap();
    EXPECT_TRUE(may_be_locked());
    other.stop();
    EXPECT_TRUE(may_be_locked());
    other.kill_and_reap();
    EXPECT_FALSE(may_be_locked());
}

TEST_F(RegionLockTest, OutlastsDescriptorsAndIsNotAForkedChilds) {
    Child child([&](Child &parent) {
        gps_owner me = this_process();
        gps_lease mine;
        gps_region_lock lock;
        if (gps_lease_take(&store, &me, NULL, &mine) != 0 || take(mine, &lock) != 0)
            return 90;
        const pid_t forked = fork();
        if (forked == 0)
            pause();
        for (int fd = 3; fd < 1024; fd++)
            if (fd != parent.output())
                close(fd);
        parent.send(forked);
        pause();
        return 0;
    });
    pid_t forked = 0;
    ASSERT_TRUE(child.receive(forked));
    EXPECT_TRUE(may_be_locked());
    child.kill_and_reap();
    EXPECT_FALSE(may_be_locked());
    kill(forked, SIGKILL);
}

TEST_F(RegionLockTest, OfAReplacedRecordIsNotTheNewOnes) {
    gps_region_lock first, now;
    ASSERT_EQ(0, take(lease, &first));
    ASSERT_EQ(0, gps_region_publish(&store, &record));
    EXPECT_FALSE(may_be_locked());
    ASSERT_EQ(0, take(lease, &now));
    EXPECT_TRUE(may_be_locked());
    gps_region_unlock(first.mapping);
    EXPECT_TRUE(may_be_locked());
    gps_region_unlock(now.mapping);
}

TEST_F(RegionLockTest, IsTakenOnlyWhereItIsAskedFor) {
    gps_region_lock lock;
    record.locked = 0;
    gps_record_seal(&record);
    ASSERT_EQ(0, gps_region_publish(&store, &record));
    ASSERT_EQ(0, take(lease, &lock));
    EXPECT_EQ(0, memcmp(&record, &found, sizeof record));
    EXPECT_EQ(nullptr, lock.mapping);
    EXPECT_FALSE(may_be_locked());
    EXPECT_FALSE(is_unlocked_there());
}

TEST_F(RegionLockTest, OfNoRecordIsNone) {
    gps_region_lock lock;
    std::filesystem::remove(region_file(record.id));
    EXPECT_EQ(-ENOENT, take(lease, &lock));
    EXPECT_EQ(nullptr, lock.mapping);
    EXPECT_EQ(0, lock.status);
    EXPECT_FALSE(is_unlocked_there());
    EXPECT_TRUE(may_be_locked()) << "its owner cannot know";
}

TEST_F(RegionLockTest, ADamagedRecordIsLockedAllTheSame) {
    gps_region_lock lock;
    ASSERT_EQ(0, truncate(region_file(record.id).c_str(), 100));
    EXPECT_EQ(-EBADMSG, take(lease, &lock));
    EXPECT_TRUE(may_be_locked());
    gps_region_unlock(lock.mapping);
}

TEST_F(RegionLockTest, WithoutDescriptorsTheOthersAreToldOtherwise) {
    struct rlimit limit, none;
    gps_region_lock lock;
    getrlimit(RLIMIT_NOFILE, &limit);
    none = limit;
    none.rlim_cur = 3;
    setrlimit(RLIMIT_NOFILE, &none);
    EXPECT_TRUE(may_be_locked()) << "its owner cannot know";
    const int status = take(lease, &lock);
    setrlimit(RLIMIT_NOFILE, &limit);
    EXPECT_EQ(-EMFILE, status);
    EXPECT_EQ(nullptr, lock.mapping);
    EXPECT_EQ(0, lock.status);
    EXPECT_TRUE(is_unlocked_there());
    EXPECT_TRUE(may_be_locked());
}

// As where a closed descriptor takes its lock along, which a lease has found out.
TEST_F(RegionLockTest, WhereNoMappingHoldsLocksTheOthersAreToldOtherwise) {
    gps_region_lock lock;
    gps_lease by_descriptor = lease;
    by_descriptor.hold = MAP_FAILED;
    EXPECT_EQ(0, take(by_descriptor, &lock));
    EXPECT_EQ(nullptr, lock.mapping);
    EXPECT_TRUE(may_be_locked());
    EXPECT_TRUE(is_unlocked_there());
}

TEST_F(RegionLockTest, WhatIsNoRecordIsNotKnown) {
    gps_region_lock lock;
    std::filesystem::remove(region_file(record.id));
    std::filesystem::create_symlink("/dev/null", region_file(record.id));
    EXPECT_TRUE(may_be_locked());
    EXPECT_EQ(-EBADMSG, take(lease, &lock));
    EXPECT_TRUE(is_unlocked_there());
}

} // namespace
