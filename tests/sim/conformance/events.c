/* The events table. */
#include "step.h"

static uint64_t create(struct peer *p, unsigned flags) {
    return peer_do(p, OP_EVENT, flags, 0, 0) ? 0 : p->last.n[0];
}

static struct bytes get_event(struct peer *p, uint64_t event) {
    struct bytes handle;
    memset(&handle, 0, sizeof handle);
    if (!peer_do(p, OP_EVENT_GET, event, 0, 0))
        memcpy(handle.at, p->last.bytes, sizeof handle.at);
    return handle;
}

static void creating(struct peer *a) {
    check_row("E1");
    check("create with flags 0", 0, peer_do(a, OP_EVENT, 0, 0, 0));
    check("  its handle", 400, peer_do(a, OP_EVENT_GET, a->last.n[0], 0, 0));
    check("create with flags 2", 0, peer_do(a, OP_EVENT, 2, 0, 0));
    check("  its handle", 400, peer_do(a, OP_EVENT_GET, a->last.n[0], 0, 0));
    check("the handle of a null event", 1, peer_do(a, OP_EVENT_GET, 0, 0, 0));
    check_row("E2");
    check("create with flags 4", 1, peer_do(a, OP_EVENT, 4, 0, 0));
}

static void sharing(struct peer *a, struct peer *b) {
    check_row("E3");
    uint64_t event = create(a, 6);
    check("create with flags 6", 1, event != 0);
    struct bytes h = get_event(a, event), again = get_event(a, event);
    check("two handles equal", 0, memcmp(&h, &again, sizeof h));
    check_row("E4");
    check("open in the own process", 201, peer_open(a, OP_EVENT_OPEN, h.at, 0));
    check_row("E5");
    check("open in B", 0, peer_open(b, OP_EVENT_OPEN, h.at, 0));
    uint64_t first = b->last.n[0];
    check("again", 0, peer_open(b, OP_EVENT_OPEN, h.at, 0));
    uint64_t second = b->last.n[0];
    check("another event", 1, first != second);
    check_row("E6");
    check("B records", 0, peer_do(b, OP_RECORD, first, 0, 0));
    check("A synchronises", 0, peer_do(a, OP_WAIT, event, 0, 0));
    check("A records behind 300 ms of work", 0, peer_do(a, OP_LATE, event, 300, 0));
    check("B sees that it is not ready", 600, peer_do(b, OP_QUERY, first, 0, 0));
    check("B synchronises", 0, peer_do(b, OP_WAIT, second, 0, 0));
    check("  and has waited", 1, b->last.n[0] >= 150);
    check("B sees that it is ready", 0, peer_do(b, OP_QUERY, first, 0, 0));
    check_row("E7");
    check("A destroys it", 0, peer_do(a, OP_EVENT_DESTROY, event, 0, 0));
    check("B queries", 0, peer_do(b, OP_QUERY, first, 0, 0));
    check("B synchronises", 0, peer_do(b, OP_WAIT, first, 0, 0));
    check("B destroys", 0, peer_do(b, OP_EVENT_DESTROY, first, 0, 0));
    check("B opens the handle again", 0, peer_open(b, OP_EVENT_OPEN, h.at, 0));
}

static void destroying_twice(struct peer *a) {
    check_row("E8");
    uint64_t event = create(a, 0);
    check("destroy", 0, peer_do(a, OP_EVENT_DESTROY, event, 0, 0));
    check("destroy again: the process dies", GONE, peer_do(a, OP_EVENT_DESTROY, event, 0, 0));
    int status = peer_end(a, SIGKILL);
    check("by SIGSEGV", SIGSEGV, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/* Handles that lead nowhere. A driver asks for the file of a pid, and for nothing more. */
static void dangling(struct peer *a, struct peer *b) {
    check_row("E10");
    const uint64_t event = create(a, 6), private = create(a, 2);
    struct bytes h = get_event(a, event), other = h, zeros = {{0}};
    check("open in B", 0, peer_open(b, OP_EVENT_OPEN, h.at, 0));
    check("  the handle of what was opened", 400, peer_do(b, OP_EVENT_GET, b->last.n[0], 0, 0));
    other.at[16] ^= 1;
    check("another slot", 0, peer_open(b, OP_EVENT_OPEN, other.at, 0));
    check("  is queried", 0, peer_do(b, OP_QUERY, b->last.n[0], 0, 0));
    other = h;
    other.at[0] ^= 1;
    check("another pid", 205, peer_open(b, OP_EVENT_OPEN, other.at, 0));
    check("zeros", 205, peer_open(b, OP_EVENT_OPEN, zeros.at, 0));
    peer_do(a, OP_ALLOC, 4 << 20, 0, 0);
    const uint64_t memory = a->last.n[0];
    check("a memory handle", 0, peer_do(a, OP_GET, memory, 0, 0));
    memcpy(other.at, a->last.bytes, sizeof other.at);
    check("  opened as an event's", 205, peer_open(b, OP_EVENT_OPEN, other.at, 0));
    check("destroy it", 0, peer_do(a, OP_EVENT_DESTROY, event, 0, 0));
    check("  its handle", 0, peer_do(a, OP_EVENT_GET, event, 0, 0));
    check("destroy one that is not shared", 0, peer_do(a, OP_EVENT_DESTROY, private, 0, 0));
    check("  its handle", 400, peer_do(a, OP_EVENT_GET, private, 0, 0));
    peer_end(a, 0);
    check("its creator has ended: open", 0, peer_open(b, OP_EVENT_OPEN, h.at, 0));
    check("  query", 0, peer_do(b, OP_QUERY, b->last.n[0], 0, 0));
    check("  synchronise", 0, peer_do(b, OP_WAIT, b->last.n[0], 0, 0));
}

void event_rows(void) {
    struct peer a, b;
    /* A write to the peer that died must not end us. */
    signal(SIGPIPE, SIG_IGN);
    PEERS_START(&a, &b);
    creating(&a);
    sharing(&a, &b);
    destroying_twice(&a);
    peer_start(&a, 1);
    dangling(&a, &b);
    peer_end(&b, 0);
    check_row("E9");
    check_skip("another /dev/shm: needs a mount namespace");
}
