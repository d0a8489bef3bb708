// python_test.cpp - the stacks of Python programs, by each version of the interpreter that is here.
//
// What a stack should be the program says itself: Python knows it, too. An interpreter python3.N is
// looked for in the system's directories, in what pyenv has installed, and where
// tests/systems/pythons has unpacked it.
#include <glob.h>

#include "scenario/audit.hpp"

namespace {

std::string app(const std::string &name) {
    return build_directory() + "/tests/apps/" + name;
}

// Its output; empty when it does not run.
std::string asked(const std::string &python, const std::string &what) {
    const Result result =
        command({python, "-c", "import ctypes, sys, sysconfig; print(" + what + ", end='')"});
    return result.status == 0 ? result.out : "";
}

std::vector<std::string> found(const std::string &minor) {
    std::vector<std::string> all = {"/usr/bin/python3." + minor, "/usr/local/bin/python3." + minor};
    const char *root = getenv("PYENV_ROOT"), *home = getenv("HOME");
    if (const char *unpacked = getenv("TEST_PYTHONS"))
        all.push_back(std::string(unpacked) + "/python3." + minor);
    const std::string installed = root ? root : std::string(home ? home : "") + "/.pyenv";
    glob_t paths = {};
    if (glob((installed + "/versions/3." + minor + ".*/bin/python3").c_str(), 0, nullptr, &paths) ==
        0)
        all.insert(all.end(), paths.gl_pathv, paths.gl_pathv + paths.gl_pathc);
    globfree(&paths);
    std::vector<std::string> those;
    for (const std::string &python : all)
        if (asked(python, "sys.version_info[1]") == minor)
            those.push_back(python);
    return those;
}

struct Place {
    std::string file, function;
    int64_t line = 0;
    bool operator==(const Place &other) const {
        return file == other.file && function == other.function && line == other.line;
    }
};

std::ostream &operator<<(std::ostream &out, const Place &place) {
    return out << place.function << " at " << place.file << ":" << place.line;
}

// As much as a log has of a text: its beginning, or its end; of UTF-8 whole characters.
std::string beginning(const std::string &text, size_t most) {
    size_t length = std::min(most, text.size());
    while (length < text.size() && (text[length] & 0xc0) == 0x80)
        length--;
    return text.substr(0, length);
}

std::string ending(const std::string &text, size_t most) {
    size_t from = text.size() > most ? text.size() - most : 0;
    while (from < text.size() && (text[from] & 0xc0) == 0x80)
        from++;
    return text.substr(from);
}

std::vector<Place> expected_places(const Json &stack) {
    std::vector<Place> places;
    for (const Json &frame : stack.elements)
        places.push_back({ending(frame[0].text, 127), beginning(frame[2].text, 63),
                          static_cast<int64_t>(frame[1].number)});
    return places;
}

std::vector<Place> places(const Json &stack) {
    std::vector<Place> all;
    for (const Json &frame : stack.elements)
        if (frame.has("function"))
            all.push_back({frame["file"].text, frame["function"].text,
                           static_cast<int64_t>(frame["line"].number)});
    return all;
}

std::string base_name(const std::string &path) {
    return path.substr(path.rfind('/') + 1);
}

// How many Python frames are inside of the module's; -1: it is not in the stack.
int inside_of(const Json &stack, const std::string &module) {
    int count = 0;
    for (const Json &frame : stack.elements)
        if (base_name(frame["module"].text) == module)
            return count;
        else
            count += frame.has("function");
    return -1;
}

bool has_interpreters_frame(const Json &stack) {
    for (const Json &frame : stack.elements) {
        const std::string name = base_name(frame["module"].text);
        for (const char *part : {"libpython", "python", "libffi", "_ctypes"})
            if (name.compare(0, strlen(part), part) == 0)
                return true;
    }
    return false;
}

struct Script {
    Result result;
    std::vector<Event> events; // double frees
    std::vector<Json> expected;
};

// A World of its own for each: in its directory is the file `expected`.
Script run(std::vector<std::string> line, Environment more = {}, const std::string &input = "") {
    World world;
    Environment environment = world.environment;
    environment["BETWEEN"] = app("libbetween.so");
    environment["PYTHONUTF8"] = "1";
    environment["EXPECTED"] = world.path("expected");
    environment["LD_PRELOAD"] = build_directory() + "/libgpushare.so";
    for (const auto &variable : more)
        environment[variable.first] = variable.second;
    write_file(world.path("input"), input);
    line.insert(line.begin(),
                {"timeout", "60", "sh", "-c", "exec \"$@\" <\"$0\"", world.path("input")});
    Script script;
    script.result = command(line, environment);
    for (const Event &event : events_of(world.logs()))
        if (event.id == "double-free")
            script.events.push_back(event);
    std::istringstream lines(read_file(world.path("expected")));
    for (std::string text; std::getline(lines, text);)
        script.expected.push_back(Json::parse(text));
    return script;
}

class Python : public testing::TestWithParam<int> {
  protected:
    void SetUp() override {
        SIM_ONLY("simulator only: the frees go astray");
        pythons = found(std::to_string(GetParam()));
        SKIP_IF(pythons.empty(), "no Python 3." << GetParam() << " is here");
    }
    std::vector<std::string> pythons;
};

const std::string CAM = "tests/apps/python/cam.py";

void expect_case(const Json &expected, const Json &stack) {
    SCOPED_TRACE(expected["case"].text);
    EXPECT_EQ(places(stack), expected_places(expected["stack"]));
    EXPECT_FALSE(has_interpreters_frame(stack));
    if (expected["between"].kind != Json::Null) {
        EXPECT_EQ(inside_of(stack, "libbetween.so"), expected["between"].number);
    }
}

TEST_P(Python, StacksAreWhatPythonSaysItself) {
    for (const std::string &python : pythons) {
        SCOPED_TRACE(python);
        const Script script = run({python, CAM});
        EXPECT_EQ(script.result.status, 0) << script.result.err;
        ASSERT_EQ(script.events.size(), script.expected.size());
        for (size_t i = 0; i < script.expected.size(); i++)
            expect_case(script.expected[i], script.events[i].json["stack"]);
    }
}

// The program as it is on a command line, or on standard input.
const std::string SHORT = "import ctypes\n"
                          "cuda = ctypes.CDLL('libcudart.so')\n"
                          "memory = ctypes.c_void_p()\n"
                          "cuda.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(4096))\n"
                          "def release():\n"
                          "    return cuda.cudaFree(memory)\n"
                          "for i in range(3): release()\n";

std::vector<Place> short_places(const std::string &file) {
    return {{file, "release", 6}, {file, "<module>", 7}};
}

TEST_P(Python, AScriptWithoutAFileHasLines) {
    const Script text = run({pythons[0], "-c", SHORT}), input = run({pythons[0]}, {}, SHORT);
    ASSERT_EQ(text.events.size(), 1u) << "the second double free is a repeat of the first";
    EXPECT_EQ(places(text.events[0].json["stack"]), short_places("<string>"));
    ASSERT_EQ(input.events.size(), 1u);
    EXPECT_EQ(places(input.events[0].json["stack"]), short_places("<stdin>"));
}

TEST_P(Python, FramesAreCountedByTheDepth) {
    const Script none = run({pythons[0], "-c", SHORT}, {{"GPUSHARE_STACK_DEPTH", "0"}});
    const Script one = run({pythons[0], "-c", SHORT}, {{"GPUSHARE_STACK_DEPTH", "1"}});
    ASSERT_EQ(none.events.size(), 1u);
    EXPECT_EQ(none.events[0].json["stack"].size(), 0u);
    ASSERT_EQ(one.events.size(), 1u);
    EXPECT_EQ(places(one.events[0].json["stack"]).size(), 1u);
    EXPECT_EQ(one.events[0].json["stack"].size(), 2u) << "and a native one";
}

// The kernel refuses to copy.
TEST_P(Python, WhatCannotBeReadIsAsItWas) {
#ifdef __x86_64__
    const std::string number = "310";
#else
    const std::string number = "270";
#endif
    const std::string refuse =
        "import ctypes, struct\n"
        "libc = ctypes.CDLL(None)\n"
        "rules = ctypes.create_string_buffer(struct.pack('HBBI' * 4, 0x20, 0, 0, 0, 0x15, 0, 1, " +
        number +
        ", 6, 0, 0, 0x50001, 6, 0, 0, 0x7fff0000))\n"
        "program = struct.pack('HP', 4, ctypes.addressof(rules))\n"
        "assert libc.prctl(38, 1, 0, 0, 0) == 0\n"
        "assert libc.prctl(22, 2, program, 0, 0) == 0\n";
    const Script script = run({pythons[0], "-c", refuse + SHORT});
    EXPECT_EQ(script.result.status, 0) << script.result.err;
    ASSERT_EQ(script.events.size(), 1u);
    EXPECT_EQ(places(script.events[0].json["stack"]).size(), 0u);
    EXPECT_TRUE(has_interpreters_frame(script.events[0].json["stack"]));
}

// The program's own frames stay outside of Python's.
TEST_P(Python, RunsInsideOfAProgram) {
    for (const std::string &python : pythons) {
        const std::string shared = asked(
            python,
            "sysconfig.get_config_var('LIBDIR') + '/' + sysconfig.get_config_var('INSTSONAME')");
        if (access(shared.c_str(), R_OK) != 0)
            continue;
        const Script script =
            run({app("embed"), shared, SHORT}, {{"PYTHONHOME", asked(python, "sys.prefix")}});
        ASSERT_EQ(script.events.size(), 1u) << script.result.err;
        const Json &stack = script.events[0].json["stack"];
        EXPECT_EQ(places(stack), short_places("<string>"));
        EXPECT_EQ(inside_of(stack, "embed"), 2);
        EXPECT_FALSE(has_interpreters_frame(stack));
    }
}

// A program that allocates and frees at several lines, by one native stack.
const std::string TWICE = "import ctypes\n"
                          "cuda = ctypes.CDLL('libcudart.so')\n"
                          "def allocate():\n"
                          "    memory = ctypes.c_void_p()\n"
                          "    cuda.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(4096))\n"
                          "    return memory\n"
                          "def release(memory):\n"
                          "    cuda.cudaFree(memory)\n"
                          "first = allocate()\n"
                          "second = allocate()\n"
                          "release(first)\n"
                          "release(second)\n"
                          "release(second)\n"
                          "release(first)\n";

const Json &prior(const Event &event, const std::string &what) {
    for (const Json &one : event.json["prior"].elements)
        if (one["what"].text == what)
            return one;
    static const Json none;
    return none;
}

TEST_P(Python, AnAuditHasTheLinesOfEarlierCalls) {
    for (const std::string &python : pythons) {
        SCOPED_TRACE(python);
        const Script script = run({python, "-c", TWICE}, {{"GPUSHARE_MODE", "audit"}});
        ASSERT_EQ(script.events.size(), 2u) << script.result.err;
        for (int64_t i = 0; i < 2; i++) { // the second was freed again first
            const Event &event = script.events[static_cast<size_t>(i)];
            EXPECT_EQ(places(prior(event, "allocated")["stack"]),
                      (std::vector<Place>{{"<string>", "allocate", 5},
                                          {"<string>", "<module>", 10 - i}}));
            EXPECT_EQ(
                places(prior(event, "freed")["stack"]),
                (std::vector<Place>{{"<string>", "release", 8}, {"<string>", "<module>", 12 - i}}));
            EXPECT_FALSE(has_interpreters_frame(prior(event, "allocated")["stack"]));
        }
    }
}

// What is freed twice inside of a native function was freed one Python frame further in.
TEST_P(Python, AnAuditHasNativeFramesBetweenThoseOfPython) {
    for (const std::string &python : pythons) {
        SCOPED_TRACE(python);
        const Script script =
            run({python, CAM}, {{"GPUSHARE_MODE", "audit"}, {"GPUSHARE_STACK_DEPTH", "64"}});
        ASSERT_EQ(script.events.size(), script.expected.size());
        for (size_t i = 0; i < script.expected.size(); i++)
            if (script.expected[i]["between"].number > 0) {
                EXPECT_EQ(inside_of(prior(script.events[i], "freed")["stack"], "libbetween.so"),
                          script.expected[i]["between"].number + 1);
            }
    }
}

// Each text takes the place in memory of the one before, and only its lines are others.
TEST_P(Python, AnAuditTellsTextsApartThatFollowOneAnother) {
    const std::string texts =
        "import ctypes\n"
        "cuda = ctypes.CDLL('libcudart.so')\n"
        "kept = [ctypes.c_void_p() for _ in range(40)]\n"
        "for i in range(40):\n"
        "    exec(compile('\\n' * i + 'cuda.cudaMalloc(ctypes.byref(kept[i]), 4096)', 'text', "
        "'exec'))\n"
        "for one in kept: cuda.cudaFree(one)\n"
        "again = '\\n'.join('cuda.cudaFree(kept[%d])' % i for i in range(40))\n"
        "exec(compile(again, 'again', 'exec'))\n";
    const Script script = run({pythons[0], "-c", texts}, {{"GPUSHARE_MODE", "audit"}});
    ASSERT_EQ(script.events.size(), 40u) << script.result.err;
    for (size_t i = 0; i < script.events.size(); i++) {
        const std::vector<Place> stack = places(prior(script.events[i], "allocated")["stack"]);
        ASSERT_EQ(stack.size(), 2u);
        EXPECT_EQ(stack[0], (Place{"text", "<module>", static_cast<int64_t>(i) + 1}));
    }
}

TEST_P(Python, WhatIsNoAuditKeepsNoLines) {
    const Script script = run({pythons[0], "-c", TWICE});
    ASSERT_EQ(script.events.size(), 2u) << script.result.err;
    EXPECT_EQ(prior(script.events[0], "allocated").kind, Json::Null);
}

std::string name_of(const testing::TestParamInfo<int> &minor) {
    return "Of3_" + std::to_string(minor.param);
}

INSTANTIATE_TEST_SUITE_P(Versions, Python, testing::Range(8, 16), name_of);

// Older ones are not known.
TEST(PythonOfOtherVersions, HasTheStackThatItHad) {
    const std::vector<std::string> pythons = found("7");
    SKIP_IF(on_gpu() || pythons.empty(), "no Python 3.7 is here, or no simulator");
    const Script script = run({pythons[0], "-c", SHORT});
    ASSERT_EQ(script.events.size(), 1u) << script.result.err;
    EXPECT_EQ(places(script.events[0].json["stack"]).size(), 0u);
    EXPECT_TRUE(has_interpreters_frame(script.events[0].json["stack"]));
}

TEST(PythonOfOtherVersions, IsToldOnce) {
    SIM_ONLY("simulator only: the frees go astray");
    const Script script = run({app("embed"), app("liblater.so"), ""});
    ASSERT_EQ(script.events.size(), 2u) << script.result.err;
    EXPECT_EQ(script.events[0].json["detail"].text,
              "Python lines are missing, for this version of Python is not known. Known are final "
              "releases from 3.8 to 3.15, free-threaded ones up to 3.13");
    EXPECT_EQ(script.events[1].json["detail"].kind, Json::Null);
}

} // namespace
