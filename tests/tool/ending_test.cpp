// The verbs that start programs: what ends one of them leaves nothing behind.
#include "harness.hpp"
#include "patience.hpp"

namespace fs = std::filesystem;

namespace {

// The processes of a session, without its leader.
std::vector<pid_t> members(pid_t session) {
    std::vector<pid_t> all;
    for (const auto &entry : fs::directory_iterator("/proc")) {
        const pid_t pid = atoi(entry.path().filename().c_str());
        const std::string stat = pid > 0 ? read_file(entry.path().string() + "/stat") : "";
        const size_t end = stat.rfind(") ");
        if (pid != session && end != std::string::npos && stat[end + 2] != 'Z' &&
            getsid(pid) == session)
            all.push_back(pid);
    }
    return all;
}

// A verb that runs in a session of its own, with programs that wait.
class Running {
  public:
    explicit Running(std::vector<std::string> line) {
        for (std::string &word : line)
            if (word == "PROGRAM") {
                programs++;
                word = place.file("program",
                                  "#!/bin/sh\n: >" + place.path + "/began.$$\nexec sleep 1000\n");
                fs::permissions(word, fs::perms::owner_all);
            }
        line.insert(
            line.begin(),
            {"sh", "-c", "echo $$ >" + place.path + "/pid; exec \"$0\" \"$@\"", tool_path()});
        session = fork();
        if (session == 0) {
            setsid();
            const Result result =
                command(line, {{"GPUSHARE_DIR", shared.path + "/pub"},
                               {"GPUSHARE_SIM_ROOT", "@" + shared.path},
                               {"LD_LIBRARY_PATH", fs::path(tool_path()).parent_path() / "sim"},
                               {"TMPDIR", temporary.path}});
            write_file(place.path + "/err", result.err);
            _exit(result.status);
        }
    }
    ~Running() {
        for (const pid_t left : members(session))
            kill(left, SIGKILL);
        waitpid(session, nullptr, 0);
    }
    bool has_begun() const {
        size_t count = 0;
        for (const auto &entry : fs::directory_iterator(place.path))
            count += contains(entry.path().filename(), "began.");
        return count >= programs;
    }
    // A terminal's Ctrl-C comes to all of them, the others to the tool.
    int end_by(int signal) {
        const pid_t tool = std::stoi(read_file(place.path + "/pid"));
        for (const pid_t pid : signal == SIGINT ? members(session) : std::vector<pid_t>{tool})
            kill(pid, signal);
        int status = 0;
        if (!eventually([&] { return waitpid(session, &status, WNOHANG) != 0; }))
            return -1;
        return WEXITSTATUS(status);
    }
    Temporary place, temporary, shared{"/dev/shm"};
    pid_t session;
    size_t programs = 0;
};

} // namespace

TEST(Ending, LeavesNothing) {
    for (const std::vector<std::string> &line : {std::vector<std::string>{"run", "--", "PROGRAM"},
                                                 {"audit", "--", "PROGRAM"},
                                                 {"explain", "--", "PROGRAM"},
                                                 {"learn", "--replicas=1", "--", "PROGRAM"},
                                                 {"pair", "--", "PROGRAM", "--", "PROGRAM"}})
        for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
            Running running(line);
            const std::string what = line[0] + ", signal " + std::to_string(signal);
            EXPECT_TRUE(eventually([&] { return running.has_begun(); })) << what;
            EXPECT_EQ(running.end_by(signal), 128 + signal)
                << what << "\n"
                << read_file(running.place.path + "/err");
            EXPECT_TRUE(members(running.session).empty()) << what;
            EXPECT_TRUE(fs::is_empty(running.temporary.path)) << what;
        }
}
