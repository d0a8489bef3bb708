#include "accounting.h"

#include "cli/printable.h"
#include "cli/tool.h"

/* --- the shares in a region --- */

/* Whether the driver counts the region as its owner's: it does as long as the owner lives and the
 * memory exists. */
static bool owner_charged(const struct view_region *region) {
    return !view_is_vmm(region) && region->owner_alive &&
           region->record.status.state != GPS_STATE_FREED;
}

/* Whether the owner lives, and has not freed the region. */
static bool owner_holds(const struct view_region *region) {
    const uint32_t state = region->record.status.state;
    return owner_charged(region) && (state == GPS_STATE_WRITING || state == GPS_STATE_READY);
}

static size_t hold_count(const struct view_region *region) {
    return region->hold_count + region->creator_holds;
}

/* Whether hold number `i` counts. An intent holds nothing yet. Of a block each mapping counts, of
 * other regions each process. */
static bool is_share(const struct view_region *region, size_t i) {
    const struct view_hold *hold = &region->holds[i];
    if (hold->slot.state != GPS_SLOT_OPEN)
        return false;
    while (!view_merged(region) && i-- > 0 &&
           gps_owner_equal(&region->holds[i].owner, &hold->owner))
        if (region->holds[i].slot.state == GPS_SLOT_OPEN)
            return false;
    return true;
}

static size_t share_count(const struct view_region *region) {
    size_t count = owner_holds(region);
    for (size_t i = 0; i < hold_count(region); i++)
        count += is_share(region, i);
    return count;
}

uint64_t accounting_in_use(const struct view_region *region) {
    const uint32_t state = region->record.status.state;
    if (view_hidden(region) || state == GPS_STATE_OFFLOADED ||
        (state == GPS_STATE_FREED && share_count(region) == 0))
        return 0;
    return region->record.extent;
}

/* With whole frames each holder has memory of its own, and there are slots besides. */
static bool saves_nothing(const struct view_region *region) {
    return region->record.frames != GPS_FRAMES_OFF;
}

uint64_t accounting_unshared(const struct view_region *region) {
    const size_t shares = saves_nothing(region) ? 1 : share_count(region);
    return accounting_in_use(region) * (shares > 0 ? shares : 1);
}

void accounting_each_holder(const struct view_region *region, accounting_holder_fn *fn, void *arg) {
    const size_t count = hold_count(region);
    if (owner_holds(region))
        fn(arg, &region->record.owner);
    for (size_t i = 0; i < count; i++) {
        const size_t next = (region->hold_count + i) % count; /* the creator's holds are first */
        if (is_share(region, next))
            fn(arg, &region->holds[next].owner);
    }
}

/* --- accounts --- */

static void fold(struct account *into, const struct account *from) {
    into->regions += from->regions;
    into->made += from->made;
    into->held += from->held;
    into->bytes.own += from->bytes.own;
    into->bytes.shared += from->bytes.shared;
    into->bytes.proportional += from->bytes.proportional;
    into->bytes.unshared += from->bytes.unshared;
    into->merged.blocks += from->merged.blocks;
    into->merged.mapped += from->merged.mapped;
    into->merged.saved += from->merged.saved;
    into->merged.own += from->merged.own;
    into->merged.untold += from->merged.untold;
    into->charge.bytes += from->charge.bytes;
    into->charge.unknown |= from->charge.unknown;
}

static int by_process_and_gpu(const void *left, const void *right) {
    const struct account *a = left, *b = right;
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    return memcmp(a->device, b->device, GPS_UUID_BYTES);
}

static bool is_suspended(const struct view *view, const struct gps_owner *owner) {
    const struct view_process *process = view_process_find(view, owner);
    return process && view_suspended(process);
}

/* Adds a part to what the process has on the GPU. A suspended process has nothing mapped. */
static void accounting_add(struct accounting *accounting, const struct view *view,
                           const struct gps_owner *owner, const uint8_t *device,
                           struct account part) {
    part.process = view_process_find(view, owner);
    part.device = device;
    if (is_suspended(view, owner))
        part.merged.mapped = part.held = 0;
    part.gpus = 1;
    for (size_t i = accounting->count; i-- > 0;)
        if (by_process_and_gpu(&accounting->accounts[i], &part) == 0) {
            fold(&accounting->accounts[i], &part);
            return;
        }
    TOOL_APPEND(accounting->accounts, accounting->count, part);
}

/* A process's memory by `mine` of `all` shares. `rest`: the bytes that cannot be split. */
static struct account share_of(const struct view_region *region, size_t mine, size_t all,
                               uint64_t rest) {
    const uint64_t extent = region->record.extent, part = extent / all * mine + rest;
    struct account share = {.bytes = {.own = mine == all ? extent : 0,
                                      .shared = mine == all ? 0 : extent,
                                      .proportional = part,
                                      .unshared = saves_nothing(region) ? part : extent * mine}};
    if (view_merged(region))
        share.merged = (struct account_merged){
            .blocks = mine, .mapped = extent * mine, .saved = extent * mine - part};
    share.regions = !view_merged(region);
    if (!owner_charged(region))
        share.charge = (struct account_charge){part, mine < all};
    return share;
}

static void add_holders(struct accounting *accounting, const struct view *view,
                        const struct view_region *region, size_t all) {
    const struct gps_region_record *record = &region->record;
    uint64_t rest = record->extent % all;
    if (owner_holds(region)) {
        accounting_add(accounting, view, &record->owner, record->device,
                       share_of(region, 1, all, rest));
        rest = 0;
    }
    for (size_t i = 0, next; i < hold_count(region); i = next) {
        const struct gps_owner *owner = &region->holds[i].owner;
        size_t mine = 0;
        for (next = i;
             next < hold_count(region) && gps_owner_equal(owner, &region->holds[next].owner);
             next++)
            mine += is_share(region, next);
        if (mine == 0)
            continue;
        accounting_add(accounting, view, owner, record->device, share_of(region, mine, all, rest));
        rest = 0;
    }
}

/* --- GPUs --- */

static struct account_gpu *gpu_of(struct accounting *accounting, const uint8_t *device) {
    for (size_t i = 0; i < accounting->gpu_count; i++)
        if (memcmp(device, accounting->gpus[i].device, GPS_UUID_BYTES) == 0)
            return &accounting->gpus[i];
    TOOL_APPEND(accounting->gpus, accounting->gpu_count, (struct account_gpu){.device = device});
    printable_note_uuid(device);
    return &accounting->gpus[accounting->gpu_count - 1];
}

static void accounting_add_region(struct accounting *accounting, const struct view *view,
                                  const struct view_region *region) {
    const uint64_t bytes = accounting_in_use(region);
    const size_t shares = share_count(region);
    if (bytes == 0 || view_is_run(region)) /* its owner's slots have what it made, once */
        return;
    struct account_gpu *gpu = gpu_of(accounting, region->record.device);
    gpu->in_use += bytes;
    gpu->kept += shares > 0 ? 0 : bytes;
    gpu->unshared += accounting_unshared(region);
    if (view_merged(region)) {
        gpu->blocks++;
        gpu->held += bytes;
        gpu->unused += shares > 0 ? 0 : bytes;
    }
    if (shares > 0)
        add_holders(accounting, view, region, shares);
    if (owner_charged(region))
        accounting_add(accounting, view, &region->record.owner, region->record.device,
                       (struct account){.charge.bytes = bytes});
}

/* Adds memory of no other process. Memory of a suspended process is not on the GPU. */
static void add_own(struct accounting *accounting, const struct view *view,
                    const struct view_hold *hold, struct account part) {
    const uint64_t bytes = hold->slot.address;
    struct account_gpu *gpu = gpu_of(accounting, hold->slot.region.bytes);
    if (is_suspended(view, &hold->owner))
        return;
    gpu->in_use += bytes;
    gpu->unshared += bytes;
    part.bytes = (struct account_bytes){bytes, 0, bytes, bytes};
    part.charge.bytes = bytes;
    accounting_add(accounting, view, &hold->owner, hold->slot.region.bytes, part);
}

/* --- sums --- */

static int by_device(const void *left, const void *right) {
    const struct account_gpu *a = left, *b = right;
    return memcmp(a->device, b->device, GPS_UUID_BYTES);
}

static void sum_gpus(struct accounting *accounting) {
    struct account_gpu *total = &accounting->total;
    TOOL_SORT(accounting->gpus, accounting->gpu_count, by_device);
    TOOL_EACH(const struct account, account, accounting->accounts, accounting->count) {
        struct account_gpu *gpu = gpu_of(accounting, account->device);
        gpu->processes += account->merged.blocks > 0 || account->merged.own > 0;
        gpu->merged.mapped += account->merged.mapped;
        gpu->merged.saved += account->merged.saved;
        gpu->merged.own += account->merged.own;
    }
    TOOL_EACH(struct account_gpu, gpu, accounting->gpus, accounting->gpu_count) {
        gpu->saved = gpu->unshared - gpu->in_use;
        total->in_use += gpu->in_use;
        total->kept += gpu->kept;
        total->unshared += gpu->unshared;
        total->saved += gpu->saved;
        total->blocks += gpu->blocks;
    }
}

/* A suspended process is listed, also with nothing on the GPU. */
static void add_suspended(struct accounting *accounting, const struct view *view) {
    static const uint8_t none[GPS_UUID_BYTES];
    TOOL_EACH(const struct view_process, process, view->processes, view->process_count) {
        const uint8_t *device = process->answer.device;
        if (view_suspended(process) && memcmp(device, none, sizeof(none)) != 0)
            accounting_add(accounting, view, &process->owner, device, (struct account){.gpus = 1});
    }
}

void accounting_make(const struct view *view, struct accounting *accounting) {
    *accounting = (struct accounting){.count = 0};
    for (size_t i = 0; i < view->region_count; i++)
        accounting_add_region(accounting, view, &view->regions[i]);
    TOOL_EACH(const struct view_hold, hold, view->holds, view->hold_count) {
        const uint64_t bytes = hold->slot.address;
        if (bytes > 0 && hold->slot.via == GPS_VIA_OWN)
            add_own(accounting, view, hold, (struct account){.merged.own = bytes});
        else if (bytes > 0 && hold->slot.via == GPS_VIA_MADE)
            add_own(accounting, view, hold, (struct account){.made = bytes});
        else if (bytes > 0 && hold->slot.via == GPS_VIA_HELD)
            accounting_add(accounting, view, &hold->owner, hold->slot.region.bytes,
                           (struct account){.held = bytes});
        else if (bytes > 0 && hold->slot.via == GPS_VIA_STEADY)
            accounting_add(accounting, view, &hold->owner, hold->slot.region.bytes,
                           (struct account){.merged.untold = bytes});
    }
    add_suspended(accounting, view);
    TOOL_SORT(accounting->accounts, accounting->count, by_process_and_gpu);
    sum_gpus(accounting);
}

void accounting_free(struct accounting *accounting) {
    free(accounting->accounts);
    free(accounting->gpus);
}

size_t accounting_process(const struct accounting *accounting, size_t at, struct account *sum) {
    *sum = accounting->accounts[at++];
    for (; at < accounting->count && accounting->accounts[at].process == sum->process; at++) {
        fold(sum, &accounting->accounts[at]);
        sum->device = NULL;
        sum->gpus++;
    }
    return at;
}

struct account accounting_of(const struct view *view, const struct gps_owner *owner) {
    struct accounting accounting;
    struct account sum = {.process = NULL};
    accounting_make(view, &accounting);
    for (size_t i = 0; i < accounting.count && !sum.process; i++)
        if (gps_owner_equal(&accounting.accounts[i].process->owner, owner))
            accounting_process(&accounting, i, &sum);
    accounting_free(&accounting);
    return sum;
}

/* --- memory that saves nothing --- */

/* Whether another process of its program has blocks on the GPU. */
static bool has_company(const struct view *view, const struct gps_owner *owner,
                        const uint8_t *device) {
    TOOL_EACH(const struct view_hold, hold, view->holds, view->hold_count) {
        if (hold->region && view_merged(hold->region) && !gps_owner_equal(&hold->owner, owner) &&
            strcmp(hold->owner.command, owner->command) == 0 &&
            memcmp(hold->region->record.device, device, GPS_UUID_BYTES) == 0)
            return true;
    }
    return false;
}

static bool is_alone(const struct view_region *region, const struct gps_owner *owner) {
    for (size_t i = 0; i < hold_count(region); i++)
        if (!gps_owner_equal(&region->holds[i].owner, owner))
            return false;
    return hold_count(region) > 0;
}

/* Few GPUs follow each other in the list, so the answer for the last one is kept. */
static uint64_t apart(const struct view *view, const struct gps_owner *owner) {
    const uint8_t *device = NULL;
    bool company = false;
    uint64_t bytes = 0;
    TOOL_EACH(const struct view_region, region, view->regions, view->region_count) {
        if (!view_merged(region) || !is_alone(region, owner))
            continue;
        if (!device || memcmp(device, region->record.device, GPS_UUID_BYTES) != 0)
            company = has_company(view, owner, device = region->record.device);
        bytes += company ? region->record.extent : 0;
    }
    return bytes;
}

struct private_bytes private_bytes_of(const struct view *view, const struct gps_owner *owner) {
    struct private_bytes sum = {{0}};
    for (size_t i = 0; i < view->hold_count; i++) {
        const struct gps_slot *slot = &view->holds[i].slot;
        if (slot->via == GPS_VIA_PRIVATE && slot->generation < GPS_PRIVATE_APART &&
            gps_owner_equal(&view->holds[i].owner, owner))
            sum.bytes[slot->generation] += slot->address;
    }
    sum.bytes[GPS_PRIVATE_APART] = apart(view, owner);
    return sum;
}

json_t *private_bytes_json(const struct view *view, const struct gps_owner *owner) {
    const struct private_bytes sum = private_bytes_of(view, owner);
    json_t *array = json_tree_pack("[]");
    for (enum gps_private why = 0; why < GPS_PRIVATE_COUNT; why++)
        if (sum.bytes[why] > 0)
            json_tree_append(array, json_tree_pack("{s:s, s:I}", "reason", gps_private_name(why),
                                                   "bytes", sum.bytes[why]));
    return array;
}

void private_apart_help(FILE *out, const char *margin) {
    fprintf(out,
            "%1$sThen this may help:\n"
            "%1$s  transformers  HF_DEACTIVATE_ASYNC_LOAD=1\n"
            "%1$s  PyTorch       PYTORCH_ALLOC_CONF=roundup_power2_divisions:8\n",
            margin);
}
