#include "attachment.h"

#include <dlfcn.h>
#include <stdatomic.h>

#include "stack/module_place.h"

static bool library_is_meant(const struct gps_module *module, gps_attachment_is_fn *is) {
    const char *soname = gps_module_soname(module);
    return soname && is(soname);
}

struct search {
    gps_attachment_is_fn *is;
    struct gps_module found;
};

static bool try_module(void *arg, const struct gps_module *module) {
    struct search *search = arg;
    if (!library_is_meant(module, search->is))
        return false;
    search->found = *module;
    return true;
}

/* Holds a reference: a program may dlclose what loaded it, and our slots must not dangle. */
static void library_pin(const struct gps_module *module) {
    __typeof__(&dlopen) open = GPS_LATE(dlopen);
    if (open)
        (void)open(module->path, RTLD_LAZY | RTLD_NOLOAD);
}

/* Each slot is written once: a later thread changes no addresses that others use already. */
void gps_attachment_look_up(const struct gps_module *library, const char (*names)[GPS_HOOK_NAME],
                            void **slots, size_t size) {
    for (size_t i = 0; i < size / sizeof(*slots); i++) {
        void *const found = gps_module_symbol(library, names[i]);
        void *before = __atomic_load_n(&slots[i], __ATOMIC_ACQUIRE);
        if (found && !before)
            __atomic_compare_exchange_n(&slots[i], &before, found, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE);
    }
}

/* Returns the chosen copy: there may be two, and another thread may have chosen the other. */
static struct gps_module attachment_choose(struct gps_attachment *attachment,
                                           const struct gps_module *library) {
    struct gps_module chosen = *library;
    uintptr_t before = 0;
    if (!atomic_compare_exchange_strong(&attachment->chosen, &before, (uintptr_t)library->dynamic))
        gps_module_of((const void *)before, &chosen);
    return chosen;
}

static bool attachment_attach(struct gps_attachment *attachment, gps_attachment_fill_fn *fill,
                              const struct gps_module *found) {
    library_pin(found);
    const struct gps_module library = attachment_choose(attachment, found);
    fill(&library);
    attachment->attached = true;
    return true;
}

bool gps_attachment_find(struct gps_attachment *attachment, gps_attachment_is_fn *is,
                         gps_attachment_fill_fn *fill) {
    struct search search = {.is = is};
    return attachment->attached || (gps_module_each(try_module, &search) &&
                                    attachment_attach(attachment, fill, &search.found));
}

bool gps_attachment_find_by(struct gps_attachment *attachment, gps_attachment_is_fn *is,
                            gps_attachment_fill_fn *fill, const void *address) {
    struct gps_module module;
    return attachment->attached ||
           (gps_module_of(address, &module) && library_is_meant(&module, is) &&
            attachment_attach(attachment, fill, &module));
}

bool gps_attachment_has(const struct gps_attachment *attachment, const void *address) {
    struct gps_module module;
    return gps_module_of(address, &module) && (uintptr_t)module.dynamic == attachment->chosen;
}

void *gps_attachment_symbol(const struct gps_attachment *attachment, const char *name) {
    struct gps_module library;
    return gps_module_of((const void *)attachment->chosen, &library)
               ? gps_module_symbol(&library, name)
               : NULL;
}
