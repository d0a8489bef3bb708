// rival_test.cpp - other libraries that step between programs and CUDA, before gpushare and behind
// it: who sees which call. The table that the runs make is rivals.txt: GPUSHARE_RIVALS=FILE writes
// it.
#include "program.hpp"

namespace {

using Rivals = std::vector<std::string>;

struct Way {
    const char *name, *app, *argument;
};
const Way ways[] = {{"linked", "taker-driver", "linked"},
                    {"dlsym", "taker", "handle"},
                    {"cuGetProcAddress, linked", "taker-driver", "get"},
                    {"cuGetProcAddress by dlsym", "taker", "get"},
                    {"linked, then dlsym", "taker-driver", "both"},
                    {"shared runtime", "taker-runtime", ""},
                    {"static runtime", "taker-static", ""}};

// LD_PRELOAD's order: `at` of the rivals stand before gpushare.
Program program_of(const Way &way, const Rivals &rivals, size_t at) {
    Program program({app(way.app), way.argument});
    for (size_t i = 0; i < rivals.size(); i++) {
        if (i == at)
            program.gpushare();
        program.preload(app("rival-" + rivals[i] + ".so"));
    }
    if (at >= rivals.size())
        program.gpushare();
    return program;
}

// How many allocations each of them saw, in their order.
std::vector<std::string> seen_by(const Rivals &rivals, const Outcome &outcome) {
    std::vector<std::string> counts;
    for (const auto &rival : rivals) {
        std::string count = "?";
        for (const auto &line : lines_of(outcome.err))
            if (line.rfind(rival + ": ", 0) == 0)
                count = line.substr(rival.size() + 2);
        counts.push_back(count);
    }
    return counts;
}

size_t frees_seen(const Outcome &outcome) {
    size_t count = 0;
    for (const auto &finding : outcome.findings)
        count += finding.id == "double-free";
    return count;
}

std::string joined(const Rivals &words) {
    std::string text;
    for (const auto &word : words)
        text += (text.empty() ? "" : ", ") + word;
    return text;
}

std::string cell(const std::string &text, size_t width) {
    return text + std::string(width > text.size() ? width - text.size() : 0, ' ');
}

struct Order {
    Rivals rivals;
    size_t at;
    std::string name() const {
        Rivals names = rivals;
        names.insert(names.begin() + static_cast<long>(at), "gpushare");
        return joined(names);
    }
};

const std::vector<std::string> kinds = {"all",    "bound",   "dlsym", "getproc",
                                        "driver", "runtime", "linked"};

std::vector<Order> orders() {
    std::vector<Order> all;
    for (const auto &kind : kinds)
        for (size_t at : {0, 1})
            all.push_back({{kind}, at});
    all.push_back({{"linked", "runtime"}, 0});
    all.push_back({{"driver", "dlsym"}, 0});
    all.push_back({{"all", "dlsym"}, 0});
    all.push_back({{"getproc", "dlsym"}, 0});
    all.push_back({{"runtime", "dlsym"}, 0});
    all.push_back({{"driver", "dlsym"}, 1});
    all.push_back({{"runtime", "driver"}, 1});
    all.push_back({{"runtime", "all"}, 1});
    return all;
}

std::string row(const Order &order, const Way &way) {
    const Program program = program_of(way, order.rivals, order.at);
    const Outcome bare = program.run_bare(), run = program.run();
    EXPECT_EQ(bare.status, 0) << bare.err;
    EXPECT_EQ(run.status, 0) << order.name() << " " << way.name << run.err;
    EXPECT_EQ(run.out, bare.out) << order.name() << " " << way.name;
    return cell(order.name(), 26) + cell(way.name, 28) +
           cell(joined(seen_by(order.rivals, bare)), 9) +
           cell(joined(seen_by(order.rivals, run)), 9) + std::to_string(frees_seen(run)) + "\n";
}

TEST(Rivals, SeeWhatTheySawWithoutUs) {
    std::string made = cell("LD_PRELOAD", 26) + cell("the call's door", 28) + cell("without", 9) +
                       cell("with", 9) + "gpushare\n";
    for (const auto &order : orders())
        for (const auto &way : ways)
            made += row(order, way);
    if (const char *file = getenv("GPUSHARE_RIVALS")) // written anew, to be looked at
        std::ofstream(file) << made;
    std::ostringstream kept;
    kept << std::ifstream("tests/doors/rivals.txt").rdbuf();
    EXPECT_EQ(made, kept.str());
}

// A limiter behind us limits.
TEST(Rivals, LimitsHold) {
    for (const auto &kind : kinds)
        for (const auto &way : ways) {
            Program program = program_of(way, {kind}, 0);
            program.environment("RIVAL_LIMIT", "0x2000000");
            const Outcome bare = program.run_bare(), run = program.run();
            EXPECT_EQ(run.out, bare.out) << kind << " " << way.name;
            EXPECT_EQ(run.status, bare.status) << kind << " " << way.name;
        }
}

} // namespace
