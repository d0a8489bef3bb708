/*
 * store_support.h - a published directory of a test's own on real tmpfs, and other processes to
 * share it with.
 *
 * Each test ends with as many descriptors as it began with, or it fails.
 */
#pragma once

#include <dirent.h>

extern "C" {
#include "directory/file.h"
#include "directory/lease.h"
#include "directory/name.h"
#include "directory/orphans.h"
#include "directory/ownership.h"
#include "directory/region.h"
#include "directory/store.h"
}

inline std::set<std::string> entries(const std::string &directory) {
    std::set<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(directory))
        names.insert(entry.path().filename());
    return names;
}

inline gps_owner this_process() {
    gps_owner self;
    gps_owner_self(&self);
    return self;
}

inline size_t descriptors() {
    return entries("/proc/self/fd").size();
}

/* A valid record whose handle, and so whose id, follows from `seed`. */
inline gps_region_record make_record(const gps_owner &owner, unsigned seed,
                                     const std::string &name = "") {
    gps_region_record record = {};

    memset(record.handle, 0x5a, sizeof record.handle);
    memcpy(record.handle, &seed, sizeof seed);
    record.id = gps_id_of_handle(record.handle);
    record.generation = 1;
    record.backing = GPS_BACKING_IPC;
    record.requested = 1000;
    record.extent = 2 << 20;
    record.created = 1;
    record.owner = owner;
    strncpy(record.name, name.c_str(), sizeof record.name - 1);
    record.status.state = GPS_STATE_READY;
    gps_record_seal(&record);
    return record;
}

inline gps_slot make_slot(const gps_id &region, uint32_t state = GPS_SLOT_OPEN) {
    gps_slot slot = {};
    slot.region = region;
    slot.state = state;
    slot.via = GPS_VIA_PROGRAM;
    slot.address = state == GPS_SLOT_OPEN ? 0x7000000 : 0;
    slot.generation = state == GPS_SLOT_OPEN ? 1 : 0;
    gps_slot_seal(&slot);
    return slot;
}

inline std::string id_text(const gps_id &id) {
    char text[GPS_ID_HEX];
    gps_id_format(&id, text);
    return text;
}

inline std::string owner_text(const gps_owner &owner) {
    char text[GPS_PROC_NAME];
    gps_owner_format(&owner, text);
    return text;
}

/* An image that never lived, with our pid. */
inline gps_owner dead_owner(uint64_t nonce = 0xdead) {
    gps_owner owner = this_process();
    owner.nonce = nonce;
    return owner;
}

/* Another process, joined to the test by two pipes. It runs its function and exits with its result;
 * it is killed when the test forgets it. */
class Child {
  public:
    explicit Child(const std::function<int(Child &)> &body) {
        int down[2], up[2];
        if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0)
            abort();
        pid = fork();
        in = pid == 0 ? down[0] : up[0];
        out = pid == 0 ? up[1] : down[1];
        close(pid == 0 ? down[1] : down[0]);
        close(pid == 0 ? up[0] : up[1]);
        if (pid == 0)
            _exit(body(*this));
    }
    Child(Child &&other) noexcept
        : pid(std::exchange(other.pid, 0)), in(std::exchange(other.in, -1)),
          out(std::exchange(other.out, -1)) {
    }
    Child &operator=(Child &&other) noexcept {
        std::swap(pid, other.pid);
        std::swap(in, other.in);
        std::swap(out, other.out);
        return *this;
    }
    Child(const Child &) = delete;
    ~Child() {
        if (pid > 0)
            kill_and_reap();
        if (in >= 0)
            close(in);
        if (out >= 0)
            close(out);
    }

    template <typename T> void send(const T &value) const {
        if (write(out, &value, sizeof value) != static_cast<ssize_t>(sizeof value) && pid == 0)
            _exit(99);
    }
    /* False when the other side is gone. */
    template <typename T> bool receive(T &value) const {
        size_t done = 0;
        while (done < sizeof value) {
            ssize_t n = read(in, reinterpret_cast<char *>(&value) + done, sizeof value - done);
            if (n <= 0)
                return false;
            done += static_cast<size_t>(n);
        }
        return true;
    }
    /* For the child: until the parent says go or closes. */
    void await() const {
        char byte;
        receive(byte);
    }
    void go() const {
        send('g');
    }

    int output() const {
        return out;
    }
    void signal(int number) const {
        kill(pid, number);
    }
    /* Until it has stopped. */
    void stop() const {
        int status;
        kill(pid, SIGSTOP);
        waitpid(pid, &status, WUNTRACED);
    }
    int reap() {
        int status = 0;
        waitpid(std::exchange(pid, 0), &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
    }
    void kill_and_reap() {
        kill(pid, SIGKILL);
        reap();
    }

    pid_t pid = 0;

  private:
    int in = -1;
    int out = -1;
};

class StoreTest : public ::testing::Test {
  protected:
    void SetUp() override {
        char pattern[] = "/dev/shm/gps-unit-XXXXXX";
        signal(SIGPIPE, SIG_IGN);
        base = mkdtemp(pattern);
        before = descriptors();
        ASSERT_EQ(0, gps_store_init(&store, (base + "/root").c_str(), "default", true));
        directory = store.path;
    }
    void TearDown() override {
        EXPECT_EQ(before, descriptors()) << "a descriptor leaked";
        std::filesystem::remove_all(base);
    }

    /* Another process that has a lease, tells its owner and waits to be killed or told to go; then
     * it ends without dropping its lease. */
    Child leased(gps_owner *owner, const std::function<int(Child &, gps_lease &)> &body = {}) {
        Child child([&](Child &self) {
            gps_owner me = this_process();
            gps_lease lease;
            if (gps_lease_take(&store, &me, NULL, &lease) != 0)
                return 90;
            if (body) {
                int rc = body(self, lease);
                if (rc != 0)
                    return rc;
            }
            self.send(me);
            self.await();
            return 0;
        });
        EXPECT_TRUE(child.receive(*owner)) << "child exited with " << child.reap();
        return child;
    }

    std::string procs() const {
        return directory + "/procs";
    }
    std::string regions() const {
        return directory + "/regions";
    }
    std::string names() const {
        return directory + "/names";
    }
    std::string region_file(const gps_id &id) const {
        return regions() + "/" + id_text(id);
    }
    std::string link_of(const std::string &name) const {
        return std::filesystem::read_symlink(names() + "/" + name);
    }

    std::string base, directory;
    gps_store store = {};
    size_t before = 0;
};

/* A test in which this process has a lease. */
class LeasedTest : public StoreTest {
  protected:
    void SetUp() override {
        StoreTest::SetUp();
        gps_owner_self(&self);
        ASSERT_EQ(0, gps_lease_take(&store, &self, NULL, &lease));
    }
    void TearDown() override {
        gps_lease_drop(&lease);
        StoreTest::TearDown();
    }

    gps_owner self = {};
    gps_lease lease = {};
};
