/*
 * resolver.h - dlsym and dlvsym for the names that a front end hooks.
 *
 * trampoline.inc calls gps_dl_wanted and goes on in gps_dlsym_hooked or gps_dlvsym_hooked. The
 * front end defines these three, with its own table of names and addresses, and calls the functions
 * here. They are called from any code, at any time: gps_dl_wanted runs before constructors and
 * inside sanitizer runtimes that are not up yet, so neither it nor gps_resolver_wanted uses libc,
 * is instrumented, or reads data that the loader relocates.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define GPS_HOOK_NAME 40 /* has room for the longest name of a hooked function, with its NUL */

#if defined(__clang__)
#define GPS_BARE __attribute__((no_sanitize("address", "undefined", "thread"), no_builtin))
#else
#define GPS_BARE __attribute__((no_sanitize("address", "undefined", "thread")))
#endif

/* The next ones in the linker's order, as a program would reach them without us: libc's, or those
 * of a library behind us. Set by the first gps_dl_wanted. */
extern void *(*gps_real_dlsym)(void *handle, const char *name);
extern void *(*gps_real_dlvsym)(void *handle, const char *name, const char *version);

/* 1 when the look-up is for one of the names, else 0: jump. A look-up with RTLD_NEXT is left to the
 * caller, unless it would find only us, or go past us. All names begin with the same two letters.
 * `caller` is the return address of the program's call. */
int gps_resolver_wanted(const char (*names)[GPS_HOOK_NAME], size_t count, void *handle,
                        const char *name, const void *caller);

/* How a front end's addresses are told apart. */
struct gps_resolver {
    /* Whether an address is one of our own exported functions. */
    bool (*is_ours)(const void *address);
    /* Whether the function at the address finds the real one by its own caller. */
    bool (*is_by_caller)(const void *address);
    /* The address to hand out for one that a real resolver returned for a name. `own` is libc's
     * answer to the same look-up. */
    void *(*substitute)(const char *name, void *address, const void *own);
    /* Whether the caller is behind us and substitutes, too: its look-ups are for the functions that
     * it goes on to, and are answered as without us. NULL: there is no such caller. */
    bool (*is_behind)(const void *caller);
};

/* The real answer, substituted by address. `version`: NULL for dlsym. */
void *gps_resolver_answer(const struct gps_resolver *of, void *handle, const char *name,
                          const char *version, const void *caller);

/* Defined by the front end. */
int gps_dl_wanted(void *handle, const char *name, const void *caller);
void *gps_dlsym_hooked(void *handle, const char *name, void *caller);
void *gps_dlvsym_hooked(void *handle, const char *name, const char *version, void *caller);
