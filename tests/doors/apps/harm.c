/* harm.c - programs that do what programs do to the libraries in them. The first argument says
 * what; prints what the program saw, which must be the same with and without gpushare. */
#include "../../common/system_headers.h"
#include <cuda_runtime_api.h>

#include <link.h>
#include <linux/sched.h>
#include <spawn.h>

extern char **environ;

/* An exported buffer, closed and freed; and a double free, which is reported, from a call site that
 * differs by `site`. */
static void *export_one(void) {
    cudaIpcMemHandle_t handle;
    void *buffer = NULL;
    const int a = (int)cudaMalloc(&buffer, 4096), b = (int)cudaIpcGetMemHandle(&handle, buffer);
    printf("export %d %d\n", a, b);
    return buffer;
}

static void misuse(void *buffer) {
    const int a = (int)cudaFree(buffer), b = (int)cudaFree(buffer);
    printf("free %d %d\n", a, b);
}

static void work(void) {
    void *buffer = export_one();
    misuse(buffer);
}

static void end(const char *what, pid_t child) {
    int status = 0;
    fflush(stdout);
    waitpid(child, &status, __WALL);
    printf("%s: %s %d\n", what, WIFEXITED(status) ? "exit" : "signal",
           WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

/* --- descriptors --- */

static int close_all(void) {
    void *buffer = export_one();
    fflush(stdout);
    const int out = dup(1);
    close_range(3, (unsigned)out - 1, 0);
    close_range((unsigned)out + 1, ~0u, 0);
    for (int i = 0; i < 8; i++) /* the numbers are the program's now */
        open("/dev/null", O_RDONLY);
    cudaFree(buffer); /* the driver's own descriptors may be among them */
    printf("alive\n");
    return 0;
}

static int close_stderr(const char *path) {
    void *buffer = export_one();
    close(2);
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    misuse(buffer);
    printf("%d holds %ld bytes\n", fd, (long)lseek(fd, 0, SEEK_END));
    return 0;
}

static int socket_stderr(void) {
    int ends[2];
    char byte;
    void *buffer = export_one();
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return 1;
    dup2(ends[0], 2);
    misuse(buffer);
    const ssize_t got = recv(ends[1], &byte, 1, MSG_DONTWAIT);
    printf("socket got %zd\n", got);
    return 0;
}

/* stderr is a pipe that nobody reads. */
static int broken_stderr(void) {
    int ends[2];
    if (pipe(ends))
        return 1;
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    work();
    return 0;
}

static int full_stderr(void) {
    int ends[2];
    char block[4096] = {0};
    if (pipe2(ends, O_NONBLOCK))
        return 1;
    while (write(ends[1], block, sizeof block) > 0)
        ;
    dup2(ends[1], 2);
    work();
    return 0;
}

static int limited(__rlimit_resource_t resource, rlim_t value) {
    void *buffer = NULL, *warm = NULL;
    printf("first %d\n", (int)cudaMalloc(&warm, 4096)); /* the driver has what it needs */
    fflush(stdout);
    const struct rlimit limit = {value, value};
    setrlimit(resource, &limit);
    buffer = export_one();
    misuse(buffer);
    return 0;
}

/* --- children --- */

static int child_of_clone(void *arg) {
    syscall(SYS_exit, 13);
    return 0;
}

static pid_t raw_fork(void) {
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static int use_in_child(void) {
    void *buffer = NULL;
    return (int)cudaMalloc(&buffer, 4096);
}

static int children(void) {
    static char stack[65536] __attribute__((aligned(16)));
    char *const argv[] = {(char *)(uintptr_t) "true", NULL};
    void *buffer = export_one();
    pid_t child;
    fflush(stdout);
    if ((child = fork()) == 0)
        exit(10);
    end("fork, exit", child);
    if ((child = fork()) == 0)
        _exit(use_in_child() + 100);
    end("fork, use, _exit", child);
    if ((child = fork()) == 0) {
        cudaFree(buffer);
        quick_exit(11);
    }
    end("fork, free, quick_exit", child);
    if ((child = vfork()) == 0)
        _exit(12);
    end("vfork, _exit", child);
    if ((child = vfork()) == 0) {
        execv("/bin/true", argv);
        _exit(127);
    }
    end("vfork, exec", child);
    if (posix_spawn(&child, "/bin/true", NULL, NULL, argv, environ) == 0)
        end("posix_spawn", child);
    printf("system: %d\n", system("exit 3"));
    child = clone(child_of_clone, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
    end("clone", child);
    if ((child = raw_fork()) == 0) {
        const int code = use_in_child();
        _exit(code + 100);
    }
    end("raw clone, use, _exit", child);
    if ((child = _Fork()) == 0)
        _exit(use_in_child() + 100);
    end("_Fork, use, _exit", child);
    misuse(buffer);
    work();
    return 0;
}

/* A thread looks the driver up, and so attaches the library to it, while another one forks. */
struct looking {
    void *library;
    long micros;
    volatile sig_atomic_t begun;
};

static void spin(long micros) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000 < micros);
}

static void *look_up(void *arg) {
    struct looking *looking = arg;
    looking->begun = 1;
    spin(-looking->micros);
    return dlsym(looking->library, "cuMemAlloc_v2");
}

/* So much after the look-up; before it, for a fork takes longer. */
__attribute__((noreturn)) static void fork_while_looking(long micros) {
    struct looking looking = {.library = dlopen("libcuda.so.1", RTLD_NOW), .micros = micros};
    pthread_t thread;
    int status = -1;
    pthread_create(&thread, NULL, look_up, &looking);
    while (!looking.begun)
        continue;
    spin(micros);
    const pid_t child = fork();
    if (child == 0) {
        alarm(10);
        _exit(dlsym(looking.library, "cuMemFree_v2") == NULL);
    }
    waitpid(child, &status, 0);
    _exit(status != 0);
}

static int forks_while_looking(void) {
    int wrong = 0, status = -1;
    for (int i = 0; i < 1000 && !wrong; i++) {
        const pid_t child = fork();
        if (child == 0)
            fork_while_looking(i % 200 - 150);
        waitpid(child, &status, 0);
        wrong += status != 0;
    }
    printf("wrong %d\n", wrong);
    return 0;
}

/* While another thread has the linker tell of the loaded objects, which takes a lock of its. */
static volatile enum { BEFORE, LISTING, FORKED } stage;

static int stay(struct dl_phdr_info *info, size_t size, void *arg) {
    stage = LISTING;
    while (stage == LISTING)
        continue;
    return 1;
}

static void *list(void *arg) {
    dl_iterate_phdr(stay, arg);
    return NULL;
}

static int fork_while_listing(void) {
    void *const library = dlopen("libcuda.so.1", RTLD_NOW);
    pthread_t thread;
    pthread_create(&thread, NULL, list, NULL);
    while (stage == BEFORE)
        continue;
    const pid_t child = fork();
    if (child == 0) {
        alarm(10);
        const bool is_there = dlsym(library, "cuMemFree_v2") != NULL;
        work();
        fflush(stdout);
        _exit(is_there);
    }
    stage = FORKED;
    end("fork while listing", child);
    return 0;
}

/* --- signals and threads --- */

static void leave(int number) {
    _exit(42);
}

static void report(int number) {
    static const char told[] = "reported\n";
    (void)!write(1, told, sizeof told - 1);
    _exit(number);
}

/* A fault in a call of the driver's reaches the program's handler, whoever made the call. */
static int fault(const char *number) {
    static const int faults[] = {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
    void *buffer = NULL;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        signal(faults[i], report);
    cudaFree(NULL);
    setenv("GPUSHARE_SIM_FAULT", number, 1);
    return (int)cudaMalloc(&buffer, 2 << 20);
}

/* A signal ends the process in the middle of whatever it is doing. */
__attribute__((noreturn)) static void interrupted(long micros) {
    const struct itimerval timer = {{0, 0}, {0, micros ? micros : 1}};
    cudaIpcMemHandle_t handle;
    signal(SIGALRM, leave);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (;;) {
        void *buffer = NULL;
        cudaMalloc(&buffer, 4096);
        cudaIpcGetMemHandle(&handle, buffer);
        cudaFree(buffer);
        cudaFree(buffer);
    }
}

static volatile sig_atomic_t ticks;

static void tick(int number) {
    ticks++;
}

/* Signals that interrupt system calls of ours must not show. */
static int ticking(void) {
    const struct itimerval timer = {{0, 100}, {0, 100}}, none = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = tick}; /* no SA_RESTART */
    int wrong = 0;
    cudaIpcMemHandle_t handle;
    void *buffer;
    cudaFree(NULL);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (int i = 0; i < 300; i++)
        wrong += cudaMalloc(&buffer, 4096) || cudaIpcGetMemHandle(&handle, buffer) ||
                 cudaFree(buffer) || !cudaFree(buffer);
    setitimer(ITIMER_REAL, &none, NULL);
    printf("wrong %d\n", wrong);
    return 0;
}

static void print_state(const char *when) {
    sigset_t set;
    int blocked = 0, cancel, type;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    for (int i = 1; i < 65; i++)
        blocked += sigismember(&set, i) == 1;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_setcancelstate(cancel, NULL);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    pthread_setcanceltype(type, NULL);
    printf("%s: blocked %d cancel %d %d\n", when, blocked, cancel, type);
}

static void *state(void *arg) {
    sigset_t set;
    print_state("at first");
    work();
    print_state("after work");
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    print_state("changed");
    work();
    print_state("after work");
    return arg;
}

static void *cancelled(void *arg) {
    void *buffer = export_one();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cancel(pthread_self());
    misuse(buffer);
    printf("not yet\n");
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    pthread_testcancel();
    printf("too late\n");
    return arg;
}

static pthread_key_t key;

static void free_at_end(void *buffer) {
    misuse(buffer);
}

static void *exits(void *arg) {
    pthread_key_create(&key, free_at_end);
    pthread_setspecific(key, export_one());
    pthread_exit(arg);
}

static void *working(void *arg) {
    work();
    return arg;
}

static int threaded(void *(*run)(void *), size_t stack) {
    pthread_attr_t attributes;
    pthread_t thread;
    void *result = NULL;
    pthread_attr_init(&attributes);
    if (stack)
        printf("stack %d\n", pthread_attr_setstacksize(&attributes, stack));
    if (pthread_create(&thread, &attributes, run, NULL) || pthread_join(thread, &result))
        return 1;
    printf("%s\n", result == PTHREAD_CANCELED ? "cancelled" : "ended");
    return 0;
}

/* --- dlerror --- */

static void *lookup_fails(const char *name) {
    return dlsym(RTLD_DEFAULT, name);
}

static int dl_error(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    work();
    lookup_fails("no_such_function");
    void *buffer = export_one();
    misuse(buffer);
    const char *kept = dlerror();
    printf("kept: %s\n", kept ? kept : "nothing");
    lookup_fails("no_such_function");
    errno = 55;
    printf("found %d\n", dlsym(library, "cuMemAlloc_v2") != NULL);
    kept = dlerror(); /* a look-up that succeeds clears it */
    printf("errno %d, then: %s\n", errno, kept ? kept : "nothing");
    printf("found %d\n", dlsym(library, "cuMemAlloc_v9") != NULL);
    kept = dlerror();
    printf("then: %s\n", kept && strstr(kept, "cuMemAlloc_v9") ? "no cuMemAlloc_v9" : "nothing");
    dlclose(library);
    return 0;
}

/* --- ends --- */

static void handler(void) {
    printf("handler\n");
}

static void freeing_handler(void) {
    void *buffer = NULL;
    const int a = (int)cudaMalloc(&buffer, 4096), b = (int)cudaFree(buffer),
              c = (int)cudaFree(buffer);
    printf("in the handler: %d %d %d\n", a, b, c);
}

static void before_driver(void) {
    printf("registered before the driver\n");
    freeing_handler();
}

__attribute__((destructor)) static void destructor(void) {
    printf("destructor\n");
    freeing_handler();
    fflush(stdout);
}

static int ends(const char *how, int status) {
    atexit(before_driver);
    work();
    atexit(freeing_handler);
    atexit(handler);
    at_quick_exit(handler);
    fflush(stdout);
    if (strcmp(how, "exit") == 0)
        exit(status);
    if (strcmp(how, "_exit") == 0)
        _exit(status);
    if (strcmp(how, "_Exit") == 0)
        _Exit(status);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(status);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(how, "syscall") == 0)
        syscall(SYS_exit_group, status);
    if (strcmp(how, "pthread_exit") == 0)
        pthread_exit(NULL);
    return status;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "", *with = argc > 2 ? argv[2] : "";
    const struct {
        const char *name;
        int (*run)(void);
    } plain[] = {{"close-all", close_all},
                 {"socket-stderr", socket_stderr},
                 {"broken-stderr", broken_stderr},
                 {"full-stderr", full_stderr},
                 {"children", children},
                 {"ticking", ticking},
                 {"fork-while-looking", forks_while_looking},
                 {"fork-while-listing", fork_while_listing},
                 {"dl-error", dl_error}};
    const struct {
        const char *name;
        void *(*run)(void *);
    } threads[] = {
        {"state", state}, {"cancel", cancelled}, {"thread-exit", exits}, {"small-stack", working}};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strcmp(what, plain[i].name) == 0)
            return plain[i].run();
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        if (strcmp(what, threads[i].name) == 0)
            return threaded(threads[i].run,
                            *with ? (size_t)PTHREAD_STACK_MIN + (size_t)atoi(with) : 0);
    if (strcmp(what, "close-stderr") == 0)
        return close_stderr(with);
    if (strcmp(what, "files") == 0)
        return limited(RLIMIT_NOFILE, (rlim_t)atoi(with));
    if (strcmp(what, "file-size") == 0)
        return limited(RLIMIT_FSIZE, 0);
    if (strcmp(what, "fault") == 0)
        return fault(with);
    if (strcmp(what, "interrupted") == 0)
        interrupted(atol(with));
    return argc > 2 ? ends(what, atoi(with)) : 2;
}
