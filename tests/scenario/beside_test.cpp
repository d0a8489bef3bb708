// beside_test.cpp - calls that return while a kernel runs do so under the library, too. A kernel
// may wait for what its host does next, and then a call that waits for the kernel never returns.
#include "scenario/merging.hpp"

namespace {

// Each of them returns beside a kernel on a stream that the default stream does not wait for.
// HANDLE and EVENT are of another process. Memory that is merged is written, and given away, only
// when the device is idle: no merge rule takes these ("!"). Nor does a rule with backing = vmm take
// what is freed on a stream (docs/limits.md).
const char *const CALLS[] = {"malloc a 4194304",
                             "sleep 100",
                             "upload a 0 4194304 5 beside",
                             "malloc b 67108864",
                             "pool p 1048576 t",
                             "sfill t p 1 1048576 0",
                             "copy a 0 made 0 4096",
                             "copy a 0 made 0 4096 default",
                             "copy a 0 made 0 4194304 default",
                             "read made 4096 16",
                             "!rows t made 0 4096 4096 64 7",
                             "sleep 1100",
                             "launch t test_write a 1024 7",
                             "launch t test_read made 1024 small",
                             "ssync t",
                             "!get a",
                             "!get made",
                             "open o HANDLE",
                             "read o 0 4",
                             "evcreate e 6",
                             "evget e",
                             "evopen f EVENT",
                             "evrecord f",
                             "evquery f",
                             "evdestroy e",
                             "range a",
                             "attribute a 2",
                             "info",
                             "stream u",
                             "unstream u",
                             "capture t 2",
                             "!sfill t made 1 4096 0",
                             "captured t g",
                             "graph t g",
                             "ssync t",
                             "vreserve v 4194304",
                             "vcreate m 4194304 1",
                             "vmap v 0 4194304 m",
                             "vaccess v 0 4194304 3",
                             "unpool p",
                             "ssync t",
                             "malloc c 8388608",
                             "upload c 0 8388608 5 beside",
                             "read c 0 4"};

struct Setting {
    const char *name;
    std::string config;
    Environment environment = {};
};

struct Beside : testing::TestWithParam<Setting> {};

std::string with(std::string line, const std::string &what, const std::string &by) {
    const size_t at = line.find(what);
    return at == std::string::npos ? line : line.replace(at, what.size(), by);
}

// The calls that returned only after the kernel.
std::vector<std::string> waits(World &world, bool shim, bool merges) {
    const std::string spin = "launch s test_spin small 1024 2500000000 small";
    How how = called("owner"), mine;
    how.shim = mine.shim = shim;
    std::vector<std::string> found;
    Puppet owner(world, how);
    owner.all({"malloc plain 1048576", "malloc made 4194304", "malloc a 4194304",
               "malloc b 67108864", "malloc c 8388608", "evcreate e 6", "evrecord e"});
    const std::string handle = owner.must("get plain"), event = owner.must("evget e");
    Puppet a(world, mine);
    a.all({kernels(), "malloc small 4096", "malloc made 4194304", "upload made 0 4194304 3 sync",
           "stream s", "stream t", "launch t test_read made 1024 small",
           "launch t test_write small 1024 7", "ssync t", spin});
    for (std::string line : CALLS) {
        if (line[0] == '!' && merges)
            continue;
        line.erase(0, line[0] == '!');
        a.must(with(with(line, "HANDLE", handle), "EVENT", event));
        if (a.code("squery s") == 0) {
            found.push_back(line);
            a.must(spin);
        }
    }
    a.kill();
    return found;
}

// What waits without the library, as the first use of a kernel may on a card, may wait with it.
TEST_P(Beside, AKernelThatRunsNoCallWaits) {
    World plain, world(GetParam().config, GetParam().environment);
    const bool merges = GetParam().config.find("role = merge") != std::string::npos;
    const std::vector<std::string> bare = waits(plain, false, merges);
    for (const std::string &line : waits(world, true, merges))
        EXPECT_NE(std::find(bare.begin(), bare.end(), line), bare.end()) << line;
}

// It is hashed and merged all the same: its bytes are read back until the device is idle.
TEST(BesideAKernel, TheFirstMemoryOfAMergeRuleMakesNoCallWait) {
    Replicas two(2, merging("quiet = 50ms\n"));
    two[0].all({kernels(), "stream s", "stream t", "launch t test_write small 1024 7", "ssync t",
                "launch s test_spin small 1024 2500000000 small"});
    two.each("malloc p 8388608", Replicas::upload("p", 8 * MiB, 3, "beside"));
    two[0].all({"sleep 1300", "launch t test_write small 1024 7"});
    EXPECT_EQ(two[0].code("squery s"), 600);
    two[0].must("ssync s");
    EXPECT_TRUE(two.use(8 * MiB)) << two.in_use();
    two.expect_all("p", 8 * MiB, 3);
}

const char *const LARGE = "index = *\nsize = >=2MiB\n";

INSTANTIATE_TEST_SUITE_P(
    With, Beside,
    testing::Values(
        Setting{"NoRule", ""}, Setting{"Audit", "", {{"GPUSHARE_MODE", "audit"}}},
        Setting{"Cache", "", {{"GPUSHARE_OPEN_CACHE", "8"}}},
        Setting{"ExportRule", rule("r{n}", "puppet", "export", "index = *\n")},
        Setting{"ExportVmmRule",
                rule("r{n}", "puppet", "export", std::string(LARGE) + "backing = vmm\n")},
        Setting{"ImportRule",
                rule("r{n}", "owner", "export", LARGE) + rule("r{n}", "puppet", "import", LARGE)},
        Setting{"MergeRule", rule("w", "puppet", "merge", "size = >=2MiB\nquiet = 50ms\n")},
        Setting{"MergeAtOnceRule", rule("w", "puppet", "merge", "size = >=2MiB\nquiet = 0\n")}),
    [](const auto &one) { return one.param.name; });

} // namespace
