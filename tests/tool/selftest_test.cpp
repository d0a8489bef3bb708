// gpushare doctor --selftest: what it tries on the simulated drivers, and what it leaves: nothing.
#include "harness.hpp"
#include "json.hpp"
#include "patience.hpp"

namespace fs = std::filesystem;

namespace {

const char *const steps[] = {"share", "hand-over", "misuse", "merge"};

class Selftest : public testing::Test {
  protected:
    void SetUp() override {
        build = fs::absolute(tool_path()).parent_path();
        environment = {{"GPUSHARE_DIR", shared.path + "/pub"},
                       {"GPUSHARE_SIM_ROOT", "@" + shared.path},
                       {"GPUSHARE_SIM_LINGER_MS", "50"},
                       {"TMPDIR", files.path},
                       {"LD_LIBRARY_PATH", build / "sim"}};
    }

    Result selftest(std::vector<std::string> more = {}) {
        more.insert(more.begin(), {"doctor", "--selftest"});
        return tool(more, environment);
    }
    Json answer() {
        const Result result = selftest({"--json"});
        EXPECT_EQ(result.err, "");
        status = result.status;
        return Json::parse(result.out);
    }
    static std::string message(const Json &said, const std::string &step) {
        for (const Json &one : said["steps"].elements)
            if (one["step"].text == step)
                return one["message"].text;
        return "";
    }
    // What is left in the directory and of its files.
    std::vector<std::string> left() const {
        std::vector<std::string> found;
        for (const std::string &place : {shared.path + "/pub", files.path})
            for (const auto &entry :
                 fs::exists(place) ? fs::directory_iterator(place) : fs::directory_iterator())
                found.push_back(entry.path());
        return found;
    }
    bool nothing_is_left_soon() const {
        return eventually([this] { return left().empty(); }, 10000);
    }

    Temporary files, shared{"/dev/shm"};
    fs::path build;
    Environment environment;
    int status = -1;
};

} // namespace

TEST_F(Selftest, EveryStepSucceedsOnTheSimulator) {
    const Json said = answer();
    EXPECT_EQ(status, 0);
    ASSERT_EQ(said["steps"].size(), 4u);
    for (size_t i = 0; i < 4; i++) {
        EXPECT_EQ(said["steps"].elements[i]["step"].text, steps[i]);
        EXPECT_EQ(said["steps"].elements[i]["result"].text, "ok")
            << said["steps"].elements[i]["message"].text;
    }
    const Json &row = said["row"];
    EXPECT_EQ(row["gpu"].text, "Simulated GPU");
    EXPECT_EQ(row["driver"].text, "simulated");
    EXPECT_EQ(row["interface"].text, "CUDA 13.0");
    EXPECT_EQ("gpushare " + row["gpushare"].text + "\n", tool({"--version"}).out);
    EXPECT_HAS(row["glibc"].text, "2.");
    EXPECT_EQ(row["date"].text.size(), 10u);
    EXPECT_NE(row["container"].text, "");
    for (const char *key : {"share", "hand_over", "misuse", "merge"})
        EXPECT_EQ(row[key].text, "ok");
    EXPECT_EQ(left(), std::vector<std::string>());
}

TEST_F(Selftest, TheTextHasTheSameAndEndsWithTheRow) {
    const Result result = selftest();
    EXPECT_EQ(result.status, 0);
    for (const char *step : steps)
        EXPECT_HAS(result.out, std::string("ok             ") + step);
    EXPECT_HAS(result.out, "| Simulated GPU | simulated | CUDA 13.0 | ");
    EXPECT_HAS(result.out, " | ok | ok | ok | ok |\n");
}

// Neither the user's settings nor the user's namespace have a part in it.
TEST_F(Selftest, TheUsersOwnIsNotTouched) {
    environment["GPUSHARE_MODE"] = "off";
    environment["GPUSHARE_ON_FREE"] = "refuse";
    environment["GPUSHARE_CONFIG"] = "/no/such/file";
    environment["GPUSHARE_NAMESPACE"] = "mine";
    environment["LD_PRELOAD"] = build / "libgpushare.so";
    const std::string mine = shared.path + "/pub/mine";
    for (const std::string &path : {shared.path + "/pub", mine})
        ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
    write_file(mine + "/precious", "x");
    answer();
    EXPECT_EQ(status, 0);
    EXPECT_EQ(left(), std::vector<std::string>{mine});
    EXPECT_EQ(std::distance(fs::directory_iterator(mine), fs::directory_iterator()), 1);
}

TEST_F(Selftest, ProgramsOfHipDoAllButMerging) {
    for (const char *generation : {"hip6", "hip7"}) {
        environment["LD_LIBRARY_PATH"] = build / "sim" / generation;
        if (!fs::exists(environment["LD_LIBRARY_PATH"]) || dlopen("libcuda.so.1", RTLD_LAZY))
            GTEST_SKIP() << "no simulated HIP here, or a driver of CUDA's";
        const Json said = answer();
        EXPECT_EQ(status, 0);
        for (const char *key : {"share", "hand_over", "misuse"})
            EXPECT_EQ(said["row"][key].text, "ok") << message(said, key);
        EXPECT_EQ(said["row"]["merge"].text, "not available");
        EXPECT_EQ(said["row"]["gpu"].text, "Simulated GPU");
        EXPECT_HAS(said["row"]["interface"].text, "HIP ");
    }
    EXPECT_EQ(left(), std::vector<std::string>());
}

TEST_F(Selftest, WithoutADriverItTakesTheSimulatorBesideTheTool) {
    SKIP_IF(dlopen("libcuda.so.1", RTLD_LAZY), "there is a driver here");
    environment.erase("LD_LIBRARY_PATH");
    const Result result = selftest({"--json"});
    EXPECT_ERR(result, 0,
               "There is no libcuda.so.1: the simulated one in " + (build / "sim").string() +
                   " is tested.\n");
    EXPECT_EQ(Json::parse(result.out)["row"]["merge"].text, "ok");
    EXPECT_EQ(left(), std::vector<std::string>());
}

TEST_F(Selftest, WithoutACardOrASimulatorItSaysSo) {
    SKIP_IF(dlopen("libcuda.so.1", RTLD_LAZY), "there is a driver here");
    const Temporary alone;
    const std::string copy = alone.path + "/gpushare";
    fs::copy_file(tool_path(), copy);
    environment["GPUSHARE_LIBRARY"] = build / "libgpushare.so";
    environment["LD_LIBRARY_PATH"] = files.path + "/none";
    const Result result = command({copy, "doctor", "--selftest", "--json"}, environment);
    EXPECT_OUT(result, 1, "");
    EXPECT_HAS(result.err, "there is neither a card nor a simulated driver to test with. CUDA: "
                           "libcuda.so.1: cannot open");
    EXPECT_EQ(left(), std::vector<std::string>());
}

// A library that does nothing: all that it is for fails, and the sentence says where.
TEST_F(Selftest, ALibraryThatDoesNothingFails) {
    Dl_info info;
    ASSERT_NE(dladdr(reinterpret_cast<void *>(waitpid), &info), 0);
    environment["GPUSHARE_LIBRARY"] = info.dli_fname;
    const Result result = selftest({"--json", "--timeout=8s"});
    const Json said = Json::parse(result.out);
    EXPECT_EQ(result.status, 1);
    for (const char *key : {"share", "hand_over", "misuse", "merge"})
        EXPECT_EQ(said["row"][key].text, "failed") << key;
    EXPECT_EQ(message(said, "share"), "the importer was answered '0 0' to 'read', not '0 17'");
    EXPECT_EQ(message(said, "misuse"), "free-while-open was not reported");
    EXPECT_EQ(left(), std::vector<std::string>());
}

TEST_F(Selftest, AProcessThatDiesFailsItsStepAlone) {
    environment["GPUSHARE_SIM_FAULT"] = std::to_string(SIGKILL); // of whoever calls cuMemMap
    const Json said = answer();
    EXPECT_EQ(status, 1);
    for (const char *key : {"share", "hand_over", "misuse"})
        EXPECT_EQ(said["row"][key].text, "ok") << message(said, key);
    EXPECT_EQ(said["row"]["merge"].text, "failed");
    EXPECT_HAS(message(said, "merge"), "the replica-1 ended at ") << message(said, "merge");
    EXPECT_TRUE(nothing_is_left_soon());
}

TEST_F(Selftest, ADriverThatHangsTakesNoLongerThanItIsGiven) {
    environment["GPUSHARE_SIM_LATE_FREE_MS"] = "60000";
    const auto start = std::chrono::steady_clock::now();
    const Result result = selftest({"--timeout=6s"});
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(patient(20000)));
    EXPECT_EQ(result.status, 1);
    EXPECT_TRUE(contains(result.out, "the importer has not answered 'free' in time") ||
                contains(result.out, "the exporter has not answered 'free' in time"))
        << result.out;
    EXPECT_EQ(left(), std::vector<std::string>());
}

TEST_F(Selftest, KilledItLeavesNothing) {
    environment["GPUSHARE_SIM_LATE_FREE_MS"] = "60000";
    const pid_t child = fork();
    if (child == 0) {
        for (const auto &[name, value] : environment)
            setenv(name.c_str(), value.c_str(), 1);
        execl(tool_path().c_str(), "gpushare", "doctor", "--selftest", nullptr);
        _exit(1);
    }
    EXPECT_TRUE(eventually([this] { return left().size() >= 2; }, 10000));
    EXPECT_EQ(left().size(), 2u) << "a namespace, and its files";
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(nothing_is_left_soon());
}

TEST_F(Selftest, ADirectoryThatCannotBeUsedIsToldOnce) {
    ASSERT_EQ(mkdir((shared.path + "/pub").c_str(), 0755), 0);
    const Result result = selftest();
    EXPECT_ERR_HAS(result, 1, "is open to others (mode 0755)");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1);
    EXPECT_EQ(left(), std::vector<std::string>());
}

TEST_F(Selftest, ACommandHasNoPartInIt) {
    EXPECT_ERR_HAS(selftest({"true"}), 2, "--selftest has programs and rules of its own");
}
