#include "module.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

/* The libraries behind this one, plus one; 0: not counted yet. */
static _Atomic unsigned counted;

struct needed {
    const char *name;
    bool found;
};

static void needed_compare(void *arg, const char *soname) {
    struct needed *needed = arg;
    needed->found |= strcmp(soname, needed->name) == 0;
}

static bool is_libc(const struct gps_module *module) {
    const char *const soname = gps_module_soname(module);
    return soname && strcmp(soname, "libc.so.6") == 0;
}

/* libc ends the list of a program that is linked with nothing. */
static bool module_is_needed(const struct gps_module *module) {
    const struct gps_module program = GPS_MODULE_AT(_r_debug.r_map);
    const char *const soname = gps_module_soname(module), *const slash = strrchr(module->path, '/');
    struct needed needed = {soname ? soname : slash ? slash + 1 : module->path, false};
    gps_module_each_needed(&program, needed_compare, &needed);
    return needed.found || is_libc(module);
}

static const struct link_map *self(void) {
    const struct link_map *map = _r_debug.r_map;
    while (map && map->l_ld != _DYNAMIC)
        map = map->l_next;
    return map;
}

/* Whether this library is preloaded, not linked or loaded later: only then others lie behind it. */
static bool is_preloaded(const struct link_map *us) {
    const struct gps_module own = GPS_MODULE_AT(us);
    for (const struct link_map *map = _r_debug.r_map; map != us; map = map->l_next) {
        const struct gps_module module = GPS_MODULE_AT(map);
        if (is_libc(&module))
            return false;
    }
    return !module_is_needed(&own);
}

/* Objects loaded at the start keep their places in the list, so two threads count the same. */
static unsigned count_behind(const struct link_map *us) {
    unsigned count = counted;
    if (count)
        return count - 1;
    for (const struct link_map *map = is_preloaded(us) ? us->l_next : NULL; map;
         map = map->l_next, count++) {
        const struct gps_module module = GPS_MODULE_AT(map);
        if (module_is_needed(&module))
            break;
    }
    counted = count + 1;
    return count;
}

bool gps_preloaded_each(enum gps_preloaded where, gps_module_fn *fn, void *arg) {
    const struct link_map *const us = self();
    unsigned left = us && where == GPS_PRELOADED_BEHIND ? count_behind(us) : 0;
    const struct link_map *map = left ? us->l_next : _r_debug.r_map->l_next;
    if (us && where == GPS_PRELOADED_BEFORE)
        for (const struct link_map *each = map; each && each != us; each = each->l_next)
            left++;
    for (; left; left--, map = map->l_next) {
        const struct gps_module module = GPS_MODULE_AT(map);
        if (fn(arg, &module))
            return true;
    }
    return false;
}

struct search {
    const char *name;
    const struct gps_module *after;
    void *found;
};

static bool has_versions(const struct gps_module *module) {
    for (const ElfW(Dyn) *entry = module->dynamic; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_VERDEF)
            return true;
    return false;
}

static bool try_next(void *arg, const struct gps_module *module) {
    struct search *search = arg;
    if (search->after) {
        if (search->after->dynamic == module->dynamic)
            search->after = NULL;
        return false;
    }
    search->found = has_versions(module) ? NULL : gps_module_symbol(module, search->name);
    return search->found != NULL;
}

static bool preloaded_is_same(void *arg, const struct gps_module *module) {
    return module->dynamic == ((const struct gps_module *)arg)->dynamic;
}

void *gps_preloaded_symbol(const char *name, const struct gps_module *after) {
    struct gps_module caller = after ? *after : (struct gps_module){0};
    const bool among =
        after && gps_preloaded_each(GPS_PRELOADED_BEHIND, preloaded_is_same, &caller);
    struct search search = {name, among ? after : NULL, NULL};
    gps_preloaded_each(GPS_PRELOADED_BEHIND, try_next, &search);
    return search.found;
}
