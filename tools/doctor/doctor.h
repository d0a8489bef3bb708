/*
 * doctor.h - the checks of `gpushare doctor`, and the diagnoses that they make.
 *
 * No check changes anything. A check that could hang or crash (the driver's) runs in a child of its
 * own. A check adds one diagnosis or more; a remedy belongs to the one added last.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "directory/view.h"
#include "run/driver_answer.h"

enum doctor_verdict { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };

struct diagnosis {
    enum doctor_verdict verdict;
    const char *check; /* one word */
    char *message;
    char *remedy; /* NULL: nothing is to be done */
};

struct doctor {
    struct diagnosis *list;
    size_t count;
    char **command;   /* the command and its arguments; empty: none was given */
    uint64_t timeout; /* for the driver, ns */
    enum runtime runtime;
    uint32_t pid;   /* of a process to look at; 0: none was given */
    unsigned cards; /* that the driver has; 0: it did not say */
    struct view_place place;
    struct gps_store store;
    int store_status; /* of view_store: 0: the store is there */
};

void diagnosis_add(struct doctor *doctor, enum doctor_verdict verdict, const char *check,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));
void diagnosis_remedy(struct doctor *doctor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

bool doctor_in_container(void);
/* The root, or if it does not exist the nearest directory above it that does. */
void doctor_existing(const char *root, char path[GPS_STORE_PATH]);

/* The checks, in the order of the report. */
void doctor_library(struct doctor *doctor);
void doctor_preload(struct doctor *doctor);
void doctor_driver(struct doctor *doctor);
/* A part of doctor_driver: the answer of AMD's runtime. */
void doctor_hip(struct doctor *doctor, const struct driver_answer *answer);
void doctor_platform(struct doctor *doctor);
void doctor_container(struct doctor *doctor);
void doctor_directory(struct doctor *doctor);
void doctor_removed(struct doctor *doctor);
void doctor_keeper(struct doctor *doctor);
void doctor_limits(struct doctor *doctor);
void doctor_configuration(struct doctor *doctor);
void doctor_command(struct doctor *doctor);
void doctor_process(struct doctor *doctor);
