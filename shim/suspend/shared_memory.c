#include "shared_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "directory/orders.h"
#include "directory/processes.h"
#include "directory/record.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "gate/gate.h"
#include "gate/streams.h"
#include "ipc/deferred.h"
#include "ipc/export.h"
#include "ipc/token.h"
#include "keeper/keeper_client.h"
#include "learn/learner.h"
#include "merge/eviction.h"
#include "merge/not_merging.h"
#include "needed_room.h"
#include "offload.h"
#include "process/membership.h"
#include "process/process.h"
#include "process/references.h"
#include "registry/registry.h"
#include "registry/sharing.h"
#include "util/forgotten.h"
#include "vmm/mapping.h"
#include "vmm/mirror.h"

/* Shared memory that the keeper has: a region or a merged block. */
struct piece {
    uint64_t address, size;
    struct gps_id id;
    bool is_block, evicted;
};

/* --- all pieces, one after the other --- */

/* A walk has all mappings first, then all blocks. */
struct walk {
    struct piece piece;
    struct gps_mapping mapping;
    struct gps_eviction block;
};

static bool walk_next_piece(struct walk *walk) {
    const struct gps_mapping *vmm = &walk->mapping;
    const struct gps_eviction *block = &walk->block;
    while (gps_mapping_next(&walk->mapping))
        if (gps_mapping_is_shared(vmm)) {
            walk->piece =
                (struct piece){vmm->pointer, vmm->extent, vmm->region, false, vmm->evicted};
            return true;
        }
    if (!gps_eviction_next(&walk->block))
        return false;
    walk->piece = (struct piece){block->address, block->size, block->id, true, block->evicted};
    return true;
}

/* --- the keeper --- */

static void eviction_piece_describe(struct gps_text *why, const struct piece *piece,
                                    const char *what) {
    char id[GPS_ID_HEX];
    gps_id_format(&piece->id, id);
    gps_text_str(why, piece->is_block ? "merged block " : "region ");
    gps_text_bytes(why, id, 8);
    gps_text_strs(why, " ", what);
}

static int eviction_piece_get(const struct piece *piece, int *descriptor) {
    return gps_keeper_get_patiently(gps_membership_store(), &piece->id, gps_process_self(),
                                    GPS_KEEPER_WAIT, descriptor);
}

bool gps_shared_memory_confirm(struct gps_text *why) {
    struct walk walk = {.mapping.pointer = 0};
    int descriptor;
    while (walk_next_piece(&walk)) {
        const int status = eviction_piece_get(&walk.piece, &descriptor);
        if (status == -ENODATA) /* the keeper has the bytes */
            continue;
        if (status < 0) {
            eviction_piece_describe(
                why, &walk.piece,
                "was not had from the keeper, so nobody would hold it; see: gpushare doctor");
            return false;
        }
        close(descriptor);
    }
    return true;
}

/* --- eviction --- */

bool gps_shared_memory_evict(uint64_t *bytes, struct gps_text *why) {
    struct walk walk = {.mapping.pointer = 0};
    uint64_t sum = 0;
    while (walk_next_piece(&walk)) {
        const struct piece *piece = &walk.piece;
        const int code = piece->evicted    ? GPS_OK
                         : piece->is_block ? gps_eviction_release(piece->address)
                                           : gps_mapping_evict(piece->address);
        if (code != GPS_OK) {
            eviction_piece_describe(why, piece, "was not unmapped by the driver: error ");
            gps_text_dec(why, (uint64_t)code);
            return false;
        }
        sum += piece->size;
    }
    *bytes = sum;
    return true;
}

/* --- restoring --- */

static bool has_evicted(const struct gps_owner *process) {
    struct gps_answer_file answer;
    return gps_answer_read(gps_membership_store(), process, &answer) == 0 &&
           (answer.state == GPS_ANSWER_GONE || answer.state == GPS_ANSWER_TAKES);
}

/* Whether a running process has a merged block that no keeper has any more: it gives the block to
 * the next keeper (merge/keeper_watch.c). */
static bool is_elsewhere(const struct piece *piece) {
    struct gps_user users[GPS_USERS_REPORTED];
    if (!piece->is_block)
        return false;
    const int count = gps_users_of(gps_membership_store(), &piece->id, gps_process_self(), users,
                                   GPS_USERS_REPORTED);
    bool awaited = count < 0 || count > (int)GPS_USERS_REPORTED;
    for (int i = 0; i < count && !awaited; i++)
        awaited = !has_evicted(&users[i].owner);
    return awaited;
}

/* A block that the keeper has in main memory stays evicted, and *offloaded says so. */
static enum gps_taken eviction_piece_take(const struct piece *piece, bool *offloaded,
                                          struct gps_text *why) {
    int descriptor;
    const int status = eviction_piece_get(piece, &descriptor);
    *offloaded |= status == -ENODATA;
    if (status == -ENODATA)
        return GPS_TAKEN;
    if (status == -ENOENT && !is_elsewhere(piece)) {
        eviction_piece_describe(why, piece, "is gone: the keeper does not have it any more");
        return GPS_TAKEN_LOST;
    }
    if (status < 0) {
        eviction_piece_describe(why, piece,
                                "cannot be had from the keeper just now; see: gpushare doctor");
        return GPS_TAKEN_LATER;
    }
    const int code = piece->is_block ? gps_eviction_restore(piece->address, descriptor)
                                     : gps_mapping_take_again(piece->address, descriptor);
    close(descriptor);
    if (code == GPS_OK)
        return GPS_TAKEN;
    eviction_piece_describe(why, piece, "was not mapped again by the driver: error ");
    gps_text_dec(why, (uint64_t)code);
    /* a process that ends has no driver any more, and needs no memory */
    return code == GPS_OUT_OF_MEMORY || code == GPS_DEINITIALIZED ? GPS_TAKEN_LATER
                                                                  : GPS_TAKEN_LOST;
}

enum gps_taken gps_shared_memory_restore(uint64_t keep, struct gps_text *why) {
    struct walk walk = {.mapping.pointer = 0};
    bool offloaded = false;
    while (walk_next_piece(&walk)) {
        if (!walk.piece.evicted)
            continue;
        const enum gps_taken taken = eviction_piece_take(&walk.piece, &offloaded, why);
        if (taken != GPS_TAKEN)
            return taken;
    }
    return offloaded ? gps_reload(keep, why) : GPS_TAKEN;
}

/* --- obstacles --- */

/* --- how the process was started --- */

static bool look_at_mode(struct gps_text *why) {
    if (gps_process_config()->options.mode != GPS_MODE_SHARE)
        gps_text_str(why, "it runs with mode = audit; start it with mode = share");
    else if (gps_learn_active)
        gps_text_str(why, "`gpushare learn` observes it; start it without");
    else if (!gps_gate_active)
        gps_text_str(why, "the kernel refuses membarrier(2) here, so its calls cannot be held");
    else
        return false;
    return true;
}

/* The room to come back is counted on one GPU. */
static bool look_for_gpus(struct gps_text *why) {
    const int used = gps_needed_room_gpus();
    if (used == 0 || used == 1)
        return false;
    gps_text_str(why, used > 1 ? "it uses more than one GPU, and is not suspended by this version"
                               : "it has had more contexts than are counted");
    return true;
}

static bool look_for_mps(struct gps_text *why) {
    char pipe[512];
    const char *directory = getenv("CUDA_MPS_PIPE_DIRECTORY");
    struct gps_text path = GPS_TEXT(pipe);
    gps_text_strs(&path, directory && *directory ? directory : "/tmp/nvidia-mps", "/control");
    if (path.cut || access(pipe, F_OK) != 0)
        return false;
    gps_text_strs(why, "MPS seems to be running (", pipe,
                  "), whose clients a driver does not suspend; end MPS, and start it again");
    return true;
}

/* --- memory shared by handles --- */

static void obstacle_add_region(struct gps_text *why, const char *name, const struct gps_id *id) {
    char hex[GPS_ID_HEX];
    gps_id_format(id, hex);
    gps_text_str(why, "region ");
    if (*name)
        gps_text_plain(why, name);
    else
        gps_text_bytes(why, hex, 8);
}

static bool look_for_imports(struct gps_text *why) {
    struct gps_import import;
    if (!gps_registry_driver_import(&import))
        return false;
    obstacle_add_region(why, import.name, &import.region);
    gps_text_str(why, import.state == GPS_IMPORT_OPEN
                          ? " is open here by a handle of the driver's; close it, or share it with "
                            "backing = vmm"
                          : " is closed, and open_cache keeps it mapped; set open_cache = 0");
    return true;
}

static struct gps_region_record legacy; /* the first that was found; its size is 0 if none was */
GPS_FORGOTTEN(legacy);

static void note_legacy(void *unused, struct gps_export *region) {
    (void)unused;
    if (!legacy.size && !region->vmm)
        legacy = region->record;
}

static bool look_for_exports(struct gps_text *why) {
    legacy.size = 0;
    gps_registry_each_export(0, note_legacy, NULL);
    if (legacy.size) {
        obstacle_add_region(why, legacy.name, &legacy.id);
        gps_text_str(why, " is exported by a handle of the driver's, which would open nothing any "
                          "more; free it, or share it with backing = vmm");
        return true;
    }
    if (gps_export_missed()) {
        gps_text_str(why, "it has exported memory by a handle of the driver's that could not be "
                          "noted, as where the directory is full; such a process cannot be "
                          "suspended");
        return true;
    }
    if (!gps_deferred_any())
        return false;
    gps_text_str(why, "memory that it has freed is still open in other processes; end those");
    return true;
}

static bool look_for_events(struct gps_text *why) {
    if (!gps_registry_shares_event())
        return false;
    gps_text_str(why, "it shares an interprocess event; destroy it");
    return true;
}

/* Memory that came by a token would be lost, and other processes that have memory of this one would
 * have another copy from then on. */
static bool look_for_tokens(struct gps_text *why) {
    if (gps_mirror_any())
        gps_text_str(why,
                     "memory of another process's cuMemCreate is open here by a token (vmm_ipc); "
                     "close it");
    else if (gps_token_any_open())
        gps_text_str(why, "memory of its cuMemCreate is open in another process by a token "
                          "(vmm_ipc); close it there");
    else
        return false;
    return true;
}

/* --- what cannot be undone --- */

static bool look_for_sharing(struct gps_text *why) {
    static const char *const texts[] = {
        [GPS_SHARING_MEMORY_EXPORTED] =
            "it has exported memory of cuMemCreate, which others may have mapped",
        [GPS_SHARING_MEMORY_IMPORTED] = "it has imported memory of another process's cuMemCreate",
        [GPS_SHARING_POOL] = "it has exported or imported a memory pool, or a pointer of one",
        [GPS_SHARING_EXTERNAL] = "it has imported external memory",
        [GPS_SHARING_MULTICAST] = "it has made a multicast object",
        [GPS_SHARING_DMA_BUF] =
            "it has made a dma-buf of its memory, by which other hardware may use it",
        [GPS_SHARING_PEERS] = "it has enabled peer access between GPUs",
        [GPS_SHARING_FRAMES] = "it exchanges whole frames with other programs",
    };
    for (unsigned way = 0; way < sizeof(texts) / sizeof(texts[0]); way++)
        if (gps_sharing_has((enum gps_sharing)way)) {
            gps_text_strs(why, texts[way], "; a process that does so cannot be suspended");
            return true;
        }
    return false;
}

static bool look_for_rdma(struct gps_text *why) {
    gps_rdma_look();
    if (!gps_rdma_device())
        return false;
    gps_text_strs(why, gps_rdma_device(),
                  " is open, by which other hardware may use its memory; close it");
    return true;
}

/* --- what is under way --- */

static bool look_for_captures(struct gps_text *why) {
    if (!gps_streams_any_capturing())
        return false;
    gps_text_str(why, "it captures a graph at this moment; try again");
    return true;
}

bool gps_obstacle_find(struct gps_text *why) {
    static bool (*const looks[])(struct gps_text * why) = {
        look_at_mode,    look_for_gpus,   look_for_mps,     look_for_imports, look_for_exports,
        look_for_events, look_for_tokens, look_for_sharing, look_for_rdma,    look_for_captures,
    };
    for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
        if (looks[i](why))
            return true;
    return false;
}
