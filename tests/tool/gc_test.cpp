// gpushare gc: what it removes, what it keeps, what it says.
#include "harness.hpp"

extern "C" {
#include "directory/file.h"
}

TEST(Gc, SaysThatThereIsNothingToRemove) {
    Shared shared;
    for (const auto &line : {std::vector<std::string>{"gc"}, {"gc", "--dry-run"}, {"gc", "-n"}}) {
        Result result = shared.tool(line);
        EXPECT_OUT(result, 0, "Nothing to remove.\n");
        EXPECT_EQ(result.err, "");
    }
}

TEST(Gc, ADirectoryThatIsNotThereIsNothingToRemove) {
    EXPECT_EQ(tool({"gc"}, {{"GPUSHARE_DIR", "/dev/shm/gpushare-test-none"}}).out,
              "Nothing to remove.\n");
}

TEST(Gc, RemovesWhatTheDeadLeftByKind) {
    Shared shared;
    Peer dead(shared, "dead"), live(shared, "live");
    shared.region(dead.owner, "a", 1);
    shared.region(dead.owner, "b", 2);
    shared.region(live.owner, "c", 3);
    ASSERT_EQ(gps_name_claim(&shared.store, "a", &dead.owner, nullptr), 0);
    dead.kill();
    Result result = shared.tool({"gc", "--dry-run"});
    EXPECT_OUT_HAS(result, 0, "\nWould remove 2 regions, 1 name and 1 file of a dead process.\n",
                   "  a, 64 MiB, of dead " + pid_text(dead.owner) + "\n", "\nnames/a\n");
    EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 5);
    EXPECT_HAS(shared.tool({"ls", "--all"}).out, "dead") << "a dry run removes nothing";
    EXPECT_EQ(shared.tool({"gc"}).out, "Removed 2 regions, 1 name and 1 file of a dead process.\n");
    EXPECT_EQ(shared.tool({"gc"}).out, "Nothing to remove.\n");
    EXPECT_HAS(shared.tool({"ls"}).out, "live");
}

TEST(Gc, KeepsWhatIsHeldAndSaysSo) {
    Shared shared;
    Peer dead(shared, "dead");
    auto record = shared.region(dead.owner, "a");
    Peer consumer(shared, "consumer", {{record.id}});
    dead.kill();
    Result result = shared.tool({"gc"});
    EXPECT_OUT_HAS(result, 0, "Kept 1 region whose owner is gone: live processes still hold it.\n");
    EXPECT_HAS(shared.tool({"ls"}).out, "orphaned");
}

TEST(Gc, RefusesADirectoryThatCannotBeUsed) {
    Result result = tool({"gc"}, {{"GPUSHARE_DIR", "relative"}});
    EXPECT_ERR(result, 1, "gpushare: gc: GPUSHARE_DIR='relative' must be an absolute path\n");
}

TEST(Gc, SkipsAndNamesWhatIsNoFileOfOursAndGoesOn) {
    Shared shared;
    Peer dead(shared, "dead"), gone(shared, "gone");
    shared.region(dead.owner, "a", 1);
    const std::string store = shared.store.path;
    char temp[GPS_TEMP_NAME], owner[GPS_PROC_NAME];
    gps_temp_format(&gone.owner, temp);
    gone.kill();
    gps_owner_format(&gone.owner, owner);
    ASSERT_EQ(unlink((store + "/procs/" + owner).c_str()), 0);
    const std::vector<std::string> directories = {"/procs/" + std::string(owner), "/names/frames",
                                                  "/regions/" + std::string(32, 'a'),
                                                  "/regions/" + std::string(temp), "/keeper.lock"};
    for (const std::string &directory : directories)
        ASSERT_EQ(mkdir((store + directory).c_str(), 0700), 0) << directory;
    ASSERT_EQ(symlink("nowhere", (store + "/procs/" + temp).c_str()), 0);
    dead.kill();
    const Result result = shared.tool({"gc"});
    EXPECT_OUT(result, 0, "Removed 1 region and 1 file of a dead process.\n");
    for (const std::string &directory : directories)
        EXPECT_HAS(result.err, "skipped " + store + directory + ", ");
    EXPECT_HAS(result.err, "/procs/" + std::string(temp));
}
