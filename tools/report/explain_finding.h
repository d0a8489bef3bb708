/*
 * explain_finding.h - findings told in full, by their ids.
 */
#pragma once

/* The first word that is no id, nor a glob that fits some; NULL: each is. */
const char *explain_finding_unknown(char **words);
/* All that each word fits. */
void explain_findings(char **words);
/* A table of all, in groups. */
void explain_finding_list(void);
