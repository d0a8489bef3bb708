/* vmm_region.c - see vmm_region.h. */
#include "vmm_region.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "directory/file.h"
#include "directory/name.h"
#include "directory/region.h"
#include "keeper/keeper_client.h"
#include "lifecycle/lifecycle.h"
#include "mapping.h"
#include "parked_descriptors.h"
#include "process/ops.h"
#include "process/references.h"
#include "process/thread.h"
#include "process/watch.h"
#include "upload/stall.h"

/* Where a handle of the driver's has the exporter's pid a token has zeros: nobody's. */
static const uint8_t token_magic[16] = "GPSTOKEN";

static struct {
    pthread_mutex_t lock;
    pthread_mutex_t driver; /* the thread's while it uses the driver: the end waits for that */
    bool watching, stop;
    _Atomic uint64_t socket; /* inode of the keeper's that has all of ours */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .driver = PTHREAD_MUTEX_INITIALIZER};

bool gps_vmm_region_is_token(const uint8_t handle[GPS_HANDLE_BYTES]) {
    return memcmp(handle, token_magic, sizeof(token_magic)) == 0;
}

void gps_vmm_region_make_token(uint8_t handle[GPS_HANDLE_BYTES]) {
    memcpy(handle, token_magic, sizeof(token_magic));
    for (size_t at = sizeof(token_magic); at < GPS_HANDLE_BYTES; at += sizeof(uint64_t)) {
        const uint64_t random = gps_random();
        memcpy(handle + at, &random, sizeof(random));
    }
}

bool gps_vmm_region_token(uint64_t pointer, uint8_t handle[GPS_HANDLE_BYTES]) {
    static const struct gps_id none;
    struct gps_mapping vmm;
    struct gps_alloc alloc;
    struct gps_import import;
    if (!gps_mapping_at(pointer, &vmm) || gps_id_equal(&vmm.region, &none))
        return false;
    if (gps_registry_import_at(vmm.pointer, &import))
        memcpy(handle, import.handle, GPS_HANDLE_BYTES);
    else if (gps_registry_find(vmm.pointer, &alloc) && alloc.region)
        memcpy(handle, alloc.region->record.handle, GPS_HANDLE_BYTES);
    else
        return false;
    return true;
}

/* --- another keeper --- */

static bool stopped(void) {
    pthread_mutex_lock(&state.lock);
    const bool stop = state.stop;
    pthread_mutex_unlock(&state.lock);
    return stop;
}

/* The program may have freed it meanwhile, and have other memory at its address. Ids are never used
 * again: while it is there, it was all the time. */
static bool is_there(const struct gps_mapping *vmm) {
    struct gps_mapping now;
    return gps_mapping_at(vmm->pointer, &now) && gps_id_equal(&now.region, &vmm->region);
}

static void deposit_again(void *unused, const struct gps_mapping *vmm) {
    struct gps_region_record record;
    int descriptor;
    (void)unused;
    if (gps_region_read(gps_life_store(), &vmm->region, &record, NULL) < 0)
        return;
    pthread_mutex_lock(&state.driver);
    const bool has =
        !stopped() && (vmm->created ? gps_mapping_descriptor(vmm->pointer, &descriptor) == GPS_OK
                                    : gps_parked_get(&vmm->region, &descriptor));
    pthread_mutex_unlock(&state.driver);
    if (!has)
        return;
    if (is_there(vmm))
        gps_keeper_deposit(gps_life_store(), &record, gps_life_self(), descriptor, GPS_KEEPER_WAIT);
    close(descriptor);
}

/* Deposits all that this process has when the socket is another one than before. */
static void look(void) {
    const uint64_t socket = gps_keeper_socket(gps_life_store());
    if (socket && socket != atomic_load(&state.socket)) {
        gps_mapping_each(deposit_again, NULL);
        atomic_store(&state.socket, socket);
    }
}

static void *watch_keeper(void *unused) {
    struct gps_watch watch;
    prctl(PR_SET_NAME, "gpushare-keep");
    gps_watch_open(&watch, gps_life_store(), GPS_WATCH_ROOT);
    while (!stopped()) {
        look();
        gps_stall_tick();
        gps_watch_wait(&watch, UINT64_MAX, NULL);
    }
    gps_watch_close(&watch);
    return unused;
}

/* Should it not start, the next region tries again. */
static void start_watching(void) {
    pthread_mutex_lock(&state.lock);
    if (!state.watching && !state.stop) {
        atomic_store(&state.socket, gps_keeper_socket(gps_life_store()));
        state.watching = gps_thread_start(watch_keeper);
    }
    pthread_mutex_unlock(&state.lock);
}

void gps_vmm_region_stop(void) {
    pthread_mutex_lock(&state.lock);
    state.stop = true;
    pthread_mutex_unlock(&state.lock);
    pthread_mutex_lock(&state.driver); /* after what is under way */
    pthread_mutex_unlock(&state.driver);
}

void gps_vmm_region_reset(void) {
    gps_parked_reset();
    memset((void *)&state, 0, sizeof(state));
}

/* --- one region --- */

static int deposit(struct gps_export *region) {
    int descriptor;
    if (gps_mapping_descriptor(region->pointer, &descriptor) != GPS_OK)
        return -ENOTSUP;
    gps_record_seal(&region->record);
    const int status = gps_keeper_deposit(gps_life_store(), &region->record, gps_life_self(),
                                          descriptor, GPS_KEEPER_WAIT);
    close(descriptor);
    return status;
}

/* The slot first: the keeper keeps for whom it finds in the directory. */
int gps_vmm_region_publish(struct gps_export *region) {
    const struct gps_region_record *record = &region->record;
    region->slot = gps_references_begin(&record->id, GPS_VIA_CREATOR);
    gps_references_commit(region->slot, &record->id, GPS_VIA_CREATOR, region->pointer,
                          record->generation);
    int status = deposit(region);
    if (status == 0 && *record->name)
        status = gps_name_point(gps_life_store(), record->name, &record->id);
    if (status < 0) {
        gps_references_end(region->slot);
        gps_keeper_drop(gps_life_store(), NULL, &record->id, gps_life_self(), GPS_KEEPER_WAIT);
        return status;
    }
    gps_mapping_name(region->pointer, &record->id);
    start_watching();
    return 0;
}

void gps_vmm_region_end(struct gps_export *region) {
    if (region->pointer)
        gps_mapping_close(region->pointer);
    gps_references_end(region->slot);
    gps_keeper_released(gps_life_store(), &region->record.id, gps_life_self(), GPS_KEEPER_WAIT);
}

/* The keeper sees by itself that the slot was cleared, and nobody waits for that. */
void gps_vmm_region_released(const struct gps_id *region) {
    gps_parked_drop(region);
}

int gps_vmm_region_open(const struct gps_region_record *record, uint64_t size, uint64_t *pointer) {
    int descriptor;
    const int status = gps_keeper_get(gps_life_store(), &record->id, gps_life_self(),
                                      GPS_KEEPER_WAIT, &descriptor);
    if (status < 0)
        return status;
    const int code = gps_mapping_open(descriptor, record, size, pointer);
    if (code == GPS_OK) {
        gps_parked_put(&record->id, descriptor);
        start_watching();
    }
    close(descriptor);
    return code;
}
