/* Row 30, and row 43: more than one card. Skipped with one. */
#include "gpu.h"
#include "lane.h"
#include "step.h"

static uint64_t available(struct peer *p, uint64_t device) {
    peer_do(p, OP_DEVICE, device, 0, 0);
    return peer_do(p, OP_AVAILABLE, 0, 0, 0) ? 0 : p->last.n[0];
}

/* A sends memory of a card that B does not see; an NVLink host (two H200s, driver 580.159.04,
 * 2026-11-28). */
static void import_unseen(struct peer *a, struct peer *b) {
    check("A: cuMemCreate", 0, vmm(a, VMM_CREATE, 0, 64 * MIB));
    const uint64_t p = map(a, 0);
    check("  fill", 0, fill(a, p, 64 * MIB, 31));
    check("  sends a descriptor", 0, vmm(a, VMM_SEND, 0, 0));
    const int descriptor = lane_receive(LANE_PARENT);
    lane_send(LANE_PARENT, descriptor);
    check("B, which sees only device 1, takes it", 0, vmm(b, VMM_TAKE, 0, 0));
    const uint64_t q = map(b, 0);
    check("  its bytes", 31, byte_at(b, q));
    check("  ordinal", 0, attribute(b, q, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL));
    for (struct peer *one = b; one; one = one == b ? a : NULL)
        check("unmap, release", 0, vmm(one, VMM_UNMAP, 0, 0) + vmm(one, VMM_RELEASE, 0, 0));
    close(descriptor);
}

static void row_30(struct peer *a) {
    const char *given = getenv("CUDA_VISIBLE_DEVICES");
    char *kept = given ? strdup(given) : NULL;
    struct peer b;
    uint64_t p;
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    peer_start(&b, 1);
    if (kept)
        setenv("CUDA_VISIBLE_DEVICES", kept, 1);
    else
        unsetenv("CUDA_VISIBLE_DEVICES");
    free(kept);
    peer_do(a, OP_DEVICE, 0, 0, 0);
    struct bytes h = export_filled(a, 4 * MIB, 30, &p);
    check_row("30");
    peer_do(&b, OP_DEVICES, 0, 0, 0);
    check("B sees one device", 1, (int64_t)b.last.n[0]);
    check("B, which sees only device 1, opens memory of 0", 0, open_code(&b, h));
    uint64_t q = b.last.n[0];
    check("  its bytes", 30, byte_at(&b, q));
    check("  ordinal", 0, attribute(&b, q, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL));
    check("  closes it", 0, close_code(&b, q));
    import_unseen(a, &b);
    peer_end(&b, 0);
}

static void row_43(struct peer *a) {
    struct peer b;
    uint64_t p;
    peer_start(&b, 1);
    check_row("43");
    peer_do(a, OP_DEVICE, 1, 0, 0);
    struct bytes other = export_filled(a, 4 * MIB, 44, &p);
    check("memory of device 1, opened in device 0", 0, open_code(&b, other));
    uint64_t q = b.last.n[0];
    check("  its bytes", 44, byte_at(&b, q));
    peer_do(&b, OP_DEVICE, 1, 0, 0);
    check("  closed with device 1 current", 0, close_code(&b, q));
    const uint64_t before = available(a, 0);
    struct bytes h = export_filled(a, 64 * MIB, 43, &p);
    check("memory of device 0, opened in device 1", 0, open_code(&b, h));
    q = b.last.n[0];
    check("  B writes", 0, fill(&b, q, 64 * MIB, 45));
    check("  A reads that", 45, byte_at(a, p));
    check("A frees", 0, free_code(a, p));
    check("  B reads on", 45, byte_at(&b, q));
    check("  it stays charged to device 0", 1, available(a, 0) < before - 32 * MIB);
    check("B closes", 0, close_code(&b, q));
    check("  free again", 1, available(a, 0) + 32 * MIB >= before);
    peer_end(&b, 0);
}

void device_rows(void) {
    struct peer a;
    if (!lane_open())
        return;
    peer_start(&a, 1);
    peer_do(&a, OP_DEVICES, 0, 0, 0);
    if (a.last.n[0] < 2) {
        check_row("30");
        check_skip("one device");
        check_row("43");
        check_skip("one device");
    } else {
        row_30(&a);
        row_43(&a);
    }
    peer_end(&a, 0);
    lane_close();
}
