/*
 * Blocks: ranges of device memory, and who holds them.
 *
 * A block has an owner, who allocated it, until that frees it or dies; and holders, owner and
 * importers alike, each counted once an ALLOC or OPEN. It lives until its last hold is gone. A
 * handle names a block by its owner's id and the owner's address of it, which is what makes a
 * stale handle mean the next allocation at that address, as it does on the real driver. VMM memory
 * (cuMemCreate) has holders only: no owner, no name.
 */
#pragma once

#include "memory.h"

#include <stdbool.h>

struct hold;

/* A client as blocks and events see it. */
struct party {
    uint64_t id;
    struct hold *holds;
    uint64_t events; /* event holds, see event.h */
    struct moved *moved;
    unsigned lost; /* checkpointed with memory of others: what a restore answers; else 0 */
};

/* What a client is told of a block. */
struct block_view {
    uint64_t id, offset, size;
    uint32_t device;
};

/* All return a CUresult; views are set only on success. */
unsigned block_allocate(struct party *owner, struct memory *memory, uint32_t device, uint64_t size,
                        uint64_t address, struct block_view *view);
/* Without an owner; the creator holds it once. */
unsigned block_create(struct party *creator, struct memory *memory, uint32_t device, uint64_t size,
                      struct block_view *view);
unsigned block_free(struct party *owner, uint64_t id);
unsigned block_export(const struct party *owner, uint64_t id);
/* The caller has made sure that the owner lives. */
unsigned block_open(struct party *user, uint64_t owner, uint64_t address, struct block_view *view);
bool block_held(const struct party *user, uint64_t id);
/* One hold more, whoever else has it; one less. */
unsigned block_hold(struct party *user, uint64_t id, struct block_view *view);
unsigned block_close(struct party *user, uint64_t id, bool imported);
/* Whether a restore of the party finds room. */
bool block_has_room(const struct party *party);
/* The memory that the party made leaves the card. What others hold, too, is a copy of the party's
 * own from now on: then true. */
bool block_checkpoint(struct party *party);
/* What a checkpoint takes away of it, or has. */
uint64_t block_bytes(const struct party *party);
/* It comes back; there is room for it. */
void block_restore(struct party *party);
/* What is in the place of a block. */
unsigned block_moved(const struct party *party, uint64_t id, struct block_view *view);
/* Drops all that a client held. */
void block_release_all(struct party *party);
uint64_t block_count(void);
