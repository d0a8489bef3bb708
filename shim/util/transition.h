/*
 * transition.h - asserts that an object passes from state to state as its table says.
 *
 * A kind of object has one enum of states and, at its struct, one table of them, which shows for
 * each state those that may follow it:
 *
 *     #define GPS_DOOR_STATES(FROM, TO)        \
 *         FROM(OPEN, TO(SHUT))                 \
 *         FROM(SHUT, TO(OPEN) | TO(GONE))      \
 *         FROM(GONE, GPS_TO_NONE)
 *
 * The one function that changes the state makes an array of the table:
 *
 *     #define FROM(state, next) GPS_STATE_ROW(GPS_DOOR_##state, next),
 *     #define TO(state) GPS_TO(GPS_DOOR_##state)
 *     static const struct gps_state_row rows[] = {GPS_DOOR_STATES(FROM, TO)};
 *
 * and calls gps_transition_check first, which costs three instructions. assertion.h tells what a
 * violation does.
 */
#pragma once

#include <stdint.h>

#include "assertion.h"

struct gps_state_row {
    const char *name;
    uint32_t next; /* the states that may follow, a bit each */
};

#define GPS_STATE_ROW(state, next_states) [state] = {#state, (next_states)}
#define GPS_TO(state)                     (1u << (state))
#define GPS_TO_NONE                       0u

static inline void gps_transition_check(const char *object, const struct gps_state_row *rows,
                                        unsigned from, unsigned to) {
    if (__builtin_expect(!(rows[from].next >> to & 1), 0))
        gps_assertion_failed(object, rows[from].name, rows[to].name);
}
