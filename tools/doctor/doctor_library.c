/*
 * doctor_library.c - checks that the library loads, lists others preloaded, and judges a command.
 */
#include <gnu/libc-version.h>
#include <sys/wait.h>

#include "cli/tool.h"
#include "doctor.h"
#include "run/preload.h"

/* Executes this tool with only the library preloaded: an image may have no other program. */
static void run_preloaded(const char *library, int said) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere < 0 ? said : nowhere, STDOUT_FILENO);
    dup2(said, STDERR_FILENO);
    if (setenv("LD_PRELOAD", library, 1) == 0)
        execl("/proc/self/exe", "gpushare", "--version", NULL);
    perror("it cannot be tried");
    _exit(1);
}

/* A loader that cannot preload complains and goes on, so any text on stderr is a failure. */
static bool loads(const char *library, char **said) {
    int ends[2], status = -1;
    const pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (child < 0) {
        *said = tool_copy("no process could be started to try it");
        return false;
    }
    if (child == 0)
        run_preloaded(library, ends[1]);
    close(ends[1]);
    size_t length;
    *said = tool_read(ends[0], &length);
    close(ends[0]);
    waitpid(child, &status, 0);
    while (length > 0 && (*said)[length - 1] == '\n')
        (*said)[--length] = 0;
    if (WIFSIGNALED(status)) {
        free(*said);
        *said = tool_format("a program that loads it dies of signal %d", WTERMSIG(status));
    }
    return status == 0 && **said == 0;
}

void doctor_library(struct doctor *doctor) {
    char library[PATH_MAX];
    TOOL_TEMP char *said = NULL;
    if (!preload_library(doctor->runtime, library)) {
        diagnosis_add(doctor, DOCTOR_FAIL, "library", "%s not found; looked at: %s",
                      vendors[doctor->runtime].library, library);
        diagnosis_remedy(doctor,
                         "install the package libgpushare, or set GPUSHARE_LIBRARY to its path");
    } else if (!preload_can_name(library)) {
        diagnosis_add(doctor, DOCTOR_FAIL, "library",
                      "%s: LD_PRELOAD cannot hold a path with a blank or a colon", library);
        diagnosis_remedy(doctor, "set GPUSHARE_LIBRARY to a symbolic link without");
    } else if (!loads(library, &said)) {
        diagnosis_add(doctor, DOCTOR_FAIL, "library", "%s does not load: %s", library, said);
        diagnosis_remedy(doctor, "use a library that is built for this machine and its glibc %s",
                         gnu_get_libc_version());
    } else {
        diagnosis_add(doctor, DOCTOR_OK, "library", "%s loads, with glibc %s", library,
                      gnu_get_libc_version());
    }
}

/* Checks the files of a list. A name without a slash is left to the loader's own search. */
static bool check_files(struct doctor *doctor, const char *source, const char *preload) {
    TOOL_TEMP char *list = tool_copy(preload);
    char *rest = list;
    bool good = true;
    for (const char *file; (file = strsep(&rest, " :\t\n"));) {
        if (!strchr(file, '/') || access(file, R_OK) == 0)
            continue;
        good = false;
        diagnosis_add(doctor, DOCTOR_FAIL, "preload", "%s names %s: %s", source, file,
                      strerror(errno));
        diagnosis_remedy(doctor,
                         "the loader complains in every program and goes on without it: "
                         "correct the path, or %s, and use gpushare run",
                         source[0] == '/' ? "remove the file" : "unset LD_PRELOAD");
    }
    return good;
}

static void warn_of_rival(struct doctor *doctor) {
    const char *const library = vendors[doctor->runtime].library;
    TOOL_TEMP char *why = rival_of(getenv("LD_PRELOAD"), library, NULL);
    if (!why)
        return;
    diagnosis_add(doctor, DOCTOR_WARN, "preload", "%s: calls may go past gpushare", why);
    diagnosis_remedy(doctor, "put %s in front, where the other one works too", library);
}

/* Whether the system's list exists and names a file. */
static bool check_system_preload(struct doctor *doctor) {
    TOOL_TEMP char *list = rival_system_list();
    if (list[strspn(list, " :\t\n")] == 0)
        return false;
    if (check_files(doctor, RIVAL_SYSTEM_LIST, list))
        diagnosis_add(doctor, DOCTOR_OK, "preload", "%s %s", RIVAL_SYSTEM_LIST,
                      strstr(list, vendors[doctor->runtime].library)
                          ? "has the library: every program here runs with it"
                          : "names other libraries");
    return true;
}

void doctor_preload(struct doctor *doctor) {
    const char *preload = getenv("LD_PRELOAD");
    const bool system = check_system_preload(doctor);
    warn_of_rival(doctor);
    if (!preload || preload[0] == 0) {
        if (!system)
            diagnosis_add(doctor, DOCTOR_OK, "preload", "LD_PRELOAD is not set");
        return;
    }
    if (!check_files(doctor, "LD_PRELOAD", preload))
        return;
    diagnosis_add(doctor, DOCTOR_OK, "preload", "%s: %s",
                  strstr(preload, vendors[doctor->runtime].library)
                      ? "LD_PRELOAD has the library already"
                      : "LD_PRELOAD is set; gpushare run puts its library in front of",
                  preload);
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
                      "%s can be preloaded%s; what it starts without the library is named by: "
                      "gpushare explain -- CMD",
                      path, doctor->runtime == RUNTIME_HIP ? " for HIP" : "");
    }
}
