/*
 * resolver.h - the C side of trampoline.S: dlsym and dlvsym for the names we hook.
 *
 * Called from anywhere, at any time, by anything: gps_dl_wanted runs before constructors and inside
 * sanitizer runtimes that are not up yet, so it uses no libc and is not instrumented.
 */
#pragma once

/* libc's own; set by the first gps_dl_wanted. */
extern void *(*gps_real_dlsym)(void *handle, const char *name);
extern void *(*gps_real_dlvsym)(void *handle, const char *name, const char *version);

/* 1 when the look-up is for a name of the table's, else 0: jump. What comes next (RTLD_NEXT) is the
 * caller's business, unless it would find nothing but us. `caller` is the return address of the
 * program's call. */
int gps_dl_wanted(void *handle, const char *name, const void *caller);

/* The real answer, substituted by address. */
void *gps_dlsym_hooked(void *handle, const char *name, void *caller);
void *gps_dlvsym_hooked(void *handle, const char *name, const char *version, void *caller);
