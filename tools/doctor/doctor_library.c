/*
 * doctor_library.c - checks that the library loads, lists other preloaded libraries, and judges a
 * command.
 */
#include <errno.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/tool.h"
#include "doctor.h"
#include "run/preload.h"

/* Runs `true` with only the library preloaded. A loader that cannot preload complains and goes on:
 * so any text on stderr is a failure. The path comes by a variable, as a shell would read it. */
static bool loads(const char *library, char *said, size_t size) {
    setenv("GPUSHARE_LIBRARY", library, 1);
    FILE *child = popen("LD_PRELOAD=\"$GPUSHARE_LIBRARY\" exec true 2>&1 >/dev/null", "re");
    if (!child)
        return false;
    said[fread(said, 1, size - 1, child)] = 0;
    const int status = pclose(child);
    if (WIFSIGNALED(status))
        snprintf(said, size, "a program that loads it dies of signal %d", WTERMSIG(status));
    for (size_t length = strlen(said); length > 0 && said[length - 1] == '\n';)
        said[--length] = 0;
    return status == 0 && said[0] == 0;
}

void doctor_library(struct doctor *doctor) {
    char library[PATH_MAX], said[1024] = "";
    if (!preload_library(library)) {
        diagnosis_add(doctor, DOCTOR_FAIL, "library", "libgpushare.so not found; looked at: %s",
                      library);
        diagnosis_remedy(doctor, "set GPUSHARE_LIBRARY to its path, or put it beside this tool");
    } else if (!preload_can_name(library)) {
        diagnosis_add(doctor, DOCTOR_FAIL, "library",
                      "%s: LD_PRELOAD cannot hold a path with a blank or a colon", library);
        diagnosis_remedy(doctor, "set GPUSHARE_LIBRARY to a symbolic link without");
    } else if (!loads(library, said, sizeof(said))) {
        diagnosis_add(doctor, DOCTOR_FAIL, "library", "%s does not load: %s", library, said);
        diagnosis_remedy(doctor, "use a library that is built for this machine and its glibc %s",
                         gnu_get_libc_version());
    } else {
        diagnosis_add(doctor, DOCTOR_OK, "library", "%s loads, with glibc %s", library,
                      gnu_get_libc_version());
    }
}

/* A name without a slash is one for the loader's own search. */
static bool check_files(struct doctor *doctor, const char *preload) {
    char *list = tool_copy(preload), *rest = list;
    bool good = true;
    for (const char *file; (file = strsep(&rest, " :"));) {
        if (!strchr(file, '/') || access(file, R_OK) == 0)
            continue;
        good = false;
        diagnosis_add(doctor, DOCTOR_FAIL, "preload", "LD_PRELOAD names %s: %s", file,
                      strerror(errno));
        diagnosis_remedy(doctor, "the loader complains in every program and goes on without it: "
                                 "correct the path, or unset LD_PRELOAD and use gpushare run");
    }
    free(list);
    return good;
}

static void warn_of_rivals(struct doctor *doctor, const char *preload) {
    if (!strstr(preload, "libvgpu") && !strstr(preload, "nvshare"))
        return;
    doctor->list[doctor->count - 1].verdict = DOCTOR_WARN;
    diagnosis_remedy(doctor, "another library there steps between programs and the driver too; if "
                             "anything looks odd, try without it");
}

void doctor_preload(struct doctor *doctor) {
    const char *preload = getenv("LD_PRELOAD");
    if (!preload || preload[0] == 0) {
        diagnosis_add(doctor, DOCTOR_OK, "preload", "LD_PRELOAD is not set");
        return;
    }
    if (!check_files(doctor, preload))
        return;
    diagnosis_add(doctor, DOCTOR_OK, "preload", "%s: %s",
                  strstr(preload, "libgpushare.so")
                      ? "LD_PRELOAD has the library already"
                      : "LD_PRELOAD is set; gpushare run puts its library in front of",
                  preload);
    warn_of_rivals(doctor, preload);
}

void doctor_command(struct doctor *doctor) {
    const char *command = doctor->command[0];
    if (!command)
        return;
    char path[PATH_MAX], why[PATH_MAX + 128];
    int status = preload_program(command, path);
    if (status != 0) {
        diagnosis_add(doctor, DOCTOR_FAIL, "command", "'%s': %s", command,
                      status == -ENOENT ? "not found" : "not an executable file");
        diagnosis_remedy(doctor, "check its path and mode, and PATH");
    } else if (preload_obstacle(path, why, sizeof(why))) {
        diagnosis_add(doctor, DOCTOR_FAIL, "command", "%s %s", path, why);
        diagnosis_remedy(doctor,
                         "gpushare cannot step in; use a dynamically linked, unprivileged build "
                         "for this machine");
    } else {
        diagnosis_add(doctor, DOCTOR_OK, "command",
                      "%s can be preloaded; what it starts without the library is named by: "
                      "gpushare explain -- CMD",
                      path);
    }
}
