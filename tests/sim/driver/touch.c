/* Bytes that a card can reach; see touch.h. */
#include "touch.h"

#include "block.h"
#include "host.h"
#include "link.h"
#include "mapping.h"
#include "state.h"

/* Who wants to change a mapping waits for no more than this. */
enum { AT_ONCE = 1 << 20 };

static bool reach_block(struct touch *touch, const struct span *span) {
    const struct block *block = span->block;
    uint64_t left = span->size - (touch->address - span->base);
    if (!mapping_allows(block, touch->card, touch->writes))
        return false;
    touch->size = touch->size < left ? touch->size : left;
    touch->at =
        link_reach(block->card, block->offset + (touch->address - block->address), &touch->size);
    touch->mapping = block->mapping;
    return touch->at;
}

static bool reach_host(struct touch *touch) {
    const struct host_range *range = host_find(touch->address);
    if (!range && !touch->pageable)
        return false;
    uint64_t left = range ? range->size - (touch->address - range->base) : touch->size;
    touch->size = touch->size < left ? touch->size : left;
    touch->at = (unsigned char *)(uintptr_t)touch->address;
    return true;
}

static bool reach(struct touch *touch) {
    struct span span;
    touch->mapping = NULL;
    touch->size = touch->size < AT_ONCE ? touch->size : AT_ONCE;
    if (!touch->pageable && block_find(touch->address, &span))
        return reach_block(touch, &span);
    return reach_host(touch);
}

/* Whether all can be held now; each is cut to the smallest. */
static bool reach_all(struct touch *touches, unsigned count, bool *closing) {
    uint64_t least = AT_ONCE;
    *closing = false;
    for (unsigned i = 0; i < count; i++) {
        if (!reach(&touches[i]))
            return false;
        least = touches[i].size < least ? touches[i].size : least;
        *closing = *closing || mapping_closing(touches[i].mapping);
    }
    for (unsigned i = 0; i < count; i++)
        touches[i].size = least;
    return true;
}

bool touch_begin(struct touch *touches, unsigned count) {
    bool closing, found;
    STATE_LOCKED();
    while ((found = reach_all(touches, count, &closing)) && closing)
        state_wait();
    for (unsigned i = 0; i < count && found; i++)
        mapping_hold(touches[i].mapping, 1);
    return found;
}

void touch_end(struct touch *touches, unsigned count) {
    STATE_LOCKED();
    for (unsigned i = 0; i < count; i++)
        mapping_hold(touches[i].mapping, -1);
}
