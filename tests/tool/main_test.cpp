// The tool as a whole: help, versions and wrong command lines.
#include "harness.hpp"

extern "C" {
#include "cli/tool.h"
}

#define NAME(id) #id,
static const char *const verbs[] = {GPS_VERBS(NAME)};
#undef NAME

TEST(Tool, PrintsItsVersion) {
    for (const char *option : {"--version", "-V"}) {
        Result result = tool({option});
        EXPECT_EQ(result.status, 0);
        EXPECT_EQ(result.out.substr(0, 9), "gpushare ");
        EXPECT_TRUE(isdigit(result.out[9])) << result.out;
        EXPECT_EQ(result.err, "");
    }
}

TEST(Tool, HelpNamesEveryCommand) {
    std::string help = tool({"--help"}).out;
    for (const char *verb : verbs)
        EXPECT_HAS(help, "\n  " + std::string(verb) + " ");
    EXPECT_EQ(tool({"-h"}).out, help);
    EXPECT_EQ(tool({"help"}).out, help);
    EXPECT_EQ(tool({"--help"}).status, 0);
}

TEST(Tool, EveryCommandExplainsItself) {
    for (std::string verb : verbs) {
        Result result = tool({verb, "--help"});
        EXPECT_ERR(result, 0, "");
        EXPECT_EQ(result.out.find("Usage: gpushare " + verb + " "), 0u) << result.out;
        EXPECT_HAS(result.out, "--help");
        EXPECT_EQ(tool({verb, "-h"}).out, result.out);
        EXPECT_EQ(tool({"help", verb}).out, result.out);
    }
}

TEST(Tool, HelpFits80Columns) {
    expect_to_fit(tool({"--help"}).out, 80);
    for (std::string verb : verbs) {
        const Result result = tool({verb, "--help"});
        expect_to_fit(result.out, 80);
        EXPECT_LACKS(result.out, " \n");
        EXPECT_EQ(on_terminal(200, {tool_path(), verb, "--help"}), result.out);
    }
}

TEST(Tool, HelpWorksAfterOtherOptionsAndWithoutAGoodDirectory) {
    Result result = tool({"ls", "--json", "--help"}, {{"GPUSHARE_DIR", "bad"}});
    EXPECT_OUT_HAS(result, 0, "Usage: gpushare ls");
}

TEST(Tool, WrongCommandLinesAreAnsweredWithWhatIsAllowed) {
    const struct {
        std::vector<std::string> line;
        std::string error;
    } wrong[] = {
        {{}, "gpushare: a command is missing; see: gpushare --help\n"},
        {{"list"},
         "gpushare: unknown command 'list', perhaps ls; allowed: run, learn, audit, ls, show, top, "
         "metrics, events, report, timeline, explain, pair, check, keeper, merge, suspend, resume, "
         "drop, forget, gc, cdi, doctor, help\n"},
        {{"help", "list"},
         "gpushare: help: unknown command 'list', perhaps ls; allowed: run, learn, audit, ls, "
         "show, top, metrics, events, report, timeline, explain, pair, check, keeper, merge, "
         "suspend, resume, drop, forget, gc, cdi, doctor, help\n"},
        {{"LS"},
         "gpushare: unknown command 'LS', perhaps ls; allowed: run, learn, audit, ls, show, top, "
         "metrics, events, report, timeline, explain, pair, check, keeper, merge, suspend, resume, "
         "drop, forget, gc, cdi, doctor, help\n"},
        {{"-v"}, "gpushare: unknown option '-v', perhaps --version; allowed: --version, --help\n"},
        {{"--hlp"},
         "gpushare: unknown option '--hlp', perhaps --help; allowed: --version, --help\n"},
        {{"--json"}, "gpushare: unknown option '--json'; allowed: --version, --help\n"},
        {{"ls", "--foo"},
         "gpushare: ls: unknown option '--foo'; allowed: --json, --all, --filter, --help\n"},
        {{"ls", "--jsno"},
         "gpushare: ls: unknown option '--jsno', perhaps --json; allowed: --json, --all, --filter, "
         "--help\n"},
        {{"ls", "-x"},
         "gpushare: ls: unknown option '-x'; allowed: --json, --all, --filter, --help\n"},
        {{"ls", "-ax"},
         "gpushare: ls: unknown option '-x'; allowed: --json, --all, --filter, --help\n"},
        {{"ls", "--json=yes"}, "gpushare: ls: option '--json' takes no value\n"},
        {{"ls", "--help=yes"}, "gpushare: ls: option '--help' takes no value\n"},
        {{"ls", "frames"},
         "gpushare: ls: unexpected argument 'frames'; usage: gpushare ls [OPTIONS]\n"},
        {{"show", "a", "b"},
         "gpushare: show: unexpected argument 'b'; usage: gpushare show [OPTIONS] "
         "[NAME|ID|PID|PROGRAM]\n"},
        {{"show", "--all"}, "gpushare: show: unknown option '--all'; allowed: --json, --help\n"},
        {{"check"},
         "gpushare: check: an argument is missing; usage: gpushare check [OPTIONS] FILE\n"},
        {{"check", "--json", "x"},
         "gpushare: check: unknown option '--json'; allowed: --all, --quiet, --strict, --runtime, "
         "--help\n"},
        {{"report"},
         "gpushare: report: an argument is missing; usage: gpushare report [OPTIONS] LOG...\n"},
        {{"report", "--level=bad", "x"},
         "gpushare: report: --level 'bad' is not a level; allowed: info, warning, error\n"},
        {{"report", "--json", "--sarif", "x"},
         "gpushare: report: --json, --sarif and --gen-suppressions exclude each other\n"},
        {{"gc", "now"}, "gpushare: gc: unexpected argument 'now'; usage: gpushare gc [OPTIONS]\n"},
        {{"gc", "--force"}, "gpushare: gc: unknown option '--force'; allowed: --dry-run, --help\n"},
        {{"doctor", "--foo", "b"},
         "gpushare: doctor: unknown option '--foo'; allowed: --config, --json, --pid, --runtime, "
         "--timeout, --selftest, --help\n"},
        {{"doctor", "--timeout"},
         "gpushare: doctor: option '--timeout' needs a value; see: gpushare doctor --help\n"},
        {{"doctor", "-t"},
         "gpushare: doctor: option '-t' needs a value; see: gpushare doctor --help\n"},
        {{"doctor", "--timeout=soon"},
         "gpushare: doctor: --timeout 'soon' is no time to wait; allowed: 500ms, 30s, 2min ...\n"},
    };
    for (const auto &[line, error] : wrong) {
        Result result = tool(line);
        EXPECT_ERR(result, 2, error);
        EXPECT_EQ(result.out, "");
    }
}

TEST(Tool, OutputThatCannotBeWrittenIsAFailure) {
    Result result = command({"sh", "-c", "\"$0\" --help >/dev/full", tool_path()});
    EXPECT_ERR(result, 1, "gpushare: cannot write the output: No space left on device\n");
}

TEST(Tool, AFindingsHigherLevelIsExplainedToo) {
    const std::string wrapped = tool({"explain", "free-while-open"}).out;
    std::string text;
    std::unique_copy(wrapped.begin(), wrapped.end(), std::back_inserter(text),
                     [](char a, char b) { return isspace(a) && isspace(b); });
    std::replace(text.begin(), text.end(), '\n', ' ');
    EXPECT_HAS(text, " Level warning: the program works only by luck",
               "; error where the free is let through, as in an audit",
               "in a file for gpushare audit --suppressions=FILE");
}

TEST(Tool, ADirectoryThatCannotBeUsedHasAHint) {
    EXPECT_HAS(tool({"explain", "share-fallback"}).out, "the directory cannot be used");
}

TEST(Tool, AnUnknownFindingIsNamed) {
    const Result result = tool({"explain", "double-free", "dubble-free"});
    EXPECT_ERR_HAS(result, 1, "'dubble-free' is no finding, but perhaps double-free; gpushare");
    EXPECT_EQ(result.out, "");
}

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
