/* user_frame.c - see user_frame.h. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <inttypes.h>
#include <string.h>

#include "cli/tool.h"
#include "logs/aggregate.h"
#include "user_frame.h"

/* Every Python frame is the user's, and so is every module but these, which are known by the
 * beginning of their file names. */
bool user_frame_is(const struct log_frame *frame) {
    static const char *const others[] = {"libcuda.so",         "libcudart.so",   "libc.so",
                                         "libpthread.so",      "libstdc++.so",   "libgpushare.so",
                                         "libgpushare-hip.so", "libamdhip64.so", "ld-linux",
                                         "linux-vdso",         "[vdso]"};
    const char *base = log_frame_module(frame);
    if (frame->function || !base)
        return frame->function;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strncmp(base, others[i], strlen(others[i])) == 0)
            return false;
    return true;
}

const struct log_frame *user_frame_find(const struct log_stack *stack) {
    for (size_t i = 0; i < stack->count; i++)
        if (user_frame_is(&stack->frames[i]))
            return &stack->frames[i];
    return NULL;
}

const struct symbol_place *user_frame_place(const struct log_stack *stack,
                                            struct symbols *symbols) {
    for (size_t i = 0; i < stack->count; i++) {
        const struct log_frame *frame = &stack->frames[i];
        if (!user_frame_is(frame))
            continue;
        const struct symbol *symbol = symbol_find(symbols, frame);
        for (size_t j = 0; j < symbol->count; j++)
            if (symbol->places[j].file && symbol->places[j].line > 0)
                return &symbol->places[j];
    }
    return NULL;
}

/* The program's entry, and the functions of libc that call main; these have no name when libc is
 * stripped. */
static bool is_start(const struct log_frame *frame, struct symbols *symbols) {
    static const char libc[] = "libc.so", start[] = "__libc_start";
    const char *function = symbol_find(symbols, frame)->places[0].function;
    if (frame->function)
        return false;
    if (function)
        return strcmp(function, "_start") == 0 || strncmp(function, start, sizeof(start) - 1) == 0;
    return frame->module && strncmp(tool_base_name(frame->module), libc, sizeof(libc) - 1) == 0;
}

size_t user_frame_shown(const struct log_stack *stack, struct symbols *symbols) {
    size_t count = stack->count;
    while (count > 0 && is_start(&stack->frames[count - 1], symbols))
        count--;
    return count > 0 ? count : stack->count;
}

/* "app main" where the function is known, else "app 1b2c". */
static void mix_frame(XXH3_state_t *state, const struct log_frame *frame, struct symbols *symbols) {
    const char *module = tool_or(log_frame_module(frame), "");
    const char *function = symbol_find(symbols, frame)->places[0].function;
    TOOL_TEMP char *text = function ? tool_format("%s %s\n", module, function)
                                    : tool_format("%s %" PRIx64 "\n", module, frame->offset);
    XXH3_64bits_update(state, text, strlen(text));
}

uint64_t user_frame_hash(const struct log_line *line, struct symbols *symbols) {
    const struct log_stack *stack = aggregate_stack(line);
    const size_t shown = user_frame_shown(stack, symbols);
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, line->finding, strlen(line->finding) + 1);
    if (line->api)
        XXH3_64bits_update(&state, line->api, strlen(line->api));
    for (size_t i = 0; i < shown; i++)
        mix_frame(&state, &stack->frames[i], symbols);
    return XXH3_64bits_digest(&state);
}
