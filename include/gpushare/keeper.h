/*
 * keeper.h - the protocol between processes and the keeper, byte for byte.
 *
 * The keeper is a process without a CUDA context. It holds the descriptors of VMM regions
 * (GPS_BACKING_VMM), owns their records in the published directory, and hands the descriptors out.
 * It listens on <root>/<namespace>/keeper, a Unix socket of type SOCK_SEQPACKET. A connection
 * carries one request and one reply; a deposit, an offload that says so, and the reply to a get or
 * a reload carry one descriptor (SCM_RIGHTS). The peer must run as the keeper's user (SO_PEERCRED).
 * The keeper closes a connection that sends an invalid request, or nothing for GPS_KEEPER_TIMEOUT
 * nanoseconds.
 *
 * The keeper holds an OFD lock on <root>/<namespace>/keeper.lock while it lives, so there is at
 * most one. A stand-by shares its table of descriptors, and serves when it is killed, under the
 * same name: that of the records' owner, whose file in procs/ it keeps locked (GPS_VIA_KEEPER). A
 * connection that was open ends without a reply then, and the client asks again.
 *
 * When both have died, mappings stay valid. The next keeper adopts the records of regions that live
 * processes have open, according to their slots in procs/, and removes the other records. It
 * answers -EAGAIN to requests for an adopted region until its creator has deposited the descriptor
 * again, and -ENOENT where that does not come: of a block (GPS_BLOCK_MARK) after 2 seconds, of
 * other memory when its creator is gone. Another process may deposit a block of the same bytes.
 *
 * Integers and times are as in region.h.
 */
#ifndef GPUSHARE_KEEPER_H
#define GPUSHARE_KEEPER_H

#include "gpushare/region.h"

#define GPS_KEEPER_SOCKET    "keeper"
#define GPS_KEEPER_LOCK      "keeper.lock"
#define GPS_KEEPER_MAGIC     "GPSKEEP"
#define GPS_KEEPER_TIMEOUT   (UINT64_C(2) * 1000000000)
#define GPS_KEEPER_HANDSHAKE (UINT64_C(150) * 1000000) /* less than clients wait for a reply */

enum gps_keeper_ask {
    /* Carries a descriptor. The keeper publishes the record with itself as the owner; the owner
     * field of the request is ignored. An adopted region of this id gets its descriptor back. If
     * the record has a name, the creator has claimed it before, and the keeper points it at the
     * region. 0; -EEXIST: the keeper has the region already; or an error of gps_region_publish. */
    GPS_KEEPER_DEPOSIT = 1,
    /* Names record.id. 0 with a descriptor; -ENOENT; -EAGAIN: not deposited again yet; -ENODATA: it
     * was offloaded. The sender has published an intent slot before. One whose slot says that it
     * has the region open gets it also after it was dropped, or its owner has ended. */
    GPS_KEEPER_GET = 2,
    /* Names record.id: the sender has closed the region and cleared its slot. The keeper checks at
     * once whether the region has expired. 0; -ENOENT. */
    GPS_KEEPER_RELEASED = 4,
    /* Names record.name, or record.id if the name is empty: the keeper drops the region, even if
     * processes have it open. It cannot be opened any more; mappings stay valid. 0; -ENOENT. */
    GPS_KEEPER_DROP = 5,
    /* Names nothing. 0; the reply names the process that serves. */
    GPS_KEEPER_PING = 6,
    /* The sender wants to be the keeper in this one's place. Names record.id, which it has drawn at
     * random, record.generation, a number of deposits, record.extent, a number of regions whose
     * descriptors it could not get, and record.requested, a number of blocks that were offloaded,
     * whose bytes it has. -EAGAIN: the number of deposits was another, which the reply tells as
     * `regions`, or the keeper has some of those descriptors, or more of those bytes: a keeper of a
     * version before 0.3 asks for none. Then the sender gets all
     * regions whose records name the keeper, and asks again. 0: three replies carry the listener,
     * the lock of keeper.lock and that of the keeper's file in procs/. The sender answers with one
     * byte within GPS_KEEPER_HANDSHAKE nanoseconds, and waits until the first slot of that file has
     * its record.id: then it serves, under the name of this keeper. If the connection ends without
     * that, it asks again. */
    GPS_KEEPER_REPLACE = 7,
    /* Names nothing. An allocation of the sender's found no memory: the keeper drops the blocks
     * (GPS_BLOCK_MARK) that nobody has open and that are not kept for ever. 0; -ENOENT: it has none
     * of those. A keeper of a version before 0.2 ends the connection. */
    GPS_KEEPER_RECLAIM = 8,
    /* Names record.id, a block (GPS_BLOCK_MARK) that only suspended processes have, and the sender,
     * which is about to be: the keeper closes its descriptor, so that the memory leaves the GPU
     * with the last mapping. The request carries the bytes: a memfd of the block's size, sealed
     * against any change. Without one: 0 where the keeper has them from before, or -ENODATA. Else
     * 0; -ENOENT; -EINVAL: no such memfd; -EMFILE: the keeper has no room for it. The keeper has
     * the bytes until the block is deposited, by anybody, and then as long as it may. */
    GPS_KEEPER_OFFLOAD = 9,
    /* Names record.id, a block that was offloaded, and record.extent, how many bytes of blocks that
     * are on the GPU again the keeper may keep in main memory; UINT64_MAX: a quarter of what is
     * left there. 0 with the memfd: the sender deposits the block within GPS_KEEPER_TIMEOUT, or
     * another one is asked to. -EAGAIN: another one is. -ENODATA: it is on the GPU. -ENOENT. */
    GPS_KEEPER_RELOAD = 10,
};

struct gps_keeper_request {
    char magic[8]; /* GPS_KEEPER_MAGIC */
    uint32_t version;
    uint32_t ask; /* enum gps_keeper_ask */
    struct gps_owner sender;
    struct gps_region_record record; /* zero but for the fields that the request names */
    uint64_t checksum;               /* of the bytes before it */
};

struct gps_keeper_reply {
    char magic[8];
    uint32_t version;
    int32_t status;          /* 0 or -errno */
    struct gps_owner keeper; /* the process that serves; to GPS_KEEPER_REPLACE the records' owner */
    uint64_t regions;        /* how many the keeper holds */
    uint64_t checksum;
};

static_assert(sizeof(struct gps_keeper_request) == 600, "layout");
static_assert(sizeof(struct gps_keeper_reply) == 96, "layout");

#endif
