/*
 * region.h - the published directory, byte for byte.
 *
 * gpushare processes tell each other everything through files with fixed layouts:
 *
 *   <root>/<namespace>/procs/<pid ns>.<pid>.<start>.<nonce>   gps_proc_header, then gps_slot[]
 *   <root>/<namespace>/regions/<id as 32 hex digits>          gps_region_record, and perhaps
 *                                                             gps_region_traces
 *   <root>/<namespace>/regions/<id>.taken                     empty; made by the first importer of
 *                                                             a result (state FINAL)
 *   <root>/<namespace>/regions/<id>.frames                    the whole frames of a region
 *                                                             (frames.h)
 *   <root>/<namespace>/freed/<id>                             the record of a freed region, moved
 *                                                             here once its memory is gone; its
 *                                                             status need not say so
 *   <root>/<namespace>/audit/<id>                             the same as regions/, of what is no
 *                                                             region (GPS_BACKING_EVENT, _PLACE);
 *                                                             written by processes in mode = audit
 *   <root>/<namespace>/audit/<id>.taken                       empty; made by the first process that
 *                                                             records the event
 *   <root>/<namespace>/names/<name>                           symlink: "../regions/<id>", or, while
 *                                                             its owner still allocates,
 *                                                             "../procs/<its file>" (a claim)
 *   <root>/<namespace>/keeper                                 the keeper's socket (keeper.h)
 *   <root>/<namespace>/keeper.lock                            locked by the keeper while it lives
 *   <root>/<namespace>/lock                                   empty; a process that removes an
 *                                                             orphaned record or name locks a byte
 *   <root>/<namespace>/exclusions-2                             allocations that an error 700 may
 *                                                             have come from
 *   <root>/<namespace>/unlocked                               a directory, and empty; stays once a
 *                                                             process has a region open whose
 *                                                             record it could not lock
 *   <root>/<namespace>/secret                                 gps_secret: the key of the hashes of
 *                                                             merged blocks; made when first needed
 *
 * The directories also hold temporary files, ".tmp.<the writer's procs/ name>.<16 hex digits>".
 *
 * <root> is /dev/shm/gpushare-<uid> unless GPUSHARE_DIR is set. Every directory has mode 0700 and
 * every file 0600. Each file has one writer, its owner. Readers never map a file: they copy it,
 * check magic, version, size, owner, mode and checksum, and skip an invalid file.
 *
 * All integers are in the byte order of the machine, because a directory in shared memory never
 * leaves it. Sizes and offsets are in bytes, times in nanoseconds of CLOCK_REALTIME. Checksums are
 * XXH3 (64 bits). All structs are plain data: no process dereferences an address of another one.
 */
#ifndef GPUSHARE_REGION_H
#define GPUSHARE_REGION_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define GPS_FORMAT_VERSION 1u
#define GPS_REGION_MAGIC   "GPSREGN"
#define GPS_PROC_MAGIC     "GPSPROC"

#define GPS_ID_BYTES       16u
#define GPS_ID_HEX         (2 * GPS_ID_BYTES + 1) /* with its NUL */
#define GPS_UUID_BYTES     16u
#define GPS_HANDLE_BYTES   64u  /* sizeof(CUipcMemHandle) */
#define GPS_NAME_BYTES     128u /* 1 to 127 of [A-Za-z0-9._-], no leading dot, and a NUL */
#define GPS_COMM_BYTES     32u
#define GPS_ARGUMENT_BYTES 96u
#define GPS_BLOCK_NAME     "block."   /* what the names of merged blocks begin with */
#define GPS_BLOCK_MARK     "GPSBLOCK" /* what their handles begin with; not every one has a name */
#define GPS_PROC_NAME      96u        /* longest file name in procs/, with its NUL */
#define GPS_UNLOCKED       "unlocked"

/* The key of the directory: XXH3's secret for the hashes of merged blocks. It never changes. */
#define GPS_SECRET       "secret"
#define GPS_SECRET_MAGIC "GPSSECR"
#define GPS_SECRET_BYTES 192u
struct gps_secret {
    char magic[8];    /* GPS_SECRET_MAGIC */
    uint32_t version; /* GPS_FORMAT_VERSION */
    uint32_t size;    /* sizeof(struct gps_secret) */
    uint8_t bytes[GPS_SECRET_BYTES];
    uint64_t checksum; /* of the bytes before it */
};

/* The id of a region is the XXH3-128 hash of its handle bytes, in canonical (big-endian) order. So
 * an importer that received a handle through the program's own channel finds the record with one
 * open. */
struct gps_id {
    uint8_t bytes[GPS_ID_BYTES];
};

/* One process image. A pid is reused, and a pid with its start time survives exec; every image
 * therefore draws a nonce of its own. */
struct gps_owner {
    uint64_t pid_ns;              /* inode of /proc/self/ns/pid; 0 where it cannot be read */
    uint64_t start;               /* start time, field 22 of /proc/self/stat, in clock ticks */
    uint64_t nonce;               /* random, never 0 */
    uint32_t pid;                 /* in its own pid namespace */
    uint32_t uid;                 /* effective */
    char command[GPS_COMM_BYTES]; /* the program's name (of its script, its executable, or as
                                     GPUSHARE_PROGRAM says), cut to fit; UTF-8 without control
                                     characters */
};

/* The state of a region, as importers see it. */
enum gps_state {
    GPS_STATE_WRITING = 1, /* ready = free: the exporter still writes; imports by name wait */
    GPS_STATE_READY = 2,   /* open to importers */
    GPS_STATE_FINAL = 3,   /* ready = free: freed by the program, retained for its first importer */
    GPS_STATE_CLOSING = 4, /* freed by the program, still open in importers; no new opens */
    GPS_STATE_FREED = 5,   /* tombstone: the memory is freed or about to be, its handle must not be
                              opened */
    GPS_STATE_OFFLOADED =
        6, /* a merged block: the keeper has its bytes in main memory (keeper.h) */
};

enum gps_backing {
    GPS_BACKING_IPC = 1, /* cudaIpcMemHandle_t of ordinary device memory */
    GPS_BACKING_VMM = 2, /* cuMemCreate: the handle is a token, the keeper has a descriptor */
    GPS_BACKING_RUN = 3, /* the program's own cuMemCreate: the handle is a token, and its owner
                            answers who opens it (token.h). Not valid to versions before it */

    /* In audit/ alone: no memory. Sizes and device are 0. */
    GPS_BACKING_EVENT = 4, /* an event whose handle was given; FREED when it is destroyed */
    GPS_BACKING_PLACE = 5, /* where its owner opens what is another's: the handle begins with the
                              owner's nonce and the number of the place (gps_slot.place), its
                              stack is that of GPS_HISTORY_EXPORTED */
};

/* How long the keeper retains a VMM region. */
enum gps_keep {
    GPS_KEEP_OWNER = 0,   /* while the process that created it lives and has not freed it */
    GPS_KEEP_USERS = 1,   /* while a process has it open */
    GPS_KEEP_FOREVER = 2, /* until it is dropped */
    GPS_KEEP_FOR = 3,     /* until keep_for after its last close */
};

enum gps_region_flag {
    GPS_REGION_READ_ONLY = 1, /* importers map it read-only */
};

/* The part of a record that changes: rewritten in place by one pwrite, valid on its own. */
struct gps_region_status {
    uint32_t state;     /* enum gps_state */
    uint32_t reserved0; /* 0 */
    uint64_t changed;   /* when this state began */
    uint64_t until;     /* FINAL: when the hand-over ends; else 0 */
    uint8_t reserved1[32];
    uint64_t checksum; /* of the bytes before it, seeded with the record's own checksum */
};

struct gps_region_record {
    char magic[8];    /* GPS_REGION_MAGIC */
    uint32_t version; /* GPS_FORMAT_VERSION */
    uint32_t size;    /* sizeof(struct gps_region_record) */
    struct gps_id id;
    uint64_t generation; /* counts the owner's exports, from 1 */
    uint32_t backing;    /* enum gps_backing */
    uint32_t locked;     /* 1: importers lock the record (gps_slot), because there are too many
                            processes for its owner to look at each. Not valid to versions before
                            it, which do not. Else 0 */
    uint64_t requested;  /* bytes that the program asked for */
    uint64_t extent;     /* bytes allocated for it; requested <= extent */
    uint64_t offset;     /* of the region in its block; 0 where it is not known */
    uint64_t created;
    uint8_t device[GPS_UUID_BYTES];
    uint8_t handle[GPS_HANDLE_BYTES];
    struct gps_owner owner;
    char name[GPS_NAME_BYTES]; /* empty: exported by the program itself, without a rule */
    /* VMM only, else 0. The record's owner is then the keeper, whose lease it is. */
    struct gps_owner creator; /* the process that allocated it */
    uint32_t keep;            /* enum gps_keep */
    uint32_t flags;           /* of enum gps_region_flag */
    uint64_t keep_for;
    uint32_t frames;      /* enum gps_frames_mode (frames.h): the buffer is followed by slots for
                             whole frames. Not read by versions before it, which see the buffer */
    uint32_t frame_slots; /* so many; 0 without frames */
    uint64_t checksum;    /* of the bytes before it */
    struct gps_region_status status;
};

/* The history of a region: the stacks of the calls on it, recorded in mode = audit. The owner
 * writes them behind the record, in the same file and page: those of the allocation and the export
 * first, that of the free later. */
enum gps_history_event {
    GPS_HISTORY_ALLOCATED = 0,
    GPS_HISTORY_EXPORTED,
    GPS_HISTORY_FREED,
    GPS_HISTORY_EVENTS
};

#define GPS_TRACE_FRAMES    16u  /* of a stack, innermost first; the rest is not published */
#define GPS_TRACE_MODULES   12u  /* of the three stacks together */
#define GPS_TRACE_NO_MODULE 255u /* code in none of them; its offset is an address */
#define GPS_BUILD_ID_BYTES  20u

struct gps_trace_module {
    char path[104]; /* its end if longer; terminated */
    uint8_t build_id[GPS_BUILD_ID_BYTES];
    uint32_t build_id_bytes; /* 0: it has none */
};

struct gps_region_traces {
    uint32_t count[GPS_HISTORY_EVENTS]; /* frames, by enum gps_history_event */
    uint32_t module_count;
    uint64_t offset[GPS_HISTORY_EVENTS][GPS_TRACE_FRAMES]; /* return address - load address */
    uint8_t module[GPS_HISTORY_EVENTS][GPS_TRACE_FRAMES];
    uint8_t reserved[56];
    struct gps_trace_module modules[GPS_TRACE_MODULES];
    uint64_t checksum; /* of the bytes before it, seeded with the record's own checksum */
};

/* The first bytes of a file in procs/. The process holds an open file description lock on the whole
 * file while it lives; a file without a lock belongs to a dead process. */
struct gps_proc_header {
    char magic[8]; /* GPS_PROC_MAGIC */
    uint32_t version;
    uint32_t size; /* sizeof(struct gps_proc_header) */
    struct gps_owner owner;
    uint64_t created;
    char arguments[GPS_ARGUMENT_BYTES]; /* of the command, cut to fit; terminated */
    uint64_t shm_device, shm_inode;     /* of its /dev/shm, where events live; 0: it has none */
    uint64_t untold; /* 1: it has exported events that audit/ lacks; set before their handles are
                        known */
    uint8_t reserved[40];
    uint64_t checksum; /* of the bytes before it */
};

enum gps_slot_state {
    GPS_SLOT_FREE = 0,   /* all bytes 0 */
    GPS_SLOT_INTENT = 1, /* about to open; the owner of the region must count it as a user */
    GPS_SLOT_OPEN = 2,
    GPS_SLOT_CACHED =
        3, /* open_cache: mapped, whether or not the program has it open just now. Once
              the record is CLOSING the process clears the slot or makes it OPEN */
};

enum gps_slot_via {
    GPS_VIA_PROGRAM = 1, /* the program's own cudaIpcOpenMemHandle */
    GPS_VIA_RULE = 2,    /* a rule turned its cudaMalloc into an import */
    GPS_VIA_EVENT = 3,   /* an event: the id is the hash of its handle, which has no record */
    GPS_VIA_CREATOR = 4, /* VMM: the process that created the region still uses it */
    GPS_VIA_MERGE = 5,   /* a merge rule: a block that is equal in several processes */
    GPS_VIA_OWN = 6,     /* no region: `region` is the UUID of a GPU, `address` how many bytes of
                            what merge rules took there are this process's own; at most a second
                            old */
    GPS_VIA_WAIT_EXPORTER = 7,  /* no region: a struct gps_wait_slot. It waits for an exporter, */
    GPS_VIA_WAIT_IMPORTERS = 8, /* until all importers have closed, */
    GPS_VIA_WAIT_IMPORTER = 9,  /* for the first importer of a result */
    GPS_VIA_NOT_MERGING = 10,   /* no region: a rule merges, but nothing is merged since `since`.
                                `address` is an enum gps_not_merging */
    /* 11: of versions before 0.2, which published memory that was not there yet */
    GPS_VIA_KEEPER = 12,  /* no region; the first slot of a keeper. Its stand-by holds the file's
                             lock, too, so the lock alone says whether they live. `address` is the
                             pid of the one that serves, `since` the pid namespace, `generation`
                             its start time, `reserved` the pid of the stand-by, or 0; `region` is
                             drawn at random by each that replaces another (GPS_KEEPER_REPLACE) */
    GPS_VIA_MADE = 13,    /* no region: `region` is the UUID of a GPU, `address` how many bytes
                             there the program has made by its own cuMemCreate and not given back,
                             give or take a 64th.
                             Not known to versions before it, which pass over the slot */
    GPS_VIA_PRIVATE = 14, /* no region: `region` is the UUID of a GPU, `address` how many of the
                             bytes of GPS_VIA_OWN are there for the reason `generation`, an enum
                             gps_private. Passed over like it by versions before */
    GPS_VIA_DIVIDER = 15, /* no region; in slot GPS_DIVIDER: behind it stand blocks alone, and what
                             is no region. So whoever looks for users of a region that is no block
                             reads no further. It is taken away before other regions come there.
                             Not known to versions before it, which read all */
    GPS_VIA_POOL = 16,    /* no region; in audits. It has imported a pointer of another process's
                             pool: `region` is the hash of a block of GPS_HANDLE_BYTES that has the
                             hash of the pointer's export data, then the exporter's pid, then zeros.
                             Passed over by versions before it */
    GPS_VIA_HELD = 17, /* no region: `region` is the UUID of a GPU, `address` how many bytes there
                          this process has mapped of what others made by cuMemCreate, by tokens
                          (GPS_BACKING_RUN). Passed over like GPS_VIA_MADE by versions before */
    GPS_VIA_WANTED_SIZE = 18, /* no region: `region` is the hash of the name in a rule by which this
                           process exports, and that has taken nothing yet. `address` is the size
                           nearest to the rule's that the program asked for, `generation` how often.
                           Passed over by versions before it */
    GPS_VIA_STEADY = 19, /* no region: `region` is the UUID of a GPU, `address` how many bytes less
                            than the driver says this process was last told to be free there
                            (free = steady). Passed over by versions before it */
};

#define GPS_DIVIDER 127u

/* Why nothing is merged. */
enum gps_not_merging {
    GPS_NOT_MERGING_MEMBARRIER =
        1,                       /* the kernel refuses membarrier(2), for the life of the process */
    GPS_NOT_MERGING_THREAD = 2,  /* the merger's thread could not be started */
    GPS_NOT_MERGING_KEY = 3,     /* the directory, or the key in it, cannot be used */
    GPS_NOT_MERGING_KEEPER = 4,  /* no keeper takes or gives blocks */
    GPS_NOT_MERGING_STREAMS = 5, /* a stream with work could not be noted, for want of memory */
    GPS_NOT_MERGING_CAPTURE = 6, /* graphs are captured all the time */
    GPS_NOT_MERGING_BUSY = 7,    /* the GPU is never idle */
    GPS_NOT_MERGING_RDMA = 8,    /* a device is open by which other hardware reaches GPU memory */
    GPS_NOT_MERGING_CROWDED = 9, /* the kernel passes no more descriptors of this user */
    GPS_NOT_MERGING_DESCRIPTORS = 10, /* this process, or the system, has no descriptor left */
    GPS_NOT_MERGING_FULL = 11,        /* the keeper has no room for another block */
    GPS_NOT_MERGING_PAUSED = 12,      /* `gpushare merge off` */
    GPS_NOT_MERGING_MPS = 13,         /* a fault on this GPU is every client's of MPS */
    GPS_NOT_MERGING_UNKNOWN = 14,     /* it has called a function of the driver that is not known */
    GPS_NOT_MERGING_BYPASSED = 15, /* it has loaded a library that calls the driver past this one */
    GPS_NOT_MERGING_COUNT,
};

/* Why memory that a merge rule took is not merged, or saves nothing: a name for scripts, and what
 * follows a number of bytes. The words of `show`, `explain`, `learn` and the metrics. */
#define GPS_PRIVATE_REASONS(ROW)                                                                   \
    ROW(GPS_PRIVATE_UNFILLED, "unfilled", "copies from the host have not filled it")               \
    ROW(GPS_PRIVATE_WRITTEN, "written", "it was not the same for as long as quiet says")           \
    ROW(GPS_PRIVATE_WAITING, "waiting", "it is merged next, when the GPU is idle for a moment")    \
    ROW(GPS_PRIVATE_NAMED, "named",                                                                \
        "a graph, a write of a stream, a dma-buf, a multicast or SYNC_MEMOPS names it")            \
    ROW(GPS_PRIVATE_EXCLUDED, "excluded",                                                          \
        "an error 700 may have come from it (see: gpushare forget -n)")                            \
    ROW(GPS_PRIVATE_RDMA, "rdma", "a device for RDMA is open, and the rule has not rdma = on")     \
    ROW(GPS_PRIVATE_FREED, "freed", "it is freed, and work may still use it")                      \
    ROW(GPS_PRIVATE_PAUSED, "paused", "merging is switched off (gpushare merge off)")              \
    ROW(GPS_PRIVATE_APART, "apart",                                                                \
        "its bytes differ, or its tensors lie at other distances from a multiple of 2 MiB")

#define GPS_PRIVATE_ID(id, name, why) id,
/* GPS_PRIVATE_APART is not published: it is merged, and no other process has it. */
enum gps_private { GPS_PRIVATE_REASONS(GPS_PRIVATE_ID) GPS_PRIVATE_COUNT };
#undef GPS_PRIVATE_ID

/* One region or event that one process has open. Written before the driver's open and cleared after
 * the last close, or with open_cache after the mapping's end. From the intent until it is cleared
 * the process also holds a shared open file description lock on the whole of a record
 * that asks for it (`locked`), or has made "unlocked" before. So an owner that finds neither need
 * not read slots. */
struct gps_slot {
    struct gps_id region;
    uint64_t address; /* where it lies in the importer; 0 in an intent */
    uint64_t since;
    uint32_t state;      /* enum gps_slot_state */
    uint32_t via;        /* enum gps_slot_via */
    uint64_t generation; /* of the record that was read; 0 in an intent */
    union {
        uint64_t reserved; /* 0, but for a keeper's */
        uint64_t place;    /* in audits: the number of the place of the open, or 0 */
        uint64_t block;    /* of a merged block, from its high bits: 48 of its GPU's UUID, folded; 1
                              if the process made it and another has its memory now; 15 of its size
                              in MiB. 0 by versions before it, which do not read it */
    };
    uint64_t checksum; /* of the bytes before it */
};

/* What one process waits for, in place of a slot; the checksum is made alike. It is published when
 * the wait has lasted a second, and cleared at its end. */
struct gps_wait_slot {
    char name[32];  /* of the region, or 8 digits of its id; its beginning if longer; terminated */
    uint32_t state; /* GPS_SLOT_OPEN */
    uint32_t via;   /* GPS_VIA_WAIT_... */
    uint64_t until; /* at most */
    uint64_t since;
    uint64_t checksum;
};

static_assert(sizeof(struct gps_id) == 16, "layout");
static_assert(sizeof(struct gps_secret) == 216, "layout");
static_assert(sizeof(struct gps_owner) == 64, "layout");
static_assert(offsetof(struct gps_owner, start) == 8, "layout");
static_assert(offsetof(struct gps_owner, nonce) == 16, "layout");
static_assert(offsetof(struct gps_owner, pid) == 24, "layout");
static_assert(offsetof(struct gps_owner, uid) == 28, "layout");
static_assert(offsetof(struct gps_owner, command) == 32, "layout");

static_assert(sizeof(struct gps_region_status) == 64, "layout");
static_assert(offsetof(struct gps_region_status, changed) == 8, "layout");
static_assert(offsetof(struct gps_region_status, until) == 16, "layout");
static_assert(offsetof(struct gps_region_status, checksum) == 56, "layout");

static_assert(sizeof(struct gps_region_record) == 512, "layout");
static_assert(offsetof(struct gps_region_record, version) == 8, "layout");
static_assert(offsetof(struct gps_region_record, size) == 12, "layout");
static_assert(offsetof(struct gps_region_record, id) == 16, "layout");
static_assert(offsetof(struct gps_region_record, generation) == 32, "layout");
static_assert(offsetof(struct gps_region_record, backing) == 40, "layout");
static_assert(offsetof(struct gps_region_record, requested) == 48, "layout");
static_assert(offsetof(struct gps_region_record, extent) == 56, "layout");
static_assert(offsetof(struct gps_region_record, offset) == 64, "layout");
static_assert(offsetof(struct gps_region_record, created) == 72, "layout");
static_assert(offsetof(struct gps_region_record, device) == 80, "layout");
static_assert(offsetof(struct gps_region_record, handle) == 96, "layout");
static_assert(offsetof(struct gps_region_record, owner) == 160, "layout");
static_assert(offsetof(struct gps_region_record, name) == 224, "layout");
static_assert(offsetof(struct gps_region_record, creator) == 352, "layout");
static_assert(offsetof(struct gps_region_record, keep) == 416, "layout");
static_assert(offsetof(struct gps_region_record, keep_for) == 424, "layout");
static_assert(offsetof(struct gps_region_record, checksum) == 440, "layout");
static_assert(offsetof(struct gps_region_record, status) == 448, "layout");

static_assert(sizeof(struct gps_trace_module) == 128, "layout");
static_assert(offsetof(struct gps_trace_module, build_id) == 104, "layout");
static_assert(offsetof(struct gps_trace_module, build_id_bytes) == 124, "layout");
static_assert(sizeof(struct gps_region_traces) == 2048, "layout");
static_assert(offsetof(struct gps_region_traces, module_count) == 12, "layout");
static_assert(offsetof(struct gps_region_traces, offset) == 16, "layout");
static_assert(offsetof(struct gps_region_traces, module) == 400, "layout");
static_assert(offsetof(struct gps_region_traces, modules) == 504, "layout");
static_assert(offsetof(struct gps_region_traces, checksum) == 2040, "layout");

static_assert(sizeof(struct gps_proc_header) == 256, "layout");
static_assert(offsetof(struct gps_proc_header, owner) == 16, "layout");
static_assert(offsetof(struct gps_proc_header, created) == 80, "layout");
static_assert(offsetof(struct gps_proc_header, arguments) == 88, "layout");
static_assert(offsetof(struct gps_proc_header, checksum) == 248, "layout");

static_assert(sizeof(struct gps_slot) == 64, "layout");
static_assert(offsetof(struct gps_slot, address) == 16, "layout");
static_assert(offsetof(struct gps_slot, since) == 24, "layout");
static_assert(offsetof(struct gps_slot, state) == 32, "layout");
static_assert(offsetof(struct gps_slot, via) == 36, "layout");
static_assert(offsetof(struct gps_slot, checksum) == 56, "layout");

static_assert(sizeof(struct gps_wait_slot) == sizeof(struct gps_slot), "layout");
static_assert(offsetof(struct gps_wait_slot, state) == offsetof(struct gps_slot, state), "layout");
static_assert(offsetof(struct gps_wait_slot, via) == offsetof(struct gps_slot, via), "layout");
static_assert(offsetof(struct gps_wait_slot, until) == 40, "layout");
static_assert(offsetof(struct gps_wait_slot, checksum) == 56, "layout");

#endif
