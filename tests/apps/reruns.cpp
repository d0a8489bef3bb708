// reruns.cpp - tests for tests/run to run: some fail the first time, and know by a file that it was
// the first. The directory of these files is RERUNS.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace {

bool first_time(const std::string &name) {
    const std::string path = std::string(getenv("RERUNS")) + "/" + name;
    const bool first = !std::ifstream(path).good();
    std::ofstream(path) << "here";
    return first;
}

std::string this_test() {
    return testing::UnitTest::GetInstance()->current_test_info()->name();
}

class Flaky : public testing::TestWithParam<int> {};

TEST_P(Flaky, FailsTheFirstTime) {
    EXPECT_FALSE(first_time(std::to_string(GetParam())));
}
INSTANTIATE_TEST_SUITE_P(All, Flaky, testing::Range(0, 4));

TEST(Good, Passes) {
    EXPECT_TRUE(first_time(this_test())) << "it ran twice";
}

TEST(Bad, Fails) {
    EXPECT_TRUE(false);
}

TEST(Harm, FailsTheFirstTime) {
    EXPECT_FALSE(first_time(this_test()));
}

TEST(Process, ThatIsGoneTheFirstTime) {
    if (first_time(this_test()))
        abort();
}

TEST(Process, ThatHangsTheFirstTime) {
    if (first_time(this_test()))
        pause();
}

TEST(Quick, ComesAfterThem) {
}

} // namespace
