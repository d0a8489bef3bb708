/* upload.c - see upload.h. */
#include "upload.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "audit/reporter.h"
#include "vmm/mapping.h"

enum { BUCKETS = 256 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* somebody is busy no more */
    struct gps_upload *buckets[BUCKETS];
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Mappings begin at granules of 2 MiB. */
static struct gps_upload **bucket_of(uint64_t pointer) {
    return &state.buckets[(pointer >> 21) % BUCKETS];
}

static struct gps_upload **find(uint64_t pointer) {
    struct gps_upload **at = bucket_of(pointer);
    while (*at && (*at)->pointer != pointer)
        at = &(*at)->next;
    return at;
}

/* --- life --- */

/* Where there is no memory for it a leader's region never becomes READY, and what a follower writes
 * fails, as it does in any read-only memory. */
static void add(const struct gps_upload *as, const char *name) {
    struct gps_upload *upload = malloc(sizeof(*upload));
    if (!upload)
        return;
    *upload = *as;
    upload->users = 1;
    memcpy(upload->name, name, strlen(name) + 1);
    pthread_mutex_lock(&state.lock);
    upload->next = *bucket_of(upload->pointer);
    *bucket_of(upload->pointer) = upload;
    pthread_mutex_unlock(&state.lock);
}

void gps_upload_lead(uint64_t pointer, uint64_t size, const char *name,
                     const struct gps_rule *rule) {
    struct gps_mapping vmm;
    if (gps_mapping_at(pointer, &vmm))
        add(&(struct gps_upload){.pointer = pointer,
                                 .size = size,
                                 .region = vmm.region,
                                 .leads = true,
                                 .wait = rule->wait},
            name);
}

void gps_upload_follow(uint64_t pointer, uint64_t size, const struct gps_region_record *record,
                       const struct gps_rule *rule) {
    add(&(struct gps_upload){.pointer = pointer,
                             .size = size,
                             .region = record->id,
                             .creator = *gps_record_creator(record),
                             .wait = rule->wait,
                             .verify = rule->verify == GPS_VERIFY_HASH,
                             .uploaded = record->flags & GPS_REGION_UPLOAD},
        record->name);
}

void gps_upload_end(uint64_t pointer) {
    struct gps_upload **at, *upload;
    pthread_mutex_lock(&state.lock);
    while ((upload = *(at = find(pointer))) && upload->busy)
        pthread_cond_wait(&state.changed, &state.lock); /* then it may be gone */
    if (upload) {
        *at = upload->next;
        upload->ended = true;
    }
    pthread_mutex_unlock(&state.lock);
    if (upload)
        gps_upload_put(upload);
}

/* The upload first: the address can be another's as soon as it is unmapped. */
int gps_upload_close(uint64_t pointer) {
    gps_upload_end(pointer);
    return gps_mapping_close(pointer);
}

void gps_upload_reset(void) {
    memset((void *)&state, 0, sizeof(state)); /* the objects are lost, not freed: malloc's locks */
}

/* --- at work on one --- */

struct gps_upload *gps_upload_get(uint64_t pointer) {
    pthread_mutex_lock(&state.lock);
    struct gps_upload *upload = *find(pointer);
    if (upload)
        upload->users++;
    pthread_mutex_unlock(&state.lock);
    return upload;
}

struct gps_upload *gps_upload_find(bool (*is)(const void *arg, const struct gps_upload *upload),
                                   const void *arg) {
    struct gps_upload *found = NULL;
    pthread_mutex_lock(&state.lock);
    for (unsigned i = 0; !found && i < BUCKETS; i++) {
        found = state.buckets[i];
        while (found && (found->busy || !is(arg, found)))
            found = found->next;
    }
    if (found)
        found->users++;
    pthread_mutex_unlock(&state.lock);
    return found;
}

void gps_upload_put(struct gps_upload *upload) {
    pthread_mutex_lock(&state.lock);
    const bool last = --upload->users == 0;
    pthread_mutex_unlock(&state.lock);
    if (last)
        free(upload);
}

void gps_upload_claim(struct gps_upload *upload) {
    pthread_mutex_lock(&state.lock);
    while (upload->busy)
        pthread_cond_wait(&state.changed, &state.lock);
    upload->busy = true;
    pthread_mutex_unlock(&state.lock);
}

void gps_upload_release(struct gps_upload *upload) {
    pthread_mutex_lock(&state.lock);
    upload->busy = false;
    pthread_cond_broadcast(&state.changed);
    pthread_mutex_unlock(&state.lock);
}

void gps_upload_report(const struct gps_upload *upload, enum gps_finding finding,
                       const char *detail) {
    const struct gps_party creator = {.owner = upload->creator};
    struct gps_report report = gps_report_new(finding);
    struct gps_mapping vmm;
    report.pointer = upload->pointer;
    report.size = upload->size;
    report.region = &upload->region;
    report.name = *upload->name ? upload->name : NULL;
    report.detail = detail;
    report.others = &creator;
    report.other_count = !upload->leads;
    if (gps_mapping_at(upload->pointer, &vmm))
        report.device = vmm.device;
    gps_report_send(&report);
}
