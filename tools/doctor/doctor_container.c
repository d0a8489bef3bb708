/*
 * doctor_container.c - checks what separates programs of different containers.
 *
 * From inside a container, another one is visible only by what it publishes. So some checks look
 * for the usual settings of containers that are not meant to share.
 */
#include <glob.h>
#include <mntent.h>
#include <sys/stat.h>

#include "cli/tool.h"
#include "directory/processes.h"
#include "doctor.h"
#include "util/procfs.h"

/* --- the directory and /dev/shm --- */

static bool are_on_one_device(const char *one, const char *other) {
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev;
}

/* Whether /dev/shm is this container's own: podman, docker and containerd name its mount "shm". */
static bool is_own_shm(void) {
    const struct mntent *mount;
    bool own = false;
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    while (mounts && (mount = getmntent(mounts)))
        if (strcmp(mount->mnt_dir, "/dev/shm") == 0)
            own = strcmp(mount->mnt_fsname, "shm") == 0;
    if (mounts)
        endmntent(mounts);
    return own;
}

static void check_directory(struct doctor *doctor) {
    const struct view_place *place = &doctor->place;
    char path[GPS_STORE_PATH];
    doctor_existing(place->root, path);
    if (!are_on_one_device(path, "/") && !(is_own_shm() && are_on_one_device(path, "/dev/shm")))
        return;
    const char *const mounted = place->chosen ? place->root : "/run/gpushare";
    diagnosis_add(doctor, DOCTOR_WARN, "container",
                  "%s lies in this container alone: programs in others do not see its regions",
                  place->root);
    diagnosis_remedy(doctor,
                     "on the host: gpushare cdi --output /etc/cdi/gpushare.json; start all "
                     "containers with --device gpushare.io/namespace=default. Or on the host: "
                     "mkdir -p -m 700 /dev/shm/gpushare-%u; start all with -v "
                     "/dev/shm/gpushare-%u:%s -e GPUSHARE_DIR=%s",
                     geteuid(), geteuid(), mounted, mounted);
}

/* Measured: across containers with a /dev/shm each, memory handles work; events give 205. */
#define SHM_REMEDY                                                                                 \
    "start the containers with --ipc=host, or one with --ipc=shareable and the others with "       \
    "--ipc=container:NAME"

struct shms {
    struct gps_owner other; /* pid 0: no process has another one */
    bool common;            /* a process of another container has this one */
};

static bool compare_shm(void *arg, const struct gps_proc *proc) {
    struct shms *shms = arg;
    if (gps_proc_has_other_shm(proc))
        shms->other = proc->header.owner;
    else if (proc->alive && proc->header.shm_device != 0 &&
             proc->header.owner.pid_ns != gps_procfs_pid_ns())
        shms->common = true;
    return shms->other.pid == 0;
}

/* True: the processes in the directory say whether they have the same /dev/shm, and a diagnosis was
 * added if they do not. */
static bool check_shm_of_processes(struct doctor *doctor) {
    struct shms shms = {0};
    gps_proc_each(&doctor->store, compare_shm, &shms);
    if (shms.other.pid == 0)
        return shms.common;
    diagnosis_add(doctor, DOCTOR_WARN, "container",
                  "%s %u has another /dev/shm: CUDA IPC events between it and programs here fail "
                  "with 205 (memory does not mind)",
                  shms.other.command, shms.other.pid);
    diagnosis_remedy(doctor, SHM_REMEDY);
    return true;
}

/* A directory that comes from the host's /dev/shm, and another /dev/shm beside it, are two file
 * systems. Whether other containers have this one is not seen before their programs run. */
static void check_shm(struct doctor *doctor) {
    const char *const root = doctor->place.root;
    if (!is_own_shm() && (access(root, F_OK) != 0 || are_on_one_device(root, "/dev/shm")))
        return;
    diagnosis_add(doctor, DOCTOR_WARN, "container",
                  "/dev/shm seems not to be the host's: CUDA IPC events of containers that have "
                  "another one fail with 205 (memory does not mind)");
    diagnosis_remedy(doctor, SHM_REMEDY);
}

/* --- pids --- */

struct seen {
    struct gps_owner *list;
    size_t count;
};

static bool seen_note_process(void *arg, const struct gps_proc *proc) {
    struct seen *seen = arg;
    if (!proc->alive)
        return true;
    TOOL_APPEND(seen->list, seen->count, proc->header.owner);
    return true;
}

static const struct gps_owner *find_equal_pid(const struct seen *seen, size_t of) {
    for (size_t i = 0; i < of; i++)
        if (seen->list[i].pid == seen->list[of].pid &&
            seen->list[i].pid_ns != seen->list[of].pid_ns)
            return &seen->list[i];
    return NULL;
}

static void check_pids(struct doctor *doctor) {
    struct seen seen = {NULL, 0};
    const struct gps_owner *found = NULL;
    gps_proc_each(&doctor->store, seen_note_process, &seen);
    size_t at = 0;
    while (at < seen.count && !(found = find_equal_pid(&seen, at)))
        at++;
    if (found) {
        diagnosis_add(doctor, DOCTOR_WARN, "container",
                      "%s and %s are both process %u of their pid namespaces: the driver takes the "
                      "events of one for those of the other (memory is opened another way)",
                      found->command, seen.list[at].command, found->pid);
        diagnosis_remedy(doctor,
                         "start them by gpushare run with --cap-add CHECKPOINT_RESTORE, or in "
                         "one pid namespace (--pid)");
    }
    free(seen.list);
}

/* --- the C library --- */

static void check_musl(struct doctor *doctor) {
    glob_t found;
    if (glob("/lib/ld-musl-*.so.1", 0, NULL, &found) != 0)
        return;
    diagnosis_add(doctor, DOCTOR_WARN, "container",
                  "%s is here: its programs use musl, into which the library cannot be loaded",
                  found.gl_pathv[0]);
    diagnosis_remedy(doctor, "use an image with glibc: Debian, Ubuntu, UBI; CUDA needs one, too");
    globfree(&found);
}

void doctor_container(struct doctor *doctor) {
    const bool inside = doctor_in_container() && doctor->place.root[0] == '/';
    const bool there = doctor->store_status == 0;
    if (inside)
        check_directory(doctor);
    if (!(there && check_shm_of_processes(doctor)) && inside)
        check_shm(doctor);
    if (inside)
        check_musl(doctor);
    if (there)
        check_pids(doctor);
}
