// token_test.cpp - vmm_ipc = on: memory that programs make by their own cuMemCreate has handles,
// which others open, as memory of cudaMalloc has.

#include "gpushare/token.h"
#include "scenario/harness.hpp"

namespace {

constexpr uint64_t BLOCK = 2 * MiB;
const uint64_t EVERYWHERE[] = {
    0, 1, BLOCK - 1, BLOCK, BLOCK + 4096, 2 * BLOCK, 2 * BLOCK + 1, 3 * BLOCK - 1}; // in a run of 3
const char *const ON = "[gpushare]\nvmm_ipc = on\n";

std::string byte(unsigned value) {
    char bytes[8];
    snprintf(bytes, sizeof(bytes), "0x%02x", value);
    return bytes;
}

struct RunToken : testing::Test {
    World world{ON};

    // Maps blocks of cuMemCreate memory side by side, from one on: the n-th is filled with n +
    // 0x10.
    void map(Puppet &puppet, unsigned from, unsigned to, const std::string &types = "0",
             uint64_t size = BLOCK) const {
        for (unsigned i = from; i < to; i++) {
            const std::string name = "h" + text(i), offset = text(i * size);
            puppet.all({"vcreate " + name + " " + text(size) + " " + types,
                        "vmap at " + offset + " " + text(size) + " " + name,
                        "vaccess at " + offset + " " + text(size) + " 3"});
            puppet.all({"fill at " + byte(i + 0x10) + " 64 " + offset, "vrelease " + name});
        }
    }

    // An exporter of so many blocks in a reservation of 64.
    void start(Puppet &puppet, unsigned blocks, const std::string &types = "0") const {
        puppet.must("malloc p 1024"); // a context
        puppet.must("vreserve at " + text(64 * BLOCK));
        map(puppet, 0, blocks, types);
    }

    // And an importer; what opens them there.
    std::string start(Puppet &exporter, unsigned blocks, Puppet &importer) const {
        start(exporter, blocks);
        importer.must("malloc p 1024");
        return exporter.must("get at");
    }

    uint64_t shown(const Puppet &puppet, const std::string &member) const {
        const Result out = world.tool({"show", text((uint64_t)puppet.pid), "--json"});
        return out.status == 0 ? (uint64_t)Json::parse(out.out)[0][member].number : UINT64_MAX;
    }

    // How many sockets of tokens there are in the directory.
    size_t sockets() const {
        size_t count = 0;
        for (const std::string &name : world.files("."))
            count += name.find(GPS_TOKEN_SOCKET) != std::string::npos;
        return count;
    }
};

uint64_t address(Puppet &puppet, const std::string &name) {
    return std::stoull(puppet.must("value " + name), nullptr, 16);
}

std::string at(uint64_t block, uint64_t offset = 0) {
    return text(block * BLOCK + offset);
}

TEST_F(RunToken, IsRefusedWithoutTheKey) {
    world.config("[gpushare]\n");
    Puppet a(world);
    start(a, 1);
    EXPECT_EQ(a.code("get at"), 1);
    EXPECT_EQ(a("vexport h0").code, 1);
    EXPECT_EQ(sockets(), 0u);
}

struct RunTokenOfTwo : RunToken {
    Puppet a{world}, b{world};
};

TEST_F(RunTokenOfTwo, OpensAllThatIsMappedFromThereOn) {
    const std::string handle = start(a, 5, b);
    EXPECT_EQ(a.must("get at 4096"), handle) << "an address inside means its mapping";
    const std::string third = a.must("get at " + at(2, 100));
    EXPECT_NE(third, handle);
    b.must("open q " + handle);
    for (unsigned i = 0; i < 5; i++)
        EXPECT_EQ(b.must("read q " + at(i) + " 1"), byte(i + 0x10).substr(2));
    EXPECT_EQ(b.code("read q " + at(5) + " 1"), 1) << "there the run ends";
    b.must("open r " + third);
    EXPECT_EQ(address(b, "r") - address(b, "q"), 2 * BLOCK) << "they lie as in the exporter";
    b.must("fill r 0x77 64");
    EXPECT_EQ(a.must("read at " + at(2) + " 1"), "77");
    EXPECT_EQ(b.code("close q"), 0);
    EXPECT_EQ(b.code("read q 0 1"), 1) << "nothing else has it open";
    EXPECT_EQ(b.must("read r 0 1"), "77");
    EXPECT_EQ(b.code("close r"), 0);
    EXPECT_EQ(b.code("close r"), 1);
    EXPECT_EQ(b.code("read r 0 1"), 1);
}

// What the program is told of it is what it is told of an open of cudaMalloc's memory.
TEST_F(RunTokenOfTwo, LooksLikeMemoryThatAHandleOfTheDriversOpens) {
    start(a, 3);
    a.must("malloc plain " + text(3 * BLOCK));
    b.all({"malloc p 1024", "ctxcreate two"});
    b.must("open legacy " + a.must("get plain"));
    b.must("open q " + a.must("get at"));
    for (const bool synced : {false, true})
        for (const uint64_t offset : EVERYWHERE) {
            const std::string where = " " + text(offset);
            EXPECT_EQ(b("told q" + where).text, b("told legacy" + where).text) << offset;
            const Reply range = b("range q" + where);
            EXPECT_EQ(range.code, 0) << offset;
            EXPECT_EQ(range[0], b("range q")[0]) << offset;
            EXPECT_EQ(range[1], text(3 * BLOCK)) << offset;
            EXPECT_EQ(b.code("attribute q+" + text(offset) + " 5"),
                      b.code("attribute legacy+" + text(offset) + " 5"))
                << "P2P_TOKENS, which sets SYNC_MEMOPS";
            if (!synced && !offset)
                continue;
            EXPECT_EQ(b.code("memops q" + where), 0) << offset;
            EXPECT_EQ(b.code("memops legacy" + where), 0) << offset;
        }
    b.must("ctxpop");
    if (!on_gpu()) { // but for DEVICE_POINTER (docs/vmm-memory.md)
        EXPECT_EQ(b("told q 4096").text, b("told legacy 4096").text)
            << "another context is current";
    }
    b.all({"close q", "close legacy"});
}

// What is said when it is misused, at each address of it.
TEST_F(RunToken, HasTheFindingsOfMemoryThatAHandleOfTheDriversOpens) {
    std::vector<std::string> found[2];
    for (const bool token : {false, true}) {
        World other(ON);
        Puppet a(other), b(other);
        start(a, 3);
        a.must("malloc plain " + text(3 * BLOCK));
        b.must("malloc p 1024");
        b.must("open q " + a.must(token ? "get at" : "get plain"));
        for (const uint64_t offset : EVERYWHERE) {
            char at[32];
            snprintf(at, sizeof(at), "0x%lx", address(b, "q") + offset);
            if (offset) {
                EXPECT_EQ(b.code(std::string("closeat ") + at), 1) << offset;
                EXPECT_EQ(b.code(std::string("freeat ") + at), 1) << offset;
            }
            b("get q " + text(offset));
        }
        b.all({"close q"});
        EXPECT_EQ(b.code("close q"), 1);
        for (const auto &one : other.findings())
            found[token].push_back(
                one.id + " " +
                std::regex_replace(one.detail, std::regex("0x[0-9a-f]+"), "ADDRESS"));
        EXPECT_EQ(other.count("close-own"), 0u) << other.logs();
    }
    EXPECT_EQ(found[1], found[0]);
}

TEST_F(RunToken, EndsWhereNoDescriptorCanBeMade) {
    Puppet a(world), b(world), c(world);
    start(a, 2);
    for (Puppet *puppet : {&b, &c})
        puppet->must("malloc p 1024");
    c.must("vcreate one " + text(BLOCK) + " 1");
    const Reply exported = c("vexport one");
    ASSERT_EQ(exported.code, 0);
    a.all({"vimport other " + text((uint64_t)c.pid) + " " + exported[0],
           "vmap at " + at(2) + " " + text(BLOCK) + " other",
           "vaccess at " + at(2) + " " + text(BLOCK) + " 3"});
    map(a, 3, 4);
    EXPECT_EQ(a.code("get at " + at(2)), 1) << "imported";
    b.must("open q " + a.must("get at"));
    EXPECT_EQ(b.must("read q " + at(1) + " 1"), "11");
    EXPECT_EQ(b.code("read q " + at(2) + " 1"), 1);
    b.must("open r " + a.must("get at " + at(3)));
    EXPECT_EQ(b.must("read r 0 1"), "13");
}

TEST_F(RunToken, OfAnotherDeviceIsAnotherRun) {
    TWO_CARDS();
    world.environment["GPUSHARE_SIM_DEVICES"] = "2";
    Puppet a(world), b(world);
    start(a, 1);
    a.all({"vcreate far " + text(BLOCK) + " 0 1", "vmap at " + at(1) + " " + text(BLOCK) + " far",
           "vaccess at " + at(1) + " " + text(BLOCK) + " 3 0", "fill at 0x55 64 " + at(1)});
    b.must("malloc p 1024");
    b.must("open q " + a.must("get at"));
    EXPECT_EQ(b.code("read q " + at(1) + " 1"), 1);
    b.must("open r " + a.must("get at " + at(1)));
    EXPECT_EQ(b.must("read r 0 1"), "55");
    EXPECT_EQ(shown(b, "held"), 2 * BLOCK) << "on two GPUs";
}

TEST_F(RunTokenOfTwo, IsTheSameUntilTheRunChanges) {
    const std::string first = start(a, 2, b), second = a.must("get at " + at(1));
    EXPECT_EQ(a.must("get at"), first);
    map(a, 2, 3);
    const std::string grown = a.must("get at");
    EXPECT_NE(grown, first);
    EXPECT_EQ(a.must("get at"), grown);
    b.must("open q " + first);
    EXPECT_EQ(b.code("read q " + at(2) + " 1"), 1) << "it is of the time before";
    b.must("open r " + grown);
    EXPECT_EQ(b.must("value q"), b.must("value r"));
    EXPECT_EQ(b.must("read q " + at(2) + " 1"), "12");
    EXPECT_EQ(b.code("close q"), 0);
    EXPECT_EQ(b.must("read r " + at(2) + " 1"), "12");
    EXPECT_EQ(b.code("close r"), 0);
    EXPECT_EQ(b.code("read r 0 1"), 1);
    a.must("vunmap at 0 " + text(BLOCK));
    EXPECT_EQ(b.code("open q " + first), gone());
    EXPECT_EQ(b.code("open q " + grown), gone());
    EXPECT_EQ(world.count("open-stale"), 1u) << world.logs();
    EXPECT_EQ(a.code("get at"), 1) << "nothing is mapped there";
    b.must("open q " + second);
    EXPECT_EQ(b.must("read q 0 1"), "11") << "its run begins behind what is gone";
}

TEST_F(RunTokenOfTwo, OfMemoryThatWasMappedAnewIsAnother) {
    const std::string before = start(a, 3, b);
    b.must("open q " + before);
    a.all({"vunmap at " + at(1) + " " + text(BLOCK), "vcreate h1 " + text(BLOCK) + " 0"});
    a.must("vmap at " + at(1) + " " + text(BLOCK) + " h1");
    a.all({"vaccess at " + at(1) + " " + text(BLOCK) + " 3", "fill at 0x99 64 " + at(1)});
    const std::string now = a.must("get at");
    EXPECT_NE(now, before);
    b.must("open r " + now);
    EXPECT_NE(b.must("value r"), b.must("value q")) << "the old one is in its place";
    EXPECT_EQ(b.must("read q " + at(1) + " 1"), "11");
    EXPECT_EQ(b.must("read r " + at(1) + " 1"), "99");
    EXPECT_EQ(b.must("read r " + at(2) + " 1"), "12");
    EXPECT_EQ(b.code("close q"), 0);
    EXPECT_EQ(b.must("read r " + at(1) + " 1"), "99");
    EXPECT_EQ(world.count("vmm-remapped-shared"), 1u) << world.logs();
}

TEST_F(RunTokenOfTwo, PinsNothing) {
    a.must("malloc p 1024");
    b.must("malloc p 1024");
    const uint64_t before = world.used();
    a.must("vreserve at " + text(64 * BLOCK));
    map(a, 0, 4);
    const std::string handle = a.must("get at");
    b.all({"open q " + handle, "close q"});
    a.must("vunmap at 0 " + text(4 * BLOCK));
    EXPECT_TRUE(world.used_becomes(before)) << "the token exists";
    EXPECT_EQ(b.code("open q " + handle), gone());
}

TEST_F(RunTokenOfTwo, OfWhatIsGivenBackWhileItIsOpenKeepsItsBytes) {
    start(a, 2);
    b.must("malloc p 1024");
    const uint64_t before = world.used();
    b.must("open q " + a.must("get at"));
    a.must("vunmap at 0 " + text(2 * BLOCK));
    EXPECT_EQ(b.must("read q " + at(1) + " 1"), "11");
    EXPECT_EQ(b.code("close q"), 0);
    EXPECT_TRUE(world.used_becomes(before - 2 * BLOCK));
}

TEST_F(RunTokenOfTwo, OfALargeRunComesInManyMessages) {
    a.must("malloc p 1024");
    b.must("malloc p 1024");
    a.must("vreserve at " + text(200 * BLOCK));
    map(a, 0, 200);
    b.must("open q " + a.must("get at"));
    for (const unsigned i : {0u, 63u, 64u, 127u, 128u, 199u})
        EXPECT_EQ(b.must("read q " + at(i) + " 1"), byte((i + 0x10) & 0xff).substr(2)) << i;
    EXPECT_EQ(shown(b, "held"), 200 * BLOCK);
    EXPECT_EQ(b.code("close q"), 0);
    EXPECT_EQ(shown(b, "held"), 0u);
}

TEST_F(RunTokenOfTwo, AHundredOpensImportEachBlockOnce) {
    a.must("malloc p 1024");
    b.must("malloc p 1024");
    a.must("vreserve at " + text(100 * BLOCK));
    map(a, 0, 100);
    const uint64_t before = world.used();
    for (unsigned i = 0; i < 100; i++)
        b.must("open q" + text(i) + " " + a.must("get at " + at(i, 512)));
    EXPECT_EQ(world.used(), before);
    EXPECT_EQ(shown(b, "held"), 100 * BLOCK) << "and not 100 + 99 + 98 ...";
    for (unsigned i = 0; i < 100; i++)
        EXPECT_EQ(address(b, "q" + text(i)) - address(b, "q0"), i * BLOCK);
    for (unsigned i = 0; i < 99; i++)
        EXPECT_EQ(b.code("close q" + text(i)), 0);
    EXPECT_EQ(shown(b, "held"), BLOCK);
    EXPECT_EQ(b.must("read q99 0 1"), byte((99 + 0x10) & 0xff).substr(2));
}

TEST_F(RunTokenOfTwo, CountsItsOpens) {
    const std::string handle = start(a, 2, b);
    for (int i = 0; i < 10; i++)
        b.must("open q " + handle);
    for (int i = 0; i < 9; i++)
        EXPECT_EQ(b.code("close q"), 0);
    EXPECT_EQ(b.must("read q 0 1"), "10");
    EXPECT_EQ(b.code("close q"), 0);
    EXPECT_EQ(b.code("close q"), 1);
    EXPECT_EQ(b.code("read q 0 1"), 1);
}

TEST_F(RunTokenOfTwo, AnswersAsADriversHandleWhereItIsMisused) {
    const std::string handle = start(a, 2, b);
    EXPECT_EQ(a.code("open q " + handle), 201) << "its own";
    EXPECT_EQ(b.code("open q " + handle + " 0"), 1);
    EXPECT_EQ(b.code("open q " + handle + " 2"), 1);
    b.must("open q " + handle);
    EXPECT_EQ(b.code("get q"), 1) << "another one's memory";
    EXPECT_EQ(b.code("free q"), 1);
    EXPECT_EQ(b.code("vunmap q 0 " + text(BLOCK)), 1);
    EXPECT_EQ(b.code("vaccess q 0 " + text(BLOCK) + " 1"), 1);
    EXPECT_EQ(b.must("read q 0 1"), "10");
    b.must("ctxcreate two");
    EXPECT_EQ(b.code("open r " + handle), 400) << "open in another context";
    b.all({"ctxpop", "close q"});
}

// Its blocks are the driver's each by itself.
TEST_F(RunTokenOfTwo, ClosedInsideIsNotTheProcesssOwn) {
    start(a, 3);
    b.must("malloc p 1024");
    b.all({"open q " + a.must("get at"), "open r " + a.must("get at " + at(1))});
    char inside[32];
    snprintf(inside, sizeof(inside), "0x%lx", address(b, "q") + 2 * BLOCK);
    EXPECT_EQ(b.code(std::string("closeat ") + inside), 1);
    EXPECT_EQ(world.count("close-interior"), 1u) << world.logs();
    EXPECT_EQ(b.code(std::string("freeat ") + inside), 1);
    EXPECT_EQ(world.count("free-imported"), 1u) << world.logs();
    b.must("close r");
    EXPECT_EQ(b.code("close r"), 1);
    EXPECT_EQ(world.count("double-close"), 1u) << world.logs();
    EXPECT_EQ(world.count("close-own"), 0u) << world.logs();
    b.must("close q");
}

TEST_F(RunTokenOfTwo, EndsWithTheContextThatOpenedIt) {
    const std::string handle = start(a, 2, b);
    b.all({"open q " + handle, "reset"});
    EXPECT_EQ(shown(b, "held"), 0u);
    b.all({"malloc p 1024", "open q " + handle});
    EXPECT_EQ(b.must("read q " + at(1) + " 1"), "11");
}

TEST_F(RunToken, OfADeadExporter) {
    Puppet a(world), b(world), c(world);
    c.must("malloc p 1024");
    const std::string handle = start(a, 2, b);
    b.must("open q " + handle);
    a.kill();
    EXPECT_EQ(b.must("read q " + at(1) + " 1"), "11") << "the importer keeps it";
    EXPECT_EQ(c.code("open q " + handle), dead());
    EXPECT_EQ(world.count("open-dead-owner"), 1u) << world.logs();
    EXPECT_EQ(b.code("close q"), 0);
    EXPECT_EQ(b.quit("return"), 0);
    EXPECT_EQ(c.quit("return"), 0);
    EXPECT_EQ(sockets(), 0u) << "the last one swept";
}

TEST_F(RunToken, OfAnExporterThatHasEnded) {
    Puppet a(world), b(world), c(world);
    c.must("malloc p 1024");
    const std::string handle = start(a, 2, b);
    b.must("open q " + handle);
    EXPECT_EQ(a.quit("return"), 0);
    EXPECT_EQ(sockets(), 0u);
    EXPECT_EQ(c.code("open q " + handle), dead());
    EXPECT_EQ(b.must("read q 0 1"), "10");
}

TEST_F(RunTokenOfTwo, OfADeadImporterHoldsNothing) {
    start(a, 2);
    const uint64_t before = world.used();
    b.must("malloc p 1024");
    b.must("open q " + a.must("get at"));
    b.kill();
    a.must("vunmap at 0 " + text(2 * BLOCK));
    EXPECT_TRUE(world.used_becomes(before - 2 * BLOCK));
}

TEST_F(RunTokenOfTwo, OfAStoppedExporterCostsABoundedWait) {
    const std::string handle = start(a, 2, b);
    a.stop();
    EXPECT_EQ(b.code("open q " + handle), 1);
    EXPECT_EQ(world.count("store-unavailable"), 1u) << world.logs();
    EXPECT_EQ(world.count("ipc-call-failed"), 1u) << world.logs();
    EXPECT_EQ(world.findings().size(), 2u) << world.logs();
    a.resume();
    b.must("open q " + handle);
    EXPECT_EQ(b.must("read q 0 1"), "10");
}

TEST_F(RunTokenOfTwo, OfAParentIsNotItsForkedChilds) {
    const std::string handle = start(a, 2, b);
    const Reply forked = a("fork get at;open q " + handle);
    EXPECT_HAS(forked.text, "3 | 3");
    b.must("open q " + handle);
    EXPECT_EQ(b.must("read q 0 1"), "10") << "the parent goes on";
    b.must("close q");
    std::unique_ptr<Puppet> child = a.spawn();
    EXPECT_EQ(child->code("get at"), 3);
    a.kill();
    EXPECT_EQ(b.code("open q " + handle), dead()) << "the child does not answer for it";
}

TEST_F(RunTokenOfTwo, SurvivesAProgramThatClosesItsSocket) {
    const std::string handle = start(a, 2, b);
    for (int i = 0; i < 3; i++) {
        EXPECT_NE(a.must("unlisten"), "0"); // a real driver may listen, too
        b.must("open q " + handle);
        EXPECT_EQ(b.must("read q 0 1"), "10");
        EXPECT_EQ(b.code("close q"), 0);
    }
}

TEST_F(RunToken, LooksAsMemoryWithoutIt) {
    std::string told[2], types[2];
    for (const bool on : {false, true}) {
        World other(on ? ON : "[gpushare]\n");
        Puppet a(other);
        start(a, 2);
        a.all({"vcreate one " + text(BLOCK) + " 0", "vcreate two " + text(BLOCK) + " 1"});
        EXPECT_EQ(a("vexport one").code, 1) << on;
        EXPECT_EQ(a("vexport two").code, 0) << on;
        types[on] = a.must("vtypes one") + a.must("vtypes two");
        told[on] = a("told at 4096").text;
        EXPECT_EQ(a.must("attribute at 10"), "0") << "IS_LEGACY_CUDA_IPC_CAPABLE";
        EXPECT_EQ(other.count("export-type-missing"), 1u);
    }
    EXPECT_EQ(types[0], "01");
    EXPECT_EQ(types[1], types[0]);
    EXPECT_EQ(told[1], told[0]);
}

TEST_F(RunToken, IsNotHadWhereTheDeviceGivesNoDescriptors) {
    SIM_ONLY("a card has them");
    world.environment["GPUSHARE_SIM_NO_DESCRIPTORS"] = "1";
    Puppet a(world);
    start(a, 1);
    EXPECT_EQ(a.code("vcreate two " + text(BLOCK) + " 1"), 801);
    EXPECT_EQ(a.code("get at"), 1);
    EXPECT_EQ(world.count("export-not-capable"), 1u) << world.logs();
}

TEST_F(RunToken, OfFabricMemoryIsRefusedAsBare) {
    Puppet a(world);
    a.must("malloc p 1024");
    EXPECT_EQ(a.code("vcreate one " + text(BLOCK) + " 8"), 800);
}

TEST_F(RunToken, GoesIntoAContainerAndOutOfIt) {
    How inside;
    inside.wrap = {"unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--ipc"};
    std::vector<std::string> attempt = inside.wrap;
    attempt.push_back("true");
    SKIP_IF(command(attempt).status != 0, "this user may not make such namespaces");
    world.used(); // a simulated driver that was started in a container would end with it
    Puppet a(world), b(world, inside), c(world, inside);
    for (Puppet *puppet : {&a, &b, &c})
        start(*puppet, 2);
    const std::string outer = a.must("get at"), inner = b.must("get at");
    b.must("open q " + outer);
    a.must("open q " + inner);
    c.must("open q " + inner); // both are process 1 of a namespace of their own
    for (Puppet *puppet : {&a, &b, &c})
        EXPECT_EQ(puppet->must("read q " + at(1) + " 1"), "11");
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

TEST_F(RunTokenOfTwo, OfMemoryThatHasDescriptorsItself) {
    start(a, 2, "1");
    b.must("malloc p 1024");
    b.must("open q " + a.must("get at"));
    EXPECT_EQ(b.must("read q " + at(1) + " 1"), "11");
}

TEST_F(RunToken, ImportsWithoutTheKey) {
    Puppet a(world);
    start(a, 2);
    const std::string handle = a.must("get at");
    world.config("[gpushare]\n");
    Puppet b(world);
    b.all({"malloc p 1024", "open q " + handle});
    EXPECT_EQ(b.must("read q " + at(1) + " 1"), "11");
}

TEST_F(RunTokenOfTwo, IsShown) {
    start(a, 3);
    b.must("malloc p 1024");
    b.must("open q " + a.must("get at " + at(1)));
    const Json region = world.region();
    EXPECT_EQ((uint64_t)region["size"].number, 2 * BLOCK);
    EXPECT_EQ(region["backing"].text, "token");
    EXPECT_EQ((pid_t)region["owner"]["pid"].number, a.pid);
    ASSERT_EQ(region["users"].size(), 1u);
    EXPECT_EQ((pid_t)region["users"][0]["pid"].number, b.pid);
    EXPECT_EQ(shown(b, "held"), 2 * BLOCK);
    const std::string out = world.tool({"show", text((uint64_t)b.pid)}).out;
    EXPECT_HAS(out, "4 MiB", "by tokens");
    b.must("close q");
    a.must("vunmap at 0 " + text(3 * BLOCK));
    EXPECT_EQ(world.state(), "none") << "it is freed, and nobody has it";
    EXPECT_EQ(a.quit("return"), 0);
    EXPECT_EQ(world.entries("regions"), 0u);
}

TEST_F(RunToken, OpensOfManyThreadsAndProcesses) {
    Puppet a(world), b(world), c(world);
    start(a, 64);
    const std::string handle = a.must("get at"), other = a.must("get at " + at(7));
    for (Puppet *puppet : {&b, &c})
        puppet->must("malloc p 1024");
    const uint64_t before = world.used();
    for (Puppet *puppet : {&b, &c}) {
        puppet->send("threads 8 20 use " + handle + " " + other);
    }
    for (Puppet *puppet : {&b, &c})
        EXPECT_EQ(puppet->receive()[0], "0") << "failures";
    for (Puppet *puppet : {&b, &c}) {
        EXPECT_EQ(shown(*puppet, "held"), 0u);
    }
    EXPECT_EQ(world.used(), before);
}

} // namespace
