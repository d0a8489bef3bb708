// gpushare top and metrics: whose bytes are whose, what is on the screen, and what others read.
#include "harness.hpp"
#include "json.hpp"
#include "logmaker.hpp"
#include "patience.hpp"

namespace {

constexpr uint64_t MiB = 1 << 20;

size_t count_of(const std::string &text, const std::string &part) {
    size_t count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        count++;
    return count;
}

Json once(const Shared &shared, std::vector<std::string> more = {}, Environment environment = {}) {
    std::vector<std::string> words = {"top", "--once", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    Result result = shared.tool(words, false, environment);
    EXPECT_EQ(result.status, 0) << result.err;
    return Json::parse(result.out);
}

const Json &process(const Json &usage, const gps_owner &owner) {
    for (const Json &one : usage["processes"].elements)
        if (one["pid"].text == pid_text(owner))
            return one;
    throw std::runtime_error("no process " + pid_text(owner));
}

// One region of 64 MiB and its two users.
struct Frames {
    Shared shared;
    Peer producer{shared, "producer"};
    gps_region_record record = shared.region(producer.owner, "frames");
    Peer first{shared, "consumer", {{record.id}}}, second{shared, "viewer", {{record.id}}};
};

// --- accounting ---

struct Top : testing::Test {
    Shared shared;
};

struct TopOfFrames : testing::Test, Frames {};

TEST_F(TopOfFrames, ASharedByteIsSplitAmongItsHolders) {
    Json usage = once(shared);
    for (const Peer *peer : {&producer, &first, &second}) {
        const Json &one = process(usage, peer->owner);
        EXPECT_EQ(one["own"].number, 0);
        EXPECT_EQ(one["shared"].number, 64.0 * MiB);
        EXPECT_NEAR(one["proportional"].number, 64.0 * MiB / 3, 2);
        EXPECT_NEAR(one["saved"].number, 128.0 * MiB / 3, 2);
        EXPECT_EQ(one["regions"].text, "1");
        EXPECT_EQ(one["driver"].kind, Json::Null);
    }
    double sum = 0;
    for (const Json &one : usage["processes"].elements)
        sum += one["proportional"].number;
    EXPECT_EQ(sum, 64.0 * MiB) << "the parts are the whole";
    EXPECT_EQ(usage["total"]["in_use"].number, 64.0 * MiB);
    EXPECT_EQ(usage["total"]["without_sharing"].number, 192.0 * MiB);
    EXPECT_EQ(usage["total"]["saved"].number, 128.0 * MiB);
    EXPECT_EQ(usage["regions"][0]["holders"].size(), 3u);
    EXPECT_EQ(usage["regions"][0]["holders"][0]["command"].text, "producer");
}

TEST_F(Top, MemoryOfOneIsItsOwn) {
    Peer producer(shared, "producer");
    auto record = shared.region(producer.owner, "frames");
    Peer opening(shared, "consumer", {{record.id, 0, GPS_SLOT_INTENT}});
    Json usage = once(shared);
    EXPECT_EQ(process(usage, producer.owner)["own"].number, 64.0 * MiB);
    EXPECT_EQ(usage["processes"].size(), 1u) << "an intent holds nothing";
    EXPECT_EQ(usage["total"]["saved"].number, 0);
}

TEST_F(Top, WhoHasFreedARegionHoldsItNoMore) {
    Peer producer(shared, "producer");
    auto record = shared.region(producer.owner, "frames", 1, GPS_STATE_CLOSING);
    Peer consumer(shared, "consumer", {{record.id}, {record.id, 0x7f1000000000}});
    Json usage = once(shared);
    EXPECT_EQ(process(usage, consumer.owner)["own"].number, 64.0 * MiB) << "opened twice, had once";
    EXPECT_EQ(process(usage, consumer.owner)["saved"].number, 0);
    EXPECT_EQ(process(usage, producer.owner)["proportional"].number, 0);
}

TEST_F(TopOfFrames, MemoryOfTheDeadIsTheirUsers) {
    producer.kill();
    Json usage = once(shared);
    EXPECT_EQ(usage["processes"].size(), 2u);
    EXPECT_EQ(process(usage, second.owner)["proportional"].number, 32.0 * MiB);
    first.kill();
    usage = once(shared);
    EXPECT_EQ(process(usage, second.owner)["own"].number, 64.0 * MiB);
    second.kill();
    usage = once(shared);
    EXPECT_EQ(usage["total"]["in_use"].number, 0);
    EXPECT_EQ(usage["regions"].size(), 0u);
}

TEST_F(Top, AResultThatWaitsForItsImporterIsKept) {
    Peer producer(shared, "producer");
    shared.region(producer.owner, "result", 1, GPS_STATE_FINAL);
    shared.region(producer.owner, "gone", 2, GPS_STATE_FREED);
    Json usage = once(shared);
    EXPECT_EQ(usage["total"]["in_use"].number, 64.0 * MiB);
    EXPECT_EQ(usage["total"]["kept"].number, 64.0 * MiB);
    EXPECT_EQ(usage["total"]["saved"].number, 0);
}

TEST_F(TopOfFrames, ShowHasTheSameFigures) {
    const std::string pid = pid_text(first.owner);
    auto json = Json::parse(shared.tool({"show", "--json", pid}).out);
    EXPECT_EQ(json[0]["memory"]["shared"].number, 64.0 * MiB);
    EXPECT_HAS(shared.tool({"show", pid}).out,
               "  memory     own 0 B, shared 64 MiB, proportional 21.3 MiB\n");
}

// --- what the driver says ---

Environment driver(const std::string &says) {
    return {{"GPUSHARE_TEST_NVML", says},
            {"LD_LIBRARY_PATH",
             std::filesystem::path(tool_path()).parent_path().string() + "/tests/nvml"}};
}

TEST_F(TopOfFrames, TheDriversFigureIsSetRight) {
    const std::string says =
        pid_text(producer.owner) + ":600000000 1:5 " + pid_text(first.owner) + ":500000000";
    Json usage = once(shared, {}, driver(says));
    const Json &exporter = process(usage, producer.owner);
    EXPECT_EQ(exporter["driver"].number, 600000000);
    EXPECT_NEAR(exporter["fair"].number, 600000000 - 128.0 * MiB / 3, 2);
    EXPECT_NEAR(process(usage, first.owner)["fair"].number, 500000000 + 64.0 * MiB / 3, 2);
    EXPECT_EQ(process(usage, second.owner)["fair"].kind, Json::Null);
    const std::string text = shared.tool({"top", "--once"}, false, driver(says)).out;
    EXPECT_HAS(text, "  DRIVER       FAIR  ");
    EXPECT_TRUE(contains(shared.tool({"metrics"}, false, driver(says)).out,
                         "\ngpushare_process_driver_bytes{"));
}

TEST_F(TopOfFrames, WhomTheDriverChargesForTheDeadIsNotGuessed) {
    producer.kill();
    Json usage = once(shared, {}, driver(pid_text(first.owner) + ":500000000"));
    EXPECT_EQ(process(usage, first.owner)["driver"].number, 500000000);
    EXPECT_EQ(process(usage, first.owner)["fair"].kind, Json::Null);
}

// --- text ---

TEST_F(TopOfFrames, TextSaysItAtAGlance) {
    const std::string text = shared.tool({"top", "-1", "--sort=name"}).out;
    const std::string one = pid_text(producer.owner), two = pid_text(first.owner),
                      three = pid_text(second.owner);
    EXPECT_EQ(text.find("In use 64 MiB, without sharing 192 MiB: saved 128 MiB (67 %)\n\n"), 0u)
        << text;
    EXPECT_HAS(text, "  3: producer " + one + ", consumer " + two + ", viewer " + three + "\n");
    EXPECT_LT(text.find("consumer\n"), text.find("producer\n")) << "by name";
    EXPECT_HAS(text, "\nFindings: not looked for; name logs, or set log and ");
    EXPECT_LACKS(text, " \n") << "no trailing blanks";
}

TEST_F(Top, NothingSharedIsSaidPlainly) {
    EXPECT_EQ(shared.tool({"top", "--once"}).out,
              "In use 0 B, without sharing 0 B: saved 0 B\n\n"
              "Findings: not looked for; name logs, or set log and log_format = jsonl\n");
}

TEST_F(Top, SortsByEachKeyAndBackwards) {
    Peer small(shared, "b"), large(shared, "a");
    shared.region(small.owner, "x", 1, GPS_STATE_READY, 2 * MiB);
    shared.region(large.owner, "y", 2, GPS_STATE_READY, 8 * MiB);
    for (const char *key : {"proportional", "own", "name"})
        EXPECT_EQ(once(shared, {"--sort", key})["processes"][0]["command"].text, "a") << key;
    for (const char *key : {"shared", "saved", "driver", "pid"})
        EXPECT_EQ(once(shared, {"--sort", key})["processes"][0]["command"].text, "b") << key;
    EXPECT_EQ(once(shared, {"--sort=own", "-r"})["processes"][0]["command"].text, "b");
}

TEST_F(Top, OptionsAreChecked) {
    EXPECT_EQ(shared.tool({"top", "--once", "--sort=size"}).err,
              "gpushare: top: --sort 'size' is no key; allowed: proportional, own, shared, saved, "
              "driver, name, pid\n");
    for (const char *bad : {"x", "0", "-1", "0.01", "3601", "nan", ""}) {
        Result result = shared.tool({"top", "--once", std::string("--delay=") + bad});
        EXPECT_EQ(result.status, 2) << bad;
        EXPECT_HAS(result.err, "is no time; allowed: 0.1 to 3600 seconds") << bad;
    }
    for (const char *good : {"1", "0.5", "500ms", "1min"})
        EXPECT_EQ(shared.tool({"top", "--once", "-d", good}).status, 0) << good;
    EXPECT_EQ(shared.tool({"top", "--json"}).status, 2);
}

// --- findings ---

TEST_F(Top, LevelsOfOneFindingAreCountedApart) {
    Temporary logs;
    LogLine few, many;
    few.finding = many.finding = "leak-open";
    few.level = "info";
    many.level = "warning";
    many.count = 9;
    logs.file("a.jsonl", many.text() + few.text() + few.text());
    const Json counts = once(shared, {logs.path})["findings"]["counts"];
    ASSERT_EQ(counts.size(), 2u);
    EXPECT_EQ(counts[0]["level"].text, "info");
    EXPECT_EQ(counts[0]["count"].text, "2");
    EXPECT_EQ(counts[1]["level"].text, "warning");
    EXPECT_EQ(counts[1]["count"].text, "9");
}

TEST_F(Top, FindingsComeFromTheLogsThatAreNamed) {
    Temporary logs;
    LogLine leak, first, repeats;
    leak.second = 9;
    leak.finding = "leak-open";
    leak.level = "info";
    first.second = 5;
    first.name = "frames";
    repeats.second = 8;
    repeats.count = 3;
    logs.file("a.jsonl", leak.text());
    logs.file("b.jsonl", first.text() + "no line of a log\n" + repeats.text() + "{\"ts\":\"2026");
    Json findings = once(shared, {logs.path})["findings"];
    EXPECT_EQ(findings["logs"].text, "2");
    ASSERT_EQ(findings["counts"].size(), 2u);
    EXPECT_EQ(findings["counts"][0]["finding"].text, "double-free");
    EXPECT_EQ(findings["counts"][0]["count"].text, "4");
    ASSERT_EQ(findings["latest"].size(), 3u);
    EXPECT_EQ(findings["latest"][0]["finding"].text, "leak-open") << "the last first";
    EXPECT_EQ(findings["latest"][2]["name"].text, "frames");
    const std::string text = shared.tool({"top", "--once", logs.path + "/b.jsonl"}).out;
    EXPECT_HAS(text, "\nFindings: 4 errors\n");
    Result missing = shared.tool({"top", "--once", logs.path + "/none"});
    EXPECT_ERR_HAS(missing, 1, "/none': No such file or directory");
}

TEST_F(Top, WithoutNamesTheConfiguredLogsAreRead) {
    Temporary logs;
    LogLine line;
    logs.file("[odd]app.77.log", line.text());
    const Environment configured = {{"GPUSHARE_CONFIG", "/dev/null"},
                                    {"GPUSHARE_LOG", logs.path + "/[odd]%c.%p.log"},
                                    {"GPUSHARE_LOG_FORMAT", "jsonl"}};
    EXPECT_EQ(once(shared, {}, configured)["findings"]["latest"].size(), 1u);
    EXPECT_HAS(shared.tool({"metrics"}, false, configured).out,
               ",finding=\"double-free\",level=\"error\"} 1\n");
    EXPECT_HAS(shared.tool({"top", "-1"}, false, {{"GPUSHARE_LOG", logs.path + "/%p"}}).out,
               "Findings: not looked for");
}

TEST_F(Top, ForeignTextDoesNoHarm) {
    Temporary logs;
    LogLine line;
    line.command = "a\\u001B[31m\\\"b\\\\\\nc";
    line.finding = "new\\u0007\\\"one";
    logs.file("a.jsonl", line.text());
    const std::string text = shared.tool({"top", "--once", logs.path}).out;
    EXPECT_HAS(text, "a?[31m\"b\\?c 100");
    EXPECT_HAS(shared.tool({"top", "--once", "--json", logs.path}).out,
               "\"command\": \"a\\u001B[31m\\\"b\\\\\\nc\"");
    EXPECT_HAS(shared.tool({"metrics", logs.path}).out, ",finding=\"new?\\\"one\",");
}

// --- metrics ---

TEST(Metrics, RegionsWithoutANameAreOneSeries) {
    Frames frames;
    frames.shared.region(frames.producer.owner, "", 2, GPS_STATE_READY, 4 * MiB);
    frames.shared.region(frames.producer.owner, "", 3, GPS_STATE_READY, 6 * MiB);
    const std::string text = frames.shared.tool({"metrics"}).out;
    EXPECT_EQ(count_of(text, "\ngpushare_region_bytes{"), 2u) << text;
    EXPECT_HAS(text, ",region=\"\"} 10485760\n", ",region=\"frames\"} 67108864\n",
               "\n# TYPE gpushare_region_users gauge\n");
    EXPECT_EQ(count_of(text, "# EOF\n"), 1u);
    EXPECT_EQ(text.substr(text.size() - 6), "# EOF\n");
}

// What cgroups name is tested in tests/unit; here it is that of this process, or nothing.
TEST(Metrics, TellWhatAProcessBelongsTo) {
    Frames frames;
    const std::string cgroups = read_file("/proc/self/cgroup");
    const Json one = process(once(frames.shared), frames.producer.owner);
    const std::string text = frames.shared.tool({"metrics"}).out;
    for (const char *member : {"pod", "container", "slurm_job", "slurm_step"}) {
        const Json &value = one[member];
        EXPECT_EQ(contains(text, "," + std::string(member) + "=\"" + value.text + "\""),
                  value.kind == Json::String);
        if (value.kind == Json::String)
            EXPECT_TRUE(contains(cgroups, value.text.substr(0, 8)));
        else
            EXPECT_EQ(value.kind, Json::Null) << member;
    }
}

TEST(Metrics, LabelsAreEscaped) {
    Temporary parent("/dev/shm");
    const std::string odd = parent.path + "/a\"b\\c\nd";
    EXPECT_TRUE(contains(tool({"metrics"}, {{"GPUSHARE_DIR", odd}}).out,
                         "{directory=\"" + parent.path + "/a\\\"b\\\\c?d/default\",version="));
}

TEST(Metrics, TheKeeperWritesThemAndTakesThemAway) {
    Shared shared;
    Temporary place;
    const std::string file = place.path + "/x.prom";
    Peer producer(shared, "producer");
    shared.region(producer.owner, "frames");
    pid_t keeper = fork();
    if (keeper == 0) {
        setenv("GPUSHARE_DIR", shared.root.path.c_str(), 1);
        execl(tool_path().c_str(), "gpushare", "keeper", "--metrics", file.c_str(), "--every",
              "100ms", nullptr);
        _exit(99);
    }
    EXPECT_TRUE(
        eventually([&] { return contains(read_file(file), "region=\"frames\"} 67108864"); }));
    producer.kill();
    EXPECT_TRUE(eventually([&] { return !contains(read_file(file), "\"frames\""); }));
    kill(keeper, SIGTERM);
    int status = -1;
    waitpid(keeper, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(std::filesystem::is_empty(place.path));
    for (const char *bad : {"--every=1s", "--every=x", "--metrics=/no/folder/x"})
        EXPECT_EQ(shared.tool({"keeper", "--idle=1s", bad}).status, 2) << bad;
}

// --- the screen, in a real terminal ---

class Terminal {
  public:
    Terminal(const Shared &shared, int width, int height, const std::string &arguments = "",
             const Environment &more = {}) {
        std::string line = "trap '' HUP; env -u LD_PRELOAD GPUSHARE_DIR=" + shared.root.path + " ";
        for (const auto &[name, value] : more)
            line += name + "='" + value + "' ";
        line += "sh -c 'echo $$ >" + note() + "; exec \"$@\"' - " + tool_path() + " top -d 0.1 " +
                arguments + "; echo status $?; exec sleep 1000";
        tmux({"-f", "/dev/null", "new-session", "-d", "-x", std::to_string(width), "-y",
              std::to_string(height), line});
    }
    ~Terminal() {
        tmux({"kill-server"});
    }
    int pid() const {
        EXPECT_TRUE(eventually([&] { return !read_file(note()).empty(); }));
        return std::stoi(read_file(note()));
    }
    std::string screen() {
        return tmux({"capture-pane", "-p"});
    }
    void keys(const std::string &keys) {
        tmux({"send-keys", keys});
    }
    void resize(int width, int height) {
        tmux({"resize-window", "-x", std::to_string(width), "-y", std::to_string(height)});
    }
    bool shows(const std::string &text) {
        return eventually([&] { return contains(screen(), text); });
    }
    bool hides(const std::string &text) {
        return eventually([&] { return !contains(screen(), text); });
    }

  private:
    std::string note() const {
        return place.path + "/pid";
    }
    std::string tmux(std::vector<std::string> words) {
        words.insert(words.begin(), {"tmux", "-S", place.path + "/socket"});
        return command(words, {{"LC_ALL", "C.UTF-8"}, {"TERM", "xterm"}}).out;
    }
    Temporary place;
};

size_t widest(const std::string &text) {
    size_t widest = 0, width = 0;
    for (char c : text) {
        width = c == '\n' ? 0 : width + ((c & 0xc0) != 0x80);
        widest = std::max(widest, width);
    }
    return widest;
}

using TopScreenOfFrames = TopOfFrames;

TEST_F(TopScreenOfFrames, ShowsProcessesAndRegionsAndLeavesWithQ) {
    Terminal terminal(shared, 80, 24);
    EXPECT_TRUE(terminal.shows("3: producer " + pid_text(producer.owner))) << terminal.screen();
    const std::string screen = terminal.screen();
    EXPECT_HAS(screen, "In use 64 MiB, without sharing 192 MiB: saved 128 MiB (67 %)\n");
    EXPECT_HAS(screen, "SHARED      PROP     SAVED  COMMAND\n");
    EXPECT_HAS(screen, "? help  q quit  sort: p proportional o own s shared v saved n name i pid");
    EXPECT_LE(widest(screen), 80u);
    terminal.keys("q");
    EXPECT_TRUE(terminal.shows("status 0")) << terminal.screen();
}

TEST_F(TopScreenOfFrames, AWideOneHasMore) {
    Terminal terminal(shared, 200, 50);
    EXPECT_TRUE(terminal.shows("PROPORTIONAL     SAVED  REGIONS  BLOCKS  GPU           COMMAND"))
        << terminal.screen();
    EXPECT_TRUE(terminal.shows(", viewer " + pid_text(second.owner)));
}

TEST_F(TopScreenOfFrames, FollowsWhatHappens) {
    Terminal terminal(shared, 80, 24);
    EXPECT_TRUE(terminal.shows("viewer"));
    second.kill();
    EXPECT_TRUE(terminal.hides("viewer")) << terminal.screen();
    Peer late(shared, "late", {{record.id}});
    EXPECT_TRUE(terminal.shows("  late")) << terminal.screen();
}

TEST_F(TopScreenOfFrames, KeysSort) {
    Terminal terminal(shared, 80, 24);
    EXPECT_TRUE(terminal.shows("viewer"));
    const auto before = [&](const char *one, const char *other) {
        const std::string screen = terminal.screen();
        return screen.find(one) < screen.find(other);
    };
    terminal.keys("n");
    EXPECT_TRUE(eventually([&] { return before("consumer\n", "producer\n"); }))
        << terminal.screen();
    terminal.keys("r");
    EXPECT_TRUE(eventually([&] { return before("viewer\n", "producer\n"); })) << terminal.screen();
    terminal.keys("r");
    EXPECT_TRUE(eventually([&] { return before("consumer\n", "producer\n"); }))
        << terminal.screen();
    terminal.keys("p");
    EXPECT_TRUE(eventually([&] { return before("producer\n", "consumer\n"); }))
        << terminal.screen();
    terminal.keys("+");
    EXPECT_TRUE(terminal.shows("every 200 ms")) << terminal.screen();
}

struct TopWidths : testing::TestWithParam<int>, Frames {};

TEST_P(TopWidths, HelpExplainsTheKeys) {
    Terminal terminal(shared, GetParam(), 24);
    EXPECT_TRUE(terminal.shows("viewer"));
    terminal.keys("?");
    EXPECT_TRUE(terminal.shows("show only rows with a text in them\n")) << terminal.screen();
    EXPECT_TRUE(terminal.shows("  q              quit\n")) << terminal.screen();
    EXPECT_LACKS(terminal.screen(), "viewer");
    terminal.keys("Escape");
    EXPECT_TRUE(terminal.shows("viewer")) << terminal.screen();
}

TEST_P(TopWidths, AFilterLeavesRowsOut) {
    shared.region(producer.owner, "other", 9);
    Terminal terminal(shared, GetParam(), 24);
    EXPECT_TRUE(terminal.shows("consumer\n"));
    terminal.keys("/");
    EXPECT_TRUE(terminal.shows("Filter: _  5 of 5 rows (enter keeps it, esc ends it)\n"))
        << terminal.screen();
    terminal.keys("VIEWQ");
    EXPECT_TRUE(terminal.shows("Filter: VIEWQ_  0 of 5 rows")) << "q is a letter here";
    terminal.keys("BSpace");
    terminal.keys("Enter");
    EXPECT_TRUE(terminal.shows("Filter: VIEW  2 of 5 rows (esc ends it)\n")) << terminal.screen();
    EXPECT_TRUE(terminal.hides("consumer\n")) << terminal.screen();
    EXPECT_TRUE(terminal.hides("other")) << terminal.screen();
    EXPECT_TRUE(terminal.shows("viewer\n")) << terminal.screen();
    terminal.keys("Escape");
    EXPECT_TRUE(terminal.shows("consumer\n")) << terminal.screen();
    EXPECT_TRUE(terminal.hides("Filter")) << terminal.screen();
}

TEST_P(TopWidths, EnterTellsWhatShowSays) {
    Terminal terminal(shared, GetParam(), 24);
    EXPECT_TRUE(terminal.shows("viewer"));
    EXPECT_TRUE(terminal.shows(" r turn")) << terminal.screen();
    terminal.keys("Enter"); // nothing is chosen yet: the first
    EXPECT_TRUE(terminal.shows("Process ")) << terminal.screen();
    terminal.keys("Escape");
    EXPECT_TRUE(terminal.shows("viewer")) << terminal.screen();
    terminal.keys("n");
    EXPECT_TRUE(eventually([&] {
        return terminal.screen().find("consumer\n") < terminal.screen().find("producer\n");
    }));
    terminal.keys("Up");
    terminal.keys("Down");
    terminal.keys("Enter");
    EXPECT_TRUE(terminal.shows("Process producer " + pid_text(producer.owner) + "\n"))
        << terminal.screen();
    EXPECT_TRUE(terminal.shows("  exports    1 region, 64 MiB (67108864 bytes)\n"))
        << terminal.screen();
    terminal.keys("q"); // back, and not away
    EXPECT_TRUE(terminal.shows("viewer")) << terminal.screen();
    terminal.keys("Down");
    terminal.keys("Down");
    terminal.keys("Enter");
    EXPECT_TRUE(terminal.shows("Region frames\n")) << terminal.screen();
    EXPECT_TRUE(terminal.shows("esc back")) << terminal.screen();
}

INSTANTIATE_TEST_SUITE_P(Columns, TopWidths, testing::Values(80, 200));

TEST_F(TopScreenOfFrames, WhatDoesNotFitIsMarkedAndCanBeReached) {
    shared.region(producer.owner, std::string(120, 'x'), 9);
    std::vector<std::unique_ptr<Peer>> more;
    for (int i = 0; i < 6; i++)
        more.push_back(std::make_unique<Peer>(shared, "app", std::vector<Hold>{{record.id}}));
    Terminal terminal(shared, 60, 12);
    EXPECT_TRUE(terminal.shows("lines below (arrow keys)")) << terminal.screen();
    terminal.keys("End");
    EXPECT_TRUE(terminal.shows("lines above")) << terminal.screen();
    EXPECT_TRUE(terminal.shows(std::string(23, 'x') + "\u2026 ")) << terminal.screen();
    EXPECT_TRUE(terminal.shows("\u2026\n"));
    EXPECT_LE(widest(terminal.screen()), 60u);
    terminal.resize(150, 40);
    EXPECT_TRUE(terminal.shows("PROPORTIONAL")) << terminal.screen();
    EXPECT_TRUE(terminal.shows(std::string(120, 'x'))) << terminal.screen();
    terminal.keys("q");
    EXPECT_TRUE(terminal.shows("status 0"));
}

TEST_F(TopScreenOfFrames, ATinyOneIsNoTrouble) {
    Terminal terminal(shared, 12, 3);
    EXPECT_TRUE(terminal.shows("gpushare to")) << terminal.screen();
    for (int height : {1, 2, 4, 5, 9}) {
        terminal.resize(20, height);
        EXPECT_TRUE(terminal.shows("\u2026")) << height << terminal.screen();
    }
    terminal.resize(80, 24);
    EXPECT_TRUE(terminal.shows("consumer\n")) << terminal.screen();
    terminal.keys("q");
    EXPECT_TRUE(terminal.shows("status 0"));
}

TEST(TopScreen, FindingsAppearAsTheyHappen) {
    Shared shared;
    Temporary logs;
    LogLine first, second;
    logs.file("a.jsonl", first.text());
    Terminal terminal(shared, 80, 24, logs.path);
    EXPECT_TRUE(terminal.shows("Findings: 1 error\n")) << terminal.screen();
    second.finding = "leak-open";
    second.level = "warning";
    second.second = 2;
    write_file(logs.path + "/b.jsonl", second.text());
    EXPECT_TRUE(terminal.shows("Findings: 1 error, 1 warning\n")) << terminal.screen();
    EXPECT_TRUE(terminal.shows("02:34:02  leak-open    cudaFree      1  app 100"))
        << terminal.screen();
}

TEST(TopScreen, ForeignTextStaysInItsPlace) {
    Shared shared;
    Temporary logs;
    LogLine line;
    line.command = "a\\u001b[31m\\nb";
    for (int i = 0; i < 40; i++)
        line.detail += "\u6f22"; // two columns wide
    logs.file("a.jsonl", line.text());
    Terminal terminal(shared, 80, 24, logs.path);
    EXPECT_TRUE(terminal.shows("a?[31m?b 100  \u6f22\u6f22")) << terminal.screen();
    EXPECT_TRUE(terminal.shows("\u6f22\u2026\n? help  q quit")) << terminal.screen();
}

TEST_F(TopScreenOfFrames, TroubleIsToldInIt) {
    Terminal terminal(shared, 120, 24);
    EXPECT_TRUE(terminal.shows("viewer"));
    write_file(std::string(shared.store.path) + "/procs/1.2.3.00000000000000ff", "nonsense");
    EXPECT_TRUE(terminal.shows("gpushare: top: warning: ")) << terminal.screen();
    EXPECT_TRUE(terminal.shows("viewer")) << terminal.screen();
}

TEST_F(TopScreenOfFrames, ADirectoryThatCannotBeReadIsToldWhole) {
    chmod(shared.root.path.c_str(), 0755);
    Terminal terminal(shared, 80, 24);
    EXPECT_TRUE(terminal.shows("chmod 700")) << terminal.screen();
    EXPECT_LACKS(terminal.screen(), "No process");
    chmod(shared.root.path.c_str(), 0700);
    EXPECT_TRUE(terminal.shows("viewer")) << terminal.screen();
}

TEST(TopScreen, ATerminalWithoutAScreenIsRefused) {
    Shared shared;
    for (const char *kind : {"dumb", "", "no-such-terminal"}) {
        Terminal terminal(shared, 200, 8, "", {{"TERM", kind}});
        EXPECT_TRUE(terminal.shows("use --once")) << kind << terminal.screen();
        EXPECT_TRUE(terminal.shows("status 1")) << kind << terminal.screen();
    }
    EXPECT_HAS(shared.tool({"top"}).err, "needs a terminal for input and output");
    EXPECT_EQ(shared.tool({"top"}).status, 1);
}

TEST_F(TopScreenOfFrames, EndsWithItsTerminalEvenIfItIsNotToldSo) {
    int pid;
    {
        Terminal terminal(shared, 80, 24); // SIGHUP is ignored
        EXPECT_TRUE(terminal.shows("viewer"));
        pid = terminal.pid();
        EXPECT_EQ(kill(pid, 0), 0);
    }
    EXPECT_TRUE(eventually([&] { return kill(pid, 0) != 0; }));
}

} // namespace
