#include "selftest.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "cli/tool.h"
#include "run/driver_answer.h"
#include "util/clock.h"

bool dialogue_fails(struct dialogue *dialogue, const char *format, ...) {
    if (!dialogue->trouble)
        dialogue->trouble = TOOL_VARIADIC(tool_vformat, format);
    return false;
}

static struct dialogue_actor *dialogue_find_actor(struct dialogue *dialogue, const char *name) {
    int i = 0;
    while (i < DIALOGUE_ACTORS - 1 && dialogue->actors[i].name &&
           strcmp(dialogue->actors[i].name, name) != 0)
        i++;
    return &dialogue->actors[i];
}

/* --- starting --- */

/* In the child. */
static void dialogue_become_actor(enum runtime runtime, const char *name, int in, int out,
                                  pid_t parent) {
    const int null = open("/dev/null", O_WRONLY);
    TOOL_TEMP char *option = tool_format("--actor=%s", runtime == RUNTIME_HIP ? "hip" : "cuda");
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && setenv("GPUSHARE_PROGRAM", name, 1) == 0)
        execl("/proc/self/exe", "gpushare", "doctor", option, NULL);
    _exit(TOOL_RUN_FAILED);
}

static bool dialogue_start_actor(struct dialogue *dialogue, const char *name) {
    struct dialogue_actor *actor = dialogue_find_actor(dialogue, name);
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    const pid_t parent = getpid();
    const bool piped = pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0;
    const pid_t child = piped ? fork() : -1;
    if (child == 0)
        dialogue_become_actor(dialogue->runtime, name, in[0], out[1], parent);
    close(in[0]);
    close(out[1]);
    if (child < 0)
        return dialogue_fails(dialogue, "no process could be started");
    *actor = (struct dialogue_actor){name, child, in[1], out[0]};
    return true;
}

/* --- speaking --- */

static bool dialogue_tell_actor(struct dialogue *dialogue, struct dialogue_actor *actor,
                                const char *says) {
    const char *hole = strchr(says, '$');
    TOOL_TEMP char *text = tool_format("%.*s%s\n", (int)(hole ? hole - says : 256), says,
                                       hole ? dialogue->handle : "");
    const size_t length = strlen(text);
    return write(actor->in, text, length) == (ssize_t)length;
}

/* An answer is short enough to come in one piece. */
static bool hear(struct dialogue *dialogue, struct dialogue_actor *actor, const char *says) {
    struct pollfd ready = {.fd = actor->out, .events = POLLIN};
    const uint64_t now = gps_clock_monotonic(), until = dialogue->deadline;
    if (poll(&ready, 1, now < until ? (int)((until - now) / 1000000) : 0) != 1)
        return dialogue_fails(dialogue, "the %s has not answered '%s' in time", actor->name, says);
    const ssize_t count = read(actor->out, dialogue->answer, sizeof(dialogue->answer) - 1);
    if (count <= 0)
        return dialogue_fails(dialogue, "the %s ended at '%s'", actor->name, says);
    dialogue->answer[count] = 0;
    dialogue->answer[strcspn(dialogue->answer, "\n")] = 0;
    return true;
}

/* Whether it is what the line expects. A handle is kept. */
static bool dialogue_compare(struct dialogue *dialogue, const struct dialogue_line *line) {
    const char *answer = dialogue->answer, *expected = tool_or(line->answer, "0");
    if (strcmp(line->says, "export") == 0 && strncmp(answer, "0 ", 2) == 0)
        snprintf(dialogue->handle, sizeof(dialogue->handle), "%s", answer + 2);
    const bool code_only = strcmp(line->says, "open") == 0 || strcmp(line->says, "export") == 0;
    const size_t length = code_only ? strcspn(answer, " ") : strlen(answer);
    if (strlen(expected) == length && strncmp(answer, expected, length) == 0)
        return true;
    return dialogue_fails(dialogue, "the %s was answered '%s' to '%s', not '%s'", line->actor,
                          answer, line->says, expected);
}

bool dialogue_begin(struct dialogue *dialogue, const char *const names[DIALOGUE_ACTORS]) {
    for (int i = 0; i < DIALOGUE_ACTORS && names[i]; i++)
        if (!dialogue_start_actor(dialogue, names[i]) ||
            !dialogue_tell_actor(dialogue, dialogue_find_actor(dialogue, names[i]), "open"))
            return dialogue_fails(dialogue, "the %s did not start", names[i]);
    for (int i = 0; i < DIALOGUE_ACTORS && names[i]; i++) {
        const struct dialogue_line open = {names[i], "open", NULL};
        if (!hear(dialogue, dialogue_find_actor(dialogue, names[i]), open.says) ||
            !dialogue_compare(dialogue, &open))
            return false;
    }
    return true;
}

bool dialogue_speak(struct dialogue *dialogue, const struct dialogue_line *line) {
    struct dialogue_actor *actor = dialogue_find_actor(dialogue, line->actor);
    if (!line->says) {
        close(actor->in);
        actor->in = -1;
        return true;
    }
    if (!dialogue_tell_actor(dialogue, actor, line->says))
        return dialogue_fails(dialogue, "the %s ended before '%s'", actor->name, line->says);
    return hear(dialogue, actor, line->says) && dialogue_compare(dialogue, line);
}

/* --- ending --- */

static void dialogue_end_actor(struct dialogue *dialogue, struct dialogue_actor *actor) {
    const int status = driver_reap(actor->pid, dialogue->trouble ? 0 : dialogue->deadline);
    if (status == 0)
        return;
    if (status == -1) {
        kill(actor->pid, SIGKILL);
        driver_reap(actor->pid, gps_clock_monotonic() + DRIVER_DIES_WITHIN);
        dialogue_fails(dialogue, "the %s has not ended in time", actor->name);
    } else if (WIFSIGNALED(status)) {
        dialogue_fails(dialogue, "the %s died of signal %d", actor->name, WTERMSIG(status));
    } else {
        dialogue_fails(dialogue, "the %s ended with %d", actor->name, WEXITSTATUS(status));
    }
}

bool dialogue_end(struct dialogue *dialogue) {
    for (int i = 0; i < DIALOGUE_ACTORS; i++)
        if (dialogue->actors[i].pid && dialogue->actors[i].in >= 0)
            close(dialogue->actors[i].in);
    for (int i = 0; i < DIALOGUE_ACTORS; i++) {
        if (!dialogue->actors[i].pid)
            continue;
        dialogue_end_actor(dialogue, &dialogue->actors[i]);
        close(dialogue->actors[i].out);
        dialogue->actors[i] = (struct dialogue_actor){0};
    }
    return !dialogue->trouble;
}
