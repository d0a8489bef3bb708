/*
 * allocation_groups_rule.c - a group of allocations as a section of gpushare.conf.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "allocation_groups.h"
#include "cli/printable.h"
#include "cli/tool.h"

#define PROGRAM_MAX 20 /* characters of it in a name, which needs room for the number and {n} */

/* "server-2-{n}", of the characters that a name may have. */
void allocation_group_name(const struct allocation_group *group,
                           char name[ALLOCATION_GROUP_NAME_BYTES]) {
    const char *program = group->first->process.command;
    char clean[PROGRAM_MAX + 1];
    size_t length = 0;
    for (; length < PROGRAM_MAX && program[length] != 0; length++) {
        char c = program[length];
        bool allowed =
            isalnum((unsigned char)c) || c == '_' || c == '-' || (c == '.' && length > 0);
        clean[length] = allowed && (unsigned char)c < 0x80 ? c : '_';
    }
    clean[length] = 0;
    snprintf(name, ALLOCATION_GROUP_NAME_BYTES, "%s-%zu%s", clean, group->number,
             group->index != group->last ? "-{n}" : "");
}

/* A glob that matches this file name and is as long: characters with another meaning become ?. */
static void put_glob(FILE *out, const char *key, const char *name) {
    fprintf(out, "%s = ", key);
    for (const char *c = name; *c != 0; c++) {
        bool plain =
            (unsigned char)*c < 0x80 && (isalnum((unsigned char)*c) || strchr("._+-@=,:~", *c));
        putc(plain ? *c : '?', out);
    }
    putc('\n', out);
}

void allocation_group_rule(FILE *out, const struct allocation_groups *groups,
                           const struct allocation_group *group) {
    char name[ALLOCATION_GROUP_NAME_BYTES];
    allocation_group_name(group, name);
    fprintf(out, "[region %s]\n", name);
    put_glob(out, "program", group->first->process.command);
    fprintf(out, "size = %s\nindex = %s\n", printable_size_value((uint64_t)group->first->size).text,
            printable_indices_value(group->index, group->last).text);
    if (!allocation_groups_one_device(groups, group))
        fprintf(out, "device = %" PRId64 "\n", group->first->device);
    put_glob(out, "caller", group->first->allocation.caller);
    fputs("role = auto\n", out);
}

/* --- order --- */

static int by_rule(const void *left, const void *right) {
    const struct allocation_group *a = *(const struct allocation_group *const *)left;
    const struct allocation_group *b = *(const struct allocation_group *const *)right;
    int order = tool_compare(a->alike, b->alike);
    return order != 0 ? order : tool_compare(b->index, a->index);
}

const struct allocation_group **allocation_groups_order(const struct allocation_groups *groups) {
    const struct allocation_group **order = tool_resize(NULL, groups->count + 1, sizeof(*order));
    for (size_t i = 0; i < groups->count; i++)
        order[i] = &groups->list[i];
    qsort(order, groups->count, sizeof(*order), by_rule);
    return order;
}
