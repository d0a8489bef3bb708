// crash_test.cpp - processes are killed and stopped at any point: the others go on, memory comes
// back, and `gpushare gc` leaves nothing behind.
#include "scenario/harness.hpp"

namespace {

namespace fs = std::filesystem;

void expect_clean(World &world, uint64_t before) {
    EXPECT_TRUE(world.used_becomes(before, soon(3000))) << world.used() << " instead of " << before;
    const Result gc = world.tool({"gc"});
    EXPECT_EQ(gc.status, 0) << gc.err;
    EXPECT_EQ(world.entries("procs"), 0u);
    EXPECT_EQ(world.entries("regions"), 0u);
    EXPECT_EQ(world.entries("names"), 0u);
}

std::string chaos(World &world, unsigned seed, int ms) {
    return "chaos " + std::to_string(seed) + " " + world.path("handles") + " " + std::to_string(ms);
}

// Memory that a process holds, freed by its owner or not, always has its bytes; no call of the
// program's fails for what another does.
TEST(Chaos, WithoutDeathsNothingGoesWrong) {
    World world;
    fs::create_directory(world.path("handles"));
    const uint64_t before = world.used();
    {
        std::vector<std::unique_ptr<Puppet>> puppets;
        for (unsigned i = 0; i < 4; i++) {
            puppets.push_back(std::make_unique<Puppet>(world));
            puppets.back()->send(chaos(world, i + 1, 2000));
        }
        for (auto &puppet : puppets) {
            const Reply reply = puppet->receive(20000);
            EXPECT_EQ(reply[0], "0") << reply.text;
            EXPECT_GT(reply.number(1), 50u);
            EXPECT_EQ(puppet->quit("return"), 0);
        }
    }
    EXPECT_TRUE(world.used_becomes(before));
    EXPECT_EQ(world.entries("regions") + world.entries("procs"), 0u);
    EXPECT_EQ(world.count("record-invalid") + world.count("store-unavailable"), 0u) << world.logs();
}

void with_deaths(const std::string &on_free, unsigned seed, int ms, const char *cached = "0") {
    World world("", {{"GPUSHARE_OPEN_CACHE", cached},
                     {"GPUSHARE_ON_FREE", on_free},
                     {"GPUSHARE_FREE_TIMEOUT", "50ms"}});
    fs::create_directory(world.path("handles"));
    const uint64_t before = world.used();
    {
        std::vector<std::unique_ptr<Puppet>> puppets(8);
        const int64_t until = now_ms() + ms;
        for (unsigned round = 0; now_ms() < until; round++) {
            const size_t victim = static_cast<unsigned>(rand_r(&seed)) % puppets.size();
            std::unique_ptr<Puppet> &puppet = puppets[victim];
            if (!puppet) {
                puppet = std::make_unique<Puppet>(world);
                puppet->send(chaos(world, seed, 60000));
            } else if (rand_r(&seed) % 3 == 0) {
                puppet->stop();
                usleep(static_cast<useconds_t>(rand_r(&seed) % 10000));
                if (rand_r(&seed) % 2)
                    puppet->resume();
            } else {
                puppet->kill(); // stopped or not
                puppet.reset();
            }
            usleep(static_cast<useconds_t>(rand_r(&seed) % 10000));
        }
        // whoever comes now is not held up by what the others left, dead or stopped
        Puppet last(world);
        last.send(chaos(world, seed, 300));
        EXPECT_EQ(last.receive(soon(5000))[0], "0");
        EXPECT_EQ(world.tool({"ls"}).status, 0);
        EXPECT_EQ(last.quit("return"), 0);
    }
    expect_clean(world, before);
    EXPECT_EQ(world.count("record-invalid") + world.count("store-unavailable"), 0u) << world.logs();
}

TEST(Chaos, WithDeathsWhileFreesAreDeferred) {
    with_deaths("defer", 11, 8000);
}

TEST(Chaos, WithDeathsWhileFreesWait) {
    with_deaths("wait", 12, 4000);
}

TEST(Chaos, WithDeathsWhileClosedImportsAreCached) {
    with_deaths("defer", 14, 4000, "4");
}

TEST(Chaos, WithDeathsInRules) {
    World world(rule("w{n}", "*", "auto", "index = *\nsize = >=64KiB\nwait = 2s\n"));
    fs::create_directory(world.path("handles"));
    const uint64_t before = world.used();
    unsigned seed = 13;
    {
        std::vector<std::unique_ptr<Puppet>> puppets(4);
        for (const int64_t until = now_ms() + 3000; now_ms() < until;) {
            auto &puppet = puppets[static_cast<unsigned>(rand_r(&seed)) % puppets.size()];
            if (puppet) {
                puppet->kill();
                puppet.reset();
            } else {
                puppet = std::make_unique<Puppet>(world);
                puppet->send(chaos(world, seed, 60000));
            }
            usleep(static_cast<useconds_t>(rand_r(&seed) % 30000));
        }
    }
    expect_clean(world, before);
}

// --- one death in each state ---

enum Who { IMPORTER = 1, EXPORTER = 2, BOTH = 3 };

struct Stage {
    const char *name;
    bool open, freed, final;
};

const Stage stages[] = {{"published", false, false, false},
                        {"open", true, false, false},
                        {"closing", true, true, false},
                        {"final", false, true, true},
                        {"taken", true, true, true}};

void die_in(const Stage &stage, int who) {
    SCOPED_TRACE(std::string(stage.name) + " " + std::to_string(who));
    auto [world, a, b] =
        Couple(rule("frames", "producer", "export", stage.final ? "ready = free\n" : "") +
               rule("frames", "consumer", "import", "wait = 5s\n"));
    a.must("info");
    b.must("info");
    const uint64_t before = world.used();
    a.all({"malloc p " + std::to_string(big()), "fill p 0x6b 100", "sync"});
    if (stage.freed && stage.final)
        a.must("free p");
    if (stage.open)
        b.must("malloc q 4096");
    if (stage.freed && !stage.final)
        a.must("free p");
    if (who & IMPORTER)
        b.kill();
    if (who & EXPORTER)
        a.kill();
    const bool held = stage.open && !(who & IMPORTER);
    if (held) { // then only the exporter has died
        EXPECT_EQ(b.must("read q 0 1"), "6b");
        EXPECT_EQ(world.state("frames"), "orphaned");
        EXPECT_EQ(world.region("frames")["users"].size(), 1u);
        EXPECT_EQ(world.tool({"gc"}).status, 0);
        EXPECT_EQ(world.state("frames"), "orphaned");
        b.must("free q");
    } else if (!(who & EXPORTER) && stage.freed && stage.open) { // the last importer has died
        EXPECT_TRUE(world.used_becomes(before, soon(2000)));
        EXPECT_TRUE(eventually([&, &world = world] { return world.state("frames") == "none"; }));
    } else if (!(who & EXPORTER)) {
        EXPECT_EQ(world.state("frames"), stage.final ? "final" : "ready");
        EXPECT_EQ(world.region("frames")["users"].size(), 0u);
        Puppet c(world, consumer()); // the next one gets it
        c.must("malloc q 4096");
        EXPECT_EQ(c.must("read q 0 1"), "6b");
    }
    a.kill();
    b.kill();
    expect_clean(world, on_gpu() ? before : 0);
}

TEST(Death, OfTheImporterInEachState) {
    for (const Stage &stage : stages)
        die_in(stage, IMPORTER);
}

TEST(Death, OfTheExporterInEachState) {
    for (const Stage &stage : stages)
        die_in(stage, EXPORTER);
}

TEST(Death, OfBothInEachState) {
    for (const Stage &stage : stages)
        die_in(stage, BOTH);
}

TEST(Death, OfAnImporterInTheMiddleOfItsWait) {
    World world(FRAMES);
    unsigned seed = 5;
    for (int i = 0; i < 10; i++) {
        Puppet b(world, consumer());
        b.send("malloc q 4096");
        usleep(static_cast<useconds_t>(rand_r(&seed) % 5000));
        b.kill();
    }
    Puppet a(world, producer()), b(world, consumer());
    a.must("malloc p 4096");
    b.must("malloc q 4096");
    EXPECT_EQ(world.region("frames")["users"].size(), 1u);
    EXPECT_EQ(world.tool({"gc"}).status, 0);
    EXPECT_EQ(world.entries("procs"), 2u);
    a.must("free p");
    b.must("free q");
    EXPECT_TRUE(eventually([&] { return world.state("frames") == "none"; }, soon(2500)));
}

TEST(Death, OfAProcessThatIsStoppedWhileItFrees) {
    auto [world, a, b] = Twins("", {{"GPUSHARE_ON_FREE", "wait"}});
    a.must("malloc p 4194304");
    const std::string handle = a.must("get p");
    b.must("open q " + handle);
    a.send("free p");
    EXPECT_FALSE(a.answers(100));
    a.stop();
    Puppet c(world); // is refused, and not held up
    EXPECT_EQ(c.code("open r " + handle), gone());
    EXPECT_EQ(world.state(), "closing");
    b.must("close q");
    a.kill();
    b.kill();
    c.kill();
    expect_clean(world, on_gpu() ? world.used() : 0);
}

} // namespace
