/* hashes.c - see hashes.h. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hashes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "directory/region.h"

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
    const uint64_t tail = size - sizeof(*header);
    if (size < sizeof(*header) || tail % sizeof(uint64_t) != 0 ||
        tail / sizeof(uint64_t) != gps_hashes_count(header->written))
        return "size of the file does not match";
    return NULL;
}

const char *gps_hashes_check_sum(const struct gps_region_hashes *header, const uint64_t *hashes) {
    return header->sum == XXH3_64bits(hashes, bytes_of(header->written))
               ? NULL
               : "checksum of the hashes does not match";
}

static int write_all(int fd, const struct gps_region_hashes *header, const uint64_t *hashes) {
    const int status = gps_file_room(fd);
    const int wrote = status < 0 ? status : gps_file_write(fd, header, sizeof(*header), 0);
    return wrote < 0 ? wrote
                     : gps_file_write(fd, hashes, bytes_of(header->written), sizeof(*header));
}

int gps_region_set_hashes(const struct gps_store *store, const struct gps_id *id,
                          const struct gps_owner *self, uint64_t written, const uint64_t *hashes) {
    struct gps_region_hashes header = {.id = *id, .written = written};
    char name[GPS_TEMP_NAME], temp[GPS_FILE_PATH], path[GPS_FILE_PATH];
    gps_hashes_seal(&header, hashes);
    gps_temp_format(self, name);
    gps_file_path(store, "regions", name, temp);
    gps_region_path(store, id, GPS_HASHES_SUFFIX, path);
    const int fd = gps_file_create(AT_FDCWD, temp);
    if (fd < 0)
        return fd;
    int status = write_all(fd, &header, hashes);
    close(fd);
    if (status == 0)
        status = gps_file_rename(AT_FDCWD, temp, path);
    if (status < 0)
        unlink(temp);
    return status;
}

static int read_checked(int fd, uint64_t size, const struct gps_id *id, uint64_t written,
                        uint64_t *hashes) {
    struct gps_region_hashes header;
    ssize_t n = gps_file_read(fd, &header, sizeof(header), 0);
    if (n == (ssize_t)sizeof(header) && !gps_hashes_check(&header, size) &&
        gps_id_equal(&header.id, id) && header.written == written) {
        n = gps_file_read(fd, hashes, bytes_of(written), sizeof(header));
        if (n == (ssize_t)bytes_of(written) && !gps_hashes_check_sum(&header, hashes))
            return 0;
    }
    return n < 0 ? (int)n : -EBADMSG;
}

int gps_region_read_hashes(const struct gps_store *store, const struct gps_id *id, uint64_t written,
                           uint64_t *hashes) {
    char path[GPS_FILE_PATH];
    struct stat st;
    gps_region_path(store, id, GPS_HASHES_SUFFIX, path);
    const int fd = gps_file_open(AT_FDCWD, path, O_RDONLY, &st, NULL);
    if (fd < 0)
        return fd;
    const int status = read_checked(fd, (uint64_t)st.st_size, id, written, hashes);
    close(fd);
    return status;
}

void gps_region_drop_hashes(const struct gps_store *store, const struct gps_id *id) {
    char path[GPS_FILE_PATH];
    gps_region_path(store, id, GPS_HASHES_SUFFIX, path);
    unlink(path);
}

bool gps_region_has_hashes(const struct gps_store *store, const struct gps_id *id) {
    char path[GPS_FILE_PATH];
    gps_region_path(store, id, GPS_HASHES_SUFFIX, path);
    return access(path, F_OK) == 0;
}
