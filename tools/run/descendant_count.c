/*
 * descendant_count.c - which processes descend from one, from one look through /proc.
 */
#include "descendant_count.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tool.h"

struct kin {
    int pid, parent;
    bool descends, zombie;
};

struct kindred {
    struct kin *list;
    size_t count;
};

/* "4711 (any name) S 1 ...": the name may hold anything, so what follows its last ')' counts. */
static bool read_one(const char *pid, struct kin *kin) {
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = 0;
    const char *behind = strrchr(text, ')');
    char state;
    if (!behind || sscanf(behind + 1, " %c %d", &state, &kin->parent) != 2)
        return false;
    kin->pid = atoi(pid);
    kin->zombie = state == 'Z' || state == 'X';
    kin->descends = false;
    return true;
}

static void read_all(struct kindred *all) {
    DIR *directory = opendir("/proc");
    const struct dirent *entry;
    struct kin kin;
    while (directory && (entry = readdir(directory))) {
        if (!isdigit((unsigned char)entry->d_name[0]) || !read_one(entry->d_name, &kin))
            continue;
        all->list = tool_grow(all->list, all->count, sizeof(kin));
        all->list[all->count++] = kin;
    }
    if (directory)
        closedir(directory);
}

/* One more generation; false: there is none. */
static bool mark(struct kindred *all, pid_t ancestor) {
    bool marked = false;
    for (size_t i = 0; i < all->count; i++)
        for (size_t j = 0; j < all->count && !all->list[i].descends; j++)
            if (all->list[i].parent == ancestor ||
                (all->list[j].descends && all->list[j].pid == all->list[i].parent))
                marked = all->list[i].descends = true;
    return marked;
}

size_t count_descendants(pid_t ancestor) {
    struct kindred all = {NULL, 0};
    size_t count = 0;
    read_all(&all);
    while (mark(&all, ancestor))
        continue;
    for (size_t i = 0; i < all.count; i++)
        count += all.list[i].descends && !all.list[i].zombie;
    free(all.list);
    return count;
}
