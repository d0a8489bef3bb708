/* runtime_frames.c - see runtime_frames.h. */
#include "runtime_frames.h"

#include <ctype.h>
#include <string.h>

#include "cli/tool.h"

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_drivers(const char *api) {
    return api && begins(api, "cu") && isupper((unsigned char)api[2]);
}

/* NVIDIA's linker scripts give these names to what is not public. */
static bool is_internal(const char *function) {
    return begins(function, "libcudart_static_") || begins(function, "__cudart") ||
           begins(function, "_ZN6cudart");
}

static bool is_public(const char *function) {
    return begins(function, "cuda") && isupper((unsigned char)function[4]);
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

/* How many frames from the innermost on are the runtime's. *call is the function of it that the
 * program called, where that is known. One that the runtime reaches through another one of its own
 * counts as well. */
static size_t count_frames(const struct log_stack *stack, struct symbols *symbols,
                           const char **call) {
    size_t count = 0;
    *call = NULL;
    for (; count < stack->count; count++) {
        const char *function = function_of(&stack->frames[count], symbols);
        if (!function)
            break;
        const bool called = is_hooked(function) || (is_public(function) && count > 0 && !*call);
        if (!called && (*call || !is_internal(function)))
            break;
        *call = called ? function : *call;
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
