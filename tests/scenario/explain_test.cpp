// gpushare explain: what became of memory that a merge rule took.
#include "scenario/harness.hpp"

namespace {

// Runs a puppet by these lines under a rule, and gives what was said of it.
std::string explained(World &world, const std::string &keys, const std::string &lines) {
    world.config("[region w]\nprogram = puppet\nrole = merge\n" + keys);
    write_file(world.path("lines"), lines);
    const Result result =
        world.tool({"explain", "--", "sh", "-c",
                    "exec '" + world.executable({}) + "' 3 <'" + world.path("lines") + "'"});
    const size_t at = std::min(result.err.find("puppet (pid "), result.err.size());
    return std::regex_replace(result.err.substr(at), std::regex("\n +"), " "); // unwrapped
}

const char *const USED = "malloc w 6220801\nupload w 0 6220801 1 sync\n";

} // namespace

struct Explain : testing::Test {
    World world;
};

TEST_F(Explain, SaysThatAProgramEndedBeforeItsBlocksWereQuiet) {
    const std::string said = explained(world, "quiet = 30s\n", std::string(USED) + "exit 0\n");
    EXPECT_HAS(said, "), arguments: 3 1x  size",
               " 1x  size = 6220801   cudaMalloc in puppet taken by [region w], line 1: its "
               "blocks may be merged Nothing was merged: it ended ",
               "has not changed for 30 s (quiet).");
}

// A kernel runs all the time, so that nothing can be merged.
TEST_F(Explain, SaysThatAProgramEndedBeforeItsBlocksWereMerged) {
    const std::string said =
        explained(world, "quiet = 0\n",
                  kernels() + "\nmalloc small 1024\nmalloc w 4194304\nstream s\n"
                              "launch s test_spin small 1024 1500000000 small\n"
                              "upload w 0 4194304 2 beside\nsleep 300\nexit 0\n");
    EXPECT_HAS(said, " Nothing was merged: it ended before its blocks were merged.");
}

TEST_F(Explain, SaysWhatNoCopyFilled) {
    std::string said = explained(world, "quiet = 0\n", "malloc w 4194304\nsleep 300\nexit 0\n");
    EXPECT_HAS(said, " Nothing was merged: copies from the host filled no whole block.");
    said = explained(world, "quiet = 100ms\n", "malloc w 4194304\nfill w 1 4194304\nsleep 900\n");
    EXPECT_HAS(said, " Nothing was merged: there was no whole block that copies from the host had "
                     "filled and that had not changed for 100 ms (quiet).");
}

// A program that a signal ends has said nothing of its end.
TEST_F(Explain, SaysHowMuchWasMerged) {
    for (const char *end : {"exit 0\n", "abort\n"}) {
        const std::string said = explained(
            world, "quiet = 0\n",
            "malloc w 4194304\nupload w 0 4194304 1 sync\nsleep 1500\n" + std::string(end));
        EXPECT_HAS(said, " Merged, at most at a time: 4 MiB.");
    }
}

// Ten blocks of 2 MiB, as PyTorch makes them for expandable segments.
std::string ten_blocks() {
    std::string lines = "info\n";
    for (int i = 0; i < 10; i++)
        lines += "vcreate h" + std::to_string(i) + " 2097152\n";
    return lines + "exit 0\n";
}

TEST_F(Explain, NamesTheKeyForMemoryThatTheProgramMakesItself) {
    std::string said = explained(world, "quiet = 0\n", ten_blocks());
    EXPECT_HAS(said,
               " 10x  size = 2MiB      cuMemCreate in puppet not by [region w], line 1: "
               "created = off, and cuMemCreate makes memory that the program maps itself; "
               "created = on takes it",
               "[region w], line 1: created = off: cuMemCreate, whose memory created = on takes, "
               "was called 10 times");
    EXPECT_LACKS(said, "It allocated nothing");
    said = explained(world, "quiet = 0\ncreated = on\n", ten_blocks());
    EXPECT_HAS(said, "cuMemCreate in puppet taken by [region w], line 1: its blocks may be merged");
    world.environment["GPUSHARE_VMM_IPC"] = "on";
    said = explained(world, "quiet = 0\ncreated = on\n", ten_blocks());
    EXPECT_HAS(said, "but it was left private: with vmm_ipc = on or suspend = on memory of "
                     "cuMemCreate is left alone");
}

TEST_F(Explain, SaysThatNoOtherRuleTakesMemoryThatTheProgramMakesItself) {
    world.config("[region w]\nprogram = puppet\nrole = auto\n");
    write_file(world.path("lines"), ten_blocks());
    const Result result =
        world.tool({"explain", "--", "sh", "-c",
                    "exec '" + world.executable({}) + "' 3 <'" + world.path("lines") + "'"});
    EXPECT_HAS(
        std::regex_replace(result.err, std::regex("\n +"), " "),
        "10x  size = 2MiB      cuMemCreate in puppet not by [region w], line 1: role = auto, "
        "and cuMemCreate makes memory that the program maps itself");
}

TEST_F(Explain, SaysThatMpsIsInTheWay) {
    SIM_ONLY("the part mps asks a card");
    world.environment["GPUSHARE_SIM_MPS"] = "1";
    const std::string said = explained(world, "quiet = 0\n", std::string(USED) + "exit 0\n");
    EXPECT_HAS(said, "the GPU is shared by MPS, and the rule has not mps = on");
}

TEST_F(Explain, SaysThatSmallAllocationsAreNeverMerged) {
    const std::string said = explained(world, "", "malloc w 4096\nexit 0\n");
    EXPECT_HAS(said, "but it was left private: allocations below 1 MiB are never merged");
    EXPECT_LACKS(said, "gpushare ls") << "nobody else has a part in it: " << said;
}

TEST_F(Explain, SaysThatTheDriverRefusedWhatNoRuleGave) {
    SIM_ONLY("the card is small");
    world.environment["GPUSHARE_SIM_MEMORY"] = "64MiB";
    const std::string said =
        explained(world, "", "malloc a 134217728\nmalloc b 134217728\nmalloc c 4096\nexit 0\n");
    EXPECT_HAS(said,
               " 2x  size = 128MiB    cudaMalloc in puppet taken by [region w], line 1: the "
               "allocation failed with 2 ",
               " 1x  size = 4KiB ");
}

TEST_F(Explain, SaysWhereItLookedForAConfiguration) {
    world.environment.erase("GPUSHARE_CONFIG");
    world.environment["HOME"] = world.environment["XDG_CONFIG_HOME"] = world.work.path;
    const Result result = world.tool({"explain", "--", "true"});
    EXPECT_HAS(std::regex_replace(result.err, std::regex("\n"), " "),
               "no configuration was found: GPUSHARE_CONFIG is not set, and there is no "
               "~/gpushare/gpushare.conf and no /etc/gpushare.conf")
        << result.err;
}

// The simulated driver runs already: under the limit it could not be started.
TEST_F(Explain, DoesNotEndAProgramWhoseFilesAreLimited) {
    Puppet other(world);
    other.must("malloc p 4096");
    write_file(world.path("lines"), "malloc a 4096\nexit 0\n");
    const Result result = world.tool(
        {"explain", "--", "sh", "-c",
         "ulimit -f 100; exec '" + world.executable({}) + "' 3 <'" + world.path("lines") + "'"});
    EXPECT_ERR_HAS(result, 1, "of 1 process nothing is known: ", "or ulimit -f allows none");
    EXPECT_LACKS(result.err, "drops LD_PRELOAD");
}

TEST_F(Explain, SaysWhatDiffersInCaseOnly) {
    world.config("[region w]\nprogram = Pupp?t\nrole = auto\n");
    write_file(world.path("lines"), "malloc a 4096\nexit 0\n");
    const Result result =
        world.tool({"explain", "--", "sh", "-c",
                    "exec '" + world.executable({}) + "' 3 <'" + world.path("lines") + "'"});
    EXPECT_HAS(std::regex_replace(result.err, std::regex("\n +"), " "),
               "not for it: [region w], line 1: program = Pupp?t, and this is puppet, which "
               "differs in case only")
        << result.err;
}

TEST_F(Explain, PointsNowhereElseWhereASizeDiffers) {
    world.config(FRAMES);
    Puppet exporter(world, producer());
    exporter.must("malloc p 4096");
    write_file(world.path("lines"), "malloc q 8192\nexit 0\n");
    const Result result = world.tool({"explain", "--", "sh", "-c",
                                      "GPUSHARE_PROGRAM=consumer exec '" + world.executable({}) +
                                          "' 3 <'" + world.path("lines") + "'"});
    const std::string said = std::regex_replace(result.err, std::regex("\n +"), " ");
    EXPECT_HAS(said, "size = 4KiB was exported, which is less");
    EXPECT_LACKS(said, "gpushare ls");
}

TEST_F(Explain, SaysThatMemoryIsLeftOutAfterAnError700) {
    const std::string lines = kernels() +
                              "\nmalloc w 4194304\nupload w 0 4194304 1 sync\nsleep 1000\n"
                              "launch - test_write 4096 1 7\nsync\n";
    explained(world, "quiet = 0\n", lines);
    if (world.logs().find("suspected: ") != std::string::npos)
        GTEST_SKIP() << "on a busy machine the write came more than 5 s after the merge";
    const std::string said = explained(world, "quiet = 0\n", lines);
    EXPECT_HAS(said, "but it is not merged: a process that had merged it ended with error 700; "
                     "after `gpushare forget` it is tried again");
}

// What is known of the rules is what this tool has read.
TEST_F(Explain, SaysThatTheCommandNamesAnotherConfiguration) {
    write_file(world.path("other"), "\n[region w]\nprogram = puppet\nrole = export\n");
    write_file(world.path("lines"), std::string(USED) + "exit 0\n");
    const Result result =
        world.tool({"explain", "--", "sh", "-c",
                    "GPUSHARE_CONFIG='" + world.path("other") + "' exec '" + world.executable({}) +
                        "' <'" + world.path("lines") + "'"});
    EXPECT_HAS(std::regex_replace(result.err, std::regex("\n +"), " "),
               "taken by line 2 of another configuration, which the command names itself");
}
