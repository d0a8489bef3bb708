// finding_test.cpp - every finding is raised by a program that does it, and by no program that does
// the same job rightly; and the audit changes nothing of what either sees.
#include "gpushare/finding.h"
extern "C" {
#include "log/log.h"
}
#include "scenario/audit.hpp"
#include "scenario/finding_cases.hpp"

namespace {

// Not a misuse of CUDA but of gpushare: configured_test.cpp raises these. Of HIP alone:
// open-interior (hip_test.cpp).
const std::set<std::string> configured = {
    "share-mismatch",   "share-timeout",  "share-fallback",      "write-read-only",
    "merge-written",    "frame-late",     "config-error",        "store-unavailable",
    "record-invalid",   "import-partial", "vmm-remapped-shared", "open-interior",
    "driver-incomplete"};

std::map<std::string, std::vector<std::string>> catalogue() { // id: level, sentence, hint
    std::map<std::string, std::vector<std::string>> all;
#define ROW(name, id, level, sentence, hint) all[id] = {#level, sentence, hint};
    GPS_FINDINGS(ROW)
#undef ROW
    return all;
}

std::vector<std::string> words_of(const char *text) {
    std::istringstream stream(text);
    return {std::istream_iterator<std::string>(stream), {}};
}

std::vector<std::string> ids_of(const Case &expected) {
    std::vector<std::string> ids = words_of(expected.sides);
    ids.push_back(expected.id);
    if (!hip().empty() && ids.back() == "export-interior")
        ids.push_back("open-interior"); /* a handle says there how far inside */
    std::sort(ids.begin(), ids.end());
    return ids;
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](char c) { return tolower(c); });
    return text;
}

// What a run needs of its world.
void prepare(World &world, const std::string &run) {
    // a /dev/shm of its own would hide the directory, too, and that is another story
    if (run == "event-other-container")
        world.environment["GPUSHARE_DIR"] = world.path("pub");
    if (run == "leak-memory")
        world.environment["GPUSHARE_LEAK_CHECK"] = "on";
    if (run == "access-peer-missing")
        world.environment["GPUSHARE_SIM_DEVICES"] = "2";
    if (run == "open-peer-denied" || run == "descriptor-refused-gpu") {
        world.environment["GPUSHARE_SIM_DEVICES"] = "2";
        world.environment["GPUSHARE_SIM_PEERS"] = "0";
    }
}

void expect_facts(const Case &expected, const Event &event) {
    const auto has = [&](char fact) { return strchr(expected.facts, fact) != nullptr; };
    const uint64_t size = std::string(expected.run) == "export-shared-block" ? KiB : 2 * MiB;
    EXPECT_TRUE(!has('p') || event.known("ptr"));
    EXPECT_TRUE(!has('r') || event.known("region"));
    EXPECT_TRUE(!has('d') || event.known("device"));
    if (has('s')) {
        ASSERT_TRUE(event.known("size"));
        EXPECT_EQ(static_cast<uint64_t>(event.json["size"].number), size);
    }
    if (event.known("device")) {
        EXPECT_EQ(event.json["device"].number, 0);
    }
    EXPECT_HAS(lower(event.detail), expected.detail) << event.detail;
}

// Where a free and a close take any address.
std::string hint_of(const std::string &id, const std::string &usual) {
    static const std::map<std::string, std::string> others = {
#define ROW(name, hint) {gps_finding_id(GPS_##name), hint},
        GPS_RANGE_HINTS(ROW)
#undef ROW
    };
    return hip().empty() || !others.count(id) ? usual : others.at(id);
}

void expect_catalogue(const Event &event) {
    const std::vector<std::string> row = catalogue().at(event.id);
    EXPECT_EQ(event.level, event.id == "free-while-open" ? "error"
                           : event.id == "leak-event"    ? "warning"
                                                         : lower(row[0])); // let through
    EXPECT_EQ(event.json["message"].text, wording(row[1]));
    EXPECT_EQ(event.json["hint"].text, wording(hint_of(event.id, row[2])));
    EXPECT_EQ(event.json["count"].number, event.id == "leak-event" ? 50 : 1);
}

// One of them has its pid in a pid namespace of its own.
bool is_of_another_namespace(const Event &event) {
    return event.id == "open-other-namespace" && event.json["pid_ns"].number != own_pid_namespace();
}

void expect_priors(const Case &expected, const Event &event) {
    const std::vector<std::string> priors = event.priors();
    auto at = priors.begin();
    for (const std::string &what : words_of(expected.priors)) {
        at = std::find(at, priors.end(), what);
        EXPECT_NE(at, priors.end()) << what << " is missing";
        if (at == priors.end())
            return;
        const Json &prior = event.json["prior"][static_cast<size_t>(at - priors.begin())];
        EXPECT_EQ(prior["command"].text.substr(0, 6), "misuse");
        EXPECT_GT(prior["stack"].size(), 0u) << what << " without its place";
    }
}

void expect_others(const Case &expected, const Event &event, uint32_t main) {
    const std::vector<Json> &others = event.json["others"].elements;
    if (expected.other) {
        ASSERT_EQ(others.size(), 1u);
    }
    for (const Json &other : others) {
        if (expected.who == MAIN)
            EXPECT_NE(other["pid"].number, main);
        else
            EXPECT_EQ(other["pid"].number, main);
        EXPECT_EQ(other["pid_ns"].number, own_pid_namespace());
        EXPECT_EQ(other["command"].text.substr(0, 6), "misuse");
    }
}

bool leads_to_program(const Event &event) {
    for (const Json &frame : event.json["stack"].elements)
        if (contains(frame["module"].text, "/misuse") && frame["build_id"].kind == Json::String)
            return true;
    return false;
}

void expect_case(const Case &expected, const Event &event, uint32_t main) {
    EXPECT_EQ(event.api, wording(expected.api));
    EXPECT_EQ(event.pid == main && !is_of_another_namespace(event), expected.who == MAIN);
    EXPECT_EQ(event.json["pid_ns"].number == own_pid_namespace(),
              event.id != "open-other-namespace");
    EXPECT_EQ(leads_to_program(event), *expected.api != '\0');
    expect_catalogue(event);
    expect_facts(expected, event);
    expect_priors(expected, event);
    expect_others(expected, event, main);
}

// Bare first. What cannot be had on this machine is skipped.
#define RUN_BOTH(words)                                                                            \
    const Result alone = run_alone(world, words);                                                  \
    if (alone.status == 77)                                                                        \
        GTEST_SKIP() << alone.out;                                                                 \
    ASSERT_EQ(alone.status, 0) << alone.out << alone.err;                                          \
    const Audit audit = run_audited(world, words);                                                 \
    EXPECT_EQ(audit.result.out, alone.out);                                                        \
    EXPECT_EQ(audit.result.err, alone.err);                                                        \
    EXPECT_EQ(audit.result.status, alone.status)

class Misuse : public testing::TestWithParam<Case> {
  protected:
    void SetUp() override {
        if (on_gpu() && std::string(GetParam().run).rfind("vmm-use-after-release", 0) == 0)
            GTEST_SKIP() << "a card's driver reads at a handle that was released, and dies";
    }
};

TEST_P(Misuse, IsFound) {
    const Case &expected = GetParam();
    World world;
    prepare(world, expected.run);
    RUN_BOTH(misuse(expected.run));
    EXPECT_EQ(audit.ids(), ids_of(expected)) << audit.log;
    for (const Event &event : audit.events)
        if (event.id == expected.id) {
            SCOPED_TRACE(audit.log);
            expect_case(expected, event, audit.pid);
        }
}

TEST_P(Misuse, DoneRightlyIsSilent) {
    const Case &expected = GetParam();
    World world;
    prepare(world, expected.run);
    RUN_BOTH(misuse(expected.run, true));
    EXPECT_EQ(audit.ids(), std::vector<std::string>{}) << audit.log;
}

// Its runtime's calls are not to be seen, so the report names the driver's.
TEST_P(Misuse, ByAStaticRuntimeIsFound) {
    const Case &expected = GetParam();
    World world;
    if (on_gpu() && std::string(expected.id) == "fork-with-context")
        GTEST_SKIP() << "NVIDIA's runtime in a forked child calls nothing that is hooked";
    if (std::string(expected.id) == "call-after-shutdown")
        GTEST_SKIP() << "a runtime that has shut down asks no driver";
    if (std::string(expected.id) == "leak-memory")
        GTEST_SKIP() << "nor does it for a free, which a static one hides";
    prepare(world, expected.run);
    RUN_BOTH(misuse(expected.run, false, "misuse_static"));
    EXPECT_EQ(audit.ids(), ids_of(expected)) << audit.log;
    for (const Event &event : audit.events)
        EXPECT_TRUE(event.api.empty() || event.api.compare(0, 2, "cu") == 0) << event.api;
}

INSTANTIATE_TEST_SUITE_P(, Misuse, testing::ValuesIn(cases),
                         [](const auto &one) { return identifier(one.param.run); });

TEST(Findings, EachHasAProgramThatRaisesIt) {
    std::set<std::string> raised = configured, known;
    for (const Case &one : cases)
        raised.insert(one.id);
    for (const auto &row : catalogue())
        known.insert(row.first);
    EXPECT_EQ(raised, known);
}

TEST(Findings, EachProgramIsTested) {
    World world;
    std::string list;
    for (const Case &one : cases)
        list += std::string(one.run) + "\n";
    std::set<std::string> tested = {"share-mismatch",  "share-timeout",      "share-fallback",
                                    "write-read-only", "merge-written",      "frame-late",
                                    "import-partial",  "vmm-remapped-shared"},
                          there;
    std::istringstream a(list), b(run_alone(world, {"misuse", "--list"}).out);
    for (std::string id; std::getline(a, id);)
        tested.insert(id);
    for (std::string id; std::getline(b, id);)
        there.insert(id);
    EXPECT_EQ(tested, there);
}

// The level says whether the memory was pulled away.
TEST(Findings, AFreeThatIsLetThroughIsAnErrorAndADeferredOneIsNone) {
    const auto level = [](const std::string &mode, const std::string &on_free) {
        World world("", {{"GPUSHARE_ON_FREE", on_free}});
        const Audit audit = run_audited(world, misuse("free-while-open"), mode);
        EXPECT_EQ(audit.ids(), std::vector<std::string>{"free-while-open"}) << audit.log;
        return audit.events.empty() ? "" : audit.events[0].level;
    };
    EXPECT_EQ(level("audit", "defer"), "error");
    EXPECT_EQ(level("share", "defer"), "warning");
    EXPECT_EQ(level("share", "allow"), "error");
}

// Where protecting is its job it does not only say what would kill the program.
TEST(Findings, AnEventDestroyedTwiceDoesNotKillWhereItProtects) {
    World world;
    const Audit audit = run_audited(world, misuse("event-double-destroy"), "share");
    EXPECT_HAS(audit.result.out, "cudaEventDestroy: invalid resource handle (400)");
    EXPECT_LACKS(audit.result.out, "ended: Segmentation");
    EXPECT_EQ(audit.ids(), std::vector<std::string>{"event-double-destroy"});
}

TEST(Findings, OffWritesNothing) {
    World world;
    for (const char *run : {"double-free", "leak-open", "open-stale-reused"}) {
        const Result alone = run_alone(world, misuse(run));
        const Audit audit = run_audited(world, misuse(run), "off");
        EXPECT_EQ(audit.result.out, alone.out);
        EXPECT_EQ(audit.log, "");
    }
}

// Five bugs in code that looks like people's: all are found, and none besides.
TEST(Findings, OfAProgramWithFiveBugs) {
    World world;
    RUN_BOTH(Words{"five"});
    EXPECT_EQ(audit.ids(),
              (std::vector<std::string>{"close-interior", "double-free", "event-not-interprocess",
                                        "leak-open", "open-stale"}))
        << audit.log;
    for (const Event &event : audit.events) {
        const bool cameras = event.id == "double-free" || event.id == "event-not-interprocess";
        EXPECT_EQ(event.pid == audit.pid, cameras) << event.id;
    }
}

} // namespace
