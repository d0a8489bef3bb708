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
    std::string path(const std::string &name) {
        return directory + "/" + name;
    }
};

TEST_F(KeptTest, GcLeavesALiveKeepersSocketAlone) {
    gps_gc_counts counts;
    const int lock = gps_leader_lock_take(&store);
    ASSERT_GE(lock, 0);
    EXPECT_EQ(-EAGAIN, gps_leader_lock_take(&store));
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
                         GPS_KEEPER_RECLAIM, GPS_KEEPER_OFFLOAD, GPS_KEEPER_RELOAD}) {
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

TEST(Request, AReloadSaysHowMuchMayBeKept) {
    gps_keeper_request request = {};
    gps_owner_self(&request.sender);
    request.ask = GPS_KEEPER_RELOAD;
    request.record.id.bytes[3] = 1;
    request.record.extent = UINT64_MAX;
    EXPECT_EQ("", check(request));
    request.ask = GPS_KEEPER_OFFLOAD;
    EXPECT_EQ("a field is set that must be zero", check(request));
}

TEST(Request, AReplacementNamesAFamilyAndThreeNumbers) {
    gps_keeper_request request = {};
    gps_owner_self(&request.sender);
    request.ask = GPS_KEEPER_REPLACE;
    request.record.id.bytes[3] = 1;
    request.record.generation = 17;
    request.record.extent = 2;
    request.record.requested = 3;
    EXPECT_EQ("", check(request));
    request.record.created = 1;
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
    request.ask = GPS_KEEPER_RELOAD + 1;
    EXPECT_EQ("the request is of an unknown kind", check(request));
    request.sender.nonce = 0;
    EXPECT_EQ("owner's nonce is 0", check(request));
    gps_request_seal(&request);
    request.version = 2;
    EXPECT_EQ("version is not supported", check(request, false));
}

} // namespace
