// harness.hpp - runs the real tool, and makes directories for it to look at.
//
// A Shared is a published directory of its own in /dev/shm. A Peer is a live process: a forked
// child that holds a lease, and slots where told to; it dies with kill() or with its object.
#pragma once

extern "C" {
#include "directory/lease.h"
#include "directory/name.h"
#include "directory/orphans.h"
#include "directory/region.h"
#include "directory/store.h"
}
#include "json.hpp"
#include "skip.hpp"

struct Result {
    int status = -1; // exit status, or 128 + signal
    long memory = 0; // at most in use, KiB
    std::string out, err;
};

using Environment = std::map<std::string, std::string>;

// Runs the tool with the caller's environment but for GPUSHARE_*, LD_PRELOAD and NO_COLOR, and with
// `environment` on top. With `terminal` stdout is one.
Result tool(const std::vector<std::string> &arguments, const Environment &environment = {},
            bool terminal = false);
Result command(const std::vector<std::string> &line, const Environment &environment = {},
               bool terminal = false);
std::string tool_path();
// What it prints on a terminal so wide, on stdout and stderr.
std::string on_terminal(int columns, const std::vector<std::string> &line,
                        const Environment &environment = {});
// Each line of the text has at most so many columns.
void expect_to_fit(const std::string &text, int columns);

class Temporary { // a directory, 0700, removed at the end
  public:
    explicit Temporary(const char *parent = "/tmp");
    ~Temporary();
    Temporary(const Temporary &) = delete;
    Temporary &operator=(const Temporary &) = delete;
    std::string file(const std::string &name, const std::string &text = "") const;
    std::string path;
};

// A program of C there, or with -shared a library, with the system's headers before it; its path.
std::string compiled(const Temporary &place, const std::string &name, const std::string &code,
                     const std::vector<std::string> &options = {});

std::string read_file(const std::string &path);
void write_file(const std::string &path, const std::string &text);

struct Hold {
    gps_id region;
    uint64_t address = 0x7f0000000000;
    gps_slot_state state = GPS_SLOT_OPEN;
    gps_slot_via via = GPS_VIA_RULE;
};

class Shared;

class Peer {
  public:
    Peer(const Shared &shared, const std::string &command, const std::vector<Hold> &holds = {},
         uint64_t pid_ns = 0, uint32_t pid = 0); // another pid namespace than ours, and a pid there
    ~Peer();
    Peer(const Peer &) = delete;
    Peer &operator=(const Peer &) = delete;
    void kill(); // its file stays, unlocked
    gps_owner owner;

  private:
    pid_t child;
};

class Shared {
  public:
    Shared();
    Environment environment() const;
    Result tool(const std::vector<std::string> &arguments, bool terminal = false,
                Environment more = {}) const;
    // Publishes a region; the handle's first byte makes the id.
    gps_region_record region(const gps_owner &owner, const std::string &name, uint8_t seed = 1,
                             gps_state state = GPS_STATE_READY, uint64_t size = 64u << 20,
                             uint8_t card = 0) const;
    std::string regions() const {
        return std::string(store.path) + "/regions/";
    }
    Temporary root;
    gps_store store;
};

std::string id_text(const gps_id &id);
std::string pid_text(const gps_owner &owner);

inline bool contains(const std::string &text, const std::string &part) {
    return text.find(part) != std::string::npos;
}
inline bool lacks(const std::string &text, const std::string &part) {
    return !contains(text, part);
}
template <typename... Parts>
testing::AssertionResult has_all_of(const std::string &text, const Parts &...parts) {
    for (const std::string &part : {std::string(parts)...})
        if (lacks(text, part))
            return testing::AssertionFailure() << "\"" << part << "\" is not in:\n" << text;
    return testing::AssertionSuccess();
}
// How a command ended, and what it wrote on one of the two.
inline testing::AssertionResult ended(const Result &result, int status) {
    if (result.status == status)
        return testing::AssertionSuccess();
    return testing::AssertionFailure()
           << "status " << result.status << ", not " << status << "; stdout:\n"
           << result.out << "stderr:\n"
           << result.err;
}
inline testing::AssertionResult ended_with(const Result &result, int status,
                                           std::string Result::*where, const std::string &text) {
    if (result.status != status || result.*where == text)
        return ended(result, status);
    return testing::AssertionFailure() << result.*where << "is not:\n" << text;
}
template <typename... Parts>
testing::AssertionResult ended_having(const Result &result, int status, std::string Result::*where,
                                      const Parts &...parts) {
    return result.status == status ? has_all_of(result.*where, parts...) : ended(result, status);
}
// They say both texts when they fail.
#define EXPECT_HAS(text, ...)            EXPECT_TRUE(has_all_of(text, __VA_ARGS__))
#define EXPECT_LACKS(text, part)         EXPECT_PRED2(lacks, text, part)
#define EXPECT_OUT(result, status, text) EXPECT_TRUE(ended_with(result, status, &Result::out, text))
#define EXPECT_ERR(result, status, text) EXPECT_TRUE(ended_with(result, status, &Result::err, text))
#define EXPECT_OUT_HAS(result, status, ...)                                                        \
    EXPECT_TRUE(ended_having(result, status, &Result::out, __VA_ARGS__))
#define EXPECT_ERR_HAS(result, status, ...)                                                        \
    EXPECT_TRUE(ended_having(result, status, &Result::err, __VA_ARGS__))
