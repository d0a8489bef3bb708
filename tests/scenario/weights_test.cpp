// weights_test.cpp - replicas change their weights one after the other, while the others serve.
#include "scenario/merging.hpp"

namespace {

constexpr uint64_t BODY = 16 * MiB, HEAD = 8 * MiB; // both weights have the body; the heads differ
constexpr uint64_t PIECE = 8 * MiB;                 // of one copy
constexpr uint64_t OLD = 3, NEW = 4, BOTH = 5;      // seeds

struct Fleet {
    explicit Fleet(const std::string &more) : replicas(0, merging(more)) {
    }

    // Loads as a server does, in pieces; nobody sees other bytes than his own meanwhile.
    void start(uint64_t weights) {
        Puppet &one = replicas.start();
        one.all({"malloc body " + text(BODY), "malloc head " + text(HEAD)});
        for (uint64_t at = 0; at < BODY; at += PIECE)
            load(one, "body", at, BOTH);
        for (uint64_t at = 0; at < HEAD; at += PIECE)
            load(one, "head", at, weights);
        serves.push_back(weights);
        all_have_their_own();
    }
    void load(Puppet &one, const std::string &name, uint64_t at, uint64_t seed) {
        one.must("upload " + name + " " + text(at) + " " + text(PIECE) + " " + text(seed) +
                 " sync");
        all_have_their_own();
    }
    // Only who has ended before another one begins has given back what it had.
    void end(size_t i, bool killed) {
        if (killed) {
            replicas.kill(i);
        } else {
            EXPECT_EQ(replicas[i].quit("return"), 0);
            replicas.before -= replicas.costs[i];
            replicas.costs[i] = 0;
        }
        serves[i] = 0;
        all_have_their_own();
    }
    void all_have_their_own() {
        for (size_t i = 0; i < serves.size(); i++) {
            if (!serves[i])
                continue;
            for (uint64_t at = 0; at < BODY; at += PIECE)
                EXPECT_EQ(has(i, "body", at, BOTH), "same") << i;
            for (uint64_t at = 0; at < HEAD; at += PIECE)
                EXPECT_EQ(has(i, "head", at, serves[i]), "same") << i;
        }
    }
    std::string has(size_t i, const std::string &name, uint64_t at, uint64_t seed) {
        return replicas[i].must("expect " + name + " " + text(at) + " " + text(PIECE) + " " +
                                text(seed));
    }
    void uses(uint64_t bytes, const char *when) {
        EXPECT_TRUE(replicas.use(bytes)) << when << ": " << replicas.in_use() / MiB << " MiB";
        all_have_their_own();
    }
    // Of merged blocks, as `gpushare ls` tells it.
    uint64_t told(const char *what) {
        return uint64_t(Json::parse(replicas.world.tool({"ls", "--json"}).out)[0][what].number);
    }

    Replicas replicas;
    std::vector<uint64_t> serves; // 0: ended
};

struct MergeWeights : testing::TestWithParam<const char *> {};

INSTANTIATE_TEST_SUITE_P(Rules, MergeWeights, testing::Values("quiet = 0\n", QUIET));

TEST_P(MergeWeights, ChangeWhileReplicasRun) {
    Fleet fleet(GetParam());
    fleet.start(OLD);
    fleet.start(OLD);
    fleet.uses(BODY + HEAD, "two have the old weights");
    fleet.start(NEW);
    fleet.uses(BODY + 2 * HEAD, "a third one has the new weights");
    fleet.end(0, false);
    fleet.uses(BODY + 2 * HEAD, "one is left with the old ones");
    fleet.start(NEW);
    fleet.uses(BODY + 2 * HEAD, "the first one has changed");
    fleet.end(1, true);
    fleet.uses(BODY + HEAD, "nobody has the old ones any more");
    fleet.start(NEW);
    fleet.uses(BODY + HEAD, "all have the new ones");
    EXPECT_EQ(fleet.told("saved"), 2 * (BODY + HEAD));
    EXPECT_EQ(fleet.replicas.world.findings().size(), 0u) << fleet.replicas.world.logs();
    for (size_t i = 2; i < fleet.serves.size(); i++)
        fleet.end(i, false);
    EXPECT_TRUE(fleet.replicas.use(0)) << fleet.replicas.in_use();
    EXPECT_EQ(fleet.replicas.left(), "");
}

// What is kept for who starts again is kept of the old weights, too, until somebody says otherwise.
TEST(MergeWeights, ThatAreKeptStayUntilTheyAreDropped) {
    Fleet fleet("quiet = 0\nkeep = 1h\n");
    fleet.start(OLD);
    fleet.start(NEW);
    fleet.uses(BODY + 2 * HEAD, "one of each");
    fleet.end(0, false);
    fleet.start(NEW);
    fleet.uses(BODY + 2 * HEAD, "the old ones are kept");
    EXPECT_EQ(fleet.told("unused"), HEAD);
    EXPECT_EQ(fleet.replicas.world.tool({"drop", "--merged"}).status, 0);
    fleet.uses(BODY + HEAD, "they are dropped, and nobody loses what is in use");
    EXPECT_EQ(fleet.replicas.world.findings().size(), 0u) << fleet.replicas.world.logs();
}

} // namespace
