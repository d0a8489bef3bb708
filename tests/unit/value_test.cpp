extern "C" {
#include "config/value.h"
}

namespace {

const uint64_t K = 1024, M = K * 1024, G = M * 1024, T = G * 1024;
const uint64_t second = 1000000000, minute = 60 * second, hour = 60 * minute;

struct Sized {
    const char *text;
    uint64_t bytes;
};

TEST(Size, ReadsEveryUnit) {
    const Sized cases[] = {
        {"1", 1},
        {"4096", 4096},
        {"7B", 7},
        {"7b", 7},
        {"1K", K},
        {"1k", K},
        {"1KiB", K},
        {"1kib", K},
        {"2M", 2 * M},
        {"2m", 2 * M},
        {"64MiB", 64 * M},
        {"64mib", 64 * M},
        {"64MIB", 64 * M},
        {"1G", G},
        {"1g", G},
        {"1GiB", G},
        {"3TiB", 3 * T},
        {"3t", 3 * T},
        {"64 MiB", 64 * M},
        {"007K", 7 * K},
        {"18446744073709551615", UINT64_MAX},
        {"16777215TiB", 16777215 * T},
    };
    for (const Sized &each : cases) {
        uint64_t bytes = 0;
        EXPECT_EQ(gps_value_size(each.text, &bytes), nullptr) << each.text;
        EXPECT_EQ(bytes, each.bytes) << each.text;
    }
}

TEST(Size, SaysWhatIsWrong) {
    const char *ambiguous = "KB, MB, GB and TB are ambiguous, write KiB, MiB, GiB or TiB";
    const std::pair<const char *, const char *> cases[] = {
        {"", "no value"},
        {"0", "must be more than 0"},
        {"0MiB", "must be more than 0"},
        {"64MB", ambiguous},
        {"1kb", ambiguous},
        {"1Gb", ambiguous},
        {"1TB", ambiguous},
        {"64Mi", "not a unit of size"},
        {"64MiBs", "not a unit of size"},
        {"1PiB", "not a unit of size"},
        {"1.5GiB", "not a size"},
        {"1MiB 2", "not a size"},
        {"-1", "not a number"},
        {"+1", "not a number"},
        {"MiB", "not a number"},
        {"0x10", "not a unit of size"},
        {"18446744073709551616", "too large"},
        {"99999999999999999999999999", "too large"},
        {"16777216TiB", "too large"},
    };
    for (const auto &each : cases) {
        uint64_t bytes = 77;
        EXPECT_STREQ(gps_value_size(each.first, &bytes), each.second) << each.first;
        EXPECT_NE(gps_value_size(each.first, &bytes), nullptr) << each.first;
        EXPECT_EQ(bytes, 77u) << each.first;
    }
}

struct Ranged {
    const char *text;
    uint64_t min, max;
};

template <size_t N> void expect_ranges(const gps_scale &kind, const Ranged (&cases)[N]) {
    for (const Ranged &each : cases) {
        uint64_t min = 77, max = 77;
        EXPECT_EQ(gps_value_range(each.text, &kind, &min, &max), nullptr) << each.text;
        EXPECT_EQ(min, each.min) << each.text;
        EXPECT_EQ(max, each.max) << each.text;
    }
}

using Wrong = std::pair<const char *, const char *>;

template <size_t N> void expect_no_ranges(const gps_scale &kind, const Wrong (&cases)[N]) {
    for (const Wrong &each : cases) {
        uint64_t min = 77, max = 78;
        EXPECT_STREQ(gps_value_range(each.first, &kind, &min, &max), each.second) << each.first;
        EXPECT_EQ(min, 77u) << each.first;
        EXPECT_EQ(max, 78u) << each.first;
    }
}

// They are written so that they read back the same.
void expect_same_again(const gps_scale &kind, const std::vector<const char *> &cases) {
    for (const char *each : cases) {
        uint64_t min = 0, max = 0;
        char buffer[64];
        gps_text text = gps_text_on(buffer, sizeof buffer);
        ASSERT_EQ(gps_value_range(each, &kind, &min, &max), nullptr) << each;
        gps_value_range_text(min, max, &kind, &text);
        EXPECT_STREQ(buffer, each);
    }
}

TEST(Range, ReadsEveryForm) {
    const Ranged cases[] = {
        {"*", 1, UINT64_MAX},
        {"64MiB", 64 * M, 64 * M},
        {">=1GiB", G, UINT64_MAX},
        {">1GiB", G + 1, UINT64_MAX},
        {"<=1GiB", 1, G},
        {"<1GiB", 1, G - 1},
        {"<2", 1, 1},
        {"<=1", 1, 1},
        {">= 1GiB", G, UINT64_MAX},
        {"1MiB..2MiB", M, 2 * M},
        {"1MiB .. 2MiB", M, 2 * M},
        {"1..1", 1, 1},
        {"100..2K", 100, 2 * K},
    };
    expect_ranges(gps_sizes, cases);
}

TEST(Range, SaysWhatIsWrong) {
    const Wrong cases[] = {
        {"", "no value"},
        {"**", "not a size or a range"},
        {"*MiB", "not a size or a range"},
        {"2MiB..1MiB", "the range ends before it begins"},
        {"1MiB..", "no value"},
        {"1MiB...2MiB", "not a number"},
        {"..2MiB", "not a number"},
        {"1MiB..2MiB..3MiB", "not a size or a range"},
        {"1MiB-2MiB", "not a size or a range"},
        {">=", "no value"},
        {"=>1", "not a number"},
        {">=0", "must be more than 0"},
        {"<0", "must be more than 0"},
        {"<1", "matches no size"},
        {">18446744073709551615", "matches no size"},
        {"1MiB..2MB", "KB, MB, GB and TB are ambiguous, write KiB, MiB, GiB or TiB"},
        {"0..1MiB", "must be more than 0"},
        {"==1MiB", "not a number"},
    };
    expect_no_ranges(gps_sizes, cases);
}

TEST(Indices, ReadEveryForm) {
    const Ranged cases[] = {
        {"*", 0, UINT64_MAX},
        {"0", 0, 0},
        {"7", 7, 7},
        {"0..9", 0, 9},
        {"4 .. 4", 4, 4},
        {">=4", 4, UINT64_MAX},
        {">4", 5, UINT64_MAX},
        {"<=4", 0, 4},
        {"<4", 0, 3},
        {"<1", 0, 0},
        {"18446744073709551615", UINT64_MAX, UINT64_MAX},
    };
    expect_ranges(gps_indices, cases);
}

TEST(Indices, SayWhatIsWrong) {
    const Wrong cases[] = {
        {"", "no value"},
        {"-1", "not a number"},
        {"**", "not a number or a range"},
        {"1,2", "not a number or a range"},
        {"1KiB", "not a number or a range"},
        {"9..0", "the range ends before it begins"},
        {"1..", "no value"},
        {"..9", "not a number"},
        {"1...9", "not a number"},
        {"<0", "matches no index"},
        {">18446744073709551615", "matches no index"},
        {"18446744073709551616", "too large"},
    };
    expect_no_ranges(gps_indices, cases);
}

TEST(Indices, AreWrittenSoThatTheyReadBackTheSame) {
    expect_same_again(gps_indices, {"*", "0", "7", "0..9", ">=4", ">=18446744073709551614"});
}

TEST(Range, OfSizesIsWrittenSoThatItReadsBackTheSame) {
    expect_same_again(gps_sizes,
                      {"*", "1", "64MiB", "<1MiB", "<=1000", "<=1MiB", "1KiB..2MiB", ">=1GiB"});
}

TEST(Duration, ReadsEveryUnit) {
    const Sized cases[] = {
        {"0", 0},
        {"0s", 0},
        {"0h", 0},
        {"5ns", 5},
        {"5us", 5000},
        {"500ms", second / 2},
        {"30s", 30 * second},
        {"2min", 2 * minute},
        {"2m", 2 * minute},
        {"1h", hour},
        {"30 s", 30 * second},
        {"500h", 500 * hour},
    };
    for (const Sized &each : cases) {
        uint64_t nanos = 77;
        EXPECT_TRUE(gps_parse_duration(each.text, &nanos)) << each.text;
        EXPECT_EQ(nanos, each.bytes) << each.text;
    }
}

TEST(Duration, SaysWhatIsWrong) {
    const std::pair<const char *, const char *> cases[] = {
        {"", "no value"},
        {"30", "no unit"},
        {"30S", "not a unit of time"},
        {"30sec", "not a unit of time"},
        {"1d", "not a unit of time"},
        {"1.5s", "not a unit of time"},
        {"1h30min", "not a unit of time"},
        {"-1s", "not a number"},
        {"s", "not a number"},
        {"501h", "longer than 500h"},
        {"18446744073709551615h", "longer than 500h"},
        {"18446744073709551616s", "too large"},
    };
    for (const auto &each : cases) {
        uint64_t nanos = 77;
        EXPECT_STREQ(gps_value_duration(each.first, &nanos), each.second) << each.first;
        EXPECT_FALSE(gps_parse_duration(each.first, &nanos)) << each.first;
        EXPECT_EQ(nanos, 77u) << each.first;
    }
}

TEST(Duration, IsWrittenSoThatItReadsBackTheSame) {
    const Sized cases[] = {
        {"0s", 0},
        {"1ns", 1},
        {"1500us", 1500000},
        {"500ms", second / 2},
        {"30s", 30 * second},
        {"90s", 90 * second},
        {"2min", 2 * minute},
        {"1h", hour},
        {"90min", 90 * minute},
    };
    for (const Sized &each : cases) {
        char buffer[32];
        gps_text text = GPS_TEXT(buffer);
        uint64_t back = 77;
        gps_value_duration_text(each.bytes, &text);
        EXPECT_STREQ(buffer, each.text);
        EXPECT_TRUE(gps_parse_duration(buffer, &back));
        EXPECT_EQ(back, each.bytes);
    }
}

TEST(Number, IsDecimalAndBounded) {
    uint64_t value = 77;
    EXPECT_EQ(gps_value_number("64", 64, &value), nullptr);
    EXPECT_EQ(value, 64u);
    EXPECT_STREQ(gps_value_number("65", 64, &value), "too large");
    EXPECT_STREQ(gps_value_number("", 64, &value), "no value");
    EXPECT_STREQ(gps_value_number("1x", 64, &value), "not a number");
    EXPECT_STREQ(gps_value_number("-1", 64, &value), "not a number");
    EXPECT_STREQ(gps_value_number("18446744073709551616", UINT64_MAX, &value), "too large");
    EXPECT_EQ(value, 64u);
}

TEST(Choice, IsAWholeWordOfTheList) {
    const char *list = "share, audit, off";
    unsigned place = 77;
    EXPECT_EQ(gps_value_choice("share", list, &place), nullptr);
    EXPECT_EQ(place, 0u);
    EXPECT_EQ(gps_value_choice("off", list, &place), nullptr);
    EXPECT_EQ(place, 2u);
    for (const char *wrong : {"", "shar", "shared", "Share", "share,", "of", "share, audit"})
        EXPECT_STREQ(gps_value_choice(wrong, list, &place), "not allowed") << wrong;
    EXPECT_EQ(place, 2u);
}

TEST(Choice, IsNamedByItsPlace) {
    for (const auto &each :
         {std::make_pair(0u, "share"), std::make_pair(2u, "off"), std::make_pair(3u, "")}) {
        char buffer[32];
        gps_text text = GPS_TEXT(buffer);

        gps_value_choice_text(each.first, "share, audit, off", &text);
        EXPECT_STREQ(buffer, each.second);
    }
}

const char *const canonical = "GPU-01234567-89ab-cdef-0011-2233445566ff";
const uint8_t canonical_bytes[16] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
                                     0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0xff};

TEST(Uuid, ReadsBothPrefixesAndCases) {
    for (const char *text : {canonical, "GPU-01234567-89AB-CDEF-0011-2233445566FF",
                             "MIG-01234567-89ab-cdef-0011-2233445566ff"}) {
        uint8_t uuid[16] = {};
        EXPECT_TRUE(gps_parse_uuid(text, uuid)) << text;
        EXPECT_EQ(memcmp(uuid, canonical_bytes, 16), 0) << text;
    }
}

TEST(Uuid, RefusesEverythingElse) {
    for (const char *text :
         {"", "GPU-", "GPU", "01234567-89ab-cdef-0011-2233445566ff",
          "gpu-01234567-89ab-cdef-0011-2233445566ff", "GPU-0123456789abcdef00112233445566ff",
          "GPU-01234567-89ab-cdef-0011-2233445566f", "GPU-01234567-89ab-cdef-0011-2233445566ff0",
          "GPU-01234567-89ab-cdef-0011-2233445566fg", "GPU-01234567-89ab-cdef-00112-233445566ff",
          "GPU-01234567-89ab-cdef-0011-2233445566ff ", "GPU-0123456789ab-cdef-0011-2233445566ff"}) {
        uint8_t uuid[16] = {42};
        EXPECT_FALSE(gps_parse_uuid(text, uuid)) << text;
        EXPECT_EQ(uuid[0], 42) << text;
    }
}

TEST(Uuid, IsWrittenAsNvidiaSmiDoes) {
    char text[41];
    memset(text, 'x', sizeof text);
    gps_format_uuid(canonical_bytes, text);
    EXPECT_STREQ(text, canonical);
}

} // namespace
