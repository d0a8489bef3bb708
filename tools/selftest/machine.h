/* machine.h - what a machine is, for a row of docs/compatibility.md. */
#pragma once

#include "run/vendor.h"

struct machine {
    char driver[64];       /* "580.159.04", "simulated" */
    char interface[32];    /* "CUDA 13.0", "HIP 7.0" */
    char gpu[128];         /* "NVIDIA H200" */
    char glibc[32];        /* "2.36" */
    const char *container; /* the engine, or "none" */
    char date[16];         /* "2026-11-25" */
};

/* `version` and `gpu` are what the runtime says of itself and of the first GPU. */
void machine_describe(struct machine *machine, enum runtime runtime, int version, const char *gpu);
