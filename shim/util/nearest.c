#include "nearest.h"

#include <stdbool.h>
#include <string.h>
#include <sys/param.h>

#include "text.h"

#define LONGEST 64

/* Levenshtein's distance, but for the case of letters. Neither word is longer than LONGEST. */
static size_t word_distance(const char *a, const char *b) {
    size_t row[LONGEST + 1];
    const size_t length = strlen(b);
    for (size_t i = 0; i <= length; i++)
        row[i] = i;
    for (size_t at = 1; *a; a++, at++) {
        size_t corner = row[0];
        row[0] = at;
        for (size_t i = 1; i <= length; i++) {
            const size_t changed = corner + (gps_lower(*a) != gps_lower(b[i - 1]));
            corner = row[i];
            row[i] = MIN(changed, MIN(row[i], row[i - 1]) + 1);
        }
    }
    return row[length];
}

/* "ever" of "forever". */
static bool is_most_of(const char *part, const char *whole) {
    const size_t length = strlen(part);
    return strstr(whole, part) && 2 * length > strlen(whole);
}

/* A known word is near unless more than a third of the typed one is wrong, but for a letter; or if
 * the typed one is most of it. */
void gps_nearest_try(struct gps_nearest *nearest, const char *known) {
    const size_t length = strlen(nearest->word);
    if (length > LONGEST || strlen(known) > LONGEST)
        return;
    const size_t away = word_distance(nearest->word, known);
    const bool near = away <= (length < 4 ? 1 : 1 + length / 3) || is_most_of(nearest->word, known);
    if (near && (!nearest->found || away < nearest->distance)) {
        nearest->found = known;
        nearest->distance = away;
    }
}
