// gpushare doctor: each thing that can be wrong, made wrong, is named with its remedy.
#include "harness.hpp"
#include "json.hpp"
#include "patience.hpp"

namespace {

// A driver that does as it is told, built here: doctor loads it as it would the real one.
const char fake_driver[] = R"(
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int number(const char *name) { const char *text = getenv(name); return text ? atoi(text) : 0; }
int cuInit(unsigned flags) {
    (void)flags;
    if (getenv("FAKE_HANG")) for (;;) pause();
    if (getenv("FAKE_CRASH")) abort();
    if (getenv("FAKE_EXIT")) _exit(0);
    return number("FAKE_INIT");
}
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGetCount(int *count) { *count = number("FAKE_GPUS"); return 0; }
int cuDeviceGetName(char *name, int size, int device) {
    const char *text = getenv("FAKE_NAME");
    (void)device;
    strncpy(name, text ? text : "NVIDIA H200", size);
    return 0;
}
int cuDeviceGetUuid(char *uuid, int device) { memset(uuid, 0x10 + device, 16); return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    *value = attribute == 20 ? number("FAKE_MODE") : 0;
    return 0;
}
)";

// The same of AMD's runtime.
const char fake_hip[] = R"(
#include <stdlib.h>
#include <string.h>
static int number(const char *name) { const char *text = getenv(name); return text ? atoi(text) : 0; }
int hipRuntimeGetVersion(int *version) { *version = number("FAKE_VERSION"); return 0; }
int hipGetDeviceCount(int *count) {
    if (getenv("FAKE_CRASH")) abort();
    *count = number("FAKE_GPUS");
    return number("FAKE_INIT");
}
int hipDeviceGetName(char *name, int size, int device) { (void)device; strncpy(name, "MI300X", size); return 0; }
int hipDeviceGetUuid(char *uuid, int device) { memset(uuid, 0x20 + device, 16); return 0; }
)";

class Doctor : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        drivers = new Temporary;
        built = build("driver.c", fake_driver, "libcuda.so.1") &&
                build("hip.c", fake_hip, "libamdhip64.so.7");
    }
    static bool build(const char *name, const char *text, const char *library) {
        const std::string source = drivers->file(name, text);
        return command({"cc", "-shared", "-fPIC", "-w", std::string("-Wl,-soname,") + library, "-o",
                        drivers->path + "/" + library, source})
                   .status == 0;
    }
    static void TearDownTestSuite() {
        delete drivers;
    }

    void SetUp() override {
        SKIP_IF(!built, "no C compiler here");
        Dl_info info;
        double (*cosine)(double) = cos;
        ASSERT_NE(dladdr(reinterpret_cast<void *>(cosine), &info), 0);
        environment = shared.environment();
        environment["GPUSHARE_LIBRARY"] = info.dli_fname;
        environment["HOME"] = environment["XDG_CONFIG_HOME"] = shared.root.path;
        environment["LD_LIBRARY_PATH"] = drivers->path;
        environment["FAKE_GPUS"] = "1";
    }

    Json diagnose(std::vector<std::string> more = {}) {
        more.insert(more.begin(), {"doctor", "--json"});
        Result result = tool(more, environment);
        EXPECT_EQ(result.err, "");
        status = result.status;
        return Json::parse(result.out);
    }

    // "ok", "warn", "fail", or "" when the check said nothing (like that).
    std::string result_of(const Json &list, const std::string &check,
                          const std::string &message = "") {
        for (const Json &one : list.elements)
            if (one["check"].text == check && contains(one["message"].text, message)) {
                remedy = one["remedy"].text;
                return one["result"].text;
            }
        return "";
    }

    // With this variable from now on: what is said of a matter, in these words.
    std::string judged(const std::string &variable, const std::string &value, const char *matter,
                       const std::string &words) {
        environment[variable] = value;
        return result_of(diagnose(), matter, words);
    }

    static Temporary *drivers;
    static bool built;
    Shared shared;
    Environment environment;
    int status = -1;
    std::string remedy;
};

Temporary *Doctor::drivers;
bool Doctor::built;

} // namespace

TEST_F(Doctor, AGoodPlaceHasNoFailures) {
    Json list = diagnose();
    EXPECT_EQ(status, 0);
    for (const char *check : {"library", "preload", "driver", "gpu", "processes", "directory",
                              "room", "inotify", "config"})
        EXPECT_EQ(result_of(list, check), "ok") << check;
    EXPECT_EQ(result_of(list, "driver", "libcuda.so.1 for CUDA 13.0, 1 GPU"), "ok");
    EXPECT_EQ(result_of(list, "gpu", "0: NVIDIA H200, GPU-10101010-1010-1010-1010-101010101010"),
              "ok");
    for (const Json &one : list.elements)
        EXPECT_EQ(one.size(), 4u);
}

TEST_F(Doctor, TextSaysTheSameAndEndsWithAVerdict) {
    Result result = tool({"doctor"}, environment);
    EXPECT_OUT_HAS(result, 0, "ok    gpu          0: NVIDIA H200");
    environment["FAKE_INIT"] = "100";
    result = tool({"doctor"}, environment);
    EXPECT_OUT_HAS(result, 1, "FAIL  driver       cuInit gives 100: no GPU\n",
                   "\n                   -> check nvidia-smi",
                   " checks failed: sharing does not work here");
}

TEST_F(Doctor, LinesAreWrapped) {
    std::string out = tool({"doctor"}, environment).out;
    for (size_t start = 0, end; (end = out.find('\n', start)) != std::string::npos; start = end + 1)
        EXPECT_LE(end - start, 100u) << out.substr(start, end - start);
}

TEST_F(Doctor, NoDriverIsAFailureWithARemedy) {
    SKIP_IF(dlopen("libcuda.so.1", RTLD_LAZY), "there is one here");
    environment["LD_LIBRARY_PATH"] = shared.root.path;
    Json list = diagnose();
    EXPECT_EQ(status, 1);
    EXPECT_EQ(result_of(list, "driver", "no driver: libcuda.so.1: cannot open"), "fail");
    EXPECT_HAS(remedy, "install NVIDIA's driver");
    const auto simulator = std::filesystem::absolute(tool_path()).parent_path() / "sim";
    EXPECT_HAS(remedy, "LD_LIBRARY_PATH=" + simulator.string());
}

TEST_F(Doctor, CodesOfTheDriverAreExplained) {
    const struct {
        const char *code, *message, *remedy;
    } codes[] = {
        {"34", "cuInit gives 34: a stub library", "LD_LIBRARY_PATH"},
        {"100", "cuInit gives 100: no GPU", "CUDA_VISIBLE_DEVICES"},
        {"304", "cuInit gives 304: an operating system call failed", "/proc"},
        {"802", "cuInit gives 802: the system is not ready", "fabricmanager"},
        {"803", "cuInit gives 803: driver and library versions differ", "reboot"},
        {"999", "cuInit gives 999: unknown error", "nvidia_uvm"},
        {"777", "cuInit gives 777: see CUresult", "nvidia-smi"},
    };
    for (const auto &[code, message, fix] : codes) {
        environment["FAKE_INIT"] = code;
        EXPECT_EQ(result_of(diagnose(), "driver", message), "fail") << code;
        EXPECT_HAS(remedy, fix);
        EXPECT_EQ(status, 1);
    }
}

TEST_F(Doctor, NoGpuIsAFailure) {
    EXPECT_EQ(judged("FAKE_GPUS", "0", "driver", "no GPU"), "fail");
}

TEST_F(Doctor, ADriverThatHangsHangsNobody) {
    environment["FAKE_HANG"] = "1";
    auto start = std::chrono::steady_clock::now();
    Json list = diagnose({"--timeout=1s"});
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(patient(10000)));
    EXPECT_EQ(result_of(list, "driver", "the driver did not answer within 1 s"), "fail");
}

TEST_F(Doctor, ADriverThatCrashesIsReported) {
    EXPECT_EQ(judged("FAKE_CRASH", "1", "driver", "dies of signal 6"), "fail");
    environment.erase("FAKE_CRASH");
    EXPECT_EQ(judged("FAKE_EXIT", "1", "driver", "ends silently"), "fail");
}

TEST_F(Doctor, MigAndExclusiveModeAreSeen) {
    EXPECT_EQ(judged("FAKE_NAME", "NVIDIA H200 MIG 1g.18gb", "gpu", "a MIG instance"), "warn");
    EXPECT_EQ(status, 0);
    environment.erase("FAKE_NAME");
    EXPECT_EQ(judged("FAKE_MODE", "3", "gpu", "exclusive to one process"), "fail");
    EXPECT_HAS(remedy, "nvidia-smi -c DEFAULT");
    EXPECT_EQ(judged("FAKE_MODE", "2", "gpu", "closed to all processes"), "fail");
}

TEST_F(Doctor, SeveralGpusAreListed) {
    environment["FAKE_GPUS"] = "3";
    Json list = diagnose();
    EXPECT_EQ(result_of(list, "driver", "3 GPUs"), "ok");
    EXPECT_EQ(result_of(list, "gpu", "2: NVIDIA H200, GPU-12121212"), "ok");
}

TEST_F(Doctor, HipIsLookedAtWhereItIsAskedFor) {
    environment["FAKE_VERSION"] = "60300000";
    environment["FAKE_GPUS"] = "2";
    const Json list = diagnose({"--runtime=hip"});
    EXPECT_EQ(status, 0);
    EXPECT_EQ(result_of(list, "driver", "/libamdhip64.so.7, HIP 6.3, 2 GPUs"), "ok");
    EXPECT_EQ(result_of(list, "gpu", "1: MI300X, GPU-21212121-"), "ok");
    EXPECT_EQ(result_of(list, "driver", "not on an AMD card"), "warn");
    EXPECT_HAS(remedy, "docs/hip.md");
    EXPECT_EQ(result_of(list, "driver", "CUDA"), "");
    EXPECT_EQ(result_of(list, "keeper"), ""); // nobody has memory for one
    EXPECT_EQ(tool({"doctor", "--runtime=rocm"}, environment).status, 2);
}

TEST_F(Doctor, HipsWayOfIpcIsTold) {
    const std::string mode = "HSA_ENABLE_IPC_MODE_LEGACY";
    const auto look = [&](const char *version) {
        environment["FAKE_VERSION"] = version;
        return diagnose({"--runtime=hip"});
    };
    EXPECT_EQ(result_of(look("60200000"), "ipc", "by legacy handles, the default"), "ok");
    EXPECT_EQ(result_of(look("60200000"), "ipc", "do not matter with legacy handles"), "ok");
    EXPECT_EQ(result_of(look("60300000"), "ipc", "default is not known"), "ok");
    EXPECT_NE(result_of(look("60300000"), "ipc", "need one network namespace"), "");
    EXPECT_EQ(result_of(look("60300000"), "ipc", "over 2 GiB"), "warn");
    EXPECT_EQ(result_of(look("70200000"), "ipc", "ROCm 7.2.0 to 7.2.4"), "warn");
    EXPECT_EQ(result_of(look("70300000"), "ipc", "ROCm 7.2.0 to 7.2.4"), "");
    environment[mode] = "1";
    EXPECT_EQ(result_of(look("70100000"), "ipc", mode + "=1 chooses legacy"), "warn");
    EXPECT_HAS(remedy, "unset it if hipIpcGetMemHandle answers 1");
    EXPECT_EQ(result_of(look("60000000"), "ipc", mode + "=1 chooses legacy"), "ok");
    environment[mode] = "0";
    EXPECT_EQ(result_of(look("70100000"), "ipc", mode + "=0 chooses dma-buf"), "ok");
    environment[mode] = "yes";
    EXPECT_EQ(result_of(look("70100000"), "ipc", mode + "=yes: what"), "warn");
    EXPECT_EQ(result_of(diagnose(), "ipc"), ""); // of CUDA
}

TEST_F(Doctor, TheLibraryForHipIsLookedFor) {
    environment.erase("GPUSHARE_LIBRARY");
    EXPECT_EQ(result_of(diagnose({"--runtime=hip"}), "library", "/libgpushare-hip.so loads"), "ok");
    std::filesystem::copy(tool_path(), shared.root.path + "/gpushare");
    const Result alone =
        command({shared.root.path + "/gpushare", "doctor", "--json", "--runtime=hip"}, environment);
    EXPECT_EQ(result_of(Json::parse(alone.out), "library", "libgpushare-hip.so not found"), "fail");
}

TEST_F(Doctor, AProgramThatIsLinkedWithHipIsOne) {
    environment["FAKE_VERSION"] = "70100000";
    const Json list = diagnose({compiled(shared.root, "app",
                                         "int hipRuntimeGetVersion(int *);\n"
                                         "int main(void) { int version;\n"
                                         "return hipRuntimeGetVersion(&version); }",
                                         {drivers->path + "/libamdhip64.so.7"})});
    EXPECT_EQ(result_of(list, "driver", "HIP 7.1"), "ok");
    EXPECT_EQ(result_of(list, "command", "/app can be preloaded for HIP"), "ok");
}

TEST_F(Doctor, VersionsOfHipThatAreNotKnownAreTold) {
    environment["FAKE_VERSION"] = "50500000";
    EXPECT_EQ(result_of(diagnose({"--runtime=hip"}), "driver", "HIP 5.5: gpushare knows"), "warn");
    environment["FAKE_VERSION"] = "80000000";
    EXPECT_EQ(result_of(diagnose({"--runtime=hip"}), "driver", "HIP 8.0 is newer"), "warn");
    environment["FAKE_VERSION"] = "50600000";
    EXPECT_EQ(result_of(diagnose({"--runtime=hip"}), "driver", "HIP 5.6: "), "");
}

TEST_F(Doctor, CodesOfHipAreExplained) {
    environment["FAKE_INIT"] = "100";
    EXPECT_EQ(result_of(diagnose({"--runtime=hip"}), "driver", "gives 100: no GPU"), "fail");
    EXPECT_HAS(remedy, "/dev/kfd");
    environment["FAKE_INIT"] = "101";
    EXPECT_EQ(result_of(diagnose({"--runtime=hip"}), "driver", "101: the runtime could not start"),
              "fail");
    environment["FAKE_CRASH"] = "1";
    EXPECT_EQ(result_of(diagnose({"--runtime=hip"}), "driver", "dies of signal 6"), "fail");
    EXPECT_HAS(remedy, "rocminfo");
}

TEST_F(Doctor, RulesThatHipHasNoMemoryForAreNamed) {
    const std::string rules = shared.root.file("rules", "[region x]\nsize = 1MiB\nrole = merge\n");
    const Json list = diagnose({"--runtime=hip", "-c", rules});
    EXPECT_EQ(result_of(list, "config", rules + ":"), "warn");
    EXPECT_HAS(remedy, "check --runtime=hip");
    EXPECT_EQ(result_of(diagnose({"-c", rules}), "config", rules + ":"), "");
}

TEST_F(Doctor, AProcessThatIsNoneIsNamed) {
    EXPECT_EQ(result_of(diagnose({"--pid=2147483646"}), "process", "there is none"), "fail");
    EXPECT_EQ(result_of(diagnose({"--pid", std::to_string(getpid())}), "process",
                        "has loaded neither CUDA's driver nor HIP's runtime"),
              "warn");
    for (const char *wrong : {"0", "x", "12x", "-1", "99999999999"})
        EXPECT_EQ(tool({"doctor", std::string("--pid=") + wrong}, environment).err,
                  std::string("gpushare: doctor: --pid '") + wrong + "' is no process's number\n");
}

TEST_F(Doctor, ALibraryThatIsMissingOrBrokenIsAFailure) {
    environment["GPUSHARE_LIBRARY"] = "/no/such.so";
    EXPECT_EQ(
        result_of(diagnose(), "library", "not found; looked at: GPUSHARE_LIBRARY=/no/such.so"),
        "fail");
    EXPECT_EQ(status, 1);
    EXPECT_EQ(judged("GPUSHARE_LIBRARY", shared.root.file("broken.so", "not ELF"), "library",
                     "broken.so does not load: "),
              "fail");
    EXPECT_EQ(
        judged("GPUSHARE_LIBRARY", shared.root.file("a b.so", "x"), "library", "blank or a colon"),
        "fail");
}

TEST_F(Doctor, AnImageNeedsNoOtherProgram) {
    EXPECT_EQ(judged("PATH", "/nowhere", "library", " loads, with glibc"), "ok");
}

TEST_F(Doctor, WhatElseIsPreloadedIsTold) {
    EXPECT_EQ(judged("LD_PRELOAD", "libdl.so.2", "preload", "in front of: libdl.so.2"), "ok");
}

TEST_F(Doctor, ALibraryThatAnswersFirstIsNamed) {
    const std::string first = compiled(shared.root, "first.so",
                                       "int cudaMalloc(void) { return 2; }", {"-shared", "-fPIC"});
    const std::string library = shared.root.path + "/libgpushare.so";
    std::filesystem::copy_file(environment["GPUSHARE_LIBRARY"], library);
    EXPECT_EQ(judged("LD_PRELOAD", first + ":" + library, "preload",
                     first + " stands before libgpushare.so in LD_PRELOAD and defines "
                             "cudaMalloc: calls may go past gpushare"),
              "warn");
    EXPECT_EQ(remedy, "put libgpushare.so in front, where the other one works too");
    EXPECT_EQ(judged("LD_PRELOAD", library + ":" + first, "preload", "stands before"), "");
    environment["LD_PRELOAD"] = first;
    EXPECT_EQ(result_of(diagnose(), "preload", "stands before"), "") << "run puts it in front";
}

TEST_F(Doctor, APreloadedFileThatIsNotThereIsAFailure) {
    environment["LD_PRELOAD"] = "libdl.so.2 /no/such.so";
    const Result result = tool({"doctor", "--json"}, environment); // the loader complains, too
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result_of(Json::parse(result.out), "preload",
                        "LD_PRELOAD names /no/such.so: No such file or directory"),
              "fail");
}

TEST_F(Doctor, TheKeeperIsLookedForWhereProgramsDo) {
    std::filesystem::create_directories(shared.root.path + "/lib");
    const std::string library = shared.root.path + "/lib/libgpushare.so";
    std::filesystem::copy_file(environment["GPUSHARE_LIBRARY"], library);
    EXPECT_EQ(judged("GPUSHARE_LIBRARY", library, "keeper", "programs cannot start one"), "warn");
    EXPECT_EQ(judged("GPUSHARE_KEEPER", tool_path(), "keeper", "start " + tool_path()), "ok");
    environment.erase("GPUSHARE_KEEPER");
    std::filesystem::create_directories(shared.root.path + "/bin");
    std::filesystem::create_symlink(tool_path(), shared.root.path + "/bin/gpushare");
    EXPECT_EQ(result_of(diagnose(), "keeper", "start " + tool_path()), "ok");
}

TEST_F(Doctor, NoTimeAtAllIsRefused) {
    const Result result = tool({"doctor", "-t", "0"}, environment);
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(
        result.err,
        "gpushare: doctor: --timeout '0' is no time to wait; allowed: 500ms, 30s, 2min ...\n");
}

TEST_F(Doctor, ADirectoryThatIsOpenToOthersIsAFailure) {
    chmod(shared.root.path.c_str(), 0755);
    EXPECT_EQ(result_of(diagnose(), "directory", "is open to others: its mode is 0755"), "fail");
    EXPECT_EQ(remedy, "chmod 700 " + shared.root.path);
    chmod(shared.root.path.c_str(), 0700);
    chmod(shared.store.path, 0770);
    EXPECT_EQ(result_of(diagnose(), "directory", "is open to others: its mode is 0770"), "fail");
    EXPECT_EQ(remedy, "chmod 700 " + shared.root.path + "/default");
}

TEST_F(Doctor, ADirectoryThatCannotBeWrittenIsAFailure) {
    const std::string store = shared.store.path;
    for (const std::string &path : {store, store + "/procs", store + "/names"}) {
        chmod(path.c_str(), 0500);
        EXPECT_EQ(result_of(diagnose(), "directory", "is closed to its owner: its mode is 0500"),
                  "fail");
        EXPECT_EQ(remedy, "chmod 700 " + path);
        chmod(path.c_str(), 0700);
    }
}

TEST_F(Doctor, ThePlacesWhereNoConfigurationIsAreNamed) {
    EXPECT_EQ(result_of(diagnose(), "config",
                        "no configuration was found: GPUSHARE_CONFIG is not set, and there is no "
                        "~/gpushare/gpushare.conf and no /etc/gpushare.conf; misuse is reported, "
                        "nothing is shared by rule"),
              "ok");
}

TEST_F(Doctor, ADeviceThatThisMachineLacksIsNamed) {
    const std::string file = shared.root.file(
        "cards.conf", "[region a]\nrole = auto\ndevice = 1\n[region b]\nrole = auto\ndevice = 7\n");
    environment["FAKE_GPUS"] = "2";
    const Json list = diagnose({"-c", file});
    EXPECT_EQ(result_of(list, "config",
                        file + ":6: device = 7: [region b] takes nothing here, where there are 2 "
                               "GPUs, numbered from 0"),
              "warn");
    EXPECT_EQ(result_of(list, "config", "[region a]"), "");
    const std::string warning =
        file +
        ":6: warning: device = 7: [region b] takes nothing on this machine, whose last GPU is 1\n";
    EXPECT_EQ(tool({"check", file}, environment).err, warning);
    environment["FAKE_INIT"] = "100";
    EXPECT_EQ(tool({"check", file}, environment).err, "");
}

TEST_F(Doctor, AnEntryThatIsNoFileOfOursIsNamed) {
    const std::string odd = shared.regions() + std::string(32, 'a');
    ASSERT_EQ(mkdir(odd.c_str(), 0700), 0);
    EXPECT_EQ(result_of(diagnose(), "directory", "regions/" + std::string(32, 'a')), "warn");
    EXPECT_EQ(status, 0);
}

TEST_F(Doctor, ADirectoryOfSomebodyElseIsAFailure) {
    SKIP_IF(chown(shared.root.path.c_str(), 65534, 65534) != 0, "only root can give it away");
    EXPECT_EQ(result_of(diagnose(), "directory", "belongs to uid 65534, you are 0"), "fail");
}

TEST_F(Doctor, ADirectoryThatIsNoneIsAFailure) {
    EXPECT_EQ(
        judged("GPUSHARE_DIR", shared.root.file("plain", "x"), "directory", "is not a directory"),
        "fail");
    environment["GPUSHARE_DIR"] += "/below";
    EXPECT_EQ(result_of(diagnose(), "directory",
                        "cannot be made: " + shared.root.path + "/plain is not a directory"),
              "fail");
    EXPECT_EQ(judged("GPUSHARE_DIR", "/proc/gpushare", "directory",
                     "cannot be made: /proc holds no files of programs"),
              "fail");
    EXPECT_EQ(judged("GPUSHARE_DIR", shared.root.path + "/no/such", "directory",
                     "has none of the directories between"),
              "fail");
    EXPECT_EQ(judged("GPUSHARE_DIR", "relative/path", "directory",
                     "'relative/path', from GPUSHARE_DIR, is not an absolute"),
              "fail");
    environment["GPUSHARE_DIR"] = shared.root.path;
    EXPECT_EQ(judged("GPUSHARE_NAMESPACE", ".hidden", "directory",
                     "GPUSHARE_NAMESPACE='.hidden' is no name"),
              "fail");
}

TEST_F(Doctor, TheVariableThatDecidesIsNamed) {
    environment["GPUSHARE_DIR"] = "";
    EXPECT_EQ(judged("NVIDIA_DRA_LOCAL_IPC_DIR", "relative", "directory",
                     "from NVIDIA_DRA_LOCAL_IPC_DIR, is not an"),
              "fail");
    EXPECT_EQ(judged("NVIDIA_DRA_LOCAL_IPC_DIR", "/no/such", "directory",
                     "has none of the directories between"),
              "fail");
    EXPECT_LACKS(remedy, "unset");
}

TEST_F(Doctor, ADirectoryThatIsNotThereYetIsFine) {
    EXPECT_EQ(judged("GPUSHARE_DIR", shared.root.path + "/new", "directory",
                     "/new/default (the first program makes it)"),
              "ok");
    EXPECT_NE(access((shared.root.path + "/new").c_str(), F_OK), 0) << "doctor changes nothing";
}

TEST_F(Doctor, ADiskIsNoPlaceForIt) {
    Temporary disk("/var/tmp");
    environment["GPUSHARE_DIR"] = disk.path;
    if (std::string kind = command({"stat", "-f", "-c", "%T", disk.path}).out; kind == "tmpfs\n")
        GTEST_SKIP() << "/var/tmp is a tmpfs here";
    EXPECT_EQ(result_of(diagnose(), "room", "which is not a tmpfs"), "warn");
    EXPECT_EQ(status, 0) << "a warning is no failure";
}

TEST_F(Doctor, TheConfigurationIsChecked) {
    EXPECT_EQ(judged("GPUSHARE_CONFIG", shared.root.file("a.conf", "[region a]\nrole = auto\n"),
                     "config", "a.conf, 1 rule"),
              "ok");
    EXPECT_EQ(judged("GPUSHARE_CONFIG", shared.root.file("b.conf", "[gpushare]\nmode = on\n"),
                     "config", "b.conf:2: "),
              "fail");
    EXPECT_EQ(status, 1);
    const std::string other = shared.root.file("c.conf", "[gpushare]\n");
    EXPECT_EQ(result_of(diagnose({"-c", other}), "config", "c.conf, 0 rules"), "ok");
    EXPECT_EQ(result_of(diagnose({"-c", "/no/such.conf"}), "config", "/no/such.conf: "), "fail");
    environment.erase("GPUSHARE_CONFIG");
    EXPECT_EQ(judged("GPUSHARE_MODE", "off", "config", "mode is off"), "warn");
}

TEST_F(Doctor, ACommandIsJudged) {
    EXPECT_EQ(result_of(diagnose({"sh"}), "command",
                        "/sh can be preloaded; what it starts without the library is named by"),
              "ok");
    EXPECT_EQ(result_of(diagnose({"sh", "--json", "cam.sh"}), "command", "/sh can be preloaded"),
              "ok");
    EXPECT_EQ(status, 0);
    EXPECT_EQ(result_of(diagnose({"no-such-command"}), "command", "'no-such-command': not found"),
              "fail");
    EXPECT_EQ(status, 1);
    EXPECT_EQ(result_of(diagnose({"/etc/passwd"}), "command", "not an executable file"), "fail");
    std::string bits32 = read_file("/bin/true");
    bits32[4] = 1;
    std::string path = shared.root.file("bits32", bits32);
    chmod(path.c_str(), 0755);
    EXPECT_EQ(result_of(diagnose({path}), "command", "is a 32-bit program, the library is 64-bit"),
              "fail");
}

TEST_F(Doctor, AForeignProcIsSeen) {
    Result result = command({"unshare", "--pid", "--fork", "true"});
    SKIP_IF(result.status != 0, "pid namespaces cannot be made here");
    result = command({"unshare", "--pid", "--fork", tool_path(), "doctor", "--json"}, environment);
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result_of(Json::parse(result.out), "processes", "belongs to another pid namespace"),
              "fail");
    result =
        command({"unshare", "--pid", "--fork", "--mount-proc", tool_path(), "doctor", "--json"},
                environment);
    EXPECT_EQ(result_of(Json::parse(result.out), "processes", "in a container"), "ok")
        << result.err;
}

// /.dockerenv is there in a container that has the machine's own pids, too.
TEST_F(Doctor, TheMachinesOwnPidNamespaceIsNoContainer) {
    struct stat space;
    if (stat("/proc/self/ns/pid", &space) != 0 || space.st_ino != 0xEFFFFFFC)
        GTEST_SKIP() << "these tests run in a pid namespace of their own";
    EXPECT_EQ(result_of(diagnose(), "processes", "in the machine's own pid namespace"), "ok");
}

TEST_F(Doctor, AVariableThatNothingReadsIsNamed) {
    EXPECT_EQ(judged("GPUSHARE_LOG_LEVLE", "info", "environment", "perhaps GPUSHARE_LOG_LEVEL"),
              "warn");
}

// In a container, after what `before` does there; empty where none can be made.
// The main thread has ended, and with it the files that /proc has of the whole process.
TEST_F(Doctor, ARemovedDirectoryIsThatOfAProcessWithoutAMainThread) {
    const std::string build = std::filesystem::absolute(tool_path()).parent_path();
    environment.erase("GPUSHARE_LIBRARY");
    environment["LD_LIBRARY_PATH"] = build + "/sim";
    environment["GPUSHARE_SIM_ROOT"] = "@" + shared.root.path;
    const std::string script = "cd " + shared.root.path + " && mkfifo in out && { \"$0\" run -- " +
                               build +
                               "/tests/apps/puppet <in >out & } && exec 3>in 4<out && for line in "
                               "'malloc a 4194304' 'get a' depart; do echo $line >&3; read answer "
                               "<&4; done; rm -r \"$GPUSHARE_DIR\"; \"$0\" doctor";
    const Result result =
        command({"unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script, tool_path()},
                environment);
    SKIP_IF(contains(result.err, "unshare failed"), "this user may not make pid namespaces");
    EXPECT_HAS(result.out, "1 process (pid ") << result.err;
}

const char *const in_container[] = {"unshare",      "--mount", "--pid", "--fork",
                                    "--mount-proc", "sh",      "-c"};
std::string contained(const std::string &before, const Environment &environment) {
    std::vector<std::string> words(std::begin(in_container), std::end(in_container));
    words.push_back(before + " \"$0\" doctor --json");
    words.push_back(tool_path());
    return command(words, environment).out;
}

TEST_F(Doctor, ADirectoryInAContainersOwnFilesIsSeen) {
    const Temporary place("/var/tmp");
    environment["GPUSHARE_DIR"] = place.path + "/dir";
    const std::string out = contained("", environment);
    SKIP_IF(out.empty(), "no namespaces here");
    struct stat root, there;
    if (stat("/", &root) || stat(place.path.c_str(), &there) || root.st_dev != there.st_dev)
        GTEST_SKIP() << "/var/tmp is a file system of its own";
    EXPECT_EQ(result_of(Json::parse(out), "container", "lies in this container alone"), "warn");
    EXPECT_HAS(remedy, ":" + place.path + "/dir -e GPUSHARE_DIR=" + place.path + "/dir");
}

TEST_F(Doctor, ADirectoryFromAnotherShmMeansNoEvents) {
    ASSERT_EQ(tool({"cdi"}, environment).status, 0); // makes the directory
    const std::string dir = environment["GPUSHARE_DIR"];
    const std::string out =
        contained("mkdir /tmp/gpushare-mnt.$$; mount --bind " + dir +
                      " /tmp/gpushare-mnt.$$ && mount -t tmpfs -o mode=1777 tmpfs /dev/shm && "
                      "export GPUSHARE_DIR=/tmp/gpushare-mnt.$$; trap 'umount "
                      "/tmp/gpushare-mnt.$$; rmdir /tmp/gpushare-mnt.$$' EXIT;",
                  environment);
    SKIP_IF(out.empty(), "no namespaces here");
    EXPECT_EQ(result_of(Json::parse(out), "container", "/dev/shm seems not to be the host's"),
              "warn");
    EXPECT_HAS(remedy, "--ipc");
    EXPECT_EQ(result_of(Json::parse(out), "container", "lies in this container alone"), "");
}

TEST_F(Doctor, TheShmOfOtherProcessesIsKnown) {
    const std::string dir = environment["GPUSHARE_DIR"];
    const Peer other(shared, "producer", {}, 1111, 7);
    const std::string out = contained(
        "mount --bind " + dir +
            " /mnt && mount -t tmpfs -o mode=1777 shm /dev/shm && export GPUSHARE_DIR=/mnt;",
        environment);
    SKIP_IF(out.empty(), "no namespaces here");
    EXPECT_EQ(result_of(Json::parse(out), "container", "producer 7 has another /dev/shm"), "warn");
    EXPECT_HAS(remedy, "--ipc=host");
    const std::string common =
        contained("mount --bind " + dir + " /mnt && export GPUSHARE_DIR=/mnt;", environment);
    EXPECT_EQ(result_of(Json::parse(common), "container", "/dev/shm"), "");
}

// As processes with an older library, or without a /dev/shm.
TEST_F(Doctor, AProcessThatDoesNotSayItsShmTellsNothing) {
    const std::string dir = environment["GPUSHARE_DIR"];
    const Peer other(shared, "producer", {}, 1111, 7);
    char path[GPS_FILE_PATH];
    gps_file_path_of_owner(&shared.store, &other.owner, "", path);
    gps_proc_header header;
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.read(reinterpret_cast<char *>(&header), sizeof(header));
    header.shm_device = header.shm_inode = 0;
    gps_proc_seal(&header);
    file.seekp(0);
    file.write(reinterpret_cast<const char *>(&header), sizeof(header));
    file.close();
    const std::string out = contained(
        "mount --bind " + dir +
            " /mnt && mount -t tmpfs -o mode=1777 shm /dev/shm && export GPUSHARE_DIR=/mnt;",
        environment);
    SKIP_IF(out.empty(), "no namespaces here");
    EXPECT_EQ(result_of(Json::parse(out), "container", "/dev/shm seems not to be the host's"),
              "warn");
}

TEST_F(Doctor, EqualPidsAreSeen) {
    const Peer one(shared, "producer", {}, 1111, 1), other(shared, "consumer", {}, 2222, 1);
    EXPECT_EQ(result_of(diagnose(), "container", "are both process 1"), "warn");
    EXPECT_HAS(remedy, "gpushare run");
}

TEST_F(Doctor, DifferentPidsAreNoTrouble) {
    const Peer one(shared, "producer", {}, 1111, 1), other(shared, "consumer", {}, 2222, 2);
    EXPECT_EQ(result_of(diagnose(), "container", ""), "");
}

TEST_F(Doctor, MuslIsSeen) {
    const std::string out =
        contained("mount -t tmpfs none /mnt && mkdir /mnt/up /mnt/work && mount -t overlay overlay "
                  "-o lowerdir=/usr/lib,upperdir=/mnt/up,workdir=/mnt/work /usr/lib && touch "
                  "/lib/ld-musl-x86_64.so.1 &&",
                  environment);
    SKIP_IF(out.empty(), "no overlay can be mounted here");
    EXPECT_EQ(result_of(Json::parse(out), "container", "ld-musl-x86_64.so.1 is here"), "warn");
    EXPECT_HAS(remedy, "glibc");
}

TEST_F(Doctor, ThePreloadOfADeviceIsTold) {
    const auto preload = [&](const std::string &file) {
        const std::string list = shared.root.file("ld.so.preload", file + "\n");
        return Json::parse(
            contained("mount -t tmpfs none /mnt && mkdir /mnt/up /mnt/work && mount -t overlay "
                      "overlay -o lowerdir=/etc,upperdir=/mnt/up,workdir=/mnt/work /etc && cp " +
                          list + " /etc/ld.so.preload 2>/dev/null &&",
                      environment));
    };
    const std::string library = shared.root.path + "/libgpushare.so";
    std::filesystem::copy_file(environment["GPUSHARE_LIBRARY"], library);
    const Json all = preload(library);
    SKIP_IF(all.elements.empty(), "no overlay can be mounted here");
    EXPECT_EQ(result_of(all, "preload", "every program here runs with it"), "ok");
    EXPECT_EQ(result_of(preload("/no/libgpushare.so"), "preload",
                        "/etc/ld.so.preload names /no/libgpushare.so: No such file or directory"),
              "fail");
    EXPECT_HAS(remedy, "remove the file");
}

TEST_F(Doctor, ADirectoryOfAUserWhomTheContainerDoesNotHave) {
    const Result made = command({"chown", "12345", environment["GPUSHARE_DIR"]});
    const Result result = command({"unshare", "--user", "--map-root-user", "--mount", "--pid",
                                   "--fork", "--mount-proc", tool_path(), "doctor", "--json"},
                                  environment);
    SKIP_IF(made.status != 0 || result.out.empty(), "no user namespaces here");
    EXPECT_EQ(result_of(Json::parse(result.out), "directory", "belongs to uid 65534"), "fail");
    EXPECT_HAS(remedy, "one user of the host");
}

TEST_F(Doctor, APrivateShmIsSeen) {
    std::string script =
        "mount -t tmpfs -o size=64000k,mode=1777 shm /dev/shm && \"$0\" doctor --json";
    environment["GPUSHARE_DIR"] = "";
    Result result = command(
        {"unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", script, tool_path()},
        environment);
    if (result.out.empty())
        GTEST_SKIP() << "no mount namespaces here: " << result.err;
    EXPECT_EQ(result_of(Json::parse(result.out), "container", "lies in this container alone"),
              "warn");
    EXPECT_HAS(remedy, "--device gpushare.io/namespace=default");
    EXPECT_EQ(
        result_of(Json::parse(result.out), "container", "/dev/shm seems not to be the host's"),
        "warn");
    EXPECT_HAS(remedy, "--ipc=host");
    result =
        command({"unshare", "--mount", "sh", "-c",
                 "mount -t tmpfs -o size=512k,mode=1777 tmpfs /dev/shm && \"$0\" doctor --json",
                 tool_path()},
                environment);
    EXPECT_EQ(result_of(Json::parse(result.out), "room", "512 KiB left"), "fail");
}
