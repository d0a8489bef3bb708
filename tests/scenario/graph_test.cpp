// Graphs whose nodes use memory that ends before they are launched: an audit tells so at the
// launch.
#include "harness.hpp"

namespace {

constexpr uint64_t SIZE = 4 * MiB;

// A program of an audit with a graph g, which is ready as e. What its node uses is p: memory of
// cudaMalloc, of another process, or of cuMemCreate.
struct Graph : testing::Test {
    Graph()
        : world("[gpushare]\nmode = audit\n"), owner(world, producer()), a(world, called("other")) {
        a.all({kernels(), "stream s", "malloc o " + text(SIZE), "fill o 1 4096"});
    }
    void have(const std::string &kind) {
        if (kind == "freed")
            a.must("malloc p " + text(SIZE));
        else if (kind == "closed")
            open();
        else
            a.all({"vreserve p " + text(SIZE), "vcreate h " + text(SIZE) + " 0",
                   "vmap p 0 " + text(SIZE) + " h", "vaccess p 0 " + text(SIZE) + " 3"});
    }
    void open() {
        owner.must("malloc p " + text(SIZE));
        a.must("open p " + owner.must("get p"));
    }
    void end(const std::string &kind) {
        a.must(kind == "freed"    ? "free p"
               : kind == "closed" ? "close p"
                                  : "vunmap p 0 " + text(SIZE));
    }
    // The one finding, and what it says of the node.
    void expect(const std::string &id, const std::string &detail) {
        const std::vector<Finding> all = world.findings();
        ASSERT_EQ(all.size(), 1u) << world.logs();
        EXPECT_EQ(all[0].id, id);
        EXPECT_EQ(all[0].api, "cuGraphLaunch");
        EXPECT_NE(all[0].detail.find(detail), std::string::npos) << all[0].detail;
    }
    void silent() {
        EXPECT_EQ(world.findings().size(), 0u) << world.logs();
    }
    World world;
    Puppet owner, a;
};

struct Node {
    const char *name;
    std::vector<std::string> steps; // until e is ready
    const char *detail;
};

const Node nodes[] = {
    {"kernel",
     {"made g", "more g fill o 0 16", "more g kernel test_write p+64 16 5", "ready g e"},
     "node 1 of the graph, a kernel, has it as argument 1 of test_write; it lies 64 bytes"},
    {"source",
     {"made g", "more g copy o p 4096", "ready g e"},
     "node 0 of the graph, a copy, reads"},
    {"target",
     {"made g", "more g copy p+16 o 4096", "ready g e cuGraphInstantiateWithParams"},
     "node 0 of the graph, a copy, writes it; it lies 16 bytes"},
    {"fill",
     {"made g", "more g fill p 3 4096", "ready g e cuGraphInstantiateWithParams_ptsz"},
     "node 0 of the graph, a fill, writes it"},
    {"captured",
     {"capture s", "sfill s o 3 4096", "launch s test_add p 16 1", "captured s e"},
     "node 1 of the graph, a kernel, has it as argument 1 of test_add"},
    {"captured_fill",
     {"capture s", "sfill s p 3 4096 16", "captured s e"},
     "node 0 of the graph, a fill, writes it; it lies 16 bytes"},
    {"child",
     {"made c", "more c fill o 1 16", "more c fill p 1 16", "made g", "more g fill o 1 16",
      "more g child c", "ready g e"},
     "node 1 of the child graph in node 1, a fill, writes it"},
};

const char *finding_of(const std::string &kind) {
    return kind == "freed"    ? "use-after-free"
           : kind == "closed" ? "use-after-close"
                              : "use-unmapped";
}

struct GraphOf : Graph, testing::WithParamInterface<std::tuple<size_t, const char *>> {};

TEST_P(GraphOf, IsToldAtItsLaunchOnce) {
    const auto &[at, kind] = GetParam();
    have(kind);
    a.all(nodes[at].steps);
    a.all({"graph s e", "ssync s"});
    silent();
    end(kind);
    silent();
    a("graph s e");
    expect(finding_of(kind), nodes[at].detail);
    a("graph s e");
    EXPECT_EQ(world.findings().size(), 1u) << world.logs();
}

INSTANTIATE_TEST_SUITE_P(, GraphOf,
                         testing::Combine(testing::Range<size_t>(0, std::size(nodes)),
                                          testing::Values("freed", "closed", "unmapped")),
                         [](const auto &name) {
                             return std::string(nodes[std::get<0>(name.param)].name) + "_" +
                                    std::get<1>(name.param);
                         });

TEST_F(Graph, OnTheThreadsOwnStreamIsTold) {
    have("freed");
    a.all({"made g", "more g fill p 1 16", "ready g e", "graphown e", "sync"});
    silent();
    end("freed");
    a("graphown e");
    EXPECT_EQ(world.count("use-after-free"), 1u) << world.logs();
}

// Of one graph each memory is told, and of each graph.
TEST_F(Graph, TellsOfEachMemoryAndEachGraph) {
    have("freed");
    a.all({"malloc q " + text(SIZE), "made g", "more g kernel test_read p+64 16 q+64", "ready g e",
           "ready g f", "free q", "free p"});
    a("graph s e");
    EXPECT_EQ(world.count("use-after-free"), 2u) << world.logs();
}

// --- nothing is told ---

TEST_F(Graph, WhoseMemoryLivesIsSilent) {
    have("freed");
    a.all({"malloc q " + text(SIZE), "made g", "more g kernel test_write p 16 5", "ready g e",
           "free q", "graph s e", "ssync s", "graphown e", "sync"});
    silent();
}

TEST_F(Graph, WhoseAddressHasNewMemoryIsSilent) {
    for (const std::string kind : {"freed", "unmapped"}) {
        have(kind);
        a.all({"made g", "more g fill p 1 16", "ready g e"});
        const std::string address = a.must("value p");
        end(kind);
        if (kind == "freed")
            a.must("malloc n " + text(SIZE));
        else
            a.all({"vmap p 0 " + text(SIZE) + " h", "vaccess p 0 " + text(SIZE) + " 3"});
        if (kind == "freed") {
            ASSERT_EQ(a.must("value n"), address);
        }
        a.all({"graph s e", "ssync s"});
        silent();
    }
}

TEST_F(Graph, ThatWasMadeAfterTheNewMemoryIsSilent) {
    have("freed");
    const std::string address = a.must("value p");
    a.all({"made g", "more g fill p 1 16", "ready g e", "free p", "malloc n " + text(SIZE),
           "ready g f"});
    ASSERT_EQ(a.must("value n"), address);
    a.all({"graph s f", "ssync s", "graph s e", "ssync s"});
    silent();
}

TEST_F(Graph, ThatHasOtherNodesByNowIsSilent) {
    have("freed");
    a.all({"made g", "more g kernel test_write p 16 5", "ready g e", "made h",
           "more h kernel test_write o 16 5", "free p", "update e h", "graph s e", "ssync s"});
    silent();
}

TEST_F(Graph, WhoseNodeWasChangedIsSilent) {
    have("freed");
    a.all({"made g", "more g kernel test_write p 16 5", "ready g e", "free p",
           "rekernel e test_write o 16 5", "graph s e", "ssync s"});
    silent();
}

TEST_F(Graph, WhoseCopyOrFillWasChangedIsSilent) {
    have("freed");
    a.all({"node fill p 0 16 1 e", "free p", "renode fill o 0 16 1 e", "graph s e", "ssync s",
           "malloc p 4096", "node copy p 0 16 o f", "free p", "malloc q 8388608",
           "renode copy q 0 16 o f", "graph s f", "ssync s"});
    silent();
}

// The end of a range is no use of what begins there.
TEST_F(Graph, WithTheEndOfMemoryThatLivesIsSilent) {
    a.all({"vreserve p " + text(2 * SIZE), "vcreate h " + text(SIZE) + " 0",
           "vcreate i " + text(SIZE) + " 0", "vmap p 0 " + text(SIZE) + " h",
           "vmap p " + text(SIZE) + " " + text(SIZE) + " i", "vaccess p 0 " + text(2 * SIZE) + " 3",
           "made g", "more g kernel test_spin p 16 1000 o", "ready g e", "made d",
           "more d kernel test_spin p+64 16 p+" + text(SIZE) + " o", "ready d f",
           "vunmap p " + text(SIZE) + " " + text(SIZE)});
    a.all({"graph s e", "ssync s"});
    silent();
    a.must("vunmap p 0 " + text(SIZE));
    a("graph s f");
    const std::vector<Finding> all = world.findings();
    ASSERT_EQ(all.size(), 1u) << world.logs();
    EXPECT_NE(all[0].detail.find("argument 1 of test_spin"), std::string::npos) << all[0].detail;
}

TEST_F(Graph, WhoseNodeIsDisabledIsSilent) {
    have("freed");
    a.all({"made g", "more g fill p 1 16", "ready g e", "disable e", "free p", "graph s e",
           "ssync s"});
    silent();
}

TEST_F(Graph, ThatIsDestroyedIsSilent) {
    have("freed");
    a.all({"made g", "more g fill p 1 16", "ready g e", "unready e", "free p", "made h",
           "more h fill o 1 16", "ready h f", "graph s f", "ssync s"});
    silent();
}

TEST_F(Graph, WhoseMemoryIsFreedAfterItsLastLaunchIsSilent) {
    have("freed");
    a.all({"made g", "more g fill p 1 16", "ready g e", "graph s e", "ssync s", "free p", "sync"});
    silent();
}

// What an update brings is known, too.
TEST_F(Graph, ThatWasUpdatedIsTold) {
    have("freed");
    a.all({"made g", "more g fill o 1 16", "ready g e", "made h", "more h fill p 1 16",
           "update e h", "free p"});
    a("graph s e");
    expect("use-after-free", "node 0 of the graph, a fill");
}

// It runs at another time, if at all.
TEST_F(Graph, WhoseLaunchIsCapturedIsSilent) {
    have("freed");
    a.all({"made g", "more g fill p 1 16", "ready g e", "free p", "capture s"});
    EXPECT_EQ(a.code("graph s e"), 900);
    EXPECT_EQ(a.code("captured s f"), 901);
    silent();
}

// All kernels of one call are looked at after a close.
TEST_F(Graph, AndAKernelOnSeveralStreamsIsToldAfterAClose) {
    SIM_ONLY("a card wants a device for each of the streams (1 on one H200)");
    open();
    a.all({"stream t", "malloc sum 65536", "spinboth s t p 1024 1000 1000 sum", "ssync s",
           "ssync t"});
    silent();
    end("closed");
    a("spinboth s t p 1024 1000 1000 sum");
    const std::vector<Finding> all = world.findings();
    ASSERT_EQ(all.size(), 1u) << world.logs();
    EXPECT_EQ(all[0].id, "use-after-close");
    EXPECT_EQ(all[0].api, "cuLaunchCooperativeKernelMultiDevice");
    EXPECT_NE(all[0].detail.find("argument 1 of the kernel"), std::string::npos);
}

TEST_F(Graph, IsNoBusinessOfAProgramWithoutAnAudit) {
    World plain;
    Puppet b(plain);
    b.all({kernels(), "stream s", "malloc p 4194304", "made g", "more g fill p 1 16", "ready g e",
           "free p"});
    b("graph s e");
    EXPECT_EQ(plain.findings().size(), 0u) << plain.logs();
}

} // namespace
