/* waiting.c - see waiting.h. */
#include "waiting.h"

#include <stdlib.h>
#include <string.h>

#include "cli/table.h"
#include "cli/tool.h"
#include "view_format.h"

static struct printable most(const struct gps_wait_slot *wait) {
    return printable_duration(wait->until > wait->since ? wait->until - wait->since : 0);
}

void waiting_print(const struct view *view) {
    static const struct table_column columns[] = {
        {"WAITING", 0}, {"FOR", 0}, {"SINCE", 1}, {"AT MOST", 1}};
    struct table table = TABLE(columns);
    for (size_t i = 0; i < view->wait_count; i++) {
        const struct gps_wait_slot *wait = &view->waits[i].wait;
        char *program = view_format_program(view, &view->waits[i].owner);
        table_cell(&table, TERM_YELLOW, "%s", program);
        table_cell(&table, TERM_PLAIN, "%s%s", gps_wait_whom(wait->via), wait->name);
        table_cell(&table, TERM_PLAIN, "%s", view_format_age(view, wait->since).text);
        table_cell(&table, TERM_PLAIN, "%s", most(wait).text);
        free(program);
    }
    if (table.cell_count == 0)
        return;
    putchar('\n');
    table_print(stdout, &table, "");
}

static const char *whom(const struct gps_wait_slot *wait) {
    return wait->via == GPS_VIA_WAIT_EXPORTER    ? "exporter"
           : wait->via == GPS_VIA_WAIT_IMPORTERS ? "importers"
                                                 : "importer";
}

void waiting_append(const struct view *view, json_t *array) {
    for (size_t i = 0; i < view->wait_count; i++) {
        const struct gps_wait_slot *wait = &view->waits[i].wait;
        json_tree_append(
            array, json_tree_pack("{s:n, s:n, s:n, s:n, s:s, s:n, s:o, s:[], s:o, s:s, s:o, s:o}",
                                  "id", "name", "size", "device", "state", "waiting", "backing",
                                  "owner", view_format_owner_json(&view->waits[i].owner), "users",
                                  "age", json_tree_seconds(view_nanos_since(view, wait->since)),
                                  "for", whom(wait), "region", json_tree_string(wait->name), "most",
                                  json_tree_seconds(wait->until - wait->since)));
    }
}

void waiting_each(const struct view *view, const struct gps_owner *owner, const char *region,
                  void (*fn)(const char *text)) {
    for (size_t i = 0; i < view->wait_count; i++) {
        const struct gps_wait_slot *wait = &view->waits[i].wait;
        if (owner ? !gps_owner_equal(&view->waits[i].owner, owner)
                  : strcmp(wait->name, region) != 0)
            continue;
        char *program = view_format_program(view, &view->waits[i].owner);
        char *text =
            tool_format("%s for %s%s, %s of at most %s", program, gps_wait_whom(wait->via),
                        wait->name, view_format_age(view, wait->since).text, most(wait).text);
        fn(text);
        free(text);
        free(program);
    }
}
