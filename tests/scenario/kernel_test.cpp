// Programs that run kernels: what the tests' kernels do, in streams and in graphs.
#include "harness.hpp"

class Kernel : public testing::Test {
  protected:
    Kernel() : a(world) {
        a.all({kernels(), "stream s", "malloc p 8388608", "malloc sum 4096", "fill p 1 8388608",
               "fill sum 0 4096"});
    }
    World world;
    Puppet a;
};

TEST_F(Kernel, ReadsWritesAndAddsInStreamOrder) {
    a.all({"launch s test_write p 2097152 5", "launch s test_add p+4 2097151 2"});
    a.all({"launch s test_read p 2097152 sum", "ssync s"});
    EXPECT_EQ(a("read p 0 8")[0], "0500000007000000");
    EXPECT_EQ(a("read p 8388604 4")[0], "07000000");
    // 5 + 2097151 * 7, little-endian
    EXPECT_EQ(a("read sum 0 4")[0], "feffdf00");
    EXPECT_EQ(a.code("launch s no_such_kernel p"), 500);
}

TEST_F(Kernel, RunsBesideTheProgramAndAFreeWaitsForIt) {
    a.all({"malloc other 4194304", "stream t", "launch s test_spin p 1024 300000000 sum"});
    EXPECT_EQ(a.code("squery s"), 600);
    a.all({"squery t", "free other", "squery s", "launch s test_spin p 1024 300000000 sum"});
    a.must("unstream s"); // and its work goes on
    a.must("sync");
}

TEST_F(Kernel, AGraphRunsItsKernelsAndMemsetsAgain) {
    a.all({"capture s", "sfill s p 3 4", "launch s test_add p 1 1", "launch s test_add p+4 1 1",
           "captured s g"});
    EXPECT_EQ(a("read p 0 8")[0], "0101010101010101"); // nothing has run yet
    for (int i = 0; i < 3; i++)
        a.must("graph s g");
    a.must("ssync s");
    EXPECT_EQ(a("read p 0 8")[0], "0403030304010101");
}

TEST_F(Kernel, OneThatTouchesNoMemoryLosesTheContext) {
    a.must("launch s test_write 4096 1 1");
    EXPECT_EQ(a.code("ssync s"), 700);
    EXPECT_EQ(a.code("malloc q 4096"), 700);
    EXPECT_EQ(a.code("free sum"), 700);
}

// A kernel may never end: Ctrl-C ends the program that waits for it in a free, as it does bare.
struct FreeBehindAKernel : testing::TestWithParam<const char *> {};

TEST_P(FreeBehindAKernel, EndsByASignal) {
    World world;
    const std::string which = GetParam();
    const std::string backing = which == "token" ? "backing = vmm\n" : "";
    world.config(rule("frames", "producer", "export", backing) +
                 rule("frames", "consumer*", "import", backing + "wait = 30s\n") +
                 rule("weights", "replica", "merge", "size = 4MiB\nquiet = 0\n"));
    How replica;
    replica.as = "replica";
    Puppet a(world, producer()), b(world, consumer()), c(world, replica);
    a.must("malloc p 4194304");
    b.must("malloc p 4194304"); // opens that
    c.must("malloc p 4194304");
    Puppet &one = which == "held" ? a : which == "merged" ? c : b;
    one.all({kernels(), "stream s", "malloc sum 65536"});
    one.must("launch s test_spin sum 1024 20000000000 sum");
    one.send("free p");
    EXPECT_FALSE(one.answers(300));
    one.signal(SIGTERM);
    EXPECT_EQ(one.wait(soon(3000)), 128 + SIGTERM);
}

INSTANTIATE_TEST_SUITE_P(Of, FreeBehindAKernel,
                         testing::Values("held", "import", "token", "merged"),
                         [](const auto &name) { return name.param; });
