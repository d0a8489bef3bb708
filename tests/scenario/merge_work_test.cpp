// merge_work_test.cpp - kernels, captures and graphs during merging: none is hurt by a swap, and
// one that writes what is merged ends its process, once.
#include "scenario/merging.hpp"

namespace {

constexpr uint64_t SIZE = 16 * MiB;

// Replicas that have loaded `p`, with what a kernel needs.
struct Working : Replicas {
    explicit Working(int count, const std::string &config = merging()) : Replicas(count, config) {
        each(kernels());
        each("fill small 0 4096");
        load("p", SIZE, 3);
    }
    // By a kernel; the sum of all words.
    static std::string sum(Puppet &puppet, const std::string &stream = "-") {
        puppet.all({"fill small 0 4", "sync",
                    "launch " + stream + " test_read p " + std::to_string(SIZE / 4) + " small",
                    "sync"});
        return puppet.must("read small 0 4");
    }
    static int write(Puppet &puppet) { // the code with which a wait for it ends
        puppet.must("launch - test_write p 1024 7");
        return puppet.code("sync");
    }
};

TEST(MergeKernel, ReadsWhatIsMerged) {
    Working two(2);
    EXPECT_TRUE(two.use(SIZE));
    const std::string sum = two.sum(two[0]);
    EXPECT_EQ(two.sum(two[1]), sum);
    two[0].must("write p 4096 ffffffff");
    EXPECT_EQ(two.sum(two[1]), sum);
    EXPECT_NE(two.sum(two[0]), sum);
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
}

TEST(MergeKernel, FindsMemoryInBlocksThatNothingHasTouched) {
    Replicas one(1);
    one.each(kernels(), "malloc p 16777216", "launch - test_write p 4194304 7", "sync");
    EXPECT_EQ(one[0].must("read p 16777212 4"), "07000000");
}

// An allocator puts caches behind weights in one block of an allocation.
TEST(MergeKernel, WritesBesideWhatCopiesFilled) {
    Replicas two(2, merging("quiet = 300ms\n"));
    two.each(kernels(), "malloc p 20971520", two.upload("p", 12 * MiB, 3));
    two.load("q", SIZE, 4);
    two.each("sync");
    EXPECT_TRUE(two.use(SIZE + 2 * 20 * MiB)) << two.in_use();
    usleep(1000000);
    two.each("launch - test_write p+12582912 1048576 7");
    for (size_t i = 0; i < 2; i++)
        EXPECT_EQ(two[i].code("sync"), 0);
    two.expect_all("p", 12 * MiB, 3);
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
}

// It finds memory, and no block is swapped under it.
TEST(MergeKernel, MayBeLaunchedByFunctionsThatAreDeprecated) {
    for (const char *stream : {"one", "-", "s"}) {
        Replicas two(2, merging("quiet = 300ms\n"));
        two.each(kernels());
        two[0].all({"stream s", "malloc lazy 4194304"});
        two.each("malloc p 16777216", two.upload("p", SIZE, 3));
        two[0].all({"sync", std::string("oldlaunch ") + stream + " test_read lazy 1048576 small",
                    std::string("oldlaunch ") + stream + " test_spin p 4194304 2000000000 small"});
        usleep(1200000);
        EXPECT_GE(two.in_use(), 2 * SIZE + 4 * MiB) << stream << ": nothing is merged meanwhile";
        EXPECT_EQ(two[0].code("sync"), 0) << stream;
        EXPECT_TRUE(two.use(SIZE + 4 * MiB)) << stream << " " << two.in_use();
        two.expect_all("p", SIZE, 3);
        EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
    }
    Replicas lazy(1);
    lazy.each(kernels(), "malloc p 16777216", "oldlaunch - test_read p 4194304 small");
    EXPECT_EQ(lazy[0].code("sync"), 0);
}

/* --- allocations that a kernel wrote into --- */

// What was merged less than 5 s before is excluded at once. True: on a busy machine it was longer.
bool is_too_late(World &world, int64_t begun) {
    const bool suspected = world.logs().find("suspected: ") != std::string::npos;
    EXPECT_TRUE(!suspected || now_ms() - begun >= 5000) << world.logs();
    return suspected;
}

TEST(MergeExclusion, EndsOneProcessOnce) {
    const int64_t begun = now_ms();
    Working three(3);
    EXPECT_TRUE(three.use(SIZE));
    EXPECT_EQ(three.write(three[0]), 700);
    EXPECT_NE(three[0].code("read p 0 4"), 0) << "its context is lost";
    EXPECT_EQ(three.expect(three[1], "p", SIZE, 3), "same");
    EXPECT_EQ(three.expect(three[2], "p", SIZE, 3), "same");
    const auto findings = three.world.findings();
    ASSERT_EQ(findings.size(), 1u) << three.world.logs();
    EXPECT_EQ(findings[0].id, "merge-written");
    EXPECT_EQ(findings[0].pid, static_cast<uint32_t>(three[0].pid));
    EXPECT_HAS(findings[0].detail, "16 MiB (index 0 of [region weights]");
    if (is_too_late(three.world, begun))
        GTEST_SKIP() << "on a busy machine the write came more than 5 s after the merge";
    three[0].kill();

    Puppet &next = three.start();
    next.all({kernels(), "malloc p 16777216", three.upload("p", SIZE, 3), "sync"});
    usleep(1500000);
    EXPECT_EQ(three.write(next), 0) << "its own from now on";
    EXPECT_EQ(next.must("read p 0 4"), "07000000");
    EXPECT_EQ(three.expect(three[1], "p", SIZE, 3), "same");
    EXPECT_EQ(three.world.findings().size(), 1u) << three.world.logs();
    next.must("malloc other 8388608"); // of another size
    next.must(three.upload("other", 8 * MiB, 4));
    EXPECT_TRUE(eventually([&] { return three.world.entries("regions") == 2; }));
}

// The driver tells no address. The program's own bug costs no merged memory the first time.
TEST(MergeExclusion, OfWhatWasMergedLongAgoBeginsWithTheSecondProcess) {
    Working two(2);
    EXPECT_TRUE(two.use(SIZE));
    for (const bool again : {false, true}) {
        sleep(6);
        for (int replica = 0; replica < 2; replica++) { // that end together count once
            Puppet &one = *two.all.at(two.all.size() - 2 + replica);
            one.must("launch - test_write 4096 1 7");
            EXPECT_EQ(one.code("sync"), 700);
        }
        const auto findings = two.world.findings();
        ASSERT_EQ(findings.size(), again ? 4u : 2u) << two.world.logs();
        const auto excludes = [](const auto &finding) {
            return finding.detail.find("excluded: ") == 0;
        };
        EXPECT_EQ(std::count_if(findings.begin(), findings.end(), excludes), again ? 2 : 0)
            << two.world.logs();
        for (size_t i = two.all.size() - 2; i < two.all.size(); i++)
            two.kill(i);
        EXPECT_TRUE(two.use(0, 20000)) << two.in_use();
        for (int replica = 0; replica < 2; replica++) {
            Puppet &next = two.start();
            next.all({kernels(), "malloc p 16777216", two.upload("p", SIZE, 3)});
        }
        if (again)
            usleep(1500000);
        EXPECT_TRUE(two.use(again ? 2 * SIZE : SIZE, 20000)) << two.in_use();
    }
}

// A write into merged memory is an error of every program on the card, so nobody is asked for that.
TEST(MergeByMps, TakesNothingWithoutTheKey) {
    SIM_ONLY("MPS does not run there");
    for (const bool allowed : {false, true}) {
        World world(merging(allowed ? "quiet = 0\nmps = on\n" : "quiet = 0\n"),
                    {{"GPUSHARE_SIM_MPS", "1"}});
        How bare, how;
        bare.shim = false;
        how.as = "replica";
        Puppet neighbour(world, bare), a(world, how), b(world, how);
        neighbour.must("malloc own 4096");
        for (Puppet *puppet : {&a, &b}) {
            puppet->must(kernels());
            for (const char *name : {"p", "q"}) {
                puppet->must(std::string("malloc ") + name + " 16777216");
                puppet->must(Replicas::upload(name, SIZE, 3));
            }
        }
        EXPECT_EQ(eventually([&] { return world.entries("regions") > 0; }, allowed ? 8000 : 1500),
                  allowed);
        EXPECT_EQ(Working::write(a), allowed ? 700 : 0);
        EXPECT_EQ(neighbour.code("sync"), allowed ? 700 : 0);
        EXPECT_EQ(b.code("sync"), allowed ? 700 : 0);
        const std::string logs = world.logs(), said = "under MPS so does every other program";
        const size_t at = logs.find(said), again = logs.find(said, at + 1);
        EXPECT_EQ(again != std::string::npos, !allowed) << "a process says it: " << logs;
        EXPECT_EQ(allowed ? at : logs.find(said, again + 1), std::string::npos) << "once: " << logs;
        const std::string doctor =
            std::regex_replace(world.tool({"doctor"}).out, std::regex("\n +"), " ");
        EXPECT_EQ(contains(doctor, "the GPU is shared by MPS, and the rule has not mps = on"),
                  !allowed)
            << doctor;
    }
}

TEST(MergeExclusion, IsForgottenWhenTheRuleChanges) {
    const int64_t begun = now_ms();
    Working one(1);
    EXPECT_TRUE(eventually([&] { return one.world.entries("regions") == 1; }));
    EXPECT_EQ(one.write(one[0]), 700);
    if (is_too_late(one.world, begun))
        GTEST_SKIP() << "on a busy machine the write came more than 5 s after the merge";
    one[0].kill();
    for (const bool changed : {false, true}) {
        one.world.config(merging(changed ? "quiet = 0\nkeep = 10min\n" : "\n\nquiet = 0\n"));
        Puppet &next = one.start();
        next.all({kernels(), "malloc p 16777216", one.upload("p", SIZE, 3)});
        usleep(1500000);
        EXPECT_EQ(one.write(next), changed ? 700 : 0) << "where a rule stands is no part of it";
        next.kill();
    }
}

TEST(MergeExclusion, ShowsInWhateverCallComesFirst) {
    for (const char *call : {"ssync s", "evsync e", "read small 0 4", "squery s", "evquery e",
                             "free p", "write p 8192 ff"}) {
        Working one(1);
        one[0].all({"stream s", "evcreate e 2"});
        EXPECT_TRUE(eventually([&] { return one.world.entries("regions") == 1; }));
        one[0].must("launch s test_write p 1024 7");
        one[0].code("evrecord e");
        usleep(200000); // a free that waits for the kernel need not tell what became of it
        EXPECT_TRUE(eventually([&] { return one[0].code(call) == 700; })) << call;
        EXPECT_TRUE(eventually([&] { return one.world.count("merge-written") == 1; })) << call;
    }
}

/* --- copies of nothing --- */

TEST(MergeNothing, IsCopiedIntoMemoryThatNothingHasTouched) {
    for (const char *rows : {"0 4", "8 0", "0 0"}) {
        Replicas one(1);
        one.each("malloc p 16777216");
        EXPECT_EQ(one[0].code(std::string("rows - p 0 16 ") + rows + " 1"), 0) << rows;
    }
}

/* --- captures and graphs --- */

TEST(MergeGraph, CapturedBeforeAMergeRunsAfterIt) {
    Working two(2, merging(QUIET));
    two.each("stream s", "capture s", "launch s test_read p 4194304 small", "captured s g",
             "graph s g", "ssync s");
    const std::string sum = two[0].must("read small 0 4");
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    two.each("fill small 0 4", "graph s g", "ssync s");
    EXPECT_EQ(two[0].must("read small 0 4"), sum);
    EXPECT_EQ(two[1].must("read small 0 4"), sum);
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
}

// It writes whenever it is launched, which no hook sees as a copy.
TEST(MergeGraph, ThatFillsABlockKeepsItPrivate) {
    for (const bool merged_before : {false, true}) {
        Replicas two(2, merging(QUIET));
        two.each("stream s", "malloc p 16777216", two.upload("p", SIZE, 3));
        EXPECT_TRUE(!merged_before || two.use(SIZE)) << two.in_use();
        two[0].all({"capture s", "sfill s p 0x55 16777216 0", "captured s g"});
        usleep(3000000);
        two[0].all({"graph s g", "ssync s"});
        EXPECT_EQ(two[0].must("read p 16777212 4"), "55555555");
        two[0].must(two.upload("p", SIZE, 3));
        usleep(3000000);
        two[0].all({"graph s g", "ssync s"});
        EXPECT_EQ(two[0].must("read p 16777212 4"), "55555555");
        EXPECT_EQ(two.expect(two[1], "p", SIZE, 3), "same");
        EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
    }
}

// Before anything has touched the memory, and after it is merged. What a node writes stays private.
TEST(MergeGraph, MadeOfNodesFindsMemoryAndWritesNoMergedBlock) {
    for (const bool merged_before : {false, true}) {
        Replicas two(2, merging("quiet = 0\n"));
        two.each("stream s", "malloc p 16777216", "malloc q 16777216");
        if (merged_before) {
            two.each(two.upload("p", SIZE, 3));
            EXPECT_TRUE(two.use(SIZE + 2 * SIZE)) << two.in_use(); // each has its q
        }
        two[0].all({"node fill p 0 16777216 0x55 g", "node copy q 0 16777216 p h",
                    "renode copy q 0 8388608 p h", "malloc r 16777216",
                    "renode copy r 8388608 8388608 p h"});
        usleep(2000000);
        two[0].all({"graph s g", "graph s h", "ssync s"});
        EXPECT_EQ(two[0].must("read p 16777212 4"), "55555555");
        EXPECT_EQ(two[0].must("read r 16777212 4"), "55555555");
        two[0].must(two.upload("p", SIZE, 3));
        usleep(2000000);
        two[0].all({"graph s g", "ssync s"});
        EXPECT_EQ(two[0].must("read p 16777212 4"), "55555555");
        EXPECT_TRUE(!merged_before || two.expect(two[1], "p", SIZE, 3) == "same");
        EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
    }
}

TEST(MergeGraph, WritesOfAWordFindMemoryAndWriteNoMergedBlock) {
    for (const bool merged_before : {false, true}) {
        Replicas two(2);
        two.each("stream s", "malloc p 16777216");
        if (merged_before) {
            two.each(two.upload("p", SIZE, 3));
            EXPECT_TRUE(two.use(SIZE)) << two.in_use();
        }
        two[0].all({"word s p 4096 0x01020304", "ssync s"});
        EXPECT_EQ(two[0].must("read p 4096 4"), "04030201");
        EXPECT_TRUE(!merged_before || two.expect(two[1], "p", SIZE, 3) == "same");
    }
}

// Other hardware goes on with the memory that it was given: nothing of it is ever merged again. A
// SYNC_MEMOPS is for all of an allocation.
TEST(MergeHeld, WhatOtherHardwareReachesStaysPrivate) {
    constexpr uint64_t LARGE = 40 * MiB, FIRST = 32 * MiB; // two blocks
    const std::pair<std::string, bool> cases[] = {{"quiet = 0\n", true}, {QUIET, false}};
    for (const auto &[quiet, merged_before] : cases)
        for (const bool memops : {false, true}) {
            Replicas two(2, merging(quiet));
            two.each("malloc p 41943040");
            if (merged_before) {
                two.each(two.upload("p", LARGE, 3));
                EXPECT_TRUE(two.use(LARGE)) << two.in_use();
            }
            two[0].must(memops ? "memops p 35000000" : "dmabuf p 33554432 4096");
            two.each(two.upload("p", LARGE, 3));
            usleep(1500000);
            EXPECT_TRUE(two.use(memops ? 2 * LARGE : 2 * LARGE - FIRST))
                << memops << quiet << two.in_use();
            if (memops) {
                two[0].must(kernels());
                // the fill waits behind it, and the call for the fill: on the simulator always
                two[0].all({"stream t 0", "launch t test_spin small 1024 400000000 small"});
                const int64_t start = now_ms();
                two[0].must("fill p 0 16");
                EXPECT_GE(now_ms() - start, 300);
                two[0].must("write p 0 " + two[1].must("read p 0 16"));
                EXPECT_EQ(two[0].must("attribute p+100 6"), "1");
                EXPECT_EQ(two[0].must("attribute p+41943039 6"), "1");
            }
            two.expect_all("p", LARGE, 3);
            two[0].must("write p 41943000 " + hex_bytes("cd", 4));
            EXPECT_EQ(two.expect(two[1], "p", LARGE, 3), "same");
            EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
        }
}

// The hardware would write, or keep, a block that others have, whatever bare memory answers.
TEST(MergeHeld, WhatOtherEnginesAreGivenIsPrivate) {
    SIM_ONLY("needs a card that can do neither");
    const std::tuple<const char *, int, uint64_t> calls[] = {
        {"multicast p 33554432 2097152", 1, 8 * MiB},
        {"decompress p 33554436 4096", 801, 8 * MiB},
        {"decompress p 33554432 4096", 801, 40 * MiB}};
    for (const auto &[call, code, more] : calls) {
        Replicas two(2, merging("quiet = 1s\n"));
        two.load("p", 40 * MiB, 3);
        EXPECT_TRUE(two.use(40 * MiB)) << two.in_use();
        EXPECT_EQ(two[0].code(call), code) << call;
        EXPECT_EQ(two.in_use(), 40 * MiB + more) << call;
        two.expect_all("p", 40 * MiB, 3);
        EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
    }
}

// Nothing is swapped, no stream is asked, and the capture ends well.
TEST(MergeCapture, HoldsMergingUp) {
    Replicas two(2, merging(QUIET));
    two.each("stream s");
    two[0].must("capture s");
    two[0].send("sleep 1"); // it takes commands one by one
    EXPECT_EQ(two[0].receive().code, 0);
    two[1].all({"malloc p 16777216", two.upload("p", SIZE, 3)});
    EXPECT_EQ(two[0].must("captured s g").empty(), false);
    two[0].all({"malloc p 16777216", two.upload("p", SIZE, 3), "capture s"});
    usleep(2500000);
    EXPECT_TRUE(on_gpu() || two.in_use() == 2 * SIZE) << two.in_use();
    two[0].all({"sfill s small 0 4", "captured s g"});
    EXPECT_TRUE(two.use(SIZE)) << "afterwards it goes on: " << two.in_use();
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
}

// A second answer may come before that of a command that waits.
struct Waiting : Working {
    explicit Waiting(bool captured, const char *spin) : Working(2) {
        Puppet &one = (*this)[0];
        EXPECT_TRUE(use(SIZE)) << in_use();
        for (const char *name : {"s", "t", "u"})
            one.must(std::string("stream ") + name);
        one.must(std::string("launch s test_spin p 4194304 ") + spin + " small");
        if (captured)
            one.must("capture t");
    }
};

// A copy into what is merged waits for the kernel that reads it, and nobody else does.
TEST(MergeWait, OfACopyStopsNoOtherThread) {
    for (const bool captured : {false, true}) {
        Waiting two(captured, "4000000000");
        const int64_t start = now_ms();
        two[0].must("later 800 fill small 1 16");
        two[0].send("sfill u p 85 4096 0");
        EXPECT_EQ(two[0].receive().code, 0);
        EXPECT_LT(now_ms() - start, 800 + soon(250)) << captured;
        EXPECT_EQ(two[0].receive(20000).code, 0);
        EXPECT_GT(now_ms() - start, 2500) << captured;
        if (captured) {
            EXPECT_EQ(two[0].code("captured t g"), 0);
        }
        two[0].all({"ssync s", "ssync u"});
        EXPECT_EQ(two[0].must("read p 0 4"), "55555555");
        EXPECT_EQ(two.expect(two[1], "p", SIZE, 3), "same");
        EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
    }
}

TEST(MergeWait, OfACopyCanBeInterrupted) {
    for (const bool captured : {false, true}) {
        Waiting two(captured, "20000000000");
        two[0].send("sfill u p 85 4096 0");
        usleep(600000);
        two[0].signal(SIGTERM);
        EXPECT_TRUE(eventually([&] { return two[0].ended(); }, soon(1500))) << captured;
        EXPECT_EQ(two.expect(two[1], "p", SIZE, 3), "same");
    }
}

// Threads go on launching while a graph is captured; a copy finds its moment all the same.
TEST(MergeWait, OfACopyBesideACaptureEndsThoughThreadsLaunch) {
    Working two(2);
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    for (const char *flags : {"1", "0"}) { // a blocking stream forbids to ask the legacy one
        two[0].all({std::string("stream t ") + flags, "stream u 1", "flood small 3000"});
        two[0].must("capture t 2"); // relaxed
        const int64_t start = now_ms();
        EXPECT_EQ(two[0].code("sfill u p 85 4096 0", 20000), 0);
        EXPECT_LT(now_ms() - start, soon(2500)) << flags;
        EXPECT_EQ(two[0].code("captured t g"), 0) << flags;
        EXPECT_EQ(two[0].code("flooded", 20000), 0);
        two[0].must(two.upload("p", SIZE, 3));
        EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    }
    EXPECT_EQ(two.expect(two[1], "p", SIZE, 3), "same");
}

/* --- captures that end otherwise --- */

struct Ending {
    const char *name;
    std::vector<const char *> commands;
};

TEST(MergeCapture, EndsWithItsStreamAndItsContext) {
    const std::vector<Ending> endings = {
        {"its stream", {"stream s", "capture s", "unstream s"}},
        {"its context", {"ctxcreate c", "stream s", "capture s", "ctxdestroy c"}},
        {"a reset", {"stream s", "capture s", "reset", "malloc small 4096"}},
    };
    for (const Ending &ending : endings) {
        Replicas two(2, merging(QUIET));
        for (const char *command : ending.commands)
            two[0].must(command);
        two.load("p", SIZE, 3);
        EXPECT_TRUE(two.use(SIZE)) << ending.name << ": " << two.in_use();
        EXPECT_EQ(two[0].code("write p 64 0123456789"), 0);
        EXPECT_EQ(two.expect(two[1], "p", SIZE, 3), "same");
    }
}

/* --- streams that end --- */

TEST(MergeStream, MayEndBesideACapture) {
    Replicas one(1);
    one[0].all({"stream s", "stream other", "sfill other small 0 4096", "capture s",
                "sfill s small 1 4096", "unstream other", "captured s g"});
}

TEST(MergeStream, WhoseKernelRunsOnMayEnd) {
    Working two(2, merging("quiet = 1s\n"));
    two.each("stream s");
    two[0].all({"launch s test_spin p 4194304 4000000000 small", "unstream s"});
    usleep(1500000); // the blocks are quiet
    two[0].must("stream t 1");
    two[0].must("sfill t small 1 16", 1000); // nobody waits for the kernel
    EXPECT_TRUE(two.use(SIZE, 15000)) << two.in_use();
    EXPECT_EQ(two[0].code("sync"), 0);
    two.expect_all("p", SIZE, 3);
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
}

// The default streams of two contexts have the same number.
TEST(MergeStream, OfASecondContextIsAnother) {
    Replicas two(2, merging("quiet = 1s\n"));
    two.each("malloc p 16777216");
    two[0].all({"ctxcreate c", kernels(), "ctxpop"});
    two[0].must("read small 0 4"); // the thread's last work, on the default stream of the first
    two[0].all({"ctxpush c", "launch - test_spin p 4194304 4000000000 small", "ctxpop"});
    two.each(two.upload("p", SIZE, 3));
    usleep(2000000);
    const uint64_t used = two.in_use();
    two[0].must("ctxpush c");
    if (two[0].code("squery -") == 600) { // it runs still, also on a busy machine
        EXPECT_TRUE(on_gpu() || used == 2 * SIZE) << used;
    }
    two[0].all({"sync", "ctxpop"});
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    two.expect_all("p", SIZE, 3);
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
}

// Its kernels end before it; entering it later would kill the process.
TEST(MergeStream, OfAGreenContextIsWaitedForAtItsEnd) {
    SIM_ONLY("its resources are the simulator's");
    Replicas two(2, merging("quiet = 1s\n"));
    two.each("malloc p 16777216");
    two[0].all({"read small 0 4", "green g", "malloc q 8388608", kernels(),
                "launch - test_spin p 4194304 2000000000 small", "ungreen", "ctxpop"});
    two.each(two.upload("p", SIZE, 3));
    two[0].must(two.upload("q", 8 * MiB, 4));
    EXPECT_TRUE(two.use(SIZE + 8 * MiB)) << two.in_use();
    two[0].all({"write q 64 0123456789", "free q"});
    two.expect_all("p", SIZE, 3);
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
}

// Another stream captures meanwhile, which nothing may disturb.
TEST(MergeStream, OfAGreenContextIsWaitedForDuringACapture) {
    SIM_ONLY("its resources are the simulator's");
    for (const char *flags : {"1", "0"}) {
        Replicas one(1);
        one[0].all({"malloc p 16777216", kernels()});
        one[0].must(std::string("stream s ") + flags); // without and with the default stream
        one[0].all({"green g", "stream t"});
        const int64_t start = now_ms();
        one[0].all({"launch t test_spin p 4194304 2000000000 small", "capture s", "ungreen"});
        EXPECT_GE(now_ms() - start, 1900) << flags;
        one[0].all({"ctxpop", "captured s h", "sync"});
    }
}

// A copy that waits for its stream keeps nobody from destroying another context.
TEST(MergeStream, OfAGreenContextEndsBesideACopyThatWaits) {
    SIM_ONLY("its resources are the simulator's");
    Replicas one(1);
    one[0].all({"malloc p 16777216", kernels(), "green g", "stream t", "sfill t small 0 16",
                "ctxpop", "launch - test_spin p 4194304 4000000000 small",
                "later 0 errno write small 64 0123"});
    usleep(400000); // until it is in the driver
    EXPECT_EQ(one[0].must("ungreen"), "");
    EXPECT_EQ(one[0].receive(10000).text, "0 errno 4242");
}

// It had the primary context's last reference: that ends with it, and so does all memory.
TEST(MergeStream, OfAGreenContextThatWasTheLastLeavesNoMemory) {
    SIM_ONLY("its resources are the simulator's");
    Replicas one(1, merging("quiet = 1h\n"));
    const uint64_t before = one.in_use();
    one[0].all({"malloc p 16777216", "green g", "malloc q 8388608", "ctxpop", "release"});
    EXPECT_EQ(one.in_use(), before + SIZE + 8 * MiB);
    one[0].must("ungreen");
    EXPECT_LE(static_cast<int64_t>(one.in_use()), static_cast<int64_t>(before)); // its context, too
    EXPECT_NE(one[0].code("free p"), 0);
}

// A context that another thread makes while one is purged may have its handle: a device's own
// always has. It is made before the reset returns, or just after the look whether it was.
class MergeContextMadeAgain : public testing::TestWithParam<const char *> {};

INSTANTIATE_TEST_SUITE_P(Late, MergeContextMadeAgain, testing::Values("DESTROY", "STATE"));

TEST_P(MergeContextMadeAgain, DuringAResetKeepsItsMemory) {
    SIM_ONLY("needs calls that return late");
    World world(merging("quiet = 1s\n"));
    world.environment[std::string("GPUSHARE_SIM_LATE_") + GetParam() + "_MS"] = "1500";
    Puppet one(world, called("replica", "puppet_driver"));
    one.all({"malloc p 8388608", Replicas::upload("p", 8 * MiB, 3), "later 0 reset"});
    usleep(400000);       // it has happened, and has not returned
    one.must("device 0"); // makes it again
    one.all({"malloc q 8388608", Replicas::upload("q", 8 * MiB, 4)});
    EXPECT_EQ(one.receive(10000).code, 0);
    EXPECT_EQ(Replicas::expect(one, "q", 8 * MiB, 4), "same");
    EXPECT_EQ(one.code("free q"), 0);
    EXPECT_NE(one.code("free p"), 0);
}

// Merging goes on as soon as that thread calls again.
TEST(MergeContext, WhoseEndIsLeftByLongjmpForbidsNothingForEver) {
    SIM_ONLY("needs a driver call that returns late");
    Replicas two(0);
    two.world.environment["GPUSHARE_SIM_LATE_DESTROY_MS"] = "3000";
    two.start();
    two.start();
    two[0].must("ctxcreate c");
    two[0].code("leap 300 ctxdestroy c");
    two[0].all({"device 0", "sync"});
    two.load("p", SIZE, 3);
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    two.expect_all("p", SIZE, 3);
}

// It works on when a context ends that was current when it got its work.
TEST(MergeStream, IsOfTheContextThatCreatedIt) {
    Working two(2, merging("quiet = 2s\n"));
    two.each("stream s");
    two[0].all({"ctxcreate c", "launch s test_spin p 4194304 5000000000 small"});
    const uint64_t begun = two.in_use(); // on a busy machine they may be merged already
    two[0].must("ctxdestroy c");
    usleep(3500000);
    const uint64_t used = two.in_use();
    const int code = two[0].code("squery s");
    EXPECT_TRUE(code == 600 || code == 0) << code; // 0 on a busy machine
    if (code == 600) {
        EXPECT_TRUE(on_gpu() || used == begun) << used;
    }
    EXPECT_EQ(two[0].code("ssync s"), 0);
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
}

// A call that fails leaves no stream that is busy for good.
TEST(MergeStream, OfNoContextIsNone) {
    Replicas two(2);
    two.load("p", SIZE, 3);
    EXPECT_TRUE(two.use(SIZE));
    two[0].must("stream s"); // its end has streams noted anew
    two[0].all({"unstream s", "ctxset"});
    EXPECT_EQ(two[0].code("sfill - small 0 4096"), 201);
    two[0].all({"info", "write p 64 0123456789"});
    EXPECT_EQ(two[0].must("read p 64 5"), "0123456789");
}

TEST(MergeStream, ManyOfThemEndNothing) {
    Replicas two(2);
    two.load("p", SIZE, 3);
    EXPECT_TRUE(two.use(SIZE));
    for (int i = 0; i < 4100; i++) {
        two[0].all({"stream s", "sfill s small 0 16"});
    }
    EXPECT_EQ(two[0].code("write p 64 0123456789"), 0);
    EXPECT_EQ(two[0].must("read p 64 5"), "0123456789");
    EXPECT_EQ(two.expect(two[1], "p", SIZE, 3), "same");
    two.load("q", SIZE, 4);
    EXPECT_TRUE(two.use(3 * SIZE)) << two.in_use();
}

// The other card goes on.
TEST(MergeStream, OfALostContextIsIdle) {
    TWO_CARDS();
    Replicas two(0);
    const How how = two.on_two_cards();
    Puppet a(two.world, how);
    a.all({kernels(), "launch - test_write 4096 1 7"});
    EXPECT_EQ(a.code("sync"), 700);
    a.all({"device 1", "malloc p 8388608", Replicas::upload("p", 8 * MiB, 3)});
    EXPECT_TRUE(eventually([&] { return two.world.entries("regions") == 1; }));
    EXPECT_EQ(a.code("write p 100 0102"), 0);
    EXPECT_EQ(a.must("read p 100 2"), "0102");
}

// Its work has ended, so nothing is to be noted of a stream that is destroyed there.
TEST(MergeStream, OfALostContextMayBeDestroyed) {
    TWO_CARDS();
    Replicas two(0);
    Puppet a(two.world, two.on_two_cards());
    a.all({kernels(), "stream s", "malloc q 8388608", "launch s test_write q 1024 7",
           "launch s test_write 4096 1 7"});
    EXPECT_EQ(a.code("ssync s"), 700);
    a.code("unstream s"); // 700 on a card
    a.all({"device 1", "malloc p 8388608", Replicas::upload("p", 8 * MiB, 3)});
    EXPECT_TRUE(eventually([&] { return two.world.entries("regions") == 1; }));
    usleep(2500000); // what is in the way for as long is said
    EXPECT_LACKS(two.world.logs(), "nothing is merged");
}

/* --- frees on a stream --- */

TEST(MergeOrderedFree, WaitsForNothingAndTheMemoryGoesWithTheNextWait) {
    Replicas one(1);
    one[0].must(kernels());
    one[0].must("stream s 0"); // the default stream waits for it
    one[0].all({"malloc p 8388608", one.upload("p", 8 * MiB, 3)});
    const uint64_t before = one.in_use();
    one[0].all({"launch s test_spin small 1024 1500000000 small", "unpool p"});
    EXPECT_EQ(one[0].code("squery s"), 600);
    EXPECT_EQ(one.in_use(), before) << "the kernel might use it";
    EXPECT_EQ(one[0].code("unpool p"), 1);
    one[0].must("ssync s");
    EXPECT_TRUE(one.use(0)) << one.in_use();
    EXPECT_EQ(one[0].code("write p 0 11"), 1);
}

// Whole or in part.
TEST(MergeOrderedFree, OfWhatWasNeverTouchedWaitsForNothing) {
    Replicas one(1);
    one[0].all({kernels(), "stream s", "stream t"});
    for (const bool in_part : {false, true}) {
        one[0].must("launch s test_spin small 1024 3000000000 small");
        one[0].must("malloc p 50331648"); // blocks of 32 and 16 MiB
        if (in_part)
            one[0].must("rows t p 0 4096 4096 512 7");
        one[0].must("unpool p");
        EXPECT_EQ(one[0].code("squery s"), 600) << in_part;
        EXPECT_EQ(one[0].code("unpool p"), 1);
        one[0].must("ssync s");
        EXPECT_TRUE(one.use(0)) << one.in_use();
        EXPECT_EQ(one[0].code("write p 0 11"), 1);
    }
}

// The program may make no other call for long, and others need the memory. With the first memory of
// a rule come the kernels that hash, which stay.
TEST(MergeOrderedFree, BehindNothingIsDoneAtOnce) {
    Replicas one(1, merging("quiet = 1h\n"));
    one[0].all({"stream s", "malloc p 2097152"});
    const uint64_t before = one.in_use();
    one[0].all({"malloc q 8388608", one.upload("q", 8 * MiB, 3), "unpool q"});
    EXPECT_EQ(one.in_use(), before);
}

TEST(MergeOrderedFree, GivesItsMemoryToTheNextAllocation) {
    Replicas one(1, merging("quiet = 1h\n"));
    one[0].must("stream s 0");
    const Reply info = one[0]("info");
    const std::string most = std::to_string((info.number(0) - 64 * MiB) / (2 * MiB) * (2 * MiB));
    for (int i = 0; i < 3; i++) {
        one[0].all({"malloc p " + most, "unpool p"});
    }
    one[0].all({kernels(), "malloc p " + most, "launch s test_spin small 1024 300000000 small",
                "unpool p"});
    one[0].must("malloc q " + most); // waits for the kernel
    EXPECT_EQ(one[0].code("squery s"), 0);
}

TEST(MergeOrderedFree, ThatAnotherThreadEndsGivesItsMemoryToTheNextAllocation) {
    Replicas one(1, merging("quiet = 1h\n"));
    one[0].all({"stream s 0", "stream t"});
    const Reply info = one[0]("info");
    const std::string most = std::to_string((info.number(0) - 64 * MiB) / (2 * MiB) * (2 * MiB));
    one[0].all({kernels(), "malloc p " + most, "launch t test_spin small 1024 3500000000 small",
                "launch s test_spin small 1024 300000000 small", "unpool p", "malloc q " + most});
}

// Nothing that runs uses the memory, so it need not wait for an idle device.
TEST(MergeOrderedFree, BesideABusyDeviceLeavesNothingBehind) {
    Replicas one(1, merging("quiet = 1h\n"));
    one[0].must(kernels());
    one[0].must("stream s"); // the default stream does not wait for it
    one[0].must("launch s test_spin small 1024 60000000000 small");
    for (const char *memory : {"malloc", "pool"}) {
        for (int i = 0; i < 20; i++) {
            one[0].all({std::string(memory) + " p 4194304", "fill p 1 4194304", "unpool p"});
        }
        // a pool of a card's grows by 32 MiB
        EXPECT_LE(one.in_use(), (on_gpu() ? 40 : 8) * MiB) << memory;
    }
    EXPECT_EQ(one[0].code("squery s"), 600);
    one[0].kill();
}

// The streams' events go with their context.
TEST(MergeOrderedFree, InAContextThatIsDestroyedEndsWithIt) {
    Replicas one(1, merging("quiet = 1h\n"));
    const uint64_t before = one.in_use();
    for (int i = 0; i < 3; i++) {
        one[0].must("ctxcreate c");
        one[0].must("malloc p 8388608"); // of the context, freed on its stream
        one[0].all({"unpool p", "ctxdestroy c", "malloc q 8388608", "free q"});
    }
    EXPECT_TRUE(one.use(before)) << one.in_use();
}

// A wait of the program's does not wait for what another thread destroys.
TEST(MergeOrderedFree, AWaitDoesNotWaitForTheEndOfAContext) {
    SIM_ONLY("needs a driver call that returns late");
    Replicas one(0);
    one.world.environment["GPUSHARE_SIM_LATE_DESTROY_MS"] = "3000";
    one.start();
    one[0].all({"stream s 0", "stream t", kernels(), "ctxcreate c", "ctxpop", "malloc p 8388608",
                one.upload("p", 8 * MiB, 3), "launch s test_spin small 1024 1500000000 small",
                "unpool p", "later 0 errno ctxdestroy c"});
    usleep(400000); // until it is in the driver
    EXPECT_EQ(one[0].must("ssync t"), "");
    EXPECT_EQ(one[0].receive(10000).text, "0 errno 4242");
    EXPECT_TRUE(one.use(0)) << "without another call: " << one.in_use();
}

// Bare it is refused, because the memory is not the graph's.
TEST(MergeOrderedFree, IntoACaptureIsRefused) {
    Replicas one(1);
    one[0].all({"malloc p 8388608", one.upload("p", 8 * MiB, 3), "stream s 0", "capture s"});
    EXPECT_NE(one[0].code("unpool p"), 0); // on the legacy stream, which waits for s
    one[0].code("captured s g");
    EXPECT_EQ(one.expect(one[0], "p", 8 * MiB, 3), "same");
    EXPECT_EQ(one[0].code("unpool p"), 0);
}

/* --- work under way --- */

// It would end with 700. On a busy machine the swap may come before it, or after it.
TEST(MergeBusy, NothingIsSwappedUnderAKernel) {
    Working two(2, merging("quiet = 1s\n"));
    two.each("stream s");
    two[0].all({"launch s test_spin p 4194304 5000000000 small", "ssync s"});
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    two.expect_all("p", SIZE, 3);
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
}

// Of the two kernels the second one works on.
TEST(MergeBusy, NothingIsSwappedUnderAKernelOfALaunchOnSeveralStreams) {
    SIM_ONLY("both streams are of one card");
    Working two(2, merging("quiet = 1s\n"));
    two.each("stream s", "stream t");
    two[0].all({"spinboth s t p 4194304 1000000 5000000000 small", "ssync t"});
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    two.expect_all("p", SIZE, 3);
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
}

// The library's own kernels wait for it. Copies into other memory, and launches, do not wait for
// those.
TEST(MergeBusy, NoCallWaitsForAKernelThatFillsTheCard) {
    SIM_ONLY("needs a kernel that fills the card");
    Replicas one(0);
    one.world.environment["GPUSHARE_SIM_CROWDED"] = "1";
    Puppet &a = one.start();
    a.all({kernels(), "stream s", "malloc p 16777216", "malloc q 4194304", "fill q 0 4194304",
           "sync", "launch s test_spin small 1024 8000000000 small",
           one.upload("p", SIZE, 3, "beside")});
    usleep(700000); // it is hashed meanwhile
    a.must(one.upload("q", 4 * MiB, 4, "beside"));
    EXPECT_EQ(a.code("squery s"), 600) << "it works still";
    a.all({"malloc r 8388608", "stream t", "launch t test_read r 2097152 small"});
    EXPECT_EQ(a.code("squery s"), 600) << "it works still";
    EXPECT_EQ(a.code("ssync s"), 0);
    EXPECT_EQ(one.expect(a, "p", SIZE, 3), "same");
    EXPECT_EQ(one.expect(a, "q", 4 * MiB, 4), "same");
    EXPECT_TRUE(eventually([&] { return one.world.entries("regions") == 2; }));
}

TEST(MergeBusy, AWriteIntoAMergedBlockWaitsForTheKernel) {
    Working two(2);
    two.each("stream s");
    EXPECT_TRUE(two.use(SIZE));
    two[0].all({"launch s test_spin p 4194304 1000000000 small", "write p 64 0123456789"});
    EXPECT_EQ(two[0].code("ssync s"), 0);
    EXPECT_EQ(two[0].must("read p 64 5"), "0123456789");
    EXPECT_EQ(two.expect(two[1], "p", SIZE, 3), "same");
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
}

// A server whose device is never idle for long is no reason to refuse a copy.
TEST(MergeBusy, AWriteGetsThroughWhatThreadsLaunch) {
    Working two(2);
    EXPECT_TRUE(two.use(SIZE));
    two.each("malloc q 16777216", two.upload("q", SIZE, 4));
    EXPECT_TRUE(two.use(2 * SIZE));
    two[0].send("churn p 4194304 8 4000 q");
    const Reply reply = two[0].receive(30000);
    EXPECT_EQ(reply.code, 0);
    EXPECT_EQ(reply[0], "0") << "wrong sums";
    EXPECT_EQ(two.expect(two[1], "q", SIZE, 4), "same");
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
}

TEST(MergeBusy, AWriteGetsThroughADeepQueue) {
    Working two(2);
    EXPECT_TRUE(two.use(SIZE));
    two[0].must("flood small 5000");
    usleep(300000);
    const int64_t start = now_ms();
    EXPECT_EQ(two[0].code("write p 64 0123456789", 30000), 0);
    EXPECT_LT(now_ms() - start, patient(3000));
    EXPECT_EQ(two[0].must("read p 64 5"), "0123456789");
    EXPECT_EQ(two[0].code("flooded", 30000), 0);
    EXPECT_EQ(two.expect(two[1], "p", SIZE, 3), "same");
}

// Three streams have a kernel nearly always: blocks are exchanged in the moments between.
TEST(MergeBusy, ADeviceThatIsHardlyEverIdleHasMostBlocksMerged) {
    SIM_ONLY("it looks at the memory in use");
    constexpr uint64_t TENSORS = 96 * MiB; // in 40 blocks
    std::string sizes;
    for (unsigned i = 0; i < 16; i++)
        sizes += " 6144";
    Replicas two(2, merging("quiet = 2s\n"));
    two.each(kernels(), "malloc q " + std::to_string(TENSORS));
    for (int i = 0; i < 2; i++) {
        two[i].must("tensors q 1 1" + sizes);
        two[i].send("serve small 20000 200000 2000000 10000000");
    }
    // A machine that is slow itself has few such moments: most of the second one's must do.
    EXPECT_TRUE(eventually([&] { return two.in_use() <= TENSORS + TENSORS / 2; }, 18000))
        << two.in_use();
    for (int i = 0; i < 2; i++) {
        const Reply reply = two[i].receive(60000);
        EXPECT_EQ(reply.code, 0);
        EXPECT_GT(reply.number(2), 20u) << "kernels of 10 ms";
    }
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
}

TEST(MergeBusy, ADeviceThatIsNeverIdleIsToldOf) {
    Replicas one(1, merging(QUIET));
    one[0].all({kernels(), "stream s 1"});
    one.load("q", SIZE, 1);
    usleep(1500000); // a card waits for its kernels when the first block is hashed
    one[0].all({"free q", "malloc p 16777216", "launch s test_spin small 1024 40000000000 small",
                one.upload("p", SIZE, 3, "beside")});
    const std::string pid = std::to_string(one[0].pid);
    const char *why = "private    16 MiB (16777216 bytes): it is merged next";
    const char *unmerged = "kernels overlap, so that the GPU is never idle";
    EXPECT_TRUE(eventually(
        [&] {
            const std::string shown = one.world.tool({"show", pid}).out;
            return shown.find(why) != std::string::npos &&
                   shown.find(unmerged) != std::string::npos;
        },
        36000))
        << one.world.tool({"show", pid}).out;
    EXPECT_EQ(one[0].code("squery s"), 600);
}

// Work is held back again and again while the stream has more than a tenth of a second to do.
TEST(MergeBusy, NoCaptureIsHurtWhileWorkIsHeld) {
    Replicas one(1, merging(QUIET));
    one[0].all({kernels(), "stream s 1", "malloc p 16777216", "flood small 4000",
                one.upload("p", SIZE, 3)});
    for (int i = 0; i < 60; i++) {
        one[0].must("capture s 1"); // of this thread alone: the other one waits for events
        one[0].all({"launch s test_read small 1024 small", "captured s g",
                    "launch s test_read small 1024 small"});
        usleep(20000);
    }
    EXPECT_EQ(one[0].code("flooded", 30000), 0);
    EXPECT_EQ(one[0].code("ssync s"), 0);
    EXPECT_TRUE(eventually([&] { return one.world.entries("regions") >= 1; }, 20000));
    EXPECT_EQ(one.expect(one[0], "p", SIZE, 3), "same");
    EXPECT_EQ(one.world.findings().size(), 0u) << one.world.logs();
}

// Blocks come and go all the time under many threads that launch kernels.
TEST(MergeBusy, NoSumIsWrongWhileBlocksAreSwapped) {
    Working two(2, merging("quiet = 1ms\n"));
    two.load("q", SIZE, 4);
    for (int i = 0; i < 2; i++)
        two[i].send("churn p 4194304 6 3000 q");
    for (int i = 0; i < 2; i++) {
        const Reply reply = two[i].receive(40000);
        EXPECT_EQ(reply.code, 0);
        EXPECT_EQ(reply[0], "0") << "wrong sums";
        EXPECT_GT(reply.number(1), 20u);
    }
    two.expect_all("p", SIZE, 3);
    EXPECT_TRUE(two.use(2 * SIZE)) << two.in_use();
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
}

} // namespace

/* --- locks --- */

// It is of many blocks, each of which the driver takes its time for.
TEST(MergeLocks, NoneIsHeldWhileALargeAllocationGetsItsMemory) {
    SIM_ONLY("memory is made late");
    World world(merging(QUIET), {{"GPUSHARE_SIM_LATE_CREATE_MS", "300"}});
    Puppet one(world, called("replica"));
    one.must("malloc p 2097152");
    one.must("later 0 malloc large 268435456"); // eight blocks
    usleep(400000);
    const int64_t begun = now_ms();
    EXPECT_EQ(one.code(Replicas::upload("p", 2 * MiB, 3)), 0);
    EXPECT_EQ(Replicas::expect(one, "p", 2 * MiB, 3), "same");
    EXPECT_LT(now_ms() - begun, patient(1000));
    EXPECT_EQ(one.receive().code, 0) << "of the allocation";
    EXPECT_EQ(one.code(Replicas::upload("large", 2 * MiB, 4)), 0);
}
