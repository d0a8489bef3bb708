#include <fnmatch.h>

extern "C" {
#include "config/rule.h"
}

namespace {

struct Globbed {
    const char *pattern, *string;
    bool matches;
};

TEST(Glob, Matches) {
    const Globbed cases[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "anything", true},
        {"**", "x", true},
        {"producer*", "producer", true},
        {"producer*", "producer-2", true},
        {"producer*", "a-producer", false},
        {"*.so", "libx.so", true},
        {"*.so", "libx.so.1", false},
        {"a*b*c", "aXbYbZc", true},
        {"a*b*c", "aXbYbZ", false},
        {"?", "a", true},
        {"?", "", false},
        {"?", "ab", false},
        {"[abc]x", "bx", true},
        {"[abc]x", "dx", false},
        {"[a-c]", "b", true},
        {"[!a-c]", "b", false},
        {"[^a-c]", "d", true},
        {"[]]", "]", true},
        {"[!]]", "]", false},
        {"[]-a]", "^", true},
        {"[a-]", "-", true},
        {"[-a]", "-", true},
        {"[z-a]", "m", false},
        {"[", "[", true},
        {"[abc", "[abc", true},
        {"\\*", "*", true},
        {"\\*", "a", false},
        {"a\\", "a\\", false},
        {"[\\]]", "]", true},
        {"Case", "case", false},
        {".*", ".hidden", true},
        {"*", ".hidden", true},
        {"caf?", "caf\xc3\xa9", false}, // byte by byte
        {"caf*", "caf\xc3\xa9", true},
        {"[\x80-\xff]", "\xc3", true},
    };
    for (const Globbed &each : cases)
        EXPECT_EQ(gps_glob_match(each.pattern, each.string), each.matches)
            << each.pattern << " on " << each.string;
}

TEST(Glob, AgreesWithFnmatch) {
    static const char letters[] = "ab*?[]!-\\^*";
    std::mt19937 random(3);
    int matched = 0;
    for (int i = 0; i < 300000; i++) {
        std::string pattern, string;
        for (auto n = random() % 8; n > 0; n--)
            pattern += letters[random() % (sizeof letters - 1)];
        for (auto n = random() % 6; n > 0; n--)
            string += "ab]-"[random() % 4];
        if (gps_glob_check(pattern.c_str()) != nullptr)
            continue;
        bool expected = fnmatch(pattern.c_str(), string.c_str(), 0) == 0;
        ASSERT_EQ(gps_glob_match(pattern.c_str(), string.c_str()), expected)
            << pattern << " on " << string;
        matched += expected;
    }
    EXPECT_GT(matched, 1000);
}

TEST(Glob, ManyStarsStayFast) {
    std::string pattern, string(255, 'a');
    for (int i = 0; i < 60; i++)
        pattern += "*a";
    pattern += "*b";
    EXPECT_FALSE(gps_glob_match(pattern.c_str(), string.c_str()));
}

TEST(Glob, CheckRefusesWhatCannotBeMeant) {
    EXPECT_EQ(gps_glob_check("a[bc]*?\\["), nullptr);
    EXPECT_EQ(gps_glob_check(std::string(127, 'a').c_str()), nullptr);
    EXPECT_STREQ(gps_glob_check(""), "no value");
    EXPECT_STREQ(gps_glob_check(std::string(128, 'a').c_str()), "longer than 127 characters");
    EXPECT_STREQ(gps_glob_check("a[bc"), "a [ is not closed");
    EXPECT_STREQ(gps_glob_check("a["), "a [ is not closed");
    EXPECT_STREQ(gps_glob_check("[]"), "a [ is not closed");
    EXPECT_STREQ(gps_glob_check("a\\"), "ends with a \\");
    EXPECT_STREQ(gps_glob_check("/usr/bin/x"),
                 "holds a /, but a file name is matched and not a path");
    EXPECT_STREQ(gps_glob_check("x[[:digit:]]"), "classes such as [[:digit:]] are not known");
}

gps_rule rule_of(const char *name) {
    gps_rule rule = {};
    strncpy(rule.name, name, sizeof rule.name - 1);
    strcpy(rule.program, "*");
    strcpy(rule.caller, "*");
    rule.size_min = 1;
    rule.size_max = UINT64_MAX;
    return rule;
}

TEST(RuleName, IsCheckedAsWritten) {
    for (const char *good :
         {"a", "A.b_c-9", "frames", "f{n}", "{n}", "{device}", "w-{device}-{n}", "-", "_."})
        EXPECT_EQ(gps_rule_check_name(good), nullptr) << good;
    EXPECT_EQ(gps_rule_check_name(std::string(127, 'a').c_str()), nullptr);
    EXPECT_STREQ(gps_rule_check_name(std::string(128, 'a').c_str()),
                 "is longer than 127 characters");
    const std::pair<const char *, const char *> bad[] = {
        {"", "is missing"},
        {".a", "begins with a dot"},
        {"a b", "has a character that is not allowed"},
        {"a/b", "has a character that is not allowed"},
        {"\xc3\xa9", "has a character that is not allowed"},
        {"a{x}", "has a placeholder that is not known"},
        {"a{N}", "has a placeholder that is not known"},
        {"a{n", "has a placeholder that is not known"},
        {"a}", "has a placeholder that is not known"},
        {"{{n}}", "has a placeholder that is not known"},
    };
    for (const auto &each : bad)
        EXPECT_STREQ(gps_rule_check_name(each.first), each.second) << each.first;
}

TEST(RuleName, ReplacesPlaceholders) {
    const struct {
        const char *name;
        uint64_t n;
        unsigned device;
        const char *expected;
    } cases[] = {
        {"frames", 7, 1, "frames"},
        {"f{n}", 0, 1, "f0"},
        {"f{n}", UINT64_MAX, 1, "f18446744073709551615"},
        {"{device}-{n}-{device}", 12, 3, "3-12-3"},
        {"{device}", 0, UINT32_MAX, "4294967295"},
    };
    for (const auto &each : cases) {
        gps_rule rule = rule_of(each.name);
        char name[GPS_NAME_BYTES];
        ASSERT_TRUE(gps_rule_name(&rule, each.n, each.device, name));
        EXPECT_STREQ(name, each.expected);
    }
}

TEST(RuleName, IsRefusedOver127Characters) {
    gps_rule rule = rule_of("{n}{n}{n}{n}{n}{n}1234567"); // 6 x 20 + 7 = 127
    char name[GPS_NAME_BYTES] = "untouched";
    EXPECT_TRUE(gps_rule_name(&rule, UINT64_MAX, 0, name));
    EXPECT_EQ(strlen(name), 127u);
    rule = rule_of((std::string(124, 'x') + "{n}").c_str());
    EXPECT_TRUE(gps_rule_name(&rule, 999, 0, name));
    EXPECT_EQ(name, std::string(124, 'x') + "999");
    EXPECT_FALSE(gps_rule_name(&rule, 1000, 0, name));
    rule = rule_of("{n}{n}{n}{n}{n}{n}12345678");
    strcpy(name, "untouched");
    EXPECT_FALSE(gps_rule_name(&rule, UINT64_MAX, 0, name));
    EXPECT_STREQ(name, "untouched");
}

const uint8_t uuid_a[16] = {1, 2, 3}, uuid_b[16] = {1, 2, 4};

TEST(RuleFits, AnyDeviceDoesNotLookAtTheUuid) {
    gps_rule rule = rule_of("r");
    gps_alloc_facts facts = {"p", "p", 1, 0, nullptr, false, false};
    EXPECT_EQ(gps_rule_mismatch(&rule, &facts), GPS_FITS);
    facts.size = 0;
    EXPECT_NE(gps_rule_mismatch(&rule, &facts), GPS_FITS);
}

TEST(RuleNeedsCaller, OnlyWhenItNamesOne) {
    gps_rule rule = rule_of("r");
    EXPECT_FALSE(gps_rule_needs_caller(&rule));
    strcpy(rule.caller, "**");
    EXPECT_FALSE(gps_rule_needs_caller(&rule));
    strcpy(rule.caller, "lib*");
    EXPECT_TRUE(gps_rule_needs_caller(&rule));
}

} // namespace
