/*
 * doctor_ask.c - asks a driver in a child, for its version and its GPUs.
 *
 * A driver in a bad state can crash or hang its caller, even beyond a signal's reach. So the child
 * has none of our descriptors but one pipe. After the time-out it is killed and, if it does not
 * die, left behind.
 *
 * Of HIP's library, what the loader finds first counts, the newest version before older ones, as a
 * program that is linked with it has it; then ROCm's own place.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/printable.h"
#include "config/config.h"
#include "doctor.h"
#include "util/clock.h"

_Static_assert(sizeof(struct doctor_answer) <= PIPE_BUF, "an answer is one write");

/* The functions: our name, type, CUDA's name, HIP's. Their ABI is fixed, so that no header of CUDA
 * or HIP is needed. */
#define FUNCTIONS(F)                                                                               \
    F(init, int (*)(unsigned), "cuInit", NULL)                                                     \
    F(version, int (*)(int *), "cuDriverGetVersion", "hipRuntimeGetVersion")                       \
    F(count, int (*)(int *), "cuDeviceGetCount", "hipGetDeviceCount")                              \
    F(name, int (*)(char *, int, int), "cuDeviceGetName", "hipDeviceGetName")                      \
    F(uuid, int (*)(uint8_t *, int), "cuDeviceGetUuid", "hipDeviceGetUuid")                        \
    F(attribute, int (*)(int *, int, int), "cuDeviceGetAttribute", NULL)

struct driver {
#define MEMBER(id, type, cuda, hip) __typeof__((type)NULL) id;
    FUNCTIONS(MEMBER)
};

/* --- in the child --- */

static void *load(enum runtime runtime) {
    static const char *const names[RUNTIMES][6] = {
        [RUNTIME_CUDA] = {"libcuda.so.1"},
        [RUNTIME_HIP] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                         "/opt/rocm/lib/libamdhip64.so", "libamdhip64.so"}};
    void *library = NULL;
    for (size_t i = 0; !library && names[runtime][i]; i++)
        library = dlopen(names[runtime][i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static bool find(struct driver *driver, enum runtime runtime, struct doctor_answer *answer) {
    void *library = load(runtime);
    Dl_info place;
    bool all = true;
    if (!library) {
        snprintf(answer->error, sizeof(answer->error), "%s", dlerror());
        return false;
    }
#define FIND(id, type, cuda, hip)                                                                  \
    const char *id##_name = runtime == RUNTIME_HIP ? (hip) : (cuda);                               \
    *(void **)&driver->id = id##_name ? dlsym(library, id##_name) : NULL;                          \
    all = all && (!id##_name || driver->id);
    FUNCTIONS(FIND)
    void *newer = dlsym(library, "cuDeviceGetUuid_v2");
    if (newer)
        *(void **)&driver->uuid = newer;
    if (!all)
        snprintf(answer->error, sizeof(answer->error), "functions are missing in %s",
                 runtime == RUNTIME_HIP ? "libamdhip64.so" : "it");
    else if (dladdr(*(void **)&driver->version, &place))
        snprintf(answer->path, sizeof(answer->path), "%s", place.dli_fname);
    return all;
}

static void ask(enum runtime runtime, struct doctor_answer *answer) {
    enum { COMPUTE_MODE = 20 }; /* CU_DEVICE_ATTRIBUTE_COMPUTE_MODE */
    struct driver driver;
    if (!find(&driver, runtime, answer))
        return;
    answer->step = DOCTOR_INIT;
    answer->code = driver.init ? driver.init(0) : 0;
    driver.version(&answer->version);
    if (answer->code != 0)
        return;
    answer->step = DOCTOR_COUNT;
    answer->code = driver.count(&answer->count);
    if (answer->code != 0)
        return;
    for (int i = 0; i < answer->count && i < DOCTOR_GPUS; i++) {
        struct doctor_gpu *gpu = &answer->gpus[i];
        driver.name(gpu->name, sizeof(gpu->name) - 1, i);
        driver.uuid(gpu->uuid, i);
        if (driver.attribute)
            driver.attribute(&gpu->compute_mode, COMPUTE_MODE, i);
    }
    answer->step = DOCTOR_DONE;
}

/* The answer is one write that the pipe keeps whole. */
static void run_child(int out, enum runtime runtime, struct doctor_answer *answer) {
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i <= STDERR_FILENO; i++)
        dup2(null, i);
    setenv("GPUSHARE_MODE", "off", 1); /* we may be preloaded ourselves */
    ask(runtime, answer);
    _exit(write(out, answer, sizeof(*answer)) == (ssize_t)sizeof(*answer) ? 0 : 1);
}

/* --- in the parent --- */

/* False: no answer came. *late: none came within the time-out. */
static bool await_answer(int from, struct doctor_answer *answer, uint64_t timeout, bool *late) {
    struct pollfd ready = {.fd = from, .events = POLLIN};
    *late = poll(&ready, 1, (int)(timeout / 1000000) + 1) == 0;
    return !*late && read(from, answer, sizeof(*answer)) == (ssize_t)sizeof(*answer);
}

/* The child's wait status; -1 when it does not even die of SIGKILL. */
static int reap(pid_t child, bool kill_it) {
    int status;
    if (kill_it)
        kill(child, SIGKILL);
    for (int i = 0; i < 100; i++) {
        if (waitpid(child, &status, WNOHANG) == child)
            return status;
        usleep(10000);
    }
    return -1;
}

static void tell_of_silence(struct doctor *doctor, bool late, int status) {
    if (late)
        diagnosis_add(doctor, DOCTOR_FAIL, "driver", "the driver did not answer within %s%s",
                      printable_duration(doctor->timeout).text,
                      status == -1 ? ", and the process that asked cannot even be killed" : "");
    else if (status != -1 && WIFSIGNALED(status))
        diagnosis_add(doctor, DOCTOR_FAIL, "driver",
                      "a process that asks the driver dies of signal %d", WTERMSIG(status));
    else
        diagnosis_add(doctor, DOCTOR_FAIL, "driver",
                      "a process that asks the driver ends silently");
}

bool doctor_ask(struct doctor *doctor, struct doctor_answer *answer) {
    *answer = (struct doctor_answer){.step = DOCTOR_LOAD};
    int ends[2];
    pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? fork() : -1;
    if (child < 0) {
        diagnosis_add(doctor, DOCTOR_FAIL, "driver", "no process could be started to ask it");
        return false;
    }
    if (child == 0)
        run_child(ends[1], doctor->runtime, answer);
    close(ends[1]);
    bool late;
    const bool answered = await_answer(ends[0], answer, doctor->timeout, &late);
    close(ends[0]);
    int status = reap(child, !answered);
    if (!answered)
        tell_of_silence(doctor, late, status);
    return answered;
}
