#include "launch_words.h"

#include <string.h>

#include "calls/launches.h"

enum { MOST_PARAMETERS = 256, WORD = sizeof(uint64_t) };

static bool find(CUfunction f, size_t index, size_t *offset, size_t *size) {
    return (gps_calls.cuFuncGetParamInfo &&
            gps_calls.cuFuncGetParamInfo(f, index, offset, size) == CUDA_SUCCESS) ||
           (gps_calls.cuKernelGetParamInfo &&
            gps_calls.cuKernelGetParamInfo((CUkernel)f, index, offset, size) == CUDA_SUCCESS);
}

/* Where all parameters lie side by side, and how many bytes they have; NULL: nowhere. */
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

/* A struct lies at a multiple of its alignment, and so do the pointers in it. */
static void each_word_of(const char *at, size_t size, struct gps_launch_word word,
                         gps_launch_word_fn *fn, void *arg) {
    word.whole = size == WORD;
    for (size_t offset = 0; offset + WORD <= size; offset += WORD) {
        word.offset = (unsigned)offset;
        memcpy(&word.value, at + offset, WORD);
        fn(arg, &word);
    }
}

void gps_launch_each_word(const struct gps_launch *launch, gps_launch_word_fn *fn, void *arg) {
    size_t bytes, offset, size;
    const char *const all = side_by_side(launch->extra, &bytes);
    if (!launch->f || (!launch->values && !all))
        return;
    for (unsigned i = 0; i < MOST_PARAMETERS && find(launch->f, i, &offset, &size); i++) {
        const char *const at = launch->values          ? launch->values[i]
                               : offset + size > bytes ? NULL
                                                       : all + offset;
        if (at)
            each_word_of(at, size, (struct gps_launch_word){.parameter = i + 1}, fn, arg);
    }
}

static void look_at_word(void *arg, const struct gps_launch_word *word) {
    (void)arg;
    if (word->whole)
        gps_launch_given(word->value, word->parameter);
}

static void note_word(void *arg, const struct gps_launch_word *word) {
    (void)arg;
    gps_frames_note(word->value, 0);
}

void gps_launch_note(const struct gps_launch *launch) {
    if (gps_frames_exist())
        gps_launch_each_word(launch, note_word, NULL);
}

void gps_launch_look(const struct gps_launch *launch) {
    gps_launch_each_word(launch, look_at_word, NULL);
}
