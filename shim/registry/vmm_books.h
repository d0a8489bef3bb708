/*
 * vmm_books.h - the books of the VMM memory that the program makes itself: addresses
 * that it has reserved, memory by handle with its references, mappings with their access, and the
 * descriptors by which memory goes to other processes and comes from them.
 *
 * An object that a call makes is recorded after the call has succeeded. One that it ends is taken
 * from the books before the driver is called, because another thread can get the number, or the
 * address, as soon as the driver has returned; a second function gets the outcome, and puts the
 * object back if the call failed. A refused call, or one for an unknown object, changes nothing.
 *
 * Memory that gpushare makes itself is not in them. A lock of their own, for some dozens of
 * instructions; mappings are found in a tree (range_tree.h), handles in a hash table. Nothing comes
 * from malloc. Where memory runs out, an object is not recorded. Any thread; no scope. A forked
 * child finds them empty. They survive the end of a context, as such memory does.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum gps_vmm_origin {
    GPS_VMM_CREATED,
    GPS_VMM_IMPORTED,
    GPS_VMM_MULTICAST, /* an object of multicast: it has a handle, and no memory */
};

#define GPS_VMM_GPUS      32 /* memory on those of higher ordinals is not summed up */
#define GPS_VMM_NO_DEVICE (-1)

#define GPS_VMM_POSIX  1 /* a CUmemAllocationHandleType */
#define GPS_VMM_FABRIC 8 /* likewise */

struct gps_vmm_memory {
    uint64_t handle;
    uint64_t serial; /* no other memory has it, also when the driver gives the handle again */
    uint64_t size;   /* 0: imported, and not mapped yet */
    int device;      /* ordinal; GPS_VMM_NO_DEVICE: memory of the host, or not known */
    uint32_t types;  /* of handles that can be exported, a CUmemAllocationHandleType */
    enum gps_vmm_origin origin;
    uint32_t references; /* of the program: by create, import and retain */
    uint32_t mappings;
    bool passable; /* it has POSIX_FD, which its program did not ask for (vmm_ipc) */
    bool unmapped; /* it was mapped, at least once, and is not now */
    bool plain;    /* a merge rule could take it; noted where the process learns */
    bool taken;    /* by a merge rule: its blocks are counted elsewhere, so it is not summed up */
    bool bound;    /* an array or a multicast object has, or had, a part of it */
    uint32_t made; /* trace */
};

struct gps_vmm_mapping {
    uint64_t pointer, size, offset; /* the last: in the memory */
    uint64_t readable, writable;    /* devices by ordinal, a bit each; GPS_VMM_HOST */
    uint32_t mapped;                /* trace */
    bool opened;                    /* a device, or the host, was given access to it */
};
#define GPS_VMM_HOST 63 /* the bit of the host, and of devices from there on */

/* Whether a descriptor can be made of the mapped memory, so that it can have a token (ipc/token.h):
 * the mapping has the whole of memory that the program has made on a device. */
static inline bool gps_vmm_is_passable(const struct gps_vmm_mapping *mapping,
                                       const struct gps_vmm_memory *memory) {
    return memory->origin == GPS_VMM_CREATED && memory->size && memory->size == mapping->size &&
           !mapping->offset && memory->device >= 0 &&
           (memory->passable || memory->types & GPS_VMM_POSIX);
}

/* An object that a call under way has taken from the books, or keeps there. NULL: none. */
struct gps_vmm_pending;

/* --- reservations --- */

void gps_vmm_reserved(uint64_t pointer, uint64_t size);
/* Gives back a range reserved with this beginning and size. `pending` is for gps_vmm_unreserved. */
struct gps_vmm_pending *gps_vmm_unreserve(uint64_t pointer, uint64_t size);
void gps_vmm_unreserved(struct gps_vmm_pending *pending, bool succeeded);
/* The reservation around an address. */
bool gps_vmm_reservation(uint64_t address, uint64_t *pointer, uint64_t *size);

/* --- memory, by its handle --- */

/* The driver gave the handle: new memory. `made` has handle, size, device, types, origin and
 * trace. An imported handle that is in the books has one reference more. */
void gps_vmm_made(const struct gps_vmm_memory *made);
/* The driver gave the handle for an address, and counts one reference more. */
void gps_vmm_retained(uint64_t handle);
/* An array or a multicast object gets a part of the memory; that is never taken back. */
void gps_vmm_bound(uint64_t handle);
void gps_vmm_bound_at(uint64_t address);
/* `trace`: of the call. */
struct gps_vmm_pending *gps_vmm_release(uint64_t handle, uint32_t trace);
void gps_vmm_released(struct gps_vmm_pending *pending, bool succeeded);
/* Notes whether a merge rule has it. */
void gps_vmm_taken(uint64_t handle, bool taken);
/* Memory to which the program has a reference by this handle. */
bool gps_vmm_find(uint64_t handle, struct gps_vmm_memory *memory);

/* Takes memory to which the program has references, although it has unmapped it, at most `max`;
 * returns how many. None that an array or a multicast object has. At the end of the process. */
unsigned gps_vmm_take_unmapped(struct gps_vmm_memory *taken, unsigned max);

/* --- mappings --- */

/* Before the driver maps memory: it stays in the books even if another thread releases it. */
struct gps_vmm_pending *gps_vmm_map(uint64_t handle);
void gps_vmm_mapped(struct gps_vmm_pending *pending, const struct gps_vmm_mapping *mapping,
                    bool succeeded);
/* Takes the mappings that fill the range from its first byte to its last; other ranges are refused
 * by the driver. `noted`: they are in freed_history.h until something is mapped there. */
struct gps_vmm_pending *gps_vmm_unmap(uint64_t pointer, uint64_t size, bool noted);
void gps_vmm_unmapped(struct gps_vmm_pending *pending, bool succeeded);
void gps_vmm_allowed(uint64_t pointer, uint64_t size, unsigned bit, bool reads, bool writes);
/* Whether mappings fill the range from its first byte to its last. */
bool gps_vmm_is_filled(uint64_t pointer, uint64_t size);
/* The mapping around an address, or the next above; *memory is zero where not in the books. */
bool gps_vmm_mapping_from(uint64_t address, struct gps_vmm_mapping *mapping,
                          struct gps_vmm_memory *memory);

/* Whether surely nothing is mapped in the range, which lies in a reservation. */
bool gps_vmm_is_empty(uint64_t pointer, uint64_t size);

struct gps_vmm_closed {
    struct gps_vmm_mapping mapping;
    struct gps_vmm_memory memory;
};
/* Lists mappings to which no device was given access, each one once, at most `max`; returns how
 * many. None whose memory is not in the books, or that an array or a multicast object has. At the
 * end of the process. */
unsigned gps_vmm_take_closed(struct gps_vmm_closed *taken, unsigned max);

/* --- peers --- */

/* The program has enabled one device's access to ordinary allocations on another; by ordinals. */
void gps_vmm_peer_enabled(int device, int peer);
bool gps_vmm_has_peer(int device, int peer);

/* --- descriptors --- */

enum gps_vmm_way { GPS_VMM_EXPORTED_AS, GPS_VMM_IMPORTED_FROM };

struct gps_vmm_descriptor {
    uint64_t serial; /* of the memory; 0: of a pool, or not known */
    enum gps_vmm_way way;
    int mark; /* of the open file; 0: none */
    uint32_t trace;
};
/* A descriptor by which memory was exported or imported: *descriptor without serial. Its close is
 * not seen: the next descriptor of its number takes its place. */
void gps_vmm_described(int number, uint64_t handle, const struct gps_vmm_descriptor *descriptor);
/* The driver has taken the descriptor over, and closes it. */
void gps_vmm_consumed(int descriptor);
bool gps_vmm_descriptor_of(int descriptor, struct gps_vmm_descriptor *found);

struct gps_vmm_left {
    int number;
    struct gps_vmm_descriptor descriptor;
    struct gps_vmm_memory memory; /* as it was when it ended */
};
/* Takes descriptors of memory to which the program has neither a reference nor a mapping any more:
 * at most `max`; returns how many. At the end of the process. */
unsigned gps_vmm_take_left(struct gps_vmm_left *taken, unsigned max);

/* --- fabric handles --- */

/* The driver has refused memory with fabric handles. */
struct gps_vmm_refusal {
    uint64_t size;
    int device, code;
    uint32_t trace;
};
/* The first refusal counts, until the program makes memory of another kind. */
void gps_vmm_fabric_refused(const struct gps_vmm_refusal *refusal);
/* Costs one load, if there is no such refusal. */
void gps_vmm_fabric_forget(void);
bool gps_vmm_take_refusal(struct gps_vmm_refusal *refusal);

/* --- sums --- */

/* The bytes on a device, below GPS_VMM_GPUS, that the program made: of created memory that has a
 * reference or is mapped. Memory held only by a descriptor or another process does not count. */
uint64_t gps_vmm_bytes(int device);
/* The devices whose sum has changed since the last call, a bit each. */
uint32_t gps_vmm_changed(void);
