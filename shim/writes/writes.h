/*
 * writes.h - the modules that look at the program's copies and fills of device memory.
 *
 * gps_writes_begin, the driver's call, gps_writes_end. No lock in between. Any thread; no scope.
 */
#pragma once

#include "config/config.h"
#include "gate/write.h"
#include "process/program.h"

/* Whether any module looks. If none does these calls are not hooked where a program looks them up,
 * and elsewhere go on to the driver after one load. Constant once the process has begun. */
extern bool gps_writes_heard;
/* Called after all these modules have started. */
void gps_writes_start(const struct gps_config *config, const struct gps_program *program);

/* True: call the driver, then gps_writes_end. False: *code is the answer. `pass` is for the gate.
 */
bool gps_writes_begin(const struct gps_write *write, struct gps_gate_pass *pass, int *code);
void gps_writes_end(const struct gps_write *write, const struct gps_gate_pass *pass, int code);
/* Instead of both, for a refused write that touches no memory of a rule. */
void gps_writes_refused(const struct gps_write *write, int code);
