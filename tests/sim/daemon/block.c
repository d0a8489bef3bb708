/* Blocks and their holders; see block.h. One thread, no locks. */
#include "block.h"

#include "../protocol.h"

#include <cuda.h>

enum { BUCKETS = 1 << 16 };

struct block {
    uint64_t id, offset, size;
    uint64_t owner, address; /* owner 0: freed by it, or it died */
    struct memory *memory;
    struct hold *holds;
    struct block *next_id, *next_name; /* chains of the two hash tables */
    uint32_t device;
    bool exported;
    bool cut;  /* a checkpoint has made its handle useless */
    bool away; /* in main memory: its bytes are nobody's on the card */
};

struct hold {
    struct block *block;
    struct party *party;
    uint64_t count;
    uint64_t imported; /* so many of the count, also of what the party has made itself */
    bool opened;
    struct hold *next_of_block;
    struct hold *next_of_party, *prev_of_party;
};

/* A block that a checkpoint has put in the place of another. */
struct moved {
    uint64_t from, to;
    struct moved *next;
};

static struct {
    struct block *by_id[BUCKETS], *by_name[BUCKETS];
    uint64_t next_id, count;
} blocks;

static struct block **id_chain(uint64_t id) {
    return &blocks.by_id[id % BUCKETS];
}

static struct block **name_chain(uint64_t owner, uint64_t address) {
    uint64_t mixed = (owner * 0x9e3779b97f4a7c15u) ^ ((address >> SIM_BLOCK_SHIFT) * 0x85ebca6bu);
    return &blocks.by_name[(mixed ^ mixed >> 32) % BUCKETS];
}

static struct block *find_id(uint64_t id) {
    struct block *block = *id_chain(id);
    while (block && block->id != id)
        block = block->next_id;
    return block;
}

static struct block *find_name(uint64_t owner, uint64_t address) {
    struct block *block = *name_chain(owner, address);
    while (block && (block->owner != owner || block->address != address))
        block = block->next_name;
    return block;
}

static struct hold *find_hold(const struct block *block, const struct party *party) {
    struct hold *hold = block->holds;
    while (hold && hold->party != party)
        hold = hold->next_of_block;
    return hold;
}

static bool hold_add(struct block *block, struct party *party) {
    struct hold *hold = find_hold(block, party);
    if (!hold) {
        hold = calloc(1, sizeof *hold);
        if (!hold)
            return false;
        hold->block = block;
        hold->party = party;
        hold->next_of_block = block->holds;
        block->holds = hold;
        hold->next_of_party = party->holds;
        if (party->holds)
            party->holds->prev_of_party = hold;
        party->holds = hold;
    }
    hold->count++;
    return true;
}

/* The owner lets go of the name: from now on the handle leads nowhere. */
static void disown(struct block *block) {
    struct block **link = name_chain(block->owner, block->address);
    while (*link && *link != block)
        link = &(*link)->next_name;
    if (*link)
        *link = block->next_name;
    block->owner = 0;
}

static void destroy(struct block *block) {
    struct block **link = id_chain(block->id);
    while (*link != block)
        link = &(*link)->next_id;
    *link = block->next_id;
    if (block->away)
        block->memory->used += block->size;
    memory_give(block->memory, block->offset, block->size);
    blocks.count--;
    free(block);
}

static void hold_remove(struct hold *hold) {
    struct block *block = hold->block;
    struct hold **link = &block->holds;
    while (*link != hold)
        link = &(*link)->next_of_block;
    *link = hold->next_of_block;
    if (hold->prev_of_party)
        hold->prev_of_party->next_of_party = hold->next_of_party;
    else
        hold->party->holds = hold->next_of_party;
    if (hold->next_of_party)
        hold->next_of_party->prev_of_party = hold->prev_of_party;
    free(hold);
    if (!block->holds)
        destroy(block);
}

static void hold_drop(struct hold *hold) {
    if (--hold->count == 0)
        hold_remove(hold);
}

static void forget_moved(struct party *party) {
    for (struct moved *next; party->moved; party->moved = next) {
        next = party->moved->next;
        free(party->moved);
    }
}

static struct block_view view_of(const struct block *block) {
    return (struct block_view){block->id, block->offset, block->size, block->device};
}

static void name(struct block *block, struct memory *memory, uint32_t device, uint64_t size) {
    block->id = ++blocks.next_id;
    block->size = size;
    block->memory = memory;
    block->device = device;
    block->next_id = *id_chain(block->id);
    *id_chain(block->id) = block;
    blocks.count++;
}

/* Takes the memory and makes the block, which nobody holds or owns yet; NULL if either is out. */
static struct block *make(struct memory *memory, uint32_t device, uint64_t size) {
    if (!size || size > memory->total)
        return NULL;
    size = (size + SIM_BLOCK - 1) & ~(SIM_BLOCK - 1);
    struct block *block = calloc(1, sizeof *block);
    if (!block || memory_take(memory, size, &block->offset)) {
        free(block);
        return NULL;
    }
    name(block, memory, device, size);
    return block;
}

unsigned block_create(struct party *creator, struct memory *memory, uint32_t device, uint64_t size,
                      struct block_view *view) {
    struct block *block = make(memory, device, size);
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!hold_add(block, creator)) {
        destroy(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *view = view_of(block);
    return CUDA_SUCCESS;
}

unsigned block_allocate(struct party *owner, struct memory *memory, uint32_t device, uint64_t size,
                        uint64_t address, struct block_view *view) {
    unsigned code = block_create(owner, memory, device, size, view);
    if (code)
        return code;
    struct block *block = find_id(view->id);
    block->owner = owner->id;
    block->address = address;
    block->next_name = *name_chain(owner->id, address);
    *name_chain(owner->id, address) = block;
    return CUDA_SUCCESS;
}

unsigned block_free(struct party *owner, uint64_t id) {
    struct block *block = find_id(id);
    if (!block || block->owner != owner->id)
        return CUDA_ERROR_INVALID_VALUE;
    disown(block);
    hold_drop(find_hold(block, owner));
    return CUDA_SUCCESS;
}

unsigned block_export(const struct party *owner, uint64_t id) {
    struct block *block = find_id(id);
    if (!block || block->owner != owner->id)
        return CUDA_ERROR_INVALID_VALUE;
    block->exported = true;
    return CUDA_SUCCESS;
}

unsigned block_open(struct party *user, uint64_t owner, uint64_t address, struct block_view *view) {
    struct block *block = find_name(owner, address);
    if (!block)
        return CUDA_ERROR_INVALID_VALUE;
    if (block->cut)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!block->exported)
        return CUDA_ERROR_NOT_PERMITTED;
    if (!hold_add(block, user))
        return CUDA_ERROR_OUT_OF_MEMORY;
    find_hold(block, user)->opened = true;
    *view = view_of(block);
    return CUDA_SUCCESS;
}

bool block_held(const struct party *user, uint64_t id) {
    const struct block *block = find_id(id);
    return block && find_hold(block, user);
}

unsigned block_hold(struct party *user, uint64_t id, struct block_view *view) {
    struct block *block = find_id(id);
    if (!block)
        return CUDA_ERROR_INVALID_VALUE;
    if (!hold_add(block, user))
        return CUDA_ERROR_OUT_OF_MEMORY;
    find_hold(block, user)->imported++;
    *view = view_of(block);
    return CUDA_SUCCESS;
}

unsigned block_close(struct party *user, uint64_t id, bool imported) {
    struct block *block = find_id(id);
    struct hold *hold = block ? find_hold(block, user) : NULL;
    if (!hold)
        return CUDA_ERROR_INVALID_VALUE;
    hold->imported -= imported && hold->imported;
    hold_drop(hold);
    return CUDA_SUCCESS;
}

/* --- checkpoints --- */

bool block_has_room(const struct party *party) {
    for (const struct hold *hold = party->holds; hold; hold = hold->next_of_party) {
        uint64_t needed = 0;
        const struct memory *memory = hold->block->memory;
        for (const struct hold *h = party->holds; h; h = h->next_of_party)
            needed += h->block->away && h->block->memory == memory ? h->block->size : 0;
        if (needed > memory->total - memory->used)
            return false;
    }
    return true;
}

/* Others keep the block; the party gets a copy, with as many holds. */
static bool move_away(struct party *party, struct hold *hold) {
    struct block *from = hold->block, *to = calloc(1, sizeof *to);
    struct moved *moved = calloc(1, sizeof *moved);
    if (!to || !moved || memory_copy_away(from->memory, from->offset, from->size, &to->offset)) {
        free(to);
        free(moved);
        return false;
    }
    name(to, from->memory, from->device, from->size);
    to->away = true;
    if (!hold_add(to, party))
        abort();
    to->holds->count = hold->count;
    if (from->owner == party->id) {
        disown(from);
        to->owner = party->id;
        to->address = from->address;
        to->exported = to->cut = true;
        to->next_name = *name_chain(to->owner, to->address);
        *name_chain(to->owner, to->address) = to;
    }
    *moved = (struct moved){from->id, to->id, party->moved};
    party->moved = moved;
    hold_remove(hold);
    return true;
}

static void send_away(struct block *block) {
    block->away = true;
    block->cut = block->exported;
    block->memory->used -= block->size;
}

bool block_checkpoint(struct party *party) {
    bool moved = false;
    forget_moved(party);
    party->lost = 0;
    for (struct hold *hold = party->holds, *next; hold; hold = next) {
        next = hold->next_of_party;
        if (hold->imported || hold->opened)
            party->lost = hold->opened ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
        else if (hold->block->away)
            continue; /* a copy that was made just now */
        else if (hold->next_of_block || hold->block->holds != hold)
            moved |= move_away(party, hold);
        else
            send_away(hold->block);
    }
    return moved;
}

uint64_t block_bytes(const struct party *party) {
    uint64_t sum = 0;
    for (const struct hold *hold = party->holds; hold; hold = hold->next_of_party)
        sum += hold->block->size;
    return sum;
}

void block_restore(struct party *party) {
    for (struct hold *hold = party->holds; hold; hold = hold->next_of_party)
        if (hold->block->away) {
            hold->block->away = false;
            hold->block->memory->used += hold->block->size;
        }
}

unsigned block_moved(const struct party *party, uint64_t id, struct block_view *view) {
    const struct moved *moved = party->moved;
    while (moved && moved->from != id)
        moved = moved->next;
    const struct block *block = moved ? find_id(moved->to) : NULL;
    if (!block)
        return CUDA_ERROR_INVALID_VALUE;
    *view = view_of(block);
    return CUDA_SUCCESS;
}

void block_release_all(struct party *party) {
    forget_moved(party);
    while (party->holds) {
        if (party->holds->block->owner == party->id)
            disown(party->holds->block);
        hold_remove(party->holds);
    }
}

uint64_t block_count(void) {
    return blocks.count;
}
