/* What processes find together. No call is waited for longer than half a minute: some hang. */
#include "hip.h"

#include "../../conformance/check.h"
#include "../../conformance/peer.h"

enum { TIMEOUT_MS = 30000, HANGS = -2 };

struct bytes {
    char at[64];
};

/* A peer that hangs is killed. */
static int answer(struct peer *peer) {
    struct pollfd ready = {.fd = peer->from, .events = POLLIN};
    if (poll(&ready, 1, TIMEOUT_MS) > 0)
        return peer_answer(peer);
    kill(peer->pid, SIGKILL);
    return HANGS;
}

static int ask(struct peer *peer, enum op op, uint64_t a, uint64_t b, uint64_t c) {
    peer_tell(peer, op, a, b, c);
    return answer(peer);
}

static int ask_with(struct peer *peer, enum op op, struct bytes handle) {
    memcpy(peer->last.bytes, handle.at, sizeof handle.at);
    return ask(peer, op, 0, 0, 0);
}

static uint64_t make(struct peer *peer, int byte) {
    check("hipMalloc", 0, ask(peer, OP_ALLOC, SIZE, 0, 0));
    const uint64_t at = peer->last.n[0];
    check("hipMemset", 0, ask(peer, OP_FILL, at, SIZE, (uint64_t)byte));
    return at;
}

static struct bytes take(struct peer *peer, uint64_t address) {
    struct bytes handle;
    check("hipIpcGetMemHandle", 0, ask(peer, OP_GET, address, 0, 0));
    memcpy(handle.at, peer->last.bytes, sizeof handle.at);
    return handle;
}

static uint64_t opened(struct peer *peer, struct bytes handle) {
    check("hipIpcOpenMemHandle", 0, ask_with(peer, OP_OPEN, handle));
    return peer->last.n[0];
}

static int close_at(struct peer *peer, uint64_t address) {
    return ask(peer, OP_CLOSE, address, 0, 0);
}

static int byte_at(struct peer *peer, uint64_t address) {
    return ask(peer, OP_READ, address, 1, 0) ? -1 : (int)peer->last.n[0];
}

/* With dma-buf below, and what is open nowhere else: the exporter is waited for, or for ever. */
static void check_gone(const char *what, int got) {
    check(what, got == HANGS ? HANGS : CANNOT_ATTACH, got);
    if (got == HANGS)
        check_note("it hangs, as with dma-buf below");
}

/* --- rows --- */

static void open_and_close(void) {
    PEERS(a, b);
    check_row("pair");
    const uint64_t at = make(&a, 0x5a);
    const uint64_t here = opened(&b, take(&a, at));
    check("its bytes are there", 0x5a, byte_at(&b, here));
    check("hipMemGetAddressRange of it", 0, ask(&b, OP_RANGE, here + 4096, 0, 0));
    check("the base", 1, b.last.n[0] == here);
    check("the size", SIZE, (int64_t)b.last.n[1]);
    check("hipPointerGetAttributes of it", 0, ask(&b, OP_ATTRIBUTE, here, 0, 0));
    check("its kind", hip_device_kind(), (int64_t)b.last.n[0]);
    check("its device", 0, (int64_t)b.last.n[1]);
    check("hipIpcCloseMemHandle", 0, close_at(&b, here));
    check("once too often", INVALID_VALUE, close_at(&b, here));
    const uint64_t base = opened(&b, take(&a, at + 4096));
    check("a handle from inside opens the base", 0, ask(&b, OP_RANGE, base, 0, 0));
    check("which is", 1, b.last.n[0] == base);
    check("hipIpcCloseMemHandle inside", 0, close_at(&b, base + 4096));
    check("it was closed", INVALID_VALUE, close_at(&b, base));
    check("hipFree in its owner", 0, ask(&a, OP_FREE, at, 0, 0));
}

static void open_twice(void) {
    PEERS(a, b);
    check_row("two");
    const struct bytes handle = take(&a, make(&a, 0x5a));
    const uint64_t one = opened(&b, handle), two = opened(&b, handle);
    check("the same pointer", hip_by(0, 1), one == two);
    check("close of the first", 0, close_at(&b, one));
    check("the second is still there", 0x5a, byte_at(&b, two));
    check("close of the second", 0, close_at(&b, two));
    check("a third close", INVALID_VALUE, close_at(&b, two));
}

static void free_of_an_import(void) {
    PEERS(a, b);
    check_row("fimp");
    const struct bytes handle = take(&a, make(&a, 0x5a));
    uint64_t here = opened(&b, handle);
    check("hipFree of it", 0, ask(&b, OP_FREE, here, 0, 0));
    check("it was closed", INVALID_VALUE, close_at(&b, here));
    here = opened(&b, handle);
    const uint64_t again = opened(&b, handle);
    check("hipFree of one of two", 0, ask(&b, OP_FREE, here, 0, 0));
    check("the other is still there", 0x5a, byte_at(&b, again));
    check("its close", 0, close_at(&b, again));
}

static void freed_while_open(void) {
    struct peer a, b;
    PEERS_START(&a, &b);
    check_row("keep");
    const uint64_t at = make(&a, 0x5a);
    const uint64_t here = opened(&b, take(&a, at));
    check("hipFree in its owner", 0, ask(&a, OP_FREE, at, 0, 0));
    check("its bytes stay", 0x5a, byte_at(&b, here));
    peer_end(&a, SIGKILL);
    check("also when that is killed", 0x5a, byte_at(&b, here));
    check("hipIpcCloseMemHandle", 0, close_at(&b, here));
    peer_end(&b, 0);
}

static void third_opens(void) {
    struct peer a, b, c;
    PEERS_START(&a, &b, &c);
    check_row("3rd");
    const struct bytes handle = take(&a, make(&a, 0x5a));
    const uint64_t here = opened(&b, handle);
    peer_end(&a, SIGKILL);
    const int code = ask_with(&c, OP_OPEN, handle);
    check("an open while another one has a dead exporter's", code == CANNOT_ATTACH ? code : 0,
          code);
    if (code == CANNOT_ATTACH)
        check_note("as with dma-buf below");
    check("the other's bytes stay", 0x5a, byte_at(&b, here));
    PEERS_END(&c, &b);
}

static void freed_before(void) {
    PEERS(a, b);
    check_row("gone");
    const uint64_t at = make(&a, 0x5a);
    const struct bytes handle = take(&a, at);
    check("hipFree in its owner", 0, ask(&a, OP_FREE, at, 0, 0));
    check_gone("an open after that", ask_with(&b, OP_OPEN, handle));
}

static void dead_before(void) {
    struct peer a, b;
    PEERS_START(&a, &b);
    check_row("dead");
    const struct bytes handle = take(&a, make(&a, 0x5a));
    peer_end(&a, SIGKILL);
    check("an open of a dead exporter's", CANNOT_ATTACH, ask_with(&b, OP_OPEN, handle));
    peer_end(&b, 0);
}

/* One that is not there. */
static void another_device(void) {
    const uint32_t device = 200;
    PEERS(a, b);
    check_row("dev");
    struct bytes handle = take(&a, make(&a, 0x5a));
    memcpy(handle.at + 52, &device, sizeof device);
    check("an open with a device that is not here", hip_by(0, INVALID_VALUE),
          ask_with(&b, OP_OPEN, handle));
}

static void reset_of_an_importer(void) {
    PEERS(a, b);
    check_row("rset");
    const uint64_t here = opened(&b, take(&a, make(&a, 0x5a)));
    check("hipDeviceReset", 0, ask(&b, OP_RESET, 0, 0, 0));
    check("hipIpcCloseMemHandle of what was open", INVALID_VALUE, close_at(&b, here));
}

static void forked_child(void) {
    PEER(a);
    check_row("fork");
    (void)make(&a, 0x5a);
    check("a child of a process that has started it", 0, ask(&a, OP_FORKED, 0, 0, 0));
    check("hipMalloc in it (assumed)", NOT_INITIALIZED, (int64_t)a.last.n[0]);
}

/* --- events --- */

static void forget_name(struct bytes handle) {
    handle.at[63] = '\0';
    if (*handle.at == '/') /* nobody else removes it */
        shm_unlink(handle.at);
}

static void events(void) {
    enum { SHARED = 4 | 2 };
    struct bytes handle, other;
    PEERS(a, b);
    check_row("evnt");
    check("hipEventCreateWithFlags", 0, ask(&a, OP_EVENT, SHARED, 0, 0));
    const uint64_t event = a.last.n[0];
    check("hipIpcGetEventHandle", 0, ask(&a, OP_EVENT_GET, event, 0, 0));
    memcpy(handle.at, a.last.bytes, sizeof handle.at);
    check("hipIpcOpenEventHandle", 0, ask_with(&b, OP_EVENT_OPEN, handle));
    const uint64_t here = b.last.n[0];
    check("hipEventRecord", 0, ask(&a, OP_RECORD, event, 0, 0));
    (void)make(&a, 1); /* which waits for it */
    check("hipEventQuery where it was opened", 0, ask(&b, OP_QUERY, here, 0, 0));
    check("hipEventDestroy there", 0, ask(&b, OP_EVENT_DESTROY, here, 0, 0));
    check("hipEventDestroy in its owner", 0, ask(&a, OP_EVENT_DESTROY, event, 0, 0));
    forget_name(handle);
    if (hip.major < 7) {
        memset(other.at, 0, sizeof other.at);
        snprintf(other.at, sizeof other.at, "/hip_eventzzzz%d", (int)a.pid);
        check("an open of a name that is not there", 0, ask_with(&b, OP_EVENT_OPEN, other));
        forget_name(other);
    }
}

void pair_rows(void) {
    open_and_close();
    open_twice();
    free_of_an_import();
    freed_while_open();
    third_opens();
    freed_before();
    dead_before();
    another_device();
    reset_of_an_importer();
    forked_child();
    events();
}
