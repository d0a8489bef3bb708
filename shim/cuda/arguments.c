/* arguments.c - see arguments.h. */
#include "arguments.h"

#include <stddef.h>
#include <string.h>

enum { MOST = 256 };

static bool find(CUfunction f, size_t index, size_t *offset, size_t *size) {
    return (gps_calls.cuFuncGetParamInfo &&
            gps_calls.cuFuncGetParamInfo(f, index, offset, size) == CUDA_SUCCESS) ||
           (gps_calls.cuKernelGetParamInfo &&
            gps_calls.cuKernelGetParamInfo((CUkernel)f, index, offset, size) == CUDA_SUCCESS);
}

/* Where all arguments lie side by side, and how many bytes they have; NULL: nowhere. */
static const char *side_by_side(void **extra, size_t *bytes) {
    const char *at = NULL;
    *bytes = 0;
    for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2)
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            at = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            *bytes = *(const size_t *)extra[1];
        else
            return NULL;
    return at;
}

void gps_arguments_each(CUfunction f, void **values, void **extra,
                        void (*fn)(uint64_t value, unsigned number)) {
    size_t bytes, offset, size;
    const char *const all = side_by_side(extra, &bytes);
    uint64_t value;
    for (unsigned i = 0; f && (values || all) && i < MOST && find(f, i, &offset, &size); i++) {
        const char *const at = values ? values[i] : offset + size > bytes ? NULL : all + offset;
        if (size != sizeof(value) || !at)
            continue;
        memcpy(&value, at, sizeof(value));
        fn(value, i + 1);
    }
}
