/*
 * attachment.h - the one vendor's library that this process uses, and its functions.
 *
 * Never loads it: it attaches to the copy that the program loaded and holds a reference from then
 * on, so that the addresses that we keep stay mapped. There is no lock, because a child that is
 * forked during the look-up would wait for it, and so would a signal handler. Threads that look up
 * together, and the child, choose one copy and fill in the same addresses. Any thread, any time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "doors/resolver.h"
#include "stack/module.h"

struct gps_attachment {
    _Atomic uintptr_t chosen; /* an address in the library; 0: none yet */
    _Atomic bool attached;
};

/* Whether a library of this SONAME is the vendor's. */
typedef bool gps_attachment_is_fn(const char *soname);
/* Looks up the functions of the library. Several threads may call it at once. */
typedef void gps_attachment_fill_fn(const struct gps_module *library);

/* Finds the library among the program's loaded objects. True when attached, now or before. */
bool gps_attachment_find(struct gps_attachment *attachment, gps_attachment_is_fn *is,
                         gps_attachment_fill_fn *fill);
/* The same when the address lies in such a library. */
bool gps_attachment_find_by(struct gps_attachment *attachment, gps_attachment_is_fn *is,
                            gps_attachment_fill_fn *fill, const void *address);

/* Whether an address lies in the library. */
bool gps_attachment_has(const struct gps_attachment *attachment, const void *address);
/* The address of a symbol of it. NULL: it has none of this name. */
void *gps_attachment_symbol(const struct gps_attachment *attachment, const char *name);

/* For `fill`: the slots, of `size` bytes in all, get the addresses of the functions of these names;
 * NULL: the library does not have it. */
void gps_attachment_look_up(const struct gps_module *library, const char (*names)[GPS_HOOK_NAME],
                            void **slots, size_t size);
