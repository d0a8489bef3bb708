// promise_test.cpp - memory that a merge rule with quiet = 0 took and that nothing has touched yet:
// nobody else counts on it, and it is there when it is touched.
#include "scenario/merging.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <functional>

namespace {

std::string bytes(uint64_t size) {
    return std::to_string(size);
}

// On a card of 256 MiB that nobody else uses. Every program is preloaded, but only `replica` has a
// rule.
struct Promise : testing::Test {
    void SetUp() override {
        SIM_ONLY("it fills the card");
        replicas = std::make_unique<Replicas>(0, merging());
        how = replicas->on_a_small_card();
    }
    std::unique_ptr<Puppet> replica() {
        auto puppet = std::make_unique<Puppet>(replicas->world, how);
        puppet->must("info");
        puppet->must("malloc small 4096");
        puppet->must(kernels());
        return puppet;
    }
    std::unique_ptr<Puppet> other() {
        auto puppet = std::make_unique<Puppet>(replicas->world, How());
        puppet->must("info");
        return puppet;
    }
    // Of a rule for programs of this name.
    std::unique_ptr<Puppet> named(const char *name) {
        How as_named = how;
        as_named.as = name;
        auto puppet = std::make_unique<Puppet>(replicas->world, as_named);
        puppet->must("info");
        return puppet;
    }
    static uint64_t left(Puppet &puppet) {
        return puppet("info").number(0);
    }
    static int load(Puppet &puppet, const std::string &name, uint64_t size, int seed) {
        return puppet.code(Replicas::upload(name, size, seed));
    }
    // Blocks of 32 MiB, but for what lies between tensors.
    static void load_with_gaps(Puppet &puppet, uint64_t blocks) {
        puppet.must("malloc p " + bytes(blocks * 32 * MiB));
        for (uint64_t i = 0; i < blocks; i++)
            EXPECT_EQ(puppet.code("upload p " + bytes(i * 32 * MiB) + " " + bytes(32 * MiB - 256) +
                                  " " + bytes(i + 1) + " sync"),
                      0);
    }
    double merged(const Puppet &puppet) const {
        const Result shown = replicas->world.tool({"show", "--json", std::to_string(puppet.pid)});
        return Json::parse(shown.out)[0]["merged"]["blocks"].number;
    }
    static int launch(Puppet &puppet) {
        return puppet.code("launch - test_read small 1 small");
    }
    // Long enough for another process to be in its call, if all goes well.
    static void nap() {
        usleep(50000);
    }
    // It has claimed room and does not go on. Others heed the claim until it is 0.9 s old.
    static void stop_in_a_claim(Puppet &puppet, uint64_t size) {
        puppet.send("pool q " + bytes(size));
        nap();
        puppet.stop();
    }
    std::unique_ptr<Replicas> replicas;
    How how;
};

TEST_F(Promise, IsNotFree) {
    auto a = replica(), b = other();
    const uint64_t all = left(*a), its = left(*b);
    a->must("malloc p " + bytes(96 * MiB));
    EXPECT_EQ(left(*a), all - 96 * MiB);
    EXPECT_EQ(left(*b), its - 96 * MiB) << "of a program without a rule";
    a->must("fill p 0x31 " + bytes(32 * MiB));
    EXPECT_EQ(left(*b), its - 96 * MiB) << "a part of it is there";
    EXPECT_EQ(launch(*a), 0);
    EXPECT_EQ(left(*b), its - 96 * MiB) << "all of it is there";
    a->must("sync");
    a->must("free p");
    EXPECT_EQ(left(*b), its);
    EXPECT_EQ(left(*a), all);
}

TEST_F(Promise, IsForWhoAsksAndTakesNineTenths) {
    auto a = replica();
    a->must("malloc p " + bytes(96 * MiB));
    const uint64_t rest = left(*a) / 10 * 9 / MiB * MiB;
    ASSERT_EQ(a->code("malloc q " + bytes(rest)), 0) << rest;
    EXPECT_EQ(launch(*a), 0);
    a->must("sync");
    EXPECT_EQ(load(*a, "p", 96 * MiB, 1), 0);
    EXPECT_EQ(load(*a, "q", rest, 2), 0);
    EXPECT_EQ(Replicas::expect(*a, "p", 96 * MiB, 1), "same");
}

TEST_F(Promise, OfThreeIsNotTheSameRoom) {
    std::vector<std::unique_ptr<Puppet>> three;
    for (int i = 0; i < 3; i++)
        three.push_back(replica());
    std::vector<Puppet *> have;
    for (auto &one : three) {
        one->send("malloc p " + bytes(96 * MiB));
    }
    for (auto &one : three)
        if (one->receive().code == 0)
            have.push_back(one.get());
    EXPECT_EQ(have.size(), 2u) << "as bare";
    for (size_t i = 0; i < have.size(); i++) {
        EXPECT_EQ(launch(*have[i]), 0);
        EXPECT_EQ(load(*have[i], "p", 96 * MiB, static_cast<int>(i)), 0);
    }
    for (auto &one : three) {
        EXPECT_EQ(launch(*one), 0);
        EXPECT_EQ(one->code("fill small 0x31 4096"), 0);
        one->must("sync");
    }
}

// Who asks for too much claims it for a moment. Others wait until that has passed, also where the
// process does not get the processor meanwhile.
TEST_F(Promise, OfNobodyIsInTheWay) {
    auto a = replica(), b = replica(), c = replica();
    unsigned seed = 1, refused = 0;
    c->must("malloc p " + bytes(left(*c) - 64 * MiB));
    for (int i = 0; i < 100; i++) {
        b->send("malloc q " + bytes(96 * MiB));
        usleep(static_cast<useconds_t>(rand_r(&seed) % 3000));
        b->stop();
        a->send("malloc r " + bytes(32 * MiB));
        usleep(30000);
        b->resume();
        refused += a->receive().code != 0;
        EXPECT_EQ(b->receive().code, 2);
        (*a)("free r");
    }
    EXPECT_EQ(refused, 0u);
}

TEST_F(Promise, IsKeptBesideWhoTakesMemoryAtOnce) {
    replicas->world.config(merging() + rule("eager", "eager", "merge", QUIET));
    auto a = replica();
    a->must("malloc p " + bytes(160 * MiB));
    auto b = named("eager");
    EXPECT_EQ(b->code("malloc q " + bytes(160 * MiB)), 2);
    EXPECT_EQ(b->code("cumalloc q " + bytes(160 * MiB)), 2);
    EXPECT_EQ(b->code("malloc q " + bytes(64 * MiB)), 0);
    EXPECT_EQ(launch(*a), 0);
    a->must("sync");
    EXPECT_EQ(load(*a, "p", 160 * MiB, 1), 0);
}

// The wait for room leaves no name behind that another would wait for.
TEST_F(Promise, IsAwaitedWithoutAName) {
    replicas->world.environment["GPUSHARE_SIM_LATE_POOL_MS"] = "2000";
    for (const char *backing : {"legacy", "vmm"}) {
        replicas->world.config(rule("out", "replica", "auto",
                                    std::string("size = 24MiB\nbacking = ") + backing + "\n") +
                               merging());
        auto a = replica(), b = replica(), c = replica();
        a->must("malloc p " + bytes(left(*a) - 32 * MiB));
        stop_in_a_claim(*b, 20 * MiB);
        EXPECT_EQ(a->code("leap 200 malloc q " + bytes(24 * MiB), 5000), 0) << backing;
        EXPECT_EQ(c->code("malloc q " + bytes(24 * MiB)), 0) << backing;
        EXPECT_EQ(replicas->world.region("out")["owner"]["pid"].number, c->pid) << backing;
        b->resume();
        EXPECT_EQ(b->receive().code, 2) << backing;
        c->must("free q");
    }
}

// Who has waited for room imports what another has exported meanwhile.
TEST_F(Promise, IsNotNeededWhereAnotherExports) {
    replicas->world.environment["GPUSHARE_SIM_LATE_POOL_MS"] = "2000";
    replicas->world.config(rule("out", "writer", "export", "size = 24MiB\n") +
                           rule("out", "replica", "auto", "size = 24MiB\n") + merging());
    auto a = replica(), b = replica();
    auto c = named("writer");
    a->must("malloc p " + bytes(left(*a) - 32 * MiB));
    stop_in_a_claim(*b, 20 * MiB);
    a->send("malloc q " + bytes(24 * MiB));
    nap();
    c->must("malloc q " + bytes(24 * MiB));
    EXPECT_EQ(replicas->world.region("out")["owner"]["pid"].number, c->pid);
    c->must("fill q 0x31 4");
    c->must("sync");
    EXPECT_EQ(a->receive().code, 0);
    EXPECT_EQ(a->must("read q 0 1"), "31");
    b->resume();
    EXPECT_EQ(b->receive().code, 2);
}

// A wait for room does not use up the time that a rule waits for the exporter.
TEST_F(Promise, IsAwaitedBesideTheExporter) {
    replicas->world.environment["GPUSHARE_SIM_LATE_POOL_MS"] = "2000";
    replicas->world.config(
        rule("out", "writer", "export", "size = 24MiB\nready = free\n") +
        rule("out", "replica", "auto", "size = 24MiB\nwait = 600ms\nmissing = fail\n") + merging());
    auto a = replica(), b = replica();
    auto c = named("writer");
    a->must("malloc p " + bytes(left(*a) - 56 * MiB));
    stop_in_a_claim(*b, 40 * MiB);
    a->send("malloc q " + bytes(24 * MiB)); // it waits until b's claim is 0.9 s old
    nap();
    c->must("malloc q " + bytes(24 * MiB));
    c->must("fill q 0x31 4");
    c->must("sync");
    usleep(900000);
    c->must("free q");
    EXPECT_EQ(a->receive().code, 0);
    EXPECT_EQ(a->must("read q 0 1"), "31");
    b->resume();
    EXPECT_EQ(b->receive().code, 2);
}

// One thread that is stuck in an allocation costs the others a second, once.
TEST_F(Promise, IsAwaitedOnceForAllCalls) {
    replicas->world.environment["GPUSHARE_SIM_LATE_POOL_MS"] = "30000";
    auto a = replica();
    a->must("malloc first 2097152");
    const std::string rest = bytes(left(*a));
    a->must("later 20 pool q " + bytes(64 * MiB));
    usleep(300000);
    const int64_t start = now_ms();
    for (int i = 0; i < 3; i++)
        EXPECT_EQ(a->code("malloc p " + rest, 9000), 2);
    EXPECT_LT(now_ms() - start, soon(0)); // it was six seconds
    a->kill();
}

// A thread's own claim, of a call that a handler has left, is in the way of nothing.
TEST_F(Promise, IsNotWithheldByACallThatWasLeft) {
    replicas->world.environment["GPUSHARE_SIM_LATE_POOL_MS"] = "2000";
    auto a = replica();
    Puppet witness(replicas->world, bare());
    a->must("malloc first 2097152");
    const uint64_t rest = left(*a), free = left(witness);
    EXPECT_EQ(a->code("leap 200 pool q " + bytes(64 * MiB), 5000), 0);
    EXPECT_EQ(a->code("malloc p " + bytes(rest)), 0);
    EXPECT_EQ(left(witness), free) << "it has memory already";
}

// What other rules of a replica take keeps to promises.
TEST_F(Promise, IsKeptBesideWhatTheReplicaExports) {
    for (const char *backing : {"legacy", "vmm"}) {
        replicas->world.config(rule("out", "replica", "export",
                                    std::string("size = 24MiB\nbacking = ") + backing + "\n") +
                               merging());
        auto a = replica(), b = replica();
        a->must("malloc p " + bytes(left(*a) - 8 * MiB));
        EXPECT_EQ(b->code("malloc q " + bytes(24 * MiB)), 2) << backing;
        EXPECT_EQ(launch(*a), 0) << backing;
        a->must("sync");
        a->must("free p");
        EXPECT_EQ(b->code("malloc q " + bytes(24 * MiB)), 0) << backing;
    }
}

// A program that has no merge rule gets what the driver gives: it has agreed to nothing.
TEST_F(Promise, BindsNoProgramWithoutAMergeRule) {
    auto a = replica(), b = other();
    a->must("malloc p " + bytes(left(*a)));
    EXPECT_EQ(left(*b), 0u);
    EXPECT_EQ(b->code("malloc q " + bytes(64 * MiB)), 0);
    EXPECT_EQ(launch(*a), 2);
    EXPECT_EQ(a->code("fill small 0x31 4096"), 0) << "it is there";
    b->must("free q");
    EXPECT_EQ(launch(*a), 0);
    a->must("sync");
}

TEST_F(Promise, EndsWithItsProcess) {
    auto a = replica(), b = replica();
    const uint64_t all = left(*b);
    a->must("malloc p " + bytes(160 * MiB));
    const auto child = a->spawn(); // it has all descriptors, and no promise
    a->stop();
    EXPECT_EQ(left(*b), all - 160 * MiB) << "one that is stopped has it";
    EXPECT_EQ(b->code("malloc q " + bytes(160 * MiB)), 2);
    a->kill();
    EXPECT_EQ(left(*b), all + 2 * MiB) << "and what it had";
    EXPECT_EQ(b->code("malloc q " + bytes(160 * MiB)), 0);
    EXPECT_EQ(load(*b, "q", 160 * MiB, 1), 0);
}

TEST_F(Promise, OfAContainerCountsAndEndsWithIt) {
    const std::vector<std::string> container = {"unshare", "--pid", "--fork", "--kill-child",
                                                "--mount-proc"};
    std::vector<std::string> nothing = container;
    nothing.emplace_back("true");
    if (command(nothing).status != 0)
        GTEST_SKIP() << "this user may not make such namespaces";
    auto b = replica();
    const uint64_t all = left(*b);
    How inside = how;
    inside.wrap = container;
    Puppet a(replicas->world, inside);
    a.must("malloc p " + bytes(160 * MiB));
    EXPECT_EQ(left(*b), all - 160 * MiB);
    EXPECT_EQ(b->code("malloc q " + bytes(160 * MiB)), 2);
    a.kill();
    EXPECT_TRUE(eventually([&] { return left(*b) == all; })) << all - left(*b);
}

TEST_F(Promise, OfAParentIsNotItsChilds) {
    auto a = replica(), b = other();
    const uint64_t all = left(*b);
    a->must("malloc p " + bytes(96 * MiB));
    a->must("fork malloc x 4194304;exit 0");
    a->must("fork _exit 0");
    EXPECT_EQ(left(*b), all - 96 * MiB);
    EXPECT_EQ(launch(*a), 0);
    a->must("sync");
    EXPECT_EQ(load(*a, "p", 96 * MiB, 1), 0);
    a->must("free p");
    EXPECT_TRUE(eventually([&] { return left(*b) == all; })) << all - left(*b);
}

// A merged block is promised nothing: its memory is there.
TEST_F(Promise, EndsWhereABlockIsMerged) {
    auto a = replica(), b = replica(), c = other();
    const uint64_t all = left(*c);
    for (Puppet *puppet : {a.get(), b.get()}) {
        puppet->must("malloc p " + bytes(64 * MiB));
        EXPECT_EQ(load(*puppet, "p", 64 * MiB, 1), 0);
    }
    EXPECT_TRUE(eventually([&] { return left(*c) == all - 64 * MiB; })) << all - left(*c);
    b->must("free p");
    EXPECT_EQ(left(*c), all - 64 * MiB);
    a->must("free p");
    EXPECT_TRUE(eventually([&] { return left(*c) == all; })) << all - left(*c);
}

// A copy that ends within a 64th of a block does not fill it, so the block keeps the memory that it
// was promised. After a second without another copy it counts as full: only a look that was quicker
// tells.
TEST_F(Promise, LastsUntilTheLastByteIsThere) {
    using std::chrono::steady_clock;
    auto a = replica(), b = replica(), c = other();
    const uint64_t all = left(*c);
    bool told = false;
    for (int i = 0; i < 20 && !told; i++) {
        EXPECT_TRUE(eventually([&] { return left(*c) == all; })) << "what was freed before";
        for (Puppet *puppet : {a.get(), b.get()})
            puppet->must("malloc p " + bytes(4 * MiB));
        const auto begun = steady_clock::now();
        for (Puppet *puppet : {a.get(), b.get()})
            EXPECT_EQ(load(*puppet, "p", 4 * MiB - 1000, 1), 0);
        usleep(300000);
        const uint64_t then = left(*c);
        told = steady_clock::now() - begun < std::chrono::milliseconds(900);
        EXPECT_TRUE(then == all - 8 * MiB || !told) << all - then;
        for (Puppet *puppet : {a.get(), b.get()}) {
            EXPECT_EQ(puppet->code("upload p " + bytes(4 * MiB - 1000) + " 1000 2 malloc"), 0);
            puppet->must("free p");
        }
    }
}

// What lies between tensors never comes.
TEST_F(Promise, EndsWhereABlockHasAGap) {
    auto a = replica(), b = replica(), c = other();
    const uint64_t all = left(*c);
    for (Puppet *puppet : {a.get(), b.get()}) {
        puppet->must("malloc p " + bytes(4 * MiB));
        EXPECT_EQ(load(*puppet, "p", 4 * MiB - 1000, 1), 0);
        EXPECT_TRUE(eventually([&] { return merged(*puppet) == 1; }));
    }
    EXPECT_TRUE(eventually([&] { return left(*c) == all - 4 * MiB; })) << all - left(*c);
    EXPECT_EQ(launch(*b), 0);
    b->must("sync");
    EXPECT_EQ(left(*c), all - 4 * MiB);
    EXPECT_EQ(Replicas::expect(*b, "p", 4 * MiB - 1000, 1), "same");
}

// Its replica may allocate what it gives back.
TEST_F(Promise, OfBlocksWithGapsIsForOthersAgain) {
    auto a = replica(), b = replica(), c = replica();
    for (Puppet *puppet : {a.get(), b.get()}) {
        load_with_gaps(*puppet, 3);
        EXPECT_TRUE(eventually([&] { return merged(*puppet) == 15; })) << merged(*puppet);
    }
    EXPECT_TRUE(eventually([&] { return c->code("malloc q " + bytes(96 * MiB)) == 0; }));
    EXPECT_EQ(launch(*c), 0);
    c->must("sync");
}

// What two of them have does not fit twice. Nothing waits for the second to pass.
TEST_F(Promise, OfBlocksWithGapsIsNotNeededByLaunches) {
    replicas->world.config(merging("quiet = 0\novercommit = on\n"));
    auto a = replica(), b = replica();
    load_with_gaps(*a, 5);
    EXPECT_EQ(launch(*a), 0);
    ASSERT_TRUE(eventually([&] { return merged(*a) == 25; })) << merged(*a);
    load_with_gaps(*b, 5);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(launch(*b), 0);
        b->must("sync");
    }
    EXPECT_EQ(b->must("expect p 0 " + bytes(32 * MiB - 256) + " 1"), "same");
}

TEST_F(Promise, IsNotForCopiesOfMergedBlocks) {
    auto a = replica(), b = replica();
    for (Puppet *puppet : {a.get(), b.get()}) {
        puppet->must("malloc p " + bytes(32 * MiB));
        EXPECT_EQ(load(*puppet, "p", 32 * MiB, 1), 0);
    }
    const auto is_settled = [&] { // their blocks are merged
        const uint64_t before = left(*a);
        usleep(1000000);
        return left(*a) == before;
    };
    ASSERT_TRUE(eventually(is_settled, 20000));
    const uint64_t rest = left(*a) - 8 * MiB;
    a->must("malloc q " + bytes(rest));
    EXPECT_EQ(b->code("fill p 0x31 4096"), 2) << "what is left is for q";
    EXPECT_EQ(launch(*a), 0);
    a->must("sync");
    EXPECT_EQ(Replicas::expect(*b, "p", 32 * MiB, 1), "same");
    a->must("free q");
    EXPECT_EQ(b->code("fill p 0x31 4096"), 0);
}

TEST_F(Promise, IsNotForSmallAllocations) {
    auto a = replica(), b = replica();
    a->must("malloc p " + bytes(left(*a)));
    int given = 0;
    while (given < 16 && b->code("malloc s" + std::to_string(given) + " 524288") == 0)
        given++;
    EXPECT_LT(given, 4) << "no more than what lies beside others";
    EXPECT_EQ(launch(*a), 0);
    a->must("sync");
}

// The driver would free it again only when the device is idle.
TEST_F(Promise, IsNotTakenForAMomentByAPool) {
    auto a = replica(), b = replica();
    a->must("malloc p " + bytes(left(*a)));
    b->must("busy 300");
    b->send("pool q " + bytes(64 * MiB));
    nap();
    EXPECT_EQ(launch(*a), 0);
    EXPECT_EQ(b->receive().code, 2);
    a->must("sync");
    a->must("free p");
    EXPECT_EQ(b->code("pool q " + bytes(64 * MiB)), 0);
}

// Its claim ends with the next allocation of any thread.
TEST_F(Promise, IsNotHeldUpByAThreadThatEndsInTheCall) {
    replicas->world.environment["GPUSHARE_SIM_LATE_POOL_MS"] = "1";
    auto a = replica(), b = replica();
    a->must("malloc first 2097152");
    const auto all = bytes(left(*a));
    ASSERT_EQ(b->code("pending pool q " + bytes(64 * MiB)), 125) << "cancelled in the driver";
    EXPECT_TRUE(eventually([&] { return b->code("malloc p " + all) == 0; }));
}

// Its claim counts for a moment, and it takes nothing that is promised meanwhile.
TEST_F(Promise, IsNotHeldUpByAProcessThatIsStoppedInTheCall) {
    replicas->world.environment["GPUSHARE_SIM_LATE_POOL_MS"] = "1000";
    auto a = replica(), b = replica();
    a->must("malloc first 2097152");
    const auto all = bytes(left(*a));
    stop_in_a_claim(*b, 64 * MiB);
    EXPECT_EQ(a->code("malloc o " + all), 0);
    a->must("free o");
    EXPECT_EQ(a->code("malloc p " + all), 0) << "it is promised";
    b->resume();
    EXPECT_EQ(b->receive().code, 2);
    EXPECT_EQ(launch(*a), 0);
    a->must("sync");
}

// What a claim was in the way of is merged all the same: it gets its memory when it is touched.
TEST_F(Promise, IsMadeWhenAClaimHasPassed) {
    replicas->world.environment["GPUSHARE_SIM_LATE_POOL_MS"] = "2000";
    auto a = replica(), b = replica();
    Puppet witness(replicas->world, bare());
    a->must("malloc first 2097152");
    const uint64_t rest = left(*a), free = left(witness);
    stop_in_a_claim(*b, 64 * MiB);
    EXPECT_EQ(a->code("malloc p " + bytes(rest)), 0);
    EXPECT_EQ(left(witness), free) << "it has memory already";
    b->resume();
    EXPECT_EQ(b->receive().code, 2);
    EXPECT_EQ(launch(*a), 0);
    a->must("sync");
}

// The wait for it leaves nothing behind that another would wait for.
TEST_F(Promise, IsLeftToOthersWhereAHandlerLeavesTheCall) {
    replicas->world.environment["GPUSHARE_SIM_LATE_POOL_MS"] = "2000";
    auto a = replica(), b = replica(), c = replica();
    a->must("malloc first 2097152");
    const uint64_t rest = left(*a);
    stop_in_a_claim(*b, 64 * MiB);
    EXPECT_EQ(a->code("leap 200 malloc p " + bytes(rest), 5000), 0);
    EXPECT_EQ(c->code("malloc p " + bytes(rest)), 0);
    c->must("free p");
    EXPECT_EQ(a->code("malloc p " + bytes(rest)), 0);
    EXPECT_EQ(launch(*a), 0);
    b->resume();
    EXPECT_EQ(b->receive().code, 2);
    a->must("sync");
}

// A process without descriptors goes by what it saw last, which another claimed for a moment.
TEST_F(Promise, OfAnotherIsRememberedWithoutItsClaims) {
    replicas->world.environment["GPUSHARE_SIM_LATE_POOL_MS"] = "500";
    auto a = replica(), b = replica();
    a->must("malloc first 2097152");
    const uint64_t all = left(*a);
    b->send("pool q " + bytes(64 * MiB));
    nap();
    EXPECT_EQ(a->code("malloc p " + bytes(all + 8 * MiB)), 2) << "it sees the claim";
    const struct rlimit few = {3, 1024};
    ASSERT_EQ(prlimit(a->pid, RLIMIT_NOFILE, &few, nullptr), 0);
    EXPECT_EQ(b->receive().code, 0);
    EXPECT_EQ(a->code("malloc p " + bytes(all - 72 * MiB)), 0);
}

// Behind a kernel, a pool gives a stream again what it has freed on it.
TEST_F(Promise, IsNotWhatAPoolHasAlready) {
    auto a = replica(), b = replica();
    b->must("pool q " + bytes(64 * MiB));
    a->must("malloc p " + bytes(left(*a)));
    b->must("busy 300");
    b->must("unpool q");
    EXPECT_EQ(b->code("pool r " + bytes(64 * MiB)), 0);
    EXPECT_EQ(b->code("pool s " + bytes(64 * MiB)), 2);
    EXPECT_EQ(launch(*a), 0);
    a->must("sync");
}

// Nobody knows whether a small allocation lies beside others. What has too little memory meanwhile
// waits until it is free again.
TEST_F(Promise, IsThereWhenASmallAllocationHasFailed) {
    auto a = replica(), b = replica();
    for (const char *name : {"s0", "s1", "s2"})
        b->must(std::string("malloc ") + name + " 524288");
    const auto while_one_fails = [&b](const std::function<int()> &act) {
        b->must("busy 300");
        b->send("malloc s3 524288");
        nap();
        EXPECT_EQ(act(), 0);
        EXPECT_EQ(b->receive().code, 2);
    };
    a->must("malloc p " + bytes(left(*a) - 2 * MiB));
    EXPECT_EQ(launch(*a), 0);
    a->must("sync");
    a->must("malloc q " + bytes(left(*a)));
    while_one_fails([&] { return a->code("fill q 0x31 4096"); });
    a->must("free q");
    a->must("free p");
    a->must("malloc p " + bytes(left(*a)));
    while_one_fails([&] { return launch(*a); });
    a->must("sync");
}

// What is given back has no owner in the program: a handler must not come between.
TEST_F(Promise, IsGivenBackAlthoughAHandlerLeavesTheCall) {
    auto a = replica(), b = replica();
    const uint64_t before = left(*b);
    for (const char *name : {"s0", "s1", "s2"})
        b->must(std::string("malloc ") + name + " 524288");
    a->must("malloc p " + bytes(left(*a)));
    b->must("busy 1000");
    EXPECT_EQ(b->code("leap 300 malloc s3 524288", 5000), 0);
    b->must("sync");
    a->must("free p");
    for (const char *name : {"s0", "s1", "s2"})
        b->must(std::string("free ") + name);
    EXPECT_EQ(left(*b), before);
}

TEST_F(Promise, IsNotLimitedWhereTheRuleSaysSo) {
    replicas->world.config(merging("quiet = 0\novercommit = on\n"));
    std::vector<std::unique_ptr<Puppet>> three;
    for (int i = 0; i < 3; i++)
        three.push_back(replica());
    const uint64_t all = left(*three[0]);
    for (auto &one : three)
        ASSERT_EQ(one->code("malloc p " + bytes(160 * MiB)), 0);
    EXPECT_EQ(three[0]->code("malloc q " + bytes(160 * MiB)), 0);
    EXPECT_EQ(three[0]->code("malloc s 4096"), 0)
        << "it is taken at once, and nothing for the others";
    EXPECT_GT(left(*three[0]), all - 8 * MiB) << "nobody counts them";
    three[0]->must("free q");
    for (auto &one : three)
        EXPECT_EQ(load(*one, "p", 160 * MiB, 1), 0);
    for (auto &one : three) {
        EXPECT_EQ(Replicas::expect(*one, "p", 160 * MiB, 1), "same");
        EXPECT_EQ(launch(*one), 0);
    }
}

// Not even for the moment in which it is tried.
TEST_F(Promise, OfWhatCannotFitTakesNothing) {
    auto a = replica(), b = other();
    const uint64_t all = left(*b);
    int refused = 0;
    for (int i = 0; i < 300; i++) {
        a->send("malloc p " + bytes(2 * all));
        refused += left(*b) < all;
        EXPECT_EQ(a->receive().code, 2);
    }
    EXPECT_EQ(refused, 0);
}

// What one GPU, or one area, has too little memory for fails nothing else.
TEST(PromiseOfACard, IsOfThatCardAlone) {
    SIM_ONLY("it fills the card");
    Replicas none(0);
    How how = none.on_a_small_card();
    none.on_two_cards();
    Puppet a(none.world, how), hog(none.world, bare());
    a.must("device 1");
    a.must("malloc there 4096");
    a.must("malloc lazy 8388608");
    a.must(kernels());
    a.must("device 0");
    a.must("malloc small 4096");
    a.must("malloc p " + bytes(128 * MiB));
    a.must("malloc q 8388608");
    hog.must("malloc all " + bytes(224 * MiB)); // of what was promised
    EXPECT_EQ(a.code("launch - test_read small 1 small"), 2) << "it may touch it";
    EXPECT_EQ(a.code("fill q 0x31 8388608"), 0);
    EXPECT_EQ(a.code("copy q 4096 q 0 4096"), 0);
    EXPECT_EQ(a.must("read q 4096 2"), "3131");
    a.must("device 1");
    EXPECT_EQ(a.code("launch - test_read lazy 1 there"), 0) << "another card";
    EXPECT_EQ(a.code("sync"), 0);
    EXPECT_EQ(a.code("fill lazy 0x32 8388608"), 0);
    EXPECT_EQ(a.must("read lazy 0 2"), "3232");
    a.must("device 0");
    a.must("free p");
    EXPECT_EQ(a.code("launch - test_read q 1 small"), 0);
    a.must("sync");
}

// What lacks for good on one card is waited for no more; what lacks for a moment on another one is.
TEST(PromiseOfACard, ThatLacksInVainEndsNoWaitOnAnother) {
    SIM_ONLY("it fills the cards");
    Replicas none(0);
    How how = none.on_a_small_card();
    none.on_two_cards();
    Puppet a(none.world, how), hog(none.world, bare());
    a.must(kernels());
    for (const std::string card : {"0", "1"}) {
        a.must("device " + card);
        a.must("malloc small" + card + " 4096");
        a.must("malloc p" + card + " " + bytes(128 * MiB));
        hog.must("device " + card);
        hog.must("malloc all" + card + " " + bytes(224 * MiB)); // of what was promised
    }
    a.must("device 0");
    EXPECT_EQ(a.code("launch - test_read small0 1 small0"), 2);
    a.must("device 1");
    a.send("launch - test_read small1 1 small1");
    EXPECT_FALSE(a.answers(300));
    hog.must("free all1");
    EXPECT_EQ(a.receive().code, 0);
    EXPECT_EQ(a.code("sync"), 0);
}

// The same of claims: one that is never over on one card, and one that passes on another.
TEST(PromiseOfACard, ThatIsClaimedInVainEndsNoWaitOnAnother) {
    SIM_ONLY("it fills the cards");
    Replicas none(0);
    How how = none.on_a_small_card();
    none.on_two_cards();
    none.world.environment["GPUSHARE_SIM_LATE_POOL_MS"] = "60000";
    Puppet a(none.world, how), b(none.world, how);
    for (Puppet *one : {&a, &b}) {
        one->must("device 1");
        one->must("malloc there 4096");
    }
    a.must("device 0");
    a.must("malloc first 2097152");
    const std::string rest = bytes(Promise::left(a));
    a.must("later 20 pool q " + bytes(64 * MiB));
    usleep(300000);
    EXPECT_EQ(a.code("malloc p " + rest), 2) << "of card 0";
    a.must("device 1");
    const uint64_t more = Promise::left(a);
    Promise::stop_in_a_claim(b, 64 * MiB);
    EXPECT_EQ(a.code("malloc p " + bytes(more - 32 * MiB)), 0) << "it waits until the claim is old";
}

TEST(PromiseOfACard, IsNotCountedOnAnother) {
    SIM_ONLY("it fills the card");
    Replicas none(0);
    How how = none.on_a_small_card();
    none.on_two_cards();
    Puppet a(none.world, how), b(none.world, How());
    const uint64_t first = b("info").number(0);
    b.must("device 1");
    const uint64_t second = b("info").number(0);
    a.must("device 1");
    a.must("malloc p " + bytes(160 * MiB));
    EXPECT_EQ(b("info").number(0), second - 160 * MiB);
    b.must("device 0");
    EXPECT_EQ(b("info").number(0), first);
    a.must("device 0");
    EXPECT_EQ(a.code("malloc q " + bytes(160 * MiB)), 0);
    EXPECT_EQ(b("info").number(0), first - 160 * MiB);
}

// A pool has memory of its stream's device, whichever is current.
TEST(PromiseOfACard, IsNotOfAPoolOnAnother) {
    SIM_ONLY("it fills the card");
    Replicas none(0, merging());
    How how = none.on_a_small_card();
    none.on_two_cards();
    Puppet a(none.world, how), b(none.world, how);
    const auto pool = bytes(64 * MiB);
    a.must("malloc small 4096");
    for (const char *device : {"1", "0"}) {
        b.must(std::string("device ") + device);
        b.must(std::string("stream s") + device);
    }
    a.must("malloc p " + bytes(a("info").number(0)));
    EXPECT_EQ(b.code("pool q " + pool + " s1"), 0);
    EXPECT_EQ(b.code("pool r " + pool + " s0"), 2);
    b.must("device 1");
    EXPECT_EQ(b.code("pool q " + pool + " s1"), 0);
    EXPECT_EQ(b.code("pool r " + pool + " s0"), 2);
    EXPECT_EQ(a.code("fill p 0x31 4096"), 0);
}

} // namespace
