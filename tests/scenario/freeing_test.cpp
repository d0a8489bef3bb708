// freeing_test.cpp - memory that is freed, or whose owner ends, while others have it open.
#include "scenario/pair.hpp"

#include <sys/inotify.h>

namespace {

void set(World &world, const std::string &key, const std::string &value) {
    world.environment["GPUSHARE_" + key] = value;
}

struct Alone {
    World world;
    Exporter a{world};
};

TEST(Defer, AFreeSucceedsAtOnceAndTheBytesStay) {
    for (const char *build : builds) {
        World world;
        Exporter a(world, producer(build));
        Importer b(world, a, consumer(build));
        const uint64_t held = world.used();
        const int64_t start = now_ms();
        EXPECT_EQ(a.code("free p"), 0) << build;
        EXPECT_LT(now_ms() - start, soon(500));
        EXPECT_EQ(world.state(), "closing") << build;
        a.must("malloc other 4096"); // does not land in it
        a.must("fill other 0 4096");
        EXPECT_EQ(b.must("read q 0 4"), "a1a1a1a1") << build;
        EXPECT_TRUE(world.used_becomes(on_gpu() ? held : held + 2 * MiB));
        a.must("free other");
        b.must("close q");
        EXPECT_TRUE(world.used_becomes(held - big(), soon(2000))) << build;
        EXPECT_TRUE(eventually([&] { return world.state() == "none"; }, soon(2000)));
        const std::vector<Finding> found = world.findings();
        ASSERT_EQ(found.size(), 1u) << build;
        EXPECT_EQ(found[0].id, "free-while-open");
        EXPECT_EQ(found[0].api, !hip().empty()                   ? "hipFree"
                                : std::string(build) == "puppet" ? "cudaFree"
                                                                 : "cuMemFree");
        EXPECT_EQ(found[0].others, std::vector<uint32_t>{static_cast<uint32_t>(b.pid)});
        EXPECT_GT(found[0].stack, 0u);
    }
}

TEST(Defer, AHandleOfFreedMemoryIsRefused) {
    auto [world, a] = Alone();
    Puppet b(world, consumer()), c(world, consumer());
    b.must("open q " + a.handle);
    a.must("free p");
    EXPECT_EQ(c.code("open r " + a.handle), gone());
    const std::vector<Finding> found = world.findings("open-stale");
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].pid, static_cast<uint32_t>(c.pid));
    EXPECT_EQ(found[0].level, "error");
    EXPECT_EQ(b.must("read q 0 1"), "a1");
}

TEST(Defer, TheDeathOfTheImporterFreesTheMemory) {
    auto [world, a, b] = Lent();
    const uint64_t held = world.used();
    a.must("free p");
    b.kill();
    EXPECT_TRUE(world.used_becomes(held - big(), soon(2000)));
    EXPECT_TRUE(eventually([&, &world = world] { return world.state() == "none"; }, soon(2000)));
}

TEST(Defer, TheLastOfTwoImportersCounts) {
    auto [world, a] = Alone();
    Importer b(world, a), c(world, a);
    const uint64_t held = world.used();
    a.must("free p");
    EXPECT_EQ(world.findings("free-while-open")[0].others.size(), 2u);
    b.must("close q");
    usleep(100000);
    EXPECT_EQ(world.state(), "closing");
    EXPECT_EQ(c.must("read q 0 1"), "a1");
    c.must("close q");
    EXPECT_TRUE(world.used_becomes(held - big(), soon(2000)));
}

TEST(Defer, EveryOpenNeedsItsClose) {
    SKIP_IF(hip() == "hip6", "each open gives a pointer of its own, and that needs the close");
    auto [world, a, b] = Lent();
    b.must("open q " + a.handle);
    EXPECT_EQ(world.count("double-open"), 1u);
    b.must("open q " + a.handle);
    EXPECT_EQ(world.count("double-open"), 1u); // not each time
    a.must("free p");
    b.all({"close q", "close q"});
    usleep(100000);
    EXPECT_EQ(world.state(), "closing");
    EXPECT_EQ(b.must("read q 0 1"), "a1");
    b.must("close q");
    EXPECT_TRUE(eventually([&, &world = world] { return world.state() == "none"; }, soon(2000)));
    EXPECT_EQ(b.code("close q"), 1);
}

TEST(Defer, SynchronisesAsAFreeDoes) {
    auto [world, a, b] = Lent();
    const int64_t start = now_ms();
    a.all({"busy 400", "free p"});
    EXPECT_GE(now_ms() - start, 390);
}

TEST(Defer, AStoppedImporterHoldsUpNobody) {
    auto [world, a, b] = Lent();
    b.stop();
    const int64_t start = now_ms();
    a.all({"free p", "malloc x 4096", "free x"});
    EXPECT_LT(now_ms() - start, soon(1000));
    const Json region = world.region();
    EXPECT_EQ(region["state"].text, "closing");
    EXPECT_EQ(region["users"][0]["pid"].number, b.pid);
    b.resume();
    EXPECT_EQ(b.must("read q 0 1"), "a1");
    b.must("close q");
    EXPECT_TRUE(eventually([&, &world = world] { return world.state() == "none"; }, soon(2000)));
}

TEST(Defer, ARuleImportIsHeldAsAnyOther) {
    auto [world, a, b] = Couple(FRAMES);
    a.all({"malloc p 4194304", "fill p 0xb2 10", "sync"});
    b.must("malloc q 4194304");
    a.must("free p");
    EXPECT_EQ(b.must("read q 0 1"), "b2");
    EXPECT_EQ(world.entries("names"), 0u);
    b.must("free q");
    EXPECT_TRUE(
        eventually([&, &world = world] { return world.state("frames") == "none"; }, soon(2000)));
}

// Programs that share by a rule do not know of each other.
TEST(OwnerEnds, BeforeAnImporterByARuleIsNoWarning) {
    for (const char *level : {"warning", "info"}) {
        World world(FRAMES, {{"GPUSHARE_LOG_LEVEL", level}});
        const unsigned said = *level == 'i';
        Puppet a(world, producer()), b(world, consumer());
        a.all({"malloc p 4194304", "fill p 0xb2 10", "sync"});
        b.must("malloc q 4194304");
        a.must("free p");
        EXPECT_EQ(a.quit("return"), 0);
        EXPECT_EQ(b.must("read q 0 1"), "b2");
        EXPECT_EQ(world.count("free-while-open"), said) << world.logs();
        EXPECT_EQ(world.count("exit-while-open"), said) << world.logs();
    }
}

// What the user asked for, and did not get.
TEST(OwnerEnds, WhatARuleSharesAccusesWhereAFreeFailsOrLingerIsOver) {
    auto [world, a, b] =
        Couple("[gpushare]\non_free = refuse\nlinger = 100ms\n" + std::string(FRAMES));
    a.must("malloc p 4194304");
    b.must("malloc q 4194304");
    EXPECT_NE(a.code("free p"), 0);
    EXPECT_EQ(a.quit("return"), 0);
    EXPECT_EQ(world.count("free-while-open"), 1u) << world.logs();
    EXPECT_EQ(world.count("exit-while-open"), 1u) << world.logs();
}

TEST(Defer, OutOfMemoryFreesWhatNobodyHoldsAnyMore) {
    SIM_ONLY("a small device");
    World world("", {{"GPUSHARE_SIM_MEMORY", "64MiB"}});
    Exporter a(world, producer(), 48 * MiB);
    Importer b(world, a);
    a.must("free p");
    EXPECT_EQ(a.code("malloc x 50331648"), 2); // held: nothing can be done
    b.must("close q");
    for (int i = 0; i < 20; i++) { // at once, not when the reaper comes round
        a.must("malloc x 50331648");
        const std::string handle = a.must("get x");
        b.must("open q " + handle);
        a.must("free x");
        b.must("close q");
    }
}

TEST(Defer, TheReaperIsOneThreadAndEnds) {
    World world;
    Exporter a(world);
    Puppet b(world, consumer());
    const int before = std::stoi(a.must("tasks"));
    const int descriptors = std::stoi(a.must("fds"));
    b.must("open q " + a.handle);
    a.must("malloc r 4194304");
    b.must("open r " + a.must("get r"));
    a.all({"free p", "free r"});
    EXPECT_EQ(std::stoi(a.must("tasks")), before + 1);
    b.all({"close q", "close r"});
    EXPECT_TRUE(eventually([&] { return std::stoi(a.must("tasks")) == before; }, 3000));
    EXPECT_EQ(std::stoi(a.must("fds")), descriptors);
}

// --- the other ways to free ---

TEST(Wait, AFreeBlocksUntilTheImporterCloses) {
    auto [world, a, b] = Lent("", {{"GPUSHARE_ON_FREE", "wait"}});
    a.send("free p");
    EXPECT_FALSE(a.answers(300));
    EXPECT_EQ(b.must("read q 0 1"), "a1");
    b.must("close q");
    EXPECT_EQ(a.receive(soon(1500)).code, 0);
    EXPECT_EQ(world.state(), "none");
    EXPECT_EQ(world.count("free-while-open"), 1u);
}

TEST(Wait, AfterItsTimeTheFreeIsDeferred) {
    auto [world, a, b] =
        Lent("", {{"GPUSHARE_ON_FREE", "wait"}, {"GPUSHARE_FREE_TIMEOUT", "300ms"}});
    const int64_t start = now_ms();
    a.must("free p");
    EXPECT_GE(now_ms() - start, 290);
    EXPECT_LT(now_ms() - start, soon(2000));
    EXPECT_EQ(world.state(), "closing");
    EXPECT_EQ(b.must("read q 0 1"), "a1");
    b.must("close q");
    EXPECT_TRUE(eventually([&, &world = world] { return world.state() == "none"; }, soon(2000)));
    EXPECT_EQ(world.count("free-while-open"), 1u);
}

TEST(Wait, TheDeathOfTheImporterEndsIt) {
    auto [world, a, b] = Lent("", {{"GPUSHARE_ON_FREE", "wait"}});
    a.send("free p");
    EXPECT_FALSE(a.answers(200));
    b.kill();
    EXPECT_EQ(a.receive(soon(2500)).code, 0);
}

TEST(Refuse, TheMemoryStaysUsableUntilALaterFree) {
    World world("", {{"GPUSHARE_ON_FREE", "refuse"}});
    Exporter a(world);
    Puppet b(world, consumer()), c(world, consumer());
    b.must("open q " + a.handle);
    EXPECT_EQ(a.code("free p"), 800);
    EXPECT_EQ(world.count("free-while-open"), 1u);
    EXPECT_EQ(world.state(), "ready");
    EXPECT_EQ(a.must("read p 0 1"), "a1");
    EXPECT_EQ(meaning(a.must("get p")), meaning(a.handle));
    c.must("open r " + a.handle);
    b.must("close q");
    EXPECT_EQ(a.code("free p"), 800);
    c.must("close r");
    EXPECT_EQ(a.code("free p"), 0);
    EXPECT_EQ(world.state(), "none");
    EXPECT_EQ(a.code("free p"), 1);
}

TEST(Refuse, KeepsTheNameOfARegion) {
    World world(FRAMES, {{"GPUSHARE_ON_FREE", "refuse"}});
    Puppet a(world, producer()), b(world, consumer()), c(world, consumer());
    a.must("malloc p 4194304");
    b.must("malloc q 4194304");
    EXPECT_EQ(a.code("free p"), 800);
    c.must("malloc q 4194304");
    EXPECT_EQ(world.region("frames")["users"].size(), 2u);
}

TEST(Allow, FreesAndOnlyReports) {
    auto [world, a, b] = Lent("", {{"GPUSHARE_ON_FREE", "allow"}});
    EXPECT_EQ(a.code("free p"), 0);
    EXPECT_EQ(world.count("free-while-open"), 1u);
    EXPECT_EQ(world.state(), "freed");
    EXPECT_EQ(b.must("read q 0 1"), "a1"); // as bare CUDA
    b.must("close q");
    EXPECT_EQ(world.state(), "none");
}

// --- freed twice, stale, unknown ---

TEST(DoubleFree, IsTheErrorItAlwaysWasAndAReport) {
    for (const char *build : builds) {
        World world;
        Puppet a(world, producer(build));
        a.all({"malloc p 4194304", "free p"});
        EXPECT_EQ(a.code("free p"), 1) << build;
        EXPECT_EQ(world.count("double-free"), 1u) << build;
        EXPECT_EQ(a.code("freeat 1234000"), 1) << build; // never was one
        EXPECT_EQ(a.code("freeat 0"), 0) << build;
        EXPECT_EQ(world.count("free-unknown"), 1u) << build;
        EXPECT_EQ(world.findings().size(), 2u) << build;
    }
}

TEST(DoubleFree, OfExportedMemory) {
    auto [world, a] = Alone();
    a.must("free p");
    EXPECT_EQ(a.code("free p"), 1);
    EXPECT_EQ(world.count("double-free"), 1u);
}

// The driver waits for a kernel before it frees what was deferred. A second free waits, too, but
// the program's handlers run: this one leaves it.
TEST(DoubleFree, WhileTheFirstIsCarriedOutLetsSignalsIn) {
    SIM_ONLY("a driver need not survive it");
    auto [world, a, b] = Lent();
    a.all({"free p", "busy 5000"});
    b.must("close q");
    a.must("sleep 200");
    EXPECT_EQ(a("leap 200 free p", 3000).text.substr(0, 1), "0");
}

TEST(DoubleFree, WhileTheFirstIsDeferred) {
    for (const char *build : builds) {
        World world;
        Exporter a(world, producer(build));
        Importer b(world, a);
        a.must("free p");
        EXPECT_EQ(a.code("free p"), 1) << build;
        EXPECT_EQ(world.count("double-free"), 1u) << build;
        EXPECT_EQ(b.must("read q 0 1"), "a1") << build;
        b.must("close q");
        EXPECT_TRUE(eventually([&] { return world.state() == "none"; }, soon(2000)));
        EXPECT_EQ(a.code("free p"), 1) << build;
    }
}

TEST(DoubleFree, AnAddressThatIsAllocatedAgainIsNotFreed) {
    World world;
    Puppet a(world);
    for (int i = 0; i < 100; i++) {
        a.all({"malloc p 4194304", "free p"});
    }
    EXPECT_EQ(world.findings().size(), 0u);
}

// How often the record of any region was opened, written and closed.
size_t writes_during(World &world, const std::function<void()> &what) {
    const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    inotify_add_watch(watch, (std::string(world.store().path) + "/regions").c_str(),
                      IN_MODIFY | IN_CLOSE_WRITE);
    what();
    alignas(inotify_event) char bytes[4096];
    const ssize_t size = read(watch, bytes, sizeof(bytes));
    size_t count = 0;
    for (ssize_t at = 0; at < size;) {
        const auto *event = reinterpret_cast<const inotify_event *>(bytes + at);
        count += (event->mask & IN_CLOSE_WRITE) != 0;
        at += static_cast<ssize_t>(sizeof(*event) + event->len);
    }
    close(watch);
    return count;
}

TEST(Stale, OneWriteTellsThatMemoryIsFreedWhichNobodyHolds) {
    World world;
    Exporter a(world);
    Puppet b(world, consumer());
    EXPECT_EQ(writes_during(world, [&] { a.must("free p"); }), 1u);
    EXPECT_EQ(b.code("open q " + a.handle), gone());
    EXPECT_EQ(world.count("open-stale"), 1u);
}

// Bare CUDA opens whatever lies at the address now (driver-truth, row 11).
TEST(Stale, AHandleDoesNotOpenTheNextAllocation) {
    auto [world, a] = Alone();
    Puppet b(world, consumer());
    a.all({"free p", "malloc p2 " + std::to_string(big()), "fill p2 0x99 10", "sync"});
    EXPECT_EQ(a.must("value p2"), a.must("value p"));
    const std::string newer = a.must("get p2");
    EXPECT_EQ(b.code("open q " + a.handle), gone());
    EXPECT_EQ(world.count("open-stale"), 1u);
    b.must("open q " + newer);
    EXPECT_EQ(b.must("read q 0 1"), "99");
    EXPECT_EQ(world.findings().size(), 1u);
}

TEST(Stale, TheNewest1024TombstonesStay) {
    World world;
    Puppet a(world), b(world, consumer());
    std::vector<std::string> handles;
    for (int i = 0; i < 1030; i++) {
        a.must("malloc p 4096");
        handles.push_back(a.must("get p"));
        a.must("free p");
    }
    EXPECT_EQ(world.entries("regions"), 0u);
    EXPECT_EQ(world.entries("freed"), 1024u);
    EXPECT_EQ(b.code("open q " + handles.back()), gone());
    EXPECT_EQ(world.count("open-stale"), 1u);
    EXPECT_EQ(b.code("open q " + handles.front()), gone()); // forgotten: the driver's own answer
    EXPECT_EQ(world.count("open-stale"), 1u);
    EXPECT_EQ(world.ls().size(), 0u);
    a.quit("return");
    b.quit("return");
    EXPECT_EQ(world.entries("freed"), 0u);
}

// 4,096 of all: of 8 processes each keeps 512.
TEST(Stale, ManyProcessesKeepFewerTombstonesEach) {
    World world;
    std::vector<std::unique_ptr<Puppet>> all;
    for (int i = 0; i < 8; i++)
        all.push_back(std::make_unique<Puppet>(world));
    for (const auto &one : all) // from now on all are there
        one->all({"malloc p 4096", "get p"});
    for (int i = 0; i < 600; i++) {
        all[0]->must("malloc q 4194304");
        all[0]->must("get q");
        all[0]->must("free q");
    }
    EXPECT_EQ(world.entries("freed"), 512u);
    EXPECT_EQ(world.ls().size(), 8u);
}

// ls and its like do not read the folder, --all and show do; gc removes what a dead process left.
TEST(Stale, OfFreedRegionsOnlyThoseAreReadThatAreShown) {
    World world;
    Puppet a(world), b(world, consumer());
    a.must("malloc p 4194304");
    const std::string stale = a.must("get p");
    a.must("free p");
    ASSERT_EQ(world.entries("freed"), 1u);
    EXPECT_EQ(world.tool({"ls", "--json"}).out.find("freed"), std::string::npos);
    EXPECT_NE(world.tool({"ls", "--all", "--json"}).out.find("freed"), std::string::npos);
    EXPECT_NE(world.tool({"show", world.files("freed")[0]}).out.find("freed"), std::string::npos);
    EXPECT_EQ(b.code("open q " + stale), gone());
    EXPECT_EQ(world.count("open-stale"), 1u);
    a.kill();
    EXPECT_EQ(world.tool({"gc"}).status, 0);
    EXPECT_EQ(world.entries("freed"), 0u);
}

TEST(DeadOwner, AHandleOfADeadProcess) {
    auto [world, a] = Alone();
    Puppet b(world, consumer());
    a.kill();
    EXPECT_EQ(b.code("open q " + a.handle), dead());
    const std::vector<Finding> found = world.findings();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].id, "open-dead-owner");
    EXPECT_EQ(found[0].others, std::vector<uint32_t>{static_cast<uint32_t>(a.pid)});
}

TEST(DeadOwner, AlsoWhenItEndedOrderly) {
    auto [world, a] = Alone();
    Puppet b(world, consumer()), c(world, consumer());
    c.must("open q " + a.handle); // somebody still has it: the record stays
    a.quit("return");
    EXPECT_EQ(b.code("open q " + a.handle), dead());
    EXPECT_EQ(world.count("open-dead-owner"), 1u) << world.logs();
}

// --- the owner ends ---

TEST(OwnerDies, ImportersKeepTheBytesAndGcKeepsTheRecord) {
    auto [world, a, b] = Lent();
    const uint64_t held = world.used();
    a.kill();
    EXPECT_EQ(b.must("read q 0 1"), "a1");
    EXPECT_EQ(world.state(), "orphaned");
    EXPECT_EQ(world.tool({"gc"}).status, 0);
    EXPECT_EQ(world.state(), "orphaned");
    b.must("close q");
    EXPECT_TRUE(world.used_becomes(held - big(), soon(2000)));
    EXPECT_EQ(world.tool({"gc"}).status, 0);
    EXPECT_EQ(world.entries("regions"), 0u);
    EXPECT_EQ(world.entries("procs"), 1u);
    EXPECT_EQ(b.quit("return"), 0);
    EXPECT_EQ(world.entries("procs"), 0u);
}

TEST(OwnerEnds, IsReportedWhenOthersHoldItsMemory) {
    for (const char *end : {"return", "exit 0", "_exit 0", "quick_exit 0"}) {
        auto [world, a, b] = Lent();
        const int64_t start = now_ms();
        EXPECT_EQ(a.quit(end), 0);
        EXPECT_LT(now_ms() - start, soon(1000)) << end;
        const std::vector<Finding> found = world.findings();
        ASSERT_EQ(found.size(), 1u) << end;
        EXPECT_EQ(found[0].id, "exit-while-open") << end;
        EXPECT_EQ(found[0].others, std::vector<uint32_t>{static_cast<uint32_t>(b.pid)});
        EXPECT_EQ(b.must("read q 0 1"), "a1");
        EXPECT_EQ(world.state(), "orphaned") << end;
    }
}

TEST(OwnerEnds, NotReportedWhenNobodyHoldsIt) {
    auto [world, a, b] = Lent();
    b.must("close q");
    EXPECT_EQ(a.quit("return"), 0);
    EXPECT_EQ(world.findings().size(), 0u);
    EXPECT_EQ(world.ls().size(), 0u);
    EXPECT_EQ(b.code("open q " + a.handle), dead()); // the record stays for those who may ask
    EXPECT_EQ(world.count("open-dead-owner"), 1u);
    EXPECT_EQ(b.quit("return"), 0);
    EXPECT_EQ(world.entries("regions"), 0u); // until the last has left
}

TEST(Linger, TheExitWaitsForImporters) {
    for (const char *end : {"exit 3", "_exit 3", "quick_exit 3"}) {
        auto [world, a, b] = Lent("", {{"GPUSHARE_LINGER", "20s"}});
        a.send(end);
        usleep(200000);
        EXPECT_FALSE(a.ended()) << end;
        b.must("close q");
        EXPECT_EQ(a.wait(soon(2500)), 3) << end;
        EXPECT_EQ(world.findings().size(), 0u) << end;
    }
}

// Bare, nothing of another thread would come after it.
TEST(Linger, TheExitThatBeganFirstGivesTheStatus) {
    for (const char *end : {"_exit 4", "exit 4", "quick_exit 4"}) {
        auto [world, a, b] = Lent("", {{"GPUSHARE_LINGER", "2s"}});
        a.must("later 800 " + std::string(end));
        EXPECT_EQ(a.quit("_exit 3"), 3) << end;
        EXPECT_EQ(world.count("exit-while-open"), 1u) << end;
        EXPECT_EQ(world.entries("names"), 0u) << end;
    }
}

// The reset waits for the reaper, which is in a free that waits for the kernel.
TEST(Defer, CtrlCEndsAResetBesideAFreeThatWaits) {
    auto [world, a, b] = Lent();
    a.all({"free p", "busy 30000"});
    b.must("close q");
    usleep(300000);
    a.send("reset");
    usleep(300000);
    const int64_t start = now_ms();
    a.signal(SIGINT);
    EXPECT_EQ(a.wait(), 128 + SIGINT);
    EXPECT_LT(now_ms() - start, soon(5000));
}

// Of the thread that waits for the kernel the end waits two seconds, in all.
TEST(Linger, BesideAResetThatDoesNotReturnTheEndIsNear) {
    SIM_ONLY("a kernel that does not end");
    for (const char *end : {"_exit 3", "return"}) {
        auto [world, a] = Alone();
        a.all({"busy 30000", "later 100 reset"});
        usleep(300000);
        EXPECT_EQ(a.quit(end, 7000), *end == '_' ? 3 : 0) << end;
    }
}

TEST(Linger, ThenTheExitIsReported) {
    auto [world, a, b] = Lent("", {{"GPUSHARE_LINGER", "300ms"}});
    const int64_t start = now_ms();
    EXPECT_EQ(a.quit("return"), 0);
    EXPECT_GE(now_ms() - start, 290);
    EXPECT_LT(now_ms() - start, soon(2000));
    EXPECT_EQ(world.count("exit-while-open"), 1u);
}

TEST(Linger, ADeferredFreeIsWaitedForToo) {
    auto [world, a, b] = Lent("", {{"GPUSHARE_LINGER", "20s"}});
    a.must("free p");
    a.send("exit 0");
    usleep(150000);
    EXPECT_FALSE(a.ended());
    b.must("close q");
    EXPECT_EQ(a.wait(soon(2500)), 0);
    EXPECT_EQ(world.count("exit-while-open"), 0u);
}

// Other threads go on with their memory as long as the exit waits.
TEST(Linger, AFreeBesideItFrees) {
    auto [world, a, b] = Lent("", {{"GPUSHARE_LINGER", "20s"}});
    a.all({"malloc other " + std::to_string(big()), "get other"});
    const uint64_t before = world.used();
    a.must("later 300 free other");
    a.send("exit 3");
    EXPECT_EQ(a.receive().code, 0);
    EXPECT_TRUE(world.used_becomes(before - big(), soon(1000)));
    EXPECT_FALSE(a.ended());
    b.must("close q");
    EXPECT_EQ(a.wait(soon(2500)), 3);
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

TEST(Linger, AFreeBesideItIsDeferredForImporters) {
    auto [world, a, b] = Lent("", {{"GPUSHARE_LINGER", "20s"}});
    const uint64_t before = world.used();
    a.must("later 300 free p");
    a.send("exit 3");
    EXPECT_EQ(a.receive().code, 0);
    EXPECT_EQ(world.count("free-while-open"), 1u);
    EXPECT_EQ(world.state(), "closing");
    EXPECT_EQ(b.must("read q 0 1"), "a1");
    EXPECT_EQ(world.used(), before);
    EXPECT_FALSE(a.ended());
    b.must("close q");
    EXPECT_EQ(a.wait(soon(2500)), 3);
    EXPECT_EQ(world.count("exit-while-open"), 0u) << world.logs();
}

// The reset waits for the kernel, and the free for the reset: there is nothing left to free.
TEST(Context, AFreeBesideItsEndHarmsNobody) {
    auto [world, a, b] = Lent();
    const uint64_t before = world.used();
    a.all({"busy 600", "later 200 free p"});
    a.send("reset");
    a.receive(); // both answers, in whichever order
    a.receive();
    b.must("close q");
    a.all({"malloc p 4194304", "free p"});
    EXPECT_TRUE(on_gpu() || world.used_becomes(before - big(), soon(2000)));
    EXPECT_FALSE(a.ended());
}

// The free answers before the reset does, and leaves the memory to it.
TEST(Context, AFreeBesideItsRefusedEndFreesTheMemory) {
    SIM_ONLY("a reset that is refused");
    World world("", {{"GPUSHARE_SIM_RESET_REFUSED_MS", "3000"}});
    Exporter a(world);
    const uint64_t before = world.used();
    a.must("later 200 free p");
    EXPECT_EQ(a.code("reset"), 0); // the answer of the free
    EXPECT_EQ(a.receive().code, 999);
    EXPECT_TRUE(world.used_becomes(before - big(), soon(2000)));
    EXPECT_FALSE(a.ended());
}

TEST(Linger, CtrlCEndsItAtOnce) {
    auto [world, a, b] = Lent("", {{"GPUSHARE_LINGER", "60s"}});
    a.send("exit 0");
    usleep(150000);
    const int64_t start = now_ms();
    a.signal(SIGINT);
    EXPECT_EQ(a.wait(), 128 + SIGINT);
    EXPECT_LT(now_ms() - start, soon(500));
}

TEST(OwnerEnds, AfterAbortNothingIsLeftButFilesForGc) {
    auto [world, a] = Alone();
    EXPECT_EQ(a.quit("abort"), 128 + SIGABRT);
    EXPECT_EQ(world.entries("regions") + world.entries("procs"), 2u);
    EXPECT_EQ(world.ls().size(), 0u); // nobody has it
    EXPECT_EQ(world.tool({"gc"}).status, 0);
    EXPECT_EQ(world.entries("regions") + world.entries("procs"), 0u);
}

// --- contexts ---

TEST(Context, AResetWithImportersKeepsTheirBytes) {
    for (const char *build : builds) {
        World world;
        Exporter a(world, producer(build));
        Puppet b(world, consumer()), c(world, consumer());
        b.must("open q " + a.handle);
        EXPECT_EQ(a.code("reset"), 0) << build;
        EXPECT_EQ(b.must("read q 0 1"), "a1") << build;
        EXPECT_EQ(c.code("open r " + a.handle), gone()) << build; // as bare CUDA
        a.must("malloc p 4194304");                               // life goes on
        a.must("get p");
        EXPECT_EQ(world.region()["state"].text, "ready") << build;
        a.must("free p");
        b.must("close q");
    }
}

TEST(Context, ADestroyedContextTakesItsAllocationsOnly) {
    World world;
    Puppet a(world);
    a.all({"malloc p 4194304", "get p", "ctxcreate c", "cumalloc q 4194304"});
    const std::string handle = a.must("get q");
    EXPECT_EQ(world.ls().size(), 2u);
    a.must("ctxdestroy c");
    EXPECT_EQ(world.ls().size(), 1u);
    Puppet b(world);
    EXPECT_EQ(b.code("open q " + handle), gone());
    EXPECT_EQ(world.count("open-stale"), 1u);
    a.must("free p");
    EXPECT_EQ(world.ls().size(), 0u);
}

// The driver refuses a free on its default stream without a current one.
TEST(Context, AFreeInOrderNeedsOne) {
    World world;
    Exporter a(world, producer("puppet_driver"));
    Importer b(world, a);
    a.must("ctxset");
    EXPECT_EQ(a.code("unpool p"), 201);
    EXPECT_EQ(world.state(), "ready");
    EXPECT_EQ(b.must("read q 0 1"), "a1");
}

TEST(Context, AnImportersResetIsItsClose) {
    auto [world, a, b] = Lent();
    const uint64_t held = world.used();
    a.must("free p");
    EXPECT_EQ(b.code("reset"), 0);
    EXPECT_TRUE(world.used_becomes(held - big(), soon(2500)));
    EXPECT_TRUE(eventually([&, &world = world] { return world.state() == "none"; }, soon(2000)));
}

TEST(Context, DeferredMemoryGoesWithItsContext) {
    World world;
    Puppet a(world), b(world, consumer());
    a.all({"malloc keep 4096", "ctxcreate c", "cumalloc q 4194304"});
    const std::string handle = a.must("get q");
    b.must("open q " + handle);
    a.must("cufree q");
    EXPECT_EQ(world.state(), "closing");
    a.must("ctxdestroy c");
    EXPECT_EQ(world.state(), "freed");
    b.must("close q");
    EXPECT_EQ(world.state(), "none");
    a.must("free keep");
    usleep(50000);
    EXPECT_EQ(a.quit("return"), 0);
}

// --- fork and exec ---

TEST(Fork, AChildThatEndsTakesNothingFromItsParent) {
    for (const char *end : {"_exit 3", "exit 3", "quick_exit 3", "malloc x 10", "pid"}) {
        auto [world, a, b] = Lent();
        const Reply reply = a("fork " + std::string(end));
        EXPECT_EQ(reply[0], std::string(end).find("exit") == std::string::npos ? "0" : "3");
        EXPECT_EQ(world.region()["state"].text, "ready") << end;
        EXPECT_EQ(world.region()["users"].size(), 1u) << end;
        EXPECT_EQ(world.entries("procs"), 2u) << end;
        EXPECT_EQ(world.count("exit-while-open"), 0u) << end;
        a.must("free p");
        EXPECT_EQ(world.state(), "closing") << end;
        b.must("close q");
        EXPECT_TRUE(eventually([&, &world = world] { return world.state() == "none"; }, soon(2000)))
            << end;
    }
}

TEST(Fork, AChildHasThreeForEveryCallAsBare) {
    auto [world, a] = Alone();
    const Reply reply = a("fork malloc x 10;free p;get p");
    EXPECT_EQ(reply.text.substr(0, 15), "0 0 3 0 | 3 | 3") << reply.text;
}

TEST(Fork, AChildOfAProgramWithoutCudaStartsFresh) {
    World world;
    Puppet a(world); // has not called CUDA yet
    auto child = a.spawn();
    child->all({"malloc p 4096", "get p"});
    EXPECT_EQ(world.region()["owner"]["pid"].number, child->pid);
    a.all({"malloc q 4096", "get q"});
    EXPECT_EQ(world.entries("procs"), 2u);
    child->quit("return");
    EXPECT_EQ(world.entries("procs"), 1u);
    EXPECT_EQ(world.ls().size(), 1u);
}

TEST(Fork, AChildWhileTheParentDefers) {
    auto [world, a, b] = Lent();
    a.must("free p");
    auto child = a.spawn();
    b.must("close q");
    EXPECT_TRUE(eventually([&, &world = world] { return world.state() == "none"; }, soon(2000)));
    child->quit("exit 0");
    EXPECT_EQ(a.quit("return"), 0);
}

TEST(Exec, KeepsNothing) {
    World world;
    Exporter a(world);
    const std::string before = a.must("fds");
    EXPECT_EQ(a("exec")[0], "exec");
    EXPECT_TRUE(eventually([&] { return world.ls().size() == 0; }, 1000));
    a.must("pid");
    Puppet fresh(world);
    EXPECT_EQ(a.must("fds"), fresh.must("fds"));
    a.all({"malloc p 4096", "get p"});
    EXPECT_EQ(world.entries("procs"), 2u); // the same pid, another image
    EXPECT_EQ(world.tool({"gc"}).status, 0);
    EXPECT_EQ(world.entries("procs"), 1u);
    EXPECT_EQ(world.region()["state"].text, "ready");
}

// --- modes ---

TEST(Audit, ChangesNothingAndReports) {
    World world, plain;
    set(world, "MODE", "audit");
    std::vector<std::string> codes[2];
    for (int shim = 0; shim < 2; shim++) {
        World &here = shim ? world : plain;
        How how;
        how.shim = shim == 1;
        Puppet a(here, how), b(here, how), c(here, how);
        std::vector<std::string> &seen = codes[shim];
        const auto note = [&](Puppet &puppet, const std::string &line) {
            const Reply reply = puppet(line);
            seen.push_back(line.substr(0, 6) + " " + std::to_string(reply.code));
            return reply;
        };
        note(a, "malloc p 4194304");
        const std::string handle = note(a, "get p")[0];
        note(b, "open q " + handle);
        note(b, "open q " + handle);
        note(a, "free p");
        note(a, "free p");
        note(b, "read q 0 4");
        note(c, "open r " + handle);
        note(a, "malloc p 4194304");
        note(a, "get p");
        note(c, "open r " + handle);
        note(c, "close r");
        note(b, "close q");
        note(b, "close q");
        note(b, "close q");
        note(a, "malloc x 0");
        note(a, "freeat 123000");
        note(a, "get x");
        a.kill();
        note(c, "open r " + handle);
    }
    EXPECT_EQ(codes[0], codes[1]);
    for (const char *id : {"free-while-open", "double-open", "double-free", "open-stale"})
        EXPECT_GE(world.count(id), 1u) << id;
}

TEST(Audit, AFreeGoesThroughAtOnce) {
    auto [world, a, b] = Lent("", {{"GPUSHARE_MODE", "audit"}});
    const int threads = std::stoi(a.must("tasks"));
    a.must("free p");
    EXPECT_EQ(std::stoi(a.must("tasks")), threads);
    EXPECT_EQ(world.state(), "freed");
    EXPECT_EQ(world.count("free-while-open"), 1u);
}

TEST(Audit, RulesDoNotApply) {
    auto [world, a, b] = Couple(FRAMES, {{"GPUSHARE_MODE", "audit"}});
    a.must("malloc p 4096");
    const int64_t start = now_ms();
    b.must("malloc q 4096");
    EXPECT_LT(now_ms() - start, soon(1000));
    EXPECT_EQ(world.entries("regions"), 0u);
}

TEST(Off, DoesNothingAtAll) {
    World world(FRAMES, {{"GPUSHARE_MODE", "off"}});
    {
        Exporter a(world);
        Importer b(world, a);
        a.must("free p");
        EXPECT_EQ(a.code("free p"), 1);
        EXPECT_EQ(a.quit("return"), 0);
        EXPECT_EQ(a.errors(), "");
    }
    EXPECT_EQ(world.logs(), "");
    EXPECT_FALSE(read_file(world.environment["GPUSHARE_DIR"] + "/default/lock").size());
    EXPECT_EQ(world.entries("procs") + world.entries("regions"), 0u);
}

// --- peers without it ---

TEST(Peers, AnExporterWithoutIt) {
    World world;
    Exporter a(world, bare());
    Importer b(world, a);
    a.must("free p");
    EXPECT_EQ(b.must("read q 0 1"), "a1");
    b.must("close q");
    EXPECT_EQ(b.code("close q"), 1);
    ASSERT_EQ(world.findings().size(), 1u);
    EXPECT_EQ(world.findings()[0].id, "double-close");
}

TEST(Peers, AnImporterWithoutIt) {
    auto [world, a] = Alone();
    Importer b(world, a, bare());
    const uint64_t held = world.used();
    EXPECT_EQ(a.code("free p"), 0); // unseen, so it goes at once
    EXPECT_EQ(b.must("read q 0 1"), "a1");
    EXPECT_EQ(world.state(), "none");
    b.must("close q");
    EXPECT_TRUE(world.used_becomes(held - big(), soon(2000)));
    EXPECT_EQ(world.findings().size(), 0u);
}

TEST(Peers, InOtherNamespacesOfTheKernel) {
    How inside = consumer();
    inside.wrap = {"unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--ipc", "--uts"};
    std::vector<std::string> attempt = inside.wrap;
    attempt.push_back("true");
    SKIP_IF(command(attempt).status != 0, "may not make namespaces");
    World world;
    Exporter a(world);
    Importer b(world, a, inside);
    ASSERT_EQ(world.region()["users"].size(), 1u);
    EXPECT_EQ(world.region()["users"][0]["pid"].number, 1); // a pid there
    a.must("free p");
    EXPECT_EQ(world.state(), "closing");
    EXPECT_EQ(b.must("read q 0 1"), "a1");
    b.kill();
    EXPECT_TRUE(eventually([&] { return world.state() == "none"; }, soon(2500)));
}

// --- reports ---

TEST(Reports, AsTextSayWhatHappenedAndWhatToDo) {
    auto [world, a, b] = Lent("", {{"GPUSHARE_LOG_FORMAT", "text"}, {"GPUSHARE_LOG", "stderr"}});
    a.must("free p");
    const std::string text = a.errors(), margin = "========= [" + pid(a) + "]";
    EXPECT_EQ(
        text.find(margin +
                  wording(" GPUSHARE WARNING: free-while-open in cudaFree, by producer (pid ") +
                  pid(a)),
        0u)
        << text;
    for (const std::string &part :
         {std::string("other process: consumer (pid ") + pid(b) + ")", std::string("#0 0x"),
          std::string("producer"), std::string("Hint: "), "\n" + margin + "\n",
          margin + " GPUSHARE: to see functions and lines: log_format"})
        EXPECT_HAS(text, part) << part << "\n" << text;
    EXPECT_EQ(b.errors(), "");
}

TEST(Reports, OfOneCallSiteAreCountedNotRepeated) {
    World world;
    Puppet a(world);
    a.all({"malloc p 4096", "free p"});
    for (int i = 0; i < 10; i++)
        EXPECT_EQ(a.code("free p"), 1);
    EXPECT_EQ(world.count("double-free"), 1u);
    a.quit("return");
    EXPECT_HAS(world.logs(), "\"count\":");
    EXPECT_HAS(world.logs(), "9 repeated");
}

TEST(Reports, StayOutOfAClosedStderr) {
    World world("", {{"GPUSHARE_LOG", "stderr"}});
    How how = producer();
    how.own_stderr = false;
    Puppet a(world, how);
    a.all({"malloc p 4096", "free p"});
    EXPECT_EQ(a.code("free p"), 1);
    EXPECT_EQ(a.quit("exit 4"), 4);
}

} // namespace
