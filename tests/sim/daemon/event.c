/* Slots of interprocess events; see event.h. One thread, no locks. */
#include "event.h"

#include "../protocol.h"

#include <cuda.h>
#include <linux/futex.h>

struct use {
    uint64_t party;
    struct use *next;
};

struct slot {
    uint64_t creator; /* what a handle says */
    bool owned;       /* the creator lives */
    struct use *uses; /* who opened it, ever */
};

static struct {
    struct sim_event *page;
    uint32_t *locks;
    struct slot slots[SIM_MAX_EVENTS];
    uint64_t count, top; /* slots in use; all in use are below top */
} events;

int event_page_create(int *fd) {
    size_t size = sizeof(struct sim_page);
    *fd = memfd_create("gpusim-events", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0 || ftruncate(*fd, (off_t)size))
        return -errno;
    struct sim_page *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (page == MAP_FAILED)
        return -errno;
    events.page = page->events;
    events.locks = page->locks;
    return 0;
}

void event_page_lock(uint64_t client, bool locked, bool moved) {
    uint32_t *word = &events.locks[client % SIM_MAX_CLIENTS];
    const uint32_t now = (*word & ~SIM_LOCKED) + (moved ? 2 * SIM_LOCKED : 0);
    __atomic_store_n(word, now | (locked ? SIM_LOCKED : 0), __ATOMIC_SEQ_CST);
    if (!locked)
        syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void event_page_begin(uint64_t client) {
    __atomic_store_n(&events.locks[client % SIM_MAX_CLIENTS], 0, __ATOMIC_SEQ_CST);
}

static bool in_use(const struct slot *slot) {
    return slot->owned || slot->uses;
}

static struct use **find_use(struct slot *slot, uint64_t party) {
    struct use **link = &slot->uses;
    while (*link && (*link)->party != party)
        link = &(*link)->next;
    return link;
}

static void drop_use(struct use **link) {
    struct use *use = *link;
    *link = use->next;
    free(use);
}

unsigned event_create(struct party *owner, uint64_t *slot) {
    uint64_t i = 0;
    while (i < SIM_MAX_EVENTS && in_use(&events.slots[i]))
        i++;
    if (i == SIM_MAX_EVENTS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    events.slots[i].creator = owner->id;
    events.slots[i].owned = true;
    events.page[i] = (struct sim_event){0, 0};
    events.count++;
    events.top = i >= events.top ? i + 1 : events.top;
    owner->events++;
    *slot = i;
    return CUDA_SUCCESS;
}

unsigned event_open(struct party *user, uint64_t owner, uint64_t slot) {
    if (slot >= SIM_MAX_EVENTS || !owner || events.slots[slot].creator != owner)
        return CUDA_ERROR_INVALID_VALUE;
    struct use **link = find_use(&events.slots[slot], user->id);
    if (*link)
        return CUDA_SUCCESS;
    if (!events.slots[slot].owned)
        return CUDA_ERROR_INVALID_HANDLE;
    *link = calloc(1, sizeof **link);
    if (!*link)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*link)->party = user->id;
    user->events++;
    return CUDA_SUCCESS;
}

static void finish(struct sim_event *event) {
    uint32_t recorded = __atomic_load_n(&event->recorded, __ATOMIC_ACQUIRE);
    __atomic_store_n(&event->completed, recorded, __ATOMIC_RELEASE);
    syscall(SYS_futex, &event->completed, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void event_release_all(struct party *party) {
    for (uint64_t i = 0; party->events && i < events.top; i++) {
        struct slot *slot = &events.slots[i];
        struct use **link = find_use(slot, party->id);
        bool own = slot->owned && slot->creator == party->id;
        if (!own && !*link)
            continue;
        party->events -= (uint64_t)own + (*link ? 1 : 0);
        if (own)
            slot->owned = false;
        if (*link)
            drop_use(link);
        finish(&events.page[i]);
        if (!in_use(slot))
            events.count--;
    }
}

uint64_t event_count(void) {
    return events.count;
}
