// merge_test.cpp - role = merge: what is equal in several processes is one, what is written is a
// process's own, and nobody can tell but by the memory in use.
#include "scenario/merging.hpp"

namespace {

struct Merge : testing::TestWithParam<std::pair<const char *, const char *>> {};

INSTANTIATE_TEST_SUITE_P(Rules, Merge,
                         testing::Values(std::pair("puppet", "quiet = 0\n"),
                                         std::pair("puppet", QUIET),
                                         std::pair("puppet_static", "quiet = 0\n"),
                                         std::pair("puppet_driver", QUIET),
                                         std::pair("puppet", "quiet = 0\nverify = off\n"),
                                         std::pair("puppet", "quiet = 200ms\ncontent = any\n")));

TEST_P(Merge, EqualBlocksAreOne) {
    constexpr uint64_t SIZE = 14 * MiB; // blocks of 8, 4 and 2
    Replicas four(4, merging(GetParam().second), GetParam().first);
    four.load("p", SIZE, 3);
    EXPECT_TRUE(four.use(SIZE)) << four.in_use();
    four.expect_all("p", SIZE, 3);
    four[0].must("free p");
    EXPECT_EQ(four.expect(four[1], "p", SIZE, 3), "same");
    for (size_t i = 1; i < 4; i++)
        four[i].must("free p");
    EXPECT_TRUE(four.use(0)) << four.in_use();
    EXPECT_EQ(four.world.findings().size(), 0u) << four.world.logs();
    EXPECT_EQ(four.left(), "");
}

TEST_P(Merge, UnequalBlocksAreEachOnesOwn) {
    constexpr uint64_t SIZE = 24 * MiB; // blocks of 16 and 8
    Replicas two(2, merging(GetParam().second), GetParam().first);
    two.load("p", SIZE, 3);
    two[1].must("write p 17000000 00112233"); // in the second block
    EXPECT_TRUE(two.use(16 * MiB + 2 * 8 * MiB)) << two.in_use();
    EXPECT_EQ(two.expect(two[0], "p", SIZE, 3), "same");
    EXPECT_EQ(two[1].must("read p 17000000 4"), "00112233");
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
}

TEST(MergeBlocks, OfOneProcessAreOneToo) {
    Replicas one(1);
    one[0].all({"malloc p 8388608", "malloc q 8388608", one.upload("p", 8 * MiB, 3),
                one.upload("q", 8 * MiB, 3)});
    EXPECT_TRUE(one.use(8 * MiB)) << one.in_use();
    one[0].must("write p 0 ffee");
    EXPECT_EQ(one[0].must("read q 0 2"), one[0].must("read q 0 2"));
    EXPECT_EQ(one.expect(one[0], "q", 8 * MiB, 3), "same");
    one[0].must("free q");
    EXPECT_EQ(one[0].must("read p 0 2"), "ffee");
    one[0].must("free p");
    EXPECT_TRUE(one.use(0)) << one.in_use();
    EXPECT_EQ(one.left(), "");
}

// A tensor of it is never uploaded, there are gaps, and its end is odd.
TEST(MergeBlocks, AHoleAndGapsAndAnOddEndKeepNothingElseApart) {
    constexpr uint64_t SIZE = 100 * MiB + 1500003; // 32, 32, 32, 4, 2
    for (const char *quiet : {"quiet = 0\n", QUIET}) {
        Replicas two(2, merging(quiet));
        two.each("malloc p " + text(SIZE));
        for (int i = 0; i < 2; i++) {
            for (uint64_t at = 0; at < SIZE; at += 3 * MiB) // none of 40 MiB to 48
                if (at < 39 * MiB || at >= 48 * MiB)
                    two[i].must("upload p " + text(at) + " " +
                                text(std::min(3 * MiB - 300, SIZE - at)) + " 5 sync");
            two[i].must("fill p " + std::to_string(i + 1) + " 4096 " + text(44 * MiB));
        }
        // The second block differs by what was filled.
        EXPECT_TRUE(two.use(102 * MiB + 32 * MiB, 30000)) << quiet << two.in_use() / MiB;
        EXPECT_EQ(two[0].must("read p 46137344 2"), "0101");
        EXPECT_EQ(two[1].must("read p 46137344 2"), "0202");
        EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
    }
}

// content = any: also what nobody uploaded.
TEST(MergeBlocks, ThatKernelsOrFillsWroteAreOneWhereTheRuleSaysSo) {
    for (const bool any : {false, true}) {
        Replicas two(2, merging(any ? "quiet = 200ms\ncontent = any\n" : QUIET));
        two.each("malloc p 8388608", "fill p 0x33 8388608");
        if (any) {
            EXPECT_TRUE(two.use(8 * MiB)) << two.in_use();
        } else {
            usleep(3000000);
            EXPECT_TRUE(two.use(16 * MiB));
        }
        EXPECT_EQ(two[1].must("read p 8388600 4"), "33333333");
    }
}

// An allocator has room behind what was uploaded, and gives it to a kernel later.
TEST(MergeBlocks, WithRoomForWhatKernelsWriteStayPrivate) {
    Replicas two(2, merging(QUIET));
    two.load("w", 8 * MiB, 7);
    two.each("malloc half 4194304", Replicas::upload("half", 3 * MiB, 9));
    EXPECT_TRUE(two.use(8 * MiB + 2 * 4 * MiB)) << two.in_use();
    usleep(2000000);
    two.each(kernels(), "stream s", "launch s test_add half+3145728 262144 1", "ssync s");
    two.expect_all("w", 8 * MiB, 7);
    two.expect_all("half", 3 * MiB, 9);
    EXPECT_TRUE(two.use(8 * MiB + 2 * 4 * MiB)) << two.in_use();
    EXPECT_EQ(two.world.count(""), 0u) << two.world.logs();
}

// What was uploaded was only the input: the memory is a kernel's, however long it rests.
TEST(MergeBlocks, ThatAKernelHasChangedStayPrivate) {
    for (const bool any : {false, true}) {
        Replicas two(2, merging(any ? "quiet = 600ms\ncontent = any\n" : "quiet = 600ms\n"));
        two.load("p", 8 * MiB, 7);
        two.each(kernels(), "stream s");
        for (int i = 0; i < 8; i++) { // a hash comes between two of them
            two.each("launch s test_add p 2097152 1", "ssync s");
            usleep(150000);
        }
        if (any) {
            EXPECT_TRUE(two.use(8 * MiB)) << two.in_use();
        } else {
            usleep(3000000);
            EXPECT_TRUE(two.use(16 * MiB)) << two.in_use();
            two.each("launch s test_add p 2097152 1", "ssync s");
            EXPECT_EQ(two.world.count(""), 0u) << two.world.logs();
        }
    }
}

TEST(MergeBlocks, OfAllocationsOfOtherSizesAndOrdersAreOne) {
    Replicas two(2);
    two[0].all({"malloc a 33554432", "malloc b 8388608"});
    two[1].all({"malloc b 8388608", "malloc a 33554432"});
    two[0].all({two.upload("a", 32 * MiB, 1), two.upload("b", 8 * MiB, 2)});
    two[1].all({two.upload("b", 8 * MiB, 2), two.upload("a", 32 * MiB, 1)});
    EXPECT_TRUE(two.use(40 * MiB)) << two.in_use();
    two.expect_all("a", 32 * MiB, 1);
    two.expect_all("b", 8 * MiB, 2);
}

// Areas lie side by side; the next one keeps its bytes. Some end with a block, others within one.
TEST(MergeBlocks, WhatReachesPastTheEndIsRefusedAsBare) {
    for (const uint64_t size : {8 * MiB, 3 * MiB + 5000}) {
        for (const char *quiet : {"quiet = 0\n", QUIET}) {
            Replicas one(1, merging(quiet));
            for (const char *name : {"p", "q", "r"})
                one.load(name, size, 5);
            const std::string end = text(size - 4096);
            for (const char *name : {"p", "q", "r"}) {
                const std::string to = std::string(name) + " ";
                for (const char *how : {"sync", "default", "ptsz"})
                    EXPECT_EQ(one[0]("upload " + to + end + " 4097 9 " + how).code, 1) << how;
                EXPECT_EQ(one[0]("fill " + to + "0x77 4097 " + end).code, 1);
                EXPECT_EQ(one[0]("read " + to + end + " 4097").code, 1);
                EXPECT_EQ(one[0]("copy " + to + end + " small 0 4097").code, 1);
                EXPECT_EQ(one[0]("copy small 0 " + to + end + " 4097").code, 1);
                EXPECT_EQ(one[0]("fill " + to + "0x77 4096 " + end).code, 0);
                EXPECT_EQ(one[0].must("read " + to + text(size - 2) + " 2"), "7777");
            }
            for (const char *name : {"p", "q", "r"})
                EXPECT_EQ(one[0].must("expect " + std::string(name) + " 0 " + end + " 5"), "same");
        }
    }
}

TEST(MergeBlocks, SmallAllocationsAreTheDrivers) {
    World world(rule("weights", "producer", "merge"));
    Puppet a(world, producer());
    a.must("malloc p 500000");
    EXPECT_EQ(a.must("attribute p 10"), "1") << "legacy memory, which has a handle";
    a.all({"get p", "free p"});
}

/* --- keep --- */

TEST(MergeKeep, UsersEndsWithTheLastOne) {
    Replicas two(2, merging("quiet = 0\nkeep = users\n"));
    two.load("p", 8 * MiB, 3);
    EXPECT_TRUE(two.use(8 * MiB));
    two[0].kill();
    EXPECT_EQ(two.expect(two[1], "p", 8 * MiB, 3), "same");
    Puppet &late = two.start();
    late.all({"malloc p 8388608", two.upload("p", 8 * MiB, 3)});
    EXPECT_EQ(two.expect(late, "p", 8 * MiB, 3), "same");
    two[1].kill();
    EXPECT_EQ(two.expect(late, "p", 8 * MiB, 3), "same");
    EXPECT_EQ(two.left(), "");
}

TEST(MergeKeep, ForeverIsThereForTheNext) {
    Replicas one(1, merging("quiet = 0\nkeep = forever\n"));
    one.load("p", 8 * MiB, 3);
    EXPECT_TRUE(eventually([&] { return one.world.entries("regions") == 1; }));
    EXPECT_EQ(one[0].quit("return"), 0);
    usleep(700000);
    EXPECT_EQ(one.world.entries("regions"), 1u);
    Puppet &next = one.start();
    next.all({"malloc p 8388608", one.upload("p", 8 * MiB, 3)});
    EXPECT_EQ(one.expect(next, "p", 8 * MiB, 3), "same");
    EXPECT_EQ(one.world.entries("regions"), 1u);
    EXPECT_EQ(next.quit("return"), 0);
}

TEST(MergeKeep, ATimeIsHowLongItStaysWithoutUsers) {
    Replicas one(1, merging("quiet = 0\nkeep = 2s\n"));
    one.load("p", 8 * MiB, 3);
    EXPECT_TRUE(eventually([&] { return one.world.entries("regions") == 1; }));
    EXPECT_EQ(one[0].quit("return"), 0);
    usleep(700000);
    EXPECT_EQ(one.world.entries("regions"), 1u);
    EXPECT_TRUE(eventually([&] { return one.world.entries("regions") == 0; }, soon(4000)));
}

/* --- what the host writes --- */

struct MergeWrite : testing::TestWithParam<const char *> {};

// Eight bytes at 3 MiB become 77: in a block of 16 MiB, and no other.
INSTANTIATE_TEST_SUITE_P(By, MergeWrite,
                         testing::Values("write p 3145728 7777777777777777",
                                         "fill p 0x77 8 3145728", "sfill - p 0x77 8 3145728",
                                         "sfill s p 0x77 8 3145728", "copy p 3145728 other 0 8",
                                         "rows s p 3145728 4096 8 3 0x77",
                                         "rows - p 3145728 8 8 1 0x77",
                                         "box s p 3145728 other 0 64 8 3",
                                         "box s p 3145728 other 0 0 8 1"));

TEST_P(MergeWrite, IsTheWritersOwnAndNobodyElses) {
    constexpr uint64_t SIZE = 48 * MiB;
    Replicas three(3);
    three.load("p", SIZE, 3);
    EXPECT_TRUE(three.use(SIZE));
    Puppet &writer = three[1];
    writer.must("stream s");
    writer.make("other", 4096, "0x77");
    const uint64_t before = three.in_use();
    writer.all({GetParam(), "sync", "ssync s"});
    EXPECT_EQ(writer.must("read p 3145728 8"), hex_bytes("77", 8));
    EXPECT_EQ(three.expect(three[0], "p", SIZE, 3), "same");
    EXPECT_EQ(three.expect(three[2], "p", SIZE, 3), "same");
    EXPECT_EQ(writer.must("expect p 0 3145728 3"), "same");
    EXPECT_EQ(writer.must("expect p 3160000 13617216 3"), "same") << "the rest of it was kept";
    EXPECT_TRUE(on_gpu() || three.in_use() == before + 32 * MiB) << "one block";
    writer.must(three.upload("p", SIZE, 3));
    EXPECT_TRUE(three.use(SIZE)) << "and it is equal again";
    EXPECT_EQ(three.world.findings().size(), 0u) << three.world.logs();
}

struct MergeUpload : testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(By, MergeUpload,
                         testing::Values("sync", "default", "async", "pinned", "pinned-sync",
                                         "ptds", "ptsz", "other-captured", "capturing"));

TEST_P(MergeUpload, IsEqualHoweverItComes) {
    constexpr uint64_t SIZE = 10 * MiB;
    Replicas two(2);
    two.each("malloc p " + text(SIZE), two.upload("p", SIZE, 3, GetParam()));
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    two.expect_all("p", SIZE, 3);
    two[1].must(two.upload("p", SIZE, 4, GetParam()));
    EXPECT_EQ(two.expect(two[0], "p", SIZE, 3), "same");
    EXPECT_EQ(two.expect(two[1], "p", SIZE, 4), "same");
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
}

// Copies of what is there are not made: the block has no memory of its own at any time.
TEST(MergeLoad, NeverHoldsASecondCopyOfWhatIsThere) {
    SIM_ONLY("it looks at the memory in use");
    constexpr uint64_t SIZE = 32 * MiB;
    Replicas two(2);
    two[0].must("malloc p " + text(SIZE));
    EXPECT_EQ(two.in_use(), SIZE) << "it is there before it is written";
    two[0].must(two.upload("p", SIZE, 3));
    EXPECT_TRUE(eventually([&] { return two.world.entries("regions") == 1; }));
    two[1].all({"malloc p " + text(SIZE), two.upload("p", SIZE, 3)});
    EXPECT_EQ(two.in_use(), SIZE);
    two.expect_all("p", SIZE, 3);
    two[1].must(two.upload("p", SIZE, 3));
    EXPECT_EQ(two.in_use(), SIZE) << "nor when it is uploaded again";
    two.start().must("malloc p " + text(SIZE));
    two[2].must(two.upload("p", SIZE, 3, "pinned-sync"));
    // where the keeper answers late a block is private at first, and merged in the next idle moment
    EXPECT_TRUE(two.use(SIZE)) << "nor by a synchronous copy from pinned memory: " << two.in_use();
}

// Its address is nothing to the driver as yet, and no host memory for that.
TEST(MergeLoad, FromPagesWithoutAccessCallsTheProgramsHandler) {
    Replicas two(2);
    two.load("p", 8 * MiB, 3);
    EXPECT_TRUE(two.use(8 * MiB)) << two.in_use();
    for (size_t i = 0; i < 2; i++) { // while it is there already, and while it begins like it
        two[i].must("malloc q 8388608");
        const Reply reply = two[i](two.upload("q", 8 * MiB, 3, "guarded"));
        EXPECT_EQ(reply.text, "0 1 0"); // as bare: one fault, in the thread that copies
        EXPECT_EQ(two.expect(two[i], "q", 8 * MiB, 3), "same");
    }
    EXPECT_TRUE(two.use(8 * MiB)) << two.in_use();
}

// The thread was inside the gate, and is the one that closes it next.
TEST(MergeLoad, LeftByTheProgramsHandlerKeepsNoLaterCopyWaiting) {
    SKIP_IF(on_gpu(), "a card's driver may answer no more");
    for (const std::string quiet : {"quiet = 0\n", QUIET}) {
        Replicas two(2, merging(quiet));
        two.load("p", 8 * MiB, 3);
        two.load("q", 8 * MiB, 4);
        EXPECT_TRUE(two.use(16 * MiB)) << two.in_use();
        EXPECT_EQ(two[0](two.upload("p", 8 * MiB, 5, "left")).text, "0 1 0");
        two[0].must(two.upload("q", 8 * MiB, 6));
        EXPECT_EQ(two.expect(two[0], "q", 8 * MiB, 6), "same");
        EXPECT_EQ(two.expect(two[1], "q", 8 * MiB, 4), "same");
    }
}

// verify = bytes cannot help where no copy is made.
TEST(MergeLoad, OfBytesThatCollideOnPurposeIsMade) {
    Replicas two(2);
    two.each("malloc p 4194304");
    two[0].must(two.upload("p", 4 * MiB, 1, "forged"));
    EXPECT_TRUE(eventually([&] { return two.world.entries("regions") == 1; }));
    two[1].must(two.upload("p", 4 * MiB, 2, "forged"));
    EXPECT_EQ(two[0].must("read p 4 4"), "01000000");
    EXPECT_EQ(two[1].must("read p 4 4"), "02000000");
}

TEST(MergeLoad, FromABlockWithoutMemoryIsACopyOnTheDevice) {
    for (const char *how : {"", " default"}) {
        Replicas one(1);
        one.each("malloc p 8388608", "malloc q 8388608", "copy q 0 p 0 8388608" + std::string(how),
                 "fill p 0x12 8388608", "copy q 0 p 0 8388608" + std::string(how));
        EXPECT_EQ(one[0].must("read q 8388604 4"), "12121212");
    }
}

TEST(MergeLoad, InPiecesOfAnySizeOverlapping) {
    constexpr uint64_t SIZE = 20 * MiB;
    Replicas two(2);
    two.each("malloc p " + text(SIZE));
    for (int i = 0; i < 2; i++) {
        for (uint64_t at = 0; at < SIZE; at += 2700001)
            two[i].must("upload p " + text(at) + " " +
                        text(std::min<uint64_t>(3000000, SIZE - at)) + " 9 " +
                        (at % 2 ? "async" : "sync"));
    }
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    two.expect_all("p", SIZE, 9);
}

// As allocators that pool place them, who loads in another order: each is one all the same.
struct MergePool : testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Quiet, MergePool, testing::Values("quiet = 0\n", QUIET));

TEST_P(MergePool, TensorsMayLieAnywhere) {
    const struct {
        const char *name, *pool;
        uint64_t offset, size;
    } tensors[][5] = {{{"a", "p", 0, 4},
                       {"b", "p", 4, 16},
                       {"c", "q", 0, 16},
                       {"d", "r", 0, 4},
                       {"e", "r", 4, 12}},
                      {{"e", "r", 0, 12},
                       {"c", "p", 0, 16},
                       {"b", "q", 0, 16},
                       {"a", "p", 16, 4},
                       {"d", "r", 12, 4}},
                      {{"b", "r", 0, 16},
                       {"d", "p", 0, 4},
                       {"a", "p", 4, 4},
                       {"e", "p", 8, 12},
                       {"c", "q", 0, 16}}};
    Replicas three(3, merging(GetParam()));
    three.each("malloc p " + text(20 * MiB), "malloc q " + text(16 * MiB),
               "malloc r " + text(16 * MiB));
    for (size_t i = 0; i < 3; i++)
        for (const auto &one : tensors[i]) {
            three[i].must("within " + std::string(one.name) + " " + one.pool + " " +
                          text(one.offset * MiB));
            three[i].must(three.upload(one.name, one.size * MiB, one.name[0]));
        }
    EXPECT_TRUE(three.use(52 * MiB)) << three.in_use();
    for (const auto &one : tensors[0])
        three.expect_all(one.name, one.size * MiB, one.name[0]);
    three.each("free p", "free q", "free r");
    EXPECT_TRUE(three.use(0)) << three.in_use();
    EXPECT_EQ(three.left(), "");
}

// Engines reserve one segment for all weights. Threads copy tensors into it in an order that
// differs from process to process.
TEST_P(MergePool, MayHoldAllWeightsInAnyOrder) {
    std::vector<uint64_t> sizes; // multiples of 2 MiB, in KiB
    for (const uint64_t size : {6, 10, 14, 4, 36, 10, 6, 22, 6, 10, 2, 14, 6, 10, 6, 8, 12, 6})
        sizes.push_back(size << 10);
    std::string words;
    uint64_t all = 0;
    for (const uint64_t size : sizes) {
        words += " " + text(size);
        all += size << 10;
    }
    Replicas three(3, merging(GetParam()));
    three.each("malloc p " + text(all));
    for (size_t i = 0; i < 3; i++) {
        const Reply loaded = three[i]("tensors p 4 " + text(i + 1) + words);
        const std::vector<std::string> &places = loaded.words;
        ASSERT_EQ(places.size(), sizes.size());
        for (size_t n = 0; n < sizes.size(); n++)
            three[i].must("within t" + text(n) + " p " + places[n]);
    }
    EXPECT_TRUE(eventually([&] { return three.in_use() <= all + all / 10; }, 15000))
        << three.in_use() << " of " << all; // of each further one, 95 % are merged
    for (size_t n = 0; n < sizes.size(); n++)
        three.expect_all("t" + text(n), sizes[n] << 10, static_cast<int>(n));
    three.each("free p");
    EXPECT_TRUE(three.use(0)) << three.in_use();
    EXPECT_EQ(three.left(), "");
}

TEST_P(MergePool, IsWrittenAtAnyMoment) {
    constexpr uint64_t SIZE = 20 * MiB;
    Replicas two(2, merging(GetParam()));
    for (uint64_t round = 0; round < 5; round++) {
        const std::string name = "p" + std::to_string(round);
        two.each("malloc " + name + " " + text(SIZE), "upload " + name + " 0 4194304 5 sync",
                 "upload " + name + " 4194304 16777216 5 sync");
        usleep(static_cast<useconds_t>(round * 110000));
        two.each("write " + name + " 4194300 0102030405060708");
        two.each("upload " + name + " 4194300 8 5 sync");
        two.expect_all(name, SIZE, 5);
    }
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    for (int round = 0; round < 5; round++)
        two.each("free p" + std::to_string(round));
    EXPECT_TRUE(two.use(0)) << two.in_use();
    EXPECT_EQ(two.left(), "");
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
}

// Blocks that are full wait for those behind them, with which they are cut anew.
TEST(MergePool, IsCutAnewWhenItsEndIsLoadedLater) {
    using Copies = std::vector<std::pair<uint64_t, uint64_t>>;
    constexpr uint64_t SIZE = 58 * MiB;
    Replicas two(2);
    const auto load = [&](int i, const Copies &copies) {
        for (const auto &[from, to] : copies)
            two[i].must("upload p " + text(from) + " " + text(to - from) + " 3 sync");
    };
    two.each("malloc p " + text(SIZE));
    load(0, {{32 * MiB - 1, 32 * MiB + 1}}); // both blocks have memory before a tensor comes
    load(0, {{30 * MiB, 34 * MiB}, {0, 30 * MiB}, {34 * MiB, 48 * MiB}});
    usleep(500000);
    load(0, {{48 * MiB, SIZE}});
    load(1, {{0, 30 * MiB}, {30 * MiB, 34 * MiB}, {34 * MiB, 48 * MiB}, {48 * MiB, SIZE}});
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    two.expect_all("p", SIZE, 3);
}

TEST(MergeLoad, ManyThreadsMayLoad) {
    constexpr uint64_t SIZE = 24 * MiB;
    for (const char *quiet : {"quiet = 0\n", QUIET}) {
        Replicas two(2, merging(quiet));
        for (const char *piece : {"300007", "4500007"}) { // and such as blocks are cut by
            two.each("malloc p " + text(SIZE));
            for (int i = 0; i < 2; i++)
                two[i].send("halves p " + text(SIZE) + " 8 " + piece);
            for (int i = 0; i < 2; i++)
                EXPECT_EQ(two[i].receive(30000).code, 0);
            EXPECT_TRUE(two.use(SIZE)) << two.in_use();
            two.expect_all("p", SIZE, 8);
            two.each("free p");
        }
    }
}

/* --- what it looks like --- */

TEST(MergeMemory, IsAnAllocationToTheProgram) {
    constexpr uint64_t SIZE = 44 * MiB - 1000; // blocks of 32, 8, 4
    for (const char *quiet : {"quiet = 0\n", QUIET}) {
        World world(rule("weights", "producer", "merge", quiet));
        Puppet a(world, producer()), b(world, bare());
        for (Puppet *puppet : {&a, &b})
            puppet->all({"malloc p " + text(SIZE), "malloc q 4194304"});
        const Reply range = a("range p"), expected = b("range p");
        EXPECT_EQ(range[0], a.must("value p"));
        EXPECT_EQ(range[1], expected[1]);
        EXPECT_EQ(a.must("attribute p+40000000 11"), range[0]) << "RANGE_START_ADDR";
        EXPECT_EQ(a.must("attribute p+40000000 12"), b.must("attribute p+40000000 12"));
        EXPECT_EQ(a.must("attribute p 2"), b.must("attribute p 2")) << "MEMORY_TYPE";
        EXPECT_EQ(a.must("attribute p+43000000 9"), b.must("attribute p+43000000 9")) << "ORDINAL";
        EXPECT_EQ(a.must("attribute p 10"), "0") << "IS_LEGACY_CUDA_IPC_CAPABLE";
        for (Puppet *puppet : {&a, &b}) {
            puppet->must("ctxset");
            EXPECT_EQ(puppet->code("range p"), 201) << "there is no context";
            puppet->must("sync"); // the runtime has one again
        }
        EXPECT_EQ(a.code("freeat 0x10"), b.code("freeat 0x10"));
        EXPECT_EQ(a.code("free q"), 0);
        EXPECT_EQ(a.code("free q"), b.code("free q") + 1);
        a.must("fill p 0x44 " + text(SIZE)); // over all blocks
        EXPECT_EQ(a.must("read p " + text(32 * MiB - 2) + " 4"), "44444444");
        a.must("free p");
        EXPECT_NE(a.code("read p 0 4"), 0);
    }
}

// A program chooses by some of these how it shares memory, or gives it to other hardware. That
// there is no handle is said, and that no engine decompresses into it (H200), and the driver's ids
// are not ours.
const std::vector<int> abilities = {10, 21}; // IS_LEGACY_CUDA_IPC, HW_DECOMPRESS_CAPABLE

TEST(MergeMemory, IsTheDriversToEveryQuestionAndCall) {
    constexpr uint64_t SIZE = 44 * MiB - 1000; // blocks of 32, 8, 4
    for (const char *quiet : {"quiet = 0\n", QUIET}) {
        World world(rule("weights", "producer", "merge", quiet));
        Puppet a(world, producer()), b(world, bare());
        for (const bool merged : {false, true}) {
            for (Puppet *puppet : {&a, &b}) {
                puppet->must("malloc p " + text(SIZE));
                if (merged)
                    puppet->must("upload p 0 " + text(SIZE) + " 3 sync");
            }
            EXPECT_TRUE(!merged || eventually([&] {
                return world.tool({"ls"}).out.find("Merged") != std::string::npos;
            }));
            for (const char *at : {" 0", " 33554432", " 46136343"}) {
                EXPECT_EQ(told_without(a, std::string("p") + at, abilities),
                          told_without(b, std::string("p") + at, abilities));
                EXPECT_EQ(a(std::string("mapped p") + at + " 2097152").text,
                          b(std::string("mapped p") + at + " 2097152").text);
            }
            EXPECT_EQ(a("mapped p 0 46137344").text, b("mapped p 0 46137344").text);
            EXPECT_TRUE(!merged || a.must("expect p 0 " + text(SIZE) + " 3") == "same");
            for (Puppet *puppet : {&a, &b})
                puppet->must("free p");
        }
        EXPECT_TRUE(world.findings().empty()) << world.logs();
    }
}

// Memory of a pool goes back to it in the order of its stream, and stays the driver's.
TEST(MergeMemory, MayBePitchedButNotOfAPool) {
    Replicas two(2, merging(QUIET));
    two.each("pitch p 6000 1365", "pool q 8388608");
    two.each(two.upload("p", 8386560, 3)); // 1365 rows of 6 KiB
    two.each(two.upload("q", 8 * MiB, 4));
    EXPECT_TRUE(two.use(8 * MiB + 2 * 8 * MiB)) << two.in_use();
    two[0].must("unpool q");
    two.expect_all("p", 8386560, 3);
    EXPECT_EQ(two.expect(two[1], "q", 8 * MiB, 4), "same");
    two[1].must("unpool q");
    two.each("free p");
    EXPECT_TRUE(two.use(0)) << two.in_use();
}

TEST(MergeMemory, HasNoHandleAndAReportSaysWhatToDo) {
    Replicas one(1);
    one.load("p", 8 * MiB, 3);
    EXPECT_EQ(one[0].code("get p"), 1);
    EXPECT_EQ(one[0].code("get p 5000000"), 1);
    const auto findings = one.world.findings("export-not-capable");
    ASSERT_GE(findings.size(), 1u) << one.world.logs();
    EXPECT_HAS(findings[0].detail, "role = merge");
    EXPECT_HAS(findings[0].hint, "rule of its own");
    EXPECT_EQ(one.expect(one[0], "p", 8 * MiB, 3), "same");
}

TEST(MergeMemory, OfAbsurdSizesIsRefusedAtOnce) {
    for (const char *quiet : {"quiet = 0\n", "quiet = 1s\n"}) {
        Replicas one(1, merging(quiet));
        for (const uint64_t size : {UINT64_C(1) << 40, UINT64_C(1) << 50, UINT64_C(1) << 62,
                                    UINT64_MAX / 2, UINT64_MAX - 4095, UINT64_MAX})
            EXPECT_EQ(one[0].code("malloc p " + std::to_string(size), 3000), 2) << size;
    }
}

TEST(MergeMemory, ThatRunsOutIsAnAnswer) {
    SIM_ONLY("it fills the card");
    Replicas two(0, merging());
    const How how = two.on_a_small_card();
    World &world = two.world;
    Puppet a(world, how);
    a.must("info");
    EXPECT_EQ(a.code("malloc p 1073741824"), 2);
    a.must("malloc p 134217728");
    EXPECT_EQ(a.code("malloc q 167772160"), 2);
    a.must(Replicas::upload("p", 128 * MiB, 1));
    EXPECT_EQ(a.code("malloc q 167772160"), 2);
    a.must("malloc q 67108864");
    Puppet hog(world, bare());
    EXPECT_EQ(hog.code("malloc all 100663296"), 2) << "it is there for another";
    EXPECT_EQ(a.code(Replicas::upload("q", 64 * MiB, 2)), 0);
    EXPECT_EQ(Replicas::expect(a, "p", 128 * MiB, 1), "same");
    EXPECT_EQ(Replicas::expect(a, "q", 64 * MiB, 2), "same");
    EXPECT_TRUE(eventually([&] { return world.entries("regions") == 6; }));
    hog.must("malloc rest 50331648");
    EXPECT_EQ(a.code("write p 0 fe"), 2) << "there is no memory for a block of its own";
    hog.must("free rest");
    a.must("write p 0 fe");
    EXPECT_EQ(a.must("read p 0 2").substr(0, 2), "fe");
}

// Blocks that are cut anew have memory twice for a moment.
TEST(MergeMemory, IsTheProgramsFirst) {
    SIM_ONLY("it fills the card");
    Replicas none(0, merging(QUIET));
    const How how = none.on_a_small_card();
    Puppet a(none.world, how);
    a.must("malloc small 4096");
    for (int round = 0; round < 2; round++) {
        a.must("malloc p " + text(64 * MiB));
        const std::string rest = a("info")[0];
        a.must("upload p 0 " + text(4 * MiB) + " 5 sync");
        a.must("upload p " + text(4 * MiB) + " " + text(60 * MiB) + " 5 sync");
        const int64_t until = now_ms() + 1000;
        for (int n = 0; now_ms() < until; n++) {
            ASSERT_EQ(a.code("cumalloc rest " + rest), 0) << round << " " << n;
            a.must("cufree rest");
            usleep(300);
        }
        EXPECT_EQ(Replicas::expect(a, "p", 64 * MiB, 5), "same");
        a.must("free p");
    }
}

// Another process may have taken it: that is nothing to copies of other memory.
TEST(MergeMemory, ThatIsNotThereYetFailsNoOtherCopy) {
    SIM_ONLY("it fills the card");
    Replicas none(0, merging("quiet = 0\novercommit = on\n"));
    const How how = none.on_a_small_card();
    Puppet a(none.world, how), hog(none.world, bare());
    a.all({kernels(), "malloc small 4096", "malloc other 4096", "malloc p 134217728"});
    hog.must("malloc all 234881024");
    a.all(
        {"fill small 0x31 4096", "copy other 0 small 0 4096", "copy small 0 other 0 4096 default"});
    EXPECT_EQ(a.must("read other 0 2"), "3131");
    EXPECT_NE(a.code("read p 0 2"), 0);
    EXPECT_EQ(a.code("launch - test_read other 1 small"), 2) << "it may touch anything";
    hog.must("free all");
    a.all({"launch - test_read other 1 small", "sync"});
}

/* --- contexts, cards, processes --- */

TEST(MergeContext, ItsMemoryEndsWithIt) {
    for (const char *end : {"reset", "ctxdestroy other"}) {
        Replicas two(2);
        const bool reset = std::string(end) == "reset";
        if (!reset)
            two[0].must("ctxcreate other");
        two[0].must("cumalloc little 4096");
        two.before = two.world.used();
        two.load("p", 8 * MiB, 3);
        EXPECT_TRUE(two.use(8 * MiB));
        two[0].must(end);
        EXPECT_NE(two[0].code("read p 0 4"), 0);
        EXPECT_EQ(two.expect(two[1], "p", 8 * MiB, 3), "same");
        two[0].all({"malloc q 8388608", two.upload("q", 8 * MiB, 3)});
        EXPECT_EQ(two.expect(two[0], "q", 8 * MiB, 3), "same");
        EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
    }
}

// A kernel of the library's that runs there meanwhile would lose the device for the program.
TEST(MergeContext, MayEndWhileItsMemoryIsLookedAt) {
    Replicas one(1, merging("quiet = 1ms\ncontent = any\n"));
    for (const char *end : {"reset", "ctxdestroy other"})
        for (int i = 0; i < 10; i++) {
            one[0].all({std::string(end) == "reset" ? "info" : "ctxcreate other",
                        "cumalloc p 67108864", "fill p 1 67108864"});
            usleep(120000);
            one[0].must("cumalloc q 2097152"); // wakes the merger
            usleep(static_cast<useconds_t>(i % 10 * 1000));
            one[0].must(end);
        }
    one[0].must("malloc p 8388608");
}

TEST(MergeContext, SeveralOfOneProcess) {
    Replicas one(1);
    one[0].all({"malloc p 8388608", one.upload("p", 8 * MiB, 3)});
    EXPECT_TRUE(eventually([&] { return one.world.entries("regions") == 1; }))
        << "else kernels compare them, which take 2 MiB of the other context";
    one[0].all({"ctxcreate other", "cumalloc q 8388608", one.upload("q", 8 * MiB, 3)});
    EXPECT_TRUE(one.use(8 * MiB)) << one.in_use();
    EXPECT_EQ(one.expect(one[0], "q", 8 * MiB, 3), "same");
    one[0].all({"write q 5 01", "ctxpop"});
    EXPECT_EQ(one.expect(one[0], "p", 8 * MiB, 3), "same");
}

TEST(MergeContext, CardsHaveBlocksOfTheirOwnAndPeersReachThem) {
    TWO_CARDS();
    Replicas two(0);
    const How how = two.on_two_cards();
    Puppet a(two.world, how), b(two.world, how);
    a.all({"malloc p 8388608", Replicas::upload("p", 8 * MiB, 3)});
    b.all({"device 1", "malloc p 8388608", Replicas::upload("p", 8 * MiB, 3)});
    EXPECT_TRUE(eventually([&] { return two.world.entries("regions") == 2; })) << "one a card";
    a.all({"device 1", "peer 0"});
    EXPECT_EQ(Replicas::expect(a, "p", 8 * MiB, 3), "same");
    a.all({"device 0", "malloc later 8388608", Replicas::upload("later", 8 * MiB, 4), "device 1"});
    EXPECT_EQ(Replicas::expect(a, "later", 8 * MiB, 4), "same");
    a.must("write p 100 0102"); // from the peer: its own again
    a.must("sync");
    EXPECT_EQ(a.must("read p 100 2"), "0102");
    EXPECT_EQ(Replicas::expect(b, "p", 8 * MiB, 3), "same");
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
}

TEST(MergeFork, AChildHasNoneAndTheParentAll) {
    Replicas two(2);
    two.load("p", 8 * MiB, 3);
    EXPECT_TRUE(two.use(8 * MiB));
    two[0].all({"fork malloc x 4194304;exit 0", "fork _exit 0"});
    EXPECT_TRUE(two.use(8 * MiB));
    two.expect_all("p", 8 * MiB, 3);
    two[0].must("write p 0 0a0b");
    EXPECT_EQ(two[0].must("fork exit 0"), "0") << "the block was copied on a stream of ours";
    EXPECT_EQ(two.expect(two[1], "p", 8 * MiB, 3), "same");
    two.each("free p");
    EXPECT_TRUE(two.use(0)) << two.in_use();
    EXPECT_EQ(two.left(), "");
}

TEST(MergeFree, BesideMergingIsAFree) {
    Replicas two(2, merging(QUIET));
    for (int round = 0; round < 12; round++) {
        const std::string name = "p" + std::to_string(round);
        two.load(name, 8 * MiB, round);
        usleep(static_cast<useconds_t>(round * 70000));
        two.each("free " + name);
    }
    EXPECT_TRUE(two.use(0)) << two.in_use();
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
    EXPECT_EQ(two.left(), "");
}

} // namespace
