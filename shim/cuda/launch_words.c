#include "launch_words.h"

#include <string.h>

#include "calls/launches.h"
#include "launch_layout.h"

#define WORD sizeof(uint64_t)

/* The block in which all parameters lie side by side, and its size; NULL: there is none. */
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

struct visitor {
    uint64_t from, size;
    gps_launch_word_fn *call;
    void *arg;
};

/* A struct lies at a multiple of its alignment, and so do the pointers in it. */
static void each_word_of(const char *at, const struct gps_parameter *of,
                         const struct visitor *visitor) {
    for (unsigned offset = 0; offset + WORD <= of->size; offset += WORD) {
        uint64_t value;
        memcpy(&value, at + offset, WORD);
        if (value - visitor->from < visitor->size)
            visitor->call(visitor->arg,
                          &(struct gps_launch_word){value, of->number, offset, of->size == WORD});
    }
}

void gps_launch_each_word(const struct gps_launch *launch, uint64_t from, uint64_t to,
                          gps_launch_word_fn *fn, void *arg) {
    const struct visitor visitor = {from, to - from, fn, arg};
    struct gps_layout_room room;
    size_t bytes;
    const char *const all = side_by_side(launch->extra, &bytes);
    if (!launch->f || (!launch->values && !all))
        return;
    for (const struct gps_parameter *each = gps_launch_layout(launch->f, &room); each->number;
         each++) {
        const char *const at = launch->values ? launch->values[each->number - 1]
                               : (size_t)each->offset + each->size > bytes ? NULL
                                                                           : all + each->offset;
        if (at)
            each_word_of(at, each, &visitor);
    }
}

static void launch_word_look(void *arg, const struct gps_launch_word *word) {
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
        gps_launch_each_word(launch, gps_frames_from, gps_frames_to, note_word, NULL);
}

const char *gps_launch_name(CUfunction function) {
    const char *name = NULL;
    if ((gps_calls.cuFuncGetName && gps_calls.cuFuncGetName(&name, function) == CUDA_SUCCESS) ||
        (gps_calls.cuKernelGetName &&
         gps_calls.cuKernelGetName(&name, (CUkernel)function) == CUDA_SUCCESS))
        return name ? name : "";
    return "";
}

static void tell_canary(void *function, const struct gps_launch_word *word) {
    gps_canary_given(word->value, gps_launch_name(function));
}

void gps_launch_look(const struct gps_launch *launch) {
    uint64_t from, to;
    if (gps_canary_active)
        gps_launch_each_word(launch, gps_area_span.lowest, gps_area_span.highest, tell_canary,
                             launch->f);
    if (!gps_closed_looks)
        return;
    gps_closed_looked();
    gps_closed_span(&from, &to);
    gps_launch_each_word(launch, from, to, launch_word_look, NULL);
}
