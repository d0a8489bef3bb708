/* leader.c - see leader.h. */
#include "leader.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "digest.h"
#include "hashes.h"
#include "keeper/keeper_client.h"
#include "process/driver_ops.h"
#include "process/membership.h"
#include "process/process.h"
#include "process/scope.h"
#include "stall.h"

/* Each time all of it is read back and hashed. Memory that is written more often holds no weights.
 */
enum { PUBLISHED_MOST = 8 };

static int set_state(const struct gps_upload *upload, enum gps_state to, uint64_t written) {
    return gps_keeper_set_state(gps_membership_store(), &upload->region, gps_process_self(), to,
                                written, GPS_KEEPER_WAIT);
}

/* --- becoming READY --- */

/* A stage is mapped when first wanted, kept for the life of the process, and pinned where the
 * driver does that: it reads into pinned memory three times as fast. A thread that finds it taken
 * gets one that is not pinned, for as long as it is used. */
static struct {
    _Atomic bool taken;
    uint8_t *memory; /* of the thread that has taken it */
} kept;

static uint8_t *map_stage(void) {
    void *memory = mmap(NULL, GPS_DIGEST_STAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, GPS_DIGEST_STAGE, MADV_DONTFORK); /* or a fork would copy what is pinned */
    return memory;
}

/* The driver forgets it with the context in which it was pinned, so it is asked each time. */
static uint8_t *kept_stage(void) {
    if (!kept.memory)
        kept.memory = map_stage();
    if (kept.memory && gps_ops->kind((uintptr_t)kept.memory) != GPS_MEMORY_HOST)
        gps_ops->pin(kept.memory, GPS_DIGEST_STAGE);
    return kept.memory;
}

static bool read_back(void *arg, void *to, uint64_t at, uint64_t size) {
    const struct gps_upload *upload = arg;
    return gps_ops->copy_out(to, upload->pointer + at, size) == GPS_OK;
}

static bool hash_all(const struct gps_upload *upload, uint64_t *hashes) {
    const bool ours = !atomic_exchange(&kept.taken, true);
    uint8_t *stage = ours ? kept_stage() : map_stage();
    const bool done =
        stage && gps_digest_read(read_back, (void *)upload, stage, upload->size, hashes);
    if (ours)
        atomic_store(&kept.taken, false);
    else if (stage)
        munmap(stage, GPS_DIGEST_STAGE);
    return done;
}

void gps_leader_reset(void) {
    memset((void *)&kept, 0, sizeof(kept));
}

/* NULL, or why not. */
static const char *publish_hashes(const struct gps_upload *upload, uint64_t *hashes) {
    if (!hashes)
        return "there is no memory for its hashes";
    if (gps_ops->synchronize() != GPS_OK || !hash_all(upload, hashes))
        return "all of it is written, but it could not be read back; importers stay private";
    if (gps_region_set_hashes(gps_membership_store(), &upload->region, gps_process_self(),
                              upload->size, hashes) < 0)
        return "all of it is written, but its hashes could not be published; importers stay "
               "private";
    if (set_state(upload, GPS_STATE_READY, upload->size) < 0)
        return "all of it is written, but the keeper does not answer; importers stay private";
    return NULL;
}

static const char *publish(const struct gps_upload *upload) {
    struct gps_scope scope;
    gps_scope_enter(&scope, 0);
    uint64_t *hashes = malloc((size_t)gps_hashes_count(upload->size) * sizeof(*hashes));
    const char *why = publish_hashes(upload, hashes);
    free(hashes);
    gps_scope_end(&scope);
    return why;
}

/* --- around a write --- */

void gps_leader_begin(struct gps_upload *upload) {
    struct gps_scope scope;
    gps_scope_begin(&scope);
    gps_upload_claim(upload);
    gps_stall_begin(upload);
    upload->writers++;
    if (upload->phase == GPS_UPLOAD_READY) {
        upload->phase = GPS_UPLOAD_WRITING;
        gps_region_drop_hashes(gps_membership_store(), &upload->region);
        set_state(upload, GPS_STATE_WRITING, 0);
    }
    gps_upload_release(upload);
    gps_scope_end(&scope);
}

/* NULL, or why it never becomes READY. */
static const char *cover(struct gps_upload *upload, const struct gps_write *write) {
    const uint64_t begin = write->to - upload->pointer;
    const uint64_t room = begin < upload->size ? upload->size - begin : 0;
    if (upload->published >= PUBLISHED_MOST)
        return "it is written again and again after its upload: it becomes ready no more";
    if (write->ordered && gps_ops->capturing(write->stream))
        return "a copy into it is part of a graph, so when it is written is not seen: it never "
               "becomes ready";
    if (write->kind == GPS_WRITE_SOME)
        return "it is written by rows that are not followed: it never becomes ready";
    if (!gps_coverage_add(&upload->coverage, begin,
                          begin + (write->size < room ? write->size : room)))
        return "it is written in too many pieces at once to be followed: it never becomes ready";
    return NULL;
}

/* A write that failed may have left the region as it was, so it counts as ended all the same. */
void gps_leader_end(struct gps_upload *upload, const struct gps_write *write, int code) {
    struct gps_scope scope;
    const char *why = NULL;
    gps_scope_begin(&scope);
    gps_upload_claim(upload);
    if (upload->writers)
        upload->writers--;
    gps_stall_end(upload);
    if (code == GPS_OK && upload->phase == GPS_UPLOAD_WRITING)
        why = cover(upload, write);
    if (!why && upload->phase == GPS_UPLOAD_WRITING && !upload->writers &&
        gps_coverage_prefix(&upload->coverage) == upload->size) {
        why = publish(upload);
        upload->published++;
        upload->phase = GPS_UPLOAD_READY;
    }
    if (why)
        upload->phase = GPS_UPLOAD_UNSEEN;
    gps_upload_release(upload);
    if (why)
        gps_upload_report(upload, GPS_SHARE_FALLBACK, why);
    gps_scope_end(&scope);
}
