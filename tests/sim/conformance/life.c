/* Rows 26 to 32 and 34 to 39 of the memory table: fork, contexts, devices, waiting, exit. */
#include "gpu.h"
#include "step.h"

static void rows_26_and_28(void) {
    static const char *const what[] = {"cuInit", "free", "alloc", "open"};
    uint64_t p;
    PEERS(a, b);
    struct bytes h = export_filled(&a, 4 * MIB, 30, &p);
    uint64_t own = alloc(&b, 4096);
    check_row("26");
    memcpy(b.last.bytes, h.at, sizeof h.at);
    peer_do(&b, OP_FORKED, own, 0, 0);
    struct message answer = b.last;
    for (int i = 0; i < 4; i++)
        check(what[i], 3, (int64_t)answer.n[i]);
    check("the parent goes on", 0, fill(&b, own, 4096, 1));
    check_row("28");
    uint64_t q = open_at(&b, h);
    peer_do(&b, OP_CURRENT, 0, 0, 0);
    check("get", 201, peer_do(&b, OP_GET, own, 0, 0));
    check("open", 201, open_code(&b, h));
    check("close", 201, close_code(&b, q));
    check("alloc", 201, peer_do(&b, OP_ALLOC, 4096, KIND_PLAIN, 0));
    check("free", 0, free_code(&b, own));
}

static void row_27(void) {
    struct peer a, b, c;
    uint64_t p;
    PEERS_START(&a, &b);
    peer_start(&c, 0);
    struct bytes h = export_filled(&a, 4 * MIB, 31, &p);
    uint64_t q = open_at(&b, h);
    check_row("27");
    check("B resets", 0, peer_do(&b, OP_RESET, 0, 0, 0));
    check("reading q", 709, read_code(&b, q));
    check("closing q", 709, close_code(&b, q));
    if (peer_open(&c, OP_CUDA_OPEN, h.at, 1) == NO_RUNTIME) {
        check_skip("no libcudart.so.13");
    } else {
        q = c.last.n[0];
        check("runtime: open", 0, c.last.code);
        check("runtime: reset", 0, peer_do(&c, OP_CUDA_RESET, 0, 0, 0));
        check("runtime: close", 1, peer_do(&c, OP_CUDA_CLOSE, q, 0, 0));
        check_row("3");
        peer_do(&c, OP_CUDA_MALLOC, 4096, 0, 0);
        struct bytes own = get(&c, c.last.n[0]);
        check("runtime: own handle", 201, peer_open(&c, OP_CUDA_OPEN, own.at, 1));
    }
    PEERS_END(&a, &b, &c);
}

static void row_29(void) {
    struct peer a, b;
    uint64_t p;
    check_row("29");
    peer_start(&a, 1);
    peer_do(&a, OP_DEVICES, 0, 0, 0);
    if (a.last.n[0] < 2) {
        check_skip("one device");
        peer_end(&a, 0);
        return;
    }
    peer_start(&b, 1);
    struct bytes h = export_filled(&a, 4 * MIB, 32, &p);
    peer_do(&b, OP_DEVICE, 1, 0, 0);
    check("opened with device 1 current", 0, open_code(&b, h));
    uint64_t q = b.last.n[0];
    check("its bytes", 32, byte_at(&b, q));
    check("ordinal", 1, attribute(&b, q, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL));
    peer_do(&b, OP_DEVICE, 0, 0, 0);
    check("opened again with device 0 current", 0, open_code(&b, h));
    check("another address", 1, b.last.n[0] != q);
    peer_do(&a, OP_DEVICE, 1, 0, 0);
    check("own handle from another device, as row 3", 201, open_code(&a, h));
    PEERS_END(&a, &b);
}

static void row_34(int created) {
    uint64_t p, context = 0;
    PEERS(a, b);
    PEER(c);
    if (created) {
        peer_do(&a, OP_CONTEXT, 0, 0, 0);
        context = a.last.n[0];
    }
    struct bytes h = export_filled(&a, 4 * MIB, 33, &p);
    uint64_t q = open_at(&b, h);
    check_row("34");
    check(created ? "A destroys p's context" : "A resets", 0,
          created ? peer_do(&a, OP_DESTROY, context, 0, 0) : peer_do(&a, OP_RESET, 0, 0, 0));
    check("q reads on", 33, byte_at(&b, q));
    check("C opens", 1, open_code(&c, h));
    check("B opens again", 0, open_code(&b, h));
    check("same q", 1, b.last.n[0] == q);
}

static void rows_35_and_36(void) {
    uint64_t p;
    int closed = 0;
    PEERS(a, b);
    struct bytes h = export_filled(&a, 4 * MIB, 34, &p);
    peer_do(&b, OP_CONTEXT, 0, 0, 0);
    uint64_t context = b.last.n[0], q = open_at(&b, h);
    check_row("35");
    check("context of q destroyed", 0, peer_do(&b, OP_DESTROY, context, 0, 0));
    check("close from another", 1, close_code(&b, q));
    check("opening again", 0, open_code(&b, h));
    check("another address", 1, b.last.n[0] != q);
    close_code(&b, b.last.n[0]);
    check_row("36");
    for (int i = 0; i < 100; i++)
        q = open_at(&b, h);
    for (int i = 0; i < 99; i++)
        closed += close_code(&b, q) == 0;
    check("100 opens, 99 closes: ok", 99, closed);
    check("still readable", 34, byte_at(&b, q));
    check("the 100th close", 0, close_code(&b, q));
    check("ends it", 1, read_code(&b, q));
}

static void rows_37_and_38(void) {
    PEER(a);
    check_row("37");
    uint64_t p = alloc(&a, 4 * MIB);
    check("free beside running work", 0, peer_do(&a, OP_BUSY_FREE, p, 0, 0));
    check("waits for it", 1, a.last.n[0] >= 250);
    check_row("38");
    p = alloc(&a, 4 * MIB);
    peer_do(&a, OP_CAPTURE, p, 0, 0);
    check("free in a second thread", 900, (int64_t)a.last.n[0]);
    check("end of the capture", 901, (int64_t)a.last.n[1]);
    peer_do(&a, OP_CAPTURE, p, 1, 0);
    check("relaxed: free", 0, (int64_t)a.last.n[0]);
    check("relaxed: end of the capture", 0, (int64_t)a.last.n[1]);
}

/* --- row 39: a program of its own, which reports over a pipe what it gets on its way out --- */

static int report_to = -1;

static void report(char who) {
    CUcontext context;
    if (report_to < 0)
        return;
    char line[2] = {who, (char)('0' + gpu.cuCtxGetCurrent(&context))};
    if (write(report_to, line, sizeof line) != sizeof line)
        _exit(1);
}

static void before(void) {
    report('b');
}

static void after(void) {
    report('a');
}

__attribute__((destructor)) static void destructor(void) {
    report('d');
}

static void leave(int to) {
    report_to = to;
    if (!gpu_load())
        _exit(1);
    atexit(before);
    gpu.cuInit(0);
    atexit(after);
    exit(0);
}

static void row_39(void) {
    char got[8] = {0};
    int channel[2];
    size_t used = 0;
    ssize_t part;
    if (pipe(channel))
        return;
    pid_t child = fork();
    if (child == 0) {
        close(channel[0]);
        leave(channel[1]);
    }
    close(channel[1]);
    while (used < sizeof got - 1 &&
           (part = read(channel[0], got + used, sizeof got - 1 - used)) > 0)
        used += (size_t)part;
    close(channel[0]);
    waitpid(child, NULL, 0);
    check_row("39");
    check("handler registered after cuInit", 0, got[0] == 'a' ? got[1] - '0' : -1);
    check("handler registered before cuInit", 4, got[2] == 'b' ? got[3] - '0' : -1);
    check("ELF destructor", 4, got[4] == 'd' ? got[5] - '0' : -1);
}

void life_rows(void) {
    rows_26_and_28();
    row_27();
    row_29();
    row_34(0);
    row_34(1);
    rows_35_and_36();
    rows_37_and_38();
    row_39();
}
