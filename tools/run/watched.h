/*
 * watched.h - what `audit` and `explain` watched: numbers of processes and calls, and who was not.
 *
 * Each process counts itself and its calls in the audit's channel (call_counter.h). A descendant
 * that has loaded libcuda, but not the library, is found by its maps: they are read when a process
 * has opened the libcuda that this process would load, and now and then. A process is not named if
 * its maps were not read whole, as when it ended or executed another program.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit_channel.h"
#include "vendor.h"

struct watched {
    enum runtime runtime;
    struct audit_channel channel;
    struct gps_call_counters *counters; /* in it; NULL: it could not be made */
    int opened;               /* inotify: a process has loaded libcuda; -1: it cannot be known */
    char *library;            /* its file name */
    struct unwatched *others; /* and those whose calls may go past the library */
    size_t other_count;
};

/* Begins the channel; `logs` and `to_files` as in audit_channel_begin. */
void watched_begin(struct watched *watched, enum runtime runtime, const char *logs, bool to_files);
void watched_end(struct watched *watched);

/* Empties the channel, and looks for descendants that use CUDA unwatched. */
void watched_look(struct watched *watched);

/* Whether a call of any process was seen. */
bool watched_has_calls(const struct watched *watched);
/* "2 processes used CUDA, 14 calls seen"; malloc'ed. At least `reported` processes did. */
char *watched_text(const struct watched *watched, uint64_t reported);

/* Warns of each that was watched and has ended, and did not say so. */
void watched_tell_silent(const struct watched *watched);

/* Whether a process used CUDA, calls were seen, and all such processes were watched. Else stderr
 * names the others, and what to do. `verb` is the one that watches, `status` the command's. */
bool watched_all(const struct watched *watched, uint64_t reported, const char *verb,
                 const char *command, int status);
