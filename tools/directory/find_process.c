/* find_process.c - see find_process.h. */
#include "find_process.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "host_pid.h"

static size_t find(struct view *view, const char *text,
                   bool (*matches)(const struct gps_owner *, const char *)) {
    size_t count = 0;
    for (int alive = 1; alive >= 0 && count == 0; alive--)
        for (size_t i = 0; i < view->process_count; i++) {
            struct view_process *process = &view->processes[i];
            process->found = process->alive == alive && matches(&process->owner, text);
            count += process->found;
        }
    return count;
}

static bool pid_matches(const struct gps_owner *owner, const char *text) {
    char pid[24], full[48];
    snprintf(pid, sizeof(pid), "%u", owner->pid);
    snprintf(full, sizeof(full), "%u@%" PRIu64, owner->pid, owner->pid_ns);
    return strcmp(pid, text) == 0 || strcmp(full, text) == 0;
}

static bool pid_here_matches(const struct gps_owner *owner, const char *text) {
    char here[24];
    snprintf(here, sizeof(here), "%u", host_pid(owner));
    return strcmp(here, text) == 0;
}

static bool program_matches(const struct gps_owner *owner, const char *text) {
    return strcmp(owner->command, text) == 0;
}

size_t find_process_by_pid(struct view *view, const char *text) {
    return find(view, text, pid_matches);
}

size_t find_process_by_pid_here(struct view *view, const char *text) {
    return find(view, text, pid_here_matches);
}

size_t find_process_by_program(struct view *view, const char *text) {
    return find(view, text, program_matches);
}
