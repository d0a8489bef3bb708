/*
 * Slots of the page in which interprocess events live. A slot belongs to the client that made it,
 * and whoever opened it once may open it again, until the last of them is gone; destroying an event
 * changes nothing of that, as with the files in which real ones live.
 */
#pragma once

#include "block.h"

/* 0 or -errno; the page's descriptor in *fd. */
int event_page_create(int *fd);
/* Says whether the client's process is locked, and that it has copies in the place of blocks. */
void event_page_lock(uint64_t client, bool locked, bool moved);
void event_page_begin(uint64_t client);
/* All return a CUresult. */
unsigned event_create(struct party *owner, uint64_t *slot);
unsigned event_open(struct party *user, uint64_t owner, uint64_t slot);
/* Drops what a client held, and ends its unfinished records: nobody waits for the dead. */
void event_release_all(struct party *party);
uint64_t event_count(void);
