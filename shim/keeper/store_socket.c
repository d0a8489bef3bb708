#include "store_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/un.h>
#include <unistd.h>

#include "directory/file.h"
#include "util/descriptors.h"
#include "util/procfs.h"
#include "util/text.h"

/* If its path is too long, the address goes through a descriptor of the directory, which the caller
 * closes: *at, else -1. */
static int socket_address(const struct gps_store *store, const char *name,
                          struct sockaddr_un *address, int *at) {
    char descriptors[GPS_PROCFS_PATH];
    *at = -1;
    struct gps_text out = GPS_TEXT(address->sun_path);
    gps_text_strs(&out, store->path, "/", name);
    if (!out.cut)
        return 0;
    *at = gps_file_open_any(AT_FDCWD, store->path, O_PATH | O_DIRECTORY);
    if (*at < 0)
        return *at;
    gps_procfs_path("fd", descriptors);
    out = GPS_TEXT(address->sun_path);
    gps_text_add(&out, "%s/%lu/%s", descriptors, (uint64_t)*at, name);
    return out.cut ? -ENAMETOOLONG : 0;
}

static int open_at(const struct sockaddr_un *address, gps_socket_call *call) {
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int status =
        TEMP_FAILURE_RETRY(call(fd, (const struct sockaddr *)address, sizeof(*address))) != 0
            ? -errno
            : 0;
    if (status == 0 && call == connect && !gps_passing_is_ours(fd))
        status = -EPERM;
    if (status == 0)
        return fd;
    close(fd);
    return status;
}

int gps_store_socket(const struct gps_store *store, const char *name, gps_socket_call *call) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int at;
    const int status = socket_address(store, name, &address, &at);
    const int fd = status < 0 ? status : open_at(&address, call);
    if (at >= 0)
        close(at);
    return fd;
}
