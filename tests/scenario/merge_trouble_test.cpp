// merge_trouble_test.cpp - replicas and keepers that die or stop: no wrong byte, nothing left, and
// nobody waits.
#include "scenario/merging.hpp"

#include <signal.h>
#include <sys/syscall.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace {

constexpr uint64_t SIZE = 10 * MiB;

std::string contents(const std::filesystem::path &path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

// Of this world; -1: there is none.
pid_t keeper_of(const World &world) {
    const std::string mark = "GPUSHARE_DIR=" + world.environment.at("GPUSHARE_DIR");
    for (const auto &process : std::filesystem::directory_iterator("/proc")) {
        const pid_t pid = atoi(process.path().filename().c_str());
        if (pid > 0 &&
            contents(process.path() / "cmdline").find(std::string("\0keeper", 7)) !=
                std::string::npos &&
            contents(process.path() / "environ").find(mark + '\0') != std::string::npos)
            return pid;
    }
    return -1;
}

// What a process that merges nothing tells of itself, while it runs.
std::string reason(const World &world, const Puppet &puppet) {
    const Json shown = Json::parse(world.tool({"show", "--json", std::to_string(puppet.pid)}).out);
    return shown[0]["unmerged"].text;
}

TEST(MergeEnds, WithoutMembarrierAndEveryToolSaysSo) {
    World world;
    world.config(merging());
    How how;
    how.as = "replica";
    Puppet one(world, how);
    one.must("refuse " + std::to_string(SYS_membarrier));
    one.must("malloc p 10485760");
    one.must(Replicas::upload("p", SIZE, 3));
    EXPECT_EQ(Replicas::expect(one, "p", SIZE, 3), "same");
    const auto findings = world.findings();
    ASSERT_EQ(findings.size(), 1u) << world.logs();
    EXPECT_EQ(findings[0].id, "share-fallback");
    EXPECT_EQ(reason(world, one), "the kernel refuses membarrier(2)");
    EXPECT_NE(world.tool({"show", std::to_string(one.pid)}).out.find("refuses membarrier(2)"),
              std::string::npos);
    EXPECT_NE(world.tool({"doctor"}).out.find("merges nothing"), std::string::npos);
}

// A /dev in which the devices are files.
const std::vector<std::string> with_devices = {
    "unshare", "--mount", "sh", "-c",
    "d=$(mktemp -d) && mount -t tmpfs none $d && mkdir $d/shm $d/infiniband &&"
    " mount --bind /dev/shm $d/shm && for f in null zero urandom; do : >$d/$f &&"
    " mount --bind /dev/$f $d/$f || exit; done &&"
    " : >$d/infiniband/uverbs0 && : >$d/gdrdrv && : >$d/nvidia-fs1 &&"
    " mount --rbind $d /dev && exec \"$0\" \"$@\""};

bool may_have_devices() {
    auto test = with_devices;
    test.push_back("true");
    return command(test).status == 0;
}

How replica_with_devices() {
    How how;
    how.as = "replica";
    how.wrap = with_devices;
    return how;
}

TEST(MergeEnds, WithADeviceForRdmaAndEveryToolSaysSo) {
    if (!may_have_devices())
        GTEST_SKIP() << "this user may not mount";
    const std::pair<const char *, const char *> cases[] = {
        {"quiet = 0\n", "/dev/infiniband/uverbs0"},
        {QUIET, "/dev/gdrdrv"},
        {QUIET, "/dev/nvidia-fs1"}};
    for (const auto &[quiet, device] : cases) {
        World world;
        world.config(merging(quiet));
        Puppet a(world, replica_with_devices()), b(world, replica_with_devices());
        for (Puppet *puppet : {&a, &b}) {
            puppet->must(std::string("hold ") + device);
            puppet->must("malloc p 10485760");
            puppet->must(Replicas::upload("p", SIZE, 3));
        }
        EXPECT_TRUE(eventually([&] {
            return reason(world, a) == "a device for RDMA is open, and the rule has not rdma = on";
        })) << device;
        usleep(1000000);
        EXPECT_EQ(world.entries("regions"), 0u) << device;
        EXPECT_NE(world.logs().find(std::string("(") + device + ")"), std::string::npos)
            << world.logs();
    }
}

TEST(MergeEnds, WithADeviceForRdmaAlsoWhenTheMainThreadHasEnded) {
    SIM_ONLY("whether a card's driver starts so late is not known");
    if (!may_have_devices())
        GTEST_SKIP() << "this user may not mount";
    World world;
    world.config(merging(QUIET));
    Puppet a(world, replica_with_devices());
    a.must("hold /dev/gdrdrv");
    a.must("depart");
    a.must("malloc p 10485760");
    a.must(Replicas::upload("p", SIZE, 3));
    EXPECT_TRUE(eventually([&] { return contains(world.logs(), "(/dev/gdrdrv)"); }))
        << world.logs();
}

TEST(MergeEnds, WhenADeviceForRdmaIsOpened) {
    if (!may_have_devices())
        GTEST_SKIP() << "this user may not mount";
    for (const bool allowed : {false, true}) {
        World world;
        world.config(merging(std::string(QUIET) + (allowed ? "rdma = on\n" : "")));
        Puppet a(world, replica_with_devices());
        a.must("malloc p 10485760");
        a.must(Replicas::upload("p", SIZE, 3));
        EXPECT_TRUE(eventually([&] { return world.entries("regions") == 2; }));
        a.must("hold /dev/infiniband/uverbs0");
        a.must("malloc q 10485760");
        a.must(Replicas::upload("q", SIZE, 4));
        EXPECT_EQ(eventually([&] { return world.entries("regions") == 4; }, allowed ? 8000 : 2000),
                  allowed);
        EXPECT_EQ(reason(world, a).empty(), allowed);
        EXPECT_EQ(Replicas::expect(a, "p", SIZE, 3), "same");
        EXPECT_EQ(Replicas::expect(a, "q", SIZE, 4), "same");
    }
}

// A program may confine itself when it has begun.
TEST(MergeEnds, WhenMembarrierIsRefusedFromNowOn) {
    Replicas one(1, merging(QUIET));
    one.load("p", SIZE, 3);
    EXPECT_TRUE(eventually([&] { return one.world.entries("regions") == 2; }));
    EXPECT_EQ(reason(one.world, one[0]), "");
    one[0].must("refuse " + std::to_string(SYS_membarrier));
    one.load("q", SIZE, 4);
    EXPECT_TRUE(eventually(
        [&] { return reason(one.world, one[0]) == "the kernel refuses membarrier(2)"; }));
    EXPECT_EQ(one.world.logs().find("nothing is merged: "),
              one.world.logs().rfind("nothing is merged: "));
    EXPECT_NE(one.world.logs().find("nothing is merged: "), std::string::npos);
    one.expect_all("q", SIZE, 4);
}

TEST(MergeEnds, WhenMembarrierIsRefusedAndWhatIsMergedCanBeWritten) {
    Replicas two(2);
    two.load("p", SIZE, 3);
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    two[0].must("refuse " + std::to_string(SYS_membarrier));
    for (const char *at : {"64", "8388672"}) { // two blocks
        EXPECT_EQ(two[0].code(std::string("write p ") + at + " 0123456789", 20000), 0);
        EXPECT_EQ(two[0].must(std::string("read p ") + at + " 5"), "0123456789");
    }
    EXPECT_EQ(two.expect(two[1], "p", SIZE, 3), "same");
    EXPECT_TRUE(eventually(
        [&] { return reason(two.world, two[0]) == "the kernel refuses membarrier(2)"; }));
}

TEST(MergeEnds, WhereItsThreadCannotBeStarted) {
    Replicas one(1, merging(QUIET));
    for (const long call : {SYS_clone, SYS_clone3})
        one[0].must("refuse " + std::to_string(call));
    one.load("p", SIZE, 3);
    EXPECT_EQ(reason(one.world, one[0]), "the thread that merges could not be started");
    one.each("sync"); // it is tried again
    one.load("q", SIZE, 4);
    one.expect_all("p", SIZE, 3);
    EXPECT_EQ(reason(one.world, one[0]), "the thread that merges could not be started");
}

// What lasts less than 2 s is no reason.
TEST(MergeEnds, WhileTheKeeperDoesNotAnswer) {
    Replicas one(1);
    one.load("p", SIZE, 3);
    ASSERT_TRUE(eventually([&] { return one.world.entries("regions") == 2; }));
    const pid_t keeper = keeper_of(one.world);
    ASSERT_EQ(::kill(keeper, SIGSTOP), 0);
    const int64_t stopped = now_ms();
    one.load("q", SIZE, 4);
    EXPECT_TRUE(
        eventually([&] { return reason(one.world, one[0]) == "no keeper takes or gives blocks"; }));
    EXPECT_GE(now_ms() - stopped, 2000);
    ASSERT_EQ(::kill(keeper, SIGCONT), 0);
    EXPECT_TRUE(eventually([&] { return reason(one.world, one[0]).empty(); }));
    EXPECT_TRUE(eventually([&] { return one.world.entries("regions") == 4; }));
    one.expect_all("q", SIZE, 4);
}

TEST(MergeKeeper, IsReplacedAndGetsTheBlocksAgain) {
    Replicas two(2);
    two.load("p", SIZE, 3); // blocks of 8 and 2 MiB
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    const pid_t first = keeper_of(two.world);
    ASSERT_GT(first, 0);
    ASSERT_EQ(::kill(first, SIGKILL), 0);
    two.expect_all("p", SIZE, 3);
    Puppet &late = two.start();
    late.must("malloc p 10485760");
    late.must(two.upload("p", SIZE, 3));
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    EXPECT_NE(keeper_of(two.world), first);
    two.kill(0); // who created them: the next keeper gets them of those that have them open
    ASSERT_EQ(::kill(keeper_of(two.world), SIGKILL), 0);
    Puppet &last = two.start();
    last.must("malloc p 10485760");
    last.must(two.upload("p", SIZE, 3));
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    for (Puppet *puppet : {&two[1], &late, &last})
        EXPECT_EQ(two.expect(*puppet, "p", SIZE, 3), "same");
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
    EXPECT_EQ(two.left(), "");
}

// Old replicas keep what they have merged. New ones merge among themselves, in another directory.
TEST(MergeDirectory, ThatVanishesIsToldOnceByEveryOneThatHadIt) {
    Replicas two(2);
    two.load("p", SIZE, 3);
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    std::filesystem::remove_all(two.world.environment["GPUSHARE_DIR"]);
    Puppet &late = two.start();
    late.must("malloc p 10485760");
    late.must(two.upload("p", SIZE, 3));
    EXPECT_TRUE(eventually([&] { return two.world.count("store-unavailable") == 2; }))
        << two.world.logs();
    const Result doctor = two.world.tool({"doctor"});
    EXPECT_NE(doctor.out.find("one that was removed"), std::string::npos) << doctor.out;
    usleep(1500000);
    const auto findings = two.world.findings();
    ASSERT_EQ(findings.size(), 2u) << two.world.logs();
    EXPECT_NE(findings[0].detail.find(" was removed: processes that started since share nothing "),
              std::string::npos)
        << findings[0].detail;
    for (Puppet *puppet : {&two[0], &two[1], &late})
        EXPECT_EQ(two.expect(*puppet, "p", SIZE, 3), "same");
    two[0].must("write p 0 " + hex_bytes("cd", 4));
    EXPECT_EQ(two.expect(two[1], "p", SIZE, 3), "same");
}

// Merging is off until it answers; everything else goes on, in memory of one's own.
TEST(MergeKeeper, ThatIsStoppedCostsAMomentOnce) {
    Replicas two(2);
    two.load("p", SIZE, 3);
    EXPECT_TRUE(two.use(SIZE));
    const pid_t keeper = keeper_of(two.world);
    ASSERT_EQ(::kill(keeper, SIGSTOP), 0);
    Puppet &late = two.start();
    late.must("malloc q 10485760");
    two[0].must("malloc q 10485760");
    for (Puppet *puppet : {&late, &two[0]}) {
        int64_t start = now_ms();
        puppet->must(two.upload("q", SIZE, 4));
        EXPECT_LT(now_ms() - start, 200 + soon(400));
        for (int i = 0; i < 20; i++)
            puppet->must("upload q 0 2097152 4 sync");
        puppet->must("write q 0 " + hex_bytes("ab", 4));
        EXPECT_EQ(puppet->must("read q 0 4"), "abababab");
        EXPECT_LT(now_ms() - start, 200 + soon(1500));
    }
    two[0].must("write p 0 " + hex_bytes("cd", 4)); // what is merged becomes its own
    EXPECT_EQ(two.expect(two[1], "p", SIZE, 3), "same");
    two[1].must("free p");
    const int64_t start = now_ms();
    EXPECT_EQ(late.quit("return"), 0);
    EXPECT_LT(now_ms() - start, soon(1500));
    ASSERT_EQ(::kill(keeper, SIGCONT), 0);
    two[1].must("malloc r 8388608");
    two[1].must(two.upload("r", 8 * MiB, 9));
    EXPECT_TRUE(eventually( // once it answers again
        [&] {
            for (const std::string &name : two.world.files("names"))
                if (name.find(".8.") != std::string::npos)
                    return true;
            return false;
        },
        soon(8000)));
}

// The key of the directory's hashes.
TEST(MergeSecret, ThatIsDamagedIsToldOnceAndEndsWithGc) {
    Replicas two(1);
    two.each("malloc p 2097152");
    ASSERT_TRUE(eventually([&] { return two.world.entries("procs") == 1; }));
    two.kill(0);
    const std::string file = std::string(two.world.store().path) + "/secret";
    std::ofstream(file) << "no key";
    std::filesystem::permissions(file, std::filesystem::perms(0600));
    two.all.clear();
    two.costs.clear();
    two.start();
    two.start();
    two.load("p", 2 * MiB, 3);
    two.load("q", 2 * MiB, 3);
    EXPECT_TRUE(eventually([&] { return two.world.count("record-invalid") == 2; }))
        << two.world.logs(); // one a process
    EXPECT_TRUE(eventually([&] {
        return reason(two.world, two[0]) ==
               "the published directory, or the secret in it, cannot be used";
    }));
    EXPECT_EQ(two.world.entries("regions"), 0u);
    EXPECT_EQ(two.world.count("record-invalid"), 2u) << two.world.logs();
    EXPECT_EQ(two.world.tool({"gc"}).status, 0);
    EXPECT_TRUE(two.use(2 * MiB)) << two.in_use();
    EXPECT_TRUE(eventually([&] { return reason(two.world, two[0]).empty(); }));
    two.expect_all("p", 2 * MiB, 3);
    two.expect_all("q", 2 * MiB, 3);
}

// The first try fails, the next one, a second later, does not.
TEST(MergeSecret, ThatCannotBeUsedForAMomentIsNoReason) {
    Replicas two(1);
    two.each("malloc p 2097152");
    ASSERT_TRUE(eventually([&] { return two.world.entries("procs") == 1; }));
    const std::string file = std::string(two.world.store().path) + "/secret";
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(file); }));
    std::filesystem::permissions(file, std::filesystem::perms(0666));
    Puppet &late = two.start();
    late.must("malloc p 2097152");
    EXPECT_TRUE(eventually([&] { return two.world.count("record-invalid") == 1; }));
    std::filesystem::permissions(file, std::filesystem::perms(0600));
    late.must(two.upload("p", 2 * MiB, 3));
    EXPECT_TRUE(eventually([&] { return two.world.entries("regions") == 1; }));
    EXPECT_EQ(two.world.logs().find("nothing is merged: "), std::string::npos) << two.world.logs();
}

// It has a block that one process offered, and answers when that process waits no more.
class MergeKeeperIsLate : public testing::Test {
  protected:
    void SetUp() override {
        all.world.environment["GPUSHARE_EVENT_LOG"] = all.world.path("events");
        first = &all.start();
        second = &all.start();
        first->must("malloc p 4194304");
        first->must(all.upload("p", 4 * MiB, 1));
        ASSERT_TRUE(eventually([&] { return events().size() == 1; }));
        usleep(1500000); // it is known to this process
        const pid_t keeper = keeper_of(all.world);
        ASSERT_EQ(::kill(keeper, SIGSTOP), 0);
        first->must("malloc q 2097152");
        first->must(all.upload("q", 2 * MiB, 2));
        usleep(1500000); // to offer it, and to wait 200 ms
        first->stop();
        ASSERT_EQ(::kill(keeper, SIGCONT), 0);
        ASSERT_TRUE(eventually([&] { return all.world.entries("regions") == 2; }));
    }
    std::vector<Json> events() const {
        std::vector<Json> lines;
        std::ifstream file(all.world.path("events"));
        for (std::string line; std::getline(file, line);)
            lines.push_back(Json::parse(line));
        return lines;
    }
    Replicas all{0};
    Puppet *first = nullptr, *second = nullptr;
};

TEST_F(MergeKeeperIsLate, WhatOthersGotIsNotWritten) {
    second->must("malloc q 2097152");
    second->must(all.upload("q", 2 * MiB, 2));
    ASSERT_TRUE(eventually([&] { return events().size() == 2; }));
    first->send("write q 0 " + hex_bytes("cd", 4));
    first->signal(SIGCONT);
    EXPECT_EQ(first->receive().code, 0);
    EXPECT_EQ(all.expect(*second, "q", 2 * MiB, 2), "same");
    EXPECT_EQ(first->must("read q 0 4"), "cdcdcdcd");
}

TEST_F(MergeKeeperIsLate, ABlockIsNotSavedByItself) {
    first->signal(SIGCONT);
    ASSERT_TRUE(eventually([&] { return events().size() == 2; }));
    EXPECT_EQ(events()[1].members.count("saved"), 0u);
}

// They load, write, read, start and end, one or the other of them and the keeper killed at any
// moment.
TEST(MergeTrouble, AnybodyMayDieAtAnyMoment) {
    std::mt19937 dice(20261122);
    const auto roll = [&](unsigned sides) { return static_cast<unsigned>(dice() % sides); };
    Replicas all(0, merging("quiet = 0\n"));
    std::vector<int> seed; // of each one's bytes; 0: not loaded yet
    for (int round = 0; round < 60; round++) {
        if (all.all.size() < 4) {
            all.start().must("malloc p 10485760");
            seed.push_back(0);
        }
        const size_t i = roll(static_cast<unsigned>(all.all.size()));
        Puppet &one = all[i];
        const unsigned kind = roll(10);
        if (kind < 5) {
            seed[i] = roll(4) ? 1 : 2 + static_cast<int>(roll(3));
            one.must(all.upload("p", SIZE, seed[i]));
        } else if (kind < 7 && seed[i]) {
            EXPECT_EQ(all.expect(one, "p", SIZE, seed[i]), "same") << round;
        } else if (kind == 7 && seed[i]) {
            one.must("write p 1234567 00");
            one.must("upload p 1234560 16 " + std::to_string(seed[i]) + " sync");
        } else if (kind == 8) {
            one.send(all.upload("p", SIZE, 1));
            usleep(roll(60000));
            one.kill();
            all.all.erase(all.all.begin() + static_cast<long>(i));
            seed.erase(seed.begin() + static_cast<long>(i));
        } else if (kind == 9) {
            const pid_t keeper = keeper_of(all.world);
            if (keeper > 0)
                ::kill(keeper, SIGKILL);
        }
        for (size_t j = 0; j < all.all.size(); j++)
            if (seed[j] && roll(4) == 0) {
                EXPECT_EQ(all.expect(all[j], "p", SIZE, seed[j]), "same") << round;
            }
    }
    for (size_t j = 0; j < all.all.size(); j++) {
        if (seed[j]) {
            EXPECT_EQ(all.expect(all[j], "p", SIZE, seed[j]), "same");
        }
        all[j].must("free p");
    }
    EXPECT_EQ(all.world.findings().size(), 0u) << all.world.logs();
    EXPECT_EQ(all.left(), "");
    EXPECT_TRUE(on_gpu() || all.world.used() == 0) << all.world.used();
}

} // namespace
