/* python_line.c - see python_layout.h. Numbers wrap instead of overflowing. */
#include "python_layout.h"

#include <stdbool.h>

enum { UNIT = 2 /* bytes of an instruction */, NO_LINE = 0x80 };

static uint32_t signed_byte(uint8_t byte) {
    const int32_t value = (int8_t)byte;
    return (uint32_t)value;
}

/* Pairs: bytes of instructions, then by how much the line grows behind them. */
static uint32_t line_of_lnotab(const uint8_t *table, size_t size, uint32_t line, uint32_t offset) {
    uint32_t at = 0;
    for (size_t i = 0; i + 1 < size; i += 2) {
        at += table[i];
        if (at > offset)
            break;
        line += signed_byte(table[i + 1]);
    }
    return line;
}

/* Pairs: bytes of instructions, and by how much their line is greater than that before. */
static uint32_t line_of_linetable(const uint8_t *table, size_t size, uint32_t line,
                                  uint32_t offset) {
    uint32_t end = 0;
    for (size_t i = 0; i + 1 < size; i += 2) {
        const bool none = table[i + 1] == NO_LINE;
        end += table[i];
        line += none ? 0 : signed_byte(table[i + 1]);
        if (offset < end)
            return none ? 0 : line;
    }
    return 0;
}

/* Six bits a byte, the lowest first; the lowest bit of all is the sign. */
static uint32_t signed_number(const uint8_t *table, size_t size, size_t at) {
    uint32_t value = 0;
    for (unsigned shift = 0; at < size && shift < 32; at++, shift += 6) {
        value |= (uint32_t)(table[at] & 0x3f) << shift;
        if (!(table[at] & 0x40))
            break;
    }
    return value & 1 ? -(value >> 1) : value >> 1;
}

/* By how much the line of an entry is greater than that before. */
static uint32_t growth_of(const uint8_t *table, size_t size, size_t at, bool *none) {
    enum { ONE_LINE = 10, NO_COLUMNS = 13, LONG = 14, NONE = 15 };
    const unsigned kind = table[at] >> 3 & 15;
    *none = kind == NONE;
    if (kind == NO_COLUMNS || kind == LONG)
        return signed_number(table, size, at + 1);
    return kind >= ONE_LINE && kind < NO_COLUMNS ? kind - ONE_LINE : 0;
}

/* Only an entry's first byte has its highest bit set; the lowest three count its instructions. */
static uint32_t line_of_locations(const uint8_t *table, size_t size, uint32_t line,
                                  uint32_t offset) {
    uint32_t end = 0;
    bool none;
    for (size_t i = 0; i < size; i++) {
        if (!(table[i] & 0x80))
            continue;
        line += growth_of(table, size, i, &none);
        end += ((table[i] & 7u) + 1) * UNIT;
        if (offset < end)
            return none ? 0 : line;
    }
    return 0;
}

uint32_t gps_python_line(enum gps_python_table format, const uint8_t *table, size_t size,
                         uint32_t first, uint32_t offset) {
    return format == GPS_PYTHON_LNOTAB      ? line_of_lnotab(table, size, first, offset)
           : format == GPS_PYTHON_LINETABLE ? line_of_linetable(table, size, first, offset)
                                            : line_of_locations(table, size, first, offset);
}
