/* doctor_platform.c - checks /proc, WSL, MIG, MPS, limits and the configuration. */
#include <glob.h>
#include <sys/inotify.h>

#include "cli/environment.h"
#include "cli/tool.h"
#include "config/config.h"
#include "config/key.h"
#include "doctor.h"
#include "util/procfs.h"

bool doctor_in_container(void) {
    const uint64_t pid_ns = gps_procfs_pid_ns();
    if (pid_ns != 0 && pid_ns != GPS_PROCFS_FIRST_PID_NS)
        return true;
    return access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0;
}

/* The driver opens /proc/<pid> and gives 304 when that is another process, or none. */
static void check_proc(struct doctor *doctor) {
    char self[32] = "";
    ssize_t length = readlink("/proc/self", self, sizeof(self) - 1);
    if (length > 0 && strtol(self, NULL, 10) == getpid()) {
        diagnosis_add(doctor, DOCTOR_OK, "processes", "%s",
                      gps_procfs_pid_ns() != GPS_PROCFS_FIRST_PID_NS
                          ? "in a container, with a /proc of its own; pids of others read "
                            "PID@NAMESPACE"
                          : "in the machine's own pid namespace; gpushare show tells the pid here "
                            "of processes in others");
        return;
    }
    diagnosis_add(doctor, DOCTOR_FAIL, "processes",
                  "/proc %s: the driver then fails with 304 in cuInit",
                  length > 0 ? "belongs to another pid namespace" : "is not mounted");
    diagnosis_remedy(doctor, "mount -t proc proc /proc (unshare: add --mount-proc)");
}

static void check_wsl(struct doctor *doctor) {
    char version[512];
    if (!tool_read_line("/proc/version", "", version, sizeof(version)) ||
        !strcasestr(version, "microsoft"))
        return;
    diagnosis_add(doctor, DOCTOR_FAIL, "wsl",
                  "this is WSL2, where CUDA does not support IPC memory handles");
    diagnosis_remedy(doctor, "use a Linux of its own");
}

static void check_mig(struct doctor *doctor) {
    glob_t found;
    if (glob("/proc/driver/nvidia/capabilities/gpu*/mig/gi*", 0, NULL, &found) != 0)
        return;
    diagnosis_add(doctor, DOCTOR_WARN, "mig", "MIG is enabled: %zu GPU instance%s", found.gl_pathc,
                  found.gl_pathc == 1 ? "" : "s");
    diagnosis_remedy(doctor,
                     "memory can only be shared within one instance: start the programs that "
                     "share with the same CUDA_VISIBLE_DEVICES=MIG-...");
    globfree(&found);
}

static void check_mps(struct doctor *doctor) {
    const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
    char pipe[PATH_MAX];
    snprintf(pipe, sizeof(pipe), "%s/control",
             directory && directory[0] != 0 ? directory : "/tmp/nvidia-mps");
    if (access(pipe, F_OK) == 0)
        diagnosis_add(doctor, DOCTOR_OK, "mps",
                      "MPS seems to be running (%s); all who share must be its clients, or none; "
                      "its clients merge nothing without mps = on in the rule",
                      pipe);
}

void doctor_platform(struct doctor *doctor) {
    check_proc(doctor);
    check_wsl(doctor);
    check_mig(doctor);
    check_mps(doctor);
}

void doctor_limits(struct doctor *doctor) {
    char instances[32] = "?";
    tool_read_line("/proc/sys/fs/inotify/max_user_instances", "", instances, sizeof(instances));
    int watch = inotify_init1(IN_CLOEXEC);
    if (watch >= 0) {
        close(watch);
        diagnosis_add(doctor, DOCTOR_OK, "inotify", "available, %s instances a user", instances);
        return;
    }
    diagnosis_add(
        doctor, DOCTOR_WARN, "inotify",
        "no instance can be had (%s; the limit is %s a user): memory that was freed while "
        "others held it is released up to a second late",
        strerror(errno), instances);
    diagnosis_remedy(doctor, "sysctl fs.inotify.max_user_instances=512");
}

/* --- configuration --- */

struct first_error {
    unsigned count;
    char text[512];
};

static void note_error(void *arg, const char *file, unsigned line, const char *message) {
    struct first_error *first = arg;
    if (first->count++ == 0 && line > 0)
        snprintf(first->text, sizeof(first->text), "%s:%u: %s", file, line, message);
    else if (first->count == 1)
        snprintf(first->text, sizeof(first->text), "%s: %s", file, message);
}

static void note_unknown(void *arg, const char *message) {
    diagnosis_add(arg, DOCTOR_WARN, "environment", "%s", message);
    diagnosis_remedy(arg, "correct its name, or unset it");
}

/* What only programs of CUDA can be given. */
static void warn_of_blocks(struct doctor *doctor, const struct gps_config *config) {
    struct first_error first = {0};
    if (doctor->runtime != RUNTIME_HIP ||
        gps_config_check_plain(config, NULL, NULL, note_error, &first) == 0)
        return;
    diagnosis_add(doctor, DOCTOR_WARN, "config", "%s%s", first.text,
                  first.count > 1 ? " (and more)" : "");
    diagnosis_remedy(doctor, "a program of HIP that such a rule is for runs as without gpushare: "
                             "gpushare check --runtime=hip FILE names them all");
}

/* The same file may be for several machines. */
static void warn_of_cards(struct doctor *doctor, const struct gps_config *config) {
    TOOL_EACH(const struct gps_rule, rule, config->rules, config->rule_count) {
        if (rule->device_kind != GPS_DEVICE_ORDINAL || rule->device_ordinal < doctor->cards ||
            doctor->cards == 0)
            continue;
        diagnosis_add(
            doctor, DOCTOR_WARN, "config",
            "%s:%u: device = %u: [region %s] takes nothing here, where there %s %u GPU%s, "
            "numbered from 0",
            config->source, gps_key_line(rule, "device"), rule->device_ordinal, rule->name,
            doctor->cards == 1 ? "is" : "are", doctor->cards, doctor->cards == 1 ? "" : "s");
        diagnosis_remedy(doctor, "give one of them, or a UUID, which the checks of gpu name");
    }
}

void doctor_configuration(struct doctor *doctor) {
    struct first_error first = {0};
    struct gps_config config;
    environment_unknown(note_unknown, doctor);
    if (gps_config_load(&config, note_error, &first) != 0) {
        diagnosis_add(doctor, DOCTOR_FAIL, "config", "%s%s", first.text,
                      first.count > 1 ? " (and more)" : "");
        diagnosis_remedy(doctor, "correct it, and test it with: gpushare check FILE");
        return;
    }
    TOOL_TEMP char *none = environment_no_config();
    if (config.source[0] == 0)
        diagnosis_add(doctor, DOCTOR_OK, "config",
                      "%s; misuse is reported, nothing is shared by rule", none);
    else
        diagnosis_add(doctor, DOCTOR_OK, "config", "%s, %zu rule%s", config.source,
                      config.rule_count, config.rule_count == 1 ? "" : "s");
    if (config.options.mode == GPS_MODE_OFF) {
        diagnosis_add(doctor, DOCTOR_WARN, "config", "mode is off: gpushare does nothing at all");
        diagnosis_remedy(doctor, "set mode = share, or GPUSHARE_MODE=share");
    }
    warn_of_blocks(doctor, &config);
    warn_of_cards(doctor, &config);
    gps_config_free(&config);
}
