// gpushare merge: who cannot be told, and what is left of an order.
#include "harness.hpp"
#include "patience.hpp"

extern "C" {
#include "directory/orders.h"
}

TEST(MergeVerb, SaysWhomItCannotTell) {
    Shared shared;
    const Result word = shared.tool({"merge", "stop", "1"});
    EXPECT_EQ(word.status, 2);
    EXPECT_EQ(word.err,
              "gpushare: merge: 'stop' is neither off nor on; see: gpushare merge --help\n");
    EXPECT_EQ(shared.tool({"merge", "off"}).status, 2);
    for (const char *pid : {"4194305", "weights", "../self"}) {
        const Result none = shared.tool({"merge", "off", pid});
        EXPECT_ERR(none, 1,
                   std::string("gpushare: merge: no process has the pid or the name '") + pid +
                       "'; see: gpushare ls\n");
    }
    const std::string self = std::to_string(getpid());
    const Result bare = shared.tool({"merge", "on", self});
    EXPECT_ERR_HAS(bare, 1, "process " + self + " is not known here: it runs without gpushare");
    const Peer camera(shared, "camera");
    const Result unruled = shared.tool({"merge", "off", pid_text(camera.owner)});
    EXPECT_ERR_HAS(unruled, 1, "no merge rule has taken memory of camera ");
    EXPECT_EQ(shared.tool({"merge", "off", "camera"}).err, unruled.err) << "by its name";
    EXPECT_FALSE(gps_paused_get(&shared.store, &camera.owner));
}

TEST(MergeVerb, SaysThatAProcessIsOfAnotherUser) {
    SKIP_IF(geteuid() != 0, "only root can make one");
    Shared shared;
    const pid_t child = fork();
    if (child == 0) {
        if (setuid(65534) == 0)
            pause();
        _exit(1);
    }
    const std::string pid = std::to_string(child);
    Result result;
    eventually([&] {
        result = shared.tool({"merge", "off", pid});
        return contains(result.err, "another user");
    });
    EXPECT_ERR(result, 1,
               "gpushare: merge: process " + pid +
                   " is of another user (uid 65534), who alone may say this\n");
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

// It does not follow: it is no process of the library's.
TEST(MergeVerb, SaysThatThereIsNoAnswerAndTheOrderGoesWithTheProcess) {
    Shared shared;
    Peer server(shared, "server", {{{{1}}, 0, GPS_SLOT_OPEN, GPS_VIA_OWN}});
    const Result result = shared.tool({"merge", "off", pid_text(server.owner)});
    EXPECT_ERR_HAS(result, 1, " has not answered; it will follow when it does\n");
    EXPECT_TRUE(gps_paused_get(&shared.store, &server.owner));
    shared.tool({"gc"});
    EXPECT_TRUE(gps_paused_get(&shared.store, &server.owner)) << "it lives";
    server.kill();
    shared.tool({"gc"});
    EXPECT_FALSE(gps_paused_get(&shared.store, &server.owner));
}
