/*
 * The real look-up is made first, and its answer is looked up by address: names, suffixes and
 * versions are never interpreted. One case needs care: a look-up in the global scope (RTLD_DEFAULT,
 * the main program's handle) finds our own export, also where no library of the vendor's is to be
 * seen from there. Then we search the objects after us, and last the caller's own scope. If neither
 * has the function, none is found. A function found there is substituted; but if ours finds the
 * real one by its own caller, our export is the answer.
 */
#include "resolver.h"

#include "stack/module_place.h"
#include <dlfcn.h>
#include <errno.h>

void *(*gps_real_dlsym)(void *handle, const char *name);
void *(*gps_real_dlvsym)(void *handle, const char *name, const char *version);

static __typeof__(gps_real_dlsym) libc_dlsym;
static __typeof__(gps_real_dlvsym) libc_dlvsym;

/* Nearly every look-up ends at the first two letters. */
GPS_BARE static int is_hooked(const char (*names)[GPS_HOOK_NAME], size_t count, const char *name) {
    if (name[0] != names[0][0] || name[1] != names[0][1])
        return 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = 2;
        while (names[i][at] && names[i][at] == name[at])
            at++;
        if (names[i][at] == name[at])
            return 1;
    }
    return 0;
}

GPS_BARE int gps_resolver_wanted(const char (*names)[GPS_HOOK_NAME], size_t count, void *handle,
                                 const char *name, const void *caller) {
    if (!gps_real_dlvsym) { /* two threads may both do this, and store the same value */
        libc_dlsym = (__typeof__(libc_dlsym))gps_libc_symbol("dlsym");
        libc_dlvsym = (__typeof__(libc_dlvsym))gps_libc_symbol("dlvsym");
        gps_real_dlsym = (__typeof__(gps_real_dlsym))gps_next_symbol("dlsym");
        gps_real_dlvsym = (__typeof__(gps_real_dlvsym))gps_next_symbol("dlvsym");
    }
    if (!name || !is_hooked(names, count, name))
        return 0;
    if (handle != RTLD_NEXT)
        return 1;
    /* Another library's dlsym looks behind itself, and so past us. */
    return gps_module_is_before_us(caller) &&
           (gps_real_dlsym != libc_dlsym || !libc_dlsym(RTLD_NEXT, name));
}

/* A look-up of the program's. */
struct wanted {
    void *handle;
    const char *name;
    const char *version; /* NULL: dlsym */
    const void *caller;
    const struct gps_resolver *of;
};

static void *real(const struct wanted *wanted, void *handle) {
    return wanted->version ? libc_dlvsym(handle, wanted->name, wanted->version)
                           : libc_dlsym(handle, wanted->name);
}

/* The definition in the caller's dependencies. The main program's are the global scope. */
static void *in_scope_of_caller(const struct wanted *wanted) {
    struct gps_module module;
    if (!gps_module_of(wanted->caller, &module) || !*module.path)
        return NULL;
    __typeof__(&dlopen) open = GPS_LATE(dlopen);
    __typeof__(&dlclose) close = GPS_LATE(dlclose);
    void *scope = open && close ? open(module.path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (!scope)
        return NULL;
    void *found = real(wanted, scope);
    close(scope); /* the caller itself keeps it loaded */
    return wanted->of->is_ours(found) ? NULL : found;
}

/* The function that would be found without us: the next after us, because we are the caller here,
 * or in the caller's own scope. If none is found the first look-up is repeated: dlerror must tell
 * that, and dlopen and dlclose have cleared it. */
static void *behind_us(const struct wanted *wanted) {
    void *found = real(wanted, RTLD_NEXT);
    if (found || wanted->handle != RTLD_DEFAULT)
        return found;
    found = in_scope_of_caller(wanted);
    if (!found)
        real(wanted, RTLD_NEXT);
    return found;
}

/* Whether the look-up is answered. One in the global scope comes from here, and leaves out objects
 * that only the caller sees. */
static bool wanted_is_answered(const struct wanted *wanted, const void *found) {
    return found ? !wanted->of->is_ours(found) : wanted->handle != RTLD_DEFAULT;
}

static void *without_us(const struct wanted *wanted) {
    void *const found = real(wanted, wanted->handle);
    if (wanted_is_answered(wanted, found))
        return found;
    void *const behind = behind_us(wanted);
    return behind && wanted->of->is_by_caller(found) ? found : behind;
}

/* The answer of the library behind us that has dlsym or dlvsym, too. It calls libc in turn, from
 * its own place: the object next to it is not the one next to us. */
static void *through_next(const struct wanted *wanted, void *own) {
    const bool is_libc =
        wanted->version ? gps_real_dlvsym == libc_dlvsym : gps_real_dlsym == libc_dlsym;
    if (is_libc || wanted->handle == RTLD_NEXT)
        return own;
    void *const found = wanted->version
                            ? gps_real_dlvsym(wanted->handle, wanted->name, wanted->version)
                            : gps_real_dlsym(wanted->handle, wanted->name);
    if (!found || !wanted->of->is_ours(found))
        return found;
    /* That library names a function of its own by a name of ours; or the scope has us. */
    return wanted->of->is_ours(real(wanted, wanted->handle)) ? own : found;
}

static void *wanted_answer(const struct wanted *wanted) {
    const int error = errno;
    void *const own = without_us(wanted);
    void *found = through_next(wanted, own);
    if (found && !(wanted->of->is_behind && wanted->of->is_behind(wanted->caller)))
        found = wanted->of->substitute(wanted->name, found, own);
    errno = error;
    return found;
}

void *gps_resolver_answer(const struct gps_resolver *of, void *handle, const char *name,
                          const char *version, const void *caller) {
    return wanted_answer(&(struct wanted){handle, name, version, caller, of});
}
