// secret_test.cpp - the key of a directory: made once, the same for all, and not believed when it
// is damaged.
#include "store_support.h"

#include <array>

extern "C" {
#include "directory/secret.h"
}

namespace {

using Key = std::array<uint8_t, GPS_SECRET_BYTES>;

struct SecretTest : LeasedTest {
    int get(Key &key) {
        return gps_secret_get(&store, &self, key.data(), &why);
    }
    std::string file() {
        return directory + "/" + GPS_SECRET;
    }
    unsigned collect() {
        gps_gc_counts counts;
        EXPECT_EQ(gps_store_gc(&store, false, &counts), 0);
        return counts.temps;
    }
    const char *why = nullptr;
};

TEST_F(SecretTest, IsMadeOnceAndOnlyForTheUser) {
    Key one = {}, other = {};
    ASSERT_EQ(get(one), 0);
    ASSERT_EQ(get(other), 0);
    EXPECT_EQ(one, other);
    EXPECT_NE(one, Key{});
    struct stat st;
    ASSERT_EQ(stat(file().c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 07777, 0600u);
    EXPECT_EQ(collect(), 0u) << "nothing is left beside it, and it stays";
    ASSERT_EQ(get(other), 0);
    EXPECT_EQ(one, other);
}

TEST_F(SecretTest, OfManyWhoNeedItAtOnceIsOne) {
    std::vector<Key> keys(16);
    std::vector<std::thread> threads;
    for (auto &key : keys)
        threads.emplace_back([&] {
            const char *wrong = nullptr;
            EXPECT_EQ(gps_secret_get(&store, &self, key.data(), &wrong), 0);
        });
    for (auto &thread : threads)
        thread.join();
    for (const auto &key : keys)
        EXPECT_EQ(key, keys[0]);
}

TEST_F(SecretTest, OfAnotherDirectoryIsAnother) {
    Key first = {}, second = {};
    ASSERT_EQ(get(first), 0);
    ASSERT_EQ(unlink(file().c_str()), 0);
    ASSERT_EQ(get(second), 0);
    EXPECT_NE(first, second);
}

TEST_F(SecretTest, ThatIsDamagedIsAnErrorUntilItIsCollected) {
    Key key = {}, again = {};
    ASSERT_EQ(get(key), 0);
    const int fd = open(file().c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(pwrite(fd, "x", 1, 100), 1);
    close(fd);
    EXPECT_EQ(get(again), -EBADMSG);
    EXPECT_STREQ(why, "the secret has a wrong checksum");
    ASSERT_EQ(truncate(file().c_str(), 10), 0);
    EXPECT_EQ(get(again), -EBADMSG);
    EXPECT_EQ(again, Key{}) << "set only on success";
    EXPECT_EQ(collect(), 1u);
    EXPECT_EQ(get(again), 0);
    EXPECT_NE(key, again);
}

TEST_F(SecretTest, OfAnotherVersionIsLeftAlone) {
    Key key = {};
    const uint32_t version = GPS_FORMAT_VERSION + 1;
    ASSERT_EQ(get(key), 0);
    const int fd = open(file().c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(pwrite(fd, &version, sizeof(version), offsetof(gps_secret, version)), 4);
    close(fd);
    EXPECT_EQ(get(key), -EPROTO);
    EXPECT_EQ(collect(), 0u);
}

TEST_F(SecretTest, ThatOthersCanReadOrThatIsALinkIsNone) {
    Key key = {};
    ASSERT_EQ(get(key), 0);
    ASSERT_EQ(chmod(file().c_str(), 0644), 0);
    EXPECT_EQ(get(key), -EBADMSG);
    ASSERT_EQ(unlink(file().c_str()), 0);
    ASSERT_EQ(symlink("/dev/zero", file().c_str()), 0);
    EXPECT_EQ(get(key), -EBADMSG);
    EXPECT_EQ(collect(), 1u);
}

} // namespace
