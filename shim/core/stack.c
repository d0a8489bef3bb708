/* stack.c - see stack.h. */
#include "stack.h"

#include <string.h>
#include <unistd.h>
#include <unwind.h>

#include "module.h"

struct walk {
    uintptr_t *addresses;
    unsigned count, max;
    uintptr_t own; /* our load address */
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg) {
    struct walk *walk = arg;
    const uintptr_t address = _Unwind_GetIP(context);
    struct gps_module module;
    if (!address || walk->count == walk->max)
        return _URC_END_OF_STACK;
    if (!(gps_module_of((void *)address, &module) && module.base == walk->own))
        walk->addresses[walk->count++] = address;
    return _URC_NO_REASON;
}

unsigned gps_stack_walk(uintptr_t *addresses, unsigned max) {
    struct walk walk = {.addresses = addresses, .max = max};
    struct gps_module self;
    if (gps_module_of((void *)(uintptr_t)&gps_stack_walk, &self))
        walk.own = self.base;
    if (max)
        _Unwind_Backtrace(step, &walk);
    return walk.count;
}

static void hex(char *out, const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        *out++ = "0123456789abcdef"[bytes[i] >> 4];
        *out++ = "0123456789abcdef"[bytes[i] & 15];
    }
    *out = '\0';
}

struct wanted {
    const struct gps_module *module;
    struct gps_frame *frame;
};

static void read_notes(const uint8_t *notes, size_t size, struct gps_frame *frame) {
    while (size >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const void *)notes;
        const size_t name = (note->n_namesz + 3u) & ~3u, data = (note->n_descsz + 3u) & ~3u;
        const size_t whole = sizeof(*note) + name + data;
        if (whole > size)
            return;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && note->n_descsz <= 20)
            hex(frame->build_id, notes + sizeof(*note) + name, note->n_descsz);
        notes += whole;
        size -= whole;
    }
}

static int read_build_id(struct dl_phdr_info *info, size_t size, void *arg) {
    (void)size;
    const struct wanted *wanted = arg;
    if (info->dlpi_addr != wanted->module->base)
        return 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE)
            read_notes((const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
                       info->dlpi_phdr[i].p_memsz, wanted->frame);
    return 1;
}

/* The end of a path says more than its beginning. */
static void copy_path(char *out, size_t size, const char *path) {
    const size_t length = strlen(path);
    const char *from = length < size ? path : path + length - (size - 1);
    memcpy(out, from, strlen(from) + 1);
}

static void copy_executable(char *out, size_t size) {
    char path[1024];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[length > 0 ? length : 0] = '\0';
    copy_path(out, size, path);
}

void gps_stack_frame(uintptr_t address, struct gps_frame *frame) {
    *frame = (struct gps_frame){.address = address, .offset = address};
    struct gps_module module;
    if (!gps_module_of((void *)address, &module))
        return; /* JIT code: no module, the address is all there is */
    frame->offset = address - module.base;
    if (*module.path)
        copy_path(frame->module, sizeof(frame->module), module.path);
    else
        copy_executable(frame->module, sizeof(frame->module));
    struct wanted wanted = {&module, frame};
    dl_iterate_phdr(read_build_id, &wanted);
}
