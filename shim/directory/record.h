/*
 * record.h - seals, checks and formats the structs of the published directory.
 *
 * Pure functions on memory: no I/O, no allocation, no lock, safe from any thread. The layouts are
 * in gpushare/region.h. A check returns NULL or a phrase that says what is wrong. All bytes of a
 * struct that passed its check are safe to use: names are valid and terminated, commands are
 * harmless to a terminal, enums are in range, and requested <= extent.
 */
#pragma once

#include <stdbool.h>

#include "gpushare/frames.h"
#include "gpushare/region.h"

/* Fills in magic, version, size and checksums. The caller has zeroed it and set the rest. */
void gps_record_seal(struct gps_region_record *record);
void gps_record_seal_status(const struct gps_region_record *record,
                            struct gps_region_status *status);
void gps_record_seal_traces(const struct gps_region_record *record,
                            struct gps_region_traces *traces);
void gps_proc_seal(struct gps_proc_header *header);
void gps_slot_seal(struct gps_slot *slot);

/* Checks a record. `size` is the size of its file in bytes, with or without traces; a record of
 * another size is not read. The id of a valid record is the hash of its handle. */
const char *gps_record_check(const struct gps_region_record *record, size_t size);
/* The same without the status, which can be torn while its owner rewrites it. */
const char *gps_record_check_fixed(const struct gps_region_record *record, size_t size);
/* Checks the traces behind this valid record: every index and string of valid ones is in bounds. */
const char *gps_record_check_traces(const struct gps_region_record *record,
                                    const struct gps_region_traces *traces);
/* Whether this is a record of another version of gpushare, which cannot be judged or removed. */
bool gps_record_foreign(const struct gps_region_record *record, size_t size);

/* Checks the header of a process's file. `size` may be the size of the file, slots included. */
const char *gps_proc_check(const void *bytes, size_t size);

/* Whether a slot is in use, intact and of a kind that this version knows. */
bool gps_slot_valid(const struct gps_slot *slot);
/* Whether the slot is neither intact nor free: it is being written at this moment, or damaged. */
bool gps_slot_torn(const struct gps_slot *slot);
/* Whether the slot stands for a region, and not for an event, a number or a wait. */
static inline bool gps_slot_has_region(const struct gps_slot *slot) {
    return slot->via != GPS_VIA_EVENT && slot->via != GPS_VIA_OWN &&
           slot->via < GPS_VIA_WAIT_EXPORTER;
}
/* The structs of regions/<id>.frames (gpushare/frames.h). A head that is valid has a mode and 1 to
 * GPS_FRAMES_SLOTS_MAX slots; a reader reads one of that many, or none, and has an owner that can
 * be a process, or none. A struct of zeros is valid, but not a head. */
void gps_frames_head_seal(struct gps_frames_head *head);
void gps_frames_writer_seal(struct gps_frames_writer *writer);
void gps_frames_slot_seal(struct gps_frames_slot *slot);
void gps_frames_reader_seal(struct gps_frames_reader *reader);
bool gps_frames_head_valid(const struct gps_frames_head *head);
bool gps_frames_writer_valid(const struct gps_frames_writer *writer);
bool gps_frames_slot_valid(const struct gps_frames_slot *slot);
bool gps_frames_reader_valid(const struct gps_frames_reader *reader);
/* Whether a valid slot stands for a wait, which is then copied to *wait. */
bool gps_slot_wait(const struct gps_slot *slot, struct gps_wait_slot *wait);
/* Why nothing is merged, of enum gps_not_merging. */
const char *gps_not_merging_why(uint64_t why);
/* Why memory of a merge rule is not merged: for scripts, and in words. */
const char *gps_private_name(enum gps_private why);
const char *gps_private_why(enum gps_private why);
/* The process that a wait is for: "an exporter of ", "the importers of ", "an importer of ". */
const char *gps_wait_whom(uint32_t via);

struct gps_id gps_id_of_handle(const uint8_t handle[GPS_HANDLE_BYTES]);
/* The id of a name in a rule (GPS_VIA_WANTED_SIZE). */
struct gps_id gps_id_of_name(const char *name);
/* The id of a pool's pointer (GPS_VIA_POOL). */
struct gps_id gps_id_of_pointer(const uint8_t exported[GPS_HANDLE_BYTES], uint32_t exporter);
bool gps_id_equal(const struct gps_id *a, const struct gps_id *b);
void gps_id_format(const struct gps_id *id, char text[GPS_ID_HEX]);
/* Parses exactly 32 lower-case hex digits; false otherwise. */
bool gps_id_parse(const char *text, struct gps_id *id);

/* 1 to 127 of [A-Za-z0-9._-], no leading dot. */
bool gps_name_valid(const char *name);

/* "<pid ns>.<pid>.<start>.<nonce, 16 hex digits>": the name of a process's file. The parser fills
 * in pid_ns, pid, start and nonce and zeroes the rest; false: it is no such name. */
void gps_owner_format(const struct gps_owner *owner, char text[GPS_PROC_NAME]);
bool gps_owner_parse(const char *text, struct gps_owner *owner);
/* Whether both are the same process image: pid_ns, pid, start and nonce agree. */
bool gps_owner_equal(const struct gps_owner *a, const struct gps_owner *b);
/* Checks that the owner can be a process and that its command is printable. */
const char *gps_owner_check(const struct gps_owner *owner);

/* The process that created the allocation: the record's owner, but for a VMM region its creator,
 * because there the owner is the keeper. */
const struct gps_owner *gps_record_creator(const struct gps_region_record *record);

/* Whether the owner has freed the region, which then cannot be opened any more. */
bool gps_record_over(const struct gps_region_record *record);

/* The name of a state in listings and reports: "exporting", "ready", ... */
const char *gps_state_name(uint32_t state);
