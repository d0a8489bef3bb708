// merge_room_test.cpp - memory that cudaMalloc has given by a merge rule is there, as bare; and
// what nobody uses is given back before anybody hears that there is none.
#include "scenario/merging.hpp"

namespace {

std::string load(const std::string &name, uint64_t size, int seed) {
    return Replicas::upload(name, size, seed);
}

// A card on which nobody else has anything.
struct Card {
    explicit Card(bool with, const std::string &memory, const std::string &config = merging())
        : replicas(0, config) {
        how = replicas.on_a_small_card(memory);
        how.shim = with;
    }
    std::unique_ptr<Puppet> program() {
        auto one = std::make_unique<Puppet>(replicas.world, how);
        one->all(
            {"info", "malloc small 4096", kernels(), "launch - test_read small 1 small", "sync"});
        return one;
    }
    static uint64_t left(Puppet &one) {
        return one("info").number(0);
    }
    Replicas replicas;
    How how;
};

// What three programs see that want more than there is: codes, and how much less is free.
std::string three_that_want_too_much(bool with) {
    Card card(with, "280MiB");
    std::vector<std::unique_ptr<Puppet>> three;
    std::string seen;
    for (int i = 0; i < 3; i++)
        three.push_back(card.program());
    const uint64_t all = Card::left(*three[0]);
    auto note = [&](const std::string &line) {
        for (auto &one : three)
            seen += text(static_cast<uint64_t>(one->code(line))) + " ";
        seen += line + ": " + text((all - Card::left(*three[0])) / MiB) + "\n";
    };
    note("malloc p 125829120");
    note("malloc q 16777216");
    note("launch - test_read small 1 small");
    note("fill q 0x31 16777216");
    note("sync");
    note("read q 16777212 4");
    note("free p");
    note("free q");
    return seen;
}

TEST(Room, IsTakenByCudaMallocAsBare) {
    SIM_ONLY("it fills the card");
    EXPECT_EQ(three_that_want_too_much(true), three_that_want_too_much(false));
}

// Where copies begin and end is not known before: what was given stays given.
TEST(Room, IsThereForCopiesThatCutTheirBlocks) {
    SIM_ONLY("it fills the card");
    Card card(true, "256MiB");
    auto a = card.program(), hog = card.program();
    a->must("malloc p 134217728");
    hog->must("malloc rest " + text(Card::left(*hog) / (2 * MiB) * (2 * MiB)));
    EXPECT_EQ(a->code("upload p 0 6291456 5 sync"), 0) << "there is no room to cut a block";
    a->all({"upload p 6291456 127926272 5 sync", "launch - test_read p 1 small", "sync"});
    EXPECT_EQ(Replicas::expect(*a, "p", 128 * MiB, 5), "same");
    hog->must("free rest");
}

TEST(Room, OfWhatCannotFitIsNotTakenForAMoment) {
    SIM_ONLY("it fills the card");
    Card card(true, "256MiB");
    auto a = card.program(), b = card.program();
    const uint64_t all = Card::left(*b);
    int taken = 0;
    for (int i = 0; i < 300; i++) {
        a->send("malloc p " + text(2 * all));
        taken += Card::left(*b) < all;
        EXPECT_EQ(a->receive().code, 2);
    }
    EXPECT_EQ(taken, 0);
}

// A copy that is left out lets go of the memory that was there for it.
TEST(Room, OfACopyThatIsLeftOutIsFreeAgain) {
    SIM_ONLY("it looks at the memory that is free");
    Card card(true, "512MiB", "[gpushare]\nfree = driver\n" + merging());
    auto a = card.program(), b = card.program();
    const uint64_t all = Card::left(*b);
    a->all({"malloc p 134217728", load("p", 128 * MiB, 1)});
    EXPECT_TRUE(eventually([&] { return card.replicas.world.entries("regions") == 4; }));
    b->must("malloc p 134217728");
    EXPECT_EQ(Card::left(*b), all - 256 * MiB) << "as bare";
    b->must(load("p", 128 * MiB, 1));
    EXPECT_TRUE(eventually([&] { return Card::left(*b) == all - 128 * MiB; })) << Card::left(*b);
}

TEST(Room, IsNotLimitedWhereTheRuleSaysSo) {
    SIM_ONLY("it fills the card");
    Card card(true, "112MiB", merging("quiet = 0\novercommit = on\n"));
    std::vector<std::unique_ptr<Puppet>> three;
    for (int i = 0; i < 3; i++)
        three.push_back(card.program());
    const uint64_t all = Card::left(*three[0]);
    for (auto &one : three)
        EXPECT_EQ(one->code("malloc p " + text(64 * MiB)), 0);
    EXPECT_EQ(three[0]->code("malloc q " + text(64 * MiB)), 0);
    EXPECT_EQ(Card::left(*three[0]), all);
    EXPECT_EQ(three[0]->code("launch - test_read small 1 small"), 2) << "it may touch anything";
    three[0]->all({"free q", "free p", "malloc p " + text(64 * MiB)});
    for (auto &one : three)
        EXPECT_EQ(one->code(load("p", 64 * MiB, 1)), 0);
    for (auto &one : three) {
        EXPECT_EQ(Replicas::expect(*one, "p", 64 * MiB, 1), "same");
        EXPECT_EQ(one->code("launch - test_read small 1 small"), 0);
    }
}

// The keeper holds blocks that the program has freed for a moment longer.
TEST(Room, ThatNobodyUsesIsGivenBackAtOnce) {
    SIM_ONLY("it fills the card");
    Card card(true, "160MiB");
    auto a = card.program();
    for (int round = 1; round <= 4; round++) {
        ASSERT_EQ(a->code("malloc p 100663296"), 0) << round;
        a->must(load("p", 96 * MiB, round));
        EXPECT_TRUE(eventually([&] { return card.replicas.world.entries("regions") == 3; }));
        a->must("free p");
    }
}

TEST(Room, ThatIsKeptForEverIsNot) {
    SIM_ONLY("it fills the card");
    Card card(true, "160MiB", merging("quiet = 0\nkeep = forever\n"));
    auto a = card.program();
    a->all({"malloc p 100663296", load("p", 96 * MiB, 1)});
    EXPECT_TRUE(eventually([&] { return card.replicas.world.entries("regions") == 3; }));
    a->must("free p");
    EXPECT_EQ(a->code("cumalloc p 100663296"), 2);
    EXPECT_EQ(card.replicas.world.entries("regions"), 3u);
}

// Three processes of four threads that never have more than the card has.
std::string churning(bool with) {
    Card card(with, "192MiB");
    Environment environment = card.replicas.world.environment;
    if (with)
        environment["LD_PRELOAD"] = library();
    const std::string program = card.replicas.world.path("replica");
    std::filesystem::copy_file(build_directory() + "/tests/apps/churn", program);
    std::string script;
    for (const char *seed : {"1", "2", "3"})
        script += program + " 4 20 12 " + seed + " & ";
    return command({"sh", "-c", script + "wait"}, environment).out;
}

TEST(Room, IsThereForAllWhoseSumFits) {
    SIM_ONLY("it fills the card");
    const std::string nothing = "lacked 0, failed 0, differed 0\n";
    EXPECT_EQ(churning(false), nothing + nothing + nothing);
    EXPECT_EQ(churning(true), nothing + nothing + nothing);
}

} // namespace
