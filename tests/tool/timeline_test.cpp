// gpushare timeline: what the reader makes of event logs, what it skips, and what Perfetto gets.
// tests/systems/browser looks at the page itself.
#include <cmath>

#include "harness.hpp"
#include "json.hpp"
#include "logmaker.hpp"

namespace fs = std::filesystem;

namespace {

const std::string FRAMES = "00112233445566778899aabbccddeeff";

// A line of an event log; `more` are further members.
std::string event(int micro, const std::string &what, int pid, const std::string &more = "",
                  long ns = 4026531836) {
    char ts[32];
    snprintf(ts, sizeof(ts), "2026-11-21T02:34:01.%06dZ", micro);
    char image[32];
    snprintf(image, sizeof(image), "%016lx", pid ^ ns);
    return "{\"ts\":" + quoted(ts) + ",\"event\":" + quoted(what) +
           ",\"pid\":" + std::to_string(pid) + ",\"pid_ns\":" + std::to_string(ns) +
           ",\"process\":" + quoted(image) + ",\"command\":\"app\"" + more + "}\n";
}

std::string of(const std::string &how = "", const std::string &region = FRAMES) {
    return ",\"region\":" + quoted(region) + ",\"name\":\"frames\",\"size\":4096" +
           (how.empty() ? "" : ",\"how\":" + quoted(how));
}

class Timeline : public testing::Test {
  protected:
    Result timeline(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), "timeline");
        return tool(arguments);
    }
    // The history that is in the page.
    Json page(const std::vector<std::string> &logs) {
        const Result result = timeline(logs);
        EXPECT_EQ(result.status, 0) << result.err;
        const std::string mark = "type=\"application/json\">";
        const size_t from = result.out.find(mark) + mark.size();
        return Json::parse(result.out.substr(from, result.out.find("</script>", from) - from));
    }

    Temporary place;
};

double number(const Json &json) {
    return json.number;
}

} // namespace

TEST_F(Timeline, FollowsARegionFromItsExportToItsLastClose) {
    const std::string one =
        place.file("one", event(10, "created", 1, of()) + event(20, "exported", 1, of("rule")) +
                              event(40, "freed", 1, of("deferred")) +
                              event(60, "freed", 1, of("late")) + event(90, "ended", 1));
    const std::string two =
        place.file("two", event(30, "opened", 2, of("rule")) + event(50, "closed", 2, of("rule")));
    for (const auto &logs : {std::vector{one, two}, std::vector{two, one}}) {
        const Json history = page(logs);
        ASSERT_EQ(history["lifetimes"].size(), 1u);
        const Json &lifetime = history["lifetimes"][0];
        EXPECT_EQ(number(lifetime[2]), 4096);
        EXPECT_EQ(number(lifetime[3]), 0) << "created";
        EXPECT_EQ(number(lifetime[4]), 10) << "exported";
        EXPECT_EQ(number(lifetime[5]), 30) << "freed";
        EXPECT_EQ(number(lifetime[6]), 50) << "gone";
        EXPECT_EQ(lifetime[7].text, "deferred");
        ASSERT_EQ(history["holds"].size(), 1u);
        EXPECT_EQ(number(history["holds"][0][2]), 20);
        EXPECT_EQ(number(history["holds"][0][3]), 40);
        EXPECT_EQ(number(history["events"]), 7);
        ASSERT_EQ(history["steps"].size(), 4u);
        EXPECT_EQ(number(history["steps"][1][1]), 4096) << "in use";
        EXPECT_EQ(number(history["steps"][1][2]), 8192) << "without sharing";
        EXPECT_EQ(number(history["steps"][3][2]), 0) << "in the end nothing is left";
    }
}

TEST_F(Timeline, AnEndClosesWhatAProcessHasOpen) {
    const Json history = page(
        {place.file("log", event(10, "exported", 1, of("program")) +
                               event(20, "opened", 2, of("program")) + event(30, "ended", 2) +
                               event(40, "exported", 1, of("program", "ff" + FRAMES.substr(2))))});
    EXPECT_EQ(number(history["holds"][0][3]), 20);
    EXPECT_EQ(number(history["lifetimes"][0][6]), -1) << "its exporter may have been killed";
    EXPECT_EQ(history["regions"].size(), 1u) << "one name, one lane";
    EXPECT_EQ(history["lifetimes"].size(), 2u);
}

TEST_F(Timeline, AStaleHandleHoldsNothing) {
    const Json history = page({place.file(
        "log", event(10, "exported", 1, of("program")) + event(20, "freed", 1, of("now")) +
                   event(30, "opened", 2, of("program")) + event(40, "closed", 2, of("program")))});
    EXPECT_EQ(number(history["lifetimes"][0][6]), 10);
    EXPECT_EQ(history["steps"].size(), 2u);
}

TEST_F(Timeline, AHandleThatIsUsedAgainIsAnotherLife) {
    std::string text;
    for (int i = 0; i < 3; i++)
        text += event(100 * i + 10, "exported", 1, of("program")) +
                event(100 * i + 20, "freed", 1, of("now"));
    const Json history = page({place.file("log", text)});
    ASSERT_EQ(history["lifetimes"].size(), 3u);
    EXPECT_EQ(number(history["lifetimes"][2][4]), 200);
}

TEST_F(Timeline, MergedBytesAreInUseOnce) {
    const Json history =
        page({place.file("log", event(10, "merged", 1, ",\"size\":100") +
                                    event(20, "merged", 2, ",\"size\":100,\"saved\":100") +
                                    event(30, "unmerged", 2, ",\"size\":40") +
                                    event(40, "ended", 1) + event(50, "ended", 2))});
    const Json &steps = history["steps"];
    ASSERT_EQ(steps.size(), 5u);
    EXPECT_EQ(number(steps[1][1]), 100);
    EXPECT_EQ(number(steps[1][2]), 200);
    EXPECT_EQ(number(steps[2][1]), 100);
    EXPECT_EQ(number(steps[2][2]), 160);
    EXPECT_EQ(number(steps[4][1]), 0);
    EXPECT_EQ(number(steps[4][2]), 0);
}

TEST_F(Timeline, MergedBytesOfAProcessAreBars) {
    const Json history =
        page({place.file("log", event(10, "merged", 1, ",\"size\":100") +
                                    event(20, "merged", 2, ",\"size\":100,\"saved\":100") +
                                    event(30, "unmerged", 2, ",\"size\":40") +
                                    event(40, "ended", 2) + event(50, "exported", 1, of("rule")))});
    const Json &merges = history["merges"];
    ASSERT_EQ(merges.size(), 3u);
    const double want[3][4] = {{0, 0, -1, 100}, {1, 10, 20, 100}, {1, 20, 30, 60}};
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 4; j++)
            EXPECT_EQ(number(merges[i][j]), want[i][j]) << i << " " << j;
}

// Two lines in a row, one after a pause, and those of the reader.
std::string whole_frames() {
    const auto frames = [](int micro, int pid, const std::string &how, int count,
                           const std::string &more = "") {
        return event(micro, "frames", pid,
                     ",\"region\":" + quoted(FRAMES) + ",\"name\":\"frames\",\"ns\":100000000" +
                         ",\"how\":" + quoted(how) + ",\"count\":" + std::to_string(count) + more);
    };
    return event(10, "exported", 1, of("rule")) + event(20, "opened", 2, of("rule")) +
           frames(100020, 1, "writer", 6) + frames(200010, 1, "writer", 5, ",\"left_out\":2") +
           frames(200020, 2, "reader", 4) + frames(900000, 1, "writer", 3);
}

TEST_F(Timeline, WholeFramesAreBarsWithTheirNumber) {
    const Json history = page({place.file("log", whole_frames())});
    const Json &frames = history["frames"];
    ASSERT_EQ(frames.size(), 4u);
    const double want[4][6] = {{0, 0, 10, 100010, 6, 0},
                               {0, 0, 100010, 200000, 5, 2},
                               {1, 0, 100010, 200010, 4, 0},
                               {0, 0, 799990, 899990, 3, 0}};
    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < 6; j++)
            EXPECT_EQ(number(frames[i][j]), want[i][j]) << i << " " << j;
        EXPECT_EQ(frames[i][6].truth, i != 2) << "whether it writes";
    }
    EXPECT_EQ(history["steps"].size(), 2u) << "they hold no memory";
}

TEST_F(Timeline, WholeFramesAreCountersInPerfetto) {
    const Result result = timeline({"--perfetto", place.file("log", whole_frames())});
    EXPECT_EQ(result.status, 0) << result.err;
    const Result valid =
        command({"python3", "-m", "jsonschema", "-i", place.file("trace.json", result.out),
                 "tests/tool/trace_event.schema.json"});
    EXPECT_EQ(valid.status, 0) << valid.out << valid.err;
    std::map<std::string, std::vector<double>> rates;
    const Json trace = Json::parse(result.out);
    for (const Json &each : trace["traceEvents"].elements)
        if (contains(each["name"].text, "frames a second"))
            rates[each["name"].text].push_back(std::round(each["args"]["frames"].number));
    EXPECT_EQ(rates["frames a second, frames, published"], (std::vector<double>{60, 50, 0, 30, 0}));
    EXPECT_EQ(rates["frames a second, frames, read"], (std::vector<double>{40, 0}));
}

TEST_F(Timeline, AnExportersEndEndsNoMemoryThatIsOpenElsewhere) {
    const Json history =
        page({place.file("log", event(10, "exported", 1, of("rule")) +
                                    event(20, "opened", 2, of("rule")) + event(30, "ended", 1) +
                                    event(40, "opened", 2, of("rule", "ff" + FRAMES.substr(2))))});
    EXPECT_EQ(number(history["lifetimes"][0][6]), -1);
}

// With keep the free leaves the memory to who has it open or opens it later.
TEST_F(Timeline, FreedMemoryIsInUseWhileAnImporterGoesOn) {
    const std::string began =
        event(10, "exported", 1, of("rule")) + event(20, "opened", 2, of("rule"));
    const auto freed = [&](const std::string &how) {
        return page({place.file(
            "log", began + event(30, "freed", 1, of(how)) + event(40, "ended", 1) +
                       event(50, "opened", 3, of("rule")) + event(60, "closed", 3, of("rule")))});
    };
    for (const char *how : {"kept", "deferred", "now"}) {
        const Json history = freed(how), &steps = history["steps"];
        const bool stays = how != std::string("now");
        EXPECT_EQ(number(history["lifetimes"][0][5]), 20) << how;
        EXPECT_EQ(number(history["lifetimes"][0][6]), stays ? -1 : 20) << how;
        ASSERT_GE(steps.size(), 1u);
        EXPECT_EQ(number(steps[steps.size() - 1][1]), stays ? 4096 : 0) << how;
    }
}

TEST_F(Timeline, KeptMemoryIsThereForALaterOpen) {
    const Json history = page({place.file(
        "log", event(10, "exported", 1, of("rule")) + event(20, "freed", 1, of("kept")) +
                   event(30, "ended", 1) + event(40, "opened", 2, of("rule")) +
                   event(50, "closed", 2, of("rule")) + event(60, "ended", 2))});
    EXPECT_EQ(number(history["lifetimes"][0][6]), 40);
}

TEST_F(Timeline, ArgumentsTellProgramsApart) {
    const Json history =
        page({place.file("log", event(10, "began", 1, ",\"arguments\":\"--gpu 1\"") +
                                    event(20, "exported", 1, of("rule")))});
    EXPECT_EQ(history["processes"][0][6].text, "--gpu 1");
}

TEST_F(Timeline, ALogThatCannotBeReadHidesNoOther) {
    const std::string log = place.file("log", event(10, "exported", 1, of("rule"))),
                      none = place.path + "/none";
    for (const auto &logs : {std::vector<std::string>{none, log}, {log, none}}) {
        const Result result = timeline(logs);
        EXPECT_EQ(result.status, 3);
        EXPECT_EQ(result.err,
                  "gpushare: timeline: cannot read '" + none + "': No such file or directory\n");
        EXPECT_HAS(result.out, "\"frames\"") << result.out.size();
    }
}

// Each line has all that there is of it on a GPU.
TEST_F(Timeline, MemoryOfCuMemCreateIsInUseAndItsProcesss) {
    const std::string first = ",\"device\":\"GPU-1\"", second = ",\"device\":\"GPU-2\"";
    const Json history =
        page({place.file("log", event(10, "made", 1, first + ",\"size\":100") +
                                    event(20, "made", 1, second + ",\"size\":50") +
                                    event(30, "made", 1, first + ",\"size\":30") +
                                    event(40, "made", 1, first) + event(50, "ended", 1))});
    const Json &steps = history["steps"];
    const int used[] = {100, 150, 80, 50, 0};
    ASSERT_EQ(steps.size(), 5u);
    for (size_t i = 0; i < 5; i++)
        EXPECT_EQ(number(steps[i][1]), used[i]) << i;
    EXPECT_EQ(number(history["processes"][0][7]), 150);
}

TEST_F(Timeline, MemoryOfATokenCountsAsMadeAlone) {
    const Json history = page({place.file(
        "log", event(10, "made", 1, ",\"device\":\"GPU-1\",\"size\":4096") +
                   event(20, "exported", 1, of("token")) + event(30, "opened", 2, of("program")) +
                   event(40, "closed", 2, of("program")) + event(50, "freed", 1, of()))});
    EXPECT_EQ(history["lifetimes"].size(), 1u);
    EXPECT_EQ(history["holds"].size(), 1u);
    ASSERT_EQ(history["steps"].size(), 1u);
    EXPECT_EQ(number(history["steps"][0][1]), 4096);
}

TEST_F(Timeline, AFindingCountsOnceAndHasItsReport) {
    LogLine line;
    line.pid = 1;
    line.micro = 15;
    line.stack = frame("/no/such/app", "0x100", "abcdef");
    const std::string log = place.file("log", line.text());
    const std::string events = place.file(
        "events", event(15, "finding", 1, ",\"finding\":\"double-free\",\"level\":\"error\""));
    const Json alone = page({events}), both = page({events, log});
    ASSERT_EQ(alone["marks"].size(), 1u);
    EXPECT_EQ(number(alone["marks"][0][7]), -1);
    EXPECT_EQ(alone["findings"].size(), 1u) << "what it means is known without its report";
    ASSERT_EQ(both["marks"].size(), 1u);
    EXPECT_EQ(number(both["marks"][0][7]), 0);
    EXPECT_HAS(both["reports"][0].text, "double-free in cudaFree, by app (pid 1)");
}

TEST_F(Timeline, SaysOnceThatItCannotBeWritten) {
    const std::string log = place.file("log", event(10, "exported", 1, of("program")));
    const Result full =
        command({"sh", "-c", "\"$0\" timeline \"$1\" >/dev/full", tool_path(), log});
    EXPECT_ERR(full, 1, "gpushare: timeline: cannot write the output: No space left on device\n");
    EXPECT_HAS(timeline({"-o", "/dev/full", log}).err, "cannot write '/dev/full': ");
}

TEST_F(Timeline, SaysWhatItHasWritten) {
    const std::string log = place.file("log", event(10, "exported", 1, of("program"))),
                      page = place.path + "/page.html";
    EXPECT_EQ(timeline({"-o", page, log}).err, "Wrote " + page + ": open it with a browser.\n");
    EXPECT_EQ(timeline({"--perfetto", "-o", page, log}).err,
              "Wrote " + page + ": open it in ui.perfetto.dev.\n");
    EXPECT_EQ(timeline({log}).err, "");
    const std::string bare = place.file("bare", event(10, "began", 1) + event(20, "ended", 1));
    EXPECT_EQ(timeline({"-o", page, bare}).err,
              "Wrote " + page +
                  ": open it with a browser. No event of a region is in it: rules make regions, "
                  "and merge.\n");
}

TEST_F(Timeline, NoTextOfALogEndsTheData) {
    const std::string text =
        timeline({place.file("log", event(1, "exported", 1,
                                          ",\"region\":\"" + FRAMES +
                                              "\",\"name\":\"</script><b>\",\"size\":1"))})
            .out;
    EXPECT_LACKS(text, "</script><b>");
    EXPECT_HAS(text, "\\u003c/script>\\u003cb>");
}

TEST_F(Timeline, ThePageLoadsNothing) {
    const std::string text = timeline({place.file("log", event(1, "ended", 1))}).out;
    for (const char *way : {"http:", "https:", "src=", "@import", "url(", "fetch(", "import("})
        EXPECT_LACKS(text, way) << way;
}

TEST_F(Timeline, BadLinesAreNamedAndSkipped) {
    const std::string path = place.file(
        "bad", event(1, "exported", 1, of("program")) + "{\"event\":\n" + event(2, "opened", 2) +
                   event(3, "later-than-this-tool", 2) +
                   "{\"event\":\"ended\",\"ts\":\"yesterday\",\"pid\":1,\"process\":\"0\"}\n" +
                   event(4, "opened", 2, of("program").replace(0, 1, ",\"size\":-5,")) +
                   "no log\n" + event(5, "opened", 2, of("program")).substr(0, 50));
    const Result result = timeline({path});
    EXPECT_ERR_HAS(result, 0, path + ":2: not JSON; skipped");
    EXPECT_HAS(result.err, path + ":3: an event of a region without a region");
    EXPECT_LACKS(result.err, path + ":4:") << "of a newer library: " << result.err;
    EXPECT_HAS(result.err, path + ":5: no line of a gpushare event log, for it has no ts",
               path + ":7: not JSON; skipped", path + ":8: cut off");
}

TEST_F(Timeline, ALogWithoutALineHidesNoOther) {
    const std::string log = place.file("log.jsonl", event(1, "exported", 1, of("rule")));
    const std::string empty = place.path + "/killed.jsonl";
    write_file(empty, "");
    const std::string cut = place.file("cut.jsonl", event(2, "opened", 2).substr(0, 40));
    for (const std::vector<std::string> &logs :
         {std::vector<std::string>{empty, log, cut}, std::vector<std::string>{place.path}}) {
        const Result result = timeline(logs);
        EXPECT_ERR_HAS(result, 0, empty + ": empty; ", cut + ":1: cut off");
        EXPECT_EQ(page(logs)["lifetimes"].size(), 1u);
    }
    const Result none = timeline({empty, cut});
    EXPECT_ERR_HAS(none, 1, "there is no event in these logs");
    EXPECT_EQ(none.out, "");
}

TEST_F(Timeline, WithoutEventsItSaysHowToGetSome) {
    const Result result = timeline({place.file("log", LogLine().text())});
    EXPECT_ERR_HAS(result, 1, "event_log = FILE");
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(timeline({place.path + "/none"}).status, 1);
    EXPECT_EQ(timeline({}).status, 2);
}

TEST_F(Timeline, PerfettosTraceIsValid) {
    const std::string other =
        event(30, "opened", 1, of("rule"), 7) + // another container's pid 1
        event(35, "waited", 1, ",\"name\":\"frames\",\"ns\":9000,\"how\":\"import\"", 7) +
        event(50, "closed", 1, of("rule"), 7);
    const Result result = timeline(
        {"--perfetto",
         place.file("log", event(10, "created", 1, of()) + event(20, "exported", 1, of("rule")) +
                               event(40, "freed", 1, of("deferred")) + other +
                               event(41, "finding", 1,
                                     ",\"finding\":\"free-while-open\",\"level\":\"warning\""))});
    EXPECT_EQ(result.status, 0) << result.err;
    const Result valid =
        command({"python3", "-m", "jsonschema", "-i", place.file("trace.json", result.out),
                 "tests/tool/trace_event.schema.json"});
    EXPECT_EQ(valid.status, 0) << valid.out << valid.err;
    std::map<std::string, int> phases;
    std::map<double, int> pids;
    const Json trace = Json::parse(result.out);
    for (const Json &each : trace["traceEvents"].elements) {
        phases[each["ph"].text]++;
        if (each["ph"].text == "M" && each["name"].text == "process_name")
            pids[each["pid"].number]++;
    }
    EXPECT_EQ(pids.size(), 3u) << "two processes of one pid, and all regions";
    EXPECT_EQ(phases["b"], 3) << "a lifetime, a hold, a wait";
    EXPECT_EQ(phases["e"], 3);
    EXPECT_EQ(phases["s"], 2) << "from export to open, from free to the last close";
    EXPECT_EQ(phases["f"], 2);
    EXPECT_EQ(phases["i"], 1);
    EXPECT_GE(phases["C"], 3);
}

// Real programs: what they write follows the schema, and an audit makes a page of it in one go.
TEST_F(Timeline, AnAuditMakesAPage) {
    Temporary shared("/dev/shm");
    const fs::path build = fs::absolute(tool_path()).parent_path();
    const std::string out = place.path + "/page.html", logs = place.path + "/logs";
    const Result run = tool({"audit", "--timeline", out, "--log", logs, build / "tests/apps/five"},
                            {{"GPUSHARE_DIR", shared.path + "/pub"},
                             {"GPUSHARE_CONFIG", place.file("config", "\n")},
                             {"GPUSHARE_SIM_ROOT", "@" + shared.path},
                             {"GPUSHARE_SIM_LINGER_MS", "50"},
                             {"LD_LIBRARY_PATH", build / "sim"}});
    EXPECT_EQ(run.status, 1) << run.err;
    EXPECT_HAS(read_file(out), "close-interior") << run.err;
    const Json history = page({logs});
    EXPECT_EQ(history["marks"].size(), 5u);
    EXPECT_EQ(history["reports"].size(), 5u);
    for (const Json &mark : history["marks"].elements)
        EXPECT_GE(number(mark[7]), 0) << mark[3].text << " has no report";
    std::vector<std::string> check = {"python3", "tests/tool/check_lines.py",
                                      "docs/event.schema.json"};
    for (const auto &file : fs::directory_iterator(logs))
        if (contains(file.path(), ".events."))
            check.push_back(file.path());
    EXPECT_EQ(check.size(), 5u) << "one of each process";
    const Result valid = command(check);
    EXPECT_EQ(valid.status, 0) << valid.out << valid.err;
}

// --- gpushare events ---

class Events : public Timeline {
  protected:
    // Ends by itself; the log gets `later` while it runs.
    Result follow(const std::string &what, const std::string &later, const std::string &log) {
        const fs::path build = fs::absolute(tool_path()).parent_path();
        const std::string text = place.file("later", later);
        return command(
            {"sh", "-c", "(sleep 0.5; cat " + text + " >>" + log + ") & exec timeout 1.5 " + what},
            {{"GPUSHARE_EVENT_LOG", place.path + "/logs/%c.%p.jsonl"},
             {"PATH", place.path + "/bin:" + build.string() + ":" + getenv("PATH")}});
    }
};

TEST_F(Events, OfAllProcessesAreOneStreamInTheOrderOfTheirTimes) {
    const std::string first = event(10, "created", 1, of()),
                      second = event(20, "opened", 2, of("rule")),
                      third = event(30, "freed", 1, of("now"));
    const std::string one = place.file("one.jsonl", first + third + "no event\n"),
                      two = place.file("two.jsonl", second);
    EXPECT_EQ(tool({"events", one, two}).out, first + second + third);
    EXPECT_EQ(tool({"events", place.path}).out, first + second + third);
    EXPECT_EQ(tool({"events", "--since=1h", place.path}).out, "");
    const Environment configured = {{"GPUSHARE_EVENT_LOG", place.path + "/%c.jsonl"}};
    EXPECT_EQ(tool({"events"}, configured).out, first + second + third);
}

TEST_F(Events, WhatIsWrongIsSaid) {
    Result result = tool({"events"});
    EXPECT_ERR_HAS(result, 1, "set event_log in the configuration, or GPUSHARE_EVENT_LOG");
    result = tool({"events", "--follow", place.path + "/none"});
    EXPECT_ERR_HAS(result, 1, "cannot read the log '" + place.path + "/none'");
    result = tool({"events", "--since=soon", place.path});
    EXPECT_ERR_HAS(result, 2, "--since 'soon' is no time; allowed: 0, 30s, 2min, 1h");
}

TEST_F(Events, FollowGoesOnWithWhatIsWrittenMeanwhileByNewProcessesToo) {
    fs::create_directory(place.path + "/logs");
    const std::string old = event(10, "created", 1, of()), later = event(20, "freed", 2, of("now"));
    place.file("logs/app.1.jsonl", old);
    const Result result =
        follow("gpushare events --follow", later, place.path + "/logs/app.2.jsonl");
    EXPECT_EQ(result.out, old + later) << result.err;
}

TEST_F(Events, TheWebHookGetsFindingsAndRegions) {
    fs::create_directory(place.path + "/logs");
    fs::create_directory(place.path + "/bin");
    fs::permissions(
        place.file("bin/curl", "#!/bin/sh\ncat\nfor url; do :; done\necho \"to $url\" >&2\n"),
        fs::perms::owner_all);
    std::string freed = event(20, "freed", 2, of("now"));
    freed.replace(freed.find("2026-"), 5, "2999-"); // later than now
    std::string opened = event(20, "opened", 2, of("rule"));
    opened.replace(opened.find("2026-"), 5, "2999-");
    const Result result =
        follow("sh config/examples/webhook.sh http://hook/x",
               event(1, "created", 2, of()) + opened + freed, place.path + "/logs/a.2.jsonl");
    EXPECT_EQ(result.out, "") << "what a hook answers";
    EXPECT_EQ(result.err, "to http://hook/x\n");
}

TEST_F(Timeline, APageIsNotPrintedOnATerminal) {
    const std::string log = place.file("log", event(10, "created", 1, of()));
    EXPECT_EQ(on_terminal(80, {tool_path(), "timeline", log}, {}),
              "gpushare: timeline: a page is not for a terminal: write it to a file, as with -o\n"
              "    page.html\n");
}
