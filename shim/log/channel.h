/*
 * channel.h - memory that an audit shares with the processes that it watches.
 *
 * GPUSHARE_CHANNEL is the path of a memfd of the tool's. A process maps it when the library is
 * loaded, and closes it: from then on no limit, user, root directory or full disk can keep a line
 * from the audit. A program that is executed after such a change may not be able to open it, which
 * the tool sees in its maps. The memfd is sealed and cannot shrink, and all of it is allocated
 * before anyone maps it, so no access can fail. A forked child has the mapping of its parent.
 *
 * A writer takes cells by one compare and swap, copies its line, and marks the first cell as begun
 * last: one that is killed leaves cells that are never marked. The tool empties the cells now and
 * then, and lets them be taken again once all are read. When all cells are taken, a line goes to
 * its file. No lock, no wait, no system call; any thread.
 */
#pragma once

#include <limits.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPS_CHANNEL_MAGIC    0x316c656e68435047u /* "GPChnel1" */
#define GPS_CHANNEL_NAME     "gpushare-audit"
#define GPS_CHANNEL_VARIABLE "GPUSHARE_CHANNEL"
#define GPS_CHANNEL_CELL     512u /* bytes */
#define GPS_CHANNEL_CELLS    16384u
#define GPS_CHANNEL_COUNTERS 8192u
#define GPS_CHANNEL_CLOSED   (UINT64_C(1) << 62) /* `taken`: the audit reads no more */
#define GPS_CHANNEL_READ     UINT16_MAX
#define GPS_CHANNEL_STALE    UINT64_C(10000000000) /* ns: the tool is stopped, or was killed */

struct gps_channel {
    uint64_t magic;
    _Atomic uint64_t taken;    /* cells, from the first one on */
    _Atomic uint64_t lines;    /* that were to be written, in cells or in files */
    _Atomic uint64_t lost;     /* lines that could not be written */
    _Atomic uint64_t attended; /* when the tool last looked, CLOCK_MONOTONIC */
    char directory[PATH_MAX];  /* of the audit's logs; empty: no line goes here */
    alignas(64) unsigned char counters[GPS_CHANNEL_COUNTERS]; /* process/call_counter.h */
    /* A line's first cell: the number of its cells; for each that the tool has read, READ. */
    _Atomic uint16_t begun[GPS_CHANNEL_CELLS];
    alignas(64) char bytes[]; /* the cells: a file's name and a 0, the line and its newline, 0 */
};

/* Maps the memfd that the environment names, at library load, or at the first call if that failed
 * or has not run yet. Preserves errno. */
void gps_channel_start(void);
/* NULL: this process is in no audit, or could not map it. */
struct gps_channel *gps_channel(void);

/* Whether this process is in an audit that reads lines, and has not ended. */
bool gps_channel_is_open(void);
/* Whether the tool reads the cells; if not, a file may be the only way. */
bool gps_channel_is_attended(void);
/* The name within the audit's directory of the log with this path. NULL: it is not in it. */
const char *gps_channel_name(const char *path);
/* Writes a line that ends with a newline, for the file of this name. False: there is no room. */
bool gps_channel_put(const char *name, const char *line, size_t length);
