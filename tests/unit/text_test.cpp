extern "C" {
#include "util/text.h"
}
#include "json.hpp"

namespace {

template <typename Function, typename... Arguments>
std::string made(Function function, Arguments... arguments) {
    char buffer[512];
    gps_text text = GPS_TEXT(buffer);
    function(&text, arguments...);
    EXPECT_FALSE(text.cut);
    EXPECT_EQ(text.length, strlen(buffer));
    return buffer;
}

TEST(Text, FillsABufferExactlyWithoutCutting) {
    char buffer[4];
    gps_text text = GPS_TEXT(buffer);
    gps_text_str(&text, "abc");
    EXPECT_FALSE(text.cut);
    EXPECT_STREQ(buffer, "abc");
    gps_text_str(&text, "");
    EXPECT_FALSE(text.cut);
}

TEST(Text, CutsWhatDoesNotFitAndAddsNothingAfterIt) {
    char buffer[6] = {0, 0, 0, 0, 0, 'x'};
    gps_text text = gps_text_on(buffer, 5);
    gps_text_str(&text, "ab");
    gps_text_str(&text, "cdef");
    EXPECT_TRUE(text.cut);
    EXPECT_STREQ(buffer, "abcd");
    gps_text_str(&text, "g");
    EXPECT_STREQ(buffer, "abcd");
    EXPECT_EQ(text.length, 4u);
    EXPECT_EQ(buffer[5], 'x');
}

TEST(Text, LivesInOneByte) {
    char buffer[1];
    gps_text text = GPS_TEXT(buffer);
    gps_text_dec(&text, 7);
    EXPECT_TRUE(text.cut);
    EXPECT_STREQ(buffer, "");
}

TEST(Text, NullStringAddsNothing) {
    EXPECT_EQ(made(gps_text_str, static_cast<const char *>(nullptr)), "");
    EXPECT_EQ(made(gps_text_plain, static_cast<const char *>(nullptr)), "");
}

TEST(Text, WritesNumbers) {
    EXPECT_EQ(made(gps_text_dec, 0u), "0");
    EXPECT_EQ(made(gps_text_dec, UINT64_MAX), "18446744073709551615");
    EXPECT_EQ(made(gps_text_add, "0x%lx", 0ul), "0x0");
    EXPECT_EQ(made(gps_text_add, "0x%lx", 0x7f00DEADbeeful), "0x7f00deadbeef");
    EXPECT_EQ(made(gps_text_add, "0x%lx", UINT64_MAX), "0xffffffffffffffff");
}

TEST(Text, WritesSizes) {
    const std::pair<uint64_t, const char *> cases[] = {
        {0, "0 B"},
        {1000, "1000 B"},
        {1023, "1023 B"},
        {1024, "1 KiB"},
        {1536, "1.5 KiB"},
        {(1u << 20) - 1, "1023.9 KiB"},
        {64u << 20, "64 MiB"},
        {(64u << 20) + 1, "64 MiB"},
        {UINT64_C(3) << 29, "1.5 GiB"},
        {UINT64_C(5) << 40, "5 TiB"},
        {UINT64_C(1) << 60, "1 EiB"},
        {UINT64_MAX, "15.9 EiB"},
    };
    for (const auto &each : cases)
        EXPECT_EQ(made(gps_text_size, each.first), each.second);
}

TEST(Text, WritesDurations) {
    const std::pair<uint64_t, const char *> cases[] = {
        {0, "0 s"},
        {999, "999 ns"},
        {1000, "1 us"},
        {1200000, "1.2 ms"},
        {999999999, "999.9 ms"},
        {UINT64_C(30000000000), "30 s"},
        {UINT64_C(59999999999), "59.9 s"},
        {UINT64_C(300000000000), "5 min"},
        {UINT64_C(5400000000000), "1.5 h"},
        {UINT64_MAX, "5124095.5 h"},
    };
    for (const auto &each : cases)
        EXPECT_EQ(made(gps_text_duration, each.first), each.second);
}

TEST(Text, WritesTimes) {
    EXPECT_EQ(made(gps_text_time, 0u), "1970-01-01T00:00:00.000000Z");
    EXPECT_EQ(made(gps_text_time, UINT64_C(1795228445123456789)), "2026-11-21T02:34:05.123456Z");
    EXPECT_EQ(made(gps_text_time, UINT64_C(951782399999999999)), "2000-02-28T23:59:59.999999Z");
    EXPECT_EQ(made(gps_text_time, UINT64_C(951782400000000000)), "2000-02-29T00:00:00.000000Z");
    EXPECT_EQ(made(gps_text_time, UINT64_C(4107542400000000000)), "2100-03-01T00:00:00.000000Z");
}

TEST(Text, AgreesWithTheCalendarOfTheLibrary) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 20000; i++) {
        uint64_t nanos = random();
        time_t seconds = static_cast<time_t>(nanos / 1000000000);
        char date[64], expected[80];
        struct tm parts;
        gmtime_r(&seconds, &parts);
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
        snprintf(expected, sizeof expected, "%s.%06dZ", date,
                 static_cast<int>(nanos / 1000 % 1000000));
        ASSERT_EQ(made(gps_text_time, nanos), expected);
    }
}

TEST(Text, PlainTextCannotSteerATerminal) {
    EXPECT_EQ(made(gps_text_plain, "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
              "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
    EXPECT_EQ(made(gps_text_plain, "a\x1b[31m\nb\x7f"), "a?[31m?b?");
    EXPECT_EQ(made(gps_text_plain, "a\xc2\x9b"
                                   "31m"),
              "a?31m"); // C1: CSI in UTF-8
    EXPECT_EQ(made(gps_text_plain, "\xff\xc3"), "??");
    EXPECT_EQ(made(gps_text_plain, "a\u202eb\u2066c\u2069\u2028"), "a?b?c??") << "turns the text";
}

TEST(Text, PlainTextIsCutBetweenCharacters) {
    char buffer[6];
    gps_text text = GPS_TEXT(buffer);
    gps_text_plain(&text, "\u6a21\u578b");
    EXPECT_STREQ(buffer, "\u6a21");
    EXPECT_TRUE(text.cut);
    gps_text_str(&text, "x");
    EXPECT_STREQ(buffer, "\u6a21") << "nothing is added behind a cut";
}

TEST(Text, QuotesJson) {
    EXPECT_EQ(made(gps_text_json, static_cast<const char *>(nullptr)), "null");
    EXPECT_EQ(made(gps_text_json, ""), "\"\"");
    EXPECT_EQ(made(gps_text_json, "a\"b\\c/"), "\"a\\\"b\\\\c/\"");
    EXPECT_EQ(made(gps_text_json, "\n\t\x01\x7f"), "\"\\u000a\\u0009\\u0001\\u007f\"");
    EXPECT_EQ(made(gps_text_json, "\xc3\xa9"), "\"\xc3\xa9\"");
}

TEST(Text, ReplacesInvalidUtf8InJson) {
    const char *fffd = "\xef\xbf\xbd";
    const char *invalid[] = {
        "\x80",             // a continuation alone
        "\xc3",             // cut
        "\xff",             //
        "\xc0\xaf",         // overlong '/'
        "\xe0\x80\xaf",     // overlong
        "\xed\xa0\x80",     // surrogate
        "\xf4\x90\x80\x80", // over U+10FFFF
        "\xf0\x9f\x98",     // cut
    };
    for (const char *each : invalid) {
        Json value = Json::parse(made(gps_text_json, each));
        std::string expected;
        for (size_t i = 0; i < strlen(each); i++)
            expected += fffd;
        EXPECT_EQ(value.text, expected);
    }
}

TEST(Text, AnyBytesAreValidJson) {
    std::mt19937 random(2);
    for (int i = 0; i < 20000; i++) {
        char bytes[24];
        for (char &byte : bytes)
            byte = static_cast<char>(random());
        bytes[sizeof bytes - 1] = '\0';
        ASSERT_NO_THROW(Json::parse(made(gps_text_json, static_cast<const char *>(bytes))));
    }
}

} // namespace
