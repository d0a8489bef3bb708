/* nearest.h - of words that are known, the one that a mistyped word may have been meant to be. */
#pragma once

#include <stddef.h>

/* A search, begun with the typed word and {.word = typed}. */
struct gps_nearest {
    const char *word, *found; /* NULL: none of the known words is near */
    size_t distance;
};
/* Takes a known word into account, which must outlive the search. It allocates nothing. */
void gps_nearest_try(struct gps_nearest *nearest, const char *known);
