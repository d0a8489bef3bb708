// refused_test.cpp - every IPC call that fails, and every one for memory of cuMemCreate and pools,
// has a finding, whatever code the driver answers.
#include "scenario/audit.hpp"

namespace {

// What the enumeration CUresult has, 0 left out, and what it has not.
const std::vector<int> codes = {
    1,   2,   3,   4,   5,   6,   7,   8,   34,  36,  46,  100, 101, 102,  200, 201, 202, 205,
    206, 207, 208, 209, 210, 211, 212, 213, 214, 215, 216, 217, 218, 219,  220, 221, 222, 223,
    224, 225, 226, 300, 301, 302, 303, 304, 400, 401, 402, 500, 600, 700,  701, 702, 703, 704,
    705, 708, 709, 710, 711, 712, 713, 714, 715, 716, 717, 718, 719, 720,  721, 800, 801, 802,
    803, 804, 805, 806, 807, 808, 809, 810, 811, 812, 900, 901, 902, 903,  904, 905, 906, 907,
    908, 909, 910, 911, 912, 913, 914, 915, 916, 917, 999, 77,  998, 12345};

class Refused : public testing::TestWithParam<const char *> {};

// How many findings the lines of a log stand for: a line at the end counts the repeats of its
// place.
uint64_t findings_of(const std::string &log) {
    uint64_t count = 0;
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
        const Json json = Json::parse(line);
        if (json["finding"].kind == Json::String)
            count += static_cast<uint64_t>(json["count"].number);
    }
    return count;
}

TEST_P(Refused, HasAFinding) {
    SIM_ONLY("the driver answers each code");
    World world;
    Words words = {"refused", GetParam()};
    std::string out;
    for (const int code : codes) {
        words.push_back(std::to_string(code));
        out += words.back() + "\n";
    }
    world.environment["GPUSHARE_SIM_IPC_CODE"] = "";
    world.environment["GPUSHARE_SIM_MEMORY_CODE"] = "";
    const Audit audit = run_audited(world, words);
    EXPECT_EQ(audit.result.out, out) << audit.result.err;
    EXPECT_EQ(findings_of(audit.log), codes.size()) << audit.log;
}

INSTANTIATE_TEST_SUITE_P(
    , Refused,
    testing::Values("get", "open", "close", "event-get", "event-open", "drivers-get",
                    "drivers-open", "drivers-close", "drivers-event-get", "drivers-event-open",
                    "cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate", "cuMemRelease",
                    "cuMemRetainAllocationHandle", "cuMemMap", "cuMemUnmap", "cuMemSetAccess",
                    "cuMemExportToShareableHandle", "cuMemImportFromShareableHandle",
                    "cuMemGetHandleForAddressRange", "cuMemMapArrayAsync", "cuImportExternalMemory",
                    "cuMulticastCreate", "cuMemPoolCreate", "cuMemPoolDestroy",
                    "cuMemPoolExportToShareableHandle", "cuMemPoolImportFromShareableHandle",
                    "cuMemPoolExportPointer", "cuMemPoolImportPointer", "cuMemAllocFromPoolAsync"),
    [](const auto &one) { return identifier(one.param); });

// By one line of the program.
TEST(Refusals, KindsAtOneLineAreToldApart) {
    World world;
    Puppet a(world);
    a.all({"malloc m 1024", "pool p 4194304", "sync", "vreserve v 2097152", "vcreate h 2097152 0",
           "vmap v 0 2097152 h", "vaccess v 0 2097152 3"});
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(a.code("get p"), 1);
        EXPECT_EQ(a.code("get v"), 1);
        EXPECT_EQ(a.code("getat 0x1000"), 1);
    }
    EXPECT_EQ(world.count("export-not-capable"), 3u) << world.logs();
    std::set<std::string> details;
    for (const Finding &finding : world.findings("export-not-capable"))
        details.insert(finding.detail);
    EXPECT_EQ(details.size(), 3u) << world.logs();
    EXPECT_EQ(a.quit("return"), 0);
    EXPECT_HAS(world.logs(), "further occurrences");
}

// The platform is to blame, and no earlier work.
TEST(Refusals, WhereThereIsNoLegacyIpcSaysWhatWorks) {
    SIM_ONLY("the driver answers each code");
    const auto hint = [](const char *code) {
        World world;
        world.environment["GPUSHARE_SIM_IPC_CODE"] = "";
        const Audit audit = run_audited(world, {"refused", "drivers-get", code});
        return audit.events.empty() ? "" : audit.events[0].json["hint"].text;
    };
    EXPECT_HAS(hint("801"), "backing = vmm");
    EXPECT_LACKS(hint("801"), "earlier work");
    EXPECT_HAS(hint("400"), "no IPC by handles", "backing = vmm");
    EXPECT_LACKS(hint("400"), "earlier work");
    EXPECT_HAS(hint("719"), "earlier work");
}

} // namespace
