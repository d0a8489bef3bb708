/* misses.c - see misses.h. */
#include "misses.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/printable.h"
#include "cli/tool.h"

enum miss miss_of(const struct gps_rule *rule, const struct gps_explained *process,
                  const struct gps_explained_row *row) {
    const struct gps_alloc_facts facts = {.program = process->program,
                                          .executable = process->executable,
                                          .size = row->size,
                                          .device_ordinal = row->device,
                                          .device_uuid = row->uuid,
                                          .pool = row->pool};
    switch (gps_rule_mismatch(rule, &facts)) {
    case GPS_OTHER_PROGRAM:
        return MISS_PROGRAM;
    case GPS_OTHER_SIZE:
        return MISS_SIZE;
    case GPS_OTHER_DEVICE:
        return MISS_DEVICE;
    case GPS_POOL_MEMORY:
        return MISS_POOL;
    default:
        return gps_glob_match(rule->caller, row->caller) ? MISS_INDEX : MISS_CALLER;
    }
}

static const char *const keys[] = {
    [MISS_PROGRAM] = "program", [MISS_SIZE] = "size",     [MISS_DEVICE] = "device",
    [MISS_POOL] = "backing",    [MISS_CALLER] = "caller", [MISS_INDEX] = "index"};

struct search {
    const char *key;
    char *found;
};

static void compare(void *arg, const char *key, const char *value) {
    struct search *search = arg;
    if (strcmp(key, search->key) == 0)
        search->found = tool_format("%s = %s", key, value);
}

char *miss_key(enum miss miss, const struct gps_rule *rule) {
    struct search search = {keys[miss], NULL};
    gps_rule_each_key(rule, compare, &search);
    return search.found;
}

/* "this is number 3", "these are numbers from 1 to 7"; malloc'ed. */
static char *number_text(const struct gps_rule *rule, const struct gps_explained_row *row) {
    for (size_t i = 0; i < GPS_EXPLAINED_PASSED; i++) {
        const struct gps_explained_pass *pass = &row->passed[i];
        if (pass->rule == rule->line && pass->first == pass->last)
            return tool_format("this is number %" PRIu64, pass->first);
        if (pass->rule == rule->line)
            return tool_format("these have numbers from %" PRIu64 " to %" PRIu64, pass->first,
                               pass->last);
    }
    return tool_copy("this is another one that it fits");
}

char *miss_text(enum miss miss, const struct gps_rule *rule, const struct gps_explained *process,
                const struct gps_explained_row *row) {
    char *key = miss_key(miss, rule), *text = NULL, *number;
    switch (miss) {
    case MISS_PROGRAM:
        text = tool_format("%s, and this is %s", key, process->program);
        break;
    case MISS_SIZE:
        text = tool_format("%s, and this is %s", key, printable_size_value(row->size).text);
        break;
    case MISS_DEVICE:
        text = tool_format("%s, and this is on GPU %" PRIu32 " (%s)", key, row->device,
                           printable_uuid(row->uuid).text);
        break;
    case MISS_POOL:
        text = tool_format("%s, and %s needs backing = vmm", key, row->call);
        break;
    case MISS_CALLER:
        text = tool_format("%s, and %s calls", key, row->caller);
        break;
    case MISS_INDEX:
        number = number_text(rule, row);
        text = tool_format("%s, and %s", key, number);
        free(number);
        break;
    }
    free(key);
    return text;
}
