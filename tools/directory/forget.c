/*
 * forget.c - `gpushare forget`: lets allocations be merged again that were excluded.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/printable.h"
#include "cli/table.h"
#include "cli/tool.h"
#include "excluded.h"
#include "view.h"

enum { OPTION_DRY_RUN };

static void print(const struct excluded *excluded, bool dry_run) {
    static const struct table_column columns[] = {
        {"PROGRAM", 0}, {"SIZE", 1}, {"CALLER", 0}, {"INDEX", 1}};
    struct table table = TABLE(columns);
    if (excluded->count == 0) {
        puts("Nothing to forget.");
        return;
    }
    for (size_t i = 0; i < excluded->count; i++) {
        const struct gps_exclusion *exclusion = &excluded->list[i];
        table_cell(&table, TERM_PLAIN, "%.*s", (int)sizeof(exclusion->program), exclusion->program);
        table_cell(&table, TERM_PLAIN, "%s", printable_size(exclusion->size).text);
        table_cell(&table, TERM_PLAIN, "%.*s", (int)sizeof(exclusion->caller),
                   *exclusion->caller ? exclusion->caller : "-");
        table_cell(&table, TERM_PLAIN, "%" PRIu64, exclusion->index);
    }
    printf("%s %zu allocation%s:\n", dry_run ? "Would forget" : "Forgot", excluded->count,
           excluded->count == 1 ? "" : "s");
    table_print(stdout, &table, "");
}

static int forget(const struct gps_store *store, bool dry_run) {
    struct excluded excluded;
    int status = excluded_read(store, NULL, &excluded);
    if (status == 0 && !dry_run)
        status = gps_exclusions_forget(store);
    if (status == 0)
        print(&excluded, dry_run);
    else
        tool_error("cannot forget %s/%s: %s", store->path, GPS_EXCLUSIONS, strerror(-status));
    free(excluded.list);
    return status == 0 ? TOOL_OK : TOOL_FAILED;
}

static int run_forget(const struct tool_args *args) {
    struct gps_store store;
    const int status = view_store_open(false, &store);
    if (status != 0 && status != -ENOENT)
        return TOOL_FAILED;
    if (status == 0)
        return forget(&store, args->values[OPTION_DRY_RUN]);
    print(&(struct excluded){.count = 0}, false);
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
