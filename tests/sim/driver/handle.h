/*
 * The 64 bytes of a memory handle, as seen on driver 580 (H200). Which of them the driver looks at
 * was found by changing one bit at a time: another `client` is 400, another `memory` or `pages` or
 * `kind` is 1, the own `pid` is 201; the rest may be anything. Fewer `pages` than the block has are
 * no mistake: a handle whose end is another allocation's opens that one, as large as its beginning
 * says (2026-11-27).
 */
#pragma once

#include "abi.h"

struct handle {
    uint64_t context; /* the exporter's, by its address */
    uint32_t pid;     /* the exporter's, in its own pid namespace */
    uint32_t zero;
    uint64_t size;    /* as asked for */
    uint32_t pages;   /* of 4 KiB, the block's */
    uint32_t offset;  /* in the block */
    uint32_t kind[2]; /* 6, 0xff00 */
    uint32_t counter; /* the block's, a new one has another */
    uint32_t zero2;
    uint32_t client; /* the daemon's id of the exporter */
    uint32_t memory; /* the exporter's address of the block, so a later block there has it too */
    uint64_t zero3;
};

_Static_assert(sizeof(struct handle) == CU_IPC_HANDLE_SIZE, "a handle is 64 bytes");

enum { HANDLE_KIND = 6, HANDLE_KIND_HIGH = 0xff00, HANDLE_PAGE_SHIFT = 12 };
