#include "control_group.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "util/procfs.h"
#include "util/text.h"

enum { FILE_BYTES = 4096, PATH_BYTES = 4096 };

/* --- files of /proc --- */

/* "/proc/PID/status", or of this process. */
static void proc_file_read(uint32_t pid, const char *file, char text[FILE_BYTES]) {
    GPS_NEW_TEXT(path, 64);
    if (pid)
        gps_text_add(&path, "/proc/%u/%s", pid, file);
    else
        gps_procfs_path(file, path.bytes);
    (void)gps_procfs_read(path.bytes, text, FILE_BYTES);
}

/* "NAME   123 kB", added to *bytes. */
static bool memory_line_add(const char *text, const char *name, uint64_t *bytes) {
    const char *line = strstr(text, name);
    *bytes += line ? strtoull(line + strlen(name), NULL, 10) << 10 : 0;
    return line;
}

bool gps_main_memory_of(uint32_t pid, uint64_t *bytes) {
    char text[FILE_BYTES];
    proc_file_read(pid, "status", text);
    *bytes = 0;
    (void)memory_line_add(text, "\nVmSwap:", bytes);
    return memory_line_add(text, "\nVmRSS:", bytes);
}

/* --- control groups --- */

/* The group "0::/a/b" of a process, without its "0::"; "" where it is in none. */
static void find_group(uint32_t pid, char group[FILE_BYTES]) {
    proc_file_read(pid, "cgroup", group);
    const char *line = strncmp(group, "0::", 3) == 0 ? group : strstr(group, "\n0::");
    if (line)
        memmove(group, strchr(line, '/'), strlen(strchr(line, '/')) + 1);
    group[line ? strcspn(group, "\n") : 0] = '\0';
}

/* Goes from the group to the one above it. False: there is none. */
static bool leave_group(char *group) {
    char *end = strrchr(group, '/');
    if (!end || !end[1])
        return false;
    *end = '\0';
    return *group;
}

/* Reads numbers of a file of a group. False: there is none, as where the limit is "max". */
static bool group_read_number(const char *group, const char *file, uint64_t *number,
                              uint64_t *second) {
    char text[64], *end;
    GPS_NEW_TEXT(path, PATH_BYTES);
    gps_text_strs(&path, "/sys/fs/cgroup", group, "/", file);
    if (path.cut || gps_procfs_read(path.bytes, text, sizeof(text)) <= 0)
        return false;
    *number = strtoull(text, &end, 10);
    if (second)
        *second = strtoull(end, NULL, 10);
    return end != text;
}

static void limit_to_group(const char *group, uint64_t *bytes) {
    uint64_t most, current;
    if (!group_read_number(group, "memory.max", &most, NULL) ||
        !group_read_number(group, "memory.current", &current, NULL))
        return;
    const uint64_t left = most > current ? most - current : 0;
    *bytes = left < *bytes ? left : *bytes;
}

bool gps_main_memory_left(uint32_t pid, uint64_t *bytes) {
    char text[FILE_BYTES];
    *bytes = 0;
    if (gps_procfs_read("/proc/meminfo", text, sizeof(text)) <= 0 ||
        !memory_line_add(text, "\nMemAvailable:", bytes))
        return false;
    find_group(pid, text);
    for (bool in = *text; in; in = leave_group(text))
        limit_to_group(text, bytes);
    return true;
}

/* --- processors --- */

/* "400000 100000": so many microseconds of so many, on all processors together. */
static unsigned limit_processors(const char *group, unsigned count) {
    uint64_t quota, period;
    if (!group_read_number(group, "cpu.max", &quota, &period) || !period)
        return count;
    const uint64_t most = quota / period ? quota / period : 1;
    return most < count ? (unsigned)most : count;
}

unsigned gps_processors_left(void) {
    char group[FILE_BYTES];
    cpu_set_t allowed;
    unsigned count =
        sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? (unsigned)CPU_COUNT(&allowed) : 1;
    find_group(0, group);
    for (bool in = *group; in; in = leave_group(group))
        count = limit_processors(group, count);
    return count ? count : 1;
}
