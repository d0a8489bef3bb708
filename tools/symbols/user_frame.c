#define XXH_INLINE_ALL
#include "user_frame.h"

#include <ctype.h>
#include <xxhash.h>

#include "cli/tool.h"
#include "logs/aggregate.h"

static bool user_frame_text_begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

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
        if (user_frame_text_begins(base, others[i]))
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
    const struct symbol_place *innermost = NULL;
    for (size_t i = 0; i < stack->count; i++) {
        if (!user_frame_is(&stack->frames[i]))
            continue;
        const struct symbol *symbol = symbol_find(symbols, &stack->frames[i]);
        innermost = innermost ? innermost : &symbol->places[0];
        for (size_t j = 0; j < symbol->count; j++)
            if (symbol->places[j].file && symbol->places[j].line > 0)
                return &symbol->places[j];
    }
    return innermost;
}

/* The program's entry, and libc's functions that call main, which a stripped libc does not name. */
static bool is_start(const struct log_frame *frame, struct symbols *symbols) {
    const char *function = symbol_find(symbols, frame)->places[0].function;
    if (frame->function)
        return false;
    if (function)
        return strcmp(function, "_start") == 0 || user_frame_text_begins(function, "__libc_start");
    return frame->module && user_frame_text_begins(basename(frame->module), "libc.so");
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

/* --- the runtime's --- */

static bool is_drivers(const char *api) {
    return api && user_frame_text_begins(api, "cu") && isupper((unsigned char)api[2]);
}

/* NVIDIA's linker scripts give these names to what is not public. */
static bool is_internal(const char *function) {
    return user_frame_text_begins(function, "libcudart_static_") ||
           user_frame_text_begins(function, "__cudart") ||
           user_frame_text_begins(function, "_ZN6cudart");
}

static bool is_public(const char *function) {
    return user_frame_text_begins(function, "cuda") && isupper((unsigned char)function[4]);
}

static bool is_hooked(const char *function) {
    static const char *const names[] = {
#define RUNTIME(name, parameters, arguments) #name,
#include "cuda/hooks.def"
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], function) == 0)
            return true;
    return false;
}

static const char *function_of(const struct log_frame *frame, struct symbols *symbols) {
    const struct symbol *symbol = symbol_find(symbols, frame);
    return symbol->places[symbol->count - 1].plain;
}

/* The frame of the runtime's function that the program called; NULL: there is none. Programs have
 * functions of such names, too, so the runtime has to be in the module. */
static const struct log_frame *find_entry(const struct log_stack *stack, struct symbols *symbols) {
    const struct log_frame *first = stack->frames;
    for (const struct log_frame *frame = first; frame < first + stack->count; frame++) {
        const char *function = function_of(frame, symbols);
        if (!function || strcmp(tool_or(frame->module, ""), tool_or(first->module, "")) != 0)
            return NULL;
        if (is_hooked(function) ||
            (is_public(function) && symbol_defines(symbols, frame, "cudaGetLastError")))
            return frame;
    }
    return NULL;
}

/* How many frames from the innermost on are the runtime's. *call is the function of it that the
 * program called, where that is known. One that the runtime reaches through another one of its own
 * counts as well. */
static size_t count_frames(const struct log_stack *stack, struct symbols *symbols,
                           const char **call) {
    const struct log_frame *entry = find_entry(stack, symbols);
    size_t count = entry ? (size_t)(entry - stack->frames) + 1 : 0;
    *call = entry ? function_of(entry, symbols) : NULL;
    for (; count < stack->count; count++) {
        const char *function = function_of(&stack->frames[count], symbols);
        if (!function || !(entry ? is_hooked(function) : is_internal(function)))
            break;
        *call = entry ? function : NULL;
    }
    return count;
}

static const char *strip(struct log_stack *stack, struct symbols *symbols) {
    const char *call;
    const size_t count = count_frames(stack, symbols, &call);
    stack->count -= count;
    if (count > 0)
        memmove(stack->frames, stack->frames + count, stack->count * sizeof(*stack->frames));
    return call;
}

void runtime_frames_strip(struct log_line *line, struct symbols *symbols) {
    const char *call = is_drivers(line->api) ? strip(&line->stack, symbols) : NULL;
    for (size_t i = 0; i < line->prior.count; i++)
        strip(&line->prior.events[i].stack, symbols);
    if (!call)
        return;
    json_object_set_new(line->json, "api", json_string(call));
    line->api = json_string_value(json_object_get(line->json, "api"));
}

bool runtime_frames_hidden(const struct log_line *line, struct symbols *symbols) {
    if (!is_drivers(line->api) || line->stack.count == 0 || !line->stack.frames[0].module)
        return false;
    const struct symbol *symbol = symbol_find(symbols, &line->stack.frames[0]);
    return !symbol->places[0].function && !symbol->note;
}
