#include "contexts.h"

#include <stdatomic.h>

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "frames/exchange.h"
#include "gate/swap.h"
#include "learn/learner.h"
#include "lifecycle/teardown.h"
#include "merge/allocation.h"
#include "merge/backing.h"
#include "process/process.h"
#include "registry/context_table.h"
#include "registry/registry.h"
#include "registry/sharing.h"
#include "registry/vmm_books.h"
#include "rules/rules.h"
#include "util/forgotten.h"
#include "vmm/mapping.h"

static int context_device_of(uint64_t context, int *device) {
    struct gps_scope scope;
    int code = gps_scope_enter(&scope, context);
    code = code == GPS_OK ? gps_ops->device(device) : code;
    gps_scope_end(&scope);
    return code;
}

static _Atomic uint64_t used; /* the devices on which the program has had a context, a bit each */
GPS_FORGOTTEN(used);

static void enable(int home, int accessor) {
    bool can;
    if (gps_ops->peer(accessor, home, &can) != GPS_OK || !can)
        return;
    gps_mapping_enable(home, accessor);
    if (gps_merge_active || gps_blocks_active)
        gps_merge_enable(home, accessor);
}

static void context_note(uint64_t context, int device) {
    GPS_SCOPE();
    if (context != gps_ops->primary(device))
        gps_context_table_add(context, device);
}

/* Plain memory is copied whatever device is current, so memory of rules is mapped for each device
 * that the program uses and that reaches it. With one device this costs nothing. */
void gps_context_made(uint64_t context, int device) {
    if (gps_process_config()->options.suspend == GPS_SUSPEND_ON && context)
        context_note(context, device);
    if (!gps_rules_active || device < 0 || device >= GPS_MAPPING_DEVICES || used >> device & 1)
        return;
    GPS_DRIVER_SCOPE();
    const uint64_t bit = UINT64_C(1) << device, others = atomic_fetch_or(&used, bit) & ~bit;
    for (int other = 0; other < GPS_MAPPING_DEVICES; other++)
        if (others >> other & 1) {
            enable(other, device);
            enable(device, other);
        }
}

/* Memory of the program's own is not mapped for a peer by this library: an audit reports it. */
void gps_context_peer_enabled(uint64_t peer) {
    int device, current;
    gps_sharing_note(GPS_SHARING_PEERS);
    if (!gps_process_audits() || context_device_of(peer, &device) != GPS_OK)
        return;
    GPS_DRIVER_SCOPE();
    if (gps_ops->device(&current) == GPS_OK)
        gps_vmm_peer_enabled(current, device);
}

/* --- the end of a context --- */

struct ending {
    gps_context_end_fn *call;
    uint64_t which; /* of the call: a context or a device */
    uint64_t context;
    enum gps_context_ending how;
    uint64_t green; /* not 0: it ends, and so does `context` if this was its last reference */
    int device;
};

static bool context_is_gone(const struct ending *ending) {
    return ending->how == GPS_CONTEXT_DETACH   ? !gps_ops->context_exists(ending->context)
           : ending->how == GPS_DEVICE_RELEASE ? !gps_ops->primary(ending->device)
                                               : true;
}

/* Moves the memory that was allocated with a green context current to the primary one. */
static void move(uint64_t green, uint64_t to, uint64_t before) {
    GPS_SCOPE();
    gps_streams_remove_context(green, before);
    gps_ops->forget(green);
    gps_registry_move(green, to);
    GPS_AREAS_LOCKED();
    gps_area_forget_events(green, before);
    gps_area_move(green, to);
}

/* Whether the device has its own context again, whose handle is always the same. The handle of
 * another context is not given again before the call returns: making one takes longer. */
static bool is_remade(const struct ending *ending) {
    return ending->how == GPS_DEVICE_RESET && gps_ops->primary(ending->device) == ending->context;
}

/* Objects that another thread makes after the last look have a later epoch than `ended`. */
static int end_by_driver(void *arg, bool *destroyed, uint64_t *before) {
    const struct ending *ending = arg;
    const uint64_t begun = ending->green ? gps_streams_mark() : 0;
    const int code = ending->call(ending->which);
    const uint64_t ended = gps_streams_mark();
    if (code == GPS_OK && ending->green)
        move(ending->green, ending->context, begun);
    *destroyed = code == GPS_OK && context_is_gone(ending);
    if (*destroyed && !is_remade(ending))
        *before = ended;
    if (*destroyed) {
        if (gps_frames_active)
            gps_frames_purge(ending->context);
        gps_context_table_remove(ending->context);
        gps_ops->forget(ending->context);
    }
    return code;
}

/* A call that may leave the context alive hands nothing over and does not wait. */
static int context_end(struct ending ending) {
    const bool surely = ending.how == GPS_CONTEXT_DESTROY || ending.how == GPS_DEVICE_RESET;
    if (!ending.context)
        return ending.call(ending.which);
    return gps_teardown_context(ending.context, surely, end_by_driver, &ending);
}

/* Waits for the green context's work: entering the context afterwards kills the process. */
int gps_context_destroy_green(uint64_t green, uint64_t context, gps_context_end_fn *destroy) {
    struct gps_scope scope;
    int device = 0;
    const bool is_known = context && context_device_of(context, &device) == GPS_OK;
    const uint64_t primary = is_known ? gps_ops->primary(device) : 0;
    if (primary && (gps_gate_active || gps_learn_active)) {
        gps_scope_enter(&scope, 0);
        gps_swap_await_context(context);
        gps_scope_end(&scope);
    }
    return context_end(
        (struct ending){destroy, green, primary, GPS_DEVICE_RELEASE, context, device});
}

int gps_context_end(uint64_t which, gps_context_end_fn *call, enum gps_context_ending how) {
    const bool of_device = how == GPS_DEVICE_RESET || how == GPS_DEVICE_RELEASE;
    const int device = of_device ? (int)which : 0;
    const uint64_t context = of_device ? gps_ops->primary(device) : which;
    return context_end((struct ending){call, which, context, how, 0, device});
}
