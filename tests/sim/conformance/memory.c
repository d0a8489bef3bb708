/* Rows 1 to 25 of the memory table: handles, opening, closing, freeing; and rows 55 and 56. */
#include "step.h"

#include <cuda.h>

static void rows_1_to_5(void) {
    uint64_t p, q;
    PEERS(a, b);
    struct bytes h = export_filled(&a, 4 * MIB, 11, &p);
    check_row("1");
    check("B opens", 0, open_code(&b, h));
    q = b.last.n[0];
    /* Most often q differs from p; on a host with two cards it was equal. */
    check("q reads A's bytes", 11, byte_at(&b, q));
    peer_do(&b, OP_RANGE, q + 4096, 0, 0);
    check("base of q", 0, (int64_t)(b.last.n[0] - q));
    check("size of q", 4 * MIB, (int64_t)b.last.n[1]);
    fill(&b, q, 4 * MIB, 12);
    check("A reads B's bytes", 12, byte_at(&a, p));
    check("past the end of q", 1, peer_do(&b, OP_READ, q + 4 * MIB - 8, 16, 0));
    check_row("2");
    check("type of q: device", CU_MEMORYTYPE_DEVICE,
          attribute(&b, q, CU_POINTER_ATTRIBUTE_MEMORY_TYPE));
    check("q is not capable", 0, attribute(&b, q, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE));
    check("p is capable", 1, attribute(&a, p, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE));
    int64_t context = attribute(&b, q, CU_POINTER_ATTRIBUTE_CONTEXT);
    peer_do(&b, OP_WHICH, 0, 0, 0);
    check("context of q is B's", 1, context == (int64_t)b.last.n[0]);
    check("ordinal of q", 0, attribute(&b, q, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL));
    check_row("3");
    check("A opens its own", 201, open_code(&a, h));
    check_row("4");
    struct bytes again = get(&a, p);
    check("second handle equal", 0, memcmp(&h, &again, sizeof h));
    check_row("5");
    check("B opens again", 0, open_code(&b, h));
    check("the same q", 1, b.last.n[0] == q);
    check("first close", 0, close_code(&b, q));
    check("q still reads", 12, byte_at(&b, q));
    check("second close", 0, close_code(&b, q));
    check("q reads no more", 1, read_code(&b, q));
    check("third close", 1, close_code(&b, q));
}

static void rows_6_to_8(void) {
    uint64_t p;
    PEERS(a, b);
    struct bytes h = export_filled(&a, 4 * MIB, 13, &p);
    uint64_t q = open_at(&b, h);
    check_row("6");
    peer_do(&b, OP_CONTEXT, 0, 0, 0);
    check("B opens in a second context", 400, open_code(&b, h));
    uint64_t more;
    struct bytes other = export_filled(&a, 8 * MIB, 14, &more);
    check("another handle of A's there", 400, open_code(&b, other));
    check_row("7");
    check("close with the second current", 0, close_code(&b, q));
    check("q is gone", 1, read_code(&b, q));
    check_row("8");
    check("flags 0", 1, peer_open(&b, OP_OPEN, h.at, 0));
    check("flags 2", 1, peer_open(&b, OP_OPEN, h.at, 2));
}

static uint64_t available(struct peer *p) {
    peer_do(p, OP_AVAILABLE, 0, 0, 0);
    return p->last.n[0];
}

/* A free that waited for its importer follows its close a moment later. What is allocated before
 * and after it would lie at different places. */
static void wait_available(struct peer *p, uint64_t bytes) {
    const struct timespec moment = {.tv_nsec = 1000000};
    for (int i = 0; i < 2000 && available(p) < bytes; i++)
        nanosleep(&moment, NULL);
}

static void rows_9_to_11(void) {
    uint64_t p, old;
    PEERS(a, b);
    struct bytes h = export_filled(&a, 64 * MIB, 14, &p);
    uint64_t q = open_at(&b, h);
    check_row("9");
    uint64_t before = available(&a);
    check("A frees", 0, free_code(&a, p));
    check("q reads the old bytes", 14, byte_at(&b, q));
    check("memory stays charged", 1, available(&a) < before + 32 * MIB);
    uint64_t other = alloc(&a, 64 * MIB);
    check("A gets the address again", 1, other == p);
    fill(&a, other, 64 * MIB, 15);
    check("other memory behind it", 14, byte_at(&b, q));
    free_code(&a, other);
    check("B closes", 0, close_code(&b, q));
    check("now it is free", 1, available(&a) >= before + 32 * MIB);
    wait_available(&a, before + 32 * MIB);
    check_row("10");
    h = export_filled(&a, 4 * MIB, 16, &old);
    free_code(&a, old);
    check("open of freed memory", 1, open_code(&b, h));
    check_row("11");
    p = alloc(&a, 4 * MIB);
    fill(&a, p, 4 * MIB, 17);
    check("same address again", 1, p == old);
    check("old handle, not exported", 800, open_code(&b, h));
    struct bytes fresh = get(&a, p);
    check("its own handle differs", 1, memcmp(&h, &fresh, sizeof h) != 0);
    check("old handle, exported", 0, open_code(&b, h));
    check("the new bytes", 17, byte_at(&b, b.last.n[0]));
}

static void end_of_exporter(int number) {
    struct peer a, b, c;
    uint64_t p;
    PEERS_START(&a, &b, &c);
    uint64_t before = available(&b);
    struct bytes h = export_filled(&a, 64 * MIB, 18, &p);
    uint64_t q = open_at(&b, h);
    peer_end(&a, number);
    check_row("12");
    check(number ? "A killed: q reads" : "A exited: q reads", 18, byte_at(&b, q));
    check("q writes", 0, fill(&b, q, 64 * MIB, 19));
    check("q reads that", 19, byte_at(&b, q));
    check_row("13");
    check("handle of the dead, B holds", 400, open_code(&c, h));
    check_row("12");
    check("B closes", 0, close_code(&b, q));
    check("freed", 1, available(&b) + 32 * MIB >= before);
    check_row("13");
    check("handle of the dead, nobody holds", 400, open_code(&c, h));
    PEERS_END(&b, &c);
}

static void row_14(void) {
    uint64_t p;
    PEERS(a, b);
    PEER(c);
    struct bytes h = export_filled(&a, 4 * MIB, 20, &p);
    open_at(&b, h);
    free_code(&a, p);
    check_row("14");
    check("freed by A, held by B, opened by C", 1, open_code(&c, h));
    check("B, which has it open, opens it again", 0, open_code(&b, h));
}

static void rows_15_to_17(void) {
    uint64_t first, second, p;
    PEERS(a, b);
    struct bytes h1 = export_filled(&a, 1024, 21, &first);
    struct bytes h2 = export_filled(&a, 1024, 22, &second);
    check_row("15");
    check("1 KiB apart", 1024, (int64_t)(second - first));
    check("handles differ", 1, memcmp(&h1, &h2, sizeof h1) != 0);
    uint64_t q2 = open_at(&b, h2);
    check("the second's bytes", 22, byte_at(&b, q2));
    check("below the second, alone", 1, read_code(&b, q2 - 1024));
    uint64_t q1 = open_at(&b, h1);
    check("B's are 1 KiB apart", 1024, (int64_t)(q2 - q1));
    check("the second through the first", 22, byte_at(&b, q1 + 1024));
    check("a copy over both is refused", 1, peer_do(&b, OP_READ, q1, 2048, 0));
    check("the block lives: stale handle of a small one", 0,
          (free_code(&a, first), close_code(&b, q1), open_code(&b, h1)));
    check_row("16");
    h1 = export_filled(&a, 4 * MIB, 23, &p);
    h2 = get(&a, p + 4096);
    check("handle of p + 4096 equal", 0, memcmp(&h1, &h2, sizeof h1));
    uint64_t q = open_at(&b, h2);
    peer_do(&b, OP_RANGE, q, 0, 0);
    check("opening gives the base", 0, (int64_t)(b.last.n[0] - q));
    check_row("17");
    check("close of q + 4096", 1, close_code(&b, q + 4096));
    check("q stays", 23, byte_at(&b, q));
}

static void row_18(void) {
    static const struct {
        enum kind kind;
        const char *what;
        int code, capable;
    } kinds[] = {{KIND_POOL, "pool", 1, 0},
                 {KIND_MANAGED, "managed", 1, 0},
                 {KIND_HOST, "pinned host", 1, 0},
                 {KIND_PITCH, "pitch", 0, 1}};
    PEER(a);
    check_row("18");
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        uint64_t p = alloc_kind(&a, 4 * MIB, kinds[i].kind);
        check(kinds[i].what, kinds[i].code, peer_do(&a, OP_GET, p, 0, 0));
        check("  capable", kinds[i].capable,
              attribute(&a, p, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE));
        if (kinds[i].kind != KIND_HOST)
            check("  cuMemFree", 0, free_code(&a, p));
    }
}

static void rows_19_to_24(void) {
    struct peer a, b, c;
    uint64_t p;
    PEERS_START(&a, &b);
    struct bytes h = export_filled(&a, 4 * MIB, 24, &p);
    uint64_t q = open_at(&b, h);
    check_row("19");
    check("B frees q", 1, free_code(&b, q));
    check("q stays open", 24, byte_at(&b, q));
    check_row("20");
    check("B exports q", 1, peer_do(&b, OP_GET, q, 0, 0));
    check_row("21");
    check("A closes its own p", 1, close_code(&a, p));
    check("close of 0", 1, close_code(&a, 0));
    check("close of an unknown address", 1, close_code(&a, 0x7000000));
    check_row("22");
    check("free of 0", 0, free_code(&a, 0));
    check("free of an interior address", 1, free_code(&a, p + 4096));
    check("free of an unknown address", 1, free_code(&a, 0x7000000));
    check("free", 0, free_code(&a, p));
    check("freed twice", 1, free_code(&a, p));
    check_row("23");
    check("0 bytes", 1, peer_do(&a, OP_ALLOC, 0, KIND_PLAIN, 0));
    check("too large", 2, peer_do(&a, OP_ALLOC, (uint64_t)1 << 50, KIND_PLAIN, 0));
    if (peer_do(&b, OP_CUDA_MALLOC, 0, 0, 0) == NO_RUNTIME) {
        check_skip("no libcudart.so.13");
    } else {
        check("runtime: 0 bytes", 0, b.last.code);
        check("runtime: null", 0, (int64_t)b.last.n[0]);
    }
    PEERS_END(&a, &b);
    check_row("24");
    peer_start(&c, 0);
    check("alloc before cuInit", 3, peer_do(&c, OP_ALLOC, 4096, KIND_PLAIN, 0));
    check("free before cuInit", 3, free_code(&c, 0));
    check("open before cuInit", 3, open_code(&c, h));
    peer_end(&c, 0);
}

static void row_25(void) {
    struct bytes junk;
    uint64_t p;
    int opened = 0;
    PEERS(a, b);
    struct bytes h = export_filled(&a, 4 * MIB, 25, &p);
    check_row("25");
    memset(&junk, 0, sizeof junk);
    check("zeros", 1, open_code(&b, junk));
    memset(&junk, 0x77, sizeof junk);
    check("a repeated byte", 1, open_code(&b, junk));
    for (int i = 32; i < 64; i++) {
        junk = h;
        junk.at[i] ^= 1;
        uint64_t q = open_at(&b, junk);
        opened += q != 0;
        if (q)
            close_code(&b, q);
    }
    check("a changed bit in the second half can open", 1, opened > 0);
    check("and can fail", 1, opened < 32);
}

/* Small memory of A, open in B and freed; and what A gets in its place, while the block lives. */
static void row_55(uint64_t old_size, uint64_t new_size, int number) {
    struct peer a, b;
    uint64_t old, new;
    PEERS_START(&a, &b);
    alloc(&a, 4 * KIB);
    struct bytes old_handle = export_filled(&a, old_size, 55, &old);
    const uint64_t q = open_at(&b, old_handle);
    free_code(&a, old);
    struct bytes new_handle = export_filled(&a, new_size, 56, &new);
    check_row("55");
    check("A gets another size in the place of what B has open", 1, new == old);
    if (number)
        peer_end(&a, number);
    check(number ? "A killed: B opens its handle" : "B opens its handle", 208,
          open_code(&b, new_handle));
    check("  the old handle", 0, open_code(&b, old_handle));
    check("  closes it", 0, close_code(&b, q));
    check("  and all of it", 0, close_code(&b, q));
    check("  then the new one", number ? 400 : 0, open_code(&b, new_handle));
    if (!number) {
        check("  its bytes", 56, byte_at(&b, b.last.n[0]));
        peer_end(&a, 0);
    }
    peer_end(&b, 0);
}

static void row_56(void) {
    struct peer a, b;
    uint64_t first, second;
    PEERS_START(&a, &b);
    struct bytes h1 = export_filled(&a, 4 * KIB, 57, &first);
    struct bytes h2 = export_filled(&a, 4 * KIB, 58, &second);
    const uint64_t q = open_at(&b, h1);
    peer_end(&a, SIGKILL);
    check_row("56");
    check("A killed, B has a neighbour open: one never opened", 0, open_code(&b, h2));
    check("  closes it", 0, close_code(&b, b.last.n[0]));
    check("  closes the neighbour", 0, close_code(&b, q));
    check("  opens again", 400, open_code(&b, h2));
    peer_end(&b, 0);
}

void memory_rows(void) {
    rows_1_to_5();
    rows_6_to_8();
    rows_9_to_11();
    end_of_exporter(0);
    end_of_exporter(SIGKILL);
    row_14();
    rows_15_to_17();
    row_18();
    rows_19_to_24();
    row_25();
    row_55(64 * KIB, 4 * KIB, 0);
    row_55(4 * KIB, 64 * KIB, SIGKILL);
    row_56();
}
