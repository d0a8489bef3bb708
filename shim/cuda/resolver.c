/*
 * resolver.c - see resolver.h.
 *
 * The real look-up is made first, and what it answered is looked up by address (cuda_lookup.h):
 * names, suffixes and versions are never interpreted. One case needs care: a look-up in the global
 * scope (RTLD_DEFAULT, the main program's handle) finds our own export, also where no libcuda is to
 * be seen from there. Then we ask what comes after us, and last the caller's own scope.
 */
#include "resolver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

#include "cuda_lookup.h"
#include "driver.h"
#include "stack/module.h"

void *(*gps_real_dlsym)(void *handle, const char *name);
void *(*gps_real_dlvsym)(void *handle, const char *name, const char *version);

#if defined(__clang__)
#define BARE __attribute__((no_sanitize("address", "undefined", "thread"), no_builtin))
#else
#define BARE __attribute__((no_sanitize("address", "undefined", "thread")))
#endif

static const char *const names[] = {
#define DRIVER(kind, name, parameters, arguments) #name,
#define WRITE(name, parameters, arguments, what)  #name,
#include "hooks.def"
};

BARE static int is_hooked(const char *name) {
    if (name[0] != 'c' || name[1] != 'u') /* nearly every look-up ends here */
        return 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t at = 2;
        while (names[i][at] && names[i][at] == name[at])
            at++;
        if (names[i][at] == name[at])
            return 1;
    }
    return 0;
}

BARE int gps_dl_wanted(void *handle, const char *name) {
    if (!gps_real_dlvsym) { /* two threads may both do this; they store the same */
        gps_real_dlsym = (__typeof__(gps_real_dlsym))gps_libc_symbol("dlsym");
        gps_real_dlvsym = (__typeof__(gps_real_dlvsym))gps_libc_symbol("dlvsym");
    }
    return name && handle != RTLD_NEXT && is_hooked(name);
}

/* The definition in the caller's own dependencies. The main program has none beyond the global
 * scope. */
static void *in_scope_of(const void *caller, const char *name) {
    struct gps_module module;
    if (!gps_module_of(caller, &module) || !*module.path)
        return NULL;
    void *scope = dlopen(module.path, RTLD_LAZY | RTLD_NOLOAD);
    if (!scope)
        return NULL;
    void *found = gps_real_dlsym(scope, name);
    dlclose(scope); /* the caller itself keeps it loaded */
    if (!found)
        gps_real_dlsym(RTLD_NEXT, name); /* fails again: dlerror must say so, dlclose cleared it */
    return gps_lookup_is_ours(found) ? NULL : found;
}

static void *answer(void *found, void *handle, const char *name, const void *caller) {
    int error = errno;
    if (found && gps_lookup_is_ours(found)) {
        found = gps_real_dlsym(RTLD_NEXT, name); /* next after us: we are the caller here */
        if (!found && handle == RTLD_DEFAULT)
            found = in_scope_of(caller, name);
    }
    if (found)
        found = gps_lookup_substitute(found);
    errno = error;
    return found;
}

void *gps_dlsym_hooked(void *handle, const char *name, void *caller) {
    return answer(gps_real_dlsym(handle, name), handle, name, caller);
}

void *gps_dlvsym_hooked(void *handle, const char *name, const char *version, void *caller) {
    return answer(gps_real_dlvsym(handle, name, version), handle, name, caller);
}
