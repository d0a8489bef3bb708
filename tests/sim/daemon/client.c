/* Connected processes; see client.h. */
#include "client.h"

#include "event.h"

#include "../protocol.h"

#include <sys/random.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

/* glibc hides it behind _GNU_SOURCE, and its name is all we need of it. */
struct peer {
    pid_t pid;
    uid_t uid;
    gid_t gid;
};

static struct {
    struct client *first;
    uint64_t count, next_id;
} clients;

/*
 * A pidfd of the process at the other end, or -1. By SO_PEERPIDFD it is that process for certain,
 * in whatever pid namespace it lives; by number there is a moment in which the number may be
 * reused.
 */
static int peer_pidfd(int socket, pid_t pid) {
    int fd = -1;
    socklen_t size = sizeof fd;
    if (!getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size))
        return fd;
    return pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

struct client *client_add(int socket) {
    struct peer peer;
    socklen_t size = sizeof peer;
    struct client *client = NULL;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size))
        goto refuse;
    if (peer.uid != geteuid() && peer.uid != 0)
        goto refuse;
    client = calloc(1, sizeof *client);
    if (!client)
        goto refuse;
    client->socket = socket;
    client->pid = peer.pid;
    client->pidfd = peer_pidfd(socket, peer.pid);
    client->next = clients.first;
    clients.first = client;
    clients.count++;
    return client;
refuse:
    close(socket);
    return NULL;
}

void client_remove(struct client *client) {
    struct client **link = &clients.first;
    while (*link != client)
        link = &(*link)->next;
    *link = client->next;
    clients.count--;
    block_release_all(&client->party);
    event_release_all(&client->party);
    close(client->socket);
    if (client->pidfd >= 0)
        close(client->pidfd);
    free(client);
}

/* Ids begin at random, so that a handle of an earlier daemon's client names nobody here. */
void client_name(struct client *client) {
    if (!clients.next_id) {
        uint32_t seed = 0;
        if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
            seed = (uint32_t)getpid() << 8;
        clients.next_id = (seed & 0x3fffffff) | 0x10000;
    }
    if (!client->party.id)
        client->party.id = clients.next_id++;
    event_page_begin(client->party.id);
}

bool client_alive(uint64_t id) {
    for (struct client *client = clients.first; client && id; client = client->next)
        if (client->party.id == id)
            return true;
    return false;
}

struct client *client_of(int pid) {
    struct client *client = clients.first;
    while (client && (client->pid != pid || !client->party.id))
        client = client->next;
    return client;
}

struct client *client_first(void) {
    return clients.first;
}

uint64_t client_count(void) {
    return clients.count;
}
