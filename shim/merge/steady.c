#include "steady.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "allocation.h"
#include "directory/orders.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "process/gpu_bytes.h"
#include "process/membership.h"
#include "process/process.h"
#include "shared_block.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "util/lock.h"

enum {
    CARDS = 32,      /* of GPUs with higher numbers the program is told the driver's figure */
    FEW_BLOCKS = 512 /* a table for twice as many is made at first */
};
#define LASTS (GPS_SECOND / 100) /* a look at the directory holds, where nothing changed here */
#define TRIES 3

/* A block that is mapped. */
struct seen {
    uint64_t id; /* the first bytes of the region's; 0: the place is free */
    uint64_t size;
    uint32_t others, mine; /* mappings */
    uint32_t had;          /* of mine: memory that the keeper had already */
};

struct card {
    bool based;
    uint64_t mark;      /* of its blocks (gps_shared_mark) */
    uint64_t base;      /* what other processes saved when the program first asked */
    uint64_t saved;     /* at the last look at the directory: */
    uint64_t looked;    /* when that was, */
    uint64_t available; /* with so much free, */
    uint64_t changes;   /* and so many changes of our own */
    _Atomic uint64_t less;
    struct gps_gpu_bytes told;
};

static struct {
    GPS_LOCK(GPS_RANK_SAVED) lock;
    struct card cards[CARDS];
    struct seen *table; /* by id, open addressing; `room` is a power of two */
    size_t room, count;
} state;
GPS_FORGOTTEN(state);
static uint64_t *kept;
GPS_FORGOTTEN(kept);

void gps_steady_keep(uint64_t *most) {
    kept = most;
}

/* --- the table --- */

static struct seen *place_in(struct seen *table, size_t room, uint64_t id) {
    size_t at = id & (room - 1);
    while (table[at].id && table[at].id != id)
        at = (at + 1) & (room - 1);
    return &table[at];
}

/* Not malloc: a signal handler may ask. */
static bool grow(size_t room) {
    struct seen *larger = mmap(NULL, room * sizeof(*larger), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (larger == MAP_FAILED)
        return false;
    for (size_t i = 0; i < state.room; i++)
        if (state.table[i].id)
            *place_in(larger, room, state.table[i].id) = state.table[i];
    if (state.table)
        munmap(state.table, state.room * sizeof(*state.table));
    state.table = larger;
    state.room = room;
    return true;
}

/* NULL: there is no memory for another one. */
static struct seen *seen_of(const struct gps_id *region, uint64_t size) {
    uint64_t id;
    memcpy(&id, region->bytes, sizeof(id));
    id += !id;
    if (2 * state.count >= state.room && !grow(2 * (state.room ? state.room : FEW_BLOCKS)))
        return NULL;
    struct seen *seen = place_in(state.table, state.room, id);
    if (!seen->id) {
        *seen = (struct seen){.id = id, .size = size};
        state.count++;
    }
    return seen;
}

/* --- a look at the directory --- */

struct glance {
    const struct gps_store *store;
    const struct card *card;
};

/* A suspended process has nothing on a GPU, as without gpushare. */
static bool glance_note_process(void *arg, const struct gps_proc *proc) {
    const struct glance *glance = arg;
    const bool mine = gps_process_is_self(&proc->header.owner);
    if (!proc->alive || (!mine && gps_answer_sleeps(glance->store, &proc->header.owner)))
        return true;
    for (unsigned i = 0; i < proc->slot_count; i++) {
        const struct gps_slot *slot = &proc->slots[i];
        if (slot->state != GPS_SLOT_OPEN ||
            (slot->via != GPS_VIA_MERGE && slot->via != GPS_VIA_CREATOR) ||
            !gps_shared_is_marked(slot->block, glance->card->mark))
            continue;
        struct seen *seen = seen_of(&slot->region, gps_shared_marked_size(slot->block));
        if (!seen)
            return false;
        seen->others += !mine;
        seen->mine += mine;
        seen->had += mine && slot->via == GPS_VIA_MERGE && !(slot->block & GPS_SHARED_MADE);
    }
    return true;
}

/* Of a block that is mapped n times, n - 1 are saved. A block that this process alone has, and did
 * not make, cost nothing, either: the keeper had kept it. */
static uint64_t saved_by(const struct seen *seen) {
    const uint32_t again = seen->others + seen->mine ? seen->others + seen->mine - 1 : 0;
    return seen->size * (again > seen->had ? again : seen->had);
}

static void card_look(struct card *card) {
    struct glance glance = {gps_membership_store(), card};
    uint64_t saved = 0, base = 0;
    if (state.count)
        memset(state.table, 0, state.room * sizeof(*state.table));
    state.count = 0;
    if (!glance.store)
        glance.store = gps_membership_look();
    if (glance.store && gps_proc_each(glance.store, glance_note_process, &glance) < 0)
        return;
    for (size_t i = 0; state.count && i < state.room; i++) {
        const struct seen *seen = &state.table[i];
        saved += saved_by(seen);
        base += seen->others > 1 ? seen->size * (seen->others - 1) : 0;
    }
    if (!card->based)
        card->base = base;
    card->based = true;
    card->saved = saved;
}

/* --- the answer --- */

/* The last look still holds: each merge changes the free memory, or is our own. */
static bool card_is_known(const struct card *card, uint64_t available) {
    return card->based && available == card->available && card->changes == gps_shared_changes() &&
           gps_clock_monotonic() - card->looked < LASTS;
}

/* The free memory is read before the slots, and a slot is set before its merge frees memory: so a
 * merge under way makes the answer too small for a moment, and never too large. */
static void look_until_still(struct card *card, uint64_t *available) {
    uint64_t now, total;
    for (int i = 0; i < TRIES; i++) {
        card->changes = gps_shared_changes();
        card->looked = gps_clock_monotonic();
        card->available = *available;
        card_look(card);
        if (i + 1 == TRIES || gps_ops->memory(&now, &total) != GPS_OK || now == *available)
            return;
        *available = now;
    }
}

static bool card_find(int device, struct card **card) {
    uint8_t uuid[GPS_UUID_BYTES];
    if (device < 0 || device >= CARDS)
        return false;
    *card = &state.cards[device];
    if ((*card)->based)
        return true;
    const bool known = gps_ops->uuid(device, uuid) == GPS_OK;
    if (known)
        (*card)->mark = gps_shared_mark(uuid, 0);
    return known;
}

static uint64_t less_than(int device, uint64_t *available) {
    struct card *card;
    GPS_LOCKED(&state.lock);
    if (!card_find(device, &card))
        return 0;
    if (!card_is_known(card, *available))
        look_until_still(card, available);
    return card->saved > card->base ? card->saved - card->base : 0;
}

static uint64_t card_bytes_of(int device) {
    return atomic_load(&state.cards[device].less);
}

/* Publishes the figure for the tool and for `explain`. */
static void card_publish(int device, uint64_t less) {
    struct card *card = &state.cards[device];
    if (atomic_exchange(&card->less, less) != less &&
        gps_gpu_bytes_of_device(&card->told, GPS_VIA_STEADY, device, card_bytes_of))
        gps_gpu_bytes_publish(&card->told);
    if (kept && less > __atomic_load_n(kept, __ATOMIC_RELAXED))
        __atomic_store_n(kept, less, __ATOMIC_RELAXED);
}

uint64_t gps_steady_free(uint64_t available) {
    int device;
    if (!gps_merge_active || gps_process_config()->options.free == GPS_FREE_DRIVER)
        return available;
    GPS_DRIVER_SCOPE();
    if (gps_ops->device(&device) != GPS_OK)
        return available;
    uint64_t less = less_than(device, &available);
    less = less < available ? less : available;
    if (device >= 0 && device < CARDS)
        card_publish(device, less);
    return available - less;
}
