/* keeper_test.cpp - what is said to the keeper, and whose a VMM region is while there is none. */
#include "store_support.h"

extern "C" {
#include "directory/leader_lock.h"
#include "keeper/keeper_protocol.h"
}

namespace {

gps_region_record vmm_record(const gps_owner &keeper, const gps_owner &creator, unsigned seed,
                             const std::string &name = "") {
    gps_region_record record = make_record(keeper, seed, name);

    record.backing = GPS_BACKING_VMM;
    record.creator = creator;
    gps_record_seal(&record);
    return record;
}

class KeptTest : public LeasedTest {
  protected:
    /* A keeper that has published a region of ours under the name, and is gone. */
    gps_region_record orphan(const std::string &name = "frames") {
        gps_owner keeper;
        gps_region_record record = {};
        Child child = leased(&keeper, [&](Child &, gps_lease &mine) {
            gps_region_record made = vmm_record(mine.self, self, 1, name);

            if (gps_region_publish(&store, &made) != 0)
                return 80;
            return name.empty() ? 0 : -gps_name_point(&store, name.c_str(), &mine.self, &made.id);
        });

        record = vmm_record(keeper, self, 1, name);
        child.kill_and_reap();
        return record;
    }
    void hold(const gps_id &id) {
        gps_slot slot = make_slot(id);

        EXPECT_EQ(0, gps_lease_write(&lease, 0, &slot));
    }
    void let_go() {
        gps_slot slot = {};

        EXPECT_EQ(0, gps_lease_write(&lease, 0, &slot));
    }
    std::string path(const std::string &name) {
        return directory + "/" + name;
    }
};

TEST_F(KeptTest, ACreatorsClaimBecomesTheNameOfTheKeepersRegion) {
    gps_owner keeper;
    gps_name_target target;
    Child child = leased(&keeper, [&](Child &, gps_lease &mine) {
        gps_region_record made = vmm_record(mine.self, self, 1, "frames");
        return -gps_region_publish(&store, &made);
    });
    gps_region_record record = vmm_record(keeper, self, 1, "frames");

    ASSERT_EQ(0, gps_name_claim(&store, "frames", &self, nullptr));
    EXPECT_EQ(0, gps_name_point(&store, "frames", &self, &record.id));
    EXPECT_EQ(0, gps_name_point(&store, "frames", &self, &record.id)) << "again, as its keeper's";
    EXPECT_EQ(0, gps_name_release(&store, "frames", &self, &record.id));
    ASSERT_EQ(0, gps_name_resolve(&store, "frames", &target)) << "not ours to release";
    EXPECT_EQ(0, gps_name_release(&store, "frames", &keeper, &record.id));
    EXPECT_EQ(-ENOENT, gps_name_resolve(&store, "frames", &target));
}

TEST_F(KeptTest, WhatIsHeldOutlivesItsKeeper) {
    gps_gc_counts counts;
    gps_owner holder;
    ASSERT_EQ(0, gps_name_claim(&store, "frames", &self, nullptr));
    gps_region_record record = orphan();

    hold(record.id);
    ASSERT_EQ(0, gps_store_gc(&store, false, &counts));
    EXPECT_EQ(1u, counts.in_use);
    EXPECT_EQ(0u, counts.regions + counts.names);
    EXPECT_EQ(-EEXIST, gps_name_claim(&store, "frames", &self, &holder));
    EXPECT_TRUE(gps_owner_equal(&record.owner, &holder));

    let_go();
    ASSERT_EQ(0, gps_store_gc(&store, false, &counts));
    EXPECT_EQ(1u, counts.regions);
    EXPECT_EQ(1u, counts.names);
}

TEST_F(KeptTest, TheNextKeeperTakesItOver) {
    gps_gc_counts counts;
    gps_region_record found;
    ASSERT_EQ(0, gps_name_claim(&store, "frames", &self, nullptr));
    gps_region_record record = orphan();
    gps_region_record ours = vmm_record(self, self, 1, "frames");

    hold(record.id);
    ASSERT_EQ(0, gps_region_publish(&store, &ours));
    ASSERT_EQ(0, gps_region_read(&store, &record.id, &found, nullptr));
    EXPECT_TRUE(gps_owner_equal(&self, &found.owner));
    let_go();
    ASSERT_EQ(0, gps_store_gc(&store, false, &counts));
    EXPECT_EQ(0u, counts.regions + counts.names) << "it is kept again";
    EXPECT_EQ(0, gps_name_release(&store, "frames", &self, &ours.id));
}

TEST_F(KeptTest, GcLeavesALiveKeepersSocketAlone) {
    gps_gc_counts counts;
    int lock = -1, second = -1;

    ASSERT_EQ(0, gps_leader_lock_take(&store, &lock));
    EXPECT_EQ(-EAGAIN, gps_leader_lock_take(&store, &second));
    close(open(path("keeper").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    ASSERT_EQ(0, gps_store_gc(&store, false, &counts));
    EXPECT_EQ(0u, counts.temps);
    EXPECT_TRUE(std::filesystem::exists(path("keeper")));
    close(lock); /* it dies */
    ASSERT_EQ(0, gps_store_gc(&store, true, &counts));
    EXPECT_EQ(2u, counts.temps);
    EXPECT_TRUE(std::filesystem::exists(path("keeper")));
    ASSERT_EQ(0, gps_store_gc(&store, false, &counts));
    EXPECT_EQ(2u, counts.temps);
    EXPECT_FALSE(std::filesystem::exists(path("keeper")));
    EXPECT_FALSE(std::filesystem::exists(path("keeper.lock")));
}

std::string check(gps_keeper_request request, bool seal = true) {
    if (seal)
        gps_request_seal(&request);
    const char *why = gps_request_check(&request, sizeof request);
    return why == nullptr ? "" : why;
}

TEST(Request, EachKindNamesWhatIsItsOwnAndNoMore) {
    gps_keeper_request request = {};
    gps_owner_self(&request.sender);
    const gps_region_record full = vmm_record(request.sender, request.sender, 1, "frames");

    for (uint32_t ask : {GPS_KEEPER_GET, GPS_KEEPER_RELEASED, GPS_KEEPER_DROP, GPS_KEEPER_PING,
                         GPS_KEEPER_RECLAIM}) {
        request.ask = ask;
        request.record = full;
        EXPECT_NE("", check(request)) << ask;
        request.record = {};
        request.record.id = full.id;
        const bool nothing = ask == GPS_KEEPER_PING || ask == GPS_KEEPER_RECLAIM;
        EXPECT_EQ(nothing ? "a field is set that must be zero" : "", check(request)) << ask;
    }
    request.record = {};
    EXPECT_EQ("", check(request)) << "a ping";
    request.ask = GPS_KEEPER_DROP;
    strcpy(request.record.name, "frames");
    EXPECT_EQ("", check(request));
    strcpy(request.record.name, "../frames");
    EXPECT_EQ("name is not valid", check(request));
    memset(request.record.name, 'a', sizeof request.record.name);
    EXPECT_EQ("name is not terminated", check(request));
    request.record = full;
    request.ask = GPS_KEEPER_DEPOSIT;
    EXPECT_EQ("", check(request));
    request.record.owner = {};
    EXPECT_EQ("", check(request)) << "the keeper will be its owner";
    request.record.creator = {};
    EXPECT_EQ("owner's pid is out of range", check(request));
    request.record = full;
    request.record.backing = GPS_BACKING_IPC;
    EXPECT_EQ("backing is not VMM", check(request));
}

TEST(Request, AReplacementNamesAFamilyAndTwoNumbers) {
    gps_keeper_request request = {};
    gps_owner_self(&request.sender);
    request.ask = GPS_KEEPER_REPLACE;
    request.record.id.bytes[3] = 1;
    request.record.generation = 17;
    request.record.extent = 2;
    EXPECT_EQ("", check(request));
    request.record.requested = 1;
    EXPECT_EQ("a field is set that must be zero", check(request));
}

TEST(Request, TheFrameIsChecked) {
    gps_keeper_request request = {};
    gps_owner_self(&request.sender);
    request.ask = GPS_KEEPER_PING;
    EXPECT_EQ("magic does not match", check(request, false));
    gps_request_seal(&request);
    EXPECT_STREQ("size does not match", gps_request_check(&request, sizeof request - 1));
    request.ask = GPS_KEEPER_GET;
    EXPECT_EQ("checksum does not match", check(request, false));
    request.ask = GPS_KEEPER_RECLAIM + 1;
    EXPECT_EQ("the request is of an unknown kind", check(request));
    request.sender.nonce = 0;
    EXPECT_EQ("owner's nonce is 0", check(request));
    gps_request_seal(&request);
    request.version = 2;
    EXPECT_EQ("version is not supported", check(request, false));
}

} // namespace
