#include "frame_waits.h"

#include <stdio.h>

#include "cli/json_tree.h"
#include "cli/term.h"
#include "cli/tool.h"
#include "frames/turn.h"

/* Of all buffers that were exported. */
struct sum {
    json_int_t count, alike, odd, waits;
    bool known; /* of none is their number unknown */
    bool any, differ, threads;
};

static void frame_sum_add(struct sum *sum, json_t *buffer) {
    json_int_t count, alike, odd, waits;
    int threads;
    if (json_unpack(buffer, "{s:I, s:I, s:I, s:I, s:b}", "count", &count, "alike", &alike, "odd",
                    &odd, "waits", &waits, "threads", &threads) != 0 ||
        count == 0)
        return;
    sum->differ |= sum->any && sum->waits != waits;
    sum->known = (sum->known || !sum->any) && alike >= GPS_TURN_ALIKE;
    sum->any = true;
    sum->waits = waits;
    sum->count += count;
    sum->alike += alike;
    sum->odd += odd;
    sum->threads |= threads != 0;
}

static struct sum frame_sum_of(json_t *tree) {
    struct sum sum = {.count = 0};
    json_t *processes = json_object_get(tree, "processes");
    for (size_t i = 0; i < json_array_size(processes); i++) {
        json_t *frames = json_object_get(json_array_get(processes, i), "frames");
        for (size_t j = 0; j < json_array_size(frames); j++)
            frame_sum_add(&sum, json_array_get(frames, j));
    }
    return sum;
}

/* Why no number is right for all; malloc'ed. NULL: one is. */
static char *doubt(const struct sum *sum) {
    if (!sum->any)
        return tool_copy("no frame was seen");
    if (sum->threads)
        return tool_copy("several threads draw a frame");
    if (sum->odd)
        return tool_format("%" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT
                           " frames had another number of waits than those before",
                           sum->odd, sum->count);
    if (!sum->known)
        return tool_format("no %u frames in a row had the same number of waits, of "
                           "%" JSON_INTEGER_FORMAT " that were drawn",
                           GPS_TURN_ALIKE, sum->count);
    if (sum->differ)
        return tool_copy("the frames of one buffer have another number of waits than another's");
    return sum->waits ? NULL : tool_copy("the program does not wait for its frames");
}

char *frame_waits_lines(const char *path) {
    json_auto_t *tree = json_load_file(path, 0, NULL);
    const struct sum sum = frame_sum_of(tree);
    TOOL_TEMP char *why = doubt(&sum);
    if (why) {
        term_say(stderr, 0, "The rules have no frame_waits: %s.", why);
        return tool_format("# frame_waits is not known: %s.\n", why);
    }
    return tool_format("# Measured: the last %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT
                       " frames had as many waits.\nframe_waits = %" JSON_INTEGER_FORMAT "\n",
                       sum.alike, sum.count, sum.waits);
}
