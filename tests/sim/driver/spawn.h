/* Starts gpusimd so that the program never notices: no child to wait for, no signal, no inherited
 * descriptor, session, environment or preloaded library. */
#pragma once

#include <stdbool.h>

/* False if there is no daemon to start. Returns before the daemon listens. */
bool spawn_daemon(void);
