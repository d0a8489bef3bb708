/*
 * excluded.c - the allocations that are never merged again, each once.
 */
#include "excluded.h"

#include <stdlib.h>
#include <string.h>

#include "cli/tool.h"

/* Replicas that ended in the same way left equal rows, of which one is kept. */
static void collect(void *arg, const struct gps_exclusion *exclusion) {
    struct excluded *excluded = arg;
    if (excluded->program && strcmp(exclusion->program, excluded->program) != 0)
        return;
    for (size_t i = 0; i < excluded->count; i++)
        if (memcmp(&excluded->list[i], exclusion, sizeof(*exclusion)) == 0)
            return;
    excluded->list = tool_grow(excluded->list, excluded->count, sizeof(*excluded->list));
    excluded->list[excluded->count++] = *exclusion;
}

int excluded_read(const struct gps_store *store, const char *program, struct excluded *excluded) {
    *excluded = (struct excluded){.program = program};
    return gps_exclusions_each(store, collect, excluded);
}

size_t excluded_count(const struct gps_store *store, const char *program) {
    struct excluded excluded;
    excluded_read(store, program, &excluded);
    free(excluded.list);
    return excluded.count;
}
