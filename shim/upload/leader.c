/* leader.c - see leader.h. */
#include "leader.h"

#include <errno.h>
#include <stdlib.h>

#include "audit/reporter.h"
#include "hashes.h"
#include "keeper/keeper_client.h"
#include "process/driver_ops.h"
#include "process/membership.h"
#include "process/process.h"
#include "process/scope.h"
#include "readback.h"
#include "staging_buffer.h"
#include "stall.h"

/* Each time all of it is read back and hashed. Memory that is written more often holds no weights.
 */
enum { PUBLISHED_MOST = 8 };

static void report(const struct gps_upload *upload, const char *detail) {
    struct gps_report said = gps_report_new(GPS_SHARE_FALLBACK);
    gps_upload_describe(upload, &said);
    said.detail = detail;
    gps_report_send(&said);
}

static int set_state(const struct gps_upload *upload, enum gps_state to, uint64_t written) {
    return gps_keeper_set_state(gps_membership_store(), &upload->region, gps_process_self(), to,
                                written, GPS_KEEPER_WAIT);
}

/* --- becoming READY --- */

static bool read_back(void *arg, void *to, uint64_t at, uint64_t size) {
    const struct gps_upload *upload = arg;
    return gps_ops->copy_out(to, upload->pointer + at, size) == GPS_OK;
}

static bool hash_all(const struct gps_upload *upload, uint64_t *hashes) {
    const struct gps_readback readback = {.read = read_back,
                                          .arg = (void *)upload,
                                          .stage = gps_staging_take(),
                                          .size = upload->size,
                                          .hashes = hashes};
    const bool done = readback.stage && gps_readback_hash(&readback);
    if (readback.stage)
        gps_staging_put(readback.stage);
    return done;
}

/* NULL, or why not. */
static const char *publish_hashes(const struct gps_upload *upload, uint64_t *hashes) {
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

static enum gps_upload_phase publish(const struct gps_upload *upload) {
    struct gps_scope scope;
    gps_scope_enter(&scope, 0);
    uint64_t *hashes = malloc((size_t)gps_hashes_count(upload->size) * sizeof(*hashes));
    const char *why = hashes ? publish_hashes(upload, hashes) : "there is no memory for its hashes";
    free(hashes);
    if (why)
        report(upload, why);
    gps_scope_end(&scope);
    return why ? GPS_UPLOAD_UNSEEN : GPS_UPLOAD_READY;
}

/* --- around a write --- */

static void unready(const struct gps_upload *upload) {
    struct gps_scope scope;
    gps_scope_begin(&scope);
    gps_region_drop_hashes(gps_membership_store(), &upload->region);
    set_state(upload, GPS_STATE_WRITING, 0);
    gps_scope_end(&scope);
}

void gps_leader_begin(struct gps_upload *upload) {
    gps_upload_lock();
    gps_upload_claim(upload);
    gps_stall_begin(upload);
    upload->writers++;
    if (upload->phase == GPS_UPLOAD_READY) {
        upload->phase = GPS_UPLOAD_WRITING;
        gps_upload_unlock();
        unready(upload);
        gps_upload_lock();
    }
    gps_upload_release(upload);
    gps_upload_unlock();
}

static bool in_graph(const struct gps_write *write) {
    struct gps_scope scope;
    if (!write->ordered)
        return false;
    gps_scope_begin(&scope);
    const bool capturing = gps_ops->capturing(write->stream);
    gps_scope_end(&scope);
    return capturing;
}

static const char *cover(struct gps_upload *upload, const struct gps_write *write, bool graph) {
    const uint64_t begin = write->to - upload->pointer;
    const uint64_t room = begin < upload->size ? upload->size - begin : 0;
    if (graph)
        return "a copy into it is part of a graph, so when it is written is not seen: it never "
               "becomes ready";
    if (write->kind == GPS_WRITE_SOME)
        return "it is written by rows that are not followed: it never becomes ready";
    if (!gps_coverage_add(&upload->coverage, begin,
                          begin + (write->size < room ? write->size : room)))
        return "it is written in too many pieces at once to be followed: it never becomes ready";
    return NULL;
}

static void give_up(const struct gps_upload *upload, const char *why) {
    struct gps_scope scope;
    gps_scope_begin(&scope);
    report(upload, why);
    gps_scope_end(&scope);
}

/* A write that failed may have left the region as it was, so it counts as ended all the same. */
void gps_leader_end(struct gps_upload *upload, const struct gps_write *write, int code) {
    const bool graph = code == GPS_OK && in_graph(write);
    const char *why = NULL;
    gps_upload_lock();
    gps_upload_claim(upload);
    if (upload->writers)
        upload->writers--;
    gps_stall_end(upload);
    if (code == GPS_OK && upload->phase == GPS_UPLOAD_WRITING)
        why = upload->published < PUBLISHED_MOST
                  ? cover(upload, write, graph)
                  : "it is written again and again after its upload: it becomes ready no more";
    if (why)
        upload->phase = GPS_UPLOAD_UNSEEN;
    if (upload->phase == GPS_UPLOAD_WRITING && !upload->writers &&
        gps_coverage_prefix(&upload->coverage) == upload->size) {
        gps_upload_unlock();
        const enum gps_upload_phase phase = publish(upload);
        gps_upload_lock();
        upload->phase = phase;
        upload->published++;
    }
    gps_upload_release(upload);
    gps_upload_unlock();
    if (why)
        give_up(upload, why);
}
