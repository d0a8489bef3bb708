/*
 * string_map.c - see string_map.h.
 *
 * A key is in the first slot from its hash on that was free.
 */
#include "string_map.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>
#include <string.h>

#include "tool.h"

struct slot {
    void *value; /* NULL: free */
    char *key;   /* behind the value */
};

struct string_map {
    size_t count, size; /* a power of two, and more than `count` */
    struct slot *slots;
};

/* The key's slot, or the free one where it belongs. */
static struct slot *find(const struct string_map *map, const char *key) {
    size_t i = XXH3_64bits(key, strlen(key)) & (map->size - 1);
    while (map->slots[i].value && strcmp(map->slots[i].key, key) != 0)
        i = (i + 1) & (map->size - 1);
    return &map->slots[i];
}

static void grow(struct string_map *map) {
    const struct string_map old = *map;
    map->size = old.size > 0 ? 2 * old.size : 16;
    map->slots = tool_zeroed(map->size, sizeof(*map->slots));
    for (size_t i = 0; i < old.size; i++)
        if (old.slots[i].value)
            *find(map, old.slots[i].key) = old.slots[i];
    free(old.slots);
}

void *string_map_get(const struct string_map *map, const char *key) {
    return map ? find(map, key)->value : NULL;
}

void *string_map_make(struct string_map **map, const char *key, size_t size) {
    void *value = string_map_get(*map, key);
    if (value)
        return value;
    if (!*map)
        *map = tool_zeroed(1, sizeof(**map));
    if (4 * ++(*map)->count > 3 * (*map)->size)
        grow(*map);
    value = tool_zeroed(size + strlen(key) + 1, 1);
    *find(*map, key) = (struct slot){value, strcpy((char *)value + size, key)};
    return value;
}

void string_map_free(struct string_map **map, void (*clear)(void *value)) {
    for (size_t i = 0; *map && i < (*map)->size; i++) {
        if (clear && (*map)->slots[i].value)
            clear((*map)->slots[i].value);
        free((*map)->slots[i].value);
    }
    if (*map)
        free((*map)->slots);
    free(*map);
    *map = NULL;
}
