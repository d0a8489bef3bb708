/* excluded.c - the allocations that are not merged again, or are suspected, each in one row. */
#include "excluded.h"

#include "cli/tool.h"

static void excluded_collect(void *arg, const struct gps_exclusion *row) {
    struct excluded *excluded = arg;
    if (excluded->program && strcmp(row->program, excluded->program) != 0)
        return;
    TOOL_EACH(struct gps_exclusion, known, excluded->list, excluded->count) {
        if (!gps_exclusion_is_same(known, row))
            continue;
        known->times = gps_exclusion_times_after(known->times, row);
        return;
    }
    TOOL_APPEND(excluded->list, excluded->count, *row);
}

int excluded_read(const struct gps_store *store, const char *program, struct excluded *excluded) {
    size_t left = 0;
    *excluded = (struct excluded){.program = program};
    const int status = gps_exclusions_each(store, excluded_collect, excluded);
    TOOL_EACH(const struct gps_exclusion, exclusion, excluded->list, excluded->count) {
        excluded->suspected += exclusion->times == GPS_SUSPECTED;
        if (exclusion->times != GPS_FORGOTTEN)
            excluded->list[left++] = *exclusion;
    }
    excluded->count = left;
    return status;
}

struct excluded excluded_count(const struct gps_store *store, const char *program) {
    struct excluded excluded;
    excluded_read(store, program, &excluded);
    free(excluded.list);
    excluded.list = NULL;
    return excluded;
}
