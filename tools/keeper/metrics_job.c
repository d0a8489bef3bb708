/* metrics_job.c - see metrics_job.h. */
#include "metrics_job.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/tool.h"

#define END_TIMEOUT_MS 1000

int metrics_job_begin(struct metrics_job *job, const char *file, uint64_t every) {
    *job = (struct metrics_job){.every = every};
    job->file = tool_absolute(file);
    job->home = job->file ? tool_absolute(".") : NULL;
    return job->home ? 0 : -errno;
}

/* The keeper has changed its directory, and blocks or ignores signals: the writer undoes that. */
static void become_writer(const struct metrics_job *job) {
    sigset_t none;
    sigemptyset(&none);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (chdir(job->home) == 0)
        execl("/proc/self/exe", "gpushare", "metrics", "--output", job->file, (char *)NULL);
    _exit(TOOL_CANNOT_EXECUTE);
}

static void reap(struct metrics_job *job) {
    if (job->writer > 0 && waitpid(job->writer, NULL, WNOHANG) != 0)
        job->writer = 0;
}

void metrics_job_turn(struct metrics_job *job, uint64_t now) {
    reap(job);
    if (!job->file || now < job->next)
        return;
    job->next = now + job->every;
    if (job->writer > 0)
        return;
    job->writer = fork();
    if (job->writer == 0)
        become_writer(job);
    if (job->writer < 0)
        job->writer = 0; /* another is started the next time */
}

void metrics_job_end(struct metrics_job *job) {
    if (!job->file)
        return;
    for (int i = 0; i < END_TIMEOUT_MS / 10 && job->writer > 0; i++, reap(job))
        usleep(10000);
    unlink(job->file);
    free(job->file);
    free(job->home);
    job->file = NULL;
}
