// cache_test.cpp - open_cache: what the program closes stays mapped for its next open, and goes as
// soon as its exporter frees it.
#include "scenario/harness.hpp"

namespace {

// An exporter of `p`, which the importer has opened and closed: it is cached there.
struct Pair {
    explicit Pair(const std::string &how_many = "8", const std::string &build = "puppet",
                  const Environment &more = {})
        : a(world, producer()) {
        world.environment["GPUSHARE_OPEN_CACHE"] = how_many;
        for (const auto &[name, value] : more)
            world.environment[name] = value;
        How how = consumer();
        how.build = build;
        b = std::make_unique<Puppet>(world, how);
        before = world.used();
        a.all({"malloc p " + std::to_string(big()), "fill p 0xa1 4096", "sync"});
        handle = a.must("get p");
        address = b->must("open q " + handle);
        b->must("close q");
    }
    std::string slot() const { // as the directory says it
        const Json users = world.region()["users"];
        return !users.size() ? "none" : users[0]["cached"].truth ? "cached" : "open";
    }
    bool becomes(const std::string &use) const {
        return eventually([&] { return slot() == use; });
    }
    World world;
    Puppet a;
    std::unique_ptr<Puppet> b;
    std::string handle, address;
    uint64_t before;
};

// An exporter by rule, of which the importer by rule has opened and closed a handle: it is cached.
struct RuledPair {
    RuledPair() {
        world.config(FRAMES);
        world.environment["GPUSHARE_OPEN_CACHE"] = "8";
        a = std::make_unique<Puppet>(world, producer());
        b = std::make_unique<Puppet>(world, consumer());
        a->all({"malloc p 4194304", "fill p 0xa1 4096", "sync"});
        b->all({"open q " + a->must("get p"), "close q"});
    }
    World world;
    std::unique_ptr<Puppet> a, b;
};

// `p` is cached where a device has 64 MiB.
struct SmallCard {
    SmallCard() : a(small(), producer()), b(world, consumer()) {
        a.must("malloc p 4194304");
        b.all({"open q " + a.must("get p"), "close q"});
    }
    World &small() {
        world.environment["GPUSHARE_OPEN_CACHE"] = "8";
        world.environment["GPUSHARE_SIM_MEMORY"] = "64MiB";
        return world;
    }
    World world;
    Puppet a, b;
};

struct CacheOfTwo : testing::Test, Pair {};

TEST_F(CacheOfTwo, TheNextOpenHasTheSameAddressAndBytes) {
    EXPECT_EQ(slot(), "cached");
    EXPECT_EQ(b->must("open q " + handle), address);
    EXPECT_EQ(b->must("read q 0 4"), "a1a1a1a1");
    a.all({"fill p 0xa2 4", "sync"});
    EXPECT_EQ(b->must("read q 0 4"), "a2a2a2a2");
    EXPECT_TRUE(becomes("open")); // said a little later
    b->must("close q");
    EXPECT_EQ(slot(), "cached"); // said at once
    EXPECT_TRUE(world.findings().empty()) << world.logs();
}

// docs/open-cache.md says so.
TEST_F(CacheOfTwo, WhatIsClosedIsReadUntilItIsUnmapped) {
    EXPECT_EQ(b->must("read q 0 1"), "a1");
    a.must("free p");
    EXPECT_EQ(b->code("read q 0 1"), 1);
}

// Small allocations lie in one block of the driver's, and are open each by itself.
TEST(Cache, ANeighbourThatIsOpenIsReadAndWritten) {
    auto [world, a, b] = Couple("", {{"GPUSHARE_OPEN_CACHE", "8"}});
    for (const char *name : {"x", "y", "z"}) {
        a.must(std::string("malloc ") + name + " 1024");
        a.all({std::string("fill ") + name + " 0xa1 1024", "sync"});
        b.must(std::string("open ") + name + " " + a.must(std::string("get ") + name));
    }
    b.all({"close x", "close z"});
    EXPECT_EQ(b.must("read y 0 1"), "a1");
    EXPECT_EQ(b.must("read y 1000 1"), "a1");
    EXPECT_EQ(b.code("write y 1000 02"), 0);
    EXPECT_EQ(a.must("read y 1000 1"), "02");
}

TEST_F(CacheOfTwo, AFreeTakesItBackAndIsNoFinding) {
    a.must("free p");
    EXPECT_TRUE(eventually([&] { return world.state() == "none"; }));
    EXPECT_TRUE(world.used_becomes(before));
    EXPECT_EQ(b->code("open q " + handle), 1);
    EXPECT_EQ(world.count("open-stale"), 1u);
    EXPECT_EQ(world.findings().size(), 1u) << world.logs();
}

// The free waits five milliseconds for the importer, in which a busy machine may not let it run;
// nor does a card that others use end its close in them.
TEST_F(CacheOfTwo, AFreeHasItBackWhenItReturns) {
    a.must("free p");
    bool at_once = world.state() == "none";
    for (int i = 0; i < 20 && !at_once; i++) {
        EXPECT_TRUE(world.used_becomes(before, soon(2000)));
        a.must("malloc p " + std::to_string(big()));
        b->all({"open q " + a.must("get p"), "close q"});
        a.must("free p");
        at_once = world.state() == "none";
    }
    EXPECT_TRUE(at_once || on_gpu());
}

// The directory still says that it is cached: the importer is asked, and has five milliseconds to
// answer, in which a busy machine may not let it run.
TEST_F(CacheOfTwo, WhatIsOpenDefersTheFreeAndIsAFinding) {
    for (int i = 0; i < 20 && world.count("free-while-open") == 0; i++) {
        if (i) {
            a.all({"malloc p " + std::to_string(big()), "fill p 0xa1 4096", "sync"});
            handle = a.must("get p");
            b->all({"open q " + handle, "close q"});
        }
        b->must("open q " + handle);
        a.must("free p");
        EXPECT_EQ(world.state(), "closing");
        EXPECT_EQ(b->must("read q 0 2"), "a1a1");
        b->must("close q");
        EXPECT_TRUE(world.used_becomes(before, soon(2000)));
        EXPECT_EQ(b->code("open q " + handle), 1);
    }
    EXPECT_EQ(world.count("free-while-open"), 1u) << world.logs();
}

TEST(Cache, WithOnFreeWaitAndRefuseOnlyOpensCount) {
    for (const char *on_free : {"wait", "refuse", "allow"}) {
        auto [world, a, b] = Couple("", {{"GPUSHARE_OPEN_CACHE", "8"},
                                         {"GPUSHARE_ON_FREE", on_free},
                                         {"GPUSHARE_FREE_TIMEOUT", "50ms"}});
        for (int i = 0; i < 3; i++) {
            a.must("malloc p 4194304");
            const std::string handle = a.must("get p");
            b.all({"open q " + handle, "close q"});
            EXPECT_EQ(a.code("free p"), 0) << on_free;
            EXPECT_EQ(b.code("open q " + handle), 1) << on_free;
        }
        EXPECT_EQ(world.count("free-while-open"), 0u) << on_free << world.logs();
    }
}

TEST_F(CacheOfTwo, AStoppedImporterHoldsUpNoFreeForLong) {
    a.must("malloc other " + std::to_string(big()));
    const std::string other = a.must("get other");
    b->all({"open r " + other, "close r"});
    b->stop();
    EXPECT_EQ(a.code("free p", soon(2000)), 0);
    EXPECT_EQ(world.state(), "closing");
    EXPECT_EQ(a.code("free other", soon(2000)), 0);
    EXPECT_EQ(world.count("free-while-open"), 0u);
    b->resume();
    EXPECT_EQ(b->code("open q " + handle), 1);
    EXPECT_TRUE(world.used_becomes(before, soon(2000)));
}

// The driver refuses what lies where older memory is still open.
TEST(Cache, WhatItKeepsOfAPlaceKeepsNothingNewOutOfIt) {
    auto [world, a, b] = Couple("", {{"GPUSHARE_OPEN_CACHE", "8"}, {"GPUSHARE_ON_FREE", "allow"}});
    a.must("malloc block 4096");
    for (int round = 0; round < 40; round++) {
        const char *const sizes[] = {"65536", "4096"};
        a.must(std::string("malloc old ") + sizes[round % 2]);
        b.all({"open p " + a.must("get old"), "close p"});
        b.stop();
        a.all({"free old", std::string("malloc fresh ") + sizes[1 - round % 2]});
        const std::string handle = a.must("get fresh");
        b.resume();
        b.all({"open q " + handle, "close q"});
        a.must("free fresh");
    }
}

TEST_F(CacheOfTwo, TheDeathOfTheImporterFreesWhatItCached) {
    b->stop();
    a.must("free p");
    b->kill();
    EXPECT_TRUE(eventually([&] { return world.state() == "none"; }, soon(2000)));
}

TEST_F(CacheOfTwo, AnImporterWhoseKernelsRunEndsItWhenTheyEnd) {
    b->must("busy 300");
    a.must("free p");
    EXPECT_EQ(world.state(), "closing");
    EXPECT_TRUE(world.used_becomes(before, soon(2000)));
    EXPECT_EQ(world.count("free-while-open"), 0u);
}

// The driver's close waits for the kernel; the program has closed it before, and is told so now.
TEST_F(CacheOfTwo, WhatIsBeingEndedIsClosed) {
    b->must("busy 2500");
    a.must("free p");
    EXPECT_EQ(b->code("close q"), 1);
    EXPECT_EQ(b->code("squery -"), 600) << "it waited for the kernel";
    EXPECT_EQ(world.count("double-close"), 1u) << world.logs();
    EXPECT_TRUE(world.used_becomes(before, soon(4000)));
}

// Bare, the close that waits for kernels was over before this one began.
TEST(Cache, OutOfMemoryWaitsForNoKernelForLong) {
    SIM_ONLY("the card is small");
    SmallCard card;
    card.b.must("busy 20000");
    EXPECT_EQ(card.b.code("malloc huge 67108864"), 2);
    EXPECT_EQ(card.b.code("malloc huge 67108864"), 2);
    EXPECT_EQ(card.b.code("squery -"), 600) << "it waited for the kernel";
}

// Bare, the close of it waited for the kernel, too. An open has waited before, but only for a
// moment.
TEST(Cache, OutOfMemoryWaitsForAKernelThatAnOpenDidNotWaitFor) {
    SIM_ONLY("the card is small");
    SmallCard card;
    card.a.must("malloc other 4194304");
    card.b.must("busy 1500");
    card.a.must("free p");
    card.b.must("open r " + card.a.must("get other"));
    EXPECT_EQ(card.b.code("malloc huge 67108864"), 2);
    EXPECT_EQ(card.b.code("squery -"), 0) << "it did not wait for the kernel";
}

// The thread that ends them waits for a kernel of the context, as its destruction does.
TEST(Cache, NothingIsEndedInAContextThatIsGone) {
    auto [world, a, b] = Couple("", {{"GPUSHARE_OPEN_CACHE", "64"}});
    b.must("malloc own 4096");
    const uint64_t before = world.used();
    b.must("ctxcreate second");
    for (int i = 0; i < 30; i++) {
        const std::string name = "m" + std::to_string(i);
        a.must("malloc " + name + " 2097152");
        b.all({"open q " + a.must("get " + name), "close q"});
    }
    b.must("busy 3000");
    a.kill();
    EXPECT_EQ(b.code("ctxdestroy second", soon(10000)), 0);
    EXPECT_TRUE(world.used_becomes(before, soon(2000)));
    EXPECT_EQ(b.code("malloc other 4096"), 0);
}

// A handler of the program's leaves the driver's call by longjmp: the call never ends.
TEST(Cache, TheEndOfAContextThatWasLeftHoldsUpNothingForGood) {
    SIM_ONLY("a driver need not survive it");
    Pair pair("8", "puppet", {{"GPUSHARE_SIM_LATE_DESTROY_MS", "5000"}});
    pair.a.must("malloc other 4194304");
    const uint64_t with_both = pair.world.used();
    pair.b->must("ctxcreate second");
    EXPECT_EQ(pair.b->code("leap 200 ctxdestroy second", 3000), 0);
    pair.a.must("free p");
    pair.b->must("open r " + pair.a.must("get other"));
    EXPECT_TRUE(pair.world.used_becomes(with_both - big()));
}

// Of what a handle says the driver asks for a part: the rest makes no other memory.
TEST_F(CacheOfTwo, AnotherHandleOfWhatIsCachedEndsIt) {
    std::string other = handle;
    other[0] = other[0] == '0' ? '1' : '0';
    EXPECT_EQ(b->must("open r " + other), address);
    EXPECT_EQ(slot(), "none");
    EXPECT_EQ(b->must("read r 0 1"), "a1");
    b->must("close r");
    EXPECT_EQ(b->code("read r 0 1"), 1);
    a.must("free p");
    EXPECT_TRUE(world.used_becomes(before, soon(2000)));
}

TEST(Cache, TheDeathOfTheExporterEndsIt) {
    for (const bool killed : {true, false}) {
        Pair pair;
        if (killed)
            pair.a.kill();
        else
            pair.a.quit("return");
        EXPECT_TRUE(eventually([&] {
            const int code = pair.b->code("open q " + pair.handle);
            if (code == 0) // the kernel has not closed the file of the dead one yet
                pair.b->must("close q");
            return code == 400;
        }));
        EXPECT_TRUE(pair.world.used_becomes(pair.before, soon(2000)));
    }
}

// Of a dead exporter the driver opens the neighbours of what is open, and nothing else.
TEST(Cache, WhatItKeepsOfADeadExporterOpensNoNeighbour) {
    World world("", {{"GPUSHARE_OPEN_CACHE", "8"}});
    for (int round = 0; round < 10; round++) {
        Puppet a(world, producer()), b(world, consumer());
        a.all({"malloc p 4096", "malloc q 4096"});
        const std::string first = a.must("get p"), second = a.must("get q");
        b.must("open p " + first);
        a.kill();
        b.must("close p");
        EXPECT_EQ(b.code("open q " + second), 400);
    }
}

TEST_F(CacheOfTwo, AResetOfTheExporterEndsIt) {
    a.must("reset");
    EXPECT_EQ(b->code("open q " + handle), 1);
}

TEST_F(CacheOfTwo, AClosedPointerIsClosed) {
    EXPECT_EQ(b->code("close q"), 1);
    EXPECT_EQ(world.count("double-close"), 1u) << world.logs();
    EXPECT_EQ(b->code("free q"), 1);
    EXPECT_EQ(b->must("open q " + handle), address);
    EXPECT_EQ(b->must("read q 0 1"), "a1");
    b->all({"open q " + handle, "close q"});
    EXPECT_EQ(b->must("read q 0 1"), "a1"); // opened twice, closed once
    b->must("close q");
    EXPECT_EQ(b->code("close q"), 1);
    EXPECT_EQ(b->code("open q " + handle + " 0"), 1); // flags
}

TEST_F(CacheOfTwo, LeaksAreCountedAsWithoutIt) {
    world.environment["GPUSHARE_LOG_LEVEL"] = "info";
    EXPECT_EQ(b->quit("return"), 0);
    EXPECT_EQ(world.count("leak-open"), 0u);
    Puppet c(world, consumer());
    c.all({"open q " + handle, "close q", "open q " + handle});
    EXPECT_EQ(c.quit("return"), 0);
    const std::vector<Finding> leaks = world.findings("leak-open");
    ASSERT_EQ(leaks.size(), 1u) << world.logs();
    EXPECT_HAS(leaks[0].detail, "opened 1 time, closed 0");
}

TEST(Cache, TheOldestGoesFirst) {
    Pair pair("2");
    std::vector<std::string> handles;
    for (int i = 0; i < 3; i++) {
        const std::string name = "m" + std::to_string(i);
        pair.a.must("malloc " + name + " 2097152");
        handles.push_back(pair.a.must("get " + name));
        pair.b->all({"open q " + handles.back(), "close q"});
    }
    size_t cached = 0;
    const Json regions = pair.world.ls();
    for (const Json &region : regions.elements)
        cached += region["users"].size();
    EXPECT_EQ(cached, 2u);
}

TEST(Cache, ItsBytesAreLimited) {
    auto [world, a, b] =
        Couple("", {{"GPUSHARE_OPEN_CACHE", "8"}, {"GPUSHARE_OPEN_CACHE_BYTES", "5MiB"}});
    for (const char *name : {"small1", "small2", "small3", "large"}) {
        const bool large = std::string(name) == "large";
        a.must(std::string("malloc ") + name + (large ? " 8388608" : " 2097152"));
        b.all({"open q " + a.must(std::string("get ") + name), "close q"});
    }
    std::vector<std::string> sizes;
    const Json regions = world.ls();
    for (const Json &region : regions.elements)
        if (region["users"].size())
            sizes.push_back(region["size"].text);
    EXPECT_EQ(sizes, (std::vector<std::string>{"2097152", "2097152"}));
}

// The driver's close waits for kernels: for those of another context no close waits bare.
TEST(Cache, AFullOneEndsWhatIsOfTheContext) {
    World world("", {{"GPUSHARE_OPEN_CACHE", "1"}});
    // Memory of one exporter is open in one context only.
    Puppet a(world, producer()), other(world, producer()), b(world, consumer());
    a.must("malloc first 4194304");
    other.must("malloc second 8388608");
    b.all({"open p " + a.must("get first"), "close p", "ctxcreate other"});
    b.all({"open q " + other.must("get second"), "close q"});
    const Json regions = world.ls();
    for (const Json &region : regions.elements)
        EXPECT_EQ(region["users"].size(), region["size"].text == "4194304" ? 1u : 0u);
}

TEST(Cache, OutOfMemoryEmptiesIt) {
    SIM_ONLY("the card is small");
    SmallCard card;
    EXPECT_EQ(card.world.region()["users"].size(), 1u);
    EXPECT_EQ(card.b.code("malloc huge 67108864"), 2);
    EXPECT_EQ(card.world.region()["users"].size(), 0u);
}

// Bare, what the importer has closed is free as soon as its exporter frees it.
TEST(Cache, AnAllocationOfTheExporterWaitsForWhatIsOnlyCached) {
    SIM_ONLY("the card is small");
    auto [world, a, b] =
        Couple("", {{"GPUSHARE_OPEN_CACHE", "8"}, {"GPUSHARE_SIM_MEMORY", "64MiB"}});
    for (const bool stopped : {false, true}) {
        a.must("malloc p 41943040");
        b.all({"open q " + a.must("get p"), "close q"});
        if (stopped)
            b.stop();
        else
            b.must("busy 20"); // it lets go when its kernels end
        a.must("free p");
        if (stopped) {
            EXPECT_EQ(world.state(), "closing");
        }
        EXPECT_EQ(a.code("malloc r 41943040", 2000), stopped ? 2 : 0);
        EXPECT_EQ(a.code("malloc s 41943040", 2000), 2);
        a.code("free r");
    }
    b.resume();
    EXPECT_TRUE(eventually([&, &a = a] { return a.code("malloc r 41943040") == 0; }));
}

// The driver refuses to open memory during a close of it, which here only gpushare makes.
TEST(Cache, AnOpenWaitsForTheCloseOfTheOldest) {
    auto [world, a, b] = Couple("", {{"GPUSHARE_OPEN_CACHE", "1"}, {"GPUSHARE_SIM_MAPPED", "1"}});
    std::string handles;
    for (const char *name : {"p", "q", "r"}) {
        a.must(std::string("malloc ") + name + " 4194304");
        handles += " " + a.must(std::string("get ") + name);
    }
    EXPECT_EQ(b.must("threads 3 4000 open" + handles, 60000), "0");
}

TEST_F(CacheOfTwo, ASecondContextGetsWhatTheFirstHasClosed) {
    b->all({"ctxcreate second", "open r " + handle});
    EXPECT_EQ(b->must("read r 0 1"), "a1");
    EXPECT_EQ(world.count("open-second-context"), 0u);
    b->all({"close r", "ctxdestroy second"});
    EXPECT_TRUE(eventually([&] { return slot() == "none"; }));
    a.must("free p");
    EXPECT_TRUE(world.used_becomes(before, soon(2000)));
}

TEST(Cache, ARuleGetsInASecondContextWhatTheFirstHasClosed) {
    RuledPair pair;
    pair.b->all({"ctxcreate second", "malloc r 4194304"});
    EXPECT_EQ(pair.b->must("read r 0 1"), "a1");
    EXPECT_TRUE(pair.world.findings().empty()) << pair.world.logs();
}

TEST_F(CacheOfTwo, AResetEmptiesIt) {
    b->must("reset");
    EXPECT_EQ(slot(), "none");
    EXPECT_EQ(world.count("reset-with-shared"), 0u);
    EXPECT_EQ(b->code("open q " + handle), 0);
    EXPECT_EQ(b->must("read q 0 1"), "a1");
}

TEST_F(CacheOfTwo, AForkedChildHasNone) {
    b->must("fork open q " + handle);
    EXPECT_EQ(slot(), "cached");
    EXPECT_EQ(b->must("open q " + handle), address);
    EXPECT_EQ(b->must("read q 0 1"), "a1");
}

TEST(Cache, NotWithoutItsOptionNorInAudit) {
    for (const bool audit : {false, true}) {
        World world;
        if (audit) {
            world.environment["GPUSHARE_MODE"] = "audit";
            world.environment["GPUSHARE_OPEN_CACHE"] = "8";
        }
        Puppet a(world, producer()), b(world, consumer());
        a.must("malloc p 4194304");
        b.all({"open q " + a.must("get p"), "close q"});
        EXPECT_EQ(world.region()["users"].size(), 0u) << audit;
        EXPECT_EQ(b.must("tasks"), a.must("tasks"));
    }
}

TEST_F(CacheOfTwo, ClosingEveryDescriptorOnlyCostsTheCache) {
    b->all({"hoard", "unhoard", "open q " + handle});
    EXPECT_EQ(b->must("read q 0 1"), "a1");
    b->must("close q");
    a.must("free p");
    EXPECT_TRUE(world.used_becomes(before, soon(2000)));
    EXPECT_EQ(b->code("open q " + handle), 1);
}

TEST(Cache, ARuleImportsWhatIsCached) {
    RuledPair pair;
    pair.b->must("malloc r 4194304");
    EXPECT_EQ(pair.b->must("read r 0 1"), "a1");
    EXPECT_FALSE(pair.world.region("frames")["users"][0]["cached"].truth);
    pair.b->must("free r");
    EXPECT_EQ(pair.world.region("frames")["users"].size(), 0u);
}

TEST(Cache, ManyThreadsOpenAndCloseBesideFrees) {
    Pair pair("2");
    std::vector<std::string> handles{pair.handle};
    for (int i = 0; i < 40; i++) {
        pair.b->send("threads 4 200 use " + handles.back());
        const std::string name = "n" + std::to_string(i);
        pair.a.must("malloc " + name + " 2097152");
        handles.push_back(pair.a.must("get " + name));
        const Reply reply = pair.b->receive(20000);
        EXPECT_EQ(reply[0], "0") << reply.text;
        pair.a.must(i ? "free n" + std::to_string(i - 1) : "free p");
        EXPECT_EQ(pair.b->code("open q " + handles[static_cast<size_t>(i)]), 1);
    }
    EXPECT_EQ(pair.world.count("free-while-open"), 0u) << pair.world.logs();
    pair.a.must("free n39");
    EXPECT_TRUE(pair.world.used_becomes(pair.before, soon(2000)));
}

} // namespace
