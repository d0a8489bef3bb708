// merge_trouble_test.cpp - replicas and keepers that die or stop: no wrong byte, nothing left, and
// nobody waits.
#include "scenario/keepers.hpp"
#include "scenario/merging.hpp"

namespace {

constexpr uint64_t SIZE = 10 * MiB;

// What a process that merges nothing tells of itself, while it runs.
std::string reason(const World &world, const Puppet &puppet) {
    const Json shown = Json::parse(world.tool({"show", "--json", pid(puppet)}).out);
    return shown[0]["unmerged"].text;
}

TEST(MergeEnds, WithoutMembarrierAndEveryToolSaysSo) {
    World world(merging());
    Puppet one(world, called("replica"));
    one.all({"refuse " + std::to_string(SYS_membarrier), "malloc p 10485760",
             Replicas::upload("p", SIZE, 3)});
    EXPECT_EQ(Replicas::expect(one, "p", SIZE, 3), "same");
    const auto findings = world.findings();
    ASSERT_EQ(findings.size(), 1u) << world.logs();
    EXPECT_EQ(findings[0].id, "share-fallback");
    EXPECT_EQ(reason(world, one), "the kernel refuses membarrier(2)");
    EXPECT_HAS(world.tool({"show", pid(one)}).out, "refuses membarrier(2)");
    EXPECT_HAS(world.tool({"doctor"}).out, "merges nothing");
}

// A /dev in which the devices are files.
const std::vector<std::string> with_devices = {
    "unshare", "--mount", "sh", "-c",
    "d=$(mktemp -d) && mount -t tmpfs none $d && mkdir $d/shm $d/infiniband && mount --bind "
    "/dev/shm $d/shm && for f in null zero urandom; do : >$d/$f && mount --bind /dev/$f $d/$f || "
    "exit; done && : >$d/infiniband/uverbs0 && : >$d/gdrdrv && : >$d/nvidia-fs1 && mount --rbind "
    "$d /dev && exec \"$0\" \"$@\""};

bool may_have_devices() {
    auto test = with_devices;
    test.push_back("true");
    return command(test).status == 0;
}

How replica_with_devices() {
    How how = called("replica");
    how.wrap = with_devices;
    return how;
}

TEST(MergeEnds, WithADeviceForRdmaAndEveryToolSaysSo) {
    SKIP_IF(!may_have_devices(), "this user may not mount");
    const std::pair<const char *, const char *> cases[] = {
        {"quiet = 0\n", "/dev/infiniband/uverbs0"},
        {QUIET, "/dev/gdrdrv"},
        {QUIET, "/dev/nvidia-fs1"}};
    for (const auto &[quiet, device] : cases) {
        World world(merging(quiet));
        Puppet a(world, replica_with_devices()), b(world, replica_with_devices());
        for (Puppet *puppet : {&a, &b})
            puppet->all({std::string("hold ") + device, "malloc p 10485760",
                         Replicas::upload("p", SIZE, 3)});
        EXPECT_TRUE(eventually([&] {
            return reason(world, a) == "a device for RDMA is open, and the rule has not rdma = on";
        })) << device;
        usleep(1000000);
        EXPECT_EQ(world.entries("regions"), 0u) << device;
        EXPECT_HAS(world.logs(), std::string("(") + device + ")");
    }
}

TEST(MergeEnds, WithADeviceForRdmaAlsoWhenTheMainThreadHasEnded) {
    SIM_ONLY("whether a card's driver starts so late is not known");
    SKIP_IF(!may_have_devices(), "this user may not mount");
    World world(merging(QUIET));
    Puppet a(world, replica_with_devices());
    a.all({"hold /dev/gdrdrv", "depart", "malloc p 10485760", Replicas::upload("p", SIZE, 3)});
    EXPECT_TRUE(eventually([&] { return contains(world.logs(), "(/dev/gdrdrv)"); }))
        << world.logs();
}

TEST(MergeEnds, WhenADeviceForRdmaIsOpened) {
    SKIP_IF(!may_have_devices(), "this user may not mount");
    for (const bool allowed : {false, true}) {
        World world(merging(std::string(QUIET) + (allowed ? "rdma = on\n" : "")));
        Puppet a(world, replica_with_devices());
        a.all({"malloc p 10485760", Replicas::upload("p", SIZE, 3)});
        EXPECT_TRUE(eventually([&] { return world.entries("regions") == 2; }));
        a.all(
            {"hold /dev/infiniband/uverbs0", "malloc q 10485760", Replicas::upload("q", SIZE, 4)});
        EXPECT_EQ(eventually([&] { return world.entries("regions") == 4; }, allowed ? 8000 : 2000),
                  allowed);
        EXPECT_EQ(reason(world, a).empty(), allowed);
        EXPECT_EQ(Replicas::expect(a, "p", SIZE, 3), "same");
        EXPECT_EQ(Replicas::expect(a, "q", SIZE, 4), "same");
    }
}

// A program may confine itself when it has begun.
TEST(MergeEnds, WhenMembarrierIsRefusedFromNowOn) {
    Replicas one(1, merging(QUIET));
    one.load("p", SIZE, 3);
    EXPECT_TRUE(eventually([&] { return one.world.entries("regions") == 2; }));
    EXPECT_EQ(reason(one.world, one[0]), "");
    one[0].must("refuse " + std::to_string(SYS_membarrier));
    one.load("q", SIZE, 4);
    EXPECT_TRUE(eventually(
        [&] { return reason(one.world, one[0]) == "the kernel refuses membarrier(2)"; }));
    EXPECT_EQ(one.world.logs().find("nothing is merged: "),
              one.world.logs().rfind("nothing is merged: "));
    EXPECT_HAS(one.world.logs(), "nothing is merged: ");
    one.expect_all("q", SIZE, 4);
}

TEST(MergeEnds, WhenMembarrierIsRefusedAndWhatIsMergedCanBeWritten) {
    Replicas two(2);
    two.load("p", SIZE, 3);
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    two[0].must("refuse " + std::to_string(SYS_membarrier));
    for (const char *at : {"64", "8388672"}) { // two blocks
        EXPECT_EQ(two[0].code(std::string("write p ") + at + " 0123456789", 20000), 0);
        EXPECT_EQ(two[0].must(std::string("read p ") + at + " 5"), "0123456789");
    }
    EXPECT_EQ(two.expect(two[1], "p", SIZE, 3), "same");
    EXPECT_TRUE(eventually(
        [&] { return reason(two.world, two[0]) == "the kernel refuses membarrier(2)"; }));
}

TEST(MergeEnds, WhereItsThreadCannotBeStarted) {
    Replicas one(1, merging(QUIET));
    for (const long call : {SYS_clone, SYS_clone3})
        one[0].must("refuse " + std::to_string(call));
    one.load("p", SIZE, 3);
    EXPECT_EQ(reason(one.world, one[0]), "the thread that merges could not be started");
    one.each("sync"); // it is tried again
    one.load("q", SIZE, 4);
    one.expect_all("p", SIZE, 3);
    EXPECT_EQ(reason(one.world, one[0]), "the thread that merges could not be started");
}

// What lasts less than 2 s is no reason.
TEST(MergeEnds, WhileTheKeeperDoesNotAnswer) {
    Replicas one(1);
    one.load("p", SIZE, 3);
    ASSERT_TRUE(eventually([&] { return one.world.entries("regions") == 2; }));
    const pid_t keeper = keeper_of(one.world);
    signal_keeper(keeper, SIGSTOP);
    const int64_t stopped = now_ms();
    one.load("q", SIZE, 4);
    EXPECT_TRUE(
        eventually([&] { return reason(one.world, one[0]) == "no keeper takes or gives blocks"; }));
    EXPECT_GE(now_ms() - stopped, 2000);
    signal_keeper(keeper, SIGCONT);
    EXPECT_TRUE(eventually([&] { return reason(one.world, one[0]).empty(); }));
    EXPECT_TRUE(eventually([&] { return one.world.entries("regions") == 4; }));
    one.expect_all("q", SIZE, 4);
}

// In a user namespace of its own nobody is above the limits.
bool may_be_limited() {
    return command({"unshare", "--user", "--map-root-user", "true"}).status == 0;
}

How limited(const std::string &soft, const std::string &hard) {
    How how = called("replica");
    how.wrap = {"unshare", "--user", "--map-root-user", "prlimit", "--nofile=" + soft + ":" + hard};
    return how;
}

void load(Puppet &puppet, const std::string &name, uint64_t size, int seed) {
    puppet.must("malloc " + name + " " + std::to_string(size));
    puppet.must(Replicas::upload(name, size, seed));
}

// Descriptors of this user's that were sent and that nobody has received.
class Crowd {
  public:
    explicit Crowd(int count) {
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        for (; count > 0; count -= PART)
            send();
    }
    ~Crowd() {
        close(ends[0]);
        close(ends[1]);
    }

  private:
    enum { PART = 100 };

    void send() const {
        alignas(cmsghdr) char control[CMSG_SPACE(PART * sizeof(int))] = {};
        char byte = 0;
        iovec part = {&byte, 1};
        msghdr message = {};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        cmsghdr *header = CMSG_FIRSTHDR(&message);
        *header = {CMSG_LEN(PART * sizeof(int)), SOL_SOCKET, SCM_RIGHTS}; // of number 0
        EXPECT_EQ(sendmsg(ends[0], &message, 0), 1) << strerror(errno);
    }

    int ends[2];
};

size_t occurrences(const std::string &text, const std::string &what) {
    size_t count = 0;
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at++)
        count++;
    return count;
}

const char *const CROWDED = "too many descriptors of this user are on their way between processes; "
                            "raise the limit (ulimit -n)";
const char *const NUMBERLESS =
    "this process, or the system, has no descriptor left; raise its limit (ulimit -n, fs.file-max)";
const char *const FULL = "the keeper has as many blocks as its limit of descriptors allows; raise "
                         "the hard limit where it starts (ulimit -Hn)";

void crowd_on_the_way_to_the_keeper() {
    World world(merging(QUIET));
    Puppet one(world, limited("256", "4096"));
    load(one, "p", SIZE, 3);
    ASSERT_TRUE(eventually([&] { return world.entries("regions") == 2; }));
    {
        const Crowd crowd(400);
        load(one, "q", SIZE, 4);
        EXPECT_TRUE(eventually([&] { return reason(world, one) == CROWDED; })) << world.logs();
        EXPECT_HAS(world.tool({"doctor"}).out, "too many descriptors");
        EXPECT_EQ(world.entries("regions"), 2u);
    }
    EXPECT_TRUE(eventually([&] { return world.entries("regions") == 4; }));
    EXPECT_TRUE(eventually([&] { return reason(world, one).empty(); }));
    EXPECT_EQ(occurrences(world.logs(), "nothing is merged: "), 1u) << world.logs();
    EXPECT_EQ(Replicas::expect(one, "q", SIZE, 4), "same");
}

void crowd_on_the_way_from_the_keeper() {
    World world(merging(QUIET));
    Puppet one(world, limited("256", "256")), two(world, limited("256", "256"));
    one.must("sync");
    load(two, "small", 4096, 3);
    const uint64_t used = world.used() + SIZE;
    load(one, "p", SIZE, 3);
    ASSERT_TRUE(eventually([&] { return world.entries("regions") == 2; }));
    {
        const Crowd crowd(400);
        load(two, "p", SIZE, 3);
        EXPECT_TRUE(eventually([&] { return reason(world, two) == CROWDED; })) << world.logs();
        EXPECT_EQ(reason(world, one), "");
    }
    EXPECT_TRUE(world.used_becomes(used, 8000)) << world.used() - used;
    EXPECT_TRUE(eventually([&] { return reason(world, two).empty(); }));
    EXPECT_EQ(occurrences(world.logs(), "nothing is merged: "), 1u) << world.logs();
}

void fill_the_keeper() {
    World world(merging(QUIET));
    Puppet one(world, limited("64", "64")); // the keeper takes 32
    for (int i = 0; i < 34; i++)
        load(one, "p" + std::to_string(i), 2 * MiB, i + 1);
    EXPECT_TRUE(eventually([&] { return reason(world, one) == FULL; }, 20000))
        << world.entries("regions") << world.logs();
    EXPECT_EQ(world.entries("regions"), 32u);
    for (const char *name : {"p0", "p1", "p2", "p3"})
        one.must(std::string("free ") + name);
    EXPECT_TRUE(eventually([&] { return reason(world, one).empty(); }));
    EXPECT_EQ(occurrences(world.logs(), "nothing is merged: "), 1u) << world.logs();
}

// Who opens a token has no other memory to turn to, so it waits, also after one wait in vain.
void open_a_token_in_a_crowd() {
    World world(rule("frames", "producer", "export", "backing = vmm\n"));
    How producer = limited("256", "256"), other = producer;
    producer.as = "producer";
    other.as = "other";
    Puppet a(world, producer), b(world, other);
    a.make("p", 4194304, "0x2a");
    b.must("malloc warm 4096");
    const std::string token = a.must("get p");
    {
        const Crowd crowd(400);
        EXPECT_EQ(b.code("open q " + token, 20000), 1);
        b.send("open q " + token);
        usleep(500000);
    }
    EXPECT_EQ(b.receive(20000).code, 0);
}

// Puppets as a normal user: their memory is one copy, whoever of the keepers dies meanwhile.
void share_blocks(int puppets, int blocks, const std::string &soft, bool kill) {
    World world(merging());
    std::vector<std::unique_ptr<Puppet>> all;
    uint64_t contexts = world.used();
    for (int i = 0; i < puppets; i++) {
        const uint64_t before = world.used();
        all.push_back(std::make_unique<Puppet>(world, limited(soft, "4096")));
        all.back()->must("malloc small 4096");
        contexts += world.used() - before;
        for (int block = 0; block < blocks; block++) {
            load(*all.back(), "p" + std::to_string(block), 2 * MiB, block + 1);
            if (kill && block % 20 == 10)
                signal_keeper(block % 40 == 10 ? keeper_of(world) : stand_by_of(world), SIGKILL);
        }
    }
    EXPECT_TRUE(world.used_becomes(contexts + blocks * 2 * MiB, 8000))
        << world.used() - contexts << world.logs();
    EXPECT_EQ(world.entries("regions"), static_cast<size_t>(blocks));
    EXPECT_EQ(world.logs(), "");
}

// As many blocks as 440 MiB in one allocation are. Those that were had of others were parked once,
// which is more than the kernel passes.
void nine_replicas_of_few_descriptors() {
    share_blocks(9, 14, "64", false);
}

void many_blocks_beside_another_program() {
    const Crowd crowd(200);
    share_blocks(4, 60, "256", true);
}

// One test, because a crowd is in the way of all processes of the user.
TEST(MergeEnds, WhereDescriptorsCannotBePassedOrKeptAndSaysWhich) {
    SIM_ONLY("the limit is the kernel's");
    SKIP_IF(!may_be_limited(), "this user may not make a user namespace");
    crowd_on_the_way_to_the_keeper();
    crowd_on_the_way_from_the_keeper();
    fill_the_keeper();
    open_a_token_in_a_crowd();
    nine_replicas_of_few_descriptors();
    many_blocks_beside_another_program();
}

TEST(MergeEnds, WhileItHasNoDescriptorLeft) {
    Replicas one(1, merging(QUIET));
    one.load("p", SIZE, 3);
    ASSERT_TRUE(eventually([&] { return one.world.entries("regions") == 2; }));
    one.load("q", SIZE, 4);
    one[0].must("hoard");
    EXPECT_TRUE(eventually([&] { return reason(one.world, one[0]) == NUMBERLESS; }))
        << reason(one.world, one[0]) << one.world.logs();
    one[0].must("unhoard");
    EXPECT_TRUE(eventually([&] { return one.world.entries("regions") == 4; }));
    EXPECT_TRUE(eventually([&] { return reason(one.world, one[0]).empty(); }));
    one.expect_all("q", SIZE, 4);
}

TEST(MergeKeeper, IsReplacedAndGetsTheBlocksAgain) {
    Replicas two(2);
    two.load("p", SIZE, 3); // blocks of 8 and 2 MiB
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    const pid_t first = keeper_of(two.world);
    ASSERT_GT(first, 0);
    kill_both_keepers(two.world);
    two.expect_all("p", SIZE, 3);
    Puppet &late = two.start();
    late.all({"malloc p 10485760", two.upload("p", SIZE, 3)});
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    EXPECT_NE(keeper_of(two.world), first);
    two.kill(0); // who created them, and could give them to the next keeper
    kill_both_keepers(two.world);
    Puppet &third = two.start(), &fourth = two.start(); // they share another copy
    for (Puppet *puppet : {&third, &fourth})
        puppet->all({"malloc p 10485760", two.upload("p", SIZE, 3)});
    EXPECT_TRUE(two.use(2 * SIZE)) << two.in_use();
    for (Puppet *puppet : {&two[1], &late, &third, &fourth})
        EXPECT_EQ(two.expect(*puppet, "p", SIZE, 3), "same");
    EXPECT_EQ(two.world.findings().size(), 0u) << two.world.logs();
    EXPECT_EQ(two.left(), "");
}

// Replicas come and go meanwhile, and one that comes finds what the dead have left.
TEST(MergeKeeper, AndItsStandByAreKilledOrStoppedInTurns) {
    Replicas all(0, merging("quiet = 0\nkeep = forever\n"));
    for (int round = 0; round < 9; round++) {
        Puppet &one = all.start();
        one.must("malloc p 10485760");
        one.send(all.upload("p", SIZE, 3));
        const bool first = round == 0;
        const pid_t stands_by = first ? -1 : stand_by_of(all.world);
        if (!first)
            signal_keeper(round % 3 ? keeper_of(all.world) : stands_by,
                          round % 3 < 2 ? SIGKILL : SIGCONT);
        if (round % 3 == 2)
            signal_keeper(stands_by, SIGSTOP);
        EXPECT_EQ(one.receive().code, 0);
        EXPECT_EQ(all.expect(one, "p", SIZE, 3), "same") << round;
        EXPECT_TRUE(eventually([&] { return all.world.entries("regions") == 2; })) << round;
        EXPECT_TRUE(all.use(SIZE)) << round << ": " << all.in_use();
        if (round % 3 == 2)
            signal_keeper(stands_by, SIGCONT);
        all.kill(all.all.size() - 1);
        all.all.pop_back();
        all.costs.pop_back();
        EXPECT_TRUE(all.use(SIZE)) << round << ": nobody has it; " << all.in_use();
    }
    EXPECT_EQ(all.world.tool({"drop", "--merged"}).status, 0);
    EXPECT_TRUE(all.use(0)) << all.in_use();
    EXPECT_EQ(all.world.findings().size(), 0u) << all.world.logs();
}

// Old replicas keep what they have merged. New ones merge among themselves, in another directory.
TEST(MergeDirectory, ThatVanishesIsToldOnceByEveryOneThatHadIt) {
    Replicas two(2);
    two.load("p", SIZE, 3);
    EXPECT_TRUE(two.use(SIZE)) << two.in_use();
    std::filesystem::remove_all(two.world.environment["GPUSHARE_DIR"]);
    Puppet &late = two.start();
    late.all({"malloc p 10485760", two.upload("p", SIZE, 3)});
    EXPECT_TRUE(eventually([&] { return two.world.count("store-unavailable") == 2; }))
        << two.world.logs();
    const Result doctor = two.world.tool({"doctor"});
    EXPECT_HAS(doctor.out, "one that was removed");
    usleep(1500000);
    const auto findings = two.world.findings();
    ASSERT_EQ(findings.size(), 2u) << two.world.logs();
    EXPECT_HAS(findings[0].detail, " was removed: processes that started since share nothing ");
    for (Puppet *puppet : {&two[0], &two[1], &late})
        EXPECT_EQ(two.expect(*puppet, "p", SIZE, 3), "same");
    two[0].must("write p 0 " + hex_bytes("cd", 4));
    EXPECT_EQ(two.expect(two[1], "p", SIZE, 3), "same");
}

// Merging is off until it answers; everything else goes on, in memory of one's own.
TEST(MergeKeeper, ThatIsStoppedCostsAMomentOnce) {
    Replicas two(2);
    two.load("p", SIZE, 3);
    EXPECT_TRUE(two.use(SIZE));
    const pid_t keeper = keeper_of(two.world);
    signal_keeper(keeper, SIGSTOP);
    Puppet &late = two.start();
    late.must("malloc q 10485760");
    two[0].must("malloc q 10485760");
    for (Puppet *puppet : {&late, &two[0]}) {
        int64_t start = now_ms();
        puppet->must(two.upload("q", SIZE, 4));
        EXPECT_LT(now_ms() - start, 200 + soon(400));
        for (int i = 0; i < 20; i++)
            puppet->must("upload q 0 2097152 4 sync");
        puppet->must("write q 0 " + hex_bytes("ab", 4));
        EXPECT_EQ(puppet->must("read q 0 4"), "abababab");
        EXPECT_LT(now_ms() - start, 200 + soon(1500));
    }
    two[0].must("write p 0 " + hex_bytes("cd", 4)); // what is merged becomes its own
    EXPECT_EQ(two.expect(two[1], "p", SIZE, 3), "same");
    two[1].must("free p");
    const int64_t start = now_ms();
    EXPECT_EQ(late.quit("return"), 0);
    EXPECT_LT(now_ms() - start, soon(1500));
    signal_keeper(keeper, SIGCONT);
    two[1].all({"malloc r 8388608", two.upload("r", 8 * MiB, 9)});
    EXPECT_TRUE(eventually( // once it answers again
        [&] {
            for (const std::string &name : two.world.files("names"))
                if (name.find(".8.") != std::string::npos)
                    return true;
            return false;
        },
        soon(8000)));
}

// Merged memory has no handle.
TEST(MergeSecret, WithoutADirectoryMemoryStaysTheProgramsOwn) {
    World world(rule("weights", "puppet", "merge", "quiet = 100ms\n"));
    world.environment["GPUSHARE_DIR"] = "/dev/null/none";
    Puppet one(world), two(world);
    one.all({"malloc p 4194304", "fill p 0xa1 4096", "sync"});
    two.must("open q " + one.must("get p"));
    EXPECT_EQ(two.must("read q 0 1"), "a1");
    EXPECT_HAS(world.logs(), "nothing is merged: the published directory, or the secret");
    EXPECT_GE(world.count("store-unavailable"), 1u);
}

// The key of the directory's hashes.
TEST(MergeSecret, ThatIsDamagedIsToldOnceAndEndsWithGc) {
    Replicas two(1);
    two.each("malloc p 2097152");
    ASSERT_TRUE(eventually([&] { return two.world.entries("procs") == 1; }));
    two.kill(0);
    const std::string file = std::string(two.world.store().path) + "/secret";
    std::ofstream(file) << "no key";
    std::filesystem::permissions(file, std::filesystem::perms(0600));
    two.all.clear();
    two.costs.clear();
    two.start();
    two.start();
    two.load("p", 2 * MiB, 3);
    two.load("q", 2 * MiB, 3);
    EXPECT_TRUE(eventually([&] { return two.world.count("record-invalid") == 2; }))
        << two.world.logs(); // one a process
    EXPECT_TRUE(eventually([&] {
        return reason(two.world, two[0]) ==
               "the published directory, or the secret in it, cannot be used";
    }));
    EXPECT_EQ(two.world.entries("regions"), 0u);
    EXPECT_EQ(two.world.count("record-invalid"), 2u) << two.world.logs();
    EXPECT_EQ(two.world.tool({"gc"}).status, 0);
    EXPECT_TRUE(two.use(2 * MiB)) << two.in_use();
    EXPECT_TRUE(eventually([&] { return reason(two.world, two[0]).empty(); }));
    two.expect_all("p", 2 * MiB, 3);
    two.expect_all("q", 2 * MiB, 3);
}

// The first try fails, the next one, a second later, does not.
TEST(MergeSecret, ThatCannotBeUsedForAMomentIsNoReason) {
    Replicas two(1);
    two.each("malloc p 2097152");
    ASSERT_TRUE(eventually([&] { return two.world.entries("procs") == 1; }));
    const std::string file = std::string(two.world.store().path) + "/secret";
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(file); }));
    std::filesystem::permissions(file, std::filesystem::perms(0666));
    Puppet &late = two.start();
    late.must("malloc p 2097152");
    EXPECT_TRUE(eventually([&] { return two.world.count("record-invalid") == 1; }));
    std::filesystem::permissions(file, std::filesystem::perms(0600));
    late.must(two.upload("p", 2 * MiB, 3));
    EXPECT_TRUE(eventually([&] { return two.world.entries("regions") == 1; }));
    EXPECT_LACKS(two.world.logs(), "nothing is merged: ");
}

// It has a block that one process offered, and answers when that process waits no more.
class MergeKeeperIsLate : public testing::Test {
  protected:
    void SetUp() override {
        all.world.environment["GPUSHARE_EVENT_LOG"] = all.world.path("events");
        first = &all.start();
        second = &all.start();
        first->all({"malloc p 4194304", all.upload("p", 4 * MiB, 1)});
        ASSERT_TRUE(eventually([&] { return events().size() == 1; }));
        usleep(1500000); // it is known to this process
        const pid_t keeper = keeper_of(all.world);
        signal_keeper(keeper, SIGSTOP);
        first->all({"malloc q 2097152", all.upload("q", 2 * MiB, 2)});
        usleep(1500000); // to offer it, and to wait 200 ms
        first->stop();
        signal_keeper(keeper, SIGCONT);
        ASSERT_TRUE(eventually([&] { return all.world.entries("regions") == 2; }));
    }
    std::vector<Json> events() const { // of merging
        std::vector<Json> lines;
        std::ifstream file(all.world.path("events"));
        for (std::string line; std::getline(file, line);)
            if (contains(line, "merged\""))
                lines.push_back(Json::parse(line));
        return lines;
    }
    Replicas all{0};
    Puppet *first = nullptr, *second = nullptr;
};

TEST_F(MergeKeeperIsLate, WhatOthersGotIsNotWritten) {
    second->all({"malloc q 2097152", all.upload("q", 2 * MiB, 2)});
    ASSERT_TRUE(eventually([&] { return events().size() == 2; }));
    first->send("write q 0 " + hex_bytes("cd", 4));
    first->signal(SIGCONT);
    EXPECT_EQ(first->receive().code, 0);
    EXPECT_EQ(all.expect(*second, "q", 2 * MiB, 2), "same");
    EXPECT_EQ(first->must("read q 0 4"), "cdcdcdcd");
}

TEST_F(MergeKeeperIsLate, ABlockIsNotSavedByItself) {
    first->signal(SIGCONT);
    ASSERT_TRUE(eventually([&] { return events().size() == 2; }));
    EXPECT_EQ(events()[1].members.count("saved"), 0u);
}

// They load, write, read, start and end, one or the other of them and the keeper killed at any
// moment.
TEST(MergeTrouble, AnybodyMayDieAtAnyMoment) {
    std::mt19937 dice(20261122);
    const auto roll = [&](unsigned sides) { return static_cast<unsigned>(dice() % sides); };
    Replicas all(0, merging("quiet = 0\n"));
    std::vector<int> seed; // of each one's bytes; 0: not loaded yet
    for (int round = 0; round < 60; round++) {
        if (all.all.size() < 4) {
            all.start().must("malloc p 10485760");
            seed.push_back(0);
        }
        const size_t i = roll(static_cast<unsigned>(all.all.size()));
        Puppet &one = all[i];
        const unsigned kind = roll(10);
        if (kind < 5) {
            seed[i] = roll(4) ? 1 : 2 + static_cast<int>(roll(3));
            one.must(all.upload("p", SIZE, seed[i]));
        } else if (kind < 7 && seed[i]) {
            EXPECT_EQ(all.expect(one, "p", SIZE, seed[i]), "same") << round;
        } else if (kind == 7 && seed[i]) {
            one.must("write p 1234567 00");
            one.must("upload p 1234560 16 " + std::to_string(seed[i]) + " sync");
        } else if (kind == 8) {
            one.send(all.upload("p", SIZE, 1));
            usleep(roll(60000));
            one.kill();
            all.all.erase(all.all.begin() + static_cast<long>(i));
            seed.erase(seed.begin() + static_cast<long>(i));
        } else if (kind == 9) {
            const pid_t keeper = keeper_of(all.world);
            if (keeper > 0)
                ::kill(keeper, SIGKILL);
        }
        for (size_t j = 0; j < all.all.size(); j++)
            if (seed[j] && roll(4) == 0) {
                EXPECT_EQ(all.expect(all[j], "p", SIZE, seed[j]), "same") << round;
            }
    }
    for (size_t j = 0; j < all.all.size(); j++) {
        if (seed[j]) {
            EXPECT_EQ(all.expect(all[j], "p", SIZE, seed[j]), "same");
        }
        all[j].must("free p");
    }
    EXPECT_EQ(all.world.findings().size(), 0u) << all.world.logs();
    EXPECT_EQ(all.left(), "");
    EXPECT_TRUE(on_gpu() || all.world.used() == 0) << all.world.used();
}

} // namespace
