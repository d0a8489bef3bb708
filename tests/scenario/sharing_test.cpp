// sharing_test.cpp - memory shared by rules alone: who exports, who imports, and what does not fit.
#include "scenario/harness.hpp"

namespace {

std::string size_of(uint64_t bytes) {
    return std::to_string(bytes);
}

struct Pair : testing::TestWithParam<std::pair<int, int>> {};

TEST_P(Pair, BytesAreSharedBothWays) {
    World world(FRAMES);
    const std::string exporter = builds[GetParam().first], importer = builds[GetParam().second];
    Puppet a(world, producer(exporter)), b(world, consumer(importer));
    expect_shared_both_ways(world, a, b);
}

INSTANTIATE_TEST_SUITE_P(Sharing, Pair,
                         testing::Values(std::pair(0, 0), std::pair(0, 1), std::pair(0, 2),
                                         std::pair(1, 0), std::pair(1, 1), std::pair(1, 2),
                                         std::pair(2, 0), std::pair(2, 1), std::pair(2, 2)),
                         pair_name);

// To its program it is an allocation: a report speaks of no handle.
TEST(Sharing, AnInteriorPointerOfAnImportIsOneOfAnAllocation) {
    auto [world, a, b] = Couple(FRAMES);
    a.must("malloc p " + size_of(big()));
    b.must("malloc q " + size_of(big()));
    b.must("within r q 4096");
    EXPECT_EQ(b.code("freeat " + b.must("value r")), 1);
    EXPECT_EQ(world.count("free-interior"), 1u);
    EXPECT_EQ(world.findings().size(), 1u);
    EXPECT_EQ(b.must("get r"), b.must("get q"));
    b.must("free q");
}

TEST(Sharing, OneCopyOfTheMemoryServesAll) {
    World world(FRAMES);
    Puppet a(world, producer()), b(world, consumer()), c(world, consumer());
    for (Puppet *puppet : {&a, &b, &c})
        puppet->must("info"); // contexts cost memory, too
    const uint64_t before = world.used();
    a.must("malloc p " + size_of(big()));
    b.must("malloc q " + size_of(big()));
    c.must("malloc q " + size_of(big()));
    EXPECT_TRUE(world.used_becomes(before + big()));
    EXPECT_EQ(world.region("frames")["users"].size(), 2u);
    b.must("free q");
    c.must("free q");
    a.must("free p");
    EXPECT_TRUE(world.used_becomes(before));
}

TEST(Sharing, AnImporterMayAskForLess) {
    auto [world, a, b] = Couple(FRAMES);
    a.make("p", 4194304, "0x22");
    b.must("malloc q 1000");
    EXPECT_EQ(b.must("read q 0 2"), "2222");
    EXPECT_EQ(world.findings().size(), 0u);
}

// The driver maps whole blocks of 2 MiB, and bare each allocation has an end of its own.
TEST(Sharing, WhatReachesPastTheEndIsRefusedAsBare) {
    SKIP_IF(!hip().empty(), "what HIP answers is not known");
    for (const char *backing : {"", "backing = vmm\n"}) {
        auto [world, a, b] = Couple(rule("frames", "producer", "export", backing) +
                                    rule("frames", "consumer", "import"));
        a.must("malloc p 5000000");
        b.must("malloc p 3000000"); // it may ask for less
        for (Puppet *one : {&a, &b}) {
            const uint64_t size = one == &a ? 5000000 : 3000000;
            const std::string end = text(size - 4096);
            one->must("malloc other 5000000");
            EXPECT_EQ((*one)("upload p " + end + " 4097 9 sync").code, 1);
            EXPECT_EQ((*one)("fill p 0x77 4097 " + end).code, 1);
            EXPECT_EQ((*one)("read p " + end + " 4097").code, 1);
            EXPECT_EQ((*one)("copy p " + end + " other 0 4097").code, 1);
            EXPECT_EQ((*one)("copy other 0 p " + end + " 4097").code, 1);
            EXPECT_EQ((*one)("copy other 0 p 0 " + text(size + 1000000)).code, 1);
            EXPECT_EQ((*one)("read p " + text(size) + " 1").code, 1);
            one->must("fill p 0x77 4096 " + end);
            EXPECT_EQ(one->must("read p " + text(size - 2) + " 2"), "7777");
            one->all({"free p", "malloc p 6291456"}); // a rule's no more: nothing is left of it
            one->all({"fill p 0x12 6291456", "free other"});
        }
    }
}

TEST(Sharing, WhatReachesPastTheEndOfPooledMemoryIsRefusedAsBare) {
    SKIP_IF(!hip().empty(), "there is none by a rule");
    World world(rule("frames", "producer", "export", "backing = vmm\n"));
    Puppet a(world, producer()), bare(world, consumer());
    a.must("pool p 5000000");
    bare.must("pool p 5000000");
    EXPECT_EQ(world.state("frames"), "ready");
    for (Puppet *one : {&a, &bare}) {
        EXPECT_EQ((*one)("upload p 4995904 4097 9 sync").code, 1);
        EXPECT_EQ((*one)("fill p 0x77 4097 4995904").code, 1);
        EXPECT_EQ((*one)("read p 4995904 4097").code, 1);
        EXPECT_EQ((*one)("read p 5000000 1").code, 1);
        one->must("fill p 0x77 4096 4995904");
        one->must("unpool p");
    }
}

// Several side by side, each of whole blocks.
TEST(Sharing, WhatReachesIntoTheNextAllocationIsRefusedAsBare) {
    for (const char *backing : {"", "backing = vmm\n"}) {
        if (*backing && !hip().empty())
            continue; // there is none
        auto [world, a, b] =
            Couple(rule("frames-{n}", "producer", "export", backing + std::string("index = *\n")) +
                   rule("frames-{n}", "consumer", "import", "index = *\n"));
        for (Puppet *one : {&a, &b})
            one->all({"malloc p 4194304", "malloc q 4194304", "malloc r 4194304"});
        for (Puppet *one : {&a, &b})
            for (const std::string name : {"p ", "q ", "r "}) {
                EXPECT_EQ((*one)("upload " + name + "4190208 4097 9 sync").code, 1);
                EXPECT_EQ((*one)("fill " + name + "0x77 4097 4190208").code, 1);
                EXPECT_EQ((*one)("read " + name + "4190208 4097").code, 1);
                one->must("fill " + name + "0x77 4096 4190208");
            }
    }
}

TEST(Sharing, ANameMayHave127Characters) {
    World world;
    const std::string stem(124, 'n');
    world.config(rule(stem + "{n}", "producer", "export", "index = >=999\n") +
                 rule(stem + "999", "consumer", "import"));
    Puppet a(world, producer()), b(world, consumer());
    for (int i = 0; i < 999; i++) { // their numbers are below the rule's
        a.all({"malloc p 256", "free p"});
    }
    a.make("p", 4096, "0x77");
    b.must("malloc q 4096");
    EXPECT_EQ(b.must("read q 0 2"), "7777");
    EXPECT_EQ(world.region(stem + "999")["users"].size(), 1u);
    EXPECT_EQ(world.findings().size(), 0u);
    a.must("malloc r 4096");
    ASSERT_EQ(world.count("share-fallback"), 1u);
    EXPECT_HAS(world.findings("share-fallback")[0].detail, "longer than 127 characters");
}

TEST(Sharing, AnImporterThatAsksForMoreIsPrivate) {
    auto [world, a, b] = Couple(FRAMES);
    a.make("p", 4096, "0x22");
    b.must("malloc q 4097"); // although 2 MiB were allocated
    b.must("fill q 0x33 4097");
    EXPECT_EQ(a.must("read p 0 2"), "2222");
    EXPECT_EQ(world.region("frames")["users"].size(), 0u);
    const std::vector<Finding> found = world.findings("share-mismatch");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].pid, static_cast<uint32_t>(b.pid));
    EXPECT_EQ(found[0].name, "frames");
    EXPECT_HAS(found[0].detail, "asked for size = 4097, and size = 4KiB was exported");
    b.must("free q");
}

TEST(Sharing, ASmallExportGetsWholeBlocks) {
    auto [world, a, b] = Couple(FRAMES);
    a.must("malloc p 1000");
    a.must("malloc neighbour 1000"); // outside the region's block
    const Json shown = Json::parse(world.tool({"show", "--json", "frames"}).out);
    const Json &region = shown.kind == Json::Array ? shown[0] : shown;
    EXPECT_EQ(region["size"].number, 1000);
    EXPECT_EQ(region["extent"].number, 2 * MiB);
    b.must("malloc q 1000");
    const uint64_t p = std::stoull(a.must("value p"), nullptr, 16);
    const uint64_t neighbour = std::stoull(a.must("value neighbour"), nullptr, 16);
    EXPECT_TRUE(neighbour >= p + 2 * MiB || neighbour < p);
}

TEST(Sharing, ASmallRegionHasTheSizeThatWasAskedFor) {
    auto [world, a, b] = Couple(FRAMES);
    a.must("malloc p 1000");
    b.must("malloc q 1000");
    EXPECT_EQ(a("range p")[1], "1000");
    EXPECT_EQ(b("range q")[1], "1000");
}

TEST(Sharing, WithoutAMatchNothingIsPublished) {
    World world(rule("frames", "somebody", "export"));
    Puppet a(world, producer());
    a.must("malloc p 4194304");
    EXPECT_EQ(world.entries("regions"), 0u);
    EXPECT_EQ(world.entries("procs"), 0u);
    EXPECT_EQ(world.entries("names"), 0u);
}

TEST(Sharing, WhatAProgramExportsItselfIsPublishedWithoutAName) {
    World world;
    Puppet a(world);
    a.must("malloc p 4194304");
    EXPECT_EQ(world.entries("regions"), 0u);
    a.all({"get p", "get p"});
    EXPECT_EQ(world.entries("regions"), 1u);
    EXPECT_EQ(world.entries("names"), 0u);
    EXPECT_EQ(world.region()["size"].number, 4 * MiB);
    EXPECT_EQ(world.region()["state"].text, "ready");
}

// --- rules ---

TEST(Rule, TheFirstThatMatchesWins) {
    World world(rule("small", "producer", "export", "size = <=4KiB\n") +
                rule("all", "producer", "export") + rule("never", "producer", "export"));
    Puppet a(world, producer());
    a.must("malloc p 4096");
    EXPECT_EQ(world.state("small"), "ready");
    EXPECT_EQ(world.state("all"), "none");
    a.must("malloc q 8192");
    EXPECT_EQ(world.state("all"), "ready");
    EXPECT_EQ(world.state("never"), "none");
}

TEST(Rule, SizeIsARangeWithBothEnds) {
    World world(rule("r{n}", "producer", "export", "size = 1MiB..2MiB\nindex = *\n"));
    Puppet a(world, producer());
    a.all({"malloc a 1048575", "malloc b 2097153"});
    EXPECT_EQ(world.entries("regions"), 0u);
    a.all({"malloc c 1048576", "malloc d 2097152"});
    EXPECT_EQ(world.region("r0")["size"].number, 1048576);
    EXPECT_EQ(world.region("r1")["size"].number, 2097152);
}

TEST(Rule, IndexChoosesTheNthMatch) {
    World world(rule("third", "producer", "export", "size = 4KiB\nindex = 2\n"));
    Puppet a(world, producer());
    a.must("malloc a 4096");
    a.must("malloc other 8192"); // does not fit, so it does not count
    a.must("malloc b 4096");
    EXPECT_EQ(world.entries("regions"), 0u);
    a.must("malloc c 4096");
    EXPECT_EQ(world.entries("regions"), 1u);
    EXPECT_EQ(world.state("third"), "ready");
    a.must("malloc d 4096");
    EXPECT_EQ(world.entries("regions"), 1u);
    EXPECT_EQ(world.findings().size(), 0u);
}

TEST(Rule, IndexAnyNumbersEachMatch) {
    auto [world, a, b] = Couple(rule("f{n}", "producer", "export", "index = *\n") +
                                rule("f{n}", "consumer", "import", "index = *\n"));
    for (int i = 0; i < 3; i++) {
        const std::string n = size_of(static_cast<uint64_t>(i));
        a.all({"malloc p" + n + " 4096", "fill p" + n + " " + n + " 4096"});
    }
    a.must("sync");
    for (int i = 0; i < 3; i++) {
        const std::string n = size_of(static_cast<uint64_t>(i));
        b.must("malloc q" + n + " 4096");
        EXPECT_EQ(b.must("read q" + n + " 0 1"), "0" + n);
    }
}

TEST(Rule, IndexIsARangeOfThoseThatFit) {
    World world(rule("f{n}", "producer", "export", "size = 4KiB\nindex = 1..2\n"));
    Puppet a(world, producer());
    for (const char *name : {"a", "b", "c", "d"})
        a.must(std::string("malloc ") + name + " 4096");
    EXPECT_EQ(world.entries("regions"), 2u);
    EXPECT_EQ(world.state("f0"), "none");
    EXPECT_EQ(world.state("f1"), "ready");
    EXPECT_EQ(world.state("f2"), "ready");
    EXPECT_EQ(world.findings().size(), 0u);
}

// What an earlier rule took does not count; what it let pass does.
TEST(Rule, IndexCountsWhatNoEarlierRuleTook) {
    World world(rule("first", "producer", "export", "size = 4KiB\n") +
                rule("late{n}", "producer", "export", "size = 4KiB\nindex = >=1\n"));
    Puppet a(world, producer());
    for (const char *name : {"a", "b", "c", "d"})
        a.must(std::string("malloc ") + name + " 4096");
    EXPECT_EQ(world.entries("regions"), 3u); // a; not b, which is number 0 of the second rule
    EXPECT_EQ(world.state("first"), "ready");
    EXPECT_EQ(world.state("late1"), "ready");
    EXPECT_EQ(world.state("late2"), "ready");
}

TEST(Rule, ProgramIsAGlobOnTheExecutable) {
    World world(rule("frames", "prod*[rs]", "export"));
    Puppet other(world, consumer());
    other.must("malloc p 4096");
    EXPECT_EQ(world.entries("regions"), 0u);
    Puppet a(world, producer());
    a.must("malloc p 4096");
    EXPECT_EQ(world.state("frames"), "ready");
}

TEST(Rule, CallerIsTheModuleThatAllocates) {
    for (const char *build : builds) {
        World world(rule("no", "*", "export", "caller = libother.so*\n") +
                    rule("yes", "*", "export", "caller = produc?r\n"));
        Puppet a(world, producer(build));
        a.must("malloc p 4096");
        EXPECT_EQ(world.state("no"), "none") << build;
        EXPECT_EQ(world.state("yes"), "ready") << build;
    }
}

TEST(Rule, DeviceIsAnOrdinalOrAUuidAndGoesIntoTheName) {
    TWO_CARDS();
    World world(rule("on{device}", "producer", "export", "device = 1\n"),
                {{"GPUSHARE_SIM_DEVICES", "2"}});
    Puppet a(world, producer());
    a.must("malloc p 4096");
    EXPECT_EQ(world.entries("regions"), 0u);
    a.all({"device 1", "malloc q 4096"});
    const std::string uuid = world.region("on1")["device"].text;
    world.config(rule("byuuid", "producer", "export", "device = " + uuid + "\n"));
    Puppet b(world, producer());
    b.must("malloc p 4096");
    EXPECT_EQ(world.state("byuuid"), "none");
    b.all({"device 1", "malloc q 4096"});
    EXPECT_EQ(world.state("byuuid"), "ready");
}

TEST(Rule, AnotherDeviceDoesNotFit) {
    TWO_CARDS();
    auto [world, a, b] = Couple(FRAMES, {{"GPUSHARE_SIM_DEVICES", "2"}});
    a.must("malloc p 4096");
    b.all({"device 1", "malloc q 4096"});
    ASSERT_EQ(world.count("share-mismatch"), 1u);
    EXPECT_HAS(world.findings("share-mismatch")[0].detail, "GPU-");
    EXPECT_EQ(world.region("frames")["users"].size(), 0u);
}

TEST(Rule, ADeviceIsKnownByItsUuidNotItsNumber) {
    TWO_CARDS();
    World world(FRAMES, {{"GPUSHARE_SIM_DEVICES", "2"}});
    How renumbered = consumer(), shifted = consumer();
    renumbered.environment["CUDA_VISIBLE_DEVICES"] = "1,0";
    shifted.environment["CUDA_VISIBLE_DEVICES"] = "1";
    Puppet a(world, producer());
    a.must("device 1");
    a.make("p", 4096, "0x44");
    Puppet b(world, renumbered), c(world, shifted);
    b.must("malloc q 4096"); // its device 0
    EXPECT_EQ(b.must("read q 0 1"), "44");
    c.must("malloc q 4096");
    EXPECT_EQ(c.must("read q 0 1"), "44");
    EXPECT_EQ(world.findings().size(), 0u);
}

TEST(Rule, ASecondExporterStaysPrivate) {
    World world(FRAMES);
    Puppet a(world, producer()), b(world, producer());
    a.must("malloc p 4096");
    b.must("malloc p 4096");
    ASSERT_EQ(world.count("share-fallback"), 1u);
    const Finding found = world.findings("share-fallback")[0];
    EXPECT_EQ(found.pid, static_cast<uint32_t>(b.pid));
    EXPECT_EQ(found.others, std::vector<uint32_t>{static_cast<uint32_t>(a.pid)});
    EXPECT_EQ(world.region("frames")["owner"]["pid"].number, a.pid);
    b.must("free p");
    a.kill();
    Puppet c(world, producer()); // the name is free again
    c.must("malloc p 4096");
    EXPECT_EQ(world.region("frames")["owner"]["pid"].number, c.pid);
}

TEST(Rule, ASecondMatchInOneProcessStaysPrivate) {
    World world(rule("frames", "producer", "export", "size = 4KiB\n") +
                rule("frames", "prod*", "export", "size = 8KiB\n"));
    Puppet a(world, producer());
    a.all({"malloc p 4096", "malloc q 8192"});
    EXPECT_EQ(world.count("share-fallback"), 1u);
    EXPECT_EQ(world.entries("regions"), 1u);
    a.all({"free q", "free p"});
    EXPECT_EQ(world.state("frames"), "none");
}

TEST(Rule, AnImporterImportsARegionOnce) {
    auto [world, a, b] = Couple(FRAMES + rule("frames", "con*er", "import", "size = 8KiB\n"));
    a.must("malloc p 65536");
    b.all({"malloc q 4096", "malloc other 8192"});
    ASSERT_EQ(world.count("share-fallback"), 1u);
    EXPECT_EQ(world.region("frames")["users"].size(), 1u);
    b.all({"free other", "free q"});
    EXPECT_EQ(world.region("frames")["users"].size(), 0u);
}

TEST(Rule, AFreedNameCanBeExportedAgain) {
    auto [world, a, b] = Couple(rule("frames", "producer", "export", "size = 4KiB\n") +
                                rule("frames", "prod*", "export", "size = 8KiB\n") +
                                rule("frames", "consumer", "import", "wait = 5s\n"));
    a.all({"malloc p 4096", "free p"});
    EXPECT_EQ(world.state("frames"), "none");
    a.make("q", 8192, "0x66");
    b.must("malloc q 4096");
    EXPECT_EQ(b.must("read q 0 1"), "66");
    EXPECT_EQ(world.findings().size(), 0u);
}

// --- waiting ---

TEST(Import, WaitsForTheExporter) {
    World world(FRAMES);
    Puppet b(world, consumer());
    b.send("malloc q 4096");
    EXPECT_FALSE(b.answers(200));
    Puppet a(world, producer());
    a.all({"malloc p 4096", "fill p 0x55 4096"});
    EXPECT_EQ(b.receive(soon(2000)).code, 0);
    EXPECT_EQ(b.must("read q 0 1"), "55");
    EXPECT_EQ(world.findings().size(), 0u);
}

TEST(Import, IsPrivateAfterTheWait) {
    World world(rule("frames", "consumer", "import", "wait = 300ms\n"));
    Puppet b(world, consumer());
    b.must("info");
    const int64_t start = now_ms();
    b.must("malloc q 4096");
    EXPECT_GE(now_ms() - start, 290);
    EXPECT_LT(now_ms() - start, soon(1500));
    b.all({"fill q 1 4096", "free q"});
    ASSERT_EQ(world.count("share-timeout"), 1u);
    EXPECT_EQ(world.findings()[0].level, "warning");
    EXPECT_EQ(world.findings()[0].name, "frames");
}

struct InVain : testing::Test {
    InVain() {
        grabber.as = "grabber-of-" + std::to_string(getpid()); // other tests have a producer
    }
    void expect_told(World &world, const std::string &said) {
        Puppet importer(world, consumer());
        importer.must("malloc q 4096");
        const std::string whole = "; the allocation is private; " + said;
        bool found = false;
        for (const Finding &finding : world.findings())
            found = found || finding.detail.find(whole) != std::string::npos;
        EXPECT_TRUE(found) << whole << "\n" << world.logs();
    }
    std::string rules(const std::string &program) const {
        return rule("frames", program, "export", "size = 60MiB\n") +
               rule("frames", "consumer", "import", "wait = 300ms\n");
    }
    How grabber;
};

TEST_F(InVain, AnImportNamesTheProgramThatShouldHaveExported) {
    World world(rules(grabber.as));
    Puppet b(world, consumer());
    b.must("malloc q 4096");
    ASSERT_EQ(world.count("share-timeout"), 1u);
    EXPECT_LACKS(world.findings()[0].detail, " runs here");
    Puppet a(world, grabber);
    const std::string runs = grabber.as + " (pid " + pid(a) +
                             ") runs here, for which line 1 exports size = 60MiB: it has ";
    expect_told(world, runs + "not asked for that, ");
    a.must("malloc p 4096");
    expect_told(world, runs + "asked for size = 4KiB once, and never for that");
    a.must("malloc far 1000");
    for (int i = 0; i < 2; i++)
        a.must("malloc p" + std::to_string(i) + " 67108864");
    expect_told(world, runs + "asked for size = 64MiB twice, and never for that");
    for (int i = 0; i < 20; i++)
        a.must("malloc q" + std::to_string(i) + " 65011712");
    expect_told(world, runs + "asked for size = 62MiB 16 times or more, and never for that");
    a.all({"malloc r 62914560", "free r"});
    expect_told(world, runs + "not asked for that, ");
}

TEST_F(InVain, AnImportNamesAProgramThatDiffersInCase) {
    std::string other = grabber.as;
    other[0] = 'G';
    World world(rules(other));
    Puppet a(world, grabber);
    expect_told(world, grabber.as + " (pid " + pid(a) + ") runs here, and line 1 is for " + other +
                           ", which differs in case only");
}

TEST(Import, FailsAfterTheWaitIfSoConfigured) {
    World world(rule("frames", "consumer", "import", "wait = 300ms\nmissing = fail\n"));
    for (const char *build : builds) {
        Puppet b(world, consumer(build));
        b.must("info");
        const int64_t start = now_ms();
        EXPECT_EQ(b.code("malloc q 4096"), 2) << build;
        EXPECT_GE(now_ms() - start, 290);
        EXPECT_LT(now_ms() - start, soon(1500));
        b.must("malloc q 4096"); // the rule is for the first one
    }
    EXPECT_EQ(world.count("share-timeout"), 3u);
}

TEST(Import, OutlivesAnExporterThatDiesMeanwhile) {
    World world(rule("frames", "producer", "export", "ready = free\n") +
                rule("frames", "consumer", "import", "wait = 5s\n"));
    Puppet b(world, consumer());
    auto a = std::make_unique<Puppet>(world, producer());
    a->must("malloc p 4096"); // not ready: it still writes
    b.send("malloc q 4096");
    EXPECT_FALSE(b.answers(200));
    a->kill();
    EXPECT_FALSE(b.answers(100));
    a = std::make_unique<Puppet>(world, producer());
    a->all({"malloc p 4096", "fill p 0x77 4096", "free p"});
    EXPECT_EQ(b.receive(soon(3000)).code, 0);
    EXPECT_EQ(b.must("read q 0 1"), "77");
}

TEST(Import, CtrlCEndsTheWaitAtOnce) {
    World world(rule("frames", "consumer", "import", "wait = 1min\n"));
    Puppet b(world, consumer());
    b.send("malloc q 4096");
    EXPECT_FALSE(b.answers(200));
    const int64_t start = now_ms();
    b.signal(SIGINT);
    EXPECT_EQ(b.wait(), 128 + SIGINT);
    EXPECT_LT(now_ms() - start, soon(500));
}

TEST(Import, IsNotACudaHandleToItsProgram) {
    auto [world, a, b] = Couple(FRAMES);
    a.must("malloc p 4096");
    b.must("malloc q 4096");
    EXPECT_EQ(b.code("close q"), 1); // the program has allocated it
    EXPECT_EQ(b.code("cuclose q"), 1);
    b.must("read q 0 1");
    EXPECT_EQ(world.region("frames")["users"].size(), 1u);
    b.must("free q");
    EXPECT_EQ(b.code("free q"), 1);
}

TEST(Import, ThatIsExportedLeadsToTheExportersMemory) {
    World world(FRAMES);
    Puppet a(world, producer()), b(world, consumer()), c(world);
    a.must("malloc p 4194304");
    b.must("malloc q 4194304");
    const std::string handle = b.must("get q");
    EXPECT_EQ(meaning(handle), meaning(a.must("get p")));
    c.all({"open r " + handle, "fill r 0x99 10", "sync"});
    EXPECT_EQ(a.must("read p 0 1"), "99");
    EXPECT_EQ(world.region("frames")["users"].size(), 2u);
    EXPECT_EQ(world.entries("regions"), 1u);
    c.must("close r");
    EXPECT_EQ(world.findings().size(), 0u);
}

TEST(Import, ByRuleAndByHandleInOneProcess) {
    SKIP_IF(hip() == "hip6", "each open gives a pointer of its own");
    auto [world, a, b] = Couple(FRAMES);
    a.must("malloc p 4194304");
    const std::string handle = a.must("get p");
    b.all({"malloc q 4194304", "open r " + handle});
    EXPECT_EQ(b.must("value q"), b.must("value r")); // as CUDA: one mapping, counted
    b.all({"close r", "read q 0 1"});
    EXPECT_EQ(world.region("frames")["users"].size(), 1u);
    b.must("free q");
    EXPECT_EQ(world.region("frames")["users"].size(), 0u);
    EXPECT_EQ(b.code("read q 0 1"), 1);
}

// --- pitched memory ---

TEST(Sharing, PitchedMemoryKeepsItsPitch) {
    for (const char *build : builds) {
        World world(FRAMES);
        Puppet a(world, producer(build)), b(world, consumer(build)), c(world, bare());
        const std::string pitch = c("pitch p 1000 64")[1];
        EXPECT_EQ(a("pitch p 1000 64")[1], pitch) << build;
        EXPECT_EQ(b("pitch q 1000 64")[1], pitch) << build;
        EXPECT_EQ(world.region("frames")["size"].number, std::stod(pitch) * 64) << build;
        a.all({"fill p 0x12 64", "sync"});
        EXPECT_EQ(b.must("read q 0 1"), "12") << build;
        b.must("free q");
        a.must("free p");
    }
}

// --- auto ---

TEST(Auto, OfEightAtOnceExactlyOneExports) {
    for (int round = 0; round < 3; round++) {
        World world(rule("weights", "*", "auto"));
        std::vector<std::unique_ptr<Puppet>> replicas;
        for (int i = 0; i < 8; i++)
            replicas.push_back(std::make_unique<Puppet>(world));
        for (auto &replica : replicas)
            replica->must("info");
        for (auto &replica : replicas)
            replica->send("malloc w 4194304");
        for (auto &replica : replicas)
            EXPECT_EQ(replica->receive().code, 0);
        EXPECT_EQ(world.entries("regions"), 1u);
        EXPECT_EQ(world.region("weights")["users"].size(), 7u);
        replicas[0]->must("fill w " + size_of(static_cast<uint64_t>(round) + 16) + " 100");
        replicas[0]->must("sync");
        for (auto &replica : replicas)
            EXPECT_EQ(replica->must("read w 0 1"), "1" + size_of(static_cast<uint64_t>(round)));
        EXPECT_EQ(world.findings().size(), 0u);
    }
}

TEST(Auto, TheNextExportsWhenTheExporterIsGone) {
    World world(rule("weights", "*", "auto"));
    Puppet a(world), b(world), c(world), d(world);
    a.must("malloc w 4194304");
    b.must("malloc w 4194304");
    a.kill();
    b.must("read w 0 1"); // it keeps what it has
    c.must("malloc w 4194304");
    d.must("malloc w 4194304");
    c.all({"fill w 0x31 10", "sync"});
    EXPECT_EQ(d.must("read w 0 1"), "31");
    EXPECT_EQ(b.must("read w 0 1"), "00");
    const Json regions = world.ls();
    ASSERT_EQ(regions.size(), 2u);
    for (const Json &one : regions.elements)
        EXPECT_EQ(one["state"].text, one["owner"]["pid"].number == c.pid ? "ready" : "orphaned");
    EXPECT_EQ(world.findings().size(), 0u);
}

// Between its claim of the name and its record, the winner is killed; the others must go on.
TEST(Auto, AWinnerKilledAtAnyPointIsReplaced) {
    World world(rule("weights", "*", "auto", "wait = 20s\n"));
    unsigned seed = 7;
    for (int round = 0; round < (on_gpu() ? 5 : 50); round++) {
        Puppet a(world), b(world), c(world);
        for (Puppet *puppet : {&a, &b, &c})
            puppet->must("info");
        for (Puppet *puppet : {&a, &b, &c})
            puppet->send("malloc w 4194304");
        usleep(static_cast<useconds_t>(rand_r(&seed) % 2500));
        a.kill();
        EXPECT_EQ(b.receive().code, 0);
        EXPECT_EQ(c.receive().code, 0);
        const Json regions = world.ls();
        size_t live = 0;
        for (const Json &one : regions.elements)
            live += one["owner"]["pid"].number == b.pid || one["owner"]["pid"].number == c.pid;
        // they share with each other, or they both import what the dead one had exported
        if (live == 0) {
            ASSERT_EQ(regions.size(), 1u);
            EXPECT_EQ(regions[0]["users"].size(), 2u);
        }
        EXPECT_LE(live, 1u);
    }
    EXPECT_EQ(world.count("share-timeout") + world.count("share-fallback"), 0u) << world.logs();
}

TEST(Auto, AWinnerThatIsStoppedHoldsUpOthersOnlyForTheirWait) {
    auto [world, a, b] = Twins(rule("weights", "*", "auto", "ready = free\nwait = 400ms\n"));
    a.must("malloc w 4194304"); // it still writes
    a.stop();
    b.must("info");
    const int64_t start = now_ms();
    b.must("malloc w 4194304");
    EXPECT_LT(now_ms() - start, soon(2000));
    EXPECT_EQ(world.count("share-timeout"), 1u);
    a.resume();
}

} // namespace
