/*
 * forget.c - `gpushare forget`: lets allocations be merged again that were excluded, or suspected.
 */

#include "cli/printable.h"
#include "cli/table.h"
#include "cli/tool.h"
#include "config/config.h"
#include "excluded.h"
#include "view.h"

enum { OPTION_DRY_RUN };

#define NOTHING "Nothing to forget."

/* As the report names it: its rule, and which of the rule's allocations it is; malloc'ed. */
static char *exclusion_name(const struct gps_exclusion *exclusion) {
    return tool_format("%.*s:%" PRIu64, (int)sizeof(exclusion->name), exclusion->name,
                       exclusion->index);
}

static void excluded_print(const struct excluded *excluded, bool dry_run) {
    static const struct table_column columns[] = {
        {"PROGRAM", 0}, {"SIZE", 1}, {"CALLER", 0}, {"NAME", 0}, {"NOTED", 0}};
    struct table table = TABLE(columns);
    if (excluded->count == 0) {
        puts(NOTHING);
        return;
    }
    TOOL_EACH(const struct gps_exclusion, exclusion, excluded->list, excluded->count) {
        TOOL_TEMP char *name = exclusion_name(exclusion);
        table_cell(&table, TERM_PLAIN, "%.*s", (int)sizeof(exclusion->program), exclusion->program);
        table_cell(&table, TERM_PLAIN, "%s", printable_size(exclusion->size).text);
        table_cell(&table, TERM_PLAIN, "%.*s", (int)sizeof(exclusion->caller),
                   *exclusion->caller ? exclusion->caller : "-");
        TABLE_CELLS(&table, name, exclusion->times >= GPS_EXCLUDED ? "excluded" : "suspected once");
    }
    printf("%s %zu allocation%s:\n", dry_run ? "Would forget" : "Forgot", excluded->count,
           excluded->count == 1 ? "" : "s");
    table_print(stdout, &table, "");
}

static bool exclusion_is_meant(const struct gps_exclusion *exclusion, const char *what) {
    TOOL_TEMP char *name = exclusion_name(exclusion);
    return gps_glob_match(what, name) || gps_glob_match(what, exclusion->name);
}

/* Leaves in the list what one of the operands means. False: one of them means nothing. */
static bool excluded_choose(struct excluded *excluded, const struct tool_args *args) {
    TOOL_TEMP bool *meant = tool_zeroed(excluded->count + 1, sizeof(*meant));
    bool good = true;
    size_t left = 0;
    for (int n = 0; n < args->operand_count; n++) {
        bool any = false;
        for (size_t i = 0; i < excluded->count; i++)
            if (exclusion_is_meant(&excluded->list[i], args->operands[n]))
                any = meant[i] = true;
        if (!any)
            tool_error("nothing that is noted is called '%s'; see: gpushare forget -n",
                       args->operands[n]);
        good &= any;
    }
    for (size_t i = 0; i < excluded->count; i++)
        if (meant[i])
            excluded->list[left++] = excluded->list[i];
    excluded->count = left;
    return good;
}

/* Rows are added to the file, for a process may be adding one, too. */
static int forget_these(const struct gps_store *store, const struct excluded *excluded) {
    int status = 0;
    for (size_t i = 0; status == 0 && i < excluded->count; i++) {
        struct gps_exclusion row = excluded->list[i];
        row.times = GPS_FORGOTTEN;
        status = gps_exclusions_add(store, &row);
    }
    return status;
}

static int run_forget(const struct tool_args *args) {
    const bool dry_run = args->values[OPTION_DRY_RUN], named = args->operand_count > 0;
    struct gps_store store;
    struct excluded excluded;
    int status = view_store_open(false, &store);
    if (status == -ENOENT)
        puts(NOTHING);
    if (status != 0)
        return status == -ENOENT ? TOOL_OK : TOOL_FAILED;
    status = excluded_read(&store, NULL, &excluded);
    const bool good = status != 0 || !named || excluded_choose(&excluded, args);
    if (status == 0 && !dry_run)
        status = named ? forget_these(&store, &excluded) : gps_exclusions_forget(&store);
    if (status != 0)
        tool_error("cannot forget %s/%s: %s", store.path, GPS_EXCLUSIONS, strerror(-status));
    else if (good || excluded.count > 0)
        excluded_print(&excluded, dry_run);
    free(excluded.list);
    return status == 0 && good ? TOOL_OK : TOOL_FAILED;
}

const struct tool_verb tool_verb_forget = {
    .name = "forget",
    .operands = "[NAME...]",
    .summary = "merge again what was left out after an error 700",
    .details = "A process that writes into a merged block with a kernel ends with error 700, and "
               "notes the allocations that this may come from (the report merge-written names "
               "them). They are suspected at first, and excluded, that is, not merged any more, "
               "when a process that began later ends so, too, or at once if they had been merged "
               "in the last 5 seconds. This lists them by program, size, module and name, and "
               "forgets them: programs that start from now on merge them again. What was noted "
               "of a rule that has changed since counts for nothing anyway.\n"
               "A NAME is that of a rule ('weights'), or of one of its allocations "
               "('weights:3'), or a glob on either; without any, all are forgotten. The exit "
               "status is 1 if a NAME means none.\n",
    .options = {{"dry-run", 'n', NULL, "only list them"}},
    .operands_max = 1 << 20,
    .run = run_forget,
};
