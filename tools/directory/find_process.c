#include "find_process.h"

#include <dirent.h>
#include <sys/stat.h>

#include "cli/tool.h"
#include "util/procfs.h"

static bool is_in(const char *pid, uint64_t space) {
    TOOL_TEMP char *path = tool_format("/proc/%s/ns/pid", pid);
    struct stat info;
    return stat(path, &info) == 0 && info.st_ino == space;
}

/* The pid in the innermost namespace: the last word of the line "NSpid:". */
static uint32_t innermost(const char *pid) {
    TOOL_TEMP char *path = tool_format("/proc/%s/status", pid);
    char line[512];
    const bool found = tool_read_line(path, "NSpid:", line, sizeof(line));
    const char *last = found ? strrchr(line, '\t') : NULL;
    return last ? (uint32_t)strtoul(last, NULL, 10) : 0;
}

uint32_t host_pid(const struct gps_owner *owner) {
    if (owner->pid_ns == 0 || owner->pid_ns == gps_procfs_pid_ns())
        return 0;
    DIR *proc = opendir("/proc");
    uint32_t found = 0;
    for (const struct dirent *entry; proc && !found && (entry = readdir(proc));)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            is_in(entry->d_name, owner->pid_ns) && innermost(entry->d_name) == owner->pid)
            found = (uint32_t)strtoul(entry->d_name, NULL, 10);
    if (proc)
        closedir(proc);
    return found;
}

uint32_t pid_here(const struct gps_owner *owner) {
    const bool ours = owner->pid_ns && owner->pid_ns == gps_procfs_pid_ns();
    const uint32_t pid = ours ? owner->pid : host_pid(owner);
    struct gps_procfs_stat stat;
    return pid && gps_procfs_stat(pid, &stat) == 0 && (!owner->start || stat.start == owner->start)
               ? pid
               : 0;
}

size_t find_process(struct view *view, const char *text, process_match_fn *matches) {
    size_t count = 0;
    for (int alive = 1; alive >= 0 && count == 0; alive--)
        TOOL_EACH(struct view_process, process, view->processes, view->process_count) {
            process->found = process->alive == alive && matches(&process->owner, text);
            count += process->found;
        }
    return count;
}

bool process_has_pid(const struct gps_owner *owner, const char *text) {
    char pid[24], full[48];
    snprintf(pid, sizeof(pid), "%u", owner->pid);
    snprintf(full, sizeof(full), "%u@%" PRIu64, owner->pid, owner->pid_ns);
    return strcmp(pid, text) == 0 || strcmp(full, text) == 0;
}

bool process_has_pid_here(const struct gps_owner *owner, const char *text) {
    char here[24];
    snprintf(here, sizeof(here), "%u", host_pid(owner));
    return strcmp(here, text) == 0;
}

bool process_has_any_pid(const struct gps_owner *owner, const char *text) {
    return process_has_pid(owner, text) || process_has_pid_here(owner, text);
}

bool process_has_program(const struct gps_owner *owner, const char *text) {
    return strcmp(owner->command, text) == 0;
}
