// What a process has for itself leaves the GPU in blocks that it copies itself (suspend = on).

extern "C" {
#include "directory/orders.h"
}
#include "scenario/harness.hpp"

namespace {

std::string with(const std::string &options) {
    return "[gpushare]\nsuspend = on\n" + options;
}

class OwnMemory : public Checkpointed {
  protected:
    gps_answer_file answer() {
        const gps_store store = world.store();
        gps_answer_file answer{};
        gps_owner owner;
        for (const std::string &name : world.files("procs"))
            if (gps_orders_parse(name.c_str(), &owner))
                gps_answer_read(&store, &owner, &answer);
        return answer;
    }

    // Out and back. How many bytes the process copied; UINT64_MAX: something failed.
    uint64_t turn(Puppet &puppet) {
        const Result out = world.tool({"suspend", pid(puppet)});
        const uint64_t copied = answer().copied;
        const Result back = world.tool({"resume", "--wait", pid(puppet)});
        EXPECT_EQ(out.status + back.status, 0) << out.err << back.err;
        return out.status + back.status ? UINT64_MAX : copied;
    }

    // Blocks of 64, 4 and 2 MiB, whose parts are all different.
    static void load(Puppet &puppet) {
        puppet.must("malloc w 73400320");
        puppet.must("upload w 0 73400320 7 sync");
    }
    static bool is_loaded(Puppet &puppet) {
        return puppet.must("expect w 0 73400320 7") == "same";
    }

    World world{with("")};
};

constexpr uint64_t PART = 32 * MiB;

} // namespace

TEST_F(OwnMemory, IsCopiedAndWhatHasNotChangedIsNotCopiedAgain) {
    Puppet one(world, producer());
    load(one);
    EXPECT_EQ(turn(one), 70 * MiB);
    EXPECT_TRUE(is_loaded(one));
    EXPECT_EQ(turn(one), 0u);
    EXPECT_TRUE(is_loaded(one));
    EXPECT_EQ(answer().kept, 70 * MiB);
    one.must("write w 40000000 aabb");
    EXPECT_EQ(turn(one), PART);
    EXPECT_EQ(one.must("read w 40000000 2"), "aabb");
    EXPECT_EQ(one.must("read w 0 4"), one.must("read w 0 4"));
    one.must("write w 0 11");
    one.must("write w 73400319 22");
    EXPECT_EQ(turn(one), PART + 2 * MiB);
    EXPECT_EQ(one.must("read w 40000000 2") + one.must("read w 73400319 1"), "aabb22");
    EXPECT_EQ(world.count(""), 0u) << world.logs();
}

TEST_F(OwnMemory, IsCopiedOnceWhereItIsEqual) {
    Puppet one(world, producer());
    one.all({"malloc a 134217728", "fill a 0x11 134217728", "malloc b 67108864",
             "fill b 0x11 67108864", "malloc z 33554432", "fill z 0x00 33554432"});
    EXPECT_EQ(turn(one), 2 * PART);
    for (const char *read : {"read a 0 2", "read a 134217726 2", "read b 33554432 2"})
        EXPECT_EQ(one.must(read), "1111");
    EXPECT_EQ(one.must("read z 100 2"), "0000");
}

TEST_F(OwnMemory, OfFreedMemoryNothingIsKept) {
    Puppet one(world, producer());
    load(one);
    one.all({"malloc m 33554432", "upload m 0 33554432 9 sync"});
    EXPECT_EQ(turn(one), 102 * MiB);
    one.must("free w");
    EXPECT_TRUE(eventually([&] { return answer().kept == PART; })) << answer().kept;
    one.must("free m");
    EXPECT_TRUE(eventually([&] { return answer().kept == 0; })) << answer().kept;
}

TEST_F(OwnMemory, KeepsNoMoreThanIsSaid) {
    world.config(with("suspend_memory = 40MiB\n"));
    Puppet one(world, producer());
    load(one);
    EXPECT_EQ(turn(one), 70 * MiB);
    EXPECT_TRUE(eventually([&] { return answer().kept <= 40 * MiB; }));
    EXPECT_TRUE(is_loaded(one));
    EXPECT_EQ(turn(one), 38 * MiB);
    EXPECT_TRUE(is_loaded(one));
}

TEST_F(OwnMemory, IsLeftToTheDriverWithoutBlocks) {
    world.config(with("blocks = off\n"));
    Puppet one(world, producer());
    load(one);
    EXPECT_EQ(turn(one), 0u);
    EXPECT_EQ(answer().kept, 0u);
    EXPECT_TRUE(is_loaded(one));
}

TEST_F(OwnMemory, BelowTwoMebibytesIsTheDrivers) {
    Puppet one(world, producer());
    one.all({"malloc s 1048576", "fill s 0x33 1048576"});
    EXPECT_EQ(turn(one), 0u);
    EXPECT_EQ(one.must("read s 1048574 2"), "3333");
}

// In captured work the addresses stay.
TEST_F(OwnMemory, IsWhereItWasForAGraph) {
    Puppet one(world, producer());
    load(one);
    one.all({"malloc g 4194304", "stream s", "capture s", "sfill s g 0x77 4096", "captured s e"});
    EXPECT_EQ(turn(one), 74 * MiB);
    one.all({"graph s e", "ssync s"});
    EXPECT_EQ(one.must("read g 0 2"), "7777");
}

// Main memory is counted for one after the other.
TEST_F(OwnMemory, OfSeveralLeavesAndComesBackAtOnce) {
    std::vector<std::unique_ptr<Puppet>> all;
    for (int i = 0; i < 4; i++) {
        all.push_back(std::make_unique<Puppet>(world, producer()));
        all.back()->must("malloc w 73400320");
        all.back()->must("upload w 0 73400320 " + text(i + 1) + " sync");
    }
    for (int round = 0; round < 2; round++)
        for (const char *verb : {"suspend", "resume"}) {
            std::vector<std::thread> tools;
            std::atomic<int> failed{0};
            for (const auto &one : all)
                tools.emplace_back([&, verb, number = pid(*one)] {
                    failed += world.tool({verb, number}).status != 0;
                });
            for (std::thread &tool : tools)
                tool.join();
            EXPECT_EQ(failed, 0) << verb;
        }
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(all[i]->must("expect w 0 73400320 " + text(i + 1)), "same");
}

// A block of a merge rule that is not merged leaves with the others.
TEST_F(OwnMemory, IsAlsoWhatAMergeRuleHasNotMergedYet) {
    world.config(with(rule("weights", "producer", "merge", "size = >=64MiB\nquiet = 1h\n")));
    Puppet one(world, producer());
    load(one);
    one.all({"malloc o 33554432", "upload o 0 33554432 3 sync"});
    EXPECT_EQ(turn(one), 102 * MiB);
    EXPECT_TRUE(is_loaded(one));
    EXPECT_EQ(one.must("expect o 0 33554432 3"), "same");
}

// A call that is not hooked does not wait. What it wrote is there, or the suspension is refused.
TEST_F(OwnMemory, WhatACallWritesThatIsNotHookedIsThere) {
    Puppet one(world, producer());
    one.all({"malloc w 134217728", "fill w 0x00 134217728"});
    for (int i = 0; i < 3; i++) /* memory that is quickly copied is seldom written meanwhile */
        one.must("upload w " + text(i * PART) + " 33554432 " + text(i + 1) + " sync");
    one.must("plug " + build_directory() + "/tests/apps/libdeepbind.so");
    one.must("plugged scribble w");
    int suspended = 0;
    for (int i = 0; i < 4; i++) {
        const Result out = world.tool({"suspend", pid(one)});
        suspended += out.status == 0;
        EXPECT_TRUE(out.status == 0 || contains(out.err, "changes while it is copied")) << out.err;
        EXPECT_EQ(world.tool({"resume", pid(one)}).status, 0);
    }
    EXPECT_EQ(one.code("plugged scribbled w"), 0) << suspended << " suspensions";
}

// Nothing was let go of by then.
TEST_F(OwnMemory, WithoutMainMemoryTheProgramRunsOn) {
    Puppet one(world, producer());
    load(one);
    rlimit limit{};
    ASSERT_EQ(prlimit(one.pid, RLIMIT_AS, nullptr, &limit), 0);
    const rlimit none{1 << 20, limit.rlim_max};
    ASSERT_EQ(prlimit(one.pid, RLIMIT_AS, &none, nullptr), 0);
    const Result out = world.tool({"suspend", pid(one)});
    EXPECT_EQ(out.status, 1) << out.out;
    EXPECT_TRUE(contains(out.err, "main memory")) << out.err;
    ASSERT_EQ(prlimit(one.pid, RLIMIT_AS, &limit, nullptr), 0);
    EXPECT_TRUE(is_loaded(one));
    EXPECT_EQ(turn(one), 70 * MiB);
    EXPECT_TRUE(is_loaded(one));
}

TEST_F(OwnMemory, LooksLikeMemoryOfCudaMalloc) {
    World bare("");
    Puppet one(world, producer()), other(bare, producer());
    for (Puppet *puppet : {&one, &other})
        puppet->all({"malloc a 73400321", "malloc b 2097152"});
    EXPECT_EQ(one.must("range a"), one.must("value a"));
    for (const char *question : {"ordinal a", "told a 5000", "told b 0"})
        EXPECT_EQ(one.must(question), other.must(question)) << question;
    EXPECT_EQ(one.code("read a 73400321 1"), other.code("read a 73400321 1"));
    one.must("free a");
    EXPECT_EQ(one.code("freeat " + other.must("value b")), other.code("freeat 0x1234"));
}

// A handle of such memory is a token, which opens where the library is.
TEST_F(OwnMemory, HasAHandleForProgramsWithTheLibrary) {
    Puppet one(world, producer()), two(world, consumer());
    load(one);
    const std::string handle = one.must("get w");
    EXPECT_EQ(one.must("get w 1000000"), handle);
    EXPECT_TRUE(contains(world.logs(), "only programs that run with gpushare open it"));
    two.must("malloc small 4096");
    two.must("open v " + handle);
    EXPECT_EQ(two.must("expect v 0 73400320 7"), "same");
    two.must("write v 50000000 4455");
    EXPECT_EQ(one.must("read w 50000000 2"), "4455");
    const Result out = world.tool({"suspend", pid(one)});
    EXPECT_EQ(out.status, 1) << out.out;
    EXPECT_TRUE(contains(out.err, "close it there")) << out.err;
    two.must("close v");
    EXPECT_EQ(turn(one), 70 * MiB);
    two.must("open v " + handle);
    EXPECT_EQ(two.must("read v 50000000 2"), "4455");
    two.must("close v");
    one.must("free w");
    EXPECT_NE(two.code("open v " + handle), 0);
}
