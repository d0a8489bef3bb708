/*
 * audit_logs.h - the directory into which the processes of an audit write.
 *
 * One that the user names is made if it does not exist, and stays; else it is a temporary one of
 * mode 0700, and goes. A file is one command's and one pid's; processes that share both, as after
 * an exec or in two pid namespaces, append to one, a line a write.
 */
#ifndef AUDIT_LOGS_H
#define AUDIT_LOGS_H

#include <limits.h>
#include <stdbool.h>

struct audit_logs {
    char path[PATH_MAX]; /* absolute */
    bool temporary;
};

/* `directory` may be NULL. False: said on stderr. */
bool audit_logs_open(struct audit_logs *log, const char *directory);
/* The value for GPUSHARE_LOG, malloc'ed. */
char *audit_logs_value(const struct audit_logs *log);
/* Whether anything was written. */
bool audit_logs_used(const struct audit_logs *log);
void audit_logs_close(const struct audit_logs *log);

#endif
