/*
 * Starts gpusimd; see spawn.h. The child shares the memory of the program until it has become
 * another program, as with vfork, so it does nothing but system calls.
 */
#include "spawn.h"

#include "../../common/system_headers.h"

enum { MAX_ENVIRONMENT = 32, STACK = 65536 };

extern char **environ;

struct plan {
    char path[PATH_MAX];
    char *argv[2];
    char *environment[MAX_ENVIRONMENT + 1];
    unsigned char *stacks; /* two of STACK bytes */
};

#define BARE __attribute__((no_sanitize("address", "thread", "undefined")))

/* In full: the daemon leaves the program's working directory. */
static bool find_daemon(char path[PATH_MAX]) {
    const char *given = getenv("GPUSHARE_SIM_DAEMON");
    char beside[PATH_MAX];
    Dl_info info;
    if (!given || !*given) {
        if (!dladdr((void *)(uintptr_t)spawn_daemon, &info) || !info.dli_fname)
            return false;
        const char *slash = strrchr(info.dli_fname, '/');
        int folder = slash ? (int)(slash - info.dli_fname) : 0;
        int used = snprintf(beside, sizeof beside, "%.*s/gpusimd", folder, info.dli_fname);
        if (!slash || used >= PATH_MAX)
            return false;
        given = beside;
    }
    return realpath(given, path) && access(path, X_OK) == 0;
}

static void clean_environment(char **kept) {
    static const char prefix[] = "GPUSHARE_SIM_";
    int count = 0;
    for (char **entry = environ; entry && *entry && count < MAX_ENVIRONMENT; entry++)
        if (!strncmp(*entry, prefix, sizeof prefix - 1))
            kept[count++] = *entry;
    kept[count] = NULL;
}

BARE static int become_daemon(void *argument) {
    struct plan *plan = argument;
    syscall(SYS_setsid);
    int null = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        syscall(SYS_dup3, null, fd, 0);
    syscall(SYS_close_range, 3u, ~0u, 0u);
    syscall(SYS_chdir, "/");
    syscall(SYS_execve, plan->path, plan->argv, plan->environment);
    syscall(SYS_exit_group, 1);
    return 1;
}

/* The middle process, whose end makes the daemon init's child. Exit signal 0: no SIGCHLD. */
BARE static int become_parent(void *argument) {
    struct plan *plan = argument;
    clone(become_daemon, plan->stacks + STACK, CLONE_VM | CLONE_VFORK, argument);
    syscall(SYS_exit_group, 0);
    return 0;
}

/* Where clone cannot do that (qemu-user has no exit signal but SIGCHLD): as everybody does. */
static bool fork_twice(struct plan *plan) {
    pid_t middle = fork();
    if (middle == 0) {
        if (fork() == 0)
            become_daemon(plan);
        syscall(SYS_exit_group, 0);
    }
    return middle > 0 && waitpid(middle, NULL, 0) == middle;
}

static bool start(struct plan *plan) {
    pid_t middle =
        clone(become_parent, plan->stacks + (size_t)2 * STACK, CLONE_VM | CLONE_VFORK, plan);
    if (middle < 0)
        return fork_twice(plan);
    while (waitpid(middle, NULL, (int)__WCLONE) < 0 && errno == EINTR)
        ;
    return true;
}

bool spawn_daemon(void) {
    bool started = false;
    int saved = errno;
    sigset_t all, old;
    struct plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return false;
    plan->argv[0] = plan->path;
    plan->stacks =
        mmap(NULL, (size_t)2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (plan->stacks != MAP_FAILED) {
        if (find_daemon(plan->path)) {
            clean_environment(plan->environment);
            /* A handler of the program's must not run on the child's small stack. */
            sigfillset(&all);
            pthread_sigmask(SIG_BLOCK, &all, &old);
            started = start(plan);
            pthread_sigmask(SIG_SETMASK, &old, NULL);
        }
        munmap(plan->stacks, (size_t)2 * STACK);
    }
    free(plan);
    errno = saved;
    return started;
}
