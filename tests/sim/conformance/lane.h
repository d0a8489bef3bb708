/*
 * How descriptors go between the parent and its peers: one socket pair, made before the peers are
 * started. The parent, which never touches the driver, so plays a holder without any context.
 */
#pragma once

enum lane_end { LANE_PARENT, LANE_PEER };

/* False if there is none to be had. */
int lane_open(void);
void lane_close(void);
/* The descriptor stays the sender's, too. False if it did not go. */
int lane_send(enum lane_end from, int descriptor);
/* The next one sent from the other end, or -1. */
int lane_receive(enum lane_end at);
