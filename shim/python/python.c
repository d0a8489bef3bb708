#include "python.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unwind.h>

#include "python_frame.h"
#include "stack/module_place.h"
#include "stack/stack.h"
#include "util/forgotten.h"

/* Too large for a stack of the program's. */
struct gps_python_stack {
    struct gps_python python;
    struct gps_step steps[GPS_STACK_MAX];
    bool folds[GPS_STACK_MAX], runs[GPS_STACK_MAX]; /* a step is folded; it runs Python frames */
    struct gps_python_frame inner[GPS_STACK_MAX];
    struct gps_frame frames[GPS_STACK_MAX];
    unsigned depth, step_count, inner_count;
    uint8_t table[GPS_PYTHON_TABLE_MAX];
};

/* The first interpreter that was found: a search for one takes thousands of instructions. An
 * interpreter loaded in its place is another one. */
enum { UNKNOWN, BEING_NOTED, KNOWN };
static struct {
    _Atomic int state;
    struct gps_python python;
    struct gps_module_mark mark;
    _Atomic uint32_t vain; /* how often a deep stack was looked through before it was found */
    _Atomic bool unknown;  /* an interpreter of unknown layout was met */
    _Atomic bool told;     /* a report has told that */
} first;
GPS_FORGOTTEN(first);

static bool is_first(uintptr_t address) {
    return atomic_load_explicit(&first.state, memory_order_acquire) == KNOWN &&
           address - (uintptr_t)first.python.module.start <
               (uintptr_t)first.python.module.end - (uintptr_t)first.python.module.start &&
           gps_module_has_mark((const void *)address, first.mark);
}

static void python_note_first(uintptr_t address, const struct gps_python *python) {
    int expected = UNKNOWN;
    if (!atomic_compare_exchange_strong(&first.state, &expected, BEING_NOTED))
        return;
    first.python = *python;
    first.mark = gps_module_mark_of((const void *)address);
    atomic_store_explicit(&first.state, KNOWN, memory_order_release);
}

static bool interpreter_at(uintptr_t address, struct gps_python *python) {
    struct gps_module module;
    if (is_first(address)) {
        *python = first.python;
        return true;
    }
    const enum gps_python_kind kind = gps_module_of((const void *)address, &module)
                                          ? gps_python_in(&module, python)
                                          : GPS_PYTHON_NONE;
    if (kind == GPS_PYTHON_UNKNOWN)
        atomic_store_explicit(&first.unknown, true, memory_order_relaxed);
    if (kind == GPS_PYTHON_KNOWN)
        python_note_first(address, python);
    return kind == GPS_PYTHON_KNOWN;
}

/* Whether a trace of at most `depth` frames has passed an interpreter. */
enum passed { PASSED, PASSED_PERHAPS, PASSED_NOT }; /* PERHAPS: its end is not known */
static enum passed trace_passes(uint32_t trace, unsigned depth) {
    const uintptr_t *addresses;
    struct gps_python python;
    const unsigned count = gps_trace_addresses(trace, &addresses);
    for (unsigned i = 0; i < count; i++)
        if (interpreter_at(addresses[i], &python))
            return PASSED;
    return count && count == depth ? PASSED_PERHAPS : PASSED_NOT;
}

static bool find_interpreter(struct gps_python_stack *stack) {
    for (unsigned i = 0; i < stack->step_count; i++)
        if (interpreter_at(stack->steps[i].address, &stack->python))
            return true;
    return false;
}

/* --- which native frames are folded --- */

/* The interpreter as a program, "python3.11", or as a library, and the libraries that call C
 * functions for it. In a program of another name that has the interpreter in itself, its functions
 * cannot be told from others: there only those that run Python frames are folded. */
static bool path_is_interpreters(const char *path) {
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

/* Whether the step's function runs Python frames. A compiler can make two functions of that one, of
 * which one has its name. The other is recognised by the variables in its frame. */
static bool runs_frames(const struct gps_python_stack *stack, unsigned step) {
    const struct gps_step *at = &stack->steps[step];
    bool runs =
        (uintptr_t)_Unwind_FindEnclosingFunction((void *)at->address) == stack->python.evaluate;
    for (unsigned i = 0; i < stack->inner_count && !runs && step + 1 < stack->step_count; i++)
        runs = stack->inner[i].runner >= at->begin && stack->inner[i].runner < at[1].begin;
    return runs;
}

static void sort_steps(struct gps_python_stack *stack) {
    for (unsigned i = 0; i < stack->step_count; i++) {
        struct gps_frame frame;
        gps_stack_frame(stack->steps[i].address, &frame);
        stack->runs[i] = runs_frames(stack, i);
        stack->folds[i] = stack->runs[i] || path_is_interpreters(frame.module);
    }
}

static bool has_all_runners(const struct gps_python_stack *stack) {
    unsigned runs = 0, known = 0;
    for (unsigned i = 0; i < stack->step_count; i++)
        runs += stack->runs[i];
    for (unsigned i = 0; i < stack->inner_count; i++)
        known += stack->inner[i].runner != 0;
    return runs >= known;
}

/* --- the stack --- */

struct fold {
    struct gps_python_stack *stack;
    struct gps_frame *frames;
    unsigned count, room;
    unsigned native, inner; /* how many of each are in it */
    bool broken;
};

static void fold_add_native(struct fold *fold, uintptr_t address) {
    if (fold->native == fold->stack->depth || fold->count == fold->room)
        return;
    gps_stack_frame(address, &fold->frames[fold->count++]);
    fold->native++;
}

static bool has_more(const struct fold *fold) {
    return fold->inner < fold->stack->inner_count && !fold->broken;
}

/* Adds the Python frames that one native frame ran. */
static void add_inner(struct fold *fold) {
    struct gps_python_stack *stack = fold->stack;
    for (bool entry = false; !entry && has_more(fold);) {
        const struct gps_python_frame *from = &stack->inner[fold->inner++];
        entry = from->entry;
        if (fold->count < fold->room)
            fold->broken = !gps_python_describe(&stack->python, from, stack->table,
                                                &fold->frames[fold->count++]);
    }
}

/* The last native frame that runs Python frames; without any, the last that is folded. */
static unsigned last_runner(const struct gps_python_stack *stack) {
    unsigned last = 0, folded = 0;
    for (unsigned i = 0; i < stack->step_count; i++) {
        last = stack->runs[i] ? i : last;
        folded = stack->folds[i] ? i : folded;
    }
    return stack->runs[last] ? last : folded;
}

/* The last runner gets all frames that are left: the walk may have ended there. If not all Python
 * frames were read, frames further out are left out, too. */
static void fold_all(struct fold *fold) {
    const struct gps_python_stack *stack = fold->stack;
    const unsigned last = last_runner(stack);
    for (unsigned i = 0; i < stack->step_count && !fold->broken; i++) {
        if (!stack->folds[i] && fold->inner < stack->depth)
            fold_add_native(fold, stack->steps[i].address);
        if (stack->runs[i])
            add_inner(fold);
        while (i == last && has_more(fold))
            add_inner(fold);
    }
}

/* --- the interface --- */

static bool python_stack_take(struct gps_python_stack *stack, unsigned step_count) {
    stack->step_count = step_count;
    if (!find_interpreter(stack))
        return false;
    stack->inner_count = gps_python_frames(&stack->python, stack->inner, stack->depth);
    if (stack->inner_count > 0)
        sort_steps(stack);
    return stack->inner_count > 0;
}

/* A trace has only addresses, which do not always show which frames run Python frames. */
static bool take_traced(struct gps_python_stack *stack, uint32_t trace) {
    const uintptr_t *addresses;
    const unsigned count = gps_trace_addresses(trace, &addresses);
    for (unsigned i = 0; i < count; i++)
        stack->steps[i] = (struct gps_step){.address = addresses[i]};
    if (!python_stack_take(stack, count))
        return false;
    if (!has_all_runners(stack)) {
        stack->step_count = gps_stack_walk(gps_call_site(), stack->steps, GPS_STACK_MAX);
        sort_steps(stack);
    }
    return true;
}

static struct gps_python_stack *new_stack(unsigned depth) {
    struct gps_python_stack *stack =
        mmap(NULL, sizeof(*stack), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED)
        return NULL;
    stack->depth = depth;
    return stack;
}

struct gps_python_stack *gps_python_take(struct gps_site from, uint32_t trace, unsigned depth) {
    struct gps_python_stack *stack =
        trace_passes(trace, depth) == PASSED_NOT ? NULL : new_stack(depth);
    if (!stack || python_stack_take(stack, gps_stack_walk(from, stack->steps, GPS_STACK_MAX)))
        return stack;
    gps_python_drop(stack);
    return NULL;
}

void gps_python_drop(struct gps_python_stack *stack) {
    if (stack)
        munmap(stack, sizeof(*stack));
}

const char *gps_python_lack(void) {
    if (!atomic_load_explicit(&first.unknown, memory_order_relaxed) ||
        atomic_exchange_explicit(&first.told, true, memory_order_relaxed))
        return NULL;
    return "Python lines are missing, for this version of Python is not known. Known "
           "are " GPS_PYTHONS_KNOWN;
}

/* Without the interpreter's own frames: they change as it learns. */
uint64_t gps_python_hash(const struct gps_python_stack *stack) {
    uint64_t hash = GPS_TRACE_HASH;
    for (unsigned i = 0; i < stack->step_count; i++)
        hash = stack->folds[i] ? hash : gps_trace_mix(hash, stack->steps[i].address);
    for (unsigned i = 0; i < stack->inner_count; i++)
        hash = gps_trace_mix(gps_trace_mix(hash, stack->inner[i].code), stack->inner[i].offset);
    return hash;
}

unsigned gps_python_fill(struct gps_python_stack *stack, struct gps_frame *frames, unsigned max) {
    struct fold fold = {.stack = stack, .frames = frames, .room = max};
    fold_all(&fold);
    return fold.broken ? 0 : fold.count;
}

/* Where no interpreter was ever seen, of deep stacks the first, second, fourth, eighth is walked to
 * its end, and so on: a program without Python pays nothing that shows. */
static bool is_worth_a_walk(void) {
    if (atomic_load_explicit(&first.state, memory_order_relaxed) == KNOWN)
        return true;
    const uint32_t before = atomic_fetch_add_explicit(&first.vain, 1, memory_order_relaxed);
    return !(before & (before - 1));
}

/* Native frames behind the last of a trace are of no use: it shows as many. */
uint32_t gps_python_trace(uint32_t trace, unsigned depth, enum gps_trace_more *is) {
    const enum passed passed = trace_passes(trace, depth);
    const bool wanted = passed == PASSED || (passed == PASSED_PERHAPS && is_worth_a_walk());
    struct gps_python_stack *stack = wanted ? new_stack(depth) : NULL;
    const bool has_more =
        stack &&
        (passed == PASSED ? take_traced(stack, trace)
                          : python_stack_take(stack, gps_stack_walk(gps_call_site(), stack->steps,
                                                                    GPS_STACK_MAX)));
    const unsigned count = has_more ? gps_python_fill(stack, stack->frames, GPS_STACK_MAX) : 0;
    const uint32_t shown = count ? gps_trace_shown(trace, stack->frames, count) : trace;
    gps_python_drop(stack);
    *is = count ? GPS_TRACE_MORE : passed == PASSED_NOT ? GPS_TRACE_NEVER_MORE : GPS_TRACE_NO_MORE;
    return shown;
}
