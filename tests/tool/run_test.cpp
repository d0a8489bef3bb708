// gpushare run: what the command gets, what the caller gets back, and what is said beforehand.
#include <elf.h>
#include <sys/statvfs.h>

#include "harness.hpp"

namespace {

// Any library will do to see that it is preloaded: libm, which `sh` and `env` do not need.
class Run : public testing::Test {
  protected:
    void SetUp() override {
        Dl_info info;
        double (*cosine)(double) = cos;
        ASSERT_NE(dladdr(reinterpret_cast<void *>(cosine), &info), 0);
        library = std::filesystem::canonical(info.dli_fname);
        environment["GPUSHARE_LIBRARY"] = library;
        environment["HOME"] = place.path;
        environment["XDG_CONFIG_HOME"] = place.path;
        environment["GPUSHARE_DIR"] = place.path + "/pub";
    }

    Result run(std::vector<std::string> line, const Environment &more = {}) {
        Environment all = more;
        all.insert(environment.begin(), environment.end());
        line.insert(line.begin(), "run");
        return tool(line, all);
    }

    // A copy of /bin/true, changed.
    std::string altered(const std::string &name, void (*change)(std::string &elf)) {
        std::string bytes = read_file("/bin/true");
        change(bytes);
        std::string path = place.file(name, bytes);
        chmod(path.c_str(), 0755);
        return path;
    }

    Temporary place;
    std::string library;
    Environment environment;
};

Elf64_Phdr *interpreter(std::string &elf) {
    auto *header = reinterpret_cast<Elf64_Ehdr *>(elf.data());
    auto *segment = reinterpret_cast<Elf64_Phdr *>(elf.data() + header->e_phoff);
    while (segment->p_type != PT_INTERP)
        segment++;
    return segment;
}

void make_static(std::string &elf) {
    interpreter(elf)->p_type = PT_NULL;
}

void make_musl(std::string &elf) {
    Elf64_Phdr *segment = interpreter(elf);
    char *name = elf.data() + segment->p_offset;
    memset(name, 0, segment->p_filesz);
    strcpy(name, "/lib/ld-musl.so.1");
}

void make_foreign(std::string &elf) {
    reinterpret_cast<Elf64_Ehdr *>(elf.data())->e_machine = EM_S390;
}

} // namespace

TEST_F(Run, TheLibraryIsPreloadedIntoTheCommand) {
    EXPECT_EQ(run({"printenv", "LD_PRELOAD"}).out, library + "\n");
    Result result = run({"--", "cat", "/proc/self/maps"});
    EXPECT_OUT_HAS(result, 0, library);
    EXPECT_EQ(result.err, "");
}

TEST_F(Run, APreloadThatIsThereStaysBehindIt) {
    EXPECT_EQ(run({"printenv", "LD_PRELOAD"}, {{"LD_PRELOAD", "libdl.so.2"}}).out,
              library + ":libdl.so.2\n");
    EXPECT_EQ(run({"printenv", "LD_PRELOAD"}, {{"LD_PRELOAD", ""}}).out, library + "\n");
}

TEST_F(Run, RunInRunPreloadsOnce) {
    EXPECT_EQ(run({tool_path(), "run", "printenv", "LD_PRELOAD"}).out, library + "\n");
}

TEST_F(Run, TheExitStatusIsTheCommands) {
    EXPECT_EQ(run({"true"}).status, 0);
    EXPECT_EQ(run({"sh", "-c", "exit 42"}).status, 42);
    EXPECT_EQ(run({"sh", "-c", "exit 255"}).status, 255);
}

TEST_F(Run, ASignalReachesTheCommandAndItsDeathTheCaller) {
    EXPECT_EQ(run({"sh", "-c", "kill -TERM $$"}).status, 128 + 15);
    EXPECT_EQ(run({"sh", "-c", "trap 'exit 7' USR1; kill -USR1 $$; exit 1"}).status, 7);
}

// There the command is a child.
TEST_F(Run, InAContainerAKillEndsTheCommandToo) {
    const std::vector<std::string> contained = {"unshare", "--pid", "--fork", "--mount-proc"};
    auto words = contained;
    words.push_back("true");
    SKIP_IF(command(words).status != 0, "pid namespaces cannot be made here");
    words = contained;
    for (const char *word : {"sh", "-c",
                             "\"$0\" run -- sh -c 'echo $$; exec sleep 60' >\"$1\" & while ! test "
                             "-s \"$1\"; do sleep 0.1; done; kill -9 $!; wait; for i in $(seq "
                             "100); do kill -0 $(cat \"$1\") || exit 3; sleep 0.1; done"})
        words.push_back(word);
    words.push_back(tool_path());
    words.push_back(place.path + "/pid");
    EXPECT_EQ(command(words, environment).status, 3);
}

TEST_F(Run, OptionsOfTheCommandAreItsOwn) {
    EXPECT_EQ(run({"echo", "--mode", "x", "--help"}).out, "--mode x --help\n");
    EXPECT_EQ(run({"--mode=audit", "--", "echo", "--", "-h"}).out, "-- -h\n");
}

TEST_F(Run, ModeIsHandedOn) {
    EXPECT_EQ(run({"--mode", "audit", "printenv", "GPUSHARE_MODE"}).out, "audit\n");
    EXPECT_EQ(run({"--mode=off", "printenv", "GPUSHARE_MODE"}).out, "off\n");
    EXPECT_EQ(run({"-m", "share", "printenv", "GPUSHARE_MODE"}).out, "share\n");
    EXPECT_EQ(run({"printenv", "GPUSHARE_MODE"}).status, 1) << "not set without the option";
}

TEST_F(Run, ABadModeIsRefused) {
    Result result = run({"--mode=on", "echo", "ran"});
    EXPECT_OUT(result, 125, "");
    EXPECT_EQ(result.err.find("--mode: "), 0u) << result.err;
    EXPECT_HAS(result.err, "share, audit, off");
}

TEST_F(Run, TheConfigurationIsHandedOnAbsolute) {
    std::string file = place.file("a.conf", "[region a]\nrole = auto\n");
    EXPECT_EQ(run({"--config", file, "printenv", "GPUSHARE_CONFIG"}).out, file + "\n");
    Result result = command(
        {"sh", "-c", "cd " + place.path + " && \"$0\" run -c a.conf printenv GPUSHARE_CONFIG",
         tool_path()},
        environment);
    EXPECT_EQ(result.out, file + "\n") << result.err;
}

TEST_F(Run, ABrokenConfigurationIsExplainedAndNothingRuns) {
    std::string file = place.file("bad.conf", "[gpushare]\n\nmode = on\n");
    Result result = run({"--config=" + file, "echo", "ran"});
    EXPECT_OUT(result, 125, "");
    EXPECT_EQ(result.err, tool({"check", file}).err);
    EXPECT_EQ(result.err.find(file + ":3: "), 0u);
    result = run({"echo", "ran"}, {{"GPUSHARE_CONFIG", file}});
    EXPECT_EQ(result.status, 125);
    EXPECT_EQ(result.err.find(file + ":3: "), 0u);
    result = run({"--config=/no/such", "echo", "ran"});
    EXPECT_EQ(result.status, 125);
    EXPECT_EQ(result.err.find("/no/such: "), 0u) << result.err;
}

TEST_F(Run, ABrokenEnvironmentIsExplained) {
    Result result = run({"echo", "ran"}, {{"GPUSHARE_ON_FREE", "maybe"}});
    EXPECT_ERR_HAS(result, 125, "GPUSHARE_ON_FREE: ");
}

TEST_F(Run, ACommandThatDoesNotExistIs127) {
    Result result = run({"no-such-command-here"});
    EXPECT_ERR(result, 127, "gpushare: run: command 'no-such-command-here' not found\n");
    result = run({"./no/such"});
    EXPECT_ERR(result, 127,
               "gpushare: run: cannot execute './no/such': No such file or directory\n");
}

TEST_F(Run, ACommandThatCannotBeExecutedIs126) {
    EXPECT_ERR(run({"/etc"}), 126, "gpushare: run: cannot execute '/etc': Permission denied\n");
    EXPECT_EQ(run({place.file("plain", "text\n")}).status, 126);
}

// The shell would read the machine of an ELF file, 62, as a '>', and make a file.
TEST_F(Run, ABinaryThatTheKernelDoesNotRunIsKeptFromTheShell) {
    const std::string empty = place.path + "/empty", bytes = read_file("/bin/true").substr(0, 100);
    std::filesystem::create_directory(empty);
    const std::map<std::string, std::string> files = {{"damaged", bytes},
                                                      {"begun", bytes.substr(0, 4)},
                                                      {"other", bytes.substr(4)},
                                                      {"packed", "\x1f\x8b\x08 >a"},
                                                      {"picture", "\x89PNG\r\n>a"}};
    for (const auto &[name, text] : files)
        chmod(place.file(name, text).c_str(), 0755);
    for (const char *name : {"damaged", "begun", "other", "packed", "picture", "../damaged"})
        for (const char *verb : {"run", "audit", "learn", "explain"}) {
            const Result result =
                command({"sh", "-c", "cd \"$1\" && PATH=$1/..:$PATH && exec \"$0\" $2 -- $3",
                         tool_path(), empty, verb, name},
                        environment);
            EXPECT_EQ(result.status, 126) << verb;
            EXPECT_EQ(result.err,
                      std::string("gpushare: ") + verb + ": cannot execute '" + name +
                          "': the kernel cannot run it, as it is damaged or for another machine; "
                          "allowed: programs for this machine, and scripts\n");
            EXPECT_EQ(result.out, "");
            EXPECT_TRUE(std::filesystem::is_empty(empty)) << verb;
        }
}

TEST_F(Run, ATextWithoutAnInterpreterIsRunByTheShell) {
    const std::string text = place.file("text", ":\tgr\xfc\xdf\necho ran $1\nexit 4\n");
    chmod(text.c_str(), 0755);
    environment["PATH"] = place.path + ":" + getenv("PATH");
    for (const char *verb : {"run", "audit", "learn", "explain"})
        for (const std::string &name : {text, std::string("text")}) {
            const Result result = tool({verb, "--", name, "it"}, environment);
            EXPECT_EQ(result.status, 4) << verb;
            EXPECT_EQ(result.out.find("ran it\n"), 0u) << verb;
        }
}

TEST_F(Run, WrongUseIs125) {
    Result result = run({});
    EXPECT_EQ(result.status, 125);
    EXPECT_EQ(result.err,
              "gpushare: run: an argument is missing; usage: gpushare run [OPTIONS] [--] CMD...\n");
    result = run({"--foo", "true"});
    EXPECT_EQ(result.status, 125);
    EXPECT_EQ(
        result.err,
        "gpushare: run: unknown option '--foo'; allowed: --config, --mode, --runtime, --help\n");
    EXPECT_EQ(run({"--config"}).status, 125);
}

TEST_F(Run, WithoutItsLibraryNothingRuns) {
    environment["GPUSHARE_LIBRARY"] = "/no/such.so";
    Result result = run({"echo", "ran"});
    EXPECT_OUT(result, 125, "");
    EXPECT_EQ(result.err, "gpushare: run: libgpushare.so not found; looked at: "
                          "GPUSHARE_LIBRARY=/no/such.so; set GPUSHARE_LIBRARY to its path\n");
}

TEST_F(Run, ALibraryPathThatLdPreloadCannotHoldIsRefused) {
    std::string odd = place.file("has blank.so", "x");
    environment["GPUSHARE_LIBRARY"] = odd;
    EXPECT_ERR_HAS(run({"echo", "ran"}), 125, "LD_PRELOAD cannot hold '" + odd + "'");
}

TEST_F(Run, TheLibraryIsFoundBesideTheToolAndInLib) {
    environment.erase("GPUSHARE_LIBRARY");
    std::string bin = place.path + "/bin";
    std::filesystem::create_directory(bin);
    std::filesystem::copy(tool_path(), bin + "/gpushare");
    for (std::string below : {"/lib/x86_64-linux-gnu", "/lib64", "/lib", "/bin"}) {
#ifndef __x86_64__
        if (below == "/lib/x86_64-linux-gnu")
            continue;
#endif
        std::filesystem::create_directories(place.path + below);
        std::string found = place.path + below + "/libgpushare.so";
        std::filesystem::copy(library, found); // each goes before those tried earlier in this loop
        Result result = command({bin + "/gpushare", "run", "printenv", "LD_PRELOAD"}, environment);
        EXPECT_EQ(result.out, found + "\n") << result.err;
    }
}

TEST_F(Run, TheRuntimeChoosesTheLibrary) {
    environment.erase("GPUSHARE_LIBRARY");
    std::string bin = place.path + "/bin";
    std::filesystem::create_directory(bin);
    std::filesystem::copy(tool_path(), bin + "/gpushare");
    std::filesystem::copy(library, bin + "/libgpushare.so");
    std::filesystem::copy(library, bin + "/libgpushare-hip.so");
    const auto preloaded = [&](const std::string &option) {
        return command({bin + "/gpushare", "run", option, "printenv", "LD_PRELOAD"}, environment);
    };
    EXPECT_EQ(preloaded("--runtime=cuda").out, bin + "/libgpushare.so\n");
    EXPECT_EQ(preloaded("--runtime=hip").out, bin + "/libgpushare-hip.so\n");
    const Result wrong = preloaded("--runtime=rocm");
    EXPECT_ERR(wrong, 125, "gpushare: run: --runtime 'rocm' is none; allowed: cuda, hip\n");
    std::filesystem::remove(bin + "/libgpushare-hip.so");
    EXPECT_HAS(preloaded("--runtime=hip").err, "libgpushare-hip.so not found");
}

TEST_F(Run, AStaticallyLinkedCommandIsWarnedAbout) {
    std::string path = altered("static", make_static);
    EXPECT_EQ(run({path}).err.find("gpushare: run: warning: '" + path +
                                   "' is statically linked: no loader reads LD_PRELOAD for it; it "
                                   "runs without gpushare\n"),
              0u);
}

TEST_F(Run, ASetuidCommandIsWarnedAbout) {
    std::string path = altered("setuid", [](std::string &) {});
    struct statvfs place_of_it;
    if (chown(path.c_str(), 65534, 65534) != 0 || statvfs(path.c_str(), &place_of_it) != 0 ||
        (place_of_it.f_flag & ST_NOSUID) != 0)
        GTEST_SKIP() << "only root can make one, and not where a mount has nosuid";
    chmod(path.c_str(), 04755);
    Result result = run({path});
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(result.err,
              "gpushare: run: warning: '" + path +
                  "' is setuid: the loader ignores LD_PRELOAD for it; it runs without gpushare\n");
    chmod(path.c_str(), 02755);
    EXPECT_HAS(run({path}).err, "is setgid: ");
    // In a container without new privileges it gains none, and is preloaded.
    EXPECT_EQ(command({"setpriv", "--no-new-privs", tool_path(), "run", path}, environment).err,
              "");
}

TEST_F(Run, AForeignCommandIsWarnedAboutBeforeItFails) {
    std::string path = altered("foreign", make_foreign);
    EXPECT_ERR_HAS(run({path}), 126, "is built for another processor than the library");
    EXPECT_HAS(run({altered("musl", make_musl)}).err, "uses musl, the library needs glibc");
}

TEST_F(Run, AScriptIsJudgedByItsInterpreter) {
    std::string script = place.file("good", "#!/bin/sh\nexit 3\n");
    chmod(script.c_str(), 0755);
    EXPECT_ERR(run({script}), 3, "");
    std::string path = altered("static", make_static);
    script = place.file("bad", "#! " + path + " -x\n");
    chmod(script.c_str(), 0755);
    EXPECT_HAS(run({script}).err,
               "is a script, and its interpreter " + path + " is statically linked");
}

TEST_F(Run, ACommandFromThePathIsJudgedToo) {
    std::string path = altered("in-path", make_static);
    Result result = run({"in-path"}, {{"PATH", "/nowhere:" + place.path}});
    EXPECT_HAS(result.err, "'in-path' is statically linked");
}

TEST_F(Run, OnATerminalAForgottenConfigurationIsSaid) {
    Environment all = environment;
    const std::vector<std::string> line = {tool_path(), "run", "true"};
    all["LD_LIBRARY_PATH"] =
        std::filesystem::absolute(tool_path()).parent_path() / "sim"; // a driver
    EXPECT_EQ(
        on_terminal(400, line, all),
        "gpushare: run: warning: no configuration was found: GPUSHARE_CONFIG is not set, and there "
        "is no ~/gpushare/gpushare.conf and no /etc/gpushare.conf; no rule takes an allocation\n");
    EXPECT_EQ(command(line, all).err, "");
    all["GPUSHARE_CONFIG"] = place.file("none.conf", "; no rule\n");
    EXPECT_EQ(on_terminal(400, line, all), "");
}

TEST_F(Run, WhatIsWrongWithTheEnvironmentIsSaid) {
    Result result = run({"true"}, {{"GPUSHARE_NAMESPACE", "a b"}});
    EXPECT_ERR(result, 125,
               "gpushare: run: GPUSHARE_NAMESPACE='a b' is no name; allowed: 1 to 127 "
               "of [A-Za-z0-9._-] without a leading dot\n");
    result = run({"true"}, {{"GPUSHARE_DIR", "here"}});
    EXPECT_ERR(result, 125, "gpushare: run: GPUSHARE_DIR='here' must be an absolute path\n");
    result = run({"true"}, {{"GPUSHARE_ONFREE", "wait"}, {"GPUSHARE_SIM_ROOT", "@x"}});
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(result.err,
              "gpushare: run: warning: GPUSHARE_ONFREE is set, and nothing reads it; perhaps "
              "GPUSHARE_ON_FREE; gpushare --help and config/gpushare.conf have all\n");
    EXPECT_EQ(run({"true"}, {{"GPUSHARE_COLOUR_OF_MOON", "1"}}).err,
              "gpushare: run: warning: GPUSHARE_COLOUR_OF_MOON is set, and nothing reads it; "
              "gpushare --help and config/gpushare.conf have all\n");
}
