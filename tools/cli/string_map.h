/*
 * string_map.h - a table from strings to values.
 *
 * The map owns its keys and values. Values never move. An empty map is NULL.
 */
#pragma once

#include <stddef.h>

struct string_map;

/* NULL: the key is not there. */
void *string_map_get(const struct string_map *map, const char *key);
/* The key's value. A new key gets a value of `size` bytes that are 0. */
void *string_map_make(struct string_map **map, const char *key, size_t size);
/* Calls `clear`, unless it is NULL, with each value before it is freed. */
void string_map_free(struct string_map **map, void (*clear)(void *value));
