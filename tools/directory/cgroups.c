#include "cgroups.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define HEX       "0123456789abcdef"
#define ID_DIGITS 64
#define UID_MIN   32 /* of a static pod, without dashes */
#define UID_MAX   36

static void cgroups_set_field(char *field, size_t size, const char *text, size_t length) {
    snprintf(field, size, "%.*s", (int)length, text);
}

/* "pod<uid>", or "kubepods-burstable-pod<uid with _>.slice". */
static void parse_pod(const char *part, struct cgroups *found) {
    const char *pod = strncmp(part, "pod", 3) == 0 ? part : strstr(part, "-pod");
    pod = pod ? pod + (*pod == '-') + 3 : "";
    const size_t length = strspn(pod, HEX "-_");
    const char *rest = strncmp(pod + length, ".slice", 6) == 0 ? pod + length + 6 : pod + length;
    if (length < UID_MIN || length > UID_MAX || (*rest && *rest != ':'))
        return;
    cgroups_set_field(found->pod, sizeof(found->pod), pod, length);
    for (char *c = found->pod; *c; c++)
        *c = (char)(*c == '_' ? '-' : *c);
}

/* 64 hex digits, alone or behind what a runtime puts there: "docker-<id>.scope", "libpod-<id>",
 * "cri-containerd-<id>.scope", "kubepods-...:cri-containerd:<id>". conmon is in none. */
static void parse_container(const char *part, struct cgroups *found) {
    const char *end = strstr(part, ".scope");
    const size_t length = end && end[6] == 0 ? (size_t)(end - part) : strlen(part);
    const char *id = length < ID_DIGITS ? NULL : part + length - ID_DIGITS;
    if (id && strspn(id, HEX) == ID_DIGITS && !strstr(part, "conmon") &&
        (id == part || id[-1] == '-' || id[-1] == ':'))
        cgroups_set_field(found->container, sizeof(found->container), id, ID_DIGITS);
}

/* ".../slurm/uid_1000/job_12/step_0/task_0", ".../slurmstepd.scope/job_12/step_batch/user". */
static void parse_job(const char *part, struct cgroups *found) {
    if (strncmp(part, "job_", 4) == 0 && part[4] &&
        strspn(part + 4, "0123456789") == strlen(part) - 4)
        cgroups_set_field(found->slurm_job, sizeof(found->slurm_job), part + 4, strlen(part + 4));
    else if (strncmp(part, "step_", 5) == 0 && found->slurm_job[0])
        cgroups_set_field(found->slurm_step, sizeof(found->slurm_step), part + 5, strlen(part + 5));
}

static void parse_path(char *path, struct cgroups *found) {
    char *rest = path;
    bool slurm = false;
    for (char *part; (part = strsep(&rest, "/"));) {
        parse_pod(part, found);
        parse_container(part, found);
        if (slurm)
            parse_job(part, found);
        slurm = slurm || strstr(part, "slurm");
    }
}

void cgroups_parse(char *text, struct cgroups *found) {
    *found = (struct cgroups){{0}, {0}, {0}, {0}};
    for (char *line; (line = strsep(&text, "\n"));) {
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (path)
            parse_path(path + 1, found);
    }
}
