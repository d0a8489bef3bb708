/* string_map.c - see string_map.h. */
#include "string_map.h"

#include <stdlib.h>

#include "tool.h"

#define uthash_malloc(size) tool_resize(NULL, (size), 1)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <uthash.h>

struct string_map {
    char *key;
    void *value;
    UT_hash_handle hh;
};

void *string_map_get(const struct string_map *map, const char *key) {
    struct string_map *found;
    HASH_FIND_STR(map, key, found);
    return found ? found->value : NULL;
}

bool string_map_put(struct string_map **map, const char *key, void *value) {
    if (string_map_get(*map, key))
        return false;
    struct string_map *entry = tool_resize(NULL, 1, sizeof(*entry));
    entry->key = tool_copy(key);
    entry->value = value;
    HASH_ADD_KEYPTR(hh, *map, entry->key, strlen(entry->key), entry);
    return true;
}

void string_map_free(struct string_map **map, void (*free_value)(void *value)) {
    struct string_map *entry, *next;
    HASH_ITER(hh, *map, entry, next) {
        HASH_DEL(*map, entry);
        if (free_value)
            free_value(entry->value);
        free(entry->key);
        free(entry);
    }
}

#pragma GCC diagnostic pop
