/* gc_test.cpp - what dead processes leave, and what is left of processes that die anywhere. */
#include "store_support.h"

namespace {

namespace fs = std::filesystem;

class GcTest : public LeasedTest {
  protected:
    int gc(bool dry_run = false) {
        counts = {};
        return gps_store_gc(&store, dry_run, &counts);
    }
    /* Everything in the three directories. */
    std::set<std::string> all() const {
        std::set<std::string> found;
        for (const std::string &where : {procs(), regions(), names()})
            for (const std::string &name : entries(where))
                found.insert(name);
        return found;
    }
    std::set<std::string> only_us() const {
        return {owner_text(self)};
    }
    void plant(const std::string &path) {
        std::ofstream(path) << "junk";
        chmod(path.c_str(), 0600);
    }
    std::string temp_of(const gps_owner &writer) const {
        char name[GPS_TEMP_NAME];
        gps_temp_format(&writer, name);
        return name;
    }

    gps_gc_counts counts = {};
};

TEST_F(GcTest, KeepsATombstoneOfTheLivingAndRemovesOneOfTheDead) {
    gps_owner owner;
    gps_region_record ours = make_record(self, 1), theirs = {};
    ASSERT_EQ(0, gps_region_publish(&store, &ours));
    ASSERT_EQ(0, gps_region_set_status(&store, &ours, GPS_STATE_FREED, 0));
    {
        Child child = leased(&owner, [&](Child &, gps_lease &mine) {
            theirs = make_record(mine.self, 2);
            return -(gps_region_publish(&store, &theirs) |
                     gps_region_set_status(&store, &theirs, GPS_STATE_FREED, 0));
        });
    }

    ASSERT_EQ(0, gc());
    EXPECT_EQ(1u, counts.regions);
    EXPECT_EQ(std::set<std::string>{id_text(ours.id)}, entries(regions()));
}

TEST_F(GcTest, RemovesInvalidRecordsAndWhatStandsInTheirPlace) {
    plant(region_file(make_record(self, 1).id));
    fs::create_symlink("/etc/passwd", region_file(make_record(self, 2).id));
    mkfifo(region_file(make_record(self, 3).id).c_str(), 0600);
    alarm(10);
    ASSERT_EQ(0, gc());
    alarm(0);
    EXPECT_EQ(3u, counts.regions);
    EXPECT_TRUE(entries(regions()).empty());
    EXPECT_TRUE(fs::exists("/etc/passwd"));
}

TEST_F(GcTest, LeavesARecordWithATornStatusToItsLiveOwner) {
    gps_region_record record = make_record(self, 1);
    ASSERT_EQ(0, gps_region_publish(&store, &record));
    int fd = open(region_file(record.id).c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(4, pwrite(fd, "torn", 4, 470));
    close(fd);
    ASSERT_EQ(0, gc());
    EXPECT_TRUE(fs::exists(region_file(record.id)));
    /* Its next status makes it whole. */
    ASSERT_EQ(0, gps_region_set_status(&store, &record, GPS_STATE_CLOSING, 0));
    EXPECT_EQ(0, gps_region_read(&store, &record.id, &record, nullptr));
}

TEST_F(GcTest, LeavesRecordsOfAnotherVersion) {
    gps_region_record record = make_record(dead_owner(), 1);
    int fd = open(region_file(record.id).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    record.version = 2;
    ASSERT_EQ(static_cast<ssize_t>(sizeof record), write(fd, &record, sizeof record));
    close(fd);
    ASSERT_EQ(0, gc());
    EXPECT_TRUE(fs::exists(region_file(record.id)));
}

TEST_F(GcTest, LeavesALiveProcessFileOfAnotherVersion) {
    int fd = open((procs() + "/" + owner_text(self)).c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(4, pwrite(fd, "\2\0\0", 4, 8));
    close(fd);
    ASSERT_EQ(0, gc());
    EXPECT_EQ(only_us(), all());
}

TEST_F(GcTest, LeavesWhatMeansNothingToIt) {
    for (const std::string &where : {procs(), regions(), names()}) {
        plant(where + "/not a name of ours");
        plant(where + "/.tmp.unknown");
    }
    plant(regions() + "/README");
    plant(procs() + "/README");
    const std::set<std::string> before_gc = all();
    ASSERT_EQ(0, gc());
    EXPECT_EQ(before_gc, all());
}

TEST_F(GcTest, RemovesBadAndOrphanedNames) {
    gps_region_record freed = make_record(self, 1, "freed");
    ASSERT_EQ(0, gps_region_publish(&store, &freed));
    fs::create_symlink("../regions/" + id_text(freed.id), names() + "/freed");
    ASSERT_EQ(0, gps_region_set_status(&store, &freed, GPS_STATE_FREED, 0));
    fs::create_symlink("/etc/passwd", names() + "/bad");
    fs::create_symlink("../regions/" + id_text(make_record(self, 2).id), names() + "/nothing");
    fs::create_symlink("../procs/" + owner_text(dead_owner()), names() + "/dead");
    plant(names() + "/file");
    ASSERT_EQ(0, gps_name_claim(&store, "ours", &self, nullptr));
    ASSERT_EQ(0, gc());
    EXPECT_EQ(5u, counts.names);
    EXPECT_EQ(std::set<std::string>{"ours"}, entries(names()));
}

TEST_F(GcTest, LeavesTemporaryFilesOfTheLivingAndRemovesThoseOfTheDead) {
    const std::string live = temp_of(self), dead = temp_of(dead_owner());
    for (const std::string &where : {regions(), names()}) {
        plant(where + "/" + live);
        plant(where + "/" + dead);
    }
    ASSERT_EQ(0, gc());
    EXPECT_EQ(2u, counts.temps);
    EXPECT_EQ(std::set<std::string>{live}, entries(regions()));
    EXPECT_EQ(std::set<std::string>{live}, entries(names()));
}

TEST_F(GcTest, LeavesALeaseThatIsBeingTaken) {
    /* Its writer's final file is not there yet: only the lock on the temporary one tells. */
    const std::string temp = temp_of(dead_owner());
    int fd = gps_file_create(AT_FDCWD, (procs() + "/" + temp).c_str());
    ASSERT_EQ(0, gps_file_lock(fd, 0, 0));
    ASSERT_EQ(0, gc());
    EXPECT_EQ(1u, entries(procs()).count(temp));
    close(fd);
    ASSERT_EQ(0, gc());
    EXPECT_EQ(1u, counts.temps);
    EXPECT_EQ(only_us(), all());
}

TEST_F(GcTest, NeverMakesALeaseFail) {
    Child collector([&](Child &) {
        for (;;)
            if (gc() != 0)
                return 1;
    });
    for (int i = 0; i < 3000; i++) {
        gps_owner me = this_process();
        gps_lease mine;
        ASSERT_EQ(0, gps_lease_take(&store, &me, NULL, &mine)) << i;
        ASSERT_EQ(GPS_ALIVE, gps_lease_probe(&store, &me)) << i;
        gps_lease_drop(&mine);
    }
    EXPECT_EQ(0, kill(collector.pid, 0));
}

TEST_F(GcTest, ALeaseTakerMeetsAGcThatWasStoppedWithItsFile) {
    /* A gc that is stopped while it has the temporary file locked: the taker uses another. */
    Child collector([&](Child &) -> int {
        for (;;)
            for (const std::string &name : entries(procs())) {
                if (name.rfind(".tmp.", 0) != 0)
                    continue;
                int fd = open((procs() + "/" + name).c_str(), O_RDWR | O_CLOEXEC);
                if (fd >= 0 && gps_file_lock(fd, 0, 0) == 0)
                    raise(SIGSTOP);
                if (fd >= 0)
                    close(fd);
            }
    });
    alarm(60);
    for (int i = 0; i < 2000; i++) {
        gps_owner me = this_process();
        gps_lease mine;
        ASSERT_EQ(0, gps_lease_take(&store, &me, NULL, &mine));
        gps_lease_drop(&mine);
        collector.signal(SIGCONT);
    }
    alarm(0);
}

TEST_F(GcTest, ManyAtOnceRemoveEachThingOnce) {
    for (unsigned i = 0; i < 200; i++) {
        gps_region_record record = make_record(dead_owner(), i);
        ASSERT_EQ(0, gps_region_publish(&store, &record));
    }
    std::vector<Child> children;
    for (int i = 0; i < 4; i++)
        children.emplace_back([&](Child &peer) {
            peer.await();
            int rc = gc();
            peer.send(counts.regions);
            return -rc;
        });
    unsigned removed = 0;
    for (const Child &child : children)
        child.go();
    for (Child &child : children) {
        unsigned count = 0;
        ASSERT_TRUE(child.receive(count));
        removed += count;
        EXPECT_EQ(0, child.reap());
    }
    /* Who is at an entry makes another gc pass it over; a last one finds what both left. */
    ASSERT_EQ(0, gc());
    EXPECT_EQ(200u, removed + counts.regions);
    EXPECT_TRUE(entries(regions()).empty());
}

/* --- dying and stopping anywhere --- */

/* All that a process does to the directory, over and over; the line that failed, if one did. */
int live_a_life(const gps_store *store, unsigned seed) {
    gps_slot none = {};
    for (unsigned round = 0;; round++) {
        const unsigned id = seed * 4 + round % 3;
        gps_owner me = this_process();
        gps_lease lease;
        if (gps_lease_take(store, &me, NULL, &lease) != 0)
            return 1;
        for (int i = 0; i < 4; i++) {
            gps_region_record record = make_record(me, id, "life" + std::to_string(seed));
            gps_slot slot = make_slot(record.id);
            gps_owner holder;
            int claimed;
            do /* a gc that was interrupted may be at it */
                claimed = gps_name_claim(store, record.name, &me, &holder);
            while (claimed == -EEXIST && holder.pid == 0);
            if (claimed != 0)
                return 2;
            if (gps_region_publish(store, &record) != 0)
                return 3;
            if (gps_name_point(store, record.name, &me, &record.id) != 0)
                return 4;
            if (gps_lease_write(&lease, 0, &slot) != 0)
                return 5;
            if (gps_region_set_status(store, &record, GPS_STATE_CLOSING, 0) != 0)
                return 6;
            if (gps_users_of(store, &record.id, &me, nullptr, 0) != 0)
                return 7;
            if (gps_users_of(store, &record.id, nullptr, nullptr, 0) != 1)
                return 8;
            if (gps_lease_write(&lease, 0, &none) != 0)
                return 9;
            if (gps_region_set_status(store, &record, GPS_STATE_FREED, 0) != 0)
                return 10;
            if (gps_name_release(store, record.name, &me, &record.id) != 0)
                return 11;
            if (i % 2 == 1 && gps_region_remove(store, &record.id) != 0)
                return 12;
        }
        if (round % 2 == 0) {
            const gps_id last = make_record(me, id).id;
            gps_region_remove(store, &last);
        }
        gps_lease_drop(&lease);
    }
}

bool no_bad_record(void *, const gps_region_record *record, int status, const char *why) {
    EXPECT_EQ(0, status) << id_text(record->id) << ": " << why;
    return true;
}

bool no_bad_proc(void *, const gps_proc *proc) {
    EXPECT_EQ(nullptr, proc->why) << proc->file;
    return true;
}

class AnywhereTest : public GcTest {
  protected:
    void expect_sound() {
        EXPECT_EQ(0, gps_region_each(&store, no_bad_record, nullptr));
        for (const auto &entry : fs::directory_iterator(std::string(store.path) + "/names")) {
            const std::string name = entry.path().filename();
            gps_name_target target;
            if (!gps_name_valid(name.c_str()))
                continue;
            EXPECT_NE(-EBADMSG, gps_name_resolve(&store, name.c_str(), &target)) << name;
        }
        EXPECT_EQ(0, gps_proc_each(&store, no_bad_proc, nullptr));
    }
    void sleep_a_little() {
        usleep(static_cast<useconds_t>(random() % 1500));
    }

    std::mt19937 random{7};
};

TEST_F(AnywhereTest, KilledAnywhereLeavesASoundDirectoryThatGcEmpties) {
    for (int i = 0; i < 200; i++) {
        gps_name_target target;
        {
            Child child([&](Child &) { return live_a_life(&store, 0); });
            sleep_a_little();
            child.signal(SIGKILL);
            ASSERT_EQ(256 + SIGKILL, child.reap()) << "a call failed in the child";
        }

        expect_sound();
        int rc = gps_name_resolve(&store, "life0", &target);
        EXPECT_TRUE(rc == 0 || rc == -ENOENT) << rc;
        if (i % 2 == 0) { /* whoever comes next takes the name, with or without a gc */
            ASSERT_EQ(0, gps_name_claim(&store, "life0", &self, nullptr));
            ASSERT_EQ(0, gps_name_release(&store, "life0", &self, nullptr));
        }
        ASSERT_EQ(0, gc());
        ASSERT_EQ(only_us(), all()) << i;
        EXPECT_EQ(-ENOENT, gps_name_resolve(&store, "life0", &target));
    }
}

/* How long this thread has slept since `start`: neither on a processor nor waiting for one. */
struct Slept {
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    uint64_t busy = runs_or_waits();

    static uint64_t runs_or_waits() {
        uint64_t runs = 0, waits = 0;
        std::ifstream("/proc/thread-self/schedstat") >> runs >> waits;
        return runs + waits;
    }
    std::chrono::nanoseconds operator()() const {
        return std::chrono::steady_clock::now() - start -
               std::chrono::nanoseconds(runs_or_waits() - busy);
    }
};

TEST_F(AnywhereTest, StoppedAnywhereHoldsNobodyUpAndLosesNothing) {
    Child stopping([&](Child &) { return live_a_life(&store, 0); });
    for (int i = 0; i < 200; i++) {
        gps_region_record record = make_record(self, 1000, "ours");
        sleep_a_little();
        stopping.stop();
        const Slept slept;
        ASSERT_EQ(0, gps_name_claim(&store, "ours", &self, nullptr));
        ASSERT_EQ(0, gps_region_publish(&store, &record));
        ASSERT_EQ(0, gps_name_point(&store, "ours", &self, &record.id));
        ASSERT_EQ(0, gps_users_of(&store, &record.id, nullptr, nullptr, 0));
        ASSERT_EQ(0, gps_name_release(&store, "ours", &self, &record.id));
        ASSERT_EQ(0, gps_region_remove(&store, &record.id));
        int rc = gps_name_claim(&store, "life0", &self, nullptr);
        ASSERT_TRUE(rc == 0 || rc == -EEXIST) << rc;
        if (rc == 0) {
            ASSERT_EQ(0, gps_name_release(&store, "life0", &self, nullptr));
        }
        ASSERT_EQ(0, gc());
        EXPECT_LT(slept().count(), 2e9);
        expect_sound();
        stopping.signal(SIGCONT);
        int status;
        ASSERT_EQ(0, waitpid(stopping.pid, &status, WNOHANG))
            << "failed at " << WEXITSTATUS(status);
    }
}

TEST_F(AnywhereTest, ManyDyingBesideEachOtherLeaveNothingAfterTheLast) {
    std::vector<Child> lives;
    for (int i = 0; i < 200; i++) {
        const unsigned seed = static_cast<unsigned>(i % 4);
        if (lives.size() == 4)
            lives.erase(lives.begin());
        lives.emplace_back([&, seed](Child &) { return live_a_life(&store, seed); });
        sleep_a_little();
        if (i % 10 == 0) {
            ASSERT_EQ(0, gc());
        }
    }
    lives.clear();
    expect_sound();
    ASSERT_EQ(0, gc());
    EXPECT_EQ(only_us(), all());
}

} // namespace
