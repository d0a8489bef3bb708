#include <dirent.h>

extern "C" {
#include "config/key.h"
}
#include "skip.hpp"

namespace {

using Errors = std::vector<std::string>;

void add_error(void *arg, const char *file, unsigned line, const char *message) {
    static_cast<Errors *>(arg)->push_back(std::string(file) + ":" + std::to_string(line) + ": " +
                                          message);
}

// A parsed text, freed with its scope.
struct Parsed {
    gps_config config;
    Errors errors;
    int status;

    explicit Parsed(const std::string &text) {
        // A copy of exactly the size that is needed, so that AddressSanitizer sees an access past
        // its end.
        std::vector<char> bytes(text.begin(), text.end());
        bytes.push_back('x');
        status = gps_config_parse(&config, "t.conf", bytes.data(), text.size(), add_error, &errors);
    }
    ~Parsed() {
        gps_config_free(&config);
    }
    Parsed(const Parsed &) = delete;
};

struct Loaded {
    gps_config config;
    Errors errors;
    int status;

    Loaded() {
        status = gps_config_load(&config, add_error, &errors);
    }
    ~Loaded() {
        gps_config_free(&config);
    }
    Loaded(const Loaded &) = delete;
};

// The one error of a text.
std::string error_of(const std::string &text) {
    Parsed parsed(text);
    EXPECT_EQ(parsed.status, -EINVAL) << text;
    EXPECT_EQ(parsed.errors.size(), 1u) << text << testing::PrintToString(parsed.errors);
    return parsed.errors.empty() ? "" : parsed.errors[0];
}

void expect_defaults(const gps_config &config) {
    EXPECT_EQ(config.options.mode, GPS_MODE_SHARE);
    EXPECT_EQ(config.options.on_free, GPS_FREE_DEFER);
    EXPECT_EQ(config.options.free_timeout, UINT64_C(30000000000));
    EXPECT_EQ(config.options.open_cache, 0u);
    EXPECT_EQ(config.options.open_cache_bytes, UINT64_C(1) << 40);
    EXPECT_EQ(config.options.vmm_ipc, GPS_VMM_IPC_OFF);
    EXPECT_EQ(config.options.linger, 0u);
    EXPECT_STREQ(config.options.log, "stderr");
    EXPECT_EQ(config.options.log_format, GPS_LOG_TEXT);
    EXPECT_EQ(config.options.log_level, GPS_LEVEL_WARNING);
    EXPECT_EQ(config.options.stack_depth, 16u);
    EXPECT_EQ(config.rule_count, 0u);
    EXPECT_STREQ(config.source, "");
}

// --- [gpushare] ---

TEST(ConfigOptions, HaveDefaults) {
    for (const char *text : {"", "\n\n", "# nothing\n; at all\n", "[gpushare]\n"}) {
        Parsed parsed(text);
        EXPECT_EQ(parsed.status, 0);
        expect_defaults(parsed.config);
    }
}

gps_options options_of(const std::string &line) {
    Parsed parsed("[gpushare]\n" + line + "\n");
    EXPECT_EQ(parsed.status, 0) << testing::PrintToString(parsed.errors);
    return parsed.config.options;
}

TEST(ConfigOptions, TakeEachAllowedValue) {
    EXPECT_EQ(options_of("mode = share").mode, GPS_MODE_SHARE);
    EXPECT_EQ(options_of("mode = audit").mode, GPS_MODE_AUDIT);
    EXPECT_EQ(options_of("mode = off").mode, GPS_MODE_OFF);
    EXPECT_EQ(options_of("on_free = defer").on_free, GPS_FREE_DEFER);
    EXPECT_EQ(options_of("on_free = wait").on_free, GPS_FREE_WAIT);
    EXPECT_EQ(options_of("on_free = refuse").on_free, GPS_FREE_REFUSE);
    EXPECT_EQ(options_of("on_free = allow").on_free, GPS_FREE_ALLOW);
    EXPECT_EQ(options_of("free_timeout = 500ms").free_timeout, 500000000u);
    EXPECT_EQ(options_of("linger = 2min").linger, UINT64_C(120000000000));
    EXPECT_EQ(options_of("linger = 0").linger, 0u);
    EXPECT_EQ(options_of("open_cache = 64").open_cache, 64u);
    EXPECT_EQ(options_of("vmm_ipc = on").vmm_ipc, GPS_VMM_IPC_ON);
    EXPECT_EQ(options_of("vmm_ipc = off").vmm_ipc, GPS_VMM_IPC_OFF);
    EXPECT_EQ(options_of("open_cache_bytes = 2GiB").open_cache_bytes, UINT64_C(2) << 30);
    EXPECT_STREQ(options_of("log = stderr").log, "stderr");
    EXPECT_STREQ(options_of("log = /tmp/a b;c.%c.%p%%").log, "/tmp/a b;c.%c.%p%%");
    EXPECT_EQ(options_of("log_format = text").log_format, GPS_LOG_TEXT);
    EXPECT_EQ(options_of("log_format = jsonl").log_format, GPS_LOG_JSONL);
    EXPECT_EQ(options_of("log_level = info").log_level, GPS_LEVEL_INFO);
    EXPECT_EQ(options_of("log_level = warning").log_level, GPS_LEVEL_WARNING);
    EXPECT_EQ(options_of("log_level = error").log_level, GPS_LEVEL_ERROR);
    EXPECT_EQ(options_of("stack_depth = 0").stack_depth, 0u);
    EXPECT_EQ(options_of("stack_depth = 64").stack_depth, 64u);
}

struct Bad {
    const char *key, *value, *message;
};

const Bad bad_options[] = {
    {"mode", "shared", "mode = shared: not allowed, perhaps share; one of share, audit, off"},
    {"on_free", "Defer",
     "on_free = Defer: not allowed, perhaps defer; one of defer, wait, refuse, allow"},
    {"free_timeout", "30", "free_timeout = 30: no unit; a time such as 500ms, 30s, 2min or 1h"},
    {"open_cache", "65537", "open_cache = 65537: too large; 0 to 65536"},
    {"linger", "-1s", "linger = -1s: not a number; a time such as 500ms, 30s, 2min or 1h"},
    {"linger", "501h", "linger = 501h: longer than 500h; a time such as 500ms, 30s, 2min or 1h"},
    {"log", "/tmp/%d",
     "log = /tmp/%d: after a % only p, c and % are known; stderr, or a path in which %p is the pid "
     "and %c the command"},
    {"log", "/tmp/%",
     "log = /tmp/%: after a % only p, c and % are known; stderr, or a path in which %p is the pid "
     "and %c the command"},
    {"log_format", "json", "log_format = json: not allowed, perhaps jsonl; one of text, jsonl"},
    {"log_level", "debug", "log_level = debug: not allowed; one of info, warning, error"},
    {"log_max", "0", "log_max = 0: must be more than 0; a size such as 500KiB, 64MiB or 1GiB"},
    {"event_log", "stderr",
     "event_log = stderr: events do not go to stderr; off, or a path in which %p is the pid and %c "
     "the command"},
    {"stack_depth", "65", "stack_depth = 65: too large; 0 to 64"},
    {"stack_depth", "18446744073709551632",
     "stack_depth = 18446744073709551632: too large; 0 to 64"},
    {"stack_depth", "x", "stack_depth = x: not a number; 0 to 64"},
};

TEST(ConfigOptions, SayWhatIsWrongWithAValue) {
    for (const Bad &bad : bad_options)
        EXPECT_EQ(error_of(std::string("# one\n[gpushare]\n") + bad.key + " = " + bad.value + "\n"),
                  std::string("t.conf:3: ") + bad.message);
}

TEST(ConfigOptions, HaveNoEmptyValues) {
    EXPECT_EQ(error_of("[gpushare]\nmode =\n"),
              "t.conf:2: mode: no value; one of share, audit, off");
    EXPECT_EQ(error_of("[gpushare]\nmode = ; share\n"),
              "t.conf:2: mode: no value; one of share, audit, off");
}

TEST(ConfigOptions, ShowOnlyTheBeginningOfALongValue) {
    EXPECT_EQ(error_of("[gpushare]\nmode = " + std::string(150, 'x') + "\n"),
              "t.conf:2: mode = " + std::string(63, 'x') +
                  "...: not allowed; one of share, audit, off");
}

// --- [region NAME] ---

TEST(ConfigRule, HasDefaults) {
    Parsed parsed("\n[region frames]\nrole = export\n");
    ASSERT_EQ(parsed.status, 0) << testing::PrintToString(parsed.errors);
    ASSERT_EQ(parsed.config.rule_count, 1u);
    const gps_rule &rule = parsed.config.rules[0];
    EXPECT_STREQ(rule.name, "frames");
    EXPECT_EQ(rule.line, 2u);
    EXPECT_STREQ(rule.program, "*");
    EXPECT_EQ(rule.size_min, 1u);
    EXPECT_EQ(rule.size_max, UINT64_MAX);
    EXPECT_EQ(rule.index_min, 0u);
    EXPECT_EQ(rule.index_max, 0u);
    EXPECT_EQ(rule.device_kind, GPS_DEVICE_ANY);
    EXPECT_STREQ(rule.caller, "*");
    EXPECT_EQ(rule.role, GPS_ROLE_EXPORT);
    EXPECT_EQ(rule.wait, UINT64_C(10000000000));
    EXPECT_EQ(rule.missing, GPS_MISSING_PRIVATE);
    EXPECT_EQ(rule.ready, GPS_READY_ALLOC);
    EXPECT_EQ(rule.handover, UINT64_C(60000000000));
    EXPECT_EQ(rule.backing, GPS_RULE_LEGACY);
    EXPECT_EQ(rule.keep, GPS_KEEP_OWNER);
    EXPECT_EQ(rule.access, GPS_ACCESS_RW);
}

gps_rule rule_of(const std::string &lines, const std::string &name = "r{n}") {
    Parsed parsed("[region " + name + "]\n" + lines + "\n");
    EXPECT_EQ(parsed.status, 0) << lines << testing::PrintToString(parsed.errors);
    return parsed.config.rule_count == 1 ? parsed.config.rules[0] : gps_rule{};
}

gps_rule importer(const std::string &line) {
    return rule_of("role = import\n" + line);
}

TEST(ConfigRule, TakesEachAllowedValue) {
    EXPECT_EQ(rule_of("role = export").role, GPS_ROLE_EXPORT);
    EXPECT_EQ(rule_of("role = import").role, GPS_ROLE_IMPORT);
    EXPECT_EQ(rule_of("role = auto").role, GPS_ROLE_AUTO);
    EXPECT_STREQ(importer("program = prod[uo]cer*").program, "prod[uo]cer*");
    EXPECT_STREQ(importer("program = " + std::string(127, 'p')).program,
                 std::string(127, 'p').c_str());
    EXPECT_STREQ(importer("caller = libtorch_cuda.so").caller, "libtorch_cuda.so");
    EXPECT_EQ(importer("size = 64MiB").size_min, 64u << 20);
    EXPECT_EQ(importer("size = 64MiB").size_max, 64u << 20);
    EXPECT_EQ(importer("size = 1MiB..2MiB").size_min, 1u << 20);
    EXPECT_EQ(importer("size = 1MiB..2MiB").size_max, 2u << 20);
    EXPECT_EQ(importer("size = >=1GiB").size_max, UINT64_MAX);
    EXPECT_EQ(importer("size = *").size_min, 1u);
    EXPECT_EQ(importer("index = 7").index_min, 7u);
    EXPECT_EQ(importer("index = 7").index_max, 7u);
    EXPECT_EQ(importer("index = *").index_min, 0u);
    EXPECT_EQ(importer("index = *").index_max, UINT64_MAX);
    EXPECT_EQ(importer("index = 2..9").index_min, 2u);
    EXPECT_EQ(importer("index = 2..9").index_max, 9u);
    EXPECT_EQ(importer("index = >=4").index_min, 4u);
    EXPECT_EQ(importer("index = >=4").index_max, UINT64_MAX);
    EXPECT_EQ(importer("device = *").device_kind, GPS_DEVICE_ANY);
    EXPECT_EQ(importer("device = 3").device_kind, GPS_DEVICE_ORDINAL);
    EXPECT_EQ(importer("device = 3").device_ordinal, 3u);
    EXPECT_EQ(importer("wait = 1h").wait, UINT64_C(3600000000000));
    EXPECT_EQ(importer("wait = 0").wait, 0u);
    EXPECT_EQ(importer("missing = private").missing, GPS_MISSING_PRIVATE);
    EXPECT_EQ(importer("missing = fail").missing, GPS_MISSING_FAIL);
    EXPECT_EQ(importer("ready = alloc").ready, GPS_READY_ALLOC);
    EXPECT_EQ(importer("ready = free").ready, GPS_READY_FREE);
    EXPECT_EQ(importer("handover = 5s").handover, UINT64_C(5000000000));
    EXPECT_EQ(importer("handover = 0").handover, 0u);
    EXPECT_EQ(importer("backing = vmm").backing, GPS_RULE_VMM);
    EXPECT_EQ(importer("backing = vmm\nkeep = users").keep, GPS_KEEP_USERS);
    EXPECT_EQ(importer("backing = vmm\nkeep = forever").keep, GPS_KEEP_FOREVER);
    EXPECT_EQ(importer("backing = vmm\nkeep = 10m").keep, GPS_KEEP_FOR);
    EXPECT_EQ(importer("backing = vmm\nkeep = 10m").keep_for, UINT64_C(600000000000));
    EXPECT_EQ(importer("backing = vmm\naccess = ro").access, GPS_ACCESS_RO);
    EXPECT_EQ(rule_of("role = merge").role, GPS_ROLE_MERGE);
    EXPECT_EQ(rule_of("role = merge\nquiet = 0").quiet, 0u);
    EXPECT_EQ(rule_of("role = merge\ncontent = uploaded").content, GPS_CONTENT_UPLOADED);
    EXPECT_EQ(rule_of("role = merge\ncontent = any").content, GPS_CONTENT_ANY);
    EXPECT_EQ(rule_of("role = merge\nverify = bytes").verify, GPS_VERIFY_BYTES);
    EXPECT_EQ(rule_of("role = merge\nverify = off").verify, GPS_VERIFY_OFF);
}

TEST(ConfigRule, TakesDeviceUuids) {
    const uint8_t expected[16] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
                                  0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77};
    for (const char *prefix : {"GPU", "MIG"}) {
        gps_rule rule =
            importer(std::string("device = ") + prefix + "-01234567-89ab-cdef-0011-223344556677");
        EXPECT_EQ(rule.device_kind, GPS_DEVICE_UUID);
        EXPECT_EQ(memcmp(rule.device_uuid, expected, 16), 0);
    }
}

const char *const glob_help = "; a glob (* ? [abc]) on a file name, at most 127 characters";
const char *const size_help = "; a size (64MiB), a range (1MiB..2MiB, >=1GiB, <1MiB) or *";
const char *const index_help =
    "; a number from 0, or a range (0..9, >=4) or * (then the name needs {n})";
const char *const device_help = "; an ordinal (0), a UUID (GPU-... or MIG-...) or *";
const char *const time_help = "; a time such as 500ms, 30s, 2min or 1h";

TEST(ConfigRule, SaysWhatIsWrongWithAValue) {
    const struct {
        std::string key, value, message;
    } cases[] = {
        {"program", "/bin/x",
         std::string("holds a /, but a file name is matched and not a path") + glob_help},
        {"program", "a[b", std::string("a [ is not closed") + glob_help},
        {"caller", "x\\", std::string("ends with a \\") + glob_help},
        {"size", "64MB",
         std::string("KB, MB, GB and TB are ambiguous, write KiB, MiB, GiB or TiB") + size_help},
        {"size", "0", std::string("must be more than 0") + size_help},
        {"size", "2MiB..1MiB", std::string("the range ends before it begins") + size_help},
        {"size", "99999999TiB", std::string("too large") + size_help},
        {"index", "-1", std::string("not a number") + index_help},
        {"index", "18446744073709551616", std::string("too large") + index_help},
        {"index", "9..0", std::string("the range ends before it begins") + index_help},
        {"index", "<0", std::string("matches no index") + index_help},
        {"index", "1MiB", std::string("not a number or a range") + index_help},
        {"device", "cuda:0", std::string("not a device") + device_help},
        {"device", "4294967296", std::string("not a device") + device_help},
        {"device", "GPU-0123", std::string("not a device") + device_help},
        {"wait", "10", std::string("no unit") + time_help},
        {"missing", "retry", "not allowed; one of private, fail"},
        {"ready", "now", "not allowed; one of alloc, free"},
        {"backing", "cuda", "not allowed; one of legacy, vmm"},
        {"keep", "always",
         "not a number; owner, users, forever, or a time such as 500ms, 30s, 2min or 1h"},
        {"keep", "ever",
         "not a number, perhaps forever; owner, users, forever, or a time such as 500ms, 30s, 2min "
         "or 1h"},
        {"access", "r", "not allowed, perhaps rw; one of rw, ro"},
        {"handover", "1d", std::string("not a unit of time") + time_help},
    };
    for (const auto &each : cases)
        EXPECT_EQ(error_of("[region r]\nrole = auto\n" + each.key + " = " + each.value + "\n"),
                  "t.conf:3: " + each.key + " = " + each.value + ": " + each.message);
    EXPECT_EQ(error_of("[region r]\nrole = merge\nquiet = 1\n"),
              std::string("t.conf:3: quiet = 1: no unit") + time_help);
    EXPECT_EQ(error_of("[region r]\nrole = merge\ncontent = computed\n"),
              "t.conf:3: content = computed: not allowed; one of uploaded, any");
    EXPECT_EQ(error_of("[region r]\nrole = both\n"),
              "t.conf:2: role = both: not allowed; one of export, import, auto, merge");
    EXPECT_EQ(error_of("[region r]\nrole = auto\nprogram = " + std::string(128, 'p') + "\n"),
              "t.conf:3: program = " + std::string(63, 'p') + "...: longer than 127 characters" +
                  glob_help);
}

TEST(ConfigRule, NeedsARole) {
    EXPECT_EQ(error_of("[gpushare]\n\n[region r]\nsize = 1\n"),
              "t.conf:3: [region r] has no role; one of export, import, auto, merge");
    EXPECT_EQ(error_of("[region r]\n[region s]\nrole = auto\n"),
              "t.conf:1: [region r] has no role; one of export, import, auto, merge");
}

TEST(ConfigRule, NeedsAValidName) {
    const std::string allowed = "; 1 to 127 of A-Z a-z 0-9 . _ - {n} {device}, no dot first";
    const std::pair<const char *, const char *> cases[] = {
        {"region", "[region] the name is missing"},
        {"region  ", "[region] the name is missing"},
        {"region .x", "[region .x] the name begins with a dot"},
        {"region a b", "[region a b] the name has a character that is not allowed"},
        {"region a{x}", "[region a{x}] the name has a placeholder that is not known"},
    };
    for (const auto &each : cases)
        EXPECT_EQ(error_of(std::string("[") + each.first + "]\nrole = auto\n"),
                  "t.conf:1: " + std::string(each.second) + allowed);
}

TEST(ConfigRule, MayHaveAsLongANameAsARegion) {
    std::string name(127, 'x');
    EXPECT_EQ(rule_of("role = auto", name).name, name);
    for (size_t more : {1, 10000})
        EXPECT_EQ(error_of("[region " + name + std::string(more, 'x') + "]\nrole = auto\n"),
                  "t.conf:1: [region " + name +
                      "] the name is longer than 127 characters; 1 to 127 of A-Z a-z 0-9 . _ - {n} "
                      "{device}, no dot first");
    EXPECT_EQ(rule_of("role = auto\nindex = *", name.substr(3) + "{n}").name,
              name.substr(3) + "{n}");
}

TEST(ConfigRule, RefusesContradictions) {
    for (const char *index : {"*", "0..9", ">=4"})
        EXPECT_EQ(error_of(std::string("[region r]\nrole = auto\nindex = ") + index + "\n"),
                  "t.conf:3: [region r] index = * or a range gives many allocations one name; put "
                  "{n} into the name");
    EXPECT_EQ(rule_of("role = auto\nindex = 4..4", "r").index_max, 4u);
    EXPECT_EQ(error_of("[region r]\nrole = export\nready = free\nhandover = 0\n"),
              "t.conf:3: [region r] ready = free with handover = 0 hands nothing over; give "
              "handover a time");
    const std::pair<const char *, const char *> vmm_only[] = {
        {"keep = users", "keep is for backing = vmm: legacy memory ends with its owner"},
        {"access = ro", "access = ro is for backing = vmm: legacy memory is always writable"},
        {"backing = vmm\nready = free",
         "ready = free is for backing = legacy; with vmm, keep says what outlives its owner"},
    };
    for (const auto &each : vmm_only)
        EXPECT_EQ(error_of("[region r]\nrole = auto\n" + std::string(each.first) + "\n"),
                  std::string(strchr(each.first, '\n') ? "t.conf:4: [region r] "
                                                       : "t.conf:3: [region r] ") +
                      each.second);
}

TEST(ConfigRule, KeysOfTheOtherSideAreLegal) {
    importer("ready = free\nhandover = 5s");
    rule_of("role = export\nwait = 5s\nmissing = fail");
    rule_of("role = auto\nready = free\nhandover = 5s\nwait = 5s\nmissing = fail");
    rule_of("role = export\nready = alloc\nhandover = 0");
}

TEST(ConfigRule, RulesKeepTheirOrder) {
    std::string text;
    for (int i = 0; i < 100; i++)
        text +=
            "[region r" + std::to_string(i) + "]\nrole = auto\nindex = " + std::to_string(i) + "\n";
    Parsed parsed(text);
    ASSERT_EQ(parsed.status, 0);
    ASSERT_EQ(parsed.config.rule_count, 100u);
    for (size_t i = 0; i < 100; i++) {
        EXPECT_EQ(parsed.config.rules[i].name, "r" + std::to_string(i));
        EXPECT_EQ(parsed.config.rules[i].index_min, i);
        EXPECT_EQ(parsed.config.rules[i].line, 3 * i + 1);
    }
}

TEST(ConfigRule, OneFileServesAllSidesOfARegion) {
    Parsed parsed("[region r]\nrole = export\nprogram = camera\n"
                  "[region r]\nrole = import\nprogram = viewer\n"
                  "[region r]\nrole = import\nprogram = recorder\n");
    EXPECT_EQ(parsed.status, 0) << testing::PrintToString(parsed.errors);
    EXPECT_EQ(parsed.config.rule_count, 3u);
}

TEST(ConfigRule, IsNotGivenTwice) {
    EXPECT_EQ(
        error_of("[region r]\nrole = auto\n[region s]\nrole = auto\n[region r]\nrole = auto\n"),
        "t.conf:5: [region r] is given twice with one role and program; it was first in line 1");
    EXPECT_EQ(
        error_of("[region r]\nrole = import\nprogram = a\n[region  r ]\nprogram = a\n"
                 "role = import\nsize = 5\n"),
        "t.conf:4: [region r] is given twice with one role and program; it was first in line 1");
}

// --- rules that merge ---

gps_rule merging(const std::string &line = "") {
    return rule_of("role = merge\n" + line);
}

TEST(MergeRule, ProgramAndRoleAreAWholeRule) {
    const gps_rule rule = merging("program = server");
    EXPECT_EQ(GPS_ROLE_MERGE, rule.role);
    EXPECT_EQ(0u, rule.index_min);
    EXPECT_EQ(UINT64_MAX, rule.index_max) << "all that fit, not the first";
    EXPECT_EQ(UINT64_C(30000000000), rule.quiet);
    EXPECT_EQ(GPS_CONTENT_UPLOADED, rule.content);
    EXPECT_EQ(GPS_VERIFY_BYTES, rule.verify);
    EXPECT_EQ(GPS_OVERCOMMIT_OFF, rule.overcommit);
    EXPECT_EQ(GPS_OVERCOMMIT_ON, merging("overcommit = on\nquiet = 0").overcommit);
    EXPECT_EQ(GPS_RDMA_OFF, rule.rdma);
    EXPECT_EQ(GPS_RDMA_ON, merging("rdma = on").rdma);
    EXPECT_EQ(GPS_MPS_OFF, rule.mps);
    EXPECT_EQ(GPS_MPS_ON, merging("mps = on").mps);
    EXPECT_EQ(GPS_CREATED_OFF, rule.created);
    EXPECT_EQ(GPS_CREATED_ON, merging("created = on").created);
    EXPECT_EQ(3u, merging("index = 3").index_max) << "unless it is given";
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
        const std::string error =
            error_of("[region w]\nrole = merge\n" + std::string(key) + "\nkeep = users\n");
        EXPECT_EQ(0u, error.find("t.conf:3: [region w] " + std::string(wrong))) << error;
    }
    merging("backing = vmm"); // as it is anyway
}

TEST(MergeRule, TheOldWaysSayWhatToWriteInstead) {
    EXPECT_EQ(0u, error_of("[region w]\nrole = auto\nupload = once\n")
                      .find("t.conf:3: upload: upload = once is replaced by role = merge; a rule "
                            "needs nothing but a program and that"));
    EXPECT_EQ("t.conf:3: ready = written: replaced by role = merge, which finds by itself what is "
              "uploaded (docs/replicas.md); one of alloc, free",
              error_of("[region w]\nrole = export\nready = written\n"));
    EXPECT_EQ("t.conf:3: verify = hash: not allowed; one of bytes, off",
              error_of("[region w]\nrole = merge\nverify = hash\n"));
}

// --- the file as such ---

const char *const option_keys =
    "[gpushare] has mode, on_free, free_timeout, open_cache, open_cache_bytes, vmm_ipc, linger, "
    "log, log_format, log_level, log_max, event_log, leak_check, stack_depth, suspend, blocks, "
    "suspend_memory, free";
const char *const region_keys =
    "a region has program, size, index, device, caller, role, wait, missing, ready, handover, "
    "backing, keep, access, frames, frame_slots, frames_timeout, frame_waits, touch, quiet, "
    "content, verify, overcommit, rdma, mps, created";

TEST(ConfigFile, NamesUnknownKeysAndAllThatThereAre) {
    EXPECT_EQ(error_of("[gpushare]\nmdoe = off\n"),
              std::string("t.conf:2: mdoe: unknown key, perhaps mode; ") + option_keys);
    EXPECT_EQ(error_of("[gpushare]\nLog = x\n"),
              std::string("t.conf:2: Log: unknown key, perhaps log; ") + option_keys);
    EXPECT_EQ(error_of("[gpushare]\nverbose = 1\n"),
              std::string("t.conf:2: verbose: unknown key; ") + option_keys);
    EXPECT_EQ(error_of("[gpushare]\nsize = 1\n"),
              std::string("t.conf:2: size: belongs in a [region NAME]; ") + option_keys);
    EXPECT_EQ(error_of("[region r]\nrole = auto\nhand_over = 1s\n"),
              std::string("t.conf:3: hand_over: unknown key, perhaps handover; ") + region_keys);
    EXPECT_EQ(error_of("[region r]\nrole = auto\nmode = off\n"),
              std::string("t.conf:3: mode: belongs in [gpushare]; ") + region_keys);
}

TEST(ConfigFile, NamesUnknownSectionsAndSkipsThem) {
    EXPECT_EQ(
        error_of("[gpu share]\nmode = nonsense\n"),
        "t.conf:1: [gpu share] unknown section, perhaps [gpushare]; [gpushare] or [region NAME]");
    EXPECT_EQ(
        error_of("[regions a]\n"),
        "t.conf:1: [regions a] unknown section, perhaps [region]; [gpushare] or [region NAME]");
    EXPECT_EQ(error_of("[suppress x]\n"),
              "t.conf:1: [suppress x] unknown section; [gpushare] or [region NAME]; suppressions "
              "have a file of their own: audit --suppressions");
    EXPECT_EQ(error_of("[]\n"), "t.conf:1: [] unknown section; [gpushare] or [region NAME]");
    EXPECT_EQ(
        error_of("[Gpushare]\n"),
        "t.conf:1: [Gpushare] unknown section, perhaps [gpushare]; [gpushare] or [region NAME]");
    EXPECT_EQ(error_of("[" + std::string(10000, 'x') + "]\n"),
              "t.conf:1: [" + std::string(63, 'x') +
                  "...] unknown section; [gpushare] or [region NAME]");
}

TEST(ConfigFile, RefusesWhatIsNeitherSectionNorKey) {
    EXPECT_EQ(error_of("mode = off\n"),
              "t.conf:1: a key outside a section; [gpushare] or [region NAME] must precede it");
    EXPECT_EQ(error_of("[gpushare]\nmode\n"),
              "t.conf:2: neither a section nor a key; write key = value");
    EXPECT_EQ(error_of("[gpushare]\nmode ; = off\n"),
              "t.conf:2: neither a section nor a key; write key = value");
    EXPECT_EQ(error_of("[gpushare]\n= off\n"), "t.conf:2: no key before the =; write key = value");
    EXPECT_EQ(error_of("[gpushare\n"),
              "t.conf:1: a section without its ]; write [gpushare] or [region NAME]");
    EXPECT_EQ(error_of("[gpushare] mode = off\n"),
              "t.conf:1: text behind the ] of a section; only a comment may stand there");
}

TEST(ConfigFile, RefusesAKeyGivenTwice) {
    EXPECT_EQ(error_of("[gpushare]\nmode = off\nlog = stderr\nmode = off\n"),
              "t.conf:4: mode: given twice in this section; it was first in line 2");
    EXPECT_EQ(error_of("[region a]\nrole = auto\nrole = auto\n"),
              "t.conf:3: role: given twice in this section; it was first in line 2");
    Parsed each_section("[region a]\nrole = auto\n[region b]\nrole = auto\n");
    EXPECT_EQ(each_section.status, 0);
}

TEST(ConfigFile, RefusesASectionGivenTwice) {
    EXPECT_EQ(error_of("[gpushare]\n[region r]\nrole = auto\n[gpushare]\nmode = off\n"),
              "t.conf:4: [gpushare] is given twice; it was first in line 1");
}

TEST(ConfigFile, RefusesContinuationLines) {
    const std::string message = "begins with white space; a key must begin its line, and a value "
                                "cannot continue on the next";
    EXPECT_EQ(error_of("[gpushare]\nlog = /tmp/a\n mode = off\n"), "t.conf:3: " + message);
    EXPECT_EQ(error_of("[gpushare]\nlog = /tmp/a\n\t/b=c\n"), "t.conf:3: " + message);
    EXPECT_EQ(error_of("[gpushare]\n mode = off\n"), "t.conf:2: " + message);
    Parsed harmless("[gpushare]\n   \n\t; comment\n  # comment\nmode = off\n");
    EXPECT_EQ(harmless.status, 0) << testing::PrintToString(harmless.errors);
    EXPECT_EQ(harmless.config.options.mode, GPS_MODE_OFF);
}

TEST(ConfigFile, LinesAreAsLongAsTheirValuesAndComments) {
    const std::string path = "/" + std::string(1022, 'x');
    Parsed longest("[gpushare]\nlog =" + std::string(10000, ' ') + path + " ; " +
                   std::string(100000, 'y') + "\r\nmode = off\n");
    ASSERT_EQ(longest.status, 0) << testing::PrintToString(longest.errors);
    EXPECT_EQ(longest.config.options.log, path);
    EXPECT_EQ(longest.config.options.mode, GPS_MODE_OFF);
    EXPECT_EQ(error_of("[gpushare]\nlog = " + path + "x\n"),
              "t.conf:2: log = " + path.substr(0, 63) +
                  "...: longer than 1023 characters; stderr, or a path in which %p is the pid and "
                  "%c the command");
    EXPECT_EQ(error_of("[gpushare]\n" + std::string(10000, 'k') + " = 1\n"),
              "t.conf:2: " + std::string(63, 'k') + "...: unknown key; " + option_keys);
    Parsed comment("# " + std::string(1000, 'x') + "mode = off\n[gpushare]\n");
    EXPECT_EQ(comment.status, 0);
    EXPECT_EQ(comment.config.options.mode, GPS_MODE_SHARE);
}

TEST(ConfigFile, RefusesNulBytes) {
    EXPECT_EQ(error_of(std::string("[gpushare]\nmode = \0off\n", 23)),
              "t.conf:2: a NUL byte; the file must be text in UTF-8");
    EXPECT_EQ(error_of(std::string("\0", 1)),
              "t.conf:1: a NUL byte; the file must be text in UTF-8");
    EXPECT_EQ(error_of(std::string("\xff\xfe[\0g\0\n\0", 8)),
              "t.conf:1: a NUL byte; the file must be text in UTF-8");
}

TEST(ConfigFile, RefusesControlCharacters) {
    EXPECT_EQ(error_of("[gpushare]\nlog = /tmp/\x1b[31m\n"),
              "t.conf:2: a control character; only tabs are allowed");
    EXPECT_EQ(error_of("[gpushare]\nlog = a\rmode = off\n"),
              "t.conf:2: a control character; only tabs are allowed");
}

TEST(ConfigFile, RefusesTheSyntaxOfOtherFormats) {
    EXPECT_EQ(error_of("[gpushare]\nmode = \"off\"\n"), "t.conf:2: a value stands without quotes");
    EXPECT_EQ(error_of("[gpushare]\nmode = 'off'\n"), "t.conf:2: a value stands without quotes");
    EXPECT_EQ(error_of("[gpushare]\nlog = /tmp/x # here\n"),
              "t.conf:2: a comment behind a value begins with ; and not with #");
    EXPECT_STREQ(options_of("log = /tmp/x#y").log, "/tmp/x#y");
}

TEST(ConfigFile, ToleratesBomCrlfTabsAndAMissingLastNewline) {
    Parsed parsed(
        "\xef\xbb\xbf[gpushare]\r\nmode\t=\toff\t; why\r\nlog=/tmp/x ;y\r\n[region  r ] ; z\r\n"
        "role:auto");
    ASSERT_EQ(parsed.status, 0) << testing::PrintToString(parsed.errors);
    EXPECT_EQ(parsed.config.options.mode, GPS_MODE_OFF);
    EXPECT_STREQ(parsed.config.options.log, "/tmp/x");
    ASSERT_EQ(parsed.config.rule_count, 1u);
    EXPECT_STREQ(parsed.config.rules[0].name, "r");
    EXPECT_EQ(parsed.config.rules[0].role, GPS_ROLE_AUTO);
}

TEST(ConfigFile, ReportsEveryErrorAndThenHoldsTheDefaults) {
    Parsed parsed(
        "[gpushare]\nmode = x\nlog_format = jsonl\nlinger = y\n[region a]\nrole = z\nwait = 1\n"
        "[nonsense]\n[region b]\nrole = auto\n");
    EXPECT_EQ(parsed.status, -EINVAL);
    EXPECT_EQ(parsed.errors,
              (Errors{"t.conf:2: mode = x: not allowed; one of share, audit, off",
                      "t.conf:4: linger = y: not a number; a time such as 500ms, 30s, 2min or 1h",
                      "t.conf:6: role = z: not allowed; one of export, import, auto, merge",
                      "t.conf:7: wait = 1: no unit; a time such as 500ms, 30s, 2min or 1h",
                      "t.conf:8: [nonsense] unknown section; [gpushare] or [region NAME]"}));
    expect_defaults(parsed.config);
    EXPECT_EQ(parsed.config.rules, nullptr);
}

TEST(ConfigFile, NobodyNeedsToListen) {
    gps_config config;
    char text[] = "x";
    EXPECT_EQ(gps_config_parse(&config, "t.conf", text, 1, nullptr, nullptr), -EINVAL);
    expect_defaults(config);
}

TEST(ConfigFile, IsAtMostOneMebibyte) {
    std::string text = "[gpushare]\nmode = off\n";
    text.resize(1 << 20, '\n');
    Parsed fits(text);
    EXPECT_EQ(fits.status, 0);
    EXPECT_EQ(fits.config.options.mode, GPS_MODE_OFF);
    EXPECT_EQ(error_of(text + "\n"), "t.conf:0: is larger than 1 MiB");
}

TEST(ConfigFile, ReportsEachLineOfAHugeWrongFile) {
    std::string text = "[gpushare]\n";
    for (int i = 0; i < 50000; i++)
        text += "nonsense\n";
    Parsed parsed(text);
    EXPECT_EQ(parsed.errors.size(), 50000u);
    EXPECT_EQ(parsed.errors.back(), "t.conf:50001: neither a section nor a key; write key = value");
}

TEST(ConfigFile, HoldsAtMost4096Regions) {
    std::string text;
    for (int i = 0; i < 4096; i++)
        text += "[region r" + std::to_string(i) + "]\nrole=auto\n";
    Parsed fits(text);
    EXPECT_EQ(fits.status, 0);
    EXPECT_EQ(fits.config.rule_count, 4096u);
    EXPECT_EQ(error_of(text + "[region a]\nrole=auto\n[region b]\nrole=nonsense\n"),
              "t.conf:8193: more than 4096 regions in one file");
}

// --- where it is found ---

class ConfigLoad : public testing::Test {
  protected:
    std::string dir;

    void SetUp() override {
        char name[] = "/tmp/gps_config_XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        dir = name;
        clearenv();
        setenv("HOME", (dir + "/home").c_str(), 1);
    }
    void TearDown() override {
        ASSERT_EQ(system(("PATH=/usr/bin:/bin rm -rf " + dir).c_str()), 0);
    }
    std::string write(const std::string &name, const std::string &text) {
        std::string path = dir + "/" + name;
        for (size_t at = dir.size() + 1; (at = path.find('/', at)) != std::string::npos; at++)
            mkdir(path.substr(0, at).c_str(), 0700);
        std::ofstream(path) << text;
        return path;
    }
    std::string load_error(const std::string &path) {
        setenv("GPUSHARE_CONFIG", path.c_str(), 1);
        Loaded loaded;
        EXPECT_EQ(loaded.status, -EINVAL);
        EXPECT_EQ(loaded.errors.size(), 1u) << testing::PrintToString(loaded.errors);
        expect_defaults(loaded.config);
        return loaded.errors.empty() ? "" : loaded.errors[0];
    }
};

TEST_F(ConfigLoad, WithoutAnyFileHoldsTheDefaults) {
    SKIP_IF(access("/etc/gpushare.conf", F_OK) == 0, "this machine has an /etc/gpushare.conf");
    for (const char *home : {"set", "empty", "unset"}) {
        if (strcmp(home, "empty") == 0)
            setenv("HOME", "", 1);
        else if (strcmp(home, "unset") == 0)
            unsetenv("HOME");
        Loaded loaded;
        EXPECT_EQ(loaded.status, 0) << home;
        expect_defaults(loaded.config);
    }
}

TEST_F(ConfigLoad, TakesTheFirstFileThatExists) {
    std::string home =
        write("home/.config/gpushare/gpushare.conf", "[gpushare]\nstack_depth = 1\n");
    {
        Loaded loaded;
        EXPECT_EQ(loaded.config.source, home);
        EXPECT_EQ(loaded.config.options.stack_depth, 1u);
    }
    setenv("XDG_CONFIG_HOME", (dir + "/xdg").c_str(), 1);
    std::string xdg = write("xdg/gpushare/gpushare.conf", "[gpushare]\nstack_depth = 2\n");
    {
        Loaded loaded;
        EXPECT_EQ(loaded.config.source, xdg);
        EXPECT_EQ(loaded.config.options.stack_depth, 2u);
    }
    std::string own = write("own.conf", "[gpushare]\nlinger = 1s\n");
    setenv("GPUSHARE_CONFIG", own.c_str(), 1);
    {
        Loaded loaded;
        EXPECT_EQ(loaded.config.source, own);
        EXPECT_EQ(loaded.config.options.linger, 1000000000u);
        EXPECT_EQ(loaded.config.options.stack_depth, 16u); // the others are not read
    }
    setenv("GPUSHARE_CONFIG", "", 1);
    {
        Loaded loaded;
        EXPECT_EQ(loaded.config.source, xdg);
    }
}

TEST_F(ConfigLoad, IgnoresARelativeXdgConfigHome) {
    std::string home = write("home/.config/gpushare/gpushare.conf", "");
    setenv("XDG_CONFIG_HOME", "relative", 1);
    Loaded loaded;
    EXPECT_EQ(loaded.config.source, home);
}

TEST_F(ConfigLoad, XdgConfigHomeReplacesTheHomeDirectory) {
    write("home/.config/gpushare/gpushare.conf", "[gpushare]\nstack_depth = 1\n");
    setenv("XDG_CONFIG_HOME", (dir + "/xdg").c_str(), 1);

    Loaded loaded;
    EXPECT_NE(loaded.config.options.stack_depth, 1u);
}

// In a mount namespace of its own, where one may put a file into /etc.
TEST_F(ConfigLoad, ReadsEtcLast) {
    std::string file = write("etc/gpushare.conf", "[gpushare]\nstack_depth = 3\n");
    pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
            _exit(77);
        if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount((dir + "/etc").c_str(), "/etc", nullptr, MS_BIND, nullptr) != 0)
            _exit(77);
        Loaded loaded;
        bool etc = strcmp(loaded.config.source, "/etc/gpushare.conf") == 0 &&
                   loaded.config.options.stack_depth == 3;
        write("home/.config/gpushare/gpushare.conf", "[gpushare]\nstack_depth = 1\n");
        Loaded home;
        _exit(!etc ? 1 : home.config.options.stack_depth != 1 ? 2 : 0);
    }
    int status;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    SKIP_IF(WIFEXITED(status) && WEXITSTATUS(status) == 77, "no right to mount");
    EXPECT_EQ(status, 0);
}

TEST_F(ConfigLoad, ReadsOnlyRegularFiles) {
    std::string fifo = dir + "/fifo", node = dir + "/socket";
    sockaddr_un address = {};
    EXPECT_EQ(load_error(dir), dir + ":0: is a directory; a regular file is needed");
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    EXPECT_EQ(load_error(fifo),
              fifo + ":0: is not a regular file"); // and does not wait for a writer
    EXPECT_EQ(load_error("/dev/zero"), "/dev/zero:0: is not a regular file");
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, node.c_str());
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof address), 0);
    EXPECT_EQ(load_error(node), node + ":0: cannot be read: No such device or address");
    close(fd);
}

TEST_F(ConfigLoad, DevNullIsNoConfiguration) {
    setenv("GPUSHARE_CONFIG", "/dev/null", 1);
    Loaded loaded;
    EXPECT_EQ(loaded.status, 0);
    EXPECT_EQ(loaded.config.rule_count, 0u);
    EXPECT_EQ(loaded.config.options.mode, GPS_MODE_SHARE);
}

TEST_F(ConfigLoad, ReadsFilesOfExactlyOneMebibyte) {
    std::string text = "[gpushare]\nmode = off\n";
    text.resize(1 << 20, '\n');
    setenv("GPUSHARE_CONFIG", write("big.conf", text).c_str(), 1);
    {
        Loaded loaded;
        EXPECT_EQ(loaded.status, 0);
        EXPECT_EQ(loaded.config.options.mode, GPS_MODE_OFF);
    }
    text = "[gpushare]\nmode = audit ; ";
    text.resize(1 << 20, 'x'); // the last line ends with the file
    setenv("GPUSHARE_CONFIG", write("long.conf", text).c_str(), 1);
    {
        Loaded loaded;
        EXPECT_EQ(loaded.status, 0);
        EXPECT_EQ(loaded.config.options.mode, GPS_MODE_AUDIT);
    }
    std::string path = write("bigger.conf", text + "\n");
    EXPECT_EQ(load_error(path), path + ":0: is larger than 1 MiB");
}

TEST_F(ConfigLoad, FollowsSymlinks) {
    std::string path = write("real.conf", "[gpushare]\nmode = off\n"), link = dir + "/link.conf";
    ASSERT_EQ(symlink(path.c_str(), link.c_str()), 0);
    setenv("GPUSHARE_CONFIG", link.c_str(), 1);
    Loaded loaded;
    EXPECT_EQ(loaded.config.options.mode, GPS_MODE_OFF);
}

TEST_F(ConfigLoad, LeavesNoDescriptorOpen) {
    auto count = [] {
        int n = 0;
        DIR *fds = opendir("/proc/self/fd");
        while (readdir(fds) != nullptr)
            n++;
        closedir(fds);
        return n;
    };
    int before = count();
    setenv("GPUSHARE_CONFIG", write("a.conf", "[gpushare]\n").c_str(), 1);
    { Loaded loaded; }
    load_error(dir);
    EXPECT_EQ(count(), before);
}

class ConfigOwner : public ConfigLoad {
  protected:
    // Runs the check as another user; needs root to begin with.
    int as_nobody(int (*check)(const std::string &dir)) {
        pid_t child = fork();
        int status;
        chmod(dir.c_str(), 0755);
        if (child == 0)
            _exit(setuid(65534) != 0 ? 99 : check(dir));
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
    }
};

TEST_F(ConfigOwner, RefusesAnotherUsersFile) {
    SKIP_IF(geteuid() != 0, "needs root");
    std::string path = write("theirs.conf", "[gpushare]\n");
    ASSERT_EQ(chown(path.c_str(), 1234, 1234), 0);
    EXPECT_EQ(load_error(path),
              path + ":0: belongs to user 1234; it must belong to root or to you, user 0");
}

TEST_F(ConfigOwner, TakesRootsFile) {
    SKIP_IF(geteuid() != 0, "needs root");
    setenv("GPUSHARE_CONFIG", write("root.conf", "[gpushare]\nmode = off\n").c_str(), 1);
    EXPECT_EQ(as_nobody([](const std::string &) {
                  Loaded loaded;
                  return loaded.status == 0 && loaded.config.options.mode == GPS_MODE_OFF ? 0 : 1;
              }),
              0);
}

TEST_F(ConfigOwner, AFileThatMayNotBeReadIsAnErrorAndAHomeThatMayNotBeSeenIsNot) {
    SKIP_IF(geteuid() != 0, "needs root");
    std::string path = write("home/.config/gpushare/gpushare.conf", "[gpushare]\n");
    for (const char *part : {"/home", "/home/.config", "/home/.config/gpushare"})
        ASSERT_EQ(chmod((dir + part).c_str(), 0755), 0);
    ASSERT_EQ(chmod(path.c_str(), 0600), 0);
    EXPECT_EQ(as_nobody([](const std::string &home) {
                  Loaded loaded;
                  return loaded.errors == Errors{home + "/home/.config/gpushare/gpushare.conf:0: "
                                                        "cannot be read: Permission denied"}
                             ? 0
                             : 1;
              }),
              0);
    ASSERT_EQ(chmod((dir + "/home").c_str(), 0700), 0);
    EXPECT_EQ(as_nobody([](const std::string &) {
                  Loaded loaded;
                  return loaded.errors.empty() ? 0 : 1;
              }),
              0);
}

// --- the environment ---

TEST_F(ConfigLoad, EveryOptionHasAVariable) {
    const std::pair<const char *, const char *> variables[] = {
        {"GPUSHARE_MODE", "audit"},      {"GPUSHARE_ON_FREE", "refuse"},
        {"GPUSHARE_FREE_TIMEOUT", "7s"}, {"GPUSHARE_LINGER", "8s"},
        {"GPUSHARE_LOG", "/tmp/%p"},     {"GPUSHARE_LOG_FORMAT", "jsonl"},
        {"GPUSHARE_LOG_LEVEL", "error"}, {"GPUSHARE_STACK_DEPTH", "9"},
        {"GPUSHARE_LOG_MAX", "3MiB"},    {"GPUSHARE_EVENT_LOG", "/tmp/%p.e"},
        {"GPUSHARE_OPEN_CACHE", "64"},   {"GPUSHARE_OPEN_CACHE_BYTES", "5MiB"},
        {"GPUSHARE_VMM_IPC", "on"},      {"GPUSHARE_SUSPEND", "on"},
        {"GPUSHARE_BLOCKS", "off"},      {"GPUSHARE_SUSPEND_MEMORY", "0"},
        {"GPUSHARE_LEAK_CHECK", "on"},   {"GPUSHARE_FREE", "driver"},
    };
    const gps_key *options = gps_keys_of(GPS_SECTION_OPTIONS);
    ASSERT_EQ(options[sizeof variables / sizeof variables[0]].name, nullptr);
    for (const auto &each : variables)
        setenv(each.first, each.second, 1);
    Loaded loaded;
    ASSERT_EQ(loaded.status, 0);
    EXPECT_EQ(loaded.config.options.mode, GPS_MODE_AUDIT);
    EXPECT_EQ(loaded.config.options.on_free, GPS_FREE_REFUSE);
    EXPECT_EQ(loaded.config.options.log_max, 3u << 20);
    EXPECT_EQ(loaded.config.options.free_timeout, UINT64_C(7000000000));
    EXPECT_EQ(loaded.config.options.linger, UINT64_C(8000000000));
    EXPECT_STREQ(loaded.config.options.log, "/tmp/%p");
    EXPECT_EQ(loaded.config.options.log_format, GPS_LOG_JSONL);
    EXPECT_EQ(loaded.config.options.log_level, GPS_LEVEL_ERROR);
    EXPECT_EQ(loaded.config.options.stack_depth, 9u);
    EXPECT_STREQ(loaded.config.options.event_log, "/tmp/%p.e");
    EXPECT_EQ(loaded.config.options.blocks, GPS_BLOCKS_OFF);
    EXPECT_EQ(loaded.config.options.suspend_memory, 0u);
    EXPECT_EQ(loaded.config.options.free, GPS_FREE_DRIVER);
}

TEST_F(ConfigLoad, VariablesStandOverTheFile) {
    setenv("GPUSHARE_CONFIG",
           write("a.conf", "[gpushare]\nmode = off\nlinger = 1s\n[region r]\nrole=auto\n").c_str(),
           1);
    setenv("GPUSHARE_MODE", "audit", 1);
    Loaded loaded;
    EXPECT_EQ(loaded.config.options.mode, GPS_MODE_AUDIT);
    EXPECT_EQ(loaded.config.options.linger, 1000000000u);
    EXPECT_EQ(loaded.config.rule_count, 1u);
}

TEST_F(ConfigLoad, AnEmptyVariableIsNotSet) {
    setenv("GPUSHARE_CONFIG", write("a.conf", "[gpushare]\nmode = off\n").c_str(), 1);
    setenv("GPUSHARE_MODE", "", 1);
    Loaded loaded;
    EXPECT_EQ(loaded.status, 0);
    EXPECT_EQ(loaded.config.options.mode, GPS_MODE_OFF);
}

TEST_F(ConfigLoad, VariablesThatAreNoOptionsAreLeftAlone) {
    for (const char *name : {"GPUSHARE_DIR", "GPUSHARE_NAMESPACE", "GPUSHARE_SIM_DEVICES",
                             "GPUSHARE_WHATEVER", "GPUSHARE_SIZE", "GPUSHARE_"})
        setenv(name, "nonsense", 1);
    Loaded loaded;
    EXPECT_EQ(loaded.status, 0) << testing::PrintToString(loaded.errors);
}

TEST_F(ConfigLoad, BadVariablesGetTheMessagesOfTheFile) {
    for (const Bad &bad : bad_options) {
        std::string name = std::string("GPUSHARE_") + bad.key;
        for (char &c : name)
            c = static_cast<char>(toupper(c));
        setenv(name.c_str(), bad.value, 1);
        {
            Loaded loaded;
            EXPECT_EQ(loaded.status, -EINVAL);
            EXPECT_EQ(loaded.errors, (Errors{name + ":0: " + bad.message}));
            expect_defaults(loaded.config);
        }
        unsetenv(name.c_str());
    }
}

TEST_F(ConfigLoad, ErrorsOfFileAndVariablesAreAllReported) {
    std::string path = write("bad.conf", "[gpushare]\nmode = x\n");
    setenv("GPUSHARE_CONFIG", path.c_str(), 1);
    setenv("GPUSHARE_LINGER", "x", 1);
    setenv("GPUSHARE_STACK_DEPTH", "x", 1);
    Loaded loaded;
    EXPECT_EQ(
        loaded.errors,
        (Errors{
            path + ":2: mode = x: not allowed; one of share, audit, off",
            "GPUSHARE_LINGER:0: linger = x: not a number; a time such as 500ms, 30s, 2min or 1h",
            "GPUSHARE_STACK_DEPTH:0: stack_depth = x: not a number; 0 to 64"}));
}

TEST_F(ConfigLoad, AHugeVariableIsAnErrorAndShownInPart) {
    setenv("GPUSHARE_LOG", std::string(100000, '/').c_str(), 1);
    Loaded loaded;
    EXPECT_EQ(loaded.errors, (Errors{"GPUSHARE_LOG:0: log = " + std::string(63, '/') +
                                     "...: longer than 1023 characters; stderr, or a path in which "
                                     "%p is the pid and %c the command"}));
    setenv("GPUSHARE_LOG", std::string(1023, '/').c_str(), 1);
    Loaded fits;
    EXPECT_EQ(fits.status, 0);
    EXPECT_EQ(strlen(fits.config.options.log), 1023u);
}

TEST_F(ConfigLoad, ControlCharactersOfAVariableAreNotShown) {
    setenv("GPUSHARE_MODE", "\x1b[2J", 1);
    Loaded loaded;
    EXPECT_EQ(loaded.errors,
              (Errors{"GPUSHARE_MODE:0: mode = ?[2J: not allowed; one of share, audit, off"}));
}

TEST_F(ConfigLoad, ReadFileLooksAtNoEnvironment) {
    std::string path = write("a.conf", "[gpushare]\nlinger = 1s\n");
    gps_config config;
    Errors errors;
    setenv("GPUSHARE_MODE", "nonsense", 1);
    EXPECT_EQ(gps_config_read_file(&config, path.c_str(), add_error, &errors), 0);
    EXPECT_EQ(config.options.linger, 1000000000u);
    EXPECT_EQ(config.source, path);
    gps_config_free(&config);
    EXPECT_EQ(gps_config_read_file(&config, (dir + "/none").c_str(), add_error, &errors), -EINVAL);
    EXPECT_EQ(errors, (Errors{dir + "/none:0: cannot be read: there is no such file"}));
}

// --- the listing ---

struct Listed {
    std::string value, from, allowed, sentence;
};

TEST_F(ConfigLoad, TheListingSaysWhereAValueCameFrom) {
    setenv("GPUSHARE_CONFIG",
           write("a.conf", "[gpushare]\nmode = off\nlinger = 1500ms\nlog_level = error\n").c_str(),
           1);
    setenv("GPUSHARE_MODE", "audit", 1);
    setenv("GPUSHARE_LOG", "/tmp/%c", 1);
    Loaded loaded;
    std::map<std::string, Listed> listed;

    gps_config_each_option(
        &loaded.config,
        [](void *arg, const char *key, const char *value, const char *from, const char *allowed,
           const char *sentence) {
            (*static_cast<std::map<std::string, Listed> *>(arg))[key] = {value, from, allowed,
                                                                         sentence};
        },
        &listed);
    ASSERT_EQ(listed.size(), 18u);
    EXPECT_EQ(listed["free"].value, "steady");
    EXPECT_EQ(listed["suspend_memory"].value, "auto");
    EXPECT_EQ(listed["event_log"].value, "off");
    EXPECT_EQ(listed["log_max"].value, "64MiB");
    EXPECT_EQ(listed["mode"].value, "audit");
    EXPECT_EQ(listed["mode"].from, "environment");
    EXPECT_EQ(listed["mode"].allowed, "share, audit, off");
    EXPECT_EQ(listed["linger"].value, "1500ms");
    EXPECT_EQ(listed["linger"].from, "file");
    EXPECT_EQ(listed["log_level"].value, "error");
    EXPECT_EQ(listed["log"].value, "/tmp/%c");
    EXPECT_EQ(listed["log"].from, "environment");
    EXPECT_EQ(listed["free_timeout"].value, "30s");
    EXPECT_EQ(listed["free_timeout"].from, "default");
    EXPECT_EQ(listed["on_free"].value, "defer");
    EXPECT_EQ(listed["stack_depth"].value, "16");
    for (const auto &each : listed)
        EXPECT_GT(each.second.sentence.size(), 10u) << each.first;
}

// --- the files we ship; the tests run from the repository or get its path ---

std::string find_root() {
    const char *given = getenv("GPUSHARE_ROOT");
    std::string file = __FILE__;
    if (given != nullptr)
        return given;
    if (file[0] != '/')
        return ".";
    return file.substr(0, file.rfind("/tests/unit/"));
}

// Before any test clears the environment.
const std::string root = find_root();

std::string read_text(const std::string &path) {
    std::stringstream text;
    std::ifstream file(path);
    EXPECT_TRUE(file.good()) << path;
    text << file.rdbuf();
    return text.str();
}

// The example with what its comments hold switched on: lines such as ";size = *".
std::string uncommented(const std::string &text) {
    std::istringstream lines(text);
    std::string line, result;
    while (std::getline(lines, line))
        result += (line[0] == ';' ? line.substr(1) : line) + "\n";
    return result;
}

TEST(ShippedConfig, ParsesAndChangesNothing) {
    Parsed parsed(read_text(root + "/config/gpushare.conf"));
    ASSERT_EQ(parsed.status, 0) << testing::PrintToString(parsed.errors);
    expect_defaults(parsed.config);
}

TEST(ShippedConfig, ParsesWithItsRegionSwitchedOn) {
    Parsed parsed(uncommented(read_text(root + "/config/gpushare.conf")));
    ASSERT_EQ(parsed.status, 0) << testing::PrintToString(parsed.errors);
    EXPECT_EQ(parsed.config.rule_count, 2u);
}

TEST(ShippedConfig, HasEveryKeyOnceWithItsDefault) {
    std::istringstream lines(uncommented(read_text(root + "/config/gpushare.conf")));
    std::map<std::string, std::string> found;
    std::string line, section;
    size_t expected = 0;
    while (std::getline(lines, line)) {
        size_t equals = line.find(" = ");
        if (line.empty() || line[0] == '#')
            continue;
        if (line[0] == '[') {
            section = line;
            continue;
        }
        if (line == "role = merge")
            continue; // the keys of such a region stand below it
        ASSERT_NE(equals, std::string::npos) << line;
        std::string key = section + line.substr(0, equals);
        EXPECT_EQ(found.count(key), 0u) << key;
        found[key] = line.substr(equals + 3);
    }
    for (gps_section each : {GPS_SECTION_OPTIONS, GPS_SECTION_REGION}) {
        const char *title = each == GPS_SECTION_OPTIONS ? "[gpushare]" : "[region example]";
        for (const gps_key *at = gps_keys_of(each); at->name; at++, expected++) {
            const gps_key &key = *at;
            std::string name = title + std::string(key.name);
            if (found.count(name) == 0)
                name = std::string("[region merged]") + key.name;
            ASSERT_EQ(found.count(name), 1u) << name;
            if (key.fallback != nullptr) {
                EXPECT_EQ(found[name], key.fallback) << name;
            }
        }
    }
    EXPECT_EQ(found.size(), expected);
}

TEST(ShippedConfig, EveryExampleParsesAndHasRules) {
    std::string dir = root + "/config/examples";
    DIR *entries = opendir(dir.c_str());
    int examples = 0;
    ASSERT_NE(entries, nullptr) << dir;
    while (dirent *entry = readdir(entries)) {
        if (!strstr(entry->d_name, ".conf"))
            continue;
        Parsed parsed(read_text(dir + "/" + entry->d_name));
        EXPECT_EQ(parsed.status, 0) << entry->d_name << testing::PrintToString(parsed.errors);
        EXPECT_GT(parsed.config.rule_count, 0u) << entry->d_name;
        examples++;
    }
    closedir(entries);
    EXPECT_GE(examples, 3);
}

TEST(ConfigTable, EveryDefaultIsAllowedAndEveryKeyIsExplained) {
    for (gps_section section : {GPS_SECTION_OPTIONS, GPS_SECTION_REGION}) {
        const gps_key *keys = gps_keys_of(section);
        for (size_t i = 0; keys[i].name; i++) {
            const gps_key &key = keys[i];
            gps_options options = {};
            gps_rule rule = {};
            void *target = section == GPS_SECTION_OPTIONS ? static_cast<void *>(&options) : &rule;
            EXPECT_EQ(gps_key_find(section, key.name), &key);
            EXPECT_EQ(gps_key_place(&key), i);
            EXPECT_NE(key.sentence[0], '\0');
            if (key.fallback != nullptr) {
                EXPECT_EQ(gps_key_set(&key, target, key.fallback), nullptr) << key.name;
            }
        }
    }
}

} // namespace
