/* lease_test.cpp - this process's file, and whether others live. */
#include "skip.hpp"
#include "store_support.h"

extern "C" {
#include "util/descriptors.h"
}

#include <malloc.h>

#if defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SPACE_IS_HUGE 1
#else
#define ADDRESS_SPACE_IS_HUGE 0
#endif

namespace {

namespace fs = std::filesystem;

TEST(OwnerSelf, TellsWhoWeAre) {
    gps_owner self = this_process();
    struct stat ns;
    ASSERT_EQ(0, stat("/proc/self/ns/pid", &ns));
    EXPECT_EQ(ns.st_ino, self.pid_ns);
    EXPECT_EQ(static_cast<uint32_t>(getpid()), self.pid);
    EXPECT_EQ(geteuid(), self.uid);
    EXPECT_EQ(fs::read_symlink("/proc/self/exe").filename().string().substr(0, 31), self.command);
    EXPECT_NE(0u, self.start);
}

TEST(OwnerSelf, ParsesTheStartTimeBehindAnyCommand) {
    gps_owner before, after;
    gps_owner_self(&before);
    prctl(PR_SET_NAME, ") S 1 (2 3) 4 ");
    gps_owner_self(&after);
    prctl(PR_SET_NAME, "lease_test");
    EXPECT_EQ(before.start, after.start);
}

TEST(OwnerSelf, DrawsANewNonceEachTime) {
    std::set<uint64_t> seen;
    for (int i = 0; i < 100; i++) {
        gps_owner self = this_process();
        EXPECT_NE(0u, self.nonce);
        seen.insert(self.nonce);
    }
    EXPECT_EQ(100u, seen.size());
}

class OwnerCommandTest : public StoreTest {
  protected:
    /* What a program of this file name says that it is called. */
    std::string command_of(const std::string &file, bool unlinked = false) {
        const std::string path = base + "/" + file;
        fs::copy_file("/proc/self/exe", path);
        Child child([&](Child &self) {
            if (unlinked)
                setenv("GPS_TEST_UNLINK", path.c_str(), 1);
            setenv("GPS_TEST_COMMAND_FD", std::to_string(dup(self.output())).c_str(), 1);
            execl(path.c_str(), path.c_str(), nullptr);
            return 1;
        });
        gps_owner owner = {};
        EXPECT_TRUE(child.receive(owner));
        child.reap();
        return owner.command;
    }
};

TEST_F(OwnerCommandTest, IsCutAndCleaned) {
    EXPECT_EQ(std::string(31, 'x'), command_of(std::string(200, 'x')));
    EXPECT_EQ("a?b?[2J\u00e9??", command_of("a\nb\x1b[2J\u00e9\xc3\u202e"));
    EXPECT_EQ("\u6a21\u578b", command_of("\u6a21\u578b"));
    EXPECT_EQ(std::string(30, 'x'), command_of(std::string(30, 'x') + "\u6a21")) << "no half one";
}

TEST_F(OwnerCommandTest, SurvivesTheRemovalOfTheExecutable) {
    EXPECT_EQ("gone", command_of("gone", true));
}

/* Runs before main: the other half of command_of, in the copied program. */
__attribute__((constructor)) void tell_command() {
    const char *fd = getenv("GPS_TEST_COMMAND_FD");
    const char *path = getenv("GPS_TEST_UNLINK");
    gps_owner owner;
    if (fd == nullptr)
        return;
    if (path != nullptr)
        unlink(path);
    gps_owner_self(&owner);
    _exit(write(atoi(fd), &owner, sizeof owner) != sizeof owner);
}

class LeaseTest : public LeasedTest {
  protected:
    std::string file() const {
        return procs() + "/" + owner_text(self);
    }
    gps_slot slot_on_disk(unsigned index) const {
        gps_slot found = {};
        int fd = open(file().c_str(), O_RDONLY | O_CLOEXEC);
        EXPECT_EQ(static_cast<ssize_t>(sizeof found),
                  pread(fd, &found, sizeof found, static_cast<off_t>(256 + 64 * index)));
        close(fd);
        return found;
    }
    bool alive(const gps_owner &who) const {
        return gps_lease_probe(&store, &who) == GPS_ALIVE;
    }

    gps_slot slot = make_slot(gps_id{{1, 2, 3}});
};

TEST_F(LeaseTest, MakesOnePrivateFileWithAValidHeader) {
    gps_proc_header header = {};
    struct stat st;
    EXPECT_EQ(std::set<std::string>{owner_text(self)}, entries(procs()));
    ASSERT_EQ(0, stat(file().c_str(), &st));
    EXPECT_EQ(0600u, st.st_mode & 07777);
    int fd = open(file().c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(256, read(fd, &header, sizeof header));
    close(fd);
    EXPECT_STREQ(nullptr, gps_proc_check(&header, sizeof header));
    EXPECT_EQ(0, memcmp(&self, &header.owner, sizeof self));
    EXPECT_GT(header.created, UINT64_C(1600000000000000000));
}

TEST_F(LeaseTest, NeedsNoDescriptor) {
    EXPECT_EQ(-1, lease.lock_fd);
    ASSERT_EQ(0, gps_lease_write(&lease, 0, &slot));
    /* One that closes all it has not opened, as daemons do. */
    Child child([&](Child &peer) {
        gps_owner me = this_process();
        gps_lease mine;
        if (gps_lease_take(&store, &me, NULL, &mine) != 0)
            return 90;
        int out = peer.output();
        for (int fd = 3; fd < 4096; fd++)
            if (fd != out)
                close(fd);
        if (!alive(me))
            return 1;
        return gps_lease_write(&mine, 3, &slot) == 0 && alive(me) ? 0 : 2;
    });
    EXPECT_EQ(0, child.reap());
}

TEST_F(LeaseTest, SlotsLandWhereTheFormatSays) {
    for (unsigned index : {0u, 1u, 63u, 64u, 500u}) {
        ASSERT_EQ(0, gps_lease_write(&lease, index, &slot));
        gps_slot found = slot_on_disk(index);
        EXPECT_EQ(0, memcmp(&slot, &found, sizeof slot)) << index;
    }
    EXPECT_EQ(256u + 501 * 64, fs::file_size(file()));
    EXPECT_EQ(-EINVAL, gps_lease_write(&lease, GPS_SLOTS_MAX, &slot));
    EXPECT_EQ(-EINVAL, gps_lease_write(&lease, UINT32_MAX, &slot));
}

// Growing the table waits for all processors: 5 to 20 ms in a threaded process.
TEST(HighDescriptor, StaysWithinTheTableThatTheProcessHas) {
    const auto table = [] {
        std::ifstream status("/proc/self/status");
        for (std::string word; status >> word;)
            if (word == "FDSize:" && status >> word)
                return std::stoi(word);
        return 0;
    };
    const int before = table();
    std::vector<int> moved;
    do
        moved.push_back(gps_descriptor_move_high(open("/dev/null", O_RDONLY | O_CLOEXEC)));
    while (moved.back() > 64 * 3 / 4 - 8);
    EXPECT_GE(moved.front(), 64 * 3 / 4);
    EXPECT_LT(moved.front(), 64) << "no kernel's table is smaller";
    EXPECT_EQ(before, table());
    for (const int fd : moved)
        close(fd);
    std::vector<int> all;
    for (int fd = 0; fd >= 0 && fd < before - 1;)
        all.push_back(fd = open("/dev/null", O_RDONLY | O_CLOEXEC));
    const int last = open("/dev/null", O_RDONLY | O_CLOEXEC); // may be the one that grows it
    close(last);
    const int full = table();
    const int low = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (full == before) {
        EXPECT_EQ(low, gps_descriptor_move_high(low)) << "where there is no room";
    }
    EXPECT_EQ(full, table());
    close(low);
    for (const int fd : all)
        close(fd);
}

TEST_F(LeaseTest, KeepsItsDescriptorHighAndCloseOnExec) {
    ASSERT_EQ(0, gps_lease_write(&lease, 0, &slot));
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(next);
    EXPECT_GT(lease.write_fd, next + 16) << "the program expects low ones";
    EXPECT_EQ(FD_CLOEXEC, fcntl(lease.write_fd, F_GETFD) & FD_CLOEXEC);
}

TEST_F(LeaseTest, OpensAgainAfterTheProgramClosedItsDescriptor) {
    ASSERT_EQ(0, gps_lease_write(&lease, 0, &slot));
    close(lease.write_fd);
    ASSERT_EQ(0, gps_lease_write(&lease, 1, &slot));
    EXPECT_EQ(GPS_SLOT_OPEN, slot_on_disk(1).state);
    EXPECT_TRUE(alive(self));
}

TEST_F(LeaseTest, DoesNotWriteToOrCloseAFileThatTookItsNumber) {
    const std::string victim = base + "/victim";
    int fd = open(victim.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    int number = lease.write_fd;
    ASSERT_GE(number, 0);
    ASSERT_EQ(number, dup3(fd, number, O_CLOEXEC));
    ASSERT_EQ(0, gps_lease_write(&lease, 0, &slot));
    EXPECT_EQ(0u, fs::file_size(victim));
    EXPECT_EQ(GPS_SLOT_OPEN, slot_on_disk(0).state);
    gps_lease copy = lease; /* as a forked child forgets */
    copy.write_fd = number;
    gps_lease_forget(&copy);
    EXPECT_NE(-1, fcntl(number, F_GETFD)) << "closed a descriptor that is not ours";
    close(number);
    close(fd);
}

TEST_F(LeaseTest, SaysWhenItsFileWasRemovedOrReplaced) {
    close(lease.write_fd);
    fs::rename(file(), base + "/moved");
    EXPECT_EQ(-ENOENT, gps_lease_write(&lease, 0, &slot));
    fs::copy_file(base + "/moved", file());
    EXPECT_EQ(-ENOENT, gps_lease_write(&lease, 0, &slot));
    fs::remove(file());
    fs::create_symlink(base + "/moved", file());
    EXPECT_EQ(-ELOOP, gps_lease_write(&lease, 0, &slot));
    fs::rename(base + "/moved", file());
    EXPECT_EQ(0, gps_lease_write(&lease, 0, &slot));
}

/* --- lives and deaths --- */

TEST_F(LeaseTest, AForkedChildNeitherHoldsItNorEndsIt) {
    gps_owner other;
    pid_t grandchild = 0;
    Child child([&](Child &peer) {
        gps_owner me = this_process();
        gps_lease mine;
        int up[2];
        if (gps_lease_take(&store, &me, NULL, &mine) != 0 || pipe(up) != 0)
            return 90;
        /* A bare clone: no atfork handler runs. */
        pid_t pid = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0));
        if (pid == 0) {
            gps_lease_forget(&mine);
            if (write(up[1], "x", 1) != 1)
                _exit(1);
            sleep(100);
            _exit(0);
        }
        char byte;
        if (read(up[0], &byte, 1) != 1)
            return 91;
        peer.send(me);
        peer.send(pid);
        peer.await();
        return 0;
    });
    ASSERT_TRUE(child.receive(other));
    ASSERT_TRUE(child.receive(grandchild));
    EXPECT_TRUE(alive(other)) << "the child's forgetting ended it";
    child.kill_and_reap();
    EXPECT_FALSE(alive(other)) << "the child kept it";
    int fd = open((procs() + "/" + owner_text(other)).c_str(), O_RDONLY | O_CLOEXEC);
    /* Its mappings may outlive it by a moment: who reads its /proc/PID/environ holds them. */
    for (int i = 0; i < 200 && gps_file_locked(fd) != 0; i++)
        usleep(10000);
    EXPECT_EQ(0, gps_file_locked(fd)) << "the child kept the lock itself";
    close(fd);
    kill(grandchild, SIGKILL);
}

/* Locks a file of its own through a descriptor, which a child of it keeps when it dies. */
class KeptDescriptor {
  public:
    explicit KeptDescriptor(const gps_store *store)
        : child([=](Child &self) {
              gps_proc_header header = {};
              char path[GPS_FILE_PATH], name[GPS_PROC_NAME];
              gps_owner_self(&header.owner);
              gps_proc_seal(&header);
              gps_owner_format(&header.owner, name);
              gps_file_path(store, "procs", name, path);
              int fd = gps_file_create(AT_FDCWD, path);
              if (gps_file_lock(fd, 0, 0) != 0 || write(fd, &header, 256) != 256)
                  return 90;
              pid_t pid =
                  static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0));
              if (pid == 0) {
                  sleep(100);
                  _exit(0);
              }
              self.send(header.owner);
              self.send(pid);
              self.await();
              return 0;
          }) {
        EXPECT_TRUE(child.receive(owner));
        EXPECT_TRUE(child.receive(keeper));
    }
    ~KeptDescriptor() {
        kill(keeper, SIGKILL);
    }

    Child child;
    gps_owner owner = {};
    pid_t keeper = 0;
};

TEST_F(LeaseTest, ALockThatAChildKeptIsNotBelieved) {
    KeptDescriptor kept(&store);
    EXPECT_TRUE(alive(kept.owner));
    kept.child.kill_and_reap();
    int fd = open((procs() + "/" + owner_text(kept.owner)).c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(1, gps_file_locked(fd)) << "the test itself is wrong";
    close(fd);
    EXPECT_FALSE(alive(kept.owner));
}

TEST_F(LeaseTest, ALockThatAChildOfAZombieKeptIsNotBelieved) {
    KeptDescriptor kept(&store);
    siginfo_t info;
    kept.child.signal(SIGKILL);
    waitid(P_PID, static_cast<id_t>(kept.child.pid), &info, WEXITED | WNOWAIT);
    EXPECT_FALSE(alive(kept.owner));
}

TEST_F(LeaseTest, ALockOfAReusedPidIsNotBelieved) {
    gps_owner earlier = self;
    gps_lease mine;
    earlier.start--; /* an image of our pid that started before us */
    earlier.nonce++;
    ASSERT_EQ(0, gps_lease_take(&store, &earlier, NULL, &mine));
    EXPECT_FALSE(alive(earlier));
    gps_lease_drop(&mine);
}

TEST_F(LeaseTest, ALockFromAnotherPidNamespaceIsBelieved) {
    gps_owner far = self;
    gps_lease mine;
    far.pid_ns++; /* its pid and start time mean nothing here */
    far.pid = INT32_MAX;
    far.nonce++;
    ASSERT_EQ(0, gps_lease_take(&store, &far, NULL, &mine));
    EXPECT_TRUE(alive(far));
    gps_lease_drop(&mine);
    EXPECT_FALSE(alive(far));
}

TEST_F(LeaseTest, IsHeldByADescriptorWhereItCannotBeMapped) {
    SKIP_IF(ADDRESS_SPACE_IS_HUGE, "the sanitizer needs its address space");
    gps_owner other;
    Child child([&](Child &peer) {
        struct rlimit none = {1, 1};
        gps_owner me = this_process();
        gps_lease mine;
        setrlimit(RLIMIT_AS, &none);
        if (gps_lease_take(&store, &me, NULL, &mine) != 0)
            return 90;
        if (mine.hold != MAP_FAILED || mine.lock_fd < 0)
            return 91;
        if (gps_lease_write(&mine, 0, &slot) != 0)
            return 92;
        peer.send(me);
        peer.await();
        gps_lease_drop(&mine);
        peer.send('d');
        peer.await();
        return 0;
    });
    ASSERT_TRUE(child.receive(other)) << child.reap();
    EXPECT_TRUE(alive(other));
    child.go();
    char done;
    ASSERT_TRUE(child.receive(done));
    EXPECT_FALSE(alive(other));
    child.go();
    EXPECT_EQ(0, child.reap());
}

TEST_F(LeaseTest, WhatIsNotALockedFileIsDead) {
    gps_owner other = dead_owner(5);
    const std::string path = procs() + "/" + owner_text(other);
    alarm(10);
    mkfifo(path.c_str(), 0600);
    EXPECT_FALSE(alive(other));
    fs::remove(path);
    fs::create_directory(path);
    EXPECT_FALSE(alive(other));
    fs::remove(path);
    fs::create_symlink(file(), path); /* to a live one */
    EXPECT_FALSE(alive(other));
    fs::remove(path);
    std::ofstream(path) << "x";
    EXPECT_FALSE(alive(other));
    alarm(0);
}

/* --- who holds what --- */

struct Seen {
    std::vector<gps_proc> procs;
    std::vector<std::vector<gps_slot>> slots;
    unsigned limit = 1000;

    const gps_proc *of(const gps_owner &who) const {
        for (const gps_proc &proc : procs)
            if (proc.file == owner_text(who))
                return &proc;
        return nullptr;
    }
};

bool see(void *arg, const gps_proc *proc) {
    auto *seen = static_cast<Seen *>(arg);
    seen->procs.push_back(*proc);
    seen->slots.emplace_back(proc->slots, proc->slots + proc->slot_count);
    return --seen->limit > 0;
}

class PeersTest : public LeaseTest {
  protected:
    int scan() {
        seen = {};
        return gps_proc_each(&store, see, &seen);
    }
    int users(const gps_id &of, const gps_owner *except = nullptr) {
        return gps_users_of(&store, &of, except, found, 4);
    }

    Seen seen;
    gps_user found[4] = {};
    gps_id region = {{9, 9, 9}};
};

TEST_F(PeersTest, EachShowsTheLiveWithTheirSlotsAndTheDeadWithout) {
    gps_owner other;
    Child child =
        leased(&other, [&](Child &, gps_lease &mine) { return -gps_lease_write(&mine, 0, &slot); });
    gps_slot intent = make_slot(region, GPS_SLOT_INTENT);
    gps_slot torn = slot;
    torn.since = 1;
    ASSERT_EQ(0, gps_lease_write(&lease, 1, &slot));
    ASSERT_EQ(0, gps_lease_write(&lease, 5, &intent));
    ASSERT_EQ(0, gps_lease_write(&lease, 6, &torn));
    child.kill_and_reap();
    ASSERT_EQ(0, scan());
    ASSERT_EQ(2u, seen.procs.size());
    for (size_t i = 0; i < 2; i++) {
        const gps_proc &proc = seen.procs[i];
        const bool ours = proc.file == owner_text(self);
        EXPECT_EQ(nullptr, proc.why);
        EXPECT_EQ(ours, proc.alive);
        EXPECT_STREQ(self.command, proc.header.owner.command);
        ASSERT_EQ(ours ? 2u : 0u, seen.slots[i].size());
        if (ours) {
            EXPECT_EQ(GPS_SLOT_OPEN, seen.slots[i][0].state);
            EXPECT_EQ(GPS_SLOT_INTENT, seen.slots[i][1].state);
        }
        EXPECT_EQ(ours, proc.unknown) << "the torn one may be of any region";
    }
}

/* A process scans at its end too, perhaps in a signal handler that interrupted malloc. */
TEST_F(PeersTest, EachTakesNothingFromTheHeap) {
    gps_owner who;
    Child child = leased(&who, [](Child &, gps_lease &mine) {
        gps_slot far = make_slot({{1}});
        return -gps_lease_write(&mine, 1000, &far);
    });
    struct Heap {
        size_t before, within;
    } heap = {0, 0};
    const auto used = [] {
        const struct mallinfo2 info = mallinfo2();
        return info.uordblks + info.hblkhd;
    };
    heap.before = used();
    static size_t (*const measure)() = used;
    ASSERT_EQ(0, gps_proc_each(
                     &store,
                     [](void *arg, const gps_proc *proc) {
                         static_cast<Heap *>(arg)->within = measure();
                         return proc->slot_count == 0;
                     },
                     &heap));
    EXPECT_EQ(heap.before, heap.within);
}

TEST_F(PeersTest, EachStopsWhenTold) {
    gps_owner a, b;
    Child one = leased(&a), two = leased(&b);
    seen.limit = 2;
    EXPECT_EQ(0, gps_proc_each(&store, see, &seen));
    EXPECT_EQ(2u, seen.procs.size());
}

TEST_F(PeersTest, EachSaysWhatIsWrongWithAFile) {
    const struct {
        uint64_t nonce;
        const char *why;
        std::function<void(const std::string &)> make;
    } cases[] = {
        {1, "file is too short", [](const std::string &p) { std::ofstream(p) << "x"; }},
        {2, "magic does not match",
         [](const std::string &p) { std::ofstream(p) << std::string(256, 'x'); }},
        {3, "it is a symbolic link", [&](const std::string &p) { fs::create_symlink(file(), p); }},
        {4, "it is not a regular file", [](const std::string &p) { mkfifo(p.c_str(), 0600); }},
        {5, "its mode opens it to others",
         [&](const std::string &p) {
             fs::copy_file(file(), p);
             chmod(p.c_str(), 0640);
         }},
        {6, "owner is not that of the file name",
         [&](const std::string &p) { fs::copy_file(file(), p); }},
    };
    umask(077);
    alarm(10);
    for (const auto &each : cases)
        each.make(procs() + "/" + owner_text(dead_owner(each.nonce)));
    ASSERT_EQ(0, scan());
    alarm(0);
    EXPECT_EQ(std::size(cases) + 1, seen.procs.size());
    for (const auto &each : cases) {
        const gps_proc *proc = seen.of(dead_owner(each.nonce));
        ASSERT_NE(nullptr, proc) << each.why;
        EXPECT_STREQ(each.why, proc->why);
        EXPECT_FALSE(proc->alive);
        EXPECT_EQ(0u, proc->slot_count);
    }
}

TEST_F(PeersTest, AHugeSparseFileIsReadUpToTheLimit) {
    ASSERT_EQ(0, gps_lease_write(&lease, 0, &slot));
    ASSERT_EQ(0, truncate(file().c_str(), off_t{1} << 36));
    ASSERT_EQ(0, scan());
    ASSERT_EQ(1u, seen.slots.size());
    EXPECT_EQ(1u, seen.slots[0].size());
}

TEST_F(PeersTest, UsersAreCountedPastTheRoomForThem) {
    gps_slot holding = make_slot(region);
    std::vector<Child> children;
    gps_user one = {};
    for (int i = 0; i < 3; i++) {
        gps_owner owner;
        children.push_back(leased(&owner, [&](Child &, gps_lease &mine) {
            return -gps_lease_write(&mine, 0, &holding);
        }));
    }
    EXPECT_EQ(3, gps_users_of(&store, &region, nullptr, &one, 1));
    EXPECT_EQ(3, gps_users_of(&store, &region, nullptr, nullptr, 0));
    EXPECT_TRUE(gps_slot_valid(&one.slot));
}

// Behind it are blocks alone, and who frees a region reads no block's slots.
TEST_F(PeersTest, BehindTheDividerOnlyBlocksAreLookedFor) {
    gps_slot holding = make_slot(region), divider = make_slot(gps_id{}), none = {}, torn = holding;
    divider.via = GPS_VIA_DIVIDER;
    gps_slot_seal(&divider);
    torn.since = 1;
    gps_user_counts counts;
    const auto of_a_region = [&] {
        return gps_users_and_caches(&store, &region, nullptr, nullptr, 0, &counts);
    };
    ASSERT_EQ(0, gps_lease_write(&lease, GPS_DIVIDER, &divider));
    ASSERT_EQ(0, gps_lease_write(&lease, GPS_DIVIDER + 1, &holding));
    EXPECT_EQ(1, users(region)) << "it may be a block";
    EXPECT_EQ(0, of_a_region());
    ASSERT_EQ(0, gps_lease_write(&lease, GPS_DIVIDER + 1, &torn));
    EXPECT_EQ(0, of_a_region());
    ASSERT_EQ(0, gps_lease_write(&lease, GPS_DIVIDER - 1, &holding));
    EXPECT_EQ(1, of_a_region());
    ASSERT_EQ(0, gps_lease_write(&lease, GPS_DIVIDER - 1, &none));
    ASSERT_EQ(0, gps_lease_write(&lease, GPS_DIVIDER + 1, &holding));
    ASSERT_EQ(0, gps_lease_write(&lease, GPS_DIVIDER, &none));
    EXPECT_EQ(1, of_a_region());
}

TEST_F(PeersTest, ATornSlotOfALiveProcessMayBeOfAnyRegion) {
    gps_slot torn = make_slot(region), holding = torn, later = make_slot(region);
    torn.since = 1;
    later.via =
        GPS_VIA_STEADY + 1; // of a later version: intact, and of no region that this one knows
    gps_slot_seal(&later);
    gps_owner other;
    Child child = leased(
        &other, [&](Child &, gps_lease &mine) { return -gps_lease_write(&mine, 40, &torn); });
    EXPECT_EQ(-EAGAIN, users(region));
    EXPECT_EQ(-EAGAIN, users(gps_id{{8}}));
    EXPECT_EQ(0, users(region, &other));
    child.kill_and_reap();
    EXPECT_EQ(0, users(region));
    ASSERT_EQ(0, gps_lease_write(&lease, 0, &later));
    EXPECT_EQ(0, users(region));
    ASSERT_EQ(0, gps_lease_write(&lease, 1, &holding));
    ASSERT_EQ(0, gps_lease_write(&lease, 40, &torn));
    EXPECT_EQ(1, users(region)) << "it is known of this one";
}

TEST_F(PeersTest, AFileOfALiveProcessThatMayNotBeOpenedCounts) {
    const std::string copy = procs() + "/" + owner_text(dead_owner());
    fs::copy_file(file(), copy);
    ASSERT_EQ(0, chmod(copy.c_str(), 0640));
    EXPECT_EQ(0, users(region));
    ASSERT_EQ(0, chmod(file().c_str(), 0640));
    EXPECT_EQ(-EBADMSG, users(region));
    ASSERT_EQ(0, scan());
    EXPECT_TRUE(seen.of(self)->alive && seen.of(self)->unknown);
    EXPECT_FALSE(seen.of(dead_owner())->alive || seen.of(dead_owner())->unknown);
    ASSERT_EQ(0, chmod(file().c_str(), 0600));
}

TEST_F(PeersTest, AUserWithADamagedHeaderStillCounts) {
    gps_slot holding = make_slot(region);
    int fd = open(file().c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(0, gps_lease_write(&lease, 0, &holding));
    ASSERT_EQ(4, pwrite(fd, "junk", 4, 100));
    close(fd);
    ASSERT_EQ(1, users(region));
    EXPECT_TRUE(gps_owner_equal(&self, &found[0].owner));
    EXPECT_STREQ("", found[0].owner.command);
}

TEST_F(PeersTest, AnIntentThatBecomesAnOpenIsSeenAllTheWhile) {
    gps_owner other;
    gps_slot intent = make_slot(region, GPS_SLOT_INTENT);
    Child child = leased(
        &other, [&](Child &, gps_lease &mine) { return -gps_lease_write(&mine, 0, &intent); });
    Child writer([&](Child &) { /* writes the other's slot: one writer is not what is tested here */
                                const std::string path = procs() + "/" + owner_text(other);
                                int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
                                gps_slot states[2] = {intent, make_slot(region)};

                                for (unsigned i = 0;; i++)
                                    if (pwrite(fd, &states[i % 2], 64, 256) != 64)
                                        return 1;
    });
    for (int i = 0; i < 20000; i++)
        ASSERT_EQ(1, users(region)) << i;
}

} // namespace
