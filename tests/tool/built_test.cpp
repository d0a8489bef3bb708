// A program has its lines in a report whatever built it, and wherever its debug information is.
#include "harness.hpp"
#include "logmaker.hpp"

namespace {

// Prints where it was called from, as a frame of a log has it.
const char here_c[] = R"(#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
void here(void) {
    Dl_info info;
    const char *address = __builtin_return_address(0);
    if (dladdr(address, &info))
        printf("0x%tx\n", address - (const char *)info.dli_fbase);
}
)";

// A unit that the linker can leave out, larger than the program: its addresses begin at 0 then.
const char dead_c[] = "void dead(void) { __asm__(\".skip 100000\"); }\n";

const char row_c[] = R"(void here(void);
static inline __attribute__((always_inline)) int drop(int times) {
    here(); // innermost
    return times + 1;
}
int release(int times) {
    return drop(times) + 1; // outer
}
int main(int argc, char **argv) {
    (void)argv;
    return release(argc) - 3;
}
)";

const char row_rs[] = R"(extern "C" { fn here(); }
#[inline(always)]
fn drop(times: usize) -> usize {
    unsafe { here(); } // innermost
    times + 1
}
#[inline(never)]
fn release(times: usize) -> usize {
    drop(times) + 1 // outer
}
fn main() {
    std::process::exit(release(std::env::args().count()) as i32 - 3);
}
)";

const char row_f90[] = R"(subroutine release(times)
    use iso_c_binding
    interface
        subroutine here() bind(c)
        end subroutine
    end interface
    integer :: times
    call here() ! innermost
    times = times + 1
end subroutine
program main
    integer :: times = 1
    call release(times)
    if (times /= 2) stop 1
end program
)";

struct Language {
    const char *file, *text;
    const char *inlined, *function; // "": nothing was inlined
};
const Language c = {"row.c", row_c, "drop", "release"};
const Language rust = {"row.rs", row_rs, "row::drop", "row::release"};
const Language fortran = {"row.f90", row_f90, "", "release_"};

struct Row {
    std::string name, tools;
    const Language &language;
    std::string build; // of the file and here.o, in the shell
};
void PrintTo(const Row &row, std::ostream *out) {
    *out << row.build;
}

class Built : public testing::TestWithParam<Row> {
  protected:
    std::string line_of(const char *comment) { // "row.c:3"
        const Language &language = GetParam().language;
        const std::string text = language.text;
        const auto end = text.begin() + static_cast<long>(text.find(comment));
        return language.file + (":" + std::to_string(1 + std::count(text.begin(), end, '\n')));
    }
    std::string frames(const std::string &address) {
        const Language &language = GetParam().language;
        const std::string number = "#0 " + address + " ", innermost = line_of(" innermost");
        const std::string inlined = language.inlined, function = language.function;
        const std::string program = " in " + place.path + "/app\n";
        if (inlined.empty())
            return number + function + " at " + innermost + program;
        return number + inlined + " at " + innermost + " (inlined)\n=========         " + number +
               function + " at " + line_of(" outer") + program;
    }
    Result shell(const std::string &line) {
        return command({"sh", "-ec", "cd " + place.path + "; " + line});
    }
    // The first of the words that this machine has not.
    std::string missing(const std::string &words) {
        std::istringstream rest(words);
        for (std::string word; rest >> word;)
            if (shell("command -v " + word).status != 0)
                return word;
        return "";
    }

    Temporary place;
};

} // namespace

TEST_P(Built, TheReportNamesTheLine) {
    const Row &row = GetParam();
    const std::string lacks = missing(row.tools);
    SKIP_IF(!lacks.empty(), "no " << lacks << " here");
    place.file("here.c", here_c);
    place.file("dead.c", dead_c);
    place.file(row.language.file, row.language.text);
    const Result built = shell("gcc -O1 -c here.c\n" + row.build);
    ASSERT_EQ(built.status, 0) << row.build << "\n" << built.err;
    const Result ran = shell("./app");
    ASSERT_EQ(ran.status, 0);
    LogLine line;
    const std::string address = ran.out.substr(0, ran.out.find('\n'));
    const std::string id = shell("readelf -n app | sed -n 's/.*Build ID: //p'").out;
    line.stack = frame(place.path + "/app", address, id.substr(0, id.find('\n')));
    const Result report =
        tool({"report", "--debug-dir", place.path + "/debug", place.file("log", line.text())});
    EXPECT_HAS(report.out, frames(address)) << frames(address) << report.out;
}

namespace {

// To where --debug-dir and libdw find it by build id.
const char apart[] = "id=$(readelf -n app | sed -n 's/.*Build ID: //p'); rest=${id#??}; "
                     "directory=debug/.build-id/${id%$rest}; mkdir -p $directory; objcopy "
                     "--only-keep-debug app $directory/$rest.debug; strip app";
const char beside[] =
    "objcopy --only-keep-debug app app.debug; strip app; objcopy --add-gnu-debuglink=app.debug app";

struct Way {
    const char *name, *tools, *options;
    std::string after = {};
};
const Way ways[] = {
    {"O0", "", "-O0"},
    {"O2", "", "-O2"},
    {"Dwarf4", "", "-O2 -gdwarf-4"},
    {"Dwarf5", "", "-O2 -gdwarf-5"},
    {"Compressed", "", "-O2 -gz=zlib"},
    {"Split4", "", "-O2 -gdwarf-4 -gsplit-dwarf"},
    {"Split5", "", "-O2 -gdwarf-5 -gsplit-dwarf"},
    {"Lto", "", "-O2 -flto"},
    {"LinesAlone", "", "-O2 -g1"},
    {"Collected", "", "-O2 -ffunction-sections dead.c -Wl,--gc-sections"},
    {"Dwz", "dwz", "-O2 -gdwarf-4", "dwz app"},
    {"DwzShared", "dwz", "-O2 -gdwarf-4", "cp app other; dwz -m common app other"},
    {"Debuglink", "objcopy", "-O2", beside},
    {"BuildId", "objcopy", "-O2", apart},
    {"DwzBuildId", "objcopy dwz", "-O2 -gdwarf-4", std::string("dwz app; ") + apart},
};

void add(std::vector<Row> &rows, const char *compiler, const Language &language) {
    for (const Way &way : ways)
        rows.push_back({compiler + std::string(way.name), compiler + std::string(" ") + way.tools,
                        language,
                        std::string(compiler) + " -g -fno-inline " + way.options + " " +
                            language.file + " here.o -o app -ldl\n" + way.after});
}

std::vector<Row> rows() {
    std::vector<Row> all;
    add(all, "gcc", c);
    add(all, "clang", c);
    add(all, "gfortran", fortran);
    // Debian 12's rustc takes -C split-debuginfo for unstable.
    const std::string rustc = "RUSTC_BOOTSTRAP=1 rustc -g row.rs -C link-arg=here.o -o app ";
    for (const auto &[name, options] : std::map<std::string, std::string>{
             {"O0", ""},
             {"O2", "-C opt-level=2"},
             {"Split", "-Z unstable-options -C split-debuginfo=unpacked"},
             {"Lto", "-C opt-level=2 -C lto=fat"},
             {"Debuglink", std::string("\n") + beside},
             {"BuildId", std::string("\n") + apart}})
        all.push_back({"rustc" + name, "rustc", rust, rustc + options});
    return all;
}

INSTANTIATE_TEST_SUITE_P(All, Built, testing::ValuesIn(rows()),
                         [](const auto &row) { return row.param.name; });

} // namespace
