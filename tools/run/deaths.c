/* deaths.c - see deaths.h. */
#include "deaths.h"

#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/tool.h"
#include "descendants.h"

enum { LIVING_MAX = 256, TOLD_MAX = 16 };

struct living {
    uint32_t pid;
    int process; /* its descriptor */
    char *name;
};

struct death {
    uint32_t pid;
    int signal;
    char *name;
};

/* Of linux/pidfd.h, which is newer than the headers that we build with. */
struct end_info {
    uint64_t mask, cgroup;
    uint32_t ids[11];
    int32_t status; /* as wait(2) has it */
};
#define INFO_EXIT     (1u << 3)
#define PIDFD_GET_END _IOWR(0xff, 11, struct end_info)

static void add(struct deaths *deaths, uint32_t pid, int signal, const char *name) {
    TOOL_APPEND(deaths->list, deaths->count, (struct death){pid, signal, tool_copy(name)});
}

void deaths_look(struct deaths *deaths, uint32_t pid) {
    for (size_t i = 0; i < deaths->living_count; i++)
        if (deaths->living[i].pid == pid)
            return;
    const int process =
        deaths->living_count < LIVING_MAX ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
    if (process < 0)
        return;
    const struct living one = {pid, process, descendants_name(pid)};
    TOOL_APPEND(deaths->living, deaths->living_count, one);
}

static const char *name_of(const struct deaths *deaths, uint32_t pid) {
    for (size_t i = 0; i < deaths->living_count; i++)
        if (deaths->living[i].pid == pid)
            return deaths->living[i].name;
    return NULL;
}

/* What it was called when it was seen, or what the kernel still knows. */
void deaths_note(struct deaths *deaths, uint32_t pid, int signal) {
    const char *seen = name_of(deaths, pid);
    size_t size = 0;
    const int file = seen ? -1 : descendants_open(pid, "comm");
    TOOL_TEMP char *comm = file < 0 ? NULL : tool_read(file, &size);
    if (file >= 0)
        close(file);
    if (comm)
        comm[strcspn(comm, "\n")] = 0;
    add(deaths, pid, signal, seen ? seen : comm && *comm ? comm : "a process");
}

static bool is_noted(const struct deaths *deaths, uint32_t pid) {
    for (size_t i = 0; i < deaths->count; i++)
        if (deaths->list[i].pid == pid)
            return true;
    return false;
}

/* Those that others have reaped. */
static void collect(struct deaths *deaths) {
    for (size_t i = 0; i < deaths->living_count; i++) {
        const struct living *one = &deaths->living[i];
        struct pollfd ended = {.fd = one->process, .events = POLLIN};
        struct end_info info = {.mask = INFO_EXIT};
        if (poll(&ended, 1, 0) == 1 && ioctl(one->process, PIDFD_GET_END, &info) == 0 &&
            (info.mask & INFO_EXIT) && WIFSIGNALED(info.status) && !is_noted(deaths, one->pid))
            add(deaths, one->pid, WTERMSIG(info.status), one->name);
    }
}

void deaths_tell(struct deaths *deaths, deaths_used_fn *used, void *arg) {
    size_t told = 0;
    collect(deaths);
    for (size_t i = 0; i < deaths->count; i++) {
        const struct death *death = &deaths->list[i];
        if (!used(arg, death->pid) || ++told > TOLD_MAX)
            continue;
        tool_warn("%s (pid %" PRIu32 ") was ended by signal %d (%s): what it would have reported "
                  "at its end, as leaks, is missing",
                  death->name, death->pid, death->signal, strsignal(death->signal));
    }
    if (told > TOLD_MAX)
        tool_warn("so were %zu more", told - TOLD_MAX);
}

void deaths_free(struct deaths *deaths) {
    for (size_t i = 0; i < deaths->living_count; i++) {
        close(deaths->living[i].process);
        free(deaths->living[i].name);
    }
    for (size_t i = 0; i < deaths->count; i++)
        free(deaths->list[i].name);
    free(deaths->living);
    free(deaths->list);
}
