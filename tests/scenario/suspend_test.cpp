// gpushare suspend and resume: programs take turns on one card.

extern "C" {
#include "directory/orders.h"
#include "directory/room_lock.h"
}
#include "scenario/keepers.hpp"
#include "scenario/merging.hpp"

namespace {

std::string suspendable(const std::string &rules) {
    return "[gpushare]\nsuspend = on\n" + rules;
}

std::string frames(const std::string &more = "backing = vmm\n") {
    return suspendable(rule("frames", "producer", "export", "size = 64MiB\n" + more) +
                       rule("frames", "consumer", "import", "size = 64MiB\n" + more));
}

::testing::AssertionResult does(const Result &result, const std::string &text) {
    if (result.status == 0 && contains(result.out, text))
        return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << result.status << ": " << result.out << result.err;
}

::testing::AssertionResult refuses(const Result &result, const std::string &text) {
    if (result.status == 1 && contains(result.err, text))
        return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << result.status << ": " << result.out << result.err;
}

std::vector<std::string> names_in(const std::string &path) {
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(path))
        names.push_back(entry.path().filename());
    return names;
}

bool answer_of(const World &world, const Puppet &puppet, gps_answer_file *answer) {
    const gps_store store = world.store();
    gps_owner owner;
    for (const std::string &name : world.files("procs"))
        if (gps_orders_parse(name.c_str(), &owner) && owner.pid == (uint32_t)puppet.pid &&
            gps_answer_read(&store, &owner, answer) == 0)
            return true;
    return false;
}

// On a card a context leaves, too.
std::string left(const std::string &size) {
    return on_gpu() ? " have left the GPU" : " is suspended: " + size + " have left the GPU";
}

using Suspend = Checkpointed;

} // namespace

TEST_F(Suspend, ReplicasTakeTurns) {
    Replicas two(2, suspendable(merging()));
    two.load("w", 8 * MiB, 7);
    two.each("malloc own 4194304", "fill own 0x5a 4194304");
    ASSERT_TRUE(two.use(8 * MiB + 2 * 4 * MiB));
    for (int turn = 0; turn < 5; turn++) {
        Puppet &gone = *two.all[turn % 2], &stays = *two.all[1 - turn % 2];
        EXPECT_TRUE(does(two.world.tool({"suspend", pid(gone)}), left("6 MiB")));
        EXPECT_TRUE(two.use(8 * MiB + 4 * MiB - 2 * MiB)) << two.in_use();
        EXPECT_EQ(Replicas::expect(stays, "w", 8 * MiB, 7), "same");
        gone.send("expect w 0 8388608 7"); // waits
        EXPECT_FALSE(gone.answers(100));
        EXPECT_TRUE(does(two.world.tool({"resume", pid(gone)}), " is resumed."));
        EXPECT_EQ(gone.receive().text, "0 same");
        EXPECT_EQ(gone.must("read own 100 4"), "5a5a5a5a");
    }
    EXPECT_EQ(two.world.count(""), 0u) << two.world.logs();
    // what is merged can be written after that, by its own process alone
    two[0].must("fill w 0x11 4096");
    EXPECT_EQ(Replicas::expect(two[1], "w", 8 * MiB, 7), "same");
    EXPECT_EQ(two.left(), "");
}

TEST_F(Suspend, RegionsOfTheKeeperStayOpenToOthers) {
    auto [world, a, b] = Couple(frames());
    a.make("f", 64 * MiB, "0x11");
    b.must("malloc f 67108864");
    EXPECT_EQ(b.must("read f 0 2"), "1111");
    for (Puppet *one : {&b, &a, &b}) {
        Puppet &other = one == &a ? b : a;
        EXPECT_TRUE(does(world.tool({"suspend", pid(*one)}), "let go of 64 MiB"));
        other.must("write f 0 2233");
        EXPECT_TRUE(does(world.tool({"resume", pid(*one)}), " is resumed."));
        EXPECT_EQ(one->must("read f 0 2"), "2233");
        one->must("write f 0 4455");
        EXPECT_EQ(other.must("read f 0 2"), "4455");
    }
    b.must("free f");
    a.must("free f");
    EXPECT_EQ(world.count(""), 0u) << world.logs();
}

TEST_F(Suspend, SaysWhatIsSuspendedAlreadyAndWhatIsNot) {
    auto [world, a, b] = Couple(frames());
    a.must("malloc f 67108864");
    b.must("malloc f 67108864");
    EXPECT_TRUE(does(world.tool({"resume", pid(a)}), " is not suspended."));
    EXPECT_TRUE(does(world.tool({"suspend", "producer"}), " is suspended: "));
    EXPECT_TRUE(does(world.tool({"suspend", "producer"}), " is suspended already."));
    const Result ls = world.tool({"ls"});
    EXPECT_HAS(ls.out, "SUSPENDED");
    EXPECT_HAS(world.tool({"show", pid(a)}).out, "  suspended  for ") << ls.out;
    EXPECT_HAS(world.tool({"top", "--once"}).out, "SUSPENDED");
    EXPECT_HAS(world.tool({"metrics"}).out, "gpushare_process_suspended_seconds{");
    EXPECT_HAS(world.tool({"ls", "--json"}).out, "\"suspended\"");
    EXPECT_TRUE(does(world.tool({"doctor", "--json", "--pid", pid(a)}), "it is suspended already"));
    EXPECT_TRUE(does(world.tool({"resume", "--all-but", "consumer"}), " is resumed."));
    EXPECT_LACKS(world.tool({"ls"}).out, "SUSPENDED");
    EXPECT_TRUE(does(world.tool({"doctor", "--json", "--pid", pid(a)}), " can be suspended"));
}

// One that has nothing in the directory is listed, and what has left the GPU is in use no more.
TEST_F(Suspend, IsCountedAlikeEverywhere) {
    Replicas two(2, suspendable(merging()));
    two.load("w", 8 * MiB, 7);
    two.each("malloc own 4194304", "fill own 0x5a 4194304");
    Puppet plain(two.world, called("plain", "puppet"));
    plain.all({"malloc m 67108864", "fill m 0x11 4096"});
    for (Puppet *one : {&two[0], &two[1], &plain})
        EXPECT_TRUE(does(two.world.tool({"suspend", pid(*one)}), " is suspended: "));
    const Json top = Json::parse(two.world.tool({"top", "--once", "--json"}).out);
    EXPECT_EQ(top["processes"].elements.size(), 3u);
    for (const Json &process : top["processes"].elements)
        EXPECT_EQ(process["own"].number, 0) << "it is in main memory";
    EXPECT_EQ(top["total"]["in_use"].number, 0)
        << "what only suspended programs have is not, either";
    EXPECT_HAS(two.world.tool({"metrics"}).out, "gpushare_process_suspended_seconds{");
    EXPECT_HAS(two.world.tool({"metrics"}).out, "command=\"plain\"");
    EXPECT_HAS(
        two.world.tool({"ls"}).out,
        "\n8 MiB of merged memory, which only suspended programs have, are in main memory.\n");
    EXPECT_HAS(two.world.tool({"ls", "--json"}).out, "\"offloaded\"");
    for (Puppet *one : {&two[0], &two[1], &plain})
        EXPECT_TRUE(does(two.world.tool({"resume", pid(*one)}), " is resumed."));
}

TEST_F(Suspend, IsRefusedWithoutTheKeyAndTheProcessGoesOn) {
    World world(rule("frames", "producer", "export", "size = 64MiB\n"));
    Puppet a(world, producer());
    a.must("malloc f 67108864");
    EXPECT_TRUE(refuses(world.tool({"suspend", pid(a)}), "does not run with suspend = on"));
    EXPECT_TRUE(refuses(world.tool({"suspend", "producer"}),
                        "no program named 'producer' runs with suspend = on"));
    EXPECT_TRUE(
        does(world.tool({"doctor", "--json", "--pid", pid(a)}), "not started with suspend = on"));
    a.must("read f 0 1");
}

TEST_F(Suspend, WhatSharesByTheDriversHandlesIsRefused) {
    auto [world, a, b] = Couple(frames(""));
    a.must("malloc f 67108864");
    b.must("malloc f 67108864");
    EXPECT_TRUE(refuses(world.tool({"suspend", pid(a)}), "region frames is exported by a handle"));
    EXPECT_TRUE(refuses(world.tool({"suspend", pid(b)}), "region frames is open here by a handle"));
    EXPECT_TRUE(
        does(world.tool({"doctor", "--json", "--pid", pid(b)}), "cannot be suspended now: region"));
    b.must("free f");
    a.must("free f");
    EXPECT_TRUE(does(world.tool({"suspend", pid(a)}), " is suspended: "));
    EXPECT_TRUE(does(world.tool({"resume", pid(a)}), " is resumed."));
}

TEST_F(Suspend, WhatCannotBeUndoneIsRefused) {
    const struct {
        std::vector<std::string> lines;
        const char *why;
    } cases[] = {
        {{"vcreate m 2097152", "vexport m"}, "it has exported memory of cuMemCreate"},
        {{"evcreate e 6", "evget e"}, "it shares an interprocess event; destroy it"},
        {{"malloc m 2097152", "dmabuf m 0 4096"}, "it has made a dma-buf of its memory"},
    };
    for (const auto &one : cases) {
        World world(suspendable(""));
        Puppet a(world, producer());
        a.must("info");
        for (const std::string &line : one.lines)
            a.must(line);
        EXPECT_TRUE(refuses(world.tool({"suspend", pid(a)}), one.why));
        a.must("info");
    }
}

// A process that the driver restores with memory of others is lost.
TEST_F(Suspend, OpenTokensAreRefusedOnBothSides) {
    auto [world, a, b] = Couple("[gpushare]\nvmm_ipc = on\nsuspend = on\n");
    for (Puppet *one : {&a, &b})
        one->must("malloc p 1024");
    a.must("vreserve at 8388608");
    for (const std::string n : {"0", "1"}) {
        const std::string offset = n == "0" ? "0" : "2097152";
        a.all({"vcreate h" + n + " 2097152", "vmap at " + offset + " 2097152 h" + n,
               "vaccess at " + offset + " 2097152 3", "fill at 0x1" + n + " 64 " + offset,
               "vrelease h" + n});
    }
    const std::string handle = a.must("get at");
    EXPECT_TRUE(does(world.tool({"suspend", pid(a)}), " is suspended: ")) << "nobody has it open";
    // who sleeps answers at once, and not after five seconds
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(b.code("open q " + handle), 1);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
    EXPECT_TRUE(does(world.tool({"resume", pid(a)}), " is resumed."));
    b.must("open q " + handle);
    const char *const there = "is open in another process by a token",
                      *const here = "cuMemCreate is open here by a token";
    EXPECT_TRUE(refuses(world.tool({"suspend", pid(b)}), here));
    EXPECT_TRUE(refuses(world.tool({"suspend", pid(a)}), there));
    a.must("vunmap at 2097152 2097152");
    EXPECT_TRUE(refuses(world.tool({"suspend", pid(a)}), there)) << "the token is over, and open";
    EXPECT_EQ(b.must("read q 0 1"), "10");
    b.must("close q");
    for (Puppet *one : {&a, &b}) {
        EXPECT_TRUE(does(world.tool({"suspend", pid(*one)}), " is suspended: "));
        EXPECT_TRUE(does(world.tool({"resume", pid(*one)}), " is resumed."));
    }
    b.must("open q " + a.must("get at"));
    EXPECT_EQ(b.must("read q 0 1"), "10");
}

TEST_F(Suspend, ACaptureInProgressIsRefused) {
    World world(suspendable(""));
    Puppet a(world, producer());
    a.all({"malloc m 4194304", "stream s", "capture s"});
    EXPECT_TRUE(refuses(world.tool({"suspend", pid(a)}), "it captures a graph at this moment"));
    a.all({"sfill s m 0x5a 4194304", "captured s g"});
    EXPECT_TRUE(does(world.tool({"suspend", pid(a)}), " is suspended: "));
    EXPECT_TRUE(does(world.tool({"resume", pid(a)}), " is resumed."));
    a.all({"graph s g", "ssync s"});
    EXPECT_EQ(a.must("read m 0 2"), "5a5a");
}

TEST_F(Suspend, WorkThatDoesNotEndInTimeIsARefusalThatUndoesItself) {
    World world(frames());
    Puppet a(world, producer());
    a.all({"malloc f 67108864", kernels(), "stream s", "malloc sum 4096"});
    a.must("launch s test_spin f 1024 3000000000 sum");
    const Result late = world.tool({"suspend", "--timeout=100ms", pid(a)});
    EXPECT_TRUE(refuses(late, "was not suspended, and runs on: work that it gave to the GPU"));
    a.all({"ssync s", "write f 0 01"});
    EXPECT_TRUE(does(world.tool({"suspend", pid(a)}), " is suspended: "));
    EXPECT_TRUE(does(world.tool({"resume", pid(a)}), " is resumed."));
    EXPECT_EQ(a.must("read f 0 1"), "01");
}

TEST_F(Suspend, RestoreIsNeverTriedWithoutRoom) {
    SIM_ONLY("it takes a small card");
    Replicas one(0, suspendable(""));
    How how = one.on_a_small_card();
    Puppet a(one.world, how), other(one.world, how);
    a.all({"malloc m 134217728", "fill m 0x77 134217728"});
    EXPECT_TRUE(does(one.world.tool({"suspend", pid(a)}), "128 MiB have left the GPU"));
    other.must("malloc m 201326592");
    for (int i = 0; i < 3; i++)
        EXPECT_TRUE(
            refuses(one.world.tool({"resume", pid(a)}),
                    "stays suspended: it needs 128 MiB on the GPU and 16 MiB to spare, and 64 MiB "
                    "are free"));
    other.must("free m");
    EXPECT_TRUE(does(one.world.tool({"resume", "--wait", pid(a)}), " is resumed."));
    EXPECT_EQ(a.must("read m 1000 2"), "7777");
}

// The driver cuts small allocations from blocks of 2 MiB; what others take and give meanwhile says
// nothing of this process.
TEST_F(Suspend, RoomIsCountedAsTheDriverRoundsIt) {
    SIM_ONLY("it takes a small card");
    Replicas one(0, suspendable(""));
    How how = one.on_a_small_card();
    Puppet a(one.world, how), other(one.world, how);
    a.must("many 64 1126400");
    EXPECT_TRUE(does(one.world.tool({"suspend", pid(a)}), "128 MiB have left the GPU"));
    other.must("malloc m 146800640"); // 140 MiB, so 116 MiB are free
    EXPECT_TRUE(refuses(one.world.tool({"resume", pid(a)}), "it needs 128 MiB on the GPU and"));
    other.must("free m");
    EXPECT_TRUE(does(one.world.tool({"resume", pid(a)}), " is resumed."));
}

TEST_F(Suspend, ContextsOfTheProgramsOwnCount) {
    SIM_ONLY("it takes two cards");
    Replicas one(0, suspendable(""));
    How how = one.on_two_cards();
    Puppet a(one.world, how), b(one.world, how);
    a.all({"ctxcreate c 0", "cumalloc m 4194304"});
    EXPECT_TRUE(does(one.world.tool({"suspend", pid(a)}), left("4 MiB")));
    EXPECT_TRUE(does(one.world.tool({"resume", pid(a)}), " is resumed."));
    a.must("ctxcreate d 1");
    EXPECT_TRUE(refuses(one.world.tool({"suspend", pid(a)}), "it uses more than one GPU"));
    a.must("ctxdestroy d");
    EXPECT_TRUE(does(one.world.tool({"suspend", pid(a)}), " is suspended: "));
    EXPECT_TRUE(does(one.world.tool({"resume", pid(a)}), " is resumed."));
}

// Of two that come back at once where there is room for one, one stays suspended.
TEST_F(Suspend, OneComesBackAtATime) {
    SIM_ONLY("it takes a small card");
    Replicas none(0, suspendable(""));
    How how = none.on_a_small_card();
    Puppet a(none.world, how), b(none.world, how);
    Puppet *const both[] = {&a, &b};
    a.must("malloc m 167772160");
    EXPECT_TRUE(does(none.world.tool({"suspend", pid(a)}), " is suspended: "));
    b.must("malloc m 167772160");
    EXPECT_TRUE(does(none.world.tool({"suspend", pid(b)}), " is suspended: "));
    for (int turn = 0; turn < 8; turn++) {
        Result results[2];
        std::thread other([&] { results[0] = none.world.tool({"resume", pid(a)}); });
        results[1] = none.world.tool({"resume", pid(b)});
        other.join();
        ASSERT_EQ(results[0].status + results[1].status, 1)
            << results[0].err << results[1].err << " turn " << turn;
        const int winner = results[0].status == 0 ? 0 : 1;
        EXPECT_EQ(both[winner]->code("fill m 0x11 4096"), 0);
        EXPECT_TRUE(refuses(results[1 - winner], "MiB to spare, and 94 MiB are free"));
        ASSERT_TRUE(does(none.world.tool({"suspend", pid(*both[winner])}), " is suspended: "));
    }
}

// A process of another directory's, or one whose resume was killed, has the lock.
TEST_F(Suspend, WhoHasTheRoomIsNamed) {
    World world(suspendable(""));
    Puppet a(world, producer());
    a.must("malloc m 4194304");
    EXPECT_TRUE(does(world.tool({"suspend", pid(a)}), " is suspended: "));
    gps_room_lock lock = {};
    gps_owner other = {}, holder;
    strcpy(other.command, "other");
    other.pid = 77;
    const gps_store store = world.store();
    gps_answer_file answer;
    ASSERT_TRUE(answer_of(world, a, &answer));
    ASSERT_EQ(gps_room_lock_take(&store, answer.device, &other, true, &lock, &holder), 0);
    EXPECT_TRUE(refuses(world.tool({"resume", "--timeout=200ms", pid(a)}),
                        "stays suspended: other 77 comes back to that GPU just now"));
    gps_room_lock_give(&lock);
    EXPECT_TRUE(does(world.tool({"resume", pid(a)}), " is resumed."));
    ASSERT_EQ(gps_room_lock_take(&store, answer.device, &other, true, &lock, &holder), 0)
        << "it is free again: " << holder.command;
    gps_room_lock_give(&lock);
}

TEST_F(Suspend, MemoryThatNobodyHasTouchedStaysUnmade) {
    SIM_ONLY("it fills the card");
    Replicas none(0, suspendable(merging("quiet = 0\novercommit = on\n")));
    How how = none.on_a_small_card();
    Puppet a(none.world, how), other(none.world, how);
    a.must("malloc p 167772160");
    const uint64_t before = none.world.used();
    EXPECT_TRUE(does(none.world.tool({"suspend", pid(a)}), " is suspended: "));
    EXPECT_TRUE(does(none.world.tool({"resume", pid(a)}), " is resumed."));
    EXPECT_EQ(none.world.used(), before);
    EXPECT_EQ(a.code("fill p 0x33 4096"), 0);
    EXPECT_EQ(a.must("read p 0 1"), "33");
}

TEST_F(Suspend, WhatHasLetGoOnlyIsSuspendedWholeAfterIt) {
    World world(frames());
    Puppet a(world, producer());
    a.make("f", 64 * MiB, "0x11");
    EXPECT_TRUE(does(world.tool({"suspend", "--let-go", pid(a)}), " has let go of 64 MiB"));
    EXPECT_TRUE(does(world.tool({"suspend", "--let-go", pid(a)}), " is suspended already."));
    EXPECT_TRUE(does(world.tool({"suspend", pid(a)}), " is suspended: "));
    EXPECT_TRUE(does(world.tool({"suspend", pid(a)}), " is suspended already."));
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(refuses(world.tool({"resume", "--take-again", pid(a)}),
                        "is not restored by the driver yet"));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
    EXPECT_TRUE(does(world.tool({"resume", pid(a)}), " is resumed."));
    EXPECT_EQ(a.must("read f 0 2"), "1111");
}

TEST_F(Suspend, WhoCannotAnswerIsToldWhy) {
    World world(suspendable(""));
    Puppet a(world, producer());
    a.all({"malloc m 4194304", "hoard"});
    EXPECT_TRUE(refuses(world.tool({"suspend", "--timeout=1s", pid(a)}),
                        "descriptors in use (RLIMIT_NOFILE), and needs a few"));
    a.must("unhoard");
    EXPECT_TRUE(does(world.tool({"suspend", pid(a)}), " is suspended: "));
    EXPECT_TRUE(does(world.tool({"resume", pid(a)}), " is resumed."));
}

// The driver takes a number, which is another process's in another pid namespace.
TEST_F(Suspend, WhatCannotBeFoundHereIsRefused) {
    const std::vector<std::string> container = {"unshare", "--pid", "--fork", "--kill-child",
                                                "--mount-proc"};
    std::vector<std::string> may = container;
    may.push_back("true");
    SKIP_IF(command(may).status != 0, "this user may not make such namespaces");
    World world(suspendable(""));
    world.used(); // a simulated driver that was started in a container would end with it
    How how = producer();
    how.wrap = container;
    Puppet a(world, how);
    a.must("malloc m 4194304");
    std::vector<std::string> line = container;
    line.insert(line.end(), {build_directory() + "/gpushare", "suspend", "producer"});
    EXPECT_TRUE(refuses(command(line, world.environment),
                        "it runs in another pid namespace, and /proc here does not show"));
    EXPECT_TRUE(
        refuses(world.tool({"suspend", a.must("pid")}), "could mean 2 processes: producer"));
    EXPECT_TRUE(does(world.tool({"suspend", "producer"}), " is suspended: "));
    EXPECT_TRUE(does(world.tool({"resume", "producer"}), " is resumed."));
    a.must("fill m 0x11 4096");
}

TEST_F(Suspend, ANumberOfAThreadIsNoProcess) {
    World world;
    Puppet a(world, producer());
    a.all({"malloc m 4194304"});
    for (const std::string &task : names_in("/proc/" + pid(a) + "/task"))
        if (task != pid(a)) {
            EXPECT_TRUE(refuses(world.tool({"suspend", "--force", task}),
                                task + " is the number of a thread of process " + pid(a)));
        }
}

TEST_F(Suspend, AnOldDriverIsNamed) {
    SIM_ONLY("the driver of a card is what it is");
    World world(suspendable(""));
    Puppet a(world, producer());
    a.must("info");
    world.environment["GPUSHARE_SIM_CHECKPOINT"] = "off";
    EXPECT_TRUE(refuses(world.tool({"suspend", pid(a)}), "it takes version 570 or a newer one"));
    a.must("info");
    // for another tool
    EXPECT_TRUE(does(world.tool({"suspend", "--let-go", pid(a)}), " has let go of 0 B"));
    EXPECT_TRUE(does(world.tool({"resume", "--take-again", pid(a)}), " is resumed."));
    a.must("info");
}

TEST_F(Suspend, AProcessThatSharesAndIsForcedIsLost) {
    auto [world, a, b] = Couple(rule("frames", "producer", "export", "size = 64MiB\n") +
                                rule("frames", "consumer", "import", "size = 64MiB\n"));
    a.must("malloc f 67108864");
    b.must("malloc f 67108864");
    EXPECT_TRUE(refuses(world.tool({"suspend", "--let-go", "--force", pid(b)}), "cannot let go"));
    EXPECT_TRUE(does(world.tool({"suspend", "--force", pid(b)}), " is suspended: "));
    const Result lost = world.tool({"resume", "--force", pid(b)});
    EXPECT_ERR_HAS(lost, 1, "it can only be ended, and started again");
    b.kill();
    a.must("read f 0 1");
}

TEST_F(Suspend, AHandlerThatEndsASuspendedProcessEndsIt) {
    auto [world, a, b] = Couple(frames());
    a.make("f", 64 * MiB, "0x11");
    b.must("malloc f 67108864");
    EXPECT_TRUE(does(world.tool({"suspend", pid(b)}), " is suspended: "));
    b.signal(SIGTERM);
    EXPECT_EQ(b.wait(), 128 + SIGTERM);
    EXPECT_EQ(a.must("read f 0 2"), "1111");
    EXPECT_TRUE(
        eventually([&, &world = world] { return world.region("frames")["users"].size() == 0; }));
}

TEST_F(Suspend, MemoryThatIsGoneEndsTheProcessWithAReport) {
    auto [world, a, b] = Couple(frames());
    a.must("malloc f 67108864");
    b.must("malloc f 67108864");
    EXPECT_TRUE(does(world.tool({"suspend", pid(b)}), " is suspended: "));
    a.kill();
    kill_both_keepers(world);
    EXPECT_TRUE(refuses(world.tool({"resume", pid(b)}), " has ended"));
    EXPECT_EQ(b.wait(), 128 + SIGKILL);
    EXPECT_HAS(world.logs() + b.errors(), "memory is lost while the process was suspended")
        << b.errors();
}

TEST_F(Suspend, ADroppedRegionComesBack) {
    auto [world, a, b] = Couple(frames());
    a.make("f", 64 * MiB, "0x11");
    b.must("malloc f 67108864");
    for (Puppet *one : {&a, &b})
        EXPECT_TRUE(does(world.tool({"suspend", pid(*one)}), " is suspended: "));
    EXPECT_EQ(world.tool({"drop", "frames"}).status, 0);
    for (Puppet *one : {&a, &b}) {
        EXPECT_TRUE(does(world.tool({"resume", pid(*one)}), " is resumed."));
        EXPECT_EQ(one->must("read f 0 2"), "1111");
    }
}

TEST_F(Suspend, WhatAnExporterLeavesBehindComesBack) {
    for (const char *end : {"free", "return", "kill"}) {
        SCOPED_TRACE(end);
        World world(frames());
        auto a = std::make_unique<Puppet>(world, producer());
        Puppet b(world, consumer());
        a->make("f", 64 * MiB, "0x11");
        b.must("malloc f 67108864");
        EXPECT_TRUE(does(world.tool({"suspend", pid(b)}), " is suspended: "));
        if (std::string(end) == "free")
            a->must("free f");
        else if (std::string(end) == "return")
            EXPECT_EQ(a->quit("return"), 0);
        else
            a->kill();
        EXPECT_TRUE(eventually([&] { return world.files("names").empty(); }));
        // the next one has the name
        Puppet next(world, producer()), other(world, consumer());
        next.make("f", 64 * MiB, "0x22");
        other.must("malloc f 67108864");
        EXPECT_EQ(other.must("read f 0 2"), "2222");
        EXPECT_TRUE(does(world.tool({"resume", pid(b)}), " is resumed."));
        EXPECT_EQ(b.must("read f 0 2"), "1111");
        EXPECT_TRUE(does(world.tool({"suspend", pid(b)}), " is suspended: "));
        EXPECT_TRUE(does(world.tool({"resume", pid(b)}), " is resumed."));
        const uint64_t used = world.used();
        b.must("free f");
        EXPECT_TRUE(world.used_becomes(used - 64 * MiB)) << used << " " << world.used();
        EXPECT_EQ(other.must("read f 0 2"), "2222");
        EXPECT_TRUE(eventually([&] { return world.files("regions").size() == 1; }));
    }
}

TEST_F(Suspend, ASilentKeeperIsAskedAgain) {
    Replicas two(2, suspendable(merging()));
    two.load("w", 8 * MiB, 7);
    ASSERT_TRUE(two.use(8 * MiB));
    for (Puppet *one : {&two[0], &two[1]}) {
        EXPECT_TRUE(does(two.world.tool({"suspend", pid(*one)}), " is suspended: "));
        const pid_t keeper = keeper_of(two.world);
        signal_keeper(keeper, SIGSTOP);
        std::thread later([&] {
            usleep(500000);
            signal_keeper(keeper, SIGCONT);
        });
        EXPECT_TRUE(does(two.world.tool({"resume", pid(*one)}), " is resumed."));
        later.join();
        two.expect_all("w", 8 * MiB, 7);
    }
}

TEST_F(Suspend, ABlockThatItsGiverSleepsOnIsGivenByAnother) {
    Replicas two(2, suspendable(merging()));
    two.load("w", 8 * MiB, 7);
    ASSERT_TRUE(two.use(8 * MiB));
    for (Puppet *one : {&two[0], &two[1], &two[0]}) {
        EXPECT_TRUE(does(two.world.tool({"suspend", pid(*one)}), " is suspended: "));
        kill_both_keepers(two.world);
        EXPECT_TRUE(does(two.world.tool({"resume", pid(*one)}), " is resumed."));
        two.expect_all("w", 8 * MiB, 7);
        EXPECT_TRUE(two.use(8 * MiB)) << two.in_use();
    }
    EXPECT_EQ(two.left(), "");
}

TEST_F(Suspend, AKeeperStaysWhileSomebodySleeps) {
    Replicas two(2, suspendable(merging()));
    two.load("w", 8 * MiB, 7);
    for (Puppet *one : {&two[0], &two[1]})
        EXPECT_TRUE(does(two.world.tool({"suspend", pid(*one)}), " is suspended: "));
    const pid_t keeper = keeper_of(two.world), second = stand_by_of(two.world);
    signal_keeper(second, SIGTERM); // both, as a service manager does
    signal_keeper(keeper, SIGTERM);
    usleep(500000);
    EXPECT_EQ(::kill(keeper, 0), 0);
    signal_keeper(keeper, SIGKILL); // the other one stays, too
    usleep(500000);
    for (Puppet *one : {&two[0], &two[1]})
        EXPECT_TRUE(does(two.world.tool({"resume", pid(*one)}), " is resumed."));
    two.expect_all("w", 8 * MiB, 7);
    EXPECT_TRUE(eventually([&] { return ::kill(second, 0) != 0; }));
}

TEST_F(Suspend, AKilledToolLeavesAProcessThatRunsOrIsResumed) {
    Replicas two(2, suspendable(merging()));
    two.load("w", 8 * MiB, 7);
    for (int turn = 0; turn < 12; turn++) {
        const pid_t tool = fork();
        if (tool == 0) {
            for (const auto &[name, value] : two.world.environment)
                setenv(name.c_str(), value.c_str(), 1);
            execl((build_directory() + "/gpushare").c_str(), "gpushare", "suspend",
                  pid(two[0]).c_str(), static_cast<char *>(nullptr));
            _exit(127);
        }
        usleep(5000u * static_cast<unsigned>(turn));
        ::kill(tool, SIGKILL);
        waitpid(tool, nullptr, 0);
        EXPECT_EQ(Replicas::expect(two[1], "w", 8 * MiB, 7), "same");
        EXPECT_EQ(two.world.tool({"resume", pid(two[0])}).status, 0);
        EXPECT_EQ(Replicas::expect(two[0], "w", 8 * MiB, 7), "same");
    }
}
