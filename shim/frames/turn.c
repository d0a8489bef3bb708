#include "turn.h"

#include <limits.h>
#include <stddef.h>

static bool has_seen(const struct gps_turn *turn, uint64_t key) {
    for (unsigned i = 0; i < turn->count; i++)
        if (turn->seen[i] == key)
            return true;
    return false;
}

static void turn_note_touch(struct gps_turn *turn, uint64_t key) {
    if (turn->count < GPS_TURN_SEEN && !has_seen(turn, key))
        turn->seen[turn->count++] = key;
    turn->touches++;
    turn->touched = true;
}

/* The thread's entry, or a free one; NULL: there are too many threads. */
static struct gps_turn_first *turn_first_of(struct gps_turn *turn, int thread) {
    for (unsigned i = 0; i < GPS_TURN_THREADS; i++)
        if (turn->firsts[i].thread == thread || !turn->firsts[i].thread)
            return &turn->firsts[i];
    return NULL;
}

bool gps_turn_has_threads(const struct gps_turn *turn) {
    return turn->firsts[1].thread != 0;
}

static void turn_begin(struct gps_turn *turn) {
    for (unsigned i = 0; i < GPS_TURN_THREADS; i++)
        turn->firsts[i].came = false;
    turn->count = turn->again = turn->touches = turn->waits = 0;
    turn->ended = false;
}

/* --- usual numbers --- */

enum { MOST_BROKEN = 20 };

static bool usual_is_known(const struct gps_turn *turn, const struct gps_turn_usual *usual) {
    return usual->alike >> (turn->broken < MOST_BROKEN ? turn->broken : MOST_BROKEN) >=
           GPS_TURN_ALIKE;
}

unsigned gps_turn_number_of_waits(const struct gps_turn *turn) {
    if (turn->fixed)
        return turn->fixed;
    return usual_is_known(turn, &turn->usual_waits) ? turn->usual_waits.number : 0;
}

static void learn_one(struct gps_turn_usual *usual, unsigned number) {
    usual->alike = number != usual->number ? 1 : usual->alike + (usual->alike < UINT_MAX);
    usual->number = number;
}

static void learn(struct gps_turn *turn) {
    turn->odd += turn->fixed ? turn->waits != turn->fixed
                             : usual_is_known(turn, &turn->usual_waits) &&
                                   turn->waits != turn->usual_waits.number;
    learn_one(&turn->usual_waits, turn->waits);
    learn_one(&turn->usual_touches, turn->touches);
}

/* --- the writer --- */

/* Whether the touch begins another frame. In a program that never waits only the first touch tells.
 * A first touch from before its loop does not come again: after GPS_TURN_PATIENCE touches that were
 * seen before, one of them is its thread's first from now on. */
static bool turn_begins_frame(struct gps_turn *turn, struct gps_turn_first *first, uint64_t key) {
    const bool may = turn->waits || !turn->waits_at_all;
    if (!turn->count || !may)
        return false;
    if (first && first->key == key)
        return first->came;
    turn->again += has_seen(turn, key);
    if (turn->again < GPS_TURN_PATIENCE)
        return false;
    if (first)
        first->key = key;
    return true;
}

static void turn_note_first(struct gps_turn_first *first, uint64_t key, int thread) {
    if (!first->thread)
        *first = (struct gps_turn_first){.thread = thread, .key = key};
    first->came |= first->key == key;
}

/* The usual last wait has come. If the frame goes on, it has more waits than those before. */
static bool turn_goes_on(struct gps_turn *turn, const struct gps_turn_first *first, uint64_t key) {
    const bool known = turn->fixed || (first && first->key == key) || gps_turn_has_threads(turn);
    turn->ended = false;
    if (known)
        return false;
    turn->usual_waits.alike = 0;
    turn->broken++;
    turn->odd++;
    return true;
}

bool gps_turn_touch(struct gps_turn *turn, uint64_t key, int thread) {
    struct gps_turn_first *const first = turn_first_of(turn, thread);
    const bool told = turn->ended && !turn_goes_on(turn, first, key);
    const bool another = told || (!turn->fixed && turn_begins_frame(turn, first, key));
    if (another) {
        learn(turn);
        turn_begin(turn);
    }
    if (first)
        turn_note_first(first, key, thread);
    turn_note_touch(turn, key);
    return another && !told;
}

/* Whether all threads have drawn their part: with several, one may still be about to. */
static bool turn_is_complete(const struct gps_turn *turn) {
    return turn->fixed || !gps_turn_has_threads(turn) ||
           (usual_is_known(turn, &turn->usual_touches) &&
            turn->touches == turn->usual_touches.number);
}

bool gps_turn_wait(struct gps_turn *turn) {
    turn->waits_at_all = true;
    if (!turn->touched || turn->ended)
        return false;
    turn->touched = false;
    turn->waits++;
    turn->ended = turn->waits == gps_turn_number_of_waits(turn) && turn_is_complete(turn);
    return turn->ended;
}

bool gps_turn_is_whole(const struct gps_turn *turn) {
    return turn->count && !turn->ended && turn->waits >= gps_turn_number_of_waits(turn);
}

/* --- the reader --- */

bool gps_turn_look(struct gps_turn *turn, uint64_t key) {
    const bool may = !turn->waits_at_all || !turn->touched;
    const bool another =
        !turn->count || (may && (has_seen(turn, key) || turn->count == GPS_TURN_SEEN));
    if (another)
        turn_begin(turn);
    turn_note_touch(turn, key);
    return another;
}

void gps_turn_looked(struct gps_turn *turn) {
    turn->waits_at_all = true;
    turn->touched = false;
}
