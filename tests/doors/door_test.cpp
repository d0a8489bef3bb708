// door_test.cpp - every way a call can take to the driver: whether it is seen, under which name,
// and that the program cannot tell.

#include "patience.hpp"
#include "program.hpp"

namespace {

using Words = std::vector<std::string>;

enum Seen {
    RUNTIME, // and reports name the runtime's function
    DRIVER,  // and reports name the driver's
    NOT,     // by nature: said here so that nobody promises it
};

struct Door {
    const char *name;
    const char *app;
    Words arguments;
    Seen seen;
};

void PrintTo(const Door &door, std::ostream *out) {
    *out << door.name;
}

Program program_of(const Door &door) {
    Words line = {app(door.app)};
    for (const auto &word : door.arguments)
        line.push_back(word.rfind(".so") == std::string::npos ? word : app(word));
    Program program(line);
    program.environment("DOOR_PEER", app("peer"));
    return program;
}

class Doors : public testing::TestWithParam<Door> {};

// The walk's second line holds the marks, which a bare run has not.
std::string codes_of(const Outcome &outcome) {
    std::string codes;
    for (const auto &line : lines_of(outcome.out))
        if (line.rfind("published=", 0) != 0)
            codes += line + "\n";
    return codes;
}

void expect_marks(const Outcome &outcome, bool seen) {
    for (const auto &line : lines_of(outcome.out))
        if (line.rfind("published=", 0) == 0) {
            EXPECT_EQ(line, seen ? "published=1 held=1 left=0" : "published=0 held=0 left=0");
        }
}

void expect_seen(const Door &door, const Program &program) {
    const Outcome bare = program.run_bare(), run = program.run();
    ASSERT_EQ(bare.status, 0) << bare.out << bare.err;
    EXPECT_EQ(run.status, 0) << run.out << run.err;
    EXPECT_EQ(codes_of(run), codes_of(bare));
    EXPECT_NE(bare.out.find("free=0,1"), std::string::npos) << bare.out;
    EXPECT_EQ(run.err, bare.err);
    expect_marks(bare, false);
    expect_marks(run, door.seen != NOT);
    const bool runtime = door.seen == RUNTIME;
    EXPECT_EQ(run.has("double-free", runtime ? "cudaFree" : "cuMemFree"), door.seen != NOT)
        << run.log;
    EXPECT_EQ(run.has("double-open", runtime ? "cudaIpcOpenMemHandle" : "cuIpcOpenMemHandle"),
              door.seen != NOT)
        << run.log;
    EXPECT_EQ(run.left, Words()) << "what was published is removed at the end";
}

TEST_P(Doors, EveryKindOfCallIsSeenAndTheProgramCannotTell) {
    expect_seen(GetParam(), program_of(GetParam()));
}

// libcuda.so.1 goes on in another library, which its resolvers' answers lead to at once.
TEST_P(Doors, AlsoOfADriverInTwoLayers) {
    const std::string path = app("layers") + ":" + build_directory() + "/sim";
    expect_seen(GetParam(), program_of(GetParam()).environment("LD_LIBRARY_PATH", path));
}

const Door doors[] = {
    {"LinkedDriver", "door-driver", {"linked"}, DRIVER},
    {"LinkedSharedRuntime", "door-runtime", {"linked"}, RUNTIME},
    {"LinkedStaticRuntime", "door-static", {"linked"}, DRIVER},
    {"Handle", "door", {"handle"}, DRIVER},
    {"HandleOfALibraryLoadedDeepbind", "door", {"deepbind"}, DRIVER},
    {"DefaultScopeWithLinkedDriver", "door-driver", {"default"}, DRIVER},
    {"DefaultScopeWithDriverLoadedGlobally", "door", {"global"}, DRIVER},
    {"DefaultScopeWithSharedRuntime", "door-runtime", {"runtime-default"}, RUNTIME},
    {"DefaultScopeOfALocalLibrarysOwnDependency", "door", {"plugin", "plugin-default.so"}, DRIVER},
    {"DefaultScopeWithRuntimeLoadedGlobally", "door", {"runtime-global"}, RUNTIME},
    {"HandleOfTheProgramWithRuntimeLoadedGlobally", "door", {"runtime-self"}, RUNTIME},
    {"DefaultScopeOfALocalLibrarysOwnRuntime",
     "door",
     {"plugin", "plugin-runtime-default.so"},
     RUNTIME},
    {"HandleOfTheProgram", "door-driver", {"self"}, DRIVER},
    {"NextFromTheProgram", "door-driver", {"next"}, DRIVER}, // what comes next is gpushare
    {"GetProcAddressV1", "door", {"get1", "11030"}, DRIVER},
    {"GetProcAddressV1Old", "door", {"get1", "7000"}, DRIVER},
    {"GetProcAddressV1PerThread", "door", {"get1", "12000", "2"}, DRIVER},
    {"GetProcAddressV2Default", "door", {"get2", "12000"}, DRIVER},
    {"GetProcAddressV2Legacy", "door", {"get2", "12000", "1"}, DRIVER},
    {"GetProcAddressV2PerThread", "door", {"get2", "13000", "2"}, DRIVER},
    {"GetProcAddressOfItself", "door", {"get2-self", "12000"}, DRIVER},
    {"EntryPoint", "door-runtime", {"entry"}, DRIVER},
    {"EntryPointByVersion", "door-runtime", {"entry", "12040", "2"}, DRIVER},
    {"EntryPointByOldVersion", "door-runtime", {"entry", "5000"}, DRIVER},
    {"EntryPointOfStaticRuntime", "door-static", {"entry", "13000", "1"}, DRIVER},
    {"LocalLibraryWithDriver", "door", {"plugin", "plugin-driver.so"}, DRIVER},
    {"LocalLibraryWithSharedRuntime", "door", {"plugin", "plugin-runtime.so"}, RUNTIME},
    {"LocalLibraryWithStaticRuntime", "door", {"plugin", "plugin-static.so"}, DRIVER},
    {"LocalLibraryBoundLazily", "door", {"plugin-lazy", "plugin-runtime.so"}, RUNTIME},
    {"LibraryWithRuntimeBesideAnother", "door-static", {"plugin", "plugin-runtime.so"}, RUNTIME},
    {"UnderlinkedDriver", "door-driver", {"plugin", "plugin-under-driver.so"}, DRIVER},
    {"UnderlinkedRuntime", "door-runtime", {"plugin", "plugin-under-runtime.so"}, RUNTIME},
    // RTLD_NEXT is what interposers ask for: answering with ourselves would make them loop.
    {"NextFromALocalLibrary", "door", {"plugin", "plugin-next.so"}, NOT},
    // A library loaded with RTLD_DEEPBIND looks into its own dependencies first, dlsym included:
    // nothing that is preloaded sees its calls.
    {"DeepbindDriver", "door", {"plugin-deepbind", "plugin-driver.so"}, NOT},
    {"DeepbindRuntime", "door", {"plugin-deepbind", "plugin-runtime.so"}, NOT},
    {"DeepbindStaticRuntime", "door", {"plugin-deepbind", "plugin-static.so"}, NOT},
    {"DeepbindDefaultScope", "door", {"plugin-deepbind", "plugin-default.so"}, NOT},
};
INSTANTIATE_TEST_SUITE_P(All, Doors, testing::ValuesIn(doors),
                         [](const auto &param) { return param.param.name; });

// --- doors that lead nowhere
// -----------------------------------------------------------------------

Outcome both(Program program, Outcome *bare) {
    *bare = program.run_bare();
    return program.run();
}

TEST(NoDriver, TheDefaultScopeHasNoFunction) {
    Outcome bare;
    const Outcome run = both(Program({app("door"), "print-default"}).without_driver(), &bare);
    EXPECT_EQ(bare.out, "null: " + app("door") + ": undefined symbol: cuMemAlloc_v2\n");
    // The same but for the object that the linker names, which is the one whose dlsym it was.
    EXPECT_EQ(run.out, "null: " + library_path() + ": undefined symbol: cuMemAlloc_v2\n");
}

TEST(NoDriver, ADriverLoadedLocallyIsNotInTheProgramsScope) {
    Outcome bare;
    const Outcome run = both(Program({app("door"), "print-local"}), &bare);
    EXPECT_EQ(bare.out.rfind("null:", 0), 0u) << bare.out;
    EXPECT_EQ(run.out.rfind("null:", 0), 0u) << run.out;
}

TEST(NoDriver, NorInThatOfALibraryWithoutTheDependency) {
    Outcome bare;
    const Outcome run =
        both(Program({app("door"), "plugin", app("plugin-default-none.so")}), &bare);
    EXPECT_EQ(bare.out, "not found: undefined symbol: cuIpcCloseMemHandle\n");
    EXPECT_EQ(run.out, bare.out);
}

// The runtime's names, by every handle and with versions: found where they are found bare, and the
// same is said where they are not.
class Scopes : public testing::TestWithParam<Words> {};

TEST_P(Scopes, HoldTheRuntimesNamesAsWithoutUs) {
    Words line = GetParam();
    for (auto &word : line)
        word = word == "none" || word == "local" || word == "global" ? word : app(word);
    Outcome bare;
    const Outcome run = both(Program(line), &bare);
    EXPECT_EQ(bare.status, 0) << bare.err;
    EXPECT_NE(bare.out.find("default cudaMalloc: "), std::string::npos) << bare.out;
    EXPECT_EQ(run.out, bare.out);
    EXPECT_EQ(run.status, 0) << run.err;
}
INSTANTIATE_TEST_SUITE_P(All, Scopes,
                         testing::Values(Words{"scopes", "none"}, Words{"scopes", "local"},
                                         Words{"scopes", "global"}, Words{"scopes-runtime", "none"},
                                         Words{"scopes", "none", "scopes-plugin.so"},
                                         Words{"scopes", "local", "scopes-plugin.so"},
                                         Words{"scopes", "global", "scopes-plugin.so"},
                                         Words{"scopes", "none", "scopes-plugin-runtime.so"}));

TEST(NoDriver, UnversionedSymbolsHaveNoVersion) {
    Outcome bare;
    const Outcome run = both(Program({app("door"), "dlvsym"}), &bare);
    EXPECT_EQ(bare.out.rfind("not found: undefined symbol: cuIpcCloseMemHandle, version", 0), 0u);
    EXPECT_EQ(run.out, bare.out);
}

// Bare it cannot be loaded at all. With us its functions exist, and say "not initialized".
TEST(NoDriver, WrappersAnswerNotInitialized) {
    const Outcome driver = Program({app("door"), "plugin", app("plugin-under-driver.so")}).run();
    EXPECT_EQ(driver.out, "init=3\n");
    const Outcome runtime = Program({app("door"), "plugin", app("plugin-under-runtime.so")})
                                .environment("DOOR_PEER", app("peer"))
                                .run();
    EXPECT_EQ(runtime.out.rfind("alloc=3 export=3 own=3 open=3,3", 0), 0u) << runtime.out;
}

// --- libraries that come and go
// --------------------------------------------------------------------

TEST(Reloaded, ALibraryThatLoadedTheRuntimeMayBeUnloadedAndLoadedAgain) {
    Program program({app("door"), "plugin-twice", app("plugin-runtime.so")});
    program.environment("DOOR_PEER", app("peer"));
    const Outcome bare = program.run_bare(), run = program.run();
    EXPECT_EQ(codes_of(run), codes_of(bare));
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.findings, (std::vector<Finding>{{"open-own-handle", "cudaIpcOpenMemHandle"},
                                                  {"double-open", "cudaIpcOpenMemHandle"},
                                                  {"double-close", "cudaIpcCloseMemHandle"},
                                                  {"double-free", "cudaFree"},
                                                  {"open-own-handle", "cudaIpcOpenMemHandle"},
                                                  {"double-open", "cudaIpcOpenMemHandle"},
                                                  {"double-close", "cudaIpcCloseMemHandle"},
                                                  {"double-free", "cudaFree"}}))
        << run.log;
}

// --- our own threads
// -------------------------------------------------------------------------------

// A thread's stack holds what the program's libraries keep in each thread (KiB).
class Late : public testing::TestWithParam<int> {};

TEST_P(Late, MemoryComesBackHoweverMuchAThreadBeginsWith) {
    const Program program({app("late-" + std::to_string(GetParam()))});
    const Outcome bare = program.run_bare(), run = program.run();
    EXPECT_EQ(bare.out, "free: 0\ncame back: 1\n") << bare.err;
    EXPECT_EQ(run.out, bare.out) << run.err << run.log;
    EXPECT_EQ(run.status, 0);
    EXPECT_TRUE(run.has("free-while-open", "cudaFree")) << run.log;
}
INSTANTIATE_TEST_SUITE_P(All, Late, testing::Values(1, 504, 1024, 10240));

// --- several runtimes
// ------------------------------------------------------------------------------

// Each library's error shows in the runtime that the library is linked with, and in no other.
std::string expected_errors(int count) {
    std::string text;
    for (int round = 0; round < 4; round++)
        for (int i = 1; i <= count; i++) {
            text += std::to_string(i) + " calls: 1, errors";
            for (int k = 1; k <= count; k++)
                text += k == i ? " 1" : " 0";
            text += "\n";
        }
    return text;
}

void expect_own_runtimes(const Words &libraries) {
    Words line = {app("two-main")};
    for (const auto &library : libraries)
        line.push_back(app(library));
    const Outcome bare = Program(line).run_bare(), run = Program(line).run();
    EXPECT_EQ(bare.out, expected_errors(static_cast<int>(libraries.size())));
    EXPECT_EQ(run.out, bare.out) << run.err;
}

TEST(TwoRuntimes, EachCallerReachesItsOwn) {
    expect_own_runtimes({"two-11.so", "two-12.so"});
    expect_own_runtimes({"two-12.so", "two-11.so"});
}

TEST(TwoRuntimes, AlsoThroughALibraryInBetween) {
    expect_own_runtimes({"two-11.so", "two-by-two-12.so"});
    expect_own_runtimes({"two-13.so", "two-by-two-12.so", "two-11.so"});
}

TEST(TwoRuntimes, AlsoBesideAStaticOne) {
    expect_own_runtimes({"two-static.so", "two-13.so", "two-11.so", "two-12.so"});
}

// Every library of the pair stands where the other stood, and nothing but the program can tell.
void expect_as_bare(const Words &words, const std::string &expected) {
    Words line = {app(words[0])};
    for (size_t i = 1; i < words.size(); i++)
        line.push_back(app(words[i]));
    const Outcome bare = Program(line).run_bare(), run = Program(line).run();
    EXPECT_EQ(bare.out, expected);
    EXPECT_EQ(run.out, expected) << run.err;
}

TEST(Replaced, ALibraryAtThePlaceOfAnotherCallsItsOwnFunction) {
    const std::string fails = "there: fails 1, own error 1\n",
                      works = "there: fails 0, own error 0\n";
    expect_as_bare({"replaced", "swapped-close.so", "swapped-free.so", "swapped-close.so"},
                   fails + works + fails);
}

TEST(Replaced, ALibraryAtThePlaceOfAnotherReachesItsOwnRuntime) {
    const std::string own = "there: fails 1, own error 1\n";
    const Words both = {"libcudart.so.11", "libcudart.so.12"};
    for (const std::string kind : {"two", "bare"}) // with build ids, and without
        expect_as_bare({"replaced", both[0], both[1], kind + "-11.so", kind + "-12.so",
                        kind + "-11.so", kind + "-12.so"},
                       own + own + own + own);
}

TEST(Replaced, ARuntimeAtThePlaceOfAnotherIsCalledByItsOwnAddresses) {
    const Outcome run =
        Program({app("moved"), app("moved-first.so"), app("moved-second.so")}).run();
    EXPECT_EQ(run.out, "there: 101\nthere: 101\n") << run.err;
}

TEST(Replaced, ALibraryAtThePlaceOfAnotherIsInItsOwnReports) {
    const Outcome run = Program({app("replaced"), app("swapped-close.so"), app("swapped-again.so"),
                                 app("swapped-close.so")})
                            .run();
    const std::string there = "there: fails 1, own error 1\n";
    EXPECT_EQ(run.out, there + there + there) << run.err;
    for (const char *module : {"/swapped-close.so\"", "/swapped-again.so\""})
        EXPECT_NE(run.log.find(module), std::string::npos) << module << run.log;
}

// docs/limits.md says so.
TEST(Weak, AReferenceIsBoundWhereNothingHasCudaAndADlsymSaysThatNothingHas) {
    Program program({app("weak")});
    EXPECT_EQ(program.run().out, "linked yes, found no, answers 3\n");
    EXPECT_EQ(program.run_bare().out, "linked no, found no\n");
}

TEST(Replaced, OneSiteReachesEveryFunctionItCalls) {
    expect_as_bare({"onesite"}, "0: 1 0\n0: 1 0\n0: 1 0\n");
}

// A walk that forgets where it was takes 25 to the power of the layers.
TEST(Deep, AHundredSitesAreResolvedInTime) {
    const auto started = std::chrono::steady_clock::now();
    expect_as_bare({"replaced", "libcudart.so.11", "deep.so"}, "there: fails 0, own error 1\n");
    EXPECT_LT(std::chrono::steady_clock::now() - started,
              std::chrono::milliseconds(patient(20000)));
}

// --- other interposers
// -----------------------------------------------------------------------------

class Interposers : public testing::TestWithParam<std::tuple<const char *, bool, int>> {};

TEST_P(Interposers, WorkBesideUs) {
    static const Door through[] = {{"", "door-driver", {"linked"}, DRIVER},
                                   {"", "door-runtime", {"linked"}, RUNTIME},
                                   {"", "door-static", {"linked"}, DRIVER},
                                   {"", "door", {"handle"}, DRIVER},
                                   {"", "door", {"get2", "12000"}, DRIVER},
                                   {"", "door", {"plugin", "plugin-runtime.so"}, RUNTIME}};
    const auto &[library, before, which] = GetParam();
    Program program = program_of(through[which]);
    program.environment("INTERPOSER_COUNTS", "1");
    if (before)
        program.preload(app(library)).gpushare();
    else
        program.gpushare().preload(app(library));
    const Outcome bare = program.run_bare(), run = program.run();
    if (bare.status == 0) { // its RTLD_NEXT finds nothing in a library loaded locally
        EXPECT_EQ(codes_of(run), codes_of(bare)) << run.err;
        EXPECT_EQ(run.status, 0) << run.err;
        // One that replaces dlsym and asks libc itself hides from us what it looks up.
        const bool hidden = before && std::string(library) == "interposer-dlsym.so" && which != 0;
        EXPECT_EQ(run.has("double-open"), !hidden) << run.log;
    }
    if (before) {
        EXPECT_EQ(run.err, bare.err) << "it sees what it saw without us";
    }
}
INSTANTIATE_TEST_SUITE_P(All, Interposers,
                         testing::Combine(testing::Values("interposer-next.so",
                                                          "interposer-dlsym.so"),
                                          testing::Bool(), testing::Range(0, 6)));

// --- other worlds
// ----------------------------------------------------------------------------------

class Sanitized : public testing::TestWithParam<const char *> {};

TEST_P(Sanitized, ProgramsRunAsWithoutUs) {
    const std::string name = std::string("door-") + GetParam();
    if (access(app(name).c_str(), X_OK))
        GTEST_SKIP() << "no compiler or no runtime for it here";
    for (const char *door : {"linked", "entry"}) {
        Program program({app(name), door});
        program.environment("DOOR_PEER", app("peer"));
        const Outcome bare = program.run_bare(), run = program.run();
        ASSERT_EQ(bare.status, 0) << bare.err;
        EXPECT_EQ(run.status, 0) << run.err;
        EXPECT_EQ(codes_of(run), codes_of(bare));
        EXPECT_EQ(run.err, bare.err);
        expect_marks(run, true);
    }
}
INSTANTIATE_TEST_SUITE_P(All, Sanitized,
                         testing::Values("gcc-asan", "gcc-asan-shared", "gcc-ubsan", "gcc-tsan",
                                         "clang-asan", "clang-asan-shared", "clang-ubsan",
                                         "clang-tsan"),
                         [](const auto &param) {
                             std::string name = param.param;
                             for (auto &c : name)
                                 c = c == '-' ? '_' : c;
                             return name;
                         });

TEST(Early, CallsBeforeOurConstructorAreSeen) {
    const Program program({app("early")});
    const Outcome bare = program.run_bare(), run = program.run();
    EXPECT_EQ(bare.out, "0 1: 0 0 1\n");
    EXPECT_EQ(run.out, bare.out);
    EXPECT_TRUE(run.has("double-free", "cudaFree")) << run.err;
}

TEST(Threads, SixteenResolveAtOnce) {
    for (int round = 0; round < 10; round++) {
        const Outcome run = Program({app("threads")}).run();
        ASSERT_EQ(run.out, "same ours\n") << run.err;
    }
}

TEST(Exceptions, PassThroughUs) {
    Program program({app("throwing")});
    EXPECT_EQ(program.run().out, "none\nnone\nnone\n");
    program.environment("LD_LIBRARY_PATH", app("other-runtime") + ":" + build_directory() + "/sim");
    const Outcome bare = program.run_bare(), run = program.run();
    EXPECT_EQ(bare.out, "bad_alloc\n801\n801\n");
    EXPECT_EQ(run.out, bare.out);
}

// --- every name, every version
// ---------------------------------------------------------------------

// Whoever finds one of the table's functions finds ours in its place, and nothing else differs.
void expect_substituted(const Program &program, const std::vector<std::string> &table,
                        size_t at_least) {
    const auto bare = lines_of(program.run_bare().out), run = lines_of(program.run().out);
    ASSERT_GT(bare.size(), 20000u);
    ASSERT_EQ(run.size(), bare.size());
    size_t substituted = 0;
    for (size_t i = 0; i < bare.size(); i++) {
        const size_t at = bare[i].rfind(' '), before = bare[i].rfind(' ', at - 1);
        const std::string symbol = bare[i].substr(before + 1, at - before - 1);
        const bool ours = std::find(table.begin(), table.end(), symbol) != table.end();
        ASSERT_EQ(run[i], ours ? bare[i].substr(0, at) + " libgpushare.so" : bare[i]);
        substituted += ours;
    }
    EXPECT_GT(substituted, at_least);
}

TEST(Resolvers, AnswerAsTheRealOnesWithOurWrappersInPlaceOfTheTablesFunctions) {
    expect_substituted(Program({app("procaddr")}), driver_names(), 1000);
}

// A launch is the driver's alone but where a rule merges; copies and fills where no rule is for the
// program, but in an audit; records of events but there, waits for them with merging, too. What the
// driver says of memory is told by us where any rule is for the program.
enum Asked { NOTHING, RULE, AUDIT, ALL };

class Rules
    : public testing::TestWithParam<std::tuple<const char *, const char *, Asked, const char *>> {};

TEST_P(Rules, DecideWhatIsHookedBesides) {
    const auto &[program_glob, keys, asked, options] = GetParam();
    const std::string config = testing::TempDir() + "rules-" + std::to_string(getpid()) + ".conf";
    std::ofstream(config) << "[gpushare]\n"
                          << options << "[region r]\nprogram = " << program_glob << "\n"
                          << keys;
    auto table = driver_names();
    for (const auto &more : {asked == RULE || asked == ALL ? names_of({"told"}) : Words(),
                             asked >= RULE ? names_of({"write", "read"}) : Words(),
                             asked == ALL ? names_of({"merge"}) : Words(),
                             asked == AUDIT ? names_of({"event", "graph", "module"}) : Words(),
                             asked >= AUDIT ? names_of({"wait"}) : Words()})
        table.insert(table.end(), more.begin(), more.end());
    Program program({app("procaddr")});
    program.environment("GPUSHARE_CONFIG", config);
    expect_substituted(program, table, asked == ALL ? 6000 : asked >= RULE ? 5000 : 1000);
    unlink(config.c_str());
}
INSTANTIATE_TEST_SUITE_P(
    All, Rules,
    testing::Values(std::make_tuple("proc*", "role = merge\n", ALL, ""),
                    std::make_tuple("proc*", "role = auto\nbacking = vmm\naccess = ro\n", RULE, ""),
                    std::make_tuple("proc*", "role = auto\nbacking = vmm\n", RULE, ""),
                    std::make_tuple("proc*", "role = export\n", RULE, ""),
                    std::make_tuple("proc*", "role = import\n", RULE, ""),
                    std::make_tuple("proc*", "role = auto\n", RULE, ""),
                    std::make_tuple("proc*", "role = auto\n", RULE, "open_cache = 8\n"),
                    std::make_tuple("proc*", "role = auto\n", AUDIT,
                                    "open_cache = 8\nmode = audit\n"),
                    std::make_tuple("other", "role = merge\n", NOTHING, "")));

} // namespace
