/* harmless.c - see harmless.h. */
#include "harmless.h"

#include <stddef.h>

#include "doors/resolver.h"

#define NAME 56 /* the longest of them, with its NUL, fits in */

/* No pointers: they would be relocated. */
static const char harmless_names[][NAME] = {
#define HARMLESS(name) #name,
#include "harmless.def"
};
static const char old_names[][NAME] = {
#define OLD(name) #name,
#include "harmless.def"
};

/* Without the _ptds or _ptsz at its end. */
GPS_BARE static size_t length_of(const char *name) {
    size_t length = 0;
    while (name[length])
        length++;
    const char *const end = name + length;
    return length > 5 && end[-5] == '_' && end[-4] == 'p' && end[-3] == 't' ? length - 5 : length;
}

GPS_BARE static int compare(const char *row, const char *name, size_t length) {
    size_t at = 0;
    while (at < length && row[at] == name[at])
        at++;
    return at < length ? row[at] - name[at] : row[at];
}

GPS_BARE static bool has(const char (*names)[NAME], size_t count, const char *name, size_t length) {
    size_t from = 0, to = count;
    while (from < to) {
        const size_t middle = (from + to) / 2;
        const int order = compare(names[middle], name, length);
        if (!order)
            return true;
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return false;
}

GPS_BARE bool gps_harmless_is(const char *name, bool old) {
    const size_t length = length_of(name);
    return has(harmless_names, sizeof(harmless_names) / NAME, name, length) ||
           (old && has(old_names, sizeof(old_names) / NAME, name, length));
}
