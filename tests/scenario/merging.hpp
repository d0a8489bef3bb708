// merging.hpp - replicas whose allocations a merge rule takes, and how much of the card they use.
#pragma once

#include "scenario/harness.hpp"

inline std::string merging(const std::string &more = "quiet = 0\n") {
    return rule("weights", "replica", "merge", "size = >=2MiB\n" + more);
}

// What is seen after a while only, as a rule with quiet > 0 has it.
inline const char *const QUIET = "quiet = 200ms\n";

class Replicas {
  public:
    explicit Replicas(int count, const std::string &config = merging(),
                      const std::string &runtime = "puppet")
        : build(runtime) {
        world.config(config);
        before = world.used();
        for (int i = 0; i < count; i++)
            start();
    }

    Puppet &start() {
        How how = called("replica", build);
        const uint64_t now = world.used();
        all.push_back(std::make_unique<Puppet>(world, how));
        all.back()->must("info");
        all.back()->must("malloc small 4096"); // next to it lies what the library's kernels need
        costs.push_back(world.used() - now);
        before += costs.back();
        return *all.back();
    }
    // For puppets that are started then: on another machine.
    How on_two_cards() {
        return where("DEVICES", "2");
    }
    How on_a_small_card(const std::string &memory = "256MiB") {
        return where("MEMORY", memory);
    }
    void kill(size_t i) {
        all.at(i)->kill();
        before -= costs.at(i);
        costs[i] = 0;
    }
    Puppet &operator[](size_t i) {
        return *all.at(i);
    }

    template <typename... Lines> void each(const Lines &...lines) {
        for (const std::string &line : {std::string(lines)...})
            for (auto &one : all)
                one->must(line);
    }
    // Of a buffer: what a program uploads, and whether it is there.
    static std::string upload(const std::string &name, uint64_t size, int seed,
                              const std::string &how = "sync") {
        return "upload " + name + " 0 " + std::to_string(size) + " " + std::to_string(seed) + " " +
               how;
    }
    static std::string expect(Puppet &puppet, const std::string &name, uint64_t size, int seed) {
        return puppet.must("expect " + name + " 0 " + std::to_string(size) + " " +
                           std::to_string(seed));
    }
    void load(const std::string &name, uint64_t size, int seed) {
        each("malloc " + name + " " + std::to_string(size));
        each(upload(name, size, seed));
    }
    void expect_all(const std::string &name, uint64_t size, int seed) {
        for (auto &one : all)
            EXPECT_EQ(expect(*one, name, size, seed), "same");
    }

    // More than the contexts. On a GPU others come and go: there it is only waited for.
    bool use(uint64_t bytes, int ms = 8000) {
        if (on_gpu()) {
            usleep(3000000);
            return true;
        }
        return world.used_becomes(before + bytes, ms);
    }
    uint64_t in_use() {
        return world.used() - before;
    }
    // The names of what stays when all have ended, which is nothing.
    std::string left() {
        std::string names;
        for (auto &one : all)
            EXPECT_TRUE(one->ended() || one->quit("return") == 0);
        all.clear();
        eventually(
            [&] {
                names.clear();
                for (const char *what : {"procs", "regions", "names"})
                    for (const std::string &name : world.files(what))
                        names += std::string(what) + "/" + name + " ";
                return names.empty();
            },
            8000);
        return names;
    }

    World world;
    std::vector<std::unique_ptr<Puppet>> all;
    std::vector<uint64_t> costs; // of their contexts
    uint64_t before;
    std::string build;

  private:
    How where(const std::string &name, const std::string &value) {
        world.environment["GPUSHARE_SIM_" + name] = value;
        world.environment["GPUSHARE_SIM_ROOT"] += "-" + value;
        return called("replica");
    }
};
