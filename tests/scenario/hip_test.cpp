// hip_test.cpp - what is different with AMD's runtime, on the simulated one of both generations.
#include "scenario/audit.hpp"
#include "scenario/pair.hpp"

namespace {

struct Hip : testing::Test {
    void SetUp() override {
        SKIP_IF(hip().empty(), "a test of AMD's runtime");
    }
};

std::string plus(const std::string &pointer, uint64_t offset) {
    char text[32];
    snprintf(text, sizeof(text), "%llx", std::stoull(pointer, nullptr, 16) + offset);
    return text;
}

// --- frees and closes by any address ---

struct HipAlone : Hip {
    World world;
};

TEST_F(HipAlone, AnInteriorFreeIsRefusedAndTheMemoryStays) {
    Puppet a(world), other(world, bare());
    a.make("p", 4 * MiB, "0xa1");
    other.make("p", 4 * MiB, "0xa1");
    EXPECT_EQ(other.code("freeat " + plus(other.must("value p"), 4096)), 0); // frees all of it
    EXPECT_EQ(other.code("read p 0 1"), 1);
    EXPECT_EQ(a.code("freeat " + plus(a.must("value p"), 4096)), 1);
    EXPECT_EQ(a.must("read p 0 1"), "a1");
    EXPECT_EQ(world.count("free-interior"), 1u);
    a.must("free p");
    EXPECT_EQ(world.findings().size(), 1u);
}

TEST_F(Hip, AnInteriorFreeIsCarriedOutUnderAudit) {
    World world("", {{"GPUSHARE_MODE", "audit"}});
    Exporter a(world, producer(), 4 * MiB);
    Importer b(world, a);
    EXPECT_EQ(a.code("freeat " + plus(a.must("value p"), 4096)), 0);
    EXPECT_EQ(world.count("free-interior"), 1u);
    EXPECT_EQ(world.count("free-while-open"), 1u); // the record is that of the whole
    EXPECT_EQ(a.code("free p"), 1);
    EXPECT_EQ(world.count("double-free"), 1u);
}

TEST_F(HipAlone, AnInteriorFreeOfDeferredMemoryDoesNotFreeIt) {
    Exporter a(world, producer(), 4 * MiB);
    Importer b(world, a);
    const std::string p = a.must("value p");
    a.must("free p");
    EXPECT_EQ(a.code("freeat " + plus(p, 4096)), 1);
    EXPECT_EQ(world.count("double-free"), 1u);
    EXPECT_EQ(b.must("read q 0 1"), "a1");
}

TEST_F(Hip, AnOpenOfAHandleTakenInsideSaysWhatToAdd) {
    for (const uint64_t offset : {0, 256}) {
        auto [world, a, b] = Twins();
        a.make("p", 4 * MiB, "0xa1");
        b.must("open q " + a.must("getat " + plus(a.must("value p"), offset)));
        EXPECT_EQ(b.must("read q 0 1"), "a1");
        EXPECT_EQ(world.count("open-interior"), offset ? 1u : 0u);
        if (offset) {
            EXPECT_EQ(world.findings("open-interior").at(0).detail,
                      "the handle was taken 256 bytes inside the allocation, the open gives its "
                      "base: add 256");
        }
        b.must("close q");
        a.must("free p");
    }
}

TEST_F(HipAlone, ACloseByAnInteriorPointerClosesAndIsNamed) {
    Exporter a(world, producer(), 4 * MiB);
    Importer b(world, a);
    EXPECT_EQ(b.code("closeat " + plus(b.must("value q"), 4096)), 0);
    EXPECT_EQ(world.count("close-interior"), 1u);
    a.must("free p"); // nobody has it open
    EXPECT_EQ(world.count("free-while-open"), 0u);
    EXPECT_EQ(b.code("close q"), 1);
    EXPECT_EQ(world.count("double-close"), 1u);
}

TEST_F(HipAlone, AFreeOfAnImportClosesIt) {
    Exporter a(world, producer(), 4 * MiB);
    Importer b(world, a);
    EXPECT_EQ(b.code("free q"), 0);
    EXPECT_EQ(world.count("free-imported"), 1u);
    a.must("free p");
    EXPECT_EQ(world.count("free-while-open"), 0u);
    EXPECT_EQ(b.code("close q"), 1);
    b.quit("return");
    EXPECT_EQ(world.count("leak-open"), 0u);
}

// A rule's memory is the program's allocation: it can neither be closed nor freed by its middle.
TEST_F(Hip, ARulesImportIsNotClosedByItsMiddle) {
    auto [world, a, b] = Couple(FRAMES);
    a.make("p", 4 * MiB, "0xa1");
    b.must("malloc q 4194304");
    const std::string inside = plus(b.must("value q"), 4096);
    EXPECT_EQ(b.code("closeat " + inside), 1);
    EXPECT_EQ(b.code("freeat " + inside), 1);
    EXPECT_EQ(b.must("read q 0 1"), "a1");
    b.must("free q");
    EXPECT_EQ(b.code("read q 0 1"), 1);
}

// --- handles ---

// Each get has other garbage in its last bytes.
TEST_F(HipAlone, HandlesThatDifferInGarbageAreOneRegion) {
    Puppet a(world), b(world), c(world);
    a.make("p", 4 * MiB, "0xa1");
    const std::string one = a.must("get p"), two = a.must("get p"), inside = a.must("get p 4096");
    EXPECT_NE(one, two);
    EXPECT_EQ(world.entries("regions"), 1u);
    b.must("open q " + two);
    c.must("open q " + inside);
    EXPECT_EQ(c.must("read q 0 1"), "a1");
    EXPECT_EQ(world.region("")["users"].size(), 2u);
}

// AMD's runtime would wait for ever, with dma-buf below.
TEST_F(Hip, AnOpenOfFreedMemoryIsAnsweredWhereItWouldHang) {
    World world("", {{"GPUSHARE_SIM_HIP_ATTACH", "dmabuf"}});
    Puppet a(world), b(world), without(world, bare());
    a.make("p", 4 * MiB, "0xa1");
    const std::string handle = a.must("get p");
    a.must("free p");
    EXPECT_EQ(b.code("open q " + handle), 17);
    EXPECT_EQ(b.code("lasterror"), 17);
    EXPECT_EQ(world.count("open-stale"), 1u);
    without.send("open q " + handle);
    EXPECT_FALSE(without.answers(1500));
}

TEST_F(Hip, AnOpenThatIsRefusedLateIsExplained) {
    auto [world, a, b] = Twins("", {{"GPUSHARE_SIM_HIP_ATTACH", "dmabuf"}});
    a.make("p", 4 * MiB, "0xa1");
    const std::string handle = a.must("get p");
    a.kill();
    EXPECT_EQ(b.code("open q " + handle), 17);
    EXPECT_EQ(world.count("open-dead-owner"), 1u);
}

// A fault of AMD's: an export held the memory for ever. What is published ends all the same.
TEST_F(Hip, AnExportThatPinsMemoryIsFreedForTheOthers) {
    auto [world, a, b] = Twins("", {{"GPUSHARE_SIM_HIP_PINNED", "1"}});
    const uint64_t before = world.used();
    a.make("p", 4 * MiB, "0xa1");
    const std::string handle = a.must("get p");
    a.must("free p");
    EXPECT_EQ(world.used(), before + 4 * MiB);
    EXPECT_EQ(b.code("open q " + handle), 17);
    EXPECT_EQ(world.count("open-stale"), 1u);
}

// Before 6.0 the flags' one value is 0, and pointers' kinds have other numbers.
TEST_F(Hip, TheRuntimeOfVersion5TakesItsOwnFlags) {
    World world(FRAMES, {{"GPUSHARE_SIM_HIP_FLAG", "0"}});
    Puppet a(world, producer()), b(world, consumer()), c(world);
    expect_shared_both_ways(world, a, b);
    a.make("p", 4 * MiB, "0xa1");
    const std::string handle = a.must("get p");
    EXPECT_EQ(c.code("open q " + handle), 1);
    EXPECT_EQ(world.count("open-bad-flags"), 1u);
    EXPECT_EQ(c.code("open q " + handle + " 0"), 0);
    EXPECT_EQ(c.code("getat 10"), 1);
    EXPECT_EQ(world.findings("export-not-capable").at(0).detail,
              "the pointer is not memory that HIP knows");
}

// --- the last error ---

// The same calls with and without the library, and what hipGetLastError says after each.
TEST_F(HipAlone, TheLastErrorIsTheProgramsOwn) {
    Puppet owner(world), a(world), b(world, bare());
    owner.make("p", 4 * MiB, "0xa1");
    const std::string stale = owner.must("get p");
    owner.must("free p");
    owner.make("r", 4 * MiB, "0xa2");
    const std::string handle = owner.must("get r");
    for (Puppet *one : {&a, &b})
        one->all({"malloc p 4194304", "evcreate e 2"});
    for (const std::string &line :
         {std::string("malloc x 18446744073709551615"), std::string("malloc y 4096"),
          std::string("freeat 10"), std::string("closeat 10"), std::string("getat 10"),
          std::string("evget e"), "open q " + stale, "open q " + stale, "open q " + handle,
          std::string("close q"), std::string("close q"), std::string("lasterror"),
          std::string("open q ") + std::string(128, '0'), std::string("evdestroy e"),
          std::string("evdestroy e"), std::string("free p"), std::string("free p")}) {
        EXPECT_EQ(a.code(line), b.code(line)) << line;
        EXPECT_EQ(a.code("lasterror"), b.code("lasterror")) << line;
    }
    // and where nobody asks in between
    for (const char *line : {"freeat 10", "malloc x 4096", "free x"})
        EXPECT_EQ(a.code(line), b.code(line)) << line;
    EXPECT_EQ(a.code("lasterror"), b.code("lasterror"));
}

// A code that hides behind another one must not outlive a call that gpushare does not see, or one
// that it only passes on.
TEST_F(HipAlone, TheLastErrorIsThatOfTheLastCallThatFailed) {
    Puppet owner(world), a(world), b(world, bare());
    owner.make("p", 4 * MiB, "0xa1");
    const std::string stale = owner.must("get p");
    owner.must("free p");
    for (Puppet *one : {&a, &b})
        one->all({"malloc x 4194304", "free x"});
    for (const char *line : {"read x 0 1", "procaddress hipNoSuch"}) {
        for (Puppet *one : {&a, &b}) {
            EXPECT_EQ(one->code("open q " + stale), 17);
            EXPECT_EQ(one->code(line), 1) << line;
            EXPECT_EQ(one->code("lasterror"), 1) << line;
        }
    }
}

// Codes by which the rooms below know what a call is about are the runtime's own at times.
TEST_F(HipAlone, CodesComeAsTheRuntimeGaveThem) {
    Puppet owner(world), a(world), b(world, bare());
    owner.make("p", 4 * MiB, "0xa1");
    const std::string stale = owner.must("get p");
    owner.all({"free p", "evcreate e 6"});
    const std::string event = owner.must("evget e");
    for (Puppet *one : {&a, &b})
        one->must("evopen f " + event);
    EXPECT_EQ(b.code("evget f"), 400); // the simulated one: no fact of AMD's
    EXPECT_EQ(a.code("evget f"), 400);
    for (const char *flags : {" 0", " 2"}) { // which are looked at before the memory
        EXPECT_EQ(b.code("open q " + stale + flags), 1) << flags;
        EXPECT_EQ(a.code("open q " + stale + flags), 1) << flags;
    }
}

// With an exporter that has ended the runtime refuses it with 1, as it does what nobody has
// exported.
TEST_F(Hip, AnEventThatIsOverIsNotUnknown) {
    for (const bool dies : {false, true}) {
        World world("", {{"GPUSHARE_MODE", "audit"}});
        Puppet owner(world), a(world);
        owner.must("evcreate e 6");
        const std::string event = owner.must("evget e");
        if (dies)
            owner.kill();
        else
            owner.must("evdestroy e");
        EXPECT_EQ(a.code("evopen f " + event), dies ? 1 : 0);
        EXPECT_EQ(world.count(dies ? "event-dead-owner" : "event-stale"), 1u);
        EXPECT_EQ(world.count("event-unknown"), 0u);
    }
}

// --- what HIP has no memory for ---

void expect_refused(const std::string &config, const std::string &why) {
    World world(config);
    Puppet a(world);
    a.make("p", 4 * MiB, "0xa1");
    EXPECT_EQ(a.must("read p 0 1"), "a1");
    const std::vector<Finding> found = world.findings();
    ASSERT_EQ(found.size(), 1u) << config;
    EXPECT_EQ(found[0].id, "config-error");
    EXPECT_HAS(found[0].detail, why);
    EXPECT_EQ(world.entries("procs"), 0u);
}

TEST_F(Hip, WhatNeedsCudasMemoryIsRefusedAtTheStart) {
    expect_refused(rule("w", "puppet", "merge", ""), ":1: role = merge does not work with HIP");
    expect_refused(rule("w", "puppet", "export", "backing = vmm\n"),
                   ":1: backing = vmm does not work with HIP");
    expect_refused("[gpushare]\nopen_cache = 8\n", "open_cache does not work with HIP");
    expect_refused("[gpushare]\nvmm_ipc = on\n", "vmm_ipc does not work with HIP");
    World world(rule("w", "another", "merge", ""));
    Puppet a(world);
    a.must("malloc p 4096");
    EXPECT_EQ(world.findings().size(), 0u);
}

// --- what a person sees: gpushare audit finds the library by itself, and the lines ---

struct Seeded {
    const char *program, *function, *call;
    const char *other_id = nullptr; // of the finding, where that has not the program's name
};

const Seeded seeded[] = {
    {"free-while-open", "free_while_open_exporter", "cudaFree(p)"},
    {"double-free", "release", "cudaFree(p)"},
    {"free-interior", "free_interior", "cudaFree(inside(p))"},
    {"free-imported", "free_imported_importer", "cudaFree(q)"},
    {"close-unopened", "close_unopened_importer", "cudaIpcCloseMemHandle(p)"},
    {"double-close", "close_again", "cudaIpcCloseMemHandle(q)"},
    {"close-interior", "close_interior_importer", "cudaIpcCloseMemHandle(inside(q))"},
    {"close-own", "close_own", "cudaIpcCloseMemHandle(p)"},
    {"double-open", "double_open_importer", "cudaIpcOpenMemHandle(&again"},
    {"open-own-handle", "open_own_handle", "cudaIpcOpenMemHandle(&q"},
    {"open-stale", "open_stale_importer", "cudaIpcOpenMemHandle(&q"},
    {"export-interior", "open_received", "cudaIpcOpenMemHandle(&pointer", "open-interior"},
    {"event-open-own", "event_open_own", "cudaIpcOpenEventHandle(&opened"},
};

// The line of the source that the report's first frame names.
std::string line_of(const std::string &report, const std::string &function) {
    const std::regex place(" " + function + " at (\\S+):([0-9]+)");
    std::smatch found;
    if (!std::regex_search(report, found, place))
        return "";
    const std::filesystem::path tests = std::filesystem::path(__FILE__).parent_path().parent_path();
    std::istringstream source(read_file(tests.parent_path() / std::string(found[1])));
    std::string line;
    for (int number = std::stoi(found[2]); number > 0; number--)
        std::getline(source, line);
    return line;
}

TEST_F(Hip, SeededMisusesAreNamedAtTheirLines) {
    const std::string program = build_directory() + "/tests/apps/" + for_vendor("misuse");
    for (const Seeded &one : seeded) {
        World world;
        const Result audit = world.tool({"audit", "--level=warning", "--", program, one.program});
        const std::string id = one.other_id ? one.other_id : one.program;
        EXPECT_HAS(audit.err, ": " + id + " in hip");
        EXPECT_HAS(line_of(audit.err, one.function), one.call) << one.program << "\n" << audit.err;
        EXPECT_HAS(audit.err, "used HIP");
    }
}

TEST_F(Hip, ExplainNamesTheCallAndTheRule) {
    World world(rule("frames", "misuse*", "export", "size = 2MiB\n"));
    const Result told =
        world.tool({"explain", "--", build_directory() + "/tests/apps/" + for_vendor("misuse"),
                    "--right", "double-free"});
    EXPECT_ERR_HAS(told, 0, "hipMalloc", "frames");
}

TEST_F(HipAlone, LearnHasNoRulesToMake) {
    const Result told = world.tool(
        {"learn", "--", build_directory() + "/tests/apps/" + for_vendor("misuse"), "double-free"});
    EXPECT_OUT(told, 125, "");
    EXPECT_HAS(told.err, "uses HIP, where nothing is merged");
}

// --- what the tool tells of such programs ---

TEST_F(Hip, TopHasARowForEachProcess) {
    auto [world, a, b] = Couple(FRAMES, {{"GPUSHARE_SIM_DEVICES", "2"}});
    a.must("device 1");
    a.make("p", 4 * MiB, "0xa1");
    b.all({"device 1", "malloc q 4194304"});
    a.all({"malloc own 8388608", "get own"});
    EXPECT_EQ(a.code("freeat 1000"), 1);
    const Json top = Json::parse(world.tool({"top", "--once", "--json"}).out);
    const Json &rows = top["processes"];
    ASSERT_EQ(rows.size(), 2u);
    const Json region = world.region("frames");
    for (const Json &row : rows.elements) {
        const bool exports = row["pid"].text == pid(a);
        EXPECT_EQ(row["command"].text, exports ? "producer" : "consumer");
        EXPECT_EQ(row["own"].text, exports ? std::to_string(8 * MiB) : "0");
        EXPECT_EQ(row["shared"].text, std::to_string(4 * MiB));
        EXPECT_TRUE(row["driver"].is_null()); // that is NVIDIA's
        ASSERT_EQ(row["gpus"].size(), 1u);
        EXPECT_EQ(row["gpus"].elements[0]["device"].text, region["device"].text);
    }
    const std::string text = world.tool({"top", "--once"}).out;
    EXPECT_HAS(text, "frames");
}

// A HIP program that has the library for CUDA, or none, is what goes wrong first.
TEST_F(HipAlone, DoctorTellsWhatAProcessUses) {
    How wrong = bare();
    wrong.environment["LD_PRELOAD"] = build_directory() + "/libgpushare.so";
    Puppet with(world), without(world, bare()), confused(world, wrong);
    const auto told = [&](const Puppet &puppet) {
        return world.tool({"doctor", "--pid", pid(puppet)}).out;
    };
    const std::string uses = "uses HIP (" + build_directory() + "/sim/" + hip() +
                             "/libamdhip64.so." + hip().substr(3) + ")";
    const auto has = [](const std::string &text, const std::string &part) {
        std::string one_line = std::regex_replace(text, std::regex("\n *"), " ");
        return one_line.find(part) != std::string::npos;
    };
    EXPECT_TRUE(has(told(with), uses + ", with libgpushare-hip.so")) << told(with);
    EXPECT_TRUE(has(told(with), "HIP " + hip().substr(3) + ".1, 1 GPU")) << told(with);
    EXPECT_TRUE(has(told(without), uses + ", without libgpushare-hip.so")) << told(without);
    EXPECT_TRUE(has(told(without), "gpushare run --runtime=hip -- CMD")) << told(without);
    EXPECT_TRUE(has(told(confused), "without libgpushare-hip.so, and has libgpushare.so"))
        << told(confused);
}

// --- doors ---

Result door(const World &world, const std::string &program, const std::string &name, bool with) {
    Environment environment = world.environment;
    if (with)
        environment["LD_PRELOAD"] = library();
    return command({"timeout", "30", build_directory() + "/tests/apps/" + program, name},
                   environment);
}

TEST_F(Hip, EveryDoorIsSeenAndTheProgramCannotTell) {
    std::vector<std::string> doors = {"dlsym", "dlvsym", "default", "getproc"};
    if (hip() == "hip7")
        doors.push_back("entrypoint");
    for (const std::string &name : doors) {
        World world;
        const Result alone = door(world, "hip_doors", name, false);
        const Result with = door(world, "hip_doors", name, true);
        EXPECT_EQ(alone.out, "0 0 1 1\n") << name;
        EXPECT_EQ(with.out, alone.out) << name;
        EXPECT_EQ(world.count("double-free"), 1u) << name;
    }
    World world;
    EXPECT_EQ(door(world, "hip_doors_" + hip(), "linked", true).out, "0 0 1 1\n");
    EXPECT_EQ(world.findings("double-free").at(0).api, "hipFree");
}

TEST_F(HipAlone, AProgramWithoutARuntimeFindsNoneAndLeavesNothing) {
    EXPECT_EQ(door(world, "hip_doors", "nothing", true).out, "not found\n");
    EXPECT_FALSE(std::filesystem::exists(world.environment["GPUSHARE_DIR"]));
    EXPECT_EQ(world.logs(), "");
}

// Built by clang, with kernels on both sides (tests/apps/hip_kernels.cpp).
TEST_F(Hip, AProgramOfClangRunsTheSameAndIsSilent) {
    const std::string program = build_directory() + "/tests/apps/hip_kernels_" + hip();
    SKIP_IF(!std::filesystem::exists(program), "clang++ is not here");
    World world;
    const Result alone = command({"timeout", "60", program}, world.environment);
    EXPECT_OUT(alone, 0, "all numbers are right on Simulated GPU\n");
    const Result shared = world.tool({"run", "--", program});
    EXPECT_EQ(shared.out, alone.out) << shared.err;
    EXPECT_EQ(shared.status, 0);
    const Result audit =
        world.tool({"audit", "--level=info", "--error-exitcode=99", "--", program});
    EXPECT_EQ(audit.out, alone.out) << audit.err;
    EXPECT_ERR_HAS(audit, 0, "2 processes used HIP");
    EXPECT_EQ(world.findings().size(), 0u);
}

// With __HIP_PLATFORM_NVIDIA__ a HIP program is one of CUDA's.
TEST(HipOnNvidia, IsSharedAndAudited) {
    const std::string programs = build_directory() + "/gpu-sim/";
    if (!hip().empty() || !std::filesystem::exists(programs + "writer_hip"))
        GTEST_SKIP() << "a test of CUDA's runtime, and of AMD's header over it";
    World world(rule("frames", "writer_hip", "export") +
                rule("frames", "reader_hip", "import", "wait = 20s\nmissing = fail\n"));
    const std::string writer = "'" + programs + "writer_hip' 4 wait",
                      reader = "'" + programs + "reader_hip' 4";
    Environment environment = world.environment;
    environment["LD_PRELOAD"] = library();
    const Result both = command({"timeout", "60", "bash", "-c",
                                 "cd '" + world.path("") + "' || exit; mkfifo go; " + writer +
                                     " <go >said & exec 3>go; " +
                                     "until grep -q filled said; do sleep 0.01; done; " + reader +
                                     "; echo >&3; wait; cat said"},
                                environment);
    EXPECT_HAS(both.out, "reader found all") << both.err;
    EXPECT_HAS(both.out, "bytes in all") << both.err;
    const std::string audit =
        world.tool({"audit", "--level=warning", "--", programs + "writer_hip", "4", "twice"}).err;
    EXPECT_HAS(audit, "double-free in cudaFree, by writer_hip");
    EXPECT_HAS(audit, " write at tests/gpu/programs/hip_nvidia.cpp:");
}

// AMD's own library, as Debian has it, on a machine without a card: each door, linked and looked
// up, answers bare and preloaded the same.
void expect_real(const std::string &program, const std::string &name) {
    World world("", {{"LD_LIBRARY_PATH", ""}});
    const std::string path = build_directory() + "/tests/apps/" + program;
    const std::map<std::string, std::string> expected = {
        {"", "101 101 101 101\n"}, {"calls", "100 101 101 101 101 101 101\n"}};
    for (const auto &[calls, out] : expected) {
        const std::vector<std::string> words = {path, name, calls};
        Environment preloaded = world.environment;
        preloaded["LD_PRELOAD"] = library();
        const Result alone = command(words, world.environment), with = command(words, preloaded);
        const Result audited = world.tool({"audit", "--runtime=hip", "--", path, name, calls});
        EXPECT_EQ(alone.out, out) << program << " " << name;
        EXPECT_EQ(with.out, alone.out) << program << " " << name;
        EXPECT_EQ(with.err, alone.err) << program << " " << name;
        EXPECT_EQ(audited.out, alone.out) << program << " " << name;
    }
}

TEST_F(Hip, AmdsLibraryAnswersTheSameWithoutACard) {
    if (!std::filesystem::exists(build_directory() + "/tests/apps/hip_doors_real") ||
        std::filesystem::exists("/dev/kfd"))
        GTEST_SKIP() << "AMD's library is not here, or a card is";
    for (const char *name : {"dlsym", "dlvsym", "default"})
        expect_real("hip_doors", name);
    expect_real("hip_doors_real", "linked");
}

} // namespace
