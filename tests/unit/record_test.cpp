/* record_test.cpp - seals, checks and names. */
#include <climits>

extern "C" {
#include "directory/record.h"
}

namespace {

gps_owner valid_owner() {
    gps_owner owner = {};
    owner.pid_ns = 4026531836u;
    owner.start = 12345;
    owner.nonce = 0x0123456789abcdefu;
    owner.pid = 4711;
    owner.uid = 1000;
    strcpy(owner.command, "producer");
    return owner;
}

gps_region_record valid_record() {
    gps_region_record record = {};
    for (unsigned i = 0; i < GPS_HANDLE_BYTES; i++)
        record.handle[i] = static_cast<uint8_t>(i);
    record.id = gps_id_of_handle(record.handle);
    record.generation = 1;
    record.backing = GPS_BACKING_IPC;
    record.requested = 1000;
    record.extent = 2097152;
    record.offset = 512;
    record.owner = valid_owner();
    strcpy(record.name, "frames");
    record.status.state = GPS_STATE_READY;
    gps_record_seal(&record);
    return record;
}

gps_proc_header valid_header() {
    gps_proc_header header = {};
    header.owner = valid_owner();
    header.created = 1;
    gps_proc_seal(&header);
    return header;
}

gps_slot valid_slot() {
    gps_slot slot = {};
    slot.region.bytes[0] = 1;
    slot.address = 0x7000000;
    slot.state = GPS_SLOT_OPEN;
    slot.via = GPS_VIA_RULE;
    slot.generation = 1;
    gps_slot_seal(&slot);
    return slot;
}

/* What the check says about a record changed so and sealed again: what the checksum cannot catch.
 */
std::string sealed_with(const std::function<void(gps_region_record &)> &change) {
    gps_region_record record = valid_record();
    change(record);
    gps_record_seal(&record);
    const char *why = gps_record_check(&record, sizeof record);
    return why == nullptr ? "" : why;
}

std::string header_with(const std::function<void(gps_proc_header &)> &change) {
    gps_proc_header header = valid_header();
    change(header);
    gps_proc_seal(&header);
    const char *why = gps_proc_check(&header, sizeof header);
    return why == nullptr ? "" : why;
}

bool slot_with(const std::function<void(gps_slot &)> &change) {
    gps_slot slot = valid_slot();
    change(slot);
    gps_slot_seal(&slot);
    return gps_slot_valid(&slot);
}

TEST(Record, AnyFlippedByteIsRejected) {
    const gps_region_record record = valid_record();
    for (size_t i = 0; i < sizeof record; i++) {
        for (int flip : {0x01, 0x80, 0xff}) {
            gps_region_record bad = record;
            reinterpret_cast<uint8_t *>(&bad)[i] ^= static_cast<uint8_t>(flip);
            EXPECT_STRNE(nullptr, gps_record_check(&bad, sizeof bad)) << "byte " << i;
        }
    }
}

TEST(Record, FlippedStatusLeavesTheFixedPartGood) {
    for (size_t i = offsetof(gps_region_record, status); i < sizeof(gps_region_record); i++) {
        gps_region_record bad = valid_record();
        reinterpret_cast<uint8_t *>(&bad)[i] ^= 1;
        EXPECT_STREQ(nullptr, gps_record_check_fixed(&bad, sizeof bad)) << "byte " << i;
    }
}

TEST(Record, PassesWithTracesBehindIt) {
    struct {
        gps_region_record record;
        gps_region_traces traces;
    } file = {valid_record(), {}};
    EXPECT_STREQ(nullptr, gps_record_check(&file.record, sizeof file));
}

gps_region_traces valid_traces() {
    gps_region_traces traces = {};
    strcpy(traces.modules[0].path, "/usr/bin/producer");
    traces.modules[0].build_id_bytes = 20;
    traces.module_count = 1;
    traces.count[GPS_HISTORY_FREED] = 2;
    traces.offset[GPS_HISTORY_FREED][0] = 0x1234;
    traces.module[GPS_HISTORY_FREED][1] = GPS_TRACE_NO_MODULE;
    return traces;
}

const char *check_traces(const std::function<void(gps_region_traces &)> &change) {
    const gps_region_record record = valid_record();
    gps_region_traces traces = valid_traces();
    change(traces);
    gps_record_seal_traces(&record, &traces);
    return gps_record_check_traces(&record, &traces);
}

TEST(Traces, EachBoundIsChecked) {
    EXPECT_STREQ(nullptr, check_traces([](gps_region_traces &) {}));
    EXPECT_STREQ("a stack has too many frames",
                 check_traces([](gps_region_traces &t) { t.count[0] = GPS_TRACE_FRAMES + 1; }));
    EXPECT_STREQ("too many modules", check_traces([](gps_region_traces &t) {
                     t.module_count = GPS_TRACE_MODULES + 1;
                 }));
    EXPECT_STREQ("a frame's module is unknown",
                 check_traces([](gps_region_traces &t) { t.module[GPS_HISTORY_FREED][0] = 1; }));
    EXPECT_STREQ("a module is not valid",
                 check_traces([](gps_region_traces &t) { t.modules[0].build_id_bytes = 21; }));
    EXPECT_STREQ("a module is not valid", check_traces([](gps_region_traces &t) {
                     memset(t.modules[0].path, 'x', sizeof t.modules[0].path);
                 }));
}

TEST(Traces, AnyFlippedByteIsRejectedAndSoAreAnotherRecords) {
    gps_region_record record = valid_record();
    gps_region_traces traces = valid_traces();
    gps_record_seal_traces(&record, &traces);
    for (size_t i = 0; i < sizeof traces; i++) {
        gps_region_traces bad = traces;
        reinterpret_cast<uint8_t *>(&bad)[i] ^= 1;
        EXPECT_STRNE(nullptr, gps_record_check_traces(&record, &bad)) << i;
    }
    record.checksum ^= 1;
    EXPECT_STREQ("checksum of the stacks does not match",
                 gps_record_check_traces(&record, &traces));
}

TEST(Record, CheckNeverReadsPastTheSize) {
    const gps_region_record record = valid_record();
    for (size_t size = 0; size < sizeof record; size += 7) { /* the sanitizer is the judge */
        auto exact = std::make_unique<uint8_t[]>(size);
        memcpy(exact.get(), &record, size);
        const auto *cut = reinterpret_cast<gps_region_record *>(exact.get());
        EXPECT_STRNE(nullptr, gps_record_check(cut, size));
        EXPECT_FALSE(gps_record_foreign(cut, size));
    }
}

TEST(Record, EachBoundIsCheckedBehindAGoodChecksum) {
    using R = gps_region_record;
    EXPECT_EQ("", sealed_with([](R &) {}));
    EXPECT_EQ("id is not the hash of the handle", sealed_with([](R &r) { r.id.bytes[15] ^= 1; }));
    EXPECT_EQ("id is not the hash of the handle", sealed_with([](R &r) { r.handle[63] ^= 1; }));
    EXPECT_EQ("generation is 0", sealed_with([](R &r) { r.generation = 0; }));
    EXPECT_EQ("backing is unknown", sealed_with([](R &r) { r.backing = 0; }));
    EXPECT_EQ("backing is unknown", sealed_with([](R &r) { r.backing = 6; }));
    EXPECT_EQ("whether it is to be locked is unknown", sealed_with([](R &r) { r.locked = 2; }));
    EXPECT_EQ("requested size is larger than the extent",
              sealed_with([](R &r) { r.requested = r.extent + 1; }));
    EXPECT_EQ("", sealed_with([](R &r) { r.requested = r.extent; }));
    EXPECT_EQ("extent and offset overflow",
              sealed_with([](R &r) { r.offset = UINT64_MAX - r.extent + 1; }));
    EXPECT_EQ("", sealed_with([](R &r) { r.offset = UINT64_MAX - r.extent; }));
    EXPECT_EQ("name is not terminated",
              sealed_with([](R &r) { memset(r.name, 'a', sizeof r.name); }));
    EXPECT_EQ("name is not valid", sealed_with([](R &r) { strcpy(r.name, "a/b"); }));
    EXPECT_EQ("name is not valid", sealed_with([](R &r) { strcpy(r.name, ".."); }));
    EXPECT_EQ("", sealed_with([](R &r) { memset(r.name, 0, sizeof r.name); }));
}

TEST(Record, EachBoundOfTheOwnerIsChecked) {
    using R = gps_region_record;
    EXPECT_EQ("owner's pid is out of range", sealed_with([](R &r) { r.owner.pid = 0; }));
    EXPECT_EQ("owner's pid is out of range",
              sealed_with([](R &r) { r.owner.pid = uint32_t{INT32_MAX} + 1; }));
    EXPECT_EQ("", sealed_with([](R &r) { r.owner.pid = INT32_MAX; }));
    EXPECT_EQ("owner's nonce is 0", sealed_with([](R &r) { r.owner.nonce = 0; }));
    for (const char *bad : {"a\nb", "\x1b[2J", "\x7f", "caf\xc3", "\x9b", "\u202e"})
        EXPECT_EQ("owner's command is not a printable text",
                  sealed_with([=](R &r) { strcpy(r.owner.command, bad); }));
    EXPECT_EQ("", sealed_with([](R &r) { strcpy(r.owner.command, "\u6a21\u578b"); }));
    EXPECT_EQ("owner's command is not a printable text",
              sealed_with([](R &r) { memset(r.owner.command, 'x', sizeof r.owner.command); }));
}

TEST(Record, EachBoundOfTheStatusIsChecked) {
    using R = gps_region_record;

    for (uint32_t state = GPS_STATE_WRITING; state <= GPS_STATE_OFFLOADED; state++)
        EXPECT_EQ("", sealed_with([=](R &r) { r.status.state = state; })) << state;
    EXPECT_EQ("state is unknown", sealed_with([](R &r) { r.status.state = 0; }));
    EXPECT_EQ("state is unknown", sealed_with([](R &r) { r.status.state = 7; }));
    EXPECT_EQ("reserved bytes of the status are not 0",
              sealed_with([](R &r) { r.status.reserved0 = 1; }));
    EXPECT_EQ("a hand-over time is set in a state that has none",
              sealed_with([](R &r) { r.status.until = 1; }));
    EXPECT_EQ("", sealed_with([](R &r) {
                  r.status.until = 1;
                  r.status.state = GPS_STATE_FINAL;
              }));
}

TEST(Record, FrameIsCheckedBehindAGoodChecksum) {
    /* The seal writes the frame itself, so these are wrong in the checksum too: the reason tells
     * that the frame was looked at first. */
    gps_region_record record = valid_record();
    record.magic[0] = 'X';
    EXPECT_STREQ("magic does not match", gps_record_check(&record, sizeof record));
    record = valid_record();
    record.version = 2;
    EXPECT_STREQ("version is not supported", gps_record_check(&record, sizeof record));
    record = valid_record();
    record.size = 511;
    EXPECT_STREQ("size field does not match", gps_record_check(&record, sizeof record));
    record = valid_record();
    record.created ^= 1;
    EXPECT_STREQ("checksum does not match", gps_record_check(&record, sizeof record));
}

TEST(Record, AStatusOfAnotherRecordIsRejected) {
    gps_region_record record = valid_record();
    gps_region_record other = valid_record();
    other.generation = 2;
    gps_record_seal(&other);
    record.status = other.status;
    EXPECT_STREQ("status checksum does not match", gps_record_check(&record, sizeof record));
}

TEST(Record, AnotherVersionIsForeignAndNothingElseIs) {
    gps_region_record record = valid_record();
    EXPECT_FALSE(gps_record_foreign(&record, sizeof record));
    record.version = 2;
    EXPECT_TRUE(gps_record_foreign(&record, 12));
    EXPECT_FALSE(gps_record_foreign(&record, 11));
    record.magic[3] ^= 1;
    EXPECT_FALSE(gps_record_foreign(&record, sizeof record));
}

TEST(ProcHeader, SealedPassesAlsoWithSlotsBehindIt) {
    gps_proc_header header[2] = {valid_header(), {}};
    EXPECT_STREQ(nullptr, gps_proc_check(header, sizeof header[0]));
    EXPECT_STREQ(nullptr, gps_proc_check(header, sizeof header));
    EXPECT_STREQ("file is too short", gps_proc_check(header, sizeof header[0] - 1));
    EXPECT_STREQ("file is too short", gps_proc_check(header, 0));
}

TEST(ProcHeader, AnyFlippedByteIsRejected) {
    for (size_t i = 0; i < sizeof(gps_proc_header); i++) {
        gps_proc_header bad = valid_header();
        reinterpret_cast<uint8_t *>(&bad)[i] ^= 0x10;
        EXPECT_STRNE(nullptr, gps_proc_check(&bad, sizeof bad)) << "byte " << i;
    }
}

TEST(ProcHeader, EachBoundIsChecked) {
    using H = gps_proc_header;
    gps_proc_header header = valid_header();
    EXPECT_EQ("", header_with([](H &) {}));
    EXPECT_EQ("owner's pid is out of range", header_with([](H &h) { h.owner.pid = 0; }));
    EXPECT_EQ("owner's nonce is 0", header_with([](H &h) { h.owner.nonce = 0; }));
    EXPECT_EQ("owner's command is not a printable text",
              header_with([](H &h) { h.owner.command[0] = '\t'; }));
    header.magic[6] = 'N';
    EXPECT_STREQ("magic does not match", gps_proc_check(&header, sizeof header));
    header = valid_header();
    header.version = 0;
    EXPECT_STREQ("version is not supported", gps_proc_check(&header, sizeof header));
    header = valid_header();
    header.size++;
    EXPECT_STREQ("size field does not match", gps_proc_check(&header, sizeof header));
}

TEST(Slot, AnyFlippedByteMakesItInvalid) {
    gps_slot good = valid_slot();
    EXPECT_TRUE(gps_slot_valid(&good));
    for (size_t i = 0; i < sizeof good; i++) {
        gps_slot bad = good;
        reinterpret_cast<uint8_t *>(&bad)[i] ^= 0x04;
        EXPECT_FALSE(gps_slot_valid(&bad)) << "byte " << i;
    }
}

TEST(Slot, EachBoundIsChecked) {
    EXPECT_TRUE(slot_with([](gps_slot &s) { s.state = GPS_SLOT_INTENT; }));
    EXPECT_FALSE(slot_with([](gps_slot &s) { s.state = GPS_SLOT_FREE; }));
    EXPECT_FALSE(slot_with([](gps_slot &s) { s.state = 4; }));
    EXPECT_TRUE(slot_with([](gps_slot &s) { s.state = GPS_SLOT_CACHED; }));
    EXPECT_TRUE(slot_with([](gps_slot &s) { s.via = GPS_VIA_PROGRAM; }));
    EXPECT_FALSE(slot_with([](gps_slot &s) { s.via = 0; }));
    EXPECT_TRUE(slot_with([](gps_slot &s) { s.via = GPS_VIA_EVENT; }));
    EXPECT_TRUE(slot_with([](gps_slot &s) { s.via = GPS_VIA_MERGE; }));
    EXPECT_TRUE(slot_with([](gps_slot &s) { s.via = GPS_VIA_OWN; }));
    EXPECT_TRUE(slot_with([](gps_slot &s) { s.via = GPS_VIA_WAIT_IMPORTER; }));
    EXPECT_TRUE(slot_with([](gps_slot &s) { s.via = 11; })); // of versions before 0.2
    EXPECT_TRUE(slot_with([](gps_slot &s) { s.via = GPS_VIA_KEEPER; }));
    EXPECT_TRUE(slot_with([](gps_slot &s) { s.via = GPS_VIA_DIVIDER; }));
    EXPECT_TRUE(slot_with([](gps_slot &s) { s.via = GPS_VIA_STEADY; }));
    EXPECT_FALSE(slot_with([](gps_slot &s) { s.via = GPS_VIA_STEADY + 1; }));
}

TEST(Id, IsTheCanonicalXxh3OfTheHandle) {
    /* The published format: xxhsum -H2 of 64 zero bytes. */
    const uint8_t handle[GPS_HANDLE_BYTES] = {};
    gps_id id = gps_id_of_handle(handle);
    char text[GPS_ID_HEX];
    gps_id_format(&id, text);
    EXPECT_STREQ("b388416ffd4823362ffb6918c12c256e", text);
}

TEST(Id, EveryByteOfTheHandleMatters) {
    const gps_region_record record = valid_record();
    for (unsigned i = 0; i < GPS_HANDLE_BYTES; i++) {
        gps_region_record other = record;
        other.handle[i] ^= 1;
        gps_id id = gps_id_of_handle(other.handle);
        EXPECT_FALSE(gps_id_equal(&id, &record.id)) << "byte " << i;
    }
}

TEST(Id, ParsesWhatItFormats) {
    gps_id id, parsed = {};
    char text[GPS_ID_HEX];
    for (unsigned i = 0; i < GPS_ID_BYTES; i++)
        id.bytes[i] = static_cast<uint8_t>(i * 17);
    gps_id_format(&id, text);
    EXPECT_STREQ("00112233445566778899aabbccddeeff", text);
    ASSERT_TRUE(gps_id_parse(text, &parsed));
    EXPECT_TRUE(gps_id_equal(&id, &parsed));
}

TEST(Id, JunkIsNotParsedAndLeavesTheOutputAlone) {
    const std::string good = "00112233445566778899aabbccddeeff";
    gps_id id, untouched;
    memset(&id, 0x77, sizeof id);
    untouched = id;
    for (const std::string &bad :
         {std::string(), good.substr(1), good + "0", good.substr(0, 31) + "F",
          good.substr(0, 31) + "g", " " + good.substr(1), good.substr(0, 30) + "..",
          "0x" + good.substr(2), good.substr(0, 31) + "\n"}) {
        EXPECT_FALSE(gps_id_parse(bad.c_str(), &id)) << bad;
        EXPECT_TRUE(gps_id_equal(&id, &untouched)) << bad;
    }
}

TEST(Name, AcceptsWhatTheFormatSays) {
    for (const std::string &good :
         {std::string("a"), std::string("frames"), std::string("A-b_c.9"), std::string("-"),
          std::string("_"), std::string("a..b"), std::string(127, 'n')})
        EXPECT_TRUE(gps_name_valid(good.c_str())) << good;
}

TEST(Name, RefusesEverythingElse) {
    for (const std::string &bad :
         {std::string(), std::string("."), std::string(".."), std::string(".hidden"),
          std::string("a/b"), std::string("a b"), std::string("a\n"), std::string("\xc3\xa9"),
          std::string("a*"), std::string(128, 'n'), std::string(1000, 'n')})
        EXPECT_FALSE(gps_name_valid(bad.c_str())) << bad;
}

TEST(Name, EveryOtherByteIsRefused) {
    const std::string allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    for (int c = 1; c < 256; c++) {
        const char text[] = {'a', static_cast<char>(c), '\0'};
        EXPECT_EQ(allowed.find(static_cast<char>(c)) != std::string::npos, gps_name_valid(text))
            << c;
    }
}

TEST(Owner, ParsesWhatItFormats) {
    gps_owner owner = valid_owner(), parsed = {};
    char text[GPS_PROC_NAME];
    gps_owner_format(&owner, text);
    EXPECT_STREQ("4026531836.4711.12345.0123456789abcdef", text);
    ASSERT_TRUE(gps_owner_parse(text, &parsed));
    EXPECT_TRUE(gps_owner_equal(&owner, &parsed));
    EXPECT_EQ(0u, parsed.uid);
    EXPECT_STREQ("", parsed.command);
}

TEST(Owner, ExtremesSurviveTheRoundTrip) {
    gps_owner owner = valid_owner(), parsed = {};
    char text[GPS_PROC_NAME];
    owner.pid_ns = UINT64_MAX;
    owner.start = UINT64_MAX;
    owner.nonce = UINT64_MAX;
    owner.pid = INT32_MAX;
    gps_owner_format(&owner, text);
    ASSERT_TRUE(gps_owner_parse(text, &parsed)) << text;
    EXPECT_TRUE(gps_owner_equal(&owner, &parsed));
    owner.pid_ns = 0;
    owner.start = 0;
    owner.nonce = 1;
    owner.pid = 1;
    gps_owner_format(&owner, text);
    EXPECT_STREQ("0.1.0.0000000000000001", text);
    ASSERT_TRUE(gps_owner_parse(text, &parsed));
    EXPECT_TRUE(gps_owner_equal(&owner, &parsed));
}

TEST(Owner, JunkIsNotParsed) {
    gps_owner owner;
    for (const char *bad : {"",
                            ".",
                            "1.2.3",
                            "1.2.3.",
                            "1.2.3.0123456789abcde",
                            "1.2.3.0123456789abcdef0",
                            "1.2.3.0123456789abcdeF",
                            "1.2.3.0000000000000000",
                            "1.0.3.0123456789abcdef",
                            "1.2147483648.3.0123456789abcdef",
                            "01.2.3.0123456789abcdef",
                            "1.02.3.0123456789abcdef",
                            "1.2.03.0123456789abcdef",
                            "+1.2.3.0123456789abcdef",
                            "-1.2.3.0123456789abcdef",
                            "1.2.3.0123456789abcdef.",
                            " 1.2.3.0123456789abcdef",
                            "1..3.0123456789abcdef",
                            "18446744073709551616.2.3.0123456789abcdef",
                            "1.2.18446744073709551616.0123456789abcdef",
                            "1.2.3,0123456789abcdef",
                            "1.2.3.0123456789abcdef\n",
                            "1.2.3.0x23456789abcdef",
                            "99999999999999999999999999999.2.3.0123456789abcdef"})
        EXPECT_FALSE(gps_owner_parse(bad, &owner)) << bad;
}

TEST(Owner, IsEqualOnlyWhenAllFourPartsAre) {
    const gps_owner owner = valid_owner();
    gps_owner other = owner;
    other.uid++;
    other.command[0] = 'X';
    EXPECT_TRUE(gps_owner_equal(&owner, &other));
    other = owner;
    other.pid_ns++;
    EXPECT_FALSE(gps_owner_equal(&owner, &other));
    other = owner;
    other.pid++;
    EXPECT_FALSE(gps_owner_equal(&owner, &other));
    other = owner;
    other.start++;
    EXPECT_FALSE(gps_owner_equal(&owner, &other));
    other = owner;
    other.nonce++;
    EXPECT_FALSE(gps_owner_equal(&owner, &other));
}

TEST(State, OfAnotherNumberIsUnknown) {
    for (uint32_t state : {uint32_t{0}, uint32_t{7}, UINT32_MAX})
        EXPECT_STREQ("unknown", gps_state_name(state));
}

} // namespace
