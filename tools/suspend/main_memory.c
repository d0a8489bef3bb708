#include "target.h"

#include <inttypes.h>
#include <stdio.h>

/* "NAME   123 kB" of a file in /proc; added to *bytes. */
static bool add_line(const char *path, const char *name, uint64_t *bytes) {
    char line[512];
    const bool found = tool_read_line(path, name, line, sizeof(line));
    *bytes += found ? strtoull(line + strlen(name), NULL, 10) << 10 : 0;
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
    char line[32];
    return tool_read_line(path, "", line, sizeof(line)) && sscanf(line, "%" SCNu64, number) == 1;
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
    char line[4096], *const group = line + strlen("0::");
    if (!tool_read_line(path, "0::", line, sizeof(line)))
        return;
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
