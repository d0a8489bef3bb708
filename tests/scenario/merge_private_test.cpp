// merge_private_test.cpp - what a merge rule took and is not merged: why, in bytes, and `gpushare
// merge off|on`.
#include "scenario/keepers.hpp"
#include "scenario/merging.hpp"

#include "gpushare/region.h"

namespace {

constexpr uint64_t SIZE = 8 * MiB;

Json shown(const World &world, const Puppet &puppet) {
    return Json::parse(world.tool({"show", "--json", pid(puppet)}).out)[0];
}

using Reasons = std::map<std::string, uint64_t>; // bytes

Reasons reasons(const World &world, const Puppet &puppet) {
    Reasons found;
    const Json process = shown(world, puppet);
    for (size_t i = 0; i < process["private"].size(); i++)
        found[process["private"][i]["reason"].text] =
            static_cast<uint64_t>(process["private"][i]["bytes"].number);
    return found;
}

// Figures are at most a second old.
testing::AssertionResult become(const World &world, const Puppet &puppet, const Reasons &wanted) {
    if (eventually([&] { return reasons(world, puppet) == wanted; }))
        return testing::AssertionSuccess();
    return testing::AssertionFailure() << world.tool({"show", pid(puppet)}).out;
}

Result merge(const World &world, const std::string &word, const Puppet &puppet) {
    return world.tool({"merge", word, pid(puppet)});
}

} // namespace

TEST(MergePrivate, EachReasonHasItsBytes) {
    Replicas one(1, merging("quiet = 1h\n"));
    one.each("stream s");
    one.load("written", 8 * MiB, 3);
    one.each("malloc unfilled 4194304", "fill unfilled 1 4194304", "malloc named 2097152",
             "capture s", "sfill s named 0x55 2097152 0", "captured s g");
    EXPECT_TRUE(become(one.world, one[0],
                       {{"written", 8 * MiB}, {"unfilled", 4 * MiB}, {"named", 2 * MiB}}));
    const std::string text = one.world.tool({"show", std::to_string(one[0].pid)}).out;
    EXPECT_HAS(text,
               "  private    4 MiB (4194304 bytes): copies from the host have not filled it\n"
               "             8 MiB (8388608 bytes): it was not the same for as long as quiet says\n"
               "             2 MiB (2097152 bytes): a graph, ");
    EXPECT_HAS(one.world.tool({"metrics"}).out, ",reason=\"unfilled\"} 4194304\n");
    one.each("free written");
    EXPECT_TRUE(become(one.world, one[0], {{"unfilled", 4 * MiB}, {"named", 2 * MiB}}));
}

TEST(MergePrivate, WhatIsOnlyToBeMergedWaits) {
    Replicas one(1);
    one.load("p", SIZE, 3);
    ASSERT_TRUE(eventually([&] { return one.world.entries("regions") == 1; }));
    EXPECT_TRUE(become(one.world, one[0], {}));
    const pid_t keeper = keeper_of(one.world);
    signal_keeper(keeper, SIGSTOP);
    one.load("q", SIZE, 4);
    EXPECT_TRUE(become(one.world, one[0], {{"waiting", SIZE}}));
    signal_keeper(keeper, SIGCONT);
    EXPECT_TRUE(become(one.world, one[0], {}));
}

// Of one replica another has a half; the rest lies elsewhere, or differs.
TEST(MergePrivate, WhatNoOtherReplicaHasIsApart) {
    Replicas two(2);
    two.load("p", SIZE, 3);
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    EXPECT_TRUE(become(two.world, two[1], {}));
    two[1].all({"malloc q 4194304", Replicas::upload("q", 4 * MiB, 5)});
    EXPECT_TRUE(become(two.world, two[1], {{"apart", 4 * MiB}}));
    EXPECT_TRUE(become(two.world, two[0], {}));
    const std::string text = two.world.tool({"show", std::to_string(two[1].pid)}).out;
    EXPECT_HAS(text,
               "  apart      4 MiB (4194304 bytes) that no other replica has by now: its bytes "
               "differ, or its tensors lie at other distances from a multiple of 2 MiB\n");
    EXPECT_HAS(text, "HF_DEACTIVATE_ASYNC_LOAD=1");
    two.kill(0); // now it is alone
    EXPECT_TRUE(become(two.world, two[1], {}));
}

// More regions than stand before its blocks in its file: who frees them sees each one's user.
TEST(MergePrivate, WhoFreesARegionSeesItsUserBesideManyOthersAndBlocks) {
    constexpr int MANY = GPS_DIVIDER + 20;
    Replicas one(1);
    one.load("p", SIZE, 3);
    ASSERT_TRUE(eventually([&] { return one.world.entries("regions") == 1; }));
    Puppet camera(one.world, called("camera"));
    for (int i = 0; i < MANY; i++) {
        const std::string number = std::to_string(i);
        camera.must("malloc r" + number + " 2097152");
        one[0].must("open q" + number + " " + camera.must("get r" + number));
    }
    one.load("w", SIZE, 4); // a block beside them
    for (int i = 0; i < MANY; i++)
        camera.must("free r" + std::to_string(i));
    const Json list = Json::parse(one.world.tool({"ls", "--json"}).out);
    int closing = 0;
    for (size_t i = 0; i < list.size(); i++)
        closing += list[i]["state"].text == "closing";
    EXPECT_EQ(closing, MANY);
    for (int i = 0; i < MANY; i++)
        one[0].must("close q" + std::to_string(i));
    one.each("free w");
    EXPECT_EQ(camera.quit("return"), 0);
    EXPECT_EQ(one.left(), "");
}

TEST(MergePrivate, ExplainTellsReasonsAndWhatIsApart) {
    World world(merging());
    const std::string load = "malloc p 8388608\nupload p 0 8388608 3 sync\nmalloc w 4194304\n"
                             "malloc q 4194304\nfill w 7 4194304\nupload q 0 4194304 ";
    write_file(world.path("one"), load + "4 sync\nsleep 6000\n");
    write_file(world.path("two"), load + "5 sync\nsleep 6000\n");
    How how = called("replica");
    const std::string program = "'" + world.executable(how) + "' <'";
    const Result result = world.tool(
        {"explain", "--", "sh", "-c",
         program + world.path("one") + "' & " + program + world.path("two") + "'; wait"});
    const std::string said = std::regex_replace(result.err, std::regex("\n +"), " "); // unwrapped
    for (const char *part :
         {"When it was last looked at, this was private: 4 MiB: copies from the host have not "
          "filled it.",
          "Merged, but in no other replica: 4 MiB: its bytes differ, or its tensors lie at other "
          "distances from a multiple of 2 MiB. Then this may help: transformers "})
        EXPECT_HAS(said, part) << part << "\n" << result.err;
}

TEST(MergePrivate, OffMergesNothingNewUntilOn) {
    for (const char *quiet : {"quiet = 0\n", QUIET}) {
        Replicas two(2, merging(quiet));
        const World &world = two.world;
        two.load("p", SIZE, 3);
        EXPECT_TRUE(two.use(SIZE)) << two.in_use();
        const Result off = merge(world, "off", two[1]);
        EXPECT_OUT_HAS(off, 0, "Merging is off in replica " + std::to_string(two[1].pid));
        EXPECT_EQ(merge(world, "off", two[1]).status, 0) << "twice";
        two.load("q", SIZE, 4);
        EXPECT_TRUE(become(world, two[1], {{"paused", SIZE}})) << quiet;
        usleep(1500000);
        EXPECT_TRUE(two.use(3 * SIZE)) << two.in_use(); // what was merged stays so
        two.expect_all("p", SIZE, 3);
        two.expect_all("q", SIZE, 4);
        EXPECT_EQ(shown(world, two[1])["unmerged"].text, "it is switched off (gpushare merge off)");
        EXPECT_HAS(world.tool({"ls"}).out, "NOT MERGING");
        const std::string top = world.tool({"top", "--once"}).out;
        EXPECT_TRUE(contains(top, "MERGING") && contains(top, " off ")) << top;
        EXPECT_EQ(shown(world, two[0])["unmerged"].text, "");
        two[1].must("write p 0 ffee"); // is private then, and merged no more
        EXPECT_EQ(two.expect(two[0], "p", SIZE, 3), "same");
        EXPECT_OUT_HAS(merge(world, "on", two[1]), 0, "Merging is on in replica ");
        EXPECT_EQ(shown(world, two[1])["unmerged"].text, "");
        EXPECT_LACKS(world.tool({"ls"}).out, "NOT MERGING");
        EXPECT_TRUE(two.use(3 * SIZE)) << two.in_use(); // p differs
        EXPECT_TRUE(become(world, two[0], {{"apart", SIZE}})) << quiet;
        EXPECT_EQ(two.left(), "");
    }
}

// In no second the GPU holds more than without merging.
TEST(MergePrivate, WhatIsMergedIsNotCountedAsOwnAnyMore) {
    Replicas two(2, merging(QUIET));
    two.load("p", SIZE, 3);
    Json row;
    ASSERT_TRUE(eventually([&] {
        row = Json::parse(two.world.tool({"ls", "--json"}).out)[0];
        return row["saved"].number > 0;
    }));
    usleep(200000);
    row = Json::parse(two.world.tool({"ls", "--json"}).out)[0];
    EXPECT_EQ(row["own"].number + row["mapped"].number, 2.0 * SIZE)
        << two.world.tool({"show", std::to_string(two[0].pid)}).out
        << two.world.tool({"show", std::to_string(two[1].pid)}).out;
}

// It is read-only, and a kernel may write it: it would be for nothing that it ends the process.
TEST(MergePrivate, OffGivesBackAccessToWhatIsOnlyFrozen) {
    Replicas one(1, merging(QUIET));
    one.each("kernels " + build_directory() + "/tests/apps/kernels.ptx", "malloc p 67108864",
             "upload p 0 27262976 3 sync");
    one.each("upload p 27262976 12582912 4 sync"); // lies in both blocks, of which one is not full
    usleep(2000000);                               // the other waits for it, for 10 s
    EXPECT_EQ(merge(one.world, "off", one[0]).status, 0);
    EXPECT_TRUE(become(one.world, one[0], {{"paused", 64 * MiB}}));
    one.each("launch - test_write p 1024 7");
    EXPECT_EQ(one[0].code("sync"), 0);
}

TEST(MergePrivate, OffGoesWithItsProcess) {
    Replicas one(1, merging(QUIET));
    one.load("p", SIZE, 3);
    ASSERT_TRUE(eventually([&] { return one.world.entries("regions") == 1; }));
    EXPECT_EQ(merge(one.world, "off", one[0]).status, 0);
    EXPECT_EQ(one.left(), "");
}

TEST(MergePrivate, OffNeedsAProcessWhoseMemoryARuleTook) {
    World world(merging());
    How plain;
    plain.as = "camera";
    Puppet camera(world, plain);
    camera.all({"malloc p 8388608", "get p"});
    EXPECT_ERR_HAS(merge(world, "off", camera), 1, "no merge rule has taken memory of camera");
}
