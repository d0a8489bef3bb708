// Merge rules in gpushare.conf: their defaults, and what is an error in them.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <utility>

extern "C" {
#include "config/config.h"
}

namespace {

void add_error(void *arg, const char *, unsigned line, const char *message) {
    *static_cast<std::string *>(arg) += std::to_string(line) + ": " + message + "\n";
}

std::string errors_of(std::string text) {
    std::string errors;
    gps_config config;
    const int status =
        gps_config_parse(&config, "t.conf", text.data(), text.size(), add_error, &errors);
    EXPECT_EQ(errors.empty() ? 0 : -EINVAL, status) << text << errors;
    gps_config_free(&config);
    return errors;
}

gps_rule rule_of(const std::string &keys) {
    std::string text = "[region weights]\n" + keys;
    gps_config config;
    EXPECT_EQ(0, gps_config_parse(&config, "t.conf", text.data(), text.size(), nullptr, nullptr));
    const gps_rule rule = config.rule_count == 1 ? config.rules[0] : gps_rule{};
    gps_config_free(&config);
    return rule;
}

TEST(MergeRule, ProgramAndRoleAreAWholeRule) {
    const gps_rule rule = rule_of("program = server\nrole = merge\n");
    EXPECT_EQ(GPS_ROLE_MERGE, rule.role);
    EXPECT_EQ(0u, rule.index_min);
    EXPECT_EQ(UINT64_MAX, rule.index_max) << "all that fit, not the first";
    EXPECT_EQ(UINT64_C(30000000000), rule.quiet);
    EXPECT_EQ(GPS_CONTENT_UPLOADED, rule.content);
    EXPECT_EQ(GPS_VERIFY_BYTES, rule.verify);
    EXPECT_EQ(GPS_OVERCOMMIT_OFF, rule.overcommit);
    EXPECT_EQ(GPS_OVERCOMMIT_ON, rule_of("role = merge\novercommit = on\nquiet = 0\n").overcommit);
    EXPECT_EQ(GPS_RDMA_OFF, rule.rdma);
    EXPECT_EQ(GPS_RDMA_ON, rule_of("role = merge\nrdma = on\n").rdma);
    EXPECT_EQ(GPS_MPS_OFF, rule.mps);
    EXPECT_EQ(GPS_MPS_ON, rule_of("role = merge\nmps = on\n").mps);
    EXPECT_EQ(GPS_CREATED_OFF, rule.created);
    EXPECT_EQ(GPS_CREATED_ON, rule_of("role = merge\ncreated = on\n").created);
    EXPECT_EQ(3u, rule_of("index = 3\nrole = merge\n").index_max) << "unless it is given";
}

TEST(MergeRule, KeysThatMeanNothingInItAreErrorsInTheirLine) {
    const std::pair<const char *, const char *> cases[] = {
        {"wait = 5min", "wait has no effect with role = merge: no process waits for another"},
        {"missing = fail", "missing has no effect with role = merge: what is not equal stays "},
        {"ready = alloc", "ready has no effect with role = merge: quiet says when "},
        {"handover = 1min", "handover has no effect with role = merge: keep says how long "},
        {"access = ro", "access has no effect with role = merge: a copy into a merged block "},
        {"overcommit = on", "overcommit has no effect with role = merge: it is for quiet = 0"},
        {"backing = legacy", "backing = legacy has no effect with role = merge: its blocks are "},
    };
    for (const auto &[key, wrong] : cases) {
        const std::string errors =
            errors_of("[region w]\nrole = merge\n" + std::string(key) + "\nkeep = users\n");
        EXPECT_EQ(0u, errors.find("3: [region w] " + std::string(wrong))) << errors;
        EXPECT_EQ(errors.size() - 1, errors.find('\n')) << "one error: " << errors;
    }
    EXPECT_EQ("", errors_of("[region w]\nrole = merge\nbacking = vmm\n")) << "as it is anyway";
}

TEST(MergeRule, TheOldWaysSayWhatToWriteInstead) {
    EXPECT_EQ(0u, errors_of("[region w]\nrole = auto\nupload = once\n")
                      .find("3: upload: upload = once is replaced by role = merge; a rule needs "
                            "nothing but a program and that"));
    EXPECT_EQ("3: ready = written: replaced by role = merge, which finds by itself what is "
              "uploaded (docs/replicas.md); one of alloc, free\n",
              errors_of("[region w]\nrole = export\nready = written\n"));
    EXPECT_EQ("3: verify = hash: not allowed; one of bytes, off\n",
              errors_of("[region w]\nrole = merge\nverify = hash\n"));
}

} // namespace
