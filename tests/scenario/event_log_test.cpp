// The event log: what happens to regions of real programs, and what the log keeps away from.
#include "scenario/harness.hpp"

namespace {

class EventLog : public testing::Test {
  protected:
    void SetUp() override {
        world.config(FRAMES);
        world.environment["GPUSHARE_EVENT_LOG"] = world.path("%c.events");
        world.environment["GPUSHARE_LOG_LEVEL"] = "info";
    }
    // The events of programs of this name, in the order in which they were written, but for the
    // one that each process begins with.
    std::vector<Json> events(const std::string &name, bool began = false) const {
        std::vector<Json> all;
        std::ifstream file(world.path(name + ".events"));
        for (std::string line; std::getline(file, line);) {
            const Json event = Json::parse(line);
            if ((event["event"].text == "began") == began)
                all.push_back(event);
        }
        return all;
    }
    // "created exported:rule freed:deferred"
    std::string words(const std::string &name) const {
        std::string text;
        for (const Json &event : events(name)) {
            const bool how = event.members.count("how") > 0;
            text += (text.empty() ? "" : " ") + event["event"].text +
                    (how ? ":" + event["how"].text : "");
        }
        return text;
    }
    World world;
};

TEST_F(EventLog, TellsOfARegionFromItsCreationToItsEnd) {
    Puppet one(world, producer()), two(world, consumer());
    one.must("malloc a " + std::to_string(big()));
    two.must("malloc b " + std::to_string(big()));
    one.must("free a");
    two.must("free b");
    EXPECT_TRUE(eventually([&] { return words("producer").find("late") != std::string::npos; }));
    two.quit("exit 0");
    one.quit("exit 0");
    EXPECT_EQ(words("producer"), "created exported:rule finding freed:deferred freed:late ended");
    EXPECT_EQ(words("consumer"), "opened:rule closed:rule ended");
    const Json opened = events("consumer").at(0), created = events("producer").at(0);
    EXPECT_EQ(opened["region"].text, created["region"].text);
    EXPECT_EQ(opened["name"].text, "frames");
    EXPECT_EQ(created["size"].number, double(big()));
    if (on_gpu())
        return; // there is no jsonschema
    std::vector<std::string> check = {"python3", "tests/tool/check_lines.py",
                                      "docs/event.schema.json", world.path("producer.events"),
                                      world.path("consumer.events")};
    const Result valid = command(check);
    EXPECT_EQ(valid.status, 0) << valid.out << valid.err;
}

TEST_F(EventLog, SaysOfAFreeThatTheMemoryIsKept) {
    world.config(rule("frames", "producer", "export", "backing = vmm\nkeep = 10s\n") +
                 rule("frames", "consumer", "import"));
    Puppet one(world, producer()), two(world, consumer());
    one.must("malloc a " + std::to_string(big()));
    two.must("malloc b " + std::to_string(big()));
    one.must("free a");
    one.quit("exit 0");
    EXPECT_EQ(words("producer"), "created exported:rule freed:kept ended");
}

TEST_F(EventLog, BeginsWithTheArgumentsOfTheProgram) {
    const std::string line = "printf 'malloc a 4194304\\nfree a\\nexit 0\\n' | '" +
                             world.executable(producer()) + "' --gpu 1 >/dev/null";
    world.environment["GPUSHARE_LOG"] = "stderr";
    const std::string runtime = hip().empty() ? "--runtime=cuda" : "--runtime=hip";
    const Result result = world.tool({"run", runtime, "--", "sh", "-c", line});
    EXPECT_EQ(result.status, 0) << result.err;
    const auto began = events("producer", true);
    ASSERT_EQ(began.size(), 1u);
    EXPECT_EQ(began[0]["arguments"].text, "--gpu 1");
    EXPECT_EQ(words("producer"), "created exported:rule freed:now ended");
}

TEST_F(EventLog, HasNothingOfPrivateMemory) {
    Puppet one(world);
    one.all({"malloc a 4096", "free a"});
    one.quit("exit 0");
    EXPECT_EQ(words("puppet"), "ended");
}

TEST_F(EventLog, HasWhatTheProgramSharesByItself) {
    world.environment["GPUSHARE_MODE"] = "audit";
    Puppet one(world), two(world);
    one.must("malloc a " + std::to_string(big()));
    const std::string handle = one.must("get a");
    two.must("open b " + handle);
    two.must("open c " + handle); // only the first open and the last close count
    two.all({"close c", "close b"});
    one.must("free a");
    const std::string once = "opened:program finding closed:program ",
                      each = "opened:program opened:program finding closed:program closed:program ";
    EXPECT_EQ(words("puppet"),
              "exported:program " + (hip() == "hip6" ? each : once) + "freed:now"); // two pointers
}

TEST_F(EventLog, SaysHowLongAnImportWaited) {
    Puppet two(world, consumer());
    two.must("sync"); // a card's context takes longer than the wait
    two.send("malloc b " + std::to_string(big()));
    EXPECT_FALSE(two.answers(200));
    Puppet one(world, producer());
    one.must("malloc a " + std::to_string(big()));
    EXPECT_EQ(two.receive().code, 0);
    EXPECT_EQ(words("consumer"), "opened:rule waited:import");
    EXPECT_GT(events("consumer").at(1)["ns"].number, 100e6);
}

TEST_F(EventLog, SumsUpWhatIsMerged) {
    world.config(rule("weights", "puppet", "merge", "quiet = 100ms\n"));
    Puppet one(world), two(world);
    for (Puppet *each : {&one, &two}) {
        each->must("malloc p " + std::to_string(6 * MiB));
        each->must("upload p 0 " + std::to_string(6 * MiB) + " 1 sync");
    }
    const auto sum = [&](const std::string &event, const std::string &member) {
        double all = 0;
        for (const Json &each : events("puppet"))
            if (each["event"].text == event && each.members.count(member))
                all += each[member].number;
        return all;
    };
    EXPECT_TRUE(eventually([&] { return sum("merged", "size") == 12.0 * MiB; }));
    EXPECT_EQ(sum("merged", "saved"), 6.0 * MiB);
    two.must("upload p 0 " + std::to_string(6 * MiB) + " 2 sync");
    EXPECT_TRUE(eventually([&] { return sum("unmerged", "size") == 6.0 * MiB; }));
}

TEST_F(EventLog, AForkedChildWritesItsOwn) {
    world.environment["GPUSHARE_EVENT_LOG"] = world.path("%p.events");
    Puppet one(world, producer());
    const auto child = one.spawn();
    child->all({"malloc a " + std::to_string(big()), "free a"});
    child->quit("exit 0");
    one.quit("exit 0");
    EXPECT_EQ(words(std::to_string(child->pid)), "created exported:rule freed:now ended");
    EXPECT_EQ(words(pid(one)), "");
}

// The descriptor stays open; what a program makes of its number must not be written to.
TEST_F(EventLog, IsNotWrittenIntoWhatTheProgramHasInItsPlace) {
    Puppet one(world, producer());
    one.must("malloc a " + std::to_string(big()));
    EXPECT_EQ(one.must("refile " + world.path("producer.events") + " " + world.path("own")), "1");
    one.must("free a");
    EXPECT_EQ(words("producer"), "created exported:rule freed:now");
    EXPECT_EQ(read_file(world.path("own")), "");
}

TEST_F(EventLog, DoesNotFollowALink) {
    std::filesystem::create_symlink(world.path("target"), world.path("producer.events"));
    Puppet one(world, producer());
    one.all({"malloc a " + std::to_string(big()), "free a"});
    EXPECT_FALSE(std::filesystem::exists(world.path("target")));
    const std::string said = one.errors();
    EXPECT_HAS(said, "cannot write to the event log");
    EXPECT_EQ(said.find("event log", said.find("event log") + 9), std::string::npos) << "once";
}

TEST_F(EventLog, EndsWithLogMax) {
    world.environment["GPUSHARE_LOG_MAX"] = "1KiB";
    Puppet one(world);
    for (int i = 0; i < 5; i++) {
        one.all({"malloc a " + std::to_string(big()), "get a", "free a"});
    }
    const std::string said = words("puppet");
    EXPECT_EQ(said.substr(said.rfind(' ') + 1), "full") << said;
}

} // namespace
