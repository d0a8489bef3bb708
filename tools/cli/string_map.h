/*
 * string_map.h - from a string to what it stands for.
 *
 * The one place of the tool that knows uthash. Keys are copied, values are the caller's and may not
 * be NULL. An empty index is NULL.
 */
#ifndef STRING_MAP_H
#define STRING_MAP_H

struct string_map;

/* NULL: there is no such key. */
void *string_map_get(const struct string_map *index, const char *key);
/* The key must be new. */
void string_map_put(struct string_map **index, const char *key, void *value);
/* The values stay; `drop`, unless NULL, is called with each. */
void string_map_free(struct string_map **index, void (*drop)(void *value));

#endif
