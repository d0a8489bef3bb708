/*
 * The devices that this process sees: CUDA_VISIBLE_DEVICES chooses and numbers them. Everything
 * said to the daemon names the card, everything said to the program the ordinal.
 */
#pragma once

#include "abi.h"

/* 0, or 100 where none is visible. */
CUresult device_discover(void);
int device_count(void);
bool device_valid(CUdevice device);
uint32_t device_card(CUdevice device);
/* The ordinal of a card, or -1 where it is not visible. */
CUdevice device_of_card(uint32_t card);
/* Whether one card can map another one's memory: all can, unless GPUSHARE_SIM_PEERS is 0. */
bool device_reaches(uint32_t card, uint32_t other);
/* Whether a visible one can. */
bool device_visible_reaches(uint32_t card);
/* A kernel has faulted. With GPUSHARE_SIM_MPS that is the fault of every client on the card. */
void device_fault(uint32_t card);
bool device_has_faulted(uint32_t card);
/* The card whose memory the pool has; false: it is no pool. */
bool device_of_pool(CUmemoryPool pool, uint32_t *card);
CUuuid device_uuid_of_card(uint32_t card);
