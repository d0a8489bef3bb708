// Programs with the CUDA runtime linked in, as nvcc does it: its frames are not the user's code.
#include "harness.hpp"
#include "logmaker.hpp"

namespace fs = std::filesystem;

namespace {

class LinkedRuntime : public testing::Test {
  protected:
    void SetUp() override {
        build = fs::absolute(tool_path()).parent_path();
        twice = build / "tests/apps/twice";
        environment = {{"GPUSHARE_DIR", shared.path + "/pub"},
                       {"GPUSHARE_CONFIG", "/dev/null"},
                       {"GPUSHARE_SIM_ROOT", "@" + shared.path},
                       {"GPUSHARE_SIM_LINGER_MS", "50"},
                       {"LD_LIBRARY_PATH", build / "sim"}};
    }
    Result audit(std::vector<std::string> line) {
        line.insert(line.begin(), "audit");
        return tool(line, environment);
    }
    // "tests/apps/twice.c:12": the line that has this text.
    static std::string place(const std::string &text) {
        const std::string source = read_file("tests/apps/twice.c");
        const auto end = source.begin() + static_cast<long>(source.find(text));
        return "tests/apps/twice.c:" + std::to_string(1 + std::count(source.begin(), end, '\n'));
    }
    static std::string hexadecimal(unsigned long value) {
        std::ostringstream text;
        text << "0x" << std::hex << value;
        return text.str();
    }
    // Behind the first instructions of a symbol: 0x1234.
    static std::string inside(const std::string &program, const std::string &symbol) {
        std::istringstream lines(command({"nm", "--defined-only", program}).out);
        std::string address, type, name;
        while (lines >> address >> type >> name)
            if (name.find(symbol) == 0 && (type == "t" || type == "T"))
                return hexadecimal(std::stoul(address, nullptr, 16) + 2);
        return "";
    }

    Temporary files, shared{"/dev/shm"};
    fs::path build;
    std::string twice;
    Environment environment;
};

} // namespace

TEST_F(LinkedRuntime, TheCallIsTheRuntimesAndTheFramesAreTheCallers) {
    const Result result = audit({twice});
    EXPECT_ERR_HAS(result, 1, "ERROR: double-free in cudaFree, by twice",
                   " camera at " + place("/* a bug of"), " viewer at " + place("/* and one"),
                   "Host frames:\n=========         #0 ");
    EXPECT_LACKS(result.err, " cudaFree at ");
    EXPECT_LACKS(result.err, " cudaMalloc at ");
    EXPECT_HAS(result.err, "SUMMARY: 2 findings (2 errors)");
}

TEST_F(LinkedRuntime, ACopyIsTheCallersThatTheRuntimeMakesInAFunctionOfItsOwn) {
    const std::string misuse = build / "tests/apps/misuse_static";
    const Result result = audit({misuse, "use-after-free"});
    EXPECT_HAS(result.err, "use-after-free in cudaMemcpy, by misuse_static");
    EXPECT_HAS(result.err, " use_after_free at tests/apps/misuse/copy.c:");
    EXPECT_LACKS(result.err, " copy at ");
    EXPECT_LACKS(result.err, " cudaMemcpy at ");
}

// A program of the driver's may have functions of such names.
TEST_F(LinkedRuntime, AFunctionOfSuchANameIsTheProgramsOwnWhereNoRuntimeIsLinked) {
    const std::string own = compiled(files, "own",
                                     "void release(void) {}\n"
                                     "void cudaWorker(void) {}\n"
                                     "int main(void) { return 0; }\n",
                                     {"-g", "-O0", "-no-pie"});
    LogLine line;
    line.api = "cuMemFree";
    line.stack = frame(own, inside(own, "release")) + "," + frame(own, inside(own, "cudaWorker"));
    const Result result = tool({"report", files.file("log", line.text())});
    EXPECT_HAS(result.out, "double-free in cuMemFree");
    EXPECT_HAS(result.out, " release at ");
}

TEST_F(LinkedRuntime, WhatWasMadeOfOneBugHidesNoOther) {
    const std::string made = audit({"--gen-suppressions", twice}).err;
    const size_t first = made.find("[suppress "), second = made.find("[suppress ", first + 1);
    ASSERT_NE(second, std::string::npos) << made;
    EXPECT_HAS(made, "module = twice\nfunction = release\nstack = ");
    const std::string known = files.file("known", made.substr(first, second - first));
    const Result result = audit({"--suppressions", known, twice});
    EXPECT_ERR_HAS(result, 1,
                   "SUMMARY: 1 finding (1 error), 1 occurrence, 1 process, 1 suppressed");
    EXPECT_LACKS(result.err, " camera at ");
    EXPECT_HAS(result.err, " viewer at ");
    EXPECT_EQ(audit({"-s", files.file("all", made.substr(first)), twice}).status, 0);
}

TEST_F(LinkedRuntime, WithoutSymbolsThatIsSaid) {
    const std::string bare = files.path + "/bare";
    ASSERT_EQ(command({"strip", "-o", bare, twice}).status, 0);
    const Result result = audit({bare});
    EXPECT_HAS(result.err, "double-free in cuMemFree, by bare");
    EXPECT_HAS(
        result.err,
        "bare has no symbols: if a CUDA runtime is linked into it, cuMemFree is a call of that");
    EXPECT_HAS(result.err, "SUMMARY: 2 findings");
}

// It refuses the simulated driver, so its frames come by a log.
TEST_F(LinkedRuntime, NvidiasOwnIsKnownByItsLocalSymbols) {
    const std::string real = build / "tests/apps/twice_nvidia";
    SKIP_IF(!fs::exists(real), "no libcudart_static.a here");
    LogLine line;
    line.api = "cuMemFree";
    line.stack = frame(real, inside(real, "libcudart_static_")) + "," +
                 frame(real, inside(real, "cudaFree")) + "," + frame(real, inside(real, "release"));
    line.prior =
        prior("allocated", 100, "app",
              frame(real, inside(real, "cudaMalloc")) + "," + frame(real, inside(real, "main")));
    const Result result = tool({"report", files.file("log", line.text())});
    EXPECT_HAS(result.out, "double-free in cudaFree, by app");
    EXPECT_HAS(result.out, " release at tests/apps/twice.c:");
    EXPECT_LACKS(result.out, "libcudart_static_");
    EXPECT_LACKS(result.out, "cudaMalloc ");
    const std::string json = tool({"report", "--json", files.file("log")}).out;
    EXPECT_HAS(json, "\"api\": \"cudaFree\"");
    line.api = "cuMemcpyDtoH";
    line.stack = frame(real, inside(real, "cudaMemcpy")) + "," + frame(real, inside(real, "main"));
    EXPECT_HAS(tool({"report", files.file("copy", line.text())}).out, " in cudaMemcpy, by app");
}
