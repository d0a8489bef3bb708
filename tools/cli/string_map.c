/*
 * string_map.c - from a string to what it stands for, by uthash.
 */
#include "string_map.h"

#include <stdlib.h>

#include "tool.h"

#define uthash_malloc(size) tool_resize(NULL, (size), 1)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <uthash.h>

struct index {
    char *key;
    void *value;
    UT_hash_handle hh;
};

void *index_get(const struct index *index, const char *key) {
    struct index *found;
    HASH_FIND_STR(index, key, found);
    return found != NULL ? found->value : NULL;
}

void index_put(struct index **index, const char *key, void *value) {
    struct index *entry = tool_resize(NULL, 1, sizeof(*entry));
    entry->key = tool_copy(key);
    entry->value = value;
    HASH_ADD_KEYPTR(hh, *index, entry->key, strlen(entry->key), entry);
}

void index_free(struct index **index, void (*drop)(void *value)) {
    struct index *entry, *next;
    HASH_ITER(hh, *index, entry, next) {
        HASH_DEL(*index, entry);
        if (drop)
            drop(entry->value);
        free(entry->key);
        free(entry);
    }
}

#pragma GCC diagnostic pop
