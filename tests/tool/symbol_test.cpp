// Frames explained: functions, lines, inlined calls, other languages' names, files that changed.
#include "harness.hpp"
#include "logmaker.hpp"

namespace fs = std::filesystem;

namespace {

// tests/apps/where, copied, for it is changed.
class Symbol : public testing::Test {
  protected:
    void SetUp() override {
        const std::string original =
            fs::absolute(fs::path(tool_path()).parent_path() / "tests/apps/where");
        app = place.path + "/where";
        fs::copy_file(original, app);
        std::istringstream printed(command({app}).out);
        ASSERT_TRUE(printed >> inlined >> rust >> member >> call >> less >> sort);
        const std::string notes = command({"readelf", "-n", app}).out;
        const size_t at = notes.find("Build ID: ");
        ASSERT_NE(at, std::string::npos);
        build_id = notes.substr(at + 10, notes.find('\n', at) - at - 10);
    }

    std::string run(const std::vector<std::string> &line) {
        const Result result = command(line);
        EXPECT_EQ(result.status, 0) << line[0] << ": " << result.err;
        return result.out;
    }
    // The lines of the report's stack, from the first '#'.
    std::string frames(const std::string &stack, const std::vector<std::string> &options = {}) {
        LogLine line;
        line.stack = stack;
        std::vector<std::string> arguments = {"report", place.file("log", line.text())};
        arguments.insert(arguments.end(), options.begin(), options.end());
        const std::string text = tool(arguments).out;
        const size_t start = text.find("#0"), end = text.find("=========     Hint");
        return start < end ? text.substr(start, end - start) : text;
    }
    std::string at_line(const char *comment) { // "tests/apps/where.cpp:30"
        const std::string source = read_file("tests/apps/where.cpp");
        const auto end = source.begin() + static_cast<long>(source.find(comment));
        return "tests/apps/where.cpp:" + std::to_string(1 + std::count(source.begin(), end, '\n'));
    }
    std::string inlined_frames() {
        return "#0 " + inlined + " shop::drop(int) at " + at_line("// innermost") +
               " (inlined)\n=========         #0 " + inlined + " shop::Buffer::release(int) at " +
               at_line("// outer") + " in " + app + "\n";
    }

    // The frame's function, as the text has it.
    std::string function(const std::string &offset) {
        const std::string text = frames(frame(app, offset, build_id));
        const size_t start = text.find("0x"), end = text.find(" at tests/apps/where.cpp:");
        return text.substr(start, end - start).substr(offset.size() + 1);
    }

    Temporary place;
    std::string app, inlined, rust, member, call, less, sort, build_id;
};

} // namespace

TEST_F(Symbol, AFrameHasTheLineOfTheCallAndWhatWasInlined) {
    EXPECT_EQ(frames(frame(app, inlined, build_id)), inlined_frames());
    EXPECT_EQ(frames(frame(app, inlined)), inlined_frames()) << "also without a build id";
}

TEST_F(Symbol, JsonHasWhatWasInlined) {
    LogLine line;
    line.stack = frame(app, inlined, build_id);
    const Json groups = Json::parse(tool({"report", "--json", place.file("log", line.text())}).out);
    const Json &found = groups[0]["stack"][0];
    EXPECT_EQ(found["function"].text, "shop::Buffer::release(int)");
    EXPECT_EQ(found["file"].text, fs::absolute("tests/apps/where.cpp"));
    ASSERT_EQ(found["inlined"].size(), 1u);
    EXPECT_EQ(found["inlined"][0]["function"].text, "shop::drop(int)");
    EXPECT_EQ(found["note"].kind, Json::Null);
}

TEST_F(Symbol, SarifPointsToTheUsersLine) {
    LogLine line;
    line.stack = frame("/no/such/libcudart.so.13", "0x10") + "," + frame(app, inlined, build_id);
    const Result result = tool({"report", "--sarif", place.file("log", line.text())});
    const Json sarif = Json::parse(result.out);
    const Json &location = sarif["runs"][0]["results"][0]["locations"][0];
    EXPECT_EQ(location["physicalLocation"]["artifactLocation"]["uri"].text, "tests/apps/where.cpp");
    EXPECT_EQ("tests/apps/where.cpp:" + location["physicalLocation"]["region"]["startLine"].text,
              at_line("// innermost"));
    EXPECT_EQ(command({"python3", "-m", "jsonschema", "-i", place.file("x.sarif", result.out),
                       "tests/tool/sarif.schema.json"})
                  .status,
              0);
}

TEST_F(Symbol, NamesOfRustAreReadable) {
    EXPECT_EQ(frames(frame(app, rust, build_id)).find("#0 " + rust + " shop::buffer::release at "),
              0u)
        << frames(frame(app, rust, build_id));
}

TEST_F(Symbol, LongNamesOfTemplatesAreCutInTextAlone) {
    EXPECT_EQ(function(member), "int shop::Shelf<...>::call<...>(...)");
    EXPECT_EQ(function(call), "shop::Shelf<...>::operator()(...)");
    EXPECT_EQ(function(less), "int shop::operator< <...>(...)");
    EXPECT_EQ(function(sort), "sort<...>") << "without a linkage name";
    LogLine line;
    line.stack = frame(app, member, build_id);
    const std::string path = place.file("log", line.text());
    EXPECT_HAS(tool({"report", "--json", path}).out,
               "int shop::Shelf<shop::Buffer, shop::Shelf<shop::Buffer, shop::Buffer>");
    EXPECT_HAS(tool({"report", "--sarif", path}).out, "<shop::Buffer, shop::Shelf<");
    EXPECT_HAS(tool({"report", "--gen-suppressions", path}).out,
               "function = int shop::Shelf<shop::Buffer, shop::Shelf<");
}

TEST_F(Symbol, FramesOfTheStartAreLeftOut) {
    const std::string stack = frame(app, rust, build_id) + "," + frame("/no/libc.so.6", "0x1");
    EXPECT_LACKS(frames(stack), "#1 ");
    EXPECT_HAS(frames(stack + "," + frame(app, rust, build_id)), "#1 0x1 in /no/libc");
    EXPECT_EQ(frames(frame("/no/libc.so.6", "0x1")), "#0 0x1 in /no/libc.so.6 (file is gone)\n")
        << "rather than nothing";
}

TEST_F(Symbol, WithoutDebugInformationThereIsTheSymbolTable) {
    run({"strip", "--strip-debug", app});
    EXPECT_EQ(frames(frame(app, inlined, build_id)),
              "#0 " + inlined + " shop::Buffer::release(int) in " + app + "\n");
    run({"strip", app});
    EXPECT_EQ(frames(frame(app, inlined, build_id)), "#0 " + inlined + " in " + app + "\n");
}

TEST_F(Symbol, ADebugFileBesideTheProgramIsFound) {
    run({"objcopy", "--only-keep-debug", app, app + ".debug"});
    run({"strip", app});
    run({"objcopy", "--add-gnu-debuglink=" + app + ".debug", app});
    EXPECT_EQ(frames(frame(app, inlined, build_id)), inlined_frames());
}

TEST_F(Symbol, ADebugFileIsFoundByBuildIdAlsoWithoutTheProgram) {
    const std::string home = place.path + "/debug";
    const std::string directory = home + "/.build-id/" + build_id.substr(0, 2);
    fs::create_directories(directory);
    run({"objcopy", "--only-keep-debug", app, directory + "/" + build_id.substr(2) + ".debug"});
    run({"strip", app});
    EXPECT_EQ(frames(frame(app, inlined, build_id), {"--debug-dir", home}), inlined_frames());
    fs::remove(app);
    EXPECT_EQ(frames(frame(app, inlined, build_id), {"--debug-dir", home}), inlined_frames());
    EXPECT_EQ(frames(frame(app, inlined, build_id)),
              "#0 " + inlined + " in " + app + " (file is gone)\n");
}

TEST_F(Symbol, AnotherFileInThePlaceOfTheOneThatRanIsNotUsed) {
    fs::remove(app);
    fs::copy_file("/bin/true", app);
    EXPECT_EQ(frames(frame(app, inlined, build_id)),
              "#0 " + inlined + " in " + app + " (replaced since)\n");
    write_file(app, "no ELF file\n");
    EXPECT_EQ(frames(frame(app, inlined, build_id)),
              "#0 " + inlined + " in " + app + " (replaced since)\n");
}

TEST_F(Symbol, PathsThatCannotBeOpenedAreShownAsTheyAre) {
    EXPECT_EQ(frames(frame("[vdso]", "0x10")), "#0 0x10 in [vdso] (not found from here)\n");
    EXPECT_EQ(frames(frame("", "0x7f00")), "#0 0x7f00 in ?\n") << "code outside any module";
    const std::string cut(127, 'x');
    EXPECT_EQ(frames(frame(cut, "0x10")),
              "#0 0x10 in " + cut + " (its path is too long for the log)\n");
    ASSERT_EQ(mkfifo((place.path + "/fifo").c_str(), 0600), 0);
    EXPECT_HAS(frames(frame(place.path + "/fifo", "0x10")), " in " + place.path);
}
