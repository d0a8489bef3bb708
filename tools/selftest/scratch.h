/*
 * scratch.h - a namespace and a directory for files that exist for one self-test.
 *
 * They are removed by a process of their own, which waits until this one has called scratch_end or
 * has ended in any other way. So nothing is left where this process is killed.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "directory/store.h"

struct scratch {
    char name_space[64];
    char files[PATH_MAX];                /* the directory for files */
    char published[GPS_STORE_PATH + 65]; /* the namespace's */
    int alive;                           /* closed by our end */
    int remover;                         /* its pid */
};

/* Makes both, the namespace in the user's directory, and sets GPUSHARE_NAMESPACE. False: stderr
 * says why not. */
bool scratch_begin(struct scratch *scratch);
/* Ends processes of this tool that still serve the namespace, and waits until all is removed. */
void scratch_end(struct scratch *scratch);
