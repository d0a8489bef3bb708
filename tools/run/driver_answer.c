#include "driver_answer.h"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "cli/printable.h"
#include "cli/tool.h"

_Static_assert(sizeof(struct driver_answer) <= PIPE_BUF, "an answer is one write");

/* Loads the library that the loader finds first, of HIP the newest version before older ones, as a
 * linked program does; then from ROCm's own place. */
static void *driver_load_library(enum runtime runtime) {
    static const char *const names[RUNTIMES][6] = {
        [RUNTIME_CUDA] = {"libcuda.so.1"},
        [RUNTIME_HIP] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                         "/opt/rocm/lib/libamdhip64.so", "libamdhip64.so"}};
    void *library = NULL;
    for (size_t i = 0; !library && names[runtime][i]; i++)
        library = dlopen(names[runtime][i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

void *driver_open(enum runtime runtime, struct driver *driver, char *why, size_t size) {
    void *library = driver_load_library(runtime), *newer;
    bool all = true;
    if (!library) {
        snprintf(why, size, "%s", dlerror());
        return NULL;
    }
#define FIND(id, type, cuda, hip)                                                                  \
    const char *id##_name = runtime == RUNTIME_HIP ? (hip) : (cuda);                               \
    *(void **)&driver->id = id##_name ? dlsym(library, id##_name) : NULL;                          \
    all = all && (!id##_name || driver->id);
    DRIVER_FUNCTIONS(FIND)
    if ((newer = dlsym(library, "cuDeviceGetUuid_v2")))
        *(void **)&driver->uuid = newer;
    if (!all)
        snprintf(why, size, "functions are missing in %s",
                 runtime == RUNTIME_HIP ? "libamdhip64.so" : "it");
    return all ? library : NULL;
}

/* --- in the child --- */

static void driver_ask_gpus(enum runtime runtime, struct driver_answer *answer) {
    enum { COMPUTE_MODE = 20 }; /* CU_DEVICE_ATTRIBUTE_COMPUTE_MODE */
    struct driver driver;
    Dl_info place;
    if (!driver_open(runtime, &driver, answer->error, sizeof(answer->error)))
        return;
    if (dladdr(*(void **)&driver.version, &place))
        snprintf(answer->path, sizeof(answer->path), "%s", place.dli_fname);
    answer->step = DRIVER_INIT;
    answer->code = driver.init ? driver.init(0) : 0;
    driver.version(&answer->version);
    if (answer->code != 0)
        return;
    answer->step = DRIVER_COUNT;
    answer->code = driver.count(&answer->count);
    if (answer->code != 0)
        return;
    for (int i = 0; i < answer->count && i < DRIVER_GPUS; i++) {
        struct driver_gpu *gpu = &answer->gpus[i];
        driver.name(gpu->name, sizeof(gpu->name) - 1, i);
        driver.uuid(gpu->uuid, i);
        if (driver.attribute)
            driver.attribute(&gpu->compute_mode, COMPUTE_MODE, i);
    }
    answer->step = DRIVER_DONE;
}

/* The answer is one write that the pipe keeps whole. */
static void run_child(int out, enum runtime runtime, struct driver_answer *answer) {
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i <= STDERR_FILENO; i++)
        dup2(null, i);
    setenv("GPUSHARE_MODE", "off", 1); /* we may be preloaded ourselves */
    driver_ask_gpus(runtime, answer);
    _exit(write(out, answer, sizeof(*answer)) == (ssize_t)sizeof(*answer) ? 0 : 1);
}

/* --- in the parent --- */

int driver_reap(int child, uint64_t until) {
    int status;
    do {
        if (waitpid(child, &status, WNOHANG) == child)
            return status;
        usleep(2000);
    } while (gps_clock_monotonic() < until);
    return -1;
}

/* Why no answer came; malloc'ed. */
static char *silence(bool late, uint64_t timeout, int status) {
    if (late)
        return tool_format(
            "the driver did not answer within %s%s", printable_duration(timeout).text,
            status == -1 ? ", and the process that asked cannot even be killed" : "");
    if (status != -1 && WIFSIGNALED(status))
        return tool_format("a process that asks the driver dies of signal %d", WTERMSIG(status));
    return tool_copy("a process that asks the driver ends silently");
}

char *driver_ask(enum runtime runtime, uint64_t timeout, struct driver_answer *answer) {
    *answer = (struct driver_answer){.step = DRIVER_LOAD};
    int ends[2];
    pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (child < 0)
        return tool_copy("no process could be started to ask it");
    if (child == 0)
        run_child(ends[1], runtime, answer);
    close(ends[1]);
    struct pollfd ready = {.fd = ends[0], .events = POLLIN};
    const bool late = poll(&ready, 1, (int)(timeout / 1000000) + 1) == 0;
    const bool answered =
        !late && read(ends[0], answer, sizeof(*answer)) == (ssize_t)sizeof(*answer);
    close(ends[0]);
    if (!answered)
        kill(child, SIGKILL);
    const int status = driver_reap(child, gps_clock_monotonic() + DRIVER_DIES_WITHIN);
    return answered ? NULL : silence(late, timeout, status);
}
