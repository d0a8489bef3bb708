/*
 * session.h - the reading of one configuration: from the text of an INI file to a struct
 * gps_config.
 *
 * Each error is passed to the caller's function and counted, and reading continues, so that all
 * errors are reported. A session belongs to one thread and lies on its caller's stack.
 */
#pragma once

#include "option.h"

struct gps_session {
    struct gps_config *config;
    gps_config_error_fn *fn; /* may be NULL */
    void *arg;
    const char *file; /* the name in errors */
    unsigned errors;
    bool no_memory;
    bool full;       /* the file has more rules than the limit */
    size_t capacity; /* of config->rules */

    /* The section that is being read. */
    enum { GPS_IN_NONE, GPS_IN_REFUSED, GPS_IN_OPTIONS, GPS_IN_RULE } section;
    unsigned given[GPS_KEYS_MAX]; /* the line of each of its keys; 0: not given yet */
    unsigned options_line;        /* where [gpushare] stands; 0: not yet */
};

/* The defaults, without rules. */
void gps_session_reset(struct gps_config *config);

struct gps_session gps_session_begin(struct gps_config *config, gps_config_error_fn *fn, void *arg);
void gps_session_read(struct gps_session *session, const char *file, const char *bytes,
                      size_t count);
/* 0, or -EINVAL or -ENOMEM with the config back at its defaults. */
int gps_session_end(struct gps_session *session);

void gps_session_fail(struct gps_session *session, unsigned line, const char *message);
/* "mode = shared: not allowed; one of share, audit, off" */
void gps_session_fail_value(struct gps_session *session, unsigned line, const struct gps_key *key,
                            const char *value, const char *wrong);
