/*
 * mistaken.c - the allocations that are never merged again, each once.
 */
#include "mistaken.h"

#include <stdlib.h>
#include <string.h>

#include "cli/tool.h"

struct reading {
    struct mistaken *mistaken;
    const char *program;
};

/* Replicas that ended alike left the same row each. */
static void collect(void *arg, const struct gps_mistake *mistake) {
    const struct reading *reading = arg;
    struct mistaken *mistaken = reading->mistaken;
    if (reading->program && strcmp(mistake->program, reading->program) != 0)
        return;
    for (size_t i = 0; i < mistaken->count; i++)
        if (memcmp(&mistaken->list[i], mistake, sizeof(*mistake)) == 0)
            return;
    mistaken->list = tool_grow(mistaken->list, mistaken->count, sizeof(*mistaken->list));
    mistaken->list[mistaken->count++] = *mistake;
}

int mistaken_read(const struct gps_store *store, const char *program, struct mistaken *mistaken) {
    struct reading reading = {mistaken, program};
    *mistaken = (struct mistaken){NULL, 0};
    return gps_mistakes_each(store, collect, &reading);
}

size_t mistaken_count(const struct gps_store *store, const char *program) {
    struct mistaken mistaken;
    mistaken_read(store, program, &mistaken);
    free(mistaken.list);
    return mistaken.count;
}
