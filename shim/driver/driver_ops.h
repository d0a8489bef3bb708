/*
 * driver_ops.h - the small table of driver operations that the rooms below the front end work with.
 *
 * They speak of pointers, contexts and handles as plain integers and bytes; a vendor's front end
 * fills in this table. All return the vendor's code, 0
 * for success, and write outputs only on success. None takes a lock of ours, and none is called
 * while one is held but those whose rank allows it (util/lock.h). They act on the calling thread's
 * current context unless said.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/region.h"
#include "util/lock.h"

/* The codes with which the core itself answers; they are the same for all vendors. */
enum gps_code {
    GPS_OK = 0,
    GPS_INVALID_VALUE = 1,
    GPS_OUT_OF_MEMORY = 2,
    GPS_NOT_INITIALIZED = 3,
    GPS_DEINITIALIZED = 4,
    GPS_INVALID_DEVICE = 101,
    GPS_INVALID_CONTEXT = 201,
    GPS_MAP_FAILED = 205,
    GPS_ALREADY_MAPPED = 208,
    GPS_PEER_UNSUPPORTED = 217,
    GPS_INVALID_HANDLE = 400,
    GPS_NOT_FOUND = 500,
    GPS_NOT_READY = 600,
    GPS_ILLEGAL_ADDRESS = 700,
    GPS_NOT_PERMITTED = 800,
    GPS_NOT_SUPPORTED = 801,
    GPS_UNKNOWN = 999,
    GPS_CAPTURE_UNSUPPORTED = 900, /* to GPS_CAPTURE_LAST: see gps_code_is_of_capture */
    GPS_CAPTURE_INVALIDATED = 901,
    GPS_CAPTURE_UNJOINED = 904,
    GPS_CAPTURE_LAST = 908,
};

/* Whether the code only means "not while capturing". */
static inline bool gps_code_is_of_capture(int code) {
    return code >= GPS_CAPTURE_UNSUPPORTED && code <= GPS_CAPTURE_LAST;
}

#define GPS_OPEN_FLAGS 1u /* the only flags with which a handle opens where there are tokens */

/* The kind of memory that a pointer is of, to the driver. */
enum gps_memory_kind {
    GPS_MEMORY_UNKNOWN, /* nothing */
    GPS_MEMORY_DEVICE,
    GPS_MEMORY_POOL,
    GPS_MEMORY_MANAGED,
    GPS_MEMORY_HOST,
    GPS_MEMORY_VMM,
    GPS_MEMORY_MERGED, /* a merge rule took it */
};

/* How the program asked for memory of its own, to make more of the kind: the front end's bytes. */
struct gps_block_like {
    uint64_t bytes[8];
    uint32_t types; /* of handles by which it can be exported */
};

/* Attributes of a mapping that differ between mappings of one device. */
struct gps_mapped_as {
    uint64_t buffer;     /* its number */
    bool decompressible; /* by hardware */
    bool rdma;
    uint32_t types; /* of handles */
};

/* The names of the vendor and its functions in texts for people. */
struct gps_names {
    const char *vendor, *start;
    const char *make_block, *export_block; /* VMM memory, and its descriptor */
    const char *make_pooled, *export_pool;
    const char *make_managed;
    const char *event_shared, *event_untimed; /* flags of events */
};

struct gps_operations {
    const char *vendor; /* the prefix of its functions' names */
    /* A function that the operations need and the driver lacks; NULL: there is none. */
    const char *(*lacks)(void);
    const struct gps_names *names;
    /* Memory in blocks, and the other needs of merging, the keeper and the open cache. Without it
     * the operations that only these need are NULL, and a configuration that asks for them is
     * refused (config/config.h). */
    bool has_blocks;
    /* A free and a close take any address of the memory, and a free closes what was opened. */
    bool by_range;
    /* How the names of the vendor's libraries begin, each with its NUL, then another NUL. */
    const char *sonames;
    int (*context)(uint64_t *context); /* 0: none is current */
    int (*device)(int *ordinal);       /* of the current context */
    int (*device_count)(int *count);   /* those that this process sees */
    int (*uuid)(int ordinal, uint8_t uuid[GPS_UUID_BYTES]);
    int (*peer)(int here, int there, bool *can); /* reach each other's memory */
    bool (*by_mps)(int ordinal);                 /* other processes share its faults */
    int (*enter)(uint64_t context);              /* push it */
    void (*leave)(void);                         /* pop it */
    uint64_t (*primary)(int ordinal);            /* the device's own context; 0: none is active */
    bool (*context_exists)(uint64_t context);
    void (*forget)(uint64_t context); /* it is gone, with these operations' objects in it */
    int (*relax)(int *mode);          /* exchange this thread's stream capture mode */
    /* Waits for all work of the current context as a free does, by a real free of a scrap
     * allocation: other threads' graph captures survive it. */
    int (*synchronize)(void);
    int (*stream_context)(uint64_t stream, uint64_t *context);
    int (*capturing)(uint64_t stream, bool *captured); /* its work goes into a graph */
    int (*stream_wait)(uint64_t stream);               /* wait for its work */
    /* 0: the stream has no work. Stream 0: the default ones of the current context. */
    int (*stream_state)(uint64_t stream);
    /* An event behind the work of an explicit stream; its state is 0 when that is done. */
    int (*event_mark)(uint64_t stream, uint64_t *event);
    int (*event_state)(uint64_t event);
    int (*event_free)(uint64_t event);

    /* A stream of ours in the current context, which no default stream waits for; a stream that
     * follows an event works after the work that the event is behind. `done` is called in a thread
     * of the driver's, where no driver call is allowed. */
    int (*stream_make)(uint64_t *stream);
    int (*stream_end)(uint64_t stream);
    int (*event_make)(uint64_t *event);
    int (*event_record)(uint64_t event, uint64_t stream);
    int (*stream_follow)(uint64_t stream, uint64_t event);
    int (*copy_behind)(uint64_t to, uint64_t from, uint64_t size, uint64_t stream);
    int (*call_behind)(uint64_t stream, void (*done)(void *arg), void *arg);
    int (*zero)(uint64_t pointer, uint64_t size);

    int (*allocate)(uint64_t size, uint64_t *pointer);
    int (*release)(uint64_t pointer);
    int (*range)(uint64_t pointer, uint64_t *base, uint64_t *size);
    int (*home)(uint64_t pointer, uint64_t *context, int *ordinal); /* context may be NULL */
    enum gps_memory_kind (*kind)(uint64_t pointer);

    int (*get_handle)(uint64_t pointer, uint8_t handle[GPS_HANDLE_BYTES]);
    unsigned (*open_flags)(void); /* the only ones with which a handle opens */
    int (*open_handle)(const uint8_t handle[GPS_HANDLE_BYTES], uint64_t *pointer);
    /* The same, with another number in place of the exporter's pid that the handle carries;
     * GPS_INVALID_CONTEXT: it does not carry that pid. */
    int (*open_handle_as)(const uint8_t handle[GPS_HANDLE_BYTES], uint32_t pid, uint32_t instead,
                          uint64_t *pointer);
    int (*close_handle)(uint64_t pointer);

    /* VMM memory: blocks by the driver's handle, mapped at addresses that are reserved first. Sizes
     * are multiples of the device's granularity. */
    int (*granularity)(int device, uint64_t *bytes);
    int (*least_granularity)(int device, uint64_t *bytes); /* the least that the driver accepts */
    int (*block_create)(int device, uint64_t size, uint64_t *block);
    int (*block_create_like)(const struct gps_block_like *like, uint64_t size, uint64_t *block);
    int (*block_release)(uint64_t block);
    int (*block_retain)(uint64_t pointer, uint64_t *block); /* the block mapped there, counted */
    int (*block_export)(uint64_t block, int *descriptor);   /* close-on-exec, the caller's */
    int (*block_import)(int descriptor, uint64_t *block);   /* it stays the caller's */
    int (*reserve)(uint64_t size, uint64_t *pointer);
    int (*unreserve)(uint64_t pointer, uint64_t size);
    int (*map)(uint64_t pointer, uint64_t size, uint64_t block); /* its first `size` bytes */
    int (*unmap)(uint64_t pointer, uint64_t size);
    int (*allow)(uint64_t pointer, uint64_t size, int device, bool write);
    int (*mapped_as)(uint64_t pointer, struct gps_mapped_as *as);

    /* Copies that have ended when they return. */
    int (*copy)(uint64_t to, uint64_t from, uint64_t size);
    int (*copy_out)(void *to, uint64_t from, uint64_t size);

    /* Copies from main memory, in an explicit stream's order; as a copy of the program's does. */
    int (*upload)(uint64_t to, const void *from, uint64_t size, uint64_t stream);
    int (*download)(void *to, uint64_t from, uint64_t size, uint64_t stream); /* to it */
    /* Main memory that the driver has pinned, for copies at the speed of the bus. */
    int (*stage_make)(uint64_t size, void **stage);
    int (*stage_end)(void *stage);
    int (*memory)(uint64_t *available, uint64_t *total); /* bytes of the current device */
    /* The current device's pool, in bytes, used or not: more takes the rest of the device. */
    int (*pool_has)(uint64_t *bytes);

    /* Kernels on a stream of ours, ended when they return; GPS_NOT_SUPPORTED: they are not loaded
     * in this context. The hashes are two integers for each 16 KiB, low half first. A load waits
     * for all kernels of the context, and launches of other threads for the load (H200, driver
     * 580.159.04, 2026-11-28), so it is made where none runs. */
    void (*load_kernels)(void);
    int (*digest)(uint64_t from, uint64_t size, uint64_t *hashes);
    int (*equal)(uint64_t a, uint64_t b, uint64_t size, bool *equal);
};

/* Macros for most operations of a front end: one hands a call of the driver's on, the other also
 * has an output of the vendor's own type, which the call writes to `got`. */
#define GPS_PASS(operation, parameters, call)                                                      \
    static int operation parameters {                                                              \
        return call;                                                                               \
    }
#define GPS_YIELD(operation, parameters, type, out, call)                                          \
    static int operation parameters {                                                              \
        type got = 0;                                                                              \
        const int code = call;                                                                     \
        if (code == GPS_OK)                                                                        \
            *(out) = (__typeof__(*(out)))got;                                                      \
        return code;                                                                               \
    }

/* The rows that every front end's table has. Its functions are of_context, of_device and so on. */
#define GPS_OPERATIONS_OF_ALL(of)                                                                  \
    .context = of##_context, .device = of##_device, .uuid = of##_uuid, .enter = of##_enter,        \
    .leave = of##_leave, .primary = of##_primary, .context_exists = of##_context_exists,           \
    .relax = of##_relax, .synchronize = of##_synchronize, .capturing = of##_capturing,             \
    .stream_wait = of##_stream_wait, .allocate = of##_allocate, .release = of##_release,           \
    .range = of##_range, .home = of##_home, .kind = of##_kind, .device_count = of##_device_count,  \
    .peer = of##_peer, .get_handle = of##_get_handle, .open_flags = of##_open_flags,               \
    .open_handle = of##_open_handle, .open_handle_as = of##_open_handle_as,                        \
    .close_handle = of##_close_handle, .memory = of##_memory

/* Finds the vendor's driver, and returns its operations. NULL: none. Takes the loader's lock. */
typedef const struct gps_operations *gps_attach_fn(void);

/* Set by the thread that begins the process; constant from then on. */
extern const struct gps_operations *gps_operations;

/* The table, to call one of them: which locks may be held is checked. */
#define gps_ops (gps_lock_check(GPS_ACROSS_DRIVER, "a call of the driver"), gps_operations)

/* The driver's code for a call that needs a context; GPS_OK where one is current. */
static inline int gps_context_code(void) {
    uint64_t context = 0;
    const int code = gps_ops->context(&context);
    return code != GPS_OK ? code : context ? GPS_OK : GPS_INVALID_CONTEXT;
}

/* The code where that context was reset, or is lost to an error. Calls for VMM memory need no
 * context, and succeed there. */
static inline int gps_context_state(void) {
    uint64_t available, total;
    return gps_ops->memory(&available, &total);
}

/* The code for a call that needs a context and names memory that does not exist. */
static inline int gps_refusal_code(void) {
    const int code = gps_context_state();
    return code == GPS_OK ? GPS_INVALID_VALUE : code;
}

/* Whether a capture forbids allocations, frees and setting SYNC_MEMOPS, which would spoil it: *code
 * is the driver's code then. A free of a null pointer gets it, too, and does not wait (H200, driver
 * 580, 2026-11-28). Outside of a scope, which relaxes captures. */
static inline bool gps_capture_forbids(int *code) {
    *code = gps_ops->release(0);
    return gps_code_is_of_capture(*code);
}

/* Whether a stream's work goes into a graph, surely or perhaps. The driver refuses to tell that of
 * the legacy stream while it would disturb another stream's capture: then a graph is being made, of
 * which the stream is no part. */
static inline bool gps_stream_is_capturing(uint64_t stream) {
    bool captured = false;
    return gps_ops->capturing(stream, &captured) == GPS_OK && captured;
}
static inline bool gps_stream_may_be_capturing(uint64_t stream) {
    bool captured = true;
    return gps_ops->capturing(stream, &captured) != GPS_OK || captured;
}

/* --- peers.c: the devices by their UUIDs, and the devices whose memory the current one
 * reaches --- */

/* The device's ordinal in this process; -1: this process does not see it. */
int gps_peers_ordinal(const uint8_t uuid[GPS_UUID_BYTES]);

/* 1: its own or a peer's; 0: no; -1: not known, as of a device that this process does not see. */
int gps_peers_reached(const uint8_t uuid[GPS_UUID_BYTES]);
