#include "own_memory.h"

#include <stdlib.h>
#include <string.h>

#include "carrier.h"
#include "copies.h"
#include "driver/driver_ops.h"
#include "merge/eviction.h"
#include "process/control_group.h"
#include "util/forgotten.h"

enum { ROUNDS = 3, SHARE_OF_LEFT = 4 };

/* At most GPS_DIGEST_MOST of a block. */
struct part {
    uint64_t address, size, context;
    struct gps_hash hash;
    struct gps_copy *copy; /* NULL: there is no copy of these bytes */
    bool is_source;        /* the copy is to be made from it */
};

static struct {
    struct part *parts; /* by address */
    size_t count;
    bool gone; /* some of them are evicted */
} state;
GPS_FORGOTTEN(state);

/* --- the parts --- */

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Lists the parts, and returns how many there are; `parts` may be NULL. */
static size_t list_parts(struct part *parts) {
    struct gps_eviction_own own = {.address = 0};
    size_t count = 0;
    while (gps_eviction_next_own(&own))
        for (uint64_t at = 0; at < own.size; at += GPS_DIGEST_MOST, count++)
            if (parts)
                parts[count] = (struct part){.address = own.address + at,
                                             .size = least(own.size - at, GPS_DIGEST_MOST),
                                             .context = own.context};
    return count;
}

static void drop_parts(void) {
    for (size_t i = 0; i < state.count; i++)
        if (state.parts[i].copy)
            gps_copies_put(state.parts[i].copy);
    free(state.parts);
    state.parts = NULL;
    state.count = 0;
}

/* Lists the parts anew; their hashes find the copies of the last time. */
static bool begin_parts(void) {
    const size_t count = list_parts(NULL);
    struct part *parts = calloc(count + 1, sizeof(*parts));
    drop_parts();
    if (!parts)
        return false;
    state.parts = parts;
    state.count = list_parts(parts);
    return true;
}

/* --- hashing --- */

/* Hashes a part, the first of a context after its work, which unhooked calls may have given. */
static int hash_one(struct part *part, bool first) {
    struct gps_digest digest = {0};
    int code = gps_ops->enter(part->context);
    if (code != GPS_OK)
        return code;
    if (first) {
        gps_ops->load_kernels();
        code = gps_ops->synchronize();
    }
    if (code == GPS_OK)
        code = gps_device_digest(part->address, part->size, &digest);
    part->hash = digest.hash;
    gps_ops->leave();
    return code;
}

static int parts_hash(void) {
    int code = GPS_OK;
    for (size_t i = 0; i < state.count && code == GPS_OK; i++)
        code =
            hash_one(&state.parts[i], !i || state.parts[i].context != state.parts[i - 1].context);
    return code;
}

/* --- copying --- */

/* Drops the copies of parts that changed meanwhile; other parts may have the same copy. */
static void leave_torn(void) {
    for (size_t i = 0; i < state.count; i++) {
        struct part *part = &state.parts[i];
        if (part->copy && memcmp(&part->copy->hash, &part->hash, sizeof(part->hash)) != 0)
            part->copy->torn = true;
    }
    for (size_t i = 0; i < state.count; i++) {
        struct part *part = &state.parts[i];
        if (part->copy && part->copy->torn) {
            gps_copies_put(part->copy);
            part->copy = NULL;
        }
    }
}

/* False: there is no memory for the copies. */
static bool find_copies(void) {
    for (size_t i = 0; i < state.count; i++) {
        struct part *part = &state.parts[i];
        part->is_source = false;
        if (part->copy)
            continue;
        part->copy = gps_copies_get(&part->hash, part->size);
        if (!part->copy)
            return false;
        part->is_source = part->copy->users == 1 && !part->copy->bytes;
    }
    return gps_copies_make_room();
}

/* Carries the parts that are to be copied out, or all parts in. */
static int parts_carry(enum gps_way way, uint64_t *bytes) {
    struct gps_load *loads = calloc(state.count + 1, sizeof(*loads));
    size_t count = 0;
    int code = loads ? GPS_OK : GPS_OUT_OF_MEMORY;
    for (size_t i = 0; loads && i < state.count; i++) {
        const struct part *part = &state.parts[i];
        if (way == GPS_WAY_OUT && !part->is_source)
            continue;
        loads[count++] = (struct gps_load){
            .bytes = part->copy->bytes, .address = part->address, .size = part->size};
        *bytes += part->size;
    }
    if (count)
        code = gps_ops->enter(state.parts[0].context);
    if (count && code == GPS_OK) {
        code = gps_carry(loads, count, way);
        gps_ops->leave();
    }
    free(loads);
    return code;
}

static bool all_are_copied(void) {
    bool all = true;
    for (size_t i = 0; i < state.count && all; i++)
        all = state.parts[i].copy != NULL;
    return all;
}

static bool own_memory_fail(struct gps_text *why, const char *what, int code) {
    gps_text_str(why, what);
    if (code != GPS_OK) {
        gps_text_str(why, ": error ");
        gps_text_dec(why, (uint64_t)code);
    }
    return false;
}

static bool own_memory_copy_all(uint64_t *bytes, struct gps_text *why) {
    for (unsigned round = 0; round < ROUNDS; round++) {
        int code = parts_hash();
        if (code != GPS_OK)
            return own_memory_fail(why, "its memory cannot be read on the GPU", code);
        leave_torn();
        if (all_are_copied())
            return true;
        if (!find_copies())
            return own_memory_fail(why, "there is not so much main memory as it has on the GPU",
                                   GPS_OK);
        code = parts_carry(GPS_WAY_OUT, bytes);
        if (code != GPS_OK)
            return own_memory_fail(why, "its memory cannot be copied off the GPU", code);
    }
    return own_memory_fail(
        why,
        "its memory changes while it is copied, by a call that is not hooked or by other "
        "hardware; try again",
        GPS_OK);
}

bool gps_own_memory_copy(uint64_t *bytes, struct gps_text *why) {
    *bytes = 0;
    if (!begin_parts())
        return own_memory_fail(why, "there is no main memory to note what it has", GPS_OK);
    const bool copied = own_memory_copy_all(bytes, why);
    if (!copied)
        drop_parts();
    gps_copies_drop_unused();
    return copied;
}

/* --- eviction and return --- */

bool gps_own_memory_evict(struct gps_text *why) {
    struct gps_eviction_own own = {.address = 0};
    int code = GPS_OK;
    state.gone = state.count != 0;
    while (code == GPS_OK && gps_eviction_next_own(&own))
        if (!own.evicted)
            code = gps_eviction_release_own(own.address);
    return code == GPS_OK ||
           own_memory_fail(why, "its own memory was not unmapped by the driver", code);
}

static int own_memory_make_all(void) {
    struct gps_eviction_own own = {.address = 0};
    int code = GPS_OK;
    while (code == GPS_OK && gps_eviction_next_own(&own))
        if (own.evicted)
            code = gps_eviction_make_own(own.address);
    return code;
}

enum gps_taken gps_own_memory_take_again(struct gps_text *why) {
    uint64_t bytes = 0;
    int code = state.gone ? own_memory_make_all() : GPS_OK;
    if (state.gone && code == GPS_OK)
        code = parts_carry(GPS_WAY_BACK, &bytes);
    if (code == GPS_OK) {
        state.gone = false;
        return GPS_TAKEN;
    }
    own_memory_fail(why,
                    code == GPS_OUT_OF_MEMORY ? "there is no room on the GPU for its own memory"
                                              : "its own memory was not mapped again by the driver",
                    code);
    return code == GPS_OUT_OF_MEMORY || code == GPS_DEINITIALIZED ? GPS_TAKEN_LATER
                                                                  : GPS_TAKEN_LOST;
}

/* --- what is kept --- */

static void part_forget(struct part *part) {
    if (part->copy)
        gps_copies_put(part->copy);
    part->copy = NULL;
}

/* Drops the copies of memory that was freed, or merged. */
static void forget_gone(void) {
    struct gps_eviction_own own = {.address = 0};
    bool any = gps_eviction_next_own(&own);
    for (size_t i = 0; i < state.count; i++) {
        struct part *part = &state.parts[i];
        while (any && own.address + own.size <= part->address)
            any = gps_eviction_next_own(&own);
        if (!any || part->address < own.address)
            part_forget(part);
    }
}

static uint64_t own_memory_limit(uint64_t most) {
    uint64_t left;
    if (most != UINT64_MAX)
        return most;
    return gps_main_memory_left(0, &left) ? (left + gps_copies_bytes()) / SHARE_OF_LEFT : 0;
}

uint64_t gps_own_memory_keep(uint64_t most) {
    if (state.gone || !gps_copies_bytes())
        return gps_copies_bytes();
    const uint64_t may = own_memory_limit(most);
    forget_gone();
    gps_copies_drop_unused();
    while (gps_copies_bytes() > may && state.count) {
        part_forget(&state.parts[--state.count]);
        gps_copies_drop_unused();
    }
    return gps_copies_bytes();
}
