// A stranger's first ten minutes: why is it not shared? Each mistake is made by real programs on
// the simulated driver, the example's daemon in C and its front end in Python; and explain, check,
// doctor or the program's own words must lead to the line that is wrong.
#include "harness.hpp"
#include "patience.hpp"

namespace {

namespace fs = std::filesystem;

const std::string examples =
    fs::path(__FILE__).parent_path().parent_path().parent_path() / "config/examples/";

std::string build() {
    return fs::path(tool_path()).parent_path();
}

std::string quoted(const std::string &word) {
    return "'" + word + "'";
}

class Stranger : public testing::Test {
  protected:
    Stranger() : shared("/dev/shm") {
        environment = {{"GPUSHARE_DIR", shared.path + "/pub"},
                       {"GPUSHARE_SIM_ROOT", "@" + shared.path},
                       {"GPUSHARE_SIM_LINGER_MS", "50"},
                       {"LD_LIBRARY_PATH", build() + "/sim"}};
        chmod(shared.path.c_str(), 0711);
        program("frontend.py", "frontend.py");
    }

    // A copy of an example's Python program under a name of the test's.
    std::string program(const std::string &name, const std::string &of) {
        fs::copy_file(examples + of, work.path + "/" + name, fs::copy_options::overwrite_existing);
        return work.path + "/" + name;
    }
    // The example's configuration with one mistake.
    std::string conf(const std::string &from = "", const std::string &to = "") {
        std::string text = read_file(examples + "daemon.conf");
        const size_t at = from.empty() ? 0 : text.rfind(from);
        EXPECT_NE(at, std::string::npos);
        return work.file("daemon.conf", text.replace(at, from.size(), to));
    }
    // A Python program that allocates, looks and ends.
    std::vector<std::string> once(const std::string &name) {
        return {"sh", "-c", "exec python3 " + work.path + "/" + name + " </dev/null"};
    }
    Result run(std::vector<std::string> words, const std::string &name,
               const Environment &more = {}) {
        const auto line = once(name);
        words.insert(words.end(), line.begin(), line.end());
        Environment all = more;
        all.merge(Environment(environment));
        return tool(words, all);
    }
    Result explain(const std::string &file, const std::string &name = "frontend.py",
                   const Environment &more = {}) {
        return run({"explain", "-c", file, "--"}, name, more);
    }
    Result look(const std::vector<std::string> &words) {
        return tool(words, environment);
    }

    Temporary work, shared;
    Environment environment;
};

// A program under gpushare that goes on for each line that it gets.
class Running {
  public:
    Running(const Temporary &work, const Environment &environment, const std::string &conf,
            const std::string &command, const std::string &before = "") {
        static int number;
        file = work.path + "/out." + std::to_string(number++);
        std::string line = "exec env";
        for (const auto &[name, value] : environment)
            line += " " + name + "=" + quoted(value);
        line += " " + before + " " + tool_path() + " run -c " + conf + " -- " + command + " >" +
                file + " 2>&1";
        in = popen(line.c_str(), "we");
    }
    ~Running() {
        end();
    }
    bool says(const std::string &text, int seconds = 20) const {
        return eventually([&] { return contains(said(), text); }, 1000 * seconds);
    }
    std::string said() const {
        return read_file(file);
    }
    void enter() const {
        fputc('\n', in);
        fflush(in);
    }
    int end() {
        const int status = in ? pclose(in) : 0;
        in = nullptr;
        return status;
    }

  private:
    FILE *in;
    std::string file;
};

// Without the line ends and blanks of wrapping.
std::string unwrapped(const std::string &text) {
    std::istringstream stream(text);
    std::string all;
    for (std::string word; stream >> word;)
        all += (all.empty() ? "" : " ") + word;
    return all;
}

} // namespace

TEST_F(Stranger, ADaemonInCAndAFrontEndInPythonShareAsTheExampleSays) {
    Running daemon(work, environment, conf(), build() + "/tests/apps/camerad");
    ASSERT_TRUE(daemon.says("frame 1, drawn by camerad")) << daemon.said();
    Running front(work, environment, conf(), "python3 " + work.path + "/frontend.py --big");
    ASSERT_TRUE(front.says("sees: frame 1, drawn by camerad")) << front.said();
    const Result ls = look({"ls"});
    EXPECT_HAS(ls.out, "1: frontend.py ");
    daemon.enter();
    ASSERT_TRUE(daemon.says("frame 2")) << daemon.said();
    front.enter();
    ASSERT_TRUE(front.says("sees: frame 2, drawn by camerad")) << front.said();
    EXPECT_EQ(front.end(), 0);
    EXPECT_EQ(daemon.end(), 0);
    EXPECT_LACKS(daemon.said() + front.said(), "GPUSHARE") << daemon.said() << front.said();
}

TEST_F(Stranger, TwoScriptsShareByTheirNames) {
    const std::string cam = program("cam.py", "frontend.py"),
                      view = program("view.py", "frontend.py");
    const std::string file =
        work.file("cam.conf", "[region frame]\nprogram = cam.py\nsize = 64MiB\nrole = export\n"
                              "[region frame]\nprogram = view\nsize = 64MiB\nrole = import\n");
    Running writer(work, environment, file, "python3 " + cam + " --fps 30");
    ASSERT_TRUE(writer.says("sees: ")) << writer.said();
    Running module(work, environment, file, "sh -c 'cd " + work.path + " && exec python3 -m view'");
    ASSERT_TRUE(module.says("sees: ")) << module.said();
    const Result ls = look({"ls"});
    EXPECT_HAS(ls.out, " cam.py ", "1: view ");
    const Result show = look({"show", "frame"});
    EXPECT_HAS(show.out, "owner      cam.py ");
}

TEST_F(Stranger, TheEnvironmentNamesAProgramAndArgumentsTellNamesakesApart) {
    const std::string file =
        work.file("left.conf", "[region left]\nprogram = left\nrole = export\n"
                               "[region right]\nprogram = right\nrole = export\n");
    Environment left = environment, right = environment;
    left["GPUSHARE_PROGRAM"] = "left";
    right["GPUSHARE_PROGRAM"] = "right";
    const std::string line = "python3 " + work.path + "/frontend.py ";
    Running a(work, left, file, line + "--gpu 0"), b(work, right, file, line + "--gpu 1"),
        c(work, right, file, line + "--gpu 2");
    ASSERT_TRUE(a.says("sees: ") && b.says("sees: ") && c.says("sees: "));
    const Result ls = look({"ls"});
    EXPECT_HAS(ls.out, " left ");
    EXPECT_TRUE(contains(ls.out, "(--gpu 1)") || contains(ls.out, "(--gpu 2)")) << ls.out;
    EXPECT_LACKS(ls.out, "(--gpu 0)");
}

TEST_F(Stranger, AWrongSizeIsShownWithWhatWasAskedFor) {
    const std::string file = conf("64MiB", "65MiB");
    const Result result = explain(file);
    EXPECT_ERR_HAS(result, 0, "     1x  size = 64MiB     cuMemAlloc in ");
    EXPECT_HAS(result.err,
               "not by [region frame], line 12: size = 65MiB, and this is size = 64MiB\n");
    EXPECT_HAS(result.err, "\nRules that matched nothing:\n");
    EXPECT_HAS(result.err,
               "  [region frame], line 12: size = 65MiB: size = 64MiB was asked for once\n");
    const Result check = look({"check", file});
    EXPECT_ERR(check, 0,
               file + ":14: warning: [region frame] cannot be imported: size = 65MiB "
                      "here asks for more than size = 64MiB of line 7 exports\n");
    const Result said =
        run({"run", "-c", file, "--"}, "frontend.py", {{"GPUSHARE_LOG_LEVEL", "info"}});
    EXPECT_HAS(said.err,
               "GPUSHARE: no allocation matched [region frame] (line 12), by frontend.py (pid ");
    EXPECT_EQ(run({"run", "-c", file, "--"}, "frontend.py").err, "");
}

TEST_F(Stranger, AWrongNameIsShownBesideThoseThatRan) {
    const Result result = explain(conf("frontend.py", "frontent.py"));
    EXPECT_HAS(result.err, "no rule is for this program\n");
    EXPECT_HAS(std::regex_replace(result.err, std::regex("\n +"), " "),
               "line 12: program = frontent.py: CUDA was used by frontend.py; perhaps frontend.py")
        << result.err;
    EXPECT_HAS(
        result.err,
        "not for it: [region frame], line 12: program = frontent.py, and this is frontend.py\n");
}

TEST_F(Stranger, AMissingPartnerIsWaitedForAloud) {
    const std::string file = conf("30s ", "4s ");
    Running front(work, environment, file, "python3 " + work.path + "/frontend.py --big");
    ASSERT_TRUE(
        front.says("GPUSHARE: waiting up to 4 s for an exporter of frame, by frontend.py (pid "))
        << front.said();
    const Result ls = look({"ls"});
    EXPECT_HAS(ls.out, "\nWAITING ", "  an exporter of frame ");
    EXPECT_HAS(look({"ls", "--json"}).out, "\"region\": \"frame\"");
    const Result show = look({"show", "frame"});
    EXPECT_HAS(show.err, "warning: waiting: frontend.py ");
    ASSERT_TRUE(front.says("share-timeout")) << front.said();
    EXPECT_HAS(front.said(), "arguments of this process: --big\n");
    EXPECT_TRUE(front.says("nobody exported it within 4 s in " + environment["GPUSHARE_DIR"] +
                           "/default; the allocation is private"))
        << front.said();
    EXPECT_LACKS(look({"ls"}).out, "WAITING");
    EXPECT_EQ(front.end(), 0);

    const std::string alone = work.file("alone.conf", "[region frame]\nprogram = frontend.py\n"
                                                      "role = import\nwait = 10ms\n");
    const Result result = explain(alone);
    EXPECT_HAS(result.err, "taken by [region frame], line 1: but it was left private: ");
    EXPECT_HAS(result.err, "\nEvery rule matched.\n");
    const std::string taken = result.err.substr(result.err.find("taken by"));
    EXPECT_LACKS(unwrapped(taken), "the allocation is private") << taken;
    EXPECT_HAS(unwrapped(taken),
               "An allocation was left private: `gpushare ls` says who shares in this directory, ")
        << taken;
    EXPECT_EQ(look({"check", alone}).err,
              alone + ":1: warning: [region frame] is imported, and no rule of this file exports "
                      "it: give the exporting program a rule of this name with role = export\n");
}

TEST_F(Stranger, AnotherDirectoryIsNamed) {
    Environment elsewhere = environment;
    elsewhere["GPUSHARE_DIR"] = shared.path + "/other";
    Running daemon(work, elsewhere, conf(), build() + "/tests/apps/camerad");
    ASSERT_TRUE(daemon.says("frame 1")) << daemon.said();
    const Result result = explain(conf("30s ", "20ms "));
    EXPECT_HAS(result.err,
               "nobody exported it within 20 ms in " + environment["GPUSHARE_DIR"] + "/default");
    EXPECT_HAS(look({"ls"}).out, environment["GPUSHARE_DIR"] + "/default");
    EXPECT_HAS(tool({"ls"}, elsewhere).out, " camerad ");
}

// Another user's processes are real ones: uid 12345's.
class StrangerToAnother : public Stranger {
  protected:
    void SetUp() override {
        if (geteuid() != 0 || access("/usr/bin/setpriv", X_OK) != 0)
            GTEST_SKIP() << "only root can become another user";
        chmod(shared.path.c_str(), 01777);
        chmod(work.path.c_str(), 0755);
        if (as_other({"test", "-x", tool_path()}, {}).status != 0)
            GTEST_SKIP() << "another user cannot reach " << tool_path();
        environment["GPUSHARE_SIM_ROOT"] = shared.path; // a simulated GPU for each user
    }
    Result as_other(std::vector<std::string> line, const Environment &with) {
        line.insert(line.begin(), {"setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"});
        return command(line, with);
    }
    // The daemon of one, and what the front end of the other is told.
    void expect_to_be_told(const Environment &with, bool daemon_is_other) {
        const std::string file = conf("30s ", "20ms "),
                          other = "setpriv --reuid=12345 --regid=12345 --clear-groups ";
        for (const auto &entry : fs::directory_iterator(work.path))
            chmod(entry.path().c_str(), 0644);
        const std::string uid = daemon_is_other ? "12345" : "0",
                          me = daemon_is_other ? "0" : "12345";
        Running daemon(work, with, file, build() + "/tests/apps/camerad",
                       daemon_is_other ? other : "");
        ASSERT_TRUE(daemon.says("frame 1")) << daemon.said();
        const auto ask = [&](std::vector<std::string> words) {
            words.insert(words.begin(), tool_path());
            return daemon_is_other ? command(words, with) : as_other(words, with);
        };
        std::vector<std::string> line = {"explain", "-c", file, "--"};
        for (const auto &word : once("frontend.py"))
            line.push_back(word);
        told = ask(line).err;
        doctor = unwrapped(ask({"doctor"}).out);
        const Result list = ask({"ls"});
        ls = list.out + list.err;
        whose = "uid " + uid;
        who = "you are " + me;
    }
    std::string told, doctor, ls, whose, who;
};

TEST_F(StrangerToAnother, WhoHasADirectoryOfHisOwnIsNamed) {
    Environment with = environment;
    with.erase("GPUSHARE_DIR");
    with["NVIDIA_DRA_LOCAL_IPC_DIR"] = shared.path;
    for (const bool other : {true, false}) {
        expect_to_be_told(with, other);
        const std::string mine = shared.path + "/gpushare-" + (other ? "0" : "12345"),
                          theirs =
                              whose + " in " + shared.path + "/gpushare-" + (other ? "12345" : "0");
        EXPECT_HAS(told, "nobody exported it within 20 ms in " + mine + "/default");
        EXPECT_HAS(told, "the same user");
        EXPECT_HAS(unwrapped(told), "share only with each other; elsewhere: " + theirs + ".")
            << told;
        EXPECT_HAS(ls, "No shared regions in " + mine +
                           "/default.\n"
                           "Programs of one user share only with each other; elsewhere: " +
                           theirs);
        EXPECT_HAS(doctor, "elsewhere: " + theirs);
    }
}

TEST_F(StrangerToAnother, WhoseDirectoryItIsIsSaid) {
    for (const bool other : {true, false}) {
        Environment with = environment;
        with["GPUSHARE_DIR"] = shared.path + (other ? "/others" : "/roots");
        expect_to_be_told(with, other);
        EXPECT_HAS(told,
                   "the directory " + with["GPUSHARE_DIR"] +
                       " cannot be used: it or a directory on the way is not yours\n",
                   "Hint: run: gpushare doctor\n");
        EXPECT_HAS(unwrapped(told), "taken by [region frame], line 12: but it was left private: "
                                    "the published directory cannot be used");
        EXPECT_HAS(unwrapped(told), "`gpushare doctor` whether that works here.") << told;
        EXPECT_HAS(doctor, "FAIL directory " + with["GPUSHARE_DIR"] + " belongs to " + whose +
                               ", " + who + " -> use one uid for all programs that share");
        EXPECT_HAS(ls, "it or a directory on the way is not yours");
    }
}

TEST_F(Stranger, AProgramWithoutCudaIsSaid) {
    const Result result = tool({"explain", "-c", conf(), "--", "true"}, environment);
    EXPECT_ERR_HAS(result, 1, "nothing was watched: no process used CUDA");
    EXPECT_EQ(tool({"explain", "-c", conf(), "--", "sh", "-c", "exit 3"}, environment).status, 3);
    EXPECT_HAS(explain("/dev/null").err, "cuMemAlloc in "); // without a rule
    EXPECT_EQ(tool({"explain", "--", "no-such-command-here"}, environment).status, 127);
    EXPECT_EQ(tool({"explain", "-c", "/no/such/file", "--", "true"}, environment).status, 125);
}

TEST_F(Stranger, AnIndexIsShownBesideTheNumberOfTheAllocation) {
    const std::string file = work.file("index.conf", "[region a]\nprogram = puppet\nindex = 0\n"
                                                     "role = export\n[region b]\n"
                                                     "program = puppet\nindex = 2\n"
                                                     "size = <=1MiB\nrole = export\n"),
                      sizes = "4096 4096 8192 8192 8192 8192",
                      line = "for size in " + sizes + "; do echo malloc a $size; done | " +
                             build() + "/tests/apps/puppet";
    const std::string said = tool({"explain", "-c", file, "--", "sh", "-c", line}, environment).err;
    EXPECT_HAS(said, "by [region a], line 1: index = 0, and this is number 1\n",
               "by [region b], line 5: index = 2, and this is number 0\n",
               "by [region a], line 1: index = 0, and these have numbers from 2 to 5\n",
               "taken by [region b], line 5: exported as b\n");
}

TEST_F(Stranger, WhoDropsThePreloadIsNamed) {
    const std::string puppet = build() + "/tests/apps/puppet",
                      line = "(echo malloc a 4096; sleep 1) | env -u LD_PRELOAD " + puppet;
    const Result result = tool({"explain", "--", "sh", "-c", line}, environment);
    EXPECT_ERR_HAS(result, 1, "gpushare: explain: puppet (pid ");
    EXPECT_HAS(result.err,
               ") used CUDA and was not watched: LD_PRELOAD was not in its environment");
}

TEST_F(Stranger, EveryLineFits80Columns) {
    expect_to_fit(look({"check", examples + "daemon.conf"}).out, 80);
    const Result result = explain(work.file("c", "[region frame]\nprogram = frontend.py\n"
                                                 "size = 1GiB\nrole = export\n"));
    std::string told = result.err.substr(result.err.find("frontend.py (pid"));
    expect_to_fit(told, 80);
}

// Neither program's source is known: what they allocate is enough for rules that work.
TEST_F(Stranger, WhatTwoProgramsAllocateFitsTogether) {
    const auto keep = [&](const std::string &name, const std::string &sizes) {
        const std::string path = work.path + "/" + name + ".json",
                          line = "for size in " + sizes + "; do echo malloc a $size; done | exec " +
                                 build() + "/tests/apps/puppet >/dev/null";
        Environment with = environment;
        with["GPUSHARE_PROGRAM"] = name;
        const Result result = tool({"explain", "-o", path, "--", "sh", "-c", line}, with);
        EXPECT_EQ(result.status, 0) << result.err;
        return path;
    };
    const std::string a = keep("camera", "4096 8388608 6220800 8388608 16777216"),
                      b = keep("viewer", "8388608 8388608 8388608 12582912 4096"),
                      c = keep("other", "1024");
    const Result result = tool({"explain", "--fit", a, b});
    EXPECT_OUT(result, 0,
               "[region camera-{n}]\nprogram = camera\nsize = 8MiB\nindex = 0..1\n"
               "role = export\n\n"
               "[region camera-{n}]\nprogram = viewer\nsize = 8MiB\nindex = 0..1\n"
               "role = import\n");
    EXPECT_HAS(result.err,
               "camera     8MiB      2  viewer     8MiB      3  the n-th with the n-th\n");
    EXPECT_HAS(result.err, "camera    16MiB      1  viewer    12MiB      1  it asks for less\n");
    const std::string rules = work.file("rules", result.out);
    EXPECT_EQ(tool({"check", "-q", "--strict", rules}).status, 0);
    const Result none = tool({"explain", "--fit", a, c});
    EXPECT_EQ(none.status, 1);
    EXPECT_HAS(none.err,
               "nothing fits: the second program must ask on the same GPU for a size of "
               "the first one's, or for less; half of it or less would get the beginning "
               "of the region, which is hardly meant\n",
               c + " has: 1KiB\n");
    EXPECT_HAS(tool({"explain", "--fit", a, a}).err, "both programs are called camera");
    EXPECT_EQ(tool({"explain", "--fit", a}).status, 2);
    const Result bad = tool({"explain", "--fit", a, rules});
    EXPECT_ERR_HAS(bad, 1, "'" + rules + "' is no file of `gpushare explain -o");
    EXPECT_EQ(tool({"explain", "--fit", rules, work.file("x", "{}")}).out, "");
}

TEST_F(Stranger, WhatOrdersExporterAndImportersIsSaidOncePerRule) {
    const std::string line =
        "for i in 1 2; do echo malloc a$i 4096; echo malloc b$i 8192; done | " + build() +
        "/tests/apps/puppet";
    const auto explained = [&](const std::string &keys) {
        const std::string file =
            work.file("o.conf", "[region a{n}]\nprogram = puppet\nsize = 4096\n"
                                "index = *\nrole = export\n" +
                                    keys +
                                    "[region b{n}]\nprogram = puppet\n"
                                    "size = 8192\nindex = *\nrole = export\n"
                                    "ready = free\nhandover = 100ms\n");
        return unwrapped(tool({"explain", "-c", file, "--", "sh", "-c", line}, environment).err);
    };
    const std::string disorder = "nothing orders the two programs: an importer may see half";
    std::string said = explained("");
    EXPECT_HAS(said, "exported as a0 " + disorder);
    EXPECT_EQ(said.find(disorder), said.rfind(disorder)) << said;
    said = explained("frames = latest\n");
    EXPECT_HAS(said, "frames = latest: importers have memory of their own, and get the newest");
    EXPECT_LACKS(said, disorder);
    said = explained("frames = each\nframes_timeout = 2s\n");
    EXPECT_HAS(said, "frames = each: importers have memory of their own, and get each whole "
                     "frame, in order; who is late is waited for, for 2 s at most");
}

// The second program speaks to the first one, so they run beside each other.
TEST_F(Stranger, APairRunsBesideEachOtherAndItsRulesFit) {
    const std::string puppet = build() + "/tests/apps/puppet >/dev/null",
                      pipe = work.path + "/pipe";
    const auto side = [&](const std::string &name, const std::string &before,
                          const std::string &after) {
        return "export GPUSHARE_PROGRAM=" + name + "; echo what " + name + " prints; " + before +
               "(for size in 4096 8388608; do " + "echo malloc a $size; done" + after + ") | " +
               puppet;
    };
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    const std::string first = side("camera", "", "; echo there >" + pipe),
                      second = side("viewer", "read word <" + pipe + "; ", "");
    const std::string rules = work.path + "/rules";
    Result result =
        tool({"pair", "-o", rules, "--", "sh", "-c", first, "--", "sh", "-c", second}, environment);
    EXPECT_ERR_HAS(result, 0, "Next: gpushare run -c " + rules + " -- sh -c ",
                   "\n and: gpushare run -c " + rules, "what camera prints");
    EXPECT_EQ(result.out, "");
    result.out = read_file(rules);
    EXPECT_EQ(result.out, "[region camera]\nprogram = camera\nsize = 8MiB\nrole = export\n\n"
                          "[region camera]\nprogram = viewer\nsize = 8MiB\nrole = import\n");
    EXPECT_EQ(tool({"check", "-q", "--strict", work.file("rules", result.out)}).status, 0);
    result = tool({"pair", "--frames=some", "-o", rules, "--", "true", "--", "true"}, environment);
    EXPECT_ERR_HAS(result, 125, "--frames 'some' is no way to share frames; allowed: latest, each");
    result = tool({"pair", "-o", "/dev/full", "--", "sh", "-c", first, "--", "sh", "-c", second},
                  environment);
    EXPECT_ERR_HAS(result, 125, "cannot write '/dev/full': No space left on device");
    EXPECT_ERR_HAS(tool({"pair", "--", "sh", "-c", "exit 7", "--", "sh", "-c",
                         "echo malloc a 4096 | " + puppet},
                        environment),
                   7, "no process of 'sh' allocated GPU memory");
    for (const std::vector<std::string> &words : {std::vector<std::string>{"pair", "--", "true"},
                                                  {"pair", "true", "--", "true"},
                                                  {"pair", "--", "true", "--"},
                                                  {"pair"}})
        EXPECT_EQ(tool(words).status, 125);
    EXPECT_EQ(tool({"pair", "--", "/not/there", "--", "true"}).status, 127);
}

// With --frames they run once more, with the rules, so that the waits of a frame are counted.
TEST_F(Stranger, APairMeasuresTheWaitsOfAFrame) {
    environment["FILM_STAYS"] = "100";
    for (const char *name : {"camera", "viewer"})
        fs::copy_file(build() + "/tests/apps/film", work.path + "/" + name);
    const auto paired = [&](const std::string &draw, const std::string &how = "latest",
                            int status = 0) {
        const Result result =
            tool({"pair", "--frames", how, "--", "sh", "-c", work.path + "/camera " + draw, "--",
                  work.path + "/viewer", "look", "one", "30", "65536", "-30"},
                 environment);
        EXPECT_EQ(result.status, status) << result.err;
        EXPECT_HAS(result.err, "Both run once more, with these rules");
        EXPECT_EQ(tool({"check", "-q", "--strict", work.file("rules", result.out)}).status, 0)
            << result.out;
        return result;
    };
    const std::string key = "role = export\nframes = latest\n";
    EXPECT_HAS(paired("draw four 30 65536").out,
               key +
                   "# Measured: the last 29 of 30 frames had as many waits.\nframe_waits = 4\n\n");
    EXPECT_HAS(paired("draw one 30 65536; exit 3", "each", 3).out,
               "frames = each\n# Measured: ", "\nframe_waits = 1\n");
    for (const auto &[draw, why] :
         {std::pair("draw mixed 30 65536",
                    "no 8 frames in a row had the same number of waits, of 30 "),
          std::pair("draw one 5 65536", "no 8 frames in a row had the same number of waits, of 5 "),
          std::pair("draw never 30 65536", "the program does not wait for its frames"),
          std::pair("draw threads 30 65536", "several threads draw a frame"),
          std::pair("draw four $([ $GPUSHARE_CONFIG = /dev/null ] && echo 30 || echo 0) 65536",
                    "no frame was seen")}) {
        SCOPED_TRACE(draw);
        const Result result = paired(draw);
        EXPECT_HAS(result.out, key + "# frame_waits is not known: " + why);
        EXPECT_LACKS(result.out, "frame_waits =");
        EXPECT_HAS(result.err, "The rules have no frame_waits: ");
    }
}
