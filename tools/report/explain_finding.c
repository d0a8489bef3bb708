#include "explain_finding.h"

#include <ctype.h>

#include "cli/table.h"
#include "cli/tool.h"
#include "cli/wrap.h"
#include "config/config.h"
#include "log/log.h"
#include "report.h"

#define LABEL_WIDTH 12

/* A group has the findings from its first one up to the first one of the next group. */
static const struct {
    enum gps_finding first;
    const char *title;
} groups[] = {{GPS_FREE_WHILE_OPEN, "Freeing memory"},
              {GPS_CLOSE_UNOPENED, "Closing memory of others"},
              {GPS_DOUBLE_OPEN, "Opening memory of others"},
              {GPS_EXPORT_NOT_CAPABLE, "Exporting memory"},
              {GPS_EVENT_NOT_INTERPROCESS, "Events"},
              {GPS_NULL_OUTPUT, "Any IPC call"},
              {GPS_VMM_DOUBLE_RELEASE, "Memory of cuMemCreate"},
              {GPS_POOL_ALLOC_IMPORTED, "Memory pools"},
              {GPS_LEAK_OPEN, "Leaks, resets and forks"},
              {GPS_SHARE_MISMATCH, "Sharing by rule"},
              {GPS_CONFIG_ERROR, "gpushare itself"}};

static const char *finding_group(enum gps_finding finding) {
    const char *title = "";
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]) && groups[i].first <= finding; i++)
        title = groups[i].title;
    return title;
}

static bool finding_fits(const char *word, int finding) {
    return gps_glob_match(word, gps_finding_id((enum gps_finding)finding));
}

const char *explain_finding_unknown(char **words) {
    for (; *words; words++) {
        bool found = false;
        for (int i = 0; i < GPS_FINDING_COUNT && !found; i++)
            found = finding_fits(*words, i);
        if (!found)
            return *words;
    }
    return NULL;
}

/* --- in full --- */

static const char *const meanings[] = {
    "info: nothing need be wrong; you may want to know it",
    ("warning: the program works only by luck or through gpushare's protection, or sharing did "
     "not happen as configured"),
    "error: the program is wrong; its own results or those of other processes are at risk"};

static void line(const char *label, const char *text) {
    printf("  %-*s", LABEL_WIDTH - 2, label);
    wrap_text(stdout, text, LABEL_WIDTH);
}

static void sentence(const char *label, const char *text) {
    TOOL_TEMP char *whole = tool_format("%c%s.", toupper((unsigned char)text[0]), text + 1);
    line(label, whole);
}

/* "warning: ...; error where ..."; malloc'ed. */
static char *level_text(enum gps_finding finding) {
    enum gps_level higher;
    const char *meaning = meanings[gps_finding_level(finding)],
               *where = gps_finding_raised(finding, &higher);
    return where ? tool_format("%s; %s %s", meaning, gps_level_name(higher), where)
                 : tool_copy(meaning);
}

static void finding_explain(enum gps_finding finding) {
    const char *id = gps_finding_id(finding);
    const enum gps_level level = gps_finding_level(finding);
    TOOL_TEMP char *meaning = level_text(finding);
    TOOL_TEMP char *suppress =
        tool_format("[suppress NAME] with finding = %s, in a file for gpushare audit "
                    "--suppressions=FILE, or report; more exactly: gpushare report "
                    "--gen-suppressions LOG",
                    id);
    TOOL_TEMP char *example = tool_format("docs/findings.md#%s", id);
    printf("%s%s%s\n", term_colour(report_colour(level)), id, term_colour(TERM_PLAIN));
    line("Group", finding_group(finding));
    line("Level", meaning);
    sentence("What", gps_finding_sentence(finding));
    sentence("To do", gps_finding_hint(finding));
    line("Example", example);
    line("Suppress", suppress);
}

void explain_findings(char **words) {
    const char *before = "";
    for (; *words; words++)
        for (int i = 0; i < GPS_FINDING_COUNT; i++)
            if (finding_fits(*words, i)) {
                fputs(before, stdout);
                finding_explain((enum gps_finding)i);
                before = "\n";
            }
}

/* --- all of them --- */

void explain_finding_list(void) {
    static const struct table_column columns[] = {{"FINDING", 0}, {"LEVEL", 0}, {"WHAT", 0}};
    for (int i = 0; i < GPS_FINDING_COUNT;) {
        struct table table = TABLE(columns);
        const char *group = finding_group((enum gps_finding)i);
        printf("%s%s\n", i > 0 ? "\n" : "", group);
        for (; i < GPS_FINDING_COUNT && finding_group((enum gps_finding)i) == group; i++) {
            const enum gps_finding finding = (enum gps_finding)i;
            const enum gps_level level = gps_finding_level(finding);
            table_cell(&table, TERM_PLAIN, "%s", gps_finding_id(finding));
            table_cell(&table, report_colour(level), "%s", gps_level_name(level));
            table_cell(&table, TERM_PLAIN, "%s", gps_finding_sentence(finding));
        }
        table_print(stdout, &table, "  ");
    }
}
