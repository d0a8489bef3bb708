// newer_test.cpp - functions of the driver that are newer than cuda.h, and one that nobody knows:
// under a merge rule each does what it does without gpushare, and no other replica sees it.
#include "scenario/merging.hpp"

namespace {

constexpr uint64_t SIZE = 16 * MiB;

std::string reason(const World &world, const Puppet &puppet) {
    const Json shown = Json::parse(world.tool({"show", "--json", pid(puppet)}).out);
    return shown[0]["unmerged"].text;
}

const char *const UNKNOWN =
    "the program has called a function of the driver that this version does not know";

const char *const NOBODYS = "cuSimNewestCopy";

// Two replicas that share `p`, and one without gpushare, which does the same.
struct Beside : Replicas {
    explicit Beside(const std::string &config = merging()) : Replicas(0, config) {
        world.environment["GPUSHARE_SIM_NEWER"] = "1";
        for (int i = 0; i < 2; i++)
            start();
        How how;
        how.shim = false;
        bare = std::make_unique<Puppet>(world, how);
        bare->must("info");
        before = world.used();
        load("p", SIZE, 3);
        EXPECT_TRUE(use(SIZE)) << in_use();
        bare->all({"malloc p " + std::to_string(SIZE), upload("p", SIZE, 3)});
        before += SIZE;
    }
    // The same in both: its code, or what it tells.
    std::string both(const std::string &line) {
        const Reply with = (*all[0])(line), without = (*bare)(line);
        EXPECT_EQ(with.text, without.text) << line;
        return without.text;
    }
    void make(const std::string &line) { // what has another address in each
        all[0]->must(line);
        bare->must(line);
    }
    std::unique_ptr<Puppet> bare;
};

struct Function {
    const char *name;
    const char *by = ""; // "export"
    bool runs = true;    // what it captures
};
void PrintTo(const Function &function, std::ostream *out) {
    *out << function.name << function.by;
}

class Newer : public testing::TestWithParam<Function> {
  protected:
    void SetUp() override {
        SIM_ONLY("needs a driver that is newer than the cards' here");
    }
};

TEST_P(Newer, CopiesIntoFreshMemoryAndIntoWhatIsMerged) {
    const Function function = GetParam();
    Beside three;
    three.make("malloc fresh 4194304");
    const auto copies = [&](const std::string &to, const std::string &from) {
        return three.both("newer " + std::string(function.name) + " " + to + " " + from + " 4096 " +
                          function.by);
    };
    EXPECT_EQ(copies("fresh 100", "p 5000000"), "0");
    three.both("sync");
    const std::string copied = three.both("read fresh 100 4096");
    EXPECT_EQ(copied == three.bare->must("read p 5000000 4096") ||
                  copied.find(three.bare->must("read p 5000000 64")) != std::string::npos,
              function.runs);
    EXPECT_EQ(copies("p 100", "fresh 200"), "0");
    three.both("sync");
    three.both("read p 0 8192");
    three.both("read p 5000000 4096");
    EXPECT_EQ(Replicas::expect(three[1], "p", SIZE, 3), "same");
    EXPECT_EQ(reason(three.world, three[0]), function.name == std::string(NOBODYS) ? UNKNOWN : "");
    EXPECT_EQ(three.world.findings().size(), 0u) << three.world.logs();
}

const Function functions[] = {{"cuMemcpyWithAttributesAsync"},
                              {"cuMemcpyWithAttributesAsync", "export"},
                              {"cuMemcpyWithAttributesAsync_ptsz", "export"},
                              {"cuMemcpy3DWithAttributesAsync"},
                              {"cuMemcpy3DWithAttributesAsync_ptsz", "export"},
                              {"cuStreamBeginCaptureToCig", "", false},
                              {"cuStreamBeginCaptureToCig_ptsz", "export", false},
                              {"cuStreamBeginRecaptureToGraph"},
                              {"cuStreamBeginRecaptureToGraph_ptsz", "export"},
                              {"cuGraphAddNode"},
                              {"cuGraphAddNode_v3", "export"},
                              {"cuGraphNodeSetParams"},
                              {"cuGraphNodeSetParams_v2", "export"},
                              {NOBODYS},
                              {NOBODYS, "export"}};
INSTANTIATE_TEST_SUITE_P(Each, Newer, testing::ValuesIn(functions));

// What holds it physically would write, or keep, a block that others have.
class NewerBinding : public Newer {};

TEST_P(NewerBinding, OfARangeMakesItPrivate) {
    const Function function = GetParam();
    Beside three(merging("quiet = 1s\n"));
    const std::string line =
        "newer " + std::string(function.name) + "Addr" + function.by + " p 0 p 0 2097152";
    (void)three[0](line + (*function.by ? " export" : ""));
    EXPECT_TRUE(three.use(2 * SIZE)) << three.in_use();
    EXPECT_EQ(reason(three.world, three[0]), "");
    three.expect_all("p", SIZE, 3);
}

TEST_P(NewerBinding, OfAnAllocationGetsTheDriversHandle) {
    const Function function = GetParam();
    Beside three(merging("created = on\n" + std::string(QUIET)));
    three.make("vcreate h 2097152");
    EXPECT_EQ(three.both("newer " + std::string(function.name) + "Mem" + function.by +
                         " h 0 h 0 2097152" + (*function.by ? " export" : "")),
              "0");
}

const Function bindings[] = {
    {"cuMulticastBind"}, {"cuMulticastBind", "_v2"}, {"cuLogicalEndpointBind"}};
INSTANTIATE_TEST_SUITE_P(Each, NewerBinding, testing::ValuesIn(bindings));

// --- a function that nobody knows ---

class Unknown : public Newer {};

TEST_F(Unknown, EndsMergingAtItsFirstCallAndSaysSoOnce) {
    Beside three;
    const std::string call = "newer cuSimNewestCopy p 0 p 4096 4096";
    three.make("malloc fresh 4194304");
    EXPECT_EQ(reason(three.world, three[0]), "");
    for (int i = 0; i < 2; i++)
        three.both(call);
    EXPECT_TRUE(three.use(2 * SIZE + 8 * MiB)) << three.in_use();
    EXPECT_EQ(reason(three.world, three[0]), UNKNOWN);
    EXPECT_EQ(reason(three.world, three[1]), "");
    const std::string told = std::string("nothing is merged: ") + UNKNOWN + " (cuSimNewestCopy)";
    const std::string logs = three.world.logs();
    EXPECT_HAS(logs, told);
    EXPECT_EQ(logs.find(told), logs.rfind(told)) << logs;
    three.load("q", SIZE, 4);
    usleep(500000);
    EXPECT_TRUE(three.use(4 * SIZE + 8 * MiB)) << "nothing more is merged: " << three.in_use();
    three.expect_all("q", SIZE, 4);
    three[0].must("get q"); // the driver's own
    EXPECT_EQ(three.world.findings().size(), 0u) << three.world.logs();
}

TEST_F(Unknown, MayBeCalledBeforeThereIsMemory) {
    Replicas none(0);
    none.world.environment["GPUSHARE_SIM_NEWER"] = "1";
    Puppet &one = none.start(), &other = none.start();
    one.must("newer cuSimNewestCopy small 0 small 8 8");
    for (Puppet *each : {&one, &other})
        each->all({"malloc p 16777216", Replicas::upload("p", SIZE, 3)});
    EXPECT_TRUE(none.use(SIZE)) << none.in_use();
}

// There are 128 stubs. What is looked up then might be called at any time.
TEST_F(Unknown, LookedUpBeyondTheStubsEndsMergingAtOnce) {
    Beside three;
    for (int i = 0; i < 2; i++)
        three.both("lookups cuSimMany 0 128");
    EXPECT_EQ(reason(three.world, three[0]), "");
    three.both("lookups cuSimMany 128 1");
    EXPECT_EQ(reason(three.world, three[0]), UNKNOWN);
    EXPECT_TRUE(three.use(2 * SIZE)) << three.in_use();
    EXPECT_EQ(three.both("newer cuSimNewestCopy p 100 p 5000000 4096"), "0");
    three.both("read p 0 8192");
    EXPECT_EQ(Replicas::expect(three[1], "p", SIZE, 3), "same");
}

// Nothing can be waited for there.
TEST_F(Unknown, MayBeCalledInACapture) {
    Beside three;
    three.make("stream s");
    three.make("malloc fresh 4194304");
    three.both("capture s 2");
    three.both("newer cuSimNewestCopy fresh 100 p 5000000 4096");
    three.make("captured s g");
    three.both("read fresh 0 8192");
    EXPECT_EQ(reason(three.world, three[0]), UNKNOWN);
    EXPECT_EQ(Replicas::expect(three[1], "p", SIZE, 3), "same");
}

// It waits for a kernel that reads what is merged, as a write does.
TEST_F(Unknown, WaitsForWorkOnWhatIsMerged) {
    Beside three;
    three.make("stream s");
    three[0].all({kernels(), "launch s test_spin p 4194304 300000000 small"});
    EXPECT_EQ(three[0].code("newer cuSimNewestCopy p 100 p 5000000 4096"), 0);
    three.bare->must("newer cuSimNewestCopy p 100 p 5000000 4096");
    three[0].must("ssync s");
    three.both("read p 0 8192");
    EXPECT_EQ(Replicas::expect(three[1], "p", SIZE, 3), "same");
    EXPECT_EQ(three.world.findings().size(), 0u) << three.world.logs();
}

TEST_F(Unknown, GetsMemoryOfCuMemCreateAsTheProgramMadeIt) {
    Beside three(merging("created = on\n" + std::string(QUIET)));
    for (const char *line : {"vreserve v 16777216", "vcreate h 16777216", "vmap v 0 16777216 h",
                             "vaccess v 0 16777216 3"}) {
        three.each(line);
        three.bare->must(line);
    }
    three.each(Replicas::upload("v", SIZE, 5));
    three.bare->must(Replicas::upload("v", SIZE, 5));
    EXPECT_TRUE(three.use(2 * SIZE + SIZE)) << three.in_use();
    EXPECT_EQ(three.both("newer cuSimNewestCopy v 100 p 100 4096"), "0");
    EXPECT_TRUE(three.use(4 * SIZE + SIZE)) << three.in_use();
    three.both("read v 0 8192");
    EXPECT_EQ(Replicas::expect(three[1], "v", SIZE, 5), "same");
    three.make("vcreate other 2097152");
    three.make("vexport other");
}

} // namespace
