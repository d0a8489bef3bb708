/*
 * The connection to gpusimd, and the card's memory and event page as this process sees them.
 * One request at a time; the lock within is taken last of all.
 */
#pragma once

#include "abi.h"

#include "../protocol.h"

/* Connects, starting the daemon if there is none. */
CUresult link_open(void);
void link_close(void);
/* In a fork child: lets go of the parent's connection without a word to the daemon. */
void link_forget(void);
/* Sends the request and fills the reply (zeros on failure); its code, or 999 without a daemon. */
CUresult link_call(const struct sim_request *request, struct sim_reply *reply);
/* The same with a descriptor that goes along (-1: none, and stays the caller's), and one that comes
 * back (NULL: none; set only on success). */
CUresult link_pass(const struct sim_request *request, struct sim_reply *reply, int give,
                   int *taken);

uint32_t link_client(void);
uint32_t link_devices(void);
uint64_t link_memory(void); /* bytes a device */
struct sim_event *link_event(uint64_t slot);
/* The word that says whether this process is locked (struct sim_page). */
uint32_t *link_lock(void);
/* How many faults the card had of clients of MPS. */
uint32_t *link_faults(uint32_t device);
/*
 * Where this process can reach a card's memory at `offset`, and how far from there on (*length is
 * cut to it). NULL if it cannot be mapped.
 */
unsigned char *link_reach(uint32_t device, uint64_t offset, uint64_t *length);
