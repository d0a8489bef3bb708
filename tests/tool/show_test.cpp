// gpushare show: finding what is meant, and telling all of it.
#include "harness.hpp"

namespace {

std::string field(const std::string &text, const std::string &label) {
    size_t at = text.find("\n  " + label + " ");
    if (at == std::string::npos)
        return "(none)";
    size_t start = text.find_first_not_of(' ', at + 3 + label.size());
    return text.substr(start, text.find('\n', start) - start);
}

} // namespace

struct Show : testing::Test {
    Shared shared;
};

struct ShowOne : Show {
    Peer producer{shared, "producer"};
};

TEST_F(ShowOne, ARegionByNameTellsEverything) {
    auto record = shared.region(producer.owner, "frames", 3, GPS_STATE_READY, 60u << 20);
    Peer rule(shared, "consumer", {{record.id, 0x7f12345000}});
    Peer program(shared, "viewer", {{record.id, 0x7f99000000, GPS_SLOT_OPEN, GPS_VIA_PROGRAM}});
    Peer coming(shared, "late", {{record.id, 0, GPS_SLOT_INTENT}});
    Result result = shared.tool({"show", "frames"});
    const std::string &text = result.out;
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(text.find("Region frames\n"), 0u);
    EXPECT_EQ(field(text, "name"), "frames");
    EXPECT_EQ(field(text, "id"), id_text(record.id));
    EXPECT_EQ(field(text, "state"), "ready");
    EXPECT_HAS(field(text, "since"), ", 3") << text;
    EXPECT_EQ(field(text, "requested"), "60 MiB (62914560 bytes)");
    EXPECT_EQ(field(text, "extent"), "60 MiB (62914560 bytes)");
    EXPECT_EQ(field(text, "offset"), "0 in its block");
    EXPECT_EQ(field(text, "device"), "GPU-5d6e7f90-a1b2-c3d4-e5f6-0718293a4b5c");
    EXPECT_EQ(field(text, "backing"), "ipc");
    EXPECT_HAS(field(text, "created"), ", 9");
    EXPECT_EQ(field(text, "export"), "number 3 of its owner");
    EXPECT_EQ(field(text, "owner"), "producer " + pid_text(producer.owner) + ", alive");
    EXPECT_EQ(field(text, "pid ns"), std::to_string(producer.owner.pid_ns));
    EXPECT_EQ(field(text, "uid"), std::to_string(producer.owner.uid));
    EXPECT_HAS(field(text, "started"), " s ago") << text;
    EXPECT_EQ(field(text, "users"), "3");
    EXPECT_HAS(text, "0x7f12345000  a rule ", "0x7f99000000  the program ", "opening ");
}

TEST_F(ShowOne, ARegionWithoutANameSaysWhy) {
    auto record = shared.region(producer.owner, "");
    Result result = shared.tool({"show", id_text(record.id)});
    EXPECT_EQ(field(result.out, "name"), "none, the program itself exported it");
    EXPECT_EQ(result.out.find("Region " + id_text(record.id) + "\n"), 0u);
    EXPECT_EQ(field(result.out, "users"), "0");
}

TEST_F(ShowOne, AHandOverSaysUntilWhen) {
    shared.region(producer.owner, "frames", 1, GPS_STATE_FINAL);
    Result result = shared.tool({"show", "frames"});
    EXPECT_HAS(field(result.out, "until"), "; then its owner frees it, importer or not")
        << result.out;
}

TEST_F(ShowOne, ARegionByTheBeginningOfItsId) {
    auto record = shared.region(producer.owner, "frames");
    std::string id = id_text(record.id);
    EXPECT_EQ(shared.tool({"show", id}).status, 0);
    EXPECT_EQ(shared.tool({"show", id.substr(0, 8)}).status, 0);
    EXPECT_EQ(shared.tool({"show", id.substr(0, 6)}).status, 0);
    EXPECT_EQ(shared.tool({"show", id.substr(0, 5)}).status, 1) << "too short to be an id";
}

TEST_F(Show, AnIdThatIsNotUniqueNamesThoseItCouldBe) {
    // Some 5,000 hashes of 24 bits suffice to find two that are equal.
    Peer producer(shared, "producer");
    std::map<std::string, gps_region_record> seen;
    gps_region_record record{};
    std::string twin;
    for (uint32_t i = 1; twin.empty() && i < 100000; i++) {
        memcpy(record.handle, &i, sizeof(i));
        record.id = gps_id_of_handle(record.handle);
        auto [at, fresh] = seen.emplace(id_text(record.id).substr(0, 6), record);
        if (!fresh) {
            for (gps_region_record *one : {&at->second, &record}) {
                one->generation = 1;
                one->backing = GPS_BACKING_IPC;
                one->requested = one->extent = 4096;
                one->owner = producer.owner;
                one->status.state = GPS_STATE_READY;
                gps_record_seal(one);
                ASSERT_EQ(gps_region_publish(&shared.store, one), 0);
            }
            twin = at->first;
        }
    }
    ASSERT_FALSE(twin.empty());
    Result result = shared.tool({"show", twin});
    EXPECT_OUT(result, 1, "");
    EXPECT_HAS(result.err,
               "gpushare: show: 2 regions have an id that begins with '" + twin + "': " + twin);
    EXPECT_HAS(result.err, id_text(record.id));
    EXPECT_EQ(shared.tool({"show", id_text(record.id)}).status, 0);
}

TEST_F(Show, AProcessTellsWhatItExportsAndHolds) {
    Peer other(shared, "other");
    auto held = shared.region(other.owner, "held", 1, GPS_STATE_READY, 32u << 20);
    Peer process(shared, "worker", {{held.id, 0x7f0000001000}});
    shared.region(process.owner, "mine", 2, GPS_STATE_READY, 64u << 20);
    shared.region(process.owner, "also-mine", 3, GPS_STATE_CLOSING, 64u << 20);
    shared.region(process.owner, "tombstone", 4, GPS_STATE_FREED);
    Result result = shared.tool({"show", pid_text(process.owner)});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out.find("Process worker " + pid_text(process.owner) + "\n"), 0u)
        << result.out;
    EXPECT_EQ(field(result.out, "state"), "alive");
    EXPECT_EQ(field(result.out, "exports"), "2 regions, 128 MiB (134217728 bytes)");
    EXPECT_EQ(field(result.out, "holds"), "1 region, 32 MiB (33554432 bytes)");
    EXPECT_HAS(result.out, "also-mine", "0x7f0000001000", "other " + pid_text(other.owner));
    EXPECT_LACKS(result.out, "tombstone");
}

TEST_F(Show, AProcessTellsWhoKeepsWhatIsFreed) {
    Peer owner(shared, "owner");
    auto closing = shared.region(owner.owner, "", 1, GPS_STATE_CLOSING, 32u << 20);
    auto freed = shared.region(owner.owner, "", 2, GPS_STATE_FREED, 64u << 20);
    auto ready = shared.region(owner.owner, "", 3, GPS_STATE_READY, 4u << 20);
    gps_id event{};
    event.bytes[0] = 7;
    Peer one(shared, "one",
             {{closing.id, 0x1000},
              {closing.id, 0x9000},
              {freed.id, 0x2000},
              {ready.id, 0x3000},
              {event, 0x4000, GPS_SLOT_OPEN, GPS_VIA_EVENT}});
    Peer two(shared, "two", {{freed.id, 0x5000}});
    const std::string user = shared.tool({"show", pid_text(one.owner)}).out;
    EXPECT_EQ(field(user, "pins"), "2 regions, 96 MiB (100663296 bytes)");
    EXPECT_EQ(field(user, "events"), "1 of other processes open");
    EXPECT_EQ(field(user, "pinned"), "(none)");
    EXPECT_EQ(field(user, "holds"), "4 regions, 132 MiB (138412032 bytes)");
    const std::string exporter = shared.tool({"show", pid_text(owner.owner)}).out;
    EXPECT_HAS(exporter,
               "96 MiB (100663296 bytes) that it has freed, by one " + pid_text(one.owner) + "\n");
    EXPECT_HAS(exporter,
               "64 MiB (67108864 bytes) that it has freed, by two " + pid_text(two.owner) + "\n");
    auto json = Json::parse(shared.tool({"show", pid_text(owner.owner), "--json"}).out);
    EXPECT_EQ(json[0]["pinned_by"].size(), 2u);
    json = Json::parse(shared.tool({"show", pid_text(one.owner), "--json"}).out);
    EXPECT_EQ(json[0]["pins_bytes"].text, "100663296");
    EXPECT_EQ(json[0]["events"].text, "1");
}

TEST_F(Show, AProcessThatSharesNothingYetSaysSo) {
    Peer process(shared, "worker");
    Result result = shared.tool({"show", pid_text(process.owner)});
    EXPECT_EQ(field(result.out, "exports"), "0 regions");
    EXPECT_EQ(field(result.out, "holds"), "0 regions");
}

TEST_F(Show, AHeldRegionWithoutARecordIsStillListed) {
    gps_id missing{};
    missing.bytes[0] = 0xab;
    Peer process(shared, "worker", {{missing}});
    Result result = shared.tool({"show", pid_text(process.owner)});
    EXPECT_HAS(result.out, "ab000000", "no record");
    auto list = Json::parse(shared.tool({"show", "--json", pid_text(process.owner)}).out);
    EXPECT_EQ(list[0]["holds"][0]["name"].kind, Json::Null);
}

TEST_F(Show, APidOfSeveralNamespacesMeansAllOfThem) {
    Peer one(shared, "first", {}, 4026532201, 7), two(shared, "second", {}, 4026532333, 7);
    Result result = shared.tool({"show", "7"});
    EXPECT_OUT_HAS(result, 0, "Process first 7@4026532201\n", "\n\nProcess second 7@4026532333\n",
                   "4026532333, not the one you are in\n");
    result = shared.tool({"show", "7@4026532333"});
    EXPECT_EQ(result.out.find("Process second"), 0u);
    EXPECT_LACKS(result.out, "first");
}

TEST_F(Show, TheDeadGiveWayToTheLiving) {
    Peer old(shared, "old");
    shared.region(old.owner, "frames", 1);
    old.kill();
    EXPECT_EQ(field(shared.tool({"show", "frames"}).out, "state"), "dead");
    EXPECT_EQ(field(shared.tool({"show", "frames"}).out, "owner"),
              "old " + pid_text(old.owner) + ", dead");
    EXPECT_EQ(field(shared.tool({"show", pid_text(old.owner)}).out, "state"), "dead");
    Peer fresh(shared, "fresh");
    shared.region(fresh.owner, "frames", 2);
    Result result = shared.tool({"show", "frames"});
    EXPECT_EQ(field(result.out, "owner"), "fresh " + pid_text(fresh.owner) + ", alive");
    EXPECT_LACKS(result.out, "old");
}

TEST_F(ShowOne, AnOrphanTellsItsOwnersLastWord) {
    auto record = shared.region(producer.owner, "frames", 1, GPS_STATE_CLOSING);
    Peer consumer(shared, "consumer", {{record.id}});
    producer.kill();
    Result result = shared.tool({"show", "frames"});
    EXPECT_EQ(field(result.out, "state"), "orphaned");
    EXPECT_HAS(field(result.out, "since"), "; its owner's last word: closing") << result.out;
}

TEST_F(ShowOne, ANameGoesBeforeAPid) {
    shared.region(producer.owner, pid_text(producer.owner));
    EXPECT_EQ(shared.tool({"show", pid_text(producer.owner)}).out.find("Region "), 0u);
}

TEST_F(Show, WhatIsNotThereIsAnErrorThatSaysWhatIs) {
    Result result = shared.tool({"show", "frames"});
    EXPECT_OUT(result, 1, "");
    EXPECT_EQ(result.err, "gpushare: show: nothing is called 'frames'; nothing is shared in " +
                              shared.root.path + "/default\n");
    Peer producer(shared, "producer");
    auto nameless = shared.region(producer.owner, "", 1);
    shared.region(producer.owner, "weights", 2);
    result = shared.tool({"show", "--json", "frames"});
    EXPECT_OUT(result, 1, "");
    EXPECT_EQ(result.err, "gpushare: show: nothing is called 'frames'; there is: weights, " +
                              id_text(nameless.id).substr(0, 8) + ", producer " +
                              pid_text(producer.owner) + " (see: gpushare ls)\n");
    EXPECT_HAS(shared.tool({"show", "99999999"}).err, "nothing has the number '99999999'; there");
}

TEST_F(Show, AProgramMeansAllItsProcesses) {
    Peer one(shared, "cam.py"), two(shared, "cam.py"), other(shared, "viewer");
    const Result result = shared.tool({"show", "cam.py"});
    EXPECT_OUT_HAS(result, 0, "Process cam.py " + pid_text(one.owner) + "\n");
    EXPECT_HAS(result.out, "Process cam.py " + pid_text(two.owner) + "\n");
    EXPECT_LACKS(result.out, "viewer");
    shared.region(one.owner, "viewer", 1);
    EXPECT_HAS(shared.tool({"show", "viewer"}).out, "Region viewer\n");
}

TEST_F(ShowOne, ANameThatIsOnlyClaimedSaysByWhom) {
    ASSERT_EQ(gps_name_claim(&shared.store, "frames", &producer.owner, nullptr), 0);
    EXPECT_ERR(shared.tool({"show", "frames"}), 1,
               "gpushare: show: 'frames' has no memory yet: producer " + pid_text(producer.owner) +
                   " has the name and is about to allocate\n");
}

TEST_F(ShowOne, JsonOfARegionHasEverything) {
    auto record = shared.region(producer.owner, "frames", 5);
    Peer consumer(shared, "consumer", {{record.id, 0xabc000}});
    auto list = Json::parse(shared.tool({"show", "frames", "--json"}).out);
    ASSERT_EQ(list.size(), 1u);
    const Json &region = list[0];
    EXPECT_EQ(region["kind"].text, "region");
    EXPECT_EQ(region["id"].text, id_text(record.id));
    EXPECT_EQ(region["extent"].text, "67108864");
    EXPECT_EQ(region["offset"].text, "0");
    EXPECT_EQ(region["generation"].text, "5");
    EXPECT_EQ(region["recorded_state"].text, "ready");
    EXPECT_NEAR(region["created_at"].number, static_cast<double>(record.created) / 1e9, 0.01);
    EXPECT_NEAR(region["state_since"].number - region["created_at"].number, 60, 1);
    EXPECT_EQ(region["owner_process"]["uid"].text, std::to_string(producer.owner.uid));
    EXPECT_TRUE(region["owner_process"]["alive"].truth);
    EXPECT_NEAR(region["owner_process"]["started_at"].number, region["created_at"].number + 90, 60);
    EXPECT_EQ(region["holds"][0]["address"].text, "0xabc000");
    EXPECT_EQ(region["holds"][0]["via"].text, "rule");
    EXPECT_TRUE(region["holds"][0]["open"].truth);
    EXPECT_EQ(region["users"].size(), 1u);
}

TEST_F(Show, JsonOfAProcessHasTotals) {
    Peer other(shared, "other");
    auto held = shared.region(other.owner, "held", 1, GPS_STATE_READY, 32u << 20);
    Peer process(shared, "worker", {{held.id, 0, GPS_SLOT_INTENT}});
    shared.region(process.owner, "mine", 2);
    auto list = Json::parse(shared.tool({"show", pid_text(process.owner), "--json"}).out);
    ASSERT_EQ(list.size(), 1u);
    EXPECT_EQ(list[0]["kind"].text, "process");
    EXPECT_EQ(list[0]["command"].text, "worker");
    EXPECT_EQ(list[0]["export_bytes"].text, "67108864");
    EXPECT_EQ(list[0]["hold_bytes"].text, "33554432");
    EXPECT_EQ(list[0]["exports"][0]["name"].text, "mine");
    EXPECT_EQ(list[0]["holds"][0]["name"].text, "held");
    EXPECT_EQ(list[0]["holds"][0]["address"].kind, Json::Null);
    EXPECT_FALSE(list[0]["holds"][0]["open"].truth);
}
