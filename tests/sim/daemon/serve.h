/* Answers one request of one client. */
#pragma once

#include "client.h"

/* Makes the devices and the event page; 0 or -errno. */
int serve_start(uint32_t devices, uint64_t bytes);
/* Reads and answers what waits on the client's socket. False: the client misbehaved, drop it. */
bool serve(struct client *client);
