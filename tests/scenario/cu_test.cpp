// A .cu program on the simulated driver, as nvcc makes it.
#include "scenario/harness.hpp"

namespace {

const std::string nvcc = "PATH=$PATH:/usr/local/cuda/bin nvcc ";

class Cu : public testing::Test {
  protected:
    void SetUp() override {
        SIM_ONLY("a card runs kernels");
        SKIP_IF(command({"sh", "-c", nvcc + "--version"}).status != 0, "there is no nvcc here");
    }
    // The program, linked as the options say, under explain.
    Result explain(const std::string &options, const std::string &arguments) {
        const std::filesystem::path tests =
            std::filesystem::path(__FILE__).parent_path().parent_path();
        const Result made = command({"sh", "-c",
                                     nvcc + options + " " + (tests / "apps/increment.cu").string() +
                                         " -o " + world.path("increment")});
        EXPECT_EQ(made.status, 0) << made.err;
        world.environment["LD_LIBRARY_PATH"] = build_directory() + "/sim";
        return world.tool({"explain", "--", "sh", "-c", world.path("increment") + arguments});
    }
    World world;
};

} // namespace

TEST_F(Cu, RunsWithTheSharedRuntimeIfItHasNoKernel) {
    const Result result = explain("-cudart shared", " without");
    EXPECT_EQ(result.out, "cudaMalloc 0\ncudaMemcpy 0\nsees 41\n");
    EXPECT_ERR_HAS(result, 0, "size = 4MiB      cudaMalloc in increment");
    EXPECT_LACKS(result.err, "simulated CUDA");
}

TEST_F(Cu, IsToldThatAKernelNeedsACard) {
    const Result result = explain("-cudart shared", "");
    EXPECT_EQ(result.out, "cudaMalloc 0\ncudaMemcpy 0\nlaunch 209\nsees 41\n");
    EXPECT_HAS(
        result.err,
        "simulated CUDA: a kernel was not run (error 209): kernels of .cu files need a card\n");
}

TEST_F(Cu, IsToldThatNvidiasRuntimeNeedsACard) {
    const Result result = explain("", "");
    EXPECT_HAS(result.out, "cudaMalloc 801\n");
    EXPECT_HAS(result.err,
               "simulated CUDA: kernels, and NVIDIA's runtime, which nvcc links in, need a card; "
               "without kernels a program runs here if nvcc gets -cudart shared\n");
}

TEST(CuDoctor, SaysThatTheDriverIsSimulated) {
    SIM_ONLY("a card runs kernels");
    World world("", {{"LD_LIBRARY_PATH", build_directory() + "/sim"}});
    const std::string out = world.tool({"doctor", "--json"}).out;
    EXPECT_HAS(out, "it is simulated: kernels of .cu files, and NVIDIA's own runtime");
}
