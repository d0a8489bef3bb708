// cards_test.cpp - memory of one card while another one is current: that of rules answers as plain
// memory does.
#include "scenario/merging.hpp"

namespace {

// What each way to use memory of card 0 answers while card 1 is current.
std::string answers(const std::string &config, const std::string &name, bool peer) {
    World world(config, {{"GPUSHARE_SIM_DEVICES", "2"}});
    Puppet a(world, called(name));
    a.all({"malloc before 4194304", Replicas::upload("before", 4 * MiB, 3)});
    usleep(config.find("role = merge") == std::string::npos ? 0 : 1500000); // it is merged
    a.all({"device 1", "malloc there 4194304", "device 0", "malloc after 4194304", "device 1"});
    if (peer)
        a.must("peer 0");
    std::string seen;
    for (const std::string memory : {"after", "before"})
        for (const std::string &line :
             {"write " + memory + " 100 0102", "read " + memory + " 100 2",
              "copy " + memory + " 0 there 0 4096", "copy there 0 " + memory + " 0 4096",
              "copy there 0 " + memory + " 0 4096 default", Replicas::upload(memory, 4 * MiB, 4),
              "upload " + memory + " 0 4194304 4 pinned-sync"})
            seen += line + ": " + std::to_string(a.code(line)) + "\n";
    a.must("sync");
    seen += Replicas::expect(a, "after", 4 * MiB, 4) + Replicas::expect(a, "before", 4 * MiB, 4);
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
    return seen;
}

struct Cards : testing::TestWithParam<bool> {};

TEST_P(Cards, MemoryOfEachRuleAnswersAsPlainMemory) {
    TWO_CARDS();
    const std::string bare = answers("", "plain", GetParam());
    EXPECT_LACKS(bare, ": 1");
    EXPECT_EQ(answers(merging(), "replica", GetParam()), bare);
    EXPECT_EQ(answers(merging("quiet = 300ms\n"), "replica", GetParam()), bare);
    for (const std::string backing : {"backing = vmm\n", ""})
        EXPECT_EQ(
            answers(rule("r{n}", "plain", "export", "index = *\n" + backing), "plain", GetParam()),
            bare)
            << backing;
}

// All questions, copies and fills; with cards that reach each other, and without. On cards it is a
// part of tests/gpu/check.sh.
TEST_P(Cards, EachKindOfRuleAnswersAsPlainMemory) {
    SIM_ONLY("tests/gpu/parts/kinds.sh");
    const std::string peers = GetParam() ? "1" : "0";
    const Result result = command({"env", "GPUSHARE_SIM_PEERS=" + peers, "python3",
                                   "tests/gpu/kinds.py", build_directory(), "sim"});
    EXPECT_EQ(result.status, 0) << result.out << result.err;
}

std::string peer_access(const testing::TestParamInfo<bool> &one) {
    return one.param ? "enabled" : "off";
}

INSTANTIATE_TEST_SUITE_P(WithPeerAccess, Cards, testing::Bool(), peer_access);

} // namespace
