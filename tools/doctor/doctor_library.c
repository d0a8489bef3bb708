/*
 * doctor_library.c - does the library load, what else is preloaded, can a program be preloaded at
 * all.
 */
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor.h"
#include "run/executable.h"

/* In the child: /bin/true with only the library preloaded, its stderr in the pipe. */
static void start_true(const char *library, int out) {
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    setenv("LD_PRELOAD", library, 1);
    execlp("true", "true", (char *)NULL);
    dprintf(STDERR_FILENO, "cannot execute true: %s", strerror(errno));
    _exit(127);
}

static void read_all(int from, char *text, size_t size) {
    size_t length = 0;
    ssize_t count;
    while (length + 1 < size && (count = read(from, text + length, size - 1 - length)) > 0)
        length += (size_t)count;
    text[length] = 0;
    while (length > 0 && text[length - 1] == '\n')
        text[--length] = 0;
}

/* The loader only complains when it cannot preload, and goes on: any word on stderr is a failure.
 */
static bool loads(const char *library, char *said, size_t size) {
    int ends[2], status = 0;
    said[0] = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pid_t child = fork();
    if (child == 0)
        start_true(library, ends[1]);
    close(ends[1]);
    if (child > 0)
        read_all(ends[0], said, size);
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return false;
    if (WIFSIGNALED(status))
        snprintf(said, size, "a program that loads it dies of signal %d", WTERMSIG(status));
    return status == 0 && said[0] == 0;
}

void doctor_library(struct doctor *doctor) {
    char library[PATH_MAX], said[1024];
    if (!library_find(library)) {
        doctor_say(doctor, DOCTOR_FAIL, "library", "libgpushare.so not found; looked at: %s",
                   library);
        doctor_remedy(doctor, "set GPUSHARE_LIBRARY to its path, or put it beside this tool");
    } else if (!library_preloadable(library)) {
        doctor_say(doctor, DOCTOR_FAIL, "library",
                   "%s: LD_PRELOAD cannot hold a path with a blank or a colon", library);
        doctor_remedy(doctor, "set GPUSHARE_LIBRARY to a symbolic link without");
    } else if (!loads(library, said, sizeof(said))) {
        doctor_say(doctor, DOCTOR_FAIL, "library", "%s does not load: %s", library, said);
        doctor_remedy(doctor, "use a library that is built for this machine and its glibc %s",
                      gnu_get_libc_version());
    } else {
        doctor_say(doctor, DOCTOR_OK, "library", "%s loads, with glibc %s", library,
                   gnu_get_libc_version());
    }
}

void doctor_preload(struct doctor *doctor) {
    const char *preload = getenv("LD_PRELOAD");
    if (!preload || preload[0] == 0) {
        doctor_say(doctor, DOCTOR_OK, "preload", "LD_PRELOAD is not set");
        return;
    }
    if (strstr(preload, "libgpushare.so") != NULL)
        doctor_say(doctor, DOCTOR_OK, "preload", "LD_PRELOAD has the library already: %s", preload);
    else
        doctor_say(doctor, DOCTOR_OK, "preload",
                   "LD_PRELOAD is set; gpushare run puts its library in front of: %s", preload);
    if (strstr(preload, "libvgpu") != NULL || strstr(preload, "nvshare") != NULL) {
        doctor->list[doctor->count - 1].verdict = DOCTOR_WARN;
        doctor_remedy(doctor, "another library there steps between programs and the driver too; if "
                              "anything looks odd, try without it");
    }
}

void doctor_command(struct doctor *doctor) {
    char path[PATH_MAX], why[PATH_MAX + 128];
    if (!doctor->command)
        return;
    int error = executable_find(doctor->command, path);
    if (error != 0) {
        doctor_say(doctor, DOCTOR_FAIL, "command", "'%s': %s", doctor->command,
                   error == -ENOENT ? "not found" : "not an executable file");
        doctor_remedy(doctor, "check its path and mode, and PATH");
    } else if (executable_obstacle(path, why, sizeof(why))) {
        doctor_say(doctor, DOCTOR_FAIL, "command", "%s %s", path, why);
        doctor_remedy(doctor,
                      "gpushare cannot step in; use a dynamically linked, unprivileged build "
                      "for this machine");
    } else {
        doctor_say(doctor, DOCTOR_OK, "command", "%s can be preloaded", path);
    }
}
