/*
 * doctor_directory.c - can the published directory be made and used, and is there room in it.
 */
#include <errno.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "directory/view.h"
#include "doctor.h"

#define ROOM_NEEDED (1u << 20) /* less, and the store publishes nothing */
#define ROOM_WANTED (8u << 20) /* some 2,000 regions and processes */

static bool check_words(struct doctor *doctor, const struct view_place *place) {
    if (place->root[0] != '/') {
        doctor_say(doctor, DOCTOR_FAIL, "directory", "GPUSHARE_DIR '%s' is not an absolute path",
                   place->root);
        doctor_remedy(doctor, "set it to a path that begins with /, or unset it");
        return false;
    }
    if (!gps_name_valid(place->name_space)) {
        doctor_say(doctor, DOCTOR_FAIL, "directory", "GPUSHARE_NAMESPACE '%s' is not a valid name",
                   place->name_space);
        doctor_remedy(doctor, "use 1 to 127 of [A-Za-z0-9._-] without a leading dot, or unset it");
        return false;
    }
    return true;
}

/* The nearest directory above the root, or the root itself, that exists. */
static void existing(const char *root, char path[GPS_STORE_PATH]) {
    struct stat status;
    snprintf(path, GPS_STORE_PATH, "%s", root);
    while (path[1] != 0 && stat(path, &status) != 0) {
        char *slash = strrchr(path, '/');
        slash[slash == path ? 1 : 0] = 0;
    }
}

static bool check_parent(struct doctor *doctor, const struct view_place *place, const char *above) {
    if (!place->chosen && access("/dev/shm", F_OK) != 0) {
        doctor_say(doctor, DOCTOR_FAIL, "directory", "there is no /dev/shm");
        doctor_remedy(doctor,
                      "mount -t tmpfs -o mode=1777 tmpfs /dev/shm, or set GPUSHARE_DIR to a "
                      "directory on a tmpfs");
        return false;
    }
    if (strcmp(above, place->root) != 0 && access(above, W_OK | X_OK) != 0) {
        doctor_say(doctor, DOCTOR_FAIL, "directory", "%s cannot be made: %s: %s", place->root,
                   above, strerror(errno));
        doctor_remedy(
            doctor, "make %s writable for you, or set GPUSHARE_DIR to a directory of yours", above);
        return false;
    }
    return true;
}

static void check_room(struct doctor *doctor, const char *above) {
    struct statfs system;
    char room[VIEW_TEXT];
    if (statfs(above, &system) != 0)
        return;
    uint64_t left = (uint64_t)system.f_bavail * (uint64_t)system.f_bsize;
    view_size(left, room);
    if (left < ROOM_WANTED) {
        doctor_say(doctor, left < ROOM_NEEDED ? DOCTOR_FAIL : DOCTOR_WARN, "room",
                   "%s left in %s; a region or process needs 4 KiB, and the last 1 MiB is not used",
                   room, above);
        doctor_remedy(doctor,
                      "remove files there (gpushare gc), or enlarge it (docker: --shm-size)");
    } else if (system.f_type != TMPFS_MAGIC) {
        doctor_say(doctor, DOCTOR_WARN, "room",
                   "%s left in %s, which is not a tmpfs: slower, and "
                   "wrong if it is a network file system",
                   room, above);
        doctor_remedy(doctor, "set GPUSHARE_DIR to a directory on a tmpfs that all processes see");
    } else {
        doctor_say(doctor, DOCTOR_OK, "room", "%s left in %s", room, above);
    }
}

/* Which of the two directories the store refused, and why. */
static void explain_refusal(struct doctor *doctor, const struct view_place *place, int error) {
    char full[2 * GPS_STORE_PATH];
    const char *path = place->root;
    struct stat status;
    snprintf(full, sizeof(full), "%s/%s", place->root, place->name_space);
    if (lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
        (status.st_mode & 077) == 0)
        path = full;
    if (lstat(path, &status) != 0) {
        doctor_say(doctor, DOCTOR_FAIL, "directory", "%s: %s", path, view_store_trouble(error));
    } else if (!S_ISDIR(status.st_mode)) {
        doctor_say(doctor, DOCTOR_FAIL, "directory", "%s is not a directory", path);
        doctor_remedy(doctor, "remove it, or set GPUSHARE_DIR to another directory");
    } else if (status.st_uid != geteuid()) {
        doctor_say(doctor, DOCTOR_FAIL, "directory", "%s belongs to uid %u, you are %u", path,
                   status.st_uid, geteuid());
        doctor_remedy(doctor, "use one uid for all programs that share, or set GPUSHARE_DIR to a "
                              "directory of yours");
    } else if ((status.st_mode & 077) != 0) {
        doctor_say(doctor, DOCTOR_FAIL, "directory", "%s is open to others: its mode is %04o", path,
                   status.st_mode & 07777);
        doctor_remedy(doctor, "chmod 700 %s", path);
    } else {
        doctor_say(doctor, DOCTOR_FAIL, "directory", "%s: %s", path, view_store_trouble(error));
    }
}

void doctor_directory(struct doctor *doctor) {
    struct view_place place;
    struct gps_store store;
    char above[GPS_STORE_PATH];
    view_place_get(&place);
    if (!check_words(doctor, &place))
        return;
    existing(place.root, above);
    if (!check_parent(doctor, &place, above))
        return;
    int error = view_store(&place, &store);
    if (error == 0 || error == -ENOENT)
        doctor_say(doctor, DOCTOR_OK, "directory", "%s%s; programs of uid %u share there",
                   store.path, error == 0 ? "" : " (the first program makes it)", geteuid());
    else
        explain_refusal(doctor, &place, error);
    check_room(doctor, above);
}
