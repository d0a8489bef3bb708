// The name that a person gives a program.
extern "C" {
#include "process/program.h"
}

namespace {

gps_program read(const std::string &executable, std::string line, const char *given = nullptr) {
    gps_program program{};
    strncpy(program.executable, executable.c_str(), sizeof(program.executable) - 1);
    for (char &c : line)
        c = c == ' ' ? '\0' : c;
    gps_program_read(&program, line.c_str(), line.size() + 1, given);
    return program;
}

} // namespace

TEST(Program, HasTheNameThatAPersonGivesIt) {
    const struct {
        const char *executable, *line, *name, *arguments;
    } cases[] = {
        {"camera", "./camera --fps 30", "camera", "--fps 30"},
        {"camera", "camera", "camera", ""},
        {"python3.11", "python3 cam.py", "cam.py", ""},
        {"python3.11", "python3 /opt/x/cam.py --fps 30", "cam.py", "--fps 30"},
        {"python3.11", "python3 -u -X dev -Wignore cam.py -c 3", "cam.py", "-c 3"},
        {"python3.11", "python3 -m package.part x", "package.part", "x"},
        {"python3.11", "python3 -Ium package x", "package", "x"},
        {"python3.11", "python3 -mpackage", "package", ""},
        {"python3.11", "python3 --check-hash-based-pycs never cam.py", "cam.py", ""},
        {"python3.11", "python3 -c code x", "python3.11", "-c code x"},
        {"python3.11", "python3 -", "python3.11", "-"},
        {"python3.11", "python3 -m", "python3.11", "-m"},
        {"python3.11", "python3", "python3.11", ""},
        {"pypy3", "pypy3 cam.py", "cam.py", ""},
        {"perl", "perl -I lib -w cam.pl 1", "cam.pl", "1"},
        {"perl", "perl -MList::Util cam.pl", "cam.pl", ""},
        {"perl", "perl -e code", "perl", "-e code"},
        {"ruby", "ruby -r set -Ilib cam.rb", "cam.rb", ""},
        {"bash", "bash -x -o pipefail /srv/cam.sh a", "cam.sh", "a"},
        {"bash", "bash --rcfile x cam.sh", "cam.sh", ""},
        {"bash", "bash -c code", "bash", "-c code"},
        {"dash", "sh -- cam.sh", "cam.sh", ""},
        {"java", "java -Xmx1g -jar /opt/view.jar 7", "view.jar", "7"},
        {"java", "java -cp a:b com.example.View 7", "com.example.View", "7"},
        {"java", "java -version", "java", "-version"},
        {"camera", "", "camera", ""},
    };
    for (const auto &each : cases) {
        const gps_program program = read(each.executable, each.line);
        EXPECT_STREQ(program.name, each.name) << each.line;
        EXPECT_STREQ(program.arguments, each.arguments) << each.line;
        EXPECT_STREQ(program.executable, each.executable);
    }
}

TEST(Program, ThatTheLoaderStartsIsThatProgram) {
    const struct {
        const char *line, *name, *executable, *arguments;
    } cases[] = {
        {"/lib64/ld-linux-x86-64.so.2 ./camera --fps 30", "camera", "camera", "--fps 30"},
        {"ld.so --library-path /a:/b --inhibit-cache /x/camera 1", "camera", "camera", "1"},
        {"ld.so --argv0 it /usr/bin/python3 /srv/cam.py 2", "cam.py", "python3", "2"},
        {"ld.so --version", "ld-linux-x86-64.so.2", "ld-linux-x86-64.so.2", "--version"},
    };
    for (const auto &each : cases) {
        const gps_program program = read("ld-linux-x86-64.so.2", each.line);
        EXPECT_STREQ(program.name, each.name) << each.line;
        EXPECT_STREQ(program.executable, each.executable) << each.line;
        EXPECT_STREQ(program.arguments, each.arguments) << each.line;
    }
}

TEST(Program, TheEnvironmentNamesIt) {
    EXPECT_STREQ(read("python3.11", "python3 cam.py x", "left").name, "left");
    EXPECT_STREQ(read("python3.11", "python3 cam.py x", "left").arguments, "x");
    EXPECT_STREQ(read("camera", "camera", "/a/left").name, "left");
    EXPECT_STREQ(read("camera", "camera", "").name, "camera");
}

TEST(Program, LongAndHostileArgumentsAreBoundedAndHarmless) {
    const gps_program program = read("camera", "camera \x1b[31m" + std::string(500, 'x'));
    const std::string arguments = program.arguments;
    EXPECT_EQ(arguments.substr(0, 6), "?[31mx");
    EXPECT_EQ(arguments.size(), sizeof(program.arguments) - 1);
    EXPECT_EQ(arguments.substr(arguments.size() - 4), "x...");
    EXPECT_EQ(strlen(read(std::string(127, 'c'), "c").name), 127u);
    EXPECT_EQ(strlen(read("java", "java " + std::string(300, 'c')).name), 127u);
}

TEST(Program, HasTheRankThatTheFirstNumberSays) {
    const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID",
                                 "RANK"};
    const auto rank = [] {
        gps_program program;
        gps_program_self(&program);
        return std::string(program.rank);
    };
    for (const char *name : names)
        unsetenv(name);
    EXPECT_EQ(rank(), "");
    for (int i = 4; i >= 0; i--) {
        setenv(names[i], std::to_string(i).c_str(), 1);
        EXPECT_EQ(rank(), std::to_string(i));
    }
    for (const char *none : {"", "one", "-1", "1 ", "123456789012"}) {
        setenv(names[0], none, 1);
        EXPECT_EQ(rank(), "1") << none;
    }
    setenv(names[0], "007", 1);
    EXPECT_EQ(rank(), "7");
    for (const char *name : names)
        unsetenv(name);
}

TEST(Program, IsThisOne) {
    gps_program program;
    gps_program_self(&program);
    EXPECT_STREQ(program.executable, "unit");
    EXPECT_STREQ(program.name, "unit");
}
