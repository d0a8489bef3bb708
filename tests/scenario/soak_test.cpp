// soak_test.cpp - eight processes at random for a few seconds (tests/soak). Ten minutes of it on a
// card are a part of make check-gpu.
#include "scenario/harness.hpp"

struct Soak : testing::TestWithParam<const char *> {};

TEST_P(Soak, KilledAndRestartedProcessesLeaveNothingAndNoUntrueFinding) {
    SIM_ONLY("check.sh runs it for longer");
    SKIP_IF(getenv("GPUSHARE_TEST_RUNNER"), "soak.py preloads the library as it is");
    const std::string command = "tests/soak/soak.py " + build_directory() +
                                " --gentle --seconds 5 --mode " + GetParam() + " 2>&1";
    FILE *output = popen(command.c_str(), "r");
    ASSERT_TRUE(output);
    std::string said;
    for (int c; (c = getc(output)) != EOF;)
        said += static_cast<char>(c);
    EXPECT_EQ(pclose(output), 0) << said;
}
INSTANTIATE_TEST_SUITE_P(Modes, Soak, testing::Values("share", "audit", "share --cache 4"),
                         [](const auto &one) {
                             return std::string(one.param).substr(0, 5) + std::to_string(one.index);
                         });
