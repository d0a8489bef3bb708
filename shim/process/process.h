/*
 * process.h - this process as gpushare sees it: its phase, its identity and its configuration.
 *
 * Everything here is set by the lifecycle room and read by all others. Identity and configuration
 * are constant from the first call of the program until a fork. Any thread; no lock.
 *
 * The phase lies in a page of its own that the kernel wipes in a forked child (MADV_WIPEONFORK), so
 * a child begins anew even where no atfork handler runs.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "config/config.h"
#include "program.h"

enum gps_phase {
    GPS_PHASE_NEW = 0,   /* no call yet in this process; also what a forked child finds */
    GPS_PHASE_STARTING,  /* a thread reads the configuration; other threads wait */
    GPS_PHASE_SUSPENDED, /* calls wait at their entry until the process is resumed */
    GPS_PHASE_ON,
    GPS_PHASE_OFF,     /* mode = off, or a configuration that cannot be used */
    GPS_PHASE_LEAVING, /* a thread is in _exit; calls of other threads do not return */
    GPS_PHASE_ENDED,
};

struct gps_phase_page {
    _Atomic int phase;
};
extern struct gps_phase_page *_Atomic gps_phase_page;

static inline enum gps_phase gps_process_phase(void) {
    return (enum gps_phase)atomic_load_explicit(
        &atomic_load_explicit(&gps_phase_page, memory_order_acquire)->phase, memory_order_acquire);
}

const struct gps_config *gps_process_config(void);
bool gps_process_audits(void);                  /* mode = audit */
const struct gps_owner *gps_process_self(void); /* its command is the name below, cut */
const struct gps_program *gps_process_program(void);
bool gps_process_is_self(const struct gps_owner *owner);

/* Whether another thread is in _exit: it may have withdrawn the lease and files already. */
bool gps_process_left(void);

/* --- for the lifecycle room --- */

/* Makes the page that a fork wipes, at the first call of a process image. */
void gps_process_make_page(void);
/* NEW becomes STARTING. True for one thread, which sets the phase that follows. */
bool gps_process_begin_start(void);
/* This thread ends a process that is on, and no other does yet. */
bool gps_process_leave(void);
/* ON becomes SUSPENDED. False: the process ends, or has begun to. */
bool gps_process_suspend(void);
/* SUSPENDED becomes ON, and calls go on. */
void gps_process_resume(void);
/* Waits while the process is suspended, with the program's signals let in. It needs no scope. */
void gps_process_await_resume(void);
/* Returns the phase before. */
enum gps_phase gps_process_set_phase(enum gps_phase phase);
/* Reads identity and configuration anew; as gps_config_load, which calls fn. While STARTING. */
int gps_process_load(gps_config_error_fn *fn, void *arg);
/* True for the first caller: the exit begins. */
bool gps_process_begin_exit(void);

void gps_process_reset(void); /* in a forked child */
