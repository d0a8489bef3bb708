/*
 * trouble.c - what the world does to a program, or it to itself: forks, signals whose handlers end
 * the process or jump, no descriptors, no threads; see worker.h.
 */

#include "worker.h"

/* A child that executes makes some dozen calls, each of which may wait for a keeper that is gone.
 */
enum { TIMEOUT_MS = 20000, LONG_TIMEOUT_MS = 120000, IN_CHILD = 50 };

/* --- children --- */

/* A child's frames, in PLACE/crash.PID; it dies of the signal when this returns. */
static void on_crash(int number) {
    char path[PATH + 32];
    void *frames[64];
    snprintf(path, sizeof(path), "%s/crash.%d", world.place, (int)getpid());
    const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    backtrace_symbols_fd(frames, backtrace(frames, 64), file);
    close(file);
}

void say_where_it_crashes(void) {
    const struct sigaction action = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGABRT, &action, NULL);
}

static void await(pid_t child, const char *what, unsigned timeout) {
    const uint64_t until = milliseconds() + timeout;
    int status = 0;
    pid_t got;
    while ((got = waitpid(child, &status, WNOHANG)) == 0 && milliseconds() < until &&
           !(world.over && timeout == LONG_TIMEOUT_MS))
        nap(1);
    if (got == 0 && milliseconds() < until) { /* this process is to end, and so is its child */
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    } else if (got == 0) {
        wrong("%s: hangs, see crash.%d", what, (int)child);
        kill(child, SIGABRT);
        nap(500);
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    } else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) {
        wrong("%s: signal %d, see crash.%d", what, WTERMSIG(status), (int)child);
    } else if (WIFEXITED(status) && WEXITSTATUS(status) != 77 && WEXITSTATUS(status) != 78 &&
               WEXITSTATUS(status) != 0) {
        wrong("%s: exit status %d", what, WEXITSTATUS(status));
    }
}

static void be_worker(void) {
    char seed[16];
    snprintf(seed, sizeof(seed), "%u", dice(1u << 20));
    execl("/proc/self/exe", world.name, world.place, seed,
          world.bare    ? "bare"
          : world.share ? "share"
                        : "audit",
          "20", (char *)NULL);
    _exit(IN_CHILD);
}

/* A child of a process with a context: 3 for every call. Its end takes nothing away. */
static void be_child(unsigned kind) {
    void *pointer = NULL;
    const bool started = world.started;
    journal_forget();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (kind == 0)
        be_worker();
    say_where_it_crashes();
    if (kind == 1 && (int)cudaMalloc(&pointer, 4096) != 3 && started)
        _exit(IN_CHILD + 1);
    if (kind == 2)
        exit(0);
    _exit(0);
}

/* Alone in its process: the simulated driver's locks are the child's as they were. */
void step_fork(void) {
    static const char *const names[] = {"a child that executes", "a child that allocates",
                                        "a child that exits", "a child that ends"};
    const unsigned kind = dice(4);
    count(kind == 0 ? COUNT_execs : kind == 1 ? COUNT_fork_calls : COUNT_forks);
    call_begin("fork");
    const pid_t child = fork();
    if (child == 0)
        be_child(kind);
    call_end(0);
    if (child > 0)
        await(child, names[kind], kind == 0 ? LONG_TIMEOUT_MS : TIMEOUT_MS);
}

/* --- signals --- */

static void on_alarm(int number) {
    if (world.plan == PLAN_EXIT) {
        count(COUNT_handler_exits);
        _exit(77);
    }
    if (world.plan == PLAN_JUMP && self && self->jumpable && self->inside) {
        count(COUNT_unsafe_jumps);
        world.plan = PLAN_NONE;
        siglongjmp(self->landing, 2);
    }
    if (world.plan == PLAN_SAFE_JUMP && self && self->waiting) {
        count(COUNT_handler_jumps);
        self->waiting = 0;
        siglongjmp(self->landing, 1);
    }
}

static void arm(unsigned ms, bool again) {
    const struct timeval time = {.tv_usec = (suseconds_t)ms * 1000 + 100};
    const struct timeval none = {0, 0};
    const struct itimerval timer = {again ? time : none, time};
    setitimer(ITIMER_REAL, &timer, NULL);
}

void trouble_open(void) {
    struct sigaction action;
    backtrace(&(void *){NULL}, 1); /* it loads a library at first */
    memset(&action, 0, sizeof(action));
    action.sa_handler = on_alarm;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
}

/* Out of a pause of our own, where nothing is under way: it goes on as before. */
static void step_safe_jump(void) {
    world.plan = PLAN_SAFE_JUMP;
    self->waiting = 1;
    arm(dice(3), true);
    for (unsigned i = 0; i < 50; i++)
        nap(1);
    self->waiting = 0;
    world.plan = PLAN_NONE;
}

static void step_alarm(void) {
    if (world.plan != PLAN_NONE)
        return;
    world.plan = dice(2) ? PLAN_EXIT : PLAN_JUMP;
    arm(dice(20), true);
}

/* --- too little of something --- */

void few_descriptors(void (*step)(void)) {
    struct rlimit before, few;
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(next);
    if (!world.started || next < 0 || getrlimit(RLIMIT_NOFILE, &before) != 0)
        return;
    few = before;
    few.rlim_cur = (rlim_t)next + dice(4);
    count(COUNT_few_descriptors);
    setrlimit(RLIMIT_NOFILE, &few);
    self->few = true;
    for (unsigned i = 3 + dice(6); i > 0; i--)
        step();
    self->few = false;
    atomic_store(&world.trouble, milliseconds());
    setrlimit(RLIMIT_NOFILE, &before);
}

/* Root is exempt. */
static void step_few_threads(void) {
    struct rlimit before, few;
    if (geteuid() == 0 || getrlimit(RLIMIT_NPROC, &before) != 0)
        return;
    few = before;
    few.rlim_cur = 1;
    count(COUNT_few_threads);
    setrlimit(RLIMIT_NPROC, &few);
    for (unsigned i = 0; i < 4; i++)
        some_step();
    setrlimit(RLIMIT_NPROC, &before);
}

void step_trouble(void) {
    const unsigned what = dice(16);
    if (what < 8)
        step_few_threads();
    else if (what < 14)
        step_safe_jump();
    else
        step_alarm();
}
