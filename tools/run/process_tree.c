/* process_tree.c - see process_tree.h. */
#include "process_tree.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/tool.h"
#include "process/program.h"
#include "util/procfs.h"

#define WORDS_BYTES 4096

struct process {
    uint32_t pid, parent;
    bool descends, zombie;
};

static bool read_process(const char *pid, struct process *process) {
    struct gps_procfs_stat stat;
    *process = (struct process){.pid = (uint32_t)strtoul(pid, NULL, 10)};
    if (gps_procfs_stat(process->pid, &stat) != 0)
        return false;
    process->parent = (uint32_t)stat.parent;
    process->zombie = stat.state == 'Z' || stat.state == 'X';
    return true;
}

/* All processes that /proc shows; malloc'ed. */
static struct process *read_processes(size_t *count) {
    struct process *list = NULL, process;
    DIR *directory = opendir("/proc");
    for (const struct dirent *entry; directory && (entry = readdir(directory));)
        if (isdigit((unsigned char)entry->d_name[0]) && read_process(entry->d_name, &process)) {
            list = tool_grow(list, *count, sizeof(*list));
            list[(*count)++] = process;
        }
    if (directory)
        closedir(directory);
    return list;
}

/* Marks one more generation; false: there is none. */
static bool mark_children(struct process *list, size_t count) {
    bool marked = false;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count && !list[i].descends; j++)
            if (list[i].parent == (uint32_t)getpid() ||
                (list[j].descends && list[j].pid == list[i].parent))
                marked = list[i].descends = true;
    return marked;
}

size_t process_tree_each(process_tree_fn *fn, void *arg) {
    size_t count = 0, running = 0;
    struct process *list = read_processes(&count);
    while (mark_children(list, count))
        continue;
    for (size_t i = 0; i < count; i++) {
        if (!list[i].descends || list[i].zombie)
            continue;
        running++;
        if (fn)
            fn(arg, list[i].pid);
    }
    free(list);
    return running;
}

/* --- one of them --- */

static FILE *open_proc(uint32_t pid, const char *name) {
    char *path = tool_format("/proc/%" PRIu32 "/%s", pid, name);
    FILE *file = fopen(path, "re");
    free(path);
    return file;
}

char *process_tree_variable(uint32_t pid, const char *variable) {
    const size_t length = strlen(variable);
    char *entry = NULL, *value = NULL;
    size_t size = 0;
    FILE *environment = open_proc(pid, "environ");
    while (environment && !value && getdelim(&entry, &size, 0, environment) > 0)
        if (strncmp(entry, variable, length) == 0 && entry[length] == '=')
            value = tool_copy(entry + length + 1);
    free(entry);
    if (environment)
        fclose(environment);
    return value;
}

static void read_executable(uint32_t pid, char name[GPS_GLOB_BYTES]) {
    char path[PATH_MAX] = "";
    char *link = tool_format("/proc/%" PRIu32 "/exe", pid);
    const ssize_t length = readlink(link, path, sizeof(path) - 1);
    snprintf(name, GPS_GLOB_BYTES, "%s", length > 0 ? tool_base_name(path) : "?");
    free(link);
}

char *process_tree_name(uint32_t pid) {
    char words[WORDS_BYTES] = "";
    struct gps_program program;
    FILE *line = open_proc(pid, "cmdline");
    const size_t count = line ? fread(words, 1, sizeof(words) - 1, line) : 0;
    if (line)
        fclose(line);
    char *given = process_tree_variable(pid, "GPUSHARE_PROGRAM");
    read_executable(pid, program.executable);
    gps_program_read(&program, words, count, given);
    free(given);
    return tool_copy(program.name);
}
