// gpushare suspend and resume: command lines, and whom they do not find.
#include "harness.hpp"

TEST(SuspendVerb, WrongCommandLinesAreAnswered) {
    Shared shared;
    for (const char *verb : {"suspend", "resume"}) {
        const std::string begin = std::string("gpushare: ") + verb + ": ";
        const Result none = shared.tool({verb});
        EXPECT_ERR(none, 2,
                   begin + "name processes, or --all-but PROGRAM; see: gpushare " + verb +
                       " --help\n");
        EXPECT_EQ(shared.tool({verb, "--all-but=a", "b"}).status, 2);
        for (const char *time : {"0", "soon", "-1s"}) {
            const Result result = shared.tool({verb, std::string("--timeout=") + time, "1"});
            EXPECT_ERR(result, 2,
                       begin + "--timeout '" + time +
                           "' is no time to wait; allowed: 500ms, 30s, 2min ...\n");
        }
    }
}

TEST(SuspendVerb, SaysWhomItDoesNotFind) {
    Shared shared;
    const Result none = shared.tool({"suspend", "4194305"});
    EXPECT_ERR(none, 1, "gpushare: suspend: no process has the pid '4194305'; see: gpushare ls\n");
    const Result unnamed = shared.tool({"resume", "camera"});
    EXPECT_EQ(unnamed.status, 1);
    EXPECT_EQ(
        unnamed.err,
        "gpushare: resume: no program named 'camera' runs with suspend = on; see: gpushare ls\n");
    const Peer camera(shared, "camera"); // takes no orders
    EXPECT_EQ(shared.tool({"suspend", "camera"}).status, 1);
    const Result bare = shared.tool({"suspend", std::to_string(getpid())});
    EXPECT_ERR_HAS(bare, 1, "does not run with suspend = on, so it cannot let go");
    const Result all = shared.tool({"suspend", "--all-but", "camera"});
    EXPECT_EQ(all.status, 0) << all.err;
}
