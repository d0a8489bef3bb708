/* doctor_process.c - says which runtime a process uses, and whether it has the library for it. */

#include "cli/tool.h"
#include "directory/record.h"
#include "doctor.h"
#include "run/descendants.h"
#include "run/loaded.h"
#include "suspend/target.h"

static void judge_library(struct doctor *doctor, const char *name, const struct loaded *loaded,
                          enum runtime uses) {
    const char *const driver = loaded->drivers[uses], *const library = vendors[uses].library;
    const enum runtime other = uses == RUNTIME_HIP ? RUNTIME_CUDA : RUNTIME_HIP;
    const bool good = loaded->libraries[uses];
    diagnosis_add(doctor, good ? DOCTOR_OK : DOCTOR_FAIL, "process", "%s uses %s (%s), %s %s%s%s",
                  name, vendors[uses].name, driver, good ? "with" : "without", library,
                  loaded->libraries[other] ? ", and has " : "",
                  loaded->libraries[other] ? vendors[other].library : "");
    if (!good)
        diagnosis_remedy(doctor,
                         "start it by: gpushare run --runtime=%s -- CMD; what starts it must keep "
                         "LD_PRELOAD",
                         vendors[uses].option);
}

static void doctor_judge_process(struct doctor *doctor, const char *name,
                                 const struct loaded *loaded) {
    const bool cuda = loaded->drivers[RUNTIME_CUDA], hip = loaded->drivers[RUNTIME_HIP];
    if (cuda && hip) {
        diagnosis_add(doctor, DOCTOR_WARN, "process",
                      "%s has loaded CUDA's driver and HIP's runtime", name);
        diagnosis_remedy(doctor, "the library is for one of them: gpushare run --runtime=cuda|hip");
    } else if (!cuda && !hip) {
        diagnosis_add(doctor, DOCTOR_WARN, "process",
                      "%s has loaded neither CUDA's driver nor HIP's runtime by now", name);
    } else {
        judge_library(doctor, name, loaded, hip ? RUNTIME_HIP : RUNTIME_CUDA);
    }
}

/* Whether `gpushare suspend` could suspend it, as the process itself says at this moment. */
static void judge_suspension(struct doctor *doctor, const char *name) {
    TOOL_TEMP char *pid = tool_format("%u", doctor->pid);
    TOOL_TEMP char *why = target_obstacle(pid);
    if (why && *why)
        diagnosis_add(doctor, DOCTOR_OK, "suspend", "%s cannot be suspended now: %s", name, why);
    else if (why)
        diagnosis_add(doctor, DOCTOR_OK, "suspend", "%s can be suspended", name);
    else
        diagnosis_add(doctor, DOCTOR_OK, "suspend",
                      "%s cannot be suspended: it was not started with suspend = on", name);
}

void doctor_process(struct doctor *doctor) {
    struct loaded loaded;
    if (!doctor->pid)
        return;
    if (!loaded_read(doctor->pid, &loaded)) {
        diagnosis_add(doctor, DOCTOR_FAIL, "process", "%u: there is none, or it is not yours",
                      doctor->pid);
        return;
    }
    TOOL_TEMP char *name = descendants_name(doctor->pid);
    doctor_judge_process(doctor, name, &loaded);
    judge_suspension(doctor, name);
    loaded_free(&loaded);
}

/* --- processes whose published directory was removed while they use it --- */

/* Whether it is the mapping of a process's file in procs/ (directory/lease.h), removed. */
static bool is_removed(char *line) {
    static const char deleted[] = " (deleted)";
    struct gps_owner owner;
    char *end = strstr(line, deleted);
    if (!end)
        return false;
    *end = 0;
    const char *file = strrchr(line, '/');
    return file && gps_owner_parse(file + 1, &owner);
}

static bool uses_removed(uint32_t pid) {
    size_t size;
    TOOL_TEMP char *maps = descendants_read(pid, "maps", &size);
    bool found = false;
    for (char *rest = maps, *line; !found && (line = strsep(&rest, "\n"));)
        found = is_removed(line);
    return found;
}

void doctor_removed(struct doctor *doctor) {
    unsigned count = 0;
    uint32_t first = 0;
    size_t all;
    TOOL_TEMP uint32_t *pids = descendants_numbers("/proc", &all);
    for (size_t i = 0; i < all; i++)
        if (uses_removed(pids[i]))
            first = count++ == 0 ? pids[i] : first;
    if (count == 0)
        return;
    diagnosis_add(doctor, DOCTOR_WARN, "directory",
                  "%u process%s (pid %" PRIu32
                  "%s) use%s one that was removed, and share%s nothing "
                  "with programs that started since",
                  count, count == 1 ? "" : "es", first, count == 1 ? "" : ", ...",
                  count == 1 ? "s" : "", count == 1 ? "s" : "");
    diagnosis_remedy(doctor,
                     "start %s again; logind removes /dev/shm/gpushare-UID at a user's "
                     "last logout unless RemoveIPC=no (logind.conf), or the user is a "
                     "system user, or set GPUSHARE_DIR to another tmpfs",
                     count == 1 ? "it" : "them");
}
