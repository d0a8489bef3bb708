#include "harness.hpp"

#include <pty.h>

extern char **environ;

// GPUSHARE_TOOL in the environment or at compile time, else beside the directory of this test
// binary.
std::string tool_path() {
    const char *path = getenv("GPUSHARE_TOOL");
    if (path)
        return std::filesystem::absolute(path);
#ifdef GPUSHARE_TOOL
    return std::filesystem::absolute(GPUSHARE_TOOL);
#else
    return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "gpushare";
#endif
}

static void set_environment(const Environment &environment) {
    std::vector<std::string> ours;
    for (char **entry = environ; *entry; entry++)
        if (!strncmp(*entry, "GPUSHARE_", 9) || !strncmp(*entry, "LD_PRELOAD=", 11) ||
            !strncmp(*entry, "NO_COLOR=", 9))
            ours.push_back(std::string(*entry, strcspn(*entry, "=")));
    for (const auto &name : ours)
        unsetenv(name.c_str());
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 0); // a tool built with it is preloaded into
    for (const auto &[name, value] : environment)
        setenv(name.c_str(), value.c_str(), 1);
}

static void read_both(int out, int err, Result &result) {
    pollfd ends[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
    std::string *texts[2] = {&result.out, &result.err};
    for (int open = 2; open > 0;) {
        poll(ends, 2, -1);
        for (int i = 0; i < 2; i++) {
            char buffer[4096];
            if (ends[i].fd < 0 || !ends[i].revents)
                continue;
            ssize_t count = read(ends[i].fd, buffer, sizeof(buffer));
            if (count > 0) {
                texts[i]->append(buffer, static_cast<size_t>(count));
            } else {
                ends[i].fd = -1;
                open--;
            }
        }
    }
}

static Result run(const std::vector<std::string> &line, const Environment &environment,
                  bool terminal, const winsize *size) {
    int out[2], err[2];
    if (terminal ? openpty(&out[0], &out[1], nullptr, nullptr, size) : pipe2(out, O_CLOEXEC))
        throw std::runtime_error("no pipe");
    if (pipe2(err, O_CLOEXEC))
        throw std::runtime_error("no pipe");
    pid_t child = fork();
    if (child == 0) {
        std::vector<char *> argv;
        for (const auto &word : line)
            argv.push_back(const_cast<char *>(word.c_str()));
        argv.push_back(nullptr);
        dup2(out[1], 1);
        dup2(size ? out[1] : err[1], 2);
        set_environment(environment);
        execvp(argv[0], argv.data());
        _exit(99);
    }
    close(out[1]);
    close(err[1]);
    Result result;
    read_both(out[0], err[0], result);
    close(out[0]);
    close(err[0]);
    int status = 0;
    rusage usage = {};
    wait4(child, &status, 0, &usage);
    result.memory = usage.ru_maxrss;
    result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return result;
}

Result command(const std::vector<std::string> &line, const Environment &environment,
               bool terminal) {
    return run(line, environment, terminal, nullptr);
}

void expect_to_fit(const std::string &text, int columns) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::string plain = line;
        for (size_t at; (at = plain.find("\033[")) != std::string::npos;)
            plain.erase(at, plain.find('m', at) - at + 1);
        EXPECT_LE(static_cast<int>(plain.size()), columns) << plain;
        EXPECT_TRUE(plain.empty() || plain.back() != ' ') << plain;
    }
}

std::string on_terminal(int columns, const std::vector<std::string> &line,
                        const Environment &environment) {
    const winsize size = {50, static_cast<unsigned short>(columns), 0, 0};
    std::string text = run(line, environment, true, &size).out;
    text.erase(std::remove(text.begin(), text.end(), '\r'), text.end());
    return text;
}

Result tool(const std::vector<std::string> &arguments, const Environment &environment,
            bool terminal) {
    std::vector<std::string> line = {tool_path()};
    line.insert(line.end(), arguments.begin(), arguments.end());
    return command(line, environment, terminal);
}

Temporary::Temporary(const char *parent) : path(std::string(parent) + "/gpushare-test-XXXXXX") {
    if (!mkdtemp(path.data()))
        throw std::runtime_error("no temporary directory");
}

Temporary::~Temporary() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
}

std::string Temporary::file(const std::string &name, const std::string &text) const {
    if (!text.empty())
        write_file(path + "/" + name, text);
    return path + "/" + name;
}

std::string compiled(const Temporary &place, const std::string &name, const std::string &code,
                     const std::vector<std::string> &options) {
    const std::string made = place.path + "/" + name;
    std::vector<std::string> line = {"cc",
                                     "-w",
                                     "-D_GNU_SOURCE",
                                     "-include",
                                     "tests/common/system_headers.h",
                                     place.file(name + ".c", code)};
    line.insert(line.end(), options.begin(), options.end());
    line.insert(line.end(), {"-o", made});
    EXPECT_EQ(command(line).status, 0) << made;
    return made;
}

std::string read_file(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

void write_file(const std::string &path, const std::string &text) {
    std::ofstream(path, std::ios::binary) << text;
    chmod(path.c_str(), 0600);
}

static uint64_t now() {
    timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

static void hold_lease(const Shared &shared, gps_owner owner, const std::vector<Hold> &holds,
                       int up) {
    gps_lease lease;
    if (gps_lease_take(&shared.store, &owner, NULL, &lease))
        _exit(1);
    for (unsigned i = 0; i < holds.size(); i++) {
        gps_slot slot{};
        slot.region = holds[i].region;
        slot.address = holds[i].state == GPS_SLOT_OPEN ? holds[i].address : 0;
        slot.since = now();
        slot.state = holds[i].state;
        slot.via = holds[i].via;
        slot.generation = holds[i].state == GPS_SLOT_OPEN;
        gps_slot_seal(&slot);
        if (gps_lease_write(&lease, i, &slot))
            _exit(1);
    }
    if (write(up, &owner, sizeof(owner)) != sizeof(owner))
        _exit(1);
    for (;;)
        pause();
}

Peer::Peer(const Shared &shared, const std::string &name, const std::vector<Hold> &holds,
           uint64_t pid_ns, uint32_t pid) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        throw std::runtime_error("no pipe");
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        gps_owner self;
        gps_owner_self(&self);
        memset(self.command, 0, sizeof(self.command));
        strncpy(self.command, name.c_str(), sizeof(self.command) - 1);
        self.pid_ns = pid_ns ? pid_ns : self.pid_ns;
        self.pid = pid ? pid : self.pid;
        hold_lease(shared, self, holds, ends[1]);
    }
    close(ends[1]);
    ssize_t count = read(ends[0], &owner, sizeof(owner));
    close(ends[0]);
    if (count != sizeof(owner))
        throw std::runtime_error("the peer has no lease");
}

void Peer::kill() {
    if (child > 0) {
        ::kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
    }
    child = -1;
}

Peer::~Peer() {
    kill();
}

Shared::Shared() : root("/dev/shm") {
    if (gps_store_init(&store, root.path.c_str(), "default", true))
        throw std::runtime_error("no store");
}

Environment Shared::environment() const {
    return {{"GPUSHARE_DIR", root.path}, {"TERM", "xterm"}, {"TZ", "UTC"}};
}

Result Shared::tool(const std::vector<std::string> &arguments, bool terminal,
                    Environment more) const {
    more.merge(environment());
    return ::tool(arguments, more, terminal);
}

gps_region_record Shared::region(const gps_owner &owner, const std::string &name, uint8_t seed,
                                 gps_state state, uint64_t size, uint8_t card) const {
    gps_region_record record{};
    memset(record.handle, seed, sizeof(record.handle));
    record.id = gps_id_of_handle(record.handle);
    record.generation = seed;
    record.backing = GPS_BACKING_IPC;
    record.requested = size;
    record.extent = (size + (2u << 20) - 1) / (2u << 20) * (2u << 20);
    record.created = now() - 90 * 1000000000ull;
    for (unsigned i = 0; i < sizeof(record.device); i++)
        record.device[i] = static_cast<uint8_t>(0x5d + 0x11 * i + (i == 5 ? card : 0));
    record.owner = owner;
    strncpy(record.name, name.c_str(), sizeof(record.name) - 1);
    record.status.state = state;
    record.status.changed = now() - 30 * 1000000000ull;
    record.status.until = state == GPS_STATE_FINAL ? now() + 60 * 1000000000ull : 0;
    gps_record_seal(&record);
    if (int error = gps_region_publish(&store, &record))
        throw std::runtime_error("not published: " + std::string(strerror(-error)));
    return record;
}

std::string id_text(const gps_id &id) {
    char text[GPS_ID_HEX];
    gps_id_format(&id, text);
    return text;
}

std::string pid_text(const gps_owner &owner) {
    return std::to_string(owner.pid);
}
