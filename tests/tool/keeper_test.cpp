// gpushare keeper: who keeps, what is kept and how long, and what its clients may do to it.
//
// An Actor is a process of the published directory: a lease of this test's own. So one test is many
// processes, that live and die when it says so. Descriptors are memfds: the keeper never looks.
#include "harness.hpp"
#include "json.hpp"
#include "patience.hpp"

extern "C" {
#include "directory/file.h"
#include "directory/leader_lock.h"
#include "keeper/keeper_client.h"
#include "keeper/keeper_protocol.h"
#include "util/descriptors.h"
}

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr uint64_t SECOND = 1000000000;

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

/* A socket with so many descriptors that nobody receives. */
int crowd_of(int count) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    for (int i = 0; i < count; i++)
        if (gps_passing_send(ends[0], "", 1, ends[1]) != 0)
            return -1;
    return ends[1];
}

class Actor {
  public:
    explicit Actor(const gps_store &where, const std::string &command = "actor") : store(where) {
        gps_owner_self(&self);
        memset(self.command, 0, sizeof self.command);
        strncpy(self.command, command.c_str(), sizeof self.command - 1);
        EXPECT_EQ(0, gps_lease_take(&store, &self, NULL, &lease));
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
               uint64_t timeout = 5 * SECOND) {
        int fd = memory(text);
        int rc;

        hold(made.id, GPS_VIA_CREATOR);
        if (made.name[0] != 0) {
            EXPECT_EQ(0, gps_name_claim(&store, made.name, &self, nullptr));
        }
        rc = gps_keeper_deposit(&store, &made, &self, fd, timeout);
        if (rc == 0 && made.name[0] != 0) {
            EXPECT_EQ(0, gps_name_point(&store, made.name, &self, &made.id));
        }
        close(fd);
        return rc;
    }
    /* What its descriptor has in it; or "-errno". */
    std::string get(const gps_id &id, uint64_t timeout = 5 * SECOND) {
        int fd = -1;
        int rc = gps_keeper_get(&store, &id, &self, timeout, &fd);
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

gps_keeper_request request_of(const Actor &actor, gps_keeper_ask ask, const gps_id &id) {
    gps_keeper_request request = {};
    request.ask = ask;
    request.sender = actor.self;
    request.record.id = id;
    gps_request_seal(&request);
    return request;
}

class Keeper : public ::testing::Test {
  protected:
    void SetUp() override {
        setenv("GPUSHARE_KEEPER", tool_path().c_str(), 1);
        store = &shared.store;
        before = descriptors_of(getpid());
    }
    void TearDown() override {
        if (successor > 0) {
            send(successor, SIGTERM);
            waitpid(successor, nullptr, 0);
        }
        /* one that lost an election may still be there, and succeed the one that is stopped */
        EXPECT_TRUE(eventually([&] {
            gps_gc_counts counts;
            stop();
            gps_store_gc(store, false, &counts);
            return left().empty();
        })) << "left: "
            << left();
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
    /* Init may take its time to reap it. */
    static bool gone(pid_t pid) {
        return eventually([&] {
            std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
            return stat.empty() || stat.find(") Z ") != std::string::npos;
        });
    }
    /* Its descriptors when it has nothing to do: it answers first, and hangs up then. */
    static size_t at_rest(pid_t pid) {
        usleep(50000);
        return descriptors_of(pid);
    }
    void stop(int signal = SIGTERM) {
        pid_t pid = keeper();
        if (pid > 0) {
            kill(pid, signal);
            EXPECT_TRUE(gone(pid));
        }
    }
    gps_keeper_reply reply_to(gps_keeper_request request) {
        gps_keeper_reply reply = {};
        const int fd = dial();
        int descriptor;
        gps_request_seal(&request);
        EXPECT_EQ(0, gps_passing_send(fd, &request, sizeof request, -1));
        pollfd wait = {fd, POLLIN, 0};
        poll(&wait, 1, 5000);
        EXPECT_EQ(static_cast<ssize_t>(sizeof reply),
                  gps_passing_receive(fd, &reply, sizeof reply, &descriptor));
        close(fd);
        if (descriptor >= 0)
            close(descriptor);
        return reply;
    }
    /* Another keeper takes over all of it: `successor`. */
    void replace() {
        successor = fork();
        if (successor == 0) {
            const int null = open("/dev/null", O_WRONLY);
            dup2(null, 1);
            setenv("GPUSHARE_DIR", fs::path(store->path).parent_path().c_str(), 1);
            execl(tool_path().c_str(), "gpushare", "keeper", "--replace", nullptr);
            _exit(90);
        }
    }
    pid_t successor = 0;
    pid_t stand_by() const {
        pid_t found = 0;
        gps_proc_each(store, note_stand_by, &found);
        return found;
    }
    static bool note_stand_by(void *found, const gps_proc *proc) {
        for (unsigned i = 0; proc->alive && i < proc->slot_count; i++)
            if (proc->slots[i].via == GPS_VIA_KEEPER)
                *static_cast<pid_t *>(found) = static_cast<pid_t>(proc->slots[i].reserved);
        return true;
    }
    /* The stand-by, once there is one beside this keeper. */
    pid_t stand_by_of(pid_t pid) {
        pid_t found = 0;
        EXPECT_TRUE(eventually([&] {
            found = stand_by();
            return keeper() == pid && found > 0 && found != pid && parent(found) == pid;
        })) << found;
        return found;
    }
    static pid_t parent(pid_t pid) {
        const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
        const size_t at = stat.find(") ");
        return at == std::string::npos ? 0 : atoi(stat.c_str() + at + 4);
    }
    /* Another than this one serves, and has a stand-by. */
    pid_t next_after(pid_t pid) {
        EXPECT_TRUE(eventually([&] { return keeper() != pid && keeper() != 0; }));
        stand_by_of(keeper());
        return keeper();
    }
    /* What it answers in the end: on a busy machine a keeper can be silent for longer than it is
     * waited for. */
    int insist(const std::function<int()> &ask) {
        int status = ask();
        for (int i = 0; i < 50 && status == -ETIMEDOUT; i++, status = ask())
            keeper(); /* a ping, after which it is asked again */
        return status;
    }
    /* Memory that has a number in it. */
    bool is_deposited(const Actor &actor, const gps_region_record &made, unsigned number) {
        const int fd = memory(std::to_string(number));
        const int status =
            insist([&] { return gps_keeper_deposit(store, &made, &actor.self, fd, 5 * SECOND); });
        close(fd);
        return status == 0 || status == -EEXIST;
    }
    bool is_had(Actor &actor, const gps_id &id, unsigned number) {
        return insist([&] {
                   const std::string text = actor.get(id);
                   return text == std::to_string(number) ? 0 : atoi(text.c_str());
               }) == 0;
    }
    /* A pid of 0, for none, would be the whole group. */
    static void send(pid_t pid, int signal) {
        ASSERT_GT(pid, 1);
        kill(pid, signal);
    }
    void kill_both() {
        const pid_t first = keeper(), second = stand_by_of(first);
        send(first, SIGSTOP); /* it makes no other one */
        send(second, SIGKILL);
        send(first, SIGKILL);
        EXPECT_TRUE(gone(first) && gone(second));
    }
    std::string left() const {
        std::string names;
        for (const auto &entry : fs::recursive_directory_iterator(store->path))
            if (!entry.is_directory())
                names += entry.path().string().substr(strlen(store->path)) + " ";
        return names;
    }
    std::string entries_of(const std::string &directory) const {
        std::vector<std::string> names;
        std::string text;
        for (const auto &entry : fs::directory_iterator(store->path + ("/" + directory)))
            names.push_back(entry.path().filename());
        std::sort(names.begin(), names.end());
        for (const auto &name : names)
            text += name + " ";
        return text;
    }
    /* Live processes with this directory's lock open. */
    size_t keepers() const {
        size_t count = 0;
        for (const auto &entry : fs::directory_iterator(store->path + std::string("/procs")))
            count += gps_live_keeper(entry.path());
        return count;
    }
    static bool gps_live_keeper(const fs::path &file) {
        gps_proc_header header = {};
        int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
        ssize_t n = read(fd, &header, sizeof header);
        close(fd);
        return n == sizeof header && strcmp(header.owner.command, "gpushare") == 0;
    }
    int dial() const {
        sockaddr_un address = {};
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        address.sun_family = AF_UNIX;
        strncpy(address.sun_path, (std::string(store->path) + "/keeper").c_str(),
                sizeof address.sun_path - 1);
        if (connect(fd, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0)
            return fd;
        close(fd);
        return -1;
    }
    /* The length of what the keeper answers; 0: it hangs up. Closes. */
    static ssize_t hear(int fd) {
        char bytes[512];
        pollfd wait = {fd, POLLIN, 0};
        int descriptor = -1;
        ssize_t n = poll(&wait, 1, 10000) == 1
                        ? gps_passing_receive(fd, bytes, sizeof bytes, &descriptor)
                        : -ETIMEDOUT;
        if (descriptor >= 0)
            close(descriptor);
        close(fd);
        return n == -ECONNRESET ? 0 : n;
    }
    ssize_t talk(const void *bytes, size_t size, const int *fds, size_t count) const {
        int fd = dial();
        std::vector<char> control(CMSG_SPACE(count * sizeof(int)));
        iovec part = {const_cast<void *>(bytes), size};
        msghdr message = {};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        if (count > 0) {
            message.msg_control = control.data();
            message.msg_controllen = control.size();
            cmsghdr *header = CMSG_FIRSTHDR(&message);
            header->cmsg_level = SOL_SOCKET;
            header->cmsg_type = SCM_RIGHTS;
            header->cmsg_len = CMSG_LEN(count * sizeof(int));
            memcpy(CMSG_DATA(header), fds, count * sizeof(int));
        }
        if (sendmsg(fd, &message, MSG_NOSIGNAL) < 0) {
            close(fd);
            return -errno;
        }
        return hear(fd);
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

// --- a region's life ---

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

TEST_F(Keeper, HowLongARegionIsKept) {
    struct {
        gps_keep keep;
        bool creator, user, kept;
    } const cases[] = {
        {GPS_KEEP_OWNER, true, false, true},   {GPS_KEEP_OWNER, true, true, true},
        {GPS_KEEP_OWNER, false, true, false},  {GPS_KEEP_OWNER, false, false, false},
        {GPS_KEEP_USERS, true, false, true},   {GPS_KEEP_USERS, false, true, true},
        {GPS_KEEP_USERS, false, false, false}, {GPS_KEEP_FOREVER, false, false, true},
        {GPS_KEEP_FOREVER, false, true, true},
    };
    unsigned seed = 0;
    for (const auto &each : cases) {
        SCOPED_TRACE(seed);
        Actor creator(*store), user(*store);
        auto made = creator.record(++seed, each.keep);
        ASSERT_EQ(0, creator.create(made));
        if (each.user)
            user.hold(made.id, GPS_VIA_RULE, GPS_SLOT_INTENT);
        if (!each.creator) {
            creator.let_go();
            EXPECT_EQ(0, gps_keeper_released(store, &made.id, &creator.self, SECOND));
        }
        if (each.kept) {
            usleep(100000);
            EXPECT_EQ("bytes", user.get(made.id));
        } else {
            EXPECT_TRUE(dropped(made.id));
            EXPECT_EQ("-2", user.get(made.id));
        }
        if (recorded(made.id)) {
            EXPECT_EQ(0, gps_keeper_drop(store, nullptr, &made.id, &creator.self, SECOND));
        }
        EXPECT_EQ("-2", user.get(made.id));
    }
}

TEST_F(Keeper, OnlyItsCreatorMakesARegion) {
    Actor creator(*store), other(*store);
    auto made = creator.record(1, GPS_KEEP_OWNER);
    EXPECT_EQ(-EPERM, gps_keeper_deposit(store, &made, &other.self, 0, 5 * SECOND));
    EXPECT_FALSE(recorded(made.id));
    ASSERT_EQ(0, creator.create(made, "first"));
    EXPECT_EQ(-EEXIST, creator.create(made, "second")) << "it has it already";
    EXPECT_EQ("first", other.get(made.id));
}

TEST_F(Keeper, TheNamePointsAtTheRegionEvenIfItsCreatorDiesBeforeSayingSo) {
    Actor creator(*store), user(*store);
    auto made = creator.record(1, GPS_KEEP_FOREVER, "frames");
    gps_name_target target;
    ASSERT_EQ(0, gps_name_claim(store, "frames", &creator.self, nullptr));
    ASSERT_EQ(0, gps_keeper_deposit(store, &made, &creator.self, 0, 5 * SECOND));
    creator.die();
    usleep(100000);
    ASSERT_EQ(0, gps_name_resolve(store, "frames", &target));
    EXPECT_EQ(GPS_NAME_REGION, target.kind);
    EXPECT_EQ(-EEXIST, gps_name_claim(store, "frames", &user.self, nullptr));
    EXPECT_EQ(0, gps_name_release(store, "frames", &user.self, &made.id));
    EXPECT_EQ(0, gps_name_resolve(store, "frames", &target)) << "its keeper's, not anybody's";
    EXPECT_EQ(0, gps_keeper_drop(store, "frames", nullptr, &user.self, SECOND));
    EXPECT_EQ(-ENOENT, gps_name_resolve(store, "frames", &target));
}

// --- death ---

TEST_F(Keeper, TheNextOneAdoptsWhatIsHeldAndWaitsForItsDescriptor) {
    Actor creator(*store), user(*store), late(*store);
    auto made = creator.record(1, GPS_KEEP_USERS, "frames"),
         lone = creator.record(2, GPS_KEEP_FOREVER);
    gps_gc_counts counts;
    ASSERT_EQ(0, creator.create(made, "before"));
    ASSERT_EQ(0, gps_keeper_deposit(store, &lone, &creator.self, 0, SECOND));
    user.hold(made.id, GPS_VIA_RULE);
    kill_both();
    gps_gc_counts before_next;
    ASSERT_EQ(0, gps_store_gc(store, false, &before_next));
    EXPECT_EQ(1u, before_next.in_use);
    EXPECT_EQ(1u, before_next.regions) << "the one that nobody holds: its slot is another's";
    EXPECT_EQ(-EEXIST, gps_name_claim(store, "frames", &late.self, nullptr));
    EXPECT_EQ(std::to_string(-ETIMEDOUT), late.get(made.id, SECOND / 2))
        << "it started the next one";
    EXPECT_EQ(1u, regions());
    int fd = memory("again");
    EXPECT_EQ(-EPERM, gps_keeper_deposit(store, &made, &user.self, fd, SECOND));
    EXPECT_EQ(0, gps_keeper_deposit(store, &made, &creator.self, fd, SECOND));
    close(fd);
    creator.die();
    EXPECT_EQ("again", late.get(made.id));
    EXPECT_EQ(0, gps_store_gc(store, false, &counts));
    EXPECT_EQ(0u, counts.regions + counts.names);
    user.let_go();
    EXPECT_TRUE(dropped(made.id));
    EXPECT_EQ(entries_of("names"), "");
}

TEST_F(Keeper, WhatIsAdoptedGoesWithItsHoldersTooWhateverItsKeep) {
    Actor creator(*store), user(*store);
    auto made = creator.record(1, GPS_KEEP_FOREVER);
    ASSERT_EQ(0, creator.create(made));
    kill_both();
    EXPECT_EQ(std::to_string(-ETIMEDOUT), user.get(made.id, SECOND / 2));
    creator.die();
    EXPECT_TRUE(dropped(made.id)) << "nobody has a descriptor any more";
    EXPECT_EQ("-2", user.get(made.id));
}

/* A named region ends with its users, and its name is free; of a block there can be another copy.
 */
TEST_F(Keeper, WhatNobodyCanDepositAgainMakesRoom) {
    Actor user(*store), late(*store);
    gps_region_record made, block;
    {
        Actor creator(*store);
        made = creator.record(1, GPS_KEEP_USERS, "frames");
        ASSERT_EQ(0, creator.create(made));
        block = creator.record(2, GPS_KEEP_USERS);
        memcpy(block.handle, GPS_BLOCK_MARK, sizeof GPS_BLOCK_MARK - 1);
        block.id = gps_id_of_handle(block.handle);
        gps_record_seal(&block);
        ASSERT_EQ(0, creator.create(block));
        user.hold(made.id, GPS_VIA_RULE);
        user.hold(block.id, GPS_VIA_MERGE, GPS_SLOT_OPEN, 1);
        creator.die();
        kill_both();
    }
    EXPECT_EQ(std::to_string(-ETIMEDOUT), late.get(made.id, SECOND / 2)) << "it may still come";
    EXPECT_EQ("-2", late.get(block.id)) << "nobody brings it";
    EXPECT_TRUE(eventually([&] { return entries_of("names").empty(); }));
    auto again = late.record(3, GPS_KEEP_USERS, "frames");
    EXPECT_EQ(0, late.create(again, "anew"));
    block.creator = late.self;
    int fd = memory("equal");
    EXPECT_EQ(0, gps_keeper_deposit(store, &block, &late.self, fd, SECOND));
    close(fd);
    EXPECT_EQ("equal", late.get(block.id));
    EXPECT_TRUE(recorded(made.id));
    user.let_go();
    EXPECT_TRUE(dropped(made.id));
}

// --- blocks that are off the GPU ---

class Offloaded : public Keeper {
  protected:
    void SetUp() override {
        Keeper::SetUp();
        one = std::make_unique<Actor>(*store);
        block = one->record(2, GPS_KEEP_USERS);
        memcpy(block.handle, GPS_BLOCK_MARK, sizeof GPS_BLOCK_MARK - 1);
        block.id = gps_id_of_handle(block.handle);
        gps_record_seal(&block);
        ASSERT_EQ(0, one->create(block));
    }
    void TearDown() override {
        one.reset();
        Keeper::TearDown();
    }
    static int bytes(off_t size, unsigned seals) {
        const int fd = memfd_create("bytes", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        EXPECT_EQ(9, write(fd, "what left", 9));
        EXPECT_EQ(0, ftruncate(fd, size));
        EXPECT_EQ(0, fcntl(fd, F_ADD_SEALS, seals));
        return fd;
    }
    int offload(int fd) {
        const int status = gps_keeper_offload(store, &block.id, &one->self, fd, SECOND);
        if (fd >= 0)
            close(fd);
        return status;
    }
    int reload(const Actor &actor, std::string *text = nullptr, uint64_t keep = UINT64_MAX) {
        int fd = -1;
        const int status = gps_keeper_reload(store, &block.id, &actor.self, keep, SECOND / 5, &fd);
        if (text)
            *text = status == 0 ? text_of(fd) : "";
        if (fd >= 0)
            close(fd);
        return status;
    }
    int deposit(const Actor &actor) {
        const int fd = memory("again");
        const int status = gps_keeper_deposit(store, &block, &actor.self, fd, SECOND);
        close(fd);
        return status;
    }
    uint32_t state() {
        gps_region_record record = {};
        EXPECT_EQ(0, gps_region_read(store, &block.id, &record, nullptr));
        return record.status.state;
    }
    static constexpr unsigned SEALS = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;
    std::unique_ptr<Actor> one;
    gps_region_record block;
};

TEST_F(Offloaded, OnlyWithAllItsBytesThatNobodyCanChange) {
    const off_t size = static_cast<off_t>(block.extent);
    EXPECT_EQ(-ENODATA, reload(*one)) << "it is on the GPU";
    EXPECT_EQ(-ENODATA, offload(-1)) << "the keeper has no bytes";
    EXPECT_EQ(-EINVAL, offload(bytes(size, F_SEAL_GROW | F_SEAL_SHRINK)));
    EXPECT_EQ(-EINVAL, offload(bytes(size - 4096, SEALS)));
    EXPECT_EQ(-EINVAL, offload(bytes(size + 4096, SEALS)));
    EXPECT_EQ("bytes", one->get(block.id));
    EXPECT_EQ(GPS_STATE_READY, state());
    EXPECT_EQ(0, offload(bytes(size, SEALS)));
    EXPECT_EQ(GPS_STATE_OFFLOADED, state());
    EXPECT_EQ(0, offload(-1)) << "it is so already";
    EXPECT_EQ(std::to_string(-ENODATA), one->get(block.id));
    gps_id none = block.id;
    none.bytes[0] ^= 1;
    EXPECT_EQ(-ENOENT, gps_keeper_offload(store, &none, &one->self, -1, SECOND));
    int fd = -1;
    EXPECT_EQ(-ENOENT, gps_keeper_reload(store, &none, &one->self, 0, SECOND, &fd));
}

TEST_F(Offloaded, OneBringsItBackOrAnotherOne) {
    const off_t size = static_cast<off_t>(block.extent);
    std::string text;
    Actor other(*store);
    other.hold(block.id, GPS_VIA_MERGE, GPS_SLOT_OPEN, 1);
    ASSERT_EQ(0, offload(bytes(size, SEALS)));
    {
        Actor killed(*store);
        EXPECT_EQ(0, reload(killed));
        EXPECT_EQ(-ETIMEDOUT, reload(other)) << "another is at it";
        EXPECT_EQ(0, reload(killed)) << "it may ask again";
        killed.die();
    }
    EXPECT_EQ(0, reload(other, &text));
    EXPECT_EQ("what left", text.substr(0, 9));
    EXPECT_EQ(-ETIMEDOUT, reload(*one)) << "it lives";
    usleep(2000000);
    EXPECT_EQ(0, reload(*one)) << "it has had its time";
    EXPECT_EQ(0, deposit(other));
    EXPECT_EQ(-EEXIST, deposit(*one));
    EXPECT_EQ("again", one->get(block.id));
    EXPECT_EQ(GPS_STATE_READY, state());
    EXPECT_EQ(0, offload(-1)) << "the bytes were kept";
    EXPECT_EQ(0, reload(*one, nullptr, 0));
    EXPECT_EQ(0, deposit(*one));
    EXPECT_TRUE(eventually([&] {
        const int status = offload(-1);
        if (status == 0) { // not swept yet
            reload(*one, nullptr, 0);
            deposit(*one);
        }
        return status == -ENODATA;
    })) << "nothing was to be kept";
}

TEST_F(Offloaded, TheStandByAndTheNextKeeperHaveTheBytes) {
    std::string text;
    ASSERT_EQ(0, offload(bytes(static_cast<off_t>(block.extent), SEALS)));
    const pid_t first = keeper();
    stand_by_of(first);
    send(first, SIGKILL);
    next_after(first);
    EXPECT_EQ(0, reload(*one, &text));
    EXPECT_EQ("what left", text.substr(0, 9));
    // one of an older version does not ask for them
    gps_keeper_request request = request_of(*one, GPS_KEEPER_REPLACE, {{1}});
    gps_keeper_reply reply = reply_to(request);
    request.record.generation = reply.regions;
    EXPECT_EQ(-EAGAIN, reply_to(request).status);
    replace();
    EXPECT_TRUE(eventually([&] { return keeper() == successor; }));
    EXPECT_EQ(std::to_string(-ENODATA), one->get(block.id));
    EXPECT_EQ(0, reload(*one, &text));
    EXPECT_EQ("what left", text.substr(0, 9));
    EXPECT_EQ(0, deposit(*one));
    EXPECT_EQ("again", one->get(block.id));
    one->let_go();
    EXPECT_TRUE(dropped(block.id));
}

// --- the stand-by ---

class StandBy : public Keeper {
  protected:
    void SetUp() override {
        Keeper::SetUp();
        creator = std::make_unique<Actor>(*store, "camera");
        held = creator->record(1, GPS_KEEP_USERS, "held");
        {
            Actor passing(*store);
            lone = passing.record(2, GPS_KEEP_FOREVER, "lone");
            EXPECT_EQ(0, passing.create(lone, "of nobody"));
        }
        EXPECT_EQ(0, creator->create(held, "held"));
        first = keeper();
        second = stand_by_of(first);
    }
    void TearDown() override {
        creator.reset();
        gps_keeper_drop(store, "lone", nullptr, &lone.creator, SECOND);
        Keeper::TearDown();
    }
    void expect_both(const std::string &when) {
        EXPECT_EQ("held", creator->get(held.id)) << when;
        EXPECT_EQ("of nobody", creator->get(lone.id)) << when;
        EXPECT_EQ("held lone ", entries_of("names")) << when;
        EXPECT_EQ(2u, regions()) << when;
    }

    std::unique_ptr<Actor> creator;
    gps_region_record held, lone;
    pid_t first = 0, second = 0;
};

TEST_F(StandBy, GoesOnWithEverythingWhicheverIsKilled) {
    const size_t open = at_rest(first);
    for (int round = 0; round < 12; round++) {
        const pid_t serves = keeper(), stands_by = stand_by_of(serves);
        send(round % 3 ? serves : stands_by, SIGKILL);
        expect_both("round " + std::to_string(round));
        EXPECT_EQ(round % 3 ? next_after(serves) : keeper(), round % 3 ? stands_by : serves);
        EXPECT_TRUE(eventually([&] { return stand_by_of(keeper()) != stands_by; }));
        EXPECT_TRUE(gone(round % 3 ? serves : stands_by));
    }
    EXPECT_TRUE(eventually([&] { return at_rest(keeper()) == open; })) << at_rest(keeper());
    gps_gc_counts counts;
    EXPECT_EQ(0, gps_store_gc(store, false, &counts));
    EXPECT_EQ(0u, counts.procs + counts.names + counts.regions + counts.temps);
    expect_both("after gc");
}

TEST_F(StandBy, IsNoZombieWhenItWasKilled) {
    send(second, SIGKILL);
    EXPECT_TRUE(eventually([&] { return stand_by_of(first) != second; }));
    EXPECT_TRUE(
        eventually([&] { return read_file("/proc/" + std::to_string(second) + "/stat").empty(); }));
}

TEST_F(StandBy, ThatIsStoppedHarmsNothing) {
    send(second, SIGSTOP);
    expect_both("stopped");
    EXPECT_EQ(0, creator->create(creator->record(3, GPS_KEEP_OWNER), "more"));
    send(first, SIGKILL);
    EXPECT_TRUE(gone(first));
    gps_gc_counts counts;
    EXPECT_EQ(0, gps_store_gc(store, false, &counts));
    EXPECT_EQ(0u, counts.procs + counts.names + counts.regions) << "it has them";
    const auto begin = Clock::now();
    EXPECT_EQ(std::to_string(-ETIMEDOUT), creator->get(held.id));
    EXPECT_LT(Clock::now() - begin, std::chrono::milliseconds(patient(600)));
    send(second, SIGCONT);
    EXPECT_TRUE(eventually([&] { return keeper() == second; }));
    EXPECT_EQ("held", creator->get(held.id));
    EXPECT_EQ("of nobody", creator->get(lone.id));
    EXPECT_EQ("more", creator->get(creator->record(3, GPS_KEEP_OWNER).id));
}

TEST_F(StandBy, GoesOnWithWhatTheKeeperHadBegun) {
    Actor other(*store);
    for (unsigned round = 0; round < 40; round++) {
        const auto made = other.record(100 + round, GPS_KEEP_FOREVER, "n" + std::to_string(round));
        const pid_t serves = next_after(0);
        std::thread killer([&] {
            usleep(round * 25);
            send(serves, SIGKILL);
        });
        const int status = other.create(made, std::to_string(round));
        EXPECT_TRUE(status == 0 || status == -EEXIST) << status;
        EXPECT_EQ(std::to_string(round), creator->get(made.id));
        const int dropped = gps_keeper_drop(store, nullptr, &made.id, &creator->self, SECOND);
        killer.join();
        EXPECT_TRUE(dropped == 0 || dropped == -ENOENT) << dropped;
        EXPECT_EQ("-2", creator->get(made.id)) << round;
        other.let_go();
        gps_keeper_released(store, &made.id, &other.self, SECOND);
        EXPECT_TRUE(eventually([&] { return !recorded(made.id); })) << round;
    }
    expect_both("in the end");
    EXPECT_TRUE(eventually([&] { return at_rest(keeper()) <= 14; })) << at_rest(keeper());
}

TEST_F(StandBy, RemovesWhatTheKeeperWasWriting) {
    gps_region_record kept;
    char temp[GPS_TEMP_NAME];
    ASSERT_EQ(0, gps_region_read(store, &held.id, &kept, nullptr));
    gps_temp_format(&kept.owner, temp);
    for (const std::string directory : {"/names/", "/regions/"})
        fs::create_symlink("nowhere", store->path + directory + temp);
    send(first, SIGKILL);
    EXPECT_EQ(second, next_after(first));
    expect_both("after its death");
    EXPECT_LACKS(left(), temp);
}

TEST_F(StandBy, EndsWithTheKeeperWhoeverIsTold) {
    for (const bool other : {false, true}) {
        const pid_t serves = keeper(), stands_by = stand_by_of(serves);
        send(other ? stands_by : serves, SIGTERM);
        EXPECT_TRUE(gone(serves) && gone(stands_by)) << other;
        EXPECT_EQ("", entries_of("regions") + entries_of("names"));
        EXPECT_EQ(0, keeper());
        EXPECT_EQ(0, creator->create(held, "held"));
    }
}

TEST_F(StandBy, EndsWhenThereIsNothingToKeep) {
    creator->die();
    EXPECT_EQ(0, gps_keeper_drop(store, "lone", nullptr, &lone.creator, SECOND));
    EXPECT_TRUE(gone(first) && gone(second));
    EXPECT_EQ("", left());
}

TEST_F(StandBy, ThatServesIsTheOneThatIsShown) {
    send(first, SIGKILL);
    next_after(first);
    const Json region = Json::parse(shared.tool({"ls", "--json"}).out)[0];
    EXPECT_EQ(second, static_cast<pid_t>(region["keeper"]["pid"].number));
    std::string text = shared.tool({"show", "lone"}).out;
    EXPECT_HAS(text, "keeper     gpushare " + std::to_string(second) + ", alive\n");
    text = shared.tool({"doctor", "-t", "1ms"}, false, {}).out;
    EXPECT_HAS(text, "pid " + std::to_string(second) + ", keeps 2 regions; pid " +
                         std::to_string(stand_by_of(second)) + " stands by\n");
}

// As replicas of 14 GB have them, of a user who is not above the limits, and of whom no other test
// has descriptors on their way. The two are killed in turns.
class ThousandsOfBlocks : public Keeper {
  protected:
    static constexpr unsigned BLOCKS = 4096;
    static constexpr uid_t USER = 54321;

    void run() {
        Actor creator(*store), importer(*store);
        wrong = crowd_of(200) < 0;
        for (unsigned i = 0; i < BLOCKS; i++) {
            wrong += !is_deposited(creator, creator.record(i, GPS_KEEP_FOREVER), i);
            if (i % 512 == 511)
                send(i % 1024 == 511 ? keeper() : stand_by_of(keeper()), SIGKILL);
        }
        for (unsigned i = 0; i < BLOCKS; i++)
            wrong += !is_had(importer, creator.record(i, GPS_KEEP_FOREVER).id, i);
        wrong += regions() != BLOCKS;
        stop();
    }
    /* The exit status of the child. */
    int run_as_user() {
        const rlimit limit = {256, 16384};
        gps_store own;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || (geteuid() == 0 && setuid(USER) != 0) ||
            access(tool_path().c_str(), X_OK) != 0)
            return 77;
        const Temporary place("/dev/shm");
        if (gps_store_init(&own, (place.path + "/pub").c_str(), "default", true) != 0)
            return 77;
        store = &own;
        run();
        return wrong == 0 ? 0 : 1;
    }
    unsigned wrong = 0;
};

TEST_F(ThousandsOfBlocks, AreKeptAndFewDescriptorsAreOnTheirWay) {
    const pid_t child = fork();
    if (child == 0)
        _exit(run_as_user());
    int status = -1;
    waitpid(child, &status, 0);
    if (WEXITSTATUS(status) == 77)
        GTEST_SKIP() << "no user who may run " << tool_path() << " can have 16384 descriptors";
    EXPECT_EQ(0, status);
}

// --- another keeper in its place ---

class Replacing : public StandBy {
  protected:
    static constexpr unsigned LATER = 10; /* so much later every other region is dropped */

    gps_region_record numbered(unsigned i) const {
        return creator->record(1000 + i, GPS_KEEP_FOREVER);
    }
    bool is_kept(unsigned i) {
        return is_deposited(*creator, numbered(i), i) && has(i);
    }
    bool has(unsigned i) {
        return is_had(*creator, numbered(i).id, i);
    }
    bool is_dropped(unsigned i) {
        const gps_id id = numbered(i).id;
        insist([&] { return gps_keeper_drop(store, nullptr, &id, &creator->self, SECOND); });
        return !has(i);
    }
    /* What others deposit and drop meanwhile is there and gone afterwards. */
    void come_and_go(const std::function<void()> &disturb) {
        setenv("GPUSHARE_DIR", fs::path(store->path).parent_path().c_str(), 1);
        std::atomic<bool> over = false;
        std::atomic<unsigned> made = 0, wrong = 0;
        std::thread others([&] {
            for (unsigned i = 0; !over; i++, made++) {
                wrong += !is_kept(i);
                wrong += i % 2 && i >= LATER && !is_dropped(i - LATER);
                usleep(2000); /* a try that none of them undoes takes about as long */
            }
        });
        usleep(100000);
        replace();
        EXPECT_TRUE(eventually([&] {
            disturb();
            return keeper() == successor;
        })) << keeper();
        EXPECT_TRUE(gone(first) && gone(second));
        usleep(100000);
        over = true;
        others.join();
        unsetenv("GPUSHARE_DIR");
        EXPECT_EQ(0u, wrong);
        EXPECT_EQ("held", creator->get(held.id));
        EXPECT_EQ("of nobody", creator->get(lone.id));
        for (unsigned i = 0; i < made; i++) {
            const bool dropped = i % 2 && i + LATER < made;
            EXPECT_EQ(!dropped, has(i)) << i;
            EXPECT_TRUE(is_dropped(i)) << i;
        }
        send(successor, SIGKILL); /* it has a stand-by of its own */
        EXPECT_TRUE(eventually([&] { return keeper() != successor && keeper() != 0; }));
        expect_both("after the second");
    }
};

TEST_F(Replacing, GetsEverythingWhileOthersComeAndGo) {
    come_and_go([] {});
}

/* As on a machine that has more to do than it can. */
TEST_F(Replacing, GetsEverythingFromOneThatAnswersSlowly) {
    come_and_go([this] {
        send(first, SIGSTOP);
        usleep(30000);
        send(first, SIGCONT);
        usleep(10000);
    });
}

/* As after a get that the keeper had no time for. */
TEST_F(Replacing, WaitsForEveryDescriptorThatCanBeHad) {
    auto request = request_of(*creator, GPS_KEEPER_REPLACE, {{1}});
    request.record.generation = UINT64_MAX;
    gps_keeper_reply reply = reply_to(request);
    ASSERT_EQ(-EAGAIN, reply.status);
    request.record.generation = reply.regions;
    request.record.extent = 1;
    EXPECT_EQ(-EAGAIN, reply_to(request).status);
    request.record.extent = 0;
    EXPECT_EQ(0, reply_to(request).status) << "a hand-over begins, which is not confirmed";
    expect_both("in the end");
}

TEST_F(Keeper, EndsWhenItsDirectoryIsRemovedOrReplaced) {
    for (bool replaced : {false, true}) {
        Temporary place("/dev/shm");
        gps_store lost;
        gps_owner who = {};
        uint64_t count;
        ASSERT_EQ(0, gps_store_init(&lost, (place.path + "/pub").c_str(), "default", true));
        Actor creator(lost);
        ASSERT_EQ(0, creator.create(creator.record(1, GPS_KEEP_FOREVER)));
        ASSERT_EQ(0, gps_keeper_ping(&lost, &creator.self, SECOND, &who, &count));
        fs::remove_all(place.path + "/pub");
        if (replaced) {
            ASSERT_EQ(0, gps_store_init(&lost, (place.path + "/pub").c_str(), "default", true));
            write_file(lost.path + std::string("/regions/x"), "another's");
        }
        EXPECT_TRUE(gone(static_cast<pid_t>(who.pid)));
        EXPECT_EQ(replaced, fs::exists(lost.path + std::string("/regions/x")));
    }
}

TEST_F(Keeper, OfTwentyThatStartOneAtOnceAllFindTheSame) {
    std::vector<pid_t> children;
    std::vector<std::unique_ptr<Actor>> actors;
    for (unsigned i = 0; i < 20; i++)
        actors.push_back(std::make_unique<Actor>(*store));
    for (unsigned i = 0; i < 20; i++) {
        const auto made = actors[i]->record(i + 1, GPS_KEEP_OWNER);
        actors[i]->hold(made.id, GPS_VIA_CREATOR);
        pid_t started = fork();
        if (started == 0)
            _exit(is_deposited(*actors[i], made, i) ? 0 : 1);
        children.push_back(started);
    }
    for (unsigned i = 0; i < 20; i++) {
        int status = -1;
        waitpid(children[i], &status, 0);
        EXPECT_EQ(0, status);
    }
    EXPECT_TRUE(eventually([&] { return regions() == 20; })) << regions();
    EXPECT_EQ(keepers(), 1u);
}

TEST_F(Keeper, StartsBesideWhatIsNoFileOfOurs) {
    Actor creator(*store);
    const std::string temp =
        "/procs/.tmp.1.999999.1." + std::string(16, 'a') + "." + std::string(16, 'b');
    fs::create_directory(store->path + ("/regions/" + std::string(32, 'a')));
    fs::create_directory(store->path + ("/procs/1.999999.1." + std::string(16, 'a')));
    fs::create_directory(store->path + std::string("/names/odd"));
    fs::create_symlink("nowhere", store->path + temp);
    ASSERT_EQ(0, creator.create(creator.record(1, GPS_KEEP_OWNER)));
    EXPECT_NE(0, keeper());
    fs::remove(store->path + temp);
}

/* One region of one creator's. */
class Kept : public Keeper {
  protected:
    void SetUp() override {
        Keeper::SetUp();
        creator = std::make_unique<Actor>(*store);
        made = creator->record(1, GPS_KEEP_OWNER);
        ASSERT_EQ(0, creator->create(made));
        pid = keeper();
    }
    void TearDown() override {
        creator.reset();
        Keeper::TearDown();
    }
    std::unique_ptr<Actor> creator;
    gps_region_record made;
    pid_t pid = 0;
};

TEST_F(Kept, ASecondOneSaysWhoKeeps) {
    Result second = shared.tool({"keeper"});
    EXPECT_ERR(second, 1,
               "gpushare: keeper: " + std::string(store->path) +
                   " has a keeper already: gpushare, pid " + std::to_string(keeper()) +
                   ", which a program has started; to take over what it keeps: gpushare "
                   "keeper --replace\n");
    EXPECT_EQ(0, shared.tool({"keeper", "--on-demand"}).status);
}

TEST_F(Kept, TheProgramThatStartsOneSeesNoChild) {
    EXPECT_EQ(-1, waitpid(-1, nullptr, WNOHANG | __WALL));
    EXPECT_EQ(ECHILD, errno);
    std::string proc = "/proc/" + std::to_string(keeper());
    EXPECT_EQ("/dev/null", fs::read_symlink(proc + "/fd/1"));
    EXPECT_LACKS(read_file(proc + "/environ"), "GTEST");
    EXPECT_LE(descriptors_of(keeper()), 12u);
}

TEST_F(Keeper, WithoutAnExecutableADepositSaysSo) {
    Actor creator(*store);
    setenv("GPUSHARE_KEEPER", "/nonexistent/gpushare", 1);
    EXPECT_EQ(-ENOENT, creator.create(creator.record(1, GPS_KEEP_OWNER)));
    setenv("GPUSHARE_KEEPER", shared.root.file("text", "no program").c_str(), 1);
    EXPECT_EQ(-EACCES, creator.create(creator.record(1, GPS_KEEP_OWNER)));
}

// --- clients ---

TEST_F(Kept, GarbageEndsTheConnectionAndLeavesNothingOpen) {
    size_t open = at_rest(pid);
    int fds[200];
    std::fill(std::begin(fds), std::end(fds), 0);
    for (size_t size : {0u, 1u, 599u, 600u, 601u, 4096u, 100000u})
        for (size_t count : {0u, 1u, 2u, 3u, 200u}) {
            std::string bytes(size, '\x5a');
            EXPECT_EQ(0, talk(bytes.data(), size, fds, count)) << size << " " << count;
        }
    auto request = request_of(*creator, GPS_KEEPER_GET, made.id);
    EXPECT_EQ(96, talk(&request, sizeof request, fds, 0));
    EXPECT_EQ(0, talk(&request, sizeof request, fds, 1)) << "a descriptor where none belongs";
    request.ask = GPS_KEEPER_DEPOSIT;
    request.record = made;
    gps_request_seal(&request);
    EXPECT_EQ(0, talk(&request, sizeof request, fds, 0));
    EXPECT_EQ(0, talk(&request, sizeof request, fds, 2));
    EXPECT_EQ(96, talk(&request, sizeof request, fds, 1));
    EXPECT_EQ(pid, keeper());
    EXPECT_TRUE(eventually([&] { return descriptors_of(pid) == open; })) << descriptors_of(pid);
}

TEST_F(Kept, WhoSaysNothingDelaysNobody) {
    size_t open = at_rest(pid);
    std::vector<int> silent;
    for (int i = 0; i < 600; i++)
        silent.push_back(dial());
    auto begin = Clock::now();
    EXPECT_EQ("bytes", creator->get(made.id));
    EXPECT_LE(Clock::now() - begin, std::chrono::milliseconds(patient(2000)));
    EXPECT_TRUE(eventually([&] { return descriptors_of(pid) == open; }, 8000));
    for (int fd : silent)
        close(fd);
}

TEST_F(Kept, TwoThousandAtOnceAreAllAnswered) {
    size_t open = at_rest(pid), answered = 0;
    std::vector<int> waiting;
    auto request = request_of(*creator, GPS_KEEPER_GET, made.id);
    send(pid, SIGSTOP);
    for (int i = 0; i < 2000; i++) {
        waiting.push_back(dial());
        ASSERT_EQ(0, gps_passing_send(waiting.back(), &request, sizeof request, -1));
    }
    send(pid, SIGCONT);
    for (int fd : waiting)
        answered += hear(fd) == 96;
    EXPECT_EQ(2000u, answered);
    EXPECT_TRUE(eventually([&] { return descriptors_of(pid) == open; }));
}

/* One that does not read for 20 ms is no longer counted. */
TEST_F(Kept, FewDescriptorsAreOnTheirWayAtOnce) {
    std::vector<pollfd> waiting;
    auto request = request_of(*creator, GPS_KEEPER_GET, made.id);
    send(pid, SIGSTOP);
    for (int i = 0; i < 200; i++) {
        waiting.push_back({dial(), POLLIN, 0});
        ASSERT_EQ(0, gps_passing_send(waiting.back().fd, &request, sizeof request, -1));
    }
    const auto begin = Clock::now();
    send(pid, SIGCONT);
    for (int most = 0, count = 0; most < 64; most = std::max(most, count)) {
        count = poll(waiting.data(), waiting.size(), 0);
        if (Clock::now() - begin > std::chrono::milliseconds(19))
            break;
        ASSERT_LE(count, 64);
    }
    for (const pollfd &each : waiting)
        EXPECT_EQ(96, hear(each.fd));
}

TEST_F(Kept, AnotherUserIsRefused) {
    SKIP_IF(geteuid() != 0, "needs root to be another user");
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        const auto request = request_of(*creator, GPS_KEEPER_PING, {});
        int at = open(store->path, O_PATH | O_DIRECTORY);
        /* as if the directory were open to it */
        if (chmod(store->path, 0755) != 0 || chmod(shared.root.path.c_str(), 0755) != 0 ||
            chmod((std::string(store->path) + "/keeper").c_str(), 0666) != 0 || at < 0)
            _exit(90);
        chmod(fs::path(store->path).parent_path().c_str(), 0755);
        if (setuid(65534) != 0)
            _exit(91);
        int fd = dial();
        gps_passing_send(fd, &request, sizeof request, -1);
        _exit(fd < 0 ? 92 : hear(fd) > 0 ? 1 : 0);
    }
    waitpid(child, &status, 0);
    chmod(store->path, 0700);
    chmod(fs::path(store->path).parent_path().c_str(), 0700);
    EXPECT_EQ(0, WEXITSTATUS(status));
}

TEST_F(Keeper, DropSaysWhatCanBeDropped) {
    Actor creator(*store, "camera");
    EXPECT_EQ(shared.tool({"drop", "frames"}).err,
              "gpushare: drop: nothing that is kept is called 'frames'; nothing is kept in " +
                  std::string(store->path) + "\n");
    auto made = creator.record(1, GPS_KEEP_FOREVER, "frames");
    ASSERT_EQ(0, creator.create(made));
    shared.region(creator.self, "legacy", 9);
    EXPECT_EQ(shared.tool({"drop", "x"}).err, "gpushare: drop: nothing that is kept is called 'x'; "
                                              "there is: frames (see: gpushare ls)\n");
    Result legacy = shared.tool({"drop", "legacy"});
    EXPECT_ERR_HAS(legacy, 1, "'legacy' is memory of camera");
    shared.region(creator.self, "legacy", 10);
    EXPECT_EQ(shared.tool({"drop", "legacy"}).err, legacy.err) << "also of two of this name";
    EXPECT_EQ(shared.tool({"drop"}).status, 2);
    const Result done = shared.tool({"drop", "frames"});
    EXPECT_OUT(done, 0,
               "Dropped frames (id " + id_text(made.id).substr(0, 8) + ", " +
                   "2 MiB); 1 process still has it open.\n");
    EXPECT_HAS(shared.tool({"drop", "frames"}).err, "nothing is kept");
}

TEST_F(Keeper, WhatIsDroppedIsListedAsLongAsItIsInUse) {
    Actor creator(*store, "camera"), user(*store, "viewer");
    auto made = creator.record(1, GPS_KEEP_FOREVER, "frames");
    ASSERT_EQ(0, creator.create(made));
    user.hold(made.id, GPS_VIA_RULE);
    EXPECT_HAS(shared.tool({"drop", "frames"}).out, "; 2 processes still have it open");
    std::string text = shared.tool({"ls"}).out;
    EXPECT_HAS(text, "closing  camera ", "1: viewer");
    text = shared.tool({"show", pid_text(user.self)}).out;
    EXPECT_HAS(text, "holds      1 region, 2 MiB", "pins       1 region, 2 MiB");
    EXPECT_EQ("", entries_of("names"));
    Actor late(*store, "late");
    late.hold(made.id, GPS_VIA_RULE, GPS_SLOT_INTENT);
    EXPECT_EQ("-2", late.get(made.id)) << "nobody can open it any more";
    EXPECT_EQ("bytes", user.get(made.id)) << "who has it gets it again";
    late.let_go();
    auto again = creator.record(2, GPS_KEEP_FOREVER, "frames");
    EXPECT_EQ(0, creator.create(again)) << "the name is free";
    user.die();
    creator.die();
    EXPECT_TRUE(dropped(made.id));
    EXPECT_TRUE(recorded(again.id));
}

TEST_F(Keeper, DropTakesGlobsAndSeveralNames) {
    Actor creator(*store, "camera");
    std::vector<gps_region_record> made;
    for (const char *name : {"frames-0", "frames-1", "weights", "other"}) {
        made.push_back(
            creator.record(static_cast<uint8_t>(made.size() + 1), GPS_KEEP_FOREVER, name));
        ASSERT_EQ(0, creator.create(made.back()));
    }
    const Result result = shared.tool({"drop", "frames-*", "weights", "none*"});
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 3) << result.out;
    for (const char *name : {"Dropped frames-0 (", "Dropped frames-1 (", "Dropped weights ("})
        EXPECT_HAS(result.out, name);
    EXPECT_EQ(result.err, "gpushare: drop: nothing that is kept is called 'none*'; there is: other "
                          "(see: gpushare ls)\n");
}

// --- what the tool says of it ---

TEST_F(Keeper, LsNamesTheCreatorAndCountsTheOthers) {
    Actor creator(*store, "camera"), user(*store, "viewer");
    auto made = creator.record(1, GPS_KEEP_FOR, "frames");
    made.keep_for = 600 * SECOND;
    gps_record_seal(&made);
    ASSERT_EQ(0, creator.create(made));
    user.hold(made.id, GPS_VIA_RULE);
    std::string text = shared.tool({"ls"}).out;
    EXPECT_HAS(text, "camera " + pid_text(creator.self) + "  ", "1: viewer");
    Json region = Json::parse(shared.tool({"ls", "--json"}).out)[0];
    EXPECT_EQ(region["backing"].text, "vmm");
    EXPECT_EQ(region["owner"]["command"].text, "camera");
    EXPECT_EQ(region["keeper"]["command"].text, "gpushare");
    EXPECT_EQ(region["keep"].text, "10min");
    text = shared.tool({"show", "frames"}).out;
    EXPECT_HAS(text, "keep       10min after its last user\n", "access     write\n",
               "keeper     gpushare " + std::to_string(keeper()) + ", alive\n");
    creator.die();
    text = shared.tool({"ls"}).out;
    EXPECT_HAS(text, "camera " + pid_text(creator.self) + " (ended)  ", "ready");
}

TEST_F(Keeper, DoctorSaysWhetherOneLivesOrCanBeStarted) {
    auto doctor = [&](const Environment &more) {
        return shared.tool({"doctor", "-t", "1ms"}, false, more).out;
    };
    std::string text = doctor({});
    EXPECT_HAS(text, "keeper       none now; programs that need one start");
    text = doctor({{"GPUSHARE_KEEPER", "/nonexistent"}});
    EXPECT_HAS(text, "warn  keeper       programs cannot start one");
    Actor creator(*store);
    ASSERT_EQ(0, creator.create(creator.record(1, GPS_KEEP_OWNER)));
    text = doctor({});
    EXPECT_HAS(text, "pid " + std::to_string(keeper()) + ", keeps 1 region; pid " +
                         std::to_string(stand_by_of(keeper())) + " stands by\n");
}
