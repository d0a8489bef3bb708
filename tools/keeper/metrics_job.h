/*
 * metrics_job.h - has metrics written again and again, each time by a process of its own.
 *
 * So the keeper never waits for a file or its disk. While a writer still runs, no other is started.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct metrics_job {
    char *file;           /* absolute; NULL: no metrics are written */
    char *home;           /* where the keeper was started */
    uint64_t every, next; /* CLOCK_MONOTONIC */
    pid_t writer;         /* 0: no writer runs */
};

/* Makes the path absolute. 0 or -errno. */
int metrics_job_begin(struct metrics_job *job, const char *file, uint64_t every);
/* Starts a writer if it is time. */
void metrics_job_turn(struct metrics_job *job, uint64_t now);
/* Removes the file: old figures would pass for new ones. */
void metrics_job_end(struct metrics_job *job);
