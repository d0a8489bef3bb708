// docs/log.schema.json is what the library promises to those who read its logs.
#include "harness.hpp"
#include "logmaker.hpp"
extern "C" {
#include "logs/logs.h"
}

namespace fs = std::filesystem;

// Every line of the files by the schema; what is wrong is the output.
static Result validate(const std::vector<std::string> &files) {
    std::vector<std::string> line = {"python3", "tests/tool/check_lines.py",
                                     "docs/log.schema.json"};
    line.insert(line.end(), files.begin(), files.end());
    return command(line);
}

TEST(LogSchema, HandWrittenLinesOfOtherTestsFollowIt) {
    Temporary place;
    LogLine line, rich;
    rich.stack = frame("/a/b", "0x1", "ab") + "," + frame("", "0x2") + "," +
                 python("cam.py", 7, "release") + "," + python("<stdin>", 0, "<module>");
    rich.prior = prior("allocated", 1, "app", frame("/a/b", "0x1"));
    rich.others = "{\"pid\":7,\"pid_ns\":null,\"command\":null,\"since\":null}";
    const Result result = validate({place.file("a", line.text() + rich.text())});
    EXPECT_EQ(result.status, 0) << result.out << result.err;
    line.level = "fatal";
    EXPECT_EQ(validate({place.file("b", line.text())}).status, 1) << "or nothing is checked";
}

// As the library writes them: else a long log takes ten times as long.
static void expect_read_in_place(const std::string &lines) {
    size_t count = 0;
    for (size_t at = 0, end; (end = lines.find('\n', at)) != std::string::npos; at = end + 1) {
        const std::string text = lines.substr(at, end - at);
        const char *wrong = nullptr;
        log_line *line = log_line_parse(text.c_str(), text.size(), false, &wrong);
        ASSERT_TRUE(line) << wrong << text;
        EXPECT_EQ(line->json, nullptr) << text;
        count += !line->json && line->prior.count > 0 && line->others.count > 0;
        log_line_free(line);
    }
    EXPECT_GT(count, 0u) << "no line has lists";
}

TEST(LogSchema, LinesOfRealProgramsFollowIt) {
    Temporary place, shared("/dev/shm");
    const fs::path build = fs::absolute(tool_path()).parent_path();
    const std::string script =
        "printf 'malloc a 4096\\nget a\\nfree a\\nfree a\\nfree a\\nmalloc b 4096\\nget b\\n"
        "closeat 10\\nfreeat 20\\nopen c %0128d\\nexit 0\\n' 0 | " +
        (build / "tests/apps/puppet").string() + "; " + (build / "tests/apps/misuse").string() +
        " leak-open";
    const Result run = tool({"audit", "--log", place.path + "/logs", "sh", "-c", script},
                            {{"GPUSHARE_DIR", shared.path + "/pub"},
                             {"GPUSHARE_CONFIG", place.file("config", "\n")},
                             {"GPUSHARE_SIM_ROOT", "@" + shared.path},
                             {"GPUSHARE_SIM_LINGER_MS", "50"},
                             {"LD_LIBRARY_PATH", build / "sim"}});
    std::vector<std::string> files;
    std::string lines;
    for (const auto &file : fs::directory_iterator(place.path + "/logs")) {
        files.push_back(file.path());
        lines += read_file(file.path());
    }
    ASSERT_FALSE(files.empty()) << run.err;
    const Result result = validate(files);
    EXPECT_EQ(result.status, 0) << result.out << result.err << run.err;
    expect_read_in_place(lines);
}
