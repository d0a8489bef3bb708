// harness.hpp - real programs, with and without gpushare, driven step by step.
//
// A World is a published directory, a configuration, logs and (on the simulator) a machine of its
// own. A Puppet is a program in it (tests/apps/puppet/): it gets a command and answers. What a
// puppet cannot do in time, and what a helper cannot do at all, throws, and the test fails.
//
// The environment decides what it runs on:
//   GPUSHARE_TEST_DRIVER  sim (the default) or gpu: the machine's own driver
//   GPUSHARE_TEST_RUNNER  words before each puppet, as "qemu-aarch64 -L /usr/aarch64-linux-gnu";
//   the
//                         variables that only the program may see are then passed with -E
//   GPUSHARE_TEST_VENDOR  hip6 or hip7: AMD's runtime of that generation, on the simulator. A test
//   binary of this
//                         name means it, too
//   GPUSHARE_TEST_BUILD   the build directory to take puppets and library from
#pragma once

#include "json.hpp"
#include "patience.hpp"
#include "tool/harness.hpp"

constexpr uint64_t KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB;

bool on_gpu();
std::string hip(); // "hip6", "hip7", or empty: CUDA
// A program's build for the vendor, the library for it, and a text of the catalogue as it has it.
std::string for_vendor(const std::string &build);
std::string library();
std::string wording(std::string text);
// What an open of freed memory answers, and one of a process that has ended.
int gone();
int dead();
// The bytes of a handle that are the same whenever it is given: the last of AMD's are garbage.
std::string meaning(const std::string &handle);
size_t cards(); // of the machine, or those that CUDA_VISIBLE_DEVICES leaves
std::string build_directory();
std::string kernels(); // the command by which a puppet loads the tests' kernels
// What a test of device memory allocates: on a GPU that others use, too, it must stand out.
uint64_t big();

int64_t now_ms();
// How long what takes `ms` may take at most: machines that run tests are busy, and on a GPU
// contexts come and go within a second or two.
int soon(int ms);
// After so many ms a program hangs: it is not late, however busy the machine is.
constexpr int HANGS = 40000;

struct Reply {
    std::string text; // without the newline
    int code = -999;
    std::vector<std::string> words; // behind the code
    const std::string &operator[](size_t i) const {
        return words.at(i);
    }
    uint64_t number(size_t i) const {
        return std::stoull(words.at(i));
    }
};

struct How {
    std::string as = "puppet";    // file name of the executable
    std::string build = "puppet"; // puppet, puppet_static, puppet_driver
    bool shim = true;
    Environment environment = {};
    std::vector<std::string> wrap = {}; // as {"unshare", "--ipc"}
    bool own_stderr = true;             // else it is closed
};

struct Finding {
    std::string id, level, api, name, detail, hint, region, command;
    uint32_t pid = 0;
    std::vector<uint32_t> others;
    size_t stack = 0;
};

class Puppet;

class World {
  public:
    explicit World(const std::string &configuration = "", const Environment &more = {});
    ~World();
    World(const World &) = delete;
    World &operator=(const World &) = delete;

    void config(const std::string &text) const;
    std::string path(const std::string &name) const { // of a file of the test's own
        return work.path + "/" + name;
    }

    std::vector<Finding> findings(const std::string &id = "") const;
    size_t count(const std::string &id) const {
        return findings(id).size();
    }
    std::string logs() const; // all of them, as they are

    Result tool(const std::vector<std::string> &arguments) const;
    Json ls() const;
    // The region of this name, or one without, and rather a live one; throws when there is none.
    Json region(const std::string &name = "") const;
    std::string state(const std::string &name = "") const; // "none" when there is no such region
    size_t entries(const std::string &what) const;         // "procs", "regions", "names"
    std::vector<std::string> files(const std::string &what) const;
    gps_store store() const;

    uint64_t used(); // device memory
    // Device memory in use gets to what it was, give or take nothing (on a GPU: what others do).
    bool used_becomes(uint64_t bytes, int ms = 10000);

    std::string executable(const How &how) const;

    Temporary work, shared;
    Environment environment; // of every puppet; a World's constructor sets what isolates it

  private:
    std::unique_ptr<Puppet> meter;
};

class Puppet {
  public:
    explicit Puppet(World &world, const How &how = {});
    ~Puppet();
    Puppet(const Puppet &) = delete;
    Puppet &operator=(const Puppet &) = delete;

    Reply operator()(const std::string &line, int ms = HANGS); // send, then receive
    int code(const std::string &line, int ms = HANGS) {
        return (*this)(line, ms).code;
    }
    // The command that must succeed: its first word, "" if there is none.
    std::string must(const std::string &line, int ms = HANGS);
    // Several, one after the other.
    void all(const std::vector<std::string> &lines);
    // Allocates memory under a name, and fills it with a byte as "0x5a".
    void make(const std::string &name, uint64_t size, const std::string &byte);

    void send(const std::string &line);
    Reply receive(int ms = HANGS);
    bool answers(int ms); // whether a reply comes in time; it is then still to be received

    void signal(int number) const;
    void stop() const; // and is stopped when this returns
    void resume() const {
        signal(SIGCONT);
    }
    void kill();              // SIGKILL, and gone when this returns
    int wait(int ms = HANGS); // for its end: exit status, or 128 + signal
    int quit(const std::string &command, int ms = HANGS) { // "exit 3", "return", ...
        send(command);
        return wait(ms);
    }
    bool ended();
    std::string errors() const; // its stderr so far
    pid_t pid = -1;

    // A child of its own, forked, that goes on as another puppet.
    std::unique_ptr<Puppet> spawn();

  private:
    Puppet(World &world, pid_t child, int in, int out);
    World &home;
    int to = -1, from = -1;
    std::string buffer, error_file;
    bool is_child = false, over = false;
    int status = -1;
};

inline std::string pid(const Puppet &puppet) {
    return std::to_string(puppet.pid);
}

// Rules that tests share: memory called `frames`, of producers for consumers.
extern const char *const FRAMES;
std::string rule(const std::string &name, const std::string &program, const std::string &role,
                 const std::string &more = "");
extern const char
    *const builds[3]; // of the puppet: by the shared runtime, the static one, the driver
inline std::string identifier(std::string name) { // as a test's name must be
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}
std::string pair_name(const testing::TestParamInfo<std::pair<int, int>> &info); // of two of them
How called(const std::string &name, const std::string &build = "puppet");
How producer(const std::string &build = "puppet");
How consumer(const std::string &build = "puppet");
How bare();

// A world with a producer and a consumer in it; and one with two processes that are alike.
struct Couple {
    explicit Couple(const std::string &configuration = "", const Environment &more = {})
        : world(configuration, more) {
    }
    World world;
    Puppet a{world, producer()}, b{world, consumer()};
};
struct Twins {
    explicit Twins(const std::string &configuration = "", const Environment &more = {})
        : world(configuration, more) {
    }
    World world;
    Puppet a{world}, b{world};
};

// Memory that the producer makes by a rule is the consumer's, too, and either one sees what the
// other writes. Returns the region as `gpushare ls` shows it meanwhile.
Json expect_shared_both_ways(const World &world, Puppet &a, Puppet &b);

// What the driver says of "NAME OFFSET", but for these attributes, whose values have one digit.
std::string told_without(Puppet &puppet, const std::string &where,
                         const std::vector<int> &attributes);

inline std::string text(uint64_t number) { // in a command
    return std::to_string(number);
}
std::string hex_bytes(const std::string &byte, size_t count); // "5a" 4 -> "5a5a5a5a"

#define SIM_ONLY(why) SKIP_IF(on_gpu(), "simulator only: " << why)

// What suspends wants the simulator of NVIDIA's driver, or a card.
class Checkpointed : public testing::Test {
  protected:
    void SetUp() override {
        if (!hip().empty())
            GTEST_SKIP() << "the simulator of AMD's runtime has no checkpoints";
    }
};

// The test wants two cards: the simulator has as many as it is told to.
#define TWO_CARDS() SKIP_IF(on_gpu() && cards() < 2, "this machine has one card")
