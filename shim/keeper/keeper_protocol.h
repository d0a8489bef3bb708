/*
 * keeper_protocol.h - seals and checks what processes and the keeper say to each other
 * (gpushare/keeper.h).
 *
 * Pure functions on memory, as in record.h: whatever a peer sent, a check answers NULL or a reason,
 * and what passed is safe to use.
 */
#ifndef GPS_KEEPER_PROTOCOL_H
#define GPS_KEEPER_PROTOCOL_H

#include "directory/record.h"
#include "gpushare/keeper.h"

/* Fills in magic, version and checksum. The caller has zeroed the struct and set the rest. */
void gps_request_seal(struct gps_keeper_request *request);
void gps_reply_seal(struct gps_keeper_reply *reply);

/* NULL when `bytes` is a valid request: whole, of a known kind, with nothing but what that kind
 * names. The record of a deposit is then valid for any owner (gps_request_record). */
const char *gps_request_check(const void *bytes, size_t size);
const char *gps_reply_check(const void *bytes, size_t size);

/* The record of a deposit as its keeper publishes it, sealed. */
void gps_request_record(const struct gps_keeper_request *request, const struct gps_owner *keeper,
                        struct gps_region_record *record);

#endif
