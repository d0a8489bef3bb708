/*
 * sink.h - where reports go: one buffer, one write, and no harm to the program.
 *
 * Owns what is known of descriptor 2 and the path of the log. No descriptor stays open: a log file
 * is opened for each write. While it writes, SIGPIPE and SIGXFSZ are blocked, one that its own
 * write raised is taken back, and the thread cannot be cancelled. Safe from any thread;
 * gps_sink_open comes before the threads that write to a log.
 */
#ifndef GPS_SINK_H
#define GPS_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* At library load: remembers what descriptor 2 is. */
void gps_sink_start(void);

/* From now on gps_sink_write goes to `log`: "stderr", or a path with %p, %c and %%; a relative one
 * is taken from the directory that is the current one now. */
void gps_sink_open(const char *log, uint32_t pid, const char *command);

/* False when not all of it could be written. A log that cannot be written is said once on stderr,
 * and the bytes go there. */
bool gps_sink_write(const char *bytes, size_t count);
bool gps_sink_write_stderr(const char *bytes, size_t count);

#endif
