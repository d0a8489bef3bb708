// ordering_test.cpp - close before free where it was found wanting: freed memory that comes back,
// addresses that are given out again, states that others read too early.
#include "scenario/pair.hpp"

namespace {

namespace fs = std::filesystem;

TEST(FreedMemory, CannotBeExportedAgain) {
    for (const char *build : builds) {
        World world;
        Exporter a(world, producer(build));
        Puppet b(world, consumer(build)), c(world, consumer(build));
        b.must("open q " + a.handle);
        const uint64_t held = world.used();
        a.must("free p");
        EXPECT_EQ(a.code("get p"), 1) << build;
        EXPECT_EQ(a.code("get p 4096"), 1) << build;
        EXPECT_EQ(world.state(), "closing") << build;
        EXPECT_EQ(c.code("open r " + a.handle), gone()) << build;
        EXPECT_EQ(a.code("free p"), 1) << build;
        EXPECT_EQ(world.count("double-free"), 1u) << build;
        EXPECT_EQ(world.count("export-not-capable"), 1u) << build;
        b.must("close q");
        EXPECT_TRUE(world.used_becomes(held - big())) << build;
        a.all({"malloc other " + std::to_string(big()), "get other", "free other"});
    }
}

TEST(FreedMemory, ThatIsAResultCannotBeExportedAgain) {
    auto [world, a, b] = Couple(rule("result", "producer", "export", "ready = free\n") +
                                rule("result", "consumer*", "import", "wait = 5s\n"));
    a.all({"malloc p 4194304", "fill p 0x31 4194304", "free p"});
    EXPECT_EQ(a.code("get p"), 1);
    EXPECT_EQ(a.code("free p"), 1);
    b.must("malloc q 4194304");
    EXPECT_EQ(b.must("read q 0 2"), "3131");
    b.must("free q");
    EXPECT_TRUE(
        eventually([&, &world = world] { return world.state("result") == "none"; }, soon(3000)));
}

// The driver has freed a deferred region, and given its address out, before its free returns.
TEST(FreedMemory, WhoseAddressIsAnothersAlreadyIsNotInItsWay) {
    SIM_ONLY("a driver cannot be slowed");
    World world("", {{"GPUSHARE_SIM_LATE_FREE_MS", "300"}});
    Exporter a(world);
    world.environment.erase("GPUSHARE_SIM_LATE_FREE_MS");
    Puppet b(world, consumer());
    b.must("open q " + a.handle);
    const std::string address = a.must("value p");
    const uint64_t held = world.used();
    a.must("free p");
    b.must("close q");
    ASSERT_TRUE(world.used_becomes(held - big()));
    a.must("pool other " + std::to_string(big()));
    ASSERT_EQ(a.must("value other"), address);
    EXPECT_EQ(a.code("unpool other"), 0);
    EXPECT_EQ(world.count("double-free"), 0u);
    EXPECT_TRUE(world.used_becomes(held - big()));
}

TEST(Refuse, NeverHidesLiveMemoryFromOthers) {
    World world("", {{"GPUSHARE_ON_FREE", "refuse"}});
    Exporter a(world);
    Puppet b(world, consumer()), c(world, consumer());
    b.must("open q " + a.handle);
    c.must("info");
    c.send("threads 1 400 open " + a.handle);
    int frees = 0;
    while (!c.answers(0) && frees < 4000) {
        EXPECT_EQ(a.code("free p"), 800);
        frees++;
    }
    EXPECT_GT(frees, 10);
    EXPECT_EQ(c.receive(20000).number(0), 0u) << "opens of live memory failed";
    EXPECT_EQ(world.count("open-stale"), 0u);
}

// The driver refuses an open during another thread's open or close of the same memory, with 208.
TEST(AlreadyMapped, IsTheProgramsToSeeAndLeavesNothing) {
    SIM_ONLY("a card answers so three times in ten thousand");
    World world("", {{"GPUSHARE_SIM_MAPPED", "1"}});
    Exporter a(world);
    Puppet b(world, consumer());
    const std::string threads = "threads 8 400 open " + a.handle;
    EXPECT_TRUE(eventually([&] { return b.must(threads, 60000) != "0"; })); // they may not meet
    EXPECT_EQ(world.region()["users"].size(), 0u);
    a.must("free p");
    for (const Finding &finding : world.findings())
        EXPECT_TRUE(finding.id == "double-open" || finding.id == "open-place-held") << finding.id;
}

// Where it cannot be known whether others have it open, it counts as open.
TEST(OutOfDescriptors, AFreeStillWaitsForItsImporters) {
    for (const char *policy : {"defer", "wait", "refuse"}) {
        World world("", {{"GPUSHARE_ON_FREE", policy}, {"GPUSHARE_FREE_TIMEOUT", "1s"}});
        Exporter a(world);
        Puppet b(world, consumer()), c(world, consumer());
        b.must("open q " + a.handle);
        const uint64_t held = world.used();
        a.must("hoard");
        EXPECT_EQ(a.code("free p"), std::string(policy) == "refuse" ? 800 : 0) << policy;
        a.all({"unhoard", "malloc other " + std::to_string(big()), "fill other 0x77 4096"});
        a.must("get other");
        EXPECT_EQ(b.must("read q 0 2"), "a1a1") << policy;
        if (std::string(policy) == "refuse") {
            c.all({"open r " + a.handle, "close r"});
            continue;
        }
        EXPECT_TRUE(eventually([&] { return world.state() == "closing"; }, soon(3000))) << policy;
        EXPECT_EQ(c.code("open r " + a.handle), gone()) << policy;
        b.must("close q");
        EXPECT_TRUE(world.used_becomes(held, soon(3000))) << policy; // p gone, other there
        // without a descriptor a report goes to stderr
        EXPECT_HAS(a.errors(), "free-while-open") << policy;
    }
}

// So many processes that the exporter has `r` locked by whoever opens it, rather than look at each.
struct Crowd {
    Crowd() : a(world), b(world, consumer()) {
        for (unsigned i = 0; i < 16; i++) {
            others.push_back(std::make_unique<Puppet>(world, consumer()));
            others.back()->must("open q " + a.handle);
            others.back()->must("close q");
        }
        b.all({"open q " + a.handle, "close q"});
        a.must("free p"); // by which it learns of them
        handle = make("r", big());
        before = world.used();
    }
    std::string make(const std::string &name, uint64_t size) {
        a.all({"malloc " + name + " " + std::to_string(size), "fill " + name + " 0xa1 4096"});
        a.must("sync");
        return a.must("get " + name);
    }
    bool is_freed(int ms = 10000) {
        return world.used_becomes(before - big(), ms);
    }
    bool has_unlocked() {
        return fs::exists(world.store().path + std::string("/unlocked"));
    }
    World world;
    Exporter a;
    Puppet b;
    std::vector<std::unique_ptr<Puppet>> others;
    std::string handle;
    uint64_t before = 0;
};

TEST(Crowd, IsNotLookedAtForWhatNobodyHasOpen) {
    Crowd crowd;
    const std::string procs = crowd.world.store().path + std::string("/procs");
    crowd.b.all({"open q " + crowd.handle, "close q"});
    fs::rename(procs, procs + "-away"); // now it cannot be known who has what
    crowd.a.must("free r");
    EXPECT_EQ(crowd.world.used(), crowd.before - big());
    fs::rename(procs + "-away", procs);
    EXPECT_EQ(crowd.world.findings().size(), 0u);
    EXPECT_FALSE(crowd.has_unlocked());
}

TEST(Crowd, IsWaitedForUntilItHasClosedOrIsDead) {
    Crowd crowd;
    crowd.b.must("open q " + crowd.handle);
    crowd.others[7]->must("open q " + crowd.handle);
    crowd.a.must("free r");
    EXPECT_EQ(crowd.others[8]->code("open q " + crowd.handle), gone());
    crowd.b.must("close q");
    EXPECT_EQ(crowd.others[7]->must("read q 0 2"), "a1a1");
    EXPECT_EQ(crowd.world.used(), crowd.before);
    crowd.others[7]->kill();
    EXPECT_TRUE(crowd.is_freed());
}

// An importer that cannot lock a record says so in another way.
TEST(Crowd, WithoutDescriptorsIsWaitedForAllTheSame) {
    Crowd crowd;
    crowd.b.all({"hoard", "open q " + crowd.handle, "unhoard"});
    crowd.a.must("free r");
    EXPECT_EQ(crowd.b.must("read q 0 2"), "a1a1");
    EXPECT_EQ(crowd.world.used(), crowd.before);
    EXPECT_TRUE(crowd.has_unlocked());
    crowd.b.must("close q");
    EXPECT_TRUE(crowd.is_freed());
}

TEST(Crowd, WithMoreRegionsThanAProcessLocksIsWaitedFor) {
    Crowd crowd;
    for (unsigned i = 0; i < 4100; i++) {
        const std::string name = std::to_string(i);
        crowd.a.must("malloc m" + name + " 4096");
        crowd.b.must("open o" + name + " " + crowd.a.must("get m" + name));
    }
    crowd.b.must("open q " + crowd.handle);
    EXPECT_TRUE(crowd.has_unlocked());
    crowd.before = crowd.world.used();
    crowd.a.all({"free r", "free m0"});
    EXPECT_EQ(crowd.b.must("read q 0 2"), "a1a1");
    EXPECT_EQ(crowd.world.used(), crowd.before);
}

TEST(DirectoryGone, AFreedRegionIsHeld) {
    World world;
    Exporter a(world);
    Puppet b(world, consumer());
    b.must("open q " + a.handle);
    const uint64_t held = world.used();
    command({"rm", "-rf", world.store().path});
    EXPECT_EQ(a.code("free p"), 0);
    EXPECT_EQ(b.must("read q 0 2"), "a1a1");
    b.must("close q");
    EXPECT_FALSE(world.used_becomes(held - big(), 1500));
    EXPECT_EQ(world.count("free-while-open"), 1u);
}

// The handler may have interrupted malloc: nothing on the way from _exit may want its lock.
TEST(Handler, ThatEndsTheProcessEndsIt) {
    for (int round = 0; round < 10; round++) {
        auto [world, a, b] = Couple();
        for (int i = 0; i < 20; i++) {
            const std::string name = std::to_string(i);
            a.must("malloc p" + name + " 4096");
            b.must("open q" + name + " " + a.must("get p" + name));
        }
        a.send("alarm_exit " + std::to_string(2000 + 137 * round));
        EXPECT_EQ(a.wait(5000), 7) << "round " << round;
    }
}

// Small allocations get equal handles again: what is evicted is the tombstone, not the live region.
TEST(Tombstones, NeverTakeALiveRegionsRecordAway) {
    auto [world, a, b] = Couple();
    a.must("malloc keep 4096"); // holds the block
    a.must("malloc p 4096");
    const std::string first = a.must("get p");
    a.all({"free p", "malloc p 4096"});
    const std::string second = a.must("get p");
    SKIP_IF(first != second, "this driver gives another handle");
    a.must("threads 1 1100 export 4096", 60000);
    EXPECT_EQ(world.ls().size(), 1u);
    b.must("open q " + second);
    a.must("free p");
    EXPECT_EQ(world.state(), "closing");
    b.must("close q");
}

// An old handle opens what its exporter has there now, as bare, where no record says that it is
// old. A rule's import of that is held by its own name all the same.
TEST(RulesImport, IsHeldThoughAnOldHandleHasItOpenToo) {
    auto [world, a, b] =
        Couple("[region f-{n}]\nprogram = producer\nrole = export\nsize = 4MiB\nindex = *\n"
               "[region f-1]\nprogram = consumer*\nrole = import\nsize = 4MiB\nwait = 5s\n");
    a.must("malloc p 4194304");
    const std::string old = a.must("get p");
    a.must("free p");
    a.must("threads 1 1100 export 4096", 60000); // their records take the place of that one's
    a.must("malloc p 4194304");
    const std::string now = a.must("get p");
    const int opened = b.code("open x " + old);
    SKIP_IF(opened != 0, "this driver has given it another address");
    b.must("malloc q 4194304");
    EXPECT_EQ(b.must("get q"), now);
    a.must("free p");
    EXPECT_EQ(world.state("f-1"), "closing");
    b.all({"close x", "free q"});
    EXPECT_TRUE(eventually([&, &world = world] { return world.ls().size() == 0; }));
}

// The wait for the device before a rule's import is closed must leave other threads' captures
// alone.
TEST(RulesImport, ItsFreeEndsNoCapture) {
    auto [world, a, b] = Couple(rule("frames", "producer", "export") +
                                rule("frames", "consumer*", "import", "wait = 5s\n"));
    a.must("malloc p 4194304");
    b.must("malloc q 4194304");
    EXPECT_EQ(b.must("free-relaxed q"), "0");
}

// As bare: what others have open is not freed where a capture forbids frees, and can be freed
// later.
TEST(Defer, WhereACaptureForbidsAFreeItIsNotCarriedOut) {
    for (const bool shared : {false, true}) {
        auto [world, a, b] = Couple();
        a.all({"malloc p 4194304", "stream s 1"});
        if (shared)
            b.must("open q " + a.must("get p"));
        const std::string was = world.state();
        a.must("capture s 0");
        EXPECT_EQ(a.code("free p"), 900) << shared;
        EXPECT_EQ(a.code("captured s g"), 901) << shared;
        EXPECT_EQ(world.state(), was) << shared;
        EXPECT_EQ(a.code("free p"), 0) << shared;
        EXPECT_EQ(world.state(), shared ? "closing" : "none") << shared;
    }
}

} // namespace
