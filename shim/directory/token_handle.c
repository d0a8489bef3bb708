#define XXH_INLINE_ALL
#include <xxhash.h>

#include "token_handle.h"

#include <string.h>
#include <sys/stat.h>

#include "gpushare/token.h"

static const char magic[sizeof((struct gps_token_handle){0}.magic)] = GPS_TOKEN_HANDLE;

static uint64_t token_handle_sum(const struct gps_token_handle *token) {
    const size_t from = offsetof(struct gps_token_handle, serial);
    return XXH3_64bits((const char *)token + from, sizeof(*token) - from);
}

/* A number of the directory, which containers see by different paths. 0: it is not known. */
static uint64_t store_number(const struct gps_store *store) {
    struct stat st;
    return store && stat(store->path, &st) == 0 ? (uint64_t)st.st_ino ^ (uint64_t)st.st_dev << 48
                                                : 0;
}

bool gps_token_is(const uint8_t handle[GPS_HANDLE_BYTES]) {
    return memcmp(handle, magic, sizeof(magic)) == 0;
}

void gps_token_make(uint8_t handle[GPS_HANDLE_BYTES], const struct gps_store *store,
                    const struct gps_owner *maker, uint32_t serial) {
    struct gps_token_handle token = {.serial = serial,
                                     .pid = maker->pid,
                                     .nonce = maker->nonce,
                                     .start = maker->start,
                                     .pid_ns = maker->pid_ns,
                                     .directory = store_number(store)};
    memcpy(token.magic, magic, sizeof(magic));
    token.checksum = token_handle_sum(&token);
    memcpy(handle, &token, sizeof(token));
}

bool gps_token_maker(const uint8_t handle[GPS_HANDLE_BYTES], struct gps_owner *maker) {
    struct gps_token_handle token;
    memcpy(&token, handle, sizeof(token));
    if (!gps_token_is(handle) || token.checksum != token_handle_sum(&token))
        return false;
    *maker = (struct gps_owner){.pid_ns = token.pid_ns,
                                .start = token.start,
                                .nonce = token.nonce,
                                .pid = token.pid,
                                .command = "?"};
    return true;
}

bool gps_token_is_of(const uint8_t handle[GPS_HANDLE_BYTES], const struct gps_store *store) {
    struct gps_token_handle token;
    memcpy(&token, handle, sizeof(token));
    return token.directory && token.directory == store_number(store);
}
