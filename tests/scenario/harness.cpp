// harness.cpp - see harness.hpp.
#include "scenario/harness.hpp"

namespace fs = std::filesystem;

bool on_gpu() {
    const char *driver = getenv("GPUSHARE_TEST_DRIVER");
    return driver && std::string(driver) == "gpu";
}

std::string hip() {
    const char *given = getenv("GPUSHARE_TEST_VENDOR");
    const std::string vendor = given ? given : program_invocation_short_name;
    return vendor == "hip6" || vendor == "hip7" ? vendor : "";
}

std::string for_vendor(const std::string &build) {
    return hip().empty() ? build : build.substr(0, build.find('_')) + "_" + hip();
}

std::string library() {
    return build_directory() + (hip().empty() ? "/libgpushare.so" : "/libgpushare-hip.so");
}

std::string wording(std::string text) {
    static const std::regex prefix("cuda(?=[A-Z])"), name("CUDA");
    if (!hip().empty())
        text = std::regex_replace(std::regex_replace(text, prefix, "hip"), name, "HIP");
    return text;
}

int gone() {
    return hip().empty() ? 1 : 17;
}

int dead() {
    return hip().empty() ? 400 : 17;
}

std::string meaning(const std::string &handle) {
    return hip().empty() ? handle : handle.substr(0, 104);
}

size_t cards() {
    size_t count = 0;
    if (const char *const visible = getenv("CUDA_VISIBLE_DEVICES"))
        return size_t(std::count(visible, visible + strlen(visible), ',')) + 1;
    for (const auto &file : fs::directory_iterator("/dev")) {
        const std::string name = file.path().filename();
        count += name.rfind("nvidia", 0) == 0 && name.size() > 6 && isdigit(name[6]);
    }
    return count;
}

std::string build_directory() {
    const char *given = getenv("GPUSHARE_TEST_BUILD");
    return given ? fs::absolute(given)
                 : fs::read_symlink("/proc/self/exe").parent_path().parent_path();
}

uint64_t big() {
    return on_gpu() ? 4 * GiB : 4 * MiB;
}

int soon(int ms) {
    return patient(ms + 3000);
}

int64_t now_ms() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static std::vector<std::string> split(const std::string &text) {
    std::istringstream stream(text);
    std::vector<std::string> words;
    for (std::string word; stream >> word;)
        words.push_back(word);
    return words;
}

/* --- the world --- */

World::World(const std::string &configuration, const Environment &more) : shared("/dev/shm") {
    fs::create_directory(path("logs"));
    environment = {
        {"GPUSHARE_DIR", shared.path + "/pub"}, {"GPUSHARE_CONFIG", path("config")},
        {"GPUSHARE_LOG", path("logs/%p.%c")},   {"GPUSHARE_LOG_FORMAT", "jsonl"},
        {"GPUSHARE_SIM_LINGER_MS", "300"},      {"GPUSHARE_SIM_ROOT", "@" + shared.path}};
    config(configuration);
    const char *libraries = getenv("LD_LIBRARY_PATH");
    environment["LD_LIBRARY_PATH"] =
        on_gpu() ? std::string(libraries ? libraries : "") + ":/usr/local/cuda/lib64"
                 : build_directory() + "/sim/" + hip();
    for (const auto &[name, value] : more)
        environment[name] = value;
    setenv("GPUSHARE_TOOL", (build_directory() + "/gpushare").c_str(), 0);
}

World::~World() = default;

void World::config(const std::string &text) const {
    write_file(path("config"), text);
}

std::string kernels() {
    return "kernels " + build_directory() + "/tests/apps/kernels.ptx";
}

std::string World::executable(const How &how) const {
    std::string original = build_directory() + "/tests/apps/" + for_vendor(how.build);
    if (on_gpu() && how.build == "puppet_static")
        original = build_directory() + "/tests/gpu/puppet_static";
    if (how.as == for_vendor(how.build))
        return original;
    const std::string copy = path(how.build + ".as/" + how.as);
    fs::create_directories(fs::path(copy).parent_path());
    if (!fs::exists(copy))
        fs::copy_file(original, copy);
    return copy;
}

std::string World::logs() const {
    std::string all;
    for (const auto &file : fs::directory_iterator(path("logs"))) {
        const std::string text = read_file(file.path());
        // SIGKILL can end a write between two pages: that line is nobody's
        all += text.substr(0, text.rfind('\n') + 1);
    }
    return all;
}

static std::string text_of(const Json &object, const char *key) {
    const Json &value = object[key];
    return value.kind == Json::String ? value.text : "";
}

std::vector<Finding> World::findings(const std::string &id) const {
    std::vector<Finding> found;
    std::istringstream lines(logs());
    for (std::string line; std::getline(lines, line);) {
        const Json json = Json::parse(line);
        Finding one;
        one.id = text_of(json, "finding");
        if (one.id.empty() || (!id.empty() && id != one.id))
            continue;
        one.level = text_of(json, "level");
        one.api = text_of(json, "api");
        one.name = text_of(json, "name");
        one.detail = text_of(json, "detail");
        one.hint = text_of(json, "hint");
        one.region = text_of(json, "region");
        one.command = text_of(json, "command");
        one.pid = static_cast<uint32_t>(json["pid"].number);
        one.stack = json["stack"].size();
        for (const Json &other : json["others"].elements)
            one.others.push_back(static_cast<uint32_t>(other["pid"].number));
        found.push_back(one);
    }
    return found;
}

Result World::tool(const std::vector<std::string> &arguments) const {
    return ::tool(arguments, environment);
}

Json World::ls() const {
    const Result result = tool({"ls", "--json"});
    if (result.status != 0)
        throw std::runtime_error("gpushare ls: " + result.err);
    return Json::parse(result.out);
}

static bool is_over(const Json &region) {
    return region["state"].text == "freed" || region["state"].text == "orphaned";
}

Json World::region(const std::string &name) const {
    const Json all = ls();
    const Json *found = nullptr;
    for (const Json &one : all.elements)
        if (text_of(one, "name") == name && (!found || is_over(*found)))
            found = &one;
    if (!found)
        throw std::runtime_error("no region '" + name + "'");
    return *found;
}

std::string World::state(const std::string &name) const {
    try {
        return region(name)["state"].text;
    } catch (const std::runtime_error &) {
        return "none";
    }
}

std::vector<std::string> World::files(const std::string &what) const {
    std::vector<std::string> names;
    std::error_code missing;
    for (const auto &file :
         fs::directory_iterator(environment.at("GPUSHARE_DIR") + "/default/" + what, missing))
        names.push_back(file.path().filename());
    return names;
}

size_t World::entries(const std::string &what) const {
    return files(what).size();
}

gps_store World::store() const {
    gps_store store;
    const int status =
        gps_store_init(&store, environment.at("GPUSHARE_DIR").c_str(), "default", false);
    if (status)
        throw std::runtime_error("no store: " + std::string(strerror(-status)));
    return store;
}

uint64_t World::used() {
    if (!meter)
        meter = std::make_unique<Puppet>(*this, bare());
    const Reply info = (*meter)("info");
    return info.number(1) - info.number(0);
}

bool World::used_becomes(uint64_t bytes, int ms) {
    const uint64_t slack = on_gpu() ? 2 * GiB : 0;
    return eventually(
        [&] {
            const uint64_t now = used();
            return now <= bytes + slack && now + slack >= bytes;
        },
        ms);
}

/* --- a puppet --- */

static std::string runner_words() {
    const char *runner = getenv("GPUSHARE_TEST_RUNNER");
    return runner ? runner : "";
}

static std::vector<std::string> command_line(const World &world, const How &how,
                                             Environment &environment) {
    std::vector<std::string> line = how.wrap;
    Environment hidden; // what the runner itself must not see
    if (how.shim)
        hidden["LD_PRELOAD"] = library();
    hidden["LD_LIBRARY_PATH"] = environment.at("LD_LIBRARY_PATH");
    if (runner_words().empty()) {
        if (!how.wrap.empty()) { // nor must what wraps it
            line.push_back("env");
            for (const auto &[name, value] : hidden)
                line.push_back(name + "=" + value);
            environment.erase("LD_LIBRARY_PATH");
        } else {
            environment.insert(hidden.begin(), hidden.end());
        }
    } else {
        for (const std::string &word : split(runner_words()))
            line.push_back(word);
        for (const auto &[name, value] : hidden) {
            line.push_back("-E");
            line.push_back(name + "=" + value);
        }
        environment.erase("LD_LIBRARY_PATH");
    }
    line.push_back(world.executable(how));
    return line;
}

static void become(const std::vector<std::string> &line, const Environment &environment) {
    std::vector<char *> argv;
    for (const std::string &word : line)
        argv.push_back(const_cast<char *>(word.c_str()));
    argv.push_back(nullptr);
    for (const auto &[name, value] : environment)
        setenv(name.c_str(), value.c_str(), 1);
    execvp(argv[0], argv.data());
    _exit(99);
}

Puppet::Puppet(World &world, const How &how) : home(world) {
    static int number;
    Environment environment = world.environment;
    for (const auto &[name, value] : how.environment)
        environment[name] = value;
    const std::vector<std::string> line = command_line(world, how, environment);
    error_file = world.path("stderr." + std::to_string(number++));
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        throw std::runtime_error("no pipe");
    pid = fork();
    if (pid == 0) {
        const int err = open(error_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        dup2(in[0], 0);
        dup2(out[1], 1);
        if (how.own_stderr)
            dup2(err, 2);
        else
            ::close(2);
        unsetenv("LD_PRELOAD");
        become(line, environment);
    }
    ::close(in[0]);
    ::close(out[1]);
    to = in[1];
    from = out[0];
    ::signal(SIGPIPE, SIG_IGN);
}

Puppet::Puppet(World &world, pid_t child, int in, int out)
    : pid(child), home(world), to(in), from(out), is_child(true) {
}

Puppet::~Puppet() {
    try {
        kill();
    } catch (const std::exception &) { // nothing more can be done about it
    }
    ::close(to);
    ::close(from);
}

void Puppet::send(const std::string &line) {
    const std::string text = line + "\n";
    if (write(to, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        throw std::runtime_error("the puppet is gone before: " + line + "\n" + errors());
}

bool Puppet::answers(int ms) {
    const int64_t until = now_ms() + ms;
    while (buffer.find('\n') == std::string::npos) {
        pollfd end = {from, POLLIN, 0};
        const int64_t left = until - now_ms();
        if (left < 0 || poll(&end, 1, static_cast<int>(left)) <= 0)
            return false;
        char bytes[65536];
        const ssize_t count = read(from, bytes, sizeof(bytes));
        if (count <= 0)
            throw std::runtime_error("the puppet has ended:\n" + errors());
        buffer.append(bytes, static_cast<size_t>(count));
    }
    return true;
}

Reply Puppet::receive(int ms) {
    if (!answers(patient(ms)))
        throw std::runtime_error("no reply in " + std::to_string(ms) + " ms\n" + errors());
    const size_t end = buffer.find('\n');
    Reply reply;
    reply.text = buffer.substr(0, end);
    buffer.erase(0, end + 1);
    reply.words = split(reply.text);
    if (!reply.words.empty()) {
        reply.code = std::stoi(reply.words[0]);
        reply.words.erase(reply.words.begin());
    }
    return reply;
}

Reply Puppet::operator()(const std::string &line, int ms) {
    send(line);
    try {
        return receive(ms);
    } catch (const std::exception &error) {
        throw std::runtime_error(line + ": " + error.what());
    }
}

std::string Puppet::must(const std::string &line, int ms) {
    const Reply reply = (*this)(line, ms);
    if (reply.code != 0)
        throw std::runtime_error(line + ": " + reply.text + "\n" + errors());
    return reply.words.empty() ? "" : reply[0];
}

void Puppet::all(const std::vector<std::string> &lines) {
    for (const std::string &line : lines)
        must(line);
}

void Puppet::make(const std::string &name, uint64_t size, const std::string &byte) {
    const std::string bytes = std::to_string(size);
    must("malloc " + name + " " + bytes);
    must("fill " + name + " " + byte + " " + bytes);
    must("sync");
}

void Puppet::signal(int number) const {
    ::kill(pid, number);
}

void Puppet::stop() const {
    signal(SIGSTOP);
    siginfo_t info;
    if (!is_child)
        waitid(P_PID, static_cast<id_t>(pid), &info, WSTOPPED | WNOWAIT);
}

bool Puppet::ended() {
    if (!over && !is_child)
        over = waitpid(pid, &status, WNOHANG) == pid;
    if (!over && is_child) { // its parent may leave it a zombie
        const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
        over = stat.empty() || stat.find(") Z") != std::string::npos;
    }
    return over;
}

int Puppet::wait(int ms) {
    if (!eventually([&] { return ended(); }, ms))
        throw std::runtime_error("it has not ended in " + std::to_string(ms) + " ms\n" + errors());
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void Puppet::kill() {
    if (ended())
        return;
    signal(SIGKILL);
    wait();
}

std::string Puppet::errors() const {
    return error_file.empty() ? "" : read_file(error_file);
}

std::unique_ptr<Puppet> Puppet::spawn() {
    static int number;
    const std::string in = home.path("in" + std::to_string(number));
    const std::string out = home.path("out" + std::to_string(number++));
    if (mkfifo(in.c_str(), 0600) || mkfifo(out.c_str(), 0600))
        throw std::runtime_error("no named pipe");
    const pid_t child = std::stoi(must("spawn " + in + " " + out));
    const int write_end = open(in.c_str(), O_WRONLY | O_CLOEXEC);
    const int read_end = open(out.c_str(), O_RDONLY | O_CLOEXEC);
    std::unique_ptr<Puppet> puppet(new Puppet(home, child, write_end, read_end));
    puppet->receive(); // "0 child"
    return puppet;
}

/* --- what tests share --- */

std::string rule(const std::string &name, const std::string &program, const std::string &role,
                 const std::string &more) {
    return "[region " + name + "]\nprogram = " + program + "\nrole = " + role + "\n" + more;
}

const char *const FRAMES = "[region frames]\nprogram = producer\nrole = export\n"
                           "[region frames]\nprogram = consumer*\nrole = import\nwait = 5s\n";

const char *const builds[3] = {"puppet", "puppet_static", "puppet_driver"};

std::string pair_name(const testing::TestParamInfo<std::pair<int, int>> &info) {
    return std::string(builds[info.param.first]) + "_to_" + builds[info.param.second];
}

How called(const std::string &name, const std::string &build) {
    How how;
    how.as = name;
    how.build = build;
    return how;
}

How producer(const std::string &build) {
    return called("producer", build);
}

How consumer(const std::string &build) {
    return called("consumer", build);
}

How bare() {
    How how;
    how.shim = false;
    return how;
}

Json expect_shared_both_ways(const World &world, Puppet &a, Puppet &b) {
    a.make("p", 4194304, "0x11");
    b.must("malloc q 4194304");
    EXPECT_EQ(b.must("read q 4190000 4"), "11111111");
    b.must("write q 100 deadbeef");
    EXPECT_EQ(a.must("read p 99 6"), "11deadbeef11");
    const Json region = world.region("frames");
    EXPECT_EQ(region["owner"]["pid"].number, a.pid);
    EXPECT_EQ(region["users"].size(), 1u);
    EXPECT_EQ(region["users"][0]["pid"].number, b.pid);
    b.must("free q");
    EXPECT_EQ(world.region("frames")["users"].size(), 0u);
    EXPECT_EQ(a.must("read p 99 6"), "11deadbeef11");
    a.must("free p");
    EXPECT_EQ(world.findings().size(), 0u);
    return region;
}

std::string told_without(Puppet &puppet, const std::string &where,
                         const std::vector<int> &attributes) {
    std::string told = puppet("told " + where).text;
    for (const int attribute : attributes) {
        const std::string which = " " + std::to_string(attribute) + "=0:";
        for (size_t at; (at = told.find(which)) != std::string::npos;)
            told.erase(at, which.size() + 1);
    }
    return told;
}

std::string hex_bytes(const std::string &byte, size_t count) {
    std::string text;
    while (count--)
        text += byte;
    return text;
}
