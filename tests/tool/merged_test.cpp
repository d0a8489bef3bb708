// What people see of role = merge: ls, show, drop and the keeper, with blocks that no program made.
#include "harness.hpp"
#include "patience.hpp"

extern "C" {
#include "keeper/keeper_client.h"
#include "util/clock.h"
}

namespace {

constexpr uint64_t MiB = 1 << 20;

gps_id gpu(uint8_t number) { // the UUID is where a slot of one's own has a region
    gps_id id{};
    for (unsigned i = 0; i < sizeof(id.bytes); i++)
        id.bytes[i] = static_cast<uint8_t>(number + i);
    return id;
}

// As shim/merge makes it; not every block has a name.
gps_region_record block_of(const gps_owner &owner, const gps_owner &creator, uint8_t seed,
                           uint64_t size, uint8_t device = 0x50, gps_keep keep = GPS_KEEP_USERS) {
    gps_region_record record{};
    memcpy(record.handle, GPS_BLOCK_MARK, 8);
    record.handle[40] = seed;
    record.id = gps_id_of_handle(record.handle);
    record.generation = 1;
    record.backing = GPS_BACKING_VMM;
    record.requested = record.extent = size;
    record.created = gps_clock_now();
    memcpy(record.device, gpu(device).bytes, sizeof(record.device));
    record.owner = owner;
    record.creator = creator;
    record.keep = keep;
    record.flags = GPS_REGION_READ_ONLY;
    if (seed % 2)
        snprintf(record.name, sizeof(record.name), GPS_BLOCK_NAME "1.32.%02x", seed);
    record.status.state = GPS_STATE_READY;
    gps_record_seal(&record);
    return record;
}

gps_id publish(const Shared &shared, const gps_region_record &record) {
    EXPECT_EQ(0, gps_region_publish(&shared.store, &record));
    return record.id;
}

Hold mapped(const gps_id &id, gps_slot_via via = GPS_VIA_MERGE) {
    return {id, 0x7f0000000000, GPS_SLOT_OPEN, via};
}

Hold own(uint8_t device, uint64_t bytes) {
    return {gpu(device), bytes, GPS_SLOT_OPEN, GPS_VIA_OWN};
}

gps_id id_of(uint8_t seed) {
    return block_of({}, {}, seed, MiB).id;
}

// Two servers have blocks 1 and 2, one has 2 twice; nobody has 3. A third has nothing equal.
struct Servers {
    Shared shared;
    Peer keeper{shared, "gpushare"};
    Peer one{shared,
             "server",
             {mapped(id_of(1), GPS_VIA_CREATOR), mapped(id_of(2)), mapped(id_of(2)),
              own(0x50, 6 * MiB)}};
    Peer two{shared,
             "server",
             {mapped(id_of(1)),
              mapped(id_of(2), GPS_VIA_CREATOR),
              own(0x50, 10 * MiB),
              {id_of(3), 0, GPS_SLOT_INTENT, GPS_VIA_MERGE}}};
    Peer three{shared, "other", {own(0x50, 4 * MiB)}};

    Servers() {
        publish(shared, block_of(keeper.owner, one.owner, 1, 32 * MiB));
        publish(shared, block_of(keeper.owner, two.owner, 2, 8 * MiB));
        publish(shared, block_of(keeper.owner, one.owner, 3, 2 * MiB));
    }
};

struct Merged : testing::Test {
    Servers servers;
};

TEST_F(Merged, LsFoldsBlocksIntoALineForEachGpu) {
    Result result = servers.shared.tool({"ls"});
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(result.out,
              "Merged blocks:\n"
              "GPU           BLOCKS    HELD  UNUSED  PROCESSES  MAPPED   SAVED     OWN\n"
              "GPU-50515253       3  42 MiB   2 MiB          3  88 MiB  48 MiB  20 MiB\n");
    publish(servers.shared, block_of(servers.keeper.owner, servers.one.owner, 4, 4 * MiB, 0x60));
    servers.shared.region(servers.one.owner, "frames");
    result = servers.shared.tool({"ls", "--all"});
    EXPECT_EQ(result.out.find("NAME "), 0u) << result.out;
    EXPECT_HAS(result.out, "\n\nMerged blocks:\n", "\nGPU-60616263       1   4 MiB");
    EXPECT_LACKS(result.out, "block.");
}

TEST_F(Merged, LsGivesScriptsEachProcess) {
    auto list = Json::parse(servers.shared.tool({"ls", "--json"}).out);
    ASSERT_EQ(list.size(), 1u);
    const Json &gpu = list[0];
    EXPECT_EQ(gpu["id"].kind, Json::Null);
    EXPECT_EQ(gpu["name"].kind, Json::Null);
    EXPECT_EQ(gpu["state"].text, "merged");
    EXPECT_EQ(gpu["device"].text, "GPU-50515253-5455-5657-5859-5a5b5c5d5e5f");
    EXPECT_EQ(gpu["size"].number, 42.0 * MiB);
    EXPECT_EQ(gpu["blocks"].text, "3");
    EXPECT_EQ(gpu["unused"].number, 2.0 * MiB);
    EXPECT_EQ(gpu["mapped"].number, 88.0 * MiB);
    EXPECT_EQ(gpu["saved"].number, 48.0 * MiB);
    EXPECT_EQ(gpu["own"].number, 20.0 * MiB);
    ASSERT_EQ(gpu["users"].size(), 3u);
    double saved = 0;
    for (size_t i = 0; i < 3; i++)
        saved += gpu["users"][i]["saved"].number;
    EXPECT_NEAR(saved, 48.0 * MiB, 8) << "the parts are the whole";
}

TEST_F(Merged, ShowTellsAProcessItsPart) {
    const std::string pid = pid_text(servers.one.owner);
    const std::string text = servers.shared.tool({"show", pid}).out;
    EXPECT_HAS(text, "  exports    0 regions\n  holds      0 regions\n",
               "  merged     3 blocks, 48 MiB (50331648 bytes)\n",
               "  saved      26.6 MiB (27962026 bytes), its part ",
               "  own        6 MiB (6291456 bytes) of what merge rules took\n");
    auto json = Json::parse(servers.shared.tool({"show", pid, "--json"}).out);
    EXPECT_EQ(json[0]["holds"].size(), 0u);
    EXPECT_EQ(json[0]["exports"].size(), 0u);
    EXPECT_EQ(json[0]["merged"]["blocks"].text, "3");
    EXPECT_EQ(json[0]["merged"]["mapped"].number, 48.0 * MiB);
    EXPECT_EQ(json[0]["merged"]["own"].number, 6.0 * MiB);
    Peer plain(servers.shared, "viewer");
    EXPECT_LACKS(servers.shared.tool({"show", pid_text(plain.owner)}).out, "merged");
}

TEST_F(Merged, TopSplitsABlockByItsMappings) {
    auto usage = Json::parse(servers.shared.tool({"top", "--once", "--json", "--sort=pid"}).out);
    EXPECT_EQ(usage["total"]["in_use"].number, 62.0 * MiB) << "blocks, and what is not merged";
    EXPECT_EQ(usage["total"]["kept"].number, 2.0 * MiB);
    EXPECT_EQ(usage["total"]["saved"].number, 48.0 * MiB);
    EXPECT_EQ(usage["total"]["without_sharing"].number, 110.0 * MiB);
    ASSERT_EQ(usage["processes"].size(), 3u);
    const Json &one = usage["processes"][0], &three = usage["processes"][2];
    EXPECT_EQ(one["own"].number, 6.0 * MiB);
    EXPECT_EQ(one["shared"].number, 40.0 * MiB) << "block 2 is mapped twice, and there once";
    EXPECT_NEAR(one["proportional"].number, (6 + 16 + 16.0 / 3) * MiB, 3);
    EXPECT_EQ(one["blocks"].text, "3");
    EXPECT_EQ(three["own"].number, 4.0 * MiB);
    double sum = 0;
    for (size_t i = 0; i < 3; i++)
        sum += usage["processes"][i]["proportional"].number;
    EXPECT_EQ(sum, 60.0 * MiB) << "all that is not kept";
    EXPECT_HAS(servers.shared.tool({"top", "--once"}).out,
               "  merged  2: server " + pid_text(servers.one.owner) + ", server " +
                   pid_text(servers.two.owner) + "\n");
}

TEST_F(Merged, ShowOfABlockNamesTheMergeRule) {
    const std::string text = servers.shared.tool({"show", "block.1.32.01"}).out;
    EXPECT_HAS(text, "a merge rule");
    auto json = Json::parse(servers.shared.tool({"show", "--json", "block.1.32.01"}).out);
    EXPECT_EQ(json[0]["holds"][0]["via"].text, "merge rule");
}

TEST_F(Merged, WhatIsNotThereIsNotAnsweredWithBlocks) {
    for (const char *verb : {"show", "drop"})
        EXPECT_LACKS(servers.shared.tool({verb, "x"}).err, "block.") << verb;
    const std::string said = servers.shared.tool({"show", "weights"}).err;
    EXPECT_HAS(said, pid_text(servers.keeper.owner) + " (keeper)");
    EXPECT_HAS(said, "ls); a merge rule makes no region of its name\n");
}

// --- with a real keeper ---

class MergedKeeper : public ::testing::Test {
  protected:
    void SetUp() override {
        setenv("GPUSHARE_KEEPER", tool_path().c_str(), 1);
        gps_owner_self(&self);
        ASSERT_EQ(0, gps_lease_take(&shared.store, &self, NULL, &lease));
    }
    void TearDown() override {
        gps_lease_drop(&lease);
        gps_owner who{};
        uint64_t regions;
        if (gps_keeper_ping(&shared.store, &self, GPS_SECOND, &who, &regions) == 0)
            kill(static_cast<pid_t>(who.pid), SIGTERM);
    }
    void hold(const gps_id &id, gps_slot_via via, unsigned index) {
        gps_slot slot{};
        slot.region = id;
        slot.state = GPS_SLOT_OPEN;
        slot.via = via;
        slot.generation = 1;
        gps_slot_seal(&slot);
        ASSERT_EQ(0, gps_lease_write(&lease, index, &slot));
    }
    void let_go(unsigned index) {
        const gps_slot slot{};
        ASSERT_EQ(0, gps_lease_write(&lease, index, &slot));
    }
    gps_id offer(uint8_t seed, gps_keep keep) {
        const gps_region_record record = block_of(self, self, seed, 2 * MiB, 0x50, keep);
        const int fd = memfd_create("block", MFD_CLOEXEC);
        hold(record.id, GPS_VIA_CREATOR, seed);
        EXPECT_TRUE(!record.name[0] ||
                    gps_name_claim(&shared.store, record.name, &self, nullptr) == 0);
        EXPECT_EQ(0, gps_keeper_deposit(&shared.store, &record, &self, fd, 5 * GPS_SECOND));
        close(fd);
        return record.id;
    }
    bool recorded(const gps_id &id) const {
        gps_region_record record;
        return gps_region_read(&shared.store, &id, &record, nullptr) == 0;
    }

    Shared shared;
    gps_owner self;
    gps_lease lease;
};

TEST_F(MergedKeeper, DropMergedEndsWhatNobodyUsesAndNothingElse) {
    const gps_id used = offer(1, GPS_KEEP_FOREVER), unused = offer(2, GPS_KEEP_FOREVER),
                 more = offer(3, GPS_KEEP_FOREVER);
    let_go(2);
    let_go(3);
    const Temporary place;
    Result result = shared.tool(
        {"drop", "weights"}, false,
        {{"GPUSHARE_CONFIG", place.file("c", "[region weights]\nprogram = x\nrole = merge\n")}});
    EXPECT_ERR(result, 1,
               "gpushare: drop: 'weights' is a rule with role = merge, whose blocks "
               "have no name: of all such rules 6 MiB are kept, of that 4 MiB without a "
               "user. Those end with `gpushare drop --merged`, or when the rule's "
               "`keep` says; the others stay until their last user has ended\n");
    result = shared.tool({"drop", "--merged"});
    EXPECT_OUT(result, 0, "Dropped 2 blocks, 4 MiB.\n");
    EXPECT_TRUE(recorded(used));
    EXPECT_FALSE(recorded(unused));
    EXPECT_FALSE(recorded(more));
    EXPECT_EQ(shared.tool({"drop", "--merged"}).out, "No merged block is without a user.\n");
    EXPECT_EQ(shared.tool({"drop", "--merged", "x"}).status, 2);
    EXPECT_EQ(shared.tool({"drop"}).status, 2);
}

TEST_F(MergedKeeper, ANumberOfBytesIsNoUser) {
    const gps_id id = offer(1, GPS_KEEP_USERS);
    hold(id, GPS_VIA_OWN, 9);
    let_go(1);
    EXPECT_TRUE(eventually([&] { return !recorded(id); }));
}

} // namespace
