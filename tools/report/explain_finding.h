/* explain_finding.h - explains findings in full, by their ids. */
#pragma once

/* The first word that is neither an id nor a glob that fits an id; NULL: there is none. */
const char *explain_finding_unknown(char **words);
/* Prints every finding that a word fits. */
void explain_findings(char **words);
/* Prints a table of all findings, in groups. */
void explain_finding_list(void);
