// partial_test.cpp - a library that stands in for the driver, and has a few functions only.
#include "scenario/harness.hpp"

namespace {

// The program's answers, and its reports by their ids.
std::string answers(World &world, const std::string &driver, bool with,
                    const Environment &more = {}) {
    Environment environment = world.environment;
    environment["LD_LIBRARY_PATH"] = build_directory() + "/tests/apps/" + driver;
    if (with)
        environment["LD_PRELOAD"] = library();
    for (const auto &each : more)
        environment[each.first] = each.second;
    const Result result = command({build_directory() + "/tests/apps/few_calls"}, environment);
    return std::to_string(result.status) + "\n" + result.out;
}

class Partial : public testing::TestWithParam<const char *> {};

// Without the functions for contexts everything goes straight on, and that is said once.
TEST_P(Partial, DriverMakesGpushareStayOff) {
    World world(rule("w", "few_calls", "merge", "quiet = 0\n"));
    const std::string bare = answers(world, "partial", false);
    EXPECT_EQ(bare.substr(0, 2), "0\n") << bare;
    EXPECT_EQ(answers(world, "partial", true, {{"GPUSHARE_MODE", GetParam()}}), bare);
    ASSERT_EQ(world.count("driver-incomplete"), 1u) << world.logs();
    EXPECT_HAS(world.logs(), "it has no cuCtxGetCurrent");
    EXPECT_EQ(world.entries("procs"), 0u);
}

// Where these are there, what else is missing does no harm.
TEST_P(Partial, DriverWithContextsDoesNoHarm) {
    World world(rule("w", "few_calls", "merge", "quiet = 0\n"));
    const std::string bare = answers(world, "partial/more", false);
    EXPECT_EQ(bare.substr(0, 2), "0\n") << bare;
    EXPECT_EQ(answers(world, "partial/more", true, {{"GPUSHARE_MODE", GetParam()}}), bare);
    EXPECT_EQ(world.count("driver-incomplete"), 0u) << world.logs();
}

INSTANTIATE_TEST_SUITE_P(In, Partial, testing::Values("share", "audit"));

TEST(PartialDriver, IsNotSpokenOfWhereTheModeIsOff) {
    World world;
    answers(world, "partial", true, {{"GPUSHARE_MODE", "off"}});
    EXPECT_EQ(world.count("driver-incomplete"), 0u) << world.logs();
}

} // namespace
