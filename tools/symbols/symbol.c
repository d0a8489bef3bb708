/* symbol.c - see symbol.h. */
#include "symbol.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/string_map.h"
#include "cli/tool.h"
#include "symbol_module.h"

struct symbols {
    struct string_map *modules, *found;
    char *directory, *search;
};

struct symbols *symbol_open(const char *directory) {
    static const char usual[] = ":.debug:/usr/lib/debug";
    struct symbols *symbols = tool_resize(NULL, 1, sizeof(*symbols));
    *symbols = (struct symbols){.directory = tool_copy(directory)};
    symbols->search = tool_format("%s%s%s", tool_or(directory, ""), directory ? ":" : "", usual);
    return symbols;
}

static void clear_module(void *value) {
    symbol_module_close(value);
}

static void clear_symbol(void *value) {
    struct symbol *symbol = value;
    for (size_t i = 0; i < symbol->count; i++) {
        free(symbol->places[i].function);
        free(symbol->places[i].bare);
        free(symbol->places[i].plain);
        free(symbol->places[i].file);
        free(symbol->places[i].directory);
    }
    free(symbol->places);
}

void symbol_close(struct symbols *symbols) {
    string_map_free(&symbols->found, clear_symbol);
    string_map_free(&symbols->modules, clear_module);
    free(symbols->directory);
    free(symbols->search);
    free(symbols);
}

static const struct symbol_module *module_of(struct symbols *symbols, const struct log_frame *frame,
                                             const char *key) {
    struct symbol_module *module = string_map_get(symbols->modules, key);
    if (module)
        return module;
    module = string_map_make(&symbols->modules, key, sizeof(*module));
    symbol_module_open(module, frame->module, frame->build_id, &symbols->search,
                       symbols->directory);
    return module;
}

/* The interpreter has said all there is to know. */
static void set_python(struct symbol_place *place, const struct log_frame *frame) {
    place->function = tool_copy(frame->function);
    place->bare = tool_copy(frame->function);
    place->file = tool_copy(frame->file);
    place->line = frame->line <= INT32_MAX ? (unsigned)frame->line : 0;
}

/* A return address is one past its call, which can be the first of the next line or function. */
static void look_up(struct symbols *symbols, const struct log_frame *frame, const char *module_key,
                    struct symbol *symbol) {
    symbol->count = 1;
    symbol->places = tool_zeroed(1, sizeof(*symbol->places));
    if (frame->function) {
        set_python(&symbol->places[0], frame);
        return;
    }
    if (!frame->module)
        return;
    const struct symbol_module *module = module_of(symbols, frame, module_key);
    symbol->note = module->note;
    if (module->module && frame->offset > 0)
        symbol_place_find(module, frame->offset - 1, symbol);
}

const struct symbol *symbol_find(struct symbols *symbols, const struct log_frame *frame) {
    char *module_key =
        tool_format("%s %s", tool_or(frame->build_id, ""), tool_or(frame->module, ""));
    char *key = frame->function ? tool_format("%s\n%" PRId64 " %s", frame->function, frame->line,
                                              tool_or(frame->file, ""))
                                : tool_format("%" PRIx64 " %s", frame->offset, module_key);
    struct symbol *symbol = string_map_make(&symbols->found, key, sizeof(*symbol));
    if (symbol->count == 0)
        look_up(symbols, frame, module_key, symbol);
    free(module_key);
    free(key);
    return symbol;
}

char *symbol_path(const struct symbol_place *place) {
    if (!place->file)
        return NULL;
    if (place->file[0] == '/' || !place->directory)
        return tool_copy(place->file);
    return tool_format("%s/%s", place->directory, place->file);
}
