/*
 * What libcuda.so.1 of the simulator and gpusimd say to each other.
 *
 * A client sends one request and waits for one reply, each a single SOCK_SEQPACKET message of a
 * fixed size. All fields are fixed-width and little-endian, with no padding, so that a client of
 * another architecture (qemu-user) understands a native daemon. The first request is HELLO; its
 * reply carries the descriptors: the shared event page, then one memory file a device. See
 * message.h for how.
 */
#pragma once

#include "../common/system_headers.h"

#include <sys/un.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the simulator's messages are little-endian"
#endif

enum {
    SIM_PROTOCOL = 4,
    SIM_MAX_DEVICES = 16,
    SIM_MAX_EVENTS = 65536,
    SIM_MAX_CLIENTS = 4096,
    /* The unit in which device memory is handed out, as on the H200. */
    SIM_BLOCK_SHIFT = 21,
};

#define SIM_BLOCK ((uint64_t)1 << SIM_BLOCK_SHIFT)

enum sim_op {
    SIM_HELLO = 1,    /* a: SIM_PROTOCOL -> a: client id, b: devices, c: bytes a device */
    SIM_ALLOC,        /* device, a: size, b: address -> a: block, b: offset, c: size */
    SIM_FREE,         /* a: block */
    SIM_EXPORT,       /* a: block: its handle may be opened from now on */
    SIM_OPEN,         /* a: client id, b: address -> device, a: block, b: offset, c: size */
    SIM_CLOSE,        /* a: block: one hold of it less; b: of an import */
    SIM_CREATE,       /* device, a: size -> as ALLOC: a block that no handle names */
    SIM_SHARE,        /* a: block -> with a descriptor that holds it, see daemon/descriptor.h */
    SIM_IMPORT,       /* with such a descriptor -> device, a: block, b: offset, c: size */
    SIM_MEMINFO,      /* device -> a: free, b: total */
    SIM_EVENT_CREATE, /* -> a: slot */
    SIM_EVENT_OPEN,   /* a: client id, b: slot */
    SIM_ATTACH,       /* a: block, whoever holds it -> as OPEN */
    SIM_STATS,        /* -> a: clients, b: blocks, c: bytes in use, d: event slots in use */
    SIM_PROCESS,      /* a: pid, b: enum sim_process -> a: its CUprocessState, b: bytes on cards */
    SIM_MOVED,        /* a: block -> as ALLOC: the copy that a checkpoint put in its place */
};

/* What may be asked of a process (cuCheckpointProcess*). */
enum sim_process {
    SIM_PROCESS_STATE,
    SIM_PROCESS_LOCK,
    SIM_PROCESS_CHECKPOINT,
    SIM_PROCESS_RESTORE,
    SIM_PROCESS_UNLOCK,
};

struct sim_request {
    uint32_t op;
    uint32_t device;
    uint64_t a, b, c, d;
};

/* `code` is a CUresult. */
struct sim_reply {
    uint32_t code;
    uint32_t device;
    uint64_t a, b, c, d;
};

_Static_assert(sizeof(struct sim_request) == 40, "no padding");
_Static_assert(sizeof(struct sim_reply) == 40, "no padding");

/*
 * One interprocess event, in a page that all processes share. `recorded` counts the records,
 * `completed` is the newest record that the stream has reached; waiters sleep on `completed`.
 */
struct sim_event {
    uint32_t recorded;
    uint32_t completed;
};

/*
 * The same page has a word for each client, by its id: SIM_LOCKED while the process is locked, and
 * above it how many checkpoints have put copies in the place of blocks. And it has a word for each
 * card: how many faults its clients of MPS had.
 */
#define SIM_LOCKED 1u

struct sim_page {
    struct sim_event events[SIM_MAX_EVENTS];
    uint32_t locks[SIM_MAX_CLIENTS];
    uint32_t faults[SIM_MAX_DEVICES];
};

/*
 * The socket's abstract name: one daemon a user and $GPUSHARE_SIM_ROOT. A root that begins with
 * '@' stands alone, for processes whose user namespace shows them another uid.
 */
static inline socklen_t sim_address(struct sockaddr_un *address) {
    const char *root = getenv("GPUSHARE_SIM_ROOT");
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    if (!root || !*root)
        root = "default";
    char *name = address->sun_path + 1;
    size_t room = sizeof address->sun_path - 1;
    size_t used = strlen(root);
    if (used > room - 40) {
        /* Too long for a socket's name: its end tells roots apart better than its beginning. */
        root += used - (room - 40);
    }
    if (*root == '@')
        snprintf(name, room, "gpushare-sim-%s", root + 1);
    else
        snprintf(name, room, "gpushare-sim-%u-%s", (unsigned)geteuid(), root);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}
