/* let_go.c - see let_go.h. */
#include "let_go.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "directory/record.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "keeper/keeper_client.h"
#include "merge/away.h"
#include "process/membership.h"
#include "process/process.h"
#include "registry/registry.h"
#include "registry/vmm_books.h"
#include "vmm/mapping.h"

/* One that the keeper has: a region or a merged block. */
struct piece {
    uint64_t address, size;
    struct gps_id id;
    bool is_block, away;
};

/* --- all pieces, one after the other --- */

static bool is_shared(const struct gps_mapping *vmm) {
    static const struct gps_id none;
    return !gps_id_equal(&vmm->region, &none);
}

/* A walk has all mappings first, then all blocks. */
struct walk {
    struct piece piece;
    uint64_t mapping;
    struct gps_away block;
    bool found;
};

static void look(void *arg, const struct gps_mapping *vmm) {
    struct walk *walk = arg;
    if (walk->found || vmm->pointer <= walk->mapping || !is_shared(vmm))
        return;
    walk->found = true;
    walk->mapping = vmm->pointer;
    walk->piece = (struct piece){vmm->pointer, vmm->extent, vmm->region, false, vmm->away};
}

static bool next(struct walk *walk) {
    walk->found = false;
    gps_mapping_each(look, walk);
    if (!walk->found && gps_away_next(&walk->block)) {
        walk->found = true;
        walk->piece = (struct piece){walk->block.address, walk->block.size, walk->block.id, true,
                                     walk->block.away};
    }
    return walk->found;
}

/* --- the keeper --- */

static void describe(struct gps_text *why, const struct piece *piece, const char *what) {
    char id[GPS_ID_HEX];
    gps_id_format(&piece->id, id);
    gps_text_str(why, piece->is_block ? "merged block " : "region ");
    gps_text_bytes(why, id, 8);
    gps_text_strs(why, " ", what);
}

static int get(const struct piece *piece, int *descriptor) {
    return gps_keeper_get(gps_membership_store(), &piece->id, gps_process_self(), GPS_KEEPER_WAIT,
                          descriptor);
}

bool gps_let_go_confirm(struct gps_text *why) {
    struct walk walk = {.mapping = 0};
    int descriptor;
    while (next(&walk)) {
        const int status = get(&walk.piece, &descriptor);
        if (status < 0) {
            describe(why, &walk.piece,
                     "was not had from the keeper, so nobody would hold it; see: gpushare doctor");
            return false;
        }
        close(descriptor);
    }
    return true;
}

/* --- letting go --- */

bool gps_let_go(uint64_t *bytes, struct gps_text *why) {
    struct walk walk = {.mapping = 0};
    uint64_t sum = 0;
    while (next(&walk)) {
        const struct piece *piece = &walk.piece;
        const int code = piece->away       ? GPS_OK
                         : piece->is_block ? gps_away_let_go(piece->address)
                                           : gps_mapping_let_go(piece->address);
        if (code != GPS_OK) {
            describe(why, piece, "was not unmapped by the driver: error ");
            gps_text_dec(why, (uint64_t)code);
            return false;
        }
        sum += piece->size;
    }
    *bytes = sum;
    return true;
}

/* --- taking again --- */

static enum gps_taken take(const struct piece *piece, struct gps_text *why) {
    int descriptor;
    const int status = get(piece, &descriptor);
    if (status == -ENOENT) {
        describe(why, piece, "is gone: the keeper does not have it any more");
        return GPS_TAKEN_LOST;
    }
    if (status < 0) {
        describe(why, piece, "cannot be had from the keeper just now; see: gpushare doctor");
        return GPS_TAKEN_LATER;
    }
    const int code = piece->is_block ? gps_away_take_again(piece->address, descriptor)
                                     : gps_mapping_take_again(piece->address, descriptor);
    close(descriptor);
    if (code == GPS_OK)
        return GPS_TAKEN;
    describe(why, piece, "was not mapped again by the driver: error ");
    gps_text_dec(why, (uint64_t)code);
    /* a process that ends has no driver any more, and needs no memory */
    return code == GPS_OUT_OF_MEMORY || code == GPS_DEINITIALIZED ? GPS_TAKEN_LATER
                                                                  : GPS_TAKEN_LOST;
}

enum gps_taken gps_let_go_take_again(struct gps_text *why) {
    struct walk walk = {.mapping = 0};
    while (next(&walk)) {
        if (!walk.piece.away)
            continue;
        const enum gps_taken taken = take(&walk.piece, why);
        if (taken != GPS_TAKEN)
            return taken;
    }
    return GPS_TAKEN;
}

/* --- what it has for itself --- */

static void add_private(void *sum, const struct gps_mapping *vmm) {
    if (!is_shared(vmm))
        *(uint64_t *)sum += vmm->extent;
}

/* What memory pools have. */
static uint64_t pool_bytes(void) {
    uint64_t sum = 0, bytes;
    int count = 0;
    if (gps_ops->device_count(&count) != GPS_OK)
        return 0;
    for (int device = 0; device < count; device++) {
        const uint64_t context = gps_ops->primary(device);
        if (!context || gps_ops->enter(context) != GPS_OK)
            continue;
        sum += gps_ops->pool_has(&bytes) == GPS_OK ? bytes : 0;
        gps_ops->leave();
    }
    return sum;
}

uint64_t gps_let_go_own_bytes(void) {
    uint64_t sum = gps_registry_bytes() + gps_away_own_bytes() + pool_bytes();
    gps_mapping_each(add_private, &sum);
    for (int device = 0; device < GPS_VMM_GPUS; device++)
        sum += gps_vmm_bytes(device);
    return sum;
}

void gps_let_go_device(uint8_t device[GPS_UUID_BYTES]) {
    int count = 0;
    memset(device, 0, GPS_UUID_BYTES);
    if (gps_ops->device_count(&count) != GPS_OK)
        return;
    for (int ordinal = 0; ordinal < count; ordinal++)
        if (gps_ops->primary(ordinal)) {
            (void)gps_ops->uuid(ordinal, device);
            return;
        }
}
