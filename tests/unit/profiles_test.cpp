// What gpushare learn makes of what processes report: which allocations are fine, and the rules.
extern "C" {
#include "learn/profiles.h"
}

namespace {

constexpr uint64_t MiB = 1u << 20;

// One allocation as the library reports it: filled by copies at 100 ms, unchanged since.
struct Line {
    int process = 1, number = 1, thread = 7;
    uint64_t size = 4 * MiB, full = 4 * MiB;
    int born = 50, freed = 0, since = 100, changed = 0, rewritten = 0;
    const char *caller = "libweights.so", *hash = "aa", *program = "server";
    bool pool = false;

    std::string text() const {
        const std::string sums = "," + std::to_string(since) + "," + std::to_string(changed) + "," +
                                 std::to_string(rewritten) + "]";
        return "{\"process\":\"" + std::to_string(process) + "\",\"program\":\"" + program +
               "\",\"number\":" + std::to_string(number) + ",\"size\":" + std::to_string(size) +
               ",\"thread\":" + std::to_string(thread) + ",\"caller\":\"" + caller +
               "\",\"pool\":" + (pool ? "true" : "false") + ",\"born\":" + std::to_string(born) +
               ",\"freed\":" + std::to_string(freed) + ",\"full\":[" + std::to_string(full) + sums +
               ",\"all\":[" + std::to_string(size) + sums + ",\"blocks\":[[" +
               std::to_string(size) + "," + (full ? "1" : "0") + ",\"" + hash + "\"]]}\n";
    }
};

std::string looked(int process, int until = 10000) {
    return "{\"process\":\"" + std::to_string(process) +
           "\",\"program\":\"server\",\"looked\":" + std::to_string(until) + "}\n";
}

class Profiles : public testing::Test {
  protected:
    ~Profiles() override {
        profiles_free(&profiles);
    }
    void read(const std::string &text, unsigned replica = 0) {
        FILE *file = fmemopen(const_cast<char *>(text.data()), text.size(), "r");
        profiles_read(&profiles, file, replica);
        fclose(file);
    }
    std::string print(void (*fn)(FILE *, const struct profiles *)) const {
        char *bytes;
        size_t size;
        FILE *file = open_memstream(&bytes, &size);
        fn(file, &profiles);
        fclose(file);
        const std::string text(bytes, size);
        free(bytes);
        return text;
    }
    profile_verdict verdict(const Line &line, bool any = false) {
        profiles_free(&profiles);
        read(line.text() + looked(1));
        profiles_judge(&profiles, 1, any);
        return profiles.list[0]->verdict;
    }
    struct profiles profiles = {};
};

// Rules without the first line and comments.
std::string bare(const std::string &rules) {
    std::string text;
    for (size_t at = 0, end; at < rules.size(); at = end + 1) {
        end = rules.find('\n', at);
        if (end > at && rules[at] != '#')
            text += rules.substr(at, end - at) + "\n";
    }
    return text;
}

} // namespace

TEST_F(Profiles, JudgeWhatStaysAsItWasUploaded) {
    Line line;
    EXPECT_EQ(verdict(line), PROFILE_FINE);
    line.full = 2 * MiB; // the rest was never filled, and is never merged
    EXPECT_EQ(verdict(line), PROFILE_FINE);
    EXPECT_EQ(profiles.rules[0].saves, 2 * MiB);
    line.rewritten = 1; // soon after it was filled
    EXPECT_EQ(verdict(line), PROFILE_FINE);
    line.since = 6000;
    EXPECT_EQ(verdict(line), PROFILE_REWRITTEN);
    line.changed = 1;
    EXPECT_EQ(verdict(line), PROFILE_CHANGED);
    EXPECT_EQ(profiles.rule_count, 0u);
}

TEST_F(Profiles, JudgeWhatKernelsFilledOnlyIfAsked) {
    Line line;
    line.full = 0;
    EXPECT_EQ(verdict(line), PROFILE_NOT_COPIED);
    EXPECT_EQ(verdict(line, true), PROFILE_FINE);
    EXPECT_NE(print(profiles_rules).find("\ncontent = any\n"), std::string::npos);
    EXPECT_EQ(print(profiles_rules).find("quiet"), std::string::npos); // it must be quiet for 30 s
    line.since = 6000;
    EXPECT_EQ(verdict(line, true), PROFILE_CHANGED);
}

TEST_F(Profiles, TheLastLineOfAnAllocationCounts) {
    Line line, later;
    later.changed = 1;
    read(line.text() + looked(1) + later.text() + looked(1) + "{\"process\":\"1\",\"prog");
    profiles_judge(&profiles, 1, false);
    ASSERT_EQ(profiles.count, 1u);
    EXPECT_EQ(profiles.list[0]->verdict, PROFILE_CHANGED);
}

TEST_F(Profiles, ARuleHasTheIndicesThatAreFineInEveryProcess) {
    std::string text;
    for (int process = 1; process <= 2; process++)
        for (int number = 1; number <= 6; number++) {
            Line line;
            line.process = process;
            line.number = number;
            line.changed = number == 1 || number == 6 || (process == 2 && number == 5);
            text += line.text();
        }
    read(text + looked(1) + looked(2));
    profiles_judge(&profiles, 1, false);
    EXPECT_EQ(bare(print(profiles_rules)), "[region server-1]\nprogram = server\nsize = 4MiB\n"
                                           "index = 1..3\nrole = merge\nquiet = 0\n");
    EXPECT_EQ(profiles.rules[0].count, 3u);
    EXPECT_EQ(profiles.rules[0].saves, 12 * MiB);
    const std::string table = print(profiles_table);
    EXPECT_NE(table.find("no rule tells it from memory of its size that changes"),
              std::string::npos)
        << table; // number 5 of process 1
}

TEST_F(Profiles, ARuleHasTheCallerThatSeparates) {
    std::string text;
    for (int number = 1; number <= 4; number++) {
        Line line;
        line.number = number;
        line.changed = number % 2;
        line.caller = number % 2 ? "libcache.so" : "libwei ghts.so";
        text += line.text();
    }
    read(text + looked(1));
    profiles_judge(&profiles, 1, false);
    EXPECT_EQ(bare(print(profiles_rules)), "[region server-1]\nprogram = server\nsize = 4MiB\n"
                                           "caller = libwei?ghts.so\nrole = merge\nquiet = 0\n");
}

TEST_F(Profiles, NoIndexIsTrustedWhereSeveralThreadsAllocate) {
    Line first, second, third;
    second.number = 2;
    second.thread = 8;
    third.number = 3;
    third.changed = 1;
    read(first.text() + second.text() + third.text() + looked(1));
    profiles_judge(&profiles, 1, false);
    EXPECT_EQ(profiles.rule_count, 0u);
    EXPECT_EQ(profiles.list[0]->verdict, PROFILE_UNORDERED);
    profiles_free(&profiles);
    read(first.text() + second.text() + looked(1)); // but all may come in any order
    profiles_judge(&profiles, 1, false);
    EXPECT_EQ(profiles.rule_count, 1u);
}
