/*
 * symbol_place.c - from an address in a module to functions, files and lines.
 *
 * The line table says where the address is, the innermost inlined call where that was called from,
 * and so on outwards. Without debug information there is the symbol table, and without that
 * nothing.
 */
#include <dwarf.h>
#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tool.h"
#include "symbol_module.h"

#define DEMANGLE (DMGL_AUTO | DMGL_ANSI)

static void set_function(struct symbol_place *place, const char *name) {
    if (!name)
        return;
    char *function = cplus_demangle(name, DEMANGLE | DMGL_PARAMS);
    char *bare = cplus_demangle(name, DEMANGLE);
    place->plain = tool_copy(name);
    place->function = tool_copy(function ? function : name);
    place->bare = tool_copy(bare ? bare : name);
    free(function);
    free(bare);
}

static const char *linkage_name(Dwarf_Die *die) {
    Dwarf_Attribute attribute;
    if (!dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) &&
        !dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
        return dwarf_diename(die);
    return dwarf_formstring(&attribute);
}

static bool is_function(Dwarf_Die *die) {
    int tag = dwarf_tag(die);
    return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram ||
           tag == DW_TAG_entry_point;
}

static struct symbol_place *add_place(struct symbol *symbol) {
    symbol->places = tool_resize(symbol->places, symbol->count + 1, sizeof(*symbol->places));
    symbol->places[symbol->count] = (struct symbol_place){.line = 0};
    return &symbol->places[symbol->count++];
}

static unsigned number_of(Dwarf_Die *die, unsigned attribute_name) {
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    if (dwarf_formudata(dwarf_attr(die, attribute_name, &attribute), &value) != 0)
        return 0;
    return (unsigned)value;
}

/* Where the inlined call `die` was made. */
static void set_call_site(struct symbol_place *place, Dwarf_Die *unit, Dwarf_Die *die,
                          const char *directory) {
    Dwarf_Files *files;
    unsigned file = number_of(die, DW_AT_call_file);
    if (dwarf_getsrcfiles(unit, &files, NULL) == 0)
        place->file = tool_copy(dwarf_filesrc(files, file, NULL, NULL));
    place->line = number_of(die, DW_AT_call_line);
    place->directory = tool_copy(directory);
}

/* The scopes from the innermost to the unit: the functions among them are the places. */
static void add_scopes(struct symbol *symbol, Dwarf_Die *unit, Dwarf_Die *scopes, int count) {
    const char *directory = symbol->places[0].directory;
    bool inlined = false;
    Dwarf_Die *call = NULL;
    for (int i = 0; i < count; i++) {
        if (!is_function(&scopes[i]))
            continue;
        struct symbol_place *place = inlined ? add_place(symbol) : &symbol->places[0];
        if (inlined)
            set_call_site(place, unit, call, directory);
        directory = symbol->places[0].directory;
        set_function(place, linkage_name(&scopes[i]));
        inlined = dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine;
        call = &scopes[i];
        if (!inlined)
            return;
    }
}

/* dwarf_getscopes goes from an inlined call on to its definition. So only its innermost scope is
 * used: the scopes around that one are the calls. */
static void find_functions(const struct symbol_module *module, uint64_t address,
                           struct symbol *symbol) {
    Dwarf_Addr bias;
    Dwarf_Die *unit = dwfl_module_addrdie(module->module, address, &bias);
    Dwarf_Die *scopes = NULL, *chain = NULL;
    int count = unit ? dwarf_getscopes(unit, address - bias, &scopes) : 0;
    if (count > 0) {
        Dwarf_Die innermost = scopes[0];
        count = dwarf_getscopes_die(&innermost, &chain);
        add_scopes(symbol, unit, chain, count);
    }
    free(scopes);
    free(chain);
}

static void find_line(const struct symbol_module *module, uint64_t address,
                      struct symbol_place *place) {
    Dwfl_Line *line = dwfl_module_getsrc(module->module, address);
    int number = 0;
    const char *file = line ? dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
    if (!file)
        return;
    place->file = tool_copy(file);
    place->directory = tool_copy(dwfl_line_comp_dir(line));
    place->line = number > 0 ? (unsigned)number : 0;
}

/* Debug information has absolute names as well: they are shown as the compiler was given them. */
static void shorten(struct symbol_place *place) {
    size_t length = place->directory ? strlen(place->directory) : 0;
    if (!place->file || length == 0 || strncmp(place->file, place->directory, length) != 0 ||
        place->file[length] != '/')
        return;
    memmove(place->file, place->file + length + 1, strlen(place->file + length));
}

void symbol_place_find(const struct symbol_module *module, uint64_t address,
                       struct symbol *symbol) {
    find_line(module, address, &symbol->places[0]);
    find_functions(module, address, symbol);
    if (!symbol->places[0].function)
        set_function(&symbol->places[0], dwfl_module_addrname(module->module, address));
    for (size_t i = 0; i < symbol->count; i++)
        shorten(&symbol->places[i]);
}
