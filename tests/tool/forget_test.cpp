// gpushare forget, and who mentions what there is to forget.
#include "harness.hpp"

extern "C" {
#include "directory/exclusions.h"
}

namespace {

void exclusion(const Shared &shared, const char *program, const char *caller, uint64_t size,
               uint64_t index, uint64_t times = GPS_EXCLUDED) {
    gps_exclusion row{};
    strcpy(row.name, "weights");
    row.times = times;
    strncpy(row.program, program, sizeof(row.program) - 1);
    strncpy(row.caller, caller, sizeof(row.caller) - 1);
    row.size = size;
    row.index = index;
    ASSERT_EQ(0, gps_exclusions_add(&shared.store, &row));
}

std::string file(const Shared &shared) {
    return std::string(shared.store.path) + "/" GPS_EXCLUSIONS;
}

TEST(Forget, SaysWhatItForgets) {
    Shared shared;
    exclusion(shared, "server", "libtorch_cuda.so", 64 << 20, 3);
    exclusion(shared, "server", "libtorch_cuda.so", 64 << 20, 3); // of its replica
    exclusion(shared, "other", "", 2 << 20, 12);
    exclusion(shared, "other", "", 2 << 20, 13, GPS_SUSPECTED);
    const std::string rows = "PROGRAM    SIZE  CALLER            NAME        NOTED\n"
                             "server   64 MiB  libtorch_cuda.so  weights:3   excluded\n"
                             "other     2 MiB  -                 weights:12  excluded\n"
                             "other     2 MiB  -                 weights:13  suspected once\n";
    for (const char *dry : {"--dry-run", "-n"})
        EXPECT_EQ(shared.tool({"forget", dry}).out, "Would forget 3 allocations:\n" + rows);
    EXPECT_EQ(access(file(shared).c_str(), F_OK), 0);
    EXPECT_OUT(shared.tool({"forget"}), 0, "Forgot 3 allocations:\n" + rows);
    EXPECT_NE(access(file(shared).c_str(), F_OK), 0);
    EXPECT_EQ(shared.tool({"forget"}).out, "Nothing to forget.\n");
}

TEST(Forget, WhatIsNamed) {
    Shared shared;
    exclusion(shared, "server", "server", 64 << 20, 3);
    exclusion(shared, "server", "server", 64 << 20, 30);
    exclusion(shared, "server", "server", 64 << 20, 4, GPS_SUSPECTED);
    EXPECT_HAS(shared.tool({"forget", "-n", "weights:3"}).out, "Would forget 1 ");
    EXPECT_HAS(shared.tool({"forget", "weights:3", "weights:4"}).out, "Forgot 2 allocations:\n");
    EXPECT_HAS(shared.tool({"forget", "-n"}).out, "weights:30");
    const Result none = shared.tool({"forget", "weights:3"});
    EXPECT_OUT(none, 1, "");
    EXPECT_EQ(
        none.err,
        "gpushare: forget: nothing that is noted is called 'weights:3'; see: gpushare forget -n\n");
    exclusion(shared, "server", "server", 64 << 20, 3, GPS_SUSPECTED); // it is noted anew
    EXPECT_HAS(shared.tool({"forget", "wei*"}).out, "Forgot 2 allocations:\n");
    EXPECT_EQ(shared.tool({"forget", "-n"}).out, "Nothing to forget.\n");
}

TEST(Forget, WithoutADirectoryThereIsNothing) {
    Temporary root("/dev/shm");
    const Result result = tool({"forget"}, {{"GPUSHARE_DIR", root.path + "/none"}});
    EXPECT_OUT(result, 0, "Nothing to forget.\n");
    EXPECT_NE(access((root.path + "/none").c_str(), F_OK), 0) << "forget must not make it";
}

TEST(Forget, AFileThatIsNotOursStays) {
    Shared shared;
    ASSERT_EQ(symlink("/dev/null", file(shared).c_str()), 0);
    const Result result = shared.tool({"forget"});
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.err.find("gpushare: forget: cannot forget " + file(shared) + ": "), 0u)
        << result.err;
    EXPECT_EQ(access(file(shared).c_str(), F_OK), 0);
}

TEST(Forget, ShowAndDoctorMentionIt) {
    Shared shared;
    Peer server(shared, "server"), other(shared, "other");
    EXPECT_LACKS(shared.tool({"doctor"}).out, "not merged");
    exclusion(shared, "server", "server", 64 << 20, 3);
    const std::string text = shared.tool({"show", pid_text(server.owner)}).out;
    EXPECT_HAS(text, "  excluded   1 of its program's allocations are never merged");
    EXPECT_LACKS(shared.tool({"show", pid_text(other.owner)}).out, "excluded");
    auto json = Json::parse(shared.tool({"show", "--json", pid_text(server.owner)}).out);
    EXPECT_EQ(json[0]["excluded"].text, "1");
    const std::string doctor = shared.tool({"doctor"}).out;
    EXPECT_HAS(doctor,
               "warn  exclusions   1 allocation is not merged: a process that merged it ended");
    EXPECT_HAS(doctor, "gpushare forget -n");
    EXPECT_LACKS(text + doctor, "suspected");
    exclusion(shared, "server", "server", 64 << 20, 4, GPS_SUSPECTED);
    EXPECT_HAS(shared.tool({"show", pid_text(server.owner)}).out,
               "  suspected  1 of its program's allocations");
    json = Json::parse(shared.tool({"show", "--json", pid_text(server.owner)}).out);
    EXPECT_EQ(json[0]["excluded"].text + json[0]["suspected"].text, "11");
    EXPECT_HAS(shared.tool({"doctor"}).out,
               "warn  exclusions   1 allocation is suspected once: not merged after");
}

} // namespace
