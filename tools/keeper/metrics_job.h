/*
 * metrics_job.h - has metrics written again and again, each time by another process.
 *
 * So whatever happens to a file or its disk, the keeper waits for nothing. One that still runs when
 * the next is due is left to run.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct metrics_job {
    char *file;           /* absolute; NULL: none is to be written */
    char *home;           /* where the keeper was started */
    uint64_t every, next; /* CLOCK_MONOTONIC */
    pid_t writer;         /* 0: none runs */
};

/* Makes the path absolute. 0 or -errno. */
int metrics_job_begin(struct metrics_job *job, const char *file, uint64_t every);
/* Starts a writer if it is time. */
void metrics_job_turn(struct metrics_job *job, uint64_t now);
/* Removes the file: old figures would pass for new ones. */
void metrics_job_end(struct metrics_job *job);
