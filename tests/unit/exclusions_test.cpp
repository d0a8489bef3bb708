// exclusions_test.cpp - the allocations that must not be merged: a file of rows, of which damaged
// ones count as none.
#include "store_support.h"

extern "C" {
#include "directory/exclusions.h"
}

namespace {

struct ExclusionsTest : StoreTest {
    gps_exclusion of(uint64_t index, uint64_t rule = 1) {
        gps_exclusion exclusion = {};
        strcpy(exclusion.program, "server");
        strcpy(exclusion.name, "weights");
        strcpy(exclusion.caller, "libtorch.so");
        exclusion.size = 4096 * (index + 1);
        exclusion.index = index;
        exclusion.rule = rule;
        exclusion.times = GPS_EXCLUDED;
        return exclusion;
    }
    bool has(gps_exclusion exclusion) {
        return times(exclusion) >= GPS_EXCLUDED;
    }
    uint64_t times(gps_exclusion exclusion) {
        return gps_exclusions_times(&store, &exclusion);
    }
    size_t count() {
        size_t rows = 0;
        EXPECT_EQ(0, gps_exclusions_each(
                         &store,
                         [](void *arg, const gps_exclusion *) { ++*static_cast<size_t *>(arg); },
                         &rows));
        return rows;
    }
    void add(gps_exclusion exclusion) {
        EXPECT_EQ(0, gps_exclusions_add(&store, &exclusion));
    }
    std::string file() {
        return directory + "/" + GPS_EXCLUSIONS;
    }
};

TEST_F(ExclusionsTest, AreKnownByEachOfTheirFacts) {
    EXPECT_FALSE(has(of(3))) << "there is no file";
    EXPECT_EQ(count(), 0u);
    add(of(3));
    add(of(4));
    EXPECT_TRUE(has(of(3)));
    EXPECT_TRUE(has(of(4)));
    EXPECT_FALSE(has(of(5)));
    EXPECT_FALSE(has(of(3, 2))) << "of another rule, or one that was changed";
    gps_exclusion other = of(3);
    strcpy(other.program, "servant");
    EXPECT_FALSE(has(other));
    other = of(3);
    strcpy(other.caller, "libnvinfer.so");
    EXPECT_FALSE(has(other));
    other = of(3);
    other.size++;
    EXPECT_FALSE(has(other));
    EXPECT_EQ(count(), 2u);
}

// The most that any process found, whoever was the last to write, until it is forgotten.
TEST_F(ExclusionsTest, CountAgainOnceTheyAreForgotten) {
    gps_exclusion exclusion = of(1);
    for (const uint64_t times : {GPS_SUSPECTED, GPS_EXCLUDED, GPS_SUSPECTED}) {
        exclusion.times = times;
        add(exclusion);
    }
    EXPECT_EQ(times(of(1)), GPS_EXCLUDED);
    exclusion.times = GPS_FORGOTTEN;
    add(exclusion);
    EXPECT_EQ(times(of(1)), GPS_FORGOTTEN);
    exclusion.times = GPS_SUSPECTED;
    add(exclusion);
    EXPECT_EQ(times(of(1)), GPS_SUSPECTED);
}

TEST_F(ExclusionsTest, ARowThatIsTornOrDamagedCountsAsNone) {
    add(of(1));
    add(of(2));
    add(of(3));
    std::filesystem::resize_file(file(), 3 * sizeof(gps_exclusion) - 5);
    EXPECT_TRUE(has(of(1)));
    EXPECT_TRUE(has(of(2)));
    EXPECT_FALSE(has(of(3)));
    const int fd = open(file().c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(1, pwrite(fd, "x", 1, 10));
    close(fd);
    EXPECT_FALSE(has(of(1)));
    EXPECT_TRUE(has(of(2)));
    EXPECT_EQ(count(), 1u);
}

// What a full directory leaves of a row would be in the way of all that follow.
TEST_F(ExclusionsTest, ARowThatDoesNotFitIsTakenBack) {
    add(of(1));
    add(of(2));
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit most = {5 * sizeof(gps_exclusion) / 2, RLIM_INFINITY};
        gps_exclusion exclusion = of(3);
        setrlimit(RLIMIT_FSIZE, &most);
        _exit(gps_exclusions_add(&store, &exclusion) == -ENOSPC ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    EXPECT_FALSE(has(of(3)));
    add(of(4));
    EXPECT_TRUE(has(of(4)));
    EXPECT_EQ(count(), 3u);
}

TEST_F(ExclusionsTest, OfManyAtOnceNoneIsLost) {
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < 8; i++)
        threads.emplace_back([this, i] {
            for (uint64_t n = 0; n < 20; n++)
                add(of(100 * i + n));
        });
    for (auto &thread : threads)
        thread.join();
    EXPECT_EQ(count(), 160u);
}

TEST_F(ExclusionsTest, AFileOfSomebodyElsesIsNotRead) {
    add(of(1));
    ASSERT_EQ(0, chmod(file().c_str(), 0666));
    EXPECT_FALSE(has(of(1)));
}

} // namespace
