// audit.hpp - whole programs under the audit, and every line of what it wrote about them.
//
// A program (tests/apps/misuse, five) starts its own second process, so one run shows both sides.
// It runs bare first, then audited; what it prints and how it ends must be the same.
#pragma once

#include "scenario/harness.hpp"

// One line of the log that is a finding's first occurrence.
struct Event {
    Json json;
    std::string id, level, api, detail, site;
    uint32_t pid = 0;
    bool known(const char *key) const {
        return json[key].kind != Json::Null;
    }
    std::vector<std::string>
    priors() const; // "allocated", and "freed*" when another process did it
};

struct Audit {
    Result result;
    uint32_t pid = 0; // of the program's first process
    std::vector<Event> events;
    std::vector<std::string> ids() const; // sorted
    std::string log;
};

// What runs: the words of a command line, its first a program of build/tests/apps.
using Words = std::vector<std::string>;

Words misuse(const std::string &id, bool right = false, const std::string &build = "misuse");
Result run_alone(const World &world, const Words &words);
// In this mode, and with every level logged; events come in the order of their time.
Audit run_audited(World &world, const Words &words, const std::string &mode = "audit");

// The log's lines so far, each checked: it is JSON and has every key of docs/log.schema.json.
std::vector<Event> events_of(const std::string &log);

uint32_t own_pid_namespace();
