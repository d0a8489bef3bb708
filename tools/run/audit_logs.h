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

struct auditlog {
    char path[PATH_MAX]; /* absolute */
    bool temporary;
};

/* `directory` may be NULL. False: said on stderr. */
bool auditlog_open(struct auditlog *log, const char *directory);
/* The value for GPUSHARE_LOG, malloc'ed. */
char *auditlog_value(const struct auditlog *log);
/* Whether anything was written. */
bool auditlog_used(const struct auditlog *log);
void auditlog_close(const struct auditlog *log);

#endif
