/*
 * doctor_ask.c - asks a driver in a child.
 *
 * A driver in a bad state can crash or hang its caller, even beyond a signal's reach. So the child
 * has none of our descriptors but one pipe. After the time-out it is killed and, if it does not
 * die, left behind.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/printable.h"
#include "config/config.h"
#include "doctor.h"
#include "util/clock.h"

/* The answer is one write that the pipe keeps whole. */
static void run_child(int out, doctor_question *question, void *answer, size_t size) {
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i <= STDERR_FILENO; i++)
        dup2(null, i);
    setenv("GPUSHARE_MODE", "off", 1); /* we may be preloaded ourselves */
    question(answer);
    ssize_t written = write(out, answer, size);
    _exit(written == (ssize_t)size ? 0 : 1);
}

/* False: no answer came. *late: none came within the time-out. */
static bool await_answer(int from, void *answer, size_t size, uint64_t timeout, bool *late) {
    struct pollfd ready = {.fd = from, .events = POLLIN};
    *late = poll(&ready, 1, (int)(timeout / 1000000) + 1) == 0;
    return !*late && read(from, answer, size) == (ssize_t)size;
}

/* The child's wait status; -1 when it does not even die of SIGKILL. */
static int reap(pid_t child, bool kill_it) {
    int status;
    if (kill_it)
        kill(child, SIGKILL);
    for (int i = 0; i < 100; i++) {
        if (waitpid(child, &status, WNOHANG) == child)
            return status;
        usleep(10000);
    }
    return -1;
}

static void tell_of_silence(struct doctor *doctor, bool late, int status) {
    if (late)
        diagnosis_add(doctor, DOCTOR_FAIL, "driver", "the driver did not answer within %s%s",
                      printable_duration(doctor->timeout).text,
                      status == -1 ? ", and the process that asked cannot even be killed" : "");
    else if (status != -1 && WIFSIGNALED(status))
        diagnosis_add(doctor, DOCTOR_FAIL, "driver",
                      "a process that asks the driver dies of signal %d", WTERMSIG(status));
    else
        diagnosis_add(doctor, DOCTOR_FAIL, "driver",
                      "a process that asks the driver ends silently");
}

bool doctor_ask(struct doctor *doctor, doctor_question *question, void *answer, size_t size) {
    int ends[2];
    pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (child < 0) {
        diagnosis_add(doctor, DOCTOR_FAIL, "driver", "no process could be started to ask it");
        return false;
    }
    if (child == 0)
        run_child(ends[1], question, answer, size);
    close(ends[1]);
    bool late;
    const bool answered = await_answer(ends[0], answer, size, doctor->timeout, &late);
    close(ends[0]);
    int status = reap(child, !answered);
    if (!answered)
        tell_of_silence(doctor, late, status);
    return answered;
}
