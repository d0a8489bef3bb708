/* Processes that do what they are told: the parent's side. See peer.h. */
#include "peer.h"

static struct peer *living[8];

static void forget(const struct peer *peer) {
    for (size_t i = 0; i < sizeof living / sizeof *living; i++)
        if (living[i] == peer)
            living[i] = NULL;
}

/* A child must not hold the pipes of its siblings: their end would not show. */
static void remember(struct peer *peer) {
    for (size_t i = 0; i < sizeof living / sizeof *living; i++) {
        if (!living[i]) {
            living[i] = peer;
            return;
        }
    }
}

static void close_siblings(void) {
    for (size_t i = 0; i < sizeof living / sizeof *living; i++) {
        if (living[i]) {
            close(living[i]->to);
            close(living[i]->from);
        }
    }
}

void peer_start(struct peer *peer, int started) {
    int down[2], up[2];
    if (pipe(down) || pipe(up)) {
        perror("conformance: pipe");
        exit(2);
    }
    fflush(NULL);
    peer->pid = fork();
    if (peer->pid == 0) {
        close_siblings();
        close(down[1]);
        close(up[0]);
        peer_serve(down[0], up[1]);
        exit(0);
    }
    close(down[0]);
    close(up[1]);
    peer->to = down[1];
    peer->from = up[0];
    remember(peer);
    if (started && peer_do(peer, OP_START, 0, 0, 0)) {
        fprintf(stderr, "conformance: no device: %d\n", peer->last.code);
        exit(2);
    }
}

void peer_tell(struct peer *peer, enum op op, uint64_t a, uint64_t b, uint64_t c) {
    struct message *message = &peer->last;
    message->op = (int32_t)op;
    message->n[0] = a;
    message->n[1] = b;
    message->n[2] = c;
    if (write(peer->to, message, sizeof *message) != sizeof *message)
        message->op = OPS; /* it is gone, and the answer will say so */
}

int peer_answer(struct peer *peer) {
    struct message *message = &peer->last;
    if (message->op == OPS || read(peer->from, message, sizeof *message) != sizeof *message)
        return GONE;
    return message->code;
}

int peer_do(struct peer *peer, enum op op, uint64_t a, uint64_t b, uint64_t c) {
    peer_tell(peer, op, a, b, c);
    return peer_answer(peer);
}

int peer_open(struct peer *peer, enum op op, const char handle[64], uint64_t flags) {
    memcpy(peer->last.bytes, handle, 64);
    return peer_do(peer, op, flags, 0, 0);
}

int peer_end(struct peer *peer, int number) {
    int status = 0;
    if (number)
        kill(peer->pid, number);
    else
        peer_do(peer, OP_EXIT, 0, 0, 0);
    waitpid(peer->pid, &status, 0);
    forget(peer);
    close(peer->to);
    close(peer->from);
    return status;
}

void peers_start(struct peer *const *peers) {
    while (*peers)
        peer_start(*peers++, 1);
}

void peers_end(struct peer *const *peers) {
    while (*peers)
        peer_end(*peers++, 0);
}
