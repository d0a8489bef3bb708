// Merged memory that only suspended programs have leaves the card, once for all of them.

#include "scenario/keepers.hpp"
#include "scenario/merging.hpp"

namespace {

std::string suspendable(const std::string &options = "") {
    return "[gpushare]\nsuspend = on\n" + options + merging();
}

constexpr uint64_t WEIGHTS = 40 * MiB; // a block of 32 and one of 8 MiB

class Offload : public Checkpointed {
  protected:
    // What it says; "failed": it did not do it.
    static std::string suspend(Replicas &replicas, size_t i,
                               const std::vector<std::string> &more = {}) {
        std::vector<std::string> words = {"suspend", pid(replicas[i])};
        words.insert(words.end(), more.begin(), more.end());
        const Result result = replicas.world.tool(words);
        return result.status == 0 ? result.out : "failed: " + result.err;
    }
    static bool resume(Replicas &replicas, size_t i) {
        const Result result = replicas.world.tool({"resume", "--wait", pid(replicas[i])});
        EXPECT_EQ(result.status, 0) << result.err;
        return result.status == 0;
    }
    // What a sleeper has beside its blocks, 2 MiB, has left the card, too.
    static bool uses(Replicas &replicas, uint64_t bytes, uint64_t sleepers) {
        return replicas.use(bytes - sleepers * 2 * MiB);
    }
    // One alone offers its blocks a moment after they are whole.
    static bool has_merged(const World &world, uint64_t bytes) {
        return eventually([&] {
            for (const Json &one : Json::parse(world.tool({"ls", "--json"}).out).elements)
                if (one["state"].text == "merged")
                    return one["size"].number == static_cast<double>(bytes);
            return false;
        });
    }
    // How many blocks a keeper has in main memory.
    static size_t in_main_memory(const World &world) {
        size_t count = 0;
        std::error_code gone;
        const std::string path = "/proc/" + std::to_string(keeper_of(world)) + "/fd";
        for (const auto &entry : std::filesystem::directory_iterator(path, gone))
            count +=
                contains(std::filesystem::read_symlink(entry, gone).string(), "gpushare-block");
        return count;
    }
};

} // namespace

TEST_F(Offload, WithTheLastAndComesBackWithTheFirst) {
    Replicas two(2, suspendable());
    two.load("w", WEIGHTS, 7);
    ASSERT_TRUE(two.use(WEIGHTS));
    for (size_t turn = 0; turn < 4; turn++) {
        const size_t first = turn % 2, last = 1 - first;
        EXPECT_LACKS(suspend(two, first), "Of that");
        EXPECT_TRUE(uses(two, WEIGHTS, 1)) << two.in_use();
        EXPECT_HAS(suspend(two, last), " Of that 40 MiB have left the GPU, too");
        EXPECT_TRUE(uses(two, 0, 2)) << two.in_use();
        EXPECT_TRUE(resume(two, turn / 2 ? first : last));
        EXPECT_TRUE(uses(two, WEIGHTS, 1)) << two.in_use();
        EXPECT_TRUE(resume(two, turn / 2 ? last : first));
        two.expect_all("w", WEIGHTS, 7);
        EXPECT_TRUE(two.use(WEIGHTS)) << two.in_use();
        if (!on_gpu()) {
            EXPECT_EQ(in_main_memory(two.world), 2u) << "they are kept for the next time";
        }
    }
    // each writes what is its own then
    two[0].must("fill w 0x11 4096");
    EXPECT_EQ(Replicas::expect(two[1], "w", WEIGHTS, 7), "same");
    EXPECT_EQ(two.world.count(""), 0u) << two.world.logs();
    EXPECT_EQ(two.left(), "");
}

TEST_F(Offload, OfOneAloneToo) {
    Replicas one(1, suspendable("suspend_memory = 0\n"));
    one.load("w", WEIGHTS, 7);
    ASSERT_TRUE(has_merged(one.world, WEIGHTS));
    EXPECT_HAS(suspend(one, 0), " Of that 40 MiB have left the GPU, too");
    EXPECT_TRUE(uses(one, 0, 1)) << one.in_use();
    EXPECT_EQ(in_main_memory(one.world), 2u);
    EXPECT_TRUE(resume(one, 0));
    one.expect_all("w", WEIGHTS, 7);
    EXPECT_TRUE(eventually([&] { return in_main_memory(one.world) == 0; })) << "suspend_memory = 0";
    EXPECT_EQ(one.left(), "");
}

TEST_F(Offload, NotWhereItIsSaid) {
    Replicas one(1, suspendable());
    one.load("w", WEIGHTS, 7);
    ASSERT_TRUE(has_merged(one.world, WEIGHTS));
    EXPECT_LACKS(suspend(one, 0, {"--keep-on-card"}), "Of that");
    EXPECT_TRUE(uses(one, WEIGHTS, 1)) << one.in_use();
    EXPECT_TRUE(resume(one, 0));
    one.expect_all("w", WEIGHTS, 7);
}

// Each brings a part, and gets the others' from the keeper.
TEST_F(Offload, SeveralComeBackAtOnce) {
    Replicas three(3, suspendable());
    three.load("w", WEIGHTS, 7);
    three.load("v", 8 * MiB, 9);
    for (int turn = 0; turn < 3; turn++) {
        std::vector<std::thread> tools;
        for (size_t i = 0; i < 3; i++)
            EXPECT_LACKS(suspend(three, i), "failed");
        EXPECT_TRUE(uses(three, 0, 3)) << three.in_use();
        for (size_t i = 0; i < 3; i++)
            tools.emplace_back([&, i] { EXPECT_TRUE(resume(three, i)); });
        for (std::thread &tool : tools)
            tool.join();
        three.expect_all("w", WEIGHTS, 7);
        three.expect_all("v", 8 * MiB, 9);
        EXPECT_TRUE(three.use(WEIGHTS + 8 * MiB)) << three.in_use();
    }
    EXPECT_EQ(three.left(), "");
}

// It uploads the same bytes while all others sleep: they come back to its copy.
TEST_F(Offload, ANewOneBringsItsOwn) {
    Replicas two(2, suspendable());
    two.load("w", WEIGHTS, 7);
    for (size_t i = 0; i < 2; i++)
        EXPECT_LACKS(suspend(two, i), "failed");
    Puppet &third = two.start();
    third.must("malloc w " + std::to_string(WEIGHTS));
    third.must(Replicas::upload("w", WEIGHTS, 7));
    EXPECT_TRUE(uses(two, WEIGHTS, 2)) << two.in_use();
    for (size_t i = 0; i < 2; i++)
        EXPECT_TRUE(resume(two, i));
    two.expect_all("w", WEIGHTS, 7);
    EXPECT_TRUE(two.use(WEIGHTS)) << two.in_use();
}

TEST_F(Offload, WaitsForRoom) {
    SIM_ONLY("it takes a small card");
    Replicas none(0, suspendable());
    How how = none.on_a_small_card();
    Puppet a(none.world, how);
    a.must("malloc w 134217728");
    a.must(Replicas::upload("w", 128 * MiB, 7));
    ASSERT_TRUE(has_merged(none.world, 128 * MiB));
    EXPECT_HAS(none.world.tool({"suspend", pid(a)}).out, " Of that 128 MiB have left the GPU, too");
    Puppet other(none.world, called("other", "puppet"));
    other.must("malloc m 167772160");
    EXPECT_ERR_HAS(none.world.tool({"resume", pid(a)}), 1, "it needs 130 MiB on the GPU");
    other.must("free m");
    EXPECT_EQ(none.world.tool({"resume", "--wait", pid(a)}).status, 0);
    EXPECT_EQ(Replicas::expect(a, "w", 128 * MiB, 7), "same");
}

// What another one brings back meanwhile it needs no more.
TEST_F(Offload, WaitsForItsOwnRoomOnlyWhereOthersBringTheRest) {
    SIM_ONLY("it takes a small card");
    Replicas none(0, suspendable());
    How how = none.on_a_small_card();
    Puppet a(none.world, how), b(none.world, how), other(none.world, called("other", "puppet"));
    for (Puppet *one : {&a, &b}) {
        one->must("malloc w 100663296");
        one->must(Replicas::upload("w", 96 * MiB, 7));
    }
    ASSERT_TRUE(has_merged(none.world, 96 * MiB));
    b.all({"malloc own 67108864", "fill own 0x5a 67108864"});
    for (Puppet *one : {&a, &b})
        EXPECT_EQ(none.world.tool({"suspend", pid(*one)}).status, 0);
    other.all({"malloc m 67108864", "malloc n 33554432"});
    std::atomic<bool> back = false;
    std::thread waits([&] {
        EXPECT_EQ(none.world.tool({"resume", "--wait", pid(b)}).status, 0);
        back = true;
    });
    usleep(300000);
    EXPECT_EQ(none.world.tool({"resume", pid(a)}).status, 0);
    other.must("free n");
    EXPECT_TRUE(eventually([&] { return back.load(); })) << "for its weights, too";
    other.must("free m");
    waits.join();
    EXPECT_EQ(Replicas::expect(b, "w", 96 * MiB, 7), "same");
    EXPECT_EQ(b.must("read own 100 2"), "5a5a");
}

TEST_F(Offload, AKilledKeeperTakesNothingAlong) {
    Replicas two(2, suspendable());
    two.load("w", WEIGHTS, 7);
    for (size_t i = 0; i < 2; i++)
        EXPECT_LACKS(suspend(two, i), "failed");
    stand_by_of(two.world);
    signal_keeper(keeper_of(two.world), SIGKILL);
    for (size_t i = 0; i < 2; i++)
        EXPECT_TRUE(resume(two, i));
    two.expect_all("w", WEIGHTS, 7);
    EXPECT_TRUE(two.use(WEIGHTS)) << two.in_use();
}

// It ends while it brings them: another one does.
TEST_F(Offload, WhoIsKilledHalfWayIsReplaced) {
    Replicas two(2, suspendable());
    two.load("w", WEIGHTS, 7);
    for (int turn = 0; turn < 4; turn++) {
        for (size_t i = 0; i < 2; i++)
            EXPECT_LACKS(suspend(two, i), "failed");
        std::thread tool([&] { two.world.tool({"resume", pid(two[0])}); });
        usleep(20000u * static_cast<unsigned>(turn));
        two.kill(0);
        tool.join();
        EXPECT_TRUE(resume(two, 1));
        EXPECT_EQ(Replicas::expect(two[1], "w", WEIGHTS, 7), "same");
        two.all.erase(two.all.begin());
        two.costs.erase(two.costs.begin());
        two.start();
        two[1].must("malloc w " + std::to_string(WEIGHTS));
        two[1].must(Replicas::upload("w", WEIGHTS, 7));
    }
    EXPECT_TRUE(two.use(WEIGHTS)) << two.in_use();
    EXPECT_EQ(two.left(), "");
}
