/*
 * rival.h - a library before gpushare's that answers in its place.
 *
 * The loader reads LD_PRELOAD, then /etc/ld.so.preload. What stands first there is asked first: if
 * it defines dlsym, or a function of CUDA's, gpushare may see no call.
 */
#pragma once

#define RIVAL_SYSTEM_LIST "/etc/ld.so.preload" /* a device of `gpushare cdi` brings one */

/* The first library before `library` in these lists that does, and what it defines, as a phrase:
 * "/usr/lib/libvgpu.so stands before libgpushare.so in LD_PRELOAD and defines dlsym"; malloc'ed.
 * NULL: there is none, or `library` is in no list. `preload` is LD_PRELOAD's value, or NULL; `maps`
 * those of the process that has it, where a name without a path is looked for, or NULL. */
char *rival_of(const char *preload, const char *library, const char *maps);
