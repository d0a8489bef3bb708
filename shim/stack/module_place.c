#include "module_place.h"

#include <stddef.h>
#include <string.h>

enum { FIRST_PAGE = 4096 };

static unsigned find_build_id(const uint8_t *notes, size_t size, const uint8_t **id) {
    while (size >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const void *)notes;
        const size_t name = (note->n_namesz + 3u) & ~3u, data = (note->n_descsz + 3u) & ~3u;
        const size_t whole = sizeof(*note) + name + data;
        if (whole > size)
            return 0;
        *id = notes + sizeof(*note) + name;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4)
            return note->n_descsz;
        notes += whole;
        size -= whole;
    }
    return 0;
}

/* The first page of an object holds its ELF header, and the program headers behind it. */
unsigned gps_module_build_id(const struct gps_module *module, const uint8_t **id) {
    const ElfW(Ehdr) *header = module->start;
    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_phoff + header->e_phnum * sizeof(ElfW(Phdr)) > FIRST_PAGE)
        return 0;
    const ElfW(Phdr) *segments = (const void *)((const char *)module->start + header->e_phoff);
    unsigned length = 0;
    for (unsigned i = 0; i < header->e_phnum && !length; i++)
        if (segments[i].p_type == PT_NOTE)
            length = find_build_id((const void *)(module->base + segments[i].p_vaddr),
                                   segments[i].p_memsz, id);
    return length;
}

/* --- which module holds an address --- */

bool gps_module_of(const void *address, struct gps_module *module) {
    struct dl_find_object found;
    if (_dl_find_object((void *)(uintptr_t)address, &found) != 0)
        return false;
    const struct link_map *map = found.dlfo_link_map;
    *module = (struct gps_module){map->l_addr, map->l_ld, map->l_name, found.dlfo_map_start,
                                  found.dlfo_map_end};
    return true;
}

bool gps_module_is_before_us(const void *address) {
    struct gps_module module;
    if (!gps_module_of(address, &module))
        return false;
    const struct link_map *map = _r_debug.r_map;
    while (map && map->l_ld != _DYNAMIC && map->l_ld != module.dynamic)
        map = map->l_next;
    return map && map->l_ld != _DYNAMIC;
}

/* --- whether it is still the same --- */

/* A build id is compared in place only in the module's first page: later ones may be unmapped. */
static bool in_first_page(uintptr_t where, const void *start) {
    return where - (uintptr_t)start <= FIRST_PAGE - sizeof(uint64_t);
}

static uint64_t eight_bytes(uintptr_t where) {
    uint64_t value;
    memcpy(&value, (const void *)where, sizeof(value));
    return value;
}

static uint64_t module_place_hash(const struct gps_module *module) {
    const uintptr_t start = (uintptr_t)module->start;
    uint64_t hash = 0xcbf29ce484222325u ^ start; /* FNV-1a */
    for (const char *c = module->path; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    hash = (hash ^ ((uintptr_t)module->end - start)) * 0x100000001b3u;
    return (hash ^ ((uintptr_t)module->dynamic - start)) * 0x100000001b3u;
}

struct gps_module_mark gps_module_mark_of(const void *address) {
    struct gps_module module;
    const uint8_t *id = NULL;
    if (!gps_module_of(address, &module))
        return (struct gps_module_mark){0, 0};
    if (gps_module_build_id(&module, &id) && in_first_page((uintptr_t)id, module.start))
        return (struct gps_module_mark){(uintptr_t)id, eight_bytes((uintptr_t)id)};
    return (struct gps_module_mark){0, module_place_hash(&module)};
}

/* Runs in every call that a library makes of the runtime, so it copies nothing. */
bool gps_module_has_mark(const void *address, struct gps_module_mark mark) {
    struct dl_find_object found;
    struct gps_module module;
    if (mark.where)
        return _dl_find_object((void *)(uintptr_t)address, &found) == 0 &&
               in_first_page(mark.where, found.dlfo_map_start) &&
               eight_bytes(mark.where) == mark.value;
    return (gps_module_of(address, &module) ? module_place_hash(&module) : 0) == mark.value;
}
