/*
 * record.h - seals, checks and names what stands in the published directory.
 *
 * Pure functions on memory: no I/O, no allocation, no lock, safe from any thread. The layouts are
 * in gpushare/region.h. A check answers NULL or a reason; every byte that passed is then safe to
 * use (names are valid and terminated, commands printable ASCII, enums in range, requested <=
 * extent).
 */
#ifndef GPS_RECORD_H
#define GPS_RECORD_H

#include <stdbool.h>

#include "gpushare/region.h"

/* Fills in magic, version, size and checksums. The caller has zeroed the struct and set the rest.
 */
void gps_record_seal(struct gps_region_record *record);
void gps_record_seal_status(const struct gps_region_record *record,
                            struct gps_region_status *status);
void gps_record_seal_traces(const struct gps_region_record *record,
                            struct gps_region_traces *traces);
void gps_proc_seal(struct gps_proc_header *header);
void gps_slot_seal(struct gps_slot *slot);

/* NULL when `bytes` (of `size` bytes: the file's, with traces or without) is a valid record; else
 * what is wrong with it, a phrase for reports ("checksum does not match"). A valid record's id is
 * the hash of its handle. */
const char *gps_record_check(const void *bytes, size_t size);
/* The same without the status, which can be torn while its owner rewrites it. */
const char *gps_record_check_fixed(const void *bytes, size_t size);
/* The traces that follow this (valid) record: every index and string in them is in bounds. */
const char *gps_record_check_traces(const struct gps_region_record *record,
                                    const struct gps_region_traces *traces);
/* A record of another version of gpushare: neither good nor bad, and not ours to remove. */
bool gps_record_foreign(const void *bytes, size_t size);

/* `size` may be that of the whole file: slots follow the header. */
const char *gps_proc_check(const void *bytes, size_t size);

/* Whether a slot is in use and intact. A torn or foreign one is not: it counts as free. */
bool gps_slot_valid(const struct gps_slot *slot);

struct gps_id gps_id_of_handle(const uint8_t handle[GPS_HANDLE_BYTES]);
bool gps_id_equal(const struct gps_id *a, const struct gps_id *b);
void gps_id_format(const struct gps_id *id, char text[GPS_ID_HEX]);
/* Parses exactly 32 lower-case hex digits; false otherwise. */
bool gps_id_parse(const char *text, struct gps_id *id);

/* 1 to 127 of [A-Za-z0-9._-], no leading dot. */
bool gps_name_valid(const char *name);

/* "<pid ns>.<pid>.<start>.<nonce, 16 hex digits>": the name of a process's file, and back. Parsing
 * fills pid_ns, pid, start and nonce, and zeroes the rest; false when it is not such a name. */
void gps_owner_format(const struct gps_owner *owner, char text[GPS_PROC_NAME]);
bool gps_owner_parse(const char *text, struct gps_owner *owner);
/* The same process image: pid_ns, pid, start and nonce agree. */
bool gps_owner_equal(const struct gps_owner *a, const struct gps_owner *b);
/* NULL when it can be a process, and its command is fit for a terminal; else what is wrong. */
const char *gps_owner_check(const struct gps_owner *owner);

/* The process whose allocation it is: the record's owner, but for VMM, where that is the keeper. */
const struct gps_owner *gps_record_creator(const struct gps_region_record *record);

/* Its owner has freed it: no new opens. */
bool gps_record_over(const struct gps_region_record *record);

/* "exporting", "ready", ... : what `ls` and reports call a state. */
const char *gps_state_name(uint32_t state);

#endif
