/*
 * keeper.h - what processes say to the keeper, byte for byte.
 *
 * The keeper is a process without a CUDA context that holds the descriptors of VMM regions
 * (GPS_BACKING_VMM), owns their records in the published directory, and hands the descriptors out.
 * It listens on <root>/<namespace>/keeper, a Unix socket of type SOCK_SEQPACKET: a connection is
 * one request and one reply, and a descriptor travels beside either as SCM_RIGHTS, exactly one.
 * Peers must be of the keeper's user (SO_PEERCRED). Anything else than a whole, valid request is
 * answered by closing the connection; who says nothing for GPS_KEEPER_PATIENCE is disconnected,
 * too.
 *
 * The keeper holds an OFD lock on <root>/<namespace>/keeper.lock while it lives: there is one. When
 * it dies, mappings go on. The next one adopts the records of its predecessor whose regions live
 * processes hold (their slots in procs/ say so), answers -EAGAIN to whoever asks for one of them,
 * and waits for a holder to deposit its descriptor again; records that nobody holds it removes.
 *
 * Integers and times as in region.h.
 */
#ifndef GPUSHARE_KEEPER_H
#define GPUSHARE_KEEPER_H

#include "gpushare/region.h"

#define GPS_KEEPER_SOCKET   "keeper"
#define GPS_KEEPER_LOCK     "keeper.lock"
#define GPS_KEEPER_MAGIC    "GPSKEEP"
#define GPS_KEEPER_PATIENCE (UINT64_C(2) * 1000000000)

enum gps_keeper_ask {
    /* With a descriptor. The record (name or not, creator, keep, flags, state; owner ignored) is
     * published with the keeper as its owner; one of this id that waits for its descriptor is
     * completed by it. 0; -EEXIST: it has it already (which is as good); -ENOSPC and what else
     * gps_region_publish says. The name, if any, is claimed by the creator before; the keeper
     * points it at the region. */
    GPS_KEEPER_DEPOSIT = 1,
    /* record.id. 0 with a descriptor; -ENOENT; -EAGAIN: not deposited again yet. The asker has
     * published its intent slot before. */
    GPS_KEEPER_GET = 2,
    /* record.id, record.status.state and .written, from its creator: becomes its status. 0;
     * -ENOENT; -EPERM: the sender is not its creator. */
    GPS_KEEPER_STATE = 3,
    /* record.id: the sender has let go of it (its slot is cleared); the keeper looks at once
     * whether it is still to be kept, rather than when it happens to look. 0; -ENOENT. */
    GPS_KEEPER_RELEASED = 4,
    /* record.name, or record.id where the name is empty: kept no longer, whoever holds it. No new
     * opens; mappings go on. 0; -ENOENT. */
    GPS_KEEPER_DROP = 5,
    /* Nothing: 0, and who the keeper is. */
    GPS_KEEPER_PING = 6,
};

struct gps_keeper_request {
    char magic[8]; /* GPS_KEEPER_MAGIC */
    uint32_t version;
    uint32_t ask; /* enum gps_keeper_ask */
    struct gps_owner sender;
    struct gps_region_record record; /* zero but for what the request names */
    uint64_t checksum;               /* of the bytes before it */
};

struct gps_keeper_reply {
    char magic[8];
    uint32_t version;
    int32_t status; /* 0 or -errno */
    struct gps_owner keeper;
    uint64_t regions; /* that it keeps */
    uint64_t checksum;
};

static_assert(sizeof(struct gps_keeper_request) == 600, "layout");
static_assert(sizeof(struct gps_keeper_reply) == 96, "layout");

#endif
