/*
 * The map is a tree of the C library's.
 */
#include "string_map.h"

#include <search.h>

#include "tool.h"

struct string_map {
    void *root;
};

struct map_entry {
    const char *key; /* behind the value */
    _Alignas(max_align_t) char value[];
};

static int map_entry_compare(const void *one, const void *other) {
    return strcmp(((const struct map_entry *)one)->key, ((const struct map_entry *)other)->key);
}

void *string_map_get(const struct string_map *map, const char *key) {
    const struct map_entry sought = {.key = key};
    struct map_entry *const *found = map ? tfind(&sought, &map->root, map_entry_compare) : NULL;
    return found ? (*found)->value : NULL;
}

void *string_map_make(struct string_map **map, const char *key, size_t size) {
    void *value = string_map_get(*map, key);
    if (value)
        return value;
    if (!*map)
        *map = tool_zeroed(1, sizeof(**map));
    struct map_entry *entry = tool_zeroed(sizeof(*entry) + size + strlen(key) + 1, 1);
    entry->key = strcpy(entry->value + size, key);
    if (!tsearch(entry, &(*map)->root, map_entry_compare))
        tool_no_memory();
    return entry->value;
}

void string_map_free(struct string_map **map, void (*clear)(void *value)) {
    while (*map && (*map)->root) {
        TOOL_TEMP struct map_entry *entry = *(struct map_entry **)(*map)->root;
        tdelete(entry, &(*map)->root, map_entry_compare);
        if (clear)
            clear(entry->value);
    }
    free(*map);
    *map = NULL;
}
