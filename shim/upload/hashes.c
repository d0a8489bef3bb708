/* hashes.c - see hashes.h. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "directory/file.h"
#include "directory/ownership.h"
#include "directory/region.h"
#include "hashes.h"

static uint64_t header_sum(const struct gps_region_hashes *header) {
    return XXH3_64bits(header, offsetof(struct gps_region_hashes, checksum));
}

uint64_t gps_hashes_count(uint64_t written) {
    return written / GPS_HASH_CHUNK + (written % GPS_HASH_CHUNK != 0);
}

static size_t bytes_of(uint64_t written) {
    return (size_t)gps_hashes_count(written) * sizeof(uint64_t);
}

void gps_hashes_seal(struct gps_region_hashes *header, const uint64_t *hashes) {
    memcpy(header->magic, GPS_HASHES_MAGIC, sizeof(header->magic));
    header->version = GPS_FORMAT_VERSION;
    header->size = sizeof(*header);
    header->sum = XXH3_64bits(hashes, bytes_of(header->written));
    header->checksum = header_sum(header);
}

const char *gps_hashes_check(const struct gps_region_hashes *header, uint64_t size) {
    if (memcmp(header->magic, GPS_HASHES_MAGIC, sizeof(header->magic)) != 0)
        return "magic does not match";
    if (header->version != GPS_FORMAT_VERSION)
        return "version is not supported";
    if (header->size != sizeof(*header))
        return "size field does not match";
    if (header->checksum != header_sum(header))
        return "checksum does not match";
    if (size < sizeof(*header) || (size - sizeof(*header)) % sizeof(uint64_t) != 0 ||
        (size - sizeof(*header)) / sizeof(uint64_t) != gps_hashes_count(header->written))
        return "size of the file does not match";
    return NULL;
}

const char *gps_hashes_check_sum(const struct gps_region_hashes *header, const uint64_t *hashes) {
    return header->sum == XXH3_64bits(hashes, bytes_of(header->written))
               ? NULL
               : "checksum of the hashes does not match";
}

static void name_of(const struct gps_id *id, char name[GPS_ID_HEX + sizeof(GPS_HASHES_SUFFIX)]) {
    gps_id_format(id, name);
    memcpy(name + GPS_ID_HEX - 1, GPS_HASHES_SUFFIX, sizeof(GPS_HASHES_SUFFIX));
}

static int write_all(int at, const char *temp, const struct gps_region_hashes *header,
                     const uint64_t *hashes) {
    int fd = gps_file_create(at, temp);
    int status;

    if (fd < 0)
        return fd;
    status = gps_file_write(fd, header, sizeof(*header), 0);
    if (status == 0)
        status = gps_file_write(fd, hashes, bytes_of(header->written), sizeof(*header));
    close(fd);
    return status;
}

int gps_region_set_hashes(const struct gps_store *store, const struct gps_id *id,
                          const struct gps_owner *self, uint64_t written, const uint64_t *hashes) {
    struct gps_region_hashes header = {.id = *id, .written = written};
    char name[GPS_ID_HEX + sizeof(GPS_HASHES_SUFFIX)];
    char temp[GPS_TEMP_NAME];
    int at = gps_file_directory(store, "regions");
    int status;

    if (at < 0)
        return at;
    gps_hashes_seal(&header, hashes);
    gps_temp_format(self, temp);
    name_of(id, name);
    status = gps_file_room(at);
    if (status == 0) {
        status = write_all(at, temp, &header, hashes);
        if (status == 0)
            status = gps_file_rename(at, temp, name);
        if (status < 0)
            unlinkat(at, temp, 0);
    }
    close(at);
    return status;
}

static int read_checked(int fd, uint64_t size, const struct gps_id *id, uint64_t written,
                        uint64_t *hashes) {
    struct gps_region_hashes header;
    ssize_t n = gps_file_read(fd, &header, sizeof(header), 0);

    if (n < 0)
        return (int)n;
    if (n != (ssize_t)sizeof(header) || gps_hashes_check(&header, size) != NULL ||
        !gps_id_equal(&header.id, id) || header.written != written)
        return -EBADMSG;
    n = gps_file_read(fd, hashes, bytes_of(written), sizeof(header));
    if (n < 0)
        return (int)n;
    return (size_t)n == bytes_of(written) && gps_hashes_check_sum(&header, hashes) == NULL
               ? 0
               : -EBADMSG;
}

int gps_region_read_hashes(const struct gps_store *store, const struct gps_id *id, uint64_t written,
                           uint64_t *hashes) {
    char path[GPS_FILE_PATH];
    char name[GPS_ID_HEX + sizeof(GPS_HASHES_SUFFIX)];
    struct stat st;
    int fd, status;

    name_of(id, name);
    gps_file_path(store, "regions", name, path);
    fd = gps_file_open(AT_FDCWD, path, O_RDONLY, &st, NULL);
    if (fd < 0)
        return fd;
    status = read_checked(fd, (uint64_t)st.st_size, id, written, hashes);
    close(fd);
    return status;
}

void gps_region_drop_hashes(const struct gps_store *store, const struct gps_id *id) {
    char path[GPS_FILE_PATH];
    char name[GPS_ID_HEX + sizeof(GPS_HASHES_SUFFIX)];

    name_of(id, name);
    gps_file_path(store, "regions", name, path);
    unlink(path);
}

bool gps_region_has_hashes(const struct gps_store *store, const struct gps_id *id) {
    char path[GPS_FILE_PATH];
    char name[GPS_ID_HEX + sizeof(GPS_HASHES_SUFFIX)];

    name_of(id, name);
    gps_file_path(store, "regions", name, path);
    return access(path, F_OK) == 0;
}
