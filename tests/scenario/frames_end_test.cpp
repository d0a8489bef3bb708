// frames_end_test.cpp - whole frames, where programs, contexts, streams and buffers come and go.
#include "scenario/harness.hpp"

extern "C" {
#include "directory/frame_file.h"
#include "directory/record.h"
}

namespace {

std::string film(const std::string &keys) {
    return rule("film", "puppet", "auto", "size = 4MiB\n" + keys);
}

// One wait ends a frame, so each is there at once.
const std::string at_once = "frame_waits = 1\n";

void draw(Puppet &puppet, const std::string &buffer, int frame) {
    puppet.all({"fill " + buffer + " " + std::to_string(frame) + " 4194304", "sync"});
}

// The frame that is published comes when the copy has ended, in a thread of the driver's.
testing::AssertionResult sees(Puppet &puppet, const std::string &buffer, const std::string &byte) {
    std::string first, last;
    if (eventually([&] {
            first = puppet.must("read " + buffer + " 0 1");
            last = puppet.must("read " + buffer + " 4194303 1");
            return first == byte && last == byte;
        }))
        return testing::AssertionSuccess();
    return testing::AssertionFailure() << "it sees " << first << " and " << last;
}

// Of a program that allocates again, the second buffer is film1.
struct Ends : testing::TestWithParam<const char *> {
    World world{rule("film{n}", "puppet", "auto",
                     "size = 4MiB\nindex = *\nframes = latest\n" + at_once + GetParam())};
    Puppet a{world}, b{world};
    Ends() {
        a.must("malloc p 4194304");
        b.must("malloc q 4194304");
        draw(a, "p", 1);
        EXPECT_TRUE(sees(b, "q", "01"));
    }
    size_t readers(const std::string &name) const {
        return world.region(name)["frames"]["readers"].size();
    }
};

INSTANTIATE_TEST_SUITE_P(Frames, Ends, testing::Values("backing = legacy\n", "backing = vmm\n"),
                         [](const auto &backing) {
                             return std::string(backing.param).find("vmm") == std::string::npos
                                        ? "legacy"
                                        : "vmm";
                         });

// What the reader has stays its own.
TEST_P(Ends, AWriterThatExecsDrawsAnew) {
    EXPECT_EQ(a("exec")[0], "exec");
    EXPECT_TRUE(eventually([&] { return world.state("film0") != "ready"; })); // the keeper sees it
    a.must("malloc p 4194304");
    draw(a, "p", 2);
    EXPECT_TRUE(sees(b, "q", "01"));
    Puppet c(world);
    c.must("malloc q 4194304");
    EXPECT_TRUE(sees(c, "q", "02"));
    b.must("free q");
    draw(a, "p", 3);
    EXPECT_TRUE(sees(c, "q", "03"));
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

TEST_P(Ends, AReaderThatExecsReadsAnew) {
    EXPECT_EQ(b("exec")[0], "exec");
    for (int i = 2; i < 8; i++)
        draw(a, "p", i);
    EXPECT_EQ(readers("film0"), 0u);
    b.must("malloc q 4194304");
    EXPECT_TRUE(sees(b, "q", "07"));
    draw(a, "p", 8);
    EXPECT_TRUE(sees(b, "q", "08"));
    EXPECT_EQ(readers("film0"), 1u);
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

TEST_P(Ends, AWriterThatResetsItsDeviceDrawsAnew) {
    a.must("reset");
    EXPECT_TRUE(sees(b, "q", "01"));
    a.must("malloc p 4194304");
    b.must("malloc r 4194304");
    draw(a, "p", 2);
    EXPECT_TRUE(sees(b, "r", "02"));
    EXPECT_TRUE(sees(b, "q", "01"));
    b.all({"free q", "free r"});
    a.must("free p");
    EXPECT_EQ(world.count("share-fallback"), 0u) << world.logs();
}

TEST_P(Ends, AReaderThatResetsItsDeviceReadsAnew) {
    a.must("malloc o 4194304");
    b.must("reset");
    EXPECT_EQ(readers("film0"), 0u);
    for (int i = 2; i < 8; i++)
        draw(a, "p", i);
    b.must("malloc r 4194304");
    draw(a, "o", 9);
    EXPECT_TRUE(sees(b, "r", "09"));
    b.must("free r");
    a.all({"free p", "free o"});
    EXPECT_EQ(world.count("share-fallback"), 0u) << world.logs();
}

// A context of the program's own, and all in it: a process opens legacy memory in one only.
TEST(Frames, OfAContextEndWithIt) {
    for (const char *backing : {"backing = legacy\n", "backing = vmm\n"}) {
        World world(rule("film{n}", "puppet", "auto",
                         "size = 4MiB\nindex = *\nframes = latest\n" + at_once + backing));
        Puppet a(world), b(world);
        for (const char *context : {"c", "d"}) {
            for (Puppet *each : {&a, &b})
                each->all({std::string("ctxcreate ") + context, "cumalloc x 4194304"});
            draw(a, "x", 2);
            EXPECT_TRUE(sees(b, "x", "02"));
            b.must(std::string("ctxdestroy ") + context);
            draw(a, "x", 3);
            a.must(std::string("ctxdestroy ") + context);
        }
        EXPECT_EQ(world.count("share-fallback"), 0u) << world.logs();
    }
}

// --- graphs and streams ---

struct FramesLooks : testing::Test {
    World world{film("frames = latest\n" + at_once)};
    Puppet a{world}, b{world};
    FramesLooks() {
        a.must("malloc p 4194304");
        b.must("malloc q 4194304");
        draw(a, "p", 1);
        EXPECT_TRUE(sees(b, "q", "01"));
        for (Puppet *each : {&a, &b})
            each->all({kernels(), "malloc other 4096", "fill other 0 4096", "stream s"});
    }
    int64_t newest() const {
        return static_cast<int64_t>(world.region("film")["frames"]["newest"].number);
    }
    // The frame that the reader has.
    int64_t had() const {
        return static_cast<int64_t>(world.region("film")["frames"]["readers"][0]["frame"].number);
    }
    void draw_next(int frame) {
        const int64_t before = newest();
        draw(a, "p", frame);
        EXPECT_TRUE(eventually([&] { return newest() > before; }));
    }
};

TEST_F(FramesLooks, ACapturedGraphReadsWhatIsNewestAtItsLaunch) {
    b.all({"capture s", "launch s test_read q 1 other", "captured s g", "graph s g", "ssync s"});
    for (int i = 2; i < 5; i++) {
        draw_next(i);
        b.all({"fill other 0 4096", "sync", "graph s g", "ssync s"});
        EXPECT_EQ(b.must("read other 0 4"), hex_bytes("0" + std::to_string(i), 4));
    }
}

TEST_F(FramesLooks, AGraphOfNodesReadsWhatIsNewestAtItsLaunch) {
    b.all({"node copy other 0 8 q g", "graph s g", "ssync s"});
    for (int i = 2; i < 5; i++) {
        draw_next(i);
        b.all({"graph s g", "ssync s"});
        EXPECT_EQ(b.must("read other 0 8"), hex_bytes("0" + std::to_string(i), 8));
    }
    b.all({"made m", "more m kernel test_read q 1 other+16", "ready m h", "graph s h", "ssync s",
           "fill other 0 4096", "sync"});
    draw_next(5);
    b.all({"graph s h", "ssync s"});
    EXPECT_EQ(b.must("read other 16 4"), "05050505");
}

// Its work is under way, and nobody can ask the stream for it any more.
TEST_F(FramesLooks, AStreamThatIsDestroyedAtOnceHasDrawnAll) {
    for (int i = 2; i < 5; i++) {
        const std::string byte = std::to_string(i);
        a.all({"launch s test_spin other 4 30000000 other+64", "sfill s p " + byte + " 4194304",
               "unstream s", "sync", "stream s"});
        EXPECT_TRUE(sees(b, "q", "0" + byte));
    }
}

} // namespace
