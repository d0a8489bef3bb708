/*
 * audit_channel.h - this tool's end of the channel of an audit (log/channel.h).
 *
 * Lines are taken out of the cells now and then. With a directory that the user names they are
 * written into its files, as the library does where there is no channel; what a file does not
 * take, and all lines else, stay in this process's memory. One thread uses it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct audit_channel {
    struct gps_channel *memory; /* NULL: it could not be made */
    int file;
    size_t cells, begin; /* all before `begin` are read */
    bool to_files;
    char *kept; /* the lines; malloc'ed */
    size_t kept_size, kept_room;
};

/* Makes it, and sets the variable of the environment that names it. `directory`: absolute, where
 * the processes log; NULL: they only count themselves. `to_files`: the lines go there, too. */
void audit_channel_begin(struct audit_channel *channel, const char *directory, bool to_files);
void audit_channel_end(struct audit_channel *channel);

void audit_channel_empty(struct audit_channel *channel);
/* The same for the last time: from now on processes write into their files. */
void audit_channel_close(struct audit_channel *channel);

/* How many lines are missing, where so many were read: processes have lost them, or were killed
 * while they wrote. */
uint64_t audit_channel_missing(const struct audit_channel *channel, uint64_t read);
