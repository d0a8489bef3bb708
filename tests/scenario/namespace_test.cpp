// namespace_test.cpp - processes in containers: other pids, another /dev/shm, another directory.
//
// The namespaces are real (unshare). What the driver does in them is in the simulator as it was
// recorded on an H200: memory handles cross them, unless both processes have one pid; events need
// one /dev/shm; a foreign /proc stops cuInit.
#include "scenario/audit.hpp"

namespace {

const std::vector<std::string> container = {"unshare", "--pid", "--fork", "--kill-child",
                                            "--mount-proc"};
// One whose user may not choose a pid.
const std::vector<std::string> poor = {"unshare",
                                       "--pid",
                                       "--fork",
                                       "--kill-child",
                                       "--mount-proc",
                                       "setpriv",
                                       "--bounding-set=-all",
                                       "--inh-caps=-all"};

bool may(std::vector<std::string> wrap) {
    wrap.push_back("true");
    return command(wrap).status == 0;
}

#define NEEDS(wrap)                                                                                \
    if (!may(wrap))                                                                                \
    GTEST_SKIP() << "this user may not make such namespaces"

// In a container as its process 1, or behind a shell as its process 2.
How contained(How how, int pid) {
    how.wrap = container;
    if (pid == 2)
        for (const char *word : {"sh", "-c", "\"$0\" \"$@\"; exit $?"})
            how.wrap.push_back(word);
    return how;
}

// The last process that this one started, by the pids out here.
pid_t innermost(pid_t pid) {
    for (;;) {
        const std::string id = std::to_string(pid);
        const std::string child = read_file("/proc/" + id + "/task/" + id + "/children");
        if (child.empty())
            return pid;
        pid = std::stoi(child);
    }
}

uint32_t pid_namespace_of(const Puppet &puppet) {
    struct stat status = {};
    stat(("/proc/" + std::to_string(innermost(puppet.pid)) + "/ns/pid").c_str(), &status);
    return static_cast<uint32_t>(status.st_ino);
}

struct Audited : World {
    Audited() {
        environment["GPUSHARE_MODE"] = "audit";
        environment["GPUSHARE_LOG_LEVEL"] = "info";
        used(); // a simulated driver that was started in a container would end with it
    }
    std::vector<Event> events() const {
        return events_of(logs());
    }
    Event only() const { // the one finding there is
        const std::vector<Event> all = events();
        if (all.size() != 1)
            throw std::runtime_error("not one finding: " + logs());
        return all[0];
    }
};

std::string exports(Puppet &a) {
    a.all({"malloc p 4194304", "fill p 0x5c 4096", "sync"});
    return a.must("get p");
}

TEST(Namespaces, TheOneThatHasTheMemoryOpenIsNamedAmongEqualPids) {
    NEEDS(container);
    Audited world;
    Puppet a(world, contained(producer(), 1)), b(world, contained(consumer(), 2)),
        c(world, contained(consumer(), 2));
    ASSERT_EQ(a.must("pid"), "1");
    ASSERT_EQ(b.must("pid") + c.must("pid"), "22");
    const std::string handle = exports(a);
    b.must("open q " + handle);
    c.must("malloc own 4096");
    EXPECT_EQ(a.code("free p"), 0);
    EXPECT_EQ(b.must("read q 0 1"), "5c");
    const Event found = world.only();
    EXPECT_EQ(found.id, "free-while-open");
    EXPECT_EQ(found.pid, 1u);
    EXPECT_EQ(found.json["pid_ns"].number, pid_namespace_of(a));
    ASSERT_EQ(found.json["others"].size(), 1u);
    EXPECT_EQ(found.json["others"][0]["pid"].number, 2);
    EXPECT_EQ(found.json["others"][0]["pid_ns"].number, pid_namespace_of(b));
    EXPECT_NE(pid_namespace_of(b), pid_namespace_of(c));
    b.must("close q");
}

TEST(Namespaces, AreToldApartByTheTool) {
    NEEDS(container);
    Audited world;
    Puppet a(world, contained(producer(), 2)), b(world, contained(consumer(), 1)),
        c(world, contained(producer(), 2));
    b.must("open q " + exports(a));
    exports(c);
    const std::string theirs = std::to_string(pid_namespace_of(a));
    const Json all = world.ls();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0]["owner"]["pid"].number, 2);
    EXPECT_EQ(all[1]["owner"]["pid"].number, 2);
    const Result both = world.tool({"show", "2"}), one = world.tool({"show", "2@" + theirs});
    EXPECT_EQ(both.status, 0) << both.err;
    EXPECT_EQ(one.status, 0) << one.err;
    const std::string other = std::to_string(pid_namespace_of(c));
    EXPECT_TRUE(contains(both.out, theirs) && contains(both.out, other)) << both.out;
    EXPECT_TRUE(contains(one.out, theirs) && !contains(one.out, other)) << one.out;
    EXPECT_NE(world.tool({"show", "2@1"}).status, 0);
    b.must("close q");
    a.must("free p");
    c.must("free p");
    EXPECT_EQ(world.events().size(), 0u) << world.logs();
}

// The driver knows its own handles by the pid alone, and so refuses that of another 1.
TEST(Namespaces, OneEqualPidMakesTheDriverRefuseAHandle) {
    NEEDS(container);
    Audited world;
    Puppet a(world, contained(producer(), 1)), b(world, contained(consumer(), 1));
    const std::string handle = exports(a);
    EXPECT_EQ(b.code("open q " + handle), 201);
    const Event found = world.only();
    EXPECT_EQ(found.id, "open-other-namespace");
    EXPECT_EQ(found.api, "cudaIpcOpenMemHandle");
    EXPECT_EQ(found.json["command"].text, "consumer");
    EXPECT_HAS(found.detail, "pid");
    ASSERT_EQ(found.json["others"].size(), 1u);
    EXPECT_EQ(found.json["others"][0]["pid"].number, 1);
    EXPECT_EQ(found.json["others"][0]["pid_ns"].number, pid_namespace_of(a));
    a.must("free p");
}

// The programs of two containers, both process 1.
struct SamePids : World {
    SamePids() {
        environment["GPUSHARE_LOG_LEVEL"] = "info";
        used();
    }
};

TEST(Namespaces, MemoryOfAnEqualPidOpensAndClosesAsAlways) {
    NEEDS(container);
    SamePids world;
    Puppet a(world, contained(producer(), 1)), b(world, contained(consumer(), 1));
    ASSERT_EQ(a.must("pid") + b.must("pid"), "11");
    a.must("malloc context 4096");
    b.must("malloc context 4096");
    const uint64_t before = world.used();
    const std::string handle = exports(a);
    b.must("open q " + handle);
    EXPECT_EQ(b.must("read q 0 4"), "5c5c5c5c");
    b.must("open r " + handle);
    EXPECT_EQ(b.must("read r 0 1"), "5c");
    b.all({"fill q 0x7e 16", "sync"});
    EXPECT_EQ(a.must("read p 0 1"), "7e");
    EXPECT_EQ(a.code("free p"), 0); // deferred: it is open
    EXPECT_EQ(b.code("close q"), 0);
    EXPECT_EQ(b.must("read r 0 1"), "7e");
    EXPECT_EQ(b.code("close r"), 0);
    EXPECT_EQ(b.code("close r"), 1);
    EXPECT_TRUE(world.used_becomes(before));
    EXPECT_EQ(world.count("open-other-namespace"), 0u) << world.logs();
    EXPECT_EQ(world.count("free-while-open"), 1u) << world.logs();
}

TEST(Namespaces, ARuleImportsFromAnEqualPid) {
    NEEDS(container);
    SamePids world;
    world.config(FRAMES);
    Puppet a(world, contained(producer(), 1)), b(world, contained(consumer(), 1));
    a.all({"malloc p " + std::to_string(4 * MiB), "fill p 0x33 4096", "sync"});
    b.must("malloc q " + std::to_string(4 * MiB));
    EXPECT_EQ(b.must("read q 0 1"), "33");
    EXPECT_EQ(b.code("free q"), 0);
    EXPECT_EQ(a.code("free p"), 0);
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

TEST(Namespaces, AnOwnHandleIsNeverOpenedByAnotherPid) {
    NEEDS(container);
    SamePids world;
    Puppet a(world, contained(producer(), 1)), b(world, contained(consumer(), 1));
    b.must("malloc own 4096");
    EXPECT_EQ(a.code("open q " + exports(a)), 201);
    EXPECT_EQ(world.count("open-own-handle"), 1u) << world.logs();
}

TEST(Namespaces, NorAHandleThatTheDirectoryDoesNotKnow) {
    NEEDS(container);
    SamePids world;
    How unknown = contained(producer(), 1);
    unknown.shim = false;
    Puppet a(world, unknown), b(world, contained(consumer(), 1));
    EXPECT_EQ(b.code("open q " + exports(a)), 201);
}

TEST(Namespaces, NorAnEqualPidsThatHasEnded) {
    NEEDS(container);
    SamePids world;
    Puppet a(world, contained(producer(), 1)), b(world, contained(consumer(), 1));
    const std::string handle = exports(a);
    b.must("malloc own 4096");
    const std::string inside = "/proc/" + std::to_string(innermost(a.pid));
    a.kill(); // of what is around it, which takes it along a moment later
    ASSERT_TRUE(eventually([&] { return access(inside.c_str(), F_OK) != 0; }));
    EXPECT_EQ(b.code("open q " + handle), 201);
    EXPECT_EQ(world.count("open-dead-owner"), 1u) << world.logs();
}

// By `gpushare run`, in a container as its process 1.
How by_run(How how, const std::vector<std::string> &wrap = container) {
    how.wrap = wrap;
    how.wrap.insert(how.wrap.end(), {build_directory() + "/gpushare", "run", "--"});
    how.environment["GPUSHARE_LIBRARY"] = build_directory() + "/libgpushare.so";
    how.shim = false;
    return how;
}

TEST(Namespaces, RunGivesProgramsDifferentPids) {
    NEEDS(container);
    Audited world;
    Puppet a(world, by_run(producer())), b(world, by_run(consumer()));
    const std::string pids[] = {a.must("pid"), b.must("pid")};
    EXPECT_NE(pids[0], pids[1]);
    EXPECT_NE(pids[0], "1");
    EXPECT_NE(pids[1], "1");
    const std::string handle = exports(a);
    a.must("evcreate e 6");
    b.must("open q " + handle);
    EXPECT_EQ(b.must("read q 0 1"), "5c");
    b.all({"evopen f " + a.must("evget e"), "evdestroy f", "close q"});
    a.all({"evdestroy e", "free p"});
    EXPECT_EQ(world.events().size(), 0u) << world.logs();
    EXPECT_EQ(a.quit("exit 3"), 3);
    b.signal(SIGKILL);
}

TEST(Namespaces, APidOfAnotherIsLedBackToTheOneHere) {
    NEEDS(container);
    SamePids world;
    world.config(FRAMES);
    Puppet a(world, contained(producer(), 2));
    a.make("p", 4194304, "0x24");
    const std::string pid = a.must("pid");
    const Result show = world.tool({"show", "producer"});
    const size_t at = show.out.find("  pid here   ");
    ASSERT_NE(at, std::string::npos) << show.out << show.err;
    const std::string here = std::to_string(std::stoul(show.out.substr(at + 13)));
    EXPECT_HAS(read_file("/proc/" + here + "/status"), "\t" + pid + "\n");
    EXPECT_HAS(world.tool({"show", here}).out, "  pid here   " + here + "\n");
}

TEST(Namespaces, RunPassesSignalsOnToTheProgram) {
    NEEDS(container);
    World world;
    for (const char *name : {"TERM", "HUP", "INT", "QUIT", "USR1", "USR2"}) {
        const Result result = command(
            {"unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "env",
             "GPUSHARE_LIBRARY=" + build_directory() + "/libgpushare.so",
             build_directory() + "/gpushare", "run", "--", "sh", "-c",
             std::string("trap 'exit 9' ") + name + "; kill -" + name + " 1; sleep 2 & wait"});
        EXPECT_EQ(result.status, 9) << name << result.err;
    }
}

TEST(Namespaces, RunWithoutTheRightToChooseWarnsOfAnEqualPid) {
    NEEDS(poor);
    Audited world;
    std::string warned = "\"$@\" 2>" + world.shared.path + "/said; exit $?";
    auto warning = poor;
    warning.insert(warning.end(), {"sh", "-c", warned, "sh"});
    Puppet first(world, by_run(producer(), warning));
    const std::string pid = first.must("pid");
    EXPECT_LACKS(read_file(world.shared.path + "/said"), "CHECKPOINT_RESTORE");
    exports(first);
    Puppet second(world, by_run(consumer(), warning));
    EXPECT_EQ(second.must("pid"), pid);
    const std::string said = read_file(world.shared.path + "/said");
    EXPECT_HAS(said, "is process " + pid + ", too", "--cap-add CHECKPOINT_RESTORE");
    EXPECT_EQ(second.quit("exit 4"), 4);
    EXPECT_EQ(first.quit("exit 3"), 3);
}

TEST(Namespaces, RunOutsideOfContainersBecomesTheProgram) {
    Audited world;
    How how = by_run(producer());
    how.wrap.erase(how.wrap.begin(), how.wrap.begin() + static_cast<long>(container.size()));
    Puppet a(world, how);
    EXPECT_EQ(a.must("pid"), pid(a));
}

TEST(Namespaces, AnEventOfAnEqualPidIsReported) {
    NEEDS(container);
    Audited world;
    Puppet a(world, contained(producer(), 1)), b(world, contained(consumer(), 1));
    a.must("evcreate e 6");
    const std::string event = a.must("evget e");
    b.must("malloc own 4096");
    EXPECT_EQ(b.code("evopen f " + event), 201);
    const Event found = world.only();
    EXPECT_EQ(found.id, "event-other-container");
    EXPECT_HAS(found.detail, "gpushare run");
}

TEST(Namespaces, AnEventDoesNotGetIntoAnotherShmButMemoryDoes) {
    const std::vector<std::string> shm = {
        "unshare", "--mount", "sh", "-c",
        "mount -t tmpfs -o mode=1777 none /dev/shm && exec \"$0\" \"$@\""};
    NEEDS(shm);
    Audited world;
    world.environment["GPUSHARE_DIR"] = world.path("pub"); // seen by both
    How inside = consumer();
    inside.wrap = shm;
    Puppet a(world, producer()), b(world, inside);
    const std::string handle = exports(a);
    a.must("evcreate e 6");
    const std::string event = a.must("evget e");
    b.must("open q " + handle);
    EXPECT_EQ(b.must("read q 0 1"), "5c");
    b.must("close q");
    EXPECT_EQ(world.events().size(), 0u) << world.logs();
    EXPECT_EQ(b.code("evopen f " + event), 205);
    const Event found = world.only();
    EXPECT_EQ(found.id, "event-other-container");
    EXPECT_EQ(found.api, "cudaIpcOpenEventHandle");
    EXPECT_HAS(found.detail, "/dev/shm");
    a.all({"evdestroy e", "free p"});
}

TEST(Namespaces, NorDoesItFromAContainerWithItsOwnShm) {
    How inside = contained(consumer(), 2);
    for (const char *word :
         {"sh", "-c", "mount -t tmpfs -o mode=1777 none /dev/shm && \"$0\" \"$@\""})
        inside.wrap.push_back(word);
    NEEDS(inside.wrap);
    Audited world;
    const std::string root = "/var/tmp/gpushare-test-" + std::to_string(getpid());
    world.environment["GPUSHARE_DIR"] = root; // seen by both
    Puppet a(world, contained(producer(), 1)), b(world, inside);
    a.must("evcreate e 6");
    const std::string event = a.must("evget e");
    b.must("malloc own 4096");
    EXPECT_EQ(b.code("evopen f " + event), 205);
    std::filesystem::remove_all(root);
    const Event found = world.only();
    EXPECT_EQ(found.id, "event-other-container");
    EXPECT_HAS(found.detail, "has another /dev/shm");
}

// The driver opens it all the same.
TEST(Namespaces, AnEventWhoseCreatorHasEndedIsNotOfAnother) {
    Audited world;
    Puppet a(world, producer()), b(world, consumer());
    a.must("evcreate e 6");
    const std::string event = a.must("evget e");
    b.must("malloc own 4096");
    EXPECT_EQ(a.quit("exit 0"), 0);
    EXPECT_EQ(b.code("evopen f " + event), 0);
    EXPECT_EQ(world.only().id, "leak-event") << "of a: " << world.logs();
}

// Each in a directory of its own, they cannot know of each other; but that can be said.
TEST(Namespaces, OfTheDirectoryKeepProcessesFromSeeingEachOther) {
    Audited world;
    How elsewhere = consumer();
    elsewhere.environment["GPUSHARE_DIR"] = world.path("elsewhere");
    Puppet a(world, producer()), b(world, elsewhere);
    const std::string handle = exports(a);
    b.all({"open q " + handle, "close q"});
    EXPECT_EQ(world.events().size(), 0u) << world.logs();
    a.must("free p");
    EXPECT_EQ(b.code("open q " + handle), 1);
    const Event found = world.only();
    EXPECT_EQ(found.id, "open-unknown");
    EXPECT_EQ(found.json["command"].text, "consumer");
    EXPECT_HAS(found.detail, world.path("elsewhere"));
}

TEST(Namespaces, AForeignProcStopsTheDriverAndNothingOfOurs) {
    const std::vector<std::string> foreign = {"unshare", "--pid", "--fork", "--kill-child"};
    NEEDS(foreign);
    Audited world;
    for (bool shim : {false, true}) {
        How how = consumer();
        how.wrap = foreign;
        how.shim = shim;
        Puppet b(world, how);
        EXPECT_EQ(b.code("malloc p 4096"), 304);
        EXPECT_EQ(b.quit("exit 3"), 3);
        EXPECT_EQ(b.errors(), "");
    }
    EXPECT_EQ(world.events().size(), 0u) << world.logs();
}

} // namespace
