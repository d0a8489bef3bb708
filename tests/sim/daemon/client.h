/*
 * Connected processes. A client is its socket, a pidfd of the process behind it, and what it holds.
 * Either descriptor tells of its death: the pidfd when a fork child still has the socket open, the
 * socket when the process ended its use of the driver but lives on.
 */
#pragma once

#include "block.h"

struct client {
    struct party party; /* id 0: no HELLO yet */
    int socket, pidfd;
    int pid;        /* as it is here */
    uint32_t state; /* a CUprocessState */
    struct client *next;
};

/* Takes the socket over; NULL (and the socket closed) if the peer is not one of ours. */
struct client *client_add(int socket);
/* Drops all that it held, and the client. */
void client_remove(struct client *client);
void client_name(struct client *client);
bool client_alive(uint64_t id);
struct client *client_of(int pid); /* NULL: it does not use the driver */
struct client *client_first(void);
uint64_t client_count(void);
