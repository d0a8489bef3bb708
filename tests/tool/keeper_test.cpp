// gpushare keeper: who keeps, what is kept and how long, and what its clients may do to it.
//
// An Actor is a process of the published directory: a lease of this test's own. So one test is many
// processes, that live and die when it says so. Descriptors are memfds: the keeper never looks.
#include <gtest/gtest.h>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

#include "harness.hpp"
#include "json.hpp"

extern "C" {
#include "keeper.h"
#include "keeping.h"
#include "parcel.h"
#include "request.h"
}

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr uint64_t SECOND = 1000000000;

bool eventually(const std::function<bool()> &condition, int milliseconds = 5000) {
    auto end = Clock::now() + std::chrono::milliseconds(milliseconds);

    while (!condition()) {
        if (Clock::now() > end)
            return false;
        usleep(5000);
    }
    return true;
}

size_t descriptors_of(pid_t pid) {
    size_t count = 0;
    std::error_code error;

    for (fs::directory_iterator it("/proc/" + std::to_string(pid) + "/fd", error), end; it != end;
         it.increment(error))
        count++;
    return count;
}

/* A descriptor that can be told from others: what it has written in it. */
int memory(const std::string &text) {
    int fd = memfd_create("region", MFD_CLOEXEC);

    EXPECT_EQ(static_cast<ssize_t>(text.size()), write(fd, text.data(), text.size()));
    return fd;
}

std::string text_of(int fd) {
    char text[256];
    ssize_t n = pread(fd, text, sizeof text, 0);

    return {text, n > 0 ? static_cast<size_t>(n) : 0};
}

class Actor {
  public:
    explicit Actor(const gps_store &where, const std::string &command = "actor") : store(where) {
        gps_owner_self(&self);
        memset(self.command, 0, sizeof self.command);
        strncpy(self.command, command.c_str(), sizeof self.command - 1);
        EXPECT_EQ(0, gps_lease_take(&store, &self, &lease));
        lives = true;
    }
    ~Actor() {
        if (lives)
            gps_lease_drop(&lease);
    }
    Actor(const Actor &) = delete;
    Actor &operator=(const Actor &) = delete;

    void die() { /* as if killed: the file stays */
        if (lease.hold != MAP_FAILED)
            munmap(lease.hold, 1);
        gps_lease_forget(&lease);
        lives = false;
    }
    void hold(const gps_id &id, gps_slot_via via, gps_slot_state state = GPS_SLOT_OPEN,
              unsigned index = 0) {
        gps_slot slot = {};

        slot.region = id;
        slot.state = state;
        slot.via = via;
        slot.generation = 1;
        gps_slot_seal(&slot);
        EXPECT_EQ(0, gps_lease_write(&lease, index, &slot));
    }
    void let_go(unsigned index = 0) {
        gps_slot slot = {};

        EXPECT_EQ(0, gps_lease_write(&lease, index, &slot));
    }
    gps_region_record record(unsigned seed, gps_keep keep, const std::string &name = "") const {
        gps_region_record made = {};

        memset(made.handle, 0x3c, sizeof made.handle);
        memcpy(made.handle, &seed, sizeof seed);
        made.id = gps_id_of_handle(made.handle);
        made.generation = 1;
        made.backing = GPS_BACKING_VMM;
        made.requested = made.extent = 2 << 20;
        made.created = 1;
        made.owner = made.creator = self;
        made.keep = keep;
        strncpy(made.name, name.c_str(), sizeof made.name - 1);
        made.status.state = GPS_STATE_READY;
        gps_record_seal(&made);
        return made;
    }
    /* As a creator does: the slot, the claim, the deposit, the name. */
    int create(const gps_region_record &made, const std::string &text = "bytes",
               uint64_t patience = 5 * SECOND) {
        int fd = memory(text);
        int rc;

        hold(made.id, GPS_VIA_CREATOR);
        if (made.name[0] != 0) {
            EXPECT_EQ(0, gps_name_claim(&store, made.name, &self, nullptr));
        }
        rc = gps_keeper_deposit(&store, &made, &self, fd, patience);
        if (rc == 0 && made.name[0] != 0) {
            EXPECT_EQ(0, gps_name_point(&store, made.name, &made.id));
        }
        close(fd);
        return rc;
    }
    /* What its descriptor has in it; or "-errno". */
    std::string get(const gps_id &id, uint64_t patience = 5 * SECOND) {
        int fd = -1;
        int rc = gps_keeper_get(&store, &id, &self, patience, &fd);
        std::string text = rc == 0 ? text_of(fd) : std::to_string(rc);

        if (rc == 0)
            close(fd);
        return text;
    }

    const gps_store &store;
    gps_owner self;
    gps_lease lease;
    bool lives = false;
};

class Keeper : public ::testing::Test {
  protected:
    void SetUp() override {
        setenv("GPUSHARE_KEEPER", tool_path().c_str(), 1);
        store = &shared.store;
        before = descriptors_of(getpid());
    }
    void TearDown() override {
        stop();
        gps_gc_counts counts;
        gps_store_gc(store, false, &counts);
        EXPECT_TRUE(left().empty()) << "left: " << left();
        EXPECT_EQ(before, descriptors_of(getpid())) << "a descriptor leaked";
    }
    /* The keeper's pid; 0: there is none. */
    pid_t keeper(uint64_t *regions = nullptr) {
        gps_owner self, who = {};
        uint64_t count = 0;

        gps_owner_self(&self);
        if (gps_keeper_ping(store, &self, SECOND, &who, &count) != 0)
            return 0;
        if (regions != nullptr)
            *regions = count;
        return static_cast<pid_t>(who.pid);
    }
    uint64_t regions() {
        uint64_t count = 0;
        return keeper(&count) == 0 ? 0 : count;
    }
    bool gone(pid_t pid) {
        return eventually([&] { return kill(pid, 0) != 0; });
    }
    void stop(int signal = SIGTERM) {
        pid_t pid = keeper();

        if (pid > 0) {
            kill(pid, signal);
            EXPECT_TRUE(gone(pid));
        }
    }
    std::string left() const {
        std::string names;

        for (const auto &entry : fs::recursive_directory_iterator(store->path))
            if (!entry.is_directory())
                names += entry.path().string().substr(strlen(store->path)) + " ";
        return names;
    }
    bool recorded(const gps_id &id) const {
        gps_region_record record;
        return gps_region_read(store, &id, &record, nullptr) == 0;
    }
    bool dropped(const gps_id &id) {
        return eventually([&] { return !recorded(id); });
    }

    Shared shared;
    const gps_store *store = nullptr;
    size_t before = 0;
};

} // namespace

// --- a region's life
// -------------------------------------------------------------------------------

TEST_F(Keeper, ADepositStartsOneAndOthersGetTheDescriptor) {
    Actor creator(*store, "creator"), importer(*store, "importer");
    auto made = creator.record(1, GPS_KEEP_OWNER, "weights");
    ASSERT_EQ(0, creator.create(made, "the weights"));
    gps_region_record record;
    ASSERT_EQ(0, gps_region_read(store, &made.id, &record, nullptr));
    EXPECT_EQ(keeper(), static_cast<pid_t>(record.owner.pid));
    EXPECT_TRUE(gps_owner_equal(&creator.self, &record.creator));
    importer.hold(made.id, GPS_VIA_RULE, GPS_SLOT_INTENT);
    EXPECT_EQ("the weights", importer.get(made.id));
    EXPECT_EQ(1u, regions());
}
