/*
 * process.c - processes: how they begin, go on and end.
 */
#include "puppet.h"

/* fork COMMAND[;COMMAND]...: the child obeys them, and its replies come back joined by " | ". A
 * last command that ends the process is the child's end; else it is _exit(0). */
static int c_fork(char **w) {
    int ends[2];
    char *const script = strdup(join(w + 1));
    if (pipe(ends) != 0)
        return BAD;
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        for (char *next = script, *one; (one = strsep(&next, ";")) != NULL;) {
            obey(one);
            put(reply, reply_length);
            put(" | ", 3);
        }
        _exit(0);
    }
    close(ends[1]);
    static char text[LINE];
    size_t used = 0;
    ssize_t count;
    while ((count = read(ends[0], text + used, sizeof(text) - 1 - used)) > 0)
        used += (size_t)count;
    close(ends[0]);
    text[used] = '\0';
    int status = 0;
    waitpid(child, &status, 0);
    say(" %d %s", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text);
    return 0;
}

/* spawn IN OUT: a forked child that goes on as a puppet of its own, on two named pipes */
static int c_spawn(char **w) {
    const pid_t child = fork();
    if (child == 0) {
        const int in = open(w[1], O_RDONLY), out = open(w[2], O_WRONLY);
        if (in < 0 || out < 0)
            _exit(112);
        dup2(in, 0);
        dup2(out, 1);
        close(in);
        close(out);
        say(" child");
        return 0;
    }
    say(" %d", (int)child);
    return child < 0 ? BAD : 0;
}

static int c_exec(char **w) {
    char *const arguments[] = {w[1] ? w[1] : (char *)"/proc/self/exe", (char *)"exec", NULL};
    put("0 exec\n", 7);
    execv(arguments[0], arguments);
    return BAD;
}

static int c_exit(char **w) {
    exit((int)number(w[1]));
}
static int c__exit(char **w) {
    _exit((int)number(w[1]));
}
static int c_quick_exit(char **w) {
    quick_exit((int)number(w[1]));
}
static int c_abort(char **w) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    abort();
}
COMMAND(return, QUIT)
static int c_pid(char **w) {
    say(" %d", (int)getpid());
    return 0;
}
static int c_sleep(char **w) {
    nap(number(w[1]));
    return 0;
}
static void *outlive(void *milliseconds) {
    nap((u64)(uintptr_t)milliseconds);
    return NULL;
}
static void say_goodbye(int signal) {
    static const char text[] = "0 told to end\n";
    _exit(write(1, text, sizeof(text) - 1) > 0 ? 7 : 8);
}
/* leave MILLISECONDS [handle]: the main thread ends, and another one after that time; 0: there is
 * none. `handle`: with a handler of SIGTERM */
static int c_leave(char **w) {
    pthread_t thread;
    const u64 ms = number(w[1]);
    if (w[2])
        signal(SIGTERM, say_goodbye);
    if (ms && pthread_create(&thread, NULL, outlive, (void *)(uintptr_t)ms) != 0)
        return BAD;
    pthread_exit(NULL);
}
static void *go_on(void *unused) {
    while (access("/proc/self/exe", F_OK) == 0)
        nap(1);
    put("0\n", 2);
    obey_all();
    exit(0);
    return unused;
}
/* depart: the main thread ends, and another one answers and goes on with the commands */
static int c_depart(char **w) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, go_on, NULL) != 0)
        return BAD;
    pthread_exit(NULL);
}
static int c_env(char **w) {
    say(" %s", getenv(w[1]) ? getenv(w[1]) : "-");
    return 0;
}

/* A program that allocates and frees while a timer's handler ends it. */
static void end_here(int number) {
    _exit(7);
}
static void *idle(void *unused) {
    pause();
    return unused;
}
static int c_alarm_exit(char **w) {
    const struct itimerval soon = {.it_value = {.tv_usec = (suseconds_t)number(w[1])}};
    void *kept[64] = {0};
    pthread_t thread;
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    pthread_create(&thread, NULL, idle, NULL); /* alone, a thread takes no lock of malloc's */
    pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
    signal(SIGALRM, end_here);
    setitimer(ITIMER_REAL, &soon, NULL);
    for (size_t i = 0; i < 1000000000; i++) {
        free(kept[i % 64]);
        kept[i % 64] = malloc(2000 + i % 64 * 1000);
    }
    return BAD;
}

const struct command process_commands[] = {
    {"fork", "COMMAND[;COMMAND]...", c_fork},
    {"spawn", "INPUT OUTPUT", c_spawn},
    {"exec", "[PROGRAM]", c_exec},
    {"exit", "STATUS", c_exit},
    {"_exit", "STATUS", c__exit},
    {"quick_exit", "STATUS", c_quick_exit},
    {"abort", "", c_abort},
    {"return", "", c_return},
    {"pid", "", c_pid},
    {"sleep", "MILLISECONDS", c_sleep},
    {"leave", "MILLISECONDS [handle]", c_leave},
    {"depart", "", c_depart},
    {"env", "NAME", c_env},
    {"alarm_exit", "MICROSECONDS", c_alarm_exit},
    {0},
};
