// vmm_test.cpp - regions of VMM memory: the same rules and verbs, and memory that outlives its
// owner.
#include "scenario/keepers.hpp"

namespace {

std::string vmm_rules(const std::string &more = "", const std::string &wait = "5s") {
    return rule("frames", "producer", "export", "backing = vmm\n" + more) +
           rule("frames", "consumer*", "import", "backing = vmm\nwait = " + wait + "\n");
}

struct Vmm : testing::TestWithParam<std::pair<int, int>> {};

TEST_P(Vmm, BytesAreSharedBothWays) {
    World world(vmm_rules());
    Puppet a(world, producer(builds[GetParam().first])),
        b(world, consumer(builds[GetParam().second]));
    EXPECT_EQ(expect_shared_both_ways(world, a, b)["backing"].text, "vmm");
}

INSTANTIATE_TEST_SUITE_P(Backing, Vmm,
                         testing::Values(std::pair(0, 0), std::pair(0, 1), std::pair(1, 2),
                                         std::pair(2, 0)),
                         pair_name);

TEST(Vmm, OneCopyOfTheMemoryServesAllAndThenNothingIsLeft) {
    World world(vmm_rules());
    uint64_t before;
    {
        Puppet a(world, producer()), b(world, consumer()), c(world, consumer());
        for (Puppet *puppet : {&a, &b, &c})
            puppet->must("info"); // contexts cost memory, too
        before = world.used();
        a.must("malloc p " + std::to_string(big()));
        b.must("malloc q " + std::to_string(big()));
        c.must("malloc q " + std::to_string(big()));
        EXPECT_TRUE(world.used_becomes(before + big()));
        EXPECT_EQ(world.region("frames")["users"].size(), 2u);
        b.must("free q");
        c.must("free q");
        EXPECT_EQ(c.code("free q"), 1);
        a.must("free p");
        EXPECT_EQ(a.code("free p"), 1);
        EXPECT_TRUE(world.used_becomes(before));
        for (Puppet *puppet : {&a, &b, &c})
            EXPECT_EQ(puppet->quit("return"), 0);
    }
    EXPECT_TRUE(eventually(
        [&] {
            return world.entries("procs") + world.entries("regions") + world.entries("names") == 0;
        },
        8000));
}

TEST(Vmm, AnOrdinaryAllocationToTheProgram) {
    World world(vmm_rules());
    Puppet a(world, producer()), b(world, bare());
    a.must("malloc p 1000");
    b.must("malloc p 1000");
    EXPECT_EQ(a("ordinal p").text, b("ordinal p").text);
    EXPECT_EQ(a.code("freeat 0x10"), b.code("freeat 0x10"));
    a.all({"pitch q 1000 100", "free p"});
    EXPECT_EQ(a.code("read p 0 4"), b.code("free p") + 1);
}

// Imported memory is not GPU_DIRECT_RDMA_CAPABLE (15), and none is HW_DECOMPRESS_CAPABLE (21).
const std::vector<int> hardware = {15, 21};

// Also in its importer, for whose program it is memory of cudaMalloc.
TEST(Vmm, IsTheDriversToEveryQuestionAndCall) {
    World world(vmm_rules());
    Puppet a(world, producer()), b(world, consumer()), c(world, bare());
    for (Puppet *puppet : {&a, &b, &c})
        puppet->must("malloc p 4194304");
    for (Puppet *puppet : {&a, &b})
        for (const char *at : {" 0", " 4194303"}) {
            EXPECT_EQ(told_without(*puppet, std::string("p") + at, hardware),
                      told_without(c, std::string("p") + at, hardware));
            EXPECT_EQ((*puppet)(std::string("mapped p") + at + " 4194304").text,
                      c(std::string("mapped p") + at + " 4194304").text);
        }
    EXPECT_HAS(c("told p 0").text, " cuda 0 2 0 "); // a device's, the first one's
    a.must("write p 0 " + hex_bytes("cd", 4));
    EXPECT_EQ(b.must("read p 0 4"), "cdcdcdcd");
}

// On a busy machine it takes longer than a keeper may be silent.
TEST(Vmm, AKeeperThatStartsSlowlyIsWaitedFor) {
    World world(vmm_rules());
    const std::string slow = world.path("slow");
    write_file(slow, "#!/bin/sh\nsleep 0.3\nexec " + build_directory() + "/gpushare \"$@\"\n");
    chmod(slow.c_str(), 0700);
    world.environment["GPUSHARE_KEEPER"] = slow;
    Puppet a(world, producer()), b(world, consumer());
    a.all({"malloc p 4194304", "fill p 0x21 4", "sync"});
    b.must("malloc q 4194304");
    EXPECT_EQ(b.must("read q 0 4"), "21212121");
    EXPECT_TRUE(world.findings().empty()) << world.logs();
}

TEST(Vmm, IsNotFreedInALostContext) {
    auto [world, a, b] = Couple(vmm_rules());
    a.must("malloc p 1000");
    b.must("malloc p 1000");
    for (Puppet *puppet : {&a, &b}) {
        puppet->all({kernels(), "launch - test_write 4096 1 1"});
        EXPECT_EQ(puppet->code("sync"), 700);
        EXPECT_EQ(puppet->code("free p"), 700);
        EXPECT_EQ(puppet->code("free p"), 700) << "it is there still";
        puppet->must("reset");
    }
}

TEST(Vmm, MemoryOutlivesItsKilledOwner) {
    World world(vmm_rules("keep = users\n"));
    Puppet a(world, producer()), b(world, consumer()), c(world, consumer());
    a.make("p", 4194304, "0x21");
    b.must("malloc q 4194304");
    a.kill();
    EXPECT_EQ(b.must("read q 4194300 4"), "21212121");
    c.must("malloc q 4194304");
    EXPECT_EQ(c.must("read q 0 4"), "21212121");
    b.must("free q");
    EXPECT_EQ(c.must("read q 0 4"), "21212121");
    c.must("free q");
    EXPECT_TRUE(eventually([&] { return world.state("frames") == "none"; }));
    EXPECT_EQ(world.findings().size(), 0u);
}

TEST(Vmm, WhatItsOwnerKeepsEndsWithTheFree) {
    World world(vmm_rules("", "2s"));
    Puppet a(world, producer()), b(world, consumer()), c(world, consumer());
    a.make("p", 4194304, "0x22");
    b.must("malloc q 4194304");
    a.must("free p");
    EXPECT_EQ(b.must("read q 0 4"), "22222222");
    EXPECT_EQ(world.findings("free-while-open").size(), 0u); // nothing is taken from b
    c.must("malloc q 4194304");                              // private
    c.must("fill q 0x33 4194304");
    EXPECT_EQ(b.must("read q 0 4"), "22222222");
    EXPECT_EQ(world.findings("share-timeout").size(), 1u);
}

TEST(Vmm, ForeverIsUntilItIsDropped) {
    World world(vmm_rules("keep = forever\n"));
    {
        Puppet a(world, producer());
        a.make("p", 4194304, "0x23");
        EXPECT_EQ(a.quit("return"), 0);
    }
    Puppet b(world, consumer());
    b.must("malloc q 4194304");
    EXPECT_EQ(b.must("read q 0 4"), "23232323");
    b.must("free q");
    usleep(1500000);
    EXPECT_EQ(world.state("frames"), "ready");
    const Result dropped = world.tool({"drop", "frames"});
    EXPECT_EQ(dropped.status, 0) << dropped.err;
    EXPECT_EQ(world.state("frames"), "none");
}

TEST(Vmm, AnImporterThatOnlyReads) {
    auto [world, a, b] = Couple(vmm_rules("access = ro\n"));
    a.make("p", 4194304, "0x24");
    b.must("malloc q 4194304");
    EXPECT_EQ(b.must("read q 0 4"), "24242424");
    EXPECT_EQ(b.code("write q 0 00"), 1);
    EXPECT_EQ(b.code("fill q 0x25 4194304"), 1);
    EXPECT_EQ(a.must("read p 0 4"), "24242424");
    a.all({"fill p 0x26 4194304", "sync"});
    EXPECT_EQ(b.must("read q 0 4"), "26262626");
}

// Access is what the exporter's rule says, whatever the importer's says of access and backing.
struct Access : testing::TestWithParam<std::tuple<const char *, const char *, bool>> {};

TEST_P(Access, IsTheExporters) {
    const auto &[exporter, importer, writable] = GetParam();
    auto [world, a, b] =
        Couple(rule("frames", "producer", "export", exporter) +
               rule("frames", "consumer", "import", std::string("wait = 5s\n") + importer));
    a.make("p", 4194304, "0x24");
    b.must("malloc q 4194304");
    EXPECT_EQ(b.must("read q 0 4"), "24242424");
    EXPECT_EQ(b.code("write q 0 00"), writable ? 0 : 1);
    EXPECT_EQ(b.code("fill q 0x25 4194304"), writable ? 0 : 1);
    EXPECT_EQ(world.count("write-read-only"), writable ? 0u : 2u);
    const Result check = world.tool({"check", world.path("config")});
    const std::string words =
        std::regex_replace(check.out.substr(check.out.rfind("[region")), std::regex("\n  "), " ");
    EXPECT_HAS(words, writable ? "as line 1 says; this program may write it, too."
                               : "as line 1 says; this program may only read it.");
    EXPECT_LACKS(check.err, "cannot be imported");
    EXPECT_EQ(contains(check.err, "access has no effect in [region frames]: the exporter's rule"),
              contains(importer, "access"));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, Access,
    testing::Values(std::make_tuple("backing = vmm\n", "backing = vmm\naccess = ro\n", true),
                    std::make_tuple("backing = vmm\naccess = ro\n", "backing = vmm\n", false),
                    std::make_tuple("backing = vmm\naccess = ro\n", "", false),
                    std::make_tuple("", "backing = vmm\n", true)));

TEST(Vmm, MemoryOfAPoolIsSharedByARule) {
    World world(vmm_rules());
    Puppet a(world, producer()), b(world, consumer("puppet_driver")), c(world);
    a.all({"pool p 4194304", "fill p 0x27 4194304", "sync"});
    b.must("pool q 4194304");
    EXPECT_EQ(b.must("read q 0 4"), "27272727");
    c.must("open r " + a.must("get p")); // the driver refuses handles of pools
    EXPECT_EQ(c.must("read r 0 4"), "27272727");
    b.must("unpool q");
    a.must("unpool p");
    EXPECT_EQ(world.findings().size(), 0u);
}

TEST(Vmm, LegacyRulesTakeNoMemoryOfAPool) {
    World world(FRAMES);
    Puppet a(world, producer());
    a.must("pool p 4194304");
    EXPECT_EQ(world.entries("regions"), 0u);
    a.must("malloc q 4194304"); // its index is still 0
    EXPECT_EQ(world.state("frames"), "ready");
}

TEST(Vmm, AnotherCardReachesItOnceTheProgramSaysSo) {
    TWO_CARDS();
    World world(vmm_rules("index = *\n", "5s").replace(8, 6, "f{n}"),
                {{"GPUSHARE_SIM_DEVICES", "2"}});
    Puppet a(world, producer());
    a.make("p", 4194304, "0x28");
    a.all({"device 1", "peer 0"});
    EXPECT_EQ(a.must("read p 0 4"), "28282828");
    a.must("device 0");
    a.make("later", 4194304, "0x29");
    a.must("device 1");
    EXPECT_EQ(a.must("read later 0 4"), "29292929");
}

struct Token : testing::Test {
    World world{vmm_rules()};
};

TEST_F(Token, OpensOnAnotherCard) {
    TWO_CARDS();
    world.environment["GPUSHARE_SIM_DEVICES"] = "2";
    Puppet a(world, producer()), b(world);
    a.make("p", 4194304, "0x2a");
    b.must("device 1");
    b.must("open q " + a.must("get p"));
    EXPECT_EQ(b.must("read q 0 4"), "2a2a2a2a");
    b.must("close q");
}

/* --- the legacy verbs --- */

TEST_F(Token, OpensCountsAndClosesAsAHandleDoes) {
    Puppet a(world, producer()), b(world);
    a.make("p", 4194304, "0x31");
    const std::string token = a.must("get p"), interior = a.must("get p 4096");
    EXPECT_EQ(token, interior);
    EXPECT_EQ(b.code("open q " + token + " 0"), 1);
    const std::string first = b.must("open q " + token), second = b.must("open r " + token);
    EXPECT_EQ(b.must("value q"), b.must("value r"));
    b.must("close q");
    EXPECT_EQ(b.must("read r 0 4"), "31313131");
    b.must("close r");
    EXPECT_EQ(b.code("read r 0 4"), 1);
    EXPECT_EQ(b.code("close r"), 1);
    b.must("open q " + token);
    a.must("free p");
    EXPECT_EQ(b.must("read q 0 4"), "31313131");
    Puppet c(world);
    c.must("info");
    EXPECT_EQ(c.code("open q " + token), 1);
    EXPECT_EQ(world.count("open-stale"), 1u) << world.logs();
}

TEST_F(Token, OpensInASecondContext) {
    Puppet a(world, producer()), b(world);
    a.make("p", 4194304, "0x41");
    const std::string token = a.must("get p");
    b.all({"open q " + token, "ctxcreate other"});
    EXPECT_EQ(b.code("open r " + token), 400) << "it is open in another one";
    EXPECT_EQ(world.count("open-second-context"), 1u) << world.logs();
    b.all({"ctxpop", "close q", "ctxpush other", "open r " + token});
    EXPECT_EQ(b.must("read r 0 4"), "41414141");
    b.must("close r");
    EXPECT_EQ(world.findings().size(), 1u) << world.logs();
}

// Two cards have two addresses of it.
TEST_F(Token, OpensOnEachCard) {
    TWO_CARDS();
    world.environment["GPUSHARE_SIM_DEVICES"] = "2";
    Puppet a(world, producer()), b(world);
    a.make("p", 4194304, "0x42");
    const std::string token = a.must("get p");
    b.all({"open q " + token, "device 1", "open r " + token});
    EXPECT_NE(b.must("value r"), b.must("value q"));
    EXPECT_EQ(b.must("read r 0 4"), "42424242");
    b.all({"close r", "device 0"});
    EXPECT_EQ(b.must("read q 0 4"), "42424242");
    b.must("close q");
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

// As with a handle of the driver's.
TEST_F(Token, OfOnesOwnIsRefused) {
    Puppet a(world, producer());
    a.must("malloc p 4194304");
    EXPECT_EQ(a.code("open q " + a.must("get p")), 201);
    EXPECT_EQ(world.count("open-own-handle"), 1u);
    a.must("free p");
}

TEST_F(Token, ThatThreadsOpenAndCloseIsThereWhileOneHasIt) {
    Puppet a(world, producer()), b(world);
    a.must("malloc p 4194304");
    const std::string token = a.must("get p");
    EXPECT_EQ(b.must("threads 4 500 use " + token, 60000), "0");
    EXPECT_TRUE(eventually([&] { return world.region("frames")["users"].size() == 0; }));
    b.all({"open q " + token, "close q"});
    EXPECT_EQ(b.code("close q"), 1);
}

TEST_F(Token, ThatIsOpenAndOpenedWronglyStaysOpen) {
    Puppet a(world, producer()), b(world);
    a.must("malloc p 4194304");
    const std::string token = a.must("get p");
    b.must("open q " + token);
    EXPECT_EQ(b.code("open r " + token + " 0"), 1);
    b.all({"read q 0 4", "close q"});
    EXPECT_EQ(b.code("close q"), 1);
}

// The keeper has it: nobody loses anything by its creator's end.
TEST(Vmm, TheEndOfACreatorIsNoNews) {
    for (const char *keep : {"users", "forever"}) {
        auto [world, a, b] =
            Couple(vmm_rules("keep = " + std::string(keep) + "\n"), {{"GPUSHARE_LINGER", "20s"}});
        a.make("p", 4194304, "0x21");
        b.must("malloc q 4194304");
        const int64_t start = now_ms();
        EXPECT_EQ(a.quit("exit 0"), 0);
        EXPECT_LT(now_ms() - start, soon(3000)) << keep;
        EXPECT_EQ(b.must("read q 0 2"), "2121");
        EXPECT_EQ(world.findings().size(), 0u) << keep << world.logs();
        b.must("free q");
        world.tool({"drop", "frames"});
    }
}

// A process that lingers has threads that go on: to them its memory is what it was.
TEST(Vmm, IsUsedByThreadsOfAProcessThatLingers) {
    for (const char *what : {"free m", "get m", "get p", "free p"}) {
        auto [world, a, b] =
            Couple(rule("m", "producer", "export", "size = 4MiB\nbacking = vmm\nkeep = users\n"),
                   {{"GPUSHARE_LINGER", "1s"}});
        a.all({"malloc m 4194304", "malloc o " + std::to_string(big())});
        a.must("malloc p " + std::to_string(big() + 4 * MiB));
        b.must("open q " + a.must("get o")); // lingers for this one
        a.all({"get p", "later 300 " + std::string(what)});
        a.send("exit 3");
        EXPECT_EQ(a.receive().code, 0) << what;
        EXPECT_EQ(a.wait(), 3);
        EXPECT_EQ(world.count("exit-while-open"), 1u);
        EXPECT_EQ(world.count("double-free"), 0u);
        EXPECT_LACKS(world.logs(), "export-not-capable");
    }
}

// What it asks about may be withdrawn already. Bare, it would not come back either.
TEST(Vmm, IsNotAskedAboutBesideAnExitAtOnce) {
    auto [world, a, b] =
        Couple(rule("m", "producer", "export", "size = 4MiB\nbacking = vmm\nkeep = users\n"),
               {{"GPUSHARE_LINGER", "1s"}});
    a.all({"malloc m 4194304", "malloc o " + std::to_string(big())});
    b.must("open q " + a.must("get o")); // lingers for this one
    a.must("later 300 free m");
    a.send("_exit 3");
    EXPECT_THROW(a.receive(), std::runtime_error);
    EXPECT_EQ(a.wait(), 3);
    EXPECT_EQ(world.count("exit-while-open"), 1u);
}

// Calls that began before the end find nothing of it either.
static void end_beside_calls(const std::string &end) {
    for (int i = 0; i < 10; i++) {
        World world(rule("m", "producer", "export", "size = 4MiB\nbacking = vmm\n"));
        Puppet a(world, producer());
        a.all({"malloc m 4194304", "getting m 8"});
        a.send(end);
        EXPECT_THROW(a.receive(), std::runtime_error);
        EXPECT_EQ(a.wait(), 3);
        EXPECT_TRUE(world.findings().empty()) << world.logs();
    }
}

TEST(Vmm, IsWhatItWasToTheCallsThatAnExitFinds) {
    end_beside_calls("_exit 3");
}

TEST(Vmm, IsWhatItWasToTheCallsThatAQuickExitFinds) {
    end_beside_calls("quick_exit 3");
}

// A quick_exit ends with its handlers, which are the program's.
TEST(Vmm, IsTheProgramsInItsHandlersOfAQuickExit) {
    for (const bool before : {false, true}) { // the first CUDA call
        World world(rule("m", "producer", "export", "size = 4MiB\nbacking = vmm\n"));
        Puppet a(world, producer("puppet_driver"));
        if (before)
            a.must("at_quick_exit free m");
        a.all({"malloc m 4194304", "get m"});
        if (!before)
            a.must("at_quick_exit free m");
        a.send("quick_exit 3");
        EXPECT_EQ(a.receive().code, 0) << before;
        EXPECT_EQ(a.wait(), 3);
        EXPECT_TRUE(world.findings().empty()) << world.logs();
        EXPECT_EQ(world.entries("regions") + world.entries("names"), 0u);
    }
}

// A handler that was registered before the driver's runs after its teardown.
TEST(Vmm, IsAnsweredForAsTheDriverAnswers) {
    SIM_ONLY("the order of exit handlers");
    for (const char *what : {"get m", "close m"}) {
        World world(rule("m", "producer", "export", "size = 4MiB\nbacking = vmm\n") +
                    rule("m", "consumer", "import", "size = 4MiB\n"));
        Puppet a(world, producer("puppet_driver"));
        Puppet b(world, consumer("puppet_driver"));
        Puppet &of = *what == 'c' ? b : a;
        of.must("at_exit " + std::string(what));
        a.must("malloc m 4194304");
        b.must("malloc m 4194304");
        of.send("return");
        EXPECT_EQ(of.receive().code, 4) << what;
        EXPECT_EQ(of.wait(), 0);
    }
}

// While the exit waits for a kernel of a result's, other threads go on with their memory.
TEST(Vmm, IsWhatItWasBesideAnExitThatWaitsForAResult) {
    World world(rule("r", "producer", "export", "size = 6MiB\nready = free\nhandover = 1s\n") +
                rule("m-{n}", "producer", "export",
                     "size = 4MiB\nbacking = vmm\nkeep = users\nindex = *\n"));
    Puppet a(world, producer());
    a.all({"many 250 4194304", "malloc r 6291456", "busy 2000", "later 300 manyget"});
    a.send("exit 3");
    EXPECT_EQ(a.receive().code, 0);
    EXPECT_EQ(a.wait(), 3);
    EXPECT_EQ(world.count("export-not-capable"), 0u);
}

// Stopped, it is waited for once; then processes do as if there were none, until it answers.
TEST(Keeper, ThatIsStoppedCostsAMomentOnce) {
    auto [world, a, b] =
        Couple(rule("w{n}", "producer", "export", "backing = vmm\nkeep = users\nindex = *\n") +
               rule("w{n}", "consumer*", "import", "backing = vmm\nindex = *\nwait = 30s\n"));
    a.all({"malloc p 2097152", "fill p 0x11 4", "sync"});
    b.must("info");
    const pid_t keeper = static_cast<pid_t>(world.region("w0")["keeper"]["pid"].number);
    signal_keeper(keeper, SIGSTOP);
    int64_t start = now_ms();
    a.must("malloc second 2097152");
    EXPECT_LT(now_ms() - start, soon(400));
    start = now_ms();
    for (int i = 0; i < 20; i++)
        a.must("malloc third" + std::to_string(i) + " 2097152");
    a.must("free p");
    EXPECT_LT(now_ms() - start, soon(200));
    start = now_ms();
    b.must("malloc q 2097152");
    EXPECT_LT(now_ms() - start, soon(600));
    signal_keeper(keeper, SIGCONT);
    EXPECT_TRUE(eventually(
        [&, &a = a, &world = world] {
            static int n;
            a.must("malloc late" + std::to_string(n) + " 2097152");
            return world.state("w" + std::to_string(22 + n++)) == "ready";
        },
        soon(10000)));
}

TEST(Keeper, ItsLocksSquatterCostsAMomentOnce) {
    World world(vmm_rules());
    Puppet a(world, producer()), other(world);
    other.must("malloc small 4096");
    other.must("get small"); // makes the directory
    const std::string lock = world.store().path + std::string("/keeper.lock");
    const int fd = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct flock whole = {};
    whole.l_type = F_WRLCK;
    ASSERT_EQ(fcntl(fd, F_OFD_SETLK, &whole), 0);
    command({"touch", "-d", "-1 minute", lock}); // no keeper that has just started
    const int64_t start = now_ms();
    a.must("malloc p 4194304");
    EXPECT_LT(now_ms() - start, soon(600));
    ::close(fd);
    EXPECT_EQ(world.count("share-fallback"), 1u);
}

// What a rule gave is an allocation to its program; what the program opened has no handle, as bare.
TEST_F(Token, IsPassedOnByARulesImporter) {
    Puppet a(world, producer()), b(world, consumer()), c(world);
    a.make("p", big(), "0x51");
    b.must("malloc q " + std::to_string(big()));
    c.must("open r " + b.must("get q"));
    EXPECT_EQ(c.must("read r 0 4"), "51515151");
    EXPECT_EQ(c.code("get r"), 1);
}

TEST_F(Token, MeansNothingToAProcessWithoutTheShim) {
    Puppet a(world, producer()), b(world, bare());
    a.must("malloc p 4194304");
    b.must("info");
    EXPECT_NE(b.code("open q " + a.must("get p")), 0);
}

TEST_F(Token, EndsWithItsContext) {
    Puppet a(world, producer()), b(world);
    a.must("info");
    b.must("info");
    const uint64_t before = world.used();
    a.must("malloc p " + std::to_string(big()));
    b.all({"open q " + a.must("get p"), "reset"});
    EXPECT_NE(b.code("read q 0 4"), 0);
    a.must("reset");
    EXPECT_NE(a.code("read p 0 4"), 0);
    EXPECT_TRUE(world.used_becomes(before));
}

/* --- the keeper's end --- */

// The daemon of this world; -1: there is none.
pid_t simulated_driver(const World &world) {
    const std::string root = "GPUSHARE_SIM_ROOT=" + world.environment.at("GPUSHARE_SIM_ROOT");
    for (const auto &process : std::filesystem::directory_iterator("/proc")) {
        std::ifstream name(process.path() / "comm"), file(process.path() / "environ");
        const std::string variables(std::istreambuf_iterator<char>(file), {});
        std::string command;
        if (std::getline(name, command) && command == "gpusimd" &&
            variables.find(root + '\0') != std::string::npos)
            return std::stoi(process.path().filename());
    }
    return -1;
}

struct Stopped {
    explicit Stopped(pid_t process) : pid(process) {
        EXPECT_EQ(::kill(pid, SIGSTOP), 0);
    }
    ~Stopped() {
        ::kill(pid, SIGCONT);
    }
    pid_t pid;
};

TEST(Keeper, IsReplacedAndGetsEverythingAgain) {
    World world(vmm_rules("keep = users\n"));
    Puppet a(world, producer()), b(world, consumer()), c(world, consumer()), d(world, consumer());
    a.make("p", 4194304, "0x61");
    b.must("malloc q 4194304");
    kill_both_keepers(world);
    EXPECT_EQ(b.must("read q 0 4"), "61616161");
    c.must("malloc q 4194304");
    EXPECT_EQ(c.must("read q 0 4"), "61616161");
    a.kill();
    b.must("free q");
    signal_keeper(keeper_of(world), SIGKILL);
    d.must("malloc q 4194304"); // of the stand-by
    EXPECT_EQ(d.must("read q 0 4"), "61616161");
    EXPECT_EQ(world.findings().size(), 0u);
}

// A thread of ours that is in the driver for ever does not keep the program from ending.
TEST(Keeper, WhoNeverGetsAnAnswerOfTheDriverForItEnds) {
    SIM_ONLY("needs a driver that can be stopped");
    auto [world, a, b] = Couple(vmm_rules("keep = users\n"));
    a.must("malloc p 4194304");
    b.must("info");
    kill_both_keepers(world);
    const Stopped driver(simulated_driver(world));
    b.send("malloc q 4194304"); // starts the next keeper, and `a` exports the memory for it
    usleep(2000000);
    a.send("_exit 3");
    EXPECT_EQ(a.wait(soon(6000)), 3);
}

TEST(Keeper, IsKilledAndItsStandByHasHundredsOfRegionsAndImportersFewDescriptors) {
    World world;
    const std::string more = "backing = vmm\nkeep = users\nindex = *\nwait = 5s\n";
    world.config(rule("w{n}", "producer", "export", more) +
                 rule("w{n}", "consumer*", "import", more));
    Puppet a(world, producer()), b(world, consumer()), c(world, consumer());
    a.must("many 300 2097152");
    b.must("info");
    const uint64_t before = b("fds").number(0);
    b.must("many 300 2097152");
    EXPECT_LT(b("fds").number(0), before + 30);
    const pid_t keeper = static_cast<pid_t>(world.region("w299")["keeper"]["pid"].number);
    a.kill();
    signal_keeper(keeper, SIGKILL);
    c.must("many 300 2097152");
    EXPECT_EQ(world.region("w0")["users"].size(), 2u);
    EXPECT_EQ(world.region("w299")["users"].size(), 2u);
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

TEST(Keeper, ThatCannotStartLeavesTheMemoryPrivate) {
    World world(vmm_rules(), {{"GPUSHARE_KEEPER", "/nonexistent"}});
    Puppet a(world, producer());
    a.all({"malloc p 4194304", "fill p 0x71 4194304"});
    EXPECT_EQ(world.findings("share-fallback").size(), 1u);
    a.must("free p");
}

TEST(Keeper, IsUnseenByTheProgram) {
    World world(vmm_rules());
    Puppet a(world, producer()), b(world, bare());
    a.must("info");
    b.must("info");
    EXPECT_EQ(a("errno malloc p 4194304")[2], b("errno malloc p 4194304")[2]);
    EXPECT_EQ(command({"pgrep", "-P", pid(a)}).out, ""); // no child to wait for
}

} // namespace
