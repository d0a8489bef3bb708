/*
 * report_sarif.c - a report as SARIF 2.1.0, for code-scanning services and editors.
 *
 * A result has the place where the user can change something: the innermost one whose source is
 * known. tests/tool/sarif.schema.json has the part of the standard that is used.
 */
#include <ctype.h>

#include "cli/json_tree.h"
#include "cli/tool.h"
#include "log/log.h"
#include "report.h"
#include "symbols/user_frame.h"

static const char *const levels[] = {"note", "warning", "error"};

/* --- the catalogue --- */

static json_t *driver(void) {
    json_t *rules = json_tree_pack("[]");
    for (enum gps_finding finding = 0; finding < GPS_FINDING_COUNT; finding++)
        json_tree_append(rules, json_tree_pack("{s:s, s:{s:s}, s:{s:s}, s:{s:s}}", "id",
                                               gps_finding_id(finding), "shortDescription", "text",
                                               gps_finding_sentence(finding), "help", "text",
                                               gps_finding_hint(finding), "defaultConfiguration",
                                               "level", levels[gps_finding_level(finding)]));
    return json_tree_pack("{s:s, s:s, s:o}", "name", "gpushare", "version", GPS_VERSION, "rules",
                          rules);
}

/* A finding of a newer library is in no catalogue, and has no index. */
static void sarif_add_rule(json_t *result, const char *finding) {
    json_tree_add(result, "{s:s}", "ruleId", finding);
    const int index = suppress_finding(finding);
    if (index >= 0)
        json_tree_add(result, "{s:i}", "ruleIndex", index);
}

/* --- locations --- */

/* Services show the places of a repository, which they know by paths below its root. */
#define SOURCE_ROOT "%SRCROOT%"

static char *root; /* of the sources, while a report is written: the current directory, with a / */

/* The part of a path behind the root; NULL: it lies elsewhere. A relative path is the compiler's,
 * and was made so for this. */
static const char *below_root(const char *path) {
    const size_t length = strlen(root);
    if (path[0] != '/')
        return path;
    return length > 1 && strncmp(path, root, length) == 0 && !strstr(path, "/../") ? path + length
                                                                                   : NULL;
}

/* The URI of a path after RFC 3986: characters that a URI's path cannot hold become %XX. */
static char *uri_of(const char *path) {
    size_t size = 3 * strlen(path) + sizeof("file://"), length = 0;
    char *uri = tool_resize(NULL, size, 1);
    if (path[0] == '/')
        length = (size_t)snprintf(uri, size, "file://");
    for (; *path != 0; path++) {
        unsigned char c = (unsigned char)*path;
        if (c < 0x80 && (isalnum(c) || strchr("-._~/", c)))
            uri[length++] = (char)c;
        else
            length += (size_t)snprintf(uri + length, size - length, "%%%02X", c);
    }
    uri[length] = 0;
    return uri;
}

static void set_physical(json_t *location, const struct symbol_place *place) {
    TOOL_TEMP char *path = symbol_path(place);
    const char *below = below_root(path);
    TOOL_TEMP char *uri = uri_of(tool_or(below, path));
    json_tree_add(location, "{s:{s:{s:s, s:s*}, s:{s:i}}}", "physicalLocation", "artifactLocation",
                  "uri", uri, "uriBaseId", below ? SOURCE_ROOT : NULL, "region", "startLine",
                  (int)place->line);
}

/* `kind` is one that the standard names: function, module. */
static void set_logical(json_t *location, const char *name, const char *decorated,
                        const char *kind) {
    const bool differs = decorated && strcmp(decorated, name) != 0;
    json_tree_add(location, "{s:[{s:o, s:o*, s:s}]}", "logicalLocations", "fullyQualifiedName",
                  json_tree_string(name), "decoratedName",
                  differs ? json_tree_string(decorated) : NULL, "kind", kind);
}

static json_t *place_location(const struct symbol_place *place) {
    json_t *location = json_tree_pack("{}");
    if (place->file && place->file[0] != '<' && place->line > 0) /* Python's <stdin> is no file */
        set_physical(location, place);
    if (place->function)
        set_logical(location, place->function, place->plain, "function");
    return location;
}

/* "app+0x1b2c" */
static void set_module(json_t *location, const struct log_frame *frame) {
    TOOL_TEMP char *name =
        tool_format("%s+0x%" PRIx64, frame->module ? basename(frame->module) : "?", frame->offset);
    set_logical(location, name, NULL, "module");
}

/* The user's innermost line; where unknown, the function or the module; or else the program. */
static json_t *finding_location(const struct log_line *line, struct symbols *symbols) {
    const struct log_stack *stack = aggregate_stack(line);
    const struct symbol_place *place = user_frame_place(stack, symbols);
    const struct log_frame *frame = user_frame_find(stack);
    json_t *location = place ? place_location(place) : json_tree_pack("{}");
    if (json_object_size(location) == 0 && frame)
        set_module(location, frame);
    else if (json_object_size(location) == 0)
        set_logical(location, tool_or(line->process.command, "?"), NULL, "module");
    return location;
}

/* --- stacks --- */

static json_t *sarif_frame_json(const struct log_frame *frame, const struct symbol_place *place) {
    json_t *location = place_location(place);
    if (json_object_size(location) == 0)
        set_module(location, frame);
    json_t *offset = frame->function ? NULL : json_tree_hex(frame->offset);
    return json_tree_pack("{s:o, s:s*, s:{s:o*, s:s*}}", "location", location, "module",
                          frame->module, "properties", "offset", offset, "buildId",
                          frame->build_id);
}

/* Innermost first; each inlined call is a frame. */
static json_t *sarif_frames_json(const struct log_stack *stack, struct symbols *symbols) {
    json_t *frames = json_tree_pack("[]");
    for (size_t i = 0; i < stack->count; i++) {
        const struct symbol *symbol = symbol_find(symbols, &stack->frames[i]);
        for (size_t j = 0; j < symbol->count; j++)
            json_tree_append(frames, sarif_frame_json(&stack->frames[i], &symbol->places[j]));
    }
    return frames;
}

/* The standard allows no two equal stacks, as of two events at one place. */
static void sarif_add_stack(json_t *stacks, const struct log_stack *stack, const char *text,
                            struct symbols *symbols) {
    json_auto_t *value = json_tree_pack("{s:{s:s}, s:o}", "message", "text", text, "frames",
                                        sarif_frames_json(stack, symbols));
    bool known = stack->count == 0;
    for (size_t i = 0; i < json_array_size(stacks); i++)
        known = known || json_equal(json_array_get(stacks, i), value);
    if (!known)
        json_tree_append(stacks, json_incref(value));
}

static json_t *stacks_json(const struct log_line *line, struct symbols *symbols) {
    json_t *stacks = json_tree_pack("[]");
    sarif_add_stack(stacks, &line->stack, tool_or(line->api, "reported"), symbols);
    TOOL_EACH(const struct log_event, event, line->prior.events, line->prior.count) {
        TOOL_TEMP char *text =
            tool_format("%s by %s (pid %" PRId64 ")", tool_or(event->what, "before"),
                        tool_or(event->process.command, "?"), event->process.pid);
        sarif_add_stack(stacks, &event->stack, text, symbols);
    }
    return stacks;
}

/* --- a result --- */

/* "exported memory was never freed: 64 MiB (region frames, by camera, pid 12). free it": a service
 * shows this text alone. */
static json_t *sarif_message(const struct log_line *line) {
    const char *hint = json_string_value(json_object_get(line->json, "hint"));
    char rank[32] = "";
    if (line->process.rank >= 0)
        snprintf(rank, sizeof(rank), ", rank %" PRId64, line->process.rank);
    TOOL_TEMP char *text = tool_format(
        "%s%s%s (%s%s%sby %s, pid %" PRId64 "%s)%s%s", tool_or(line->message, line->finding),
        line->detail ? ": " : "", tool_or(line->detail, ""), line->name ? "region " : "",
        tool_or(line->name, ""), line->name ? ", " : "", tool_or(line->process.command, "?"),
        line->process.pid, rank, hint ? ". What to do: " : "", tool_or(hint, ""));
    return json_tree_pack("{s:s}", "text", text);
}

static json_t *fingerprints(const struct log_line *line, struct symbols *symbols) {
    char hash[24];
    snprintf(hash, sizeof(hash), "%016" PRIx64, user_frame_hash(line, symbols));
    return json_tree_pack("{s:s}", "gpushareStack/v1", hash);
}

static json_t *properties(const struct aggregate_group *group) {
    static const char *const keys[] = {"api", "command", "arguments", "rank", "pid",    "pid_ns",
                                       "ptr", "size",    "region",    "name", "device", "hint"};
    json_t *object = json_tree_pack("{}");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        json_t *value = json_object_get(group->first->json, keys[i]);
        if (!json_is_null(value))
            json_tree_add(object, "{s:O*}", keys[i], value);
    }
    json_tree_add(object, "{s:I, s:s, s:s}", "processes", group->process_count, "first",
                  group->first->ts, "last", group->last);
    return object;
}

/* The standard wants them in all results or in none: an empty array says "not suppressed". */
static json_t *suppressions(const struct aggregate_group *group) {
    TOOL_TEMP char *why = group->known ? tool_format("known in %s", group->known) : NULL;
    return group->suppressed
               ? json_tree_pack("[{s:s, s:s*}]", "kind", "external", "justification", why)
               : json_tree_pack("[]");
}

static json_t *result(const struct aggregate_group *group, struct symbols *symbols) {
    const struct log_line *line = group->first;
    json_t *object = json_tree_pack("{}");
    sarif_add_rule(object, line->finding);
    json_tree_add(object, "{s:s, s:o, s:[o], s:o, s:I, s:o, s:o, s:o}", "level",
                  levels[line->level], "message", sarif_message(line), "locations",
                  finding_location(line, symbols), "stacks", stacks_json(line, symbols),
                  "occurrenceCount", group->count, "partialFingerprints",
                  fingerprints(line, symbols), "suppressions", suppressions(group), "properties",
                  properties(group));
    return object;
}

void report_sarif(FILE *out, const struct report *report) {
    json_t *results = json_tree_pack("[]");
    char here[PATH_MAX];
    const char *path = getcwd(here, sizeof(here)) ? here : "";
    root = tool_format("%s%s", path, path[0] && path[1] ? "/" : "");
    for (size_t i = 0; i < report->aggregate.count; i++)
        json_tree_append(results, result(report->aggregate.groups[i], report->symbols));
    TOOL_TEMP char *uri = uri_of(root);
    json_tree_print(out, json_tree_pack("{s:s, s:s, s:[{s:{s:o}, s:{s:{s:s}}, s:o}]}", "$schema",
                                        "https://json.schemastore.org/sarif-2.1.0.json", "version",
                                        "2.1.0", "runs", "tool", "driver", driver(),
                                        "originalUriBaseIds", SOURCE_ROOT, "uri", uri, "results",
                                        results));
    free(root);
}
