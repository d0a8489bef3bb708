/* follower.c - see follower.h. */
#include "follower.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "audit/reporter.h"
#include "digest.h"
#include "directory/region.h"
#include "hashes.h"
#include "process/driver_ops.h"
#include "process/membership.h"
#include "process/references.h"
#include "process/scope.h"
#include "process/watch.h"
#include "util/clock.h"
#include "util/text.h"
#include "vmm/mapping.h"
#include "vmm/vmm_region.h"

enum verdict {
    EQUAL,      /* the bytes are there */
    DIFFERENT,  /* or it cannot be known: the mapping becomes private; finding and detail say why */
    UNREADABLE, /* the driver's to say what is wrong with the source */
    AGAIN,      /* it is not READY yet, or was written meanwhile: look once more */
};

/* One write on its way. */
struct look {
    struct gps_upload *upload;
    const struct gps_write *write;
    uint64_t begin, end;             /* in the region */
    struct gps_region_record record; /* as it was read last */
    bool waited;                     /* this write has met it unready */
    enum gps_finding finding;
    char detail[192];
};

/* That the allocation is private from now on is added to the detail. */
__attribute__((format(printf, 3, 4))) static enum verdict
differ(struct look *look, enum gps_finding finding, const char *detail, ...) {
    struct gps_text text = GPS_TEXT(look->detail);
    va_list args;
    va_start(args, detail);
    look->finding = finding;
    gps_text_addv(&text, detail, args);
    va_end(args);
    gps_text_str(&text, "; the allocation is private from now on");
    return DIFFERENT;
}

/* --- waiting until the region is READY --- */

static uint64_t patience_of(struct gps_upload *upload) {
    gps_upload_claim(upload);
    if (!upload->until)
        upload->until = gps_clock_monotonic() + upload->wait;
    const uint64_t until = upload->until;
    gps_upload_release(upload);
    return until;
}

/* EQUAL: it is READY. Without its record it cannot be known whether all of it had been written,
 * unless we waited. */
static enum verdict ask(struct look *look) {
    static const char *const why[2][2] = {
        {"has freed it, or gave it up before all of it was written",
         "gave it up before all of it was written"},
        {"ended, and it is kept no longer", "ended before all of it was written"}};
    struct gps_region_record *record = &look->record;
    const int status = gps_region_read(gps_membership_store(), &look->upload->region, record, NULL);
    const bool over = status == -ENOENT || (status == 0 && gps_record_over(record));
    if (!over && status == 0 && record->status.state == GPS_STATE_READY)
        return EQUAL;
    const bool dead = gps_lease_probe(gps_membership_store(), &look->upload->creator) == GPS_DEAD;
    look->waited |= !over;
    return over || dead
               ? differ(look, GPS_SHARE_FALLBACK, "its creator %s", why[dead][look->waited])
               : AGAIN;
}

static enum verdict timed_out(struct look *look) {
    char wait[32];
    struct gps_text text = GPS_TEXT(wait);
    gps_text_duration(&text, look->upload->wait);
    return differ(look, GPS_SHARE_TIMEOUT, "all of it was not written within %s", wait);
}

static enum verdict wait_ready(struct look *look) {
    struct gps_watch watch;
    enum verdict verdict = ask(look);
    if (verdict != AGAIN)
        return verdict;
    const uint64_t until = patience_of(look->upload);
    gps_watch_open(&watch, gps_membership_store(), GPS_WATCH_PROCS | GPS_WATCH_REGIONS);
    uint64_t now = gps_clock_monotonic();
    while ((verdict = ask(look)) == AGAIN && now < until) {
        gps_watch_wait(&watch, until - now);
        now = gps_clock_monotonic();
    }
    gps_watch_close(&watch);
    return verdict == AGAIN ? timed_out(look) : verdict;
}

/* --- comparing --- */

static const uint8_t *source(const struct look *look, uint64_t at) {
    return (const uint8_t *)look->write->from + (at - look->begin);
}

static enum verdict compare_piece(struct look *look, uint64_t at, uint64_t size, uint8_t *there) {
    const uint8_t *here = source(look, at);
    if (gps_ops->copy_out(there, look->upload->pointer + at, size) != GPS_OK)
        return differ(look, GPS_SHARE_FALLBACK, "it could not be read back to be compared");
    if (memcmp(there, here, size) == 0)
        return EQUAL;
    size_t i = 0;
    while (i + 1 < size && there[i] == here[i])
        i++;
    return differ(look, GPS_SHARE_MISMATCH,
                  "other bytes are uploaded than the region holds: at offset %lu it has %02x, the "
                  "upload %02x",
                  at + i, there[i], here[i]);
}

/* Byte by byte: what is no whole chunk, and a chunk that differs. */
static enum verdict compare_bytes(struct look *look, uint64_t at, uint64_t end) {
    enum verdict verdict = EQUAL;
    if (at >= end)
        return EQUAL;
    if (!gps_digest_readable(source(look, at), end - at))
        return UNREADABLE;
    const uint64_t room = end - at < GPS_HASH_CHUNK ? end - at : GPS_HASH_CHUNK;
    uint8_t *there = malloc(room);
    if (!there)
        return differ(look, GPS_SHARE_FALLBACK, "there is no memory to compare it in");
    for (; verdict == EQUAL && at < end; at += room)
        verdict = compare_piece(look, at, end - at < room ? end - at : room, there);
    free(there);
    return verdict;
}

static enum verdict compare_chunks(struct look *look, uint64_t at, uint64_t end,
                                   const uint64_t *hashes) {
    const size_t found =
        gps_digest_compare(source(look, at), end - at, hashes + at / GPS_HASH_CHUNK);
    if (found == GPS_DIGEST_EQUAL)
        return EQUAL;
    if (found == GPS_DIGEST_UNREADABLE)
        return UNREADABLE;
    at += found * GPS_HASH_CHUNK;
    const uint64_t next = end - at < GPS_HASH_CHUNK ? end : at + GPS_HASH_CHUNK;
    const enum verdict verdict = compare_bytes(look, at, next);
    return verdict == EQUAL
               ? differ(look, GPS_SHARE_FALLBACK, "its hashes are not those of what it holds")
               : verdict;
}

/* In the order of the addresses, so that the first difference is the first. */
static enum verdict compare_with(struct look *look, const uint64_t *hashes) {
    const uint64_t chunk = GPS_HASH_CHUNK, written = look->record.status.written;
    const uint64_t first = (look->begin + chunk - 1) / chunk * chunk;
    const uint64_t last = look->end == written ? look->end : look->end / chunk * chunk;
    if (first >= last)
        return compare_bytes(look, look->begin, look->end);
    enum verdict verdict = compare_bytes(look, look->begin, first);
    if (verdict == EQUAL)
        verdict = compare_chunks(look, first, last, hashes);
    return verdict == EQUAL ? compare_bytes(look, last, look->end) : verdict;
}

/* The region is what it was when its hashes were read, or they say nothing. */
static bool still_ready(const struct look *look) {
    struct gps_region_record now;
    return gps_region_read(gps_membership_store(), &look->upload->region, &now, NULL) == 0 &&
           now.status.state == GPS_STATE_READY &&
           now.status.changed == look->record.status.changed &&
           gps_region_has_hashes(gps_membership_store(), &look->upload->region);
}

static enum verdict compare(struct look *look) {
    const uint64_t written = look->record.status.written;
    uint64_t *hashes = malloc((size_t)gps_hashes_count(written) * sizeof(*hashes));
    enum verdict verdict =
        !hashes || gps_region_read_hashes(gps_membership_store(), &look->upload->region, written,
                                          hashes) < 0
            ? differ(look, GPS_SHARE_FALLBACK, "its hashes cannot be read")
            : compare_with(look, hashes);
    free(hashes);
    return verdict == UNREADABLE || still_ready(look) ? verdict : AGAIN;
}

/* --- deciding --- */

/* Whether the source is host memory, which can be read once what the stream does before is done. */
static bool is_from_host(const struct gps_write *write, bool *pinned) {
    const enum gps_memory_kind kind =
        write->from ? gps_ops->kind((uintptr_t)write->from) : GPS_MEMORY_UNKNOWN;
    *pinned = kind == GPS_MEMORY_HOST;
    return write->from && (write->kind == GPS_WRITE_UPLOAD || write->kind == GPS_WRITE_ANY) &&
           (kind == GPS_MEMORY_HOST || kind == GPS_MEMORY_UNKNOWN);
}

static enum verdict examine_once(struct look *look) {
    const enum verdict ready = wait_ready(look);
    if (ready != EQUAL)
        return ready;
    if (look->end > look->record.status.written)
        return differ(look, GPS_SHARE_FALLBACK, "more is uploaded than its creator wrote");
    return look->upload->verify ? compare(look) : EQUAL;
}

/* NULL, or why this write cannot be compared. */
static const char *obstacle(const struct look *look) {
    const struct gps_write *write = look->write;
    bool pinned;
    if (!look->upload->uploaded)
        return "its creator's rule does not say upload = once";
    if (!is_from_host(write, &pinned))
        return "it is written by something else than a copy from the host";
    if (write->ordered && gps_ops->capturing(write->stream))
        return "a copy into it is part of a graph";
    if (pinned && look->upload->verify && gps_ops->stream_wait(write->stream) != GPS_OK)
        return "what is uploaded could not be waited for";
    return NULL;
}

static enum verdict examine(struct look *look) {
    const char *why = obstacle(look);
    const uint64_t until = gps_clock_monotonic() + look->upload->wait;
    const struct timespec breath = {.tv_nsec = 1000000};
    enum verdict verdict;
    if (why)
        return differ(look, GPS_SHARE_FALLBACK, "%s", why);
    while ((verdict = examine_once(look)) == AGAIN && gps_clock_monotonic() < until)
        nanosleep(&breath, NULL);
    return verdict != AGAIN ? verdict
                            : differ(look, GPS_SHARE_TIMEOUT,
                                     "its creator wrote it again and again while it was compared");
}

/* The region is held no longer; the import stays in the registry, for its close. */
static void let_go(const struct gps_upload *upload) {
    struct gps_import import;
    if (!gps_registry_import_at(upload->pointer, &import) || import.slot == GPS_NO_SLOT)
        return;
    if (!gps_registry_set_slot(upload->pointer, GPS_NO_SLOT))
        return; /* closed meanwhile: the closing thread ends its slot */
    gps_report_reference(gps_references_end(import.slot));
    gps_vmm_region_released(&upload->region);
}

/* Once: a thread that comes second finds it done. Where it fails the program gets the code. */
static int make_private(const struct look *look) {
    struct gps_upload *upload = look->upload;
    int code = GPS_OK;
    gps_upload_claim(upload);
    if (upload->phase != GPS_UPLOAD_PRIVATE) {
        code = gps_mapping_privatise(upload->pointer);
        if (code == GPS_OK) {
            let_go(upload);
            gps_upload_report(upload, look->finding, look->detail);
            upload->phase = GPS_UPLOAD_PRIVATE;
        }
    }
    gps_upload_release(upload);
    return code;
}

static bool is_private(struct gps_upload *upload) {
    gps_upload_claim(upload);
    const bool private = upload->phase == GPS_UPLOAD_PRIVATE;
    gps_upload_release(upload);
    return private;
}

bool gps_follower_write(struct gps_upload *upload, const struct gps_write *write, int *code) {
    struct gps_scope scope;
    uint64_t context = 0;
    const uint64_t begin = write->to - upload->pointer;
    const uint64_t end = write->size > UINT64_MAX - begin ? UINT64_MAX : begin + write->size;
    struct look look = {.upload = upload, .write = write, .begin = begin, .end = end};
    if (is_private(upload) || gps_ops->context(&context) != GPS_OK || !context)
        return true;
    gps_scope_enter(&scope, 0);
    const enum verdict verdict = examine(&look);
    *code = verdict == DIFFERENT ? make_private(&look) : GPS_OK;
    gps_scope_end(&scope);
    return verdict == UNREADABLE || (verdict == DIFFERENT && *code == GPS_OK);
}
