// configured_test.cpp - the findings that take a configuration or a directory, not a misuse of
// CUDA.
#include "scenario/audit.hpp"

namespace {

namespace fs = std::filesystem;

const Words harmless = misuse("leak-export", true);

std::string share_conf() { // beside the program's source
    return fs::path(__FILE__).parent_path().parent_path() / "apps/misuse" /
           (hip().empty() ? "share.conf" : "share-hip.conf");
}

std::vector<std::string> ids(World &world, const Words &words, const std::string &mode = "share") {
    const Result alone = run_alone(world, words);
    EXPECT_EQ(alone.status, 0) << alone.out << alone.err;
    const Audit audit = run_audited(world, words, mode);
    EXPECT_EQ(audit.result.out, alone.out);
    EXPECT_EQ(audit.result.status, alone.status);
    for (const Event &event : audit.events)
        EXPECT_FALSE(event.detail.empty()) << event.id << " without its reason";
    return audit.ids();
}

class Rules : public testing::TestWithParam<const char *> {};

TEST_P(Rules, ThatCannotBeFollowedAreReported) {
    World world(read_file(share_conf()));
    EXPECT_EQ(ids(world, misuse(GetParam())), std::vector<std::string>{GetParam()});
}

TEST_P(Rules, ThatFitAreSilent) {
    World world(read_file(share_conf()));
    EXPECT_EQ(ids(world, misuse(GetParam(), true)), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(, Rules,
                         testing::Values("share-mismatch", "share-timeout", "share-fallback",
                                         "write-read-only", "frame-late"),
                         [](const auto &one) { return identifier(one.param); });

// Without the key the driver gives no handle.
class Tokens : public testing::TestWithParam<const char *> {
  public:
    World world{"[gpushare]\nvmm_ipc = on\n"};
    Audit run(bool right) {
        EXPECT_EQ(run_alone(world, misuse(GetParam(), right)).status, 77);
        const Audit audit = run_audited(world, misuse(GetParam(), right));
        EXPECT_EQ(audit.result.status, 0) << audit.result.out << audit.result.err;
        return audit;
    }
};

TEST_P(Tokens, ThatAreMisusedAreReported) {
    const Audit audit = run(false);
    ASSERT_EQ(audit.ids(), std::vector<std::string>{GetParam()}) << audit.log;
    const Event &event = audit.events[0];
    const bool imports = std::string(GetParam()) == "import-partial";
    EXPECT_EQ(event.pid == audit.pid, !imports);
    EXPECT_EQ(event.level, "warning");
    EXPECT_EQ(event.api, imports ? "cuMemcpyDtoH" : "cuMemMap");
    EXPECT_EQ(event.json["others"].size(), 1u) << "the other process";
    EXPECT_HAS(event.detail, imports ? "0x200000 bytes behind" : "was unmapped");
    const std::vector<std::string> priors = event.priors();
    for (const char *prior : {imports ? "opened" : "exported", imports ? "opened" : "unmapped"})
        EXPECT_NE(std::find(priors.begin(), priors.end(), prior), priors.end()) << prior;
}

TEST_P(Tokens, ThatAreUsedRightlyAreSilent) {
    const Audit audit = run(true);
    EXPECT_EQ(audit.ids(), std::vector<std::string>{}) << audit.log;
}

INSTANTIATE_TEST_SUITE_P(, Tokens, testing::Values("import-partial", "vmm-remapped-shared"),
                         [](const auto &one) { return identifier(one.param); });

TEST(Configured, AConfigurationWithAnErrorIsReported) {
    World world("", {{"GPUSHARE_ON_FREE", "sometimes"}});
    world.environment["GPUSHARE_LOG"] = ""; // where it says so is part of what is not known
    const Audit audit = run_audited(world, harmless);
    EXPECT_EQ(audit.result.status, 0);
    EXPECT_HAS(audit.result.err, "config-error", "GPUSHARE_ON_FREE");
}

TEST(Configured, ADirectoryThatCannotBeUsedIsReported) {
    World world;
    world.environment["GPUSHARE_DIR"] = world.path("config") + "/no/directory";
    EXPECT_EQ(ids(world, harmless, "audit"), std::vector<std::string>{"store-unavailable"});
}

TEST(Configured, TheDirectoryThatIsOpenToOthersIsNamedAsTheToolNamesIt) {
    World world;
    const std::string root = world.environment["GPUSHARE_DIR"], inner = root + "/default";
    ASSERT_EQ(mkdir(root.c_str(), 0700) | mkdir(inner.c_str(), 0755), 0);
    const std::string trouble =
        inner + " is open to others (mode 0755); close it: chmod 700 " + inner;
    EXPECT_HAS(run_audited(world, harmless).log, trouble);
    EXPECT_HAS(world.tool({"ls"}).err, trouble);
}

TEST(Configured, ARecordThatIsDamagedIsReported) {
    World world;
    const std::string id(32, '1');
    const std::string root = world.environment["GPUSHARE_DIR"] + "/default/";
    world.config(read_file(share_conf()));
    ASSERT_EQ(ids(world, misuse("share-timeout", true)).size(), 0u); // makes the directory
    write_file(root + "regions/" + id, "rubbish");
    ASSERT_EQ(symlink(("../regions/" + id).c_str(), (root + "names/frames").c_str()), 0);
    EXPECT_EQ(ids(world, misuse("share-timeout")),
              (std::vector<std::string>{"record-invalid", "share-timeout"}));
}

} // namespace
