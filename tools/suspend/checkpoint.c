#include "checkpoint.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "cli/nvml.h"
#include "config/config.h"
#include "util/clock.h"

/* --- the free bytes by NVML, which needs no context --- */

/* A context takes 0.12 s to make and 0.07 s to end, and 500 MiB meanwhile (H200, driver 580.159.04,
 * 2026-11-29; the figures were equal). */

enum { FREE = 1 /* of the totals: all, free, used */ };

static int (*find_device)(const char *uuid, void **device);
static int (*ask_mig)(void *device, unsigned *now, unsigned *next);
static int (*ask_memory)(void *device, unsigned long long totals[3]);

static bool find_calls(void) {
    void *nvml = nvml_open();
    if (!nvml)
        return false;
    *(void **)&find_device = dlsym(nvml, "nvmlDeviceGetHandleByUUID");
    *(void **)&ask_mig = dlsym(nvml, "nvmlDeviceGetMigMode");
    *(void **)&ask_memory = dlsym(nvml, "nvmlDeviceGetMemoryInfo");
    return find_device && ask_mig && ask_memory;
}

/* False: the bytes are not known, as for a part of a GPU. */
static bool checkpoint_free(const uint8_t device[GPS_UUID_BYTES], uint64_t *bytes) {
    unsigned long long totals[3];
    unsigned mig = 0, next;
    char uuid[GPS_UUID_TEXT];
    void *handle;
    gps_format_uuid(device, uuid);
    if (!find_calls() || find_device(uuid, &handle) != 0 ||
        (ask_mig(handle, &mig, &next) == 0 && mig) || ask_memory(handle, totals) != 0)
        return false;
    *bytes = totals[FREE];
    return true;
}

#define OK            0
#define OUT_OF_MEMORY 2
#define NOT_SUPPORTED 801

/* The layouts of cuda.h: each is 64 bytes, and zero but for this. */
struct lock_arguments {
    unsigned timeout; /* ms */
    unsigned reserved0;
    uint64_t reserved[7];
};
struct arguments {
    uint64_t reserved[8];
};

#define CALLS(CALL)                                                                                \
    CALL(init, (unsigned flags), "cuInit")                                                         \
    CALL(state, (int pid, int *state), "cuCheckpointProcessGetState")                              \
    CALL(lock, (int pid, struct lock_arguments *arguments), "cuCheckpointProcessLock")             \
    CALL(take, (int pid, struct arguments *arguments), "cuCheckpointProcessCheckpoint")            \
    CALL(restore, (int pid, struct arguments *arguments), "cuCheckpointProcessRestore")            \
    CALL(unlock, (int pid, struct arguments *arguments), "cuCheckpointProcessUnlock")              \
    CALL(count, (int *count), "cuDeviceGetCount")                                                  \
    CALL(uuid, (uint8_t uuid[GPS_UUID_BYTES], int device), "cuDeviceGetUuid")                      \
    CALL(retain, (void **context, int device), "cuDevicePrimaryCtxRetain")                         \
    CALL(release, (int device), "cuDevicePrimaryCtxRelease_v2")                                    \
    CALL(push, (void *context), "cuCtxPushCurrent_v2")                                             \
    CALL(pop, (void **context), "cuCtxPopCurrent_v2")                                              \
    CALL(memory, (size_t * available, size_t * total), "cuMemGetInfo_v2")

static struct {
    bool tried;
    const char *why;
#define MEMBER(id, parameters, name) int(*id) parameters;
    CALLS(MEMBER)
} driver;

#define FIND(id, parameters, name) all &= (*(void **)&driver.id = dlsym(library, name)) != NULL;
static const char *checkpoint_find_driver(void) {
    static const char old[] = "this driver cannot checkpoint a process; it takes version 570 or a "
                              "newer one";
    enum checkpoint_state state;
    bool all = true;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return "there is no libcuda.so.1; see: gpushare doctor";
    CALLS(FIND)
    if (!all)
        return old;
    if (driver.init(0) != OK)
        return "the driver does not start; see: gpushare doctor";
    return checkpoint_state(1, &state) == NOT_SUPPORTED ? old : NULL;
}

const char *checkpoint_open(void) {
    if (!driver.tried)
        driver.why = checkpoint_find_driver();
    driver.tried = true;
    return driver.why;
}

int checkpoint_state(uint32_t pid, enum checkpoint_state *state) {
    int now = 0;
    const int code = driver.state((int)pid, &now);
    if (code == OK)
        *state = (enum checkpoint_state)now;
    return code;
}

int checkpoint_lock(uint32_t pid, uint64_t timeout) {
    struct lock_arguments arguments = {.timeout = (unsigned)(timeout / 1000000)};
    return driver.lock((int)pid, &arguments);
}

int checkpoint_take(uint32_t pid) {
    struct arguments none = {{0}};
    return driver.take((int)pid, &none);
}

int checkpoint_restore(uint32_t pid) {
    struct arguments none = {{0}};
    return driver.restore((int)pid, &none);
}

int checkpoint_unlock(uint32_t pid) {
    struct arguments none = {{0}};
    return driver.unlock((int)pid, &none);
}

/* Without room for a context there is none for a process either. */
static bool ask_room(int device, uint64_t *bytes) {
    size_t available = 0, total;
    void *context;
    int code = driver.retain(&context, device);
    if (code == OK) {
        code = driver.push(context);
        if (code == OK) {
            code = driver.memory(&available, &total);
            driver.pop(&context);
        }
        driver.release(device);
    }
    *bytes = available;
    return code == OK || code == OUT_OF_MEMORY;
}

bool checkpoint_gpu(int ordinal, uint8_t device[GPS_UUID_BYTES]) {
    int count = 0;
    return driver.count(&count) == OK && ordinal < count && driver.uuid(device, ordinal) == OK;
}

bool checkpoint_room(const uint8_t device[GPS_UUID_BYTES], uint64_t *bytes) {
    static const uint8_t any[GPS_UUID_BYTES];
    int count = 0;
    bool known = false;
    if (driver.count(&count) != OK)
        return false;
    for (int ordinal = 0; ordinal < count; ordinal++) {
        uint8_t uuid[GPS_UUID_BYTES];
        uint64_t here;
        if (driver.uuid(uuid, ordinal) != OK ||
            (memcmp(device, any, sizeof(any)) != 0 && memcmp(device, uuid, sizeof(uuid)) != 0))
            continue;
        if (!checkpoint_free(uuid, &here) && !ask_room(ordinal, &here))
            return false;
        *bytes = known && *bytes < here ? *bytes : here;
        known = true;
    }
    return known;
}

const char *checkpoint_meaning(int code) {
    switch (code) {
    case 1:
    case NOT_SUPPORTED:
        return "it has memory or a feature that the driver does not checkpoint";
    case OUT_OF_MEMORY:
        return "out of memory";
    case 3:
        return "it does not use CUDA";
    case 304:
        return "there is no such process, or it is not yours";
    case 401:
        return "its state is another one: somebody else checkpoints it, too";
    case 600:
        return "work that it gave to the GPU has not ended in time";
    default:
        return "see the error of this number in cuda.h";
    }
}
