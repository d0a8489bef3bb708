/* timeline.c - `gpushare timeline`: makes a page, or a file for Perfetto, of many logs. */
#include "timeline.h"

#include "cli/output.h"
#include "cli/term.h"
#include "cli/tool.h"
#include "report/report.h"

enum { OPTION_OUTPUT, OPTION_PERFETTO, OPTION_DEBUG };

static int write_out(const struct history *history, const struct tool_args *args) {
    const char *path = args->values[OPTION_OUTPUT];
    if (!path && isatty(STDOUT_FILENO)) {
        tool_error("a page is not for a terminal: write it to a file, as with -o page.html");
        return TOOL_USAGE;
    }
    FILE *out = output_open(path);
    if (out && args->values[OPTION_PERFETTO])
        timeline_perfetto(out, history);
    else if (out)
        timeline_page(out, history, args->values[OPTION_DEBUG]);
    if (!out || !output_close(out, path))
        return TOOL_FAILED;
    if (path && strcmp(path, "-") != 0)
        term_line(stderr, "Wrote %s: open it %s.%s", path,
                  args->values[OPTION_PERFETTO] ? "in ui.perfetto.dev" : "with a browser",
                  history->lifetime_count + history->merge_count > 0
                      ? ""
                      : " No event of a region is in it: rules make regions, and merge.");
    return TOOL_OK;
}

static int run_timeline(const struct tool_args *args) {
    struct history history;
    int status = TOOL_FAILED;
    history_begin(&history);
    /* of -ENODATA, as where the process was killed, it has been warned */
    const bool all = report_read_logs(args->operands, history_add, &history) != -EIO;
    history_end(&history);
    if (history.event_count > 0)
        status = write_out(&history, args);
    else if (all)
        tool_error("there is no event in these logs; a process writes them with event_log = FILE");
    if (status == TOOL_OK && !all)
        status = TOOL_BLIND;
    history_free(&history);
    return status;
}

const struct tool_verb tool_verb_timeline = {
    .name = "timeline",
    .operands = "LOG...",
    .summary = "show what happened to regions, as a page for a browser",
    .details = "The page has a lane for each region, for merged blocks and for each process, with "
               "bars for "
               "who held what and when, memory in use and what would be in use without sharing, "
               "and findings. It loads nothing.\n\n"
               "LOG is a file that gpushare wrote with event_log = FILE, a directory of *.jsonl "
               "files, or - for standard input. Logs of log_format = jsonl add the reports of "
               "findings. Bad lines are warned about and skipped.\n"
               "The exit status is 1 if there is no event, and 3 if a LOG cannot be read; the "
               "others are shown.\n",
    .options = {{"output", 'o', "FILE",
                 "write FILE, and not standard output, which must be no terminal"},
                {"perfetto", 0, NULL, "write trace events for ui.perfetto.dev instead"},
                {"debug-dir", 0, "DIR", "look for debug files here, too"}},
    .operands_min = 1,
    .operands_max = 1 << 20,
    .run = run_timeline,
};
