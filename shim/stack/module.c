/* module.c - see module.h. Symbols are found by DT_GNU_HASH, or by DT_HASH if an old linker wrote
 * only that. */
#include "module.h"

#include <stddef.h>
#include <string.h>

#include "find_object.h"

/* For functions that sanitizer runtimes call before instrumented code can run. */
#define BARE                                                                                       \
    __attribute__((no_sanitize("address", "undefined", "thread"),                                  \
                   optimize("no-tree-loop-distribute-patterns")))
#ifdef __clang__
#undef BARE
#define BARE __attribute__((no_sanitize("address", "undefined", "thread"), no_builtin))
#endif

enum { FIRST_PAGE = 4096 };

struct tables {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash;
    const ElfW(Word) * sysv_hash;
    const ElfW(Half) * versions;
};

BARE static bool same(const char *a, const char *b) {
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

/* The linker relocates these entries of most objects in place, but not those of the vdso and of
 * read-only dynamic sections. An address below the bias is still an offset. */
BARE static const void *at(const struct gps_module *module, ElfW(Addr) address) {
    return (const void *)(address < module->base ? address + module->base : address);
}

BARE static bool read_tables(const struct gps_module *module, struct tables *tables) {
    *tables = (struct tables){0};
    for (const ElfW(Dyn) *entry = module->dynamic; entry && entry->d_tag != DT_NULL; entry++) {
        const void *value = at(module, entry->d_un.d_ptr);
        if (entry->d_tag == DT_SYMTAB)
            tables->symbols = value;
        else if (entry->d_tag == DT_STRTAB)
            tables->strings = value;
        else if (entry->d_tag == DT_GNU_HASH)
            tables->gnu_hash = value;
        else if (entry->d_tag == DT_HASH)
            tables->sysv_hash = value;
        else if (entry->d_tag == DT_VERSYM)
            tables->versions = value;
    }
    return tables->symbols && tables->strings;
}

/* Whether the module defines this symbol, under this name and not as a hidden (old) version of it.
 */
BARE static bool matches(const struct tables *tables, uint32_t index, const char *name) {
    const ElfW(Sym) *symbol = &tables->symbols[index];
    const unsigned hidden_version = 0x8000;
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
           ELF64_ST_TYPE(symbol->st_info) != STT_TLS &&
           !(tables->versions && (tables->versions[index] & hidden_version)) &&
           same(tables->strings + symbol->st_name, name);
}

BARE static const ElfW(Sym) * find_gnu(const struct tables *tables, const char *name) {
    uint32_t hash = 5381;
    for (const char *c = name; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    const uint32_t bucket_count = tables->gnu_hash[0], first = tables->gnu_hash[1],
                   bloom_words = tables->gnu_hash[2];
    const ElfW(Addr) *bloom = (const void *)(tables->gnu_hash + 4);
    const uint32_t *buckets = (const void *)(bloom + bloom_words);
    const uint32_t *chain = buckets + bucket_count;
    uint32_t index = bucket_count ? buckets[hash % bucket_count] : 0;
    if (index < first)
        return NULL;
    for (;; index++) {
        uint32_t entry = chain[index - first];
        if ((entry | 1) == (hash | 1) && matches(tables, index, name))
            return &tables->symbols[index];
        if (entry & 1)
            return NULL;
    }
}

BARE static const ElfW(Sym) * find_sysv(const struct tables *tables, const char *name) {
    const ElfW(Word) chain_count = tables->sysv_hash[1]; /* as many as there are symbols */
    for (ElfW(Word) index = 1; index < chain_count; index++)
        if (matches(tables, index, name))
            return &tables->symbols[index];
    return NULL;
}

BARE void *gps_module_symbol(const struct gps_module *module, const char *name) {
    struct tables tables;
    if (!read_tables(module, &tables))
        return NULL;
    const ElfW(Sym) *symbol = tables.gnu_hash    ? find_gnu(&tables, name)
                              : tables.sysv_hash ? find_sysv(&tables, name)
                                                 : NULL;
    return symbol ? (void *)(module->base + symbol->st_value) : NULL;
}

static bool first_of_all(void *arg, const char *name) {
    *(const char **)arg = name;
    return true;
}

static void each_name(const struct gps_module *module, ElfW(Sxword) tag, gps_module_name_fn *fn,
                      void *arg) {
    struct tables tables;
    if (!read_tables(module, &tables))
        return;
    for (const ElfW(Dyn) *entry = module->dynamic; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == tag && fn(arg, tables.strings + entry->d_un.d_val))
            return;
}

const char *gps_module_soname(const struct gps_module *module) {
    const char *soname = NULL;
    each_name(module, DT_SONAME, first_of_all, &soname);
    return soname;
}

void gps_module_each_needed(const struct gps_module *module, gps_module_name_fn *fn, void *arg) {
    each_name(module, DT_NEEDED, fn, arg);
}

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

/* A module and where its segments end. */
struct place {
    struct gps_module module;
    uintptr_t end;
};

static bool find(const void *address, struct place *place) {
    struct dl_find_object found;
    if (_dl_find_object((void *)(uintptr_t)address, &found) != 0)
        return false;
    const struct link_map *map = found.dlfo_link_map;
    place->module = (struct gps_module){map->l_addr, map->l_ld, map->l_name, found.dlfo_map_start};
    place->end = (uintptr_t)found.dlfo_map_end;
    return true;
}

bool gps_module_of(const void *address, struct gps_module *module) {
    struct place place;
    if (!find(address, &place))
        return false;
    *module = place.module;
    return true;
}

/* --- whether it is still the same --- */

/* A build id is compared in place only if it lies in the first page of the module, because later
 * pages may be unmapped. */
static bool in_first_page(uintptr_t where, const void *start) {
    return where - (uintptr_t)start <= FIRST_PAGE - sizeof(uint64_t);
}

static uint64_t eight_bytes(uintptr_t where) {
    uint64_t value;
    memcpy(&value, (const void *)where, sizeof(value));
    return value;
}

static uint64_t hash_of(const struct place *place) {
    const uintptr_t start = (uintptr_t)place->module.start;
    uint64_t hash = 0xcbf29ce484222325u ^ start; /* FNV-1a */
    for (const char *c = place->module.path; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    hash = (hash ^ (place->end - start)) * 0x100000001b3u;
    return (hash ^ ((uintptr_t)place->module.dynamic - start)) * 0x100000001b3u;
}

struct gps_module_mark gps_module_mark_of(const void *address) {
    struct place place;
    const uint8_t *id = NULL;
    if (!find(address, &place))
        return (struct gps_module_mark){0, 0};
    if (gps_module_build_id(&place.module, &id) && in_first_page((uintptr_t)id, place.module.start))
        return (struct gps_module_mark){(uintptr_t)id, eight_bytes((uintptr_t)id)};
    return (struct gps_module_mark){0, hash_of(&place)};
}

static bool is_marked(const struct place *place, struct gps_module_mark mark) {
    return mark.where ? in_first_page(mark.where, place->module.start) &&
                            eight_bytes(mark.where) == mark.value
                      : hash_of(place) == mark.value;
}

/* Runs in every call that a library makes of the runtime, so it copies nothing. */
bool gps_module_has_mark(const void *address, struct gps_module_mark mark) {
    struct dl_find_object found;
    struct place place;
    if (mark.where)
        return _dl_find_object((void *)(uintptr_t)address, &found) == 0 &&
               in_first_page(mark.where, found.dlfo_map_start) &&
               eight_bytes(mark.where) == mark.value;
    return find(address, &place) ? is_marked(&place, mark) : !mark.where && !mark.value;
}

struct each {
    gps_module_fn *fn;
    void *arg;
};

static int visit(struct dl_phdr_info *info, size_t size, void *arg) {
    (void)size;
    const struct each *each = arg;
    struct gps_module module = {info->dlpi_addr, NULL, info->dlpi_name, NULL};
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            module.dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return module.dynamic && each->fn(each->arg, &module);
}

bool gps_module_each(gps_module_fn *fn, void *arg) {
    struct each each = {fn, arg};
    return dl_iterate_phdr(visit, &each) != 0;
}

BARE static bool is_libc(const char *soname) {
    return same(soname, "libc.so.6") || same(soname, "libdl.so.2");
}

/* Whether the module may define the symbol: with only_libc, its name must be libc's. */
BARE static bool may_define(const struct gps_module *module, bool only_libc) {
    struct tables tables;
    if (!only_libc)
        return true;
    for (const ElfW(Dyn) *entry = module->dynamic; entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_SONAME && read_tables(module, &tables))
            return is_libc(tables.strings + entry->d_un.d_val);
    return false;
}

/* Walks the linker's list without the lock that dl_iterate_phdr takes. The objects that the program
 * starts with, libc among them, come first and are never unloaded. */
BARE static void *first_definition(const char *name, bool only_libc) {
    void *found = NULL;
    for (const struct link_map *map = _r_debug.r_map; map && !found; map = map->l_next) {
        const struct gps_module module = {map->l_addr, map->l_ld, map->l_name, NULL};
        if (may_define(&module, only_libc))
            found = gps_module_symbol(&module, name);
    }
    return found;
}

BARE void *gps_libc_symbol(const char *name) {
    return first_definition(name, true);
}

BARE void *gps_process_symbol(const char *name) {
    return first_definition(name, false);
}

/* The main program is first in the linker's list. */
void *gps_module_variable(const struct gps_module *module, const char *name) {
    const struct link_map *map = _r_debug.r_map;
    const struct gps_module program = {map->l_addr, map->l_ld, map->l_name, NULL};
    void *found = gps_module_symbol(module, name);
    void *copy = found ? gps_module_symbol(&program, name) : NULL;
    return copy ? copy : found;
}
