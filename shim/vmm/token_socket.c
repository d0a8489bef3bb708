/* token_socket.c - see token_socket.h. */
#include "token_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "directory/file.h"
#include "util/descriptor_passing.h"
#include "util/high_descriptor.h"
#include "util/procfs.h"
#include "util/text.h"

enum { BACKLOG = 64 };
typedef int call_fn(int fd, const struct sockaddr *address, socklen_t size);

/* --- the address --- */

static void add_name(struct gps_text *out, const struct gps_owner *owner) {
    char name[GPS_PROC_NAME];
    gps_owner_format(owner, name);
    gps_text_strs(out, "/.tmp.", name);
    gps_text_str(out, GPS_TOKEN_SOCKET);
}

/* A path that is too long goes through a descriptor of the directory. */
static int through_descriptor(const struct gps_store *store, const struct gps_owner *owner,
                              struct sockaddr_un *address, int *at) {
    char descriptors[GPS_PROCFS_PATH];
    *at = gps_file_open_any(AT_FDCWD, store->path, O_PATH | O_DIRECTORY);
    if (*at < 0)
        return *at;
    gps_procfs_path("fd", descriptors);
    struct gps_text out = GPS_TEXT(address->sun_path);
    gps_text_add(&out, "%s/%lu", descriptors, (uint64_t)*at);
    add_name(&out, owner);
    return out.cut ? -ENAMETOOLONG : 0;
}

/* Calls connect or bind with the address: 0 or -errno. */
static int with_address(call_fn *call, int fd, const struct gps_store *store,
                        const struct gps_owner *owner) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int at = -1, status = 0;
    struct gps_text out = GPS_TEXT(address.sun_path);
    gps_text_str(&out, store->path);
    add_name(&out, owner);
    if (out.cut)
        status = through_descriptor(store, owner, &address, &at);
    if (status == 0 &&
        TEMP_FAILURE_RETRY(call(fd, (const struct sockaddr *)&address, sizeof(address))) != 0)
        status = -errno;
    if (at >= 0)
        close(at);
    return status;
}

static int make(void) {
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 ? -errno : gps_descriptor_move_high(fd);
}

int gps_token_socket_listen(const struct gps_store *store, const struct gps_owner *self) {
    const int fd = make();
    if (fd < 0)
        return fd;
    int status = with_address(bind, fd, store, self);
    if (status == 0 && listen(fd, BACKLOG) != 0)
        status = -errno;
    if (status == 0)
        return fd;
    close(fd);
    return status;
}

void gps_token_socket_remove(const struct gps_store *store, const struct gps_owner *self) {
    char path[GPS_FILE_PATH];
    struct gps_text out = GPS_TEXT(path);
    gps_text_str(&out, store->path);
    add_name(&out, self);
    unlink(path);
}

int gps_token_socket_dial(const struct gps_store *store, const struct gps_owner *owner) {
    const int fd = make();
    if (fd < 0)
        return fd;
    int status = with_address(connect, fd, store, owner);
    if (status == 0 && !gps_passing_is_ours(fd))
        status = -EPERM;
    if (status == 0)
        return fd;
    close(fd);
    return status;
}

/* --- the messages --- */

bool gps_token_request_valid(const struct gps_token_request *request, long size) {
    return size == (long)sizeof(*request) && request->version == GPS_FORMAT_VERSION &&
           memcmp(request->magic, GPS_TOKEN_MAGIC, sizeof(request->magic)) == 0;
}

static bool is_within(uint64_t at, uint64_t size, uint64_t place, uint64_t place_size) {
    return size && at >= place && size <= place_size && at - place <= place_size - size;
}

/* They lie one behind the other, from `at` on. */
static bool are_adjoining(const struct gps_token_reply *reply, uint64_t at) {
    for (uint32_t i = 0; i < reply->count; i++) {
        const struct gps_token_block *block = &reply->blocks[i];
        if (block->at != at || !is_within(at, block->size, reply->run, reply->run_size))
            return false;
        at += block->size;
    }
    return true;
}

bool gps_token_reply_valid(const struct gps_token_reply *reply, long size,
                           const struct gps_token_request *request) {
    if (size != (long)sizeof(*reply) || reply->version != GPS_FORMAT_VERSION ||
        memcmp(reply->magic, GPS_TOKEN_MAGIC, sizeof(reply->magic)) != 0 || reply->status > 0 ||
        !gps_id_equal(&reply->id, &request->id))
        return false;
    return reply->status < 0 ||
           (reply->count && reply->count <= GPS_TOKEN_BLOCKS && reply->place &&
            is_within(reply->run, reply->run_size, reply->place, reply->place_size) &&
            reply->place <= UINT64_MAX - reply->place_size &&
            are_adjoining(reply, request->from ? request->from : reply->run));
}
