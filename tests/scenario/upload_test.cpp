// upload_test.cpp - regions that are uploaded once: one process copies, the others find the bytes
// there, and who would upload something else gets memory of its own.
#include "scenario/harness.hpp"

#include <fstream>
#include <thread>

namespace {

constexpr uint64_t SIZE = 8 * MiB; // eight chunks, four granules

std::string once(const std::string &more = "wait = 5s\n") {
    return rule("weights", "producer", "export", "size = 8MiB\nbacking = vmm\nupload = once\n") +
           rule("weights", "consumer*", "import",
                "size = 8MiB\nbacking = vmm\nupload = once\n" + more);
}

std::string upload(const std::string &name, uint64_t offset, uint64_t count, int seed,
                   const std::string &how = "sync", int64_t poke = -1) {
    return "upload " + name + " " + std::to_string(offset) + " " + std::to_string(count) + " " +
           std::to_string(seed) + " " + how + (poke < 0 ? "" : " " + std::to_string(poke));
}

std::string whole(const std::string &name, int seed, const std::string &how = "sync",
                  int64_t poke = -1) {
    return upload(name, 0, SIZE, seed, how, poke);
}

std::string expect(Puppet &puppet, const std::string &name, int seed, uint64_t size = SIZE) {
    return puppet.must("expect " + name + " 0 " + std::to_string(size) + " " +
                       std::to_string(seed));
}

struct Upload : testing::TestWithParam<const char *> {};

INSTANTIATE_TEST_SUITE_P(Once, Upload,
                         testing::Values("sync", "default", "async", "pinned", "ptds", "ptsz",
                                         "beside"));

TEST_P(Upload, EqualBytesAreThereAlready) {
    World world;
    world.config(once());
    for (const char *build : {"puppet", "puppet_static", "puppet_driver"}) {
        Puppet a(world, producer(build)), b(world, consumer(build)), c(world, consumer(build));
        for (Puppet *puppet : {&a, &b, &c})
            puppet->must("info");
        const uint64_t before = world.used();
        for (Puppet *puppet : {&a, &b, &c})
            puppet->must("malloc p 8388608");
        EXPECT_EQ(world.state("weights"), "exporting");
        a.must(whole("p", 3, GetParam()));
        EXPECT_EQ(world.state("weights"), "ready");
        b.must(whole("p", 3, GetParam()));
        c.must(whole("p", 3, GetParam()));
        EXPECT_TRUE(world.used_becomes(before + SIZE)) << "one copy";
        EXPECT_EQ(expect(b, "p", 3), "same");
        EXPECT_EQ(expect(c, "p", 3), "same");
        for (Puppet *puppet : {&b, &c, &a})
            puppet->must("free p");
        EXPECT_TRUE(world.used_becomes(before));
    }
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

TEST_P(Upload, OtherBytesAreTheProcessesOwn) {
    World world;
    world.config(once());
    Puppet a(world, producer()), b(world, consumer()), c(world, consumer());
    for (Puppet *puppet : {&a, &b, &c})
        puppet->must("info");
    const uint64_t before = world.used();
    for (Puppet *puppet : {&a, &b, &c})
        puppet->must("malloc p 8388608");
    a.must(whole("p", 3, GetParam()));
    b.must(whole("p", 3, GetParam(), 5000000));
    EXPECT_EQ(expect(b, "p", 3), "5000000");
    c.must(whole("p", 3, GetParam()));
    EXPECT_EQ(expect(a, "p", 3), "same") << "what others upload changes nothing for it";
    EXPECT_EQ(expect(c, "p", 3), "same");
    EXPECT_TRUE(world.used_becomes(before + 2 * SIZE));
    const auto findings = world.findings();
    ASSERT_EQ(findings.size(), 1u) << world.logs();
    EXPECT_EQ(findings[0].id, "share-mismatch");
    EXPECT_EQ(findings[0].name, "weights");
    EXPECT_EQ(findings[0].pid, (uint32_t)b.pid);
    EXPECT_NE(findings[0].detail.find("offset 5000000"), std::string::npos) << findings[0].detail;
    b.must("fill p 0x77 8388608"); // it is plain memory from then on
    b.must("sync");
    EXPECT_EQ(b.must("read p 0 2"), "7777");
    EXPECT_EQ(expect(c, "p", 3), "same");
    EXPECT_EQ(world.findings().size(), 1u);
    for (Puppet *puppet : {&b, &c, &a})
        puppet->must("free p");
    EXPECT_TRUE(world.used_becomes(before));
}

TEST(UploadOnce, PiecesOfAnySizeInAnyOrderOverlapping) {
    World world;
    world.config(once());
    Puppet a(world, producer()), b(world, consumer());
    a.must("malloc p 8388608");
    b.must("malloc p 8388608");
    const std::pair<uint64_t, uint64_t> pieces[] = {
        {7000000, 1388608}, {0, 3}, {3, 2000000}, {1000000, 4000000}, {4999999, 2000002}};
    for (const auto &[offset, count] : pieces) {
        EXPECT_EQ(world.state("weights"), "exporting");
        a.must(upload("p", offset, count, 9));
    }
    EXPECT_EQ(world.state("weights"), "ready");
    for (const auto &[offset, count] : pieces)
        b.must(upload("p", offset, count, 9));
    for (uint64_t at = 0; at < SIZE; at += 700001)
        b.must(upload("p", at, std::min<uint64_t>(700001, SIZE - at), 9, "async"));
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
    b.must(upload("p", 123456, 10, 9, "sync", 123460)); // within one chunk
    EXPECT_EQ(world.count("share-mismatch"), 1u);
    EXPECT_EQ(expect(b, "p", 9), "123460");
    EXPECT_EQ(expect(a, "p", 9), "same");
}

TEST(UploadOnce, AFollowerWaitsForTheLeader) {
    World world;
    world.config(once());
    Puppet a(world, producer()), b(world, consumer());
    a.must("malloc p 8388608");
    b.must("malloc p 8388608");
    b.send(whole("p", 1));
    EXPECT_FALSE(b.answers(300));
    a.must(whole("p", 1));
    EXPECT_EQ(b.receive().code, 0);
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

TEST(UploadOnce, ALeaderThatDiesHalfWayLeavesEveryoneOnTheirOwn) {
    World world;
    world.config(once("wait = 20s\n"));
    Puppet a(world, producer()), b(world, consumer());
    a.must("malloc p 8388608");
    b.must("malloc p 8388608");
    a.must(upload("p", 0, SIZE / 2, 1));
    b.send(whole("p", 1));
    EXPECT_FALSE(b.answers(200));
    a.kill();
    EXPECT_EQ(b.receive(soon(8000)).code, 0);
    EXPECT_EQ(expect(b, "p", 1), "same");
    EXPECT_EQ(world.count("share-fallback"), 1u) << world.logs();
    EXPECT_EQ(b.code("free p"), 0);
}

TEST(UploadOnce, ALeaderThatNeverFinishesIsWaitedForOnce) {
    World world;
    world.config(once("wait = 400ms\n"));
    Puppet a(world, producer()), b(world, consumer());
    a.must("malloc p 8388608");
    b.must("malloc p 8388608");
    const int64_t began = now_ms();
    b.must(upload("p", 0, SIZE / 2, 1));
    EXPECT_GE(now_ms() - began, 400);
    b.must(upload("p", SIZE / 2, SIZE / 2, 1));
    EXPECT_EQ(expect(b, "p", 1), "same");
    EXPECT_EQ(world.count("share-timeout"), 1u) << world.logs();
    EXPECT_EQ(world.findings().size(), 1u);
}

TEST(UploadOnce, WhatIsNeverWhollyWrittenIsGivenUp) {
    World world;
    world.config(once("wait = 10s\n"));
    Puppet a(world, producer()), b(world, consumer());
    for (Puppet *puppet : {&a, &b})
        puppet->must("info");
    const uint64_t before = world.used();
    a.must("malloc p 8388608");
    b.must("malloc p 8388608");
    a.must(upload("p", 0, 7 * MiB, 1));
    b.send(upload("p", 0, 7 * MiB, 1));
    const int64_t began = now_ms();
    EXPECT_EQ(b.receive(soon(8000)).code, 0);
    EXPECT_LT(now_ms() - began, 3500);
    EXPECT_EQ(expect(b, "p", 1, 7 * MiB), "same");
    EXPECT_TRUE(world.files("regions").empty());
    EXPECT_TRUE(world.files("names").empty());
    EXPECT_TRUE(world.used_becomes(before + 2 * SIZE));
    a.must(upload("p", 7 * MiB, MiB, 1)); // it is plain memory
    EXPECT_EQ(expect(a, "p", 1), "same");
    const auto findings = world.findings();
    ASSERT_EQ(findings.size(), 2u) << world.logs();
    for (const auto &finding : findings) {
        EXPECT_EQ(finding.id, "share-fallback");
        EXPECT_NE(finding.detail.find(finding.pid == (uint32_t)a.pid
                                          ? "only the first 7340032 of 8388608 bytes"
                                          : "its creator gave it up"),
                  std::string::npos)
            << finding.detail;
    }
    a.must("free p");
    b.must("free p");
    EXPECT_TRUE(world.used_becomes(before));
}

TEST(UploadOnce, WhatIsGivenUpGoesWithItsContext) {
    World world;
    world.config(once("wait = 10s\n"));
    Puppet a(world, producer()), b(world, consumer());
    a.must("info");
    a.must("malloc q 4096");
    const uint64_t before = world.used();
    a.must("malloc p 8388608");
    b.must("malloc p 8388608");
    a.must(upload("p", MiB, MiB, 1));
    b.must(upload("p", 0, 7 * MiB, 1));
    b.must("free p");
    b.kill();
    a.must("reset");
    a.must("malloc q 4096");
    EXPECT_TRUE(world.used_becomes(before));
}

TEST(UploadOnce, WithoutAFollowerNothingIsGivenUp) {
    World world;
    world.config(once());
    Puppet a(world, producer()), b(world, consumer());
    a.must("malloc p 8388608");
    a.must(upload("p", 0, 7 * MiB, 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    EXPECT_EQ(world.state("weights"), "exporting");
    b.must("malloc p 8388608");
    a.must(upload("p", 7 * MiB, MiB, 1));
    b.must(whole("p", 1));
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

TEST(UploadOnce, ALeaderThatPausesIsGivenFourTimesAsLong) {
    World world;
    world.config(once("wait = 20s\n"));
    Puppet a(world, producer()), b(world, consumer());
    a.must("malloc p 8388608");
    b.must("malloc p 8388608");
    b.send(whole("p", 1));
    a.must(upload("p", 0, MiB, 1));
    for (const int64_t pause : {0, 700, 2400}) {
        std::this_thread::sleep_for(std::chrono::milliseconds(pause));
        a.must(upload("p", pause ? 2 * MiB : MiB, MiB, 1));
    }
    a.must(upload("p", 3 * MiB, 5 * MiB, 1));
    EXPECT_EQ(b.receive().code, 0);
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

TEST(UploadOnce, AnythingButAnUploadMakesAFollowerPrivate) {
    World world;
    world.config(once());
    Puppet a(world, producer()), b(world, consumer());
    a.must("malloc p 8388608");
    b.must("malloc p 8388608");
    a.must(whole("p", 1));
    b.must("fill p 0x42 100 50");
    b.must("sync");
    EXPECT_EQ(b.must("read p 49 3"), b.must("read p 49 1") + "4242");
    EXPECT_EQ(b.must("expect p 150 8388458 1"), "same") << "the rest is what it was";
    EXPECT_EQ(expect(a, "p", 1), "same");
    EXPECT_EQ(world.count("share-fallback"), 1u) << world.logs();
    b.must("fill p 0x43 100 50");
    EXPECT_EQ(world.findings().size(), 1u);
}

TEST(UploadOnce, AFillIsPartOfWhatTheLeaderWrites) {
    World world;
    world.config(once());
    Puppet a(world, producer()), b(world, consumer());
    a.must("malloc p 8388608");
    b.must("malloc p 8388608");
    a.must("fill p 0 4194304");
    a.must(upload("p", SIZE / 2, SIZE / 2, 1));
    EXPECT_EQ(world.state("weights"), "ready");
    b.must(upload("p", SIZE / 2, SIZE / 2, 1));
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

TEST(UploadOnce, WhatTheLeaderWritesLaterIsComparedToo) {
    World world;
    world.config(once());
    Puppet a(world, producer()), b(world, consumer()), c(world, consumer());
    for (Puppet *puppet : {&a, &b, &c})
        puppet->must("malloc p 8388608");
    a.must(whole("p", 1));
    b.must(whole("p", 1));
    a.must(upload("p", 4000000, 100, 2));
    EXPECT_EQ(world.state("weights"), "ready");
    c.must(whole("p", 1));
    EXPECT_EQ(world.count("share-mismatch"), 1u);
    EXPECT_EQ(expect(c, "p", 1), "same");
    EXPECT_EQ(b.must("expect p 4000000 100 2"), "same") << "it is one memory";
}

TEST(UploadOnce, WhileTheLeaderRewritesBesideAStoppedKeeperNothingIsBelieved) {
    World world;
    world.config(once("wait = 1s\n"));
    Puppet a(world, producer()), b(world, consumer());
    a.must("malloc p 8388608");
    b.must("malloc p 8388608");
    a.must(whole("p", 1));
    const pid_t keeper = static_cast<pid_t>(world.region("weights")["keeper"]["pid"].number);
    ASSERT_EQ(::kill(keeper, SIGSTOP), 0);
    a.send(whole("p", 2)); // cannot say that it is about to write
    EXPECT_TRUE(eventually([&] {
        for (const std::string &file : world.files("regions"))
            if (file.find(".hashes") != std::string::npos)
                return false;
        return true;
    }));
    b.must(whole("p", 1));
    EXPECT_EQ(::kill(keeper, SIGCONT), 0);
    EXPECT_EQ(a.receive().code, 0);
    EXPECT_EQ(expect(b, "p", 1), "same");
    EXPECT_EQ(expect(a, "p", 2), "same");
}

TEST(UploadOnce, ARegionThatIsFreedIsNotSaidToHaveEndedHalfWritten) {
    World world;
    world.config(once());
    Puppet a(world, producer()), b(world, consumer());
    a.must("malloc p 8388608");
    b.must("malloc p 8388608");
    a.must(whole("p", 1));
    a.must("free p");
    b.must(whole("p", 1));
    EXPECT_EQ(expect(b, "p", 1), "same");
    const auto findings = world.findings();
    ASSERT_EQ(findings.size(), 1u) << world.logs();
    EXPECT_EQ(findings[0].id, "share-fallback");
    EXPECT_NE(findings[0].detail.find("has freed it"), std::string::npos) << findings[0].detail;
}

TEST(UploadOnce, TwoThreadsUploadHalfOfItEach) {
    for (const char *build : {"puppet", "puppet_driver"}) {
        World world;
        world.config(once());
        Puppet a(world, producer(build)), b(world, consumer(build));
        a.must("malloc p 8388608");
        b.must("malloc p 8388608");
        a.must("halves p 8388608 5");
        EXPECT_EQ(world.state("weights"), "ready");
        b.must("halves p 8388608 5");
        EXPECT_EQ(expect(b, "p", 5), "same");
        b.must("halves p 8388608 6");
        EXPECT_EQ(expect(b, "p", 6), "same");
        EXPECT_EQ(expect(a, "p", 5), "same");
        EXPECT_EQ(world.count("share-mismatch"), 1u) << world.logs();
    }
}

TEST(UploadOnce, AFollowerThatForks) {
    World world;
    world.config(once());
    Puppet a(world, producer()), b(world, consumer());
    a.must("malloc p 8388608");
    b.must("malloc p 8388608");
    a.must(upload("p", 0, SIZE / 2, 1));
    b("fork get p"); // whatever it says
    a.must(upload("p", SIZE / 2, SIZE / 2, 1));
    b.must(upload("p", 0, SIZE / 2, 1));
    b("fork free p");
    b.must(upload("p", SIZE / 2, SIZE / 2, 1));
    EXPECT_EQ(expect(b, "p", 1), "same");
    EXPECT_EQ(world.count("share-fallback") + world.count("share-mismatch"), 0u) << world.logs();
    b.must(upload("p", 0, 100, 1, "sync", 50));
    EXPECT_EQ(world.count("share-mismatch"), 1u);
    EXPECT_EQ(expect(b, "p", 1), "50");
    EXPECT_EQ(expect(a, "p", 1), "same");
}

TEST(UploadOnce, OneThatIsOpenedByItsTokenWhileItIsUploaded) {
    World world;
    world.config(once());
    How stranger;
    Puppet a(world, producer()), b(world, consumer()), c(world, stranger);
    a.must("malloc p 8388608");
    b.must("malloc p 8388608");
    a.must(upload("p", 0, SIZE / 2, 1));
    c.must("open q " + a.must("get p"));
    a.must(upload("p", SIZE / 2, SIZE / 2, 1));
    b.must(whole("p", 1));
    EXPECT_EQ(expect(c, "q", 1), "same");
    EXPECT_EQ(c.code(upload("q", 0, 100, 2)), 1) << "it is read-only";
    b.must(upload("p", 0, 100, 1, "sync", 50));
    EXPECT_EQ(expect(c, "q", 1), "same");
    a.must("free p");
    EXPECT_EQ(expect(c, "q", 1), "same");
    c.must("close q");
    EXPECT_EQ(world.count("share-mismatch"), 1u) << world.logs();
}

TEST(UploadOnce, WithRoleAutoAndWritesOfItsOwnTheRestIsPrivate) {
    World world;
    const std::string both = "size = 8MiB\nbacking = vmm\n";
    world.config(rule("weights", "producer", "auto", both + "upload = once\n") +
                 rule("weights", "consumer*", "auto", both));
    Puppet a(world, producer()), b(world, consumer());
    a.must("malloc p 8388608");
    a.must(whole("p", 1));
    b.must("malloc p 8388608");
    b.must(whole("p", 2));
    EXPECT_EQ(expect(a, "p", 1), "same");
    const auto findings = world.findings();
    ASSERT_EQ(findings.size(), 1u) << world.logs();
    EXPECT_EQ(findings[0].id, "share-mismatch");
    EXPECT_NE(findings[0].detail.find("read-only"), std::string::npos) << findings[0].detail;
}

TEST(UploadOnce, WithoutVerifyNothingIsCompared) {
    World world;
    world.config(once("verify = off\n"));
    Puppet a(world, producer()), b(world, consumer());
    a.must("malloc p 8388608");
    b.must("malloc p 8388608");
    a.must(whole("p", 1));
    b.must(whole("p", 2));
    EXPECT_EQ(expect(b, "p", 1), "same");
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

TEST(UploadOnce, DamagedHashesAreNotBelieved) {
    World world;
    world.config(once());
    Puppet a(world, producer()), b(world, consumer());
    a.must("malloc p 8388608");
    b.must("malloc p 8388608");
    a.must(whole("p", 1));
    for (const std::string &file : world.files("regions"))
        if (file.find(".hashes") != std::string::npos) {
            std::fstream hashes(std::string(world.store().path) + "/regions/" + file,
                                std::ios::in | std::ios::out);
            hashes.seekp(60);
            hashes.put('x');
        }
    b.must(whole("p", 1));
    EXPECT_EQ(expect(b, "p", 1), "same");
    EXPECT_EQ(world.count("share-fallback"), 1u) << world.logs();
}

TEST(ReadOnly, AWriteFailsAndIsReported) {
    World world;
    world.config(rule("weights", "producer", "export", "backing = vmm\naccess = ro\n") +
                 rule("weights", "consumer*", "import", "backing = vmm\naccess = ro\n"));
    Puppet a(world, producer()), b(world, consumer());
    a.must("malloc p 8388608");
    a.must(whole("p", 1));
    b.must("malloc p 8388608");
    EXPECT_EQ(expect(b, "p", 1), "same");
    EXPECT_EQ(b.code(upload("p", 4096, 100, 2)), 1);
    const auto findings = world.findings();
    ASSERT_EQ(findings.size(), 1u) << world.logs();
    EXPECT_EQ(findings[0].id, "write-read-only");
    EXPECT_EQ(findings[0].name, "weights");
    EXPECT_NE(findings[0].detail.find("100 bytes at offset 4096"), std::string::npos);
    EXPECT_EQ(expect(b, "p", 1), "same");
}

} // namespace
