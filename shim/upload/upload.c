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

static struct gps_upload *make(uint64_t pointer, uint64_t size, const char *name) {
    struct gps_upload *upload = calloc(1, sizeof(*upload));
    if (!upload)
        return NULL;
    upload->pointer = pointer;
    upload->size = size;
    memcpy(upload->name, name, strlen(name) + 1);
    return upload;
}

static void add(struct gps_upload *upload) {
    gps_upload_lock();
    upload->next = *bucket_of(upload->pointer);
    *bucket_of(upload->pointer) = upload;
    gps_upload_unlock();
}

void gps_upload_lead(uint64_t pointer, uint64_t size, const char *name,
                     const struct gps_rule *rule) {
    struct gps_mapping vmm;
    struct gps_upload *upload = gps_mapping_at(pointer, &vmm) ? make(pointer, size, name) : NULL;
    if (!upload)
        return; /* it never becomes READY; a process that waits for it says so */
    upload->region = vmm.region;
    upload->leads = true;
    upload->wait = rule->wait;
    add(upload);
}

void gps_upload_follow(uint64_t pointer, uint64_t size, const struct gps_region_record *record,
                       const struct gps_rule *rule) {
    struct gps_upload *upload = make(pointer, size, record->name);
    if (!upload)
        return; /* its writes fail, as those into any read-only memory */
    upload->region = record->id;
    upload->creator = *gps_record_creator(record);
    upload->wait = rule->wait;
    upload->verify = rule->verify == GPS_VERIFY_HASH;
    upload->uploaded = record->flags & GPS_REGION_UPLOAD;
    add(upload);
}

void gps_upload_end(uint64_t pointer) {
    struct gps_upload **at, *upload;
    gps_upload_lock();
    while ((upload = *(at = find(pointer))) && upload->busy)
        pthread_cond_wait(&state.changed, &state.lock); /* then it may be gone */
    if (upload) {
        *at = upload->next;
        upload->ended = true;
    }
    const bool last = upload && !upload->users;
    gps_upload_unlock();
    if (last)
        free(upload);
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
    gps_upload_lock();
    struct gps_upload *upload = *find(pointer);
    if (upload)
        upload->users++;
    gps_upload_unlock();
    return upload;
}

struct gps_upload *gps_upload_find(bool (*is)(void *arg, struct gps_upload *upload), void *arg) {
    struct gps_upload *found = NULL;
    gps_upload_lock();
    for (unsigned i = 0; !found && i < BUCKETS; i++) {
        found = state.buckets[i];
        while (found && !is(arg, found))
            found = found->next;
    }
    if (found)
        found->users++;
    gps_upload_unlock();
    return found;
}

void gps_upload_put(struct gps_upload *upload) {
    gps_upload_lock();
    const bool last = --upload->users == 0 && upload->ended;
    gps_upload_unlock();
    if (last)
        free(upload);
}

void gps_upload_lock(void) {
    pthread_mutex_lock(&state.lock);
}

void gps_upload_unlock(void) {
    pthread_mutex_unlock(&state.lock);
}

void gps_upload_settle(struct gps_upload *upload) {
    while (upload->busy)
        pthread_cond_wait(&state.changed, &state.lock);
}

void gps_upload_claim(struct gps_upload *upload) {
    gps_upload_settle(upload);
    upload->busy = true;
}

void gps_upload_release(struct gps_upload *upload) {
    upload->busy = false;
    pthread_cond_broadcast(&state.changed);
}

void gps_upload_describe(const struct gps_upload *upload, struct gps_report *report) {
    struct gps_mapping vmm;
    report->pointer = upload->pointer;
    report->size = upload->size;
    report->region = &upload->region;
    report->name = *upload->name ? upload->name : NULL;
    if (gps_mapping_at(upload->pointer, &vmm))
        report->device = vmm.device;
}
