#include "wanted_size.h"

#include "directory/processes.h"
#include "process/membership.h"
#include "process/process.h"
#include "process/references.h"

enum { NO_SLOT, GETS_SLOT, HAS_SLOT, ENDED };

struct note {
    struct gps_wanted_size *asked;
    const struct gps_rule *rule;
    uint64_t size;
};

/* Under the lock of the slots. */
static bool write_down(uint64_t address, unsigned *slot, struct gps_slot *now) {
    const struct note *note = (const struct note *)(uintptr_t)address;
    struct gps_wanted_size *asked = note->asked;
    const uint64_t away = gps_rule_size_distance(note->rule, note->size);
    if (atomic_load(&asked->phase) != HAS_SLOT)
        return false;
    if (!asked->count || away < gps_rule_size_distance(note->rule, asked->size)) {
        asked->size = note->size;
        asked->count = 0;
    }
    if (asked->size != note->size || asked->count == GPS_WANTED_SIZE_MOST)
        return false;
    *slot = asked->slot;
    now->region = gps_id_of_name(note->rule->name);
    now->via = GPS_VIA_WANTED_SIZE;
    now->state = GPS_SLOT_OPEN;
    now->address = asked->size;
    now->generation = ++asked->count;
    return true;
}

static void get_slot(struct gps_wanted_size *asked, const struct gps_rule *rule) {
    const struct gps_id id = gps_id_of_name(rule->name);
    const int status = gps_references_begin_block(&id, GPS_VIA_WANTED_SIZE, &asked->slot);
    if (status < 0)
        gps_references_end(asked->slot);
    atomic_store(&asked->phase, status < 0 ? NO_SLOT : HAS_SLOT);
}

void gps_wanted_size_note(struct gps_wanted_size *asked, const struct gps_rule *rule,
                          uint64_t size) {
    const struct note note = {asked, rule, size};
    int phase = NO_SLOT;
    if (atomic_compare_exchange_strong(&asked->phase, &phase, GETS_SLOT))
        get_slot(asked, rule);
    if (atomic_load(&asked->phase) == HAS_SLOT)
        gps_references_rewrite(write_down, (uintptr_t)&note);
}

/* A thread that is just getting the slot publishes an earlier size once more. */
void gps_wanted_size_end(struct gps_wanted_size *asked) {
    int phase = NO_SLOT;
    if (atomic_load(&asked->phase) == ENDED ||
        atomic_compare_exchange_strong(&asked->phase, &phase, ENDED))
        return;
    phase = HAS_SLOT;
    if (atomic_compare_exchange_strong(&asked->phase, &phase, ENDED))
        gps_references_end(asked->slot);
}

struct search {
    uint32_t pid;
    struct gps_id id;
    uint64_t *size, *count;
    bool found;
};

static bool wanted_size_look_at_process(void *arg, const struct gps_proc *proc) {
    struct search *search = arg;
    const struct gps_owner *owner = &proc->header.owner;
    if (!proc->alive || owner->pid != search->pid || owner->pid_ns != gps_process_self()->pid_ns)
        return true;
    for (unsigned i = 0; i < proc->slot_count && !search->found; i++) {
        const struct gps_slot *slot = &proc->slots[i];
        search->found = slot->via == GPS_VIA_WANTED_SIZE && slot->state == GPS_SLOT_OPEN &&
                        gps_id_equal(&slot->region, &search->id);
        if (search->found) {
            *search->size = slot->address;
            *search->count = slot->generation;
        }
    }
    return !search->found;
}

bool gps_wanted_size_of(uint32_t pid, const char *name, uint64_t *size, uint64_t *count) {
    struct search search = {.pid = pid, .id = gps_id_of_name(name), .size = size, .count = count};
    return gps_proc_each(gps_membership_store(), wanted_size_look_at_process, &search) == 0 &&
           search.found;
}
