// Suppressions: what they match, what is wrong with them, and that generated ones do what they say.
#include "harness.hpp"
#include "logmaker.hpp"

namespace {

class Suppress : public testing::Test {
  protected:
    void SetUp() override {
        app = std::filesystem::absolute(std::filesystem::path(tool_path()).parent_path() /
                                        "tests/apps/where");
        std::istringstream(command({app}).out) >> offset;
        LogLine line;
        line.name = "frames";
        line.stack = frame("/no/libcudart.so.13", "0x1") + "," + frame(app, offset) + "," +
                     frame("/no/libold.so.1", "0x2");
        line.prior = prior("freed", 7, "producer", frame("/no/libpool.so", "0x3"));
        log = place.file("log", line.text());
    }
    Result with(const std::string &text) {
        return tool({"report", "--suppressions", place.file("s.conf", text), log});
    }
    bool suppresses(const std::string &keys) {
        const Result result = with("[suppress it]\n" + keys);
        EXPECT_EQ(result.status, 0) << result.err;
        const bool none = result.out == "========= GPUSHARE SUMMARY: 0 findings, 1 suppressed\n";
        EXPECT_TRUE(none || contains(result.out, "1 finding (1 error)")) << result.out;
        return none;
    }
    std::string error(const std::string &text) {
        const Result result = with(text);
        EXPECT_OUT(result, 3, "");
        const std::string before = place.file("s.conf") + ":";
        EXPECT_EQ(result.err.find(before), 0u) << result.err;
        return result.err.substr(std::min(before.size(), result.err.size()));
    }

    Temporary place;
    std::string app, offset, log;
};

} // namespace

TEST_F(Suppress, EveryKeyMatches) {
    EXPECT_TRUE(suppresses("finding = double-free\n"));
    EXPECT_FALSE(suppresses("finding = double-close\n"));
    EXPECT_TRUE(suppresses("name = fra*\n"));
    EXPECT_FALSE(suppresses("name = weights\n"));
    EXPECT_TRUE(suppresses("command = app\n"));
    EXPECT_FALSE(suppresses("command = ap\n"));
    EXPECT_TRUE(suppresses("module = libold.so.?\n"));
    EXPECT_FALSE(suppresses("module = libnew*\n"));
}

TEST_F(Suppress, AFunctionMatchesByAnyOfItsNames) {
    EXPECT_TRUE(suppresses("function = shop::Buffer::release(int)\n"));
    EXPECT_TRUE(suppresses("function = shop::Buffer::release\n"));
    EXPECT_TRUE(suppresses("function = _ZN4shop6Buffer7releaseEi\n"));
    EXPECT_TRUE(suppresses("function = shop::drop*\n")) << "inlined";
    EXPECT_FALSE(suppresses("function = release\n"));
}

TEST_F(Suppress, AllKeysMustMatchAndModuleAndFunctionInOneFrame) {
    EXPECT_TRUE(suppresses("finding = double-free\nmodule = where\nfunction = shop::*\n"));
    EXPECT_FALSE(suppresses("finding = double-free\nmodule = libold*\nfunction = shop::*\n"));
    EXPECT_FALSE(suppresses("finding = open-stale\nmodule = where\n"));
}

TEST_F(Suppress, FramesOfEarlierEventsCount) {
    EXPECT_TRUE(suppresses("module = libpool.so\n"));
}

// What a library does by itself has its frames alone; a program's call of it has the program's,
// too.
TEST_F(Suppress, CallersMatchWhereAllOfTheUsersFramesDo) {
    const std::string library = frame("/no/libold.so.1", "0x2"),
                      libc = frame("/no/libc.so.6", "0x1");
    const auto fits = [&](const std::string &stack) {
        LogLine line;
        line.stack = frame("/no/libcudart.so.13", "0x1") + "," + stack;
        line.prior = prior("allocated", 100, "app", frame("/no/app", "0x5"));
        log = place.file("log", line.text());
        return suppresses("callers = libold.so*\n");
    };
    EXPECT_TRUE(fits(library));
    EXPECT_TRUE(fits(library + "," + library + "," + libc));
    EXPECT_TRUE(fits(library + "," + frame("/no/libstdc++.so.6", "0x3") + "," + libc));
    EXPECT_FALSE(fits(library + "," + frame("/no/app", "0x4")));
    EXPECT_FALSE(fits(frame("/no/app", "0x4") + "," + library));
    EXPECT_FALSE(fits(library + "," + python("/no/cam.py", 1, "main")));
    EXPECT_FALSE(fits(library + "," + frame("", "0x4"))) << "it may be anybody's";
    EXPECT_FALSE(fits(libc)) << "it is nobody's";
}

TEST_F(Suppress, CallersOfALeakAreThoseOfItsLastEvent) {
    LogLine line;
    line.finding = "leak-open";
    line.prior = prior("opened", 100, "app", frame("/no/libold.so.1", "0x1"));
    log = place.file("log", line.text());
    EXPECT_TRUE(suppresses("callers = libold.so*\n"));
    EXPECT_FALSE(suppresses("callers = libnew.so*\n"));
}

TEST_F(Suppress, WhatALibraryIsKnownToDoIsLeftOutUnlessItIsAskedFor) {
    LogLine line;
    line.finding = "free-while-open";
    line.stack = frame("/pip/libnccl.so.2", "0x1") + "," + frame("/no/libc.so.6", "0x2");
    log = place.file("log", line.text());
    const Result result = tool({"report", "--fail-on=info", log});
    EXPECT_ERR(result, 0, "");
    EXPECT_EQ(result.out, "========= GPUSHARE SUMMARY: 0 findings, 1 left out as known in "
                          "libnccl.so.2 (--no-default-suppressions shows them)\n");
    const Result all = tool({"report", "--no-default-suppressions", "--fail-on=info", log});
    EXPECT_OUT_HAS(all, 1, "SUMMARY: 1 finding (1 error), ");
    EXPECT_EQ(with("[suppress a]\nname = x\n[suppress b]\nmodule = libnccl*\n").out,
              "========= GPUSHARE SUMMARY: 0 findings, 1 suppressed\n")
        << "the user's counts as such";
    const Result sarif = tool({"report", "--sarif", log});
    EXPECT_EQ(
        Json::parse(sarif.out)["runs"][0]["results"][0]["suppressions"][0]["justification"].text,
        "known in libnccl.so.2");
    EXPECT_EQ(command({"python3", "-m", "jsonschema", "-i", place.file("x.sarif", sarif.out),
                       "tests/tool/sarif.schema.json"})
                  .status,
              0);
    EXPECT_EQ(tool({"report", "--json", log}).out, "[]\n");
}

// A copy of it as the user's own file is no error, and what else NCCL does is not known.
TEST_F(Suppress, TheToolsOwnFileHidesOneFindingOfItsLibrary) {
    LogLine line;
    line.stack = frame("/pip/libnccl.so.2", "0x1");
    log = place.file("log", line.text());
    const Result result = tool({"report", "-s", "config/suppressions.conf", log});
    EXPECT_HAS(result.out, "1 finding (1 error)");
    EXPECT_HAS(result.err, "[suppress libnccl.so.2] matched nothing");
}

TEST_F(Suppress, AnySectionWillDo) {
    EXPECT_EQ(with("[suppress a]\nname = x\n[suppress b]\nname = frames\n").out,
              "========= GPUSHARE SUMMARY: 0 findings, 1 suppressed\n");
    EXPECT_HAS(with("; nothing\n").out, "1 finding");
}

TEST_F(Suppress, MistakesAreExplainedAndNothingIsReported) {
    EXPECT_EQ(error("[suppress a]\nfunktion = x\n"),
              "2: funktion: unknown key; allowed: finding, module, function, callers, name, "
              "command, stack\n" +
                  place.file("s.conf") +
                  ":1: [suppress a] has no key, and so would suppress everything; give one of "
                  "finding, module, function, callers, name, command, stack\n");
    EXPECT_EQ(error("[suppress a]\nfinding = dubble-free\n"),
              "2: finding = dubble-free: no such finding, but perhaps double-free; allowed: an id "
              "of `gpushare explain --list`, as double-free\n");
    EXPECT_EQ(error("[suppress a]\nname = a\n[suppress a]\nname = b\n"),
              "3: [suppress a] is given twice; it was first in line 1\n");
    EXPECT_EQ(error("[suppress a]\nname = a\nname = b\n"),
              "3: name: given twice in this section\n");
    EXPECT_EQ(error("[region a]\nname = a\n"), "1: [region a] unknown section; [suppress NAME]\n");
    EXPECT_EQ(error("name = a\n"), "1: a key outside a section; [suppress NAME] must precede it\n");
    EXPECT_EQ(error("[suppress a\nname = a\n"),
              "1: a section without its ]; write [suppress NAME]\n");
    EXPECT_EQ(error("[suppress a]\nstack = 12\n"),
              "2: stack = 12: no such hash; allowed: 16 hexadecimal digits, as --gen-suppressions "
              "prints\n");
    EXPECT_HAS(error("[suppress a]\nmodule = [a\n"), "a [ is not closed");
    EXPECT_HAS(error("[suppress a]\nmodule =\n"), "no value");
    EXPECT_HAS(error("[suppress a]\nmodule = " + std::string(128, 'x') + "\n"),
               "longer than 127 characters");
}

TEST_F(Suppress, AFileThatIsMissingIsAFailure) {
    const Result result = tool({"report", "-s", "/no/such", log});
    EXPECT_ERR(result, 3, "/no/such: cannot be read: No such file or directory\n");
    EXPECT_EQ(result.out, "");
}

TEST_F(Suppress, GeneratedOnesSuppressWhatTheyWereMadeOf) {
    const Result made = tool({"report", "--gen-suppressions", log});
    EXPECT_EQ(made.status, 0);
    EXPECT_EQ(made.out.find("[suppress double-free-"), 0u) << made.out;
    EXPECT_HAS(made.out, "]\nfinding = double-free\nmodule = where\n"
                         "function = shop::drop(int)\n");
    EXPECT_EQ(with(made.out).out, "========= GPUSHARE SUMMARY: 0 findings, 1 suppressed\n");
    EXPECT_EQ(tool({"report", "--gen-suppressions", "-s", place.file("s.conf"), log}).out, "");
}

TEST_F(Suppress, WithoutAStackGeneratedOnesNameTheLastEventsPlace) {
    LogLine line;
    line.finding = "leak-open";
    line.prior = prior("opened", 100, "app",
                       frame("/no/libcudart.so.13", "0x1") + "," + frame(app, offset)) +
                 "," + prior("closed", 100, "app", "");
    log = place.file("log", line.text());
    const Result made = tool({"report", "--gen-suppressions", log});
    EXPECT_HAS(made.out, "]\nfinding = leak-open\nmodule = where\n"
                         "function = shop::drop(int)\n");
    EXPECT_EQ(with(made.out).out, "========= GPUSHARE SUMMARY: 0 findings, 1 suppressed\n");
}

TEST_F(Suppress, ALongNameOfASectionOrAFunctionIsNoError) {
    const std::string name(10000, 'x');
    EXPECT_EQ(
        with("[suppress " + name + "]\nfunction = *release*" + std::string(2000, '*') + "\n").out,
        "========= GPUSHARE SUMMARY: 0 findings, 1 suppressed\n");
    EXPECT_EQ(error("[suppress " + name + "]\n").substr(0, 30), "1: [suppress xxxxxxxxxxxxxxxxx");
}

TEST_F(Suppress, GeneratedOnesEndALongFileNameInAStar) {
    for (size_t length : {127u, 128u, 255u}) {
        LogLine line;
        line.finding = "odd";
        line.command = std::string(length, 'c');
        log = place.file("log", line.text());
        const Result made = tool({"report", "--gen-suppressions", log});
        EXPECT_EQ(with(made.out).out, "========= GPUSHARE SUMMARY: 0 findings, 1 suppressed\n")
            << made.out << with(made.out).err;
    }
}

TEST_F(Suppress, GeneratedOnesHoldNamesThatAnIniFileWouldNot) {
    LogLine line;
    line.finding = "odd]\\nx";
    line.command = "a ; [b] \\\"c\\\" # d\\n[suppress]";
    log = place.file("log", line.text());
    const Result made = tool({"report", "--gen-suppressions", log});
    EXPECT_EQ(std::count(made.out.begin(), made.out.end(), '\n'), 3) << made.out;
    EXPECT_EQ(with(made.out).out, "========= GPUSHARE SUMMARY: 0 findings, 1 suppressed\n")
        << made.out << with(made.out).err;
}

TEST_F(Suppress, SarifHasThemMarked) {
    const Result result =
        tool({"report", "--sarif", "-s", place.file("s.conf", "[suppress a]\nname = *\n"), log});
    const Json sarif = Json::parse(result.out);
    const Json &one = sarif["runs"][0]["results"][0];
    EXPECT_EQ(one["suppressions"][0]["kind"].text, "external");
    EXPECT_EQ(Json::parse(tool({"report", "--json", "-s", place.file("s.conf"), log}).out).size(),
              0u);
}

TEST_F(Suppress, PythonFramesHaveTheirSourceAsModule) {
    LogLine line;
    line.stack = frame("/no/libcudart.so.13", "0x1") + "," + python("/opt/cam.py", 12, "release");
    log = place.file("log", line.text());
    EXPECT_TRUE(suppresses("module = cam.py\n"));
    EXPECT_TRUE(suppresses("function = rel*\n"));
    EXPECT_TRUE(suppresses("module = cam.py\nfunction = release\n"));
    EXPECT_FALSE(suppresses("module = libcudart*\nfunction = release\n"));
    EXPECT_FALSE(suppresses("module = view.py\n"));
    const std::string made = tool({"report", "--gen-suppressions", log}).out;
    EXPECT_HAS(made, "\nmodule = cam.py\nfunction = release\n");
    EXPECT_HAS(with(made).out, "0 findings, 1 suppressed");
}
