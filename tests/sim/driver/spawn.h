/* Starts gpusimd so that the program never notices: no child to wait for, no signal, no inherited
 * descriptor, session, environment or preloaded library. */
#ifndef SIM_SPAWN_H
#define SIM_SPAWN_H

#include <stdbool.h>

/* False if there is no daemon to start. Returns before the daemon listens. */
bool spawn_daemon(void);

#endif
