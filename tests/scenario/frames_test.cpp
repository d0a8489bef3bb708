// frames_test.cpp - whole frames, between programs that know nothing of each other (apps/film.c).

#include "scenario/harness.hpp"

namespace {

struct Film : World {
    explicit Film(const std::string &keys) {
        config(rule("film", "camera", "export", "size = 1MiB\n" + keys) +
               rule("film", "viewer", "import", "size = 1MiB\n"));
        for (const char *name : {"camera", "viewer", "filter"})
            std::filesystem::copy_file(build_directory() + "/tests/apps/film", path(name));
        environment["FILM_STAYS"] = on_gpu() ? "2000" : "200";
        environment["FILM_KERNELS"] = build_directory() + "/tests/apps/kernels.ptx";
    }

    // Preloaded, in the background; its words go to a file of its name.
    std::string line(const std::string &program, const std::string &more,
                     const std::string &number = "") const {
        return "LD_PRELOAD=" + library() + " timeout 30 " + path(program) + " " + more + " >" +
               path(program + number + ".said") + " & ";
    }
    void run(const std::string &script) const {
        command({"sh", "-c", script + "wait"}, environment);
    }
    std::string said(const std::string &file) const {
        return read_file(path(file + ".said"));
    }
};

// What `look` prints: "frames 12 torn 0 new 3 ...".
uint64_t number(const std::string &said, const std::string &of) {
    std::istringstream words(said);
    std::string word;
    while (words >> word)
        if (word == of && words >> word)
            return std::stoull(word);
    ADD_FAILURE() << "no " << of << " in: " << said;
    return ~0u;
}

void expect_whole(const std::string &said, uint64_t last) {
    EXPECT_EQ(number(said, "torn"), 0u) << said;
    EXPECT_EQ(number(said, "back"), 0u) << said;
    EXPECT_EQ(number(said, "last"), last) << said;
}

void expect_each(const std::string &said, uint64_t frames) {
    expect_whole(said, frames);
    EXPECT_EQ(number(said, "first"), 1u) << said;
    EXPECT_EQ(number(said, "gaps"), 0u) << said;
    EXPECT_EQ(number(said, "new"), frames) << said;
}

const char *const ways[] = {"one",    "stream", "four",   "poll",  "called",  "event", "never",
                            "upload", "whole",  "kernel", "graph", "threads", "node",  "brief"};

struct Drawing : testing::TestWithParam<const char *> {};

// The reader waits for the buffer, and of `each` it gets all.
TEST_P(Drawing, AreWholeHoweverTheyAreDrawn) {
    Film latest("frames = latest\n"), each("frames = each\nframes_timeout = 20s\n");
    const std::string way = GetParam();
    if (on_gpu() && way == "brief")
        GTEST_SKIP() << "how many waits a frame has depends on time there (docs/frames.md)";
    latest.run(latest.line("viewer", "look one 100 1048576") +
               latest.line("camera", "draw " + way + " 100 1048576 1000"));
    expect_whole(latest.said("viewer"), 100);
    each.run(each.line("viewer", "look one 60 1048576") +
             each.line("camera", "draw " + way + " 60 1048576"));
    expect_each(each.said("viewer"), 60);
}

std::string film(const std::string &keys) {
    return rule("film", "puppet", "auto", "size = 4MiB\n" + keys);
}

void allocate(Puppet &writer, Puppet &reader) {
    writer.must("malloc p 4194304");
    reader.must("malloc q 4194304");
}

INSTANTIATE_TEST_SUITE_P(Frames, Drawing, testing::ValuesIn(ways),
                         [](const auto &drawn) { return std::string(drawn.param); });

TEST(Frames, AreWholeHoweverTheyAreLookedAt) {
    for (const char *look : {"parts", "stream", "kernel"}) {
        Film film("frames = each\nframes_timeout = 20s\nbacking = vmm\n");
        film.run(film.line("viewer", std::string("look ") + look + " 60 1048576") +
                 film.line("camera", "draw four 60 1048576"));
        expect_each(film.said("viewer"), 60);
        EXPECT_EQ(film.findings().size(), 0u) << film.logs();
    }
}

// A reader that comes late begins with what there is.
TEST(Frames, ReachEachOfManyReaders) {
    Film film("frames = each\nframes_timeout = 20s\nframe_slots = 2\n");
    std::string script;
    for (int i = 0; i < 8; i++)
        script += film.line("viewer", "look one 50 1048576", std::to_string(i));
    film.run(script + film.line("camera", "draw one 50 1048576 5000"));
    for (int i = 0; i < 8; i++) {
        const std::string said = film.said("viewer" + std::to_string(i));
        expect_whole(said, 50);
        EXPECT_EQ(number(said, "gaps"), 0u) << said;
    }
}

TEST(Frames, GoThroughAFilter) {
    Film film("");
    film.config(rule("film", "camera", "export", "size = 1MiB\nframes = latest\n") +
                rule("film", "filter", "import", "size = 1MiB\n") +
                rule("after", "filter", "export", "size = 1052672\nframes = latest\n") +
                rule("after", "viewer", "import", "size = 1052672\n"));
    film.run(film.line("viewer", "look head 100 1052672") +
             film.line("filter", "pass one 100 1048576") +
             film.line("camera", "draw one 100 1048576 1000"));
    expect_whole(film.said("viewer"), 100);
}

// What comes back to each has gone through all.
TEST(Frames, GoRoundARingOfFilters) {
    Film film("");
    std::string rules, script;
    for (int i = 0; i < 3; i++) {
        const std::string at = std::to_string(i), from = std::to_string((i + 2) % 3);
        const std::string name = "filter" + at;
        std::filesystem::copy_file(film.path("filter"), film.path(name));
        for (const auto &[region, role] :
             {std::pair(at, "export\nframes = latest"), std::pair(from, "import")})
            rules += rule("ring" + region, name, role,
                          "size = " + std::to_string(MiB + 4096 * std::stoul(region)) + "\n");
        script += film.line(name, "ring " + at + from + " 60 1048576");
    }
    film.config(rules);
    film.run(script);
    for (int i = 0; i < 3; i++) {
        const std::string said = film.said("filter" + std::to_string(i));
        EXPECT_EQ(number(said, "torn"), 0u) << said;
        EXPECT_EQ(number(said, "back"), 0u) << said;
        EXPECT_GE(number(said, "last"), 60u) << said;
    }
}

TEST(Frames, OfThreeBuffersInTurn) {
    Film film("");
    film.environment["FILM_BUFFERS"] = "3";
    film.config(rule("film{n}", "camera", "export",
                     "size = 1MiB\nindex = *\nframes = each\nframes_timeout = 20s\n") +
                rule("film{n}", "viewer", "import", "size = 1MiB\nindex = *\n"));
    film.run(film.line("viewer", "look one 60 1048576") +
             film.line("camera", "draw one 60 1048576"));
    expect_each(film.said("viewer"), 60);
}

TEST(Frames, WithoutTheKeyAreNotOrdered) {
    Film film("frames = off\n");
    film.run(film.line("viewer", "look one 20 1048576 -20") +
             film.line("camera", "draw one 20 1048576 1000"));
    EXPECT_GE(number(film.said("viewer"), "frames"), 1u);
    EXPECT_EQ(film.count("share-fallback") + film.count("frame-late"), 0u) << film.logs();
}

// --- what is in the way ---

const std::string late = "frame-late";

TEST(Frames, OfAReaderThatStopsAreLeftOut) {
    auto [world, a, b] = Twins(film("frames = each\nframes_timeout = 200ms\n"));
    allocate(a, b);
    a.all({"fill p 1 4194304", "sync"});
    b.stop();
    const int64_t began = now_ms();
    for (int i = 2; i < 9; i++)
        a.all({"fill p " + std::to_string(i) + " 4194304", "sync"});
    EXPECT_LT(now_ms() - began, soon(8 * 200));
    EXPECT_EQ(world.count(late), 1u); // once a pair
    EXPECT_EQ(world.findings(late).at(0).others.at(0), static_cast<uint32_t>(b.pid));
    b.resume();
    b.must("free q");
    a.must("free p");
}

TEST(Frames, OfAReaderThatIsKilledAreNotWaitedFor) {
    auto [world, a, b] = Twins(film("frames = each\nframes_timeout = 20s\n"));
    allocate(a, b);
    a.all({"fill p 1 4194304", "sync"});
    b.kill();
    Puppet c(world);
    c.must("malloc q 4194304");
    const int64_t began = now_ms();
    for (int i = 2; i < 9; i++) {
        a.all({"fill p " + std::to_string(i) + " 4194304", "sync"});
        c.must("read q 0 1");
    }
    EXPECT_LT(now_ms() - began, soon(2000));
    EXPECT_EQ(world.findings().size(), 0u);
}

void draw(Puppet &puppet, int from, int to) {
    for (int i = from; i <= to; i++)
        puppet.all({"fill p " + std::to_string(i) + " 4194304", "sync"});
}

// The touch that begins the third says that the second is whole.
TEST(Frames, OfAWriterThatIsKilledInTheMidstOfOneEndBeforeIt) {
    auto [world, a, b] = Twins(film("frames = latest\n"));
    allocate(a, b);
    draw(a, 1, 2);
    a.must("fill p 3 4096");
    a.must("sync");
    a.kill();
    EXPECT_EQ(b.must("read q 0 1"), "02");
    EXPECT_EQ(b.must("read q 4194303 1"), "02");
    b.must("free q");
}

TEST(Frames, OfAReaderThatStopsAreNotWaitedForByLatest) {
    auto [world, a, b] = Twins(film("frames = latest\n"));
    allocate(a, b);
    draw(a, 1, 1);
    b.stop();
    const int64_t began = now_ms();
    draw(a, 2, 12);
    EXPECT_LT(now_ms() - began, soon(2000));
    b.resume();
    EXPECT_TRUE(eventually([&, &b = b] { return b.must("read q 0 1") == "0c"; }));
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
    b.must("free q");
    a.must("free p");
}

// To the child each call is one without a device; its parent's frames go on.
TEST(Frames, AreNotAForkedChildsToFree) {
    auto [world, a, b] = Twins(film("frames = each\n"));
    allocate(a, b);
    draw(a, 1, 2);
    EXPECT_EQ(b.must("read q 0 1"), "01");
    b("fork free q");
    a("fork free p");
    draw(a, 3, 3);
    EXPECT_EQ(b.must("read q 0 1"), "02");
    b.must("free q");
    a.must("free p");
}

// They keep what they have, and whoever comes later has no frames.
TEST(Frames, WithoutTheirFileProgramsGoOn) {
    for (const bool removed : {true, false}) {
        auto [world, a, b] = Twins(film("frames = latest\n"));
        allocate(a, b);
        draw(a, 1, 2);
        b.must("read q 0 1");
        for (const std::string &file : world.files("regions")) {
            const std::string path = std::string(world.store().path) + "/regions/" + file;
            if (file.find(".frames") != std::string::npos && removed)
                std::filesystem::remove(path);
            else if (file.find(".frames") != std::string::npos)
                std::filesystem::resize_file(path, 100);
        }
        draw(a, 3, 5);
        b.must("read q 0 1");
        Puppet c(world);
        c.must("malloc r 4194304");
        c.must("read r 0 1");
        for (Puppet *each : {&a, &b, &c})
            each->must(each == &a ? "free p" : each == &b ? "free q" : "free r");
    }
}

TEST(Frames, WithoutRoomForThemTheBufferIsShared) {
    SIM_ONLY("the card is small");
    auto [world, a, b] =
        Twins(rule("film", "puppet", "auto", "size = 1GiB\nframes = latest\nframe_slots = 16\n"));
    a.make("p", GiB, "0x11");
    ASSERT_EQ(world.count("share-fallback"), 1u);
    EXPECT_NE(world.findings("share-fallback").at(0).detail.find("no memory for slots"),
              std::string::npos);
    b.must("malloc q 1073741824");
    EXPECT_EQ(b.must("read q 0 1"), "11");
}

size_t frame_files(const World &world) {
    size_t count = 0;
    for (const std::string &file : world.files("regions"))
        count += file.size() > 7 && file.substr(file.size() - 7) == ".frames";
    return count;
}

// To its program the memory is an allocation of its own.
TEST(Frames, AReadersBufferIsItsOwn) {
    auto [world, a, b] = Twins(film("frames = latest\n"));
    const uint64_t before = world.used();
    a.make("p", 4194304, "0x11");
    b.make("q", 4194304, "0x22");
    EXPECT_EQ(a.must("read p 0 1"), "11");
    EXPECT_EQ(b.code("fill q 1 4194305"), 1); // past its end
    EXPECT_EQ(b.code("get q"), 0);            // it can be exported
    EXPECT_EQ(frame_files(world), 1u);
    b.must("free q");
    EXPECT_EQ(b.code("free q"), 1);
    a.must("free p");
    EXPECT_TRUE(world.used_becomes(before));
    EXPECT_EQ(frame_files(world), 0u);
}

TEST(Frames, AreShownWithWhoReadsThem) {
    auto [world, a, b] = Twins(film("frames = latest\nframe_waits = 1\n"));
    a.make("p", 4194304, "0x11");
    b.must("malloc q 4194304");
    a.all({"fill p 1 4194304", "sync"});
    b.must("read q 0 1");
    const Json frames = world.region("film")["frames"];
    EXPECT_EQ(frames["mode"].text, "latest");
    EXPECT_GE(frames["newest"].number, 1);
    ASSERT_EQ(frames["readers"].size(), 1u);
    EXPECT_EQ(frames["readers"][0]["pid"].number, b.pid);
    EXPECT_GE(frames["readers"][0]["read"].number, 1);
    EXPECT_HAS(world.tool({"show", "film"}).out, "\n  frames     latest, 3 slots\n",
               "\n  readers    1\n");
    b.kill();
    EXPECT_HAS(world.tool({"show", "film"}).out, "\n  readers    0\n");
}

TEST(Frames, HaveANumberOfWaitsThatIsShown) {
    World world(film("frames = latest\n"));
    Puppet a(world);
    a.must("malloc p 4194304");
    for (int i = 0; i < 12; i++)
        a.all({"fill p 1 4096", "sync", "upload p 4096 4096 2 sync"});
    EXPECT_TRUE(eventually([&] { return world.region("film")["frames"]["waits"].number == 2; }));
}

// The sums of the lines of one process: how many frames, left out ones, and lines there are.
struct Told {
    double frames = 0, left_out = 0, lines = 0;
    Told(const World &world, const Puppet &puppet, const std::string &how) {
        std::ifstream file(world.path(pid(puppet) + ".events"));
        for (std::string line; std::getline(file, line);) {
            Json event = Json::parse(line);
            if (event["event"].text != "frames")
                continue;
            EXPECT_EQ(event["name"].text, "film");
            EXPECT_EQ(event["how"].text, how);
            EXPECT_GT(event["ns"].number, 0);
            frames += event.members.count("count") ? event["count"].number : 0;
            left_out += event.members.count("left_out") ? event["left_out"].number : 0;
            lines++;
        }
    }
};

TEST(Frames, AreInTheEventLogOnceASecond) {
    World world(film("frames = latest\nframe_waits = 1\n"));
    world.environment["GPUSHARE_EVENT_LOG"] = world.path("%p.events");
    Puppet a(world), b(world);
    allocate(a, b);
    draw(a, 1, 12);
    b.all({"read q 0 1", "read q 0 1"});
    EXPECT_EQ(Told(world, b, "reader").lines, 0);
    a.must("sleep 1100");
    draw(a, 13, 15);
    EXPECT_GE(Told(world, a, "writer").lines, 1);
    b.must("read q 0 1");
    a.must("free p");
    b.must("free q");
    const Told written(world, a, "writer"), read(world, b, "reader");
    EXPECT_EQ(written.frames + written.left_out, 15);
    EXPECT_GE(written.lines, 2);
    EXPECT_LE(written.lines, 5) << "one a second";
    EXPECT_GE(read.frames, 2);
    EXPECT_LE(read.frames + read.left_out, written.frames);
    EXPECT_GE(read.lines, 1);
    if (on_gpu())
        return; // there is no jsonschema
    const Result valid = command({"python3", "tests/tool/check_lines.py", "docs/event.schema.json",
                                  world.path(pid(a) + ".events"), world.path(pid(b) + ".events")});
    EXPECT_EQ(valid.status, 0) << valid.out << valid.err;
}

TEST(Frames, OfAProgramThatEndsAreInTheEventLog) {
    World world(film("frames = latest\nframe_waits = 1\n"));
    world.environment["GPUSHARE_EVENT_LOG"] = world.path("%p.events");
    Puppet a(world), b(world);
    allocate(a, b);
    draw(a, 1, 3);
    b.must("read q 0 1");
    b.quit("exit 0");
    a.quit("exit 0");
    const Told written(world, a, "writer"), read(world, b, "reader");
    EXPECT_EQ(written.frames + written.left_out, 3);
    EXPECT_EQ(read.frames, 1);
    EXPECT_HAS(read_file(world.path(pid(a) + ".events")), "\"event\":\"ended\"");
}

TEST(Frames, LeaveNothingBehind) {
    World world(film("frames = latest\nbacking = vmm\n"));
    {
        Puppet a(world), b(world);
        a.make("p", 4194304, "0x11");
        b.must("malloc q 4194304");
        a.kill();
        b.must("read q 0 1");
        b.kill();
    }
    EXPECT_EQ(world.tool({"gc"}).status, 0);
    EXPECT_TRUE(eventually([&] { return world.files("regions").empty(); }));
}

// Of one that was killed before its region could be found.
TEST(Frames, WithoutARegionTheirFileGoes) {
    World world(film("frames = latest\n"));
    Puppet a(world);
    a.must("malloc p 4194304");
    for (const std::string &file : world.files("regions"))
        if (file.find('.') == std::string::npos)
            std::filesystem::remove(std::string(world.store().path) + "/regions/" + file);
    EXPECT_EQ(frame_files(world), 1u);
    EXPECT_EQ(world.tool({"gc"}).status, 0);
    EXPECT_EQ(frame_files(world), 0u);
}

} // namespace
