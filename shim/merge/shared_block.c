#include "shared_block.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "block.h"
#include "directory/name.h"
#include "directory/record.h"
#include "directory/region.h"
#include "directory/secret.h"
#include "findings/reporter.h"
#include "keeper/keeper_client.h"
#include "log/event_log.h"
#include "process/membership.h"
#include "process/process.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "util/text.h"
#include "vmm/vmm_region.h"

/* A new keeper gets the blocks within a second; no call waits for that. */
#define GET_WAIT (GPS_SECOND / 10)
static _Atomic uint64_t
    again; /* until then no block is asked for, since the keeper did not answer */
GPS_FORGOTTEN(again);
#define REFUSED_FOR (2 * GPS_SECOND) /* it is tried again every second */
static _Atomic uint64_t refused;     /* when a block could not be offered or had */
GPS_FORGOTTEN(refused);
static _Atomic unsigned refusal; /* an enum gps_not_merging; 0: the last block could */
GPS_FORGOTTEN(refusal);
static _Atomic uint64_t changes;
GPS_FORGOTTEN(changes);

uint64_t gps_shared_changes(void) {
    return atomic_load(&changes);
}

/* --- the key of the directory --- */

static struct {
    _Atomic int phase;      /* KEYLESS, one thread is GETTING it, KEYED */
    _Atomic uint64_t again; /* no try before this */
    _Atomic bool told;
    _Atomic bool failed; /* the last try has */
} key_state;
GPS_FORGOTTEN(key_state);
enum { KEYLESS, GETTING, KEYED };

static void shared_key_tell_unusable(int status, const char *why) {
    if (atomic_exchange(&key_state.told, true))
        return;
    if (status != -EBADMSG) {
        gps_report_store(status, "the secret of merged blocks could not be read");
        return;
    }
    char detail[128];
    struct gps_text text = GPS_TEXT(detail);
    gps_text_add(&text, "secret: %s; until it is removed nothing is merged", why);
    struct gps_report report = gps_report_new(GPS_RECORD_INVALID);
    report.detail = detail;
    gps_report_send(&report);
}

static bool get_key(void) {
    uint8_t bytes[GPS_SECRET_BYTES];
    const char *why = "";
    const int status = gps_secret_get(gps_membership_store(), gps_process_self(), bytes, &why);
    if (status < 0) {
        atomic_store(&key_state.again, gps_clock_monotonic() + GPS_SECOND);
        shared_key_tell_unusable(status, why);
        return false;
    }
    gps_digest_use(bytes);
    return true;
}

bool gps_shared_ready(void) {
    int phase = atomic_load(&key_state.phase);
    if (phase == KEYED)
        return true;
    if (gps_membership_join() != 0) {
        atomic_store(&key_state.failed, true);
        return false;
    }
    if (phase == GETTING || gps_clock_monotonic() < atomic_load(&key_state.again) ||
        !atomic_compare_exchange_strong(&key_state.phase, &phase, GETTING))
        return false;
    const bool ready = get_key();
    atomic_store(&key_state.failed, !ready);
    atomic_store(&key_state.phase, ready ? KEYED : KEYLESS);
    return ready;
}

bool gps_shared_is_unusable(void) {
    return atomic_load(&key_state.phase) != KEYED && atomic_load(&key_state.failed);
}

/* --- names --- */

/* Like a token (vmm/vmm_region.c), it has zeros where a handle of the driver's has a pid. */
static void make_handle(const struct gps_shared_key *key, uint8_t handle[GPS_HANDLE_BYTES]) {
    memset(handle, 0, GPS_HANDLE_BYTES);
    memcpy(handle, GPS_BLOCK_MARK, sizeof(GPS_BLOCK_MARK) - 1);
    memcpy(handle + 16, key->uuid, GPS_UUID_BYTES);
    memcpy(handle + 32, &key->size, sizeof(key->size));
    memcpy(handle + 40, &key->hash, sizeof(key->hash));
}

struct gps_id gps_shared_id(const struct gps_shared_key *key) {
    uint8_t handle[GPS_HANDLE_BYTES];
    make_handle(key, handle);
    return gps_id_of_handle(handle);
}

uint64_t gps_shared_mark(const uint8_t uuid[GPS_UUID_BYTES], uint64_t size) {
    uint64_t gpu[GPS_UUID_BYTES / sizeof(uint64_t)];
    memcpy(gpu, uuid, sizeof(gpu));
    const uint64_t folded = gpu[0] ^ gpu[1];
    return (folded ^ folded >> 48) << 16 | size >> 20;
}

/* The name tells GPU and size, too, because blocks of other sizes or GPUs can begin alike. */
static void shared_block_make_name(const struct gps_shared_key *key, char name[GPS_NAME_BYTES]) {
    struct gps_text text = gps_text_on(name, GPS_NAME_BYTES);
    uint64_t gpu[GPS_UUID_BYTES / sizeof(uint64_t)];
    memcpy(gpu, key->uuid, sizeof(gpu));
    gps_text_add(&text, "%s0x%lx.%lu.0x%lx", GPS_BLOCK_NAME, gpu[0] ^ gpu[1], key->size >> 20,
                 key->first.low);
}

static bool is_size_wanted(void) {
    return !gps_keeper_is_unresponsive() && gps_clock_monotonic() >= atomic_load(&again);
}

/* Whether the record is of the key's GPU and size. Its name only says that it may be. */
static bool is_of(const struct gps_region_record *record, const struct gps_shared_key *key) {
    return record->extent == key->size && memcmp(record->device, key->uuid, GPS_UUID_BYTES) == 0;
}

bool gps_shared_find(const struct gps_shared_key *key, struct gps_id *id) {
    struct gps_name_target target;
    char name[GPS_NAME_BYTES];
    if (!gps_membership_store() || !is_size_wanted())
        return false;
    shared_block_make_name(key, name);
    const bool found = gps_name_resolve(gps_membership_store(), name, &target) == 0 &&
                       target.kind == GPS_NAME_REGION;
    if (found)
        *id = target.region;
    return found;
}

/* Why a block could not be offered or had. */
static enum gps_not_merging refusal_reason(int status, enum gps_not_merging otherwise) {
    switch (status) {
    case 0:
    case -EEXIST: /* another process was faster */
        return (enum gps_not_merging)0;
    case -ETOOMANYREFS:
        return GPS_NOT_MERGING_CROWDED;
    case -EMFILE:
    case -ENFILE:
        return GPS_NOT_MERGING_DESCRIPTORS;
    case -ENOBUFS:
        return GPS_NOT_MERGING_FULL;
    default:
        return otherwise;
    }
}

static void refusal_note(int status, enum gps_not_merging otherwise) {
    atomic_store(&refused, gps_clock_monotonic());
    atomic_store(&refusal, refusal_reason(status, otherwise));
}

enum gps_not_merging gps_shared_refusal(void) {
    const bool lasts = gps_clock_monotonic() - atomic_load(&refused) < REFUSED_FOR;
    return lasts ? (enum gps_not_merging)atomic_load(&refusal) : (enum gps_not_merging)0;
}

static int shared_block_get(const struct gps_id *id, const struct gps_shared_key *key,
                            int *descriptor, unsigned *slot) {
    struct gps_region_record record;
    int status = gps_membership_join();
    if (status == 0)
        status = gps_region_read(gps_membership_store(), id, &record, NULL);
    if (status == 0 && !is_of(&record, key))
        status = -ENOENT;
    if (status == 0)
        status = gps_references_begin_block(id, GPS_VIA_MERGE, slot);
    if (status < 0)
        return status;
    status = gps_keeper_get(gps_membership_store(), id, gps_process_self(), GET_WAIT, descriptor);
    if (status < 0)
        gps_references_end(*slot);
    /* -ENOENT: the program brings the bytes to the GPU again, as if there were no such block */
    return status == -ENODATA ? -ENOENT : status;
}

int gps_shared_get(const struct gps_id *id, const struct gps_shared_key *key, int *descriptor,
                   unsigned *slot) {
    if (!is_size_wanted())
        return -ETIMEDOUT;
    const int status = shared_block_get(id, key, descriptor, slot);
    refusal_note(status, (enum gps_not_merging)0); /* that there is none is no reason */
    if (status == -ETIMEDOUT || status == -ETOOMANYREFS)
        atomic_store(&again, gps_clock_monotonic() + GPS_SECOND);
    return status;
}

static void commit(const struct gps_id *id, unsigned slot, enum gps_slot_via via, uint64_t mark,
                   uint64_t address) {
    gps_references_commit(slot, id, via, address, 1, mark);
    atomic_fetch_add(&changes, 1);
}

void gps_shared_commit(const struct gps_id *id, unsigned slot, uint64_t mark, uint64_t address) {
    commit(id, slot, GPS_VIA_MERGE, mark, address);
}

static void shared_block_describe(const struct gps_shared_key *key, const struct gps_rule *rule,
                                  struct gps_region_record *record) {
    *record = (struct gps_region_record){.generation = 1,
                                         .backing = GPS_BACKING_VMM,
                                         .requested = key->size,
                                         .extent = key->size,
                                         .created = gps_clock_now(),
                                         .owner = *gps_process_self(),
                                         .creator = *gps_process_self(),
                                         .keep = (uint32_t)rule->keep,
                                         .flags = GPS_REGION_READ_ONLY,
                                         .keep_for = rule->keep_for,
                                         .status.state = GPS_STATE_READY};
    record->status.changed = record->created;
    make_handle(key, record->handle);
    record->id = gps_id_of_handle(record->handle);
    memcpy(record->device, key->uuid, GPS_UUID_BYTES);
    shared_block_make_name(key, record->name);
    if (gps_name_claim(gps_membership_store(), record->name, gps_process_self(), NULL) < 0)
        memset(record->name, 0, sizeof(record->name)); /* another block that begins alike */
    gps_record_seal(record);
}

int gps_shared_offer(const struct gps_shared_key *key, const struct gps_rule *rule, int descriptor,
                     uint64_t address, struct gps_id *id, unsigned *slot) {
    struct gps_region_record record;
    *id = gps_shared_id(key);
    int status = gps_references_begin_block(id, GPS_VIA_CREATOR, slot);
    if (status < 0)
        return status;
    shared_block_describe(key, rule, &record);
    commit(id, *slot, GPS_VIA_CREATOR, gps_shared_mark(key->uuid, key->size), address);
    status = gps_keeper_deposit(gps_membership_store(), &record, gps_process_self(), descriptor,
                                GPS_KEEPER_WAIT);
    refusal_note(status, GPS_NOT_MERGING_KEEPER);
    if (status == 0)
        return 0;
    if (*record.name)
        gps_name_release(gps_membership_store(), record.name, gps_process_self(), NULL);
    gps_report_reference(gps_references_end(*slot));
    return status;
}

/* The keeper sees by itself that the slot was cleared. */
void gps_shared_release(unsigned slot) {
    gps_report_reference(gps_references_end(slot));
    atomic_fetch_add(&changes, 1);
}

void gps_shared_leave(struct gps_block *block) {
    if (gps_block_is_merged(block))
        gps_merged_sum_private(block->size);
    gps_block_set_state(block, GPS_BLOCK_PRIVATE);
    block->same_since = 0;
    free(block->chunks);
    block->chunks = NULL;
    gps_shared_release(block->slot);
}
