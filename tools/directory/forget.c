/*
 * forget.c - `gpushare forget`: allocations that were left out of merging are tried again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/printable.h"
#include "cli/table.h"
#include "cli/tool.h"
#include "mistaken.h"
#include "view.h"

enum { OPTION_DRY_RUN };

static void print(const struct mistaken *mistaken, bool dry_run) {
    static const struct table_column columns[] = {
        {"PROGRAM", 0}, {"SIZE", 1}, {"CALLER", 0}, {"INDEX", 1}};
    struct table table = TABLE(columns);
    if (mistaken->count == 0) {
        puts("Nothing to forget.");
        return;
    }
    for (size_t i = 0; i < mistaken->count; i++) {
        const struct gps_mistake *mistake = &mistaken->list[i];
        table_cell(&table, TERM_PLAIN, "%.*s", (int)sizeof(mistake->program), mistake->program);
        table_cell(&table, TERM_PLAIN, "%s", printable_size(mistake->size).text);
        table_cell(&table, TERM_PLAIN, "%.*s", (int)sizeof(mistake->caller),
                   *mistake->caller ? mistake->caller : "-");
        table_cell(&table, TERM_PLAIN, "%" PRIu64, mistake->index);
    }
    printf("%s %zu allocation%s:\n", dry_run ? "Would forget" : "Forgot", mistaken->count,
           mistaken->count == 1 ? "" : "s");
    table_print(stdout, &table, "");
}

static int forget(const struct gps_store *store, bool dry_run) {
    struct mistaken mistaken;
    int status = mistaken_read(store, NULL, &mistaken);
    if (status == 0 && !dry_run)
        status = gps_mistakes_forget(store);
    if (status == 0)
        print(&mistaken, dry_run);
    else
        tool_error("cannot forget %s/%s: %s", store->path, GPS_MISTAKES, strerror(-status));
    free(mistaken.list);
    return status == 0 ? TOOL_OK : TOOL_FAILED;
}

static int run_forget(const struct tool_args *args) {
    struct gps_store store;
    const int status = view_store_open(false, &store);
    if (status != 0 && status != -ENOENT)
        return TOOL_FAILED;
    if (status == 0)
        return forget(&store, args->values[OPTION_DRY_RUN]);
    print(&(struct mistaken){NULL, 0}, false);
    return TOOL_OK;
}

const struct tool_verb tool_verb_forget = {
    .name = "forget",
    .operands = "",
    .summary = "merge again what was left out after an error 700",
    .details = "A process that ends with error 700 notes the allocations that it may come from "
               "(the report merge-written names them): they are not merged any more. This lists "
               "them, and forgets them: programs that start from now on merge them again. What "
               "was noted of a rule that has changed since counts for nothing anyway.\n",
    .options = {{"dry-run", 'n', NULL, "only list them"}},
    .run = run_forget,
};
