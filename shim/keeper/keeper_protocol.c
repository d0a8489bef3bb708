#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

#include "keeper_protocol.h"

/* The checksum is the last field of both: it covers all bytes before it. */
#define SUM(object) XXH3_64bits((object), sizeof(*(object)) - sizeof(uint64_t))

void gps_request_seal(struct gps_keeper_request *request) {
    memcpy(request->magic, GPS_KEEPER_MAGIC, sizeof(request->magic));
    request->version = GPS_FORMAT_VERSION;
    request->checksum = SUM(request);
}

void gps_reply_seal(struct gps_keeper_reply *reply) {
    memcpy(reply->magic, GPS_KEEPER_MAGIC, sizeof(reply->magic));
    reply->version = GPS_FORMAT_VERSION;
    reply->checksum = SUM(reply);
}

static const char *message_check_frame(const char *magic, uint32_t version, bool sum_matches) {
    if (memcmp(magic, GPS_KEEPER_MAGIC, sizeof(GPS_KEEPER_MAGIC)) != 0)
        return "magic does not match";
    if (version != GPS_FORMAT_VERSION)
        return "version is not supported";
    return sum_matches ? NULL : "checksum does not match";
}

void gps_request_record(const struct gps_keeper_request *request, const struct gps_owner *keeper,
                        struct gps_region_record *record) {
    *record = request->record;
    record->owner = *keeper;
    gps_record_seal(record);
}

/* The keeper replaces the owner, so its checksums do not count; that of the request does. */
static const char *check_deposit(const struct gps_keeper_request *request) {
    if (request->record.backing != GPS_BACKING_VMM)
        return "backing is not VMM";
    struct gps_region_record record;
    gps_request_record(request, &request->record.creator, &record);
    return gps_record_check(&record, sizeof(record));
}

/* The record is zero but for these fields. */
static const char *check_only(const struct gps_region_record *record,
                              const struct gps_region_record *named) {
    return memcmp(record, named, sizeof(*record)) == 0 ? NULL : "a field is set that must be zero";
}

static const char *check_drop(const struct gps_region_record *record) {
    struct gps_region_record named = {.id = record->id};
    if (!memchr(record->name, '\0', sizeof(record->name)))
        return "name is not terminated";
    if (record->name[0] == '\0')
        return check_only(record, &named);
    if (!gps_name_valid(record->name))
        return "name is not valid";
    memset(&named, 0, sizeof(named));
    memcpy(named.name, record->name, strlen(record->name));
    return check_only(record, &named);
}

static const char *check_named(const struct gps_keeper_request *request) {
    const struct gps_region_record named = {.id = request->record.id}, nothing = {0};
    const struct gps_region_record numbered = {.id = request->record.id,
                                               .generation = request->record.generation,
                                               .requested = request->record.requested,
                                               .extent = request->record.extent};
    const struct gps_region_record limited = {.id = request->record.id,
                                              .extent = request->record.extent};
    switch (request->ask) {
    case GPS_KEEPER_DEPOSIT:
        return check_deposit(request);
    case GPS_KEEPER_GET:
    case GPS_KEEPER_RELEASED:
    case GPS_KEEPER_OFFLOAD:
        return check_only(&request->record, &named);
    case GPS_KEEPER_RELOAD:
        return check_only(&request->record, &limited);
    case GPS_KEEPER_DROP:
        return check_drop(&request->record);
    case GPS_KEEPER_REPLACE:
        return check_only(&request->record, &numbered);
    case GPS_KEEPER_PING:
    case GPS_KEEPER_RECLAIM:
        return check_only(&request->record, &nothing);
    default:
        return "the request is of an unknown kind";
    }
}

const char *gps_request_check(const void *bytes, size_t size) {
    struct gps_keeper_request request;
    if (size != sizeof(request))
        return "size does not match";
    memcpy(&request, bytes, sizeof(request));
    const char *why =
        message_check_frame(request.magic, request.version, request.checksum == SUM(&request));
    if (!why)
        why = gps_owner_check(&request.sender);
    return why ? why : check_named(&request);
}

const char *gps_reply_check(const void *bytes, size_t size) {
    struct gps_keeper_reply reply;
    if (size != sizeof(reply))
        return "size does not match";
    memcpy(&reply, bytes, sizeof(reply));
    const char *why =
        message_check_frame(reply.magic, reply.version, reply.checksum == SUM(&reply));
    if (!why && reply.status > 0)
        why = "status is not an error";
    return why ? why : gps_owner_check(&reply.keeper);
}
