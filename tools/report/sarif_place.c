/*
 * sarif_place.c - places and stacks as SARIF has them.
 */
#include "sarif_place.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json_tree.h"
#include "cli/tool.h"
#include "logs/aggregate.h"
#include "symbols/user_frame.h"

/* RFC 3986: a path, with what a path may not hold as %XX. */
static char *uri_of(const char *path) {
    size_t room = 3 * strlen(path) + sizeof("file://"), length = 0;
    char *uri = tool_resize(NULL, room, 1);
    if (path[0] == '/')
        length = (size_t)snprintf(uri, room, "file://");
    for (; *path != 0; path++) {
        unsigned char c = (unsigned char)*path;
        if (c < 0x80 && (isalnum(c) || strchr("-._~/", c) != NULL))
            uri[length++] = (char)c;
        else
            length += (size_t)snprintf(uri + length, room - length, "%%%02X", c);
    }
    uri[length] = 0;
    return uri;
}

static void set_physical(json_t *location, const struct symbol_place *place) {
    json_t *physical = json_tree_object(), *artifact = json_tree_object(),
           *region = json_tree_object();
    char *path = symbol_path(place);
    char *uri = uri_of(path);
    json_tree_set_string(artifact, "uri", uri);
    json_tree_set_number(region, "startLine", place->line);
    json_tree_set(physical, "artifactLocation", artifact);
    json_tree_set(physical, "region", region);
    json_tree_set(location, "physicalLocation", physical);
    free(uri);
    free(path);
}

/* `kind` is one of the standard's words: function, module. */
static void set_logical(json_t *location, const char *name, const char *decorated,
                        const char *kind) {
    json_t *array = json_tree_array(), *logical = json_tree_object();
    json_tree_set_string(logical, "fullyQualifiedName", name);
    if (decorated && strcmp(decorated, name) != 0)
        json_tree_set_string(logical, "decoratedName", decorated);
    json_tree_set_string(logical, "kind", kind);
    json_tree_append(array, logical);
    json_tree_set(location, "logicalLocations", array);
}

static json_t *place_location(const struct symbol_place *place) {
    json_t *location = json_tree_object();
    if (place->file && place->line > 0)
        set_physical(location, place);
    if (place->function)
        set_logical(location, place->function, place->plain, "function");
    return location;
}

/* "app+0x1b2c" */
static void set_module(json_t *location, const struct log_frame *frame) {
    char *name =
        tool_format("%s+0x%" PRIx64, frame->module != NULL ? tool_base_name(frame->module) : "?",
                    frame->offset);
    set_logical(location, name, NULL, "module");
    free(name);
}

json_t *sarif_location(const struct log_line *line, struct symbols *symbols) {
    const struct symbol_place *place = user_frame_place(aggregate_stack(line), symbols);
    const struct log_frame *frame = user_frame_find(aggregate_stack(line));
    if (!place && frame)
        place = &symbol_find(symbols, frame)->places[0];
    json_t *location = place != NULL ? place_location(place) : json_tree_object();
    if (json_object_size(location) == 0 && frame)
        set_module(location, frame);
    else if (json_object_size(location) == 0)
        set_logical(location, line->process.command != NULL ? line->process.command : "?", NULL,
                    "module");
    return location;
}

static json_t *frame_tree(const struct log_frame *frame, const struct symbol_place *place) {
    json_t *object = json_tree_object(), *properties = json_tree_object();
    json_t *location = place_location(place);
    char offset[24];
    snprintf(offset, sizeof(offset), "0x%" PRIx64, frame->offset);
    if (json_object_size(location) == 0)
        set_module(location, frame);
    json_tree_set(object, "location", location);
    if (frame->module)
        json_tree_set_string(object, "module", frame->module);
    json_tree_set_string(properties, "offset", offset);
    if (frame->build_id)
        json_tree_set_string(properties, "buildId", frame->build_id);
    json_tree_set(object, "properties", properties);
    return object;
}

json_t *sarif_frames(const struct log_stack *stack, struct symbols *symbols) {
    json_t *frames = json_tree_array();
    for (size_t i = 0; i < stack->count; i++) {
        const struct symbol *symbol = symbol_find(symbols, &stack->frames[i]);
        for (size_t j = 0; j < symbol->count; j++)
            json_tree_append(frames, frame_tree(&stack->frames[i], &symbol->places[j]));
    }
    return frames;
}
