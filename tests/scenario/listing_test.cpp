// gpushare run --list-allocations: what a program allocates, and the rules that take just that.
#include "scenario/harness.hpp"

#include <fstream>
#include <future>

namespace {

// tests/apps/server.c: five layers from one place, of one size with the vocabulary of another.
std::string server() {
    return build_directory() + "/tests/apps/server";
}

std::string shell_server() {
    return "'" + server() + "'";
}

std::string list(const World &world, const std::vector<std::string> &command) {
    std::vector<std::string> line = {"run", "--list-allocations", "--output", world.path("list"),
                                     "--"};
    line.insert(line.end(), command.begin(), command.end());
    const Result result = world.tool(line);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return read_file(world.path("list"));
}

Json json_list(const World &world, const std::vector<std::string> &command) {
    std::vector<std::string> line = {"run",      "--list-allocations", "--json",
                                     "--output", world.path("list"),   "--"};
    line.insert(line.end(), command.begin(), command.end());
    EXPECT_EQ(world.tool(line).status, 0);
    return Json::parse(read_file(world.path("list")));
}

size_t regions(const World &world, size_t users) {
    size_t count = 0;
    const Json list = world.ls();
    for (const Json &region : list.elements)
        count += region["state"].text == "ready" && region["users"].size() == users;
    return count;
}

// Two servers with these rules; while both serve, `shared` regions have one user each.
void expect_shared(World &world, const std::string &rules, size_t shared) {
    world.config(rules);
    const Result check = world.tool({"check", world.path("config")});
    EXPECT_EQ(check.status, 0) << check.err;
    const auto serve = [&](const std::string &stop) {
        std::remove(world.path(stop).c_str());
        return std::async(std::launch::async, [&world, stop] {
            return world.tool({"run", "--", server(), world.path(stop)});
        });
    };
    const auto end = [&](std::future<Result> &run, const std::string &stop) {
        std::ofstream(world.path(stop)) << "now";
        const Result result = run.get();
        EXPECT_EQ(result.status, 0);
        EXPECT_EQ(result.out, "served\n");
        EXPECT_EQ(result.err, "");
    };
    auto first = serve("first");
    EXPECT_TRUE(eventually([&] { return regions(world, 0) == shared; }, soon(5000)));
    auto second = serve("second");
    EXPECT_TRUE(eventually([&] { return regions(world, 1) == shared; }, soon(5000)));
    end(second, "second"); // the exporter is last
    end(first, "first");
}

std::string without(const std::string &rules, const std::string &name) {
    const size_t begin = rules.find("[region " + name + "]");
    EXPECT_NE(begin, std::string::npos) << name << "\n" << rules;
    const std::string role = "role = auto\n";
    const size_t end = rules.find(role, begin) + role.size();
    return rules.substr(0, begin) + rules.substr(end);
}

} // namespace

TEST(Listing, IsOnStderrAndTheRunIsAsItWouldBe) {
    World world;
    world.config("[region all-{n}]\nindex = *\nrole = auto\n"); // it only observes
    const Result result = world.tool(
        {"run", "--list-allocations", "--", "sh", "-c", shell_server() + "; echo $? >&2; exit 7"});
    EXPECT_EQ(result.status, 7);
    EXPECT_EQ(result.out, "served\n");
    EXPECT_EQ(result.err.find("0\n# gpushare: 12 allocations of device memory, 29.8 MiB, by 1 "
                              "process\n#\n"),
              0u)
        << result.err;
    EXPECT_EQ(world.entries("regions"), 0u);
}

TEST(Listing, TellsThePlaceTheCallAndTheIndices) {
    World world;
    const std::string text = list(world, {server()});
    EXPECT_TRUE(contains(text, "# NO  COUNT     SIZE  CALL             GPU  PROGRAM")) << text;
    for (const char *rule :
         {"\n[region server-1-{n}]\nprogram = server\nsize = 4MiB\nindex = 0..2\n",
          "\n[region server-2]\nprogram = server\nsize = 4MiB\nindex = 3\n",
          "\n[region server-3-{n}]\nprogram = server\nsize = 4MiB\nindex = 4..5\n",
          "\n[region server-4-{n}]\nprogram = server\nsize = 1000000\nindex = 0..2\n",
          "caller = server\nrole = auto\n", "# 2: 1 of 4MiB, by load_vocabulary at ",
          "\n# Memory of a pool: only a rule with backing = vmm takes it, and counts it with the "
          "others.\n",
          "#     #0 0x"})
        EXPECT_TRUE(contains(text, rule)) << rule << text;
    const Json groups = json_list(world, {server()});
    ASSERT_EQ(groups.size(), 5u);
    EXPECT_EQ(groups[0]["number"].number, 3);
    EXPECT_EQ(groups[0]["index"].number, 4);
    EXPECT_EQ(groups[0]["last_index"].number, 5);
    EXPECT_EQ(groups[0]["stack"][0]["function"].text, "load_layer");
    EXPECT_EQ(groups[3]["size"].number, 1000000);
    EXPECT_EQ(groups[4]["api"].text, "cudaMallocAsync");
    EXPECT_EQ(groups[4]["kind"].text, "pool");
    EXPECT_EQ(groups[4]["rule"].kind, Json::Null);
}

TEST(Listing, CountsInEachProcessAnew) {
    World world;
    const Json groups = json_list(
        world, {"sh", "-c", shell_server() + " & " + shell_server() + "; wait; exec " + server()});
    ASSERT_EQ(groups.size(), 5u);
    EXPECT_EQ(groups[2]["index"].number, 0);
    EXPECT_EQ(groups[2]["last_index"].number, 2);
    EXPECT_EQ(groups[2]["processes"].number, 3);
    EXPECT_EQ(groups[2]["count"].number, 9);
}

TEST(Listing, CountsOnEachDeviceAnew) {
    SIM_ONLY("two cards, whatever there is");
    World world;
    world.environment["GPUSHARE_SIM_DEVICES"] = "2";
    const std::string text = list(
        world, {"sh", "-c",
                "printf 'malloc a 4096\\nmalloc b 4096\\ndevice 1\\nmalloc c 4096\\nreturn\\n' "
                "| '" +
                    world.executable({}) + "' >/dev/null"});
    EXPECT_TRUE(contains(text, "index = 0..1\ndevice = 0\n")) << text;
    EXPECT_TRUE(contains(text, "index = 0\ndevice = 1\n")) << text;
}

TEST(Listing, ItsRulesShareJustThat) {
    World world;
    const std::string rules = list(world, {server()});
    expect_shared(world, rules, 6);
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}

TEST(Listing, EachOfItsRulesIsRightWithoutTheOthers) {
    World world;
    const std::string weights = without(list(world, {server()}), "server-4-{n}");
    expect_shared(world, without(weights, "server-3-{n}"), 4);
    expect_shared(world, without(weights, "server-2"), 5);
    expect_shared(world, without(without(weights, "server-1-{n}"), "server-2"), 2);
    EXPECT_EQ(world.findings().size(), 0u) << world.logs();
}
