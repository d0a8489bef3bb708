/*
 * token.h - what a process says to those that open its tokens, byte for byte.
 *
 * With `vmm_ipc = on` cudaIpcGetMemHandle of memory that the program made by cuMemCreate answers a
 * token. Its record in regions/ has GPS_BACKING_RUN, and its owner answers on a socket of its own:
 *
 *   <root>/<namespace>/.tmp.<the owner's procs/ name>.0000000000000000   SOCK_SEQPACKET
 *
 * It has the name of a temporary file, so what removes those of dead processes removes it, too.
 * Each request gets one reply. A request names a token and an address of its run; the reply lists
 * the blocks from there on, and carries the descriptors of those that the request wants, in the
 * order of the list. The token pins nothing: a descriptor is made for a reply, and closed when it
 * is sent.
 *
 * All addresses are the owner's. Both ends check that the other runs as their own user.
 */
#ifndef GPUSHARE_TOKEN_H
#define GPUSHARE_TOKEN_H

#include "gpushare/region.h"

#define GPS_TOKEN_SOCKET ".0000000000000000" /* behind ".tmp." and the owner */
#define GPS_TOKEN_MAGIC  "GPSTOKN"
#define GPS_TOKEN_BLOCKS 64u /* of one reply, and descriptors that are on their way at a time */

/* The 64 bytes of a token, in place of a handle of the driver's; those of regions that the keeper
 * has are made alike. It names its maker, so that it can be told by the token alone, when its
 * record is gone, whether that process has freed the memory or has ended. Where a handle of the
 * driver's has the exporter's pid, it has zeros, nobody's pid. gpushare 0.2.0 filled what follows
 * them with random bytes, without a checksum. */
struct gps_token_handle {
    char magic[16];    /* GPS_TOKEN_HANDLE */
    uint64_t checksum; /* of the bytes after it */
    uint32_t serial;   /* counts the tokens of the maker */
    uint32_t pid;      /* the maker's, as in its struct gps_owner */
    uint64_t nonce, start, pid_ns;
    uint64_t directory; /* of <root>/<namespace>: its inode, and its device in the upper 16 bits */
};
#define GPS_TOKEN_HANDLE "GPSTOKEN"

struct gps_token_request {
    char magic[8];    /* GPS_TOKEN_MAGIC */
    uint32_t version; /* GPS_FORMAT_VERSION */
    uint32_t reserved;
    struct gps_id id;
    uint64_t from;   /* where a block of the run begins; 0: the first */
    uint64_t wanted; /* whose descriptors: bit n is the n-th block from there on */
};

struct gps_token_block {
    uint64_t at, size;
    uint64_t serial; /* of the memory: it never has another one's, also at the same address */
};

struct gps_token_reply {
    char magic[8]; /* GPS_TOKEN_MAGIC */
    uint32_t version;
    int32_t status; /* 0 or -errno. -ESTALE: the run has changed. -EAGAIN: ask again. -EBUSY: it is
                       suspended */
    struct gps_id id;
    uint64_t place, place_size; /* the addresses that the owner has reserved around the run */
    uint64_t run, run_size;
    uint32_t count, reserved;
    struct gps_token_block blocks[GPS_TOKEN_BLOCKS];
};

static_assert(sizeof(struct gps_token_handle) == GPS_HANDLE_BYTES, "layout");
static_assert(sizeof(struct gps_token_request) == 48, "layout");
static_assert(offsetof(struct gps_token_reply, blocks) == 72, "layout");

#endif
