#include "selftest.h"

#include <ctype.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <time.h>

#include "cli/tool.h"
#include "util/procfs.h"

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue ...": the first word that is a
 * number with a point. */
static void find_version(char *line, char *version, size_t size) {
    for (char *word; (word = strsep(&line, " ")) && version[0] == 0;)
        if (isdigit((unsigned char)word[0]) && strchr(word, '.'))
            snprintf(version, size, "%s", word);
}

static void describe_driver(struct machine *machine, enum runtime runtime) {
    char line[256] = "";
    struct utsname kernel;
    if (strcmp(machine->gpu, "Simulated GPU") == 0)
        snprintf(machine->driver, sizeof(machine->driver), "simulated");
    else if (runtime == RUNTIME_CUDA &&
             tool_read_line("/proc/driver/nvidia/version", "", line, sizeof(line)))
        find_version(line, machine->driver, sizeof(machine->driver));
    else if (runtime == RUNTIME_HIP &&
             tool_read_line("/sys/module/amdgpu/version", "", line, sizeof(line)))
        snprintf(machine->driver, sizeof(machine->driver), "amdgpu %.40s", line);
    else if (runtime == RUNTIME_HIP && uname(&kernel) == 0)
        snprintf(machine->driver, sizeof(machine->driver), "Linux %.40s", kernel.release);
    if (machine->driver[0] == 0)
        snprintf(machine->driver, sizeof(machine->driver), "unknown");
}

/* What is seen from inside, where no engine says its version. */
static const char *container_engine(void) {
    const uint64_t pid_ns = gps_procfs_pid_ns();
    return access("/run/.containerenv", F_OK) == 0            ? "podman"
           : access("/.dockerenv", F_OK) == 0                 ? "docker"
           : getenv("KUBERNETES_SERVICE_HOST")                ? "kubernetes"
           : getenv("APPTAINER_CONTAINER")                    ? "apptainer"
           : getenv("SINGULARITY_CONTAINER")                  ? "singularity"
           : pid_ns != 0 && pid_ns != GPS_PROCFS_FIRST_PID_NS ? "unknown"
                                                              : "none";
}

void machine_describe(struct machine *machine, enum runtime runtime, int version, const char *gpu) {
    const time_t now = time(NULL);
    struct tm date;
    *machine = (struct machine){.container = container_engine()};
    snprintf(machine->gpu, sizeof(machine->gpu), "%s", gpu);
    describe_driver(machine, runtime);
    if (runtime == RUNTIME_HIP)
        snprintf(machine->interface, sizeof(machine->interface), "HIP %d.%d", version / 10000000,
                 version / 100000 % 100);
    else
        snprintf(machine->interface, sizeof(machine->interface), "CUDA %d.%d", version / 1000,
                 version % 1000 / 10);
    snprintf(machine->glibc, sizeof(machine->glibc), "%s", gnu_get_libc_version());
    if (gmtime_r(&now, &date))
        strftime(machine->date, sizeof(machine->date), "%Y-%m-%d", &date);
}
