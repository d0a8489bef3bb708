// own_memory_test.cpp - memory that programs make by their own cuMemCreate: what others are told of
// it, and that no answer of the driver's changes.
#include "scenario/harness.hpp"

namespace {

constexpr uint64_t BLOCK = 2 * MiB;

// What the directory says that the process has made, on all GPUs.
uint64_t made(const World &world, const Puppet &puppet) {
    const Result shown = world.tool({"show", std::to_string(puppet.pid), "--json"});
    return shown.status == 0 ? (uint64_t)Json::parse(shown.out)[0]["made"].number : UINT64_MAX;
}

// A block that is mapped at the beginning of what `place` names.
void map_one(Puppet &puppet, const std::string &name, const std::string &place) {
    puppet.all({"vcreate " + name + " " + text(BLOCK),
                "vmap " + place + " 0 " + text(BLOCK) + " " + name,
                "vaccess " + place + " 0 " + text(BLOCK) + " 3"});
}

struct OwnMemory : testing::Test {
    World world;
};

TEST_F(OwnMemory, CountsFromItsCreationToItsLastMapping) {
    Puppet a(world);
    a.all({"cuinit", "vreserve at " + text(4 * BLOCK)});
    EXPECT_EQ(world.entries("procs"), 0u) << "addresses are no memory";
    a.must("vcreate one " + text(BLOCK));
    EXPECT_EQ(made(world, a), BLOCK);
    a.must("vcreate two " + text(2 * BLOCK));
    EXPECT_EQ(made(world, a), 3 * BLOCK);
    a.all({"vmap at 0 " + text(BLOCK) + " one", "vrelease one"});
    EXPECT_EQ(made(world, a), 3 * BLOCK) << "it is mapped";
    EXPECT_EQ(a.code("vrelease one"), 1);
    a.must("vmap at " + text(BLOCK) + " " + text(2 * BLOCK) + " two");
    EXPECT_EQ(a.code("vunmap at 0 " + text(2 * BLOCK)), 1) << "a part of a mapping";
    EXPECT_EQ(made(world, a), 3 * BLOCK) << "refused calls change nothing";
    a.must("vunmap at " + text(BLOCK) + " " + text(2 * BLOCK));
    a.must("vunmap at 0 " + text(2 * BLOCK)); // a hole in the range does not matter
    EXPECT_EQ(made(world, a), 2 * BLOCK);
    a.must("vrelease two");
    EXPECT_EQ(made(world, a), 0u);
    EXPECT_EQ(world.count("unmap-mismatch"), 1u) << world.logs();
    EXPECT_EQ(world.findings().size(), 1u + world.count("vmm-double-release")) << world.logs();
}

TEST_F(OwnMemory, IsItsMakersAlsoWhereOthersHaveItMapped) {
    Puppet a(world), b(world);
    for (Puppet *puppet : {&a, &b})
        puppet->all({"malloc p 1024", "vreserve at " + text(BLOCK)});
    map_one(a, "one", "at");
    a.all({"fill at 0x5a 16", "sync"}); // a fill is not waited for
    const Reply exported = a("vexport one");
    ASSERT_EQ(exported.code, 0);
    b.all({"vimport one " + text((uint64_t)a.pid) + " " + exported[0],
           "vmap at 0 " + text(BLOCK) + " one", "vaccess at 0 " + text(BLOCK) + " 3"});
    EXPECT_EQ(b.must("read at 0 4"), "5a5a5a5a");
    EXPECT_EQ(made(world, a), BLOCK);
    EXPECT_EQ(world.tool({"show", text((uint64_t)b.pid)}).status, 1) << "it has published nothing";
    a.kill();
    EXPECT_EQ(b.must("read at 0 4"), "5a5a5a5a");
}

TEST_F(OwnMemory, IsShownByEveryVerb) {
    Puppet a(world);
    a.all({"malloc p 1024", "vcreate one " + text(6 * MiB)});
    EXPECT_HAS(world.tool({"ls"}).out, "CUMEMCREATE");
    EXPECT_HAS(world.tool({"ls"}).out, "6 MiB") << world.tool({"ls"}).out;
    const Json regions = world.ls();
    ASSERT_EQ(regions.size(), 1u);
    EXPECT_EQ(regions[0]["state"].text, "made");
    EXPECT_EQ((uint64_t)regions[0]["size"].number, 6 * MiB);
    EXPECT_EQ((pid_t)regions[0]["owner"]["pid"].number, a.pid);
    EXPECT_HAS(world.tool({"show", text((uint64_t)a.pid)}).out, "by its own cuMemCreate");
    const Json top = Json::parse(world.tool({"top", "--once", "--json"}).out);
    EXPECT_EQ((uint64_t)top["processes"][0]["made"].number, 6 * MiB);
    EXPECT_EQ((uint64_t)top["processes"][0]["own"].number, 6 * MiB);
    EXPECT_EQ((uint64_t)top["total"]["in_use"].number, 6 * MiB);
    EXPECT_HAS(world.tool({"top", "--once"}).out, "CUMEMCREATE");
    EXPECT_HAS(world.tool({"metrics"}).out, "gpushare_process_cumemcreate_bytes");
    a.must("vrelease one");
    EXPECT_LACKS(world.tool({"ls"}).out, "CUMEMCREATE");
}

TEST_F(OwnMemory, IsOfItsOwnGpu) {
    TWO_CARDS();
    world.environment["GPUSHARE_SIM_DEVICES"] = "2";
    Puppet a(world);
    a.all({"malloc p 1024", "vcreate one " + text(BLOCK) + " 1 0",
           "vcreate two " + text(2 * BLOCK) + " 1 1"});
    const Json top = Json::parse(world.tool({"top", "--once", "--json"}).out);
    EXPECT_EQ(top["gpus"].size(), 2u);
    EXPECT_EQ(made(world, a), 3 * BLOCK);
}

TEST_F(OwnMemory, EndsWithItsProcess) {
    Puppet a(world), b(world);
    for (Puppet *puppet : {&a, &b})
        puppet->all({"malloc p 1024", "vcreate one " + text(BLOCK)});
    a.kill();
    EXPECT_EQ(world.ls().size(), 1u);
    EXPECT_EQ(b.quit("return"), 0);
    EXPECT_EQ(world.ls().size(), 0u);
}

TEST_F(OwnMemory, OfAParentIsNotItsForkedChilds) {
    Puppet a(world);
    a.all({"cuinit", "vcreate one " + text(BLOCK)});
    const Reply forked = a("fork vrelease one;vcreate two " + text(BLOCK));
    EXPECT_HAS(forked.text, " 3 | 3 ");
    EXPECT_EQ(made(world, a), BLOCK);
    a.must("vrelease one");
    EXPECT_EQ(made(world, a), 0u);
}

TEST_F(OwnMemory, SurvivesTheResetOfItsDevice) {
    Puppet a(world);
    a.all({"malloc p 1024", "vcreate one " + text(BLOCK), "reset"});
    EXPECT_EQ(made(world, a), BLOCK);
    a.must("vrelease one");
    EXPECT_EQ(made(world, a), 0u);
}

TEST_F(OwnMemory, OfAHundredThousandMappings) {
    SIM_ONLY("it takes seconds");
    constexpr uint64_t COUNT = 100000;
    Puppet a(world);
    a.all({"malloc p 1024", "vreserve at " + text(COUNT * BLOCK), "vcreate one " + text(BLOCK),
           "vmany at " + text(COUNT) + " " + text(BLOCK) + " one", "vrelease one"});
    EXPECT_EQ(made(world, a), BLOCK);
    a.all({"vunmap at 0 " + text(BLOCK), "vretain again at " + text(5 * BLOCK), "vrelease again"});
    EXPECT_EQ(made(world, a), BLOCK);
    a.must("vunmap at " + text(BLOCK) + " " + text((COUNT - 1) * BLOCK));
    EXPECT_EQ(made(world, a), 0u);
    a.must("vunreserve at " + text(COUNT * BLOCK));
}

TEST_F(OwnMemory, OfManyThreadsIsCountedExactly) {
    Puppet a(world);
    a.all({"malloc p 1024", "vcreate one " + text(3 * BLOCK), "vthreads 8 200"});
    EXPECT_EQ(made(world, a), 3 * BLOCK);
}

// What a rule gives is cudaMalloc's to the program, and counts as a region.
TEST_F(OwnMemory, IsNotWhatARuleGives) {
    world.config(rule("frames", "producer", "export", "backing = vmm\n"));
    Puppet a(world, producer());
    a.must("malloc p 4194304");
    EXPECT_EQ(made(world, a), 0u);
    a.must("vcreate one " + text(BLOCK));
    EXPECT_EQ(made(world, a), BLOCK);
}

TEST_F(OwnMemory, IsNotPublishedWithModeOff) {
    world.config("[gpushare]\nmode = off\n");
    Puppet a(world);
    a.all({"malloc p 1024", "vcreate one " + text(BLOCK)});
    EXPECT_EQ(world.entries("procs"), 0u);
}

TEST_F(OwnMemory, IsInTheEventLog) {
    world.environment["GPUSHARE_EVENT_LOG"] = world.path("events");
    Puppet a(world);
    a.all({"malloc p 1024", "vcreate one " + text(BLOCK), "vrelease one"});
    EXPECT_EQ(a.quit("return"), 0);
    const std::string events = read_file(world.path("events"));
    EXPECT_HAS(events, "\"event\":\"made\"", "\"size\":2097152");
}

/* --- what an audit says of refused copies --- */

struct RefusedCopies : testing::Test {
    World world;
    RefusedCopies() {
        world.config("[gpushare]\nmode = audit\n");
    }
};

TEST_F(RefusedCopies, OfMemoryThatIsThereAreNotAccused) {
    Puppet a(world);
    a.must("malloc p " + text(BLOCK));
    EXPECT_EQ(a.code("read p " + text(BLOCK) + " 16"), 1) << "past its end";
    a.must("vreserve at " + text(2 * BLOCK));
    map_one(a, "one", "at");
    a.must("vaccess at 0 " + text(BLOCK) + " 1");
    EXPECT_EQ(a.code("fill at 1 16"), 1) << "read-only";
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
    EXPECT_EQ(a.code("read at " + text(BLOCK) + " 16"), 1) << "nothing is mapped there";
    EXPECT_EQ(world.findings().size(), 1u) << world.logs();
    EXPECT_EQ(world.count("use-unmapped"), 1u) << world.logs();
}

// Its address may belong to something else by then.
TEST_F(RefusedCopies, OfWhatWasFreedAreAccusedUntilItsAddressIsGivenAgain) {
    Puppet a(world);
    a.must("malloc p " + text(BLOCK));
    const std::string address = a.must("value p");
    a.must("free p");
    EXPECT_EQ(a.code("read p 0 16"), 1);
    EXPECT_EQ(world.count("use-after-free"), 1u) << world.logs();
    a.must("malloc q " + text(BLOCK));
    ASSERT_EQ(a.must("value q"), address);
    EXPECT_EQ(a.code("read p " + text(BLOCK) + " 16"), 1);
    EXPECT_EQ(world.findings().size(), 1u) << world.logs();
}

// --- descriptors that an audit finds at the end ---

struct LeftDescriptors : testing::Test {
    World world;
    LeftDescriptors() {
        world.config("[gpushare]\nmode = audit\n");
    }
    // The number of a descriptor of memory that is released.
    std::string left(Puppet &puppet, const std::string &name) {
        puppet.must("vcreate " + name + " " + text(BLOCK));
        const Reply exported = puppet("vexport " + name);
        EXPECT_EQ(exported.code, 0);
        puppet.must("vrelease " + name);
        return exported[0];
    }
};

TEST_F(LeftDescriptors, AreOneFindingAPlace) {
    Puppet a(world);
    a.must("cuinit");
    left(a, "one");
    left(a, "two");
    EXPECT_EQ(a.quit("return"), 0);
    ASSERT_EQ(world.count("export-descriptor-leak"), 1u) << world.logs();
    EXPECT_HAS(world.logs(), "2 descriptors, 4 MiB in all");
}

TEST_F(LeftDescriptors, WhoseNumberAnotherFileTookAreNotAccused) {
    Puppet a(world);
    a.must("cuinit");
    a.must("vreuse " + left(a, "one"));
    EXPECT_EQ(a.quit("return"), 0);
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

TEST_F(LeftDescriptors, OfMemoryThatIsThereAreNotAccused) {
    Puppet a(world);
    a.all({"cuinit", "vcreate one " + text(BLOCK), "vexport one"});
    EXPECT_EQ(a.quit("return"), 0);
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

// The importer's process does not change the mark of the exporter's file.
TEST_F(LeftDescriptors, AreKnownAgainAfterAnotherProcessHasImportedThem) {
    Puppet a(world), b(world);
    a.must("cuinit");
    b.must("cuinit");
    a.must("vcreate one " + text(BLOCK));
    const Reply exported = a("vexport one");
    ASSERT_EQ(exported.code, 0);
    b.all({"vimport one " + text((uint64_t)a.pid) + " " + exported[0], "vrelease one"});
    EXPECT_EQ(b.quit("return"), 0);
    EXPECT_EQ(world.findings().size(), 0u) << "it was closed there: " << world.logs();
    a.must("vrelease one");
    EXPECT_EQ(a.quit("return"), 0);
    EXPECT_EQ(world.count("export-descriptor-leak"), 1u) << world.logs();
}

/* --- the driver --- */

struct Answers : testing::TestWithParam<const char *> {};

TEST_P(Answers, AreAsBare) {
    SIM_ONLY("a real driver dies of a handle that is released (SIGSEGV in cuMemMap)");
    World world(std::string("[gpushare]\n") + GetParam());
    for (const int seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
        Puppet a(world), b(world, bare());
        a.must("malloc p 1024");
        b.must("malloc p 1024");
        const std::string chaos = "vchaos " + text((uint64_t)seed) + " 3000";
        EXPECT_EQ(a(chaos).text, b(chaos).text) << seed;
        EXPECT_NE(made(world, a), UINT64_MAX);
    }
}

INSTANTIATE_TEST_SUITE_P(Modes, Answers,
                         testing::Values("mode = share\n", "mode = audit\n",
                                         "[region r]\nprogram = puppet\nrole = merge\nquiet = 0\n",
                                         "[region r]\nprogram = puppet\nrole = export\n"
                                         "backing = vmm\n"));

} // namespace
