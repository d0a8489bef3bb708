/* peers.h - the devices by their UUIDs, and whose memory the current one reaches. It takes no lock;
 * what asks for peers is called in a scope. */
#pragma once

#include <stdint.h>

#include "gpushare/region.h"

/* The device's ordinal in this process; -1: this process does not see it. */
int gps_peers_ordinal(const uint8_t uuid[GPS_UUID_BYTES]);

/* 1: its own or a peer's; 0: no; -1: not known, as of one that this process does not see. */
int gps_peers_reached(const uint8_t uuid[GPS_UUID_BYTES]);
