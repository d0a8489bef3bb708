// gpushare learn, where there is nothing to learn.
#include "harness.hpp"

namespace {

Result learn(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "learn");
    return tool(arguments);
}

std::string simulator() {
    return tool_path().substr(0, tool_path().rfind('/')) + "/sim";
}

} // namespace

TEST(Learn, WrongUseIs125) {
    const std::pair<const char *, const char *> cases[] = {
        {"--for=0", "--for '0' is no time to learn in; allowed: 30s, 2min, 1h"},
        {"--for=soon", "--for 'soon' is no time to learn in; allowed: 30s, 2min, 1h"},
        {"--replicas=0", "--replicas '0' is not 1 to 16"},
        {"--replicas=99", "--replicas '99' is not 1 to 16"},
        {"--replicas=2x", "--replicas '2x' is not 1 to 16"},
        {"--content=all", "--content 'all' is unknown; allowed: uploaded, any"},
        {"--output=/no/such/file", "cannot write '/no/such/file': No such file or directory"},
    };
    for (const auto &each : cases) {
        const Result result = learn({each.first, "echo", "ran"});
        EXPECT_OUT(result, 125, "");
        EXPECT_EQ(result.err, std::string("gpushare: learn: ") + each.second + "\n");
    }
}

TEST(Learn, ACommandWithoutCudaTeachesNothing) {
    Result result = learn({"sh", "-c", "echo ran"});
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.out, "ran\nran\n") << "two are run";
    EXPECT_EQ(learn({"-r1", "sh", "-c", "echo ran"}).out, "ran\n");
    result = tool({"learn", "true"}, {{"LD_LIBRARY_PATH", "/nowhere"}});
    EXPECT_TRUE(dlopen("libcuda.so.1", RTLD_LAZY) ||
                contains(result.err, "gpushare can see; there is no libcuda.so.1, "))
        << result.err;
    result = tool({"learn", "true"}, {{"LD_LIBRARY_PATH", simulator()}});
    EXPECT_EQ(result.err, "gpushare: learn: no process used CUDA, as far as gpushare can see; who "
                          "dropped the library is named by: gpushare explain -- CMD\n");
    const Temporary place;
    const std::string old = place.file("old", "[region w]\n"), none = place.path + "/none";
    EXPECT_EQ(learn({"-o", old, "true"}).status, 1);
    EXPECT_EQ(read_file(old), "[region w]\n");
    EXPECT_EQ(learn({"-o", none, "true"}).status, 1);
    EXPECT_NE(access(none.c_str(), F_OK), 0) << "there was nothing to write";
    EXPECT_EQ(learn({"sh", "-c", "exit 3"}).status, 3);
    EXPECT_EQ(learn({"-r2", "sh", "-c", "kill -9 $$"}).status, 128 + 9);
}

TEST(Learn, ACommandThatCannotRunIsSaid) {
    const Result result = learn({"no-such-command-here"});
    EXPECT_ERR(result, 127, "gpushare: learn: command 'no-such-command-here' not found\n");
    EXPECT_EQ(learn({"/etc"}).status, 126);
}

TEST(Learn, OnATerminalALineSaysHowFarItIsAndGoesAtTheEnd) {
    const Temporary shared{"/dev/shm"};
    const std::string build = std::filesystem::absolute(tool_path()).parent_path(),
                      rules = shared.path + "/rules";
    const std::string shown = on_terminal(
        200, {tool_path(), "learn", "-r1", "-o", rules, "--", build + "/tests/apps/server", "1"},
        {{"GPUSHARE_DIR", shared.path + "/pub"},
         {"GPUSHARE_CONFIG", "/dev/null"},
         {"GPUSHARE_SIM_ROOT", "@" + shared.path},
         {"LD_LIBRARY_PATH", simulator()}});
    const size_t first = shown.find("\033[Klearning for 1 s: 6 allocations, "),
                 table = shown.find("\033[KPROGRAM ");
    EXPECT_NE(first, std::string::npos) << shown;
    EXPECT_NE(table, std::string::npos) << "the line is gone: " << shown;
    EXPECT_LT(first, table);
}

TEST(Learn, WhatCannotBeCheckedIsRefused) {
    const Temporary place;
    const std::string rules = place.file("rules", "[region a]\nrole = export\n");
    const std::string bad = place.file("bad", "[region a]\nrole = merge\nquiet = soon\n");
    Result result = learn({"--check", rules, "echo", "ran"});
    EXPECT_OUT(result, 125, "");
    EXPECT_EQ(result.err, "gpushare: learn: " + rules +
                              " has no rule with role = merge: there is nothing to check\n");
    result = learn({"--check", bad, "echo", "ran"});
    EXPECT_ERR_HAS(result, 125, bad + ":3: quiet = soon: ");
    result = learn({"--check", rules, "--content=any", "echo", "ran"});
    EXPECT_EQ(result.err, "gpushare: learn: --check writes no rules; allowed with it: --for, "
                          "--replicas\n");
    EXPECT_EQ(learn({"--check", "/nowhere", "echo", "ran"}).status, 125);
    const std::string merge = place.file("merge", "[region a]\nrole = merge\n");
    result = learn({"--check", merge, "sh", "-c", "exit 3"});
    EXPECT_OUT(result, 4, "");
}
