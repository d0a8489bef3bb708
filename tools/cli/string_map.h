/*
 * string_map.h - a hash table from strings to values.
 *
 * The one module of the tool that uses uthash. The map owns its keys and the caller the values,
 * none of which may be NULL. An empty map is NULL.
 */
#pragma once

#include <stdbool.h>

struct string_map;

/* NULL: the key is not there. */
void *string_map_get(const struct string_map *map, const char *key);
/* False: the key is there already, with a value that stays. */
bool string_map_put(struct string_map **map, const char *key, void *value);
/* Calls `free_value`, unless it is NULL, with each value. */
void string_map_free(struct string_map **map, void (*free_value)(void *value));
