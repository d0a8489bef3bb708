/*
 * Processes that do what they are told. A row of the table is a script that runs in the parent,
 * which never touches the driver; each step is sent to a peer, which was forked before anybody
 * called cuInit, and comes back with a code and numbers.
 */
#pragma once

#include "../../common/system_headers.h"

#include <sys/types.h>

enum op {
    OP_START,     /* cuInit, primary context of device n[0] */
    OP_ALLOC,     /* n[0] bytes of kind n[1] -> n[0] */
    OP_FREE,      /* n[0] */
    OP_FILL,      /* n[0] address, n[1] bytes, n[2] value; waits until it is there */
    OP_READ,      /* n[0] address, n[1] bytes -> n[0]: the first */
    OP_GET,       /* n[0] -> bytes */
    OP_OPEN,      /* bytes, n[0] flags -> n[0] */
    OP_CLOSE,     /* n[0] */
    OP_RANGE,     /* n[0] -> n[0] base, n[1] size */
    OP_ATTRIBUTE, /* n[0] address, n[1] attribute -> n[0] */
    OP_AVAILABLE, /* -> n[0] free bytes */
    OP_CONTEXT,   /* creates one, which is then current -> n[0] */
    OP_CURRENT,   /* makes n[0] current */
    OP_WHICH,     /* -> n[0]: the current one */
    OP_DESTROY,   /* n[0], a context */
    OP_RESET,     /* the primary context */
    OP_DEVICE,    /* makes the primary context of device n[0] current */
    OP_DEVICES,   /* -> n[0] */
    OP_FORKED,    /* -> n: codes of cuInit, free, alloc, open in a fork child */
    OP_BUSY_FREE, /* frees n[0] while a host function sleeps 300 ms -> n[0]: ms taken */
    OP_CAPTURE,   /* n[0] freed in a thread during a capture, n[1]: relaxed -> n: free, end */
    OP_EVENT,     /* n[0] flags -> n[0] */
    OP_EVENT_GET,
    OP_EVENT_OPEN,
    OP_RECORD,
    OP_QUERY,
    OP_WAIT,
    OP_EVENT_DESTROY,
    OP_LATE,      /* host function of n[1] ms, then records n[0] behind it */
    OP_CUDA_OPEN, /* the runtime's, as their driver twins; 255 where there is no runtime */
    OP_CUDA_CLOSE,
    OP_CUDA_MALLOC,
    OP_CUDA_RESET,
    OP_THREADS, /* n[0] threads of n[1] rounds: work, open bytes, close -> n[0]: calls that failed
                 */
    OP_CHURN,   /* n[0] rounds: exports into peer_latest, and frees -> n[0]: calls that failed */
    OP_CATCH,   /* opens what is in peer_latest until that ends -> n: see load.c */
    OP_VMM,     /* what of enum vmm n[0] says */
    OP_EXIT,    /* as a program ends, by exit */
    OPS,
};

enum kind { KIND_PLAIN, KIND_PITCH, KIND_POOL, KIND_MANAGED, KIND_HOST };

/* A peer has two blocks of VMM memory and two places to map them, by number. */
enum vmm {
    VMM_GRANULARITY, /* n[1]: which -> n[0] */
    VMM_CREATE,      /* n[1] block, n[2] bytes */
    VMM_RELEASE,     /* n[1] block */
    VMM_RESERVE,     /* n[1] place -> n[0] */
    VMM_GIVE_BACK,   /* n[1] place */
    VMM_MAP,         /* n[1] place, n[2] block */
    VMM_UNMAP,       /* n[1] place */
    VMM_ALLOW,       /* n[1] place, n[2] access */
    VMM_ALLOWED,     /* n[1] place -> n[0] */
    VMM_RETAIN,      /* n[1] place, n[2] block -> n[0]: whether that is there */
    VMM_SEND,        /* n[1] block: its descriptor, to the parent */
    VMM_TAKE,        /* n[1] block: imports what the parent sent */
};

enum { GONE = -1, NO_RUNTIME = 255 };

struct message {
    int32_t op, code;
    uint64_t n[4];
    char bytes[64];
};

struct peer {
    pid_t pid;
    int to, from;
    struct message last; /* the newest answer */
};

/* A peer with its first context; `started` 0: before cuInit. */
void peer_start(struct peer *peer, int started);
/* The halves of peer_do, to have two peers work at once. */
void peer_tell(struct peer *peer, enum op op, uint64_t a, uint64_t b, uint64_t c);
int peer_answer(struct peer *peer);
/* Its code, or GONE if it died; the whole answer is in peer->last. */
int peer_do(struct peer *peer, enum op op, uint64_t a, uint64_t b, uint64_t c);
/* The same for ops that take a handle. */
int peer_open(struct peer *peer, enum op op, const char handle[64], uint64_t flags);
/* Ends it as its program would, or kills it (signal), and waits. The wait status. */
int peer_end(struct peer *peer, int signal);
static inline void peer_over(struct peer *peer) {
    peer_end(peer, 0);
}
/* One, or two, that is started here, and ends with the block as its program would. */
#define PEER(name)                                                                                 \
    struct peer name __attribute__((cleanup(peer_over)));                                          \
    peer_start(&(name), 1)
#define PEERS(one, other)                                                                          \
    PEER(one);                                                                                     \
    PEER(other)
/* Several, which are started, and end as their programs would. */
#define PEERS_START(...) peers_start((struct peer *[]){__VA_ARGS__, NULL})
#define PEERS_END(...)   peers_end((struct peer *[]){__VA_ARGS__, NULL})
void peers_start(struct peer *const *peers);
void peers_end(struct peer *const *peers);

/* In the peer. */
void peer_serve(int from, int to);
/* crowd.c: ops of many threads, or of two peers against each other; vmm.c. */
int crowd_threads(struct message *m);
int crowd_churn(struct message *m);
int crowd_catch(struct message *m);
int vmm_do(struct message *m);

/* Handles from one peer to another without the parent between them, in memory that is shared: made
 * before peers are started. Handle number i lies in ring[i % PEER_RING]. */
enum { PEER_RING = 256 };
struct peer_latest {
    _Atomic uint64_t count;
    _Atomic int over;
    char ring[PEER_RING][64];
};
extern struct peer_latest *peer_latest;
