/*
 * doctor.h - what `gpushare doctor` found, one diagnosis after another.
 *
 * A check adds one diagnosis or more; a remedy belongs to the one added last. Checks only look:
 * none changes anything, and what could hang or crash (the driver) runs in a child of its own.
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stddef.h>
#include <stdint.h>

enum doctor_verdict { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };

struct diagnosis {
    enum doctor_verdict verdict;
    const char *check; /* one word */
    char *message;
    char *remedy; /* NULL: none needed */
};

struct doctor {
    struct diagnosis *list;
    size_t count;
    const char *command; /* the operand, or NULL */
    uint64_t timeout;    /* for the driver, ns */
};

void doctor_say(struct doctor *doctor, enum doctor_verdict verdict, const char *check,
                const char *format, ...) __attribute__((format(printf, 4, 5)));
void doctor_remedy(struct doctor *doctor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The checks, in the order of the report. */
void doctor_library(struct doctor *doctor);
void doctor_preload(struct doctor *doctor);
void doctor_driver(struct doctor *doctor);
void doctor_platform(struct doctor *doctor);
void doctor_directory(struct doctor *doctor);
void doctor_keeper(struct doctor *doctor);
void doctor_limits(struct doctor *doctor);
void doctor_configuration(struct doctor *doctor);
void doctor_command(struct doctor *doctor);

#endif
