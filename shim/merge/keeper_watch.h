/*
 * keeper_watch.h - a new keeper gets the blocks that this process has merged.
 *
 * As with other regions (vmm/vmm_region.h): the descriptors of memory that was created here are
 * exported again, those of others' were parked.
 */
#pragma once

/* Looks whether there is another keeper than before. In the merger's thread. */
void gps_keeper_watch_turn(void);

void gps_keeper_watch_reset(void); /* in a forked child */
