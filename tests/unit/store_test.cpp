/* store_test.cpp - the directories and the region records. */
#include "skip.hpp"
#include "store_support.h"

#include <sys/statfs.h>

namespace {

namespace fs = std::filesystem;

mode_t mode_of(const std::string &path) {
    struct stat st = {};
    lstat(path.c_str(), &st);
    return st.st_mode & 07777;
}

class InitTest : public StoreTest {
  protected:
    int init(const std::string &root, const char *name_space = "default", bool create = true) {
        return gps_store_init(&fresh, root.c_str(), name_space, create);
    }

    gps_store fresh = {};
};

const char *const PARTS[] = {"", "/default", "/default/procs", "/default/regions",
                             "/default/names"};

TEST_F(InitTest, MakesUsableDirectoriesUnderAnyUmask) {
    mode_t old = umask(0777);
    int rc = init(base + "/new");
    umask(old);
    ASSERT_EQ(0, rc);
    EXPECT_EQ(0700u, mode_of(base + "/new/default/regions"));
}

TEST_F(InitTest, MakesNothingUnlessTold) {
    EXPECT_EQ(-ENOENT, init(base + "/new", "default", false));
    EXPECT_EQ(-ENOENT, init(base + "/root", "other", false));
    EXPECT_FALSE(fs::exists(base + "/new"));
    EXPECT_FALSE(fs::exists(base + "/root/other"));
}

TEST_F(InitTest, MissingPartsAreMadeAgain) {
    fs::remove(names());
    EXPECT_EQ(-ENOENT, init(base + "/root", "default", false));
    EXPECT_EQ(0, init(base + "/root"));
    EXPECT_TRUE(fs::is_directory(names()));
}

TEST_F(InitTest, RefusesBadArguments) {
    EXPECT_EQ(-EINVAL, init("relative"));
    EXPECT_EQ(-EINVAL, init(""));
    for (const char *bad : {"", ".", "..", "a/b", ".x"})
        EXPECT_EQ(-EINVAL, init(base + "/root", bad)) << bad;
}

TEST_F(InitTest, RefusesPathsThatLeaveNoRoom) {
    std::string longest;
    while (longest.size() < GPS_STORE_PATH - sizeof("/default"))
        longest += "/x";
    longest.resize(GPS_STORE_PATH - sizeof("/default"));
    EXPECT_EQ(-ENOENT, init(longest));
    EXPECT_EQ(-ENAMETOOLONG, init(longest + "x"));
}

TEST_F(InitTest, RefusesADirectoryThatOthersMayEnter) {
    for (const char *part : PARTS) {
        const std::string path = base + "/root" + part;
        for (mode_t bit : {010, 001, 040, 020, 004, 002}) {
            chmod(path.c_str(), 0700 | bit);
            EXPECT_EQ(-EPERM, init(base + "/root")) << part << " " << bit;
        }
        chmod(path.c_str(), 0700);
        EXPECT_EQ(0, init(base + "/root")) << part;
    }
}

TEST_F(InitTest, RefusesADirectoryOfAnotherUser) {
    SKIP_IF(geteuid() != 0, "needs root");
    for (const char *part : PARTS) {
        const std::string path = base + "/root" + part;
        ASSERT_EQ(0, chown(path.c_str(), 65534, 65534));
        EXPECT_EQ(-EPERM, init(base + "/root")) << part;
        ASSERT_EQ(0, chown(path.c_str(), 0, 0));
    }
}

TEST_F(InitTest, FollowsNoSymlink) {
    for (const char *part : PARTS) {
        const std::string path = base + "/root" + part;
        fs::rename(path, base + "/elsewhere");
        fs::create_directory_symlink(base + "/elsewhere", path);
        int rc = init(base + "/root");
        EXPECT_TRUE(rc == -ELOOP || rc == -ENOTDIR) << part << " " << rc;
        rc = init(base + "/root/");
        EXPECT_TRUE(rc == -ELOOP || rc == -ENOTDIR) << part << " " << rc;
        fs::remove(path);
        fs::rename(base + "/elsewhere", path);
    }
}

TEST_F(InitTest, RefusesAFileInTheWay) {
    std::ofstream(base + "/file") << "x";
    EXPECT_EQ(-ENOTDIR, init(base + "/file"));
    fs::remove(names());
    std::ofstream(names()) << "x";
    EXPECT_EQ(-ENOTDIR, init(base + "/root"));
}

TEST_F(InitTest, LeavesTheStoreAloneWhenItFails) {
    strcpy(fresh.path, "untouched");
    EXPECT_EQ(-EINVAL, init("relative"));
    EXPECT_EQ(-ENOENT, init(base + "/a/b"));
    EXPECT_STREQ("untouched", fresh.path);
}

TEST_F(InitTest, ManyProcessesCanMakeItAtOnce) {
    for (int round = 0; round < 20; round++) {
        const std::string path = base + "/r" + std::to_string(round);
        std::vector<Child> children;
        for (int i = 0; i < 8; i++)
            children.emplace_back([&](Child &self) {
                self.await();
                return -init(path);
            });
        for (const Child &child : children)
            child.go();
        for (Child &child : children)
            EXPECT_EQ(0, child.reap());
    }
}

TEST(Root, IsTheOneGivenThenOneInWhatADriverSharesAmongPods) {
    char path[GPS_STORE_PATH];
    const std::string user = "/gpushare-" + std::to_string(geteuid());
    setenv("NVIDIA_DRA_LOCAL_IPC_DIR", "/shared/claim", 1);
    EXPECT_FALSE(gps_store_root(path, sizeof path));
    EXPECT_EQ(path, "/shared/claim" + user);
    setenv("GPUSHARE_DIR", "/mine", 1);
    EXPECT_TRUE(gps_store_root(path, sizeof path));
    EXPECT_STREQ(path, "/mine");
    setenv("GPUSHARE_DIR", "", 1);
    EXPECT_FALSE(gps_store_root(path, sizeof path));
    unsetenv("GPUSHARE_DIR");
    setenv("NVIDIA_DRA_LOCAL_IPC_DIR", "", 1);
    EXPECT_FALSE(gps_store_root(path, sizeof path));
    EXPECT_EQ(path, "/dev/shm" + user);
    unsetenv("NVIDIA_DRA_LOCAL_IPC_DIR");
}

class RegionTest : public LeasedTest {
  protected:
    void SetUp() override {
        LeasedTest::SetUp();
        record = make_record(self, 1, "frames");
        path = region_file(record.id);
    }
    int read(std::string *said = nullptr) {
        const char *why = nullptr;
        int rc = gps_region_read(&store, &record.id, &found, &why);
        if (said != nullptr)
            *said = why == nullptr ? "" : why;
        return rc;
    }
    std::string why() {
        std::string said;
        alarm(10); /* a planted FIFO must not block */
        EXPECT_EQ(-EBADMSG, read(&said));
        alarm(0);
        return said;
    }
    void plant(const void *bytes, size_t size, mode_t mode = 0600) {
        fs::remove(path);
        int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_EXCL, 0600);
        ASSERT_GE(fd, 0);
        ASSERT_EQ(static_cast<ssize_t>(size), write(fd, bytes, size));
        fchmod(fd, mode);
        close(fd);
    }

    gps_region_record record = {};
    gps_region_record found = {};
    std::string path;
};

TEST_F(RegionTest, IsReadableUnderAnyUmask) {
    mode_t old = umask(0777);
    int rc = gps_region_publish(&store, &record);
    umask(old);
    ASSERT_EQ(0, rc);
    EXPECT_EQ(0600u, mode_of(path));
}

TEST_F(RegionTest, ALiveProcesssRecordIsNotReplaced) {
    gps_owner other;
    Child child = leased(&other, [&](Child &, gps_lease &mine) {
        gps_region_record theirs = make_record(mine.self, 1);
        return -gps_region_publish(&store, &theirs);
    });
    EXPECT_EQ(-EEXIST, gps_region_publish(&store, &record));
    ASSERT_EQ(0, read());
    EXPECT_TRUE(gps_owner_equal(&other, &found.owner));
    EXPECT_EQ(1u, entries(regions()).size()) << "a temporary file stayed";
}

TEST_F(RegionTest, AnInvalidFileIsReplaced) {
    plant("junk", 4);
    EXPECT_EQ(0, gps_region_publish(&store, &record));
    EXPECT_EQ(0, read());
    fs::remove(path);
    fs::create_symlink("/etc/passwd", path);
    EXPECT_EQ(0, gps_region_publish(&store, &record));
    EXPECT_EQ(0, read());
    fs::remove(path);
    mkfifo(path.c_str(), 0600);
    EXPECT_EQ(0, gps_region_publish(&store, &record));
    EXPECT_EQ(0, read());
}

TEST_F(RegionTest, ARecordOfAnotherVersionIsNotReplaced) {
    gps_region_record next = record;
    next.version = 2;
    plant(&next, sizeof next);
    EXPECT_EQ(-EEXIST, gps_region_publish(&store, &record));
    plant(&next, 12); /* whatever its size */
    EXPECT_EQ(-EEXIST, gps_region_publish(&store, &record));
}

TEST_F(RegionTest, ADirectoryInTheWayIsAnErrorAndStays) {
    fs::create_directory(path);
    EXPECT_EQ(-EISDIR, gps_region_publish(&store, &record));
    EXPECT_EQ(std::set<std::string>{id_text(record.id)}, entries(regions()));
}

TEST_F(RegionTest, OfManyProcessesOneReplacesADeadRecord) {
    for (unsigned round = 0; round < 30; round++) {
        gps_region_record dead = make_record(dead_owner(), 100 + round);
        std::vector<Child> children;
        int winners = 0;
        ASSERT_EQ(0, gps_region_publish(&store, &dead));
        for (int i = 0; i < 8; i++)
            children.emplace_back([&](Child &child) {
                gps_owner me = this_process();
                gps_lease mine;
                if (gps_lease_take(&store, &me, NULL, &mine) != 0)
                    return 90;
                gps_region_record theirs = make_record(me, 100 + round);
                child.await();
                child.send(gps_region_publish(&store, &theirs));
                child.await();
                return 0;
            });
        for (const Child &child : children)
            child.go();
        for (const Child &child : children) {
            int rc = 1;
            ASSERT_TRUE(child.receive(rc));
            EXPECT_TRUE(rc == 0 || rc == -EEXIST) << rc;
            winners += rc == 0;
        }
        EXPECT_EQ(1, winners);
    }
}

TEST_F(RegionTest, StatusIsRewrittenInPlace) {
    struct stat first, second;
    ASSERT_EQ(0, gps_region_publish(&store, &record));
    stat(path.c_str(), &first);
    ASSERT_EQ(0, gps_region_set_status(&store, &record, GPS_STATE_FINAL, 42));
    stat(path.c_str(), &second);
    EXPECT_EQ(first.st_ino, second.st_ino);
    ASSERT_EQ(0, read());
    EXPECT_EQ(GPS_STATE_FINAL, found.status.state);
    EXPECT_EQ(42u, found.status.until);
    EXPECT_GT(found.status.changed, UINT64_C(1600000000000000000));
    EXPECT_EQ(0, memcmp(&record, &found, sizeof record)) << "the owner's copy differs";
}

TEST_F(RegionTest, TracesAreWrittenBehindTheRecordAndReadAgain) {
    struct gps_region_traces traces = {}, read_back;
    ASSERT_EQ(0, gps_region_publish(&store, &record));
    EXPECT_EQ(-ENOENT, gps_region_read_traces(&store, &record, &read_back));
    traces.count[GPS_HISTORY_FREED] = 1;
    traces.module[GPS_HISTORY_FREED][0] = GPS_TRACE_NO_MODULE;
    traces.offset[GPS_HISTORY_FREED][0] = 0x1234;
    ASSERT_EQ(0, gps_region_set_traces(&store, &record, &traces));
    ASSERT_EQ(0, gps_region_read_traces(&store, &record, &read_back));
    EXPECT_EQ(0, memcmp(&traces, &read_back, sizeof traces));
    ASSERT_EQ(0, gps_region_set_status(&store, &record, GPS_STATE_FREED, 0));
    ASSERT_EQ(0, read()) << "the record is as good as without";
    ASSERT_EQ(0, gps_region_read_traces(&store, &record, &read_back));
    ASSERT_EQ(0, truncate(path.c_str(), sizeof record + 100));
    EXPECT_EQ(-EBADMSG, gps_region_read_traces(&store, &record, &read_back));
    ASSERT_EQ(0, gps_region_remove(&store, &record.id));
    EXPECT_EQ(-ENOENT, gps_region_set_traces(&store, &record, &traces));
}

TEST_F(RegionTest, StatusOfAReplacedRecordIsNotTouched) {
    gps_region_record newer = record;
    ASSERT_EQ(0, gps_region_publish(&store, &record));
    newer.generation = 2;
    gps_record_seal(&newer);
    ASSERT_EQ(0, gps_region_publish(&store, &newer));
    EXPECT_EQ(-ENOENT, gps_region_set_status(&store, &record, GPS_STATE_FREED, 0));
    EXPECT_EQ(GPS_STATE_READY, record.status.state) << "updated although it failed";
    ASSERT_EQ(0, read());
    EXPECT_EQ(GPS_STATE_READY, found.status.state);
}

TEST_F(RegionTest, StatusDoesNotGoThroughASymlinkOrIntoAFifo) {
    ASSERT_EQ(0, gps_region_publish(&store, &record));
    fs::rename(path, base + "/victim");
    fs::create_symlink(base + "/victim", path);
    EXPECT_EQ(-ELOOP, gps_region_set_status(&store, &record, GPS_STATE_FREED, 0));
    fs::remove(path);
    mkfifo(path.c_str(), 0600);
    EXPECT_EQ(-ESPIPE, gps_region_set_status(&store, &record, GPS_STATE_FREED, 0));
}

TEST_F(RegionTest, EveryReadDuringStatusChangesIsWhole) {
    std::atomic<bool> stop{false};
    gps_region_record copy;
    ASSERT_EQ(0, gps_region_publish(&store, &record));
    copy = record;
    std::thread writer([&] {
        while (!stop)
            gps_region_set_status(&store, &copy, GPS_STATE_CLOSING, 0);
    });
    for (int i = 0; i < 20000; i++)
        ASSERT_EQ(0, read()) << i;
    stop = true;
    writer.join();
}

TEST_F(RegionTest, TruncatedAndOverlongFilesAreRefused) {
    uint8_t bytes[1024] = {};
    memcpy(bytes, &record, sizeof record);
    for (size_t size :
         {size_t{0}, size_t{1}, size_t{448}, size_t{511}, size_t{513}, size_t{1024}}) {
        plant(bytes, size);
        EXPECT_EQ("size of the file does not match", why()) << size;
    }
    plant(bytes, sizeof record);
    EXPECT_EQ(0, read());
    ASSERT_EQ(0, truncate(path.c_str(), off_t{1} << 40)); /* sparse, huge */
    EXPECT_EQ("size of the file does not match", why());
}

TEST_F(RegionTest, AnotherModeIsRefused) {
    for (mode_t mode : {0640, 0620, 0610, 0604, 0602, 0601, 0666}) {
        plant(&record, sizeof record, mode);
        EXPECT_EQ("its mode opens it to others", why()) << mode;
    }
}

TEST_F(RegionTest, AnotherUsersFileIsRefused) {
    SKIP_IF(geteuid() != 0, "needs root");
    plant(&record, sizeof record);
    ASSERT_EQ(0, chown(path.c_str(), 65534, 65534));
    EXPECT_EQ("it belongs to another user", why());
}

TEST_F(RegionTest, ASymlinkIsNotFollowed) {
    plant(&record, sizeof record);
    fs::rename(path, base + "/record");
    fs::create_symlink(base + "/record", path);
    EXPECT_EQ("it is a symbolic link", why());
}

TEST_F(RegionTest, OtherKindsOfFileAreRefusedWithoutWaiting) {
    struct sockaddr_un address = {};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    mkfifo(path.c_str(), 0600);
    EXPECT_EQ("it is not a regular file", why());
    fs::remove(path);
    fs::create_directory(path);
    EXPECT_EQ("it is not a regular file", why());
    fs::remove(path);
    address.sun_family = AF_UNIX;
    ASSERT_LT(path.size(), sizeof address.sun_path);
    strcpy(address.sun_path, path.c_str());
    ASSERT_EQ(0, bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof address));
    close(fd);
    EXPECT_EQ("it is not a regular file", why());
}

TEST_F(RegionTest, ARecordUnderAnothersNameIsRefused) {
    gps_region_record other = make_record(self, 2);
    plant(&other, sizeof other);
    EXPECT_EQ("id is not that of the file name", why());
}

struct Seen {
    std::set<std::string> good, bad;
    unsigned limit = 1000;
};

bool see(void *arg, const gps_region_record *record, int status, const char *why) {
    auto *seen = static_cast<Seen *>(arg);
    EXPECT_EQ(status == 0, why == nullptr);
    EXPECT_TRUE(status == 0 || status == -EBADMSG);
    (status == 0 ? seen->good : seen->bad).insert(id_text(record->id));
    return --seen->limit > 0;
}

TEST_F(RegionTest, EachShowsEveryRecordAndTheBadOnesAsBad) {
    Seen seen, wanted;
    for (unsigned seed = 0; seed < 300; seed++) { /* more than one buffer of directory entries */
        gps_region_record each = make_record(self, seed);
        ASSERT_EQ(0, gps_region_publish(&store, &each));
        wanted.good.insert(id_text(each.id));
    }
    plant("junk", 4);
    wanted.good.erase(id_text(record.id));
    wanted.bad.insert(id_text(record.id));
    std::ofstream(regions() + "/README") << "not a record";
    std::ofstream(regions() + "/.tmp.x") << "nor this";
    ASSERT_EQ(0, gps_region_each(&store, see, &seen));
    EXPECT_EQ(wanted.good, seen.good);
    EXPECT_EQ(wanted.bad, seen.bad);
}

/* Freed, and its handle given again, once each: whoever looks meanwhile finds it. */
TEST_F(RegionTest, ARecordIsNeverMissingWhileItMoves) {
    const unsigned rounds = 3000;
    std::atomic<unsigned> current{0};
    gps_region_record first = make_record(self, 1000);
    ASSERT_EQ(0, gps_region_publish(&store, &first));
    std::thread reader([&] {
        for (unsigned round; (round = current) < rounds;) {
            const gps_region_record wanted = make_record(self, 1000 + round);
            gps_region_record seen;
            const int status = gps_region_read(&store, &wanted.id, &seen, nullptr);
            if (status != 0) {
                ADD_FAILURE() << status;
                return;
            }
        }
    });
    for (unsigned round = 0; round < rounds; current = ++round) {
        gps_region_record one = make_record(self, 1000 + round);
        gps_region_record next = make_record(self, 1001 + round);
        EXPECT_EQ(0, gps_region_bury(&store, &one));
        EXPECT_EQ(0, gps_region_publish(&store, &one));
        EXPECT_EQ(0, gps_region_remove_freed(&store, &one.id));
        EXPECT_EQ(0, gps_region_publish(&store, &next));
    }
    reader.join();
}

TEST_F(RegionTest, OfAHandleThatIsGivenAgainTheLiveRecordStays) {
    gps_region_record one = make_record(self, 1), next = one;
    next.generation++;
    gps_record_seal(&next);
    ASSERT_EQ(0, gps_region_publish(&store, &next));
    EXPECT_EQ(-ENOENT, gps_region_bury(&store, &one));
    ASSERT_EQ(0, gps_region_read(&store, &next.id, &found, nullptr));
    EXPECT_NE(found.status.state, static_cast<uint32_t>(GPS_STATE_FREED));
}

TEST_F(RegionTest, WhatIsBuriedIsFreedWhateverItsStatusSays) {
    gps_region_record one = make_record(self, 1);
    ASSERT_EQ(0, gps_region_publish(&store, &one));
    ASSERT_EQ(0, gps_region_bury(&store, &one));
    ASSERT_EQ(0, gps_region_read(&store, &one.id, &found, nullptr));
    EXPECT_EQ(found.status.state, static_cast<uint32_t>(GPS_STATE_FREED));
    Seen seen, freed;
    ASSERT_EQ(0, gps_region_each(&store, see, &seen));
    ASSERT_EQ(0, gps_region_each_freed(&store, see, &freed));
    EXPECT_EQ(seen.good.count(id_text(one.id)), 0u);
    EXPECT_EQ(freed.good, std::set<std::string>{id_text(one.id)});
    /* of a directory that an older version made */
    std::filesystem::remove_all(std::string(store.path) + "/freed");
    EXPECT_EQ(-ENOENT, gps_region_read(&store, &one.id, &found, nullptr));
    EXPECT_EQ(0, gps_region_each_freed(&store, see, &freed));
}

TEST_F(RegionTest, EachStopsWhenTold) {
    Seen seen;
    for (unsigned seed = 0; seed < 10; seed++) {
        gps_region_record each = make_record(self, seed);
        ASSERT_EQ(0, gps_region_publish(&store, &each));
    }
    seen.limit = 3;
    EXPECT_EQ(0, gps_region_each(&store, see, &seen));
    EXPECT_EQ(3u, seen.good.size());
}

/* As a user for whom modes count. */
int as_nobody(const std::function<int(gps_store &)> &body) {
    Child child([&](Child &) {
        char pattern[] = "/dev/shm/gps-unit-XXXXXX";
        gps_store theirs;
        if (geteuid() == 0 && seteuid(65534) != 0)
            return 91;
        if (mkdtemp(pattern) == nullptr || gps_store_init(&theirs, pattern, "default", true) != 0)
            return 92;
        int rc = body(theirs);
        for (const char *part : {"/procs", "/regions", "/names"})
            chmod((std::string(theirs.path) + part).c_str(), 0700);
        fs::remove_all(pattern);
        return rc;
    });
    return child.reap();
}

TEST(Unreadable, ADirectoryIsSaidNotGuessedAbout) {
    EXPECT_EQ(0, as_nobody([](gps_store &store) {
                  gps_owner me = this_process();
                  gps_lease lease;
                  Seen seen;
                  gps_region_record record = make_record(me, 1);
                  if (gps_lease_take(&store, &me, NULL, &lease) != 0)
                      return 1;
                  chmod((std::string(store.path) + "/regions").c_str(), 0);
                  if (gps_region_each(&store, see, &seen) != -EACCES)
                      return 2;
                  if (gps_region_publish(&store, &record) != -EACCES)
                      return 3;
                  chmod((std::string(store.path) + "/procs").c_str(), 0);
                  if (gps_lease_probe(&store, &me) != GPS_ALIVE)
                      return 4;
                  if (gps_users_of(&store, &record.id, nullptr, nullptr, 0) != -EACCES)
                      return 5;
                  chmod((std::string(store.path) + "/procs").c_str(), 0700);
                  gps_lease_drop(&lease);
                  return 0;
              }));
}

TEST(Unreadable, ARecordIsBadButNotTakenForAnOrphan) {
    EXPECT_EQ(0, as_nobody([](gps_store &store) {
                  gps_owner me = this_process();
                  gps_lease lease;
                  gps_gc_counts counts;
                  const char *why = nullptr;
                  gps_region_record record = make_record(me, 1);
                  if (gps_lease_take(&store, &me, NULL, &lease) != 0 ||
                      gps_region_publish(&store, &record) != 0)
                      return 1;
                  std::string path = std::string(store.path) + "/regions/" + id_text(record.id);
                  chmod(path.c_str(), 0);
                  if (gps_region_read(&store, &record.id, &record, &why) != -EBADMSG)
                      return 2;
                  if (std::string(why) != "it may not be opened")
                      return 3;
                  if (gps_store_gc(&store, false, &counts) != -EACCES || counts.regions != 0)
                      return 4;
                  gps_lease_drop(&lease);
                  return fs::exists(path) ? 0 : 5;
              }));
}

TEST_F(RegionTest, WithoutDescriptorsEveryCallSaysSo) {
    ASSERT_EQ(0, gps_region_publish(&store, &record));
    Child child([&](Child &) {
        struct rlimit none = {0, 0};
        gps_owner me = this_process();
        gps_lease mine;
        gps_gc_counts counts;
        Seen seen;
        setrlimit(RLIMIT_NOFILE, &none);
        if (read() != -EMFILE || gps_region_publish(&store, &record) != -EMFILE)
            return 1;
        if (gps_region_set_status(&store, &record, GPS_STATE_FREED, 0) != -EMFILE)
            return 2;
        if (gps_region_each(&store, see, &seen) != -EMFILE)
            return 3;
        if (gps_lease_take(&store, &me, NULL, &mine) != -EMFILE)
            return 4;
        if (gps_users_of(&store, &record.id, nullptr, nullptr, 0) != -EMFILE)
            return 5;
        if (gps_store_gc(&store, false, &counts) != -EMFILE)
            return 6;
        if (gps_name_claim(&store, "frames", &me, nullptr) != -EMFILE)
            return 7;
        /* Not known is not dead. */
        return gps_lease_probe(&store, &self) == GPS_ALIVE ? 0 : 8;
    });
    EXPECT_EQ(0, child.reap());
}

TEST_F(RegionTest, RunningOutOfDescriptorsHalfWayLeavesNothingBehind) {
    /* Whatever number of descriptors is left, each call works or cleans up after itself. */
    for (rlim_t spare = 0; spare < 8; spare++) {
        Child child([&](Child &) {
            struct rlimit few = {};
            int next = open("/dev/null", O_RDONLY);
            gps_owner me;
            gps_lease mine;
            close(next);
            few.rlim_cur = few.rlim_max = static_cast<rlim_t>(next) + spare;
            gps_owner_self(&me);
            setrlimit(RLIMIT_NOFILE, &few);
            int rc = gps_lease_take(&store, &me, NULL, &mine);
            if (rc == 0)
                gps_lease_drop(&mine);
            else if (rc != -EMFILE)
                return 1;
            rc = gps_region_publish(&store, &record);
            if (rc == 0)
                gps_region_remove(&store, &record.id);
            else if (rc != -EMFILE)
                return 2;
            rc = open("/dev/null", O_RDONLY);
            return spare == 0 || rc == next ? 0 : 3;
        });
        EXPECT_EQ(0, child.reap()) << spare;
        EXPECT_EQ(std::set<std::string>{}, entries(regions())) << spare;
        EXPECT_EQ(std::set<std::string>{owner_text(self)}, entries(procs())) << spare;
    }
}

class SmallFileSystem : public StoreTest {
  protected:
    void SetUp() override {
        StoreTest::SetUp();
        where = base + "/small";
        fs::create_directory(where);
        if (mount("gps", where.c_str(), "tmpfs", 0, "size=2m,mode=0700") != 0)
            GTEST_SKIP() << "cannot mount: " << strerror(errno);
        ASSERT_EQ(0, gps_store_init(&small, (where + "/root").c_str(), "default", true));
        gps_owner_self(&self);
    }
    void TearDown() override {
        umount2(where.c_str(), MNT_DETACH);
        StoreTest::TearDown();
    }
    /* Leaves about so many bytes. */
    void fill_up_to(uint64_t left) {
        struct statfs now;
        std::ofstream filler(where + "/filler", std::ios::app);
        statfs(where.c_str(), &now);
        uint64_t have = now.f_bavail * static_cast<uint64_t>(now.f_bsize);
        ASSERT_GE(have, left);
        filler << std::string(have - left, 'x');
    }

    std::string where;
    gps_store small = {};
    gps_owner self = {};
};

TEST_F(SmallFileSystem, AFullOneIsAnErrorOfTheSlotThatNeedsAPage) {
    gps_lease lease;
    gps_slot slot = make_slot(make_record(self, 1).id);
    ASSERT_EQ(0, gps_lease_take(&small, &self, NULL, &lease));
    fill_up_to(0);
    EXPECT_EQ(0, gps_lease_write(&lease, 0, &slot)) << "the first page is there from the start";
    EXPECT_EQ(-ENOSPC, gps_lease_write(&lease, 100, &slot));
    EXPECT_EQ(GPS_ALIVE, gps_lease_probe(&small, &self));
    gps_lease_drop(&lease);
}

TEST_F(SmallFileSystem, WithoutALimitThereIsRoom) {
    gps_lease lease;
    ASSERT_EQ(0, mount("gps", where.c_str(), nullptr, MS_REMOUNT, "size=0"));
    ASSERT_EQ(0, gps_lease_take(&small, &self, NULL, &lease));
    gps_lease_drop(&lease);
}

} // namespace
