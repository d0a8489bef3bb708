// configured_test.cpp - the findings that take a configuration or a directory, not a misuse of
// CUDA.
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "scenario/audit.hpp"

namespace {

namespace fs = std::filesystem;

const Words harmless = misuse("leak-export", true);

std::string share_conf() { // beside the program's source
    return fs::path(__FILE__).parent_path().parent_path() / "apps/misuse/share.conf";
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
    World world;
    world.config(read_file(share_conf()));
    EXPECT_EQ(ids(world, misuse(GetParam())), std::vector<std::string>{GetParam()});
}

TEST_P(Rules, ThatFitAreSilent) {
    World world;
    world.config(read_file(share_conf()));
    EXPECT_EQ(ids(world, misuse(GetParam(), true)), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(, Rules,
                         testing::Values("share-mismatch", "share-timeout", "share-fallback",
                                         "write-read-only"),
                         [](const auto &one) {
                             std::string name = one.param;
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

TEST(Configured, AConfigurationWithAnErrorIsReported) {
    World world;
    world.environment["GPUSHARE_ON_FREE"] = "sometimes";
    world.environment["GPUSHARE_LOG"] = ""; // where it says so is part of what is not known
    const Audit audit = run_audited(world, harmless);
    EXPECT_EQ(audit.result.status, 0);
    EXPECT_TRUE(contains(audit.result.err, "config-error")) << audit.result.err;
    EXPECT_TRUE(contains(audit.result.err, "GPUSHARE_ON_FREE")) << audit.result.err;
}

TEST(Configured, ADirectoryThatCannotBeUsedIsReported) {
    World world;
    world.environment["GPUSHARE_DIR"] = world.path("config") + "/no/directory";
    EXPECT_EQ(ids(world, harmless, "audit"), std::vector<std::string>{"store-unavailable"});
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
