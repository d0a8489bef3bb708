/*
 * sink.h - writes a finished line to stderr or to the log file, without harm to the program.
 *
 * A log file is opened for each write (O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, mode
 * 0600) and closed again, so no descriptor stays open. It is not written through a symbolic link
 * nor into a file or FIFO of another user. stderr is written to only while descriptor 2 is the file
 * that it was at library load, a terminal, or a file opened for writing only: a program that closed
 * it may have a socket or a database there. During a write SIGPIPE and SIGXFSZ are blocked, a
 * signal that the write raised is discarded, and no cancel takes effect. A line for an audit goes
 * to the audit's channel (channel.h), which needs none of this; to its file where the channel is
 * full or the tool does not empty it; and never to stderr while the audit lasts: it is counted as
 * lost then. Safe from any thread after gps_sink_open. No malloc; changes errno.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Remembers the file behind descriptor 2. Runs at library load, so every program pays for it. */
void gps_sink_start(void);

/* Directs gps_sink_write to `log`: "stderr", or a path in which %p is the pid, %c the command and
 * %% a percent sign. A relative path starts at the directory that is current now. */
void gps_sink_open(const char *log, uint32_t pid, const char *command);

/* Whether the output goes to a terminal on which colours are wanted (no-color.org). */
bool gps_sink_colours(bool to_stderr);

/* Writes to stderr, or to the file of gps_sink_open. False: not all bytes were written. If the log
 * file cannot be written, the bytes go to stderr, after one message there. */
bool gps_sink_write(const char *bytes, size_t count, bool to_stderr);

/* Counts a line that will not be written, for an audit. */
void gps_sink_lose(void);

/* --- for the event log --- */

/* A path that is cut at this length is too long for open as well. */
#define GPS_SINK_PATH (PATH_MAX + 16u)

/* The absolute path that `log` stands for, as in gps_sink_open. */
void gps_sink_path(char to[GPS_SINK_PATH], const char *log, uint32_t pid, const char *command);
/* Opens a log file as described above. -1: it cannot be opened, and *why says why. */
int gps_sink_open_file(const char *path, const char **why);
/* Writes with SIGPIPE and SIGXFSZ blocked. 0 or errno. */
int gps_sink_put(int fd, const char *bytes, size_t count);
/* Says on stderr that `what` at `path` cannot be written, why, and what is done instead (`so`). */
void gps_sink_complain(const char *what, const char *path, const char *why, const char *so);
