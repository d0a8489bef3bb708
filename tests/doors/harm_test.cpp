// harm_test.cpp - programs behave with the library preloaded as they do without it.
#include "program.hpp"

namespace {

using Words = std::vector<std::string>;

// A rule for every allocation: the longest way through us.
class Rules {
  public:
    explicit Rules(const char *text = "[region x{n}]\nrole = export\nsize = *\nindex = *\n")
        : path("/tmp/gpushare-doors-rules-XXXXXX") {
        const int fd = mkstemp(path.data());
        close(fd);
        std::ofstream(path) << text;
    }
    ~Rules() {
        unlink(path.c_str());
    }
    Rules(const Rules &) = delete;
    Rules &operator=(const Rules &) = delete;
    std::string path;
};

Outcome expect_same(const Program &program) {
    const Outcome bare = program.run_bare(), run = program.run();
    EXPECT_EQ(run.status, bare.status);
    EXPECT_NE(bare.status, -1) << "it hangs without us";
    EXPECT_EQ(run.out, bare.out);
    EXPECT_EQ(run.err, bare.err);
    return run;
}

// --- programs without CUDA
// -------------------------------------------------------------------------

void expect_untouched(const Words &line) {
    const Outcome run = expect_same(Program(line));
    EXPECT_EQ(run.log, "");
    EXPECT_EQ(run.left, Words());
}

TEST(NoCuda, OrdinaryProgramsDoNotChange) {
    expect_untouched({"/bin/true"});
    expect_untouched({"/bin/false"});
    expect_untouched({"/bin/ls", "-l", "/usr"});
    expect_untouched({"/bin/ls", "/nowhere"});
    expect_untouched({"/bin/sh", "-c", "echo x | cat; (exit 3); echo $?; exit 5"});
    expect_untouched({"/bin/sh", "-c", "kill -TERM $$"});
}

TEST(NoCuda, NothingIsAddedToTheProcess) {
    const Outcome run = expect_same(Program({app("quiet")}));
    EXPECT_EQ(run.status, 7);
    EXPECT_EQ(run.out.find("libcuda"), std::string::npos) << run.out;
    EXPECT_NE(run.out.find("Threads:\t1\n"), std::string::npos) << run.out;
    EXPECT_EQ(run.left, Words());
}

TEST(NoCuda, PythonDoesNotChange) {
    const std::string python = "/usr/bin/python3";
    if (access(python.c_str(), X_OK))
        GTEST_SKIP() << "no " << python;
    expect_untouched({python, "-c", "import os, sys, threading; print(sys.version)"});
    expect_untouched({python, "-c", "import os; os._exit(9)"});
    expect_untouched({python, "-c", "import sys; sys.exit(4)"});
    expect_untouched({python, "-c", "import ctypes; print(ctypes.CDLL(None).getpid() > 0)"});
}

// System calls of a program, counted by name; the linker's of loading one more library are equal
// for any library, but for the number of its segments.
std::map<std::string, int> calls_of(const std::string &library) {
    const std::string trace = "/tmp/gpushare-doors-trace-" + std::to_string(getpid());
    output_of("strace -f -o " + trace + " -E LD_PRELOAD=" + library + " /bin/true");
    std::map<std::string, int> calls;
    for (const auto &line : lines_of(output_of("cat " + trace + "; rm " + trace))) {
        const size_t from = line.find_first_not_of("0123456789 ");
        if (from != std::string::npos && line.find('(', from) != std::string::npos)
            calls[line.substr(from, line.find('(', from) - from)]++;
    }
    return calls;
}

TEST(NoCuda, TrueMakesTwoSystemCallsMoreThanWithAnEmptyLibrary) {
    if (access("/usr/bin/strace", X_OK))
        GTEST_SKIP() << "no strace";
    try {
        output_of("strace -o /dev/null /bin/true 2>/dev/null");
    } catch (const std::exception &) {
        GTEST_SKIP() << "strace may not trace here";
    }
    const auto empty = calls_of(app("empty.so")), with = calls_of(library_path());
    std::map<std::string, int> more;
    for (const auto &[name, count] : with)
        if (count > (empty.count(name) ? empty.at(name) : 0))
            more[name] = count - (empty.count(name) ? empty.at(name) : 0);
    for (const char *loading : {"mmap", "mprotect", "munmap"})
        more.erase(loading);
    // what descriptor 2 is, and whose state it is
    const std::set<std::string> allowed = {"newfstatat", "fstat", "getpid"};
    for (const auto &[name, count] : more) {
        EXPECT_TRUE(allowed.count(name)) << name;
        EXPECT_EQ(count, 1) << name;
    }
    EXPECT_EQ(with.at("openat"), empty.at("openat"));
}

// --- the driver's codes, errno
// ---------------------------------------------------------------------

TEST(Codes, NullPointersAndHandlesOfNothingAnswerAsWithoutUs) {
    const Outcome run = expect_same(Program({app("codes")}));
    EXPECT_EQ(run.status, 0);
    EXPECT_GT(lines_of(run.out).size(), 350u);
}

TEST(Codes, AlsoWithARuleForEveryAllocation) {
    const Rules rules;
    expect_same(Program({app("codes")}).environment("GPUSHARE_CONFIG", rules.path));
}

TEST(Codes, AlsoWhenSwitchedOff) {
    const Outcome run = expect_same(Program({app("codes")}).environment("GPUSHARE_MODE", "off"));
    EXPECT_EQ(run.left, Words());
    EXPECT_EQ(run.log, "");
}

TEST(Codes, AlsoWhenTheConfigurationIsBroken) {
    Program program({app("codes")});
    program.environment("GPUSHARE_MODE", "nonsense");
    const Outcome bare = program.run_bare(), run = program.run();
    EXPECT_EQ(run.out, bare.out);
    EXPECT_EQ(run.status, bare.status);
    EXPECT_EQ(run.findings.size() + lines_of(run.err).size() > 0, true) << "it says so";
    EXPECT_EQ(run.left, Words());
}

TEST(Codes, AlsoWhenTheDirectoryCannotBeUsed) {
    Program program({app("codes")});
    program.environment("GPUSHARE_DIR", "/proc/nowhere");
    const Outcome bare = program.run_bare(), run = program.run();
    EXPECT_EQ(run.out, bare.out);
    EXPECT_EQ(run.status, bare.status);
    EXPECT_EQ(std::count_if(run.findings.begin(), run.findings.end(),
                            [](const Finding &f) { return f.id == "store-unavailable"; }),
              1)
        << run.log;
}

// --- what programs do
// ------------------------------------------------------------------------------

struct Action {
    const char *name;
    Words arguments;
    bool reports; // a double free reaches the log
};

void PrintTo(const Action &action, std::ostream *out) {
    *out << action.name;
}

class Harm : public testing::TestWithParam<Action> {};

TEST_P(Harm, TheProgramCannotTell) {
    Words line = {app("harm")};
    line.insert(line.end(), GetParam().arguments.begin(), GetParam().arguments.end());
    const Outcome run = expect_same(Program(line));
    EXPECT_EQ(run.has("double-free", "cudaFree"), GetParam().reports) << run.log;
}

TEST_P(Harm, NorWithARuleForEveryAllocation) {
    const Rules rules;
    Words line = {app("harm")};
    line.insert(line.end(), GetParam().arguments.begin(), GetParam().arguments.end());
    expect_same(Program(line).environment("GPUSHARE_CONFIG", rules.path));
}

const Action actions[] = {
    {"ClosesEveryDescriptor", {"close-all"}, false},
    {"ClosesStderr", {"close-stderr", "/dev/null"}, true},
    {"PutsASocketInItsPlace", {"socket-stderr"}, true},
    {"StderrIsABrokenPipe", {"broken-stderr"}, true},
    {"StderrIsAFullPipe", {"full-stderr"}, true},
    {"MakesChildrenOfEveryKind", {"children"}, true},
    {"ForksWhileAThreadLooksTheDriverUp", {"fork-while-looking"}, true},
    {"ForksWhileAThreadListsTheObjects", {"fork-while-listing"}, true},
    {"IsInterruptedByATimer", {"ticking"}, true},
    {"ReadsDlerror", {"dl-error"}, true},
    {"KeepsSignalMaskAndCancelState", {"state"}, true},
    {"IsCancelled", {"cancel"}, true},
    {"EndsAThread", {"thread-exit"}, true},
    {"HasASmallStack", {"small-stack", "16384"}, true},
    {"HasAnEvenSmallerStack", {"small-stack", "8192"}, true},
    {"Exits", {"exit", "9"}, true},
    {"ExitsWithZero", {"exit", "0"}, true},
    {"UnderscoreExits", {"_exit", "9"}, true},
    {"BigExits", {"_Exit", "255"}, true},
    {"QuickExits", {"quick_exit", "3"}, true},
    {"Returns", {"return", "77"}, true},
    {"Aborts", {"abort", "0"}, true},
    {"IsKilled", {"kill", "0"}, true},
    {"EndsByItsOwnSystemCall", {"syscall", "6"}, true},
    {"EndsWithItsLastThread", {"pthread_exit", "0"}, true},
};
INSTANTIATE_TEST_SUITE_P(All, Harm, testing::ValuesIn(actions),
                         [](const auto &param) { return param.param.name; });

// The same with reports on stderr, the default: the place that programs close and replace.
Program to_stderr(const Words &arguments) {
    Words line = {app("harm")};
    line.insert(line.end(), arguments.begin(), arguments.end());
    return Program(line)
        .environment("GPUSHARE_LOG", "stderr")
        .environment("GPUSHARE_LOG_FORMAT", "text");
}

void expect_same_output(const Program &program) {
    const Outcome bare = program.run_bare(), run = program.run();
    EXPECT_EQ(run.status, bare.status) << run.err;
    EXPECT_EQ(run.out, bare.out);
}

TEST(Stderr, WhatTheProgramPutsInItsPlaceStaysClean) {
    const std::string file = "/tmp/gpushare-doors-file-" + std::to_string(getpid());
    expect_same_output(to_stderr({"close-stderr", file}));
    EXPECT_EQ(std::filesystem::file_size(file), 0u);
    unlink(file.c_str());
    expect_same_output(to_stderr({"socket-stderr"}));
}

TEST(Stderr, ItsSignalsDoNotReachTheProgram) {
    expect_same_output(to_stderr({"broken-stderr"}));
    expect_same_output(to_stderr({"full-stderr"}));
}

TEST(Stderr, SmallStacksAreEnough) {
    expect_same_output(to_stderr({"small-stack", "16384"}));
}

TEST(Limits, NoDescriptorLeft) {
    const Outcome run = to_stderr({"files", "3"}).run();
    expect_same_output(to_stderr({"files", "3"}));
    EXPECT_NE(run.err.find("store-unavailable"), std::string::npos) << run.err;
    expect_same_output(Program({app("harm"), "files", "3"}));
    expect_same_output(Program({app("harm"), "files", "0"}));
}

TEST(Limits, NoFileMayGrow) {
    expect_same_output(Program({app("harm"), "file-size", "0"}));
    expect_same_output(to_stderr({"file-size", "0"}));
}

// --- signals
// ---------------------------------------------------------------------------------------

TEST(Signals, AHandlerThatEndsTheProcessEndsItWhereverItIs) {
    for (int round = 0; round < 200; round++) {
        const Outcome run = Program({app("harm"), "interrupted", std::to_string(round * 41 % 8000)})
                                .seconds(5)
                                .run();
        ASSERT_EQ(run.status, 42) << "round " << round << run.err;
    }
}

// Memory of a merge rule is mapped by a call of ours, inside a scope.
TEST(Signals, AFaultInsideTheDriverReachesTheProgramsHandler) {
    const Rules rules("[region x]\nrole = merge\nsize = *\nquiet = 1s\n");
    for (const int fault : {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS}) {
        const Outcome run = Program({app("harm"), "fault", std::to_string(fault)})
                                .environment("GPUSHARE_CONFIG", rules.path)
                                .run();
        EXPECT_EQ(run.status, fault) << run.err;
        EXPECT_EQ(run.out, "reported\n") << fault;
    }
}

// --- the end
// ---------------------------------------------------------------------------------------

TEST(Ends, NothingIsLeftBehindAfterTheProgramsOwnWays) {
    for (const char *how : {"exit", "_exit", "_Exit", "quick_exit", "return", "pthread_exit"}) {
        const Outcome run = Program({app("harm"), how, "0"}).run();
        EXPECT_EQ(run.left, Words()) << how;
        EXPECT_NE(run.log.find("\"finding\":null"), std::string::npos) << how << ": no summary";
    }
}

TEST(Ends, StaticObjectsUseCudaBeforeMainAndAfterIt) {
    const Rules rules;
    const Outcome run = expect_same(Program({app("statics")}));
    EXPECT_EQ(run.status, 5);
    EXPECT_EQ(run.left, Words());
    expect_same(Program({app("statics")}).environment("GPUSHARE_CONFIG", rules.path));
}

// --- look-ups
// --------------------------------------------------------------------------------------

TEST(Lookups, NamesThatAreNotOursAreFoundAsWithoutUs) {
    const Program program({app("lookups")});
    const auto bare = lines_of(program.run_bare().out), run = lines_of(program.run().out);
    ASSERT_EQ(run.size(), bare.size());
    ASSERT_GT(bare.size(), 1800u); // six ways to more than three hundred names
    for (size_t i = 0; i < bare.size(); i++)
        ASSERT_EQ(run[i], bare[i]);
    EXPECT_NE(std::find(run.begin(), run.end(), "registers: 0 0 0 0"), run.end());
}

} // namespace
