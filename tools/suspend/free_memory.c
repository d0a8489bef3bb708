/*
 * free_memory.c - how many bytes of a GPU are free, by NVML, which needs no context: a context
 * takes 0.12 s to make and 0.07 s to end, and 500 MiB meanwhile (H200, driver 580.159.04,
 * 2026-11-29; the figures were equal).
 */
#include "checkpoint.h"

#include <dlfcn.h>

#include "cli/nvml.h"
#include "config/config.h"

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

bool checkpoint_free(const uint8_t device[GPS_UUID_BYTES], uint64_t *bytes) {
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
