/*
 * string_map.h - from a string to what it stands for.
 *
 * The one place of the tool that knows uthash. Keys are copied, values are the caller's and may not
 * be NULL. An empty index is NULL.
 */
#ifndef STRING_MAP_H
#define STRING_MAP_H

struct index;

/* NULL: there is no such key. */
void *index_get(const struct index *index, const char *key);
/* The key must be new. */
void index_put(struct index **index, const char *key, void *value);
/* The values stay; `drop`, unless NULL, is called with each. */
void index_free(struct index **index, void (*drop)(void *value));

#endif
