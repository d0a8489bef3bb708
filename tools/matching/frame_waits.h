/* frame_waits.h - how many waits a frame has, as a run of its exporter shows. */
#pragma once

/* What stands behind `frames` in the exporter's rule: frame_waits, or why it is not known, as
 * lines; malloc'ed. `path` has what the exporter did (fit.h). */
char *frame_waits_lines(const char *path);
