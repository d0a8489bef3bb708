/* units.c - see units.h. */
#include "units.h"

#include <stdlib.h>

#include "cli/tool.h"

struct unit_range {
    Dwarf_Addr low, high; /* high is behind the last address */
    Dwarf_Off unit;
};

static void add(struct units *units, Dwarf_Die *unit) {
    struct unit_range range = {.unit = dwarf_dieoffset(unit)};
    Dwarf_Addr base;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &range.low, &range.high)) > 0;)
        TOOL_APPEND(units->ranges, units->count, range);
}

static int compare(const void *left, const void *right) {
    const struct unit_range *a = left, *b = right;
    return (a->low > b->low) - (a->low < b->low);
}

void units_read(struct units *units, Dwarf *debug) {
    Dwarf_Die unit;
    *units = (struct units){.debug = debug};
    for (Dwarf_CU *at = NULL;
         debug && dwarf_get_units(debug, at, &at, NULL, NULL, &unit, NULL) == 0;)
        add(units, &unit);
    if (units->count > 0)
        qsort(units->ranges, units->count, sizeof(*units->ranges), compare);
}

void units_free(struct units *units) {
    free(units->ranges);
    *units = (struct units){.count = 0};
}

/* Ranges overlap where the linker has left code out: what was there begins at 0 then. So of those
 * around the address the last one counts. */
bool units_find(const struct units *units, Dwarf_Addr address, Dwarf_Die *unit) {
    size_t low = 0, high = units->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (units->ranges[middle].low <= address)
            low = middle + 1;
        else
            high = middle;
    }
    while (low > 0 && units->ranges[low - 1].high <= address)
        low--;
    return low > 0 && dwarf_offdie(units->debug, units->ranges[low - 1].unit, unit);
}
