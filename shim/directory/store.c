#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"

static int store_make_path(const char *path) {
    if (mkdir(path, 0700) != 0)
        return errno == EEXIST ? 0 : -errno;
    /* The program's umask may have cleared bits of the mode. */
    return chmod(path, 0700) == 0 ? 0 : -errno;
}

/* Whether the path is a directory that only this user can read and write; makes it if told to. */
static int store_check_path(const char *path, uid_t user, bool create) {
    struct stat st;
    int status = lstat(path, &st) == 0 ? 0 : -errno;
    if (status == -ENOENT && create) {
        status = store_make_path(path);
        if (status == 0 && lstat(path, &st) != 0)
            status = -errno;
    }
    if (status < 0)
        return status;
    if (!S_ISDIR(st.st_mode))
        return -ENOTDIR;
    return st.st_uid == user && (st.st_mode & 077) == 0 ? 0 : -EPERM;
}

/* The directories of a namespace; "": itself. */
static const char *const below[] = {"",       "/procs",      "/" GPS_REGIONS,
                                    "/names", "/" GPS_AUDIT, "/" GPS_FREED};
enum { BELOW = sizeof(below) / sizeof(*below), NEEDED = BELOW - 2 };

static int check_tree(const char *root, const char *name_space, bool create) {
    const uid_t user = geteuid();
    int status = store_check_path(root, user, create);
    for (size_t i = 0; i < BELOW && status == 0; i++) {
        GPS_NEW_TEXT(path, GPS_FILE_PATH);
        gps_text_strs(&path, root, "/", name_space, below[i]);
        status = store_check_path(path.bytes, user, create);
        if (status == -ENOENT && i >= NEEDED)
            status = 0; /* made by a version without it */
    }
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

/* Names the directory of the store that is open to other users, and the command that closes it. */
static void open_to_others(struct gps_text *text, const char *root, const char *name_space) {
    char path[GPS_STORE_PATH];
    struct gps_text out = GPS_TEXT(path);
    struct stat st;
    size_t i = 0;
    gps_text_str(&out, root);
    while (lstat(path, &st) != 0 || st.st_uid != geteuid() || !(st.st_mode & 077)) {
        if (i == BELOW) {
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
