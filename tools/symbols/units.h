/*
 * units.h - which unit of the debug information has the code at an address.
 *
 * A unit is what was compiled at once: a source file, mostly. Compilers may list the addresses of
 * units in .debug_aranges. clang does not, so each unit is asked for its own, once.
 */
#pragma once

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>

struct units {
    Dwarf *debug;
    struct unit_range *ranges; /* ascending */
    size_t count;
};

/* `debug` NULL: there are no units. It must outlive the table. */
void units_read(struct units *units, Dwarf *debug);
void units_free(struct units *units);
/* False: no unit has code there. */
bool units_find(const struct units *units, Dwarf_Addr address, Dwarf_Die *unit);
