// gpushare ls: what is listed, in which words, and what scripts get.
#include "harness.hpp"
#include "json.hpp"

static std::string line_with(const std::string &text, const std::string &part) {
    size_t at = text.find(part);
    if (at == std::string::npos)
        return "";
    size_t start = text.rfind('\n', at);
    start = start == std::string::npos ? 0 : start + 1;
    return text.substr(start, text.find('\n', at) - start);
}

struct Ls : testing::Test {
    Shared shared;
};

TEST_F(Ls, SaysPlainlyThatThereIsNothing) {
    Result result = shared.tool({"ls"});
    EXPECT_OUT(result, 0, "No shared regions in " + shared.root.path + "/default.\n");
    EXPECT_EQ(result.err, "");
}

TEST_F(Ls, ADirectoryThatNoProgramCanMakeIsNamed) {
    const Temporary root("/dev/shm");
    for (const char *verb : {"ls", "gc", "metrics"}) {
        const Result result = tool({verb}, {{"GPUSHARE_DIR", root.path + "/a/b"}});
        EXPECT_ERR(result, 0,
                   std::string("gpushare: ") + verb + ": warning: there is no " + root.path +
                       "/a: programs make " + root.path +
                       "/a/b in it, but not what is above (mkdir -p)\n");
    }
}

TEST_F(Ls, ADirectoryThatIsNotThereYetIsEmpty) {
    Temporary root("/dev/shm");
    Result result =
        tool({"ls"}, {{"GPUSHARE_DIR", root.path + "/none"}, {"GPUSHARE_NAMESPACE", "x"}});
    EXPECT_OUT(result, 0, "No shared regions in " + root.path + "/none/x.\n");
    EXPECT_NE(access((root.path + "/none").c_str(), F_OK), 0) << "ls must not make it";
}

TEST_F(Ls, JsonOfNothingIsAnEmptyArray) {
    Result result = shared.tool({"ls", "--json"});
    EXPECT_EQ(result.out, "[]\n");
    EXPECT_EQ(result.status, 0);
}

// Each character of the name has three bytes, and two columns.
TEST_F(Ls, AlignsNamesOfAnyScript) {
    const std::string name = "\u6a21\u578b";
    Peer wide(shared, name), narrow(shared, "four");
    shared.region(wide.owner, "first", 1);
    shared.region(narrow.owner, "second", 2);
    const std::string list = shared.tool({"ls"}).out;
    const std::string first = line_with(list, "first"), second = line_with(list, "second");
    const size_t at = first.find(name), other = second.find("four");
    ASSERT_NE(at, std::string::npos) << list;
    ASSERT_NE(other, std::string::npos) << list;
    EXPECT_EQ(at, other);
    EXPECT_EQ(first.find(" s  "), second.find(" s  ") + 2) << list;
    const Result shown = shared.tool({"show", name});
    EXPECT_HAS(shown.out, "Process " + name + " ") << shown.err;
}

struct LsOfOne : Ls {
    Peer producer{shared, "producer"};
};

TEST_F(LsOfOne, AGpuIsToldFromTheOthers) {
    shared.region(producer.owner, "one");
    shared.region(producer.owner, "two", 2, GPS_STATE_READY, 64u << 20, 1);
    const std::string out = shared.tool({"ls"}).out;
    EXPECT_HAS(line_with(out, "one"), "  GPU-5d6e7f90-a1b2  ") << out;
    EXPECT_HAS(line_with(out, "two"), "  GPU-5d6e7f90-a1b3  ") << out;
}

TEST_F(LsOfOne, ATableRowSaysAllOfARegion) {
    auto record = shared.region(producer.owner, "frames");
    Peer first(shared, "consumer", {{record.id}});
    Peer second(shared, "viewer", {{record.id}});
    Result result = shared.tool({"ls"});
    EXPECT_ERR(result, 0, "");
    std::string row = line_with(result.out, "frames");
    EXPECT_HAS(row, id_text(record.id).substr(0, 8), "  64 MiB  GPU-5d6e7f90  ready  ",
               "producer " + pid_text(producer.owner) + "  ");
    EXPECT_TRUE(contains(row, "90 s") || contains(row, "91 s")) << row;
    EXPECT_HAS(row, "2: ", "consumer " + pid_text(first.owner), "viewer " + pid_text(second.owner));
    EXPECT_EQ(result.out.substr(0, 4), "NAME");
    EXPECT_LACKS(result.out, " \n") << "no trailing blanks";
    EXPECT_LACKS(result.out, "\033") << "no colours in a pipe";
}

TEST_F(LsOfOne, ColumnsAlign) {
    shared.region(producer.owner, "a", 1, GPS_STATE_READY, 4096);
    shared.region(producer.owner, "a-much-longer-name", 2, GPS_STATE_CLOSING, 3u << 30);
    Result result = shared.tool({"ls"});
    std::string title = line_with(result.out, "NAME"), row = line_with(result.out, "a  ");
    EXPECT_EQ(title.find("GPU"), row.find("GPU-"));
    EXPECT_EQ(title.find("OWNER"), row.find("producer"));
    EXPECT_EQ(title.find("SIZE") + 4, row.find("4 KiB") + 5) << result.out;
}

TEST_F(Ls, AFilterLeavesTheRegionsThatFitIt) {
    Peer producer(shared, "producer"), other(shared, "other");
    const auto record = shared.region(producer.owner, "frames", 1);
    shared.region(producer.owner, "frames-late", 2, GPS_STATE_CLOSING);
    shared.region(other.owner, "weights", 3, GPS_STATE_READY, 64u << 20, 1);
    Peer viewer(shared, "viewer", {{record.id}});
    const auto names = [&](std::vector<std::string> filters) {
        filters.insert(filters.begin(), {"ls", "--json"});
        const Json list = Json::parse(shared.tool(filters).out);
        std::string found;
        for (size_t i = 0; i < list.size(); i++)
            found += list[i]["name"].text + " ";
        return found;
    };
    EXPECT_EQ(names({"--filter", "name=frames"}), "frames ");
    EXPECT_EQ(names({"--filter", "name=frames*"}), "frames frames-late ");
    EXPECT_EQ(names({"--filter", "name=frames*", "--filter=state=ready"}), "frames ");
    EXPECT_EQ(names({"-f", "id=" + id_text(record.id).substr(0, 8)}), "frames ");
    EXPECT_EQ(names({"-f", "gpu=GPU-5d6e7f90-a1b3"}), "weights ");
    EXPECT_EQ(names({"-f", "backing=token"}), "");
    EXPECT_EQ(names({"-f", "owner=other"}), "weights ");
    EXPECT_EQ(names({"-f", "owner=" + pid_text(other.owner)}), "weights ");
    EXPECT_EQ(names({"-f", "user=view*"}), "frames ");
    EXPECT_LACKS(shared.tool({"ls", "-f", "user=viewer"}).out, "weights");
    EXPECT_EQ(shared.tool({"ls", "-f", "name=x"}).out, "No shared region fits.\n");
}

TEST_F(Ls, AFilterOfAnUnknownKeyIsRefusedWithThoseThatThereAre) {
    for (const char *filter : {"nam=x", "frames", "=x", ""}) {
        const Result result = shared.tool({"ls", "--filter", filter});
        EXPECT_ERR(result, 2,
                   "gpushare: ls: --filter '" + std::string(filter) +
                       "' is no KEY=VALUE with a known key; allowed: name=, id=, gpu=, "
                       "state=, backing=, owner=, user=\n");
    }
    const Result result = shared.tool({"ls", "--filter=state=read"});
    EXPECT_ERR(result, 2,
               "gpushare: ls: --filter 'state=read' fits nothing; allowed for state: "
               "exporting, ready, final, closing, orphaned, freed, dead, offloaded\n");
    EXPECT_EQ(shared.tool({"ls", "--filter=backing=ipc", "--filter=state=dead"}).status, 0);
}

TEST_F(LsOfOne, EveryStateHasItsWord) {
    shared.region(producer.owner, "w", 1, GPS_STATE_WRITING);
    shared.region(producer.owner, "r", 2, GPS_STATE_READY);
    shared.region(producer.owner, "f", 3, GPS_STATE_FINAL);
    shared.region(producer.owner, "c", 4, GPS_STATE_CLOSING);
    Result result = shared.tool({"ls"});
    for (const char *word : {"exporting", "ready", "final", "closing"})
        EXPECT_HAS(result.out, word) << word << "\n" << result.out;
    auto list = Json::parse(shared.tool({"ls", "--json"}).out);
    ASSERT_EQ(list.size(), 4u);
    EXPECT_EQ(list[0]["state"].text, "closing");
    EXPECT_EQ(list[1]["state"].text, "final");
    EXPECT_EQ(list[2]["state"].text, "ready");
    EXPECT_EQ(list[3]["state"].text, "exporting");
}

TEST_F(LsOfOne, TombstonesAppearOnlyWithAll) {
    const gps_region_record record = shared.region(producer.owner, "gone", 1, GPS_STATE_FREED);
    EXPECT_LACKS(shared.tool({"ls"}).out, "gone"); // as 0.2.0 leaves it
    ASSERT_EQ(0, gps_region_bury(&shared.store, &record));
    EXPECT_LACKS(shared.tool({"ls"}).out, "gone");
    EXPECT_EQ(shared.tool({"ls", "--json"}).out, "[]\n");
    for (const char *all : {"--all", "-a"})
        EXPECT_HAS(line_with(shared.tool({"ls", all}).out, "gone"), "  freed  ");
    EXPECT_EQ(Json::parse(shared.tool({"ls", "--all", "--json"}).out)[0]["state"].text, "freed");
}

TEST_F(LsOfOne, AFreedRegionThatIsStillHeldIsListed) {
    auto record = shared.region(producer.owner, "freed-under-us", 1, GPS_STATE_FREED);
    Peer consumer(shared, "consumer", {{record.id}});
    EXPECT_HAS(line_with(shared.tool({"ls"}).out, "freed-under-us"), "  freed  ");
    ASSERT_EQ(0, gps_region_bury(&shared.store, &record));
    EXPECT_HAS(line_with(shared.tool({"ls"}).out, "freed-under-us"), "  freed  ");
    EXPECT_EQ(Json::parse(shared.tool({"ls", "--json"}).out)[0]["users"].size(), 1u);
    EXPECT_EQ(Json::parse(shared.tool({"ls", "--all", "--json"}).out).size(), 1u);
}

TEST_F(LsOfOne, ARegionOfADeadOwnerThatIsHeldIsOrphaned) {
    auto record = shared.region(producer.owner, "frames");
    Peer consumer(shared, "consumer", {{record.id}});
    producer.kill();
    Result result = shared.tool({"ls"});
    EXPECT_HAS(line_with(result.out, "frames"), "  orphaned  ") << result.out;
    EXPECT_LACKS(result.out, "gpushare gc") << "gc would keep it";
}

TEST_F(LsOfOne, ARegionOfTheDeadThatNobodyHoldsIsOnlyCounted) {
    shared.region(producer.owner, "frames");
    producer.kill();
    Result result = shared.tool({"ls"});
    EXPECT_EQ(
        result.out,
        "No shared regions in " + shared.root.path +
            "/default.\n\n1 region of dead processes not shown. Remove it with: gpushare gc\n");
    result = shared.tool({"ls", "--all"});
    EXPECT_HAS(line_with(result.out, "frames"), "  dead  ") << result.out;
    shared.region(producer.owner, "more", 2);
    result = shared.tool({"ls", "--all"});
    EXPECT_HAS(result.out, "\n\n2 regions of dead processes. Remove them with: gpushare gc\n");
}

TEST_F(LsOfOne, AnOwnerWithoutAFileIsDead) {
    shared.region(producer.owner, "frames");
    producer.kill();
    char file[GPS_PROC_NAME];
    gps_owner_format(&producer.owner, file);
    ASSERT_EQ(unlink((std::string(shared.store.path) + "/procs/" + file).c_str()), 0);
    EXPECT_EQ(Json::parse(shared.tool({"ls", "-a", "--json"}).out)[0]["state"].text, "dead");
}

TEST_F(LsOfOne, AnImporterThatDiedIsNoUser) {
    auto record = shared.region(producer.owner, "frames");
    Peer consumer(shared, "consumer", {{record.id}});
    consumer.kill();
    EXPECT_HAS(line_with(shared.tool({"ls"}).out, "frames"), " s  0");
}

TEST_F(LsOfOne, AProcessThatHoldsARegionTwiceIsOneUser) {
    auto record = shared.region(producer.owner, "frames");
    Peer consumer(shared, "consumer", {{record.id}, {record.id, 0x7f1000000000}});
    Result result = shared.tool({"ls"});
    EXPECT_HAS(result.out, "  1: consumer " + pid_text(consumer.owner) + "\n");
    EXPECT_EQ(Json::parse(shared.tool({"ls", "--json"}).out)[0]["users"].size(), 1u);
}

TEST_F(LsOfOne, AnIntentCountsAsAUser) {
    auto record = shared.region(producer.owner, "frames");
    Peer consumer(shared, "consumer", {{record.id, 0, GPS_SLOT_INTENT}});
    EXPECT_HAS(shared.tool({"ls"}).out, "  1: consumer");
}

TEST_F(LsOfOne, ManyUsersAreCountedNotAllNamed) {
    auto record = shared.region(producer.owner, "frames");
    std::vector<std::unique_ptr<Peer>> consumers;
    for (int i = 0; i < 6; i++)
        consumers.push_back(
            std::make_unique<Peer>(shared, "consumer", std::vector<Hold>{{record.id}}));
    Result result = shared.tool({"ls"});
    EXPECT_HAS(result.out, "  6: consumer ", " and 2 more\n");
    EXPECT_EQ(Json::parse(shared.tool({"ls", "--json"}).out)[0]["users"].size(), 6u);
}

TEST_F(Ls, OnePidInTwoNamespacesIsTwoProcesses) {
    Peer one(shared, "server", {}, 4026532201, 7), two(shared, "server", {}, 4026532333, 7);
    auto first = shared.region(one.owner, "one", 1);
    auto second = shared.region(two.owner, "two", 2);
    Peer reader(shared, "reader", {{first.id}, {second.id}}, 4026532201, 9);
    Result result = shared.tool({"ls"});
    EXPECT_HAS(line_with(result.out, "one "), "server 7@4026532201") << result.out;
    EXPECT_HAS(line_with(result.out, "two "), "server 7@4026532333") << result.out;
    EXPECT_HAS(result.out, "1: reader 9@4026532201");
    auto list = Json::parse(shared.tool({"ls", "--json"}).out);
    EXPECT_EQ(list[0]["owner"]["pid"].text, "7");
    EXPECT_EQ(list[0]["owner"]["pid_ns"].text, "4026532201");
    EXPECT_EQ(list[1]["owner"]["pid_ns"].text, "4026532333");
    EXPECT_EQ(list[1]["users"][0]["pid_ns"].text, "4026532201");
}

TEST_F(LsOfOne, JsonHasTheMembersThatScriptsRelyOn) {
    auto record = shared.region(producer.owner, "frames", 1, GPS_STATE_READY, 12345678901);
    Peer consumer(shared, "consumer", {{record.id}});
    shared.region(producer.owner, "", 2);
    auto list = Json::parse(shared.tool({"ls", "--json"}).out);
    ASSERT_EQ(list.size(), 2u);
    const Json &region = list[0];
    EXPECT_EQ(region.size(), 9u);
    EXPECT_EQ(region["id"].text, id_text(record.id));
    EXPECT_EQ(region["name"].text, "frames");
    EXPECT_EQ(region["size"].text, "12345678901");
    EXPECT_EQ(region["device"].text, "GPU-5d6e7f90-a1b2-c3d4-e5f6-0718293a4b5c");
    EXPECT_EQ(region["state"].text, "ready");
    EXPECT_EQ(region["backing"].text, "ipc");
    EXPECT_EQ(region["owner"]["pid"].text, pid_text(producer.owner));
    EXPECT_EQ(region["owner"]["command"].text, "producer");
    EXPECT_EQ(region["users"][0]["command"].text, "consumer");
    EXPECT_EQ(region["users"][0]["pid"].text, pid_text(consumer.owner));
    EXPECT_NEAR(region["age"].number, 90, 20);
    EXPECT_EQ(list[1]["name"].kind, Json::Null);
    EXPECT_EQ(list[1]["users"].size(), 0u);
}

TEST_F(Ls, JsonIsValidWhateverACommandIsCalled) {
    Peer odd(shared, "a \"quoted\\\" <name>");
    shared.region(odd.owner, "x");
    auto list = Json::parse(shared.tool({"ls", "--json"}).out);
    EXPECT_EQ(list[0]["owner"]["command"].text, "a \"quoted\\\" <name>");
}

TEST_F(LsOfOne, NamedRegionsComeFirstInOrder) {
    shared.region(producer.owner, "", 1);
    shared.region(producer.owner, "b", 2);
    shared.region(producer.owner, "a", 3);
    auto list = Json::parse(shared.tool({"ls", "--json"}).out);
    EXPECT_EQ(list[0]["name"].text, "a");
    EXPECT_EQ(list[1]["name"].text, "b");
    EXPECT_EQ(list[2]["name"].kind, Json::Null);
    EXPECT_HAS(shared.tool({"ls"}).out, "\n-  ");
}

TEST_F(LsOfOne, ADamagedRecordIsWarnedAboutAndSkipped) {
    shared.region(producer.owner, "good", 1);
    auto bad = shared.region(producer.owner, "bad", 2);
    std::string path = shared.regions() + id_text(bad.id), bytes = read_file(path);
    bytes[60] ^= 1;
    write_file(path, bytes);
    Result result = shared.tool({"ls"});
    EXPECT_ERR(result, 0,
               "gpushare: ls: warning: " + path +
                   ": checksum does not match; skipped, remove it with: gpushare gc\n");
    EXPECT_HAS(result.out, "good");
    EXPECT_LACKS(result.out, "bad");
    result = shared.tool({"ls", "--json"});
    EXPECT_EQ(Json::parse(result.out).size(), 1u) << "the warning does not mix with JSON";
}

TEST_F(LsOfOne, ADamagedProcessFileIsWarnedAbout) {
    std::string file = std::string(shared.store.path) + "/procs/1.2.3.00000000000000ff";
    write_file(file, "nonsense");
    EXPECT_ERR_HAS(shared.tool({"ls"}), 0, "gpushare: ls: warning: " + file + ": ");
}

TEST_F(LsOfOne, ColoursOnlyOnATerminalWithoutNoColor) {
    shared.region(producer.owner, "frames");
    EXPECT_HAS(shared.tool({"ls"}, true).out, "\033[32mready\033[0m");
    EXPECT_LACKS(shared.tool({"ls"}, true, {{"NO_COLOR", "1"}}).out, "\033");
    EXPECT_HAS(shared.tool({"ls"}, true, {{"NO_COLOR", ""}}).out, "\033");
    EXPECT_LACKS(shared.tool({"ls"}, true, {{"TERM", "dumb"}}).out, "\033");
}

TEST_F(Ls, RefusesADirectoryThatIsOpenToOthers) {
    chmod(shared.root.path.c_str(), 0755);
    Result result = shared.tool({"ls"});
    EXPECT_OUT(result, 1, "");
    const std::string root = shared.root.path,
                      open = " is open to others (mode 0755); close it: chmod 700 ";
    EXPECT_EQ(result.err,
              "gpushare: ls: cannot use " + root + "/default: " + root + open + root + "\n");
    for (const char *verb : {"metrics", "keeper", "gc"})
        EXPECT_HAS(shared.tool({verb}).err, open + root + "\n") << verb;
    chmod(root.c_str(), 0700);
    chmod(shared.regions().c_str(), 0755);
    EXPECT_HAS(shared.tool({"ls"}).err, open + root + "/default/regions\n");
}

TEST_F(Ls, RefusesBadWordsForTheDirectory) {
    Result result = tool({"ls"}, {{"GPUSHARE_DIR", "relative"}});
    EXPECT_ERR(result, 1, "gpushare: ls: GPUSHARE_DIR='relative' must be an absolute path\n");
    result = tool({"ls"}, {{"GPUSHARE_DIR", "/tmp"}, {"GPUSHARE_NAMESPACE", "a b"}});
    EXPECT_ERR(result, 1,
               "gpushare: ls: GPUSHARE_NAMESPACE='a b' is no name; allowed: 1 to 127 of "
               "[A-Za-z0-9._-] without a leading dot\n");
}

TEST_F(LsOfOne, SeparateNamespacesAreSeparate) {
    shared.region(producer.owner, "frames");
    EXPECT_HAS(shared.tool({"ls"}).out, "frames");
    Result other = shared.tool({"ls"}, false, {{"GPUSHARE_NAMESPACE", "other"}});
    EXPECT_EQ(other.out, "No shared regions in " + shared.root.path + "/other.\n");
}
