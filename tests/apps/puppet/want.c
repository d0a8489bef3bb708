/*
 * want.c - what a process has of descriptors, threads and rights, and loses.
 */
#include "puppet.h"

#include <linux/filter.h>
#include <linux/seccomp.h>

/* hold PATH: opens it for good */
COMMAND(hold, open(w[1], O_RDWR) < 0 ? errno : 0)

static int entries_of(const char *path) {
    int count = 0;
    DIR *dir = opendir(path);
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count - 2; /* . and .. */
}

static int c_fds(char **w) {
    say(" %d", entries_of("/proc/self/fd") - 1); /* and its own */
    return 0;
}

static int c_tasks(char **w) {
    say(" %d", entries_of("/proc/self/task"));
    return 0;
}

/* unlisten: as a program that closes what it does not know; another file gets each number */
static int c_unlisten(char **w) {
    const int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    unsigned count = 0;
    for (int fd = 3; fd < 1024; fd++) {
        int listens = 0;
        socklen_t size = sizeof(listens);
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens)
            count += dup2(other, fd) == fd;
    }
    say(" %u", count);
    return 0;
}

/* Every descriptor of the file becomes one of another file. */
static int c_refile(char **w) {
    char link[32], target[4096];
    const int other = open(w[2], O_WRONLY | O_CREAT, 0600);
    int count = 0;
    for (int fd = 3; fd < 4096; fd++) {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        const ssize_t length = readlink(link, target, sizeof(target) - 1);
        if (length < 0)
            continue;
        target[length] = 0;
        count += strcmp(target, w[1]) == 0 && dup2(other, fd) == fd;
    }
    say(" %d", count);
    return 0;
}

/* refuse NUMBER: from now on the kernel answers a system call of all threads with ENOSYS */
static int c_refuse(char **w) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number(w[1]), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {sizeof(steps) / sizeof(steps[0]), steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) != 0)
        return BAD;
    return 0;
}

/* hoard: takes every descriptor number; unhoard: gives them back */
static int hoarded[LINE], hoard_count;
static int c_hoard(char **w) {
    struct rlimit limit;
    const int first = dup(0);
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = (rlim_t)first + 64;
    setrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = first; fd >= 0; fd = dup(0))
        hoarded[hoard_count++] = fd;
    return 0;
}
static int c_unhoard(char **w) {
    while (hoard_count)
        close(hoarded[--hoard_count]);
    return 0;
}

static int c_lose_closed(char **w) {
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    return 0;
}
static int c_lose_limit(char **w) {
    const struct rlimit limit = {number(w[2]), number(w[2])};
    return setrlimit(strcmp(w[1], "files") == 0 ? RLIMIT_NOFILE : RLIMIT_FSIZE, &limit);
}
static int c_lose_user(char **w) {
    const uid_t user = (uid_t)number(w[1]);
    return setresuid(user, user, user);
}
static int c_lose_root(char **w) {
    return chroot(w[1]) != 0 || chdir("/") != 0 ? BAD : 0;
}
static int c_lose_namespaces(char **w) {
    return unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET);
}

const struct command want_commands[] = {
    {"hold", "PATH", c_hold},
    {"fds", "", c_fds},
    {"tasks", "", c_tasks},
    {"unlisten", "", c_unlisten},
    {"refile", "PATH OTHER", c_refile},
    {"refuse", "NUMBER", c_refuse},
    {"hoard", "", c_hoard},
    {"unhoard", "", c_unhoard},
    {"lose_closed", "", c_lose_closed},
    {"lose_limit", "files|size NUMBER", c_lose_limit},
    {"lose_user", "UID", c_lose_user},
    {"lose_root", "DIRECTORY", c_lose_root},
    {"lose_namespaces", "", c_lose_namespaces},
    {0},
};
