/*
 * keeper_protocol.h - seals and checks messages of processes and the keeper (gpushare/keeper.h).
 *
 * Pure functions on memory, as in record.h. A check accepts any bytes of a peer and returns NULL or
 * a phrase that says what is wrong; a message that passed is safe to use.
 */
#pragma once

#include "directory/record.h"
#include "gpushare/keeper.h"

/* Fills in magic, version and checksum. The caller has zeroed the struct and set the rest. */
void gps_request_seal(struct gps_keeper_request *request);
void gps_reply_seal(struct gps_keeper_reply *reply);

/* NULL if `bytes` is a valid request: complete, of a known kind, and zero but for the fields of
 * that kind. The record of a valid deposit is valid for any owner (gps_request_record). */
const char *gps_request_check(const void *bytes, size_t size);
const char *gps_reply_check(const void *bytes, size_t size);

/* The sealed record that the keeper publishes for a deposit. */
void gps_request_record(const struct gps_keeper_request *request, const struct gps_owner *keeper,
                        struct gps_region_record *record);
