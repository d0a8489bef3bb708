// file_mark_test.cpp - an open file is known again, and by whom it was exported.
extern "C" {
#include "util/file_mark.h"
}

namespace {

TEST(FileMark, BelongsToTheOpenFileAndNotToItsNumber) {
    const int one = open("/dev/null", O_RDWR), other = open("/dev/null", O_RDWR), again = dup(one);
    const int mark = gps_file_mark(one, 4711);
    EXPECT_GT(mark, 0);
    EXPECT_TRUE(gps_file_has_mark(again, mark));
    EXPECT_FALSE(gps_file_has_mark(other, mark));
    EXPECT_EQ(gps_file_mark(again, 12), mark) << "it has one already";
    close(one);
    close(other);
    close(again);
    EXPECT_FALSE(gps_file_has_mark(one, mark));
}

TEST(FileMark, TellsInEachProcessWhoClaimedIt) {
    const int one = open("/dev/null", O_RDWR), other = open("/dev/null", O_RDWR);
    const pid_t self = getpid();
    errno = 7;
    gps_file_claim(one);
    EXPECT_EQ(gps_file_claimant(one), static_cast<uint32_t>(self));
    EXPECT_EQ(gps_file_claimant(other), 0u);
    EXPECT_EQ(gps_file_claimant(-1), 0u);
    EXPECT_EQ(errno, 7);
    const pid_t child = fork();
    if (child == 0) {
        gps_file_claim(one); // it is claimed already
        _exit(gps_file_claimant(one) == static_cast<uint32_t>(self) ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    close(one);
    close(other);
}

} // namespace
