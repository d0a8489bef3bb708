/* merged.c - see merged.h. */
#include "merged.h"

#include <string.h>

#include "cli/table.h"
#include "view_format.h"

static bool is_shown(const struct account_gpu *gpu) {
    return gpu->blocks > 0 || gpu->processes > 0;
}

size_t merged_print(const struct accounting *accounting, const char *before) {
    static const struct table_column columns[] = {{"GPU", 0},    {"BLOCKS", 1},    {"HELD", 1},
                                                  {"UNUSED", 1}, {"PROCESSES", 1}, {"MAPPED", 1},
                                                  {"SAVED", 1},  {"OWN", 1}};
    struct table table = TABLE(columns);
    size_t count = 0;
    for (size_t i = 0; i < accounting->gpu_count; i++) {
        const struct account_gpu *gpu = &accounting->gpus[i];
        if (!is_shown(gpu))
            continue;
        count++;
        table_cell(&table, TERM_PLAIN, "%.12s", printable_uuid(gpu->device).text);
        table_cell(&table, TERM_PLAIN, "%zu", gpu->blocks);
        table_cell(&table, TERM_PLAIN, "%s", printable_size(gpu->held).text);
        table_cell(&table, TERM_PLAIN, "%s", printable_size(gpu->unused).text);
        table_cell(&table, TERM_PLAIN, "%zu", gpu->processes);
        table_cell(&table, TERM_PLAIN, "%s", printable_size(gpu->merged.mapped).text);
        table_cell(&table, TERM_GREEN, "%s", printable_size(gpu->merged.saved).text);
        table_cell(&table, TERM_PLAIN, "%s", printable_size(gpu->merged.own).text);
    }
    if (count > 0) {
        printf("%sMerged blocks:\n", before);
        table_print(stdout, &table, "");
    }
    return count;
}

static json_t *users(const struct accounting *accounting, const struct account_gpu *gpu) {
    json_t *array = json_tree_pack("[]");
    for (size_t i = 0; i < accounting->count; i++) {
        const struct account *account = &accounting->accounts[i];
        const struct account_merged *merged = &account->merged;
        if (memcmp(account->device, gpu->device, GPS_UUID_BYTES) != 0 ||
            (merged->blocks == 0 && merged->own == 0))
            continue;
        json_t *user = view_format_owner_json(&account->process->owner);
        json_tree_add(user, "{s:I, s:I, s:I}", "mapped", (json_int_t)merged->mapped, "saved",
                      (json_int_t)merged->saved, "own", (json_int_t)merged->own);
        json_tree_append(array, user);
    }
    return array;
}

void merged_append(const struct accounting *accounting, json_t *array) {
    for (size_t i = 0; i < accounting->gpu_count; i++) {
        const struct account_gpu *gpu = &accounting->gpus[i];
        if (!is_shown(gpu))
            continue;
        json_tree_append(
            array,
            json_tree_pack("{s:n, s:n, s:I, s:s, s:s, s:s, s:n, s:o, s:n, s:I, s:I, s:I, s:I, s:I}",
                           "id", "name", "size", (json_int_t)gpu->held, "device",
                           printable_uuid(gpu->device).text, "state", "merged", "backing", "vmm",
                           "owner", "users", users(accounting, gpu), "age", "blocks",
                           (json_int_t)gpu->blocks, "unused", (json_int_t)gpu->unused, "mapped",
                           (json_int_t)gpu->merged.mapped, "saved", (json_int_t)gpu->merged.saved,
                           "own", (json_int_t)gpu->merged.own));
    }
}
