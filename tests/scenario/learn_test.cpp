// gpushare learn: which memory of a program stays as it was uploaded, and rules that share it.
#include "scenario/harness.hpp"

namespace {

struct Learned {
    Result result;
    std::string rules;
};

// Runs a puppet by what the file has; $$ in it is another number in every process.
Learned learn(World &world, const std::string &script,
              const std::vector<std::string> &options = {}) {
    write_file(world.path("script"), script);
    std::vector<std::string> line = {"learn", "--output", world.path("rules")};
    line.insert(line.end(), options.begin(), options.end());
    for (const std::string &word :
         {std::string("--"), std::string("sh"), std::string("-c"),
          "sed s/DOLLARS/$$/ '" + world.path("script") + "' >'" + world.path("script") +
              "'.$$ && exec '" + world.executable({}) + "' <'" + world.path("script") +
              "'.$$ >/dev/null"})
        line.push_back(word);
    const Result result = world.tool(line);
    return {result, read_file(world.path("rules"))};
}

// Two weights, then what changes: 4 MiB each. A buffer for copies, and memory of kernels.
const char *const SERVER = "malloc a 4194304\nupload a 0 4194304 1 sync\n"
                           "malloc b 4194304\nupload b 0 4194304 2 pinned\n"
                           "malloc c 4194304\nupload c 0 4194304 3 sync\n"
                           "launch s test_add c 1048576 1\nsync\n" // at once: nobody saw it before
                           "malloc staging 6291456\nupload staging 0 6291456 4 sync\nfree staging\n"
                           "malloc cache 8388608\nfill cache 1 8388608\nmalloc small 4096\n"
                           "sleep 4500\nexit 0\n";

std::string server() {
    return kernels() + "\nstream s\n" + SERVER;
}

bool has(const std::string &text, const std::string &size, const std::string &count,
         const std::string &why) {
    for (size_t at = 0, end; at < text.size(); at = end + 1) {
        end = std::min(text.find('\n', at), text.size());
        const std::string line = text.substr(at, end - at);
        if (contains(line, " " + size + " ") && contains(line, " " + count + " ") &&
            contains(line, why))
            return true;
    }
    return false;
}

} // namespace

struct Learn : testing::Test {
    World world;
};

TEST_F(Learn, TellsWhatStaysAsItWasUploaded) {
    const Learned learned = learn(world, server());
    const std::string &err = learned.result.err;
    EXPECT_EQ(learned.result.status, 0) << err;
    EXPECT_TRUE(has(err, "4 MiB", "2", "stays as it was uploaded")) << err;
    EXPECT_TRUE(has(err, "4 MiB", "1", "kernels change it")) << err;
    EXPECT_TRUE(has(err, "6 MiB", "1", "soon freed")) << err;
    EXPECT_TRUE(has(err, "8 MiB", "1", "not filled by copies")) << err;
    EXPECT_LACKS(err, "KiB");
    EXPECT_LACKS(err, " \n");
    EXPECT_HAS(err, "A second process saves 8 MiB (measured).");
    EXPECT_HAS(learned.rules, "\n[region puppet-1]\nprogram = puppet\nsize = 4MiB\n"
                              "index = 0..1\nrole = merge\nquiet = 0\n");
    EXPECT_LACKS(learned.rules, "puppet-2");
    EXPECT_HAS(err, "\nNext: gpushare run -c " + world.path("rules") + " -- ");
    EXPECT_EQ(world.tool({"check", world.path("rules")}).status, 0);
    EXPECT_EQ(world.entries("regions"), 0u);
}

TEST_F(Learn, ItsRulesMergeTwoProcesses) {
    world.config(learn(world, server()).rules);
    Puppet first(world), second(world);
    for (Puppet *each : {&first, &second}) {
        each->all({"malloc a 4194304", "upload a 0 4194304 1 sync", "malloc b 4194304"});
        each->must("upload b 0 4194304 2 sync");
    }
    EXPECT_TRUE(eventually([&] { return world.entries("regions") == 2; }, soon(5000)));
    for (Puppet *each : {&first, &second}) {
        each->all({"expect a 0 4194304 1", "expect b 0 4194304 2"});
        EXPECT_EQ(each->quit("exit 0"), 0);
    }
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

TEST_F(Learn, ReplicasAreMeasured) {
    const Learned learned =
        learn(world, "malloc a 4194304\nupload a 0 4194304 1 sync\nmalloc own 6291456\n"
                     "upload own 0 6291456 DOLLARS sync\nsleep 4500\nexit 0\n");
    const std::string &err = learned.result.err;
    EXPECT_EQ(learned.result.status, 0) << err;
    EXPECT_TRUE(has(err, "4 MiB", "1", "stays as it was uploaded")) << err;
    EXPECT_TRUE(has(err, "6 MiB", "1", "differs between the replicas")) << err;
    EXPECT_HAS(err, "saves 4 MiB (measured)");
    EXPECT_LACKS(learned.rules, "6MiB");
}

TEST_F(Learn, SaysWhatItDidNotWatchAndWhichKeyTakesIt) {
    const std::string made = "info\nvcreate h 8388608\nvcreate i 2097152\n";
    const std::string said = "One process made 10 MiB by cuMemCreate that was not watched: never "
                             "mapped, mapped twice, above 1 GiB, or open to more than its own "
                             "device.\n";
    Learned learned = learn(world, made + "sleep 200\nexit 0\n", {"-r1"});
    EXPECT_EQ(learned.result.status, 1);
    EXPECT_HAS(learned.result.err, said);
    learned = learn(
        world, made + "malloc a 4194304\nupload a 0 4194304 1 sync\nsleep 4500\nexit 0\n", {"-r1"});
    EXPECT_EQ(learned.result.status, 0) << learned.result.err;
    EXPECT_HAS(learned.result.err, said);
}

// As an allocator with expandable segments does: mappings of 8 MiB side by side.
std::string map(const std::string &name, unsigned count) {
    std::string lines = "vreserve " + name + " " + text(count * 8 * MiB) + "\n";
    for (unsigned i = 0; i < count; i++) {
        const std::string handle = name + text(i), at = text(i * 8 * MiB);
        lines += "vcreate " + handle + " 8388608\nvmap " + name + " " + at + " 8388608 " + handle +
                 "\nvaccess " + name + " " + at + " 8388608 3\n";
    }
    return lines;
}

// A copy goes over two of them.
std::string mapped() {
    return "info\n" + map("p", 2) + "upload p 0 16777216 1 sync\n";
}

TEST_F(Learn, WatchesMemoryOfCuMemCreateWhileItIsMapped) {
    const Learned learned =
        learn(world, mapped() + kernels() + "\nstream s\n" + map("q", 1) +
                         "upload q 0 8388608 2 sync\nlaunch s test_add q 1048576 1\nsync\n"
                         "sleep 4500\nexit 0\n");
    const std::string &err = learned.result.err;
    EXPECT_EQ(learned.result.status, 0) << err;
    EXPECT_TRUE(has(err, "8 MiB", "2", "stays as it was uploaded (cuMemCreate)")) << err;
    EXPECT_TRUE(has(err, "8 MiB", "1", "kernels change it (cuMemCreate)")) << err;
    EXPECT_HAS(err, "A second process saves 16 MiB (measured).");
    EXPECT_LACKS(err, "not watched");
    EXPECT_HAS(learned.rules, "size = 8MiB\nindex = 0..1\nrole = merge\ncreated = on\nquiet = 0\n");
    EXPECT_EQ(world.tool({"check", world.path("rules")}).status, 0);
    world.config(learned.rules);
    Puppet first(world), second(world);
    for (Puppet *each : {&first, &second}) {
        std::istringstream lines(mapped());
        for (std::string line; std::getline(lines, line);)
            each->must(line);
    }
    EXPECT_TRUE(eventually([&] { return world.entries("regions") == 2; }, soon(5000)));
    for (Puppet *each : {&first, &second}) {
        each->must("expect p 0 16777216 1");
        EXPECT_EQ(each->quit("exit 0"), 0);
    }
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

TEST_F(Learn, WhatIsSoonUnmappedIsLeftOut) {
    const Learned learned =
        learn(world, mapped() + "sleep 300\nvunmap p 8388608 8388608\nvrelease p1\n"
                                "sleep 4500\nexit 0\n");
    const std::string &err = learned.result.err;
    EXPECT_EQ(learned.result.status, 0) << err;
    EXPECT_TRUE(has(err, "8 MiB", "1", "stays as it was uploaded (cuMemCreate)")) << err;
    EXPECT_TRUE(has(err, "8 MiB", "1", "soon freed, as a buffer for copies is (cuMemCreate)"))
        << err;
    EXPECT_HAS(learned.rules, "index = 0\nrole = merge\ncreated = on\n");
}

TEST_F(Learn, OfOneReplicaItIsSupposed) {
    const Learned learned = learn(
        world, "malloc a 4194304\nupload a 0 4194304 DOLLARS sync\nsleep 4500\nexit 0\n", {"-r1"});
    EXPECT_HAS(learned.result.err, "saves 4 MiB (supposed, if it uploads the same).");
}

// The second one cannot bind its port, say.
TEST_F(Learn, WhereOneOfTwoFailsTheOtherCounts) {
    write_file(world.path("script"), "malloc a 4194304\nupload a 0 4194304 1 sync\nsleep 4500\n");
    const Result result =
        world.tool({"learn", "--", "sh", "-c",
                    "mkdir '" + world.path("port") + "' 2>/dev/null || exit 7; exec '" +
                        world.executable({}) + "' <'" + world.path("script") + "' >/dev/null"});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_HAS(result.err,
               "saves 4 MiB (supposed, if it uploads the same: of two at once, one failed).");
    EXPECT_HAS(result.out, "size = 4MiB\nrole = merge\n");
}

// Of two that want more than half of the card one, or both, find too little.
TEST_F(Learn, WhereTwoHaveNoRoomItIsSupposed) {
    SIM_ONLY("a card has more");
    world.environment["GPUSHARE_SIM_MEMORY"] = "192MiB";
    world.environment["GPUSHARE_SIM_ROOT"] += "-small";
    const std::string half = " 50331648\n";
    const Learned learned =
        learn(world, "malloc a" + half + "upload a 0 50331648 1 sync\nsleep 700\nmalloc b" + half +
                         "upload b 0 50331648 2 sync\nsleep 9000\nexit 0\n");
    const std::string &err = learned.result.err;
    EXPECT_EQ(learned.result.status, 0) << err;
    EXPECT_HAS(
        err, "saves 96 MiB (supposed, if it uploads the same: there is no room for two at once).");
    EXPECT_TRUE(has(err, "48 MiB", "2", "stays as it was uploaded")) << err;
}

// Two replicas load by threads, in orders of their own.
TEST_F(Learn, FindsTensorsWhereverTheyLie) {
    const Learned learned = learn(world,
                                  "malloc a 23068672\ntensors a 2 DOLLARS 4096 6144 4096 8192\n"
                                  "sleep 12000\nexit 0\n",
                                  {"--replicas=2"});
    const std::string &err = learned.result.err;
    EXPECT_EQ(learned.result.status, 0) << err;
    EXPECT_HAS(err, "saves 22 MiB (measured)");
    EXPECT_LACKS(err, "apart");
    EXPECT_HAS(learned.rules, "role = merge");
}

TEST_F(Learn, SaysWhatStaysApart) {
    const Learned learned = learn(world,
                                  "malloc a 20971520\nupload a 0 12582912 1 sync\n"
                                  "upload a 12582912 8388608 DOLLARS sync\nsleep 12000\nexit 0\n",
                                  {"--replicas=2"});
    const std::string &err = learned.result.err;
    EXPECT_HAS(err, "saves 12 MiB (measured)", "8 MiB beside that stays apart",
               "HF_DEACTIVATE_ASYNC_LOAD=1");
}

TEST_F(Learn, EndsTheCommandWhenItsTimeIsUp) {
    const int64_t begun = now_ms();
    const Learned learned =
        learn(world, "malloc a 4194304\nupload a 0 4194304 1 sync\nsleep 60000\n", {"--for=6s"});
    EXPECT_EQ(learned.result.status, 0) << learned.result.err;
    EXPECT_GE(now_ms() - begun, 6000);
    EXPECT_LT(now_ms() - begun, patient(30000));
    EXPECT_HAS(learned.rules, "size = 4MiB\nrole = merge\n") << learned.result.err;
}

TEST_F(Learn, WithoutARuleTheFileStaysAsItWas) {
    write_file(world.path("rules"), "mine\n");
    const Learned learned = learn(world, "malloc a 8388608\nfill a 1 8388608\nsleep 600\nexit 0\n");
    EXPECT_EQ(learned.result.status, 1);
    EXPECT_HAS(learned.result.err, "no rules: nothing stays as it was uploaded");
    EXPECT_EQ(learned.rules, "mine\n");
    EXPECT_EQ(learn(world, "malloc a 4096\nexit 3\n").result.status, 3);
}

// What the end of the program frees may have been there for good.
TEST_F(Learn, SaysThatTheRunWasTooShort) {
    const std::string weights = "malloc a 4194304\nupload a 0 4194304 1 sync\n";
    for (const char *rest : {"free a\nexit 0\n", "sleep 1200\nfree a\nexit 0\n"}) {
        const Learned learned = learn(world, weights + rest);
        EXPECT_TRUE(has(learned.result.err, "4 MiB", "1", "the run was too short to tell"))
            << learned.result.err;
        EXPECT_LACKS(learned.result.err, "soon freed");
    }
}

TEST_F(Learn, SeesNoPoolAndNoSmallMemory) {
    const Learned learned = learn(world, "pool a 8388608\nmalloc b 4096\nsleep 600\nexit 0\n");
    EXPECT_TRUE(has(learned.result.err, "8 MiB", "1", "memory of a pool")) << learned.result.err;
    EXPECT_LACKS(learned.result.err, "KiB");
}

TEST_F(Learn, LeavesTheProgramAsItIs) {
    world.environment["GPUSHARE_MODE"] = "audit";
    world.environment["GPUSHARE_LEARN"] = world.path("report");
    Puppet puppet(world);
    puppet.all({"malloc a 5000000", "upload a 0 5000000 1 default", "expect a 0 5000000 1",
                "free a", "malloc a 4194304", "reset"});
    EXPECT_EQ(puppet.quit("return"), 0);
    const std::string report = read_file(world.path("report"));
    for (const char *part : {"\"number\":1,\"size\":5000000,", "\"number\":2,\"size\":4194304,",
                             "\"caller\":\"puppet\""})
        EXPECT_HAS(report, part);
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

namespace {

// The rule merges what has been quiet for a second. What the program has is uploaded, and quiet for
// two seconds by the time that `then` comes.
Result check_rules(World &world, const std::string &then, const std::string &rule = "quiet = 1s\n",
                   const std::vector<std::string> &options = {}) {
    write_file(world.path("rules"),
               "[region w]\nprogram = puppet\nsize = 4MiB\nrole = merge\n" + rule);
    write_file(world.path("script"),
               kernels() + "\n" +
                   "stream s\nmalloc a 4194304\nupload a 0 4194304 1 sync\n"
                   "malloc b 4194304\nupload b 0 4194304 2 sync\n"
                   "malloc other 8388608\nupload other 0 8388608 3 sync\nsleep 2000\n" +
                   then);
    std::vector<std::string> line = {"learn", "--check", world.path("rules")};
    line.insert(line.end(), options.begin(), options.end());
    for (const std::string &word :
         {std::string("--"), std::string("sh"), std::string("-c"),
          "exec '" + world.executable({}) + "' <'" + world.path("script") + "' >/dev/null"})
        line.push_back(word);
    return world.tool(line);
}

} // namespace

using LearnCheck = Learn;

TEST_F(LearnCheck, AKernelThatWritesWhatWasQuietIsFound) {
    const Result result = check_rules(
        world, "launch s test_add b 1048576 1\nsync\nlaunch s test_add other 1048576 1\nsync\n"
               "sleep 1500\nexit 0\n");
    EXPECT_OUT_HAS(result, 1, world.path("rules") + ":1");
    EXPECT_TRUE(has(result.out, "4 MiB", "1", "WRITTEN by no copy or fill, at ")) << result.out;
    EXPECT_HAS(result.out, "quiet for ");
    EXPECT_HAS(result.out, "the last kernel that got a pointer to it: test_add");
    EXPECT_TRUE(has(result.out, "4 MiB", "1", "not written once it was quiet")) << result.out;
    EXPECT_LACKS(result.out, "8 MiB"); // which no rule takes
    EXPECT_HAS(result.err, "1 of 2 allocations that the rules take were written by a kernel");
    EXPECT_EQ(world.entries("regions"), 0u);
}

// The merger leaves alone what copies have not filled, and what a kernel has changed before.
TEST_F(LearnCheck, WhatWouldNotBeMergedMayBeWritten) {
    const Result result =
        check_rules(world,
                    "malloc half 4194304\nupload half 0 3145728 4 sync\n"
                    "malloc input 4194304\nupload input 0 4194304 5 sync\nsleep 700\n"
                    "launch s test_add input 1048576 1\nsync\nsleep 2500\n"
                    "launch s test_add input 1048576 1\nlaunch s test_add half+3145728 262144 1\n"
                    "sync\nsleep 1500\nexit 0\n",
                    "quiet = 1500ms\n");
    EXPECT_EQ(result.status, 0) << result.err << result.out;
    EXPECT_LACKS(result.out, "WRITTEN");
}

TEST_F(LearnCheck, WithoutQuietAWriteAtOnceIsFound) {
    const Result result = check_rules(world,
                                      "malloc c 4194304\nupload c 0 4194304 3 sync\n"
                                      "launch s test_add c 1048576 1\nsync\nsleep 1500\nexit 0\n",
                                      "quiet = 0\n");
    EXPECT_EQ(result.status, 1) << result.err << result.out;
    EXPECT_TRUE(has(result.out, "4 MiB", "2", "not written once it was quiet")) << result.out;
    EXPECT_HAS(result.err, "1 of 3 allocations");
}

TEST_F(LearnCheck, ReadsCopiesAndFillsAreAllowed) {
    const Result result = check_rules(
        world, "malloc sum 4096\nlaunch s test_read a 1048576 sum\nsync\n"
               "upload b 0 4194304 7 sync\nsleep 1700\nfill b 5 4194304\nupload a 4096 64 9 sync\n"
               "sleep 1700\nexit 0\n");
    EXPECT_EQ(result.status, 0) << result.err << result.out;
    EXPECT_TRUE(has(result.out, "4 MiB", "2", "not written once it was quiet")) << result.out;
    EXPECT_EQ(result.err, "");
}

TEST_F(LearnCheck, WhatIsWrittenBeforeItIsQuietIsNoMatter) {
    const Result result = check_rules(world,
                                      "launch s test_add b 1048576 1\nsync\nsleep 700\n"
                                      "exit 0\n",
                                      "quiet = 30s\n");
    EXPECT_EQ(result.status, 3) << result.err << result.out;
    EXPECT_TRUE(has(result.out, "4 MiB", "2", "would not have been merged")) << result.out;
    EXPECT_HAS(result.err, "nothing that the rules take was quiet for as long as they say");
}

TEST_F(LearnCheck, AFailureOfTheProgramIsToldApart) {
    Result result = check_rules(world, "sleep 500\nexit 1\n");
    EXPECT_ERR_HAS(result, 4, "the command failed with status 1");
    result = check_rules(world, "launch s test_add b 1048576 1\nsync\nsleep 1500\nexit 7\n");
    EXPECT_ERR_HAS(result, 1, "the command failed with status 7");
}

// As a server, which is ended: that is no failure.
TEST_F(LearnCheck, ItEndsTheProgramAfterATime) {
    const Result result =
        check_rules(world, "sleep 60000\n", "quiet = 1s\nindex = 1\n", {"--for=4s"});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_TRUE(has(result.out, "4 MiB", "1", "not written once it was quiet")) << result.out;
}
