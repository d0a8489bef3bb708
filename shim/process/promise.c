/* promise.c - see promise.h. */
#include "promise.h"

#include <errno.h>
#include <string.h>

#include "membership.h"
#include "process.h"
#include "references.h"

static struct promise {
    struct gps_id gpu;
    struct gps_promises bytes;
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

static uint64_t changed(uint64_t bytes, int64_t change) {
    if (change >= 0)
        return bytes + (uint64_t)change;
    return bytes > (uint64_t)-change ? bytes - (uint64_t)-change : 0;
}

static int publish(const struct promise *promise, struct gps_promises bytes) {
    return gps_references_commit((unsigned)(promise - promises), &promise->gpu, GPS_VIA_PROMISE,
                                 bytes.promised, bytes.claimed);
}

/* What is written into a directory that was removed nobody sees. */
static int begin(void) {
    const int status = gps_membership_join();
    if (status < 0)
        return status;
    return gps_membership_is_lost() ? -ENOENT : gps_promises_begin(gps_membership_store());
}

static int change(const uint8_t gpu[GPS_UUID_BYTES], int64_t promised, int64_t claimed) {
    struct promise *promise = promise_of(gpu);
    const bool grows = promised > 0 || claimed > 0;
    if (!promise)
        return -ENOSPC;
    const struct gps_promises bytes = {changed(promise->bytes.promised, promised),
                                       changed(promise->bytes.claimed, claimed)};
    int status = grows ? begin() : 0;
    if (status == 0)
        status = publish(promise, bytes);
    if (status == 0 || !grows) {
        promise->taken = true;
        promise->bytes = bytes;
    }
    return status;
}

int gps_promise_change(const uint8_t gpu[GPS_UUID_BYTES], int64_t bytes) {
    return change(gpu, bytes, 0);
}

int gps_promise_claim(const uint8_t gpu[GPS_UUID_BYTES], int64_t bytes) {
    return change(gpu, 0, bytes);
}

struct gps_promises gps_promise_own(const uint8_t gpu[GPS_UUID_BYTES]) {
    const struct promise *promise = promise_of(gpu);
    return promise && promise->taken ? promise->bytes : (struct gps_promises){0, 0};
}

bool gps_promise_any(void) {
    const struct gps_store *store = gps_membership_look();
    return store && gps_promises_any(store);
}

static int add_up(const uint8_t gpu[GPS_UUID_BYTES], const struct gps_owner *except,
                  struct gps_promises *sum) {
    *sum = (struct gps_promises){0, 0};
    return gps_promise_any() ? gps_promises_of(gps_membership_look(), gpu, except, sum) : 0;
}

int gps_promise_others(const uint8_t gpu[GPS_UUID_BYTES], struct gps_promises *sum) {
    return add_up(gpu, gps_process_self(), sum);
}

int gps_promise_all(const uint8_t gpu[GPS_UUID_BYTES], struct gps_promises *sum) {
    return add_up(gpu, NULL, sum);
}

void gps_promise_reset(void) {
    memset(promises, 0, sizeof(promises));
}
