#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"

/* Whether only this user can read and write the directory. */
static int check_directory(int fd) {
    struct stat st;
    if (fstat(fd, &st) != 0)
        return -errno;
    return st.st_uid == geteuid() && (st.st_mode & 077) == 0 ? 0 : -EPERM;
}

static int make(int at, const char *name) {
    if (mkdirat(at, name, 0700) != 0)
        return errno == EEXIST ? 0 : -errno;
    /* The program's umask may have cleared bits of the mode. */
    return fchmodat(at, name, 0700, 0) == 0 ? 0 : -errno;
}

/* Opens the directory `name` of `at`, which it makes if told to: a descriptor or -errno. */
static int enter(int at, const char *name, bool create) {
    int fd = gps_file_open_any(at, name, O_PATH | O_DIRECTORY);
    int status;
    if (fd == -ENOENT && create) {
        status = make(at, name);
        if (status < 0)
            return status;
        fd = gps_file_open_any(at, name, O_PATH | O_DIRECTORY);
    }
    if (fd < 0)
        return fd;
    status = check_directory(fd);
    if (status == 0)
        return fd;
    close(fd);
    return status;
}

static int check_children(int at, bool create) {
    static const char *const children[] = {"procs", GPS_REGIONS, "names", GPS_AUDIT};
    for (size_t i = 0; i < sizeof(children) / sizeof(*children); i++) {
        int fd = enter(at, children[i], create);
        if (fd == -ENOENT && strcmp(children[i], GPS_AUDIT) == 0)
            continue; /* of a version without it */
        if (fd < 0)
            return fd;
        close(fd);
    }
    return 0;
}

static int check_tree(const char *root, const char *name_space, bool create) {
    int at = enter(AT_FDCWD, root, create);
    if (at < 0)
        return at;
    int fd = enter(at, name_space, create);
    int status = fd;
    if (fd >= 0) {
        status = check_children(fd, create);
        close(fd);
    }
    close(at);
    return status;
}

int gps_store_init(struct gps_store *store, const char *root, const char *name_space, bool create) {
    char path[GPS_STORE_PATH];
    struct gps_text out = GPS_TEXT(path);
    size_t length = strlen(root);
    if (root[0] != '/' || !gps_name_valid(name_space))
        return -EINVAL;
    while (length > 1 && root[length - 1] == '/') /* "link/" would be followed */
        length--;
    if (length + 1 + strlen(name_space) >= sizeof(path))
        return -ENAMETOOLONG;
    gps_text_bytes(&out, root, length);
    int status = check_tree(path, name_space, create);
    if (status < 0)
        return status;
    gps_text_strs(&out, "/", name_space);
    memcpy(store->path, path, sizeof(path));
    store->records = GPS_REGIONS;
    return 0;
}

/* What of the store is open to others than this user, and what closes it. */
static void open_to_others(struct gps_text *text, const char *root, const char *name_space) {
    static const char *const below[] = {"", "/procs", "/" GPS_REGIONS, "/names", "/" GPS_AUDIT};
    char path[GPS_STORE_PATH];
    struct gps_text out = GPS_TEXT(path);
    struct stat st;
    size_t i = 0;
    gps_text_str(&out, root);
    while (lstat(path, &st) != 0 || st.st_uid != geteuid() || !(st.st_mode & 077)) {
        if (i == sizeof(below) / sizeof(*below)) {
            gps_text_str(text, "it or a directory on the way is not yours");
            return;
        }
        out = GPS_TEXT(path);
        gps_text_strs(&out, root, "/", name_space, below[i++]);
    }
    gps_text_add(text, "%s is open to others (mode %u%u%u%u); close it: chmod 700 %s", path,
                 st.st_mode >> 9 & 7, st.st_mode >> 6 & 7, st.st_mode >> 3 & 7, st.st_mode & 7,
                 path);
}

void gps_store_trouble(struct gps_text *text, const char *root, const char *name_space,
                       int status) {
    if (status == -EPERM)
        open_to_others(text, root, name_space);
    else if (status == -EINVAL)
        gps_text_str(text, root[0] == '/' ? "GPUSHARE_NAMESPACE is no name"
                                          : "GPUSHARE_DIR must be an absolute path");
    else if (status == -ENOTDIR || status == -ELOOP)
        gps_text_str(text, "it is not a directory, or a symbolic link is on the way");
    else
        gps_text_str(text, gps_error_text(-status));
}

const char *gps_store_namespace(void) {
    const char *name = getenv("GPUSHARE_NAMESPACE");
    return name && *name ? name : "default";
}

bool gps_store_root(char *path, size_t size) {
    const char *given = getenv("GPUSHARE_DIR"), *shared = getenv("NVIDIA_DRA_LOCAL_IPC_DIR");
    const bool chosen = given && *given;
    struct gps_text out = gps_text_on(path, size);
    if (chosen)
        gps_text_str(&out, given);
    else
        gps_text_add(&out, "%s/gpushare-%u", shared && *shared ? shared : "/dev/shm", geteuid());
    return chosen;
}
