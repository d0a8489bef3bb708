/* promise.c - see promise.h. */
#include "promise.h"

#include <errno.h>
#include <string.h>

#include "membership.h"
#include "process.h"
#include "references.h"

static struct promise {
    struct gps_id gpu;
    uint64_t bytes;
    bool taken;
} promises[GPS_PROMISES_MAX]; /* each in the slot of its place */

void gps_promise_start(void) {
    gps_references_reserve(GPS_PROMISES_MAX);
}

static struct promise *promise_of(const uint8_t gpu[GPS_UUID_BYTES]) {
    for (struct promise *one = promises; one < promises + GPS_PROMISES_MAX; one++) {
        if (!one->taken)
            memcpy(&one->gpu, gpu, GPS_UUID_BYTES);
        if (!one->taken || memcmp(&one->gpu, gpu, GPS_UUID_BYTES) == 0)
            return one;
    }
    return NULL;
}

static uint64_t changed(const struct promise *promise, int64_t change) {
    if (change >= 0)
        return promise->bytes + (uint64_t)change;
    return promise->bytes > (uint64_t)-change ? promise->bytes - (uint64_t)-change : 0;
}

static int publish(const struct promise *promise, uint64_t bytes) {
    return gps_references_commit((unsigned)(promise - promises), &promise->gpu, GPS_VIA_PROMISE,
                                 bytes, 0);
}

/* What is written into a directory that was removed nobody sees. */
static int begin(void) {
    const int status = gps_membership_join();
    if (status < 0)
        return status;
    return gps_membership_is_lost() ? -ENOENT : gps_promises_begin(gps_membership_store());
}

int gps_promise_change(const uint8_t gpu[GPS_UUID_BYTES], int64_t bytes) {
    struct promise *promise = promise_of(gpu);
    int status = promise ? 0 : -ENOSPC;
    if (status == 0 && bytes > 0)
        status = begin();
    if (status == 0)
        status = publish(promise, changed(promise, bytes));
    if (promise && (status == 0 || bytes < 0)) {
        promise->taken = true;
        promise->bytes = changed(promise, bytes);
    }
    return status;
}

uint64_t gps_promise_own(const uint8_t gpu[GPS_UUID_BYTES]) {
    const struct promise *promise = promise_of(gpu);
    return promise && promise->taken ? promise->bytes : 0;
}

bool gps_promise_any(void) {
    const struct gps_store *store = gps_membership_look();
    return store && gps_promises_any(store);
}

static int add_up(const uint8_t gpu[GPS_UUID_BYTES], const struct gps_owner *except,
                  uint64_t *bytes) {
    *bytes = 0;
    return gps_promise_any() ? gps_promises_of(gps_membership_look(), gpu, except, bytes) : 0;
}

int gps_promise_others(const uint8_t gpu[GPS_UUID_BYTES], uint64_t *bytes) {
    return add_up(gpu, gps_process_self(), bytes);
}

int gps_promise_all(const uint8_t gpu[GPS_UUID_BYTES], uint64_t *bytes) {
    return add_up(gpu, NULL, bytes);
}

void gps_promise_reset(void) {
    memset(promises, 0, sizeof(promises));
}
