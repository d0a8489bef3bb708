// steady_test.cpp - engines that size themselves by what is free are not misled by merging.
#include "scenario/merging.hpp"

namespace {

const char *const DRIVER = "[gpushare]\nfree = driver\n";

// The sizes of their caches, or why they gave up, sorted; after "status 0\n".
std::string engines(int count, bool with, const std::string &config) {
    World world;
    Environment environment = world.environment;
    environment["GPUSHARE_SIM_MEMORY"] = "4GiB";
    environment["GPUSHARE_SIM_ROOT"] += "-4";
    world.config(config);
    if (with)
        environment["LD_PRELOAD"] = library();
    std::string script;
    for (int i = 0; i < count; i++)
        script += build_directory() + "/tests/apps/engine 512 " + world.path("") + " " +
                  std::to_string(count) + " & ";
    return command({"sh", "-c", script + "wait"}, environment).out;
}

const std::string weights = rule("weights", "engine", "merge", "size = 2MiB\nquiet = 0\n");

// Each line is the size of a cache, within 1 % of it.
void expect_all(const std::string &said, size_t count, double alone) {
    std::istringstream lines(said);
    std::string line;
    size_t found = 0;
    for (; std::getline(lines, line); found++)
        EXPECT_NEAR(std::strtod(line.c_str(), nullptr), alone, alone / 100) << said;
    EXPECT_EQ(found, count) << said;
}

void start_four(int times) {
    SIM_ONLY("nobody else may have memory");
    const std::string bare = engines(1, false, "");
    const double alone = std::strtod(bare.c_str(), nullptr);
    ASSERT_GT(alone, 400.0 * MiB) << bare;
    expect_all(engines(1, true, weights), 1, alone);
    for (int i = 0; i < times && !::testing::Test::HasFailure(); i++)
        expect_all(engines(4, true, weights), 4, alone);
}

TEST(Steady, FourEnginesSizeThemselvesAsOneAlone) {
    start_four(2);
}

TEST(Steady, FiftyTimesFourEnginesSizeThemselvesAsOneAlone) {
    start_four(50);
}

TEST(Steady, IsWhatTheDriverSaysWhereTheConfigurationWantsThat) {
    SIM_ONLY("nobody else may have memory");
    std::istringstream lines(engines(2, true, DRIVER + weights));
    std::set<std::string> sizes;
    for (std::string line; std::getline(lines, line);)
        sizes.insert(line);
    EXPECT_EQ(sizes.size(), 2u) << "the second one's weights cost nothing";
}

uint64_t left(Puppet &one) {
    return one("info").number(0);
}

// Three programs, of which the third was there before.
TEST(Steady, ALoadCostsEachProgramWhatItCostsBare) {
    SIM_ONLY("nobody else may have memory");
    Replicas three(3, merging("quiet = 0\n"));
    const uint64_t all = left(three[2]), size = 32 * MiB;
    three[0].all({"malloc p " + text(size), Replicas::upload("p", size, 1)});
    EXPECT_EQ(left(three[2]), all - size);
    three[1].all({"malloc p " + text(size), Replicas::upload("p", size, 1)});
    EXPECT_TRUE(three.use(size)) << "it is there once";
    EXPECT_TRUE(eventually([&] { return left(three[2]) == all - 2 * size; }))
        << "what the others save is theirs: " << left(three[2]);
    three[2].all({"malloc p " + text(size), Replicas::upload("p", size, 1)});
    EXPECT_TRUE(three.use(size));
    EXPECT_EQ(left(three[2]), all - 3 * size);
    EXPECT_HAS(three.world.tool({"show", std::to_string(three[2].pid)}).out,
               "untold     64 MiB (67108864 bytes) that merging has saved");

    Puppet &late = three.start(); // what is saved already, it may have
    const uint64_t now = left(late);
    EXPECT_GT(now, left(three[2]) + size);
    late.all({"malloc p " + text(size), Replicas::upload("p", size, 1)});
    EXPECT_EQ(left(late), now - size);
    late.must("free p");
    EXPECT_TRUE(eventually([&] { return left(late) == now; }));
}

// An engine gives up where what is free rises while it measures.
TEST(Steady, WhatIsMergedLaterFreesNothing) {
    SIM_ONLY("nobody else may have memory");
    Replicas two(2, merging(QUIET));
    const uint64_t all = left(two[0]), size = 32 * MiB;
    EXPECT_EQ(left(two[1]), all);
    two.load("p", size, 1);
    uint64_t most = 0;
    EXPECT_TRUE(eventually([&] {
        most = std::max(most, left(two[0]));
        return two.in_use() == size;
    }));
    EXPECT_EQ(most, all - 2 * size);
    for (auto &one : two.all)
        EXPECT_EQ(left(*one), all - 2 * size);
}

// Bare, its memory leaves the card, too.
TEST(Steady, WhoIsSuspendedSavesNothing) {
    SIM_ONLY("nobody else may have memory");
    SKIP_IF(!hip().empty(), "the simulator of AMD's runtime has no checkpoints");
    Replicas two(2, "[gpushare]\nsuspend = on\n" + merging("quiet = 0\n"));
    const uint64_t all = left(two[0]), size = 32 * MiB;
    two.load("p", size, 1);
    EXPECT_TRUE(two.use(size));
    EXPECT_TRUE(eventually([&] { return left(two[0]) == all - 2 * size; }));
    const std::string other = std::to_string(two[1].pid);
    EXPECT_EQ(two.world.tool({"suspend", other}).status, 0);
    EXPECT_TRUE(eventually([&] { return left(two[0]) == all - size + 2 * MiB; })) << left(two[0]);
    EXPECT_EQ(two.world.tool({"resume", other}).status, 0);
    EXPECT_TRUE(eventually([&] { return left(two[0]) == all - 2 * size; })) << left(two[0]);
}

// The others' part ends with them; what is free is never more than that.
TEST(Steady, IsNeverMoreThanTheDriverSays) {
    SIM_ONLY("nobody else may have memory");
    Replicas three(3, merging("quiet = 0\n"));
    three.load("p", 32 * MiB, 1);
    Puppet &late = three.start();
    const uint64_t now = left(late);
    three.kill(0);
    three.kill(1);
    usleep(300000);
    EXPECT_GE(left(late), now);
}

TEST(Steady, ExplainSaysWhatAProgramWasNotTold) {
    World world;
    world.config(rule("w", "puppet", "merge", "quiet = 0\n"));
    Puppet one(world);
    one.all({"malloc p 4194304", "upload p 0 4194304 1 sync"});
    ASSERT_TRUE(eventually([&] { return world.entries("regions") == 1; }));
    write_file(world.path("lines"),
               "info\nmalloc p 4194304\nupload p 0 4194304 1 sync\ninfo\nexit 0\n");
    const Result result =
        world.tool({"explain", "--", "sh", "-c",
                    "exec '" + world.executable({}) + "' 3 <'" + world.path("lines") + "'"});
    EXPECT_HAS(std::regex_replace(result.err, std::regex("\n +"), " "),
               "cudaMemGetInfo told it less than is free, by up to 4 MiB, which merging has saved "
               "(free = steady).");
}

} // namespace
