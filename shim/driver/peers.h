/* peers.h - which devices' memory the current one reaches. In a scope; takes no lock. */
#pragma once

#include <stdint.h>

#include "gpushare/region.h"

/* 1: its own or a peer's; 0: no; -1: not known, as of one that this process does not see. */
int gps_peers_reached(const uint8_t uuid[GPS_UUID_BYTES]);
