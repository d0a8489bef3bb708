/*
 * explain_finding.h - findings told in full, by their ids.
 */
#pragma once

#include <stdbool.h>

/* Whether each word is an id, or a glob that fits some. */
bool explain_finding_knows(char **words);
/* All that each word fits. */
void explain_findings(char **words);
/* A table of all, in groups. */
void explain_finding_list(void);
