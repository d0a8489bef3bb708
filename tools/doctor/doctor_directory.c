/* doctor_directory.c - checks that the published directory can be made and used, and has room. */
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "cli/environment.h"
#include "cli/printable.h"
#include "cli/tool.h"
#include "directory/excluded.h"
#include "directory/orphans.h"
#include "directory/processes.h"
#include "doctor.h"

#define ROOM_NEEDED (1u << 20) /* less, and the store publishes nothing */
#define ROOM_WANTED (8u << 20) /* some 2,000 regions and processes */

static bool check_environment(struct doctor *doctor, const struct view_place *place) {
    if (place->root[0] != '/') {
        diagnosis_add(doctor, DOCTOR_FAIL, "directory", "'%s', from %s, is not an absolute path",
                      place->root, place->chosen ? "GPUSHARE_DIR" : "NVIDIA_DRA_LOCAL_IPC_DIR");
        diagnosis_remedy(doctor, "set that to a path that begins with /, or unset it");
        return false;
    }
    TOOL_TEMP char *wrong = environment_place();
    if (wrong) {
        diagnosis_add(doctor, DOCTOR_FAIL, "directory", "%s", wrong);
        diagnosis_remedy(doctor, "correct it, or unset it");
    }
    return !wrong;
}

void doctor_existing(const char *root, char path[GPS_STORE_PATH]) {
    struct stat info;
    snprintf(path, GPS_STORE_PATH, "%s", root);
    while (path[1] != 0 && stat(path, &info) != 0) {
        char *slash = strrchr(path, '/');
        slash[slash == path ? 1 : 0] = 0;
    }
}

/* Whether the kernel makes the files there, as in /proc, and no program can. */
static bool is_kernels(const char *path) {
    static const long kinds[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC,
                                 CGROUP2_SUPER_MAGIC, DEVPTS_SUPER_MAGIC};
    struct statfs system;
    bool found = false;
    if (statfs(path, &system) != 0)
        return false;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        found = found || system.f_type == kinds[i];
    return found;
}

/* Why the root cannot be made in this directory; NULL: it can. Programs make none above it. */
static const char *why_not_below(const char *above, const char *root) {
    const size_t length = strlen(above);
    struct stat info;
    if (stat(above, &info) == 0 && !S_ISDIR(info.st_mode))
        return "is not a directory";
    if (is_kernels(above))
        return "holds no files of programs";
    const char *slash = strchr(root + length + 1, '/');
    if (slash && slash[1])
        return "has none of the directories between (mkdir -p)";
    return access(above, W_OK | X_OK) == 0 ? NULL : "may not be written";
}

static bool check_parent(struct doctor *doctor, const struct view_place *place, const char *above) {
    if (strncmp(place->root, "/dev/shm/", 9) == 0 && access("/dev/shm", F_OK) != 0) {
        diagnosis_add(doctor, DOCTOR_FAIL, "directory", "there is no /dev/shm");
        diagnosis_remedy(doctor,
                         "mount -t tmpfs -o mode=1777 tmpfs /dev/shm, or set GPUSHARE_DIR to a "
                         "directory on a tmpfs");
        return false;
    }
    const char *why = strcmp(above, place->root) == 0 ? NULL : why_not_below(above, place->root);
    if (!why)
        return true;
    diagnosis_add(doctor, DOCTOR_FAIL, "directory", "%s cannot be made: %s %s", place->root, above,
                  why);
    diagnosis_remedy(doctor, "set GPUSHARE_DIR to a directory on a tmpfs in which you may write%s",
                     place->chosen ? ", or unset it" : "");
    return false;
}

static void check_room(struct doctor *doctor, const char *above) {
    struct statfs system;
    if (statfs(above, &system) != 0)
        return;
    uint64_t left = (uint64_t)system.f_bavail * (uint64_t)system.f_bsize;
    const struct printable size = printable_size(left);
    if (left < ROOM_WANTED) {
        diagnosis_add(
            doctor, left < ROOM_NEEDED ? DOCTOR_FAIL : DOCTOR_WARN, "room",
            "%s left in %s; a region or process needs 4 KiB, and the last 1 MiB is not used",
            size.text, above);
        diagnosis_remedy(doctor,
                         "remove files there (gpushare gc), or enlarge it (docker: --shm-size)");
    } else if (system.f_type != TMPFS_MAGIC) {
        diagnosis_add(doctor, DOCTOR_WARN, "room",
                      "%s left in %s, which is not a tmpfs: slower, and "
                      "wrong if it is a network file system",
                      size.text, above);
        diagnosis_remedy(doctor,
                         "set GPUSHARE_DIR to a directory on a tmpfs that all processes see");
    } else {
        diagnosis_add(doctor, DOCTOR_OK, "room", "%s left in %s", size.text, above);
    }
}

/* In a user namespace a user of the host whom it does not have is shown as "nobody". */
static void remedy_for_owner(struct doctor *doctor, uid_t owner) {
    static const uid_t nobody = 65534;
    if (owner == nobody && doctor_in_container())
        diagnosis_remedy(doctor,
                         "a user of the host that this container does not have: run gpushare cdi "
                         "and all containers as one user of the host");
    else
        diagnosis_remedy(doctor,
                         "use one uid for all programs that share (a container: --user %u), or set "
                         "GPUSHARE_DIR to a directory of yours",
                         owner);
}

/* Whether a directory of the store is as it must be, or not there yet. */
static bool check_one(struct doctor *doctor, const char *path) {
    struct stat info;
    if (lstat(path, &info) != 0) {
        if (errno == ENOENT)
            return true;
        diagnosis_add(doctor, DOCTOR_FAIL, "directory", "%s: %s", path, strerror(errno));
    } else if (!S_ISDIR(info.st_mode)) {
        diagnosis_add(doctor, DOCTOR_FAIL, "directory", "%s is not a directory", path);
        diagnosis_remedy(doctor, "remove it, or set GPUSHARE_DIR to another directory");
    } else if (info.st_uid != geteuid()) {
        diagnosis_add(doctor, DOCTOR_FAIL, "directory", "%s belongs to uid %u, you are %u", path,
                      info.st_uid, geteuid());
        remedy_for_owner(doctor, info.st_uid);
    } else if ((info.st_mode & 0777) != 0700) {
        diagnosis_add(doctor, DOCTOR_FAIL, "directory", "%s is %s: its mode is %04o", path,
                      (info.st_mode & 077) != 0 ? "open to others" : "closed to its owner",
                      info.st_mode & 07777);
        diagnosis_remedy(doctor, "chmod 700 %s", path);
    } else if (access(path, R_OK | W_OK | X_OK) != 0) {
        diagnosis_add(doctor, DOCTOR_FAIL, "directory", "%s: %s", path, strerror(errno));
        diagnosis_remedy(doctor, "make it writable, or set GPUSHARE_DIR to another directory");
    } else {
        return true;
    }
    return false;
}

static bool check_directories(struct doctor *doctor, const struct view_place *place) {
    static const char *const below[] = {"", "/procs", "/regions", "/names"};
    char path[2 * GPS_STORE_PATH];
    bool good = check_one(doctor, place->root);
    for (size_t i = 0; i < 4 && good; i++) {
        snprintf(path, sizeof(path), "%s/%s%s", place->root, place->name_space, below[i]);
        good = check_one(doctor, path);
    }
    return good;
}

static void doctor_warn_of_odd_file(void *arg, const char *directory, const char *name) {
    struct doctor *doctor = arg;
    diagnosis_add(doctor, DOCTOR_WARN, "directory", "%s/%s is no file of gpushare's and is skipped",
                  directory, name);
    diagnosis_remedy(doctor, "remove it: it can stand where a file of gpushare's belongs");
}

static void warn_of_exclusions(struct doctor *doctor, const struct gps_store *store) {
    const struct excluded noted = excluded_count(store, NULL);
    const size_t count = noted.count - noted.suspected;
    if (count > 0)
        diagnosis_add(doctor, DOCTOR_WARN, "exclusions",
                      "%zu allocation%s not merged: a process that merged %s ended with error 700",
                      count, count == 1 ? " is" : "s are", count == 1 ? "it" : "them");
    if (noted.suspected > 0)
        diagnosis_add(doctor, DOCTOR_WARN, "exclusions",
                      "%zu allocation%s suspected once: not merged after another error 700",
                      noted.suspected, noted.suspected == 1 ? " is" : "s are");
    if (noted.count > 0)
        diagnosis_remedy(doctor, "gpushare forget -n lists them; leave them out of the rule, or "
                                 "have them tried again with gpushare forget");
}

struct unmerged {
    uint32_t count, pid; /* of the first */
    uint64_t why;
};

static bool count_not_merging(void *arg, const struct gps_proc *proc) {
    struct unmerged *found = arg;
    for (unsigned i = 0; !proc->why && proc->alive && i < proc->slot_count; i++)
        if (proc->slots[i].via == GPS_VIA_NOT_MERGING && found->count++ == 0) {
            found->pid = proc->header.owner.pid;
            found->why = proc->slots[i].address;
        }
    return true;
}

static void warn_of_not_merging(struct doctor *doctor, const struct gps_store *store) {
    struct unmerged found = {.count = 0};
    gps_proc_each(store, count_not_merging, &found);
    if (found.count > 0)
        diagnosis_add(doctor, DOCTOR_WARN, "merging",
                      "%u process%s (pid %u%s) merge%s nothing, though a rule says so: %s",
                      found.count, found.count == 1 ? "" : "es", found.pid,
                      found.count == 1 ? "" : ", ...", found.count == 1 ? "s" : "",
                      gps_not_merging_why(found.why));
}

void doctor_directory(struct doctor *doctor) {
    const struct view_place *place = &doctor->place;
    const struct gps_store *store = &doctor->store;
    const int status = doctor->store_status;
    char above[GPS_STORE_PATH];
    if (!check_environment(doctor, place))
        return;
    doctor_existing(place->root, above);
    if (!check_parent(doctor, place, above) || !check_directories(doctor, place))
        return;
    TOOL_TEMP char *trouble = view_store_trouble(place, status), *others = view_other_users();
    if (status == 0 || status == -ENOENT)
        diagnosis_add(doctor, DOCTOR_OK, "directory", "%s%s; programs of uid %u share there",
                      store->path, status == 0 ? "" : " (the first program makes it)", geteuid());
    else
        diagnosis_add(doctor, DOCTOR_FAIL, "directory", "%s: %s", place->root, trouble);
    if (others)
        diagnosis_add(doctor, DOCTOR_OK, "users", "%s", others);
    doctor_removed(doctor);
    if (status == 0) {
        gps_odd_each(store, doctor_warn_of_odd_file, doctor);
        warn_of_exclusions(doctor, store);
        warn_of_not_merging(doctor, store);
    }
    check_room(doctor, above);
}
