// created_test.cpp - memory that replicas make by cuMemCreate and map themselves, which a merge
// rule with `created = on` takes.
#include "scenario/keepers.hpp"
#include "scenario/merging.hpp"

namespace {

constexpr uint64_t SIZE = 8 * MiB;

std::string created(const std::string &more = QUIET) {
    return merging("created = on\n" + more);
}

// A reservation `p` with so many mappings of SIZE, each of memory of its own: h0, h1, ...
void make(Puppet &puppet, unsigned count = 1, const std::string &name = "p") {
    puppet.must("vreserve " + name + " " + text(count * SIZE));
    for (unsigned i = 0; i < count; i++) {
        const std::string handle = "h" + text(i);
        puppet.must("vcreate " + handle + " " + text(SIZE));
        puppet.must("vmap " + name + " " + text(i * SIZE) + " " + text(SIZE) + " " + handle);
        puppet.must("vaccess " + name + " " + text(i * SIZE) + " " + text(SIZE) + " 3");
    }
}

// Ends it, as PyTorch's empty_cache does.
void end(Puppet &puppet, unsigned count = 1, const std::string &name = "p") {
    for (unsigned i = 0; i < count; i++) {
        puppet.must("vunmap " + name + " " + text(i * SIZE) + " " + text(SIZE));
        puppet.must("vrelease h" + text(i));
    }
    puppet.must("vunreserve " + name + " " + text(count * SIZE));
}

struct Two : Replicas {
    explicit Two(unsigned mappings = 1, const std::string &config = created())
        : Replicas(2, config), count(mappings) {
        for (auto &one : all)
            make(*one, count);
    }
    void fill(int seed) {
        each(upload("p", count * SIZE, seed));
    }
    bool merges(int seed) {
        fill(seed);
        return use(count * SIZE);
    }
    unsigned count;
};

// "p 0 8388608": a range of the reservation.
std::string range(uint64_t offset, uint64_t size, const std::string &name = "p") {
    return name + " " + text(offset) + " " + text(size);
}

// All that the program can ask about it.
std::string told(Puppet &puppet) {
    std::string all;
    for (const char *question : {"told p 0", "told p 4194304", "range p", "attribute p 17"})
        all += puppet(question).text + "\n";
    return all;
}

std::string bytes(Puppet &puppet, uint64_t size, int seed, const std::string &name = "p") {
    return Replicas::expect(puppet, name, size, seed);
}

} // namespace

TEST(Created, EqualMemoryIsHeldOnce) {
    Two two;
    EXPECT_TRUE(two.merges(3)) << two.in_use();
    two.expect_all("p", SIZE, 3);
    for (auto &one : two.all)
        end(*one);
    EXPECT_TRUE(two.use(0)) << two.in_use();
    EXPECT_EQ(two.left(), "");
}

TEST(Created, WithoutTheKeyItIsLeftAlone) {
    Two two(1, merging("quiet = 1ms\n"));
    two.fill(3);
    two.load("q", SIZE, 4); // takes its turn
    EXPECT_TRUE(two.use(3 * SIZE)) << two.in_use();
}

TEST(Created, ACopyGoesOverSeveralMappingsAndStaysInItsProcess) {
    Two two(3);
    ASSERT_TRUE(two.merges(3)) << two.in_use();
    two[0].must("fill p 0x55 4194304 6291456"); // the end of one, and the beginning of the next
    EXPECT_TRUE(two.use(5 * SIZE)) << two.in_use();
    EXPECT_EQ(bytes(two[1], 3 * SIZE, 3), "same");
    EXPECT_EQ(two[0].must("expect " + range(0, 6 * MiB) + " 3"), "same");
    EXPECT_EQ(two[0].must("expect " + range(6 * MiB, 1) + " 3"), text(6 * MiB));
    EXPECT_EQ(two[0].must("expect " + range(10 * MiB, 14 * MiB) + " 3"), "same");
    two[0].must(Replicas::upload("p", 3 * SIZE, 3)); // equal again
    EXPECT_TRUE(two.use(3 * SIZE)) << two.in_use();
    two.expect_all("p", 3 * SIZE, 3);
}

// No mapping of a merged block is ever writable: else one replica's kernel would change the other.
TEST(Created, AccessOverMergedMappingsIsToldAndNotGiven) {
    Two two(3);
    ASSERT_TRUE(two.merges(3)) << two.in_use();
    two.each("vaccess " + range(0, 3 * SIZE) + " 3", "vaccess " + range(SIZE, SIZE) + " 3");
    EXPECT_TRUE(two.use(3 * SIZE)) << two.in_use();
    two.each("kernels " + build_directory() + "/tests/apps/kernels.ptx");
    EXPECT_EQ(two[0].code("launch - test_write p 1024 7"), 0);
    EXPECT_EQ(two[0].code("sync"), 700);
    EXPECT_EQ(bytes(two[1], 3 * SIZE, 3), "same");
}

TEST(Created, TheProgramIsToldOfOneMapping) {
    Two two;
    const std::string before = told(two[0]);
    ASSERT_TRUE(two.merges(3)) << two.in_use();
    EXPECT_EQ(told(two[0]), before);
    for (const char *wrong :
         {"vunmap p 0 2097152", "vunmap p 2097152 6291456", "vunmap p 0 4194304",
          "vaccess p 0 4194304 3", "vaccess p 4194304 4194304 3", "vmap p 0 8388608 h0",
          "vunreserve p 8388608"})
        EXPECT_EQ(two[0].code(wrong), 1) << wrong;
    EXPECT_EQ(bytes(two[0], SIZE, 3), "same");
}

struct CreatedAndMerged : testing::Test {
    void SetUp() override {
        ASSERT_TRUE(two.merges(3)) << two.in_use();
    }
    Two two;
};

TEST_F(CreatedAndMerged, WhatIsUnmappedIsMappedElsewhereWithItsBytes) {
    two.each("vreserve q " + text(SIZE), "vunmap " + range(0, SIZE),
             "vmap " + range(0, SIZE, "q") + " h0");
    for (auto &one : two.all)
        EXPECT_EQ(one->code("read q 0 1"), 1); // it has no access yet
    two.each("vaccess " + range(0, SIZE, "q") + " 3");
    two.expect_all("q", SIZE, 3);
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    two[0].must("fill q 0x55 1");
    EXPECT_EQ(bytes(two[0], SIZE, 3, "q"), "0");
    EXPECT_EQ(bytes(two[1], SIZE, 3, "q"), "same");
    two.each("vunmap " + range(0, SIZE, "q"), "vrelease h0");
    EXPECT_TRUE(two.use(0)) << two.in_use();
}

TEST_F(CreatedAndMerged, ReferencesCountAsTheDriverCountsThem) {
    Puppet &one = two[0];
    const std::string handle = one.must("value h0");
    EXPECT_EQ(one.must("vretain again p 4194304"), handle);
    one.all({"vrelease h0", "vrelease h0"});
    EXPECT_EQ(one.code("vrelease h0"), 1);
    EXPECT_EQ(one.code("vexport h0"), 1);
    EXPECT_EQ(one.code("vtypes h0"), 1);
    one.must("vreserve q " + text(SIZE));
    EXPECT_EQ(one.code("vmap " + range(0, SIZE, "q") + " h0"), 1);
    EXPECT_EQ(bytes(one, SIZE, 3), "same"); // its mapping holds it
    EXPECT_EQ(one.must("vretain h0 p 0"), handle);
    one.all({"vunmap " + range(0, SIZE), "vrelease h0"});
    EXPECT_EQ(one.code("vrelease h0"), 1);
    end(two[1]);
    EXPECT_TRUE(two.use(0)) << two.in_use();
}

// The importer and the exporter have one memory, as bare; the other replica keeps its own.
TEST_F(CreatedAndMerged, WhatIsExportedIsPrivateForGood) {
    Puppet &one = two[0];
    const std::string descriptor = one.must("vexport h0");
    Puppet importer(two.world);
    importer.all({"info", "vimport h " + text(static_cast<uint64_t>(one.pid)) + " " + descriptor,
                  "vreserve p " + text(SIZE), "vmap " + range(0, SIZE) + " h",
                  "vaccess " + range(0, SIZE) + " 3"});
    EXPECT_EQ(bytes(importer, SIZE, 3), "same");
    importer.all({"fill p 0x55 1", "sync"});
    EXPECT_EQ(bytes(one, SIZE, 3), "0");
    EXPECT_EQ(bytes(two[1], SIZE, 3), "same");
    one.must(Replicas::upload("p", SIZE, 4));
    EXPECT_EQ(bytes(importer, SIZE, 4), "same");
    usleep(1000000); // five times as long as it takes
    importer.must("fill p 0x55 1");
    EXPECT_EQ(bytes(one, SIZE, 4), "0");
    end(one);
}

TEST_F(CreatedAndMerged, ASecondMappingShowsTheSameMemory) {
    Puppet &one = two[0];
    one.all({"vreserve q " + text(SIZE), "vmap " + range(0, SIZE, "q") + " h0"});
    one.must("vaccess " + range(0, SIZE, "q") + " 3");
    EXPECT_EQ(bytes(one, SIZE, 3, "q"), "same");
    one.must("fill q 0x55 1");
    EXPECT_EQ(bytes(one, SIZE, 3), "0");
    EXPECT_EQ(bytes(two[1], SIZE, 3), "same");
    EXPECT_EQ(one.code("vunmap " + range(0, SIZE)), 0);
    EXPECT_EQ(bytes(one, SIZE, 3, "q"), "0");
}

TEST(Created, LessAccessIsKeptToTheLetter) {
    Two two(2);
    ASSERT_TRUE(two.merges(3)) << two.in_use();
    Puppet &one = two[0];
    one.must("vaccess " + range(0, 2 * SIZE) + " 1");
    EXPECT_EQ(one.code("fill p 0x55 1"), 1);
    EXPECT_EQ(bytes(one, 2 * SIZE, 3), "same");
    one.must("vaccess " + range(0, 2 * SIZE) + " 0");
    EXPECT_EQ(one.code("read p 0 1"), 1);
    one.all({"vaccess " + range(0, 2 * SIZE) + " 3", "fill p 0x55 1"});
    EXPECT_EQ(bytes(two[1], 2 * SIZE, 3), "same");
}

TEST(Created, ADmaBufAndAGraphMakeItOneAllocation) {
    Two two(2);
    ASSERT_TRUE(two.merges(3)) << two.in_use();
    two[0].must("dmabuf " + range(0, SIZE));
    EXPECT_TRUE(two.use(3 * SIZE)) << two.in_use();
    two[0].all({"stream s", "capture s", "sfill s p 0x55 1 " + text(SIZE), "captured s g"});
    EXPECT_TRUE(two.use(4 * SIZE)) << two.in_use();
    EXPECT_EQ(bytes(two[0], 2 * SIZE, 3), "same");
}

TEST_F(CreatedAndMerged, TheOtherKeepsItsBytesWhenOneDies) {
    two.kill(0);
    EXPECT_EQ(bytes(two[1], SIZE, 3), "same");
    make(two.start());
    two[2].must(Replicas::upload("p", SIZE, 3));
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    EXPECT_EQ(bytes(two[2], SIZE, 3), "same");
    EXPECT_EQ(two[1].quit("exit 0"), 0); // with all that it has
    EXPECT_EQ(two[2].quit("_exit 0"), 0);
}

TEST_F(CreatedAndMerged, AForkedChildHasNothingOfIt) {
    const std::string bare = "0 3 | 3 | 3 | ";
    EXPECT_EQ(
        two[0]("fork vrelease h0;vunmap " + range(0, SIZE) + ";vaccess " + range(0, SIZE) + " 3;")
                .text.find(bare) != std::string::npos,
        true);
    EXPECT_EQ(bytes(two[0], SIZE, 3), "same");
    two[0].must("fill p 0x55 1");
    EXPECT_EQ(bytes(two[1], SIZE, 3), "same");
}

// Such memory outlives a context, as bare.
TEST_F(CreatedAndMerged, AResetLeavesIt) {
    two[0].all({"reset", "info"});
    EXPECT_EQ(bytes(two[0], SIZE, 3), "same");
    two[0].must("fill p 0x55 1");
    EXPECT_EQ(bytes(two[0], SIZE, 3), "0");
    EXPECT_EQ(bytes(two[1], SIZE, 3), "same");
    two[0].must(Replicas::upload("p", SIZE, 3));
    two.expect_all("p", SIZE, 3);
}

// As vLLM does it: what sleeps is copied out, unmapped and released.
TEST(Created, ItIsMergedAgainAfterEachSleep) {
    Two two(2);
    for (int round = 0; round < 5; round++) {
        ASSERT_TRUE(two.merges(round)) << round << ": " << two.in_use();
        two.expect_all("p", 2 * SIZE, round);
        for (auto &one : two.all)
            end(*one, 2);
        ASSERT_TRUE(two.use(0)) << round << ": " << two.in_use();
        for (auto &one : two.all)
            make(*one, 2);
    }
}

// --- a library that calls the driver past gpushare ---

namespace {

const char *const BYPASSED = "nothing is merged: a library that was loaded with RTLD_DEEPBIND "
                             "calls the driver past gpushare "
                             "(libdeepbind.so)";

void plug(Puppet &puppet) {
    puppet.must("plug " + build_directory() + "/tests/apps/libdeepbind.so");
}

class Deepbind : public testing::Test {
  protected:
    void SetUp() override {
        SIM_ONLY("the library is linked with the simulated driver");
#if defined(__SANITIZE_ADDRESS__)
        GTEST_SKIP() << "AddressSanitizer refuses RTLD_DEEPBIND";
#endif
    }
};

} // namespace

TEST_F(Deepbind, HandlesFromThenOnAreTheDrivers) {
    Two two;
    ASSERT_TRUE(two.merges(3)) << two.in_use();
    plug(two[0]);
    two[0].must("vcreate h 2097152");
    EXPECT_EQ(two[0].code("plugged properties h"), 0);
    EXPECT_TRUE(two.use(2 * SIZE + 2 * MiB)) << "and what was merged is private: " << two.in_use();
    EXPECT_EQ(two[0].code("plugged fill p"), 0);
    EXPECT_EQ(bytes(two[1], SIZE, 3), "same");
    const std::string logs = two.world.logs();
    EXPECT_HAS(logs, BYPASSED);
    EXPECT_EQ(logs.find(BYPASSED), logs.rfind(BYPASSED)) << logs;
}

// The thread that merges looks, too, and the next wait makes what is merged private.
TEST_F(Deepbind, AWaitIsEnoughAfterALook) {
    Two two(1, merging());
    two.load("q", SIZE, 4);
    ASSERT_TRUE(two.use(3 * SIZE)) << two.in_use();
    plug(two[0]);
    ASSERT_TRUE(eventually([&] { return two.world.logs().find(BYPASSED) != std::string::npos; }));
    two[0].must("sync");
    EXPECT_EQ(two[0].code("plugged fill q"), 0);
    EXPECT_EQ(bytes(two[1], SIZE, 4, "q"), "same");
    two.load("r", SIZE, 5);
    EXPECT_TRUE(two.use(6 * SIZE)) << two.in_use();
}

// One that is not linked with the driver calls nothing past anybody.
TEST_F(Deepbind, OfAnotherLibraryIsNothing) {
    Two two;
    two[0].must("plug " + build_directory() + "/tests/nvml/libnvidia-ml.so.1");
    ASSERT_TRUE(two.merges(3)) << two.in_use();
    EXPECT_EQ(two.world.logs().find("RTLD_DEEPBIND"), std::string::npos);
}
