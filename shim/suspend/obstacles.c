/* obstacles.c - see obstacles.h. */
#include "obstacles.h"

#include <stdlib.h>
#include <unistd.h>

#include "driver/driver_ops.h"
#include "gate/gate.h"
#include "gate/streams.h"
#include "ipc/deferred.h"
#include "learn/learner.h"
#include "merge/allocation.h"
#include "merge/rdma.h"
#include "process/process.h"
#include "registry/entangled.h"
#include "registry/registry.h"
#include "util/forgotten.h"

/* --- how the process was started --- */

static bool look_at_mode(struct gps_text *why) {
    if (gps_process_config()->options.mode != GPS_MODE_SHARE)
        gps_text_str(why, "it runs with mode = audit; start it with mode = share");
    else if (gps_learn_active)
        gps_text_str(why, "`gpushare learn` observes it; start it without");
    else if (!gps_merge_active)
        gps_text_str(why, "the kernel refuses membarrier(2) here, so its calls cannot be held");
    else
        return false;
    return true;
}

/* Room is counted on one GPU. */
static bool look_for_gpus(struct gps_text *why) {
    int count = 0, used = 0;
    if (gps_ops->device_count(&count) != GPS_OK)
        return false;
    for (int device = 0; device < count; device++)
        used += gps_ops->primary(device) != 0;
    if (used < 2)
        return false;
    gps_text_str(why, "it uses more than one GPU, and is not suspended by this version");
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

/* --- what it shares by handles --- */

static void add_region(struct gps_text *why, const char *name, const struct gps_id *id) {
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
    add_region(why, import.name, &import.region);
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
        add_region(why, legacy.name, &legacy.id);
        gps_text_str(why, " is exported by a handle of the driver's, which would open nothing any "
                          "more; free it, or share it with backing = vmm");
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

/* --- what cannot be undone --- */

static bool look_for_entanglement(struct gps_text *why) {
    static const char *const texts[] = {
        [GPS_ENTANGLED_MEMORY_EXPORTED] =
            "it has exported memory of cuMemCreate, which others may have mapped",
        [GPS_ENTANGLED_MEMORY_IMPORTED] = "it has imported memory of another process's cuMemCreate",
        [GPS_ENTANGLED_POOL] = "it has exported or imported a memory pool, or a pointer of one",
        [GPS_ENTANGLED_EXTERNAL] = "it has imported external memory",
        [GPS_ENTANGLED_MULTICAST] = "it has made a multicast object",
        [GPS_ENTANGLED_PEERS] = "it has enabled peer access between GPUs",
    };
    for (unsigned way = 0; way < sizeof(texts) / sizeof(texts[0]); way++)
        if (gps_is_entangled((enum gps_entangled)way)) {
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
    if (!gps_streams_capturing())
        return false;
    gps_text_str(why, "it captures a graph at this moment; try again");
    return true;
}

bool gps_obstacle_find(struct gps_text *why) {
    static bool (*const looks[])(struct gps_text * why) = {
        look_at_mode,    look_for_gpus,         look_for_mps,  look_for_imports,  look_for_exports,
        look_for_events, look_for_entanglement, look_for_rdma, look_for_captures,
    };
    for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
        if (looks[i](why))
            return true;
    return false;
}
