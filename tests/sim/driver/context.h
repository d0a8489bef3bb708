/*
 * Contexts, and which one is current in a thread. A context that has ended stays as a shell, so
 * that a thread which still has it current gets 709 and no crash.
 */
#pragma once

#include "block.h"

struct CUctx_st {
    uint32_t magic;
    uint32_t card;
    CUdevice device;
    bool primary;
    struct CUctx_st *of; /* green: the primary context that it is a part of */
    atomic_bool alive;
    atomic_int lost; /* the code that everybody gets from now on, or 0 */
    unsigned flags, references;
    uint64_t id;
    uint32_t peers; /* bits of devices whose memory it may use */
    struct block_set blocks;
    struct CUctx_st *next;
};

/* The current context: 3, 4, 201 where there is none, 709 where it has ended, or what lost it. */
CUresult context_current(CUcontext *context);
/* That, under this name; without one the call ends. */
#define CURRENT(name)                                                                              \
    CUcontext name __attribute__((unused));                                                        \
    TRY(context_current(&(name)))
/* 0, 709, or what lost it: a kernel's or copy's fault, and with it all work and every later call.
 */
CUresult context_state(const struct CUctx_st *context);
void context_lose(CUcontext context, CUresult code);
/* As it stands, also if it has ended; NULL if none. */
CUcontext context_top(void);
bool context_known(CUcontext context);
/* All there ever were. Under the state lock. */
CUcontext context_first(void);
/* Whether kernels, fills and questions of the context reach a block: plain memory of another card
 * by peer access, an import where it was opened. Copies reach all. Under the state lock. */
bool context_reaches(const struct CUctx_st *context, const struct block *block);
