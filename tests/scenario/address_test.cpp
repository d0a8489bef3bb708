// address_test.cpp - which table answers for an address (shim/calls/address.h), in their order.
#include "gpushare/region.h"
#include "scenario/keepers.hpp"

namespace {

constexpr uint64_t BLOCK = 2 * MiB;

// "0 6291456": the code, and how long what lies there is.
std::string there(Puppet &puppet, const std::string &name, uint64_t offset = 0) {
    const Reply range = puppet("range " + name + " " + text(offset));
    return range.code ? text((uint64_t)range.code) : "0 " + range[1];
}

// 1. Nothing lies behind the end, although 2 to 5 have a whole block.
TEST(Address, BehindTheEndOfARulesMemoryIsNothing) {
    const std::string size = text(BLOCK + 5000);
    for (const std::string more : {"backing = vmm\n", "backing = legacy\n"}) {
        World world(rule("frames", "producer", "export", more) +
                    rule("frames", "consumer*", "import", more + "wait = 5s\n"));
        Puppet a(world, producer()), b(world, consumer()), c(world, bare());
        for (Puppet *puppet : {&a, &b, &c}) {
            puppet->must("malloc p " + size);
            EXPECT_EQ(there(*puppet, "p"), "0 " + size) << more;
            EXPECT_EQ(there(*puppet, "p", BLOCK + 4999), "0 " + size) << more;
        }
        for (Puppet *puppet : {&a, &b}) {
            EXPECT_NE(there(*puppet, "p", BLOCK + 5000).substr(0, 2), "0 ") << more;
            EXPECT_NE(puppet->code("attribute p+" + text(BLOCK + 5000) + " 12"), 0) << more;
            EXPECT_EQ(puppet->must("attribute p 12"), c.must("attribute p 12")) << "RANGE_SIZE";
        }
    }
}

// 2. An area comes before the program's mapping, its blocks, and the registry's allocation.
TEST(Address, MemoryOfAMergeRuleIsItsArea) {
    World world(rule("weights", "producer", "merge", "quiet = 0\n"));
    Puppet a(world, producer()), c(world, bare());
    const uint64_t size = 40 * MiB;
    for (Puppet *puppet : {&a, &c})
        puppet->must("malloc p " + text(size));
    for (const uint64_t offset : {uint64_t{0}, 32 * MiB - 1, 32 * MiB, size - 1}) {
        EXPECT_EQ(there(a, "p", offset), "0 " + text(size)) << offset;
        EXPECT_EQ(a("told p " + text(offset)).text.find(" 10=0:0") != std::string::npos, true)
            << "it has no handle";
        EXPECT_EQ(a("mapped p " + text(offset) + " 4096").text,
                  c("mapped p " + text(offset) + " 4096").text);
    }
}

// 3. A run that a token opened comes before its import; where it is closed, nothing is there.
TEST(Address, AMirrorIsItsRunsAndElseEmpty) {
    auto [world, a, b] = Twins("[gpushare]\nvmm_ipc = on\n");
    a.all({"malloc p 1024", "vreserve at " + text(4 * BLOCK)});
    for (unsigned i = 0; i < 3; i++)
        a.all({"vcreate h " + text(BLOCK) + " 0",
               "vmap at " + text(i * BLOCK) + " " + text(BLOCK) + " h",
               "vaccess at " + text(i * BLOCK) + " " + text(BLOCK) + " 3", "vrelease h"});
    b.must("malloc p 1024");
    b.must("open q " + a.must("get at"));
    b.must("open r " + a.must("get at " + text(BLOCK)));
    EXPECT_EQ(there(b, "q"), "0 " + text(3 * BLOCK));
    EXPECT_EQ(there(b, "r"), "0 " + text(3 * BLOCK)) << "the longest run";
    b.must("close q");
    EXPECT_EQ(there(b, "r", BLOCK), "0 " + text(2 * BLOCK));
    EXPECT_NE(there(b, "q").substr(0, 2), "0 ");
    b.must("vcreate own " + text(BLOCK) + " 0");
    EXPECT_EQ(b.code("vmap q 0 " + text(BLOCK) + " own"), 1) << "the place is not the program's";
    b.must("close r");
    EXPECT_NE(there(b, "r").substr(0, 2), "0 ");
}

// 5. An allocation that a rule has opened comes before its import, and has a handle; what the
// program has opened has none.
TEST(Address, AnAllocationComesBeforeAnImport) {
    World world(rule("frames", "producer", "export") +
                rule("frames", "consumer", "import", "wait = 5s\n"));
    Puppet a(world, producer()), b(world, consumer()), c(world, bare());
    a.must("malloc p " + text(BLOCK));
    b.must("malloc p " + text(BLOCK));
    c.must("malloc x 1024");
    c.must("open p " + a.must("get p"));
    for (Puppet *puppet : {&a, &b, &c}) {
        EXPECT_EQ(there(*puppet, "p", 4096), "0 " + text(BLOCK));
        EXPECT_EQ(puppet->must("attribute p 10"), puppet == &c ? "0" : "1");
    }
    EXPECT_EQ(there(b, "p", BLOCK - 1), "0 " + text(BLOCK));
}

} // namespace
