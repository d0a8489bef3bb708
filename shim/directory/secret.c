#define XXH_INLINE_ALL
#include <xxhash.h>

#include "secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "file.h"

static uint64_t secret_sum(const struct gps_secret *secret) {
    return XXH3_64bits(secret, offsetof(struct gps_secret, checksum));
}

/* Whether it is a whole secret of another version of gpushare. */
static bool is_foreign(const struct gps_secret *secret, ssize_t size) {
    return size >= (ssize_t)offsetof(struct gps_secret, bytes) &&
           memcmp(secret->magic, GPS_SECRET_MAGIC, sizeof(secret->magic)) == 0 &&
           secret->version != GPS_FORMAT_VERSION;
}

static const char *secret_check(const struct gps_secret *secret, ssize_t size) {
    if (size != (ssize_t)sizeof(*secret))
        return "the secret is too short";
    if (memcmp(secret->magic, GPS_SECRET_MAGIC, sizeof(secret->magic)) != 0)
        return "the secret has a wrong magic number";
    return secret->size == sizeof(*secret) && secret->checksum == secret_sum(secret)
               ? NULL
               : "the secret has a wrong checksum";
}

static int secret_read_file(const struct gps_store *store, struct gps_secret *secret,
                            const char **why) {
    char path[GPS_FILE_PATH];
    gps_file_path(store, GPS_SECRET, NULL, path);
    const int fd = gps_file_open(AT_FDCWD, path, O_RDONLY, NULL, why);
    if (fd < 0)
        return fd;
    const ssize_t size = gps_file_read(fd, secret, sizeof(*secret), 0);
    close(fd);
    if (size < 0 || is_foreign(secret, size))
        return size < 0 ? (int)size : -EPROTO;
    const char *wrong = secret_check(secret, size);
    if (wrong)
        *why = wrong;
    return wrong ? -EBADMSG : 0;
}

static int secret_fill(struct gps_secret *secret) {
    *secret = (struct gps_secret){
        .magic = GPS_SECRET_MAGIC, .version = GPS_FORMAT_VERSION, .size = sizeof(*secret)};
    if (getrandom(secret->bytes, sizeof(secret->bytes), GRND_NONBLOCK) !=
        (ssize_t)sizeof(secret->bytes))
        return -EAGAIN; /* the machine has just started */
    secret->checksum = secret_sum(secret);
    return 0;
}

/* The whole file appears under its name at once, and never in the place of another one. */
static int secret_make(const struct gps_store *store, const struct gps_owner *self) {
    struct gps_secret secret;
    char temp[GPS_FILE_PATH], path[GPS_FILE_PATH];
    int status = secret_fill(&secret);
    if (status == 0)
        status = gps_temp_write(store, ".", self, &secret, sizeof(secret), temp);
    if (status < 0)
        return status;
    gps_file_path(store, GPS_SECRET, NULL, path);
    status = gps_file_rename_new(AT_FDCWD, temp, path);
    if (status < 0)
        unlink(temp);
    return status == -EEXIST ? 0 : status;
}

int gps_secret_get(const struct gps_store *store, const struct gps_owner *self,
                   uint8_t bytes[GPS_SECRET_BYTES], const char **why) {
    struct gps_secret secret;
    int status = secret_read_file(store, &secret, why);
    if (status == -ENOENT) {
        status = secret_make(store, self);
        if (status == 0)
            status = secret_read_file(store, &secret, why);
    }
    if (status == 0)
        memcpy(bytes, secret.bytes, GPS_SECRET_BYTES);
    return status;
}

bool gps_secret_damaged(const struct gps_store *store) {
    struct gps_secret secret;
    const char *why;
    return secret_read_file(store, &secret, &why) == -EBADMSG;
}
