// What tests/run does with tests that fail: tests/apps/reruns.cpp has some.
#include "harness.hpp"

namespace {

class TestsRun : public testing::Test {
  protected:
    Result run(const std::string &filter, Environment environment = {}) {
        environment["RERUNS"] = place.path;
        environment["TEST_FILTER"] = filter;
        environment["TEST_RECORD"] = "";
        const std::string build = tool_path().substr(0, tool_path().rfind('/'));
        return command({"tests/run", build + "/tests", "reruns"}, environment);
    }

    Temporary place;
};

TEST_F(TestsRun, NamesATestFlakyThatPassesTheSecondTime) {
    const Result result = run("Good.*:*FirstTime/0:*FirstTime/3");
    EXPECT_EQ(result.status, 0) << result.out;
    EXPECT_HAS(result.out,
               "flaky: All/Flaky.FailsTheFirstTime/0\nflaky: All/Flaky.FailsTheFirstTime/3\n"
               "3 passed, 0 failed\n");
}

TEST_F(TestsRun, FailsWithATestThatFailsTwice) {
    const Result result = run("Good.*:Bad.*");
    EXPECT_OUT_HAS(result, 1, "\n1 passed, 1 failed\n");
    EXPECT_LACKS(result.out, "flaky");
}

TEST_F(TestsRun, FailsWithFourThatAreFlaky) {
    const Result result = run("Good.*:All/Flaky.*");
    EXPECT_OUT_HAS(result, 1, "\n4 are flaky; no more than 3 may be\n1 passed, 4 failed\n");
}

TEST_F(TestsRun, RunsNothingAgainThatLooksForHarm) {
    EXPECT_OUT_HAS(run("Good.*:Harm.*"), 1, "\n1 passed, 1 failed\n");
}

TEST_F(TestsRun, RunsNothingAgainThatDied) {
    const Result result = run("Process.ThatIsGone*:Quick.*");
    EXPECT_OUT_HAS(result, 1, "its process ended with status");
    EXPECT_HAS(result.out, "\n1 passed, 1 failed\n"); // and what it kept from running
}

TEST_F(TestsRun, RunsNothingAgainThatHung) {
    const Result result = run("Process.ThatHangs*:Quick.*", {{"TEST_TIMEOUT", "1"}});
    EXPECT_OUT_HAS(result, 1, "its process ended with status 124", "\n1 passed, 1 failed\n");
}

} // namespace
