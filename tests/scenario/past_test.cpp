// past_test.cpp - what a handle was that is misused: memory of cudaMalloc, of a rule with
// backing = vmm, and of the program's own cuMemCreate have the same answers and findings.
#include "scenario/harness.hpp"

namespace {

constexpr uint64_t SIZE = 4 * MiB;

enum Kind { LEGACY, RULE, TOKEN, KINDS };
const char *const kinds[KINDS] = {"cudaMalloc", "rule", "token"};

// An exporter with a handle, and two that may open it.
struct Side {
    Side(World &home, Kind of, const How &how = called("other"))
        : world(home), kind(of), a(home, of == RULE ? producer() : how), b(home), c(home) {
        if (kind == TOKEN)
            a.all({"malloc o 1024", "vreserve p " + text(SIZE), "vcreate h " + text(SIZE) + " 0",
                   "vmap p 0 " + text(SIZE) + " h", "vaccess p 0 " + text(SIZE) + " 3",
                   "vrelease h"});
        else
            a.must("malloc p " + text(SIZE));
        b.must("malloc o 1024");
        c.must("malloc o 1024");
        handle = a.must("get p");
    }
    int open(Puppet &puppet) {
        return puppet.code("open q " + handle);
    }
    void free() {
        a.must(kind == TOKEN ? "vunmap p 0 " + text(SIZE) : "free p");
    }
    // The keeper hears of its end a little later.
    void ended() {
        if (kind == RULE) {
            EXPECT_TRUE(eventually([&] { return world.state("frames") == "none"; }));
        }
    }
    World &world;
    Kind kind;
    Puppet a, b, c;
    std::string handle;
};

struct Past {
    const char *name;
    std::vector<int> codes;
    std::vector<std::string> findings; // of opens and closes
    std::vector<int> (*run)(Side &side);
};

const Past pasts[] = {
    {"own", {201}, {"open-own-handle"}, [](Side &s) { return std::vector{s.open(s.a)}; }},
    {"freed",
     {1},
     {"open-stale"},
     [](Side &s) {
         s.free();
         return std::vector{s.open(s.b)};
     }},
    {"own_freed",
     {201},
     {"open-own-handle"},
     [](Side &s) {
         s.free();
         return std::vector{s.open(s.a)};
     }},
    {"freed_while_open",
     {1},
     {"open-stale"},
     [](Side &s) {
         s.open(s.c);
         s.free();
         return std::vector{s.open(s.b)};
     }},
    {"killed",
     {400},
     {"open-dead-owner"},
     [](Side &s) {
         s.a.kill();
         s.ended();
         return std::vector{s.open(s.b)};
     }},
    // The directory has forgotten it. A token says whose it was, a handle of the driver's does not.
    {"ended",
     {400},
     {"open-dead-owner"},
     [](Side &s) {
         EXPECT_EQ(s.a.quit("return"), 0);
         s.ended();
         return std::vector{s.open(s.b)};
     }},
    {"freed_and_ended",
     {400},
     {"open-dead-owner"},
     [](Side &s) {
         s.free();
         EXPECT_EQ(s.a.quit("return"), 0);
         return std::vector{s.open(s.b)};
     }},
    {"flags",
     {1, 1},
     {"open-bad-flags", "open-bad-flags"},
     [](Side &s) {
         return std::vector{s.b.code("open q " + s.handle + " 0"),
                            s.c.code("open q " + s.handle + " 2")};
     }},
    {"second_context",
     {0, 400, 0, 0, 0},
     {"open-second-context"},
     [](Side &s) {
         std::vector<int> codes = {s.open(s.b)};
         s.b.must("ctxcreate two");
         codes.push_back(s.b.code("open r " + s.handle));
         s.b.must("ctxpop");
         codes.push_back(s.b.code("close q"));
         s.b.must("ctxpush two");
         codes.push_back(s.b.code("open r " + s.handle));
         codes.push_back(s.b.code("close r"));
         return codes;
     }},
    {"twice",
     {0, 0, 0, 0, 1},
     {"double-close", "double-open"},
     [](Side &s) {
         return std::vector{s.open(s.b), s.open(s.b), s.b.code("close q"), s.b.code("close q"),
                            s.b.code("close q")};
     }},
    {"right",
     {0, 0, 0, 0},
     {},
     [](Side &s) {
         std::vector<int> codes = {s.open(s.b), s.open(s.c)};
         codes.push_back(s.b.code("close q"));
         codes.push_back(s.c.code("close q"));
         s.free();
         return codes;
     }},
};

// The findings of what was opened and closed; those of frees differ, and are told elsewhere.
std::vector<std::string> opens(const World &world) {
    std::vector<std::string> ids;
    for (const Finding &finding : world.findings())
        if (finding.id.find("open") == 0 || finding.id.find("close") == 0 ||
            finding.id.find("double") == 0 || finding.id == "ipc-call-failed")
            ids.push_back(finding.id);
    std::sort(ids.begin(), ids.end());
    return ids;
}

using Parameter = std::tuple<size_t, int, const char *>;
struct PastOf : testing::TestWithParam<Parameter> {};

TEST_P(PastOf, IsToldAlike) {
    const auto &[at, kind, mode] = GetParam();
    const Past &past = pasts[at];
    World world("[gpushare]\nvmm_ipc = on\nmode = " + std::string(mode) + "\n" +
                rule("frames", "producer", "export", "backing = vmm\n"));
    const bool ended = past.findings == std::vector<std::string>{"open-dead-owner"};
    Side side(world, static_cast<Kind>(kind));
    EXPECT_EQ(past.run(side), past.codes);
    if (kind == LEGACY && ended && std::string(past.name) != "killed")
        EXPECT_EQ(opens(world), std::vector<std::string>{"open-unknown"}) << world.logs();
    else
        EXPECT_EQ(opens(world), past.findings) << world.logs();
    for (const Finding &finding : world.findings("open-stale"))
        EXPECT_EQ(finding.others, std::vector<uint32_t>{(uint32_t)side.a.pid}) << world.logs();
}

std::string name_of(const testing::TestParamInfo<Parameter> &info) {
    const auto &[at, kind, mode] = info.param;
    return std::string(pasts[at].name) + "_" + kinds[kind] + "_" + mode;
}

// No rule takes anything in an audit.
std::vector<Parameter> all() {
    std::vector<Parameter> parameters;
    for (size_t at = 0; at < std::size(pasts); at++)
        for (const int kind : {LEGACY, RULE, TOKEN})
            for (const char *mode : {"share", "audit"})
                if (kind != RULE || std::string(mode) == "share")
                    parameters.emplace_back(at, kind, mode);
    return parameters;
}

INSTANTIATE_TEST_SUITE_P(, PastOf, testing::ValuesIn(all()), name_of);

const char *const ON = "[gpushare]\nvmm_ipc = on\n";

// Whose maker this process knows nothing of.
TEST(Past, OfATokenFromAnotherDirectoryIsNotGuessed) {
    World world(ON);
    How apart = called("other");
    apart.environment["GPUSHARE_DIR"] = world.path("apart");
    Side side(world, TOKEN, apart);
    EXPECT_EQ(side.open(side.b), 1);
    EXPECT_EQ(opens(world), std::vector<std::string>{"open-unknown"}) << world.logs();
    EXPECT_EQ(side.a.quit("return"), 0);
    EXPECT_EQ(side.open(side.c), 400) << "of the same pid namespace the kernel tells";
    EXPECT_EQ(world.count("open-dead-owner"), 1u) << world.logs();
}

TEST(Past, OfATokenFromAnotherNamespaceOfTheDirectory) {
    World world(ON);
    How apart = called("other");
    apart.environment["GPUSHARE_NAMESPACE"] = "apart";
    Side side(world, TOKEN, apart);
    EXPECT_EQ(side.open(side.b), 1);
    EXPECT_EQ(opens(world), std::vector<std::string>{"open-other-namespace"}) << world.logs();
}

TEST(Past, OfATokenThatWasDamagedIsUnknown) {
    World world(ON);
    Side side(world, TOKEN);
    for (const size_t at : {40u, 60u, 127u}) {
        std::string handle = side.handle;
        handle[at] = handle[at] == '0' ? '1' : '0';
        EXPECT_EQ(side.b.code("open q " + handle), 1) << at;
        EXPECT_EQ(side.a.code("open q " + handle), 1) << at;
    }
    EXPECT_EQ(world.count("open-unknown"), world.findings().size()) << world.logs();
}

TEST(Past, OfMemoryOfTheDevicesOwnPool) {
    World world("[gpushare]\nmode = audit\n");
    Puppet a(world);
    a.must("pool p 4096");
    a.must("unpool p");
    a.must("sync");
    EXPECT_EQ(a.code("unpool p"), 1);
    EXPECT_EQ(world.count("double-free"), 1u) << world.logs();
    a.must("pool q 4096");
    a.must("unpool q");
    EXPECT_EQ(world.findings().size(), 1u) << world.logs();
}

TEST(Past, OfATokenFromAContainer) {
    How inside = called("other");
    inside.wrap = {"unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--ipc"};
    std::vector<std::string> attempt = inside.wrap;
    attempt.push_back("true");
    SKIP_IF(command(attempt).status != 0, "this user may not make such namespaces");
    World world(ON);
    world.used(); // a simulated driver that was started in a container would end with it
    Side side(world, TOKEN, inside);
    side.free();
    EXPECT_EQ(side.open(side.b), 1);
    EXPECT_EQ(opens(world), std::vector<std::string>{"open-stale"}) << world.logs();
    EXPECT_EQ(side.a.quit("return"), 0);
    EXPECT_EQ(side.open(side.c), 400);
    EXPECT_EQ(world.count("open-dead-owner"), 1u) << world.logs();
}

} // namespace
