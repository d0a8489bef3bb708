#include "target.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/tool.h"

/* "NAME   123 kB" of a file in /proc; added to *bytes. */
static bool add_line(const char *path, const char *name, uint64_t *bytes) {
    FILE *file = fopen(path, "re");
    char line[512];
    bool found = false;
    while (file && !found && fgets(line, sizeof(line), file)) {
        found = strncmp(line, name, strlen(name)) == 0;
        if (found)
            *bytes += strtoull(line + strlen(name), NULL, 10) << 10;
    }
    if (file)
        fclose(file);
    return found;
}

bool main_memory_of(uint32_t pid, uint64_t *bytes) {
    TOOL_TEMP char *path = tool_format("/proc/%u/status", pid);
    *bytes = 0;
    (void)add_line(path, "VmSwap:", bytes);
    return add_line(path, "VmRSS:", bytes);
}

/* False: there is no number in it, as where the limit is "max". */
static bool read_number(const char *group, const char *name, uint64_t *number) {
    TOOL_TEMP char *path = tool_format("/sys/fs/cgroup%s/%s", group, name);
    FILE *file = fopen(path, "re");
    const bool found = file && fscanf(file, "%" SCNu64, number) == 1;
    if (file)
        fclose(file);
    return found;
}

static void limit_to_group(const char *group, uint64_t *bytes) {
    uint64_t most, current;
    if (!read_number(group, "memory.max", &most) || !read_number(group, "memory.current", &current))
        return;
    const uint64_t left = most > current ? most - current : 0;
    *bytes = left < *bytes ? left : *bytes;
}

/* The group "0::/a/b", and those above it. */
static void limit_to_groups(uint32_t pid, uint64_t *bytes) {
    TOOL_TEMP char *path = tool_format("/proc/%u/cgroup", pid);
    FILE *file = fopen(path, "re");
    char line[4096], *group = NULL;
    while (file && !group && fgets(line, sizeof(line), file))
        if (strncmp(line, "0::", 3) == 0)
            group = line + 3;
    if (file)
        fclose(file);
    if (!group)
        return;
    group[strcspn(group, "\n")] = '\0';
    for (char *end; (end = strrchr(group, '/')) && end[1]; *end = '\0')
        limit_to_group(group, bytes);
}

bool main_memory_left(uint32_t pid, uint64_t *bytes) {
    *bytes = 0;
    if (!add_line("/proc/meminfo", "MemAvailable:", bytes))
        return false;
    limit_to_groups(pid, bytes);
    return true;
}
