/*
 * misuse.h - what the programs of misuse/ share: a second process, turns, and checked calls.
 *
 * misuse is an ordinary CUDA program that knows nothing of gpushare. `misuse ID` does, for real,
 * the misuse that a finding of gpushare is named after; `misuse --right ID` does the same job as it
 * should be done. What the driver is expected to answer was recorded on an H200, so one program
 * shows the same on a simulated and on a real driver, with and without an auditor. Built with
 * VENDOR_HIP it is one of AMD's runtime; what that answers is known from its sources alone.
 *
 * A scenario is one or two functions: what the exporter does, and what the importer does in a
 * process of its own. They take turns (tell, wait_for_peer), so that what they print has one order.
 */
#pragma once

#include "../vendor.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

struct scenario {
    const char *id;
    void (*exporter)(void);
    void (*importer)(void); /* NULL: one process does it all */
    bool exporter_is_child; /* the one that is started by the other, and so may end first */
};

/* One table a topic; a row without an id ends it. */
extern const struct scenario free_scenarios[], close_scenarios[], open_scenarios[],
    context_scenarios[], copy_scenarios[], export_scenarios[], event_scenarios[], pool_scenarios[],
    vmm_scenarios[], token_scenarios[], life_scenarios[], share_scenarios[];

enum {
    BLOCK = 2 << 20,                       /* CUDA shares whole blocks of this size */
    LAZY = cudaIpcMemLazyEnablePeerAccess, /* what every open has to say */
    SKIPPED = 77
};

/* Whether the job is to be done as it should be. */
bool right(void);

/* Prints "exporter: cudaFree: invalid argument (1)", and notes when that is not what a driver
 * answers. MUST is for what has to work first: it prints nothing, and ends the program if not. */
#define CHECK(expected, call) check_code((int)(call), (int)(expected), #call)
#define MUST(call)            must_code((int)(call), #call)
void check_code(int code, int expected, const char *call);
void must_code(int code, const char *call);
/* A line of one's own behind the process's role; a wrong one fails the program. */
__attribute__((format(printf, 2, 3))) void note(bool good, const char *format, ...);
/* The scenario cannot be had on this machine: exit status 77. */
_Noreturn void skip(const char *why);

/* BLOCK bytes of this value. */
void *allocate(int byte);
/* The handle of an allocation, to the other process. */
void send_export(void *pointer);
cudaIpcMemHandle_t take_handle(void);
/* An exporter: one block of this value, freed when the importer is through. */
enum { OWNERS = 0x15 };
void owner(void);
/* Opens what the other process sends. */
void *open_received(void);
/* Prints the first byte there, and notes when it is another one. */
void check_byte(const void *pointer, int expected);
void *inside(void *pointer); /* 4 KiB further */

/* Turns. A peer that is gone ends the program. */
void tell(void);
void wait_for_peer(void);
void send_bytes(const void *bytes, size_t size);
void take_bytes(void *bytes, size_t size);
/* A descriptor, of which the other process gets one of its own. */
void send_descriptor(int descriptor);
int take_descriptor(void);
/* Until the second process has ended; its exit status, or 128 + signal. */
int wait_for_end(void);
int status_of(pid_t child); /* the same of a child that the scenario forked */

/* The driver's function, where the runtime has none that does it. */
#define CU_NAME(name) #name
#define CU(fn)        ((__typeof__(fn) *)driver_function(CU_NAME(fn)))
void *driver_function(const char *name);
