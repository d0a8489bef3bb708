#include "program.hpp"
#include "patience.hpp"

#include <spawn.h>

namespace fs = std::filesystem;

extern char **environ;

std::ostream &operator<<(std::ostream &out, const Finding &finding) {
    return out << finding.id << " in " << finding.api;
}

bool Outcome::has(const std::string &id, const std::string &api) const {
    return std::any_of(findings.begin(), findings.end(), [&](const Finding &finding) {
        return finding.id == id && (api.empty() || finding.api == api);
    });
}

// --- paths
// -----------------------------------------------------------------------------------------

std::string build_directory() {
    if (const char *given = getenv("GPUSHARE_BUILD"))
        return fs::absolute(given);
    return fs::read_symlink("/proc/self/exe").parent_path().parent_path();
}

std::string library_path() {
    return build_directory() + "/libgpushare.so";
}

std::string app(const std::string &name) {
    return build_directory() + "/tests/doors.d/" + name;
}

// --- the table
// -------------------------------------------------------------------------------------

struct Row {
    std::string kind, name;
};

static const std::vector<Row> &rows() {
    static const std::vector<Row> all = {
#define DRIVER(kind, name, parameters, arguments)                     {#kind, #name},
#define RUNTIME(name, parameters, arguments)                          {"runtime", #name},
#define WRITE(name, parameters, arguments, what)                      {"write", #name},
#define READ(name, parameters, arguments, stream)                     {"read", #name},
#define GATED(name, parameters, arguments, stream)                    {"merge", #name},
#define LAUNCH(name, parameters, arguments, stream, f, values, extra) {"wait", #name},
#define GRAPH(name, parameters, arguments, stream)                    {"wait", #name},
#define EXIT(name)                                                    {"exit", #name},
#include "cuda/hooks.def"
    };
    return all;
}

std::vector<std::string> names_of(const std::set<std::string> &kinds) {
    std::vector<std::string> names;
    for (const Row &row : rows())
        if (kinds.count(row.kind))
            names.push_back(row.name);
    return names;
}

std::vector<std::string> driver_names() {
    return names_of({"lookup", "context", "memory", "mapping", "pool", "ipc"});
}

std::vector<std::string> hooked_names() {
    std::vector<std::string> names = {
        "dlsym",
        "dlvsym",
    };
    for (const Row &row : rows())
        names.push_back(row.name);
    std::sort(names.begin(), names.end());
    return names;
}

// --- text
// ------------------------------------------------------------------------------------------

std::vector<std::string> lines_of(const std::string &text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
        lines.push_back(line);
    return lines;
}

std::string output_of(const std::string &shell_command) {
    FILE *pipe = popen(shell_command.c_str(), "re");
    if (!pipe)
        throw std::runtime_error("cannot run " + shell_command);
    std::string text;
    char buffer[4096];
    for (size_t count; (count = fread(buffer, 1, sizeof buffer, pipe)) > 0;)
        text.append(buffer, count);
    if (const int status = pclose(pipe))
        throw std::runtime_error(shell_command + " ended with " + std::to_string(status));
    return text;
}

static std::string read_file(const fs::path &path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

static std::string member(const std::string &line, const std::string &key) {
    const std::string before = "\"" + key + "\":\"";
    const size_t at = line.find(before);
    if (at == std::string::npos)
        return "";
    const size_t from = at + before.size();
    return line.substr(from, line.find('"', from) - from);
}

static std::vector<Finding> findings_in(const std::string &log) {
    std::vector<Finding> findings;
    for (const auto &line : lines_of(log))
        if (!member(line, "finding").empty())
            findings.push_back({member(line, "finding"), member(line, "api")});
    return findings;
}

// --- running
// ---------------------------------------------------------------------------------------

namespace {

class Directory {
  public:
    Directory() : path("/dev/shm/gpushare-doors-XXXXXX") {
        if (!mkdtemp(path.data()))
            throw std::runtime_error("no temporary directory");
    }
    ~Directory() {
        std::error_code ignored;
        fs::remove_all(path, ignored);
    }
    Directory(const Directory &) = delete;
    Directory &operator=(const Directory &) = delete;
    std::string path;
};

struct Pipe {
    int ends[2];
    Pipe() {
        if (pipe2(ends, O_CLOEXEC))
            throw std::runtime_error("no pipe");
    }
    ~Pipe() {
        close_writer();
        close(ends[0]);
    }
    Pipe(const Pipe &) = delete;
    Pipe &operator=(const Pipe &) = delete;
    void close_writer() {
        if (ends[1] >= 0)
            close(ends[1]);
        ends[1] = -1;
    }
};

std::vector<char *> pointers_to(const std::vector<std::string> &words) {
    std::vector<char *> pointers;
    for (const auto &word : words)
        pointers.push_back(const_cast<char *>(word.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

std::string joined(const std::vector<std::string> &words, const char *between) {
    std::string text;
    for (const auto &word : words)
        text += (text.empty() ? "" : between) + word;
    return text;
}

// Ours but for what would change the run.
std::vector<std::string> inherited(const std::map<std::string, std::string> &changed) {
    std::vector<std::string> entries;
    for (char **entry = environ; *entry; entry++) {
        const std::string name(*entry, strcspn(*entry, "="));
        if (!changed.count(name) && name != "LD_PRELOAD" &&
            (name == "GPUSHARE_ASSERTIONS" || name.rfind("GPUSHARE_", 0) != 0))
            entries.push_back(*entry);
    }
    for (const auto &[name, value] : changed)
        entries.push_back(name + "=" + value);
    return entries;
}

double now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// False when the time was over first. Background children that hold the pipes do not count.
bool read_until(pid_t child, const int (&ends)[2], std::string *const (&texts)[2], double deadline,
                int &status) {
    for (bool over = false;;) {
        pollfd polled[2] = {{ends[0], POLLIN, 0}, {ends[1], POLLIN, 0}};
        bool any = false;
        poll(polled, 2, over ? 0 : 5);
        for (int i = 0; i < 2; i++) {
            char buffer[4096];
            ssize_t count = polled[i].revents & POLLIN ? read(ends[i], buffer, sizeof buffer) : 0;
            if (count > 0)
                texts[i]->append(buffer, static_cast<size_t>(count));
            any = any || count > 0;
        }
        if (over && !any)
            return true;
        if (!any && !over && (polled[0].revents & polled[1].revents & POLLHUP))
            usleep(500);
        over = over || waitpid(child, &status, WNOHANG) == child;
        if (!over && now() > deadline)
            return false;
    }
}

} // namespace

Program::Program(std::vector<std::string> given) : words(std::move(given)) {
}

Program &Program::preload(const std::string &library) {
    libraries.push_back(library);
    return *this;
}

Program &Program::gpushare() {
    return preload(library_path());
}

Program &Program::environment(const std::string &name, const std::string &value) {
    variables[name] = value;
    return *this;
}

Program &Program::without_driver() {
    driver = false;
    return *this;
}

Program &Program::seconds(int given) {
    limit = given;
    return *this;
}

Outcome Program::run() const {
    auto all = libraries;
    if (std::find(all.begin(), all.end(), library_path()) == all.end())
        all.push_back(library_path());
    return run_with(all);
}

Outcome Program::run_bare() const {
    auto others = libraries;
    others.erase(std::remove(others.begin(), others.end(), library_path()), others.end());
    return run_with(others);
}

Outcome Program::run_with(const std::vector<std::string> &preloaded) const {
    const Directory directory;
    const Directory logs;
    std::ofstream(logs.path + "/config").close(); // all defaults
    const char *other = getenv("GPUSHARE_TEST_DRIVER");
    std::map<std::string, std::string> changed = {
        {"GPUSHARE_DIR", directory.path},
        {"GPUSHARE_CONFIG", logs.path + "/config"},
        {"GPUSHARE_LOG", logs.path + "/log"},
        {"GPUSHARE_LOG_FORMAT", "jsonl"},
        {"GPUSHARE_LOG_LEVEL", "info"},
        {"GPUSHARE_SIM_ROOT", "doors-" + std::to_string(getpid())}};
    if (driver)
        changed["LD_LIBRARY_PATH"] = other ? other : build_directory() + "/sim";
    for (const auto &[name, value] : variables)
        changed[name] = value;
    const auto entries = inherited(changed);
    std::vector<std::string> line = words;
    if (!preloaded.empty()) // by env: the dynamic linker of this process must not see it
        line.insert(line.begin(), {"/usr/bin/env", "LD_PRELOAD=" + joined(preloaded, ":")});

    Pipe out, err;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out.ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, err.ends[1], 2);
    pid_t child;
    const int error = posix_spawn(&child, line[0].c_str(), &actions, nullptr,
                                  pointers_to(line).data(), pointers_to(entries).data());
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        throw std::runtime_error("cannot run " + line[0] + ": " + strerror(error));
    out.close_writer();
    err.close_writer();

    Outcome outcome;
    int status = 0;
    if (read_until(child, {out.ends[0], err.ends[0]}, {&outcome.out, &outcome.err},
                   now() + patient(limit), status)) {
        outcome.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    } else {
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
    }
    for (const auto &entry : fs::directory_iterator(logs.path))
        outcome.log += read_file(entry.path());
    outcome.findings = findings_in(outcome.log);
    for (const auto &entry : fs::recursive_directory_iterator(directory.path))
        if (!entry.is_directory())
            outcome.left.push_back(fs::relative(entry.path(), directory.path));
    std::sort(outcome.left.begin(), outcome.left.end());
    return outcome;
}
