/*
 * value.c - parses and formats the values of the configuration.
 *
 * Sizes and durations are a number and a unit from a table. They are read from a cursor, so that a
 * range is two of them. Each overflow is checked where it could happen.
 */
#include "value.h"

#include <string.h>

#include "util/digits.h"

/* A factor of 0 is refused as ambiguous. */
static const struct gps_unit size_units[] = {
    {"", 1},
    {"b", 1},
    {"k", UINT64_C(1) << 10},
    {"kib", UINT64_C(1) << 10},
    {"m", UINT64_C(1) << 20},
    {"mib", UINT64_C(1) << 20},
    {"g", UINT64_C(1) << 30},
    {"gib", UINT64_C(1) << 30},
    {"t", UINT64_C(1) << 40},
    {"tib", UINT64_C(1) << 40},
    {"kb", 0},
    {"mb", 0},
    {"gb", 0},
    {"tb", 0},
    {NULL, 0},
};

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static const char *skip_spaces(const char *text) {
    while (*text == ' ' || *text == '\t')
        text++;
    return text;
}

static const char *value_read_number(const char **cursor, uint64_t *value) {
    const char *at = *cursor;
    uint64_t sum = 0;
    if (!is_digit(*at))
        return *at == '\0' ? "no value" : "not a number";
    for (; is_digit(*at); at++)
        if (__builtin_mul_overflow(sum, 10u, &sum) ||
            __builtin_add_overflow(sum, (uint64_t)(*at - '0'), &sum))
            return "too large";
    *value = sum;
    *cursor = at;
    return NULL;
}

/* Reads the unit at the cursor. NULL: it is not in the table, and the cursor stays. */
static const struct gps_unit *read_unit(const char **cursor, const struct gps_unit *units,
                                        bool any_case) {
    char name[4] = "";
    size_t count = 0;
    for (char c; (c = gps_lower((*cursor)[count])) >= 'a' && c <= 'z'; count++) {
        if (count == sizeof(name) - 1)
            return NULL;
        name[count] = any_case ? c : (*cursor)[count];
    }
    while (units->name && strcmp(units->name, name) != 0)
        units++;
    if (!units->name)
        return NULL;
    *cursor += count;
    return units;
}

static const char *read_size(const char **cursor, uint64_t *bytes) {
    const char *at = skip_spaces(*cursor);
    uint64_t number = 0;
    const char *wrong = value_read_number(&at, &number);
    if (wrong)
        return wrong;
    at = skip_spaces(at);
    const struct gps_unit *unit = read_unit(&at, size_units, true);
    if (!unit)
        return "not a unit of size";
    if (unit->factor == 0)
        return "KB, MB, GB and TB are ambiguous, write KiB, MiB, GiB or TiB";
    if (__builtin_mul_overflow(number, unit->factor, &number))
        return "too large";
    if (number == 0)
        return "must be more than 0";
    *bytes = number;
    *cursor = at;
    return NULL;
}

const char *gps_value_number(const char *text, uint64_t max, uint64_t *value) {
    uint64_t number = 0;
    const char *wrong = value_read_number(&text, &number);
    if (wrong)
        return wrong;
    if (*text != '\0')
        return "not a number";
    if (number > max)
        return "too large";
    *value = number;
    return NULL;
}

const char *gps_value_size(const char *text, uint64_t *bytes) {
    uint64_t size = 0;
    const char *wrong = read_size(&text, &size);
    if (!wrong && *text != '\0')
        wrong = "not a size";
    if (!wrong)
        *bytes = size;
    return wrong;
}

void gps_value_size_text(uint64_t bytes, struct gps_text *text) {
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    unsigned unit = 0;
    while (unit < 4 && bytes != 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    gps_text_add(text, "%lu%s", bytes, units[unit]);
}

/* The kind of values in a range. */
struct gps_scale {
    const char *(*read)(const char **cursor, uint64_t *value);
    void (*format)(uint64_t value, struct gps_text *text);
    uint64_t least;
    const char *none, *wrong;
};

static const char *read_index(const char **cursor, uint64_t *index) {
    *cursor = skip_spaces(*cursor);
    return value_read_number(cursor, index);
}

static void index_text(uint64_t index, struct gps_text *text) {
    gps_text_dec(text, index);
}

const struct gps_scale gps_sizes = {read_size, gps_value_size_text, 1, "matches no size",
                                    "not a size or a range"};
const struct gps_scale gps_indices = {read_index, index_text, 0, "matches no index",
                                      "not a number or a range"};

struct bounds {
    uint64_t min, max;
};

/* One of < <= > >= and a value. */
static const char *read_comparison(const char **cursor, const struct gps_scale *scale,
                                   struct bounds *bounds) {
    bool less = **cursor == '<';
    bool equal = (*cursor)[1] == '=';
    *cursor += equal ? 2 : 1;
    const char *wrong = scale->read(cursor, &bounds->min);
    if (wrong)
        return wrong;
    uint64_t value = bounds->min;
    if (!equal && value == (less ? scale->least : UINT64_MAX))
        return scale->none;
    if (less)
        *bounds = (struct bounds){scale->least, equal ? value : value - 1};
    else
        *bounds = (struct bounds){equal ? value : value + 1, UINT64_MAX};
    return NULL;
}

/* A value, or two with ".." between them. */
static const char *read_span(const char **cursor, const struct gps_scale *scale,
                             struct bounds *bounds) {
    const char *wrong = scale->read(cursor, &bounds->min);
    bounds->max = bounds->min;
    if (wrong)
        return wrong;
    *cursor = skip_spaces(*cursor);
    if (strncmp(*cursor, "..", 2) != 0)
        return NULL;
    *cursor += 2;
    wrong = scale->read(cursor, &bounds->max);
    if (!wrong && bounds->min > bounds->max)
        wrong = "the range ends before it begins";
    return wrong;
}

const char *gps_value_range(const char *text, const struct gps_scale *scale, uint64_t *min,
                            uint64_t *max) {
    struct bounds bounds = {scale->least, UINT64_MAX};
    const char *wrong = NULL;
    if (*text == '*')
        text++;
    else if (*text == '<' || *text == '>')
        wrong = read_comparison(&text, scale, &bounds);
    else
        wrong = read_span(&text, scale, &bounds);
    if (!wrong && *text != '\0')
        wrong = scale->wrong;
    if (wrong)
        return wrong;
    *min = bounds.min;
    *max = bounds.max;
    return NULL;
}

/* A range without an upper bound is written with >=. */
void gps_value_range_text(uint64_t min, uint64_t max, const struct gps_scale *scale,
                          struct gps_text *text) {
    const bool open = max == UINT64_MAX && min != max;
    if (open && min == scale->least) {
        gps_text_str(text, "*");
        return;
    }
    if (scale == &gps_sizes && min == scale->least && min != max) {
        const bool below = (max + 1) % 1024 == 0;
        gps_text_str(text, below ? "<" : "<=");
        scale->format(below ? max + 1 : max, text);
        return;
    }
    gps_text_str(text, open ? ">=" : "");
    scale->format(min, text);
    if (open || min == max)
        return;
    gps_text_str(text, "..");
    scale->format(max, text);
}

const char *gps_value_duration(const char *text, uint64_t *nanos) {
    uint64_t number = 0;
    const char *wrong = value_read_number(&text, &number);
    if (wrong)
        return wrong;
    text = skip_spaces(text);
    if (*text == '\0' && number != 0)
        return "no unit";
    if (*text != '\0') {
        const struct gps_unit *unit = read_unit(&text, gps_time_units, false);
        if (!unit || *text != '\0')
            return "not a unit of time";
        if (__builtin_mul_overflow(number, unit->factor, &number) || number > GPS_DURATION_MAX)
            return "longer than 500h";
    }
    *nanos = number;
    return NULL;
}

void gps_value_duration_text(uint64_t nanos, struct gps_text *text) {
    const struct gps_unit *unit = gps_time_units;
    if (nanos == 0) {
        gps_text_str(text, "0s");
        return;
    }
    while (nanos % unit->factor != 0)
        unit++; /* ends at ns */
    gps_text_add(text, "%lu%s", nanos / unit->factor, unit->name);
}

/* The length of the word of a list that begins here. *next is the word after it, or NULL. */
static size_t word_length(const char *word, const char **next) {
    size_t length = strcspn(word, ",");
    *next = word[length] == '\0' ? NULL : skip_spaces(word + length + 1);
    return length;
}

const char *gps_value_choice(const char *text, const char *list, unsigned *place) {
    size_t count = strlen(text);
    unsigned at = 0;
    for (const char *next; list; list = next, at++) {
        if (word_length(list, &next) == count && memcmp(list, text, count) == 0) {
            *place = at;
            return NULL;
        }
    }
    return "not allowed";
}

void gps_value_choice_text(unsigned place, const char *list, struct gps_text *text) {
    for (const char *next; list; list = next) {
        size_t length = word_length(list, &next);
        if (place-- == 0) {
            gps_text_bytes(text, list, length);
            return;
        }
    }
}

bool gps_parse_duration(const char *text, uint64_t *nanos) {
    return !gps_value_duration(text, nanos);
}

/* --- device UUIDs, as nvidia-smi and CUDA_VISIBLE_DEVICES spell them --- */

static const uint8_t group_bytes[] = {4, 2, 2, 2, 6};
#define GROUPS sizeof(group_bytes)

bool gps_parse_uuid(const char *text, uint8_t uuid[GPS_UUID_BYTES]) {
    char small[GPS_UUID_TEXT];
    size_t length = strlen(text);
    if (length >= sizeof(small) || (strncmp(text, "GPU-", 4) != 0 && strncmp(text, "MIG-", 4) != 0))
        return false;
    for (size_t i = 0; i <= length; i++)
        small[i] = gps_lower(text[i]);
    const char *at = small + 3;
    uint8_t bytes[GPS_UUID_BYTES];
    uint8_t *next = bytes;
    for (size_t i = 0; i < GROUPS; next += group_bytes[i++])
        if (*at++ != '-' || !gps_hex_parse(&at, next, group_bytes[i]))
            return false;
    if (*at != '\0')
        return false;
    memcpy(uuid, bytes, sizeof(bytes));
    return true;
}

void gps_format_uuid(const uint8_t uuid[GPS_UUID_BYTES], char text[GPS_UUID_TEXT]) {
    memcpy(text, "GPU", 3);
    text += 3;
    for (size_t i = 0; i < GROUPS; i++) {
        *text++ = '-';
        gps_hex_format(uuid, group_bytes[i], text);
        uuid += group_bytes[i];
        text += 2 * group_bytes[i];
    }
}
