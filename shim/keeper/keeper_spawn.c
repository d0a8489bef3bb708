#include "keeper_client.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/linker.h"
#include "util/procfs.h"
#include "util/program_signals.h"
#include "util/text.h"

#define STACK    ((size_t)64 << 10)
#define CLOSABLE 65536 /* descriptors closed one by one on a kernel without close_range */

/* Mapped rather than on the stack, which may be small. */
struct plan {
    unsigned char stacks[2][STACK]; /* of the intermediate process, and of the keeper */
    char path[PATH_MAX];
    char from[PATH_MAX]; /* scratch: a directory, a candidate in it */
    char candidate[PATH_MAX];
    char directory[GPS_STORE_PATH + 16]; /* GPUSHARE_DIR=... */
    char name_space[GPS_NAME_BYTES + 32];
    char *argv[4];
    char *environment[4];
    unsigned descriptors;
    int error; /* set by a child, which shares this memory */
};

/* --- the executable --- */

static int has_us(struct dl_phdr_info *info, size_t size, void *path) {
    const uintptr_t us = (uintptr_t)gps_spawn_keeper - info->dlpi_addr;
    (void)size;
    *(const char **)path = info->dlpi_name;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD &&
            us - info->dlpi_phdr[i].p_vaddr < info->dlpi_phdr[i].p_memsz)
            return 1;
    return 0;
}

/* The file that this code is part of; "" where that is the program itself. */
static void own_file(struct plan *plan) {
    struct gps_text out = GPS_TEXT(plan->from);
    const char *path = NULL;
    if (gps_linker_each(has_us, &path))
        gps_text_str(&out, path);
}

/* An absolute path, since the child leaves the program's working directory. */
static int plan_resolve(struct plan *plan, const char *path) {
    if (!realpath(path, plan->path))
        return -errno;
    return access(plan->path, X_OK) == 0 ? 0 : -errno;
}

/* Looks around the file of plan->from. */
static int look_around(struct plan *plan) {
    static const char *const below[] = {"/gpushare", "/../bin/gpushare", "/../../bin/gpushare",
                                        "/../gpushare"};
    int status = -ENOENT;
    char *slash = strrchr(plan->from, '/');
    if (!slash || slash == plan->from)
        return -ENOENT;
    *slash = '\0';
    for (size_t i = 0; i < sizeof(below) / sizeof(*below) && status != 0; i++) {
        struct gps_text out = GPS_TEXT(plan->candidate);
        gps_text_strs(&out, plan->from, below[i]);
        status = out.cut ? -ENAMETOOLONG : plan_resolve(plan, plan->candidate);
    }
    return status;
}

/* `library`: the search is for programs with this library preloaded; NULL: for this program. */
static int plan_find(struct plan *plan, const char *library) {
    const char *given = secure_getenv("GPUSHARE_KEEPER");
    struct gps_text from = GPS_TEXT(plan->from);
    if (given && given[0] != '\0')
        return plan_resolve(plan, given);
    if (library)
        gps_text_str(&from, library);
    else
        own_file(plan);
    int status = look_around(plan);
    if (status == 0 || library)
        return status;
    gps_procfs_executable_path(plan->from, sizeof(plan->from));
    return look_around(plan);
}

/* --- the processes --- */

/* A child that shares the program's memory makes nothing but system calls. */
#define BARE __attribute__((no_sanitize("address", "thread", "undefined")))

BARE static void drop_descriptors(const struct plan *plan) {
    long null = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
    for (long fd = 0; fd < 3; fd++) {
        if (null < 0)
            syscall(SYS_close, fd);
        else if (null != fd)
            syscall(SYS_dup3, null, fd, 0);
    }
    if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0)
        return;
    for (unsigned fd = 3; fd < plan->descriptors; fd++)
        syscall(SYS_close, fd);
}

BARE static int become_keeper(void *argument) {
    struct plan *plan = argument;
    syscall(SYS_setsid);
    drop_descriptors(plan);
    syscall(SYS_chdir, "/");
    syscall(SYS_execve, plan->path, plan->argv, plan->environment);
    plan->error = errno;
    syscall(SYS_exit_group, 1);
    return 1;
}

/* The intermediate process: when it exits, the keeper becomes a child of init. Its exit signal is
 * 0, so the program gets no SIGCHLD. */
BARE static int become_parent(void *argument) {
    struct plan *plan = argument;
    if (clone(become_keeper, plan->stacks[1] + STACK, CLONE_VM | CLONE_VFORK, plan) < 0)
        plan->error = errno;
    syscall(SYS_exit_group, 0);
    return 0;
}

/* All signals are blocked: a handler of the program must not run on the small stacks. */
static int plan_start(struct plan *plan) {
    int status = 0;
    sigset_t before;
    gps_program_signals_block(&before);
    pid_t middle = clone(become_parent, plan->stacks[0] + STACK, CLONE_VM | CLONE_VFORK, plan);
    if (middle < 0)
        status = -errno;
    while (middle > 0 && waitpid(middle, NULL, (int)__WCLONE) < 0 && errno == EINTR)
        continue;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return status != 0 ? status : -plan->error;
}

/* The environment by which the keeper finds its store. */
static void plan_describe_store(struct plan *plan, const struct gps_store *store) {
    const char *slash = strrchr(store->path, '/');
    struct gps_text out = GPS_TEXT(plan->directory);
    gps_text_str(&out, "GPUSHARE_DIR=");
    gps_text_bytes(&out, store->path, slash > store->path ? (size_t)(slash - store->path) : 1);
    out = GPS_TEXT(plan->name_space);
    gps_text_strs(&out, "GPUSHARE_NAMESPACE=", slash + 1);
}

static void plan_fill(struct plan *plan, const struct gps_store *store) {
    plan_describe_store(plan, store);
    plan->argv[0] = plan->path;
    plan->argv[1] = (char *)(uintptr_t) "keeper";
    plan->argv[2] = (char *)(uintptr_t) "--on-demand";
    plan->environment[0] = (char *)(uintptr_t) "PATH=/usr/bin:/bin";
    plan->environment[1] = plan->directory;
    plan->environment[2] = plan->name_space;
    plan->descriptors = CLOSABLE;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < CLOSABLE)
        plan->descriptors = (unsigned)limit.rlim_cur;
}

static struct plan *plan_new(void) {
    struct plan *plan = mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    return plan == MAP_FAILED ? NULL : plan;
}

int gps_spawn_keeper(const struct gps_store *store) {
    struct plan *plan = plan_new();
    if (!plan)
        return -ENOMEM;
    int status = plan_find(plan, NULL);
    if (status == 0) {
        plan_fill(plan, store);
        status = plan_start(plan);
    }
    munmap(plan, sizeof(*plan));
    return status;
}

int gps_spawn_program(const char *library, char *path, size_t size) {
    struct gps_text out = gps_text_on(path, size);
    struct plan *plan = plan_new();
    if (!plan)
        return -ENOMEM;
    int status = plan_find(plan, library);
    if (status == 0)
        gps_text_str(&out, plan->path);
    munmap(plan, sizeof(*plan));
    return status != 0 ? status : out.cut ? -ENAMETOOLONG : 0;
}
