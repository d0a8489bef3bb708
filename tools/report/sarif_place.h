/*
 * sarif_place.h - places and stacks as SARIF has them. For report_sarif.c only.
 */
#ifndef SARIF_PLACE_H
#define SARIF_PLACE_H

#include "logs/logs.h"
#include "symbols/symbol.h"

/* Where a finding is shown: the user's innermost line, else function or module, else program. */
json_t *sarif_location(const struct log_line *line, struct symbols *symbols);
/* An array of stackFrame, innermost first; each inlined call is one. */
json_t *sarif_frames(const struct log_stack *stack, struct symbols *symbols);

#endif
