/* must.h - what has to work first: it ends the program if it does not. Of the driver API alone. */
#pragma once

#include "../../common/system_headers.h"
#include <cuda.h>

static void must(CUresult code, const char *call) {
    if (code == CUDA_SUCCESS)
        return;
    printf("%s: %d\n", call, (int)code);
    exit(1);
}
#define MUST(call) must(call, #call)
