// handover_test.cpp - ready = free: a result goes from a producer to its consumer, in whatever
// order and however they end.
#include "scenario/harness.hpp"

namespace {

std::string frames(const std::string &handover = "20s", const std::string &wait = "5s") {
    return rule("frames", "producer", "export", "ready = free\nhandover = " + handover + "\n") +
           rule("frames", "consumer*", "import", "wait = " + wait + "\n");
}

void produce(Puppet &a, const std::string &byte = "0xc3", uint64_t size = big()) {
    a.all({"malloc p " + std::to_string(size), "fill p " + byte + " 4096"});
}

void expect_result(Puppet &b, const std::string &byte = "c3") {
    EXPECT_EQ(b.code("malloc q 4096"), 0);
    EXPECT_EQ(b.must("read q 0 2"), byte + byte);
}

TEST(Handover, TheImporterGetsFinalBytes) {
    for (const char *build : builds) {
        World world(frames());
        Puppet a(world, producer(build)), b(world, consumer(build));
        produce(a, "0x01");
        EXPECT_EQ(world.state("frames"), "exporting") << build;
        b.send("malloc q 4096");
        EXPECT_FALSE(b.answers(200)) << build;
        a.must("fill p 0xc3 4096");
        a.must("busy 200"); // and this is part of it
        const int64_t start = now_ms();
        a.must("free p");
        EXPECT_GE(now_ms() - start, 190) << build;
        EXPECT_EQ(b.receive(soon(2000)).code, 0) << build;
        EXPECT_EQ(b.must("read q 0 2"), "c3c3") << build;
        EXPECT_EQ(a.code("free p"), 1) << build; // for its program it is freed
        b.must("free q");
        EXPECT_TRUE(eventually([&] { return world.state("frames") == "none"; }, soon(2500)))
            << build;
    }
}

TEST(Handover, TheMemoryGoesWhenItsImporterHasFreedIt) {
    auto [world, a, b] = Couple(frames());
    a.must("info");
    b.must("info");
    const uint64_t before = world.used();
    produce(a);
    a.must("free p");
    EXPECT_EQ(world.state("frames"), "final");
    EXPECT_TRUE(world.used_becomes(before + big()));
    expect_result(b);
    b.must("free q");
    EXPECT_TRUE(world.used_becomes(before, soon(2500)));
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

TEST(Handover, AProducerThatEndsFirstWaitsForTheFirstImporterAndNoLonger) {
    for (const char *end : {"return", "exit 0", "_exit 0", "quick_exit 0"}) {
        World world(frames());
        Puppet a(world, producer());
        produce(a);
        a.must("free p");
        a.send(end);
        usleep(200000);
        EXPECT_FALSE(a.ended()) << end;
        Puppet b(world, consumer());
        expect_result(b);
        EXPECT_EQ(a.wait(soon(2500)), 0) << end; // although b holds it
        EXPECT_EQ(b.must("read q 0 2"), "c3c3") << end;
        EXPECT_EQ(world.findings().size(), 0u) << end << world.logs();
        b.must("free q");
    }
}

TEST(Handover, AProgramThatNeverFreesHandsOverWhenItEnds) {
    for (const char *end : {"return", "_exit 0"}) {
        auto [world, a, b] = Couple(frames());
        produce(a);
        b.send("malloc q 4096");
        EXPECT_FALSE(b.answers(150)) << end;
        a.send(end);
        EXPECT_EQ(b.receive(soon(2000)).code, 0) << end;
        EXPECT_EQ(a.wait(soon(2500)), 0) << end;
        EXPECT_EQ(b.must("read q 0 2"), "c3c3") << end;
        EXPECT_EQ(world.findings().size(), 0u) << end << world.logs();
    }
}

TEST(Handover, AResetAtTheEndWaitsForTheImporterToo) {
    for (const bool freed : {true, false}) {
        World world(frames());
        Puppet a(world, producer());
        produce(a);
        if (freed)
            a.must("free p");
        a.send("reset");
        EXPECT_FALSE(a.answers(200)) << freed;
        Puppet b(world, consumer());
        expect_result(b);
        EXPECT_EQ(a.receive(soon(2500)).code, 0) << freed;
        EXPECT_EQ(a.quit("return"), 0);
        EXPECT_EQ(b.must("read q 0 2"), "c3c3") << freed;
        EXPECT_EQ(world.findings().size(), 0u) << freed << world.logs();
    }
}

TEST(Handover, WithoutAnImporterItEndsAndIsReported) {
    World world(frames("300ms"));
    Puppet a(world, producer());
    a.must("info");
    const uint64_t before = world.used();
    produce(a);
    a.must("free p");
    EXPECT_EQ(world.state("frames"), "final");
    EXPECT_TRUE(world.used_becomes(before, soon(2500)));
    EXPECT_TRUE(eventually([&] { return world.count("share-timeout") == 1; }));
    EXPECT_EQ(world.findings()[0].name, "frames");
    EXPECT_TRUE(eventually([&] { return world.state("frames") == "none"; }));
}

TEST(Handover, AtTheExitItEndsAndIsReported) {
    World world(frames("300ms"));
    Puppet a(world, producer());
    produce(a);
    const int64_t start = now_ms();
    EXPECT_EQ(a.quit("exit 5"), 5);
    EXPECT_GE(now_ms() - start, 290);
    EXPECT_LT(now_ms() - start, soon(2500));
    EXPECT_EQ(world.count("share-timeout"), 1u);
    EXPECT_EQ(world.entries("regions"), 0u);
}

// The exit waits for the kernel of one result, and then enters the context of the other.
TEST(Handover, AtTheExitAnotherThreadMayDestroyTheContext) {
    World world(rule("r{n}", "producer", "export", "index = *\nready = free\nhandover = 1500ms\n"));
    Puppet a(world, producer("puppet_driver"));
    for (const char *name : {"c", "d"}) {
        a.all({std::string("ctxcreate ") + name, std::string("malloc of_") + name + " 4194304"});
        a.must("busy 600");
    }
    a.must("later 200 ctxdestroy d");
    a.send("exit 3");
    EXPECT_EQ(a.wait(), 3);
    EXPECT_EQ(world.count("share-timeout"), world.findings().size()) << world.logs();
    EXPECT_EQ(world.entries("names"), 0u);
}

TEST(Handover, AStuckImporterHoldsUpNothingAfterItTookIt) {
    auto [world, a, b] = Couple(frames());
    produce(a);
    a.must("free p");
    expect_result(b);
    b.stop();
    const int64_t start = now_ms();
    EXPECT_EQ(a.quit("return"), 0);
    EXPECT_LT(now_ms() - start, soon(1000));
    b.resume();
    EXPECT_EQ(b.must("read q 0 2"), "c3c3");
}

TEST(Handover, ManyImportersOfOneResult) {
    World world(frames());
    Puppet a(world, producer()), b(world, consumer()), c(world, consumer());
    produce(a);
    b.send("malloc q 4096");
    c.send("malloc q 4096");
    EXPECT_FALSE(b.answers(100));
    a.must("free p");
    for (Puppet *puppet : {&b, &c}) {
        EXPECT_EQ(puppet->receive(soon(2000)).code, 0);
        EXPECT_EQ(puppet->must("read q 0 2"), "c3c3");
    }
    b.must("free q");
    EXPECT_EQ(c.must("read q 0 2"), "c3c3");
    c.must("free q");
    EXPECT_TRUE(eventually([&] { return world.state("frames") == "none"; }, soon(2500)));
}

TEST(Handover, ASecondResultFollowsTheFirst) {
    auto [world, a, b] =
        Couple(rule("f{n}", "producer", "export", "index = *\nready = free\nhandover = 20s\n") +
               rule("f{n}", "consumer", "import", "index = *\nwait = 5s\n"));
    for (const char *byte : {"0x11", "0x22", "0x33"}) {
        produce(a, byte, 65536);
        a.must("free p");
        expect_result(b, std::string(byte).substr(2));
        b.must("free q");
    }
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

TEST(Handover, AChainOfFive) {
    World world;
    std::string config;
    for (int i = 0; i < 5; i++) {
        const std::string n = std::to_string(i), stage = "stage" + n;
        if (i > 0)
            config +=
                rule("s" + std::to_string(i - 1), stage, "import", "size = 4KiB\nwait = 9s\n");
        config += rule("s" + n, stage, "export", "size = 8KiB\nready = free\nhandover = 9s\n");
    }
    world.config(config);
    std::vector<std::unique_ptr<Puppet>> stages;
    for (int i = 0; i < 5; i++) {
        stages.push_back(std::make_unique<Puppet>(world, called("stage" + std::to_string(i))));
    }
    for (size_t i = 4; i > 0; i--) // the later ones wait already
        stages[i]->send("malloc in 4096");
    std::string bytes;
    for (size_t i = 0; i < 5; i++) {
        Puppet &stage = *stages[i];
        if (i > 0) {
            ASSERT_EQ(stage.receive(soon(5000)).code, 0) << i;
            bytes = stage.must("read in 0 " + std::to_string(i));
            EXPECT_EQ(bytes.size(), 2 * i);
        }
        bytes += "0" + std::to_string(i);
        stage.all({"malloc out 8192", "write out 0 " + bytes});
        if (i > 0)
            stage.must("free in");
        stage.must("free out");
        stage.send("return");
    }
    How last;
    last.as = "reader";
    world.config(rule("s4", "reader", "import"));
    Puppet reader(world, last);
    reader.must("malloc in 4096");
    EXPECT_EQ(reader.must("read in 0 5"), "0001020304");
    for (auto &stage : stages)
        EXPECT_EQ(stage->wait(soon(3000)), 0);
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

TEST(Handover, SigkillLosesItAndTheConsumerTimesOut) {
    auto [world, a, b] = Couple(frames("20s", "500ms"));
    produce(a);
    a.must("free p");
    a.kill();
    const int64_t start = now_ms();
    b.must("malloc q 4096");
    EXPECT_GE(now_ms() - start, 490);
    EXPECT_EQ(world.count("share-timeout"), 1u);
}

TEST(Handover, CtrlCEndsTheWaitOfAProducer) {
    World world(frames("60s"));
    for (const char *end : {"exit 0", "reset"}) {
        Puppet a(world, producer());
        produce(a);
        a.send(end);
        usleep(200000);
        const int64_t start = now_ms();
        a.signal(SIGINT);
        EXPECT_EQ(a.wait(), 128 + SIGINT) << end;
        EXPECT_LT(now_ms() - start, soon(500)) << end;
    }
}

TEST(Handover, OutOfMemoryDoesNotTakeAResultAway) {
    SIM_ONLY("a small device");
    auto [world, a, b] = Couple(frames(), {{"GPUSHARE_SIM_MEMORY", "64MiB"}});
    produce(a, "0xc3", 48 * MiB);
    a.must("free p");
    EXPECT_EQ(a.code("malloc x 50331648"), 2);
    expect_result(b);
    b.must("free q");
    a.must("malloc x 50331648");
}

} // namespace
