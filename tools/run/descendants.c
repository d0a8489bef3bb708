#include "descendants.h"

#include <dirent.h>

#include "cli/tool.h"
#include "process/program.h"
#include "util/procfs.h"

struct process {
    uint32_t pid, parent;
};

static bool thread_has_ended(uint32_t thread) {
    struct gps_procfs_stat stat;
    return gps_procfs_stat(thread, &stat) != 0 || stat.state == 'Z' || stat.state == 'X';
}

uint32_t *descendants_numbers(const char *path, size_t *count) {
    uint32_t *list = NULL;
    DIR *directory = opendir(path);
    *count = 0;
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        const uint32_t number = (uint32_t)strtoul(entry->d_name, NULL, 10);
        if (number != 0)
            TOOL_APPEND(list, *count, number);
    }
    if (directory)
        closedir(directory);
    return list;
}

/* The first thread of a process that has not ended, whose files are not empty; 0: it has ended. */
static uint32_t living_thread(uint32_t pid) {
    if (!thread_has_ended(pid))
        return pid;
    size_t count;
    TOOL_TEMP char *path = tool_format("/proc/%" PRIu32 "/task", pid);
    TOOL_TEMP uint32_t *threads = descendants_numbers(path, &count);
    for (size_t i = 0; i < count; i++)
        if (!thread_has_ended(threads[i]))
            return threads[i];
    return 0;
}

/* Lists all living processes that /proc shows; malloc'ed. */
static struct process *read_processes(size_t *count) {
    size_t all;
    struct process *list = NULL;
    TOOL_TEMP uint32_t *pids = descendants_numbers("/proc", &all);
    for (size_t i = 0; i < all; i++) {
        struct gps_procfs_stat stat;
        if (living_thread(pids[i]) && gps_procfs_stat(pids[i], &stat) == 0)
            TOOL_APPEND(list, *count, (struct process){pids[i], (uint32_t)stat.parent});
    }
    return list;
}

uint32_t *descendants_living(size_t *count) {
    size_t all_count = 0, next = 0;
    TOOL_TEMP struct process *all = read_processes(&all_count);
    uint32_t *found = NULL, parent = (uint32_t)getpid();
    *count = 0;
    for (;; parent = found[next++]) {
        for (size_t i = 0; i < all_count; i++)
            if (all[i].parent == parent)
                TOOL_APPEND(found, *count, all[i].pid);
        if (next == *count)
            break;
    }
    return found;
}

int descendants_open(uint32_t pid, const char *name) {
    TOOL_TEMP char *path = tool_format("/proc/%" PRIu32 "/%s", living_thread(pid), name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

char *descendants_read(uint32_t pid, const char *name, size_t *size) {
    const int file = descendants_open(pid, name);
    char *text = tool_read(file, size);
    if (file >= 0)
        close(file);
    return text;
}

char *descendants_variable(uint32_t pid, const char *variable) {
    const size_t length = strlen(variable);
    size_t size;
    TOOL_TEMP char *words = descendants_read(pid, "environ", &size);
    for (const char *word = words; word < words + size; word += strlen(word) + 1)
        if (strncmp(word, variable, length) == 0 && word[length] == '=')
            return tool_copy(word + length + 1);
    return NULL;
}

char *descendants_name(uint32_t pid) {
    struct gps_program program;
    TOOL_TEMP char *given = descendants_variable(pid, "GPUSHARE_PROGRAM");
    const char *name = given ? basename(given) : "";
    if (*name)
        return tool_format("%.*s", (int)sizeof(program.name) - 1, name);
    return tool_copy(gps_program_of(living_thread(pid), &program) ? program.name : "?");
}
