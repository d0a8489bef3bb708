// keepers.hpp - the two processes that keep what is shared in a world.
#pragma once

#include "scenario/harness.hpp"

// Of this world: the one that serves, or the one that stands by. -1: there is none.
inline pid_t keeper_of(const World &world, bool stands_by = false) {
    const std::string mark = "GPUSHARE_DIR=" + world.environment.at("GPUSHARE_DIR");
    for (const auto &process : std::filesystem::directory_iterator("/proc")) {
        const pid_t pid = atoi(process.path().filename().c_str());
        if (pid > 0 &&
            read_file(process.path() / "cmdline").find(std::string("\0keeper", 7)) !=
                std::string::npos &&
            (read_file(process.path() / "comm") == "keeper-stand-by\n") == stands_by &&
            read_file(process.path() / "environ").find(mark + '\0') != std::string::npos)
            return pid;
    }
    return -1;
}

inline pid_t stand_by_of(const World &world) {
    pid_t found = -1;
    EXPECT_TRUE(eventually([&] { return (found = keeper_of(world, true)) > 0; }));
    return found;
}

// No process has such a number where there is none: -1 would be all of them.
inline void signal_keeper(pid_t pid, int signal) {
    ASSERT_GT(pid, 1);
    ::kill(pid, signal);
}

// What they keep for nobody is lost.
inline void kill_both_keepers(const World &world) {
    const pid_t first = keeper_of(world), second = stand_by_of(world);
    signal_keeper(first, SIGSTOP); // it makes no other one
    signal_keeper(second, SIGKILL);
    signal_keeper(first, SIGKILL);
}
