/* environment.h - the variables GPUSHARE_*, and what is wrong with those of this environment. */
#pragma once

/* Prints one line for each variable that a user sets and that is no option, aligned. */
void environment_help(void);
/* What GPUSHARE_DIR or GPUSHARE_NAMESPACE has wrong, and what is allowed; malloc'ed, or NULL. */
char *environment_place(void);
/* That there is no configuration, and the three places where it is looked for; malloc'ed. */
char *environment_no_config(void);
/* Calls fn for each variable GPUSHARE_* that nothing reads, with what is said of it. */
void environment_unknown(void (*fn)(void *arg, const char *message), void *arg);
