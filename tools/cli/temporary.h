/*
 * temporary.h - a directory for the files of one run, of mode 0700.
 */
#pragma once

/* Makes a directory in TMPDIR, or in /tmp, and returns its absolute path, which is malloc'ed. NULL:
 * stderr says why, and names TMPDIR as the remedy, and then `remedy`, which may be "". */
char *temporary_make(const char *remedy);
