/*
 * temporary.h - a directory for the files of one run, of mode 0700.
 */
#pragma once

/* Makes one in TMPDIR, or /tmp: its absolute path, malloc'ed. NULL: said on stderr, with TMPDIR as
 * the remedy and `remedy`, which may be "", behind that. */
char *temporary_make(const char *remedy);
