#include "stack.h"

#include <string.h>
#include <unwind.h>

#include "module_place.h"
#include "util/digits.h"
#include "util/procfs.h"

struct walk {
    struct gps_site from;
    struct gps_step *steps;
    unsigned count, max;
};

/* On x86 the call pushed the return address into the word below the frame's CFA. */
static uintptr_t stack_return_slot(uintptr_t address, uintptr_t frame) {
#ifdef __x86_64__
    const uintptr_t slot = frame - sizeof(uintptr_t);
    return *(const uintptr_t *)slot == address ? slot : 0;
#else
    (void)address;
    (void)frame;
    return 0;
#endif
}

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg) {
    struct walk *walk = arg;
    const uintptr_t address = _Unwind_GetIP(context), frame = _Unwind_GetCFA(context);
    if (!address || walk->count == walk->max)
        return _URC_END_OF_STACK;
    if (walk->count || frame == (uintptr_t)walk->from.frame)
        walk->steps[walk->count++] =
            (struct gps_step){address, stack_return_slot(address, frame), frame};
    return _URC_NO_REASON;
}

unsigned gps_stack_walk(struct gps_site from, struct gps_step *steps, unsigned max) {
    struct walk walk = {.from = from, .steps = steps, .max = max};
    if (!max || !from.address)
        return 0;
    _Unwind_Backtrace(step, &walk);
    if (!walk.count)
        steps[walk.count++] = (struct gps_step){.address = (uintptr_t)from.address};
    return walk.count;
}

/* The return address of a frame that a signal interrupted is not behind a call. */
static _Unwind_Reason_Code frame_is_interrupted(struct _Unwind_Context *context, void *found) {
    int before = 0;
    (void)_Unwind_GetIPInfo(context, &before);
    *(bool *)found = before != 0;
    return before ? _URC_END_OF_STACK : _URC_NO_REASON;
}

bool gps_stack_in_handler(void) {
    bool found = false;
    _Unwind_Backtrace(frame_is_interrupted, &found);
    return found;
}

static char executable[sizeof(((struct gps_frame *)0)->module)];

/* Copies the end of a path, which tells more than its beginning. */
static void copy_path(char *out, size_t size, const char *path) {
    const size_t length = strlen(path);
    const char *from = length < size ? path : path + length - (size - 1);
    memcpy(out, from, strlen(from) + 1);
}

void gps_stack_start(void) {
    char path[1024];
    gps_procfs_executable_path(path, sizeof(path));
    copy_path(executable, sizeof(executable), path);
}

void gps_stack_frame(uintptr_t address, struct gps_frame *frame) {
    const uint8_t *id;
    struct gps_module module;
    *frame = (struct gps_frame){.address = address, .offset = address};
    if (!gps_module_of((void *)address, &module))
        return; /* JIT code has no module: only the address is known */
    frame->offset = address - module.base;
    copy_path(frame->module, sizeof(frame->module), *module.path ? module.path : executable);
    const unsigned length = gps_module_build_id(&module, &id);
    if (length && length <= GPS_BUILD_ID_BYTES)
        gps_hex_format(id, length, frame->build_id);
}
