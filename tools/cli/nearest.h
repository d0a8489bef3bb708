/*
 * nearest.h - of words that are known, the one that a mistyped word may have been meant to be.
 */
#pragma once

#include <stddef.h>

/* A search, begun with the typed word and {.word = typed}. */
struct nearest {
    const char *word, *found; /* NULL: none of the known words is near */
    size_t distance;
};
/* Takes a known word into account, which must outlive the search. */
void nearest_try(struct nearest *nearest, const char *known);
