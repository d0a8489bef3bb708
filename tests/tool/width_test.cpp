// What the tool prints on terminals of 80 and 200 columns, and narrower: it fits, and no word is
// broken.
#include "harness.hpp"
#include "logmaker.hpp"

namespace {

// Its words, without the margin of reports.
std::vector<std::string> words(const std::string &text) {
    std::istringstream stream(text);
    std::vector<std::string> all;
    for (std::string word; stream >> word;)
        if (word != "=========")
            all.push_back(word);
    return all;
}

std::vector<std::string> sorted(std::vector<std::string> all) {
    std::sort(all.begin(), all.end());
    return all;
}

const std::string long_name = "frames-of-a-camera-that-has-a-long-name-42";

class Width : public testing::Test {
  protected:
    std::string on(int columns, std::vector<std::string> line) {
        line.insert(line.begin(), tool_path());
        Environment environment = shared.environment();
        environment["NO_COLOR"] = "1";
        return on_terminal(columns, line, environment);
    }
    // The same words, in lines that fit.
    void expect_to_wrap(const std::vector<std::string> &line) {
        const Result plain = shared.tool(line);
        for (const int columns : {60, 80, 200}) {
            const std::string text = on(columns, line);
            expect_to_fit(text, columns);
            EXPECT_EQ(sorted(words(text)), sorted(words(plain.out + plain.err))) << text;
        }
    }

    Shared shared;
    Temporary place;
};

LogLine report_of(int pid, const std::string &offset) {
    LogLine line;
    line.pid = pid;
    line.site = "0000000000000" + offset.substr(2);
    line.command = "a-program-of-a-rather-long-name.py";
    line.arguments = "--model /models/of/a/very/long/path --gpu 1 --port 8000 --workers 16";
    line.detail =
        "a sentence that has many words, and so is longer than a terminal of eighty columns";
    line.stack = frame("/opt/company/lib/libmodels.so.1", offset, "abcdef");
    line.prior = prior("freed", 8, "producer", line.stack);
    return line;
}

} // namespace

TEST_F(Width, RowsGoOnBelowAndBreakBetweenItems) {
    const Peer owner(shared, "a-daemon-of-co");
    const auto first = shared.region(owner.owner, long_name, 1);
    const auto second = shared.region(owner.owner, "", 2);
    const std::vector<Hold> holds = {{first.id}, {second.id}};
    const Peer a(shared, "viewer-a", holds), b(shared, "viewer-b", holds), c(shared, "v", holds);
    for (const int columns : {80, 200})
        for (const std::vector<std::string> &line : std::vector<std::vector<std::string>>{
                 {"ls"}, {"top", "--once"}, {"show", long_name}, {"show", pid_text(a.owner)}})
            expect_to_fit(on(columns, line), columns);
    const std::string ls = on(80, {"ls"});
    EXPECT_TRUE(contains(ls, "\n        3: viewer-a ") || contains(ls, "  3: viewer-a ")) << ls;
    EXPECT_HAS(ls, long_name + "  ");
    EXPECT_LACKS(on(200, {"ls"}), "\n        ");
}

TEST_F(Width, ReportsWrapBehindTheirMargin) {
    std::string log;
    for (const char *offset : {"0x100", "0x200", "0x300", "0x400"})
        log += report_of(100, offset).text() + report_of(101, offset).text();
    const std::string file = place.file("log", log);
    expect_to_wrap({"report", file});
    std::istringstream lines(on(80, {"report", file}));
    for (std::string line; std::getline(lines, line);)
        EXPECT_EQ(line.find("========="), 0u) << line;
}

TEST_F(Width, WhereNoRoomIsLeftBesideALabelATextBeginsBelowIt) {
    const std::string conf = place.file("conf", "[region a]\nprogram = a\nrole = auto\n");
    const std::string text = on(50, {"check", "--all", conf});
    EXPECT_HAS(text, "\n        share: enforce and report; audit: only");
    EXPECT_EQ(sorted(words(text)), sorted(words(shared.tool({"check", "--all", conf}).out)));
}

TEST_F(Width, MessagesWrapOnATerminalAndAreOneLineElsewhere) {
    expect_to_wrap({"show", "nothing-of-this-name"});
    expect_to_wrap({"ls", "--no-such-option"});
    expect_to_wrap({"audit", "--no-such-option"});
    expect_to_wrap({"timeline", place.file("empty", "\n")});
    const std::string conf = place.file("conf", "[region a]\nrole = no-such-role\n");
    expect_to_wrap({"check", conf});
    const Result result = shared.tool({"audit", "--no-such-option"});
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}
