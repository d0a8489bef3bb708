/* module.c - see module.h. Symbols are found by DT_GNU_HASH, or by an old linker's DT_HASH. */
#include "module.h"

#include <stddef.h>

#include "util/linker.h"

/* For functions that sanitizer runtimes call before instrumented code can run. */
#define BARE                                                                                       \
    __attribute__((no_sanitize("address", "undefined", "thread"),                                  \
                   optimize("no-tree-loop-distribute-patterns")))
#ifdef __clang__
#undef BARE
#define BARE __attribute__((no_sanitize("address", "undefined", "thread"), no_builtin))
#endif

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

/* Whether the module defines this symbol, under this name and not as a hidden (old) version. */
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

BARE const char *gps_module_soname(const struct gps_module *module) {
    struct tables tables;
    for (const ElfW(Dyn) *entry = module->dynamic; entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_SONAME && read_tables(module, &tables))
            return tables.strings + entry->d_un.d_val;
    return NULL;
}

void gps_module_each_needed(const struct gps_module *module, gps_module_name_fn *fn, void *arg) {
    struct tables tables;
    if (!read_tables(module, &tables))
        return;
    for (const ElfW(Dyn) *entry = module->dynamic; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_NEEDED)
            fn(arg, tables.strings + entry->d_un.d_val);
}

struct each {
    gps_module_fn *fn;
    void *arg;
};

static int module_visit(struct dl_phdr_info *info, size_t size, void *arg) {
    (void)size;
    const struct each *each = arg;
    struct gps_module module = {info->dlpi_addr, NULL, info->dlpi_name, NULL, NULL};
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            module.dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return module.dynamic && each->fn(each->arg, &module);
}

bool gps_module_each(gps_module_fn *fn, void *arg) {
    struct each each = {fn, arg};
    return gps_linker_each(module_visit, &each) != 0;
}

/* Whether the module may define the symbol: with only_libc, its name must be libc's. */
BARE static bool may_define(const struct gps_module *module, bool only_libc) {
    const char *soname = only_libc ? gps_module_soname(module) : NULL;
    return !only_libc || (soname && (same(soname, "libc.so.6") || same(soname, "libdl.so.2")));
}

/* Walks the linker's list without the lock that dl_iterate_phdr takes. The objects that the program
 * starts with, libc among them, come first and are never unloaded. Up to the object with this
 * dynamic section only libc may define the symbol. */
BARE static void *first_definition(const char *name, const ElfW(Dyn) * only_libc) {
    void *found = NULL;
    for (const struct link_map *map = _r_debug.r_map; map && !found; map = map->l_next) {
        const struct gps_module module = GPS_MODULE_AT(map);
        if (may_define(&module, only_libc != NULL))
            found = gps_module_symbol(&module, name);
        if (map->l_ld == only_libc)
            only_libc = NULL;
    }
    return found;
}

BARE void *gps_libc_symbol(const char *name) {
    static const ElfW(Dyn) no_object;
    return first_definition(name, &no_object);
}

BARE void *gps_next_symbol(const char *name) {
    return first_definition(name, _DYNAMIC);
}

BARE void *gps_process_symbol(const char *name) {
    return first_definition(name, NULL);
}

/* The main program is first in the linker's list. */
void *gps_module_variable(const struct gps_module *module, const char *name) {
    const struct link_map *map = _r_debug.r_map;
    const struct gps_module program = GPS_MODULE_AT(map);
    void *found = gps_module_symbol(module, name);
    void *copy = found ? gps_module_symbol(&program, name) : NULL;
    return copy ? copy : found;
}
