#include "vendor.h"

#include <string.h>

const struct vendor vendors[RUNTIMES] = {
    [RUNTIME_CUDA] = {"cuda", "CUDA", "libgpushare.so", "libcuda.so"},
    [RUNTIME_HIP] = {"hip", "HIP", "libgpushare-hip.so", "libamdhip64.so"},
};

bool vendor_find(const char *option, enum runtime *runtime) {
    for (int i = 0; i < RUNTIMES; i++)
        if (strcmp(option, vendors[i].option) == 0) {
            *runtime = (enum runtime)i;
            return true;
        }
    return false;
}
