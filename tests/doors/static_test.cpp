// static_test.cpp - what can be told of the library by looking at the file.
#include "program.hpp"

namespace {

using Names = std::vector<std::string>;

struct Symbol {
    char type;
    std::string name, version;
};

std::vector<Symbol> symbols_of(const std::string &command) {
    std::vector<Symbol> symbols;
    for (const auto &line : lines_of(output_of(command))) {
        std::istringstream words(line);
        std::string word, type, name;
        while (words >> word) { // [address] type name
            type = name;
            name = word;
        }
        if (type.size() != 1)
            continue;
        const size_t at = name.find('@');
        symbols.push_back({type[0], name.substr(0, at),
                           at == std::string::npos ? "" : name.substr(name.rfind('@') + 1)});
    }
    return symbols;
}

std::vector<Symbol> exported() {
    return symbols_of("nm -D --defined-only " + library_path());
}

std::vector<Symbol> imported() {
    return symbols_of("nm -D --undefined-only " + library_path());
}

TEST(Library, ExportsTheHookTableTheTwoDoorsAndWhatASanAsksForAndNothingElse) {
    Names names, table = hooked_names();
    for (const auto &symbol : exported())
        names.push_back(symbol.name);
    std::sort(names.begin(), names.end());
    table.push_back("__asan_default_options");
    std::sort(table.begin(), table.end());
    EXPECT_EQ(names, table);
}

// A program of CUDA's must not find a hipMalloc, nor one of HIP's a cudaMalloc.
TEST(Library, OfEachVendorExportsNothingOfTheOthers) {
    for (const auto &symbol : symbols_of("nm -D " + library_path()))
        EXPECT_NE(symbol.name.substr(0, 3), "hip");
    Names names;
    for (const auto &symbol :
         symbols_of("nm -D --defined-only " + build_directory() + "/libgpushare-hip.so")) {
        EXPECT_EQ(symbol.type, 'T') << symbol.name;
        names.push_back(symbol.name);
    }
    std::sort(names.begin(), names.end());
    Names table = {"dlsym", "dlvsym", "__asan_default_options"};
#define HIP(kind, name, parameters, arguments) table.push_back(#name);
#define EXIT(name)                             table.push_back(#name);
#include "hip/hip_hooks.def"
    std::sort(table.begin(), table.end());
    EXPECT_EQ(names, table);
}

TEST(Library, ExportsFunctionsOnlyAndWithoutVersions) {
    for (const auto &symbol : exported()) {
        EXPECT_EQ(symbol.type, 'T') << symbol.name;
        EXPECT_EQ(symbol.version, "") << symbol.name;
    }
}

TEST(Library, ExportsEveryDriverFunctionOfTheTableThatTheSimulatorHas) {
    const auto driver =
        output_of("nm -D --defined-only " + build_directory() + "/sim/libcuda.so.1");
    for (const auto &name : driver_names())
        EXPECT_NE(driver.find(" " + name + "\n"), std::string::npos) << name;
}

// 2.35 brought _dl_find_object.
TEST(Library, NeedsNoGlibcAfter235) {
    unsigned seen = 0;
    for (const auto &symbol : imported()) {
        unsigned major = 0, minor = 0;
        if (sscanf(symbol.version.c_str(), "GLIBC_%u.%u", &major, &minor) < 2)
            continue;
        seen++;
        EXPECT_EQ(major, 2u) << symbol.name;
        EXPECT_LE(minor, 35u) << symbol.name << " wants " << symbol.version;
    }
    EXPECT_GT(seen, 50u);
}

TEST(Library, NeedsOnlyLibcAndTheLinker) {
    Names needed;
    for (const auto &line : lines_of(output_of("readelf -dW " + library_path())))
        if (line.find("(NEEDED)") != std::string::npos)
            needed.push_back(line.substr(line.find('[')));
    for (const auto &name : needed)
        EXPECT_TRUE(name == "[libc.so.6]" || name.rfind("[ld-linux", 0) == 0) << name;
    EXPECT_LE(needed.size(), 2u);
}

TEST(Library, HasNoExecutableStackAndNoTextRelocations) {
    const auto segments = output_of("readelf -lW " + library_path());
    for (const auto &line : lines_of(segments)) {
        if (line.find("GNU_STACK") != std::string::npos) {
            EXPECT_EQ(line.find("RWE"), std::string::npos) << line;
        }
        if (line.find("LOAD") != std::string::npos) {
            EXPECT_EQ(line.find("RWE"), std::string::npos) << line;
        }
    }
    EXPECT_NE(segments.find("GNU_STACK"), std::string::npos);
    const auto dynamic = output_of("readelf -dW " + library_path());
    EXPECT_EQ(dynamic.find("TEXTREL"), std::string::npos);
}

// The compiler's frame_dummy, and on_load of lifecycle.c. With __builtin_cpu_supports comes a
// third, which asks the processor: 100 us for every program on a virtual machine.
TEST(Library, RunsNothingAtLoadButItsOwn) {
    const auto sections = output_of("readelf -SW " + library_path());
    const auto at = sections.find("INIT_ARRAY");
    ASSERT_NE(at, std::string::npos);
    std::istringstream fields(sections.substr(at));
    std::string type, address, offset, size;
    fields >> type >> address >> offset >> size;
    EXPECT_LE(std::stoul(size, nullptr, 16), 2 * sizeof(void *));
}

// What prints through stdio, ends the process or runs others has no place in somebody's program.
const std::set<std::string> forbidden = {
    "printf",       "fprintf",        "vprintf",        "vfprintf",      "dprintf", "vdprintf",
    "puts",         "fputs",          "fputc",          "putchar",       "fwrite",  "perror",
    "__printf_chk", "__fprintf_chk",  "__vfprintf_chk", "__dprintf_chk", "sprintf", "snprintf",
    "vsnprintf",    "__snprintf_chk", "asprintf",       "syslog",        "exit",    "_exit",
    "_Exit",        "quick_exit",     "abort",          "__assert_fail", "err",     "errx",
    "raise",        "system",         "popen",          "fork",          "vfork",   "execve",
    "execv",        "posix_spawn",    "signal",         "sigaction",     "setenv",  "putenv",
    "unsetenv",     "chdir",          "umask",          "setlocale",     "srand",   "rand",
    "strtok",       "sleep",          "dlsym",          "dlvsym",        "dlerror", "longjmp",
    "__cxa_throw"};

// What may be there all the same, and in which object of ours. libgcc's unwinder, linked
// statically, holds an abort for impossible opcodes. When only threads of ours are left after the
// main thread's pthread_exit, thread.o calls exit as glibc does when the last thread returns: ours
// cannot return before, because the program's handlers of exit may call the driver and need them.
// digest.o asks whether the program has a handler of faults, and sets none.
const std::map<std::string, std::string> excused = {
    {"abort", "assertion.o"}, {"exit", "thread.o"}, {"sigaction", "digest.o"}};

TEST(Library, ImportsNothingThatPrintsEndsOrSpawns) {
    for (const auto &symbol : imported()) {
        EXPECT_TRUE(!forbidden.count(symbol.name) || excused.count(symbol.name)) << symbol.name;
    }
    unsigned objects = 0;
    for (const auto &entry :
         std::filesystem::recursive_directory_iterator(build_directory() + "/shim")) {
        if (entry.path().extension() != ".o")
            continue;
        objects++;
        for (const auto &symbol : symbols_of("nm --undefined-only " + entry.path().string()))
            EXPECT_TRUE(
                !forbidden.count(symbol.name) ||
                (excused.count(symbol.name) && excused.at(symbol.name) == entry.path().filename()))
                << symbol.name << " in " << entry.path();
    }
    EXPECT_GT(objects, 20u);
}

// Sanitizer runtimes and the dynamic linker come here before anything of ours or libc's may run.
TEST(Library, TheResolversQuestionUsesNoLibc) {
    for (const auto &symbol :
         symbols_of("nm --undefined-only " + build_directory() + "/shim/doors/resolver.o"))
        EXPECT_TRUE(symbol.name.rfind("gps_", 0) == 0 || symbol.name == "dlopen" ||
                    symbol.name == "dlclose" || symbol.name == "__errno_location" ||
                    symbol.name == "_GLOBAL_OFFSET_TABLE_" || symbol.name == "_DYNAMIC" ||
                    symbol.name == "_r_debug")
            << symbol.name;
}

} // namespace
