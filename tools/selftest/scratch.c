#include "selftest.h"

#include <ftw.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cli/temporary.h"
#include "cli/tool.h"
#include "directory/view.h"
#include "run/descendants.h"
#include "run/launch.h"
#include "util/clock.h"

#define KEEPER_ENDS (2 * GPS_SECOND) /* by itself, with its last block */

/* --- in the remover --- */

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info;
    (void)kind;
    (void)place;
    remove(path);
    return 0;
}

/* A process that is just ending may still make files there. */
static void remove_tree(const char *path) {
    for (int i = 0; i < 50 && access(path, F_OK) == 0; i++) {
        if (i > 0)
            usleep(20000);
        nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    }
}

static void run_remover(const struct scratch *scratch, int alive) {
    sigset_t all;
    char byte;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    setsid();
    for (int i = 0; i <= STDERR_FILENO; i++)
        close(i);
    while (read(alive, &byte, 1) < 0 && errno == EINTR) {
    }
    remove_tree(scratch->published);
    remove_tree(scratch->files);
    _exit(0);
}

/* --- in the tool --- */

static bool start_remover(struct scratch *scratch) {
    int ends[2];
    const pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (child == 0) {
        close(ends[1]);
        run_remover(scratch, ends[0]);
    }
    if (child < 0)
        return tool_error("no process could be started: %s", strerror(errno));
    close(ends[0]);
    scratch->alive = ends[1];
    scratch->remover = child;
    return true;
}

bool scratch_begin(struct scratch *scratch) {
    struct view_place place;
    struct gps_store store;
    *scratch = (struct scratch){.alive = -1};
    if (!temporary_make(scratch->files, ""))
        return false;
    snprintf(scratch->name_space, sizeof(scratch->name_space), "selftest-%d-%llx", (int)getpid(),
             (unsigned long long)gps_clock_now());
    launch_set("GPUSHARE_NAMESPACE", scratch->name_space);
    view_place_get(&place);
    snprintf(scratch->published, sizeof(scratch->published), "%s/%s", place.root,
             scratch->name_space);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!start_remover(scratch)) {
        temporary_remove(scratch->files);
        return false;
    }
    if (view_store_open(true, &store) == 0)
        return true;
    scratch_end(scratch);
    return false;
}

/* Whether it is this tool, in this namespace: a keeper. */
static bool scratch_is_keeper(const struct scratch *scratch, uint32_t pid) {
    char own[PATH_MAX] = "", other[PATH_MAX] = "";
    TOOL_TEMP char *link = tool_format("/proc/%u/exe", pid);
    TOOL_TEMP char *name_space = descendants_variable(pid, "GPUSHARE_NAMESPACE");
    return readlink("/proc/self/exe", own, sizeof(own) - 1) > 0 &&
           readlink(link, other, sizeof(other) - 1) > 0 && strcmp(own, other) == 0 && name_space &&
           strcmp(name_space, scratch->name_space) == 0;
}

/* Returns how many there are. */
static size_t find_keepers(const struct scratch *scratch, bool kill_them) {
    size_t count, found = 0;
    TOOL_TEMP uint32_t *living = descendants_living(&count);
    for (size_t i = 0; i < count; i++) {
        if (living[i] == (uint32_t)scratch->remover || !scratch_is_keeper(scratch, living[i]))
            continue;
        found++;
        if (kill_them)
            kill((pid_t)living[i], SIGKILL);
    }
    return found;
}

void scratch_end(struct scratch *scratch) {
    const uint64_t until = gps_clock_monotonic() + KEEPER_ENDS;
    while (find_keepers(scratch, gps_clock_monotonic() > until) > 0 &&
           gps_clock_monotonic() < until + GPS_SECOND)
        usleep(20000);
    close(scratch->alive);
    waitpid(scratch->remover, NULL, 0);
}
