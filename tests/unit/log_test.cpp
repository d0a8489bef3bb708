// Each test runs what it tests in a forked child, for the log has one state a process, and reads
// what the child wrote. The child answers with its exit status: 0, or the number of the check that
// failed.

extern "C" {
#include "log/format.h"
#include "log/log.h"
#include "log/sink.h"
}
#include "json.hpp"
#include "skip.hpp"

namespace {

using Strings = std::vector<std::string>;

gps_owner self_of(const char *command) {
    gps_owner self = {};
    self.pid = static_cast<uint32_t>(getpid());
    memccpy(self.command, command, 0, sizeof self.command - 1);
    return self;
}

gps_options options_of(const std::string &log, gps_log_format format, gps_level level) {
    gps_options options = {};
    strncpy(options.log, log.c_str(), sizeof options.log - 1);
    options.log_format = format;
    options.log_level = level;
    return options;
}

void open_log(const std::string &log = "stderr", gps_log_format format = GPS_LOG_TEXT,
              gps_level level = GPS_LEVEL_INFO) {
    gps_options options = options_of(log, format, level);
    gps_owner self = self_of("app");

    gps_log_open(&options, &self, nullptr, nullptr);
}

gps_report report_of(gps_finding finding, uint64_t stack_hash = 0) {
    gps_report report = {};
    report.finding = finding;
    report.device = -1;
    report.stack_hash = stack_hash;
    return report;
}

bool send(const gps_report &report) {
    const bool claims = gps_log_takes(&report);
    if (claims)
        gps_log_report(&report);
    return claims;
}

bool send(gps_finding finding, uint64_t stack_hash = 0) {
    return send(report_of(finding, stack_hash));
}

// The pid on each line of text differs from run to run.
std::string without_pids(std::string text) {
    const std::string mark = "========= [";
    const size_t kept = mark.size() - 2;
    for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += kept)
        if (at == 0 || text[at - 1] == '\n')
            text.erase(at + kept, text.find(']', at) + 1 - (at + kept));
    return text;
}

std::string drain(int fd) {
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) > 0;)
        text.append(buffer, static_cast<size_t>(got));
    return without_pids(text);
}

struct Outcome {
    std::string err; // what came on stderr
    int status;      // as of waitpid
    pid_t pid;
};

// Runs `body` in a child whose stderr is a pipe, with the log started.
Outcome in_child(const std::function<int()> &body) {
    Outcome run = {};
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    run.pid = fork();
    if (run.pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        gps_sink_start();
        _exit(body());
    }
    close(ends[1]);
    run.err = drain(ends[0]);
    close(ends[0]);
    EXPECT_EQ(waitpid(run.pid, &run.status, 0), run.pid);
    return run;
}

Outcome summed(const std::function<void()> &body) {
    return in_child([&] {
        body();
        gps_log_summary();
        return 0;
    });
}

void passes(const std::function<int()> &body) {
    EXPECT_EQ(in_child(body).status, 0);
}

Strings lines_of(const std::string &text) {
    std::istringstream stream(text);
    Strings lines;
    for (std::string line; std::getline(stream, line);)
        lines.push_back(line);
    EXPECT_TRUE(text.empty() || text.back() == '\n') << "unfinished line: " << text;
    return lines;
}

std::vector<Json> json_of(const std::string &text) {
    std::vector<Json> values;
    for (const std::string &line : lines_of(text))
        values.push_back(Json::parse(line));
    return values;
}

size_t count_of(const std::string &text, const std::string &part) {
    size_t count = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
        count++;
    return count;
}

gps_text format_text(char *buffer, size_t size, const gps_report *report, const gps_stamp *stamp) {
    gps_line line = {};
    line.report = *report;
    const gps_text text = gps_format_line(buffer, size, line, stamp, gps_format_text);
    strcpy(buffer, without_pids(buffer).c_str());
    return text;
}

gps_text format_jsonl(char *buffer, size_t size, const gps_report *report, gps_stamp *stamp,
                      uint64_t site) {
    gps_line line = {};

    line.report = *report;
    stamp->site = site;
    return gps_format_line(buffer, size, line, stamp, gps_format_jsonl);
}

class Directory {
  public:
    std::string path;

    Directory() {
        char name[] = "/tmp/gps_log_XXXXXX";
        EXPECT_NE(mkdtemp(name), nullptr);
        path = name;
    }
    ~Directory() {
        EXPECT_EQ(system(("rm -rf " + path).c_str()), 0);
    }
    Directory(const Directory &) = delete;
    std::string read(const std::string &name) const {
        std::stringstream text;
        text << std::ifstream(path + "/" + name).rdbuf();
        return without_pids(text.str());
    }
};

// --- the catalogue ---

TEST(Catalogue, ARaisedReportHasTheHigherLevelOfItsFindingIfThereIsOne) {
    for (int i = 0; i < GPS_FINDING_COUNT; i++) {
        gps_report report = report_of(static_cast<gps_finding>(i));
        const gps_level usual = gps_finding_level(report.finding);
        gps_level higher = usual;
        EXPECT_EQ(gps_report_level(&report), usual);
        report.raised = true;
        const char *where = gps_finding_raised(report.finding, &higher);
        EXPECT_EQ(gps_report_level(&report), higher);
        EXPECT_EQ(higher > usual, where != nullptr) << gps_finding_id(report.finding);
    }
}

TEST(Catalogue, IdsAreUniqueWordsAndTextsAreWhole) {
    std::set<std::string> ids;
    for (int i = 0; i < GPS_FINDING_COUNT; i++) {
        gps_finding finding = static_cast<gps_finding>(i);
        std::string id = gps_finding_id(finding);
        EXPECT_TRUE(ids.insert(id).second) << id;
        EXPECT_EQ(id.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string::npos) << id;
        EXPECT_GT(strlen(gps_finding_sentence(finding)), 10u) << id;
        EXPECT_GT(strlen(gps_finding_hint(finding)), 10u) << id;
    }
}

TEST(Catalogue, SurvivesANumberThatIsNone) {
    for (int i : {static_cast<int>(GPS_FINDING_COUNT), 1000000, -1}) {
        gps_finding finding = static_cast<gps_finding>(i);
        EXPECT_STREQ(gps_finding_id(finding), "unknown");
        EXPECT_EQ(gps_finding_level(finding), GPS_LEVEL_ERROR);
    }
}

// --- the formats, without any writing ---

struct Full {
    gps_id id = {{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc,
                  0xdd, 0xee, 0xff}};
    gps_party others[2] = {};
    gps_frame stack[3] = {};
    gps_report report = {};
    gps_frame earlier[1] = {};
    gps_stamp stamp = {
        UINT64_C(1795228445123456789), 1234, 1235, 77, "producer", nullptr, nullptr, false, 0};

    Full() {
        others[0].owner.pid = 4242;
        strcpy(others[0].owner.command, "consumer");
        others[1].owner.pid = 4243;
        others[1].owner.pid_ns = 78;
        others[1].since = UINT64_C(1795228400000000000);
        strcpy(others[1].owner.command, "viewer");
        stack[0].offset = 0x1b2c;
        strcpy(stack[0].module, "/opt/app/libframes.so");
        strcpy(stack[0].build_id, "00ff");
        stack[1].offset = 0x40;
        strcpy(stack[1].module, "/opt/app/producer");
        stack[2].address = 0x7f0000001000;
        report.finding = GPS_DOUBLE_FREE;
        report.api = "cudaFree";
        report.pointer = 0x7f1200000000;
        report.size = 64u << 20;
        report.region = &id;
        report.name = "frames";
        report.device = 0;
        report.detail = "it was freed by another thread";
        report.others = others;
        report.other_count = 2;
        report.stack = stack;
        report.stack_count = 3;
        report.context = 0xc0;
        earlier[0].offset = 0x99;
        strcpy(earlier[0].module, "/opt/app/producer");
        report.prior[0] = {"allocated", nullptr, 0, 0, earlier, 1};
        report.prior[1] = {"freed", &others[1].owner, UINT64_C(1795228400000000000), 0, nullptr, 0};
        report.prior_count = 2;
    }
};

// A frame of Python's as python_frame.c fills it in.
gps_frame python_frame(const char *file, uint32_t line, const char *function) {
    gps_frame frame = {};
    strcpy(frame.module, file);
    strcpy(frame.function, function);
    frame.line = line;
    return frame;
}

struct FullReport : testing::Test, Full {
    char buffer[GPS_LOGLINE_BYTES];
};
using FullText = FullReport;
using FullJson = FullReport;

TEST_F(FullText, ShowsPythonFrames) {
    stack[1] = python_frame("/opt/cam.py", 12, "release");
    stack[2] = python_frame("\x1b", 0, "<module>");
    format_text(buffer, sizeof buffer, &report, &stamp);
    EXPECT_NE(strstr(buffer, " #1 release at /opt/cam.py:12\n"), nullptr) << buffer;
    EXPECT_NE(strstr(buffer, " #2 <module> at ?\n"), nullptr) << buffer;
}

TEST_F(FullText, LooksLikeThis) {
    gps_text text = format_text(buffer, sizeof buffer, &report, &stamp);
    EXPECT_FALSE(text.cut);
    EXPECT_STREQ(buffer,
                 "========= GPUSHARE ERROR: double-free in cudaFree, by producer (pid 1234)\n"
                 "=========     memory that is freed already was freed again\n"
                 "=========     at 0x7f1200000000, 64 MiB (67108864 bytes), GPU 0, context 0xc0\n"
                 "=========     region frames (id 00112233445566778899aabbccddeeff)\n"
                 "=========     it was freed by another thread\n"
                 "=========     other process: consumer (pid 4242)\n"
                 "=========     other process: viewer (pid 4243 in pid namespace 78), since "
                 "2026-11-21T02:33:20.000000Z\n"
                 "=========     Host frames:\n"
                 "=========         #0 0x1b2c in /opt/app/libframes.so\n"
                 "=========         #1 0x40 in /opt/app/producer\n"
                 "=========         #2 0x7f0000001000 in ?\n"
                 "=========     Allocated at:\n"
                 "=========         #0 0x99 in /opt/app/producer\n"
                 "=========     Freed by viewer (pid 4243 in pid namespace 78), "
                 "2026-11-21T02:33:20.000000Z\n"
                 "=========     Hint: free each allocation once; clear the pointer after cudaFree\n"
                 "=========\n");
}

TEST(TextReport, LeavesOutWhatIsNotKnown) {
    Full full;
    gps_report report = report_of(GPS_CONFIG_ERROR);
    char buffer[GPS_LOGLINE_BYTES];
    format_text(buffer, sizeof buffer, &report, &full.stamp);
    EXPECT_STREQ(buffer,
                 "========= GPUSHARE ERROR: config-error, by producer (pid 1234)\n"
                 "=========     the configuration cannot be used; gpushare is off in this process\n"
                 "=========     Hint: correct it and test it with: gpushare check FILE\n"
                 "=========\n");
}

TEST(TextReport, JoinsWhatIsKnownOfTheMemory) {
    Full full;
    const struct {
        uint64_t pointer, size;
        int device;
        const char *line;
    } cases[] = {
        {0x10, 0, -1, "=========     at 0x10\n"},
        {0, 1000, -1, "=========     1000 B\n"},
        {0, 0, 3, "=========     GPU 3\n"},
        {0x10, 0, 3, "=========     at 0x10, GPU 3\n"},
        {0, 1536, 3, "=========     1.5 KiB (1536 bytes), GPU 3\n"},
    };
    for (const auto &each : cases) {
        gps_report report = report_of(GPS_DOUBLE_FREE);
        char buffer[GPS_LOGLINE_BYTES];
        report.pointer = each.pointer;
        report.size = each.size;
        report.device = each.device;
        format_text(buffer, sizeof buffer, &report, &full.stamp);
        EXPECT_EQ(lines_of(buffer).at(2) + "\n", each.line);
    }
}

TEST(TextReport, NamesARegionByWhatItHas) {
    Full full;
    gps_report report = report_of(GPS_DOUBLE_FREE);
    char buffer[GPS_LOGLINE_BYTES];
    report.name = "frames";
    format_text(buffer, sizeof buffer, &report, &full.stamp);
    EXPECT_EQ(lines_of(buffer).at(2), "=========     region frames");
    report.name = nullptr;
    report.region = &full.id;
    format_text(buffer, sizeof buffer, &report, &full.stamp);
    EXPECT_EQ(lines_of(buffer).at(2),
              "=========     region with id 00112233445566778899aabbccddeeff");
}

TEST_F(FullReport, NameTheRank) {
    stamp.rank = "3";
    format_text(buffer, sizeof buffer, &report, &stamp);
    EXPECT_NE(std::string(buffer).find(" by producer (pid 1234, rank 3)\n"), std::string::npos)
        << buffer;
    const gps_text text = format_jsonl(buffer, sizeof buffer, &report, &stamp, 0xa1);
    const Json json = json_of(std::string(buffer, text.length)).at(0);
    EXPECT_EQ(json["rank"].kind, Json::Number);
    EXPECT_EQ(json["rank"].text, "3");
}

TEST_F(FullText, ForeignTextCannotSteerTheTerminal) {
    strcpy(others[0].owner.command, "\x1b[2J\nx");
    report.detail = "a\nb\x1b";
    strcpy(stack[0].module, "/tmp/\x1b[31m");
    format_text(buffer, sizeof buffer, &report, &stamp);
    EXPECT_EQ(std::string(buffer).find('\x1b'), std::string::npos);
    EXPECT_NE(std::string(buffer).find("other process: ?[2J?x (pid 4242)\n"), std::string::npos);
    EXPECT_NE(std::string(buffer).find("=========     a?b?\n"), std::string::npos);
}

const Strings json_keys = {"ts",     "pid",   "pid_ns",  "tid",     "command", "arguments",
                           "rank",   "level", "finding", "api",     "ptr",     "size",
                           "region", "name",  "device",  "context", "message", "hint",
                           "count",  "site",  "stack",   "prior",   "detail",  "others"};

TEST_F(FullJson, HasEveryField) {
    gps_text text = format_jsonl(buffer, sizeof buffer, &report, &stamp, 0xa1);
    Json json = json_of(std::string(buffer, text.length)).at(0);
    EXPECT_EQ(json.keys, json_keys);
    EXPECT_EQ(json["ts"].text, "2026-11-21T02:34:05.123456Z");
    EXPECT_EQ(json["pid"].text, "1234");
    EXPECT_EQ(json["pid"].kind, Json::Number);
    EXPECT_EQ(json["pid_ns"].text, "77");
    EXPECT_EQ(json["tid"].text, "1235");
    EXPECT_EQ(json["command"].text, "producer");
    EXPECT_EQ(json["rank"].kind, Json::Null);
    EXPECT_EQ(json["level"].text, "error");
    EXPECT_EQ(json["finding"].text, "double-free");
    EXPECT_EQ(json["api"].text, "cudaFree");
    EXPECT_EQ(json["ptr"].text, "0x7f1200000000");
    EXPECT_EQ(json["ptr"].kind, Json::String);
    EXPECT_EQ(json["size"].text, "67108864");
    EXPECT_EQ(json["size"].kind, Json::Number);
    EXPECT_EQ(json["region"].text, "00112233445566778899aabbccddeeff");
    EXPECT_EQ(json["name"].text, "frames");
    EXPECT_EQ(json["device"].text, "0");
    EXPECT_EQ(json["device"].kind, Json::Number);
    EXPECT_EQ(json["message"].text, "memory that is freed already was freed again");
    EXPECT_EQ(json["hint"].text, "free each allocation once; clear the pointer after cudaFree");
    EXPECT_EQ(json["count"].text, "1");
    EXPECT_EQ(json["context"].text, "0xc0");
    EXPECT_EQ(json["site"].text, "00000000000000a1");
    EXPECT_EQ(json["detail"].text, "it was freed by another thread");
    const Json &frames = json["stack"];
    ASSERT_EQ(frames.elements.size(), 3u);
    EXPECT_EQ(frames.elements[0].keys, (Strings{"module", "offset", "build_id"}));
    EXPECT_EQ(frames.elements[0]["module"].text, "/opt/app/libframes.so");
    EXPECT_EQ(frames.elements[0]["offset"].text, "0x1b2c");
    EXPECT_EQ(frames.elements[0]["build_id"].text, "00ff");
    EXPECT_TRUE(frames.elements[1]["build_id"].is_null());
    EXPECT_TRUE(frames.elements[2]["module"].is_null());
    EXPECT_EQ(frames.elements[2]["offset"].text, "0x7f0000001000");
    const Json &parties = json["others"];
    ASSERT_EQ(parties.elements.size(), 2u);
    EXPECT_EQ(parties.elements[0].keys, (Strings{"pid", "pid_ns", "command", "since"}));
    EXPECT_TRUE(parties.elements[0]["since"].is_null());
    EXPECT_EQ(parties.elements[1]["since"].text, "2026-11-21T02:33:20.000000Z");
    EXPECT_EQ(parties.elements[1]["pid_ns"].text, "78");
    EXPECT_EQ(parties.elements[0]["pid"].text, "4242");
    EXPECT_EQ(parties.elements[0]["command"].text, "consumer");
    EXPECT_EQ(parties.elements[1]["command"].text, "viewer");
    const Json &prior = json["prior"];
    ASSERT_EQ(prior.elements.size(), 2u);
    EXPECT_EQ(prior.elements[0].keys, (Strings{"pid", "pid_ns", "command", "what", "ts", "stack"}));
    EXPECT_EQ(prior.elements[0]["what"].text, "allocated");
    EXPECT_EQ(prior.elements[0]["pid"].text, "1234"); // its own
    EXPECT_TRUE(prior.elements[0]["ts"].is_null());
    EXPECT_EQ(prior.elements[0]["stack"].elements.at(0)["offset"].text, "0x99");
    EXPECT_EQ(prior.elements[1]["what"].text, "freed");
    EXPECT_EQ(prior.elements[1]["pid"].text, "4243");
    EXPECT_EQ(prior.elements[1]["ts"].text, "2026-11-21T02:33:20.000000Z");
    EXPECT_TRUE(prior.elements[1]["stack"].elements.empty());
}

TEST(JsonReport, NamesTheCallAsItStandsInAProgram) {
    const struct {
        const char *abi, *name;
    } cases[] = {{"cuMemFree_v2", "cuMemFree"},
                 {"cuMemFreeAsync_ptsz", "cuMemFreeAsync"},
                 {"cudaMalloc3D", "cudaMalloc3D"}};
    for (const auto &each : cases) {
        Full full;
        char buffer[GPS_LOGLINE_BYTES];
        full.report.api = each.abi;
        format_jsonl(buffer, sizeof buffer, &full.report, &full.stamp, 0);
        EXPECT_EQ(json_of(buffer).at(0)["api"].text, each.name);
    }
}

TEST(JsonReport, WhatIsNotKnownIsNull) {
    gps_report report = report_of(GPS_CONFIG_ERROR);
    gps_stamp stamp = {1, 1, 1, 0, "x", nullptr, nullptr, false, 0};
    char buffer[GPS_LOGLINE_BYTES];
    format_jsonl(buffer, sizeof buffer, &report, &stamp, 0);
    Json json = json_of(buffer).at(0);
    EXPECT_EQ(json.keys, json_keys);
    for (const char *key :
         {"pid_ns", "api", "ptr", "size", "region", "name", "device", "context", "site", "detail"})
        EXPECT_TRUE(json[key].is_null()) << key;
    EXPECT_EQ(json["stack"].kind, Json::Array);
    EXPECT_TRUE(json["stack"].elements.empty());
    EXPECT_EQ(json["others"].kind, Json::Array);
    EXPECT_TRUE(json["others"].elements.empty());
    EXPECT_EQ(json["prior"].kind, Json::Array);
    EXPECT_TRUE(json["prior"].elements.empty());
    EXPECT_EQ(json["count"].text, "1");
}

TEST_F(FullJson, QuotesWhatItIsGiven) {
    stamp.command = "a\"b\\c\n";
    report.detail = "\xff\x01";
    strcpy(stack[0].module, "/tmp/\"x\"");
    format_jsonl(buffer, sizeof buffer, &report, &stamp, 1);
    Json json = json_of(buffer).at(0);
    EXPECT_EQ(json["command"].text, "a\"b\\c\n");
    EXPECT_EQ(json["detail"].text, "\xef\xbf\xbd\x01");
    EXPECT_EQ(json["stack"].elements[0]["module"].text, "/tmp/\"x\"");
}

constexpr size_t SMALL = 8192;

// Frames whose modules take six bytes a character as JSON.
struct Huge : Full {
    std::vector<gps_frame> frames;

    Huge() : frames(GPS_STACK_MAX) {
        for (size_t i = 0; i < frames.size(); i++) {
            memset(frames[i].module, '\x01', sizeof frames[i].module - 1);
            frames[i].offset = i;
        }
        report.stack = frames.data();
        report.stack_count = GPS_STACK_MAX;
        report.prior[0] = {"allocated", nullptr, 0, 0, frames.data(), GPS_STACK_MAX};
        report.prior[1] = {"freed", &others[1].owner, 1, 0, frames.data(), GPS_STACK_MAX};
    }
};

TEST(JsonReport, PythonFramesHaveThreeKeysMore) {
    Full full;
    full.stack[1] = python_frame("/opt/\"cam\".py", 12, "release");
    full.stack[2] = python_frame("<stdin>", 0, "<module>");
    char buffer[GPS_LOGLINE_BYTES];
    const gps_text text = format_jsonl(buffer, sizeof buffer, &full.report, &full.stamp, 0);
    const Json stack = json_of(std::string(buffer, text.length)).at(0)["stack"];
    EXPECT_EQ(stack.elements[0].keys, (Strings{"module", "offset", "build_id"}));
    EXPECT_EQ(stack.elements[1].keys,
              (Strings{"module", "offset", "build_id", "file", "line", "function"}));
    EXPECT_TRUE(stack.elements[1]["module"].is_null());
    EXPECT_EQ(stack.elements[1]["file"].text, "/opt/\"cam\".py");
    EXPECT_EQ(stack.elements[1]["line"].text, "12");
    EXPECT_EQ(stack.elements[1]["function"].text, "release");
    EXPECT_TRUE(stack.elements[2]["line"].is_null());
}

TEST(JsonReport, DropsFramesFromTheEndWhenItIsTooLong) {
    Huge huge;
    char buffer[SMALL];
    gps_text text = format_jsonl(buffer, sizeof buffer, &huge.report, &huge.stamp, 1);
    Json json = json_of(std::string(buffer, text.length)).at(0);
    const Json &stack = json["stack"];
    EXPECT_FALSE(text.cut);
    EXPECT_TRUE(json["prior"].elements.empty()); // they went first
    EXPECT_GE(stack.elements.size(), 5u);
    EXPECT_LT(stack.elements.size(), GPS_STACK_MAX);
    for (size_t i = 0; i < stack.elements.size(); i++)
        EXPECT_EQ(std::stoul(stack.elements[i]["offset"].text, nullptr, 16), i);
    EXPECT_EQ(json["detail"].text, "it was freed by another thread");
    EXPECT_EQ(json["others"].elements.size(), 2u);
    EXPECT_GT(text.length + 900, sizeof buffer); // not one frame fewer than need be
}

TEST(JsonReport, DropsTheDetailWhenFramesDoNotSuffice) {
    Huge huge;
    std::string detail(SMALL, 'x');
    char buffer[SMALL];
    huge.report.detail = detail.c_str();
    format_jsonl(buffer, sizeof buffer, &huge.report, &huge.stamp, 1);
    Json json = json_of(buffer).at(0);
    EXPECT_TRUE(json["stack"].elements.empty());
    EXPECT_TRUE(json["detail"].is_null());
    EXPECT_EQ(json["others"].elements.size(), 2u);
    EXPECT_EQ(json["name"].text, "frames");
}

TEST(JsonReport, IsValidAtEveryLength) {
    for (unsigned frames = 0; frames <= GPS_STACK_MAX; frames += 16) {
        for (size_t length = 0; length < 9000; length += 700) {
            Huge huge;
            std::string detail(length, '"');
            std::vector<gps_party> others(frames * 10, huge.others[0]);
            char buffer[SMALL];
            huge.report.stack_count = frames;
            huge.report.detail = detail.c_str();
            huge.report.others = others.data();
            huge.report.other_count = static_cast<unsigned>(others.size());
            gps_text text = format_jsonl(buffer, sizeof buffer, &huge.report, &huge.stamp, 1);
            ASSERT_FALSE(text.cut);
            ASSERT_EQ(json_of(buffer).size(), 1u);
        }
    }
}

TEST(TextReport, SaysHowManyFramesItLeftOut) {
    Huge huge;
    char buffer[SMALL];
    for (gps_frame &frame : huge.frames)
        memset(frame.module, 'm', sizeof frame.module - 1);
    gps_text text = format_text(buffer, sizeof buffer, &huge.report, &huge.stamp);
    std::string all = buffer;
    size_t shown = count_of(all, " in mmm");
    EXPECT_FALSE(text.cut);
    EXPECT_GT(shown, 30u);
    EXPECT_LT(shown, 64u);
    EXPECT_NE(all.find("(" + std::to_string(64 - shown) + " more frames)\n"), std::string::npos);
    EXPECT_NE(all.find("Hint: "), std::string::npos);
    EXPECT_EQ(all.substr(all.size() - 11), "\n=========\n");
}

TEST(Format, EachLineHasThePidAndTheLevelAColour) {
    gps_line line = {};
    gps_stamp stamp = {1, 1234, 1235, 77, "producer", nullptr, nullptr, false, 0};
    char buffer[512];
    line.report = report_of(GPS_CONFIG_ERROR);
    for (const char *title : {"GPUSHARE ERROR: ", "\033[31mGPUSHARE ERROR\033[0m: "}) {
        stamp.colour = *title == '\033';
        gps_format_line(buffer, sizeof buffer, line, &stamp, gps_format_text);
        const Strings lines = lines_of(buffer);
        EXPECT_EQ(lines.at(0), std::string("========= [1234] ") + title +
                                   "config-error, by producer (pid 1234)");
        for (const std::string &each : lines)
            EXPECT_EQ(each.find("========= [1234]"), 0u);
        EXPECT_EQ(lines.back(), "========= [1234]");
    }
}

// --- what is written ---

TEST(Log, FiltersByLevel) {
    Outcome run = in_child([] {
        open_log("stderr", GPS_LOG_JSONL, GPS_LEVEL_ERROR);
        if (send(GPS_SHARE_TIMEOUT, 1)) // a warning
            return 1;
        if (!send(GPS_DOUBLE_FREE, 2))
            return 2;
        gps_log_summary();
        return 0;
    });
    std::vector<Json> json = json_of(run.err);
    EXPECT_EQ(run.status, 0);
    ASSERT_EQ(json.size(), 2u);
    EXPECT_EQ(json[0]["finding"].text, "double-free");
    EXPECT_EQ(json[1]["message"].text, "1 finding (1 error), 0 repeated");
}

TEST(Log, WithoutAKnownCallSiteNothingIsARepeat) {
    Outcome run = in_child([] {
        open_log();
        return send(GPS_CONFIG_ERROR) && send(GPS_CONFIG_ERROR) ? 0 : 1;
    });
    EXPECT_EQ(run.status, 0);
    EXPECT_EQ(count_of(run.err, "========= GPUSHARE ERROR"), 2u);
}

TEST(LogSummary, SumsUpInText) {
    Outcome run = summed([] {
        gps_report report = report_of(GPS_DOUBLE_FREE, 7);
        report.api = "cudaFree";
        report.pointer = 0x7f00;
        open_log();
        send(report);
        send(report);
        send(report);
        send(GPS_SHARE_TIMEOUT, 8);
        send(GPS_SHARE_TIMEOUT, 8);
        send(GPS_OPEN_STALE, 9);
    });
    Strings lines = lines_of(run.err);
    std::set<std::string> repeats(lines.end() - 3, lines.end() - 1);
    EXPECT_EQ(repeats, (std::set<std::string>{
                           "========= GPUSHARE: double-free in cudaFree, first at 0x7f00: 2 more "
                           "from the same call site",
                           "========= GPUSHARE: share-timeout: 1 more from the same call site"}));
    EXPECT_EQ(lines.back(), "========= GPUSHARE SUMMARY: 3 findings (2 errors), 3 repeated");
}

TEST(LogSummary, ARaisedReportIsNoRepeatAndItsRepeatsHaveItsLevel) {
    Outcome run = summed([] {
        gps_report report = report_of(GPS_FREE_WHILE_OPEN, 7);
        open_log("stderr", GPS_LOG_JSONL, GPS_LEVEL_WARNING);
        send(report);
        report.raised = true;
        send(report);
        send(report);
    });
    std::vector<Json> json = json_of(run.err);
    ASSERT_EQ(json.size(), 4u) << run.err;
    EXPECT_EQ(json[0]["level"].text, "warning");
    EXPECT_EQ(json[1]["level"].text, "error");
    EXPECT_EQ(json[2]["level"].text, "error") << "the repeat's";
    EXPECT_EQ(json[3]["message"].text, "2 findings (1 error), 1 repeated");
}

TEST(LogSummary, ARaisedReportPassesByItsLevel) {
    Outcome run = in_child([] {
        gps_report report = report_of(GPS_FREE_WHILE_OPEN, 7);
        open_log("stderr", GPS_LOG_JSONL, GPS_LEVEL_ERROR);
        const bool usual = send(report);
        report.raised = true;
        return !usual && send(report) ? 0 : 1;
    });
    EXPECT_EQ(run.status, 0) << run.err;
}

TEST(LogSummary, ComesOnceAndOnlyIfThereWasAnything) {
    Outcome silent = summed([] { open_log(); });
    EXPECT_EQ(silent.err, "");

    Outcome once = summed([] {
        open_log();
        gps_log_summary(); // too early: nothing to say, and it may come again
        send(GPS_DOUBLE_FREE, 1);
        gps_log_summary();
    });
    EXPECT_EQ(count_of(once.err, "SUMMARY"), 1u);
}

TEST(LogSummary, CountsWhatWasReportedBeforeTheLogWasOpened) {
    Outcome run = summed([] {
        send(GPS_CONFIG_ERROR);
        open_log();
    });
    EXPECT_EQ(lines_of(run.err).back(),
              "========= GPUSHARE SUMMARY: 1 finding (1 error), 0 repeated");
}

TEST(LogSummary, SaysWhenTheTableOfCallSitesWasFull) {
    Outcome run = in_child([] {
        open_log();
        for (uint64_t site = 1; site <= 256; site++)
            if (!send(GPS_DOUBLE_FREE, site))
                return 1;
        for (uint64_t site = 1; site <= 256; site++)
            if (send(GPS_DOUBLE_FREE, site))
                return 2;
        if (!send(GPS_DOUBLE_FREE, 300) || !send(GPS_DOUBLE_FREE, 300)) // written each time
            return 3;
        gps_log_summary();
        return 0;
    });
    EXPECT_EQ(run.status, 0);
    EXPECT_EQ(lines_of(run.err).back(),
              "========= GPUSHARE SUMMARY: 258 findings (258 errors), 256 repeated; too many call "
              "sites to count the repeats of all");
}

// --- stderr ---

TEST(LogStderr, ClosedStderrLosesReportsAndTheSummarySaysSo) {
    Outcome run = summed([] {
        int copy = fcntl(STDERR_FILENO, F_DUPFD, 10);
        open_log();
        send(GPS_DOUBLE_FREE, 1);
        close(STDERR_FILENO);
        send(GPS_DOUBLE_FREE, 2);
        send(GPS_DOUBLE_FREE, 3);
        dup2(copy, STDERR_FILENO);
    });
    EXPECT_EQ(count_of(run.err, "GPUSHARE ERROR"), 1u);
    EXPECT_EQ(
        lines_of(run.err).back(),
        "========= GPUSHARE SUMMARY: 3 findings (3 errors), 0 repeated, 2 could not be written");
}

TEST(LogStderr, ASocketFromTheStartIsStderr) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    Outcome run = in_child([&] {
        dup2(ends[0], STDERR_FILENO);
        gps_sink_start();
        open_log();
        send(GPS_DOUBLE_FREE, 1);
        return 0;
    });
    char buffer[8192];
    ssize_t got = recv(ends[1], buffer, sizeof buffer, MSG_DONTWAIT);
    ASSERT_GT(got, 0);
    EXPECT_EQ(without_pids(std::string(buffer, static_cast<size_t>(got)))
                  .find("========= GPUSHARE ERROR"),
              0u);
    close(ends[0]);
    close(ends[1]);
}

TEST(LogStderr, ADatabaseThatTookItsNumberIsLeftAloneAndALogIsWritten) {
    Directory directory;
    auto with = [&](const char *name, int flags) {
        in_child([&] {
            open_log();
            close(STDERR_FILENO);
            if (open((directory.path + "/" + name).c_str(), flags | O_CREAT, 0600) != STDERR_FILENO)
                return 1;
            send(GPS_DOUBLE_FREE, 1);
            return 0;
        });
        return directory.read(name);
    };
    EXPECT_EQ(with("database", O_RDWR), "");
    EXPECT_EQ(with("log", O_WRONLY).find("========= GPUSHARE ERROR"), 0u);
}

// --- signals and limits ---

volatile sig_atomic_t handled;

void count_signal(int) {
    handled = handled + 1;
}

// Makes stderr a pipe that nobody reads.
void break_stderr() {
    int ends[2];
    if (pipe(ends) != 0)
        _exit(90);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    gps_sink_start();
}

TEST(LogSignals, TheProgramsHandlerDoesNotHearOfIt) {
    passes([] {
        signal(SIGPIPE, count_signal);
        break_stderr();
        open_log();
        send(GPS_DOUBLE_FREE, 1);
        if (handled != 0)
            return 1;
        // And the program's own still arrives.
        if (write(STDERR_FILENO, "x", 1) != -1 || errno != EPIPE)
            return 2;
        return handled == 1 ? 0 : 3;
    });
}

TEST(LogSignals, OneThatWasPendingStaysPending) {
    passes([] {
        sigset_t block, pending, mask;
        sigemptyset(&block);
        sigaddset(&block, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &block, nullptr);
        raise(SIGPIPE);
        break_stderr();
        open_log();
        send(GPS_DOUBLE_FREE, 1);
        sigpending(&pending);
        pthread_sigmask(SIG_BLOCK, nullptr, &mask);
        if (!sigismember(&mask, SIGPIPE) || sigismember(&mask, SIGXFSZ))
            return 1;
        return sigismember(&pending, SIGPIPE) ? 0 : 2;
    });
}

TEST(LogSignals, AFileSizeLimitDoesNotKillTheProgram) {
    Directory directory;
    Outcome run = in_child([&] {
        rlimit limit = {0, 0};
        sigset_t pending;
        signal(SIGXFSZ, SIG_DFL);
        setrlimit(RLIMIT_FSIZE, &limit);
        open_log(directory.path + "/log");
        send(GPS_DOUBLE_FREE, 1);
        sigpending(&pending);
        return sigismember(&pending, SIGXFSZ) ? 1 : 0;
    });
    EXPECT_EQ(run.status, 0);
    EXPECT_EQ(lines_of(run.err).at(0), "========= GPUSHARE: cannot write to the log " +
                                           directory.path +
                                           "/log: File too large; reports go to stderr");
    EXPECT_EQ(count_of(run.err, "GPUSHARE ERROR: double-free"), 1u);
}

TEST(Log, ContinuesAWriteThatWasPartial) {
    passes([] {
        int ends[2], room = 4096;
        char fill[4096] = {};
        std::string got;
        if (pipe2(ends, O_NONBLOCK) != 0)
            return 1;
        room = fcntl(ends[1], F_SETPIPE_SZ, 8192);
        if (room != 8192 || write(ends[1], fill, sizeof fill) != sizeof fill)
            return 2;
        dup2(ends[1], STDERR_FILENO);
        gps_sink_start();
        open_log();
        std::thread reader([&] {
            char buffer[1024];
            usleep(5000);
            for (int idle = 0; idle < 200; idle++) {
                ssize_t n = read(ends[0], buffer, sizeof buffer);
                if (n > 0) {
                    got.append(buffer, static_cast<size_t>(n));
                    idle = 0;
                } else {
                    usleep(1000);
                }
            }
        });
        Huge huge; // a report of 8 KiB into 4 KiB of room
        for (gps_frame &frame : huge.frames)
            memset(frame.module, 'm', sizeof frame.module - 1);
        send(huge.report);
        reader.join();
        return got.size() > 4096 + 7000 && got.find("Hint: ") != std::string::npos ? 0 : 3;
    });
}

// --- log files ---

TEST(LogFile, IsAppendedToAndPrivate) {
    Directory directory;
    std::string path = directory.path + "/log";
    struct stat info;
    for (int i = 0; i < 2; i++)
        in_child([&] {
            umask(0);
            open_log(path, GPS_LOG_JSONL);
            send(GPS_DOUBLE_FREE, 1);
            send(GPS_DOUBLE_FREE, 2);
            return 0;
        });
    EXPECT_EQ(json_of(directory.read("log")).size(), 4u);
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777u, 0600u);
}

TEST(LogFile, StaysWhereItWasWhenTheProgramChangesDirectory) {
    Directory directory;
    in_child([&] {
        if (chdir(directory.path.c_str()) != 0)
            return 1;
        open_log("relative.log");
        if (chdir("/") != 0)
            return 1;
        send(GPS_DOUBLE_FREE, 1);
        return 0;
    });
    EXPECT_EQ(count_of(directory.read("relative.log"), "GPUSHARE ERROR"), 1u);
}

TEST(LogFile, WhoseNameIsTooLongIsNotCut) {
    Directory directory;
    std::string path = directory.path;
    Outcome run = in_child([&] {
        gps_options options = options_of("", GPS_LOG_TEXT, GPS_LEVEL_INFO);
        gps_owner self = self_of("1234567890123456789012345678901");
        std::string log = path + "/";
        while (log.size() + 4 < GPS_CONFIG_PATH)
            log += "/%c";
        strcpy(options.log, log.c_str());
        gps_log_open(&options, &self, nullptr, nullptr);
        send(GPS_DOUBLE_FREE, 1);
        return 0;
    });
    EXPECT_NE(run.err.find(": File name too long; reports go to stderr\n"), std::string::npos);
    EXPECT_EQ(count_of(run.err, "GPUSHARE ERROR"), 1u);
}

TEST(LogFile, AFifoThatNobodyReadsDoesNotBlock) {
    Directory directory;
    std::string path = directory.path + "/fifo";
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    Outcome run = in_child([&] {
        alarm(10);
        open_log(path);
        send(GPS_DOUBLE_FREE, 1);
        return 0;
    });
    EXPECT_EQ(run.status, 0);
    EXPECT_EQ(count_of(run.err, "GPUSHARE ERROR"), 1u);
}

// --- many writers ---

const int writers = 8, reports_each = 100;

void write_many(const std::string &log, gps_log_format format) {
    std::vector<pid_t> children;
    for (int i = 0; i < writers; i++) {
        pid_t child = fork();
        if (child == 0) {
            open_log(log, format);
            for (int n = 0; n < reports_each; n++) {
                Full full; // with frames, over 1 KiB
                full.report.pointer = static_cast<uint64_t>(i * 1000 + n + 1);
                send(full.report);
            }
            _exit(0);
        }
        children.push_back(child);
    }
    for (pid_t child : children) {
        int status;
        waitpid(child, &status, 0);
    }
}

TEST(LogSink, FollowsNoSymbolicLinkAndWritesIntoNobodyElsesFile) {
    Directory directory;
    const std::string target = directory.path + "/target", link = directory.path + "/link";
    std::ofstream(target) << "kept\n";
    ASSERT_EQ(symlink(target.c_str(), link.c_str()), 0);
    const auto twice = [](const std::string &path) {
        return in_child([&] {
            open_log(path);
            send(GPS_DOUBLE_FREE, 1);
            send(GPS_DOUBLE_FREE, 2);
            return 0;
        });
    };
    Outcome run = twice(link);
    EXPECT_EQ(count_of(run.err, "cannot write to the log " + link + ": it is a symbolic link;"), 1u)
        << run.err;
    EXPECT_EQ(count_of(run.err, "GPUSHARE ERROR"), 2u);
    EXPECT_EQ(directory.read("target"), "kept\n");
    SKIP_IF(geteuid() != 0, "needs root");
    ASSERT_EQ(chown(target.c_str(), 1, 1), 0);
    run = twice(target);
    EXPECT_EQ(count_of(run.err, target + ": it belongs to another user;"), 1u) << run.err;
    EXPECT_EQ(count_of(run.err, "GPUSHARE ERROR"), 2u);
    EXPECT_EQ(directory.read("target"), "kept\n");
}

TEST(LogConcurrency, LinesOfProcessesStayWholeInAFile) {
    Directory directory;
    std::set<std::string> pointers;
    write_many(directory.path + "/log", GPS_LOG_JSONL);
    for (const Json &json : json_of(directory.read("log"))) {
        EXPECT_EQ(json.keys, json_keys);
        pointers.insert(json["ptr"].text);
    }
    EXPECT_EQ(pointers.size(), static_cast<size_t>(writers * reports_each));
}

TEST(LogConcurrency, ReportsOfProcessesStayWholeOnOnePipe) {
    Outcome run = in_child([] {
        write_many("stderr", GPS_LOG_TEXT);
        return 0;
    });
    Strings lines = lines_of(run.err);
    const auto advice = std::remove(lines.begin(), lines.end(),
                                    "========= GPUSHARE: to see functions and lines: log_format = "
                                    "jsonl, then gpushare report LOG");
    EXPECT_EQ(std::distance(advice, lines.end()), writers) << "once a process";
    lines.erase(advice, lines.end());
    ASSERT_EQ(lines.size(), static_cast<size_t>(writers * reports_each * 16));
    for (size_t i = 0; i < lines.size(); i += 16) {
        ASSERT_EQ(lines[i].find("========= GPUSHARE ERROR: double-free"), 0u) << lines[i];
        ASSERT_EQ(lines[i + 15], "=========");
    }
}

TEST(LogConcurrency, ThreadsCountEveryRepeatOnce) {
    Outcome run = summed([] {
        std::vector<std::thread> threads;
        open_log("stderr", GPS_LOG_JSONL);
        for (int i = 0; i < 8; i++)
            threads.emplace_back([] {
                for (uint64_t n = 0; n < 1000; n++)
                    send(GPS_DOUBLE_FREE, n % 10 + 1);
            });
        for (std::thread &thread : threads)
            thread.join();
    });
    std::vector<Json> json = json_of(run.err);
    ASSERT_EQ(json.size(), 21u); // 10 call sites, their repeats, and the sum
    EXPECT_EQ(json.back()["message"].text, "10 findings (10 errors), 7990 repeated");
    for (size_t i = 10; i < 20; i++)
        EXPECT_EQ(json[i]["count"].text, "799");
}

// --- fork ---

TEST(LogFork, AChildReportsAsTextUntilItOpensTheLog) {
    Directory directory;
    Outcome run = in_child([&] {
        open_log(directory.path + "/log.%p", GPS_LOG_JSONL);
        send(GPS_DOUBLE_FREE, 1);
        send(GPS_DOUBLE_FREE, 1);
        pid_t child = fork();
        if (child == 0) {
            bool written =
                send(GPS_DOUBLE_FREE, 1); // the parent's call site is none of its repeats
            gps_log_summary();            // and the parent's counts are not its own
            _exit(written ? 0 : 1);
        }
        int status;
        waitpid(child, &status, 0);
        return status == 0 ? 0 : 1;
    });
    EXPECT_EQ(run.status, 0);
    EXPECT_EQ(count_of(run.err, "GPUSHARE ERROR: double-free, by app (pid "), 1u) << run.err;
    EXPECT_EQ(count_of(run.err, "SUMMARY"), 0u);
    EXPECT_EQ(json_of(directory.read("log." + std::to_string(run.pid))).size(), 1u);
}

TEST(LogFork, AChildThatOpensTheLogBeginsAnew) {
    Outcome run = summed([] {
        open_log();
        send(GPS_DOUBLE_FREE, 1);
        send(GPS_DOUBLE_FREE, 1);
        send(GPS_OPEN_STALE, 2);
        pid_t child = fork();
        if (child == 0) {
            open_log("stderr", GPS_LOG_JSONL);
            send(GPS_DOUBLE_FREE, 1);
            send(GPS_DOUBLE_FREE, 1);
            send(GPS_DOUBLE_FREE, 1);
            gps_log_summary();
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
    });
    EXPECT_NE(run.err.find("\"message\":\"1 finding (1 error), 2 repeated\""), std::string::npos)
        << run.err;
    EXPECT_EQ(lines_of(run.err).back(),
              "========= GPUSHARE SUMMARY: 2 findings (2 errors), 1 repeated");
}

TEST(LogFork, AVforkedChildDoesNotSumUpForItsParent) {
    Outcome run = summed([] {
        open_log();
        send(GPS_DOUBLE_FREE, 1);
        pid_t child = vfork();
        if (child == 0) {
            gps_log_summary();
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
    });
    EXPECT_EQ(count_of(run.err, "SUMMARY"), 1u);
}

} // namespace
