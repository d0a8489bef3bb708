#include "bypass.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "module.h"
#include "util/forgotten.h"
#include "util/linker.h"
#include "util/peek.h"

/* The words of an entry of glibc's list that are looked for: SCOPES scopes, the number of scopes
 * that there is room for, and their address, which is that of these words until there are more. An
 * entry has more than WORDS words. */
enum { WORDS = 128, SCOPES = 4, HOW_MANY = SCOPES, WHERE = SCOPES + 1 };

static struct { _Atomic unsigned long long loaded; /* objects loaded until the last look */ } state;
GPS_FORGOTTEN(state);

struct look {
    const char *sonames;
    struct gps_text *name;
    bool found, needs;
    unsigned at; /* the first scope's word in each entry */
    uintptr_t global;
};

/* --- where the scopes are --- */

static bool begins_with_program(uintptr_t scope) {
    struct {
        uintptr_t list;
        unsigned count;
    } objects;
    uintptr_t first;
    return gps_peek(scope, &objects, sizeof(objects)) && objects.count &&
           gps_peek(objects.list, &first, sizeof(first)) && first == (uintptr_t)_r_debug.r_map;
}

static bool find_scopes(struct look *look) {
    const struct link_map *us = _r_debug.r_map;
    uintptr_t words[WORDS];
    while (us && us->l_ld != _DYNAMIC)
        us = us->l_next;
    if (!us || !gps_peek((uintptr_t)us, words, sizeof(words)))
        return false;
    for (unsigned i = sizeof(*us) / sizeof(*words); i + WHERE < WORDS; i++)
        if (words[i + HOW_MANY] == SCOPES &&
            words[i + WHERE] == (uintptr_t)us + i * sizeof(*words) &&
            begins_with_program(words[i])) {
            look->at = i;
            look->global = words[i];
            return true;
        }
    return false;
}

/* --- an object --- */

/* An object that was linked with -Bsymbolic looks into itself first. */
static bool is_symbolic(const struct link_map *map) {
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_SYMBOLIC ||
            (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_SYMBOLIC)))
            return true;
    return false;
}

static bool is_deepbound(const struct look *look, const struct link_map *map) {
    uintptr_t scopes[SCOPES];
    const unsigned first = is_symbolic(map);
    return gps_peek((uintptr_t)map + look->at * sizeof(*scopes), scopes, sizeof(scopes)) &&
           scopes[first] && scopes[first] != look->global;
}

static void bypass_compare_soname(void *arg, const char *soname) {
    struct look *look = arg;
    for (const char *one = look->sonames; *one; one += strlen(one) + 1)
        look->needs |= strncmp(soname, one, strlen(one)) == 0;
}

static bool needs(struct look *look, const struct link_map *map) {
    const struct gps_module module = GPS_MODULE_AT(map);
    look->needs = false;
    gps_module_each_needed(&module, bypass_compare_soname, look);
    return look->needs;
}

/* --- all objects, under the linker's lock, in its first callback --- */

static void look_at_all(struct look *look) {
    const struct link_map *map = find_scopes(look) ? _r_debug.r_map->l_next : NULL;
    for (; map && !look->found; map = map->l_next) {
        const char *const slash = strrchr(map->l_name, '/');
        look->found =
            map->l_ld && map->l_ld != _DYNAMIC && needs(look, map) && is_deepbound(look, map);
        if (look->found)
            gps_text_str(look->name, slash ? slash + 1 : map->l_name);
    }
}

static int bypass_visit_object(struct dl_phdr_info *info, size_t size, void *arg) {
    (void)size;
    if (!info->dlpi_adds || atomic_exchange(&state.loaded, info->dlpi_adds) != info->dlpi_adds)
        look_at_all(arg);
    return 1;
}

bool gps_bypass_look(const char *sonames, struct gps_text *name) {
    struct look look = {.sonames = sonames, .name = name};
    gps_linker_each(bypass_visit_object, &look);
    return look.found;
}
