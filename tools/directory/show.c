/*
 * show.c - `gpushare show`: everything about one region or one process.
 *
 * The operand is taken as a region's name, else as a pid ("@NAMESPACE" picks one of several), else
 * as the beginning of a region's id, else as the name of a program. All matches are shown, as of
 * one pid in two pid namespaces; dead and freed ones only where nothing else matches.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tool.h"
#include "describe.h"
#include "directory/name.h"
#include "view_format.h"
#include "waiting.h"

enum { OPTION_JSON };

/* --- finding: marks what matches, and returns how many --- */

static bool is_alive_of_name(const struct view_region *region, const char *name) {
    return strcmp(region->record.name, name) == 0 && !view_hidden(region);
}

static bool is_hidden_of_name(const struct view_region *region, const char *name) {
    return strcmp(region->record.name, name) == 0 && view_hidden(region);
}

static size_t find_name(struct view *view, const char *name) {
    const size_t count = view_find(view, is_alive_of_name, name);
    return count > 0 ? count : view_find(view, is_hidden_of_name, name);
}

static bool pid_matches(const struct gps_owner *owner, const char *text) {
    char pid[24], full[48];
    snprintf(pid, sizeof(pid), "%u", owner->pid);
    snprintf(full, sizeof(full), "%u@%" PRIu64, owner->pid, owner->pid_ns);
    return strcmp(pid, text) == 0 || strcmp(full, text) == 0;
}

static bool program_matches(const struct gps_owner *owner, const char *text) {
    return strcmp(owner->command, text) == 0;
}

static size_t find_process(struct view *view, const char *text,
                           bool (*matches)(const struct gps_owner *, const char *)) {
    size_t count = 0;
    for (int alive = 1; alive >= 0 && count == 0; alive--)
        for (size_t i = 0; i < view->process_count; i++) {
            struct view_process *process = &view->processes[i];
            process->found = process->alive == alive && matches(&process->owner, text);
            count += process->found;
        }
    return count;
}

/* --- not found --- */

static bool name_claimed(const struct view *view, const char *name) {
    struct gps_name_target target;
    if (!gps_name_valid(name) || gps_name_resolve(&view->store, name, &target) != 0 ||
        target.kind != GPS_NAME_CLAIM)
        return false;
    const struct view_process *process = view_process_find(view, &target.claimer);
    if (!process || !process->alive)
        return false;
    tool_error("'%s' has no memory yet: %s %s has the name and is about to allocate", name,
               process->owner.command, view_format_pid(view, &target.claimer).text);
    return true;
}

static bool is_shown(const struct view_region *region) {
    return !view_hidden(region) && !view_merged(region);
}

static void say_waiting(const char *text) {
    tool_warn("waiting: %s", text);
}

static int not_found(const struct view *view, const char *what) {
    if (name_claimed(view, what))
        return TOOL_FAILED;
    waiting_each(view, NULL, what, say_waiting);
    char *known = NULL; /* names first, then processes */
    size_t count = view_names(view, is_shown, &known);
    for (size_t i = 0; i < view->process_count && count < VIEW_NAMES_MAX; i++)
        if (view->processes[i].alive) {
            char *program = view_format_program(view, &view->processes[i].owner);
            tool_list(&known, "%s", program);
            free(program);
            count++;
        }
    if (known)
        tool_error("nothing is called '%s'; there is: %s (see: gpushare ls)", what, known);
    else
        tool_error("nothing is called '%s'; nothing is shared in %s", what, view->store.path);
    free(known);
    return TOOL_FAILED;
}

/* --- the verb --- */

static int ambiguous(const struct view *view, size_t count, const char *what) {
    char *ids = NULL;
    for (size_t i = 0; i < view->region_count; i++)
        if (view->regions[i].found)
            tool_list(&ids, "%s", printable_id(&view->regions[i].record.id).text);
    tool_error("%zu regions have an id that begins with '%s': %s", count, what, ids);
    free(ids);
    return TOOL_FAILED;
}

static void print_text(const struct view *view) {
    const char *before = "";
    for (size_t i = 0; i < view->region_count; i++)
        if (view->regions[i].found) {
            fputs(before, stdout);
            describe_region(view, &view->regions[i]);
            before = "\n";
        }
    for (size_t i = 0; i < view->process_count; i++)
        if (view->processes[i].found) {
            fputs(before, stdout);
            describe_process(view, &view->processes[i]);
            before = "\n";
        }
}

static void print_json(const struct view *view) {
    json_t *array = json_tree_pack("[]");
    for (size_t i = 0; i < view->region_count; i++)
        if (view->regions[i].found)
            json_tree_append(array, describe_region_json(view, &view->regions[i]));
    for (size_t i = 0; i < view->process_count; i++)
        if (view->processes[i].found)
            json_tree_append(array, describe_process_json(view, &view->processes[i]));
    json_tree_print(stdout, array);
}

static int show(struct view *view, const char *what, bool json) {
    if (find_name(view, what) == 0 && find_process(view, what, pid_matches) == 0) {
        const size_t count = view_find(view, view_has_id, what);
        if (count > 1)
            return ambiguous(view, count, what);
        if (count == 0 && find_process(view, what, program_matches) == 0)
            return not_found(view, what);
    }
    (json ? print_json : print_text)(view);
    return TOOL_OK;
}

static int run_show(const struct tool_args *args) {
    struct view view;
    if (!view_read(&view))
        return TOOL_FAILED;
    int status = show(&view, args->operands[0], args->values[OPTION_JSON]);
    view_free(&view);
    return status;
}

const struct tool_verb tool_verb_show = {
    .name = "show",
    .operands = "NAME|ID|PID|PROGRAM",
    .summary = "tell everything about a region or a process",
    .details = "A region is given by its NAME or by the first 6 or more digits of its ID. Of a "
               "process, what it exports and what it holds open is shown, in bytes too. A PID "
               "that several pid namespaces have means all of them; PID@NAMESPACE means one. A "
               "PROGRAM, as cam.py, means all processes of this name.\n",
    .options = {{"json", 0, NULL, "an array of objects, for scripts"}},
    .operands_min = 1,
    .operands_max = 1,
    .run = run_show,
};
