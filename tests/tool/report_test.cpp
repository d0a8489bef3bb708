// gpushare report: what many logs come to, what is skipped in them, and how it looks.
#include "harness.hpp"
#include "json.hpp"
#include "logmaker.hpp"

namespace {

class Report : public testing::Test {
  protected:
    std::string log(const std::string &name, const std::vector<LogLine> &lines,
                    const std::string &more = "") {
        std::string text;
        for (const LogLine &line : lines)
            text += line.text();
        return place.file(name, text + more);
    }
    Result report(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), "report");
        return tool(arguments);
    }
    Json json(const std::vector<std::string> &arguments) {
        std::vector<std::string> all = {"--json"};
        all.insert(all.end(), arguments.begin(), arguments.end());
        const Result result = report(all);
        EXPECT_EQ(result.status, 0) << result.err;
        return Json::parse(result.out);
    }

    Temporary place;
};

LogLine at(int second, const std::string &offset = "0x100", int pid = 100) {
    LogLine line;
    line.second = second;
    line.pid = pid;
    line.site = std::string(18 - offset.size(), '0') + offset.substr(2); // as of this call alone
    line.stack = frame("/no/such/app", offset, "abcdef");
    return line;
}

std::string last_line(const std::string &text) {
    const size_t end = text.rfind('\n', text.size() - 2);
    return end == std::string::npos ? text : text.substr(end + 1);
}

} // namespace

TEST_F(Report, LooksAsTheLibrarysOwn) {
    LogLine line = at(1);
    line.name = "frames";
    line.detail = "the specifics";
    line.others = "{\"pid\":7,\"pid_ns\":4026531836,\"command\":\"viewer\",\"since\":\"2026-11-"
                  "21T02:33:00.000000Z\"}";
    line.prior = prior("allocated", 100, "app", frame("/no/such/app", "0x90", "abcdef")) + "," +
                 prior("freed", 8, "producer", "");
    const Result result = report({log("a.jsonl", {line})});
    EXPECT_ERR(result, 0, "");
    EXPECT_EQ(result.out,
              "========= GPUSHARE ERROR: double-free in cudaFree, by app (pid 100)\n"
              "=========     what happened\n"
              "=========     at 0x7f0000000000, 64 MiB (67108864 bytes), GPU 0, context 0x55d0\n"
              "=========     region frames\n"
              "=========     the specifics\n"
              "=========     other process: viewer (pid 7), since 2026-11-21T02:33:00.000000Z\n"
              "=========     Host frames:\n"
              "=========         #0 0x100 in /no/such/app (file is gone)\n"
              "=========     Allocated 2026-11-21T02:33:00.000000Z, at:\n"
              "=========         #0 0x90 in /no/such/app (file is gone)\n"
              "=========     Freed by producer (pid 8), 2026-11-21T02:33:00.000000Z\n"
              "=========     Hint: what to change\n"
              "=========\n"
              "========= GPUSHARE SUMMARY: 1 finding (1 error), 1 occurrence, 1 process\n");
}

TEST_F(Report, WithoutFindingsThereAreNone) {
    LogLine summary;
    summary.finding = "";
    EXPECT_EQ(report({log("a.jsonl", {summary})}).out, "========= GPUSHARE SUMMARY: 0 findings\n");
    EXPECT_EQ(json({log("a.jsonl", {summary})}).size(), 0u);
}

TEST_F(Report, LogsAreMergedByTime) {
    log("a.jsonl", {at(3, "0x300"), at(5, "0x500")});
    log("b.jsonl", {at(2, "0x200", 101), at(4, "0x400", 101)});
    log("c.txt", {at(1, "0x999")}); // not *.jsonl
    const Json groups = json({place.path});
    ASSERT_EQ(groups.size(), 4u);
    for (size_t i = 0; i < 4; i++)
        EXPECT_EQ(groups[i]["stack"][0]["offset"].text, "0x" + std::to_string(i + 2) + "00");
}

TEST_F(Report, EqualFindingsOfAllProcessesAreOne) {
    LogLine elsewhere = at(2, "0x100", 101);
    elsewhere.stack = frame("/mnt/other/app", "0x100", "abcdef"); // the same build
    elsewhere.prior = prior("allocated", 101, "app", "");
    LogLine other_call = at(3);
    other_call.site = "1111111111111111";
    other_call.api = "cuMemFree_v2";
    const std::vector<std::string> logs = {log("a", {at(1), other_call}), log("b", {elsewhere})};
    const Json groups = json(logs);
    ASSERT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[0]["count"].number, 2);
    EXPECT_EQ(groups[0]["processes"].size(), 2u);
    EXPECT_EQ(groups[0]["processes"][1]["pid"].number, 101);
    EXPECT_EQ(groups[0]["first"].text, "2026-11-21T02:34:01.000000Z");
    EXPECT_EQ(groups[0]["last"].text, "2026-11-21T02:34:02.000000Z");
    EXPECT_EQ(groups[0]["pid"].number, 100) << "the facts are those of the first";
    const std::string text = report(logs).out;
    EXPECT_HAS(text, "2 times, from 2026-11-21T02:34:01.000000Z to 2026-11-21T02:34:02.000000Z, by "
                     "2 processes: app (pid 100), app (pid 101)\n");
    EXPECT_EQ(last_line(text),
              "========= GPUSHARE SUMMARY: 2 findings (2 errors), 3 occurrences, 2 processes\n");
}

TEST_F(Report, ArgumentsTellNamesakesApart) {
    std::vector<LogLine> lines = {at(1), at(2, "0x100", 101), at(3, "0x100", 102)};
    lines[0].arguments = "--gpu 0";
    lines[1].arguments = "--model /models/of/a/long/path --gpu 1";
    lines[2].command = "viewer", lines[2].arguments = "--big";
    const std::string file = log("a", lines);
    const std::string out = report({file}).out;
    EXPECT_HAS(out, "\n=========     arguments of this process: --gpu 0\n");
    EXPECT_HAS(out, "by 3 processes: app (pid 100: --gpu 0), app (pid 101: --model "
                    "/models/of/a/lon...), viewer (pid 102)\n");
    const Json array = json({file});
    EXPECT_EQ(array[0]["arguments"].text, "--gpu 0");
    EXPECT_EQ(array[0]["processes"][1]["arguments"].text, lines[1].arguments);
    EXPECT_LACKS(report({log("b", {at(1)})}).out, "arguments");
    const Json sarif = Json::parse(report({"--sarif", file}).out)["runs"][0];
    EXPECT_EQ(sarif["results"][0]["properties"]["arguments"].text, "--gpu 0");
}

TEST_F(Report, LongListsOfProcessesAreCutShort) {
    std::vector<LogLine> lines;
    for (int pid = 100; pid < 132; pid++)
        lines.push_back(at(pid - 99, "0x100", pid));
    for (int pid = 200; pid < 209; pid++)
        lines[0].others += std::string(pid > 200 ? "," : "") + "{\"pid\":" + std::to_string(pid) +
                           ",\"pid_ns\":null,\"command\":\"viewer\",\"since\":null}";
    const std::string path = log("a", lines), text = report({path}).out;
    EXPECT_HAS(text, ", by 32 processes: app (pid 100), ", ", app (pid 107) (and 24 more)\n",
               "other process: viewer (pid 207)\n=========     (and 1 more)\n");
    EXPECT_EQ(json({path})[0]["processes"].size(), 32u);
    EXPECT_EQ(json({path})[0]["others"].size(), 9u);
}

TEST_F(Report, MoreThanThreeFindingsHaveATableOfContentsErrorsFirst) {
    LogLine leak = at(4, "0x400"), bare = at(5);
    leak.finding = "leak-open";
    leak.level = "warning";
    leak.api = leak.stack = "";
    leak.prior = prior("opened", 100, "app", frame("/no/lib.so", "0x90"));
    bare.finding = "brand-new";
    bare.stack = bare.site = "";
    EXPECT_LACKS(report({log("a", {at(1), at(2, "0x200"), leak})}).out, "CONTENTS");
    const std::string text = report({log("a", {at(1), at(2), at(3, "0x200"), leak, bare})}).out;
    EXPECT_EQ(text.find("========= GPUSHARE CONTENTS: 4 findings\n"
                        "=========     2x error    double-free  cudaFree  app+0x100\n"
                        "=========     1x error    double-free  cudaFree  app+0x200\n"
                        "=========     1x error    brand-new    cudaFree  in app\n"
                        "=========     1x warning  leak-open    -         lib.so+0x90\n"
                        "=========\n"
                        "========= GPUSHARE ERROR: double-free in cudaFree, by app (pid 100)\n"),
              0u)
        << text;
}

TEST_F(Report, LeaksAreToldApartByTheirLastEvent) {
    LogLine here = at(1), there = at(2), again = at(3, "0x100", 101);
    here.stack = there.stack = again.stack = "";
    here.site = again.site = "1111111111111111";
    here.prior = again.prior = prior("opened", 100, "app", frame("/a/app", "0x90"));
    there.prior = prior("allocated", 100, "app", frame("/a/app", "0x90")) + "," +
                  prior("opened", 100, "app", frame("/a/app", "0x91"));
    const Json groups = json({log("a", {here, there, again})});
    ASSERT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[0]["count"].number, 2);
    EXPECT_EQ(groups[1]["count"].number, 1);
}

TEST_F(Report, WithoutABuildIdTheFileNameCounts) {
    LogLine one = at(1), two = at(2, "0x100", 101);
    one.stack = frame("/a/app", "0x100");
    two.stack = frame("/b/app", "0x100");
    EXPECT_EQ(json({log("a", {one, two})}).size(), 1u);
    two.stack = frame("/b/bpp", "0x100");
    EXPECT_EQ(json({log("a", {one, two})}).size(), 2u);
}

TEST_F(Report, RepeatsBelongToTheirSite) {
    LogLine repeats = at(9, "0x200");
    repeats.stack = "";
    repeats.count = 15;
    LogLine stranger = repeats; // another process has such a site, too, but wrote no first line
    stranger.pid = 101;
    const Json groups = json({log("a", {at(1), at(2, "0x200"), repeats, stranger})});
    ASSERT_EQ(groups.size(), 3u);
    EXPECT_EQ(groups[0]["count"].number, 1);
    EXPECT_EQ(groups[1]["count"].number, 16);
    EXPECT_EQ(groups[2]["count"].number, 15);
}

// As after `report app.log app.log.1`: the repeats are read before the first.
TEST_F(Report, ALaterFileCanHaveTheFirst) {
    LogLine repeats = at(5), strangers = at(6, "0x100", 101), late = at(7, "0x200", 102);
    repeats.stack = strangers.stack = late.stack = "";
    repeats.detail = "no first";
    strangers.detail = "the first that is left";
    const std::vector<std::string> logs = {log("a", {repeats, strangers, late}), log("b", {at(1)})};
    const Json groups = json(logs);
    ASSERT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[0]["count"].number, 2);
    EXPECT_EQ(groups[0]["last"].text, "2026-11-21T02:34:05.000000Z");
    EXPECT_EQ(groups[1]["count"].number, 2);
    EXPECT_EQ(groups[1]["detail"].text, "the first that is left");
    EXPECT_EQ(groups[1]["pid"].number, 101);
}

TEST_F(Report, OfOneTimeTheFirstReadIsTheFirst) {
    LogLine one = at(1), two = at(1, "0x100", 101), three = at(1, "0x200", 102);
    one.detail = "one";
    two.detail = "two";
    const std::string a = log("a", {one}), b = log("b", {three, two});
    EXPECT_EQ(json({a, b})[0]["detail"].text, "one");
    EXPECT_EQ(json({b, a})[0]["stack"][0]["offset"].text, "0x200");
    EXPECT_EQ(json({b, a})[1]["detail"].text, "two");
}

// Lines of few processes and places, with and without stacks, each with facts of its own.
static LogLine any_line(std::mt19937 &random, int micro) {
    static const std::string stacks[] = {"", "", frame("/a/app", "0x1"), frame("/b/app", "0x1"),
                                         frame("/a/app", "0x2", "ab")};
    auto one_of = [&](unsigned count) { return static_cast<int>(random() % count); };
    LogLine line;
    line.micro = micro;
    line.pid = 100 + one_of(4);
    line.command = one_of(4) ? "app" : "viewer";
    line.level = one_of(3) ? "error" : "warning";
    line.finding = one_of(2) ? "double-free" : "leak-open";
    line.site = one_of(5) ? std::string(16, static_cast<char>('0' + one_of(4))) : "";
    line.stack = stacks[one_of(5)];
    line.prior = one_of(2) ? prior("freed", 100, "app", stacks[one_of(5)]) : "";
    line.detail = "number " + std::to_string(micro);
    line.count = 1 + one_of(9);
    return line;
}

TEST_F(Report, TheOrderOfReadingDoesNotMatter) {
    std::mt19937 random(1);
    for (int round = 0; round < 40; round++) {
        std::vector<LogLine> sorted, parts[3];
        for (int micro = 0; micro < 60; micro++)
            sorted.push_back(any_line(random, micro));
        std::vector<LogLine> mixed = sorted;
        std::shuffle(mixed.begin(), mixed.end(), random);
        for (const LogLine &line : mixed)
            parts[random() % 3].push_back(line);
        const std::string whole = log("whole", sorted);
        const std::vector<std::string> logs = {log("a", parts[0]), log("b", parts[1]),
                                               log("c", parts[2])};
        ASSERT_EQ(report(logs).out, report({whole}).out) << round;
        ASSERT_EQ(report({"--json", logs[0], logs[1], logs[2]}).out, report({"--json", whole}).out)
            << round;
    }
}

TEST_F(Report, RepeatsOfOneContainerAreNotAnothers) {
    LogLine first = at(1), repeats = at(9);
    first.pid = repeats.pid = 1;
    repeats.stack = "";
    repeats.count = 3;
    repeats.pid_ns = "4026532201";
    EXPECT_EQ(json({log("a", {first, repeats})}).size(), 2u);
    const std::string text = report({log("a", {first, repeats})}).out;
    EXPECT_HAS(text, "by app (pid 1 in namespace 4026532201)\n");
    EXPECT_HAS(text, "by app (pid 1 in namespace 4026531836)\n");
}

TEST_F(Report, OlderLogsWithoutSiteAndNamespaceAreRead) {
    const std::string head =
        "{\"ts\":\"2026-11-21T02:34:01.000000Z\",\"pid\":5,\"command\":\"app\",\"level\":\"error\","
        "\"finding\":\"double-free\",\"api\":\"cudaFree\",";
    const Json groups =
        json({place.file("a", head + "\"count\":1,\"stack\":[" + frame("/a", "0x1") +
                                  "],\"prior\":null}\n" + head + "\"count\":4,\"stack\":[]}\n")});
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_EQ(groups[0]["count"].number, 5);
    EXPECT_EQ(groups[0]["pid_ns"].kind, Json::Null);
    EXPECT_EQ(groups[0]["prior"].size(), 0u);
}

TEST_F(Report, WhatIsNoLineOfALogIsSkippedAndSaid) {
    const std::string whole = at(3).text();
    const std::string path =
        log("a.jsonl", {at(1)},
            "garbage\n[1]\n{\"a\":1}\n\n" + std::string("\0\n", 2) + "{\"ts\":\n" +
                std::string(1 << 21, 'x') + "\n" + whole + whole.substr(0, whole.size() / 2));
    const Result result = report({path});
    EXPECT_EQ(result.status, 0);
    const std::string before = "gpushare: report: warning: " + path + ":";
    EXPECT_EQ(result.err,
              before + "2: not JSON; skipped\n" + before +
                  "3: JSON, but not an object, and so no line of a gpushare log; skipped\n" +
                  before + "4: no line of a gpushare log, for it has no ts with a time; skipped\n" +
                  before + "6: not JSON; skipped\n" + before + "7: not JSON; skipped\n" + before +
                  "8: longer than 1 MiB, which no line of gpushare's is; skipped\n" + before +
                  "10: cut off: its writer was killed, or still writes; skipped\n");
    EXPECT_HAS(last_line(result.out), "1 finding (1 error), 2 occurrences") << result.out;
}

// Longer ones than the reader's buffer, and such that end where it ends.
TEST_F(Report, LinesOfAnyLengthAreReadWhole) {
    const size_t most = 1 << 20;
    std::string text;
    size_t lines = 0;
    for (size_t length : {most - 1, most, most + 1, 2 * most, 2 * most + 1, 5 * most, most}) {
        LogLine line = at(1 + static_cast<int>(lines++));
        line.detail = std::string(length - line.text().size() + 3, 'd'); // null, and the newline
        text += line.text();
    }
    const Result result = report({place.file("a", text + at(20).text())});
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 4) << result.err;
    EXPECT_HAS(result.err, "/a:3: longer than 1 MiB,", "/a:6: longer than 1 MiB,");
    EXPECT_HAS(last_line(result.out), "1 finding (1 error), 4 occurrences") << result.err;
    text = std::string(3 * most, 'd');
    EXPECT_HAS(report({place.file("b", text)}).err, "/b:1: longer than 1 MiB,");
}

TEST_F(Report, EndsOfLinesMayDiffer) {
    std::string text = at(1).text(), last = at(2).text();
    text.insert(text.size() - 1, "\r");
    last.pop_back();
    const Result result = report({place.file("a", "\r\n \t\n\n" + text + last)});
    EXPECT_EQ(result.err, "");
    EXPECT_HAS(last_line(result.out), "2 occurrences") << result.out;
    EXPECT_EQ(last_line(report({place.file("b", "\n")}).out),
              "========= GPUSHARE SUMMARY: 0 findings\n");
    write_file(place.path + "/empty", "");
    const Result empty = report({place.path + "/empty"});
    EXPECT_EQ(empty.out, "========= GPUSHARE SUMMARY: 0 findings\n");
    EXPECT_ERR_HAS(empty, 3, "/empty: empty; gpushare writes into a log with");
}

TEST_F(Report, AReportIsNoLog) {
    const std::string path = place.file("a.json", report({"--json", log("a.jsonl", {at(1)})}).out);
    const Result result = report({path});
    EXPECT_EQ(result.status, 3);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_HAS(result.err, path + ": an array, and no log");
}

// The order of members and of escapes is the writer's; a NUL is in no JSON.
TEST_F(Report, LinesInAnotherFormAreEqual) {
    std::string turned = at(2).text(), escaped = at(3).text(), broken = at(4).text();
    turned.replace(turned.find("\"pid\":100,"), 10, "");
    turned.insert(turned.rfind('}'), ", \"pid\": 100 ");
    escaped.replace(escaped.find("cudaFree"), 8, "cuda\\u0046ree");
    broken.insert(broken.find("100,") + 3, 1, '\0');
    const std::string path = place.file("a", at(1).text() + turned + escaped + broken);
    const Json groups = json({path});
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_EQ(groups[0]["count"].number, 3);
    EXPECT_EQ(groups[0]["processes"].size(), 1u);
    EXPECT_HAS(report({path}).err, "/a:4: not JSON; skipped");
}

TEST_F(Report, AFloodOfComplaintsIsCutShort) {
    std::string text;
    for (int i = 0; i < 1000; i++)
        text += "x\n";
    const Result result = report({place.file("a", at(1).text() + text)});
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 9);
    EXPECT_EQ(last_line(result.err), "gpushare: report: warning: " + place.file("a") +
                                         ": 992 more lines that were skipped\n");
}

TEST_F(Report, WhatIsUnknownIsKept) {
    LogLine line = at(1);
    line.finding = "brand-new";
    line.level = "warning";
    std::string text = line.text();
    text.insert(1, "\"novel\":{\"a\":[1]},");
    const Json groups = json({place.file("a", text)});
    EXPECT_EQ(groups[0]["finding"].text, "brand-new");
    EXPECT_EQ(last_line(report({place.file("a")}).out),
              "========= GPUSHARE SUMMARY: 1 finding (1 warning), 1 occurrence, 1 process\n");
}

TEST_F(Report, LevelLeavesOutWhatIsBelow) {
    LogLine warning = at(1, "0x200"), info = at(2, "0x300");
    warning.level = "warning";
    info.level = "info";
    const std::string path = log("a", {at(3), warning, info});
    EXPECT_HAS(report({path}).out, "3 findings (1 error, 1 warning, 1 info)");
    EXPECT_EQ(json({"--level=warning", path}).size(), 2u);
    EXPECT_EQ(json({"-l", "error", path}).size(), 1u);
}

// Of `processes` processes, each with a finding, its repeats and a leak that has no stack.
static std::string large_log(const Temporary &place, int lines, int processes) {
    const std::string path = place.file("large.jsonl");
    FILE *file = fopen(path.c_str(), "we");
    std::string stack = frame("/no/such/app", "0x100", std::string(40, 'a'));
    for (int i = 0; i < 12; i++)
        stack += "," + frame("/no/such/library", "0x" + std::to_string(i), std::string(40, 'b'));
    for (int i = 0; i < lines; i++) {
        LogLine line;
        line.second = i / 1000 % 60;
        line.micro = i % 1000;
        line.pid = 1 + i / 3 % processes;
        line.site = std::to_string(1000000000000000 + line.pid * 2 + (i % 3 == 2));
        line.stack = i % 3 == 0 ? stack : "";
        line.finding = i % 3 == 2 ? "leak-open" : "double-free";
        line.prior = i % 3 == 2 ? prior("opened", line.pid, "app", stack) : "";
        fputs(line.text().c_str(), file);
    }
    fclose(file);
    return path;
}

TEST_F(Report, MemoryIsNotThatOfTheLog) {
    auto memory = [&](int lines, int processes) {
        const std::string path = large_log(place, lines, processes);
        const Result result = report({path});
        EXPECT_EQ(result.status, 0) << result.err;
        EXPECT_HAS(last_line(result.out), "2 findings (2 errors), " + std::to_string(lines) +
                                              " occurrences, " + std::to_string(processes) +
                                              " process")
            << result.out;
        return result.memory;
    };
    const long least = memory(300, 100);
    EXPECT_LT(memory(45000, 100) - least, 6 << 10) << "KiB, of a log of 57 MB";
    EXPECT_LT(memory(45000, 15000) - least, 20 << 10) << "KiB, of many processes";
}

TEST_F(Report, StdinIsALog) {
    const Result result =
        command({"sh", "-c", "cat " + log("a", {at(1)}) + " | \"$0\" report -", tool_path()});
    EXPECT_OUT_HAS(result, 0, "1 finding (1 error)");
}

TEST_F(Report, ALogThatCannotBeReadIsSaidAndDoesNotHideTheOthers) {
    Result result = report({"/no/such", log("a", {at(1)})});
    EXPECT_ERR(result, 3, "gpushare: report: cannot read '/no/such': No such file or directory\n");
    EXPECT_HAS(result.out, "1 finding (1 error)");
    result = report({place.path});
    EXPECT_ERR_HAS(result, 3, "no *.jsonl in this directory");
}

TEST_F(Report, WhatIsNoLogIsSaid) {
    Result result = report({place.file("a", "hello\n")});
    EXPECT_ERR_HAS(result, 3,
                   "/a: no log of gpushare's; it writes them with log_format = jsonl, and "
                   "events with event_log\n");
    result = report({place.file("a", "========= GPUSHARE ERROR: double-free in cudaFree\n")});
    EXPECT_ERR_HAS(result, 3,
                   "/a: a log for people; only those of log_format = jsonl can be read\n");
}

TEST_F(Report, TheLinesOfWhatIsNoLogAreOnlyCounted) {
    const std::string line = "========= GPUSHARE\n", path = place.file("a", line + line + line);
    const Result result = report({path});
    EXPECT_EQ(result.err, "gpushare: report: warning: " + path +
                              ": 3 lines that were skipped\ngpushare: report: warning: " + path +
                              ": a log for people; only those of log_format = jsonl can be read\n");
}

TEST_F(Report, OthersTextCannotReachTheTerminal) {
    LogLine line = at(1);
    line.detail = "a\\u001b[31mb\\nc";
    line.stack = frame("/evil\\u001b]0;x/app", "0x1");
    const std::string text = report({log("a", {line})}).out;
    EXPECT_EQ(text.find('\033'), std::string::npos) << text;
    EXPECT_HAS(text, "a?[31mb?c\n");
}

TEST_F(Report, ColoursAreForTerminals) {
    const std::string path = log("a", {at(1)});
    EXPECT_HAS(tool({"report", path}, {{"TERM", "xterm"}}, true).out, "\033[31m");
    EXPECT_LACKS(report({path}).out, "\033");
}

TEST_F(Report, SarifIsValid) {
    LogLine line = at(1, "0x200"), bare = at(2), unknown = at(3, "0x300");
    line.prior = prior("allocated", 100, "app", frame("/no/such/app", "0x90"));
    line.level = "warning";
    bare.stack = "";
    unknown.finding = "brand-new";
    const Result result = report({"--sarif", log("a", {line, bare, unknown})});
    EXPECT_EQ(result.status, 0) << result.err;
    const Result valid =
        command({"python3", "-m", "jsonschema", "-i", place.file("x.sarif", result.out),
                 "tests/tool/sarif.schema.json"});
    EXPECT_EQ(valid.status, 0) << valid.out << valid.err;
    const Json run = Json::parse(result.out)["runs"][0];
    const Json &first = run["results"][0];
    EXPECT_EQ(first["ruleId"].text, "double-free");
    const size_t index = static_cast<size_t>(first["ruleIndex"].number);
    EXPECT_EQ(run["tool"]["driver"]["rules"][index]["id"].text, "double-free");
    EXPECT_EQ(first["level"].text, "warning");
    EXPECT_EQ(first["stacks"].size(), 2u);
    EXPECT_EQ(first["locations"][0]["logicalLocations"][0]["fullyQualifiedName"].text, "app+0x200");
    EXPECT_EQ(first["message"]["text"].text,
              "what happened (by app, pid 100). What to do: what to change");
    EXPECT_EQ(first["suppressions"].size(), 0u);
    EXPECT_FALSE(run["results"][2].has("ruleIndex"));
}

// --- Python ---

namespace {

LogLine in_python(int number = 12, const std::string &file = "/opt/käm/cam.py") {
    LogLine line;
    line.stack = frame("/no/libcudart.so.13", "0x10") + "," + python(file, number, "release") +
                 "," + frame("/no/libbetween.so", "0x20") + "," + python(file, 40, "<module>");
    return line;
}

} // namespace

TEST_F(Report, ShowsPythonFramesAsTheyAre) {
    const Result result = report({log("a", {in_python()})});
    EXPECT_HAS(result.out, "    #0 0x10 in /no/libcudart.so.13 (file is gone)\n"
                           "=========         #1 release at /opt/käm/cam.py:12\n"
                           "=========         #2 0x20 in /no/libbetween.so (file is gone)\n"
                           "=========         #3 <module> at /opt/käm/cam.py:40\n"
                           "=========     Hint");
    const Json stack = json({log("b", {in_python()})})[0]["stack"];
    EXPECT_EQ(stack[1]["function"].text, "release");
    EXPECT_EQ(stack[1]["file"].text, "/opt/käm/cam.py");
    EXPECT_EQ(stack[1]["line"].number, 12);
    EXPECT_EQ(stack[1]["module"].kind, Json::Null);
}

TEST_F(Report, FoldsTheInterpreterBelowANativeStack) {
    const std::string library = frame("/opt/lib/libgpu.so", "0x10"),
                      interpreter = frame("/usr/lib/libpython3.11.so.1.0", "0x20");
    LogLine line = at(1), executable = at(2, "0x200");
    line.prior = prior("freed", 100, "app", library + "," + interpreter + "," + interpreter);
    executable.stack = library + "," + frame("/usr/bin/python3.12", "0x30");
    const std::string file = log("a", {line, executable}), out = report({file}).out;
    EXPECT_HAS(out, "#0 0x10 in /opt/lib/libgpu.so (file is gone)\n"
                    "=========         (and 2 of the Python interpreter)\n");
    EXPECT_LACKS(out, "libpython");
    EXPECT_HAS(out, "#1 0x30 in /usr/bin/python3.12 (file");
    EXPECT_EQ(json({file})[0]["prior"][0]["stack"].size(), 3u);
}

TEST_F(Report, NamesThePythonLineInItsContents) {
    std::vector<LogLine> lines;
    for (int i = 1; i <= 4; i++) {
        lines.push_back(in_python(i));
        lines.back().site = "000000000000000" + std::to_string(i);
    }
    const Result result = report({log("a", lines)});
    EXPECT_HAS(result.out, "cudaFree  release at cam.py:3\n");
}

TEST_F(Report, PythonLinesTellFindingsApart) {
    LogLine other = in_python(), moved = in_python(12, "/mnt/cam.py"), line = in_python(13);
    other.pid = moved.pid = line.pid = 7;
    const Json groups = json({log("a", {in_python(), other, moved, line})});
    ASSERT_EQ(groups.size(), 2u) << "a script is the same wherever it lies";
    EXPECT_EQ(groups[0]["count"].number, 3);
    EXPECT_EQ(groups[1]["stack"][1]["line"].number, 13);
}

TEST_F(Report, SarifPointsToThePythonLine) {
    const auto location = [this](const LogLine &line) {
        const std::string sarif = report({"--sarif", log("s", {line})}).out;
        return Json::parse(sarif)["runs"][0]["results"][0]["locations"][0];
    };
    const Json found = location(in_python())["physicalLocation"];
    EXPECT_EQ(found["artifactLocation"]["uri"].text, "file:///opt/k%C3%A4m/cam.py");
    EXPECT_EQ(found["region"]["startLine"].number, 12);
    const Json none = location(in_python(3, "<stdin>"));
    EXPECT_FALSE(none.has("physicalLocation"));
    EXPECT_EQ(none["logicalLocations"][0]["fullyQualifiedName"].text, "release");
}

// A service knows the files of a repository by their paths in it.
TEST_F(Report, SarifHasPathsBelowTheCurrentDirectory) {
    const std::string here = std::filesystem::canonical(place.path);
    LogLine line = in_python(12, here + "/src/cam.py");
    line.name = "frames";
    const std::string file = log("s", {line, in_python(7, here + "x/cam.py")});
    const Result result = command(
        {"sh", "-c", "cd \"$0\" && exec \"$@\"", here, tool_path(), "report", "--sarif", file});
    const Json run = Json::parse(result.out)["runs"][0];
    const Json &place_of = run["results"][0]["locations"][0]["physicalLocation"];
    EXPECT_EQ(place_of["artifactLocation"]["uri"].text, "src/cam.py");
    EXPECT_EQ(place_of["artifactLocation"]["uriBaseId"].text, "%SRCROOT%");
    EXPECT_EQ(run["originalUriBaseIds"]["%SRCROOT%"]["uri"].text, "file://" + here + "/");
    const Json &elsewhere = run["results"][1]["locations"][0]["physicalLocation"];
    EXPECT_EQ(elsewhere["artifactLocation"]["uri"].text, "file://" + here + "x/cam.py");
    EXPECT_FALSE(elsewhere["artifactLocation"].has("uriBaseId"));
    EXPECT_HAS(run["results"][0]["message"]["text"].text, "(region frames, by app, pid ")
        << run["results"][0]["message"]["text"].text;
    EXPECT_EQ(command({"python3", "-m", "jsonschema", "-i", place.file("x.sarif", result.out),
                       "tests/tool/sarif.schema.json"})
                  .status,
              0);
}

TEST_F(Report, FailsABuildOnWhatItIsToldTo) {
    LogLine warning = at(1), leak = at(1);
    warning.level = "warning";
    leak.level = "info";
    leak.finding = "leak-open";
    const std::string wrong = log("error", {at(1)}), odd = log("warning", {warning}),
                      left = log("leak", {leak});
    const auto status = [this](std::vector<std::string> line) { return report(line).status; };
    EXPECT_EQ(status({wrong}), 0) << "it is told to report";
    EXPECT_EQ(status({"--fail-on=error", wrong}), 1);
    EXPECT_EQ(status({"--error-exitcode=9", wrong}), 9);
    EXPECT_EQ(status({"--error-exitcode=0", "--fail-on=info", wrong}), 0);
    EXPECT_EQ(status({"--fail-on=error", odd}), 0);
    EXPECT_EQ(status({"--fail-on=warning", odd}), 1);
    EXPECT_EQ(status({"--fail-on=warning", left}), 0);
    EXPECT_EQ(status({"--fail-on=leak", "--json", left}), 1);
    EXPECT_EQ(status({"--fail-on=error", left, "/no/such"}), 3);
    EXPECT_EQ(status({"--fail-on=error", wrong, "/no/such"}), 1) << "as audit has it";
    const std::string known = place.file("s.ini", "[suppress a]\nfinding = double-free\n");
    EXPECT_EQ(status({"--fail-on=error", "-s", known, wrong}), 0);
}

TEST_F(Report, AFindingHasTheHighestLevelOfItsOccurrences) {
    LogLine few = at(1), many = at(2), last = at(3);
    few.level = last.level = "info";
    many.level = "warning";
    few.pid = 7;
    last.pid = 8;
    many.count = 9;
    const std::string file = log("a", {few, many, last});
    const Json groups = json({file});
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_EQ(groups[0]["level"].text, "warning");
    EXPECT_EQ(groups[0]["pid"].number, 7) << "all else is of the first";
    EXPECT_HAS(report({file}).out, "SUMMARY: 1 finding (1 warning), 11 occurrences");
    EXPECT_EQ(report({"--fail-on=warning", file}).status, 1);
}

TEST_F(Report, WhatCannotFailABuildIsRefused) {
    const std::string file = log("a", {at(1)});
    const Result result = report({"--fail-on=fatal", file});
    EXPECT_OUT(result, 2, "");
    EXPECT_EQ(
        result.err,
        "gpushare: report: --fail-on 'fatal' is not known; allowed: error, warning, leak, info\n");
    EXPECT_EQ(report({"--error-exitcode=256", file}).status, 2);
    EXPECT_HAS(report({"--fail-on=leak", "--level=error", file}).err,
               "--level=error leaves out what --fail-on=leak counts");
    EXPECT_EQ(report({"--level=error", file}).status, 0);
}

TEST_F(Report, NamesSuppressionsThatMatchedNothing) {
    const std::string rules = place.file("s.ini", "[suppress a]\nfinding = double-free\n"
                                                  "[suppress b]\nfinding = leak-open\n"
                                                  "[suppress c]\nmodule = app\n");
    EXPECT_EQ(report({"-s", rules, log("a", {at(1)})}).err,
              "gpushare: report: warning: " + rules +
                  ":3: [suppress b] matched nothing; leave it out if the finding is mended\n");
}

TEST_F(Report, AMistypedFindingIsToldWithTheOneThatIsMeant) {
    const std::string rules = place.file("s.ini", "[suppress a]\nfinding = duble-free\n");
    EXPECT_EQ(report({"-s", rules, log("a", {at(1)})}).err,
              rules + ":2: finding = duble-free: no such finding, but perhaps double-free; "
                      "allowed: an id of `gpushare explain --list`, as double-free\n");
    const std::string far = place.file("f.ini", "[suppress a]\nfinding = nonsense\n");
    EXPECT_LACKS(report({"-s", far, log("a", {at(1)})}).err, "perhaps");
    EXPECT_EQ(tool({"explain", "leak-exprot"}).err,
              "gpushare: explain: 'leak-exprot' is no finding, but perhaps leak-export; gpushare "
              "explain --list has all; a command stands behind --\n");
}
