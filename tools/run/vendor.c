#include "vendor.h"

#include <string.h>

static const struct {
    const char *option, *name, *library, *driver;
} runtimes[] = {
    [RUNTIME_CUDA] = {"cuda", "CUDA", "libgpushare.so", "libcuda.so"},
    [RUNTIME_HIP] = {"hip", "HIP", "libgpushare-hip.so", "libamdhip64.so"},
};

const char *vendor_option(enum runtime runtime) {
    return runtimes[runtime].option;
}

const char *vendor_name(enum runtime runtime) {
    return runtimes[runtime].name;
}

const char *vendor_library(enum runtime runtime) {
    return runtimes[runtime].library;
}

const char *vendor_driver(enum runtime runtime) {
    return runtimes[runtime].driver;
}

bool vendor_find(const char *option, enum runtime *runtime) {
    for (int i = 0; i < RUNTIMES; i++)
        if (strcmp(option, runtimes[i].option) == 0) {
            *runtime = (enum runtime)i;
            return true;
        }
    return false;
}
