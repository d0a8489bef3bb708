// Whole frames in ls, show, top and metrics: what the file says, and who still reads.

#include "harness.hpp"
#include "json.hpp"

extern "C" {
#include "directory/frame_file.h"
#include "util/clock.h"
}

namespace {

constexpr uint64_t ms = 1000000;

// A region with frames: five were published, the last one 50 ms ago.
struct Film {
    Shared shared;
    Peer camera{shared, "camera"};
    gps_region_record record{};
    gps_frame_file file{};
    gps_frames_writer writer{};

    explicit Film(gps_frames_mode mode = GPS_FRAMES_LATEST, bool with_file = true) {
        record = shared.region(camera.owner, "film");
        record.frames = mode;
        record.frame_slots = 3;
        gps_record_seal(&record);
        if (gps_region_publish(&shared.store, &record) != 0)
            throw std::runtime_error("not published");
        if (!with_file)
            return;
        gps_frames_head head{};
        head.region = record.id;
        head.mode = mode;
        head.slots = 3;
        head.timeout = 1000 * ms;
        if (gps_frame_file_make(&shared.store, &head, &file) != 0)
            throw std::runtime_error("no file");
        gps_frame_file_made(&file);
        gps_frames_said said;
        if (gps_frame_file_open(&shared.store, &record.id, &file, &said) != 0)
            throw std::runtime_error("it cannot be opened");
        writer.newest = 5;
        writer.left_out = 2;
        put();
    }
    ~Film() {
        gps_frame_file_close(&file);
    }

    void put() {
        writer.at = gps_clock_monotonic() - 50 * ms;
        EXPECT_EQ(gps_frame_file_put_writer(&file, &writer), 0);
    }
    // Has had frame 4, and not 1 to 3.
    void reads(const gps_owner &owner) {
        gps_frames_reader reader{};
        unsigned place;
        reader.owner = owner;
        reader.have = 4;
        reader.at = gps_clock_monotonic() - 90 * ms;
        reader.read = 1;
        reader.left_out = 3;
        reader.late = 6;
        EXPECT_EQ(gps_frame_file_join(&shared.store, &file, &reader, &place), 0);
    }
    std::string path() const {
        return shared.regions() + id_text(record.id) + ".frames";
    }
    std::string said(const std::vector<std::string> &words) const {
        const Result result = shared.tool(words);
        EXPECT_ERR(result, 0, "");
        return result.out;
    }
    Json json(const std::vector<std::string> &words) const {
        return Json::parse(said(words));
    }
};

// The line that has the text, with single blanks.
std::string line_of(const std::string &text, const std::string &part) {
    std::string line, words;
    for (std::istringstream lines(text); std::getline(lines, line);)
        if (contains(line, part)) {
            for (const char c : line)
                if (c != ' ' || (!words.empty() && words.back() != ' '))
                    words += c;
            return words;
        }
    return "(none)";
}

struct FrameViewOfAFilm : testing::Test, Film {};

TEST_F(FrameViewOfAFilm, ShowTellsOfAllAndOfEachReader) {
    Peer viewer(shared, "viewer", {{record.id}});
    reads(viewer.owner);
    writer.odd = 7;
    writer.usual = 4;
    put();
    const std::string text = said({"show", "film"});
    EXPECT_EQ(line_of(text, "  frames "), "frames latest, 3 slots");
    EXPECT_HAS(line_of(text, "  published "), "published 5, the newest ", " ms ago");
    EXPECT_EQ(line_of(text, "  left out "), "left out 2, for each slot was being read");
    EXPECT_EQ(line_of(text, "  odd "), "odd 7 with another number of waits than the usual one");
    EXPECT_EQ(line_of(text, "  waits "), "waits 4 in each of the last frames: frame_waits = 4");
    EXPECT_EQ(line_of(text, "  late "), "(none)");
    EXPECT_EQ(line_of(text, "  readers "), "readers 1");
    EXPECT_HAS(line_of(text.substr(text.find("  readers ")), "viewer"),
               "viewer " + pid_text(viewer.owner) + " 4 ", " ms 1 3 6");
    expect_to_fit(text, 80);
}

TEST(FrameView, ShowSaysWhenThereAreNoneYetAndWhenNoMoreCome) {
    Film film(GPS_FRAMES_EACH);
    film.writer.newest = 0;
    film.writer.late = 1;
    film.put();
    std::string text = film.said({"show", "film"});
    EXPECT_EQ(line_of(text, "  frames "), "frames each, 3 slots");
    EXPECT_EQ(line_of(text, "  published "), "published none yet");
    EXPECT_EQ(line_of(text, "  waits "), "(none)");
    EXPECT_EQ(line_of(text, "  late "), "late its readers, 1 time");
    EXPECT_EQ(line_of(text, "  readers "), "readers 0");
    film.writer.newest = 1;
    film.writer.ended = 1;
    film.put();
    text = film.said({"show", "film"});
    EXPECT_HAS(line_of(text, "  published "), "published 1, the newest ", " ago; no more come");
}

TEST_F(FrameViewOfAFilm, ShowAloneListsWhatItCanShow) {
    Peer dead(shared, "dead"), viewer(shared, "viewer");
    dead.kill();
    const std::string text = said({"show"});
    EXPECT_HAS(line_of(text, "film "), "film region, ");
    EXPECT_EQ(line_of(text, pid_text(viewer.owner)), pid_text(viewer.owner) + " process, viewer");
    EXPECT_LACKS(text, pid_text(dead.owner));
    const Json all = json({"show", "--json"});
    EXPECT_EQ(all[0]["name"].text, "film");
    EXPECT_GE(all.size(), 2u);
}

TEST_F(FrameViewOfAFilm, ADeadReaderIsNone) {
    Peer dead(shared, "dead"), viewer(shared, "viewer");
    reads(dead.owner);
    reads(viewer.owner);
    dead.kill();
    const std::string text = said({"show", "film"});
    EXPECT_EQ(line_of(text, "  readers "), "readers 1");
    EXPECT_LACKS(text, "dead ");
    EXPECT_EQ(json({"ls", "--json"})[0]["frames"]["readers"].size(), 1u);
    EXPECT_LACKS(said({"metrics"}), "command=\"dead\"");
}

TEST_F(FrameViewOfAFilm, JsonHasAllOfIt) {
    Peer viewer(shared, "viewer");
    reads(viewer.owner);
    for (const char *verb : {"ls", "show"}) {
        std::vector<std::string> words = {verb, "--json"};
        if (words[0] == "show")
            words.push_back("film");
        const Json all = json(words);
        const Json &frames = all[0]["frames"], &reader = frames["readers"][0];
        EXPECT_EQ(frames["mode"].text, "latest");
        EXPECT_EQ(frames["slots"].number, 3);
        EXPECT_EQ(frames["newest"].number, 5);
        EXPECT_GE(frames["age"].number, 0.05);
        EXPECT_EQ(frames["left_out"].number, 2);
        EXPECT_EQ(frames["late"].number, 0);
        EXPECT_EQ(frames["odd"].number, 0);
        EXPECT_TRUE(frames["waits"].is_null());
        EXPECT_FALSE(frames["ended"].truth);
        EXPECT_EQ(reader["command"].text, "viewer");
        EXPECT_EQ(reader["pid"].text, pid_text(viewer.owner));
        EXPECT_EQ(reader["frame"].number, 4);
        EXPECT_GE(reader["age"].number, 0.09);
        EXPECT_EQ(reader["read"].number, 1);
        EXPECT_EQ(reader["left_out"].number, 3);
        EXPECT_EQ(reader["late"].number, 6);
    }
}

TEST(FrameView, OtherRegionsSayNothingOfFrames) {
    Shared shared;
    Peer camera(shared, "camera");
    shared.region(camera.owner, "film");
    EXPECT_LACKS(shared.tool({"ls", "--json"}).out, "frames");
    for (const char *verb : {"ls", "show", "top", "metrics"}) {
        std::vector<std::string> words = {verb};
        if (words[0] == "show")
            words.push_back("film");
        if (words[0] == "top")
            words.push_back("--once");
        const std::string text = shared.tool(words).out;
        EXPECT_LACKS(text, "FRAME");
        EXPECT_LACKS(text, "frame");
    }
}

TEST_F(FrameViewOfAFilm, LsHasALineForThem) {
    Peer viewer(shared, "viewer"), other(shared, "other");
    reads(viewer.owner);
    reads(other.owner);
    const std::string text = said({"ls"});
    const std::string line = line_of(text.substr(text.find("FRAMES OF")), "film ");
    EXPECT_HAS(line, "film " + id_text(record.id).substr(0, 8) + " latest 3 5 ",
               " ms 8 12 2"); // 2 and twice 3 left out, twice 6 late
    expect_to_fit(text, 80);
}

TEST_F(FrameViewOfAFilm, GcRemovesWhatIsLeftOfThem) {
    EXPECT_EQ(access(path().c_str(), F_OK), 0);
    camera.kill();
    said({"gc"});
    EXPECT_NE(access(path().c_str(), F_OK), 0);
}

// Its exporter may be about to make the region: then it has the file locked.
TEST_F(FrameViewOfAFilm, GcRemovesFramesWithoutARegion) {
    std::filesystem::remove(shared.regions() + id_text(record.id));
    const int lock = gps_file_open_locked(path().c_str(), 0, 0, 0);
    said({"gc"});
    EXPECT_EQ(access(path().c_str(), F_OK), 0);
    gps_file_close_locked(lock);
    said({"gc"});
    EXPECT_NE(access(path().c_str(), F_OK), 0);
}

// --- files that say nothing ---

struct Unknown : testing::TestWithParam<const char *> {};

TEST_P(Unknown, FramesAreNotGuessed) {
    const std::string what = GetParam();
    Film film(GPS_FRAMES_LATEST, what != "gone");
    if (what == "short")
        ASSERT_EQ(truncate(film.path().c_str(), 100), 0);
    else if (what == "damaged")
        write_file(film.path(), std::string(sizeof(gps_frames_file), 'x'));
    else if (what == "another's") {
        Film other(GPS_FRAMES_EACH);
        write_file(film.path(), read_file(other.path()));
    }
    const char *why = what == "gone" ? "their file is gone" : "their file is damaged";
    const std::string text = film.said({"show", "film"});
    EXPECT_EQ(line_of(text, "  frames "),
              "frames latest, 3 slots; nothing is known of them: " + std::string(why));
    EXPECT_LACKS(text, "published");
    EXPECT_HAS(line_of(film.said({"ls"}), " latest "), " latest 3 ? ? ? ? ?");
    const Json all = film.json({"ls", "--json"});
    EXPECT_EQ(all[0]["frames"]["newest"].kind, Json::Null);
    EXPECT_EQ(all[0]["frames"]["readers"].size(), 0u);
    EXPECT_HAS(film.said({"top", "--once"}), why);
    EXPECT_LACKS(film.said({"metrics"}), "gpushare_frames");
}

INSTANTIATE_TEST_SUITE_P(FrameView, Unknown,
                         testing::Values("gone", "short", "damaged", "another's"),
                         [](const auto &file) {
                             const std::string name = file.param;
                             return name == "another's" ? std::string("anothers") : name;
                         });

// --- top and metrics ---

TEST_F(FrameViewOfAFilm, TopHasALineForEachProcess) {
    Peer viewer(shared, "viewer", {{record.id}});
    reads(viewer.owner);
    const std::string text = said({"top", "--once"});
    EXPECT_HAS(text, ": saved 0 B\n"); // each has memory of its own
    const std::string part = text.substr(text.find("FRAMES OF"));
    EXPECT_HAS(line_of(part, "film "), "film 5 0.0 0.0 ",
               " ms 0 camera " + pid_text(camera.owner) + " writes");
    EXPECT_HAS(line_of(part, "viewer "), "4 0.0 0.0 ",
               " ms 6 viewer " + pid_text(viewer.owner) + " reads");
    expect_to_fit(on_terminal(80, {tool_path(), "top", "--once"}, shared.environment()), 80);
}

TEST_F(FrameViewOfAFilm, TopCountsThemASecond) {
    std::atomic<bool> over{false};
    std::thread writes([&] {
        for (; !over; usleep(10000)) {
            writer.newest += 2;
            writer.left_out++;
            put();
        }
    });
    const Json usage = json({"top", "--once", "--json"});
    over = true;
    writes.join();
    const Json &frames = usage["regions"][0]["frames"];
    const double rate = frames["frames_per_second"].number;
    EXPECT_GT(rate, 4);
    EXPECT_LT(rate, 201);
    EXPECT_NEAR(frames["left_out_per_second"].number, rate / 2, 10);
}

TEST_F(FrameViewOfAFilm, MetricsHaveCountersAndAges) {
    Peer viewer(shared, "viewer");
    reads(viewer.owner);
    const std::string text = said({"metrics"});
    EXPECT_HAS(text, "\n# TYPE gpushare_frames gauge\n", ",region=\"film\"} 5\n",
               "\ngpushare_frames_left_out{", "\ngpushare_frames_late{", "\ngpushare_frames_odd{",
               "\n# UNIT gpushare_frames_age_seconds seconds\n");
    EXPECT_HAS(line_of(text, "gpushare_frames_age_seconds{"), ",region=\"film\"} 0.");
    const std::string who = ",region=\"film\",command=\"viewer\",pid=\"" + pid_text(viewer.owner) +
                            "\",pid_namespace=\"" + std::to_string(viewer.owner.pid_ns) + "\"} ";
    EXPECT_HAS(line_of(text, "gpushare_frame_reader_frames{"), who + "1");
    EXPECT_HAS(line_of(text, "gpushare_frame_reader_left_out{"), who + "3");
    EXPECT_HAS(line_of(text, "gpushare_frame_reader_late{"), who + "6");
    EXPECT_HAS(line_of(text, "gpushare_frame_reader_age_seconds{"), who + "0.");
}

TEST_F(FrameViewOfAFilm, WithoutAFrameThereIsNoAge) {
    writer.newest = 0;
    put();
    EXPECT_LACKS(said({"metrics"}), "gpushare_frames_age_seconds");
    EXPECT_EQ(json({"show", "--json", "film"})[0]["frames"]["age"].kind, Json::Null);
}

} // namespace
