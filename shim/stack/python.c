/* python.c - see python.h. */
#include "python.h"

#include <string.h>
#include <sys/mman.h>
#include <unwind.h>

#include "python_frame.h"
#include "stack.h"
#include "trace.h"

/* Too much for a stack of the program's. */
struct work {
    struct gps_python python;
    struct gps_step steps[GPS_STACK_MAX];
    bool folds[GPS_STACK_MAX], runs[GPS_STACK_MAX]; /* a step is folded; it runs Python frames */
    struct gps_python_frame inner[GPS_STACK_MAX];
    unsigned step_count, inner_count;
    uint8_t table[GPS_PYTHON_TABLE_MAX];
};

static bool interpreter_at(uintptr_t address, struct gps_python *python) {
    struct gps_module module;
    return gps_module_of((const void *)address, &module) && gps_python_in(&module, python);
}

bool gps_python_may_be_in(uint32_t trace, unsigned depth) {
    const uintptr_t *addresses;
    struct gps_python python;
    const unsigned count = gps_trace_addresses(trace, &addresses);
    for (unsigned i = 0; i < count; i++)
        if (interpreter_at(addresses[i], &python))
            return true;
    return count && count == depth;
}

static bool find_interpreter(struct work *work) {
    for (unsigned i = 0; i < work->step_count; i++)
        if (interpreter_at(work->steps[i].address, &work->python))
            return true;
    return false;
}

/* --- which native frames are folded --- */

/* The interpreter as a program, "python3.11", or as a library, and what calls C functions for it.
 * In a program of another name that has the interpreter in itself, the interpreter's functions
 * cannot be told from others: there only those are folded that run Python frames. */
static bool is_interpreters(const char *path) {
    static const char *const libraries[] = {"libpython3.", "libffi.so.", "_ctypes.",
                                            "_cffi_backend."};
    static const char program[] = "python";
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    for (unsigned i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
        if (strncmp(name, libraries[i], strlen(libraries[i])) == 0)
            return true;
    return strncmp(name, program, strlen(program)) == 0 &&
           !name[strlen(program) + strspn(name + strlen(program), "0123456789.dt")];
}

static void sort_steps(struct work *work) {
    for (unsigned i = 0; i < work->step_count; i++) {
        struct gps_frame frame;
        void *address = (void *)work->steps[i].address;
        gps_stack_frame(work->steps[i].address, &frame);
        work->runs[i] = (uintptr_t)_Unwind_FindEnclosingFunction(address) == work->python.evaluate;
        work->folds[i] = work->runs[i] || is_interpreters(frame.module);
    }
}

/* --- the stack --- */

struct fold {
    struct work *work;
    struct gps_frame *frames;
    unsigned count, room;
    unsigned depth, native, inner; /* how many of each are in it */
    bool broken;
};

static void add_native(struct fold *fold, uintptr_t address) {
    if (fold->native == fold->depth || fold->count == fold->room)
        return;
    gps_stack_frame(address, &fold->frames[fold->count++]);
    fold->native++;
}

static bool has_more(const struct fold *fold) {
    return fold->inner < fold->work->inner_count && !fold->broken;
}

/* Those that one native frame ran. */
static void add_inner(struct fold *fold) {
    struct work *work = fold->work;
    for (bool entry = false; !entry && has_more(fold);) {
        const struct gps_python_frame *from = &work->inner[fold->inner++];
        entry = from->entry;
        if (fold->count < fold->room)
            fold->broken = !gps_python_describe(&work->python, from, work->table,
                                                &fold->frames[fold->count++]);
    }
}

/* The last native frame that runs Python frames; without any, the last that is folded. */
static unsigned last_runner(const struct work *work) {
    unsigned last = 0, folded = 0;
    for (unsigned i = 0; i < work->step_count; i++) {
        last = work->runs[i] ? i : last;
        folded = work->folds[i] ? i : folded;
    }
    return work->runs[last] ? last : folded;
}

/* The last runner has all frames that are left: the walk may have ended there. Where not all Python
 * frames were read, what is further out is left out, too. */
static void fold_all(struct fold *fold) {
    const struct work *work = fold->work;
    const unsigned last = last_runner(work);
    for (unsigned i = 0; i < work->step_count && !fold->broken; i++) {
        if (!work->folds[i] && fold->inner < fold->depth)
            add_native(fold, work->steps[i].address);
        if (work->runs[i])
            add_inner(fold);
        while (i == last && has_more(fold))
            add_inner(fold);
    }
}

static unsigned stack_of(struct gps_site from, struct fold *fold) {
    struct work *work = fold->work;
    work->step_count = gps_stack_walk(from, work->steps, GPS_STACK_MAX);
    if (!find_interpreter(work))
        return 0;
    work->inner_count = gps_python_frames(&work->python, work->inner, fold->depth);
    if (!work->inner_count)
        return 0;
    sort_steps(work);
    fold_all(fold);
    return fold->broken ? 0 : fold->count;
}

unsigned gps_python_stack(struct gps_site from, unsigned depth, struct gps_frame *frames,
                          unsigned room) {
    struct work *work =
        mmap(NULL, sizeof(*work), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (work == MAP_FAILED)
        return 0;
    struct fold fold = {.work = work, .frames = frames, .room = room, .depth = depth};
    const unsigned count = stack_of(from, &fold);
    munmap(work, sizeof(*work));
    return count;
}
