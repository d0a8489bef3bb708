/*
 * doctor.h - the checks of `gpushare doctor`.
 *
 * No check changes anything. A check that could hang or crash (the driver's) runs in a child of its
 * own.
 */
#pragma once

#include "diagnosis.h"

/* In the order of the report. */
void doctor_library(struct doctor *doctor);
void doctor_preload(struct doctor *doctor);
void doctor_driver(struct doctor *doctor);
void doctor_platform(struct doctor *doctor);
void doctor_directory(struct doctor *doctor);
void doctor_keeper(struct doctor *doctor);
void doctor_limits(struct doctor *doctor);
void doctor_configuration(struct doctor *doctor);
void doctor_command(struct doctor *doctor);
