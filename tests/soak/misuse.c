/*
 * misuse.c - what a program must not do, with what the driver answers; see worker.h. AMD's runtime
 * frees and closes by any address of memory, and closes what is freed that was opened.
 *
 * It runs alone in its process: an address that was freed would else be another thread's already.
 */

#include "worker.h"

/* Not of a rule: memory may be open by the rule and by a handle at once, at one address. */
static struct slot *any(struct slot slots[SLOTS], bool exported) {
    for (unsigned i = 0, at = dice(SLOTS); i < SLOTS; i++) {
        struct slot *slot = &slots[(at + i) % SLOTS];
        if (slot->pointer && !has_place(slot) && (!exported || *slot->path))
            return slot;
    }
    return NULL;
}

/* How often this process has the memory open. */
static unsigned openings(const void *pointer) {
    unsigned found = 0;
    for (unsigned i = 0; i < world.threads; i++)
        for (unsigned j = 0; j < SLOTS; j++)
            found += world.selves[i].opened[j].pointer == pointer;
    return found;
}

static void double_free(void) {
    struct slot *slot = any(self->own, false);
    if (!slot)
        return;
    void *pointer = slot->pointer;
    count(COUNT_double_free);
    release(slot);
    expect(CALL(cudaFree(pointer)), 1, "cudaFree, the second");
}

static void double_close(void) {
    struct slot *slot = any(self->opened, false);
    if (!slot || openings(slot->pointer) > 1)
        return;
    void *pointer = slot->pointer;
    count(COUNT_double_close);
    close_one(slot);
    nap(dice(4)); /* a cache may end it meanwhile */
    expect(CALL(cudaIpcCloseMemHandle(pointer)), 1, "cudaIpcCloseMemHandle, the second");
}

static void free_interior(void) {
    struct slot *slot = any(self->own, false);
    if (!slot || slot->advert.kind == KIND_SMALL) /* another one may begin there */
        return;
    count(COUNT_free_interior);
    if (EITHER(false, !world.share)) { /* gpushare refuses it */
        release_at(slot, INSIDE);
        return;
    }
    expect(CALL(cudaFree((char *)slot->pointer + INSIDE)), 1, "cudaFree inside");
    look(slot, "after a free inside");
}

static void refused_or_closed(struct slot *slot, int (*call)(const struct slot *),
                              const char *what) {
    if (EITHER(false, true)) {
        close_by(slot, call);
        return;
    }
    expect(call(slot), 1, what);
    look(slot, what);
}

static void free_imported(void) {
    struct slot *slot = any(self->opened, false);
    if (!slot)
        return;
    count(COUNT_free_imported);
    refused_or_closed(slot, free_opened, "cudaFree of what is open");
}

static void close_own(void) {
    struct slot *slot = any(self->own, false);
    if (!slot)
        return;
    count(COUNT_close_own);
    expect(CALL(cudaIpcCloseMemHandle(slot->pointer)), 1, "cudaIpcCloseMemHandle of own memory");
    look(slot, "after a close of it");
}

static void close_interior(void) {
    struct slot *slot = any(self->opened, false);
    if (!slot || slot->advert.kind == KIND_SMALL)
        return;
    count(COUNT_close_interior);
    refused_or_closed(slot, close_inside, "cudaIpcCloseMemHandle inside");
}

static void open_own(void) {
    struct slot *slot = any(self->own, true);
    void *pointer = NULL;
    if (!slot)
        return;
    count(COUNT_open_own);
    expect(CALL(cudaIpcOpenMemHandle(&pointer, slot->advert.handle, 1)), 201,
           "cudaIpcOpenMemHandle of its own");
}

static void open_twice(void) {
    struct slot *slot = any(self->opened, false);
    if (!slot)
        return;
    struct slot again = *slot;
    count(COUNT_open_twice);
    const int code = open_memory(&again);
    expect_any(code, EITHER(" 0 1 400 800 ", " 0 1 17 800 "), "cudaIpcOpenMemHandle again");
    if (code)
        return;
    look(&again, "opened twice");
    expect(close_memory(&again), 0, "cudaIpcCloseMemHandle, one of two");
    look(slot, "closed once of twice");
}

static void open_junk(void) {
    cudaIpcMemHandle_t junk;
    void *pointer = NULL;
    memset(&junk, dice(2) ? 0 : 0x77, sizeof(junk));
    count(COUNT_open_junk);
    expect_any(CALL(cudaIpcOpenMemHandle(&pointer, junk, 1)), EITHER(" 1 ", " 1 17 "),
               "cudaIpcOpenMemHandle of nonsense");
}

/* The bare driver may open what lies there now. Under gpushare it is the memory of then, or none,
 * unless its owner is ending. */
static void open_stale(void) {
    struct slot slot;
    memset(&slot, 0, sizeof(slot));
    if (self->stale_count == 0)
        return;
    slot.advert = self->stale[dice(self->stale_count < STALE ? self->stale_count : STALE)];
    count(COUNT_open_stale);
    const int code = open_memory(&slot);
    expect_any(code, EITHER(" 0 1 2 201 208 400 800 ", " 0 1 2 17 201 208 800 "),
               "cudaIpcOpenMemHandle, stale");
    if (code)
        return;
    count(COUNT_stale_opened);
    if (world.share && !slot.advert.weak && slot.advert.kind == KIND_PLAIN &&
        !has_said_end(slot.advert.tag.pid))
        look(&slot, "of a stale handle");
    expect(close_memory(&slot), 0, "cudaIpcCloseMemHandle, stale");
}

void step_misuse(void) {
    static void (*const all[])(void) = {double_free, double_close,   free_interior, free_imported,
                                        close_own,   close_interior, open_own,      open_twice,
                                        open_junk,   open_stale,     open_stale,    open_stale};
    all[dice(sizeof(all) / sizeof(*all))]();
}
