// gpushare audit: real programs on the simulated driver, watched with their children, then
// reported.
#include <sys/utsname.h>

#include "harness.hpp"

namespace fs = std::filesystem;

namespace {

class Audit : public testing::Test {
  protected:
    void SetUp() override {
        const fs::path build = fs::absolute(tool_path()).parent_path();
        puppet = build / "tests/apps/puppet";
        environment = {{"GPUSHARE_DIR", shared.path + "/pub"},
                       {"GPUSHARE_CONFIG", place.file("config", "\n")},
                       {"GPUSHARE_SIM_ROOT", "@" + shared.path},
                       {"GPUSHARE_SIM_LINGER_MS", "50"},
                       {"LD_LIBRARY_PATH", build / "sim"},
                       {"TMPDIR", temporary.path}};
    }
    Result audit(std::vector<std::string> line, const Environment &more = {}) {
        Environment all = more;
        all.insert(environment.begin(), environment.end());
        line.insert(line.begin(), "audit");
        return tool(line, all);
    }
    // A shell's line that lets a program free twice, and exit with a status.
    std::string misuse(const std::string &status = "0") const {
        return "printf 'malloc a 4096\\nfree a\\nfree a\\nexit " + status + "\\n' | " + puppet +
               " >/dev/null";
    }
    // One that lets it obey these commands, a line each, and exit.
    std::string after(const std::string &commands) const {
        return "printf '" + commands + "\\nexit 0\\n' | " + puppet + " >/dev/null";
    }
    // One that makes no mistake.
    std::string right() const {
        return "printf 'malloc a 4096\\nfree a\\nexit 0\\n' | " + puppet + " >/dev/null";
    }
    Result misused(std::vector<std::string> options, const std::string &status = "0") {
        options.insert(options.end(), {"--", "sh", "-c", misuse(status)});
        return audit(options);
    }

    // So that another user can read the configuration, and use the driver and the directory.
    void let_all_in() const {
        for (const Temporary *open : {&shared, &place})
            fs::permissions(open->path, fs::perms::all);
        fs::permissions(place.path + "/config", fs::perms::all);
    }

    // How many one of these makes.
    int calls() {
        const std::string err = audit({"sh", "-c", right()}).err;
        const size_t at = err.find("CUDA, ");
        return at == std::string::npos ? 0 : std::stoi(err.substr(at + 6));
    }

    Temporary place, temporary, shared{"/dev/shm"};
    std::string puppet;
    Environment environment;
};

const std::string not_looked_at = "========= not looked at: memory that is never freed "
                                  "(--leak-check), and what kernels do (compute-sanitizer)\n";

double seconds_of(const std::function<void()> &work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A shell's line that waits for words in a file.
std::string until_said(const std::string &words, const std::string &file) {
    return "until grep -q '" + words + "' " + file + "; do sleep 0.05; done";
}

// On a busy machine an audit, or what it watches, may come too late to its turn.
bool in_one_of_three(const std::function<bool()> &holds) {
    return holds() || holds() || holds();
}

} // namespace

TEST_F(Audit, AFindingOfAGrandchildIsReportedOnStderrAndMakesTheStatus1) {
    const Result result = misused({});
    EXPECT_OUT(result, 1, "");
    EXPECT_HAS(
        result.err, "========= GPUSHARE ERROR: double-free in cudaFree, by puppet",
        " obey at tests/apps/puppet/main.c:", "========= GPUSHARE SUMMARY: 1 finding (1 error)");
}

TEST_F(Audit, TheStatusIsTheCommandsUnlessItIs0) {
    EXPECT_EQ(misused({}, "3").status, 3);
    EXPECT_EQ(misused({"--error-exitcode=7"}).status, 7);
    EXPECT_EQ(misused({"--error-exitcode=7"}, "3").status, 3);
    EXPECT_EQ(misused({"--error-exitcode", "0"}).status, 0);
    EXPECT_EQ(audit({"sh", "-c", right()}).status, 0);
    EXPECT_EQ(audit({"sh", "-c", "kill -KILL $$"}).status, 128 + 9);
}

TEST_F(Audit, FailsABuildOnWhatItIsToldTo) {
    const std::string leak =
        "printf 'malloc a 4096\\nget a\\nexit 0\\n' | " + puppet + " >/dev/null";
    const auto status = [&](std::vector<std::string> options, const std::string &line) {
        options.insert(options.end(), {"--", "sh", "-c", line});
        return audit(options).status;
    };
    EXPECT_EQ(status({}, leak), 0);
    EXPECT_EQ(status({"--fail-on=warning"}, leak), 0);
    EXPECT_EQ(status({"--fail-on=leak"}, leak), 1);
    EXPECT_EQ(status({"--fail-on=info"}, leak), 1);
    EXPECT_EQ(status({"--fail-on=leak", "--error-exitcode=9"}, leak), 9);
    EXPECT_EQ(status({"--fail-on=leak"}, misuse()), 1) << "an error is worse";
    EXPECT_EQ(status({"--fail-on=leak"}, right()), 0);
    const std::string suppressions =
        place.file("s.ini", "[suppress leak]\nfinding = leak-export\n");
    EXPECT_EQ(status({"--fail-on=leak", "-s", suppressions}, leak), 0);
}

TEST_F(Audit, LeaksOfALoopAreAWarning) {
    const auto leaks = [this](int count) {
        const std::string line =
            "i=0; { while [ $i -lt " + std::to_string(count) +
            " ]; do printf \"malloc $i 4096\\nget $i\\n\"; i=$((i+1)); done; echo exit 0; } | " +
            puppet + " >/dev/null";
        return audit({"--fail-on=warning", "--", "sh", "-c", line});
    };
    EXPECT_ERR_HAS(leaks(8), 0, "GPUSHARE INFO: leak-export");
    EXPECT_ERR_HAS(leaks(9), 1, "GPUSHARE WARNING: leak-export");
}

TEST_F(Audit, WhatCannotFailABuildIsRefused) {
    EXPECT_EQ(
        audit({"--fail-on=fatal", "true"}).err,
        "gpushare: audit: --fail-on 'fatal' is not known; allowed: error, warning, leak, info\n");
    Result result = audit({"--fail-on=leak", "--level=warning", "true"});
    EXPECT_ERR(result, 125,
               "gpushare: audit: --level=warning leaves out what --fail-on=leak counts; "
               "give --level=info\n");
    EXPECT_EQ(audit({"--fail-on=warning", "true"}, {{"GPUSHARE_LOG_LEVEL", "error"}}).err,
              "gpushare: audit: GPUSHARE_LOG_LEVEL=error leaves out what --fail-on=warning counts; "
              "give GPUSHARE_LOG_LEVEL=warning\n");
}

TEST_F(Audit, WithoutFindingsItSaysWhatItWatched) {
    const Result result = audit({"sh", "-c", right() + "; " + right()});
    EXPECT_ERR(result, 0,
               not_looked_at + "========= GPUSHARE SUMMARY: 0 findings; 2 processes used CUDA, " +
                   std::to_string(2 * calls()) + " calls seen\n");
}

const char *const never_frees = "malloc a 4096\\nmalloc b 4096\\nmalloc c 4096\\nfree b";

TEST_F(Audit, ListsWhatWasNeverFreedByCallSite) {
    const std::vector<std::string> line = {"--", "sh", "-c", after(never_frees)};
    const auto with = [&](std::vector<std::string> options) {
        options.insert(options.end(), line.begin(), line.end());
        return audit(options);
    };
    EXPECT_HAS(with({}).err, "SUMMARY: 0 findings;", "never freed (--leak-check)");
    const Result listed = with({"--leak-check"}), failed = with({"--fail-on=leak"});
    EXPECT_ERR_HAS(listed, 0, "GPUSHARE INFO: leak-memory, by puppet",
                   "2 allocations, 8 KiB in all",
                   "Allocated at:", "SUMMARY: 1 finding (1 info), 2 occurrences");
    EXPECT_LACKS(listed.err, "(--leak-check)");
    EXPECT_ERR_HAS(failed, 1, "leak-memory");
    EXPECT_EQ(with({"--leak-check", "--fail-on=warning"}).status, 0);
}

TEST_F(Audit, WhatALibraryKeepsIsNoLeak) {
    const std::string suppressions =
        place.file("s.ini", "[suppress kept]\nfinding = leak-memory\nmodule = puppet*\n");
    const Result result =
        audit({"--fail-on=leak", "-s", suppressions, "--", "sh", "-c", after(never_frees)});
    EXPECT_EQ(result.status, 0) << result.err;
}

TEST_F(Audit, ALevelThatLeavesLeaksOutIsRefused) {
    const Result result = audit({"--leak-check", "--level=error", "true"});
    EXPECT_ERR(result, 125,
               "gpushare: audit: --level=error leaves out what --leak-check reports; "
               "give --level=info\n");
    const Result quiet = audit({"--leak-check", "--", "sh", "-c", after(never_frees)},
                               {{"GPUSHARE_LOG_LEVEL", "error"}});
    EXPECT_HAS(quiet.err, "leak-memory");
}

TEST_F(Audit, AProcessThatIsKilledHasBeenWatched) {
    const Result result = audit(
        {"sh", "-c", "printf 'malloc a 4096\\nfree a\\nabort\\n' | " + puppet + " >/dev/null"});
    EXPECT_HAS(result.err, "; 1 process used CUDA, " + std::to_string(calls()) + " calls seen\n");
}

TEST_F(Audit, WhereNothingWasWatchedItIsNoCleanBill) {
    const Result result = audit({"echo", "-n", "--json"});
    EXPECT_OUT(result, 3, "--json");
    EXPECT_EQ(result.err.find("========= GPUSHARE SUMMARY: 0 findings; nothing was watched\n"
                              "gpushare: audit: nothing was watched: no process used CUDA"),
              0u)
        << result.err;
    EXPECT_EQ(audit({"sh", "-c", "exit 4"}).status, 4) << "the command's goes before";
    const std::string five = fs::path(puppet).parent_path() / "five";
    EXPECT_EQ(audit({"env", "-u", "LD_PRELOAD", five}).status, 3);
}

TEST_F(Audit, WhereNoFileMayGrowItRunsTheCommandAllTheSame) {
    const std::string line = "ulimit -f 0; exec " + fs::absolute(tool_path()).string();
    const Result result = command({"sh", "-c", line + " audit -- sh -c 'exit 4'"}, environment);
    EXPECT_ERR_HAS(result, 4, "SUMMARY: 0 findings; calls could not be counted\n",
                   "it is not known who was watched: ");
}

TEST_F(Audit, WhereLogsWereRemovedOrCutOffItIsNoCleanBill) {
    const Result removed = audit({"sh", "-c", right() + "; rm -r \"${GPUSHARE_LOG%/*}\""});
    EXPECT_ERR_HAS(removed, 3, "gpushare: audit: cannot read '",
                   "what was written there is lost\n");
    const Result found = audit({"sh", "-c", misuse() + "; rm -r \"${GPUSHARE_LOG%/*}\""});
    EXPECT_ERR_HAS(found, 1, "1 finding (1 error)");
    const std::string logs = place.path + "/logs";
    const Result kept =
        audit({"--log", logs, "sh", "-c", misuse() + "; sleep 1.5; rm " + logs + "/*"});
    EXPECT_EQ(kept.status, 3) << kept.err;
    EXPECT_HAS(kept.err,
               " lines of the processes' logs are missing: what was found is not all in the "
               "report\n");
    const std::string lines =
        R"({"ts":"2026-11-21T02:34:01.000000Z","pid":1,"finding":null}\n{"ts":"2026)";
    const Result cut = audit(
        {"sh", "-c", right() + "; printf '" + lines + "' >\"${GPUSHARE_LOG%/*}/full.jsonl\""});
    EXPECT_ERR_HAS(cut, 3, "full.jsonl:2: cut off: ");
}

TEST_F(Audit, WhatAProgramLosesIsNothingThatTheAuditNeeds) {
    std::vector<std::string> losses = {"hoard", "lose_closed", "lose_limit files 0",
                                       "lose_limit files 3", "lose_limit size 0"};
    if (geteuid() == 0)
        losses.insert(losses.end(),
                      {"lose_user 65534", "lose_root " + place.path, "lose_namespaces"});
    for (const std::string &loss : losses) {
        const Temporary logs;
        const std::string line = after("malloc a 4096\\n" + loss + "\\nfree a\\nfree a");
        for (const Result &result :
             {audit({"--fail-on=info", "--", "sh", "-c", line}),
              audit({"--log", logs.path, "--fail-on=info", "--", "sh", "-c", line})}) {
            EXPECT_ERR_HAS(result, 1, "double-free in cudaFree, by puppet");
            EXPECT_LACKS(result.err, "{\"ts\"");
        }
        EXPECT_HAS(tool({"report", logs.path}).out, "double-free in cudaFree");
    }
}

TEST_F(Audit, NorIsWhatItLosesBeforeItsFirstCall) {
    SKIP_IF(geteuid() != 0, "only root can become another user");
    let_all_in();
    const Result result =
        audit({"sh", "-c", after("lose_user 65534\\nmalloc a 4096\\nfree a\\nfree a")});
    EXPECT_ERR_HAS(result, 1, "double-free in cudaFree, by puppet");
}

TEST_F(Audit, ALibrarysConstructorThatCallsFirstIsWatched) {
    const std::string library = compiled(place, "libearly.so", R"(
__attribute__((constructor)) static void call(void) {
    int (*call)(unsigned);
    *(void **)&call = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuInit");
    call(0);
}
void needed(void) {})",
                                         {"-shared", "-fPIC", "-ldl"});
    const std::string program = compiled(
        place, "program", "void needed(void); int main(void) { needed(); return 0; }", {library});
    EXPECT_ERR_HAS(audit({program}), 0, "1 process used CUDA, 1 call seen");
}

// A program that writes anything into the channel, and then another that makes a mistake.
TEST_F(Audit, WhatAProgramDoesToTheChannelIsSeen) {
    const std::string program = compiled(place, "scribble", R"(
#include "log/channel.h"
int main(int count, char **words) {
    struct stat info;
    const int fd = open(getenv(GPS_CHANNEL_VARIABLE), O_RDWR);
    fstat(fd, &info);
    struct gps_channel *channel = mmap(0, info.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    channel->lines++;
    const uint64_t first = channel->taken;
    channel->taken += strcmp(words[1], "full") == 0 ? GPS_CHANNEL_CELLS - first : 3;
    if (strcmp(words[1], "wild") == 0)
        channel->begun[first] = 60000;
    return channel == MAP_FAILED || ftruncate(fd, 0) == 0;
})",
                                         {"-Ishim"});
    for (const std::string how : {"killed", "wild", "full"}) {
        const Temporary logs;
        const std::string line = program + " " + how + " && ";
        const Result blind = audit({"sh", "-c", line + right()});
        EXPECT_ERR_HAS(blind, 3, "1 line of the processes' logs is missing: ");
        const Result found = audit({"--log", logs.path, "sh", "-c", line + misuse()});
        EXPECT_ERR_HAS(found, 1, "1 finding (1 error)",
                       "1 line of the processes' logs is missing: ");
    }
}

// They are emptied meanwhile, and taken again: this is ten times what the channel holds.
TEST_F(Audit, LinesOfManyProcessesAreAllRead) {
    const std::string program = compiled(place, "many", R"(
#include "log/channel.h"
enum { PROCESSES = 4, THREADS = 4, LINES = 1600 };
static void *write_lines(void *arg) {
    char line[4000];
    for (int i = 0; i < LINES; i++) {
        const int length = 100 + rand() % 3800;
        memset(line, ' ', sizeof(line));
        const int text = sprintf(line, "{\"ts\":\"2026-11-21T02:34:01.000000Z\",\"pid\":%d,\"finding\":null}",
                                 getpid());
        line[text] = ' ';
        line[length - 1] = '\n';
        gps_channel()->lines++;
        while (!gps_channel_put("a/b.1.jsonl", line, length))
            usleep(1000);
    }
    return arg;
}
int main(void) {
    gps_channel_start();
    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0) {
            pthread_t threads[THREADS];
            for (int j = 0; j < THREADS; j++)
                pthread_create(&threads[j], 0, write_lines, 0);
            for (int j = 0; j < THREADS; j++)
                pthread_join(threads[j], 0);
            _exit(0);
        }
    while (wait(0) > 0)
        ;
})",
                                         {"-pthread", "-Ishim", "shim/log/channel.c"});
    const Temporary logs;
    const Result result = audit({"--log", logs.path, "sh", "-c", right() + ";" + program});
    EXPECT_EQ(result.status, 0) << result.err;
    const std::string log = read_file(logs.path + "/a_b.1.jsonl");
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 4 * 4 * 1600);
}

// It runs as without gpushare then.
TEST_F(Audit, WhoCannotReadTheConfigurationIsNoCleanBill) {
    SKIP_IF(geteuid() != 0, "only root can become another user");
    const Result result =
        audit({"sh", "-c", right() + ";" + after("lose_user 65534\\nmalloc a 4096")});
    EXPECT_ERR_HAS(result, 3, "config-error", "the processes' logs is missing: ");
}

// What is executed then cannot open the channel.
TEST_F(Audit, WhoCannotReachItIsNamed) {
    SKIP_IF(geteuid() != 0, "only root can become another user");
    let_all_in();
    const std::string commands =
        "lose_user 65534\\nexec\\nmalloc a 4096\\nfree a\\nfree a\\nsleep 1500";
    const Result result = audit({"sh", "-c", right() + ";" + after(commands)});
    EXPECT_ERR_HAS(result, 3,
                   ") used CUDA and could not reach the audit, as with another user, root "
                   "directory or /proc: what it did wrong may be missing; ");
    EXPECT_LACKS(audit({"sh", "-c", right()}).err, "reach");
}

TEST_F(Audit, AFullDiskKeepsNothingFromTheReport) {
    if (geteuid() != 0 ||
        command({"unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"}).status != 0)
        GTEST_SKIP() << "this user may mount nothing";
    const std::string line = "mount -t tmpfs -o size=4k none \"$0\"; mkdir \"$0/logs\"; "
                             "head -c 4096 /dev/zero >\"$0/full\" 2>/dev/null; "
                             "exec \"$1\" audit --log \"$0/logs\" -- sh -c \"$2\"";
    EXPECT_ERR_HAS(
        command({"unshare", "-m", "sh", "-c", line, temporary.path, tool_path(), misuse()},
                environment),
        1, "double-free in cudaFree, by puppet", "1 finding (1 error)");
}

TEST_F(Audit, WhatComesWhileItIsStoppedIsReported) {
    const Result result =
        audit({"sh", "-c", "kill -STOP $PPID; " + misuse() + "; kill -CONT $PPID"});
    EXPECT_ERR_HAS(result, 1, "1 finding (1 error)");
}

TEST_F(Audit, NorWhereCudaWasUsedAndNoCallWasSeen) {
    const std::string program = compiled(place, "looks", R"(
int main(void) {
    int (*ask)(const char *, void **, int, unsigned long long, int *);
    void *found = 0, *driver = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&ask = dlsym(driver, "cuGetProcAddress_v2");
    return ask("cuDriverGetVersion", &found, 12000, 0, 0) != 0;
})",
                                         {"-ldl"});
    const Result result = audit({program});
    EXPECT_ERR_HAS(result, 3,
                   "1 process used CUDA, 0 calls seen\n"
                   "gpushare: audit: CUDA was used, and no call was seen: ");
}

// A script puts another library in front, which hides all calls.
TEST_F(Audit, TheLibraryThatHidesCallsIsNamed) {
    const std::string library = compiled(place, "libhides.so", R"(
#ifdef __aarch64__
#define VERSION "GLIBC_2.17"
#else
#define VERSION "GLIBC_2.2.5"
#endif
void *dlsym(void *handle, const char *name) {
    void *(*next)(void *, const char *) = dlvsym(dlopen("libc.so.6", RTLD_LAZY), "dlsym", VERSION);
    return next(handle, name);
})",
                                         {"-shared", "-fPIC", "-ldl"});
    for (const std::string verb : {"audit", "explain"}) {
        Result result;
        EXPECT_TRUE(in_one_of_three([&] {
            result = tool({verb, "--", "sh", "-c",
                           "(echo malloc a 4096; sleep 1) | LD_PRELOAD=" + library +
                               ":$LD_PRELOAD " + puppet + "_static >/dev/null"},
                          environment);
            return contains(result.err,
                            ") used CUDA, and no call was seen: " + library +
                                " stands before libgpushare.so in LD_PRELOAD and defines dlsym, so "
                                "calls go past gpushare; put libgpushare.so in front");
        })) << result.err;
        EXPECT_EQ(result.status, verb == "audit" ? 3 : 1);
    }
}

TEST_F(Audit, AChildThatDropsThePreloadIsNamed) {
    Result result;
    EXPECT_TRUE(in_one_of_three([&] {
        result = audit({"sh", "-c",
                        right() + "; (echo malloc a 4096; sleep 1) | env -u LD_PRELOAD " + puppet +
                            " >/dev/null"});
        return result.status == 3;
    }));
    EXPECT_HAS(result.err, "; 1 process used CUDA, ", "gpushare: audit: puppet (pid ",
               ") used CUDA and was not watched: LD_PRELOAD was not in its "
               "environment; let whatever starts it keep LD_PRELOAD");
}

// Between two scans of all processes: this one is made because the driver was loaded. The program
// ends 0.4 s after it has used CUDA, however long that takes.
TEST_F(Audit, AChildThatDropsThePreloadForAMomentIsNamed) {
    const std::string answers = place.path + "/answers";
    ASSERT_EQ(mkfifo(answers.c_str(), 0600), 0);
    Result result;
    EXPECT_TRUE(in_one_of_three([&] {
        result = audit({"sh", "-c",
                        right() + "; sleep 1.2; (echo malloc a 4096; read answer <" + answers +
                            "; sleep 0.4) | env -u LD_PRELOAD GPUSHARE_PROGRAM=moment " + puppet +
                            " >" + answers});
        return result.status == 3;
    }));
    EXPECT_HAS(result.err, "gpushare: audit: moment (pid ");
}

// It wants to be the first library, and gcc links it as one. Its settings may come from a script.
TEST_F(Audit, AProgramWithAddressSanitizerRunsAsWithoutUs) {
    const std::string program =
        compiled(place, "app", R"(
int cudaMalloc(void **, unsigned long), cudaFree(void *);
int main(int count, char **words) {
    void *memory;
    char *volatile text = malloc(3);
    if (cudaMalloc(&memory, 4096) || cudaFree(memory) || !cudaFree(memory)) // twice
        return 99;
    free(text);
    return count > 1 ? atoi(words[1]) : text[0];
})",
                 {"-g", "-fsanitize=address", "-L" + environment["LD_LIBRARY_PATH"], "-lcudart"});
    const Result fine = audit({"sh", "-c", "ASAN_OPTIONS=exitcode=9 " + program + " 7"});
    EXPECT_ERR_HAS(fine, 7, "main at " + program + ".c:6 in " + program);
    for (const Environment &more : {Environment{}, Environment{{"ASAN_OPTIONS", "exitcode=9"}}}) {
        const Result result = audit({program}, more);
        EXPECT_EQ(result.status, more.empty() ? 1 : 9);
        EXPECT_HAS(result.err, "ERROR: AddressSanitizer: heap-use-after-free");
        EXPECT_HAS(result.err, "double-free");
    }
    EXPECT_EQ(tool({"run", program, "7"}, environment).status, 7);
}

// Sanitizers have one, which sets the status.
TEST_F(Audit, AnExitOfAnotherLibrarysIsCalledAsWithoutUs) {
    const std::string code = R"(
#ifdef LIBRARY
void _exit(int status) {
    for (;;)
        syscall(SYS_exit_group, status + 1);
}
#else
int cudaMalloc(void **, unsigned long);
int main(void) {
    void *memory;
    _exit(cudaMalloc(&memory, 4096) ? 99 : 3);
}
#endif)";
    const std::string library =
        compiled(place, "libexit.so", code, {"-DLIBRARY", "-shared", "-fPIC"});
    const std::string program =
        compiled(place, "app", code, {library, "-L" + environment["LD_LIBRARY_PATH"], "-lcudart"});
    EXPECT_EQ(command({program}, environment).status, 4);
    EXPECT_EQ(audit({program}).status, 4);
}

// What it maps only has such a name, or lies in a directory of such a name, or is read.
TEST_F(Audit, AFileThatIsCalledAsTheDriverIsNotTheDriver) {
    const std::string program = compiled(place, "maps", R"(
int main(int count, char **words) {
    for (int i = 1; i < count; i++)
        mmap(0, 4096, i == 1 ? PROT_READ : PROT_READ | PROT_EXEC, MAP_PRIVATE,
             open(words[i], O_RDONLY), 0);
    return usleep(300000);
})");
    const std::string driver = place.path + "/libcuda.so";
    fs::create_directory(driver + ".d");
    fs::copy_file(program, driver + ".1");
    fs::copy_file(program, driver + ".d/tool");
    fs::copy_file(program, place.path + "/libcuda.sound");
    const Result result = audit({"sh", "-c",
                                 right() + "; env -u LD_PRELOAD " + program + " " + driver + ".1 " +
                                     driver + ".d/tool " + place.path + "/libcuda.sound; true"});
    EXPECT_EQ(result.status, 0);
    EXPECT_LACKS(result.err, "not watched");
}

// Its main thread has ended before its first call: the files that /proc has of it are empty.
TEST_F(Audit, AChildWithoutAMainThreadThatDropsThePreloadIsNamed) {
    Result result;
    EXPECT_TRUE(in_one_of_three([&] {
        result =
            audit({"sh", "-c",
                   right() + "; (echo depart; echo malloc a 4096; sleep 1) | env -u LD_PRELOAD " +
                       puppet + " >/dev/null"});
        return result.status == 3;
    }));
    EXPECT_HAS(result.err, "gpushare: audit: puppet (pid ");
}

// The maps of such a process are long, and often only their beginning, with libcuda, was read when
// they were gone; the library is behind that.
TEST_F(Audit, NobodyIsAccusedWhoEndsOrExecutesWhileTheMapsAreRead) {
    const std::string program = compiled(place, "many-maps", R"(
int main(int count, char **words) {
    for (int i = 0; i < 10000; i++)
        mmap(0, 4096, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int (*start)(unsigned) = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuInit");
    start(0);
    usleep(atoi(words[1]) * 1000);
    return count < 3 ? 0 : execlp("sleep", "sleep", "0.05", NULL);
})",
                                         {"-ldl"});
    const Result result =
        audit({"sh", "-c",
               "for ms in $(seq 0 2 14); do " + program + " $ms; " + program + " $ms exec; done"});
    EXPECT_EQ(result.status, 0);
    EXPECT_LACKS(result.err, "not watched");
}

TEST_F(Audit, AStaticProgramIsSaidToBeOne) {
    const std::string program =
        compiled(place, "static", "int main(void) { return 0; }\n", {"-static"});
    EXPECT_ERR_HAS(audit({program}), 3,
                   "nothing was watched: '" + program +
                       "' is statically linked: no loader reads LD_PRELOAD");
}

TEST_F(Audit, TheCommandsStreamsAreItsOwn) {
    Environment all = environment;
    const Result result = command(
        {"sh", "-c", "echo in | \"$0\" audit sh -c 'cat; echo err >&2' 2>" + place.path + "/err",
         tool_path()},
        all);
    EXPECT_EQ(result.out, "in\n");
    EXPECT_EQ(read_file(place.path + "/err").find("err\n"), 0u);
}

TEST_F(Audit, TheLibraryIsToldToWatchAndToLogLines) {
    const Result result = audit({"sh", "-c", "env | grep ^GPUSHARE_ | sort"},
                                {{"GPUSHARE_MODE", "share"}, {"GPUSHARE_LOG", "/x"}});
    EXPECT_HAS(result.out, "GPUSHARE_MODE=audit\n", "GPUSHARE_LOG_FORMAT=jsonl\n",
               "GPUSHARE_LOG_LEVEL=info\n", "GPUSHARE_LOG=" + temporary.path + "/gpushare-",
               "/%c.%p.jsonl\n");
    EXPECT_EQ(audit({"printenv", "GPUSHARE_LOG_LEVEL"}, {{"GPUSHARE_LOG_LEVEL", "error"}}).out,
              "error\n");
}

TEST_F(Audit, ItsTemporaryDirectoryIsPrivateAndGoes) {
    const Result result = audit({"sh", "-c", "stat -c %a $TMPDIR/*; " + misuse()});
    EXPECT_EQ(result.out, "700\n");
    EXPECT_HAS(result.err, "1 finding");
    EXPECT_TRUE(fs::is_empty(temporary.path));
    EXPECT_EQ(audit({"/no/such"}).status, 127);
    EXPECT_TRUE(fs::is_empty(temporary.path));
}

TEST_F(Audit, ItsTemporaryDirectoryGoesAlsoWhereNobodyReads) {
    command({"sh", "-c", "\"$0\" audit -- sh -c \"$1\" 2>&1 | true", tool_path(),
             "sleep 0.3; " + misuse()},
            environment);
    EXPECT_TRUE(fs::is_empty(temporary.path));
    const std::string status = audit({"sh", "-c", "grep SigIgn /proc/self/status"}).out;
    EXPECT_EQ(std::stoull(status.substr(7), nullptr, 16) & (1u << (SIGPIPE - 1)), 0u)
        << "the command's own";
}

TEST_F(Audit, LogsAreKeptWhereTheUserSaysOnce) {
    const std::string directory = place.path + "/%p logs";
    EXPECT_EQ(misused({"--log", directory}).status, 1);
    EXPECT_EQ(std::distance(fs::directory_iterator(directory), fs::directory_iterator()), 1);
    EXPECT_HAS(tool({"report", directory}).out, "double-free in cudaFree");
    const Result again = audit({"--log", directory, "echo", "ran"});
    EXPECT_OUT(again, 125, "");
    EXPECT_HAS(again.err, "has logs already; give a new or an empty directory");
    EXPECT_EQ(audit({"--log", "/no/such/parent", "echo", "ran"}).status, 125);
}

TEST_F(Audit, WhatIsSuppressedIsNoError) {
    const std::string known = place.file("known", "[suppress a]\nfunction = c_free\n");
    Result result = misused({"--suppressions", known});
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(result.err.find(
                  not_looked_at +
                  "========= GPUSHARE SUMMARY: 0 findings, 1 suppressed; 1 process used CUDA, "),
              0u)
        << result.err;
    result = misused({"--gen-suppressions"});
    const size_t section = result.err.find("[suppress ");
    ASSERT_NE(section, std::string::npos) << result.err;
    EXPECT_EQ(misused({"-s", place.file("made", result.err.substr(section))}).status, 0);
}

TEST_F(Audit, WhatALibraryDoesByItselfIsLeftOutAndWhatAProgramDoesThroughItIsNot) {
    const std::string ranks = fs::path(puppet).replace_filename("ranks");
    const Result known = audit({ranks}), all = audit({"--no-default-suppressions", ranks}),
                 own = audit({"--", ranks, "mine"});
    EXPECT_EQ(known.status, 0);
    EXPECT_EQ(known.err.find(not_looked_at +
                             "========= GPUSHARE SUMMARY: 0 findings, 1 left out as known in "
                             "libnccl.so.2 (--no-default-suppressions shows them); 2 processes"),
              0u)
        << known.err;
    EXPECT_ERR_HAS(all, 1, "GPUSHARE ERROR: free-while-open in cudaFree, by ranks");
    EXPECT_HAS(all.err, "1 finding (1 error), 2 occurrences, 2 processes");
    EXPECT_ERR_HAS(own, 1, " rank_free at tests/apps/ranks/libnccl.c:");
    EXPECT_LACKS(own.err, "left out");
}

TEST_F(Audit, JsonAndSarifGoToFiles) {
    const std::string json = place.path + "/a.json", sarif = place.path + "/a.sarif";
    const Result result = misused({"--json", json, "--sarif=" + sarif});
    EXPECT_HAS(result.err, "1 finding");
    EXPECT_EQ(Json::parse(read_file(json))[0]["finding"].text, "double-free");
    EXPECT_EQ(command({"python3", "-m", "jsonschema", "-i", sarif, "tests/tool/sarif.schema.json"})
                  .status,
              0);
}

TEST_F(Audit, TellsANameOfAnyScript) {
    const std::string name = "\u6a21\u578b";
    const std::string json = place.path + "/json", sarif = place.path + "/sarif";
    fs::copy(puppet, place.path + "/" + name);
    puppet = place.path + "/" + name;
    const Result result = misused({"--json", json, "--sarif", sarif});
    EXPECT_HAS(result.err, "cudaFree, by " + name + " (pid ");
    EXPECT_EQ(Json::parse(read_file(json))[0]["command"].text, name);
    const Json in_sarif = Json::parse(read_file(sarif))["runs"][0]["results"][0];
    EXPECT_EQ(in_sarif["properties"]["command"].text, name);
    EXPECT_HAS(in_sarif["message"]["text"].text, "by " + name + ", pid ");
}

// One report of all processes of a job, each with its rank.
TEST_F(Audit, TellsTheRanksOfAJob) {
    const std::string launcher = place.file(
        "mpirun", "shift 2; for i in 0 1 2; do OMPI_COMM_WORLD_RANK=$i \"$@\" & done; wait");
    const std::string json = place.path + "/json", sarif = place.path + "/sarif";
    const Result result = audit(
        {"--json", json, "--sarif", sarif, "--", "sh", launcher, "-n", "3", "sh", "-c", misuse()});
    EXPECT_EQ(result.status, 1);
    const Json finding = Json::parse(read_file(json))[0];
    const Json &processes = finding["processes"];
    const auto ranked = [](const Json &process) {
        return "puppet (pid " + process["pid"].text + ", rank " + process["rank"].text + ")";
    };
    std::set<std::string> ranks;
    for (const Json &process : processes.elements) {
        ranks.insert(process["rank"].text);
        EXPECT_HAS(result.err, ranked(process));
    }
    EXPECT_EQ(ranks, (std::set<std::string>{"0", "1", "2"}));
    EXPECT_HAS(result.err, "cudaFree, by " + ranked(finding));
    const Json in_sarif = Json::parse(read_file(sarif))["runs"][0]["results"][0];
    EXPECT_EQ(in_sarif["properties"]["rank"].text, finding["rank"].text);
    EXPECT_HAS(in_sarif["message"]["text"].text,
               "pid " + finding["pid"].text + ", rank " + finding["rank"].text + ")");
}

TEST_F(Audit, TellsTheRanksOfOpenMpi) {
    SKIP_IF(command({"mpirun", "--version"}).status != 0, "no mpirun is here (openmpi-bin)");
    const Result result = audit({"--", "mpirun", "--allow-run-as-root", "--oversubscribe", "-n",
                                 "3", "sh", "-c", misuse()});
    for (const char *rank : {", rank 0)", ", rank 1)", ", rank 2)"})
        EXPECT_HAS(result.err, rank);
    EXPECT_HAS(result.err, ", by 3 processes: ");
}

TEST_F(Audit, AFileOfAnEarlierReportStaysUntilThereIsANewOne) {
    const std::string old(1 << 20, ' '), sarif = place.file("a.sarif", old),
                                         made = place.path + "/b.sarif";
    EXPECT_EQ(audit({"--sarif=" + sarif, "--json=" + made, "./no-such-command"}).status, 127);
    EXPECT_EQ(read_file(sarif), old);
    EXPECT_FALSE(fs::exists(made));
    misused({"--sarif=" + sarif, "--json=" + made});
    EXPECT_HAS(read_file(sarif), "double-free");
    EXPECT_LT(fs::file_size(sarif), old.size());
    EXPECT_EQ(Json::parse(read_file(made)).size(), 1u);
    EXPECT_EQ(audit({"--json=/dev/null", "sh", "-c", right()}).status, 0);
    EXPECT_HAS(audit({"--json=-", "true"}).out, "[]");
}

TEST_F(Audit, SaysThatItFollowsNoRules) {
    const std::string rules = place.file("rules.conf", "[region a]\nrole = auto\n");
    EXPECT_HAS(audit({"-c", rules, "true"}).err,
               "warning: mode = audit: no rule of " + rules + " is followed\n");
    EXPECT_LACKS(audit({"-c", place.file("none.conf", "\n"), "true"}).err, "followed");
}

TEST_F(Audit, AnOptionsValueIsNotTheEndOfTheOptions) {
    EXPECT_ERR_HAS(audit({"--sarif", "--", "true"}), 125, "option '--sarif' needs a value");
    EXPECT_FALSE(fs::exists("--"));
}

TEST_F(Audit, WhatIsWrongIsSaidBeforeTheCommandStarts) {
    const std::vector<std::vector<std::string>> wrong = {
        {"--error-exitcode=256"},
        {"--error-exitcode=-1"},
        {"--error-exitcode=1x"},
        {"--level=bad"},
        {"--suppressions=/no/such"},
        {"--suppressions=" + place.file("bad", "[suppress a]\n")},
        {"--json=/no/such/file"},
        {"--config=" + place.file("bad.conf", "[gpushare]\nmode = on\n")},
        {"--foo"},
    };
    for (std::vector<std::string> line : wrong) {
        const std::string option = line[0];
        line.insert(line.end(), {"--", "echo", "ran"});
        const Result result = audit(line);
        EXPECT_EQ(result.status, 125) << option;
        EXPECT_EQ(result.out, "") << option;
        EXPECT_NE(result.err, "") << option;
    }
    EXPECT_TRUE(fs::is_empty(temporary.path));
}

TEST_F(Audit, ATemporaryDirectoryIsWhereItIsToldAsExplains) {
    const std::string why =
        ": cannot make a directory in '/no/such': No such file or directory; set TMPDIR";
    Environment bad = environment;
    bad["TMPDIR"] = "/no/such";
    EXPECT_EQ(tool({"audit", "true"}, bad).err, "gpushare: audit" + why + ", or use --log=DIR\n");
    const Result result = tool({"explain", "--", "true"}, bad);
    EXPECT_EQ(result.err, "gpushare: explain" + why + "\n");
    EXPECT_EQ(result.status, 125);
    const std::string inner = "cd / && " + right();
    const std::string line = "cd " + temporary.path + " && TMPDIR=. exec \"$0\" \"$@\"";
    EXPECT_HAS(
        command({"sh", "-c", line, tool_path(), "explain", "--", "sh", "-c", inner}, environment)
            .err,
        "cudaMalloc");
    EXPECT_HAS(command({"sh", "-c", line, tool_path(), "audit", "sh", "-c", "cd / && " + misuse()},
                       environment)
                   .err,
               "double-free");
    EXPECT_TRUE(fs::is_empty(temporary.path));
}

TEST_F(Audit, CommandsThatCannotRunAreToldAsRunDoes) {
    EXPECT_EQ(audit({"no-such-command-here"}).err,
              "gpushare: audit: command 'no-such-command-here' not found\n");
    EXPECT_EQ(audit({"/etc"}).status, 126);
    const std::string odd = "/dev/null";
    EXPECT_EQ(audit({odd}).status, 126);
}

TEST_F(Audit, WhatTheCommandLeavesBehindIsWaitedFor) {
    Result result;
    EXPECT_TRUE(in_one_of_three([&] {
        result = audit({"sh", "-c", "(sleep 0.3; " + misuse() + ") & exit 0"});
        return result.status == 1;
    }));
    EXPECT_HAS(result.err, "1 finding (1 error)");
}

TEST_F(Audit, WhatStillRunsAfter5SecondsIsSaid) {
    const std::string left = "sleep 1000 >/dev/null 2>&1 & echo $!";
    const std::string directory = place.path + "/logs";
    Result result;
    const double seconds = seconds_of([&] {
        result = audit({"--log", directory, "sh", "-c", left});
    });
    EXPECT_EQ(kill(std::stoi(result.out), SIGKILL), 0) << "it did not wait for its end";
    EXPECT_EQ(result.status, 3);
    EXPECT_GE(seconds, 5);
    EXPECT_HAS(result.err, "gpushare: audit: warning: 1 process still running: sleep (pid " +
                               std::to_string(std::stoi(result.out)) +
                               "); what may be reported yet is shown by: gpushare report " +
                               directory + "\n");
}

TEST_F(Audit, SaysWhatWasCalledThatIsNewerThanTheLibrary) {
    environment["GPUSHARE_SIM_NEWER"] = "1";
    const Result result = audit({fs::path(puppet).parent_path() / "newest"});
    EXPECT_ERR_HAS(result, 0, "; called, and newer than this gpushare: cuSimNewest (2 times)\n");
}

// Its own child, one that is left to it, and one that a shell reaps: of that one newer kernels
// tell.
TEST_F(Audit, NamesWhomASignalEnded) {
    const std::string commands = "(printf 'malloc a 4096\\n'; sleep 0.3; printf 'abort\\n') | ";
    const std::string ended = ") ended without its last report, as by a signal: what it would have "
                              "reported at its end, as leaks, is missing\n";
    for (const std::string &how : {"exec " + puppet, "{ " + puppet + " <&3 & } 3<&0 2>/dev/null",
                                   "(" + puppet + " >/dev/null; true)"}) {
        const Result result = audit({"sh", "-c", commands + how + " >/dev/null"});
        EXPECT_HAS(result.err, "warning: puppet (pid ") << how << "\n" << result.err;
        EXPECT_HAS(result.err, ended);
    }
    const Result whole = audit({"sh", "-c", "printf 'malloc a 4096\n' | " + puppet});
    EXPECT_LACKS(whole.err, "last report");
}

TEST_F(Audit, WhatEndedBeforeItUsedCudaIsNotSaidToDropTheLibrary) {
    const Result result = audit({"sh", "-c", "no-such-program"});
    EXPECT_ERR_HAS(result, 127,
                   "nothing was watched: 'sh' ended with status 127, and no process had "
                   "used CUDA with gpushare preloaded until then");
    EXPECT_LACKS(result.err, "LD_PRELOAD");
}

TEST_F(Audit, AMissingDriverIsNamed) {
    environment["LD_LIBRARY_PATH"] = place.path;
    SKIP_IF(dlopen("libcuda.so.1", RTLD_LAZY), "there is one here");
    EXPECT_ERR_HAS(audit({"false"}), 1, "nothing was watched: there is no libcuda.so.1");
    const std::string warned = on_terminal(400, {tool_path(), "run", "--", "true"}, environment);
    EXPECT_HAS(warned, "warning: there is no libcuda.so.1", "(see: gpushare doctor)");
    const fs::path camera = fs::absolute(tool_path()).parent_path() / "tests/apps/camera";
    const Result run = tool({"run", "--", camera, "0"}, environment);
    EXPECT_NE(run.status, 0);
    EXPECT_HAS(run.err, "gpushare: run: warning: there is no libcuda.so.1",
               "(see: gpushare doctor)");
    EXPECT_EQ(tool({"run", "--", "true"}, environment).err, "");
}

TEST_F(Audit, TerminationIsHandedOnAndEndsTheWaiting) {
    EXPECT_EQ(
        audit({"sh", "-c", "trap 'exit 9' TERM; kill -TERM $PPID; while :; do sleep 0.05; done"})
            .status,
        9);
    Result result;
    const auto terminate = [&] {
        result =
            audit({"sh", "-c",
                   "(sleep 1000 >/dev/null 2>&1 & echo $!; sleep 0.3; kill -TERM $PPID) & exit 6"});
        kill(std::stoi(result.out), SIGKILL);
    };
    EXPECT_TRUE(in_one_of_three([&] { return seconds_of(terminate) < 5; }));
    EXPECT_ERR_HAS(result, 6, "; what may be reported yet goes to stderr");
}

// Without an audit around it the last process empties the directory, and nothing is known.
TEST_F(Audit, WhatAnExporterThatHasEndedLeftIsKept) {
    const std::string misuse = fs::path(puppet).parent_path() / "misuse";
    Environment watched = environment;
    watched["GPUSHARE_LOG"] = place.path + "/log";
    const Result alone =
        tool({"run", "--mode", "audit", "--", misuse, "open-unknown-exited"}, watched);
    EXPECT_EQ(alone.status, 0) << alone.err;
    EXPECT_HAS(read_file(place.path + "/log"), "ERROR: open-unknown in");
    const Result result = audit({misuse, "open-unknown-exited"});
    EXPECT_ERR_HAS(result, 1, "ERROR: open-dead-owner in");
    EXPECT_LACKS(result.err, "open-unknown in");
    for (const char *left : {"procs", "regions", "names"})
        EXPECT_TRUE(fs::is_empty(shared.path + "/pub/default/" + left)) << left;
}

TEST_F(Audit, ItsPlaceInTheDirectoryIsNotTheCommands) {
    const std::string procs = shared.path + "/pub/default/procs";
    const Result result =
        audit({"sh", "-c", "ls " + procs + " | wc -l; ls -l /proc/self/fd /proc/self/map_files"});
    EXPECT_EQ(result.out.substr(0, 2), "1\n");
    EXPECT_LACKS(result.out, procs);
    EXPECT_TRUE(fs::is_empty(procs));
}

TEST_F(Audit, WithoutAPlaceInTheDirectoryItGoesOn) {
    const Result result = audit({"echo", "ran"}, {{"GPUSHARE_DIR", "/proc/no"}});
    EXPECT_EQ(result.out, "ran\n");
    EXPECT_EQ(result.err.find("========= GPUSHARE SUMMARY: 0 findings; nothing was watched\n"), 0u);
}

TEST_F(Audit, IsNobodyWhoMayHaveExportedAHandle) {
    const Result result = audit(
        {"sh", "-c", "printf 'malloc a 4096\\nget a\\nopen c %0128d\\nexit 0\\n' 0 | " + puppet});
    EXPECT_HAS(result.err, "no other process is seen in") << result.out << result.err;
}

// The frames of a program's start tell nobody anything; scripts get them all the same.
TEST_F(Audit, OnlyJsonHasTheFramesOfTheStart) {
    const std::string json = place.path + "/a.json";
    const Result result = misused({"--json", json});
    EXPECT_HAS(result.err, " main at tests/apps/puppet/main.c:");
    EXPECT_LACKS(result.err, "_start");
    EXPECT_HAS(read_file(json), "\"_start\"");
}

TEST_F(Audit, TheTerminalsSignalsAreTheCommandsBusiness) {
    const Result result =
        audit({"sh", "-c", "kill -INT $PPID; kill -QUIT $PPID; sleep 0.1; exit 5"});
    EXPECT_ERR_HAS(result, 5, "SUMMARY");
    EXPECT_EQ(audit({"sh", "-c", "kill -INT $$"}).status, 128 + SIGINT) << "not ignored there";
    EXPECT_EQ(audit({"sh", "-c", "kill -TERM $$"}).status, 128 + SIGTERM) << "nor blocked";
}

// The command has ended before the tool looks at them.
TEST_F(Audit, TheTerminalsSignalsAreTheCommandsBusinessToItsEnd) {
    const std::string said = place.path + "/said";
    Result result;
    std::thread auditor([&] {
        result = audit(
            {"sh", "-c",
             "kill -STOP $PPID; kill -INT $PPID; kill -QUIT $PPID; echo $PPID >\"$0\"; exit 5",
             said});
    });
    while (read_file(said).find('\n') == std::string::npos)
        usleep(10000);
    usleep(300000);
    kill(std::stoi(read_file(said)), SIGCONT);
    auditor.join();
    EXPECT_ERR_HAS(result, 5, "SUMMARY");
}

TEST_F(Audit, AfterCtrlCItIsSaidWhoGoesOn) {
    const std::string said = place.path + "/said";
    const Result result = command(
        {"sh", "-c", "\"$0\" audit sh -c \"$1\" 2>" + said, tool_path(),
         "kill -INT $PPID; sleep 1000 & " + until_said("goes on", said) + "; kill $!; exit 5"},
        environment);
    const std::string err = read_file(said);
    EXPECT_EQ(result.status, 5);
    EXPECT_TRUE(
        contains(err, "audit: warning: waiting for what goes on after Ctrl-C: dash (pid ") ||
        contains(err, "audit: warning: waiting for what goes on after Ctrl-C: bash (pid "))
        << err;
    EXPECT_HAS(err, ", sleep (pid ", "; Ctrl-\\ or kill ");
    EXPECT_EQ(err.find("goes on"), err.rfind("goes on")) << err;
}

TEST_F(Audit, ASecondCtrlCEndsTheWaitingForWhatTheCommandLeft) {
    const std::string said = place.path + "/said";
    Result result;
    const auto interrupt = [&] {
        result =
            command({"sh", "-c", "\"$0\" audit sh -c \"$1\" 2>" + said, tool_path(),
                     "sleep 1000 >/dev/null 2>&1 & echo $!; (sleep 0.3; kill -INT $PPID; " +
                         until_said("goes on", said) + "; kill -INT $PPID) >/dev/null & exit 6"},
                    environment);
        kill(std::stoi(result.out), SIGKILL);
    };
    EXPECT_TRUE(in_one_of_three([&] { return seconds_of(interrupt) < 5; }));
    const std::string err = read_file(said), pid = std::to_string(std::stoi(result.out));
    EXPECT_EQ(result.status, 6);
    EXPECT_HAS(err, "waiting up to 5 s for what goes on after Ctrl-C: ", "sleep (pid " + pid + ")",
               "; a second Ctrl-C ends the waiting\n", "still running");
}

TEST_F(Audit, ImagesOfOnePidHaveLogsOfTheirOwn) {
    const std::string copy = place.path + "/second";
    fs::copy_file(puppet, copy);
    const Result result =
        audit({"sh", "-c",
               "printf 'malloc a 4096\\nfree a\\nfree a\\nexec " + copy +
                   "\\nmalloc a 4096\\nfree a\\nfree a\\n' | exec " + puppet + " >/dev/null"});
    EXPECT_HAS(result.err, ", by 2 processes: puppet (pid ", "), second (pid ",
               "SUMMARY: 1 finding (1 error), 2 occurrences, 2 processes");
}
