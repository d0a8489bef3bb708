/* Steps that rows share: one call of a peer each. */
#pragma once

#include "check.h"
#include "gpu.h"
#include "peer.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

struct bytes {
    char at[64];
};

static inline uint64_t alloc_kind(struct peer *p, uint64_t size, enum kind kind) {
    return peer_do(p, OP_ALLOC, size, kind, 0) ? 0 : p->last.n[0];
}

static inline uint64_t alloc(struct peer *p, uint64_t size) {
    return alloc_kind(p, size, KIND_PLAIN);
}

static inline struct bytes get(struct peer *p, uint64_t address) {
    struct bytes handle;
    memset(&handle, 0, sizeof handle);
    if (!peer_do(p, OP_GET, address, 0, 0))
        memcpy(handle.at, p->last.bytes, sizeof handle.at);
    return handle;
}

static inline int open_code(struct peer *p, struct bytes handle) {
    return peer_open(p, OP_OPEN, handle.at, 1);
}

static inline uint64_t open_at(struct peer *p, struct bytes handle) {
    return open_code(p, handle) ? 0 : p->last.n[0];
}

static inline int close_code(struct peer *p, uint64_t address) {
    return peer_do(p, OP_CLOSE, address, 0, 0);
}

static inline int free_code(struct peer *p, uint64_t address) {
    return peer_do(p, OP_FREE, address, 0, 0);
}

static inline int vmm(struct peer *p, enum vmm what, uint64_t a, uint64_t b) {
    return peer_do(p, OP_VMM, what, a, b);
}

/* For reads and writes, at a place of its own. */
static inline uint64_t map(struct peer *p, uint64_t block) {
    check("  reserve", 0, vmm(p, VMM_RESERVE, 0, 0));
    const uint64_t at = p->last.n[0];
    check("  map", 0, vmm(p, VMM_MAP, 0, block));
    check("  allow", 0, vmm(p, VMM_ALLOW, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    return at;
}

static inline int fill(struct peer *p, uint64_t address, uint64_t size, int value) {
    return peer_do(p, OP_FILL, address, size, (uint64_t)value);
}

static inline int read_code(struct peer *p, uint64_t address) {
    return peer_do(p, OP_READ, address, 16, 0);
}

/* The byte there, or minus the code. */
static inline int64_t byte_at(struct peer *p, uint64_t address) {
    int code = read_code(p, address);
    return code ? -code : (int64_t)p->last.n[0];
}

static inline int64_t attribute(struct peer *p, uint64_t address, int which) {
    int code = peer_do(p, OP_ATTRIBUTE, address, (uint64_t)which, 0);
    return code ? -code : (int64_t)p->last.n[0];
}

/* Handles that are not yet to be seen need their memory written first. */
static inline struct bytes export_filled(struct peer *p, uint64_t size, int value, uint64_t *at) {
    *at = alloc(p, size);
    fill(p, *at, size, value);
    return get(p, *at);
}
