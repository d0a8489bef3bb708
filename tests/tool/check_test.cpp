// gpushare check: says what a configuration means, or what is wrong with it.
#include "harness.hpp"

struct Check : testing::Test {
    Temporary place;
};

TEST_F(Check, AllListsTheDefaultsOfAGoodFile) {
    std::string file =
        place.file("good.conf", "[gpushare]\nmode = audit\n"
                                "[region frames]\nprogram = producer*\nsize = 64MiB\n"
                                "role = export\nready = free\nhandover = 5s\n"
                                "[region part{n}]\nindex = *\ndevice = 1\n"
                                "size = >=1GiB\nrole = import\nmissing = fail\n");
    Result result = tool({"check", "--all", file});
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(
        result.out.find(file + ": OK: 2 rules\n\n[gpushare]\n  mode         = audit      file "),
        0u)
        << result.out;
    EXPECT_HAS(result.out, "\n  on_free      = defer      default ");
    EXPECT_HAS(result.out,
               "\n[region frames], line 3\n"
               "  program      = producer*\n"
               "  size         = 64MiB\n"
               "  index        = 0\n"
               "  device       = *\n"
               "  caller       = *\n"
               "  role         = export\n"
               "  ready        = free\n"
               "  handover     = 5s\n"
               "  backing      = legacy\n"
               "  frames       = off\n\n"
               "  Takes the first allocation of 64 MiB of programs named producer*: that becomes\n"
               "  region frames, for others to import.\n"
               "  Importers get it when the program frees it; it is kept for the first of them\n"
               "  for 5 s, the end of the program included.\n");
    EXPECT_HAS(result.out, "\n[region part{n}], line 9\n"
                           "  program      = *\n"
                           "  size         = >=1GiB\n"
                           "  index        = *\n"
                           "  device       = 1\n"
                           "  caller       = *\n"
                           "  role         = import\n"
                           "  wait         = 10s\n"
                           "  missing      = fail\n");
}

TEST_F(Check, AGoodFileIsListedWithoutDefaults) {
    const std::string rules = "[region frames]\nprogram = producer\nrole = export\n";
    const auto listed = [&](const std::string &options) {
        const std::string file = place.file("good.conf", options + rules);
        return tool({"check", file}).out.substr(file.size());
    };
    const std::string rule = "  program      = producer\n  role         = export\n\n  Takes ";
    EXPECT_EQ(listed("").find(": OK: 1 rule\n\n[region frames], line 1\n" + rule), 0u)
        << listed("");
    const std::string audit = listed("[gpushare]\nlinger = 3s\n");
    EXPECT_EQ(audit.find(": OK: 1 rule\n\n[gpushare]\n  linger       = 3s         file "), 0u)
        << audit;
    EXPECT_HAS(audit, "\n[region frames], line 3\n" + rule);
    EXPECT_LACKS(audit, "default");
}

TEST_F(Check, SaysWhatFramesDo) {
    const auto said = [&](const std::string &keys) {
        const std::string file = place.file("c", "[region f]\nrole = export\n" + keys);
        const Result result = tool({"check", file});
        EXPECT_EQ(result.status, 0) << result.err;
        expect_to_fit(result.out, 80);
        return std::regex_replace(result.out, std::regex("\n +"), " ");
    };
    EXPECT_HAS(said("frames = latest\nframe_waits = 2\n"),
               "frames = latest: importers have memory of their own, and get the newest frame that "
               "is whole; nobody waits.",
               " frame_waits  = 2");
    EXPECT_HAS(said("frames = each\nframes_timeout = 3s\nframe_slots = 4\n"),
               "frames = each: importers have memory of their own, and get each whole frame, in "
               "order; who is late is waited for, for 3 s at most.",
               " frame_slots  = 4");
    EXPECT_HAS(said(""), "Importers get it at once.");
}

TEST_F(Check, SaysWhatFramesMayBe) {
    const auto said = [&](const std::string &keys) {
        const std::string file = place.file("c", "[region f]\n" + keys);
        const Result result = tool({"check", file});
        EXPECT_EQ(result.status, 1) << keys << result.out;
        return result.err;
    };
    const std::string latest = "role = export\nframes = latest\n";
    EXPECT_HAS(said("role = merge\nframes = latest\n"),
               ":3: [region f] frames has no effect with role = merge: programs do not share a "
               "buffer by it; remove it\n");
    EXPECT_HAS(said(latest + "ready = free\n"),
               "ready = free hands over one result; with frames each frame is handed over\n");
    EXPECT_HAS(said(latest + "frame_slots = 1\n"),
               ":4: frame_slots = 1: one frame is read while another is written; 2 to 16\n");
    EXPECT_HAS(said(latest + "frame_slots = 17\n"), "frame_slots = 17: too large; 2 to 16\n");
    EXPECT_HAS(said(latest + "frame_waits = 1001\n"), "frame_waits = 1001: too large; 0 to 1000\n");
    EXPECT_HAS(said("role = export\nframes = sometimes\n"),
               ":3: frames = sometimes: not allowed; one of off, latest, each\n");
    EXPECT_HAS(said(latest + "touch = some\n"), "touch = some: not allowed; one of words, any\n");
    EXPECT_HAS(said("role = export\nframes = each\nframes_timeout = late\n"),
               "frames_timeout = late: not a number; a time such as ");
}

TEST_F(Check, WhatHipHasNoMemoryForIsAnErrorThere) {
    const std::string file = place.file(
        "hip.conf",
        "[gpushare]\nopen_cache = 8\nvmm_ipc = on\n[region a]\nrole = export\nbacking = vmm\n"
        "[region b]\nrole = merge\n[region c]\nrole = export\n");
    EXPECT_EQ(tool({"check", "--runtime=cuda", file}).status, 0);
    const Result result = tool({"check", "--runtime=hip", file});
    EXPECT_OUT(result, 1, "");
    EXPECT_EQ(
        result.err,
        file + ": open_cache does not work with HIP: set it to 0\n" + file +
            ": vmm_ipc does not work with HIP: it is for memory of CUDA's cuMemCreate\n" + file +
            ":4: backing = vmm does not work with HIP: the keeper holds memory of CUDA's "
            "cuMemCreate\n" +
            file +
            ":7: role = merge does not work with HIP: merging is built on CUDA's cuMemCreate\n");
    const std::string good = place.file("good.conf", "[region c]\nrole = export\n");
    EXPECT_EQ(tool({"check", "--runtime=hip", good}).status, 0);
}

TEST_F(Check, IndicesAreANumberARangeOrEveryOne) {
    const std::string file = place.file("index.conf", "[region a]\nrole = auto\nindex = 3\n"
                                                      "[region b{n}]\nrole = auto\nindex = 0..9\n"
                                                      "[region c{n}]\nrole = auto\nindex = >=4\n"
                                                      "[region d]\nrole = auto\n"
                                                      "index = 18446744073709551615\n");
    const Result result = tool({"check", file});
    EXPECT_HAS(result.out, "  index        = 3\n", "  index        = 0..9\n",
               "  index        = >=4\n", "  index        = 18446744073709551615\n");
}

TEST_F(Check, EveryKeyIsListedAsAFileWouldHaveIt) {
    const std::string uuid = "GPU-00112233-4455-6677-8899-aabbccddeeff";
    const std::string keys = "  program      = *\n"
                             "  size         = 1MiB..2MiB\n"
                             "  index        = 0\n"
                             "  device       = " +
                             uuid +
                             "\n"
                             "  caller       = lib*\n"
                             "  role         = auto\n"
                             "  wait         = 500ms\n"
                             "  missing      = private\n"
                             "  ready        = alloc\n"
                             "  backing      = vmm\n"
                             "  keep         = 90s\n"
                             "  access       = ro\n";
    std::string file = "[region a]\n" + keys;
    for (size_t at = 0; (at = file.find("\n  ", at)) != std::string::npos;)
        file.erase(at + 1, 2);
    const Result result = tool({"check", place.file("all.conf", file)});
    EXPECT_HAS(result.out, "\n[region a], line 1\n" + keys) << result.err;
    const Result forever = tool({"check", place.file("keep.conf", "[region a]\nrole = auto\n"
                                                                  "backing = vmm\n"
                                                                  "keep = forever\n")});
    EXPECT_HAS(forever.out, "  keep         = forever\n");
}

TEST_F(Check, AMergeRuleIsToldInWords) {
    std::string out = tool({"check", "--all",
                            place.file("a.conf", "[region w]\nprogram = server\nrole = merge\n")})
                          .out;
    EXPECT_HAS(out, "  role         = merge\n"
                    "  keep         = users\n"
                    "  quiet        = 30s\n"
                    "  content      = uploaded\n"
                    "  verify       = bytes\n"
                    "  overcommit   = off\n"
                    "  rdma         = off\n"
                    "  mps          = off\n"
                    "  created      = off\n\n"
                    "  Takes every allocation of 1 MiB or more of programs named server;\n"
                    "  blocks that copies from the host filled and that have not changed for 30 s "
                    "are held once per GPU;\n"
                    "  equal hashes are confirmed byte by byte;\n"
                    "  a block is kept while a process uses it.\n");
    EXPECT_LACKS(out, "\n  wait ");
    out = tool({"check", "--all",
                place.file("b.conf", "[region w]\nrole = merge\nsize = 512KiB..4MiB\n"
                                     "caller = libtorch*\nindex = 2..5\nquiet = 0\n"
                                     "keep = 10min\nverify = off\ndevice = 1\n"
                                     "overcommit = on\n")})
              .out;
    EXPECT_HAS(out,
               "\n  Takes every allocation of 1 MiB to 4 MiB on GPU 1 by code in libtorch* of "
               "every program,\n  but of those only number 2..5;\n",
               "are held once per GPU, at once;\n", "\n  overcommit   = on\n",
               "  equal hashes are believed;\n"
               "  a block is kept 10 min after its last user.\n"
               "  More is allocated than the GPU has; ");
    out = tool({"check", "--all", place.file("e.conf", "[region w]\nrole = merge\ncreated = on\n")})
              .out;
    EXPECT_HAS(out, "  Memory of cuMemCreate is taken, too, up to 1 GiB each, while ");
    out = tool({"check", "--all", place.file("c.conf", "[region w]\nrole = merge\nsize = <1MiB\n")})
              .out;
    EXPECT_HAS(out, "  Takes nothing: allocations below 1 MiB are never merged.\n");
    out = tool({"check", "--all",
                place.file("d.conf", "[region w]\nrole = merge\nsize = 4MiB\n"
                                     "content = any\nkeep = forever\n")})
              .out;
    EXPECT_HAS(out,
               "every allocation of 4 MiB of every program;\n"
               "  blocks that have not changed for 30 s ",
               "  a block is kept until `gpushare drop --merged`.\n");
}

TEST_F(Check, SizesAreNotRoundedInWords) {
    const std::string out =
        tool({"check", place.file("a.conf", "[region a]\nsize = 6220801\nrole = auto\n"
                                            "[region b]\nsize = <6MiB\nrole = auto\n")})
            .out;
    EXPECT_HAS(out, "first allocation of 6220801 bytes of every program");
    EXPECT_HAS(out, "first allocation of less than 6 MiB of every program");
}

TEST_F(Check, CountsRules) {
    EXPECT_HAS(tool({"check", place.file("none.conf", "; nothing\n")}).out, ": OK: 0 rules\n");
    EXPECT_HAS(tool({"check", place.file("one.conf", "[region a]\nrole = auto\n")}).out,
               ": OK: 1 rule\n");
}

TEST_F(Check, ErrorsNameFileAndLineOnStderr) {
    std::string file = place.file("bad.conf", "[gpushare]\nmode = on\nlinger = soon\n");
    Result result = tool({"check", file});
    EXPECT_OUT(result, 1, "");
    EXPECT_EQ(result.err.find(file + ":2: "), 0u) << result.err;
    EXPECT_HAS(result.err, "share, audit, off", "\n" + file + ":3: ");
}

TEST_F(Check, AFileThatIsNotThereIsAnError) {
    Result result = tool({"check", "/no/such.conf"});
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.err.find("/no/such.conf: "), 0u) << result.err;
}

TEST_F(Check, TheEnvironmentIsLeftOut) {
    Result result = tool({"check", place.file("a.conf", "[gpushare]\nmode = audit\n")},
                         {{"GPUSHARE_MODE", "nonsense"}});
    EXPECT_EQ(result.status, 0) << result.err;
}

TEST_F(Check, ALogThatIsADirectoryIsRefused) {
    for (const char *text : {"log = /tmp", "event_log = logs/"}) {
        const std::string file = place.file("a.conf", "[gpushare]\n" + std::string(text) + "\n");
        const Result result = tool({"check", "-q", file});
        EXPECT_OUT(result, 1, "");
        EXPECT_EQ(result.err,
                  file + ":2: " + text + " is a directory: name a file in it, such as %p.log\n");
    }
}

TEST_F(Check, WarnsOfWhatIsHardlyMeant) {
    const std::string export_any = "[region b]\nprogram = *\nsize = 1MiB\nrole = export\n",
                      import = "[region b]\nprogram = cons\nsize = 1MiB\nrole = import\n";
    const struct {
        std::string text, warning;
    } cases[] = {
        {export_any + import, ":5: warning: [region b] in line 1 is for program = cons, too, which "
                              "would export and not import it: put this one before it\n"},
        {"[region b]\nprogram = cons\nsize = 1MiB\nrole = export\n" + import,
         ":5: warning: [region b] in line 1 is for program = cons, too, which would export and not "
         "import it: one rule with role = auto, in place of both, lets its first process export "
         "and the others import\n"},
        {"[region b]\nprogram = prod\nsize = 1MiB\nrole = export\n" + import, ""},
        {"[region b]\nrole = merge\nsize = 512KiB\n",
         ":3: warning: [region b] takes nothing: allocations below 1 MiB are never merged\n"},
        {"[region b]\nrole = merge\n",
         ":1: warning: [region b] takes all memory of every program, and a kernel that writes into "
         "what is merged ends its process: name the program (program = NAME)\n"},
        {"[region b]\nrole = merge\nprogram = server\n", ""},
        {"[region b]\nprogram = *\nsize = *\nrole = merge\n",
         ":1: warning: [region b] takes all memory of every program, and a kernel that writes into "
         "what is merged ends its process: name the program (program = NAME)\n"},
        {"[region b]\nprogram = *\nrole = export\n",
         ":1: warning: [region b] takes an allocation of every program, whatever its size: name "
         "the "
         "program (program = NAME) or the size\n"},
        {"[region b]\nsize = 1MiB\nrole = export\n", ""},
        {"\n", ":1: warning: the file sets nothing: every option has its default, and there is no "
               "rule\n"},
        {"# a comment\n[gpushare]\n", ":1: warning: the file sets nothing: every option has its "
                                      "default, and there is no rule\n"},
        {"[region b]\nprogram = p\nrole = auto\nbacking = vmm\naccess = ro\n[region b]\n"
         "program = q\nrole = auto\nbacking = vmm\n",
         ":6: warning: [region b] does not import what line 1 shares read-only: give it backing = "
         "vmm and access = ro, too\n"},
        {"[region b]\nprogram = c\nsize = 1MiB\nrole = import\n[region b]\nprogram = p\n"
         "size = <1MiB\nrole = export\n",
         ":3: warning: [region b] cannot be imported: size = 1MiB here asks for more than size = "
         "<1MiB of line 5 exports\n"},
        {"[region b]\nprogram = c\nsize = 1MiB\nrole = import\n[region b]\nprogram = p\n"
         "size = 2MiB\nrole = export\n",
         ":3: warning: [region b] asks for half of what line 5 exports, or less: it gets the "
         "beginning of the region, which is hardly meant\n"},
        {"[region b]\nprogram = p\nrole = export\nwait = 3s\n",
         ":4: warning: wait has no effect in [region b]: an exporter waits for nobody\n"},
        {"[gpushare]\nsuspend = on\n[region b]\nprogram = x\nrole = merge\ncreated = on\n",
         ":6: warning: created = on has no effect in [region b]: with vmm_ipc = on or suspend = on "
         "memory of cuMemCreate is not merged\n"},
        {"[region b]\nprogram = x\nrole = merge\nquiet = 0\ncontent = any\n",
         ":5: warning: content = any has no effect in [region b]: with quiet = 0 only what copies "
         "have filled is merged\n"},
        {import + export_any, ""},
        {"[region a{n}]\nprogram = *\nsize = *\nindex = *\nrole = auto\n[region b]\nprogram = "
         "prod\n"
         "role = export\n",
         ":6: warning: [region b] matches nothing: [region a{n}] in line 1 takes all that it fits; "
         "put this one before it\n"},
        {"[region b]\nprogram = python3 cam.py\nrole = export\n",
         ":2: warning: program = python3 cam.py has a blank: the name of a program is matched, and "
         "not its command line: cam.py for `python3 cam.py --gpu 0`; GPUSHARE_PROGRAM gives "
         "processes names of their own\n"},
        {"[gpushare]\nmode = share\nfree_timeout = 3s\n" + export_any,
         ":3: warning: free_timeout has no effect: it is for on_free = wait\n"},
        {"[gpushare]\n\nlog = /no/such/%c/log\n",
         ":3: warning: log cannot be written in /no/such/: No such file or directory\n"},
        {"[gpushare]\nevent_log = /dev/null/%p\n",
         ":2: warning: event_log cannot be written in /dev/null/: Not a directory\n"},
        {"[gpushare]\nlog = /dev/null\nevent_log = /tmp/%c/%p\n", ""},
        {"[gpushare]\nlog = no/such/log\n", ""}, // where that is a program knows
    };
    for (const auto &one : cases) {
        const std::string file = place.file("a.conf", one.text);
        EXPECT_EQ(tool({"check", file}).err, one.warning.empty() ? "" : file + one.warning);
    }
}

TEST_F(Check, StrictFailsOnWarningsAndQuietPrintsNothingElse) {
    const std::string good = place.file("good.conf", "[region a]\nrole = auto\n"),
                      odd = place.file("odd.conf", "[region a]\nrole = import\n");
    const Result silent = tool({"check", "-q", "--strict", good});
    EXPECT_EQ(silent.status, 0);
    EXPECT_EQ(silent.out + silent.err, "");
    EXPECT_EQ(tool({"check", "--quiet", odd}).status, 0);
    const Result strict = tool({"check", "-q", "--strict", odd});
    EXPECT_OUT(strict, 1, "");
    EXPECT_HAS(strict.err, ":1: warning: [region a] is imported");
}
