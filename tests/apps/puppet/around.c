/*
 * around.c - another command, and what it leaves alone or when it runs.
 */
#include "puppet.h"

/* errno COMMAND...: says what errno, 4242 before, is after it */
static int c_errno(char **w) {
    char *const line = strdup(join(w + 1));
    errno = 4242;
    obey(line);
    const int after = errno;
    say(" errno %d", after);
    return SAID;
}

/* leap MILLISECONDS COMMAND...: a handler leaves the command by longjmp; says whether it did */
static sigjmp_buf leap_back;
static void leap(int number) {
    siglongjmp(leap_back, 1);
}
struct leaper {
    pthread_t whom;
    useconds_t delay;
};
static void *leap_later(void *arg) {
    const struct leaper *const leaper = arg;
    usleep(leaper->delay);
    pthread_kill(leaper->whom, SIGUSR1);
    return NULL;
}
static int c_leap(char **w) {
    static struct leaper leaper;
    pthread_t thread;
    char *const line = strdup(join(w + 2));
    leaper = (struct leaper){pthread_self(), (useconds_t)number(w[1]) * 1000};
    signal(SIGUSR1, leap);
    if (sigsetjmp(leap_back, 1))
        return 0;
    pthread_create(&thread, NULL, leap_later, &leaper);
    obey(line);
    signal(SIGUSR1, SIG_IGN);
    return SAID;
}

/* dlerror COMMAND...: 1 when the message of an error before it is still there */
static int c_dlerror(char **w) {
    char *const line = strdup(join(w + 1));
    dlsym(RTLD_DEFAULT, "no_such_symbol_anywhere");
    obey(line);
    const char *message = dlerror();
    say(" dlerror %d", message && strstr(message, "no_such_symbol_anywhere"));
    return SAID;
}

struct later {
    unsigned ms;
    char *line;
};

static void *obey_later(void *arg) {
    const struct later *later = arg;
    usleep(1000 * later->ms);
    obey(later->line);
    reply[reply_length++] = '\n';
    put(reply, reply_length);
    reply_length = 0; /* main may be in the midst of a command */
    return NULL;
}

/* later MILLISECONDS COMMAND...: a second answer, from a thread that lives on while main ends */
static int c_later(char **w) {
    static struct later later;
    pthread_t thread;
    later = (struct later){(unsigned)number(w[1]), strdup(join(w + 2))};
    return pthread_create(&thread, NULL, obey_later, &later) != 0 ? BAD : pthread_detach(thread);
}

static char *last_line;

static void obey_last(void) {
    obey(last_line);
    reply[reply_length++] = '\n';
    put(reply, reply_length);
}

/* at_quick_exit COMMAND...: another answer, from a handler */
static int c_at_quick_exit(char **w) {
    last_line = strdup(join(w + 1));
    return at_quick_exit(obey_last);
}

/* at_exit COMMAND...: the same of exit */
static int c_at_exit(char **w) {
    last_line = strdup(join(w + 1));
    return atexit(obey_last);
}

struct pending {
    char *line, answer[LINE];
};

static void *obey_pending(void *arg) {
    struct pending *const pending = arg;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cancel(pthread_self());
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    obey(pending->line);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    memcpy(pending->answer, reply, reply_length + 1); /* each thread has a reply of its own */
    return NULL;
}

/* pending COMMAND...: in a thread that is to be cancelled at the next point where that can be; 125:
 * it was */
static int c_pending(char **w) {
    void *result = NULL;
    pthread_t thread;
    static struct pending pending;
    pending.line = strdup(join(w + 1));
    if (pthread_create(&thread, NULL, obey_pending, &pending) != 0)
        return BAD;
    pthread_join(thread, &result);
    free(pending.line);
    if (result == PTHREAD_CANCELED)
        return 125;
    reply_length = strlen(strcpy(reply, pending.answer));
    return SAID;
}

const struct command around_commands[] = {
    {"errno", "COMMAND...", c_errno},
    {"leap", "MILLISECONDS COMMAND...", c_leap},
    {"dlerror", "COMMAND...", c_dlerror},
    {"later", "MILLISECONDS COMMAND...", c_later},
    {"at_quick_exit", "COMMAND...", c_at_quick_exit},
    {"at_exit", "COMMAND...", c_at_exit},
    {"pending", "COMMAND...", c_pending},
    {0},
};
