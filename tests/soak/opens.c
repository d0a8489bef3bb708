/* opens.c - what this process has open of others' memory, and an open that is refused for it; see
 * worker.h. */

#include "worker.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct slot *opens[THREADS * (SLOTS + 1)];

static void replace(const struct slot *old, const struct slot *new) {
    unsigned i = 0;
    pthread_mutex_lock(&lock);
    while (opens[i] != old)
        i++;
    opens[i] = new;
    pthread_mutex_unlock(&lock);
}

static bool share_place(const struct advert *a, const struct advert *b) {
    return a->tag.pid == b->tag.pid && a->at < b->at + b->size && b->at < a->at + a->size;
}

static bool place_is_open(const struct advert *advert) {
    bool found = false;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < sizeof(opens) / sizeof(*opens); i++)
        found |= opens[i] && share_place(&opens[i]->advert, advert);
    pthread_mutex_unlock(&lock);
    return found;
}

/* Whether the runtime refused it for older memory in its place; AMD's has one code for all. */
static int open_once(struct slot *slot) {
    const int code = CALL(
        cudaIpcOpenMemHandle(&slot->pointer, slot->advert.handle, cudaIpcMemLazyEnablePeerAccess));
    return EITHER(code,
                  code == CANNOT_ATTACH && place_is_open(&slot->advert) ? ALREADY_MAPPED : code);
}

/* The driver also answers 208 when another thread opens or closes the same memory just then; on a
 * busy machine that can take it a while. */
int open_memory(struct slot *slot) {
    enum { TIMEOUT_MS = 10000 };
    const uint64_t until = milliseconds() + TIMEOUT_MS;
    int code;
    while ((code = open_once(slot)) == ALREADY_MAPPED) {
        count(COUNT_already_mapped);
        if (place_is_open(&slot->advert))
            return code;
        if (milliseconds() > until) {
            wrong("open: %d, though nothing of its place is open, kind %d", code,
                  slot->advert.kind);
            return code;
        }
        nap(1);
    }
    if (!code)
        replace(NULL, slot);
    return code;
}

static int closed(const struct slot *slot, int code) {
    if (!code)
        replace(slot, NULL);
    return code;
}

int close_memory(const struct slot *slot) {
    return closed(slot, CALL(cudaIpcCloseMemHandle(slot->pointer)));
}

int close_inside(const struct slot *slot) {
    return closed(slot, CALL(cudaIpcCloseMemHandle((char *)slot->pointer + INSIDE)));
}

int free_opened(const struct slot *slot) {
    return closed(slot, CALL(cudaFree(slot->pointer)));
}
