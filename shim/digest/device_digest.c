#include "digest.h"

#include <string.h>

#include "driver/driver_ops.h"

/* For the one thread that calls this module at a time. */
static struct gps_hash chunks[GPS_DIGEST_CHUNKS];
static uint8_t left[GPS_DIGEST_PIECE], right[GPS_DIGEST_PIECE];

static int read_chunks(uint64_t pointer, uint64_t size, struct gps_hash *hashes) {
    for (uint64_t at = 0; at < size; at += GPS_DIGEST_PIECE) {
        const int code = gps_ops->copy_out(left, pointer + at, GPS_DIGEST_PIECE);
        if (code != GPS_OK)
            return code;
        for (uint64_t in = 0; in < GPS_DIGEST_PIECE; in += GPS_DIGEST_CHUNK)
            *hashes++ = gps_digest_chunk(left + in);
    }
    return GPS_OK;
}

int gps_device_hash(uint64_t pointer, uint64_t size, struct gps_hash *hashes) {
    const int code = gps_ops->digest(pointer, size, &hashes->low);
    return code == GPS_NOT_SUPPORTED ? read_chunks(pointer, size, hashes) : code;
}

int gps_device_digest(uint64_t pointer, uint64_t size, struct gps_digest *digest) {
    const int code = gps_device_hash(pointer, size, chunks);
    if (code == GPS_OK)
        *digest = gps_digest_combine(chunks, size);
    return code;
}

static int read_equal(uint64_t a, uint64_t b, uint64_t size, bool *equal) {
    int code = GPS_OK;
    *equal = true;
    for (uint64_t at = 0; code == GPS_OK && *equal && at < size; at += GPS_DIGEST_PIECE) {
        code = gps_ops->copy_out(left, a + at, GPS_DIGEST_PIECE);
        if (code == GPS_OK)
            code = gps_ops->copy_out(right, b + at, GPS_DIGEST_PIECE);
        *equal = memcmp(left, right, GPS_DIGEST_PIECE) == 0;
    }
    return code;
}

int gps_device_equal(uint64_t a, uint64_t b, uint64_t size, bool *equal) {
    const int code = gps_ops->equal(a, b, size, equal);
    return code == GPS_NOT_SUPPORTED ? read_equal(a, b, size, equal) : code;
}
