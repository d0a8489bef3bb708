// frames_end_test.cpp - whole frames, where programs, contexts, streams and buffers come and go.
#include "scenario/harness.hpp"

extern "C" {
#include "directory/frame_file.h"
#include "directory/record.h"
#include "directory/region.h"
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

// The first frame is drawn, and seen.
void begin(Puppet &writer, Puppet &reader) {
    writer.must("malloc p 4194304");
    reader.must("malloc q 4194304");
    draw(writer, "p", 1);
    EXPECT_TRUE(sees(reader, "q", "01"));
}

// Of a program that allocates again, the second buffer is film1.
struct Ends : testing::TestWithParam<const char *> {
    World world{rule("film{n}", "puppet", "auto",
                     "size = 4MiB\nindex = *\nframes = latest\n" + at_once + GetParam())};
    Puppet a{world}, b{world};
    Ends() {
        begin(a, b);
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
    EXPECT_TRUE(eventually([&] { return readers("film0") == 0u; })); // a card's driver lets go late
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
        auto [world, a, b] =
            Twins(rule("film{n}", "puppet", "auto",
                       "size = 4MiB\nindex = *\nframes = latest\n" + at_once + backing));
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
        begin(a, b);
        for (Puppet *each : {&a, &b})
            each->all({kernels(), "malloc other 4096", "fill other 0 4096", "stream s"});
    }
    int64_t newest() const {
        return static_cast<int64_t>(world.region("film")["frames"]["newest"].number);
    }
    // What the reader's graph leaves in its other buffer. While the copy of the frame before has
    // not quite ended, in a thread of the driver's, a launch gets no other frame.
    bool reads(const std::string &graph, int at, const std::string &bytes) {
        const std::string read =
            "read other " + std::to_string(at) + " " + std::to_string(bytes.size() / 2);
        return eventually([&] {
            b.all({"fill other 0 4096", "sync", "graph s " + graph, "ssync s"});
            return b.must(read) == bytes;
        });
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
        EXPECT_TRUE(reads("g", 0, hex_bytes("0" + std::to_string(i), 4)));
    }
}

TEST_F(FramesLooks, AGraphOfNodesReadsWhatIsNewestAtItsLaunch) {
    b.all({"node copy other 0 8 q g", "graph s g", "ssync s"});
    for (int i = 2; i < 5; i++) {
        draw_next(i);
        EXPECT_TRUE(reads("g", 0, hex_bytes("0" + std::to_string(i), 8)));
    }
    b.all({"made m", "more m kernel test_read q 1 other+16", "ready m h", "graph s h", "ssync s",
           "fill other 0 4096", "sync"});
    draw_next(5);
    EXPECT_TRUE(reads("h", 16, "05050505"));
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

// --- who is in the way ---

// The file of the frames of `film`, in which the test speaks for others.
struct FramesFile {
    gps_store store;
    gps_region_record record{};
    gps_frame_file file{};
    explicit FramesFile(const World &world) : store(world.store()) {
        gps_frames_said said;
        const std::string id = world.region("film")["id"].text;
        gps_id region{};
        for (size_t i = 0; i < sizeof(region.bytes); i++)
            region.bytes[i] = static_cast<uint8_t>(std::stoul(id.substr(2 * i, 2), nullptr, 16));
        if (gps_region_read(&store, &region, &record, nullptr) != 0 ||
            gps_frame_file_open(&store, &region, &file, &said) != 0)
            throw std::runtime_error("no frames");
    }
    ~FramesFile() {
        gps_frame_file_close(&file);
    }
    FramesFile(const FramesFile &) = delete;
    FramesFile &operator=(const FramesFile &) = delete;

    // One that lives as long as the exporter, and reads slot `slot` (from 1; 0: none) for good.
    int reads(unsigned slot) {
        gps_frames_reader reader{};
        unsigned place;
        reader.owner = *gps_record_creator(&record);
        reader.slot = slot;
        return gps_frame_file_join(&store, &file, &reader, &place);
    }
    unsigned slot_of(uint64_t frame) {
        gps_frames_said said;
        EXPECT_EQ(gps_frame_file_read(&file, &said), 0);
        for (unsigned i = 0; i < said.head.slots; i++)
            if (said.slot[i].frame == frame)
                return i + 1;
        throw std::runtime_error("no slot has the frame");
    }
};

TEST(Frames, HaveNoRoomForReaderThirtyThree) {
    World world(film("frames = latest\n" + at_once));
    Puppet a(world), b(world), c(world);
    a.must("malloc p 4194304");
    FramesFile others(world);
    for (unsigned i = 0; i < GPS_FRAMES_READERS_MAX - 1; i++)
        ASSERT_EQ(others.reads(0), 0);
    b.must("malloc q 4194304");
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
    c.must("malloc q 4194304");
    ASSERT_EQ(world.count("share-fallback"), 1u) << world.logs();
    EXPECT_HAS(world.findings("share-fallback").at(0).detail,
               "32 programs read its frames already; the exporter's buffer is shared");
    draw(a, "p", 1);
    a.must("fill p 2 4194304"); // not whole yet
    EXPECT_TRUE(sees(b, "q", "01"));
    EXPECT_TRUE(sees(c, "q", "02"));
    b.must("free q");
    Puppet d(world);
    d.must("malloc q 4194304");
    EXPECT_TRUE(sees(d, "q", "01"));
    EXPECT_EQ(world.count("share-fallback"), 1u) << world.logs();
    for (Puppet *each : {&c, &d})
        each->must("free q");
    a.must("free p");
}

// The exporter's driver has no stream for the copies; its importers' has.
TEST(Frames, ThatCannotBePublishedLeaveTheBufferShared) {
    SIM_ONLY("no card runs out of streams");
    for (const char *backing : {"backing = legacy\n", "backing = vmm\n"}) {
        World world(film("frames = latest\n" + at_once + backing));
        Puppet a(world, {.environment = {{"GPUSHARE_SIM_NO_STREAMS", "1"}}}), b(world);
        a.must("malloc p 4194304");
        ASSERT_EQ(world.count("share-fallback"), 1u) << world.logs();
        EXPECT_EQ(world.findings("share-fallback").at(0).detail,
                  "its frames cannot be published; the buffer is shared without");
        b.must("malloc q 4194304");
        EXPECT_EQ(world.count("share-fallback"), 2u) << world.logs();
        draw(a, "p", 1);
        EXPECT_EQ(b.must("read q 0 1"), "01");
        b.must("free q");
        a.must("free p");
    }
}

// Nor has who comes when its region is there, and that is not known yet.
TEST(Frames, ThatCannotBePublishedAreNotJoinedBefore) {
    SIM_ONLY("no card runs out of streams");
    for (const char *backing : {"backing = legacy\n", "backing = vmm\n"}) {
        World world(film("frames = latest\n" + at_once + backing));
        Puppet a(world, {.environment = {{"GPUSHARE_SIM_NO_STREAMS", "300"}}}), b(world);
        a.send("malloc p 4194304");
        ASSERT_TRUE(eventually([&] { return !world.files("regions").empty(); }));
        b.must("malloc q 4194304");
        a.receive();
        EXPECT_EQ(world.count("share-fallback"), 2u) << world.logs();
        draw(a, "p", 1);
        EXPECT_EQ(b.must("read q 0 1"), "01");
        b.must("free q");
        a.must("free p");
    }
}

// Of two slots it has one for good, the newest frame's then. A frame is left out while the other
// reader reads the other slot, so each is drawn until it is seen.
TEST(Frames, GoOnWhileOneReaderHoldsOneOfTwoSlots) {
    auto [world, a, b] = Twins(film("frames = latest\nframe_slots = 2\n" + at_once));
    begin(a, b);
    FramesFile others(world);
    ASSERT_EQ(others.reads(others.slot_of(1)), 0);
    for (int i = 2; i < 6; i++) {
        EXPECT_TRUE(eventually([&, &a = a, &b = b] {
            draw(a, "p", i);
            return b.must("read q 0 1") == "0" + std::to_string(i);
        }));
    }
}

TEST(Frames, OfAWriterThatEndsWaitForAStoppedReaderNoLonger) {
    auto [world, a, b] = Twins(film("frames = each\nframes_timeout = 300ms\nframe_slots = 2\n"));
    a.must("malloc p 4194304");
    b.must("malloc q 4194304");
    b.stop();
    for (int i = 1; i < 4; i++)
        draw(a, "p", i); // the third says that the second is whole: both slots are full
    const int64_t began = now_ms();
    EXPECT_EQ(a.quit("exit 3"), 3);
    EXPECT_LT(now_ms() - began, soon(1000));
    b.resume();
    EXPECT_EQ(b.must("read q 0 1").substr(0, 1), "0"); // a whole one
    EXPECT_EQ(b.quit("exit 4"), 4);
}

TEST(Frames, OfAReaderThatEndsAreNotWaitedFor) {
    World world(film("frames = each\nframes_timeout = 20s\nframe_slots = 2\n" + at_once));
    for (const char *end : {"exit 5", "_exit 5", "quick_exit 5"}) {
        Puppet a(world), b(world), c(world);
        a.must("malloc p 4194304");
        b.must("malloc q 4194304");
        c.must("malloc q 4194304");
        draw(a, "p", 1);
        EXPECT_EQ(b.quit(end), 5);
        const int64_t began = now_ms();
        for (int i = 2; i < 7; i++) {
            c.must("read q 0 1");
            draw(a, "p", i);
        }
        EXPECT_LT(now_ms() - began, soon(2000));
        EXPECT_EQ(world.findings().size(), 0u) << world.logs();
        c.must("free q");
        a.must("free p");
    }
}

// --- who touches it otherwise ---

// The kernel and the graph get another buffer, and who knows what they find there.
TEST(Frames, AreTouchedByAnyKernelWhereTheRuleSaysSo) {
    for (const bool any : {true, false}) {
        auto [world, a, b] =
            Twins(film("frames = latest\n" + at_once + (any ? "touch = any\n" : "")));
        a.must("malloc p 4194304");
        b.must("malloc q 4194304");
        for (Puppet *each : {&a, &b})
            each->all({kernels(), "malloc other 4096", "fill other 0 4096", "sync", "stream s"});
        b.all({"capture s", "launch s test_read other 4 other+64", "captured s g"});
        const auto newest = [&, &world = world] {
            return world.region("film")["frames"]["newest"].number;
        };
        const auto had = [&, &world = world] {
            return world.region("film")["frames"]["readers"][0]["frame"].number;
        };
        draw(a, "p", 1);
        EXPECT_TRUE(eventually([&] { return newest() == 1; }));
        for (int i = 2; i < 5; i++) {
            a.all({"launch - test_write other 4 1", "sync"});
            EXPECT_TRUE(eventually([&] { return newest() == (any ? i : 1); }));
            EXPECT_TRUE(eventually([&, &b = b] {
                b.all({"graph s g", "ssync s"});
                return had() == (any ? i : 0);
            }));
        }
    }
}

// The driver gives the handle of a kernel that is gone to one that has other parameters.
TEST(Frames, AreTouchedByAKernelWhoseHandleWasAnothers) {
    auto [world, a, b] = Twins(film("frames = latest\n" + at_once));
    begin(a, b);
    a.all({kernels(), "malloc other 4096", "launch - test_write other 4 1", "sync", "unload"});
    a.all({kernels(), "launch - test_last 151587081 1048576 p", "sync"});
    EXPECT_TRUE(sees(b, "q", "09"));
}

// --- what programs do at once ---

// Each call is answered as without gpushare: it is done, the buffer is gone (1), or what was begun
// finds it gone (700).
TEST(Frames, OfABufferThatAnotherThreadFreesEnd) {
    for (const bool writer : {true, false}) {
        auto [world, a, b] = Twins(film("frames = latest\n" + at_once));
        begin(a, b);
        Puppet &one = writer ? a : b, &other = writer ? b : a;
        constexpr int calls = 200;
        one.must(writer ? "later 5 free p" : "later 5 free q");
        for (int i = 0; i < calls; i++)
            one.send(writer ? "fill p 2 4194304" : "read q 0 1");
        for (int i = 0; i < calls + 1; i++) {
            const int code = one.receive().code;
            EXPECT_TRUE(code == 0 || code == 1 || code == 700) << code;
        }
        EXPECT_EQ(one.quit("exit 3"), 3);
        if (writer)
            other.must("read q 0 1");
        else
            draw(other, "p", 3);
        EXPECT_EQ(other.quit("exit 3"), 3);
        EXPECT_EQ(world.count("share-fallback"), 0u) << world.logs();
    }
}

// It waits for a reader meanwhile.
TEST(Frames, OfABufferThatIsFreedWhileTheWriterWaitsEnd) {
    auto [world, a, b] =
        Twins(film("frames = each\nframes_timeout = 300ms\nframe_slots = 2\n" + at_once));
    a.must("malloc p 4194304");
    b.must("malloc q 4194304");
    b.stop();
    draw(a, "p", 1);
    draw(a, "p", 2);
    a.must("fill p 3 4194304");
    a.must("later 50 free p");
    a.send("sync");
    EXPECT_EQ(a.receive().code, 0);
    EXPECT_EQ(a.receive().code, 0);
    EXPECT_EQ(a.code("free p"), 1);
    b.resume();
    EXPECT_EQ(b.must("read q 0 1"), "01");
}

// The default streams of two contexts are two, and a stream is that of one.
TEST(Frames, AreDrawnAndReadInAnotherContextThanTheBuffers) {
    auto [world, a, b] = Twins(film("frames = latest\n" + at_once));
    begin(a, b);
    for (Puppet *each : {&a, &b})
        each->all({"ctxcreate c", "stream s"});
    draw(a, "p", 2);
    EXPECT_TRUE(sees(b, "q", "02"));
    a.all({"sfill s p 3 4194304", "ssync s"});
    EXPECT_TRUE(sees(b, "q", "03"));
    a.must("ctxpop");
    draw(a, "p", 4);
    EXPECT_TRUE(sees(b, "q", "04"));
}

} // namespace
