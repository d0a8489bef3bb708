/*
 * symbol_module.h - one module as libdw sees it. For symbol.c only.
 */
#pragma once

#include <elfutils/libdwfl.h>

#include "symbol.h"

struct symbol_module {
    Dwfl *dwfl;
    Dwfl_Module *module; /* NULL: there is nothing to look into */
    const char *note;
};

/* `path` is the module's, `search` a list of directories as dwfl_standard_find_debuginfo has it,
 * `directory` the first of them, or NULL. */
void symbol_module_open(struct symbol_module *module, const char *path, const char *build_id,
                        char **search, const char *directory);
void symbol_module_close(struct symbol_module *module);

/* symbol_place.c: fills in the places at an address of the module. The symbol has one empty place.
 */
void symbol_place_find(const struct symbol_module *module, uint64_t address, struct symbol *symbol);
