/* Row 33, and rows 40 to 42: many, many at once, and no memory left. */
#include "gpu.h"
#include "step.h"

static uint64_t available(struct peer *p) {
    return peer_do(p, OP_AVAILABLE, 0, 0, 0) ? 0 : p->last.n[0];
}

static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int duplicates(uint64_t *at, int count) {
    int same = 0;
    qsort(at, (size_t)count, sizeof *at, by_value);
    for (int i = 1; i < count; i++)
        same += at[i] == at[i - 1];
    return same;
}

static void row_33(void) {
    enum { MOST = 10000, FEW = 200 };
    static struct bytes handles[MOST];
    static uint64_t at[MOST];
    char what[64];
    int failed = 0;
    PEERS(a, b);
    const int many = available(&a) >= (uint64_t)24 << 30 ? MOST : FEW;
    for (int i = 0; i < many; i++)
        handles[i] = get(&a, alloc(&a, 2 * MIB));
    for (int i = 0; i < many; i++) {
        at[i] = open_at(&b, handles[i]);
        failed += !at[i];
    }
    check_row("33");
    snprintf(what, sizeof what, "%d of 2 MiB open at once: failed", many);
    check(what, 0, failed);
    failed = 0;
    for (int i = 0; i < many; i++)
        failed += read_code(&b, at[i]) != 0;
    check("not readable", 0, failed);
    check("not distinct", 0, duplicates(at, many));
    failed = 0;
    for (int i = 0; i < many; i++)
        failed += close_code(&b, at[i]) != 0;
    check("not closed", 0, failed);
}

static void row_40(void) {
    uint64_t p, q;
    PEERS(a, b);
    struct bytes ha = export_filled(&a, 4 * MIB, 40, &p);
    struct bytes hb = export_filled(&b, 4 * MIB, 41, &q);
    check_row("40");
    const uint64_t before = available(&a);
    memcpy(a.last.bytes, hb.at, sizeof hb.at);
    memcpy(b.last.bytes, ha.at, sizeof ha.at);
    peer_tell(&a, OP_THREADS, 16, 50, 0);
    peer_tell(&b, OP_THREADS, 16, 50, 0);
    check("16 threads and streams of A: runs", 0, peer_answer(&a));
    check("  calls that failed", 0, (int64_t)a.last.n[0]);
    check("16 threads and streams of B: runs", 0, peer_answer(&b));
    check("  calls that failed", 0, (int64_t)b.last.n[0]);
    check("A's memory has its bytes", 40, byte_at(&a, p));
    check("all was closed: B closes once more", 1, close_code(&b, p));
    check("all was freed", 1, available(&a) + 16 * MIB >= before);
}

static void row_41(void) {
    struct peer a, b;
    char what[64];
    peer_latest =
        mmap(NULL, sizeof *peer_latest, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (peer_latest == MAP_FAILED)
        exit(2);
    PEERS_START(&a, &b);
    check_row("41");
    const uint64_t before = available(&a);
    peer_tell(&a, OP_CHURN, 2000, 0, 0);
    peer_tell(&b, OP_CATCH, 0, 0, 0);
    check("A exports and frees 2,000 times", 0, peer_answer(&a));
    check("  calls that failed", 0, (int64_t)a.last.n[0]);
    check("B opens beside it: code of none but 0, 1, 800", 0, peer_answer(&b));
    check("  other answers, and failed closes", 0, (int64_t)b.last.n[3]);
    snprintf(what, sizeof what, "opened %llu times, refused with 1 %llu, with 800 %llu",
             (unsigned long long)b.last.n[0], (unsigned long long)b.last.n[1],
             (unsigned long long)b.last.n[2]);
    check_note(what);
    check("nothing is left", 1, available(&a) + 16 * MIB >= before);
    PEERS_END(&a, &b);
    munmap(peer_latest, sizeof *peer_latest);
}

/* Takes what there is in ever smaller pieces, none under 2 MiB; how many. */
static int fill_up(struct peer *p, uint64_t *at, int max, int *code) {
    int count = 0;
    for (uint64_t size = available(p) / 4 & ~(uint64_t)(2 * MIB - 1); size >= 2 * MIB;) {
        const uint64_t pointer = count < max ? alloc(p, size) : 0;
        *code = p->last.code;
        if (pointer)
            at[count++] = pointer;
        else
            size = size / 2 & ~(uint64_t)(2 * MIB - 1);
    }
    return count;
}

static void row_42(void) {
    enum { MAX = 4096 };
    static uint64_t at[MAX];
    uint64_t p;
    int code = 0, failed = 0;
    PEERS(a, b);
    check_row("42");
    const uint64_t before = available(&a);
    struct bytes early = export_filled(&a, 4 * MIB, 42, &p);
    const int count = fill_up(&a, at, MAX, &code);
    check("A allocates until there is none", 2, code);
    struct bytes late = get(&a, at[count - 1]);
    check("the last one has a handle", 0, a.last.code);
    check("B opens the first with the card full", 0, open_code(&b, early));
    uint64_t q = b.last.n[0];
    check("  its bytes", 42, byte_at(&b, q));
    check("B opens the last", 0, open_code(&b, late));
    check("  closes it", 0, close_code(&b, b.last.n[0]));
    check("B finds no memory either", 2, peer_do(&b, OP_ALLOC, 64 * MIB, KIND_PLAIN, 0));
    check("A frees what B has open", 0, free_code(&a, p));
    check("  the bytes stay", 42, byte_at(&b, q));
    check("B closes", 0, close_code(&b, q));
    check("A allocates as much again", 0, peer_do(&a, OP_ALLOC, 4 * MIB, KIND_PLAIN, 0));
    failed += free_code(&a, a.last.n[0]) != 0;
    for (int i = 0; i < count; i++)
        failed += free_code(&a, at[i]) != 0;
    check("A frees all: failed", 0, failed);
    check("all is free again", 1, available(&a) + 16 * MIB >= before);
}

void load_rows(void) {
    row_33();
    row_40();
    row_41();
    row_42();
}
