/*
 * deaths.h - which of the processes that were watched a signal has ended.
 *
 * This process reaps some itself. Of others, which their parents reap, Linux 6.15 and later tell
 * the end by a descriptor of the process, if that was opened while it lived.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct deaths {
    struct living *living; /* with a descriptor */
    size_t living_count;
    struct death *list;
    size_t count;
};

/* A descendant lives. */
void deaths_look(struct deaths *deaths, uint32_t pid);
/* A child has ended by this signal, and is not reaped yet. */
void deaths_note(struct deaths *deaths, uint32_t pid, int signal);

/* Warns of each that used CUDA, as `used` says. */
typedef bool deaths_used_fn(void *arg, uint32_t pid);
void deaths_tell(struct deaths *deaths, deaths_used_fn *used, void *arg);
void deaths_free(struct deaths *deaths);
